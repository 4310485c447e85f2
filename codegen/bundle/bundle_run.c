/* bundle_run.c - <name>.c: init, run, reset and deinit.
 *
 * run() is the frozen plan as a list of calls. Everything has its place already, so a buffer is
 * spelled as an address: (float *)(arena + 4096), (const float *)(weights + 64), in->x, out->y. */
#include <string.h>

#include "bundle_writer.h"
#include "igrt.h"
#include "language.h"

void indent(Writer *w)
{
    for (int i = 0; i < w->depth; i++)
        sb_puts(&w->sb, "    ");
}

void line(Writer *w, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    indent(w);
    sb_vprintf(&w->sb, format, ap);
    sb_puts(&w->sb, "\n");
    va_end(ap);
}

/* Of a tensor that may have no elements in a run, and then need not be anywhere: its axes that may
 * be 0. A GPU's copies begin with a pointer in any case. */
static void print_has_elements(StrBuf *sb, const Bundle *b, const Port *p)
{
    for (int d = p->lead; p->dynamic && !b->gpu && d < p->b->rank; d++) {
        const Node *dim = p->b->dims[d];
        if (dim->op == OP_VAR && b->c->vars[dim->arg.i].lo == 0)
            sb_printf(sb, " && in->%s[%d]", p->dims, d - p->lead);
    }
}

static void null_checks(Writer *w)
{
    const Bundle *b = w->b;
    if (b->o->io_in_arena) {
        line(w, "if (!ctx)");
        line(w, "    return IGRT_ERR_NULL;");
        return;
    }
    line(w, "if (!ctx || !in || !out)");
    line(w, "    return IGRT_ERR_NULL;");
    for (int i = 0; i < b->nin; i++) {
        if (b->in[i].here) /* once it is known which are there */
            continue;
        StrBuf some = {0};
        sb_puts(&some, "");
        print_has_elements(&some, b, &b->in[i]);
        line(w, "if (!in->%s%s)", b->in[i].field, some.data);
        line(w, "    return IGRT_ERR_INPUT;");
        sb_free(&some);
    }
    for (int i = 0; i < b->nout; i++) {
        line(w, "if (!out->%s)", b->out[i].field);
        line(w, "    return IGRT_ERR_OUTPUT;");
    }
}

/* --io-in-arena: a tensor that the caller has elsewhere is copied to its place, or from there. */
static void copies_in(Writer *w)
{
    Bundle *b = w->b;
    for (int i = 0; i < b->nin; i++) {
        const Port *p = &b->in[i];
        StrBuf at = {0};
        address(&at, b, p->b, NULL, true);
        line(w, "if (in && in->%s && in->%s != %s)", p->field, p->field, at.data);
        line(w, "    memmove(%s, in->%s, %lld);", at.data, p->field, (long long)p->b->bytes);
        sb_free(&at);
    }
    if (!b->nin)
        line(w, "(void)in;");
}

static void copies_out(Writer *w)
{
    Bundle *b = w->b;
    for (int i = 0; i < b->nout; i++) {
        const Port *p = &b->out[i];
        StrBuf at = {0};
        address(&at, b, p->b, NULL, false);
        line(w, "if (out && out->%s && out->%s != %s)", p->field, p->field, at.data);
        line(w, "    memmove(out->%s, %s, %lld);", p->field, at.data, (long long)p->b->bytes);
        sb_free(&at);
    }
    if (!b->nout)
        line(w, "(void)out;");
}

/* Inputs whose value was known at compile time: anything else is refused. */
static void bound_checks(Writer *w)
{
    const Bundle *b = w->b;
    for (int i = 0; b->c->bound && i < b->nin; i++) {
        Node *bound = b->c->bound[i];
        if (!bound || bound->op != OP_DATA || b->in[i].b->dtype == INGOT_STRING)
            continue;
        const Data *d = bound->arg.ptr;
        line(w,
             "if (igrt_checksum(in->%s, %zu) != UINT64_C(0x%016llx)) /* bound at compile time */",
             b->in[i].field, d->nbytes, (unsigned long long)igrt_checksum(d->bytes, d->nbytes));
        line(w, "    return IGRT_ERR_BIND;");
    }
}

bool steps_have(const Block *steps, StepKind kind)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == kind || steps_have(&s->body, kind) || steps_have(&s->other, kind))
            return true;
    }
    return false;
}

