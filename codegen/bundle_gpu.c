/* bundle_gpu.c - what is particular to bundles whose kernels run on a GPU.
 *
 * The host code is the CPU's, step by step, with device memory in place of addresses. It is written
 * in the calls of igrt_gpu_<driver>.h, so one text serves every driver. All memory is made at init:
 * one device arena with a part for each planned place, and a buffer for each input, output and weight
 * that a kernel or a copy touches. Steps of the host (library kernels, conditions) get their operands
 * in the caller's arena, at the same offsets, and their results go back.
 *
 * Kernels are one text, <name>_kernels.cl or .cu, which is also inside <name>_kernels.c: as it is, or
 * compiled where the target can do that offline. */
#include <string.h>

#include "bundle_writer.h"

/* A place in ctx->mem. */
typedef struct {
    BufferKind kind; /* states are in the arena too */
    int64_t key;     /* offset, or number of the input or output */
    int64_t bytes;
    const Buffer *b; /* the first one there */
} Mem;

struct Gpu {
    bool *used;           /* by buffer: the device touches it */
    Mem *mem;             /* [0] is the arena, its parts follow */
    int nmem, npart, nio; /* after the parts come the inputs and outputs */
    int64_t host_bytes;   /* of the arena that host steps use */
    int nline;            /* strings of program text */
    bool apart;           /* no step of a run needs the host's memory */
    bool fixed;           /* and each run enqueues the same */
    bool copies;          /* some step is no kernel */
    bool shared;          /* some kernel's groups share what has to be asked for: */
    int64_t *asked;       /* bytes, by kernel */
};

static BufferKind mem_kind(const Buffer *b)
{
    return b->kind == BUF_STATE ? BUF_ARENA : b->kind;
}

static int64_t mem_key(const Buffer *b)
{
    return b->kind == BUF_INPUT || b->kind == BUF_OUTPUT ? b->slot : b->offset;
}

/* ---- which buffers the device needs ------------------------------------------------------ */

static void use(Gpu *g, const Buffer *b)
{
    g->used[buffer_root(b)->id] = true;
}

/* A condition that the host knows anyway. */
static bool on_host(const Buffer *b)
{
    const Buffer *r = buffer_root(b);
    return r->kind == BUF_INPUT || r->kind == BUF_WEIGHT;
}

static void host_use(Gpu *g, const Buffer *b)
{
    const Buffer *r = buffer_root(b);
    if (mem_kind(r) == BUF_ARENA && r->offset + r->bytes > g->host_bytes)
        g->host_bytes = r->offset + r->bytes;
}

static void mark(Bundle *b, const Block *steps)
{
    Gpu *g = b->gpu;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        for (int j = 0; s->kind == STEP_KERNEL && j < s->nbuf; j++) {
            if (!kernel_has_param(s->kernel, j))
                continue;
            use(g, s->bufs[j]);
            if (s->bufs[j]->base && s->bufs[j]->base_offset && !idx_is(s->bufs[j]->base_offset, 0))
                bundle_fail(b, INGOT_UNSUPPORTED,
                            "kernel %s takes a view, which GPU bundles cannot do yet",
                            s->kernel->name);
        }
        for (int j = 0; s->kind == STEP_COPY && j < 2; j++)
            use(g, s->bufs[j]);
        for (int j = 0; s->kind == STEP_CALL && j < s->nbuf; j++)
            host_use(g, s->bufs[j]);
        if (s->scratch)
            host_use(g, s->scratch);
        if (s->cond && !on_host(s->cond))
            use(g, s->cond);
        mark(b, &s->body);
        mark(b, &s->other);
    }
}

/* Neither reads what the caller gives nor writes what it gets, on the host. */
static bool apart(const Block *steps)
{
    for (int i = 0; i < steps->n; i++) {
        StepKind kind = steps->step[i]->kind;
        if (kind != STEP_KERNEL && kind != STEP_COPY && kind != STEP_CHECK)
            return false;
    }
    return true;
}

static bool block_copies(const Block *steps)
{
    for (int i = 0; i < steps->n; i++)
        if (steps->step[i]->kind != STEP_KERNEL)
            return true;
    return false;
}

static int find(const Gpu *g, const Buffer *b)
{
    for (int i = 1; i < g->nmem; i++)
        if (g->mem[i].kind == mem_kind(b) && g->mem[i].key == mem_key(b))
            return i;
    return -1;
}

static bool on_device(const Bundle *b, const Buffer *buffer)
{
    return find(b->gpu, buffer_root(buffer)) >= 0;
}

