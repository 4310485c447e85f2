/* bundle_header.c - <name>.h, the interface of a compiled model. */
#include "bundle.h"

static const char *io_type(const Port *port)
{
    return c_type(port->b->dtype);
}

void print_port(StrBuf *sb, const Bundle *b, const Port *port)
{
    sb_puts(sb, "\"");
    print_comment_text(sb, port->b->name ? port->b->name : "");
    sb_puts(sb, "\" ");
    Node *const *dims = port->b->dims; /* NULL where there are none */
    print_shape(sb, b->c, port->b->dtype, port->b->rank - port->lead,
                dims ? dims + port->lead : NULL);
    sb_puts(sb, port->here ? ", may be absent" : "");
    sb_puts(sb, port->form && port->form->last ? ", channels last" : "");
}

/* The group that starts at a port, or NULL; several that are empty may. */
static const PortGroup *group_at(const PortGroup *group, int n, int *next, int port)
{
    return *next < n && group[*next].g->first == port ? &group[(*next)++] : NULL;
}

/* The members of a sequence or an optional. */
static void group_members(StrBuf *sb, const Bundle *b, const Port *ports, const PortGroup *g,
                          const char *qualifier)
{
    const Port *first = &ports[g->g->first];
    bool array = g->g->length != NULL;
    for (int i = 0; array && i < g->g->n; i++) {
        sb_puts(sb, i ? "    /* " : "    /* elements: ");
        print_port(sb, b, &first[i]);
        sb_puts(sb, " */\n");
    }
    if (g->g->n) {
        sb_printf(sb, "    %s%s *%s", first->b->dtype == INGOT_STRING ? "" : qualifier,
                  io_type(first), g->field);
        if (array) {
            sb_printf(sb, "[%d];\n", g->g->n);
        } else {
            sb_puts(sb, "; /* ");
            print_port(sb, b, first);
            sb_puts(sb, " */\n");
        }
        if (array && g->rank)
            sb_printf(sb, "    int64_t %s_dims[%d][%d];\n", g->field, g->g->n, g->rank);
        else if (!array && first->dynamic)
            sb_printf(sb, "    int64_t %s_dims[%d];\n", g->field, g->rank);
    }
    if (array)
        sb_printf(sb, "    int64_t %s_length; /* of the sequence, %lld..%lld */\n", g->field,
                  (long long)g->g->length->lo, (long long)g->g->length->hi);
    if (g->g->present)
        sb_printf(sb, "    int64_t %s_present; /* of the optional: 1 or 0 */\n", g->field);
}

/* The members of <name>_inputs or <name>_outputs. */
static void members(StrBuf *sb, const Bundle *b, const Port *ports, int n, const PortGroup *groups,
                    int ngroup, const char *qualifier)
{
    const PortGroup *g;
    for (int i = 0, at = 0; i < n || at < ngroup;) {
        g = group_at(groups, ngroup, &at, i);
        if (g) {
            group_members(sb, b, ports, g, qualifier);
            i += g->g->n;
            continue;
        }
        const Port *p = &ports[i++];
        sb_printf(sb, "    %s%s *%s; /* ", p->b->dtype == INGOT_STRING ? "" : qualifier, io_type(p),
                  p->field);
        print_port(sb, b, p);
        sb_puts(sb, " */\n");
        if (p->dynamic)
            sb_printf(sb, "    int64_t %s[%d];\n", p->dims, p->b->rank);
    }
    if (!n && !ngroup)
        sb_puts(sb, "    int none; /* a struct needs a member */\n");
}

static void bounds_comment(StrBuf *sb, const Bundle *b)
{
    bool any = false;
    for (int i = 0; i < b->c->nvar; i++) {
        const Var *v = &b->c->vars[i];
        if (v->kind != VAR_DIM)
            continue;
        sb_puts(sb, any ? "" : " *\n * run-time integers\n");
        any = true;
        sb_puts(sb, " *     ");
        print_comment_text(sb, v->name);
        sb_printf(sb, " = %lld..%lld%s\n", (long long)v->lo, (long long)v->hi,
                  v->length ? ", the length of states: 0 at first, then it grows" : "");
    }
}

