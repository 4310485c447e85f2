/* bundle_gpu_init.c - what init makes on the device, and deinit lets go: the program, memory,
 * records. */
#include "bundle_gpu.h"
#include "language.h"

static void extensions(StrBuf *sb, const Target *t)
{
    for (const Extension *e = t->extensions; e && e->name; e++)
        sb_printf(sb,
                  "    TRY(igrt_gpu_require(gpu, \"%s\", &ctx->fault,\n"
                  "                         \"%s\"));\n",
                  e->name, e->lacks);
}

static void arena_parts(StrBuf *sb, const Gpu *g)
{
    if (!g->npart)
        return;
    bool several = false;
    for (int i = 1; i <= g->npart; i++)
        several |= g->mem[i].device > 0;
    sb_printf(sb,
              "\n/* parts of the arena, in the order of ctx->mem */\n"
              "static const struct {\n    size_t offset, bytes;\n%s} part[] = {\n",
              several ? "    int arena;\n" : "");
    for (int i = 1; i <= g->npart; i++) {
        sb_printf(sb, "    {%lld, %lld", (long long)g->mem[i].key, (long long)g->mem[i].bytes);
        if (several && g->mem[i].device)
            sb_printf(sb, ", MEM_ARENA%d},\n", g->mem[i].device);
        else
            sb_puts(sb, several ? ", MEM_ARENA},\n" : "},\n");
    }
    sb_puts(sb, "};\nenum { PARTS = sizeof part / sizeof part[0] };\n");
}

static void start_record(StrBuf *sb, const Bundle *b)
{
    const Gpu *g = b->gpu;
    const char *record = gpu_own(b, "record");
    if (!g->records)
        return;
    sb_printf(sb, "    memset(&ctx->%s, 0, sizeof ctx->%s);\n    ctx->%s = 1;\n", record, record,
              gpu_own(b, "stale"));
    if (g->branches)
        sb_printf(sb, "    ctx->%s.branches = 1;\n", record);
    if (g->sized)
        sb_printf(sb, "    ctx->%s.node = ctx->%s;\n    ctx->%s.nodes = %d;\n", record,
                  gpu_own(b, "node"), record, (int)g->launches);
}

/* The head of start(): what release() looks at is nothing yet. */
static void start_context(StrBuf *sb, const Bundle *b)
{
    const Gpu *g = b->gpu;
    bool blob = false;
    for (int i = 0; i < g->nmem; i++)
        blob |= g->mem[i].kind == BUF_WEIGHT && b->mode != WEIGHTS_ARRAY;
    sb_printf(sb,
              "\nstatic igrt_status start(%s_ctx *ctx)\n{\n    igrt_gpu *const gpu = &ctx->gpu;\n"
              "    igrt_gpu_mem *const mem = ctx->mem;\n",
              b->name);
    if (blob)
        sb_puts(sb, "    const unsigned char *const weights = ctx->weights;\n");
    sb_puts(sb, "    memset(mem, 0, sizeof ctx->mem);\n");
    sb_puts(sb, b->p->ndevice > 1 ? "    memset(&ctx->beside, 0, sizeof ctx->beside);\n"
                                    "    memset(ctx->program, 0, sizeof ctx->program);\n"
                                    "    memset(ctx->slot, 0, sizeof ctx->slot);\n"
                                    "    memset(ctx->mark, 0, sizeof ctx->mark);\n"
                                    "    ctx->queue = 0;\n"
                                  : "    ctx->program = NULL;\n");
    if (gpu_aside_marks(b))
        sb_puts(sb, "    memset(&ctx->aside, 0, sizeof ctx->aside);\n"
                    "    memset(ctx->mark, 0, sizeof ctx->mark);\n");
    start_record(sb, b);
    for (int i = 0; i < b->nfunction; i++)
        start_record(sb, &b->function[i]);
    if (b->nkernel)
        sb_puts(sb, "    memset(ctx->kernel, 0, sizeof ctx->kernel);\n");
    if (!g->apart) /* release() is what comes next, of nothing */
        sb_puts(sb, "    if (ctx->config.flags & IGRT_ON_DEVICE) {\n"
                    "        memset(gpu, 0, sizeof *gpu);\n"
                    "        return IGRT_ERR_CONFIG; /* steps of the host need the inputs */\n"
                    "    }\n");
}