static void add(Bundle *b, const Buffer *buffer)
{
    Gpu *g = b->gpu;
    int i = find(g, buffer);
    if (i < 0) {
        i = g->nmem;
        vec_push(b->a, g->mem, g->nmem, ((Mem){mem_kind(buffer), mem_key(buffer), 0, buffer}));
    }
    if (g->mem[i].bytes < buffer->bytes)
        g->mem[i].bytes = buffer->bytes;
}

static int64_t shared_bytes(const Bundle *b, const Kernel *k)
{
    Tiles tiles = kernel_lower(k);
    int64_t bytes = gpu_shared(tiles.k, k->narg, b->target);
    tiles_free(&tiles);
    return bytes;
}

void gpu_prepare(Bundle *b)
{
    Gpu *g = b->gpu = NEW(b->a, Gpu);
    const Plan *p = b->p;
    g->used = NEWN(b->a, bool, p->nbuffer + 1);
    mark(b, &p->main);
    static const BufferKind order[] = {BUF_ARENA, BUF_INPUT, BUF_OUTPUT, BUF_WEIGHT};
    vec_push(b->a, g->mem, g->nmem, ((Mem){.kind = BUF_ARENA, .key = -1, .bytes = p->arena_bytes}));
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        for (int i = 0; i < p->nbuffer; i++) {
            const Buffer *buffer = p->buffers[i];
            bool wanted = g->used[i] || (buffer->kind == BUF_STATE && !buffer->base);
            if (wanted && mem_kind(buffer) == order[k])
                add(b, buffer);
        }
        if (!k)
            g->npart = g->nmem - 1;
        if (order[k] == BUF_OUTPUT)
            g->nio = g->nmem - 1 - g->npart;
    }
    g->apart = apart(&p->main);
    for (int i = 0; i < b->nout; i++)
        g->apart &= on_device(b, b->out[i].b);
    for (int i = 0; b->c->bound && i < b->nin; i++)
        g->apart &= !b->c->bound[i];
    g->fixed = g->apart && !b->nsym;
    g->copies = block_copies(&p->main);
    g->asked = NEWN(b->a, int64_t, p->nkernel + 1);
    for (int i = 0; i < p->nkernel; i++) {
        g->asked[i] = shared_bytes(b, p->kernels[i]);
        g->shared |= g->asked[i] > 0;
    }
}

bool gpu_is_apart(const Bundle *b)
{
    return b->gpu->apart;
}

int64_t gpu_arena_bytes(const Bundle *b)
{
    return b->gpu->host_bytes;
}

static const char *mem_name(const Bundle *b, int i)
{
    const Mem *m = &b->gpu->mem[i];
    switch (m->kind) {
    case BUF_INPUT: return arena_printf(b->a, "MEM_IN_%lld", (long long)m->key);
    case BUF_OUTPUT: return arena_printf(b->a, "MEM_OUT_%lld", (long long)m->key);
    case BUF_WEIGHT: return arena_printf(b->a, "MEM_WEIGHT_%lld", (long long)m->key);
    default: return i ? arena_printf(b->a, "MEM_ARENA_%lld", (long long)m->key) : "MEM_ARENA";
    }
}

static const char *mem_of(Bundle *b, const Buffer *buffer)
{
    int i = find(b->gpu, buffer_root(buffer));
    if (i < 0)
        BUG("a buffer that a device step uses is not on the device");
    b->needs |= NEED_MEM;
    return mem_name(b, i);
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* The text in one C string literal a line; long lines in several. */
static void print_lines(StrBuf *sb, const char *text, int *n)
{
    enum { PIECE = 500 };
    while (*text) {
        const char *eol = strchr(text, '\n');
        size_t len = eol ? (size_t)(eol - text) : strlen(text), piece = len < PIECE ? len : PIECE;
        sb_puts(sb, "    \"");
        for (size_t i = 0; i < piece; i++) {
            if (text[i] == '"' || text[i] == '\\' || text[i] == '?')
                sb_puts(sb, "\\");
            sb_write(sb, text + i, 1);
        }
        bool whole = eol && piece == len;
        sb_puts(sb, whole ? "\\n\",\n" : "\",\n");
        text += piece + (whole ? 1 : 0);
        ++*n;
    }
}

static void print_bytes(StrBuf *sb, const char *data, size_t n)
{
    size_t start = sb->len;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || sb->len - start > 92) {
            sb_puts(sb, i ? ",\n    " : "    ");
            start = sb->len;
        } else {
            sb_puts(sb, ",");
        }
        sb_printf(sb, "%d", (unsigned char)data[i]);
    }
}