/* A function is written whole: gives what it needs, and the next one needs nothing yet. */
static unsigned needs_taken(Bundle *b)
{
    unsigned needs = b->needs;
    b->all_needs |= needs;
    b->needs = 0;
    return needs;
}

/* What a function needs of the context that is reached through `from`. */
static void context_locals(Writer *w, unsigned needs, const char *from)
{
    Bundle *b = w->b;
    for (int i = 0; b->memory && i < b->p->nmemory; i++) {
        if (b->memory[i].needed)
            line(w, "unsigned char *const %s = %s->memory[%s];", b->memory[i].base, from,
                 b->memory[i].index);
        b->memory[i].needed = false;
    }
    if (needs & NEED_ARENA)
        line(w, "unsigned char *const arena = %s->arena;", from);
    if (needs & NEED_WEIGHTS)
        line(w, "const unsigned char *const weights = %s->weights;", from);
    if (needs & NEED_SYM)
        line(w, "int64_t *const sym = %s->sym;", from);
}

void run_locals(Writer *w, bool calls)
{
    unsigned needs = needs_taken(w->b);
    context_locals(w, needs, "ctx");
    if (w->b->gpu)
        gpu_locals(w, needs);
    if (calls)
        line(w, "igrt_status status;");
    if (needs & NEED_FAULT)
        line(w, "memset(&ctx->fault, 0, sizeof ctx->fault);");
    if (needs & NEED_PROFILE)
        line(w, "uint64_t since = ctx->config.profile ? now(ctx) : 0;");
    if (needs & NEED_PROFILE && w->b->gpu) {
        line(w, "if (ctx->config.profile)");
        line(w, "    (void)igrt_gpu_time_begin(gpu);");
    }
}

/* The steps of a GPU's bundle that need nothing of the host. */
static void function_enqueue(Writer *w)
{
    Writer body = {.b = w->b};
    const bool several = w->b->p->ndevice > 1, aside = gpu_steps_aside(w->b);
    if (several)
        (void)gpu_devices_steps(&body, NULL);
    else if (aside)
        gpu_asides_steps(&body);
    else
        run_steps(&body, &w->b->p->main);
    sb_printf(&w->sb, "\nstatic igrt_status enqueue%s(%s_ctx *ctx)\n{\n",
              several || aside ? "_steps" : "", w->b->name);
    w->depth = 1;
    const char *text = body.sb.data ? body.sb.data : "    (void)ctx;\n";
    run_locals(w, false);
    if (several)
        line(w, "void *const *kernel = ctx->kernel[0];");
    sb_puts(&w->sb, text);
    line(w, "return IGRT_OK;");
    sb_puts(&w->sb, "}\n");
    w->depth = 0;
    if (several)
        gpu_devices_enqueue(&w->sb, w->b);
    else if (aside)
        gpu_asides_enqueue(&w->sb, w->b);
    sb_free(&body.sb);
}

static void function_run(Writer *w)
{
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    const char *n = b->name,
               *parameters = arena_printf(b->a, "%s_ctx *ctx, const %s_inputs *in, %s_outputs *out",
                                          n, b->io, b->io);
    const bool flush = !b->gpu && !b->c->keep_subnormals;
    if (flush)
        sb_printf(sb, "\nstatic %s_status run_steps(%s)\n{\n", n, parameters);
    else
        sb_printf(sb, "\n%s_status %s(%s)\n{\n", n, b->entry, parameters);
    w->depth = 1;
    null_checks(w);
    StrBuf before = *sb;
    *sb = (StrBuf){0};
    bound_checks(w);
    if (b->o->io_in_arena)
        copies_in(w);
    run_dims_in(w);
    if (sb->len)
        sb_puts(sb, "\n");
    if (b->gpu) {
        Writer all = {.b = b};
        if (!gpu_is_apart(b))
            run_steps(&all, &b->p->main);
        gpu_steps(w, all.sb.data ? all.sb.data : "");
        sb_free(&all.sb);
    } else if (b->p->ndevice > 1 && !b->gpu) {
        devices_run(w);
    } else {
        w->depth = 0;
        run_steps(w, &b->p->main);
        w->depth = 1;
    }
    if (b->o->io_in_arena)
        copies_out(w);
    run_dims_out(w);
    run_lengths_out(w);
    StrBuf body = *sb;
    *sb = before;
    const char *text = body.data ? body.data : "";
    run_locals(w, b->p->ndevice == 1 && steps_have(&b->p->main, STEP_CALL));
    sb_puts(sb, "\n");
    sb_puts(sb, text);
    sb_free(&body);
    line(w, "return IGRT_OK;");
    sb_puts(sb, "}\n");
    if (flush)
        sb_printf(sb,
                  "\n%s_status %s(%s)\n{\n"
                  "    const uint64_t mode = igrt_fp_flush(); /* subnormal numbers are zeros */\n"
                  "    const %s_status status = run_steps(ctx, in, out);\n"
                  "    igrt_fp_restore(mode);\n    return status;\n}\n",
                  n, b->entry, parameters, n);
}