static void states_comment(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->c->nstate; i++) {
        const StateTensor *s = &b->c->states[i];
        if (s->node == b->c->random)
            continue;
        sb_puts(sb, i ? " *     \""
                      : " * states, which live in the context from run to run\n *     \"");
        print_comment_text(sb, s->name);
        sb_puts(sb, "\" ");
        print_shape(sb, b->c, (ingot_dtype)s->node->dtype, s->node->rank, s->node->shape);
        if (s->grows) {
            sb_puts(sb, ", room for ");
            print_shape(sb, b->c, (ingot_dtype)s->node->dtype, s->node->rank, b->p->state[i]->dims);
        }
        sb_puts(sb, "\n");
    }
}

/* Of run-time integer i: what lies in the context. */
static void print_length(StrBuf *sb, const Bundle *b, int i)
{
    if (b->sub)
        sb_puts(sb, fat_sym(b, i));
    else
        sb_printf(sb, "ctx->sym[%d]", b->sym[i]);
}

/* What the states hold by now, and that they forget what follows a row: rows lie where they would
 * if there were all that there is room for. */
static void length_functions(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->c->nvar; i++) {
        const Var *v = &b->c->vars[i];
        if (!v->length)
            continue;
        sb_printf(
            sb,
            "\n/* The length of the states: 0 after %s_reset(); a run takes at most %lld, and "
            "makes it ",
            b->name, (long long)v->hi);
        if (v->next)
            print_dim(sb, b->c, v->next);
        const char *name = identifier(b->a, v->name);
        sb_printf(sb, ". */\nstatic inline int64_t %s_length_%s(const %s_ctx *ctx)\n{\n    return ",
                  b->name, name, b->name);
        print_length(sb, b, i);
        sb_printf(
            sb,
            ";\n}\n\n/* The states forget what follows their first n rows; IGRT_ERR_DIM: they "
            "have fewer. */\n"
            "static inline %s_status %s_keep_%s(%s_ctx *ctx, int64_t n)\n{\n"
            "    if (n < 0 || n > %s_length_%s(ctx))\n        return IGRT_ERR_DIM;\n    ",
            b->name, b->name, name, b->name, b->name, name);
        print_length(sb, b, i);
        sb_puts(sb, " = n;\n    return IGRT_OK;\n}\n");
    }
}

void ports_comment(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->nin; i++) {
        sb_printf(sb, " *     %d  ", i);
        print_port(sb, b, &b->in[i]);
        sb_puts(sb, "\n");
    }
    sb_puts(sb, " * outputs\n");
    for (int i = 0; i < b->nout; i++) {
        sb_printf(sb, " *     %d  ", i);
        print_port(sb, b, &b->out[i]);
        sb_puts(sb, "\n");
    }
}

static void opening(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb, "/*\n * %s.h - ", b->name);
    print_comment_text(sb, b->source);
    sb_puts(sb, " as C, compiled by ingot.\n *\n * inputs\n");
    ports_comment(sb, b);
    states_comment(sb, b);
    bounds_comment(sb, b);
    sb_puts(
        sb,
        " *\n"
        " * Tensors are dense, in row-major order, and the caller's. Where a dim is known at run "
        "time\n"
        " * only, it goes in and comes out through <tensor>_dims, and an output needs room for "
        "the\n"
        " * greatest dims. Nothing here allocates, prints or keeps state outside of the context:\n"
        " * contexts are independent of each other, and one context is for one thread at a time.\n"
        " */\n");
}

static void memory_macros(StrBuf *sb, const Bundle *b)
{
    const Plan *p = b->p;
    sb_puts(sb, "\n/* What config.memory[] has to be: their places in it, their sizes and "
                "alignment. */\nenum {");
    for (int i = 0; i < p->nmemory; i++)
        sb_printf(sb, "%s %s", i ? "," : "", b->memory[i].index);
    sb_printf(sb, ", %s_MEMORIES };\n", b->upper);
    for (int i = 0; i < p->nmemory; i++)
        sb_printf(sb, "#define %s ((size_t)%lld)%s\n", b->memory[i].bytes,
                  p->memories[i].bytes ? (long long)p->memories[i].bytes : 64,
                  p->memories[i].bytes ? "" : " /* unused, and may be absent */");
    sb_printf(sb, "#define %s_ARENA_ALIGN 64\n", b->upper);
}

