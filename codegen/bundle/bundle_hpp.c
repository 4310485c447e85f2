/* bundle_hpp.c - <name>.hpp, the interface of a compiled model for C++17: structs of spans, and a
 * class that owns context, arena and weights. It is a thin coat over <name>.h: a span's length is
 * checked here, everything else there. */
#include <string.h>

#include "bundle.h"

/* "float", "const float", "const char *const": what the spans of a port have. */
static const char *element(Bundle *b, const Port *p, bool in)
{
    const char *type = c_type(p->b->dtype);
    if (!in)
        return type;
    return p->b->dtype == INGOT_STRING ? "const char *const" : arena_printf(b->a, "const %s", type);
}

/* How many elements of the C type one element of the tensor is. */
static int parts(const Port *p)
{
    return p->b->dtype == INGOT_C64 || p->b->dtype == INGOT_C128 ? 2 : 1;
}

/* The greatest number of elements; saturated, as the plan's sizes are. */
static int64_t greatest(const Port *p)
{
    int64_t n = parts(p);
    for (int d = p->lead; d < p->b->rank; d++)
        n = sat_mul(n, p->b->dims[d]->hi);
    return n;
}

/* The group whose first port this is, or NULL. */
static const PortGroup *group_of(const PortGroup *groups, int n, int port)
{
    for (int i = 0; i < n; i++)
        if (groups[i].g->first == port && groups[i].g->n)
            return &groups[i];
    return NULL;
}

static void members(StrBuf *sb, Bundle *b, const Port *ports, int n, const PortGroup *groups,
                    int ngroup, bool in)
{
    for (int i = 0; i < n;) {
        const PortGroup *g = group_of(groups, ngroup, i);
        const Port *p = &ports[i];
        const char *type = element(b, p, in), *field = g ? g->field : p->field;
        if (g && g->g->length) {
            sb_printf(sb, "    igrt::span<%s> %s[%d];\n", type, field, g->g->n);
            if (g->rank)
                sb_printf(sb, "    std::int64_t %s_dims[%d][%d] = {};\n", field, g->g->n, g->rank);
        } else {
            sb_printf(sb, "    igrt::span<%s> %s; /* ", type, field);
            print_port(sb, b, p);
            sb_puts(sb, " */\n");
            if (p->dynamic)
                sb_printf(sb, "    std::int64_t %s[%d] = {};\n", p->dims, g ? g->rank : p->b->rank);
        }
        if (g && g->g->length)
            sb_printf(sb, "    std::int64_t %s_length = 0;\n", field);
        if (g && g->g->present)
            sb_printf(sb, "    std::int64_t %s_present = 0;\n", field);
        i += g ? g->g->n : 1;
    }
    for (int i = 0; i < ngroup; i++) /* those that are always empty */
        if (!groups[i].g->n) {
            if (groups[i].g->length)
                sb_printf(sb, "    std::int64_t %s_length = 0;\n", groups[i].field);
            if (groups[i].g->present)
                sb_printf(sb, "    std::int64_t %s_present = 0;\n", groups[i].field);
        }
}

static void sizes(StrBuf *sb, const Port *ports, int n, const PortGroup *groups, int ngroup,
                  const char *what)
{
    sb_printf(sb, "\n/* How many elements the %ss have, at most. */\nstruct %s_size {\n", what,
              what);
    for (int i = 0; i < n;) {
        const PortGroup *g = group_of(groups, ngroup, i);
        int64_t most = 0;
        int end = i + (g ? g->g->n : 1);
        const char *field = g ? g->field : ports[i].field;
        for (; i < end; i++)
            most = greatest(&ports[i]) > most ? greatest(&ports[i]) : most;
        sb_printf(sb, "    static constexpr std::size_t %s = %lld;\n", field, (long long)most);
    }
    sb_puts(sb, "};\n");
}

/* The number of elements that the span of an input must have, or of an output's room. */
static const char *wanted(Bundle *b, const Port *p, bool in)
{
    if (in && p->dynamic)
        return parts(p) == 1 ? arena_printf(b->a, "igrt::elements(in.%s)", p->dims)
                             : arena_printf(b->a, "%d * igrt::elements(in.%s)", parts(p), p->dims);
    return arena_printf(b->a, "%lld", (long long)greatest(p));
}

