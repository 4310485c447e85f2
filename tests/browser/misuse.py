"""What a page is told that uses a package wrongly, and what it may do that is not the usual: called
by package.py, with a package for WebGPU and WebAssembly and one for WebGPU alone."""

import json
import re
import shutil

# What load() or run() says: `said` ends with an Error's message, or what the code gives
SAID = """(async () => {
    const said = async (url, options, inputs) => {
        const {load} = await import(url);
        const m = await load(undefined, options);
        try {
            return Object.keys(await m.run(inputs(m))).join();
        } finally {
            m.destroy();
        }
    };
    const {model, arrayOf} = await import('/own/model.mjs');
    const zeros = () => Object.fromEntries(model.inputs.map(([name, type, shape]) =>
        [name, new (arrayOf(type))(shape.reduce((a, b) => a * b, 1))]));
    try {
        %s
    } catch (e) {
        return e instanceof Error ? e.message : `no Error: ${e}`;
    }
})()"""
RUN = "return await said('%s', {by: '%s'}, (m) => (%s));"
INPUTS = (
    ("{...zeros(), x: zeros().x.subarray(1)}", r"'x': Float32Array of 188 elements, not F.* 189 .*1,3,7,9"),
    ("{...zeros(), x: Array.from(zeros().x)}", r"'x': Array of 189 elements, not Float32Array"),
    ("{...zeros(), x: new Int32Array(189)}", r"'x': Int32Array of 189 elements, not Float32Array"),
    ("{...zeros(), q: new Int8Array(6144)}", r"'q': Int8Array of 6144 elements, not Uint8Array"),
    ("{...zeros(), x: 1}", r"'x': Number of 1 elements, not Float32Array"),
    ("{q: zeros().q, image: zeros().x}", r"'x' is missing: Float32Array of 189 .*there is no input 'image'"),
    ("undefined", r"'x' is missing"),
    ("{...zeros(), q: new Uint8ClampedArray(6144)}", "^z,k,d$"),
)  # fmt: skip
# A run, once more after an input of NaN, and the one of a model beside it, begun at once
AT_ONCE = """
    const {load} = await import('/own/model.mjs');
    const models = await Promise.all(['webgpu', 'wasm', 'webgpu'].map((by) => load(undefined, {by})));
    const text = (outs) => JSON.stringify(Object.values(outs).map((y) => Array.from(y, (v) => Number(v).toPrecision(3))));
    const x = zeros(), nan = {...x, x: x.x.map(() => NaN)};
    x.x.forEach((_, i) => x.x[i] = i % 7 - 3);
    const all = await Promise.all(models.flatMap((m) => [m.run(x), m.run(nan), m.run({}).catch((e) => e.message), m.run(x)]));
    models.forEach((m) => m.destroy());
    const right = [0, 3, 4, 7, 8, 11].map((i) => text(all[i]));
    if (new Set(right).size !== 1)
        return `differ: ${right}`;
    if (![2, 6, 10].every((i) => all[i].includes('is missing')))
        return `not told: ${all}`;
    return [1, 5, 9].every((i) => all[i].z.every((v) => v !== v)) ? 'right': `NaN became ${text(all[1])} ${text(all[5])}`;
"""
LOST = """
    const {load} = await import('/own/model.mjs'), {requestDevice} = GPUAdapter.prototype, devices = [];
    GPUAdapter.prototype.requestDevice = async function (...all) {
        devices.push(await requestDevice.apply(this, all));
        return devices[0];
    };
    const m = await load(undefined, {by: 'webgpu'});
    GPUAdapter.prototype.requestDevice = requestDevice;
    await m.run(zeros());
    %s
    return m.run(zeros()).then(() => 'none', (e) => e.message);
"""
LOST_EARLY = """
    const {load} = await import('/own/model.mjs'), {createComputePipelineAsync: make} = GPUDevice.prototype;
    GPUDevice.prototype.createComputePipelineAsync = function (...all) {
        this.destroy();
        return make.apply(this, all);
    };
    try {
        return await load(undefined, {by: 'webgpu'}).then(() => 'none', (e) => e.message);
    } finally {
        GPUDevice.prototype.createComputePipelineAsync = make;
    }
"""
WORKER = """
    const text = `import {load} from '${location.origin}/own/model.mjs';
        onmessage = async ({data: [by, inputs]}) => {
            const m = await load(undefined, {by, threads: 2});
            postMessage([m.by, m.threads, await m.run(inputs)]);
        };`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})), {type: 'module'});
    const got = [];
    for (const by of ['webgpu', 'wasm'])
        got.push(await new Promise((done, fail) => {
            worker.onmessage = (e) => done(e.data);
            worker.onerror = (e) => fail(new Error(e.message));
            worker.postMessage([by, zeros()]);
        }));
    worker.terminate();
    return got.map(([by, threads, {k}]) => `${by} ${threads} ${k.constructor.name}`).join();
"""
NO_GPU = """
    Object.defineProperty(navigator, 'gpu', {value: undefined, configurable: true});
    const {load} = await import('/own/model.mjs'), m = await load();
    const why = await load(undefined, {by: 'webgpu'}).catch((e) => e.message);
    m.destroy();
    delete navigator.gpu;
    return `${m.by}: ${m.why}: ${why}`;
"""
DESTROYED = """
    const {load} = await import('/own/model.mjs'), m = await load(undefined, {by: '%s'});
    m.destroy();
    return (await m.run(zeros()).catch((e) => e.message)) + (await m.reset().catch((e) => e.message));
"""