/* The device is opened, the program loaded and its kernels found. */
static void start_kernels(StrBuf *sb, const Bundle *b)
{
    const Gpu *g = b->gpu;
    const char *n = b->name, *u = b->upper;
    if (g->shared) {
        sb_printf(sb, "    static const unsigned shared[%s_KERNELS] = {", u);
        for (int i = 0; i < b->nkernel; i++)
            sb_printf(sb, "%s%lld%s", i ? i % 12 ? ", " : ",\n        " : "",
                      (long long)g->asked[i], gpu_bulk(b->kernel[i]) ? " | IGRT_EVENLY" : "");
        sb_puts(sb, "}; /* that groups ask for */\n");
    }
    if (b->p->ndevice > 1) {
        gpu_devices_start(sb, b);
        return;
    }
    sb_puts(sb, "    TRY(igrt_gpu_open(gpu, &ctx->config));\n");
    extensions(sb, b->target);
    if (b->mode == WEIGHTS_BLOB) /* without a device nobody reads them */
        sb_printf(sb, "    TRY(igrt_weights_check(&ctx->config, %s_WEIGHTS_SUM));\n", u);
    if (b->nkernel)
        sb_printf(sb,
                  "    TRY(igrt_gpu_load(gpu, %s_program, %s_PROGRAM_PARTS, %d, &ctx->program));\n"
                  "    for (int i = 0; i < %s%s_KERNELS; i++)\n"
                  "        TRY(igrt_gpu_find(gpu, ctx->program, %s_kernel_name[i], %s, "
                  "&ctx->kernel[i]));\n",
                  n, u, !b->c->keep_subnormals, u, g->nown ? "_OWN" : "", n,
                  g->shared ? "shared[i]" : "0");
    const int loaded = g->nown ? g->nown : b->nkernel;
    for (int i = 0; i < loaded && b->target->extensions; i++)
        if (g->across[i])
            sb_printf(sb,
                      "    TRY(igrt_gpu_require_subgroups(gpu, ctx->kernel[%d], %d, "
                      "&ctx->fault));\n",
                      i, b->target->machine.subgroup);
}

static bool is_arena(const Mem *m)
{
    return m->kind == BUF_ARENA && m->key < 0;
}

static const char *device_of(const Bundle *b, const Mem *m)
{
    return m->device ? arena_printf(b->a, "queue(ctx, %d)", m->device) : "gpu";
}

/* The arena and its parts, inputs and outputs unless the caller has them there, weights. */
static void start_memory(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    if (b->target->language->binds)
        sb_printf(sb, "    TRY(igrt_gpu_reserve(gpu, %lld)); /* for weights */\n",
                  (long long)gpu_weight_bytes(b));
    for (int i = 0; i < g->nmem; i++)
        if (is_arena(&g->mem[i]))
            sb_printf(sb, "    TRY(igrt_gpu_alloc(%s, %lld, NULL, &mem[%s]));\n",
                      device_of(b, &g->mem[i]), (long long)g->mem[i].bytes, gpu_mem_name(b, i));
    if (g->npart && b->p->ndevice > 1)
        sb_puts(sb, "    for (int i = 0; i < PARTS; i++)\n"
                    "        TRY(igrt_gpu_part(gpu, mem[part[i].arena], part[i].offset, "
                    "part[i].bytes,\n"
                    "                          &mem[MEM_ARENA + 1 + i]));\n");
    else if (g->npart)
        sb_puts(sb,
                "    for (int i = 0; i < PARTS; i++)\n"
                "        TRY(igrt_gpu_part(gpu, mem[MEM_ARENA], part[i].offset, part[i].bytes,\n"
                "                          &mem[MEM_ARENA + 1 + i]));\n");
    if (g->apart && g->nall)
        sb_puts(sb, "    if (!(ctx->config.flags & IGRT_ON_DEVICE)) {\n");
    for (int i = 1 + g->npart; i < g->nmem; i++) {
        const Mem *m = &g->mem[i];
        bool io = i <= g->npart + g->nall;
        if (is_arena(m))
            continue;
        sb_printf(sb, "    %sTRY(igrt_gpu_%s(%s, %lld, ", g->apart && io ? "    " : "",
                  m->image ? "image" : "alloc", device_of(b, m), (long long)m->bytes);
        if (m->kind == BUF_WEIGHT && m->b->kind == BUF_WEIGHT)
            address(sb, b, m->b, NULL, false);
        else
            sb_puts(sb, "NULL");
        sb_printf(sb, ", &mem[%s]));\n", gpu_mem_name(b, i));
        if (g->apart && i == g->npart + g->nall)
            sb_puts(sb, "    }\n");
    }
}