int64_t arena_bytes(const Bundle *b)
{
    int64_t bytes = b->gpu ? gpu_arena_bytes(b) : b->p->arena_bytes;
    for (int i = 0; i < b->nsub; i++) {
        const int64_t own = arena_bytes(&b->sub[i]);
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

int64_t weights_file_bytes(const Bundle *b)
{
    const Bundle *last = b->sub ? &b->sub[b->nsub - 1] : b;
    return last->p->weights_bytes + (b->sub ? last->weights_at : 0);
}

static void arena_macros(StrBuf *sb, const Bundle *b)
{
    const int64_t bytes = arena_bytes(b);
    long long arena = bytes > 0 ? (long long)bytes : 64;
    sb_printf(sb,
              "\n/* What config.arena has to be. */\n"
              "#define %s_ARENA_BYTES(threads) ((size_t)%lld + 0 * (size_t)(threads))\n"
              "#define %s_ARENA_ALIGN 64\n",
              b->upper, arena, b->upper);
}

static void macros(StrBuf *sb, const Bundle *b)
{
    if (b->memory)
        memory_macros(sb, b);
    else
        arena_macros(sb, b);
    bool separate = b->mode == WEIGHTS_BLOB;
    sb_printf(sb,
              "\n/* What config.weights has to be: %s. */\n"
              "#define %s_WEIGHTS_BYTES ((size_t)%lld)\n",
              separate ? "the contents of the .weights file, 64-byte aligned"
                       : "nothing, the weights are linked in",
              b->upper, separate ? (long long)weights_file_bytes(b) : 0);
    if (separate)
        sb_printf(sb, "#define %s_WEIGHTS_SUM UINT64_C(0x%016llx)\n", b->upper,
                  (unsigned long long)b->sum);
    if (b->c->vocabulary && b->mode == WEIGHTS_INCBIN)
        sb_printf(sb,
                  "\n/* The vocabulary, linked in: for igrt_vocab_open() (igrt_vocab.h; include "
                  "%s_igrt.h before it). */\n#define %s_VOCAB_BYTES ((size_t)%zu)\n"
                  "extern const unsigned char %s_vocab_blob[];\n",
                  b->name, b->upper, b->c->vocabulary_bytes, b->name);
    else if (b->c->vocabulary)
        sb_printf(sb,
                  "\n/* The .vocab file, for igrt_vocab_open() (igrt_vocab.h; include %s_igrt.h "
                  "before it). */\n#define %s_VOCAB_BYTES ((size_t)%zu)\n",
                  b->name, b->upper, b->c->vocabulary_bytes);
}

static void print_class(StrBuf *sb, int64_t v)
{
    if (v == INT64_MIN)
        sb_puts(sb, "INT64_MIN");
    else
        sb_printf(sb, v < 0 ? "-INT64_C(%lld)" : "INT64_C(%lld)",
                  v < 0 ? -(long long)v : (long long)v);
}

/* What the columns of outputs stand for: a number and a list that takes no room before somebody
 * uses it. */
static void classes_macros(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->nout; i++) {
        const Classes *k = b->c->outputs[i].classes;
        if (!k)
            continue;
        const char *upper = upper_case(b->a, arena_printf(b->a, "%s_%s", b->io, b->out[i].field));
        sb_puts(sb, "\n/* What stands in the columns of \"");
        print_comment_text(sb, b->c->outputs[i].name);
        sb_printf(sb, "\": `static const %s x[] = %s_CLASS_LIST;`. */\n#define %s_CLASSES %d\n",
                  k->name ? "char *const" : "int64_t", upper, upper, k->n);
        sb_printf(sb, "#define %s_CLASS_LIST {", upper);
        for (int j = 0; j < k->n; j++) {
            sb_puts(sb, j ? ", " : "");
            if (k->name)
                print_string(sb, k->name[j]);
            else
                print_class(sb, k->number[j]);
        }
        sb_puts(sb, "}\n");
    }
}

void io_structs(StrBuf *sb, const Bundle *b)
{
    const char *n = b->io;
    sb_printf(sb, "\ntypedef struct %s_inputs {\n", n);
    members(sb, b, b->in, b->nin, b->in_group, b->nin_group, "const ");
    sb_printf(sb, "} %s_inputs;\n\ntypedef struct %s_outputs {\n", n, n);
    members(sb, b, b->out, b->nout, b->out_group, b->nout_group, "");
    sb_printf(sb, "} %s_outputs;\n", n);
    classes_macros(sb, b);
    io_forms_header(sb, b);
}

/* What a caller fills in, and what it gets back. */
static void io_types(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(sb,
              "\ntypedef igrt_status %s_status; /* IGRT_OK is 0; igrt_status_text() explains the "
              "others */\n"
              "typedef igrt_config %s_config;\n",
              n, n);
    if (b->whole) {
        const char *whole = b->whole->name;
        sb_printf(sb, "typedef %s_inputs %s_inputs;\ntypedef %s_outputs %s_outputs;\n", whole, n,
                  whole, n);
        return;
    }
    io_structs(sb, b);
}

static void context_type(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(
        sb,
        "\n/* Belongs to the model once initialised; may be moved in memory between runs. */\n"
        "typedef struct %s_ctx {\n"
        "    %s_config config;\n",
        n, n);
    if (b->memory)
        sb_printf(sb, "    unsigned char *memory[%s_MEMORIES];\n", b->upper);
    else
        sb_puts(sb, "    unsigned char *arena;\n");
    sb_puts(sb, "    const unsigned char *weights;\n");
    if (b->nsym)
        sb_printf(sb, "    int64_t sym[%d]; /* run-time integers of the current run */\n", b->nsym);
    sb_puts(sb, "    igrt_fault fault; /* what made the last run fail, if it was a size */\n");
    if (b->gpu)
        gpu_members(sb, b);
    sb_printf(sb, "} %s_ctx;\n", n);
}

static void declarations(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(sb,
              "\n/* Checks the configuration, copies it and clears the state tensors. */\n"
              "%s_status %s_init(%s_ctx *ctx, const %s_config *config);\n"
              "\n/* Computes all outputs. On any other status than IGRT_OK their contents are "
              "undefined. "
              "*/\n"
              "%s_status %s_run(%s_ctx *ctx, const %s_inputs *in, %s_outputs *out);\n"
              "\n/* Clears the state tensors%s. */\n"
              "%s_status %s_reset(%s_ctx *ctx);\n",
              n, n, n, n, n, n, n, n, n, b->p->state_bytes ? "" : "; this model has none", n, n, n);
    if (!b->whole)
        sb_printf(
            sb, "\n/* %s */\n%s_status %s_selftest(%s_ctx *ctx);\n",
            b->has_selftest
                ? "Runs the model on built-in inputs and compares the outputs with built-in values."
                : "This bundle has no golden vectors: always IGRT_ERR_NO_SELFTEST.",
            n, n, n);
    sb_printf(sb,
              "\n/* Lets go of what init took; on a CPU nothing. */\n"
              "void %s_deinit(%s_ctx *ctx);\n",
              n, n);
}

/* A header between its guard; includes: the lines of what it needs. */
static void guard_begin(StrBuf *sb, const char *guard, const char *includes)
{
    sb_printf(sb, "#ifndef %s_H\n#define %s_H\n\n%s\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
              guard, guard, includes);
}

static void guard_end(StrBuf *sb)
{
    sb_puts(sb, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static const char *header_includes(const Bundle *b)
{
    const char *list = "";
    for (int i = 0; i < b->nsub; i++)
        list = arena_printf(b->a, "%s#include \"%s.h\"\n", list, b->sub[i].name);
    if (b->sub)
        return list;
    const bool several = b->gpu && b->p->ndevice > 1, aside = b->gpu && gpu_aside_marks(b);
    const char *runtime =
        arena_printf(b->a, "#include \"igrt%s%s.h\"\n", several || aside || !b->gpu ? "" : "_",
                     several  ? "_gpus"
                     : aside  ? "_aside"
                     : b->gpu ? b->target->name
                              : "");
    return b->whole ? arena_printf(b->a, "%s#include \"%s_io.h\"\n", runtime, b->whole->name)
                    : runtime;
}

void bundle_io_header(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "/* %s_io.h - the inputs and outputs of the model, for each of its targets. */\n",
              b->name);
    guard_begin(&sb, arena_printf(b->a, "%s_IO", b->upper), "#include \"igrt.h\"\n");
    io_types(&sb, b);
    functions_io(&sb, b);
    guard_end(&sb);
    bundle_source(b, arena_printf(b->a, "%s_io.h", b->name), &sb);
}

void bundle_header(Bundle *b)
{
    StrBuf sb = {0};
    opening(&sb, b);
    guard_begin(&sb, b->upper, header_includes(b));
    macros(&sb, b);
    if (b->sub) {
        fat_header(&sb, b);
    } else {
        io_types(&sb, b);
        context_type(&sb, b);
    }
    io_places_header(&sb, b);
    declarations(&sb, b);
    length_functions(&sb, b);
    states_header(&sb, b);
    functions_header(&sb, b);
    guard_end(&sb);
    bundle_source(b, arena_printf(b->a, "%s.h", b->name), &sb);
}
