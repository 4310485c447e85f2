// The host of a page: what stands below is of this model alone.
const ARRAYS = {f32: Float32Array, f64: Float64Array, i8: Int8Array, u8: Uint8Array, bool: Uint8Array, i16: Int16Array, u16: Uint16Array,
    f16: Uint16Array, bf16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array};
const arrayOf = (type) => ARRAYS[type] ?? Uint8Array;
const up = (n, to) => Math.ceil(n / to) * to;

// A file of the model, with the bytes that have come told on the way.
async function file(base, name, told) {
    const answer = await fetch(new URL(name, base));
    if (!answer.ok)
        throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
    const all = +answer.headers.get('content-length') || 0, parts = [];
    let bytes = 0;
    for (const reader = answer.body.getReader(); ;) {
        const {done, value} = await reader.read();
        if (done)
            break;
        parts.push(value);
        bytes += value.length;
        told?.({file: name, bytes, of: all});
    }
    const whole = new Uint8Array(bytes);
    parts.reduce((at, p) => (whole.set(p, at), at + p.length), 0);
    return whole;
}

// Inputs by name as bytes, or what is wrong with them.
function given(inputs) {
    return model.inputs.map(([name, type, shape]) => {
        const x = inputs?.[name], n = shape.reduce((a, b) => a * b, 1);
        if (!ArrayBuffer.isView(x))
            throw new Error(`input '${name}' is missing: a ${arrayOf(type).name} of ${n} elements`);
        if (x.constructor.BYTES_PER_ELEMENT !== arrayOf(type).BYTES_PER_ELEMENT || x.length !== n)
            throw new Error(`input '${name}' is a ${x.constructor.name} of ${x.length} elements, not a ${arrayOf(type).name} of ${n}`);
        return new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
    });
}

// Bytes of the outputs, in order, as arrays by name.
const named = (all) => Object.fromEntries(model.outputs.map(([name, type, shape], i) =>
    [name, new (arrayOf(type))(all[i], 0, shape.reduce((a, b) => a * b, 1))]));

// One run after the other, whoever asks.
function inTurn(run) {
    let last = Promise.resolve();
    return (inputs) => last = last.catch(() => {}).then(() => run(given(inputs)).then(named));
}