/* The kernel file: <name>_kernels.cl or .cu. */
static void kernels_text(StrBuf *sb, Bundle *b)
{
    StrBuf body = {0};
    for (int i = 0; i < b->p->nkernel; i++) {
        const Kernel *k = b->p->kernels[i];
        kernel_comment(&body, b, k);
        b->kernel_needs |=
            render_kernel(&body, b->target, k, arena_printf(b->a, "%s_%s", b->name, k->name));
    }
    sb_printf(sb, "/* %s_kernels%s - the kernels of ", b->name, b->target->suffix);
    print_comment_text(sb, b->source);
    sb_puts(sb, ". */\n");
    sb_puts(sb, b->target->pragma);
    if (b->kernel_needs & NEED_NUM)
        runtime_whole(sb, "igrt_num.h");
    else
        sb_puts(sb, b->target->prologue);
    if (b->kernel_needs & NEED_MMA)
        sb_puts(sb, runtime_text("igrt_mma.h"));
    if (b->kernel_needs & NEED_WGMMA)
        sb_puts(sb, runtime_text("igrt_wgmma.h"));
    sb_puts(sb, body.data);
    sb_free(&body);
}

static void kernel_header(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name, *u = b->upper;
    sb_printf(
        &sb,
        "/* %s_kernels.h - the program that runs on the device, and the names of its kernels. */\n"
        "#ifndef %s_KERNELS_H\n#define %s_KERNELS_H\n\n"
        "enum {\n    %s_KERNELS = %d,\n    %s_PROGRAM_PARTS = %d\n};\n"
        "extern const char *const %s_program[%s_PROGRAM_PARTS];\n"
        "extern const char *const %s_kernel_name[%s_KERNELS];\n\n"
        "/* places in ctx->kernel */\nenum {\n",
        n, u, u, u, b->p->nkernel, u, b->gpu->nline, n, u, n, u);
    for (int i = 0; i < b->p->nkernel; i++)
        sb_printf(&sb, "    %s%s\n", upper_case(b->a, b->p->kernels[i]->name),
                  i + 1 < b->p->nkernel ? "," : "");
    sb_puts(&sb, "};\n\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels.h", n), &sb);
}

/* Compiles the text for one machine (NULL: any) if the target has a compiler; false: the source itself has to do. */
static bool compiled(Bundle *b, const char *text, const char *machine, StrBuf *image)
{
    switch (b->target->compile ? b->target->compile(image, text, machine, !b->c->keep_subnormals)
                               : COMPILE_ABSENT) {
    case COMPILE_DONE: return true;
    case COMPILE_FAILED:
        bundle_fail(b, machine ? INGOT_USAGE : INGOT_BUG, "the %s kernels do not compile%s%s: %s",
                    b->target->name, machine ? " for " : "", machine ? machine : "",
                    image->data ? image->data : "");
        return false;
    case COMPILE_ABSENT: break;
    }
    if (b->target->compile)
        context_report(
            b->c, INGOT_WARNING, INGOT_OK,
            arena_printf(
                b->a,
                "the compiler of %s kernels is not installed: the bundle has their source only, "
                "and init gives IGRT_ERR_BUILD",
                b->target->name));
    return false;
}

/* An image for each machine that the target names, in that order ("cuda:sm_90+sm_80+ptx"; of ptx every machine makes its own): how many. */
static int images(StrBuf *sb, Bundle *b, const char *text)
{
    const char *colon = b->o->target ? strchr(b->o->target, ':') : NULL;
    const char *machine = colon ? colon + 1 : "ptx";
    int n = 0;
    for (bool more = true; more; n++) {
        size_t length = strcspn(machine, "+");
        const char *name = arena_printf(b->a, "%.*s", (int)length, machine);
        bool any = !strcmp(name, "ptx");
        StrBuf image = {0};
        bool done = compiled(b, text, any ? NULL : name, &image);
        if (done) {
            sb_printf(sb,
                      "\n/* %s_kernels%s, compiled for %s */\n"
                      "static const unsigned char image%d[] = {\n",
                      b->name, b->target->suffix, any ? "any machine" : name, n);
            print_bytes(sb, image.data, image.len);
            sb_puts(sb, "\n};\n");
        }
        sb_free(&image);
        if (!done)
            return 0;
        more = machine[length] != 0;
        machine += length + more;
    }
    return n;
}