static void check(StrBuf *sb, Bundle *b, const Port *p, bool in, const char *indent)
{
    const char *s = in ? "in" : "out";
    sb_printf(sb, "%sif (!igrt::has%s(%s.%s, %s, ", indent, in ? "" : "_room", s, p->field,
              wanted(b, p, in));
    StrBuf text = {0};
    sb_printf(&text, "the number of elements of %sput '%s'", s, p->b->name ? p->b->name : "");
    print_string(sb, text.data);
    sb_free(&text);
    sb_printf(sb, ", ctx_.fault))\n%s    return checked(IGRT_ERR_DIM);\n", indent);
}

/* Copies spans and dims of one side into the C struct: `i` or `o`. */
static void fill(StrBuf *sb, Bundle *b, const Port *ports, int n, const PortGroup *groups,
                 int ngroup, bool in)
{
    const char *s = in ? "in" : "out", *c = in ? "i" : "o";
    for (int i = 0; i < n; i++) {
        const PortGroup *g = NULL;
        for (int k = 0; k < ngroup; k++)
            if (i >= groups[k].g->first && i < groups[k].g->first + groups[k].g->n)
                g = &groups[k];
        const Port *p = &ports[i];
        const char *indent = "        ";
        if (g && in && g->g->length) {
            sb_printf(sb, "        if (in.%s_length > %d) {\n", g->field, i - g->g->first);
            indent = "            ";
        } else if (g && in && g->g->present) {
            sb_printf(sb, "        if (in.%s_present) {\n", g->field);
            indent = "            ";
        }
        check(sb, b, p, in, indent);
        sb_printf(sb, "%sigrt::point(%s.%s, %s.%s);\n", indent, c, p->field, s, p->field);
        if (in && p->dynamic)
            sb_printf(sb, "%sstd::memcpy(i.%s, in.%s, sizeof i.%s);\n", indent, p->dims, p->dims,
                      p->dims);
        if (*(indent + 8))
            sb_puts(sb, "        }\n");
    }
    for (int k = 0; in && k < ngroup; k++) {
        if (groups[k].g->length)
            sb_printf(sb, "        i.%s_length = in.%s_length;\n", groups[k].field,
                      groups[k].field);
        if (groups[k].g->present)
            sb_printf(sb, "        i.%s_present = in.%s_present;\n", groups[k].field,
                      groups[k].field);
    }
}

/* What a run has set in the C struct, back into the caller's. */
static void results(StrBuf *sb, const Port *ports, int n, const PortGroup *groups, int ngroup)
{
    for (int i = 0; i < n; i++)
        if (ports[i].dynamic)
            sb_printf(sb, "        std::memcpy(out.%s, o.%s, sizeof o.%s);\n", ports[i].dims,
                      ports[i].dims, ports[i].dims);
    for (int k = 0; k < ngroup; k++) {
        if (groups[k].g->length)
            sb_printf(sb, "        out.%s_length = o.%s_length;\n", groups[k].field,
                      groups[k].field);
        if (groups[k].g->present)
            sb_printf(sb, "        out.%s_present = o.%s_present;\n", groups[k].field,
                      groups[k].field);
    }
}

static void class_opening(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    bool blob = b->mode == WEIGHTS_BLOB;
    sb_printf(sb, "\n/* A context with what it needs. It can be moved and not copied; one thread "
                  "at a time may use it. */\n"
                  "class model {\npublic:\n");
    if (blob)
        sb_printf(
            sb,
            "    /* weights: what %s.weights contains, from igrt::load(); the model keeps it. */\n"
            "    explicit model(igrt::memory weights, %s_config config = {})\n"
            "        : weights_(std::move(weights))\n    {\n"
            "        config.weights = weights_.data();\n"
            "        config.weights_bytes = weights_.size();\n"
            "        start(config);\n    }\n\n"
            "    /* config.weights: memory of the caller's, which may be shared by models: a "
            "mapped file, flash. */\n",
            n, n);
    else
        sb_puts(sb, "    /* config: threads, parallel_for, seed and so on; an arena only to use "
                    "one's own. */\n");
    sb_printf(sb, "    explicit model(%s_config config%s) { start(config); }\n", n,
              blob ? "" : " = {}");
    sb_puts(
        sb,
        "    model(model &&other) noexcept { take(other); }\n"
        "    model &operator=(model &&other) noexcept\n    {\n"
        "        if (this != &other) {\n            stop();\n            take(other);\n        }\n"
        "        return *this;\n    }\n"
        "    model(const model &) = delete;\n    model &operator=(const model &) = delete;\n"
        "    ~model() { stop(); }\n\n"
        "    /* Whether it can run; status() says why not, without exceptions. */\n"
        "    explicit operator bool() const noexcept { return status_ == IGRT_OK; }\n"
        "    igrt_status status() const noexcept { return status_; }\n"
        "    /* What made the last run fail, if it was a size. */\n"
        "    const igrt_fault &fault() const noexcept { return ctx_.fault; }\n");
    if (b->sub)
        sb_printf(sb,
                  "    /* Which target runs. */\n"
                  "    const char *target() const noexcept { return %s_target(&ctx_); }\n",
                  n);
    sb_puts(sb, "\n");
}

