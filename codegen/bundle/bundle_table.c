/* bundle_table.c - host/table.c, by which programs that were not written for this model know it:
 * the driver, and other languages, which load the model as a shared library; and host/main.c. */
#include <string.h>

#include "bundle.h"
#include "language.h"

void memory_table(StrBuf *sb, const Bundle *b, const char *name)
{
    sb_printf(sb, "\nstatic const size_t %s[] = {", name);
    for (int i = 0; i < b->p->nmemory; i++)
        sb_printf(sb, "%s%s", i ? ", " : "", b->p->memories[i].bytes ? b->memory[i].bytes : "0");
    sb_puts(sb, "};\n");
}

static void bound_list(StrBuf *sb, const Port *p, bool high)
{
    const Buffer *buffer = p->b;
    sb_puts(sb, "{");
    for (int d = p->lead; d < buffer->rank; d++)
        sb_printf(sb, "%s%lld", d > p->lead ? ", " : "",
                  (long long)(high ? buffer->dims[d]->hi : buffer->dims[d]->lo));
    sb_puts(sb, buffer->rank > p->lead ? "}" : "0}");
}

const char *dtype_enum(ingot_dtype d)
{
    static const char *const name[] = {
#define DTYPE(id, ...) #id,
#include "dtypes.def"
    };
    return name[d];
}

/* "inputs" of run(), "train_step_inputs" of another function. */
static const char *table_name(const Bundle *b, const char *what)
{
    return b->first ? arena_printf(b->a, "%s_%s", b->io + strlen(b->name) + 1, what) : what;
}

static void io_table(StrBuf *sb, const Bundle *b, const Port *ports, int n, const char *what)
{
    if (!n)
        return;
    sb_printf(sb, "\nstatic const igrt_io %s[] = {\n", table_name(b, what));
    for (int i = 0; i < n; i++) {
        const Port *p = &ports[i];
        sb_puts(sb, "    {.name = ");
        print_string(sb, p->b->name ? p->b->name : "");
        sb_printf(sb, ",\n     .dtype = IGRT_%s,\n     .rank = %d,\n     .max_dims = ",
                  dtype_enum(p->b->dtype), p->b->rank - p->lead);
        bound_list(sb, p, true);
        if (p->dynamic) {
            sb_puts(sb, ",\n     .min_dims = ");
            bound_list(sb, p, false);
            sb_printf(sb, ",\n     .dims_offset = offsetof(%s_%s, %s)", b->io, what, p->dims);
        } else {
            sb_puts(sb, ",\n     .dims_offset = IGRT_NO_DIMS");
        }
        sb_printf(sb, ",\n     .data_offset = offsetof(%s_%s, %s)},\n", b->io, what, p->field);
    }
    sb_puts(sb, "};\n");
}

static void group_offset(StrBuf *sb, const Bundle *b, const PortGroup *g, const Node *has,
                         const char *what, const char *member)
{
    if (has)
        sb_printf(sb, ", .%s_offset = offsetof(%s_%s, %s_%s)", member, b->io, what, g->field,
                  member);
    else
        sb_printf(sb, ", .%s_offset = IGRT_NO_DIMS", member);
}

static void group_table(StrBuf *sb, const Bundle *b, const PortGroup *groups, int n,
                        const char *what)
{
    if (!n)
        return;
    sb_printf(sb, "\nstatic const igrt_group %s_groups[] = {\n", table_name(b, what));
    for (int i = 0; i < n; i++) {
        const PortGroup *g = &groups[i];
        sb_puts(sb, "    {.name = ");
        print_string(sb, g->g->name);
        sb_printf(sb, ", .first = %d, .n = %d", g->g->first, g->g->n);
        group_offset(sb, b, g, g->g->length, what, "length");
        group_offset(sb, b, g, g->g->present, what, "present");
        sb_puts(sb, "},\n");
    }
    sb_puts(sb, "};\n");
}

/* What a function takes and gives. */
static void function_tables(StrBuf *sb, const Bundle *b)
{
    io_table(sb, b, b->in, b->nin, "inputs");
    io_table(sb, b, b->out, b->nout, "outputs");
    group_table(sb, b, b->in_group, b->nin_group, "inputs");
    group_table(sb, b, b->out_group, b->nout_group, "outputs");
}

/* The members that an igrt_model and an igrt_function have alike. */
static void function_members(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb,
              "    .inputs = %s,\n    .n_inputs = %d,\n    .outputs = %s,\n    .n_outputs = %d,\n"
              "    .inputs_bytes = sizeof(%s_inputs),\n    .outputs_bytes = sizeof(%s_outputs),\n",
              b->nin ? table_name(b, "inputs") : "NULL", b->nin,
              b->nout ? table_name(b, "outputs") : "NULL", b->nout, b->io, b->io);
    if (b->nin_group)
        sb_printf(sb, "    .input_groups = %s_groups,\n    .n_input_groups = %d,\n",
                  table_name(b, "inputs"), b->nin_group);
    if (b->nout_group)
        sb_printf(sb, "    .output_groups = %s_groups,\n    .n_output_groups = %d,\n",
                  table_name(b, "outputs"), b->nout_group);
}

