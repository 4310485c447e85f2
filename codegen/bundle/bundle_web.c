/* bundle_web.c - --package web: the model for a page.
 *
 *   <name>.mjs     an ES module: load(), and what is particular to the model as data
 *   <name>.d.ts    its types; <name>.d.mts is where TypeScript looks for them
 *   index.html     a page that runs it
 *
 * For WGSL the steps of a run are a list, [kernel, groups, values, bindings] of a launch or [-1,
 * to, at, from, at, bytes] of a copy, which the module records as they stand: everything that a run
 * needs is known here.  The module for WebAssembly is bundle_page.c's.  A bundle for both takes the
 * first where there is an adapter. */
#include <string.h>

#include "bundle_gpu.h"
#include "language.h"
#include "lowered.h"

enum {
    WEB_ARENA,
    WEB_WEIGHTS,
    WEB_TENSORS, /* inputs, then outputs, then memory for copies */
    WEB_ALIGN = 256,
    WEB_LAUNCHES = 20000
};

/* A range of a memory. */
typedef struct {
    int mem;
    int64_t at, bytes;
} WebRange;

typedef struct {
    Bundle *b;
    StrBuf steps;
    int nstep;
    int64_t spare; /* bytes of the memory for copies */
    /* counters of the loops around a step, and what they are now */
    Node *counter[8], *now[8];
    int ncounter;
    const char *why; /* the steps cannot be a list; NULL: they are one */
} Web;

static int64_t round_to(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Where weights begin in the file, in order; the file is cut there, and each piece lies on the
 * device where a binding may begin. */
static int64_t next_weight(const Bundle *b, int64_t after)
{
    const Gpu *g = b->gpu;
    int64_t next = b->p->weights_bytes;
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].kind == BUF_WEIGHT && g->mem[i].key > after && g->mem[i].key < next)
            next = g->mem[i].key;
    return next;
}

static int64_t weight_at(const Bundle *b, int64_t offset)
{
    int64_t at = 0;
    for (int64_t from = 0, end; from < offset; from = end) {
        end = next_weight(b, from);
        at += round_to(end - from, WEB_ALIGN);
    }
    return at;
}

static WebRange range_of(const Bundle *b, const Buffer *buffer)
{
    const Buffer *r = buffer_root(buffer);
    switch (r->kind) {
    case BUF_INPUT: return (WebRange){WEB_TENSORS + r->slot, 0, buffer->bytes};
    case BUF_OUTPUT: return (WebRange){WEB_TENSORS + b->nin + r->slot, 0, buffer->bytes};
    case BUF_WEIGHT: return (WebRange){WEB_WEIGHTS, weight_at(b, r->offset), buffer->bytes};
    default: return (WebRange){WEB_ARENA, r->offset, buffer->bytes};
    }
}

static int spare_of(const Bundle *b)
{
    return WEB_TENSORS + b->nin + b->nout;
}

/* Why a step cannot be one of a page's list. */
static void refuse(Web *w, const Step *s, const char *what)
{
    if (!w->why)
        w->why = arena_printf(w->b->a, "step %d%s%s %s", s->number, s->name ? " " : "",
                              s->name ? s->name : "", what);
}

/* A number of the run, which is known here; false: it is not. */
static bool known(Web *w, Node *n, int64_t *value)
{
    if (!n)
        return *value = 0, true;
    return idx_value(substitute(w->b->c, n, w->ncounter, w->counter, w->now), value);
}

static void open_step(Web *w)
{
    sb_puts(&w->steps, w->nstep ? ",\n" : "");
    if (++w->nstep == WEB_LAUNCHES && !w->why)
        w->why = arena_printf(w->b->a, "a run has more than %d steps", WEB_LAUNCHES);
}

static void copy_range(Web *w, WebRange to, WebRange from, int64_t bytes)
{
    open_step(w);
    sb_printf(&w->steps, "[-1,%d,%lld,%d,%lld,%lld]", to.mem, (long long)to.at, from.mem,
              (long long)from.at, (long long)round_to(bytes, 4));
}

static void keep_spare(Web *w, int64_t bytes)
{
    if (bytes > w->spare)
        w->spare = bytes;
}

