/*
 * igrt_wgsl.c - WebGPU in C by dlopen. See igrt_wgsl.h.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_wgsl_bound.h"
#include "igrt_wgsl_time.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- WebGPU in C ---------------------------------------------------------------------------- */

enum {
    SUCCESS = 1,
    PROCESS_EVENTS = 2, /* when callbacks are called */
    HIGH_PERFORMANCE = 2,
    SOURCE_WGSL = 2,
    FEATURE_F16 = 0x0b,
    FEATURE_SUBGROUPS = 0x12,
    NATIVE_SUBGROUP = 0x30021, /* wgpu-native's */
    NATIVE_EXTRAS = 0x30004,
    NATIVE_PRIMARY = 1 | 4 | 8 | 32, /* Vulkan, Metal, D3D12 */
    BOUNDS_CHECKS = 1, /* reads beyond an end may be made, behind gates that are false */
    LEAST_VERSION = 25,
    EXTRAS_VERSION = 29, /* whose number NATIVE_EXTRAS is */
    TEXT_BYTES = 256
};

/* ---- failures ---------------------------------------------------------------------------- */

/* The library's own words, of the context that failed last: they are read when that may be closed,
 * or moved. */
static char last_words[TEXT_BYTES];

const char *igrt_wg_why(const igrt_wg *wg)
{
    return wg->why;
}

/* why: a literal, or last_words; the first failure counts. */
static igrt_status fail(igrt_wg *wg, igrt_status status, const char *why)
{
    if (!wg->failed)
        wg->why = why;
    wg->failed = 1;
    return status;
}

static void take_text(igrt_wg *wg, igrt_wg_text text)
{
    const size_t most = text.length < TEXT_BYTES - 1 ? text.length : TEXT_BYTES - 1;
    size_t n = 0;
    if (wg->failed)
        return;
    for (; text.data && n < most && text.data[n]; n++)
        last_words[n] = text.data[n] == '\n' ? ' ' : text.data[n];
    last_words[n] = 0;
    (void)fail(wg, IGRT_ERR_DEVICE, last_words);
}

static void on_fault(void *const *device, int type, igrt_wg_text text, void *to, void *with)
{
    (void)device, (void)type, (void)with;
    take_text(to, text);
}

static void on_adapter(int status, void *adapter, igrt_wg_text text, void *to, void *with)
{
    (void)with;
    if (status == SUCCESS)
        ((igrt_wg *)to)->adapter = adapter;
    else
        take_text(to, text);
}

static void on_device(int status, void *device, igrt_wg_text text, void *to, void *with)
{
    (void)with;
    if (status == SUCCESS)
        ((igrt_wg *)to)->device = device;
    else
        take_text(to, text);
}

static void on_mapped(int status, igrt_wg_text text, void *to, void *with)
{
    *(int *)with = status;
    if (status != SUCCESS)
        take_text(to, text);
}

static igrt_wg_call call(void (*function)(void), void *to, void *with)
{
    const igrt_wg_call c = {NULL, PROCESS_EVENTS, function, to, with};
    return c;
}

static igrt_status said(const igrt_wg *wg)
{
    return wg->failed ? IGRT_ERR_DEVICE : IGRT_OK;
}

/* ---- open, close ------------------------------------------------------------------------- */

static void *open_library(void)
{
    static const char *const name[] = {"libwgpu_native.so", "libwebgpu_dawn.so",
                                       "libwgpu_native.dylib", "libwebgpu_dawn.dylib"};
    const char *path = getenv("IGRT_WEBGPU");
    void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !library && i < sizeof name / sizeof *name; i++)
        library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int find_function(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol); /* ISO C has no conversion to a function pointer */
    return symbol != NULL;
}

