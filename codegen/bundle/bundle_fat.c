/* bundle_fat.c - one interface for several targets: a GPU where there is one, and C for one or for
 * several machines.
 *
 * What is for one target is written as a bundle of its own, <name>_cuda, <name>_c or, of several
 * machines, <name>_x86_64_v3, without the files that all share: the structs of inputs and outputs
 * (<name>_io.h), the runtime under its private names, the weights, golden vectors, driver and build
 * files. A context has one of their contexts; init makes it, and every other function goes on to
 * it. */
#include <string.h>

#include "bundle.h"

/* ---- preparation ------------------------------------------------------------------------- */

static void same_ports(const Port *x, const Port *y, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(x[i].field, y[i].field) != 0 || strcmp(x[i].dims, y[i].dims) != 0 ||
            x[i].dynamic != y[i].dynamic || x[i].lead != y[i].lead ||
            x[i].b->dtype != y[i].b->dtype || x[i].b->rank != y[i].b->rank)
            BUG("two targets of a bundle differ in '%s'", x[i].field);
}

/* A target's weights are the whole's: linked in or not, they come to it through its config. */
static WeightsMode own_mode(const Bundle *s, WeightsMode whole)
{
    if (!s->nweight)
        return WEIGHTS_NONE;
    if (!s->p->weights_bytes)
        return WEIGHTS_ARRAY;
    return whole == WEIGHTS_INCBIN ? WEIGHTS_BLOB : whole;
}

void fat_prepare(Bundle *b, int n, const FatTarget *of, int64_t shared)
{
    const int c = of[0].target->gpu ? 1 : 0, nf = 1 + b->nfunction, nplan = (n - c) * nf;
    Plan **plans = NEWN(b->a, Plan *, nplan);
    for (int i = 0; i < nplan; i++)
        plans[i] = of[c + i / nf].plans[i % nf];
    b->sub = NEWN(b->a, Bundle, n);
    b->nsub = n;
    for (int i = 0; i < n; i++) {
        Bundle *s = &b->sub[i];
        ingot_options *o = NEW(b->a, ingot_options);
        *o = *of[i].o;
        o->name = arena_printf(b->a, "%s_%s", b->name, of[i].suffix);
        *s = (Bundle){.p = of[i].p,
                      .c = b->c,
                      .a = b->a,
                      .target = of[i].target,
                      .o = o,
                      .whole = b,
                      .called = of[i].name,
                      .suffix = of[i].suffix,
                      .writes_weights = i <= c,
                      .weights_at = i >= c && c ? of[0].p->weights_bytes - shared : 0};
        if (i >= c && n - c > 1)
            s->weights_prefix = arena_printf(b->a, "%s_c", b->name);
        if (i < c)
            bundle_prepare(s, 1, &s->p);
        else
            bundle_prepare(s, nplan, plans);
        if (!b->failed && nf > 1)
            functions_prepare(s, nf, of[i].plans);
        if (b->failed)
            return;
        same_ports(b->in, s->in, b->nin);
        same_ports(b->out, s->out, b->nout);
    }
    b->mode =
        weights_mode(b, b->sub[0].nweight + (c ? b->sub[c].nweight : 0), weights_file_bytes(b));
    for (int i = 0; i < n; i++)
        b->sub[i].mode = own_mode(&b->sub[i], b->mode);
}

/* ---- <name>.h ---------------------------------------------------------------------------- */

static void arenas_comment(StrBuf *sb, const Bundle *b)
{
    sb_puts(sb, "\n/* By itself");
    if (b->sub[0].target->gpu) {
        const Bundle *gpu = &b->sub[0];
        const int64_t given = plan_given_bytes(gpu->p);
        sb_printf(sb,
                  " %s needs an arena of %s_ARENA_BYTES(threads), and %lld bytes on the GPU:\n"
                  " * %lld of arena, %lld of weights, %lld of inputs and outputs;",
                  gpu->called, gpu->upper,
                  (long long)sat_add(sat_add(gpu->p->arena_bytes, gpu->p->weights_bytes), given),
                  (long long)gpu->p->arena_bytes, (long long)gpu->p->weights_bytes,
                  (long long)given);
    }
    for (int i = first_for_c(b); i < b->nsub; i++)
        sb_printf(sb, "%s %s needs %s_ARENA_BYTES(threads)%s", i ? "\n *" : "", b->sub[i].called,
                  b->sub[i].upper, i + 1 < b->nsub ? "," : ". */\n");
}