/* "" of run(), "train_step_" of a further function: what its structs begin with. */
static const char *struct_prefix(const Bundle *b)
{
    return b->first ? arena_printf(b->a, "%s_", b->entry + strlen(b->name) + 1) : "";
}

/* Takes a function's inputs to its outputs: run(), train_step() .. */
static void class_call(StrBuf *sb, Bundle *b)
{
    const char *prefix = struct_prefix(b);
    sb_printf(sb,
              "    /* Computes the outputs: each span has to have room for the greatest size. */\n"
              "    IGRT_STATUS %s(const %sinputs &in, %soutputs &out)\n    {\n"
              "        if (status_ != IGRT_OK)\n            return checked(status_);\n",
              b->entry + strlen(b->name) + 1, prefix, prefix);
    sb_printf(sb, "        %s_inputs i = {};\n        %s_outputs o = {};\n", b->io, b->io);
    sb_puts(sb, b->nin || b->nin_group ? "" : "        (void)in;\n");
    sb_puts(sb, b->nout || b->nout_group ? "" : "        (void)out;\n");
    fill(sb, b, b->in, b->nin, b->in_group, b->nin_group, true);
    fill(sb, b, b->out, b->nout, b->out_group, b->nout_group, false);
    sb_printf(sb, "        const igrt_status status = %s(&ctx_, &i, &o);\n", b->entry);
    results(sb, b->out, b->nout, b->out_group, b->nout_group);
    sb_puts(sb, "        return checked(status);\n    }\n\n");
}

static void class_run(StrBuf *sb, Bundle *b)
{
    const char *n = b->name;
    class_call(sb, b);
    for (int i = 0; i < b->nfunction; i++) {
        function_select(b->c, i + 1);
        class_call(sb, &b->function[i]);
    }
    function_select(b->c, 0);
    sb_printf(sb,
              "    /* Clears the states%s. */\n"
              "    IGRT_STATUS reset() { return checked(status_ == IGRT_OK ? %s_reset(&ctx_) : "
              "status_); }\n"
              "    /* Runs the golden vectors inside. */\n"
              "    IGRT_STATUS selftest() { return checked(status_ == IGRT_OK ? %s_selftest(&ctx_) "
              ": status_); }\n\n"
              "private:\n"
              "    igrt_status checked(igrt_status status) const { return igrt::checked(\"%s\", "
              "status, ctx_.fault); }\n",
              b->p->state_bytes ? "" : "; this model has none", n, n, n);
}

static void class_lengths(StrBuf *sb, const Bundle *b)
{
    for (int i = 0; i < b->c->nvar; i++)
        if (b->c->vars[i].length) {
            const char *name = identifier(b->a, b->c->vars[i].name);
            sb_printf(sb,
                      "    /* The length of the states that grow; 0 after reset(). */\n"
                      "    std::int64_t length_%s() const noexcept { return %s_length_%s(&ctx_); "
                      "}\n"
                      "    /* They forget what follows their first n rows. */\n"
                      "    igrt_status keep_%s(std::int64_t n) noexcept { return %s_keep_%s(&ctx_, "
                      "n); }\n\n",
                      name, b->name, name, name, b->name, name);
        }
}