/* WebGPU copies nothing within a buffer: by way of another one. */
static void web_copy(Web *w, const Step *s)
{
    WebRange to = range_of(w->b, s->bufs[0]), from = range_of(w->b, s->bufs[1]);
    const int64_t each = element_bytes(s->bufs[0]->dtype);
    int64_t dst, src, n;
    if (!known(w, s->dst_offset, &dst) || !known(w, s->src_offset, &src) ||
        !known(w, s->elements, &n)) {
        refuse(w, s, "copies what only the run knows");
        return;
    }
    to.at += dst * each;
    from.at += src * each;
    if (to.at % 4 || from.at % 4 || (n * each) % 4) {
        refuse(w, s, "copies parts of words");
        return;
    }
    if (to.mem == from.mem) {
        const WebRange spare = {spare_of(w->b), 0, n * each};
        keep_spare(w, n * each);
        copy_range(w, spare, from, n * each);
        from = spare;
    }
    copy_range(w, to, from, n * each);
}

static int binding_of(const Kernel *k, int arg)
{
    return k->args[arg].with ? k->args[arg].with - 1 : arg;
}

/* Arguments that share a binding but lie in several memories are brought together, and back. */
static void bring(Web *w, const Kernel *k, WebRange *range, const WebRange *own, int first,
                  bool back)
{
    int64_t at = 0;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i) || binding_of(k, i) != first)
            continue;
        const WebRange spare = {spare_of(w->b), at, own[i].bytes};
        if (!back)
            copy_range(w, spare, own[i], own[i].bytes);
        else if (own[i].mem != WEB_WEIGHTS)
            copy_range(w, own[i], spare, own[i].bytes);
        range[i] = spare;
        at += round_to(own[i].bytes + 16, WEB_ALIGN);
    }
    keep_spare(w, at);
}

static bool lies_apart(const Kernel *k, const WebRange *own, int first)
{
    bool apart = false;
    for (int i = 0; i < k->narg; i++)
        apart |=
            kernel_has_param(k, i) && binding_of(k, i) == first && own[i].mem != own[first].mem;
    return apart;
}

/* The range of a binding, from the first byte of its arguments to the last one. */
static WebRange binding_range(const Kernel *k, const WebRange *range, int first)
{
    WebRange r = range[first];
    int64_t end = r.at + r.bytes;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i) || binding_of(k, i) != first)
            continue;
        r.at = range[i].at < r.at ? range[i].at : r.at;
        end = range[i].at + range[i].bytes > end ? range[i].at + range[i].bytes : end;
    }
    r.bytes = round_to(end > r.at ? end - r.at : 16, 4);
    return r;
}

/* What launches differ in, in the order in which language_wgsl.c has it. */
static void launch_values(Web *w, const Step *s, const WebRange *range, int64_t groups)
{
    const Kernel *k = s->kernel;
    StrBuf entry = {0};
    const char *separator = "";
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i) && k->args[i].with) {
            const WebRange all = binding_range(k, range, binding_of(k, i));
            sb_printf(&w->steps, "%s%lld", separator, (long long)((range[i].at - all.at) / 4));
            separator = ",";
        }
    for (int i = 0; i < k->nvar; i++) {
        int64_t value = 0;
        bool found = false;
        for (int j = 0; j < w->ncounter; j++)
            found |= w->counter[j]->arg.i == k->vars[i] && idx_value(w->now[j], &value);
        if (!found)
            refuse(w, s, "depends on sizes that only the run knows");
        sb_printf(&w->steps, "%s%u", separator, (unsigned)value);
        separator = ",";
    }
    for (int i = 0; i < k->nscalar; i++) {
        const float f = (float)s->scalars[i];
        uint32_t bits = (uint32_t)(int32_t)s->scalars[i];
        if (dtype_is_float(k->scalars[i].dtype))
            memcpy(&bits, &f, 4);
        sb_printf(&w->steps, "%s%u", separator, bits);
        separator = ",";
    }
    w->b->target->language->entry(&entry, k);
    if (entry.data && strchr(entry.data, '#'))
        sb_printf(&w->steps, "%s%lld", separator, (long long)groups);
    sb_free(&entry);
}

static bool count_groups(Web *w, const Kernel *k, int64_t *groups)
{
    const Lowered *l = kernel_lowered(k, true);
    const Tile *t = &l->tiles.tile[0];
    const int group = k->serial ? 0 : tile_group(t);
    int64_t items = 1, n;
    for (int i = 0; l->items && i < t->naxis; i++)
        if (t->items ? t->axis[i].bound == BOUND_GRID : !t->axis[i].scanned) {
            if (!known(w, t->axis[i].range->src[0], &n))
                return false;
            items = sat_mul(items, n);
        }
    *groups = group ? items : (items + 63) / 64;
    return true;
}

static int kernel_number(const Bundle *b, const Kernel *k)
{
    int i = 0;
    while (b->p->kernels[i] != k)
        i++;
    return i;
}