/* Does it ask config.stop after each step?  A GPU's steps are enqueued long before they are done,
 * and firmware has no bytes to spare for it. */
static bool can_stop(const Bundle *b)
{
    return !b->gpu && !b->target->bare;
}

/* What init asks of config.arena. */
static const char *arena_wanted(const Bundle *b)
{
    return arena_bytes(b) && !b->memory
               ? arena_printf(b->a, "%s_ARENA_BYTES(config ? config->threads : 1)", b->upper)
               : "0";
}

/* The state of random numbers begins with the caller's seed. */
static void seed_state(StrBuf *sb, const Bundle *b)
{
    if (!b->c->random)
        return;
    const Buffer *state = b->p->state[b->c->random->arg.i];
    if (b->gpu)
        sb_printf(sb,
                  "    TRY(igrt_gpu_write(&ctx->gpu, ctx->mem[MEM_ARENA], %lld, &ctx->config.seed, "
                  "sizeof ctx->config.seed, 1));\n",
                  (long long)state->offset);
    else
        sb_printf(sb,
                  "    memcpy((unsigned char *)ctx->%s + %lld, &ctx->config.seed, sizeof "
                  "ctx->config.seed);\n",
                  b->memory ? arena_printf(b->a, "memory[%s]", b->memory[b->p->state_memory].index)
                            : "arena",
                  (long long)state->offset);
}

/* What failed on a device is told, and nothing of it stays. */
static void init_ends(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb,
              "    if (status != IGRT_OK) {\n"
              "        igrt_fault fault = ctx->fault;\n"
              "        igrt_gpu_explain(%s, status, &fault);\n"
              "        release(ctx);\n"
              "        ctx->fault = fault; /* what there is not */\n"
              "    }\n"
              "    return status;\n}\n",
              b->p->ndevice > 1 ? "igrt_gpus_failed(&ctx->gpu, ctx->beside, DEVICES)"
                                : "&ctx->gpu");
}

static void function_init(Writer *w)
{
    const Bundle *b = w->b;
    const char *n = b->name, *u = b->upper;
    StrBuf *sb = &w->sb;
    const bool blob = b->mode == WEIGHTS_BLOB, asks = bundle_asks_machine(b);
    if (b->memory)
        memory_table(sb, b, "memory_bytes");
    sb_printf(sb,
              "\n%s%s_status %s_init(%s_ctx *ctx, const %s_config *config)\n{\n"
              "    igrt_status status;\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n",
              asks ? "IGRT_CPU_ANY " : "", n, n, n, n);
    if (asks)
        sb_printf(sb,
                  "    status = igrt_cpu_check(%s_cpu_needs, &ctx->fault);\n"
                  "    if (status != IGRT_OK)\n        return status;\n",
                  n);
    sb_printf(sb,
              "    status = igrt_config_check(config, %s, %s_ARENA_ALIGN,\n"
              "                               %s_WEIGHTS_BYTES);\n",
              arena_wanted(b), u, u);
    if (!can_stop(b))
        sb_puts(sb, "    if (status == IGRT_OK && config->stop)\n"
                    "        status = IGRT_ERR_CONFIG;\n");
    if (blob && !b->gpu)
        sb_printf(sb,
                  "    if (status == IGRT_OK)\n"
                  "        status = igrt_weights_check(config, %s_WEIGHTS_SUM);\n",
                  u);
    if (b->memory)
        sb_printf(sb,
                  "    if (status == IGRT_OK)\n"
                  "        status = igrt_memory_check(config, memory_bytes, %s_MEMORIES, "
                  "%s_ARENA_ALIGN);\n",
                  u, u);
    sb_puts(sb, "    if (status != IGRT_OK)\n        return status;\n"
                "    ctx->config = *config;\n"
                "    if (!config->clock)\n        ctx->config.profile = NULL;\n");
    if (b->memory)
        sb_printf(sb,
                  "    for (int i = 0; i < %s_MEMORIES; i++)\n"
                  "        ctx->memory[i] = config->memory[i].data;\n"
                  "    ctx->config.memory = NULL; /* the list need not stay */\n",
                  u);
    else
        sb_puts(sb, "    ctx->arena = config->arena;\n");
    if (blob)
        sb_puts(sb, "    ctx->weights = config->weights;\n");
    else if (b->mode == WEIGHTS_INCBIN)
        sb_printf(sb, "    ctx->weights = %s_weights_blob;\n", n);
    else
        sb_puts(sb, "    ctx->weights = NULL;\n");
    /* without functions of string.h: where a system checks their sizes they are inline, and cannot
     * be so in what is compiled for any processor while its file is for another (IGRT_CPU_ANY) */
    sb_puts(sb, "    ctx->fault = (igrt_fault){0};\n");
    if (b->nsym)
        sb_printf(sb,
                  "    for (int i = 0; i < %d; i++)\n"
                  "        ctx->sym[i] = 0;\n",
                  b->nsym);
    if (b->gpu)
        sb_printf(sb,
                  "    status = start(ctx);\n"
                  "    if (status == IGRT_OK)\n        status = %s_reset(ctx);\n",
                  n);
    if (b->gpu)
        gpu_ready(sb, b);
    if (b->gpu)
        init_ends(sb, b);
    else
        sb_printf(sb, "    return %s_reset(ctx);\n}\n", n);
}