void fat_header(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    arenas_comment(sb, b);
    sb_printf(
        sb,
        "\n/* Belongs to the model once initialised; may be moved in memory between runs. */\n"
        "typedef struct %s_ctx {\n"
        "    %s_config config;\n"
        "    igrt_fault fault; /* what made the last run fail, if it was a size */\n"
        "    int at;           /* which target's this is: its number in of */\n"
        "    union {\n",
        n, n);
    for (int i = 0; i < b->nsub; i++)
        sb_printf(sb, "        %s_ctx %s;\n", b->sub[i].name, b->sub[i].suffix);
    sb_printf(sb, "    } of;\n} %s_ctx;\n\n/* Which target runs, as config.target names it: ", n);
    for (int i = 0; i < b->nsub; i++)
        sb_printf(sb, "%s\"%s\"", i ? i + 1 < b->nsub ? ", " : " or " : "", b->sub[i].called);
    sb_printf(sb,
              ". */\nstatic inline const char *%s_target(const %s_ctx *ctx)\n{\n"
              "    static const char *const names[] = {",
              n, n);
    for (int i = 0; i < b->nsub; i++)
        sb_printf(sb, "%s\"%s\"", i ? ", " : "", b->sub[i].called);
    sb_puts(sb, "};\n    return names[ctx->at];\n}\n");
}

const char *fat_sym(const Bundle *b, int var)
{
    const char *place = "";
    for (int i = 0; i < b->nsub; i++) {
        const Bundle *s = &b->sub[i];
        const char *own = arena_printf(b->a, "&ctx->of.%s.sym[%d]", s->suffix, s->sym[var]);
        place = i + 1 < b->nsub ? arena_printf(b->a, "%sctx->at == %d ? %s : ", place, i, own)
                                : arena_printf(b->a, "*(%s%s)", place, own);
    }
    return place;
}

/* ---- <name>.c ---------------------------------------------------------------------------- */

/* Does a target get a config of its own? Not where all of the file is its own. */
static bool has_config(const Bundle *b, const Bundle *s)
{
    return s->mode == WEIGHTS_BLOB &&
           (b->mode == WEIGHTS_INCBIN || s->p->weights_bytes != weights_file_bytes(b));
}

/* What a target gets as its config: the whole's, with a part of the weights. */
static void own_config(StrBuf *sb, const Bundle *b)
{
    bool any = false;
    for (int i = 0; i < b->nsub; i++)
        any |= has_config(b, &b->sub[i]);
    if (!any)
        return;
    const bool linked = b->mode == WEIGHTS_INCBIN;
    if (linked)
        sb_printf(sb, "\nextern const unsigned char %s_weights_blob[]; /* %s_weights.S */\n",
                  b->name, b->name);
    sb_printf(sb,
              "\n/* The same for a target, whose weights are a part of those of all. */\n"
              "static igrt_config own_config(const igrt_config *config, size_t at, size_t bytes)\n"
              "{\n    igrt_config own = *config;\n"
              "    own.weights = %s + at;\n"
              "    own.weights_bytes = bytes;\n%s"
              "    return own;\n}\n",
              linked ? arena_printf(b->a, "%s_weights_blob", b->name)
                     : "(const unsigned char *)config->weights",
              linked ? "    own.flags |= IGRT_SKIP_CHECKSUM; /* they are part of the program */\n"
                     : "");
}

