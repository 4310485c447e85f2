
// WebAssembly: a module that imports nothing, with the weights and all tensors in its memory.
async function wasm(base, told) {
    const {instance} = await WebAssembly.instantiate(await file(base, model.wasm.file, told), {});
    const {memory, page_init, page_run, page_reset, page_memory} = instance.exports;
    const check = (status) => {
        if (status)
            throw new Error(`the model gives status ${status} (docs/abi.md)`);
    };
    if (model.wasm.weights) {
        const weights = await file(base, model.wasm.weights, told);
        new Uint8Array(memory.buffer).set(weights, page_memory(0));
    }
    check(page_init());
    async function run(inputs) {
        inputs.forEach((x, i) => new Uint8Array(memory.buffer).set(x, page_memory(1 + i)));
        check(page_run());
        return model.outputs.map(([, type, shape], i) => {
            const at = page_memory(1 + inputs.length + i), n = shape.reduce((a, b) => a * b, 1);
            return memory.buffer.slice(at, at + n * arrayOf(type).BYTES_PER_ELEMENT);
        });
    }
    return {by: 'wasm', run: inTurn(run), reset: async () => check(page_reset()), destroy() {}};
}