static void class_memory(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name, *u = b->upper;
    sb_printf(
        sb,
        "    void start(%s_config &config)\n    {\n        config.struct_size = sizeof config;\n",
        n);
    if (b->memory) {
        sb_printf(sb, "        igrt_memory blocks[%s_MEMORIES];\n        if (!config.memory) {\n",
                  u);
        for (int i = 0; i < b->p->nmemory; i++)
            sb_printf(
                sb,
                "            arena_[%d] = igrt::memory(%s);\n"
                "            blocks[%d] = igrt_memory{arena_[%d].data(), arena_[%d].size()};\n",
                i, b->memory[i].bytes, i, i, i);
        sb_printf(
            sb,
            "            config.memory = blocks;\n            config.n_memories = %s_MEMORIES;\n"
            "        }\n",
            u);
    } else {
        sb_printf(sb,
                  "        if (!config.arena) {\n"
                  "            arena_ = igrt::memory(%s_ARENA_BYTES(config.threads));\n"
                  "            config.arena = arena_.data();\n"
                  "            config.arena_bytes = arena_.size();\n        }\n",
                  u);
    }
    sb_printf(sb,
              "        status_ = %s_init(&ctx_, &config);\n"
              "        (void)checked(status_);\n    }\n"
              "    void stop() noexcept\n    {\n        if (status_ == IGRT_OK)\n            "
              "%s_deinit(&ctx_);\n    }\n"
              "    void take(model &other) noexcept\n    {\n        ctx_ = other.ctx_;\n",
              n, n);
    if (b->memory)
        sb_printf(sb,
                  "        for (int i = 0; i < %s_MEMORIES; i++)\n"
                  "            arena_[i] = std::move(other.arena_[i]);\n",
                  u);
    else
        sb_puts(sb, "        arena_ = std::move(other.arena_);\n");
    if (b->mode == WEIGHTS_BLOB)
        sb_puts(sb, "        weights_ = std::move(other.weights_);\n");
    sb_printf(sb,
              "        status_ = other.status_;\n        other.status_ = IGRT_ERR_NULL;\n    }\n\n"
              "    %s_ctx ctx_ = {};\n",
              n);
    if (b->memory)
        sb_printf(sb, "    igrt::memory arena_[%s_MEMORIES];\n", u);
    else
        sb_puts(sb, "    igrt::memory arena_;\n");
    if (b->mode == WEIGHTS_BLOB)
        sb_puts(sb, "    igrt::memory weights_;\n");
    sb_puts(sb, "    igrt_status status_ = IGRT_ERR_NULL;\n};\n");
}

/* What a function takes and gives, and how much of it. */
static void function_structs(StrBuf *sb, Bundle *b)
{
    const char *prefix = struct_prefix(b);
    sb_printf(sb, "struct %sinputs {\n", prefix);
    members(sb, b, b->in, b->nin, b->in_group, b->nin_group, true);
    sb_printf(sb, "};\n\nstruct %soutputs {\n", prefix);
    members(sb, b, b->out, b->nout, b->out_group, b->nout_group, false);
    sb_puts(sb, "};\n");
    sizes(sb, b->in, b->nin, b->in_group, b->nin_group, arena_printf(b->a, "%sinput", prefix));
    sizes(sb, b->out, b->nout, b->out_group, b->nout_group, arena_printf(b->a, "%soutput", prefix));
}

void bundle_hpp(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name, *u = b->upper;
    sb_printf(&sb, "/*\n * %s.hpp - ", n);
    print_comment_text(&sb, b->source);
    sb_printf(&sb,
              " for C++17, over %s.h; header only, link the model's library.\n *\n"
              " *     %s::model model%s;\n *     %s::inputs in;\n *     %s::outputs out;\n",
              n, n,
              b->mode == WEIGHTS_BLOB ? arena_printf(b->a, "(igrt::load(\"%s.weights\"))", n) : "",
              n, n);
    if (b->nin && !b->nin_group)
        sb_printf(&sb, " *     in.%s = pixels; an array, a vector, a std::span\n", b->in[0].field);
    if (b->nout && !b->nout_group)
        sb_printf(&sb, " *     out.%s = scores;\n", b->out[0].field);
    sb_printf(&sb,
              " *     model.run(in, out); throws igrt::error\n */\n"
              "#ifndef %s_HPP\n#define %s_HPP\n\n#include <cstring>\n\n#include "
              "\"igrt.hpp\"\n#include \"%s.h\"\n\n"
              "namespace %s {\n\n",
              u, u, n, n);
    function_structs(&sb, b);
    for (int i = 0; i < b->nfunction; i++) {
        function_select(b->c, i + 1);
        sb_puts(&sb, "\n");
        function_structs(&sb, &b->function[i]);
    }
    function_select(b->c, 0);
    class_opening(&sb, b);
    class_lengths(&sb, b);
    class_run(&sb, b);
    class_memory(&sb, b);
    sb_printf(&sb, "\n} // namespace %s\n\n#endif\n", n);
    bundle_source(b, arena_printf(b->a, "%s.hpp", n), &sb);
}