static void web_launch(Web *w, const Step *s)
{
    const Kernel *k = s->kernel;
    WebRange *own = NEWN(w->b->a, WebRange, k->narg + 1),
             *range = NEWN(w->b->a, WebRange, k->narg + 1);
    int64_t groups;
    if (!count_groups(w, k, &groups)) {
        refuse(w, s, "depends on sizes that only the run knows");
        return;
    }
    if (!groups)
        return;
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i))
            range[i] = own[i] = range_of(w->b, s->bufs[i]);
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i) && binding_of(k, i) == i && lies_apart(k, own, i))
            bring(w, k, range, own, i, false);
    open_step(w);
    sb_printf(&w->steps, "[%d,%lld,[", kernel_number(w->b, k), (long long)groups);
    launch_values(w, s, range, groups);
    sb_puts(&w->steps, "],[");
    const char *separator = "";
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i) || binding_of(k, i) != i)
            continue;
        const WebRange r = binding_range(k, range, i);
        sb_printf(&w->steps, "%s%d,%lld,%lld", separator, r.mem, (long long)(r.at / WEB_ALIGN),
                  (long long)r.bytes);
        separator = ",";
    }
    sb_puts(&w->steps, "]]");
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i) && binding_of(k, i) == i && lies_apart(k, own, i))
            bring(w, k, range, own, i, true);
}

static void web_steps(Web *w, const Block *steps);

/* A loop whose iterations are counted: they stand one behind the other. */
static void web_loop(Web *w, const Step *s)
{
    enum { DEEP = 8 };
    int64_t trip;
    if (s->cond || !s->trip || !known(w, s->trip, &trip) || w->ncounter == DEEP) {
        refuse(w, s, "is a loop that the data end");
        return;
    }
    const int n = w->ncounter;
    for (int64_t i = 0; i < trip && !w->why; i++) {
        if (s->counter) {
            w->counter[n] = s->counter;
            w->now[n] = idx(w->b->c, i);
            w->ncounter = n + 1;
        }
        web_steps(w, &s->body);
        w->ncounter = n;
    }
}

static void web_steps(Web *w, const Block *steps)
{
    for (int i = 0; i < steps->n && !w->why; i++) {
        const Step *s = steps->step[i];
        switch (s->kind) {
        case STEP_KERNEL: web_launch(w, s); break;
        case STEP_COPY: web_copy(w, s); break;
        case STEP_LOOP: web_loop(w, s); break;
        case STEP_CALL: refuse(w, s, "is a library's, which runs on the host"); break;
        case STEP_IF:
        case STEP_CHECK:
        case STEP_INDEX: refuse(w, s, "is decided by the data"); break;
        }
    }
}

const char *web_needs_host(Bundle *b)
{
    Web w = {.b = b};
    web_steps(&w, &b->p->main);
    sb_free(&w.steps);
    return w.why;
}

/* ---- the module ------------------------------------------------------------------------------ */

static void web_ports(StrBuf *sb, const char *what, const Port *p, int n)
{
    sb_printf(sb, "  %s: [", what);
    for (int i = 0; i < n; i++) {
        sb_printf(sb, "%s[\"%s\", \"%s\", [", i ? ", " : "", p[i].field,
                  dtype_info[p[i].b->dtype].name);
        for (int d = p[i].lead; d < p[i].b->rank; d++)
            sb_printf(sb, "%s%lld", d > p[i].lead ? "," : "", (long long)p[i].b->dims[d]->hi);
        sb_puts(sb, "]]");
    }
    sb_puts(sb, "],\n");
}

static void web_memory(StrBuf *sb, const Web *w)
{
    const Bundle *b = w->b;
    sb_printf(sb, "    memory: [%lld,%lld", (long long)b->p->arena_bytes + WEB_ALIGN,
              (long long)weight_at(b, b->p->weights_bytes));
    for (int i = 0; i < b->nin; i++)
        sb_printf(sb, ",%lld", (long long)b->in[i].b->bytes);
    for (int i = 0; i < b->nout; i++)
        sb_printf(sb, ",%lld", (long long)b->out[i].b->bytes);
    sb_printf(sb, ",%lld],\n", (long long)w->spare);
}

/* Bytes of the file's pieces. */
static void web_weights(StrBuf *sb, const Bundle *b)
{
    sb_puts(sb, "    pieces: [");
    for (int64_t from = 0, end; from < b->p->weights_bytes; from = end) {
        end = next_weight(b, from);
        sb_printf(sb, "%s%lld", from ? "," : "", (long long)(end - from));
    }
    sb_puts(sb, "],\n");
}