def spoilt(site):
    """Copies of the package, each with a file that is missing or another one: (folder, by, what is
    said)."""

    def copy(name, file, data=None):
        shutil.copytree(site / "own", site / name, dirs_exist_ok=True)
        if data is None:
            (site / name / file).unlink()
        else:
            (site / name / file).write_bytes(data)
        return name

    page = (site / "own/index.html").read_bytes()  # as servers answer that know no missing file
    gpu, wasm = "model_wgsl.weights", "model.weights"
    yield copy("no", gpu), "webgpu", rf"/no/{gpu}: 404 .*lie beside http\S*/no/$"
    yield copy("other", gpu, page), "webgpu", rf"/other/{gpu}: {len(page)} bytes, not \d+"
    yield copy("text", "model_wgsl_kernels.wgsl", page), "webgpu", r"wgsl: 0 kernels, not \d+"
    yield copy("missing", wasm), "wasm", rf"/missing/{wasm}: 404 "
    yield copy("short", wasm, page), "wasm", rf"/short/{wasm}: {len(page)} bytes, not \d+"
    yield (
        copy("module", "model_page.wasm", page),
        "wasm",
        r"/module/model_page.wasm: WebAss.* magic",
    )


def misuse(page, site):
    def said(code, want):
        got = page.value(SAID % code)
        assert re.search(want, got), f"{code}\ngave {got}\nnot {want}"

    for by in ("webgpu", "wasm"):
        for inputs, want in INPUTS:
            said(RUN % ("/own/model.mjs", by, inputs), want)
        said(DESTROYED % by, r"destroyed.*destroyed")
    for name, by, want in spoilt(site):
        said(RUN % (f"/{name}/model.mjs", by, "zeros()"), want)
        page.browser.events.clear()  # a 404 that the console tells of
    load = "const {load} = await import('/%s/model.mjs'); await load(%s); return 'none'"
    said(
        load % ("own", json.dumps("/own") + ", {by: 'wasm'}"), r"/model_page.wasm: 404 .*lie beside"
    )
    said(load % ("items", "undefined, {by: 'wasm'}"), r"for WebGPU alone: --target wgsl\+c:wasm32")
    page.browser.events.clear()
    said(AT_ONCE, "^right$")
    said(LOST % "devices[0].destroy();", r"device was lost \(.*\): load\(\) gives another")
    said(LOST_EARLY, r"device was lost \(.*\): load\(\) gives another")
    said(WORKER, r"^webgpu undefined BigInt64Array,wasm 2 BigInt64Array$")
    said(NO_GPU, r"^wasm: there is no WebGPU in this browser: there is no WebGPU in this browser$")
    print("wrong uses are told, two models and a worker run")
