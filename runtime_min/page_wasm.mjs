// WebAssembly: a module that imports its memory alone, in which are the weights and all tensors.
const WORKER = `onmessage = async ({data: [module, memory, k, stack]}) => {
    const {exports} = await WebAssembly.instantiate(module, {env: {memory}});
    exports.__stack_pointer.value = stack;
    postMessage(k);
    exports.page_work(k);
}`;

// Of so many threads the workers: instances with the same memory. One that does not start is done without.
async function team(module, memory, {page_stack}, threads) {
    const url = URL.createObjectURL(new Blob([WORKER], {type: 'text/javascript'}));
    const workers = await Promise.all(Array.from({length: threads - 1}, (_, i) => new Promise((begun) => {
        const worker = new Worker(url);
        worker.onmessage = () => begun(worker);
        worker.onerror = () => begun(null);
        worker.postMessage([module, memory, i + 1, page_stack(i + 1)]);
    }).catch(() => null)));
    URL.revokeObjectURL(url);
    return workers.filter((w) => w);
}

// As many as the page asks for, or half of what the processor has, and two at least; one where pages
// may not share memory.
function threadsOf(asked) {
    const all = navigator.hardwareConcurrency || 1;
    const wanted = asked ?? Math.min(all, Math.max(2, all >> 1));
    return globalThis.crossOriginIsolated ? Math.max(1, Math.min(wanted, model.wasm.threads)) : 1;
}

async function wasm(base, told, asked, about) {
    const {file: name, memory: units, weights, bytes: size} = model.wasm, code = await file(base, name, told);
    const module = await WebAssembly.compile(code).catch((e) => { throw new Error(`${new URL(name, base)}: ${e.message}`); });
    let memory;
    try {
        memory = new WebAssembly.Memory({initial: units, maximum: units, shared: true});
    } catch (e) {
        throw new Error(`the model needs ${units << 6} KB of memory: ${e.message}`);
    }
    const {exports} = await WebAssembly.instantiate(module, {env: {memory}});
    const {page_init, page_run, page_reset, page_memory} = exports, bytes = new Uint8Array(memory.buffer);
    const check = (status) => {
        if (status)
            throw new Error(`the model gives status ${status} (docs/abi.md)`);
    };
    if (weights)
        bytes.set(await file(base, weights, told, size), page_memory(0));
    const threads = threadsOf(asked);
    check(page_init(threads));
    const workers = await team(module, memory, exports, threads);
    async function run(inputs) {
        inputs.forEach((x, i) => bytes.set(x, page_memory(1 + i)));
        check(page_run());
        return model.outputs.map(([, type, shape], i) => {
            const at = page_memory(1 + inputs.length + i);
            return bytes.slice(at, at + elements(shape) * arrayOf(type).BYTES_PER_ELEMENT).buffer;
        });
    }
    return loaded({by: 'wasm', threads: 1 + workers.length, ...about}, run, async () => check(page_reset()),
        () => workers.forEach((w) => w.terminate()));
}