void gpu_kernels(Bundle *b)
{
    StrBuf text = {0}, sb = {0};
    const char *n = b->name, *u = b->upper;
    kernels_text(&text, b);
    sb_printf(
        &sb,
        "/* %s_kernels.c - the program that runs on the device. */\n#include \"%s_kernels.h\"\n", n,
        n);
    int count = b->target->compile ? images(&sb, b, text.data) : 0;
    sb_puts(&sb, "\n");
    if (!b->target->compile)
        sb_printf(&sb, "/* %s_kernels%s */\n", n, b->target->suffix);
    else if (!count)
        sb_printf(&sb, "/* %s_kernels%s was not compiled */\n", n, b->target->suffix);
    sb_printf(&sb, "const char *const %s_program[%s_PROGRAM_PARTS] = {\n", n, u);
    for (int i = 0; i < count; i++)
        sb_printf(&sb, "    (const char *)image%d,\n", i);
    b->gpu->nline = count;
    if (!b->target->compile)
        print_lines(&sb, text.data, &b->gpu->nline);
    else if (!count) {
        sb_puts(&sb, "    \"\",\n");
        b->gpu->nline = 1;
    }
    sb_puts(&sb, "};\n");
    sb_printf(&sb, "\nconst char *const %s_kernel_name[%s_KERNELS] = {\n", n, u);
    for (int i = 0; i < b->p->nkernel; i++)
        sb_printf(&sb, "    \"%s_%s\",\n", n, b->p->kernels[i]->name);
    sb_puts(&sb, "};\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels%s", n, b->target->suffix), &text);
    bundle_source(b, arena_printf(b->a, "%s_kernels.c", n), &sb);
    kernel_header(b);
}

/* ---- declarations ------------------------------------------------------------------------ */

void gpu_members(StrBuf *sb, const Bundle *b)
{
    const char *type = b->target->runtime;
    sb_printf(sb, "    %s gpu;\n    void *program;\n", type);
    if (b->p->nkernel)
        sb_printf(sb, "    void *kernel[%d];\n", b->p->nkernel);
    sb_printf(sb, "    %s_mem mem[%d]; /* on the device */\n", type, b->gpu->nmem);
    if (b->gpu->fixed)
        sb_puts(sb, "    void *record; /* of the steps */\n");
}

void gpu_constants(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    sb_puts(sb, "\n/* places in ctx->mem */\nenum {\n");
    for (int i = 0; i < g->nmem; i++) {
        const Mem *m = &g->mem[i];
        sb_printf(sb, "    %s,", mem_name(b, i));
        if (m->kind == BUF_INPUT || m->kind == BUF_OUTPUT)
            sb_printf(sb, " /* %s */", (m->kind == BUF_INPUT ? b->in : b->out)[m->key].field);
        sb_puts(sb, "\n");
    }
    sb_puts(sb, "    MEM_COUNT\n};\n");
    sb_puts(
        sb,
        "\n#define TRY(call)                                                                     "
        "\\\n"
        "    do {                                                                              \\\n"
        "        const igrt_status s = (call);                                                 \\\n"
        "        if (s != IGRT_OK)                                                             \\\n"
        "            return s;                                                                 \\\n"
        "    } while (0)\n");
}