void gpu_zero_states(StrBuf *sb, const Bundle *b, int device, int64_t bytes)
{
    const char *gpu = gpu_device(b, device);
    sb_printf(sb,
              "    TRY(igrt_gpu_zero(%s, ctx->mem[%s], %lld)); /* the states come first */\n"
              "    TRY(igrt_gpu_finish(%s));\n",
              gpu, gpu_arena(b, device), (long long)bytes, gpu);
}

static void function_reset(Writer *w)
{
    Bundle *b = w->b;
    const char *n = b->name;
    StrBuf *sb = &w->sb;
    sb_printf(
        sb, "\n%s_status %s_reset(%s_ctx *ctx)\n{\n    if (!ctx)\n        return IGRT_ERR_NULL;\n",
        n, n, n);
    if (b->gpu && b->p->ndevice > 1)
        gpu_devices_reset(sb, b);
    else if (b->p->state_bytes && b->gpu)
        gpu_zero_states(sb, b, 0, b->p->state_bytes);
    else if (b->p->state_bytes)
        sb_printf(sb, "    memset(ctx->%s, 0, %lld); /* the states come first */\n",
                  b->memory ? arena_printf(b->a, "memory[%s]", b->memory[b->p->state_memory].index)
                            : "arena",
                  (long long)b->p->state_bytes);
    states_begin(sb, b);
    seed_state(sb, b);
    for (int i = 0; i < b->c->nvar; i++)
        if (b->c->vars[i].length) {
            char name[VAR_NAME_BYTES + 8];
            sb_printf(sb, "    ctx->sym[%s] = 0; /* the states that grow are empty */\n",
                      sym_name(b, i, name));
        }
    sb_printf(sb, "    return IGRT_OK;\n}\n");
    if (b->gpu)
        sb_printf(sb, "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    if (ctx)\n        release(ctx);\n}\n",
                  n, n);
    else
        sb_printf(sb, "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    (void)ctx;\n}\n", n, n);
    if (!b->has_selftest && !b->whole)
        sb_printf(sb,
                  "\n%s_status %s_selftest(%s_ctx *ctx)\n{\n"
                  "    return ctx ? IGRT_ERR_NO_SELFTEST : IGRT_ERR_NULL;\n}\n",
                  n, n, n);
}

static void lib_prototypes(StrBuf *sb, const Bundle *b, Map *seen, const Block *steps)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == STEP_CALL) {
            uint64_t key = hash_bytes(1, s->call->name, strlen(s->call->name));
            if (!map_get(seen, key) && s->call->custom)
                sb_printf(sb, "IGRT_LIB_FUNCTION(%s_%s);\n", whole_name(b), s->call->name);
            else if (!map_get(seen, key))
                sb_printf(sb, "IGRT_LIB(%s);\n", s->call->name);
            map_put(seen, key, (void *)(uintptr_t)s->call->name);
        }
        lib_prototypes(sb, b, seen, &s->body);
        lib_prototypes(sb, b, seen, &s->other);
    }
}