/* "status = model_c_init(&ctx->of.c, &own);" */
static void init_one(StrBuf *sb, const Bundle *b, int i)
{
    const Bundle *s = &b->sub[i];
    const bool own = has_config(b, s);
    if (own)
        sb_printf(sb,
                  "        const igrt_config own = own_config(config, %lld, %s_WEIGHTS_BYTES);\n",
                  (long long)s->weights_at, s->upper);
    sb_printf(sb, "        ctx->at = %d;\n        status = %s_init(&ctx->of.%s, %s);\n", i, s->name,
              s->suffix, own ? "&own" : "config");
}

/* Where there is no driver, no GPU, or none that the kernels are compiled for, C runs. */
static void init_gpu(StrBuf *sb, const Bundle *b)
{
    const Bundle *gpu = &b->sub[0];
    sb_printf(sb,
              "    const int asked = config->device || config->stream || config->gpu ||\n"
              "                      (config->flags & IGRT_ON_DEVICE);\n"
              "    if (!target || !strcmp(target, \"%s\")) {\n",
              gpu->called);
    init_one(sb, b, 0);
    sb_printf(sb,
              "        const int none = status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD ||\n"
              "                         status == IGRT_ERR_FEATURE;\n"
              "        if (none)\n            ctx->fault = ctx->of.%s.fault;\n"
              "        if (!none || target || asked)\n            return status;\n"
              "    } else if (asked) {\n        return IGRT_ERR_CONFIG;\n    }\n",
              gpu->suffix);
}

/* The fastest is asked for first; of equal ones the one that is named last.  A machine that the
 * processor is not says IGRT_ERR_FEATURE before anything else. */
static void init_for_c(StrBuf *sb, const Bundle *b, int i, bool only)
{
    const Bundle *s = &b->sub[i];
    sb_puts(sb, only ? "    if (c) {\n"
                     : arena_printf(b->a, "    if (c || !strcmp(target, \"%s\")) {\n", s->called));
    init_one(sb, b, i);
    sb_printf(sb,
              "        if (status != IGRT_ERR_FEATURE)\n            return status;\n"
              "        lacks = ctx->of.%s.fault;\n    }\n",
              s->suffix);
}

static void function_init(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name, *u = b->upper;
    const int c = first_for_c(b);
    own_config(sb, b);
    sb_printf(sb, "\n/* %s%s%s */\n",
              c ? "A GPU where its target can run; else, unless the caller has asked for one by "
                  "config.target, device, stream\n * or gpu, or for memory on it, C."
                : "",
              c && b->nsub - c > 1 ? " " : "",
              b->nsub - c > 1 ? "Of the machines the fastest that this processor is." : "");
    sb_printf(sb,
              "%s_status %s_init(%s_ctx *ctx, const %s_config *config)\n{\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n"
              "    %s_status status = igrt_config_check(config, 0, %s_ARENA_ALIGN, "
              "%s_WEIGHTS_BYTES);\n"
              "    if (status != IGRT_OK)\n        return status;\n"
              "    const char *const target = config->target;\n"
              "    const int c = !target || !strcmp(target, \"c\");\n"
              "    igrt_fault lacks = {0};\n"
              "    ctx->config = *config;\n"
              "    memset(&ctx->fault, 0, sizeof ctx->fault);\n"
              "    status = IGRT_ERR_CONFIG; /* there is no such target */\n",
              n, n, n, n, n, u, u);
    if (c)
        init_gpu(sb, b);
    const Target **t = NEWN(b->a, const Target *, b->nsub);
    for (int i = 0; i < b->nsub; i++)
        t[i] = b->sub[i].target;
    const int *order = targets_by_speed(b->a, b->nsub, t);
    for (int k = b->nsub - 1; k >= c; k--)
        init_for_c(sb, b, order[k], b->nsub - c == 1);
    sb_puts(sb, "    ctx->fault = lacks;\n    return status;\n}\n");
}

