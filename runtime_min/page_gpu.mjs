
// WebGPU: an adapter that has what the kernels need, or why there is none.
const LIMITS = ['maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX'];
async function adapterFor({items, features, words}) {
    const {gpu: there} = globalThis.navigator ?? {};
    if (!there)
        return {why: globalThis.isSecureContext === false ? 'there is no WebGPU: browsers have it in pages from https:// and from localhost'
            : 'there is no WebGPU in this browser'};
    const adapter = await there.requestAdapter();
    if (!adapter)
        return {why: 'there is no WebGPU adapter'};
    const missing = [...features.filter((f) => !adapter.features.has(f)), ...words.filter((w) => !there.wgslLanguageFeatures?.has(w))];
    if (LIMITS.some((n) => adapter.limits[n] < items))
        missing.push(`groups of ${items} items`);
    return missing.length ? {why: `there is no WebGPU adapter with ${missing.join(', ')}`} : {adapter};
}

async function gpu(adapter, base, told) {
    const plan = model.gpu, limits = {};
    for (const n of ['maxStorageBuffersPerShaderStage', 'maxStorageBufferBindingSize', 'maxBufferSize', ...LIMITS])
        limits[n] = adapter.limits[n];
    for (const [n, most] of [['maxBufferSize', Math.max(...plan.memory)],
        ['maxStorageBufferBindingSize', plan.steps.flatMap((s) => s[0] < 0 ? [] : s[3].filter((_, i) => i % 3 === 2)).reduce((a, b) => Math.max(a, b), 0)]])
        if (most > limits[n])
            throw new Error(`the model needs a buffer of ${most} bytes, the adapter has ${limits[n]} (${n})`);
    const device = await adapter.requestDevice({requiredFeatures: plan.features, requiredLimits: limits});
    try {
        return await onDevice(device, plan, base, told);
    } catch (e) {
        device.destroy();
        throw e;
    }
}

async function onDevice(device, plan, base, told) {
    const sizes = plan.memory;
    let lost = null;
    device.lost.then((i) => lost = new Error(`the WebGPU device was lost (${i.message || i.reason}): load() gives another`));
    device.pushErrorScope('out-of-memory');
    device.pushErrorScope('validation');
    const [text, weights] = await Promise.all([plan.kernels ? file(base, plan.file) : null,
        plan.weights ? file(base, plan.weights, told, plan.pieces.reduce((a, b) => a + b, 0)) : null]);
    const code = text ? new TextDecoder().decode(text) : '';
    const kernels = [...code.matchAll(/^@compute.*\nfn (\w+)/gm)].map((m) => m[1]);
    if (kernels.length !== plan.kernels)
        throw new Error(`${new URL(plan.file, base)}: ${kernels.length} kernels, not ${plan.kernels}: this is another file than the one compiled with this module`);
    const module = device.createShaderModule({code});
    const U = GPUBufferUsage, use = U.STORAGE | U.COPY_SRC | U.COPY_DST;
    const buffers = sizes.map((n) => device.createBuffer({size: up(n || 4, 256), usage: use}));
    let from = 0, to = 0;
    for (const n of plan.pieces) {
        device.queue.writeBuffer(buffers[1], to, weights, from, n);
        from += n;
        to += up(n, 256);
    }
    const words = new Uint32Array(64 * plan.steps.length);
    plan.steps.forEach((s, i) => s[0] < 0 || words.set(s[2], 64 * i));
    const values = device.createBuffer({size: Math.max(256, words.byteLength), usage: U.UNIFORM | U.COPY_DST});
    device.queue.writeBuffer(values, 0, words);
    let made = 0;
    const pipelines = await Promise.all(kernels.map(async (entryPoint) => {
        const p = await device.createComputePipelineAsync({layout: 'auto', compute: {module, entryPoint}});
        told?.({pipelines: ++made, of: kernels.length});
        return p;
    }));
    const steps = plan.steps.map((s, i) => {
        if (s[0] < 0)
            return s;
        const entries = [], [k, groups, v, m] = s;
        for (let b = 0; b < m.length; b += 3)
            entries.push({binding: b / 3, resource: {buffer: buffers[m[b]], offset: 256 * m[b + 1], size: m[b + 2]}});
        if (v.length)
            entries.push({binding: entries.length, resource: {buffer: values, offset: 256 * i, size: up(4 * v.length, 16)}});
        const bound = device.createBindGroup({layout: pipelines[k].getBindGroupLayout(0), entries});
        return [k, bound, Math.min(groups, 65535), Math.ceil(groups / 65535)];
    });
    const at = 2 + model.inputs.length;
    const outs = model.outputs.map((_, i) => device.createBuffer({size: buffers[at + i].size, usage: U.MAP_READ | U.COPY_DST}));
    const wrong = await device.popErrorScope() ?? await device.popErrorScope();
    if (lost)
        throw lost;
    if (wrong)
        throw new Error(`WebGPU: ${wrong.message || `no memory for ${sizes.reduce((a, b) => a + b, 0)} bytes`}`);

    async function run(inputs) {
        if (lost)
            throw lost;
        inputs.forEach((x, i) => {
            const whole = x.length & ~3;
            device.queue.writeBuffer(buffers[2 + i], 0, x, 0, whole);
            if (x.length > whole)
                device.queue.writeBuffer(buffers[2 + i], whole, Uint8Array.from({length: 4}, (_, j) => x[whole + j]));
        });
        const encoder = device.createCommandEncoder();
        let pass = null;
        for (const s of steps) {
            if (s[0] < 0) {
                pass = pass?.end();
                encoder.copyBufferToBuffer(buffers[s[3]], s[4], buffers[s[1]], s[2], s[5]);
                continue;
            }
            pass ??= encoder.beginComputePass();
            pass.setPipeline(pipelines[s[0]]);
            pass.setBindGroup(0, s[1]);
            pass.dispatchWorkgroups(s[2], s[3]);
        }
        pass?.end();
        outs.forEach((o, i) => encoder.copyBufferToBuffer(buffers[at + i], 0, o, 0, o.size));
        device.queue.submit([encoder.finish()]);
        return Promise.all(outs.map(async (o) => {
            try {
                await o.mapAsync(GPUMapMode.READ);
            } catch (e) {
                throw lost ?? e;
            }
            const copy = o.getMappedRange().slice(0);
            o.unmap();
            return copy;
        }));
    }
    async function reset() {
        const encoder = device.createCommandEncoder();
        encoder.clearBuffer(buffers[0]);
        device.queue.submit([encoder.finish()]);
    }
    return loaded({by: 'webgpu'}, run, reset, () => device.destroy());
}