/* start(): everything on the device is made; release(): and let go. */
void gpu_functions(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    const char *n = b->name, *u = b->upper;
    bool blob = false;
    for (int i = 0; i < g->nmem; i++)
        blob |= g->mem[i].kind == BUF_WEIGHT && b->mode != WEIGHTS_ARRAY;
    if (g->npart) {
        sb_puts(sb, "\n/* parts of the arena, in the order of ctx->mem */\n"
                    "static const struct {\n    size_t offset, bytes;\n} part[] = {\n");
        for (int i = 1; i <= g->npart; i++)
            sb_printf(sb, "    {%lld, %lld},\n", (long long)g->mem[i].key,
                      (long long)g->mem[i].bytes);
        sb_puts(sb, "};\nenum { PARTS = sizeof part / sizeof part[0] };\n");
    }
    sb_printf(sb,
              "\nstatic igrt_status start(%s_ctx *ctx)\n{\n    igrt_gpu *const gpu = &ctx->gpu;\n"
              "    igrt_gpu_mem *const mem = ctx->mem;\n",
              n);
    if (blob)
        sb_puts(sb, "    const unsigned char *const weights = ctx->weights;\n");
    sb_puts(sb, "    memset(mem, 0, sizeof ctx->mem);\n    ctx->program = NULL;\n");
    if (g->fixed)
        sb_puts(sb, "    ctx->record = NULL;\n");
    if (!g->apart)
        sb_puts(sb, "    if (ctx->config.flags & IGRT_ON_DEVICE)\n"
                    "        return IGRT_ERR_CONFIG; /* steps of the host need the inputs */\n");
    if (b->p->nkernel)
        sb_puts(sb, "    memset(ctx->kernel, 0, sizeof ctx->kernel);\n");
    if (g->shared) {
        sb_printf(sb, "    static const unsigned shared[%s_KERNELS] = {", u);
        for (int i = 0; i < b->p->nkernel; i++)
            sb_printf(sb, "%s%lld", i ? i % 12 ? ", " : ",\n        " : "", (long long)g->asked[i]);
        sb_puts(sb, "}; /* that groups ask for */\n");
    }
    sb_puts(sb, "    TRY(igrt_gpu_open(gpu, ctx->config.device, ctx->config.stream));\n");
    if (b->p->nkernel)
        sb_printf(sb,
                  "    TRY(igrt_gpu_load(gpu, %s_program, %s_PROGRAM_PARTS, %d, &ctx->program));\n"
                  "    for (int i = 0; i < %s_KERNELS; i++)\n"
                  "        TRY(igrt_gpu_find(gpu, ctx->program, %s_kernel_name[i], %s, "
                  "&ctx->kernel[i]));\n",
                  n, u, !b->c->keep_subnormals, u, n, g->shared ? "shared[i]" : "0");
    sb_printf(sb, "    TRY(igrt_gpu_alloc(gpu, %lld, NULL, &mem[MEM_ARENA]));\n",
              (long long)g->mem[0].bytes);
    if (g->npart)
        sb_puts(sb,
                "    for (int i = 0; i < PARTS; i++)\n"
                "        TRY(igrt_gpu_part(gpu, mem[MEM_ARENA], part[i].offset, part[i].bytes,\n"
                "                          &mem[MEM_ARENA + 1 + i]));\n");
    if (g->apart && g->nio)
        sb_puts(sb, "    if (!(ctx->config.flags & IGRT_ON_DEVICE)) {\n");
    for (int i = 1 + g->npart; i < g->nmem; i++) {
        const Mem *m = &g->mem[i];
        bool io = i <= g->npart + g->nio;
        sb_printf(sb, "    %sTRY(igrt_gpu_alloc(gpu, %lld, ", g->apart && io ? "    " : "",
                  (long long)m->bytes);
        if (m->kind == BUF_WEIGHT)
            address(sb, b, m->b, NULL, false);
        else
            sb_puts(sb, "NULL");
        sb_printf(sb, ", &mem[%s]));\n", mem_name(b, i));
        if (g->apart && i == g->npart + g->nio)
            sb_puts(sb, "    }\n");
    }
    sb_puts(sb, "    return IGRT_OK;\n}\n");
    StrBuf before = {0};
    if (g->fixed)
        sb_puts(&before, "    igrt_gpu_free_record(gpu, ctx->record);\n");
    if (g->apart && g->nio)
        sb_printf(&before,
                  "    if (ctx->config.flags & IGRT_ON_DEVICE)\n"
                  "        memset(&ctx->mem[%s], 0, %d * sizeof *ctx->mem); /* the caller's */\n",
                  mem_name(b, g->npart + 1), g->nio);
    sb_printf(sb,
              "\nstatic void release(%s_ctx *ctx)\n{\n    igrt_gpu *const gpu = &ctx->gpu;\n%s"
              "    for (int i = MEM_COUNT - 1; i > %s; i--)\n"
              "        igrt_gpu_free(gpu, ctx->mem[i]);\n",
              n, before.data ? before.data : "", g->npart ? "PARTS" : "0");
    sb_free(&before);
    if (g->npart)
        sb_puts(
            sb,
            "    for (int i = PARTS; i > 0; i--)\n        igrt_gpu_free_part(gpu, ctx->mem[i]);\n");
    sb_puts(sb, "    igrt_gpu_free(gpu, ctx->mem[MEM_ARENA]);\n");
    if (b->p->nkernel)
        sb_printf(sb,
                  "    for (int i = 0; i < %s_KERNELS; i++)\n        igrt_gpu_free_kernel(gpu, "
                  "ctx->kernel[i]);\n",
                  u);
    sb_puts(sb, "    igrt_gpu_close(gpu, ctx->program);\n    memset(ctx, 0, sizeof *ctx);\n}\n");
}

void gpu_locals(Writer *w, unsigned needs)
{
    if (needs & NEED_GPU)
        line(w, "igrt_gpu *const gpu = &ctx->gpu;");
    if (needs & NEED_MEM)
        line(w, "igrt_gpu_mem *const mem = ctx->mem;");
}