/* "switch (ctx->at) ..": a call for each target. */
static void each_of(StrBuf *sb, const Bundle *b, int function,
                    void (*call)(StrBuf *, const Bundle *))
{
    sb_puts(sb, "    switch (ctx->at) {\n");
    for (int i = 0; i < b->nsub; i++) {
        if (i + 1 < b->nsub)
            sb_printf(sb, "    case %d:\n", i);
        else
            sb_puts(sb, "    default:\n");
        call(sb, function ? &b->sub[i].function[function - 1] : &b->sub[i]);
        sb_puts(sb, "        break;\n");
    }
    sb_puts(sb, "    }\n");
}

static void each(StrBuf *sb, const Bundle *b, void (*call)(StrBuf *, const Bundle *))
{
    each_of(sb, b, 0, call);
}

/* Of a target, or of a further function of one. */
static void call_run(StrBuf *sb, const Bundle *s)
{
    sb_printf(sb,
              "        status = %s(&ctx->of.%s, in, out);\n"
              "        ctx->fault = ctx->of.%s.fault;\n",
              s->entry, s->suffix, s->suffix);
}

static void call_state(StrBuf *sb, const Bundle *s)
{
    sb_printf(sb, "        status = %s_state(&ctx->of.%s, i, state);\n", s->name, s->suffix);
}

static void call_reset(StrBuf *sb, const Bundle *s)
{
    if (s->c->random)
        sb_printf(sb, "        ctx->of.%s.config.seed = ctx->config.seed;\n", s->suffix);
    sb_printf(sb, "        status = %s_reset(&ctx->of.%s);\n", s->name, s->suffix);
}

static void call_deinit(StrBuf *sb, const Bundle *s)
{
    sb_printf(sb, "        %s_deinit(&ctx->of.%s);\n", s->name, s->suffix);
}

static void fat_states(StrBuf *sb, const Bundle *b)
{
    if (!bundle_has_states(b))
        return;
    sb_printf(sb,
              "\n%s_status %s_state(const %s_ctx *ctx, int i, igrt_state *state)\n{\n"
              "    %s_status status;\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n",
              b->name, b->name, b->name, b->name);
    each(sb, b, call_state);
    sb_puts(sb, "    return status;\n}\n");
}

void fat_run(Bundle *b)
{
    const char *n = b->name;
    StrBuf sb = {0};
    sb_printf(&sb, "/*\n * %s.c - ", n);
    print_comment_text(&sb, b->source);
    sb_puts(&sb, " for several targets as one:");
    for (int i = 0; i < b->nsub; i++)
        sb_printf(&sb, "%s %s.c", i ? i + 1 < b->nsub ? "," : " or" : "", b->sub[i].name);
    sb_printf(&sb, ".\n */\n#include \"%s_igrt.h\"\n#include \"%s.h\"\n\n#include <string.h>\n", n,
              n);
    function_init(&sb, b);
    for (int i = 0; i <= b->nfunction; i++) {
        const Bundle *f = i ? &b->function[i - 1] : b;
        sb_printf(&sb,
                  "\n%s_status %s(%s_ctx *ctx, const %s_inputs *in, %s_outputs *out)\n{\n"
                  "    %s_status status;\n"
                  "    if (!ctx)\n        return IGRT_ERR_NULL;\n",
                  n, f->entry, n, f->io, f->io, n);
        each_of(&sb, b, i, call_run);
        sb_puts(&sb, "    return status;\n}\n");
    }
    fat_states(&sb, b);
    sb_printf(&sb,
              "\n%s_status %s_reset(%s_ctx *ctx)\n{\n    %s_status status;\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n",
              n, n, n, n);
    each(&sb, b, call_reset);
    sb_puts(&sb, "    return status;\n}\n");
    if (!b->has_selftest)
        sb_printf(&sb,
                  "\n%s_status %s_selftest(%s_ctx *ctx)\n{\n"
                  "    return ctx ? IGRT_ERR_NO_SELFTEST : IGRT_ERR_NULL;\n}\n",
                  n, n, n);
    sb_printf(&sb, "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    if (!ctx)\n        return;\n", n, n);
    each(&sb, b, call_deinit);
    sb_puts(&sb, "}\n");
    bundle_source(b, arena_printf(b->a, "%s.c", n), &sb);
}
