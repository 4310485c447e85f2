/* bundle_halves.c - one interface for two targets: a GPU where there is one, and C.
 *
 * Each half is written as a bundle of its own, <name>_cuda and <name>_c, without the files that
 * both share: the structs of inputs and outputs (<name>_io.h), the runtime under its private names,
 * the weights, golden vectors, driver and build files. A context has one of the two halves'
 * contexts; init makes it, and every other function goes on to it. */
#include <string.h>

#include "bundle.h"

/* ---- preparation ------------------------------------------------------------------------- */

static void same_ports(const Port *x, const Port *y, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(x[i].field, y[i].field) != 0 || strcmp(x[i].dims, y[i].dims) != 0 ||
            x[i].dynamic != y[i].dynamic || x[i].lead != y[i].lead ||
            x[i].b->dtype != y[i].b->dtype || x[i].b->rank != y[i].b->rank)
            BUG("the two halves of a bundle differ in '%s'", x[i].field);
}

/* A half's weights are the whole's: linked in or not, they come to it through its config. */
static WeightsMode half_mode(const Bundle *h, WeightsMode whole)
{
    if (!h->nweight)
        return WEIGHTS_NONE;
    if (!h->p->weights_bytes)
        return WEIGHTS_ARRAY;
    return whole == WEIGHTS_INCBIN ? WEIGHTS_BLOB : whole;
}

void halves_prepare(Bundle *b, const Half half[2], int64_t shared)
{
    b->half = NEWN(b->a, Bundle, 2);
    for (int i = 0; i < 2; i++) {
        Bundle *h = &b->half[i];
        ingot_options *o = NEW(b->a, ingot_options);
        *o = *half[i].o;
        o->name = arena_printf(b->a, "%s_%s", b->name, half[i].target->name);
        *h = (Bundle){.p = half[i].p,
                      .c = b->c,
                      .a = b->a,
                      .target = half[i].target,
                      .o = o,
                      .whole = b,
                      .weights_at = i ? half[0].p->weights_bytes - shared : 0};
        bundle_prepare(h);
        if (b->failed)
            return;
        same_ports(b->in, h->in, b->nin);
        same_ports(b->out, h->out, b->nout);
    }
    b->mode = weights_mode(b, b->half[0].nweight + b->half[1].nweight, weights_file_bytes(b));
    for (int i = 0; i < 2; i++)
        b->half[i].mode = half_mode(&b->half[i], b->mode);
}

/* ---- <name>.h ---------------------------------------------------------------------------- */

void halves_header(StrBuf *sb, const Bundle *b)
{
    const Bundle *gpu = &b->half[0], *cpu = &b->half[1];
    const int64_t given = plan_given_bytes(gpu->p);
    const char *n = b->name;
    sb_printf(sb,
              "\n/* By itself the half for %s wants an arena of %s_ARENA_BYTES(threads), and %lld "
              "bytes on the GPU: %lld of arena,\n"
              " * %lld of weights, %lld of inputs and outputs. The half for C wants "
              "%s_ARENA_BYTES(threads). */\n",
              gpu->target->name, gpu->upper,
              (long long)sat_add(sat_add(gpu->p->arena_bytes, gpu->p->weights_bytes), given),
              (long long)gpu->p->arena_bytes, (long long)gpu->p->weights_bytes, (long long)given,
              cpu->upper);
    sb_printf(
        sb,
        "\n/* Belongs to the model once initialised; may be moved in memory between runs. */\n"
        "typedef struct %s_ctx {\n"
        "    %s_config config;\n"
        "    igrt_fault fault; /* what made the last run fail, if it was a size */\n"
        "    int on_cpu;       /* which half this is of */\n"
        "    union {\n        %s_ctx gpu;\n        %s_ctx cpu;\n    } of;\n} %s_ctx;\n"
        "\n/* Which half runs: \"%s\" or \"%s\", as config.target names them. */\n"
        "static inline const char *%s_target(const %s_ctx *ctx)\n{\n"
        "    return ctx->on_cpu ? \"%s\" : \"%s\";\n}\n",
        n, n, gpu->name, cpu->name, n, gpu->target->name, cpu->target->name, n, n,
        cpu->target->name, gpu->target->name);
}

/* ---- <name>.c ---------------------------------------------------------------------------- */

/* What a half gets as its config: the whole's, with a part of the weights. */
static void half_config(StrBuf *sb, const Bundle *b)
{
    if (b->mode != WEIGHTS_BLOB && b->mode != WEIGHTS_INCBIN)
        return;
    const bool linked = b->mode == WEIGHTS_INCBIN;
    if (linked)
        sb_printf(sb, "\nextern const unsigned char %s_weights_blob[]; /* %s_weights.S */\n",
                  b->name, b->name);
    sb_printf(sb,
              "\n/* The same for a half, whose weights are a part of those of both. */\n"
              "static igrt_config half_config(const igrt_config *config, size_t at, size_t bytes)\n"
              "{\n    igrt_config half = *config;\n"
              "    half.weights = %s + at;\n"
              "    half.weights_bytes = bytes;\n%s"
              "    return half;\n}\n",
              linked ? arena_printf(b->a, "%s_weights_blob", b->name)
                     : "(const unsigned char *)config->weights",
              linked ? "    half.flags |= IGRT_SKIP_CHECKSUM; /* they are part of the program */\n"
                     : "");
}