static void run_includes(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb, "/*\n * %s.c - the steps of ", b->io);
    print_comment_text(sb, b->source);
    sb_printf(sb, ", in order. The kernels are in %s_kernels%s.\n */\n", b->name,
              b->gpu ? b->target->language->suffix : "_*.c");
    sb_printf(sb, "#include \"%s_igrt.h\"\n#include \"%s.h\"\n", whole_name(b), b->name);
    if (b->all_needs & NEED_MATH)
        sb_puts(sb, "\n#include <math.h>");
    sb_puts(sb, "\n#include <string.h>\n\n");
    if (b->all_needs & NEED_NUM)
        sb_puts(sb, "#include \"igrt_num.h\"\n");
    if (bundle_asks_machine(b))
        sb_puts(sb, "#include \"igrt_cpu.h\"\n");
    if (b->gpu)
        sb_printf(sb, "#include \"igrt_gpu_%s.h\"\n", b->target->name);
    if (b->gpu && b->p->ndevice > 1)
        sb_puts(sb, "#include \"igrt_gpus.h\"\n");
    else if (gpu_steps_aside(b))
        sb_puts(sb, "#include \"igrt_aside.h\"\n");
    else if (b->p->ndevice > 1)
        sb_puts(sb, "#include \"igrt_devices.h\"\n");
    if (plan_of_processes(b->p))
        sb_printf(sb, "#include \"igrt_comm%s.h\"\n", b->gpu ? "_cuda" : "");
    if (b->nkernel)
        sb_printf(sb, "#include \"%s_kernels.h\"\n", b->name);
    if (b->mode == WEIGHTS_ARRAY)
        sb_printf(sb, "#include \"%s_weights.h\"\n", weights_prefix(b));
    if (b->mode == WEIGHTS_INCBIN && !bundle_asks_machine(b))
        sb_printf(sb, "extern const unsigned char %s_weights_blob[]; /* %s_weights.S */\n", b->name,
                  b->name);
    if (bundle_asks_machine(b) && !b->first)
        sb_printf(
            sb,
            "\n/* The instructions that this file and the kernels may hold: %s_init.c asks for "
            "them. */\nextern const uint64_t %s_cpu_needs;\n"
            "const uint64_t %s_cpu_needs = IGRT_CPU_BUILT;\n",
            b->name, b->name, b->name);
}

/* done(), DONE() and RUN(): what steps say when they are done, and how threads share one. */
static void step_macros(StrBuf *sb, const Bundle *b)
{
    const char *at_hand = b->p->ndevice > 1 ? "queue(ctx, ctx->queue)" : "&ctx->gpu";
    if (b->all_needs & NEED_PROFILE)
        sb_printf(
            sb,
            "\n/* Tells the profile how long the step took. */\n"
            "#define DONE(step, name)                                                          \\\n"
            "    do {                                                                          \\\n"
            "        if (ctx->config.profile)                                                  \\\n"
            "            since = done(ctx, step, name, since);                                 \\\n"
            "%s"
            "    } while (0)\n"
            "\nstatic uint64_t now(const %s_ctx *ctx)\n{\n"
            "    return ctx->config.clock(ctx->config.user);\n}\n"
            "\nstatic uint64_t done(%s%s_ctx *ctx, int step, const char *name, uint64_t "
            "since)\n{\n%s    return now(ctx);\n}\n",
            can_stop(b) ? "        if (ctx->config.stop && ctx->config.stop(ctx->config.user))     "
                          "          "
                          "\\\n"
                          "            return IGRT_ERR_STOPPED;                                    "
                          "          "
                          "\\\n"
                        : "",
            b->name, b->gpu ? "" : "const ", b->name,
            b->gpu
                ? arena_printf(
                      b->a,
                      "    uint64_t ns = 0; /* by the device's clock, where it has one */\n"
                      "    (void)igrt_gpu_time_end(%s, &ns); /* a failure shows in the next "
                      "call "
                      "*/\n"
                      "    ctx->config.profile(ctx->config.user, step, name, ns ? ns : now(ctx) - "
                      "since);\n"
                      "    (void)igrt_gpu_time_begin(%s);\n",
                      at_hand, at_hand)
                : "    ctx->config.profile(ctx->config.user, step, name, now(ctx) - since);\n");
    if (b->all_needs & NEED_PARTS) {
        const bool devices = b->p->ndevice > 1;
        sb_printf(
            sb,
            "\n/* A step: %s of a kernel, whose arguments follow. */\n"
            "#define RUN(step, kernel, parts, ...)                                             \\\n"
            "    do {                                                                          \\\n"
            "        const struct kernel args = {__VA_ARGS__};                                 \\\n"
            "%-82s\\\n"
            "        DONE(step, #kernel);                                                      \\\n"
            "    } while (0)\n",
            devices ? "its device's thread does all parts" : "threads share the parts",
            devices ? "        kernel(&args, 0, parts);"
                    : "        igrt_parallel(&ctx->config, kernel, &args, parts);");
    }
}