/* What the adapter has to have, or the language. */
static void web_features(StrBuf *sb, const char *what, const Extension *e, bool words)
{
    const char *separator = "";
    sb_printf(sb, "    %s: [", what);
    for (; e && e->name; e++)
        if (!strchr(e->name, '=') && words == !strncmp(e->name, "packed_", 7)) {
            sb_printf(sb, "%s\"%s\"", separator, e->name);
            separator = ", ";
        }
    sb_puts(sb, "],\n");
}

/* Why the steps are no list, or NULL. */
static const char *web_gpu(StrBuf *sb, Bundle *b)
{
    Web w = {.b = b};
    web_steps(&w, &b->p->main);
    sb_printf(sb, "  gpu: {\n    file: \"%s_kernels.wgsl\",\n    kernels: %d,\n", b->name,
              b->p->nkernel);
    web_features(sb, "features", b->target->extensions, false);
    web_features(sb, "words", b->target->extensions, true);
    sb_printf(sb, "    items: %d,\n", b->target->machine.items);
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(sb, "    weights: \"%s.weights\",\n", weights_prefix(b));
    web_memory(sb, &w);
    web_weights(sb, b);
    sb_printf(sb, "    steps: [\n%s]\n  },\n", w.steps.data ? w.steps.data : "");
    sb_free(&w.steps);
    return w.why;
}

static const char *js_array(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32: return "Float32Array";
    case INGOT_F64: return "Float64Array";
    case INGOT_I2:
    case INGOT_I4:
    case INGOT_I8: return "Int8Array";
    case INGOT_I16: return "Int16Array";
    case INGOT_U16:
    case INGOT_F16:
    case INGOT_BF16: return "Uint16Array";
    case INGOT_I32: return "Int32Array";
    case INGOT_U32: return "Uint32Array";
    case INGOT_I64: return "BigInt64Array";
    case INGOT_U64: return "BigUint64Array";
    default: return "Uint8Array";
    }
}

/* given: a canvas's pixels are bytes of another class. */
static void web_type(StrBuf *sb, const char *what, const Port *p, int n, bool given)
{
    sb_printf(sb, "export interface %s {\n", what);
    for (int i = 0; i < n; i++) {
        sb_puts(sb, "    /** ");
        print_shape(sb, NULL, p[i].b->dtype, p[i].b->rank - p[i].lead, p[i].b->dims + p[i].lead);
        const char *array = js_array(p[i].b->dtype);
        const bool bytes = given && !strcmp(array, "Uint8Array");
        sb_printf(sb, " */\n    %s: %s%s;\n", p[i].field, array,
                  bytes ? " | Uint8ClampedArray" : "");
    }
    sb_puts(sb, "}\n");
}

static void web_types(Bundle *b)
{
    StrBuf sb = {0};
    web_type(&sb, "Inputs", b->in, b->nin, true);
    web_type(&sb, "Outputs", b->out, b->nout, false);
    sb_puts(
        &sb,
        "export interface Progress {\n    file?: string;\n    bytes?: number;\n    pipelines?: "
        "number;\n    of: number;\n}\n"
        "export interface Model {\n    by: \"webgpu\" | \"wasm\";\n"
        "    /** Of \"wasm\": how many run the steps. */\n    threads?: number;\n"
        "    /** Of \"wasm\" in a package for both: why it is not WebGPU. */\n    why?: string;\n"
        "    run(inputs: Inputs): Promise<Outputs>;\n"
        "    /** Clears the states. */\n    reset(): Promise<void>;\n    destroy(): void;\n}\n"
        "/** By default files are read from the folder of the module. */\n"
        "export function load(url?: string | URL, options?: {progress?: (p: Progress) => void; "
        "by?: \"webgpu\" | \"wasm\"; threads?: number}): Promise<Model>;\n"
        "export const model: {inputs: [string, string, number[]][]; outputs: [string, string, "
        "number[]][]};\n"
        "/** The kind of array for elements of a type, as model has it. */\n"
        "export function arrayOf(type: string): {new (n: number): ArrayBufferView};\n");
    bundle_file(b, arena_printf(b->a, "%s.d.ts", b->name), &sb);
    StrBuf found = {0};
    sb_printf(&found, "export * from './%s.js';\n", b->name);
    bundle_file(b, arena_printf(b->a, "%s.d.mts", b->name), &found);
}