/* "status = model_c_init(&ctx->of.cpu, &half);" */
static void init_half(StrBuf *sb, const Bundle *b, int i, const char *indent)
{
    const Bundle *h = &b->half[i];
    const bool file = h->mode == WEIGHTS_BLOB;
    if (file)
        sb_printf(sb, "%sconst igrt_config half = half_config(config, %lld, %s_WEIGHTS_BYTES);\n",
                  indent, (long long)h->weights_at, h->upper);
    sb_printf(sb, "%sctx->on_cpu = %d;\n%sstatus = %s_init(&ctx->of.%s, %s);\n", indent, i, indent,
              h->name, i ? "cpu" : "gpu", file ? "&half" : "config");
}

static void function_init(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name, *u = b->upper, *gpu = b->half[0].target->name,
               *cpu = b->half[1].target->name;
    half_config(sb, b);
    sb_printf(sb,
              "\n/* The half for C where there is no driver, no GPU, or none that the kernels are "
              "compiled for, unless the caller has\n"
              " * asked for a GPU: by config.target, device, stream or gpu, or for memory on it. "
              "*/\n"
              "%s_status %s_init(%s_ctx *ctx, const %s_config *config)\n{\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n"
              "    %s_status status = igrt_config_check(config, 0, %s_ARENA_ALIGN, "
              "%s_WEIGHTS_BYTES);\n"
              "    if (status != IGRT_OK)\n        return status;\n"
              "    const char *const target = config->target;\n"
              "    const int may_gpu = !target || !strcmp(target, \"%s\");\n"
              "    const int may_cpu = !target || !strcmp(target, \"%s\");\n"
              "    const int asked = config->device || config->stream || config->gpu ||\n"
              "                      (config->flags & IGRT_ON_DEVICE);\n"
              "    if (!may_gpu && (!may_cpu || asked))\n        return IGRT_ERR_CONFIG;\n",
              n, n, n, n, n, u, u, gpu, cpu);
    sb_puts(sb, "    ctx->config = *config;\n"
                "    memset(&ctx->fault, 0, sizeof ctx->fault);\n"
                "    if (may_gpu) {\n");
    init_half(sb, b, 0, "        ");
    sb_puts(sb,
            "        const int none = status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD ||\n"
            "                         status == IGRT_ERR_FEATURE;\n"
            "        if (none)\n            ctx->fault = ctx->of.gpu.fault;\n"
            "        if (!none || !may_cpu || asked)\n            return status;\n    }\n");
    init_half(sb, b, 1, "    ");
    sb_puts(sb, "    if (status == IGRT_ERR_FEATURE)\n        ctx->fault = ctx->of.cpu.fault;\n"
                "    return status;\n}\n");
}

/* "ctx->on_cpu ? model_c_run(&ctx->of.cpu, in, out) : model_cuda_run(&ctx->of.gpu, in, out)" */
static const char *either(const Bundle *b, const char *function, const char *arguments)
{
    return arena_printf(b->a,
                        "ctx->on_cpu ? %s_%s(&ctx->of.cpu%s)\n        : %s_%s(&ctx->of.gpu%s)",
                        b->half[1].name, function, arguments, b->half[0].name, function, arguments);
}

void halves_run(Bundle *b)
{
    const char *n = b->name;
    StrBuf sb = {0};
    sb_printf(&sb, "/*\n * %s.c - the two halves of ", n);
    print_comment_text(&sb, b->source);
    sb_printf(&sb,
              " as one: %s.c, or %s.c where that cannot run.\n */\n"
              "#include \"%s_igrt.h\"\n#include \"%s.h\"\n\n#include <string.h>\n",
              b->half[0].name, b->half[1].name, n, n);
    function_init(&sb, b);
    sb_printf(&sb,
              "\n%s_status %s_run(%s_ctx *ctx, const %s_inputs *in, %s_outputs *out)\n{\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n"
              "    const %s_status status = %s;\n"
              "    ctx->fault = ctx->on_cpu ? ctx->of.cpu.fault : ctx->of.gpu.fault;\n"
              "    return status;\n}\n",
              n, n, n, n, n, n, either(b, "run", ", in, out"));
    sb_printf(
        &sb, "\n%s_status %s_reset(%s_ctx *ctx)\n{\n    if (!ctx)\n        return IGRT_ERR_NULL;\n",
        n, n, n);
    if (b->c->random)
        sb_puts(&sb, "    *(ctx->on_cpu ? &ctx->of.cpu.config.seed : &ctx->of.gpu.config.seed) = "
                     "ctx->config.seed;\n");
    sb_printf(&sb, "    return %s;\n}\n", either(b, "reset", ""));
    if (!b->has_selftest)
        sb_printf(&sb,
                  "\n%s_status %s_selftest(%s_ctx *ctx)\n{\n"
                  "    return ctx ? IGRT_ERR_NO_SELFTEST : IGRT_ERR_NULL;\n}\n",
                  n, n, n);
    sb_printf(&sb,
              "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    if (!ctx)\n        return;\n"
              "    if (ctx->on_cpu)\n        %s_deinit(&ctx->of.cpu);\n"
              "    else\n        %s_deinit(&ctx->of.gpu);\n}\n",
              n, n, b->half[1].name, b->half[0].name);
    bundle_source(b, arena_printf(b->a, "%s.c", n), &sb);
}