/* Further functions, and the states that they share with run(). */
static void further_functions(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->nfunction; i++) {
        const Bundle *f = &b->function[i];
        function_tables(sb, f);
        sb_printf(sb,
                  "\nstatic igrt_status %s(void *ctx, const void *in, void *out)\n{\n"
                  "    return %s(ctx, in, out);\n}\n",
                  table_name(f, "call"), f->entry);
    }
    if (b->nfunction)
        sb_puts(sb, "\nstatic const igrt_function functions[] = {");
    for (int i = 0; i < b->nfunction; i++) {
        const Bundle *f = &b->function[i];
        sb_printf(sb, "\n    {.name = \"%s\",\n", f->entry + strlen(b->name) + 1);
        function_members(sb, f);
        sb_printf(sb, "    .call = %s},\n", table_name(f, "call"));
    }
    if (b->nfunction)
        sb_puts(sb, "};\n");
    if (bundle_has_states(b))
        sb_printf(sb,
                  "\nstatic igrt_status state_at(const void *ctx, int i, igrt_state *state)\n{\n"
                  "    return %s_state(ctx, i, state);\n}\n",
                  b->name);
}

static void table_includes(StrBuf *sb, const Bundle *b, const Bundle *gpu, bool asks)
{
    const char *n = b->name;
    sb_printf(
        sb,
        "/* table.c - what %s is, for programs that were not written for it: igrt_bundle. */\n"
        "#include <stddef.h>\n\n%s#include \"driver.h\"\n#include \"igrt_pool.h\"\n#include "
        "\"%s.h\"\n%s",
        n, gpu || asks || b->c->vocabulary ? arena_printf(b->a, "#include \"%s_igrt.h\"\n", n) : "",
        n, gpu ? arena_printf(b->a, "#include \"igrt_gpu_%s.h\"\n", gpu->target->name) : "");
    if (asks)
        sb_puts(sb, "#include \"igrt_cpu.h\"\n");
    if (b->c->vocabulary)
        sb_puts(sb, "#include \"igrt_chat.h\"\n#include \"igrt_sample.h\"\n");
}

/* The model's functions, as the table has them: of contexts without a type. */
static void table_calls(StrBuf *sb, const Bundle *b, const Bundle *gpu)
{
    const char *n = b->name, *u = b->upper;
    const char *member = b->sub ? arena_printf(b->a, "of.%s.gpu", b->sub[0].suffix) : "gpu";
    if (!b->memory)
        sb_printf(sb,
                  "\nstatic size_t arena_bytes(int threads)\n{\n    (void)threads;\n"
                  "    return %s_ARENA_BYTES(threads);\n}\n",
                  u);
    sb_printf(sb,
              "\nstatic igrt_status init(void *ctx, const igrt_config *config)\n{\n"
              "    return %s_init(ctx, config);\n}\n"
              "\nstatic igrt_status run(void *ctx, const void *in, void *out)\n{\n"
              "    return %s_run(ctx, in, out);\n}\n"
              "\nstatic igrt_status reset(void *ctx)\n{\n    return %s_reset(ctx);\n}\n",
              n, n, n);
    if (b->sub)
        sb_printf(sb,
                  "\nstatic const char *target(const void *ctx)\n{\n"
                  "    return %s_target(ctx);\n}\n",
                  n);
    if (gpu) /* of several targets only what asks for a GPU calls these */
        sb_printf(sb,
                  "\nstatic igrt_status memory(void *ctx, size_t bytes, const void *data, void "
                  "**memory)\n{\n"
                  "    igrt_gpu *const gpu = &((%s_ctx *)ctx)->%s;\n"
                  "    igrt_gpu_mem mem = igrt_gpu_given(*memory);\n"
                  "    igrt_status status = IGRT_OK;\n"
                  "    if (bytes)\n        status = igrt_gpu_alloc(gpu, bytes, data, &mem);\n"
                  "    else\n        igrt_gpu_free(gpu, mem);\n"
                  "    *memory = bytes ? %s : NULL;\n"
                  "    return status;\n}\n"
                  "\nstatic igrt_status wait(void *ctx)\n{\n"
                  "    return igrt_gpu_finish(&((%s_ctx *)ctx)->%s);\n}\n",
                  n, member,
                  gpu->target->language->binds ? "igrt_gpu_pointer(mem)" : "(void *)(uintptr_t)mem",
                  n, member);
    if (b->has_selftest)
        sb_printf(sb,
                  "\nstatic igrt_status selftest(void *ctx)\n{\n    return %s_selftest(ctx);\n}\n",
                  n);
    sb_printf(sb,
              "\nstatic void deinit(void *ctx)\n{\n    %s_deinit(ctx);\n}\n"
              "\nstatic const igrt_fault *fault(const void *ctx)\n{\n"
              "    return &((const %s_ctx *)ctx)->fault;\n}\n",
              n, n);
}