/* Version of wgpu-native, or 0; the functions. */
static int load(igrt_wg *wg, uint32_t *version)
{
    uint32_t (*ask)(void);
    *version = 0;
    wg->library = open_library();
    if (!wg->library) {
        (void)fail(wg, IGRT_ERR_DEVICE,
                   "there is no WebGPU library: libwgpu_native.so, libwebgpu_dawn.so, or the path "
                   "in IGRT_WEBGPU");
        return 0;
    }
#define IGRT_X(result, name, parameters)                                                  \
    if (!find_function(wg->library, "wgpu" #name, &wg->name)) {                           \
        (void)fail(wg, IGRT_ERR_DEVICE, "the WebGPU library has no function wgpu" #name); \
        return 0;                                                                         \
    }
    IGRT_WG_FUNCTIONS(IGRT_X)
#undef IGRT_X
    (void)find_function(wg->library, "wgpuDevicePoll", &wg->DevicePoll);
    (void)find_function(wg->library, "wgpuDeviceCreateShaderModuleTrusted",
                        &wg->DeviceCreateShaderModuleTrusted);
    (void)find_function(wg->library, "wgpuQueueGetTimestampPeriod", &wg->QueueGetTimestampPeriod);
    if (find_function(wg->library, "wgpuGetVersion", &ask))
        *version = ask() >> 24;
    wg->native = wg->DevicePoll != NULL;
    if (*version && *version < LEAST_VERSION) {
        (void)fail(wg, IGRT_ERR_DEVICE, "wgpu-native is older than version 25");
        return 0;
    }
    return 1;
}

static void events(igrt_wg *wg)
{
    if (wg->DevicePoll && wg->device)
        (void)wg->DevicePoll(wg->device, 1, NULL);
    if (wg->instance)
        wg->InstanceProcessEvents(wg->instance);
}

static void make_instance(igrt_wg *wg, uint32_t version)
{
    WgExtras extras;
    WgInstance asked = {NULL, 0, NULL, NULL};
    memset(&extras, 0, sizeof extras);
    extras.chain.type = NATIVE_EXTRAS;
    extras.backends = NATIVE_PRIMARY;
    if (version >= EXTRAS_VERSION)
        asked.next = &extras;
    wg->instance = wg->CreateInstance(&asked);
}

static int make_adapter(igrt_wg *wg)
{
    const WgAdapter asked = {.level = 2, .power = HIGH_PERFORMANCE};
    (void)wg->InstanceRequestAdapter(wg->instance, &asked,
                                     call((void (*)(void))on_adapter, wg, NULL));
    for (int i = 0; i < 1000 && !wg->adapter && !wg->failed; i++)
        wg->InstanceProcessEvents(wg->instance);
    return wg->adapter != NULL;
}

static int make_device(igrt_wg *wg)
{
    static const int wanted[] = {WG_TIMESTAMPS, FEATURE_F16, FEATURE_SUBGROUPS, NATIVE_SUBGROUP};
    enum { WANTED = sizeof wanted / sizeof *wanted };
    int feature[WANTED];
    WgLimits limits;
    WgInfo info;
    WgDevice asked;
    memset(&limits, 0, sizeof limits);
    memset(&info, 0, sizeof info);
    memset(&asked, 0, sizeof asked);
    (void)wg->AdapterGetLimits(wg->adapter, &limits);
    (void)wg->AdapterGetInfo(wg->adapter, &info);
    limits.next = NULL;
    for (int i = 0; i < WANTED; i++)
        if ((wanted[i] < NATIVE_SUBGROUP || wg->native) &&
            wg->AdapterHasFeature(wg->adapter, wanted[i]))
            feature[asked.features++] = wanted[i];
    asked.feature = feature;
    asked.limits = &limits;
    asked.fault.function = (void (*)(void))on_fault;
    asked.fault.to = wg;
    (void)wg->AdapterRequestDevice(wg->adapter, &asked, call((void (*)(void))on_device, wg, NULL));
    for (int i = 0; i < 1000 && !wg->device && !wg->failed; i++)
        wg->InstanceProcessEvents(wg->instance);
    wg->subgroup = info.least;
    return wg->device != NULL;
}

static void *new_buffer(igrt_wg *wg, uint64_t bytes, uint64_t usage)
{
    const WgBuffer asked = {.usage = usage, .bytes = bytes};
    if (bytes > wg->buffer_bytes) {
        (void)fail(wg, IGRT_ERR_DEVICE,
                   "a buffer is larger than the device allows (maxBufferSize)");
        return NULL;
    }
    return wg->DeviceCreateBuffer(wg->device, &asked);
}

enum { MOST_RECORDED = 1024 /* launches between two submissions */ };

igrt_status igrt_wg_open(igrt_wg *wg, void *device, void *queue, const char *which)
{
    uint32_t version;
    WgLimits limits;
    memset(wg, 0, sizeof *wg);
    wg->clock.passes = -1;
    memset(&limits, 0, sizeof limits);
    if (which && *which && strcmp(which, "0") != 0)
        return fail(wg, IGRT_ERR_DEVICE, "WebGPU knows one adapter: 0");
    if (!load(wg, &version))
        return IGRT_ERR_DEVICE;
    wg->device = device;
    wg->owns_device = !device;
    if (!device) {
        make_instance(wg, version);
        if (!wg->instance || !make_adapter(wg) || !make_device(wg))
            return fail(wg, IGRT_ERR_DEVICE,
                        "there is no WebGPU adapter (a driver of Vulkan, Metal or D3D12)");
    }
    wg->queue = queue ? queue : wg->DeviceGetQueue(wg->device);
    (void)wg->DeviceGetLimits(wg->device, &limits);
    wg->bindings = limits.storage_buffers;
    wg->items = limits.items < limits.sizes[0] ? limits.items : limits.sizes[0];
    wg->binding_bytes = limits.storage_bytes;
    wg->buffer_bytes = limits.buffer_bytes;
    return said(wg);
}

/* The limit on items of a group, as targets name it. */
#define ITEMS "maxComputeInvocationsPerWorkgroup="

static igrt_status lacking(igrt_fault *fault, const char *what)
{
    fault->what = what;
    fault->greatest = -1;
    return IGRT_ERR_FEATURE;
}

igrt_status igrt_wg_require(igrt_wg *wg, const char *feature, igrt_fault *fault, const char *lacks)
{
    if (!strncmp(feature, "packed_", 7)) /* of the language: what compiles the kernels knows */
        return IGRT_OK;
    if (!strncmp(feature, ITEMS, sizeof ITEMS - 1)) {
        if (wg->items >= strtoul(feature + sizeof ITEMS - 1, NULL, 10))
            return IGRT_OK;
        return lacking(fault, lacks);
    }
    const int number = strcmp(feature, "subgroups") ? FEATURE_F16 : FEATURE_SUBGROUPS;
    const int has = !wg->adapter || wg->AdapterHasFeature(wg->adapter, number) ||
                    (number == FEATURE_SUBGROUPS && wg->native &&
                     wg->AdapterHasFeature(wg->adapter, NATIVE_SUBGROUP));
    return has ? IGRT_OK : lacking(fault, lacks);
}

static void release(void (*function)(void *), void *handle)
{
    if (function && handle)
        function(handle);
}

void igrt_wg_close(igrt_wg *wg)
{
    igrt_wg_free_bound(wg);
    igrt_wg_free_clock(wg);
    release(wg->ComputePassEncoderRelease, wg->pass);
    release(wg->CommandEncoderRelease, wg->encoder);
    release(wg->BindGroupLayoutRelease, wg->bytes.layout);
    release(wg->ComputePipelineRelease, wg->bytes.pipeline);
    release(wg->BufferRelease, wg->weights);
    release(wg->BufferRelease, wg->spare.buffer);
    release(wg->BufferRelease, wg->staging.buffer);
    release(wg->QueueRelease, wg->owns_device ? wg->queue : NULL);
    release(wg->DeviceRelease, wg->owns_device ? wg->device : NULL);
    release(wg->AdapterRelease, wg->adapter);
    release(wg->InstanceRelease, wg->instance);
    /* the library stays: its threads may not have ended */
    wg->queue = wg->device = wg->adapter = wg->instance = wg->library = NULL;
    wg->pass = wg->encoder = wg->weights = NULL;
    memset(&wg->bytes, 0, sizeof wg->bytes);
    memset(&wg->spare, 0, sizeof wg->spare);
    memset(&wg->staging, 0, sizeof wg->staging);
}

/* ---- programs ---------------------------------------------------------------------------- */

/* Lines that wgpu-native does not take: it has sub-groups without being told. */
static int is_left_out(const igrt_wg *wg, const char *line)
{
    return wg->native &&
           (!strncmp(line, "enable subgroups", 16) || !strncmp(line, "diagnostic(", 11));
}

static void *module_of(igrt_wg *wg, const char *text, size_t length)
{
    const WgSource source = {{NULL, SOURCE_WGSL}, {text, length}};
    const WgModule asked = {&source, {NULL, 0}};
    if (wg->DeviceCreateShaderModuleTrusted) /* without a counter in every loop that ends it */
        return wg->DeviceCreateShaderModuleTrusted(wg->device, &asked, BOUNDS_CHECKS);
    return wg->DeviceCreateShaderModule(wg->device, &asked);
}

igrt_status igrt_wg_build(igrt_wg *wg, const char *const *text, int n, void **module)
{
    size_t length = 0;
    for (int i = 0; i < n; i++)
        length += strlen(text[i]);
    char *whole = malloc(length + 1);
    *module = NULL;
    if (!whole)
        return fail(wg, IGRT_ERR_BUILD, "no memory is left");
    length = 0;
    for (int i = 0; i < n; i++) {
        const size_t more = is_left_out(wg, text[i]) ? 0 : strlen(text[i]);
        memcpy(whole + length, text[i], more);
        length += more;
    }
    *module = module_of(wg, whole, length);
    free(whole);
    return *module && !wg->failed ? IGRT_OK : IGRT_ERR_BUILD;
}

static igrt_status make_kernel(igrt_wg *wg, void *module, const char *name, size_t length,
                               igrt_wg_kernel *kernel)
{
    const WgPipeline asked = {.module = module, .entry = {name, length}};
    kernel->pipeline = wg->DeviceCreateComputePipeline(wg->device, &asked);
    if (!kernel->pipeline || wg->failed)
        return fail(wg, IGRT_ERR_BUILD, "a pipeline cannot be made");
    kernel->layout = wg->ComputePipelineGetBindGroupLayout(kernel->pipeline, 0);
    return wg->failed ? IGRT_ERR_BUILD : IGRT_OK;
}

igrt_status igrt_wg_find(igrt_wg *wg, void *module, const char *name, igrt_wg_kernel *kernel)
{
    const size_t length = strcspn(name, ":");
    kernel->entry = name[length] ? name + length + 1 : "";
    return make_kernel(wg, module, name, length, kernel);
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static const uint64_t usage = WG_STORAGE | WG_COPY_SRC | WG_COPY_DST;

igrt_status igrt_wg_reserve(igrt_wg *wg, uint64_t bytes)
{
    if (!bytes || bytes > wg->buffer_bytes)
        return IGRT_OK; /* each in a buffer of its own */
    wg->weight_bytes = round_up(bytes, IGRT_WG_ALIGN);
    wg->weights = new_buffer(wg, wg->weight_bytes, usage);
    return wg->weights ? said(wg) : IGRT_ERR_DEVICE;
}

igrt_status igrt_wg_alloc(igrt_wg *wg, uint64_t bytes, const void *data, igrt_wg_mem *mem)
{
    const uint64_t room = round_up(bytes ? bytes : 1, IGRT_WG_ALIGN);
    memset(mem, 0, sizeof *mem);
    mem->bytes = bytes;
    if (data && wg->weights && wg->weight_used + room <= wg->weight_bytes) {
        mem->buffer = wg->weights;
        mem->offset = wg->weight_used;
        wg->weight_used += room;
    } else {
        mem->buffer = new_buffer(wg, room, usage);
        if (!mem->buffer)
            return IGRT_ERR_DEVICE;
    }
    if (data && bytes)
        return igrt_wg_write(wg, *mem, 0, data, (size_t)bytes);
    return said(wg);
}

void igrt_wg_free(igrt_wg *wg, igrt_wg_mem mem)
{
    if (!mem.buffer || mem.buffer == wg->weights)
        return;
    igrt_wg_forget(wg);
    wg->BufferRelease(mem.buffer);
}

/* ---- what is recorded -------------------------------------------------------------------- */

static void *encoder(igrt_wg *wg)
{
    if (!wg->encoder)
        wg->encoder = wg->DeviceCreateCommandEncoder(wg->device, NULL);
    return wg->encoder;
}

static void end_pass(igrt_wg *wg)
{
    if (!wg->pass)
        return;
    wg->ComputePassEncoderEnd(wg->pass);
    wg->ComputePassEncoderRelease(wg->pass);
    wg->pass = NULL;
}

void igrt_wg_submit(igrt_wg *wg)
{
    end_pass(wg);
    if (wg->encoder) {
        void *commands = wg->CommandEncoderFinish(wg->encoder, NULL);
        wg->QueueSubmit(wg->queue, 1, &commands);
        wg->CommandBufferRelease(commands);
        wg->CommandEncoderRelease(wg->encoder);
    }
    wg->busy |= wg->encoder != NULL;
    wg->encoder = NULL;
    wg->recorded = 0;
}

/* Whole words: what is behind the end of the host's data is zero. */
igrt_status igrt_wg_write(igrt_wg *wg, igrt_wg_mem to, uint64_t offset, const void *data,
                          size_t bytes)
{
    const size_t whole = bytes / 4 * 4;
    unsigned char last[4] = {0, 0, 0, 0};
    if ((to.offset + offset) % 4)
        return fail(wg, IGRT_ERR_DEVICE, "a tensor of the host does not begin at a word");
    igrt_wg_submit(wg); /* what was enqueued before comes before it */
    wg->busy = 1;
    if (whole)
        wg->QueueWriteBuffer(wg->queue, to.buffer, to.offset + offset, data, whole);
    if (bytes > whole) {
        memcpy(last, (const unsigned char *)data + whole, bytes - whole);
        wg->QueueWriteBuffer(wg->queue, to.buffer, to.offset + offset + whole, last, 4);
    }
    return said(wg);
}

/* A buffer of at least so many bytes in place of a smaller one. */
static int grow(igrt_wg *wg, igrt_wg_mem *mem, uint64_t bytes, uint64_t use)
{
    if (mem->buffer && mem->bytes >= bytes)
        return 1;
    igrt_wg_submit(wg);
    igrt_wg_forget(wg);
    if (mem->buffer)
        wg->BufferRelease(mem->buffer);
    mem->bytes = round_up(bytes + bytes / 2, IGRT_WG_ALIGN);
    mem->buffer = new_buffer(wg, mem->bytes, use);
    return mem->buffer != NULL;
}

/* Hands over what is recorded, and waits for it: the host has what it is to read. */
static igrt_status collect(igrt_wg *wg)
{
    const size_t bytes = (size_t)wg->reading_bytes;
    const int n = wg->readings;
    int mapped = 0;
    wg->readings = 0;
    wg->reading_bytes = 0;
    igrt_wg_submit(wg);
    (void)wg->BufferMapAsync(wg->staging.buffer, WG_MAP_READ, 0, bytes,
                             call((void (*)(void))on_mapped, wg, &mapped));
    while (!mapped && !wg->failed)
        events(wg);
    const unsigned char *range =
        wg->failed ? NULL : wg->BufferGetConstMappedRange(wg->staging.buffer, 0, bytes);
    if (!range)
        return fail(wg, IGRT_ERR_DEVICE, "a buffer cannot be read");
    for (int i = 0; i < n; i++)
        memcpy(wg->reading[i].data, range + wg->reading[i].at, wg->reading[i].bytes);
    wg->BufferUnmap(wg->staging.buffer);
    wg->busy = 0;
    return said(wg);
}

/* All that is read before the host waits lies side by side, and is mapped at once. */
igrt_status igrt_wg_read(igrt_wg *wg, igrt_wg_mem from, uint64_t offset, void *data, size_t bytes,
                         int wait)
{
    const uint64_t at = (from.offset + offset) / 4 * 4, before = from.offset + offset - at;
    const uint64_t whole = round_up(before + bytes, 4);
    const uint64_t all = wg->reading_bytes + whole;
    if (!bytes)
        return said(wg);
    if (wg->readings && (wg->readings == IGRT_WG_READS || wg->staging.bytes < all) &&
        collect(wg) != IGRT_OK)
        return IGRT_ERR_DEVICE;
    if (!grow(wg, &wg->staging, all, WG_MAP_READ | WG_COPY_DST))
        return IGRT_ERR_DEVICE;
    end_pass(wg);
    wg->CommandEncoderCopyBufferToBuffer(encoder(wg), from.buffer, at, wg->staging.buffer,
                                         wg->reading_bytes, whole);
    wg->reading[wg->readings].data = data;
    wg->reading[wg->readings].at = wg->reading_bytes + before;
    wg->reading[wg->readings++].bytes = bytes;
    wg->reading_bytes += whole;
    return wait ? collect(wg) : said(wg);
}

igrt_status igrt_wg_zero(igrt_wg *wg, igrt_wg_mem mem, uint64_t bytes)
{
    end_pass(wg);
    wg->CommandEncoderClearBuffer(encoder(wg), mem.buffer, mem.offset, round_up(bytes, 4));
    return said(wg);
}

igrt_status igrt_wg_finish(igrt_wg *wg)
{
    unsigned char byte;
    if (wg->readings)
        return collect(wg);
    igrt_wg_submit(wg);
    if (!wg->busy)
        return said(wg);
    if (!grow(wg, &wg->spare, 4, usage))
        return IGRT_ERR_DEVICE;
    return igrt_wg_read(wg, wg->spare, 0, &byte, 1, 1); /* it comes last */
}

/* ---- launches ---------------------------------------------------------------------------- */

/* n ranges of memory, and values if there are; keep: no range is the caller's. */
static igrt_status dispatch(igrt_wg *wg, const igrt_wg_kernel *kernel, WgEntry *entry, int n,
                            const uint32_t *value, int values, int keep, int64_t groups)
{
    enum { MOST = 65535 };
    if (wg->recorded == MOST_RECORDED)
        igrt_wg_submit(wg);
    void *bound = igrt_wg_bind(wg, kernel, entry, n, value, values, keep);
    if (!bound)
        return fail(wg, IGRT_ERR_DEVICE, "no memory is left for a bind group");
    if (!wg->pass) {
        wg->pass = igrt_wg_begin_pass(wg, encoder(wg));
        wg->last = NULL;
    }
    if (wg->last != kernel->pipeline)
        wg->ComputePassEncoderSetPipeline(wg->pass, kernel->pipeline);
    wg->last = kernel->pipeline;
    wg->ComputePassEncoderSetBindGroup(wg->pass, 0, bound, 0, NULL);
    wg->ComputePassEncoderDispatchWorkgroups(wg->pass, (uint32_t)(groups < MOST ? groups : MOST),
                                             (uint32_t)((groups + MOST - 1) / MOST), 1);
    wg->recorded++;
    return said(wg);
}

/* Copies byte by byte, from one buffer into another one. */
static const char *const copy_text[] = {
    "struct Values { to: u32, begin: u32, bytes: u32 }\n",
    "@group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;\n",
    "@group(0) @binding(1) var<storage, read> x: array<u32>;\n",
    "@group(0) @binding(2) var<uniform> v: Values;\n",
    "@compute @workgroup_size(64)\n",
    "fn copy(@builtin(global_invocation_id) id: vec3<u32>) {\n",
    "    let i = id.x + id.y * 4194240u;\n",
    "    if (i >= v.bytes) {\n",
    "        return;\n",
    "    }\n",
    "    let b = extractBits(x[(v.begin + i) / 4u], ((v.begin + i) & 3u) * 8u, 8u);\n",
    "    let by = ((v.to + i) & 3u) * 8u;\n",
    "    atomicAnd(&y[(v.to + i) / 4u], ~(0xffu << by));\n",
    "    atomicOr(&y[(v.to + i) / 4u], b << by);\n",
    "}\n"};

static igrt_status copy_bytes(igrt_wg *wg, void *to, uint64_t at, void *from, uint64_t begin,
                              uint64_t bytes, int keep)
{
    const uint64_t y = at / IGRT_WG_ALIGN * IGRT_WG_ALIGN;
    const uint32_t value[] = {(uint32_t)(at - y), (uint32_t)begin, (uint32_t)bytes};
    WgEntry entry[3] = {
        {.binding = 0, .buffer = to, .offset = y, .bytes = round_up(at - y + bytes, 4)},
        {.binding = 1, .buffer = from, .offset = 0, .bytes = round_up(begin + bytes, 4)}};
    if (!wg->bytes.pipeline) {
        void *module;
        igrt_status status =
            igrt_wg_build(wg, copy_text, sizeof copy_text / sizeof *copy_text, &module);
        if (status == IGRT_OK)
            status = make_kernel(wg, module, "copy", 4, &wg->bytes);
        release(wg->ShaderModuleRelease, module);
        if (status != IGRT_OK)
            return status;
    }
    return dispatch(wg, &wg->bytes, entry, 2, value, 3, keep, (int64_t)((bytes + 63) / 64));
}

igrt_status igrt_wg_copy(igrt_wg *wg, igrt_wg_mem to, uint64_t to_offset, igrt_wg_mem from,
                         uint64_t from_offset, uint64_t bytes)
{
    uint64_t dst = to.offset + to_offset, src = from.offset + from_offset;
    void *buffer = from.buffer;
    const int words = !(dst % 4) && !(src % 4) && !(bytes % 4);
    if (!bytes)
        return said(wg);
    if (buffer == to.buffer || !words) { /* WebGPU copies nothing within a buffer */
        const uint64_t at = src / 4 * 4, whole = round_up(src - at + bytes, 4);
        if (!grow(wg, &wg->spare, whole, usage))
            return IGRT_ERR_DEVICE;
        end_pass(wg);
        wg->CommandEncoderCopyBufferToBuffer(encoder(wg), buffer, at, wg->spare.buffer, 0, whole);
        buffer = wg->spare.buffer;
        src -= at;
    }
    if (!words)
        return copy_bytes(wg, to.buffer, dst, buffer, src, bytes, !to.given);
    end_pass(wg);
    wg->CommandEncoderCopyBufferToBuffer(encoder(wg), buffer, src, to.buffer, dst, bytes);
    return said(wg);
}

/* Arguments of a launch, as its kernel has them. */
typedef struct WgLaunch {
    igrt_wg_mem mem[IGRT_WG_ARGS];
    int binding[IGRT_WG_ARGS], n, bindings, wants_groups;
    WgEntry entry[IGRT_WG_ARGS + 1];
    int shared[IGRT_WG_ARGS]; /* by binding: how many arguments have it; */
    int apart[IGRT_WG_ARGS];  /* and that they lie in several buffers */
} WgLaunch;

static int read_entry(WgLaunch *l, const char *entry, int nmem)
{
    l->n = nmem;
    l->bindings = 0;
    for (int i = 0; i < nmem; i++) {
        char *end;
        l->binding[i] = (int)strtol(entry, &end, 10);
        if (end == entry || l->binding[i] < 0 || l->binding[i] > l->bindings)
            return 0;
        l->bindings += l->binding[i] == l->bindings;
        entry = *end == ',' ? end + 1 : end;
    }
    l->wants_groups = *entry == '#';
    return 1;
}

/* Each binding from the first byte of its arguments to the last one. */
static void bind_arguments(WgLaunch *l)
{
    memset(l->shared, 0, sizeof l->shared);
    memset(l->apart, 0, sizeof l->apart);
    for (int i = 0; i < l->n; i++) {
        const igrt_wg_mem *m = &l->mem[i];
        const int b = l->binding[i];
        const uint64_t bytes = round_up(m->bytes ? m->bytes : 16, 4);
        WgEntry *e = &l->entry[b];
        if (!l->shared[b]++) {
            const WgEntry whole = {
                .binding = (uint32_t)b, .buffer = m->buffer, .offset = m->offset, .bytes = bytes};
            *e = whole;
            continue;
        }
        const uint64_t begin = m->offset < e->offset ? m->offset : e->offset;
        const uint64_t last = e->offset + e->bytes, end = m->offset + bytes;
        e->bytes = (end > last ? end : last) - begin;
        e->offset = begin;
        l->apart[b] |= e->buffer != m->buffer;
    }
}

/* Arguments that share a binding but lie in several buffers are brought together, and back. */
static igrt_status together(igrt_wg *wg, WgLaunch *l, int b, int back)
{
    uint64_t at = 0;
    igrt_wg_mem spare;
    for (int i = 0; i < l->n; i++)
        if (l->binding[i] == b)
            at += round_up(l->mem[i].bytes + 16, IGRT_WG_ALIGN);
    if (!grow(wg, &wg->spare, at, usage))
        return IGRT_ERR_DEVICE;
    spare = wg->spare;
    spare.offset = 0;
    l->entry[b].buffer = spare.buffer;
    l->entry[b].offset = 0;
    l->entry[b].bytes = at;
    at = 0;
    for (int i = 0; i < l->n; i++) {
        const uint64_t bytes = round_up(l->mem[i].bytes, 4);
        if (l->binding[i] != b)
            continue;
        end_pass(wg);
        if (bytes && !back)
            wg->CommandEncoderCopyBufferToBuffer(encoder(wg), l->mem[i].buffer, l->mem[i].offset,
                                                 spare.buffer, at, bytes);
        else if (bytes && l->mem[i].buffer != wg->weights)
            wg->CommandEncoderCopyBufferToBuffer(encoder(wg), spare.buffer, at, l->mem[i].buffer,
                                                 l->mem[i].offset, bytes);
        at += round_up(l->mem[i].bytes + 16, IGRT_WG_ALIGN);
    }
    return IGRT_OK;
}

/* Words from the beginning of its binding. */
static uint32_t begins(const WgLaunch *l, int arg)
{
    const int b = l->binding[arg];
    uint64_t at = 0;
    if (!l->apart[b])
        return (uint32_t)((l->mem[arg].offset - l->entry[b].offset) / 4);
    for (int i = 0; i < arg; i++)
        if (l->binding[i] == b)
            at += round_up(l->mem[i].bytes + 16, IGRT_WG_ALIGN);
    return (uint32_t)(at / 4);
}

static int launch_values(const WgLaunch *l, int64_t groups, int nint, int n, void **args,
                         uint32_t value[IGRT_WG_ALIGN / 4])
{
    int count = 0;
    for (int i = 0; i < l->n; i++)
        if (l->shared[l->binding[i]] > 1)
            value[count++] = begins(l, i);
    for (int i = l->n; i < n && count < IGRT_WG_ALIGN / 4 - 1; i++) {
        if (i < l->n + nint) {
            value[count++] = (uint32_t) * (const int64_t *)args[i];
            continue;
        }
        memcpy(&value[count++], args[i], 4);
    }
    if (l->wants_groups)
        value[count++] = (uint32_t)groups;
    return count;
}

igrt_status igrt_wg_launch(igrt_wg *wg, const igrt_wg_kernel *kernel, int64_t groups, int nmem,
                           int nint, int n, void **args)
{
    WgLaunch l;
    uint32_t value[IGRT_WG_ALIGN / 4];
    int keep = 1;
    if (groups <= 0)
        return said(wg);
    if (n > IGRT_WG_ALIGN / 4 - 2 || nmem > IGRT_WG_ARGS)
        return fail(wg, IGRT_ERR_DEVICE, "a kernel has too many arguments");
    for (int i = 0; i < nmem; i++) {
        l.mem[i] = *(const igrt_wg_mem *)args[i];
        keep &= !l.mem[i].given;
    }
    if (!read_entry(&l, kernel->entry, nmem))
        return fail(wg, IGRT_ERR_DEVICE, "a kernel's name does not tell its bindings");
    bind_arguments(&l);
    for (int b = 0; b < l.bindings; b++)
        if (l.apart[b] && together(wg, &l, b, 0) != IGRT_OK)
            return IGRT_ERR_DEVICE;
    for (int b = 0; b < l.bindings; b++)
        if (l.entry[b].bytes > wg->binding_bytes)
            return fail(wg, IGRT_ERR_DEVICE,
                        "a tensor is larger than the device binds (maxStorageBufferBindingSize)");
    const int count = launch_values(&l, groups, nint, n, args, value);
    if (dispatch(wg, kernel, l.entry, l.bindings, value, count, keep, groups) != IGRT_OK)
        return IGRT_ERR_DEVICE;
    for (int b = 0; b < l.bindings; b++)
        if (l.apart[b])
            (void)together(wg, &l, b, 1);
    return said(wg);
}