/* ---- transfers --------------------------------------------------------------------------- */

/* unit * n[0] * n[1] ..., constants multiplied out. */
static void product(StrBuf *sb, Bundle *b, int64_t unit, int n, Node *const *factor)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        int64_t v;
        if (idx_value(factor[i], &v)) {
            unit = sat_mul(unit, v);
            continue;
        }
        sb_puts(sb, any ? " * " : "");
        print_expr(sb, b, factor[i]);
        any = true;
    }
    if (any && unit == 1)
        return;
    sb_puts(sb, any ? " * " : "");
    sb_printf(sb, unit > INT32_MAX ? "INT64_C(%lld)" : "%lld", (long long)unit);
}

/* The same as a size_t. */
static void sized(StrBuf *sb, Bundle *b, int64_t unit, int n, Node *const *factor)
{
    bool dynamic = false;
    for (int i = 0; i < n; i++)
        dynamic |= factor[i]->op != OP_CONST;
    sb_puts(sb, dynamic ? "(size_t)(" : "");
    product(sb, b, unit, n, factor);
    sb_puts(sb, dynamic ? ")" : "");
}

/* Bytes of the tensor in its actual dims. */
static void bytes(StrBuf *sb, Bundle *b, const Buffer *buffer)
{
    if (buffer->layout.n)
        sb_printf(sb, "%lld", (long long)buffer->bytes);
    else
        sized(sb, b, element_bytes(buffer->dtype), buffer->rank, buffer->dims);
}

/* Where the tensor (and element `offset` of it) starts in its memory, in bytes. */
static void start_offset(StrBuf *sb, Bundle *b, const Buffer *buffer, Node *offset)
{
    int64_t unit = element_bytes(buffer->dtype);
    bool any = false;
    for (; buffer; buffer = buffer->base, offset = NULL) {
        Node *each[2] = {buffer->base ? buffer->base_offset : NULL, offset};
        for (int i = 0; i < 2; i++) {
            if (!each[i] || idx_is(each[i], 0))
                continue;
            sb_puts(sb, any ? " + " : "(size_t)(");
            product(sb, b, unit, 1, &each[i]);
            any = true;
        }
    }
    sb_puts(sb, any ? ")" : "0");
}

/* "TRY(igrt_gpu_read(gpu" */
static void open_gpu(Writer *w, const char *function)
{
    w->b->needs |= NEED_GPU;
    indent(w);
    sb_printf(&w->sb, "TRY(igrt_gpu_%s(gpu", function);
}

/* wait: until the host's memory may be used again. */
static void transfer(Writer *w, const char *function, const Buffer *buffer, bool wait)
{
    Bundle *b = w->b;
    open_gpu(w, function);
    sb_printf(&w->sb, ", mem[%s], ", mem_of(b, buffer));
    start_offset(&w->sb, b, buffer, NULL);
    sb_puts(&w->sb, ", ");
    address(&w->sb, b, buffer, NULL, strcmp(function, "read") == 0);
    sb_puts(&w->sb, ", ");
    bytes(&w->sb, b, buffer);
    sb_printf(&w->sb, ", %d));\n", wait);
}

static void inputs(Writer *w)
{
    for (int i = 0; i < w->b->nin; i++)
        if (on_device(w->b, w->b->in[i].b))
            transfer(w, "write", w->b->in[i].b, false);
}

static void outputs(Writer *w)
{
    for (int i = 0; i < w->b->nout; i++)
        if (on_device(w->b, w->b->out[i].b))
            transfer(w, "read", w->b->out[i].b, false);
    open_gpu(w, "finish");
    sb_puts(&w->sb, "));\n");
}

void gpu_steps(Writer *w, const char *steps)
{
    const Gpu *g = w->b->gpu;
    if (!g->apart) {
        inputs(w);
        sb_puts(&w->sb, "\n");
        sb_puts(&w->sb, steps);
        outputs(w);
        return;
    }
    line(w, "if (ctx->config.flags & IGRT_ON_DEVICE) {");
    w->depth++;
    if (g->nio)
        line(w, "TRY(bind(ctx, in, out));");
    line(w, "TRY(%s(ctx));", g->fixed ? "play" : "enqueue");
    w->depth--;
    line(w, "} else {");
    w->depth++;
    inputs(w);
    line(w, "TRY(%s(ctx));", g->fixed ? "play" : "enqueue");
    outputs(w);
    w->depth--;
    line(w, "}");
}

