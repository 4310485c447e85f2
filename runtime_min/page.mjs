// The host of a page: what stands below is of this model alone.
const ARRAYS = {f32: Float32Array, f64: Float64Array, i2: Int8Array, i4: Int8Array, i8: Int8Array, i16: Int16Array, u16: Uint16Array,
    f16: Uint16Array, bf16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array};
// The kind of array that has elements of a type.
export const arrayOf = (type) => ARRAYS[type] ?? Uint8Array;
const up = (n, to) => Math.ceil(n / to) * to;
const elements = (shape) => shape.reduce((a, b) => a * b, 1);

// A file of the model, of so many bytes if that is known; the bytes that have come are told on the way.
async function file(base, name, told, want) {
    const url = new URL(name, base), fail = (why) => { throw new Error(`${url}: ${why}`); };
    const answer = await fetch(url).catch((e) => fail(`${e.message}: files of a model come from a server, by http`));
    if (!answer.ok)
        fail(`${answer.status} ${answer.statusText}: files of a model lie beside ${new URL('.', url)}`);
    const all = want ?? (+answer.headers.get('content-length') || 0), parts = [];
    let bytes = 0;
    for (const reader = answer.body.getReader(); ;) {
        const {done, value} = await reader.read().catch((e) => fail(e.message));
        if (done)
            break;
        parts.push(value);
        bytes += value.length;
        told?.({file: name, bytes, of: all});
    }
    if (bytes !== (want ?? bytes))
        fail(`${bytes} bytes, not ${want}: this is another file than the one compiled with this module`);
    const whole = new Uint8Array(bytes);
    parts.reduce((at, p) => (whole.set(p, at), at + p.length), 0);
    return whole;
}

// Whether an array has elements of a type, whose own array is A.
const fits = (x, type, A) => ArrayBuffer.isView(x) && [A.name, type === 'f16' ? 'Float16Array' : A === Uint8Array ? 'Uint8ClampedArray' : '']
    .includes(x.constructor.name);

// Inputs by name as bytes, or what is wrong with them.
function given(inputs) {
    return model.inputs.map(([name, type, shape]) => {
        const x = inputs?.[name], n = elements(shape), A = arrayOf(type), want = `${A.name} of ${n} elements ([${shape}])`;
        if (x == null) {
            const other = Object.keys(inputs ?? {}).find((k) => !model.inputs.some(([m]) => m === k));
            throw new Error(`input '${name}' is missing: ${want}${other === undefined ? '' : `; there is no input '${other}'`}`);
        }
        if (!fits(x, type, A) || x.length !== n)
            throw new Error(`input '${name}': ${x.constructor?.name} of ${x.length ?? 1} elements, not ${want}`);
        return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
    });
}

// Bytes of the outputs, in order, as arrays by name.
const named = (all) => Object.fromEntries(model.outputs.map(([name, type, shape], i) =>
    [name, new (arrayOf(type))(all[i], 0, elements(shape))]));

// What load() gives. One run after the other, whoever asks.
function loaded(about, run, reset, end) {
    let last = Promise.resolve(), ended = false;
    const inTurn = (what) => last = last.catch(() => {}).then(() => {
        if (ended)
            throw new Error('the model was destroyed: load() gives another');
        return what();
    });
    return {...about, run: (inputs) => inTurn(async () => named(await run(given(inputs)))), reset: () => inTurn(reset), destroy() {
        ended = true;
        end();
    }};
}