/* From text to tokens: the functions, and the vocabulary: a file, or linked in as weights are. */
static void text_record(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    if (b->c->vocabulary)
        sb_printf(sb,
                  "\nstatic const igrt_text_calls text = {\n"
                  "    .%s,\n    .bytes = %s_VOCAB_BYTES,\n"
                  "    .open = igrt_vocab_open,\n    .tokenize = igrt_tokenize,\n"
                  "    .token_text = igrt_token_text,\n    .find = igrt_token_find,\n"
                  "    .sample = igrt_sample,\n    .form = igrt_chat_form_of,\n"
                  "    .tokenize_typed = igrt_tokenize_typed,\n};\n",
                  b->mode == WEIGHTS_INCBIN ? arena_printf(b->a, "data = %s_vocab_blob", n)
                                            : arena_printf(b->a, "file = \"%s.vocab\"", n),
                  b->upper);
}

static void model_record(StrBuf *sb, const Bundle *b, const Bundle *gpu, bool asks)
{
    const char *n = b->name, *u = b->upper;
    text_record(sb, b);
    sb_printf(sb,
              "\nstatic const igrt_model model = {\n"
              "    .name = \"%s\",\n"
              "    .ctx_bytes = sizeof(%s_ctx),\n"
              "    .arena_align = %s_ARENA_ALIGN,\n"
              "%s",
              n, n, u,
              b->memory ? "    .memory_bytes = memories,\n    .n_memories = sizeof "
                          "memories / sizeof *memories,\n"
                        : "    .arena_bytes = arena_bytes,\n");
    function_members(sb, b);
    if (b->nfunction)
        sb_printf(sb, "    .functions = functions,\n    .n_functions = %d,\n", b->nfunction);
    if (bundle_has_states(b))
        sb_printf(sb, "    .n_states = %s_STATES,\n    .state = state_at,\n", u);
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(sb,
                  "    .weights_file = \"%s.weights\",\n    .weights_bytes = %s_WEIGHTS_BYTES,\n",
                  n, u);
    sb_printf(sb,
              "    .init = init,\n    .run = run,\n    .reset = reset,\n%s    .deinit = deinit,\n  "
              "  .fault = fault,\n%s%s%s%s};\n"
              "\nconst igrt_table igrt_bundle = {\n"
              "    .abi = IGRT_ABI_VERSION,\n"
              "    .model_bytes = sizeof(igrt_model),\n"
              "    .io_bytes = sizeof(igrt_io),\n"
              "    .group_bytes = sizeof(igrt_group),\n"
              "    .config_bytes = sizeof(igrt_config),\n"
              "    .pool_bytes = sizeof(igrt_pool),\n"
              "    .model = &model,\n"
              "    .status_text = igrt_status_text,\n};\n",
              b->has_selftest ? "    .selftest = selftest,\n" : "",
              gpu ? "    .memory = memory,\n    .wait = wait,\n" : "",
              b->sub ? "    .target = target,\n" : "",
              asks ? "    .cpu_name = igrt_cpu_name,\n" : "",
              b->c->vocabulary ? "    .text = &text,\n" : "");
}

static void write_table(Bundle *b)
{
    StrBuf sb = {0};
    const Bundle *gpu = gpu_part(b);
    const bool asks = bundle_asks_machine(b->sub ? &b->sub[b->nsub - 1] : b);
    table_includes(&sb, b, gpu, asks);
    function_tables(&sb, b);
    if (b->memory)
        memory_table(&sb, b, "memories");
    table_calls(&sb, b, gpu);
    further_functions(&sb, b);
    model_record(&sb, b, gpu, asks);
    bundle_file(b, "host/table.c", &sb);
}

void bundle_main(Bundle *b)
{
    if (bundle_is_bare(b))
        return;
    write_table(b);
    StrBuf sb = {0};
    const char *n = b->name;
    sb_printf(&sb,
              "/* main.c - the command line of %s: ./%s IN OUT; ./%s --help tells more. */\n"
              "#include \"driver.h\"\n"
              "\nint main(int argc, char **argv)\n{\n%s"
              "    return igrt_driver_main(argc, argv, igrt_bundle.model);\n}\n",
              n, n, n, b->c->vocabulary ? "    igrt_driver_chat = driver_chat;\n" : "");
    bundle_file(b, "host/main.c", &sb);
}