/* After enqueue(): record() and play() of what is enqueued, and bind() to memory that is the caller's. */
void gpu_apart_functions(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    const char *n = b->name;
    if (g->fixed)
        sb_printf(
            sb,
            "\n/* The steps as one launch, where the driver can; a profile wants them one by one. "
            "*/\n"
            "static igrt_status record(%s_ctx *ctx)\n{\n"
            "    if (!IGRT_GPU_RECORDS || ctx->config.profile)\n        return IGRT_OK;\n"
            "    if (igrt_gpu_record_begin(&ctx->gpu) != IGRT_OK) {\n"
            "        igrt_gpu_free_record(&ctx->gpu, ctx->record);\n"
            "        ctx->record = NULL;\n"
            "        return IGRT_OK;\n    }\n"
            "    const igrt_status status = enqueue(ctx);\n"
            "    const igrt_status ended = igrt_gpu_record_end(&ctx->gpu, &ctx->record);\n"
            "    return status == IGRT_OK ? ended : status;\n}\n"
            "\nstatic igrt_status play(%s_ctx *ctx)\n{\n"
            "    return ctx->record ? igrt_gpu_play(&ctx->gpu, ctx->record) : enqueue(ctx);\n}\n",
            n, n);
    if (!g->nio)
        return;
    bool in = false, out = false;
    int nin = 0;
    for (int i = g->npart + 1; i <= g->npart + g->nio; i++) {
        *(g->mem[i].kind == BUF_INPUT ? &in : &out) = true;
        nin += g->mem[i].kind == BUF_INPUT;
    }
    sb_printf(
        sb,
        "\n/* The caller's memory on the device takes the place of ours. */\n"
        "static igrt_status bind(%s_ctx *ctx, const %s_inputs *in, const %s_outputs *out)\n{\n"
        "%s%s    const igrt_gpu_mem given[] = {\n",
        n, n, n, in ? "" : "    (void)in;\n", out ? "" : "    (void)out;\n");
    for (int i = g->npart + 1; i <= g->npart + g->nio; i++) {
        sb_puts(sb, "        igrt_gpu_given(");
        address(sb, b, g->mem[i].b, NULL, false);
        sb_puts(sb, "),\n");
    }
    const char *first = mem_name(b, g->npart + 1);
    const char *wrong = !out ? "IGRT_ERR_INPUT"
                        : !in
                            ? "IGRT_ERR_OUTPUT"
                            : arena_printf(b->a, "i < %d ? IGRT_ERR_INPUT : IGRT_ERR_OUTPUT", nin);
    sb_printf(sb,
              "    };\n"
              "    if (!memcmp(&ctx->mem[%s], given, sizeof given))\n        return IGRT_OK;\n"
              "    for (int i = 0; i < %d; i++)\n"
              "        if (!igrt_gpu_is_aligned(given[i]))\n"
              "            return %s;\n"
              "    memcpy(&ctx->mem[%s], given, sizeof given);\n    return %s;\n}\n",
              first, g->nio, wrong, first, g->fixed ? "record(ctx)" : "IGRT_OK");
}