/* The text with the model's name where MODEL stands. */
static void with_name(StrBuf *sb, const char *text, const char *name)
{
    for (const char *p; (p = strstr(text, "MODEL")); text = p + 5) {
        sb_write(sb, text, (size_t)(p - text));
        sb_puts(sb, name);
    }
    sb_puts(sb, text);
}

static bool is_fixed(const Port *p, int n)
{
    bool fixed = true;
    for (int i = 0; i < n; i++)
        fixed &= !p[i].dynamic && !p[i].here && !p[i].form && p[i].b->dtype != INGOT_STRING;
    return fixed;
}

/* What the module's user calls. */
static void web_load(StrBuf *sb, bool gpu, bool wasm, const char *no_gpu)
{
    sb_puts(sb,
            "\nexport async function load(url = import.meta.url, {progress, by, threads} = {}) {\n"
            "    const base = new URL(url, import.meta.url);\n");
    if (no_gpu)
        sb_printf(sb,
                  "    const why = \"%s\";\n"
                  "    if (by === 'webgpu')\n        throw new Error(why);\n",
                  no_gpu);
    else if (!gpu || !wasm)
        sb_printf(sb,
                  "    if (by === '%s')\n"
                  "        throw new Error('this package is for %s alone: "
                  "--target wgsl+c:wasm32-simd128 is for both');\n",
                  gpu ? "wasm" : "webgpu", gpu ? "WebGPU" : "WebAssembly");
    if (gpu)
        sb_printf(sb,
                  "    const {adapter, why} = %sawait adapterFor(model.gpu);\n"
                  "    if (adapter)\n        return gpu(adapter, base, progress);\n%s",
                  wasm ? "by === 'wasm' ? {} : " : "",
                  wasm ? "    if (by === 'webgpu')\n        throw new Error(why);\n"
                       : "    throw new Error(why);\n");
    if (wasm)
        sb_printf(sb, "    return wasm(base, progress, threads, {%s});\n",
                  gpu || no_gpu ? "why" : "");
    sb_puts(sb, "}\n");
}

bool web_may(Bundle *b, const Bundle *gpu, const Bundle *wasm)
{
    if ((gpu && !gpu->target->language->binds) || (wasm && !wasm->target->wasm)) {
        bundle_fail(b, INGOT_USAGE,
                    "--package web is for --target wgsl, c:wasm32-simd128 (or c:wasm32) or "
                    "wgsl+c:wasm32-simd128");
        return false;
    }
    if (b->nfunction) {
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "--package web: a page calls one function, and this model has %d; without "
                    "--train, or with --entry NAME, it has one",
                    1 + b->nfunction);
        return false;
    }
    if (!is_fixed(b->in, b->nin) || !is_fixed(b->out, b->nout)) {
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "--package web: inputs and outputs of a page are tensors of fixed sizes, and "
                    "no strings; --dim fixes them");
        return false;
    }
    return true;
}

void bundle_web(Bundle *b, Bundle *gpu, Bundle *wasm)
{
    StrBuf sb = {0}, page = {0};
    if (gpu && gpu->nweight && gpu->mode != WEIGHTS_BLOB) {
        bundle_fail(b, INGOT_USAGE, "--package web: weights are a file: --weights blob");
        return;
    }
    sb_printf(&sb,
              "// %s.mjs - the model in a page: const m = await load(); const {..} = await "
              "m.run({..});\nexport const model = {\n",
              b->name);
    web_ports(&sb, "inputs", b->in, b->nin);
    web_ports(&sb, "outputs", b->out, b->nout);
    const char *why = gpu ? web_gpu(&sb, gpu) : NULL;
    if (why) {
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "--package web: %s; --target wgsl+c:wasm32-simd128 runs it by WebAssembly",
                    why);
        sb_free(&sb);
        return;
    }
    if (wasm)
        page_wasm(&sb, wasm);
    sb_puts(&sb, "};\n");
    sb_puts(&sb, runtime_text("page.mjs"));
    if (gpu)
        sb_puts(&sb, runtime_text("page_gpu.mjs"));
    if (wasm)
        sb_puts(&sb, runtime_text("page_wasm.mjs"));
    web_load(&sb, gpu, wasm, b->no_gpu);
    bundle_file(b, arena_printf(b->a, "%s.mjs", b->name), &sb);
    web_types(b);
    with_name(&page, runtime_text("page.html"), b->name);
    bundle_file(b, "index.html", &page);
}

bool bundle_is_web(const Bundle *b)
{
    return b->package && !strcmp(b->package, "web");
}