static void release_function(StrBuf *sb, const Bundle *b)
{
    const Gpu *g = b->gpu;
    StrBuf before = {0};
    for (int i = b->nfunction; i >= 0; i--) {
        const Bundle *f = i ? &b->function[i - 1] : b;
        if (f->gpu->records)
            sb_printf(&before, "    igrt_gpu_free_record(gpu, &ctx->%s);\n", gpu_own(f, "record"));
    }
    if (g->apart && g->nall)
        sb_printf(&before,
                  "    if (ctx->config.flags & IGRT_ON_DEVICE)\n"
                  "        memset(&ctx->mem[%s], 0, %d * sizeof *ctx->mem); /* the caller's */\n",
                  gpu_mem_name(b, g->npart + 1), g->nall);
    sb_printf(sb,
              "\nstatic void release(%s_ctx *ctx)\n{\n    igrt_gpu *const gpu = &ctx->gpu;\n%s"
              "    for (int i = MEM_COUNT - 1; i > %s; i--)\n"
              "        igrt_gpu_free(gpu, ctx->mem[i]);\n",
              b->name, before.data ? before.data : "", g->npart ? "PARTS" : "0");
    sb_free(&before);
    if (g->npart)
        sb_puts(
            sb,
            "    for (int i = PARTS; i > 0; i--)\n        igrt_gpu_free_part(gpu, ctx->mem[i]);\n");
    sb_puts(sb, "    igrt_gpu_free(gpu, ctx->mem[MEM_ARENA]);\n");
    if (b->p->ndevice > 1) {
        gpu_devices_release(sb);
        sb_puts(sb, "    igrt_gpu_close(gpu, ctx->program[0]);\n    memset(ctx, 0, sizeof "
                    "*ctx);\n}\n");
        return;
    }
    if (b->nkernel)
        sb_printf(sb,
                  "    for (int i = 0; i < %s_KERNELS; i++)\n        igrt_gpu_free_kernel(gpu, "
                  "ctx->kernel[i]);\n",
                  b->upper);
    const int marks = gpu_aside_marks(b);
    if (marks)
        sb_printf(sb, "    igrt_aside_free(gpu, &ctx->aside, %d, ctx->mark);\n", marks);
    sb_puts(sb, "    igrt_gpu_close(gpu, ctx->program);\n    memset(ctx, 0, sizeof *ctx);\n}\n");
}

/* start(): everything on the device is made; release(): and let go. */
void gpu_functions(StrBuf *sb, Bundle *b)
{
    arena_parts(sb, b->gpu);
    start_context(sb, b);
    start_kernels(sb, b);
    start_memory(sb, b);
    if (b->p->ndevice > 1)
        gpu_devices_slots(sb, b);
    sb_puts(sb, "    return IGRT_OK;\n}\n");
    release_function(sb, b);
}