static void opening(StrBuf *sb, Bundle *b)
{
    run_includes(sb, b);
    Map seen = {0};
    StrBuf libs = {0};
    lib_prototypes(&libs, b, &seen, &b->p->main);
    if (libs.len)
        sb_printf(sb, "\n/* library kernels */\n%s", libs.data);
    sb_free(&libs);
    map_free(&seen);
    if (b->nsym) {
        sb_puts(sb, "\n/* places in ctx->sym */\nenum {\n");
        for (int i = 0; i < b->c->nvar; i++) {
            char name[VAR_NAME_BYTES + 8];
            if (b->sym[i] >= 0)
                sb_printf(sb, "    %s = %d,\n", sym_name(b, i, name), b->sym[i]);
        }
        sb_puts(sb, "};\n");
    }
    if (b->all_needs & NEED_WEIGHTS)
        weight_offsets(sb, b);
    if (b->gpu)
        gpu_constants(sb, b);
    step_macros(sb, b);
}

/* <name>_init.c: the other files may hold instructions that the processor lacks, so init lies in
 * none of them. */
static void write_init(Bundle *b)
{
    Writer w = {.b = b};
    sb_printf(&w.sb, "/*\n * %s_init.c - init of ", b->name);
    print_comment_text(&w.sb, b->source);
    sb_printf(&w.sb,
              ": compiled for any processor, for it asks whether this one has what the other files "
              "are compiled for.\n */\n"
              "#include \"%s_igrt.h\"\n#include \"%s.h\"\n\n#include <string.h>\n\n"
              "#include \"igrt_cpu.h\"\n",
              whole_name(b), b->name);
    sb_printf(&w.sb, "\nextern const uint64_t %s_cpu_needs; /* %s.c */\n", b->name, b->name);
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(&w.sb, "extern const unsigned char %s_weights_blob[]; /* %s_weights.S */\n",
                  b->name, b->name);
    function_init(&w);
    bundle_source(b, arena_printf(b->a, "%s_init.c", b->name), &w.sb);
}

/* What was written, behind what its needs ask for: <name>.c. */
static void write_file(Writer *w, const char *name)
{
    StrBuf all = {0};
    opening(&all, w->b);
    sb_puts(&all, w->sb.data);
    sb_free(&w->sb);
    bundle_source(w->b, arena_printf(w->b->a, "%s.c", name), &all);
}

void bundle_run(Bundle *b)
{
    Writer w = {.b = b};
    if (b->gpu)
        gpu_functions(&w.sb, b);
    (void)needs_taken(b);
    if (b->gpu && gpu_is_apart(b)) {
        function_enqueue(&w);
        gpu_apart_functions(&w.sb, b);
        (void)needs_taken(b);
    }
    if (bundle_asks_machine(b))
        write_init(b);
    else
        function_init(&w);
    function_reset(&w);
    states_run(&w.sb, b);
    parts_functions(&w);
    if (!b->gpu)
        devices_functions(&w);
    function_run(&w);
    write_file(&w, b->name);
}

void bundle_function(Bundle *b)
{
    Writer w = {.b = b};
    (void)needs_taken(b);
    if (b->gpu && gpu_is_apart(b)) {
        function_enqueue(&w);
        gpu_apart_functions(&w.sb, b);
        (void)needs_taken(b);
    }
    parts_functions(&w);
    if (!b->gpu)
        devices_functions(&w);
    function_run(&w);
    write_file(&w, b->entry);
}