/* What init does once all memory is there. */
void gpu_ready(StrBuf *sb, const Bundle *b)
{
    if (!b->gpu->fixed)
        return;
    sb_printf(sb, "    if (status == IGRT_OK%s)\n        status = record(ctx);\n",
              b->gpu->copies ? " && !(config->flags & IGRT_ON_DEVICE)" : "");
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Work items: elements of the kernel's output axes, or what BIND says, as the renderer takes them apart; and how many are a
 * group. */
static void items(StrBuf *sb, Bundle *b, const Kernel *k)
{
    Tiles tiles = kernel_lower(k);
    if (!k->serial && (tiles.n != 1 || tiles.tile[0].lanes > 1))
        BUG("%s: a GPU kernel of several loop nests or lanes", k->name);
    Node *extent[INGOT_MAX_RANK * 2];
    int n = 0;
    const Tile *t = &tiles.tile[0];
    for (int i = 0; !k->serial && i < t->naxis; i++)
        if (t->items ? t->axis[i].bound == BOUND_GRID : !t->axis[i].scanned)
            extent[n++] = t->axis[i].range->src[0];
    int group = k->serial ? 0 : tile_group(t);
    product(sb, b, group ? group : 1, n, extent);
    sb_printf(sb, ", %d, %lld", group, (long long)gpu_shared(tiles.k, k->narg, b->target));
    tiles_free(&tiles);
}

static void numbers(Writer *w, int n, const int64_t *x, int64_t unit)
{
    sb_puts(&w->sb, ", (const uint64_t[]){");
    for (int i = 0; i < n; i++)
        sb_printf(&w->sb, "%s%lld", i ? ", " : "", (long long)sat_mul(x[i], unit));
    sb_puts(&w->sb, "}");
}

/* What boxes of an argument are taken out of, for STAGE .. move tma: igrt_gpu_map m1; TRY(igrt_gpu_make_map(gpu, &m1, ...)); */
static void maps(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    Tiles tiles = kernel_lower(s->kernel);
    for (int i = 0, box = 0; i < s->kernel->nopt; i++) {
        if (!s->kernel->opts[i].tma)
            continue;
        const Box *x = &tiles.tile[0].box[box++];
        const int64_t bytes = element_bytes(s->kernel->args[x->arg].dtype);
        line(w, "igrt_gpu_map m%d;", x->arg);
        open_gpu(w, "make_map");
        sb_printf(&w->sb, ", &m%d, mem[%s], %lld, %d", x->arg, mem_of(b, s->bufs[x->arg]),
                  (long long)sat_mul(x->offset, bytes), x->rank);
        numbers(w, x->rank, x->extent, 1);
        numbers(w, x->rank, x->stride, bytes);
        numbers(w, x->rank, x->size, 1);
        sb_puts(&w->sb, "));\n");
    }
    tiles_free(&tiles);
}

void gpu_kernel(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Kernel *k = s->kernel;
    int nmem = 0, n = 0;
    const int narg = k->narg, nint = narg + k->nvar;
    line(w, "{");
    w->depth++;
    maps(w, s);
    indent(w);
    sb_puts(&w->sb, "void *args[] = {");
    size_t start = w->sb.len;
    for (int i = 0; i < nint + k->nscalar; i++) {
        if (i < narg && !kernel_has_param(k, i))
            continue;
        bool wrap = w->sb.len - start > 70;
        sb_puts(&w->sb, wrap ? ",\n    " : n ? ", " : "");
        if (wrap) {
            indent(w);
            start = w->sb.len;
        }
        if (i < narg) {
            sb_printf(&w->sb, "&mem[%s]", mem_of(b, s->bufs[i]));
        } else if (i < nint) {
            sb_printf(&w->sb, "&%s", sym_place(b, k->vars[i - narg]));
        } else {
            const Scalar *scalar = &k->scalars[i - nint];
            sb_printf(&w->sb, "&(%s){", scalar_type(scalar));
            print_scalar(&w->sb, scalar, s->scalars[i - nint]);
            sb_puts(&w->sb, "}");
        }
        nmem += i < narg;
        n++;
    }
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].tma)
            sb_printf(&w->sb, "%s&m%lld", n++ ? ", " : "", (long long)k->opts[i].amount);
    sb_puts(&w->sb, "};\n");
    open_gpu(w, "launch");
    sb_printf(&w->sb, ", ctx->kernel[%s], ", upper_case(b->a, k->name));
    items(&w->sb, b, k);
    sb_printf(&w->sb, ", %d, %d, %d, args));\n", nmem, k->nvar, n);
    w->depth--;
    line(w, "}");
}

void gpu_copy(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Buffer *dst = s->bufs[0], *src = s->bufs[1];
    open_gpu(w, "copy");
    sb_printf(&w->sb, ", mem[%s], ", mem_of(b, dst));
    start_offset(&w->sb, b, dst, s->dst_offset);
    sb_printf(&w->sb, ", mem[%s], ", mem_of(b, src));
    start_offset(&w->sb, b, src, s->src_offset);
    sb_puts(&w->sb, ", ");
    sized(&w->sb, b, element_bytes(dst->dtype), 1, &s->elements);
    sb_puts(&w->sb, "));\n");
}

void gpu_call_inputs(Writer *w, const Step *s)
{
    for (int i = 0; i < s->call->n_in; i++)
        if (!on_host(s->bufs[i]) && on_device(w->b, s->bufs[i]))
            transfer(w, "read", s->bufs[i], true);
}

void gpu_call_outputs(Writer *w, const Step *s)
{
    for (int i = s->call->n_in; i < s->nbuf; i++)
        if (on_device(w->b, s->bufs[i]))
            transfer(w, "write", s->bufs[i], true);
}

bool gpu_condition(Writer *w, const Buffer *cond, int number)
{
    if (on_host(cond))
        return false;
    line(w, "unsigned char cond%d = 0;", number);
    open_gpu(w, "read");
    sb_printf(&w->sb, ", mem[%s], ", mem_of(w->b, cond));
    start_offset(&w->sb, w->b, cond, NULL);
    sb_printf(&w->sb, ", &cond%d, 1, 1));\n", number);
    return true;
}
