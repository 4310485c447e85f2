/* bundle_selftest.c - golden vectors: <name>_selftest.c runs the model and compares samples of
 * every output.
 *
 * Inputs and the wanted outputs are the caller's (ingot_options.selftest_in), or else the inputs
 * are made by a formula and the reference interpreter computes the outputs here. The latter is left
 * out, with a note, where the interpreter would take long, where inputs and outputs are large (they
 * are static there, so the file costs memory only in programs that call it), and for types that
 * have no formula. */
#include <math.h>
#include <string.h>

#include "bundle.h"
#include "igrt_num.h"

enum { MAX_FLOPS = 40000000, MAX_BYTES = 1 << 20, MAX_GIVEN = 16 << 20, MAX_SAMPLES = 32 };

/* ---- the formula: the same here and in the bundle ------------------------------------------ */

static const char formula[] = "/* splitmix64 */\n"
                              "static uint64_t next(uint64_t *s)\n"
                              "{\n"
                              "    uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);\n"
                              "    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);\n"
                              "    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);\n"
                              "    return z ^ (z >> 31);\n"
                              "}\n";

static uint64_t next(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Bytes that stand for numbers between may be any. */
static bool any_byte(const Port *p)
{
    return p->form && p->form->quantised;
}

/* The expression of one input element in C; NULL: no formula. Integers are 0 and 1. */
static const char *element_text(const Port *p)
{
    if (any_byte(p))
        return p->b->dtype == INGOT_I8 ? "(int8_t)((int)(next(&s) >> 56) - 128)"
                                       : "(uint8_t)(next(&s) >> 56)";
    switch (p->b->dtype) {
    case INGOT_F64: return "(double)(next(&s) >> 11) * 0x1p-52 - 1.0";
    case INGOT_F32: return "(float)((double)(next(&s) >> 11) * 0x1p-52 - 1.0)";
    case INGOT_F16: return "igrt_f32_to_f16((float)((double)(next(&s) >> 11) * 0x1p-52 - 1.0))";
    case INGOT_BF16: return "igrt_f32_to_bf16((float)((double)(next(&s) >> 11) * 0x1p-52 - 1.0))";
    case INGOT_BOOL: return "(unsigned char)(next(&s) >> 63)";
    case INGOT_I8: return "(int8_t)(next(&s) >> 63)";
    case INGOT_U8: return "(uint8_t)(next(&s) >> 63)";
    case INGOT_I16: return "(int16_t)(next(&s) >> 63)";
    case INGOT_U16: return "(uint16_t)(next(&s) >> 63)";
    case INGOT_I32: return "(int32_t)(next(&s) >> 63)";
    case INGOT_U32: return "(uint32_t)(next(&s) >> 63)";
    case INGOT_I64: return "(int64_t)(next(&s) >> 63)";
    case INGOT_U64: return "next(&s) >> 63";
    default: return NULL;
    }
}

static void element_store(const Port *port, uint64_t r, uint8_t *p)
{
    const ingot_dtype d = port->b->dtype;
    double x = (double)(r >> 11) * 0x1p-52 - 1.0;
    float f = (float)x;
    uint16_t h = d == INGOT_F16 ? igrt_f32_to_f16(f) : igrt_f32_to_bf16(f);
    uint64_t bit = r >> 63; /* little-endian */
    if (any_byte(port))
        bit = (r >> 56) ^ (d == INGOT_I8 ? 128u : 0u);
    const void *from = d == INGOT_F64                      ? (const void *)&x
                       : d == INGOT_F32                    ? (const void *)&f
                       : d == INGOT_F16 || d == INGOT_BF16 ? (const void *)&h
                                                           : (const void *)&bit;
    memcpy(p, from, (size_t)dtype_info[d].bytes);
}

static bool is_half(ingot_dtype d)
{
    return d == INGOT_F16 || d == INGOT_BF16;
}

/* An output element as a double; exact for all but wide integers, which are compared as such. */
static double element_value(ingot_dtype d, const uint8_t *p)
{
    float f;
    double x;
    uint16_t h;
    int64_t n = 0;
    switch (d) {
    case INGOT_F32: memcpy(&f, p, 4); return (double)f;
    case INGOT_F64: memcpy(&x, p, 8); return x;
    case INGOT_F16: memcpy(&h, p, 2); return (double)igrt_f16_to_f32(h);
    case INGOT_BF16: memcpy(&h, p, 2); return (double)igrt_bf16_to_f32(h);
    default: break;
    }
    int width = dtype_info[d].bytes;
    memcpy(&n, p, (size_t)width);
    if (dtype_info[d].kind == 'i' && width < 8)
        n = (int64_t)((uint64_t)n << (64 - 8 * width)) >> (64 - 8 * width);
    return (double)n;
}

/* ---- whether, and what --------------------------------------------------------------------- */

static int64_t total_flops(const Block *block)
{
    int64_t sum = 0;
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        int64_t inner = sat_add(total_flops(&s->body), total_flops(&s->other));
        if (s->kind == STEP_LOOP)
            inner = sat_mul(inner, s->trip ? s->trip->hi : 1000);
        sum = sat_add(sum,
                      s->kind == STEP_KERNEL ? sat_add(s->kernel->flops, s->kernel->bytes) : inner);
    }
    return sum;
}

/* What a formula cannot test, or NULL. */
static const char *no_formula(const Bundle *b)
{
    int64_t bytes = 0, flops = total_flops(&b->p->main);
    if (b->nin_group || b->nout_group)
        return "it has sequences or optionals";
    for (int i = 0; i < b->nin + b->nout; i++) {
        bool input = i < b->nin;
        const Port *port = input ? &b->in[i] : &b->out[i - b->nin];
        const Buffer *buffer = port->b;
        bytes = sat_add(bytes, buffer->bytes);
        if (!element_text(port))
            return arena_printf(b->a, "%s '%s' is of type %s", input ? "input" : "output",
                                buffer->name, dtype_info[buffer->dtype].name);
        if (input && b->c->bound && b->c->bound[i])
            return arena_printf(b->a, "input '%s' is bound to a value", buffer->name);
    }
    if (bytes > MAX_BYTES)
        return arena_printf(b->a, "inputs and outputs have %.3g MB, more than %d",
                            (double)bytes * 1e-6, MAX_BYTES >> 20);
    if (flops > MAX_FLOPS)
        return arena_printf(b->a, "a run takes %.0f million operations, more than %d",
                            (double)flops * 1e-6, MAX_FLOPS / 1000000);
    return NULL;
}

/* The interpreter's outputs on the formula's inputs; false if it cannot compute them. */
static bool interpret(Bundle *b, ingot_value *out)
{
    Context *c = b->c;
    ingot_value *in = NEWN(b->a, ingot_value, b->nin + 1);
    uint64_t seed = 1;
    for (int i = 0; i < b->nin; i++) {
        const Buffer *buffer = b->in[i].b;
        int64_t n = 1;
        in[i] = (ingot_value){.rank = buffer->rank, .dtype = buffer->dtype};
        for (int d = 0; d < buffer->rank; d++)
            n *= in[i].dims[d] = buffer->dims[d]->hi;
        int width = dtype_info[buffer->dtype].bytes;
        uint8_t *p = arena_array(b->a, (size_t)n + 1, (size_t)width);
        in[i].data = p;
        for (int64_t k = 0; k < n; k++, p += width)
            element_store(&b->in[i], next(&seed), p);
    }
    ingot_sink sink = c->sink;
    int nerror = c->nerror;
    ingot_status status = c->status;
    c->sink = NULL; /* a failure here is no fault of the model */
    bool ok = ingot_interpret(c, b->nin, in, b->nout, out) == INGOT_OK && c->nerror == nerror;
    c->sink = sink;
    c->nerror = nerror;
    c->status = status;
    return ok;
}

/* Whether the caller's values are those of a run of this model; else that is told. */
static bool given_fit(Bundle *b)
{
    int64_t bytes = 0;
    for (int i = 0; i < b->nin + b->nout; i++) {
        bool input = i < b->nin;
        const Port *port = input ? &b->in[i] : &b->out[i - b->nin];
        const Buffer *buffer = port->b;
        const ingot_value *v = input ? &b->o->selftest_in[i] : &b->o->selftest_out[i - b->nin];
        bool fits = v->data && v->dtype == buffer->dtype && v->rank == buffer->rank;
        for (int d = 0; d < buffer->rank && fits; d++)
            fits = v->dims[d] >= buffer->dims[d]->lo && v->dims[d] <= buffer->dims[d]->hi;
        if (!fits)
            bundle_fail(
                b, INGOT_INVALID,
                "%s: the selftest's data for %s '%s' is missing, or of another type or shape",
                b->source, input ? "input" : "output", buffer->name);
        else if (buffer->dtype == INGOT_STRING || dtype_info[buffer->dtype].kind == 'c')
            bundle_fail(b, INGOT_UNSUPPORTED,
                        "%s: %s '%s' is of type %s, which a selftest cannot hold", b->source,
                        input ? "input" : "output", buffer->name, dtype_info[buffer->dtype].name);
        bytes = sat_add(bytes, buffer->bytes);
    }
    if (!b->failed && bytes > MAX_GIVEN)
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "%s: the selftest's inputs and outputs have %.3g MB; %d are possible",
                    b->source, (double)bytes * 1e-6, MAX_GIVEN >> 20);
    return !b->failed;
}

/* ---- text -------------------------------------------------------------------------------- */

static int64_t count(const ingot_value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

static int64_t sample_step(int64_t n)
{
    return n <= MAX_SAMPLES ? 1 : (n + MAX_SAMPLES - 1) / MAX_SAMPLES;
}

static unsigned want_table(StrBuf *sb, int i, const ingot_value *v)
{
    int64_t n = count(v), step = sample_step(n);
    unsigned needs = 0;
    if (!n)
        return 0;
    sb_printf(sb, "static const double want%d[] = {", i);
    for (int64_t k = 0, at = 0; at < n; k++, at += step) {
        double x =
            element_value(v->dtype, (const uint8_t *)v->data + at * dtype_info[v->dtype].bytes);
        sb_puts(sb, k % 6 ? ", " : k ? ",\n    " : "\n    ");
        needs |= x - x != 0 ? NEED_MATH : 0; /* infinite, or no number */
        if (x != x)
            sb_puts(sb, "NAN");
        else if (x - x != 0)
            sb_puts(sb, x > 0 ? "INFINITY" : "-INFINITY");
        else
            sb_printf(sb, dtype_is_float((int)v->dtype) ? "%.9g" : "%.17g", x);
    }
    sb_puts(sb, "\n};\n");
    return needs;
}

static double range_of(const ingot_value *v)
{
    double range = 0;
    for (int64_t k = 0; k < count(v); k++) {
        double x = fabs(
            element_value(v->dtype, (const uint8_t *)v->data + k * dtype_info[v->dtype].bytes));
        range = isfinite(x) && x > range ? x : range;
    }
    return range;
}

static void storage(StrBuf *sb, const Port *port, const char *what, int i)
{
    int64_t n = port->b->bytes / element_bytes(port->b->dtype);
    sb_printf(sb, "static %s %s%d[%lld];\n", c_type(port->b->dtype), what, i,
              (long long)(n ? n : 1));
}

/* What the interpreter computes has all rounded after every op, and sums in its order; what others
 * computed may be rounded elsewhere, and of 8 bits one off. */
static double tolerance(const ingot_value *v, bool given)
{
    bool byte = v->dtype == INGOT_I8 || v->dtype == INGOT_U8;
    if (!dtype_is_float((int)v->dtype) || dtype_info[v->dtype].bytes == 1)
        return given && byte ? 1 : 0;
    double share = v->dtype == INGOT_BF16 && given ? 4e-2
                   : is_half(v->dtype)             ? 1e-2
                   : given                         ? 1e-3
                                                   : 1e-4;
    return range_of(v) * share + 1e-6;
}

static void check_output(StrBuf *sb, const Bundle *b, int i, const ingot_value *v)
{
    const Port *port = &b->out[i];
    int64_t n = count(v), step = sample_step(n);
    if (port->dynamic) {
        sb_puts(sb, "    if (");
        for (int d = 0; d < v->rank; d++)
            sb_printf(sb, "%sout.%s_dims[%d] != %lld", d ? " || " : "", port->field, d,
                      (long long)v->dims[d]);
        sb_puts(sb, ")\n        return IGRT_ERR_SELFTEST;\n");
    }
    if (!n)
        return;
    const char *convert = v->dtype == INGOT_F16    ? "igrt_f16_to_f32"
                          : v->dtype == INGOT_BF16 ? "igrt_bf16_to_f32"
                                                   : "";
    sb_printf(sb,
              "    for (int i = 0; i < %lld; i++)\n"
              "        if (!agrees((double)%s(out%d[i * %lld]), want%d[i], %.3g))\n"
              "            return IGRT_ERR_SELFTEST;\n",
              (long long)((n + step - 1) / step), convert, i, (long long)step, i,
              tolerance(v, b->o->selftest_in != NULL));
}

/* An input by the formula, in its greatest dims. */
static void make_input(StrBuf *sb, const Port *port, int i)
{
    sb_printf(sb, "    for (int i = 0; i < %lld; i++)\n        in%d[i] = %s;\n",
              (long long)(port->b->bytes / element_bytes(port->b->dtype)), i, element_text(port));
}

static void function(StrBuf *sb, const Bundle *b, const ingot_value *want)
{
    const char *n = b->name;
    const ingot_value *given = b->o->selftest_in;
    sb_printf(sb,
              "\n%s_status %s_selftest(%s_ctx *ctx)\n{\n"
              "    %s_inputs in = {0};\n    %s_outputs out = {0};\n",
              n, n, n, n, n);
    if (b->nin && !given)
        sb_puts(sb, "    uint64_t s = 1;\n");
    if (b->c->random) /* the numbers below are those of seed 0 */
        sb_puts(sb, "    const uint64_t seed = ctx->config.seed;\n    ctx->config.seed = 0;\n");
    sb_printf(sb, "    %s_status status = %s_reset(ctx);\n", n, n);
    if (b->c->random)
        sb_puts(sb, "    ctx->config.seed = seed;\n");
    sb_puts(sb, "    if (status != IGRT_OK)\n        return status;\n\n");
    for (int i = 0; i < b->nin; i++) {
        const Port *port = &b->in[i];
        if (!given)
            make_input(sb, port, i);
        sb_printf(sb, "    in.%s = in%d;\n", port->field, i);
        for (int d = 0; port->dynamic && d < port->b->rank; d++)
            sb_printf(sb, "    in.%s_dims[%d] = %lld;\n", port->field, d,
                      (long long)(given ? given[i].dims[d] : port->b->dims[d]->hi));
    }
    for (int i = 0; i < b->nout; i++)
        sb_printf(sb, "    out.%s = out%d;\n", b->out[i].field, i);
    sb_printf(sb,
              "    status = %s_run(ctx, &in, &out);\n    if (status != IGRT_OK)\n        return "
              "status;\n\n",
              n);
    for (int i = 0; i < b->nout; i++)
        check_output(sb, b, i, &want[i]);
    sb_printf(sb, "    return %s_reset(ctx);\n}\n", n);
}

static void write_selftest(Bundle *b, const ingot_value *want)
{
    bool any = false;
    const ingot_value *given = b->o->selftest_in;
    for (int i = 0; i < b->nout; i++)
        any |= count(&want[i]) > 0;
    b->has_selftest = true;
    StrBuf body = {0}, sb = {0};
    unsigned needs = 0;
    for (int i = 0; i < b->nin && !given; i++)
        needs |= is_half(b->in[i].b->dtype) ? NEED_NUM : 0;
    for (int i = 0; i < b->nout; i++)
        needs |= is_half(want[i].dtype) && count(&want[i]) ? NEED_NUM : 0;
    if (b->nin && !given)
        sb_printf(&body, "\n%s", formula);
    if (any)
        sb_puts(&body, "\nstatic int agrees(double got, double want, double tolerance)\n{\n"
                       "    const double difference = got > want ? got - want : want - got;\n"
                       "    return got == want || difference <= tolerance || (got != got && want "
                       "!= want);\n}\n");
    sb_puts(&body, "\n");
    for (int i = 0; i < b->nin; i++) {
        if (!given) {
            storage(&body, &b->in[i], "in", i);
            continue;
        }
        int64_t n = count(&given[i]);
        sb_printf(&body, "static const %s in%d[%lld] = ", c_type(given[i].dtype), i,
                  (long long)(n ? n : 1));
        needs |= print_array(&body, given[i].dtype, given[i].data, n);
        sb_puts(&body, ";\n");
    }
    for (int i = 0; i < b->nout; i++)
        storage(&body, &b->out[i], "out", i);
    for (int i = 0; i < b->nout; i++)
        needs |= want_table(&body, i, &want[i]);
    function(&body, b, want);
    sb_printf(&sb,
              "/*\n * %s_selftest.c - golden vectors: %s.\n"
              " * The tensors are static: one selftest at a time.\n */\n#include \"%s.h\"\n",
              b->name,
              given ? "the inputs and samples of the outputs that the compiler was given"
                    : "inputs made by a formula, and samples of what the reference\n * interpreter "
                      "computes of them",
              b->name);
    if (needs & NEED_NUM)
        sb_puts(&sb, "#include \"igrt_num.h\"\n");
    else if (needs & NEED_MATH)
        sb_puts(&sb, "\n#include <math.h>\n");
    sb_puts(&sb, body.data);
    sb_free(&body);
    bundle_source(b, arena_printf(b->a, "%s_selftest.c", b->name), &sb);
}

static const ingot_value *as_ports(Bundle *b, int n, const NamedNode *io, const ingot_value *v)
{
    ingot_value *now = NEWN(b->a, ingot_value, n + 1);
    for (int i = 0; i < n; i++)
        now[i] = io_value(b->a, &io[i], &v[i]);
    return now;
}

/* The caller's values are as the model's file has them, or as the interface has them. */
static void take_forms(Bundle *b)
{
    ingot_options *o = NEW(b->a, ingot_options);
    *o = *b->o;
    o->selftest_in = as_ports(b, b->nin, b->c->inputs, o->selftest_in);
    o->selftest_out = as_ports(b, b->nout, b->c->outputs, o->selftest_out);
    b->o = o;
}

void bundle_selftest(Bundle *b)
{
    if (b->o->no_selftest)
        return;
    if (b->o->selftest_in) {
        take_forms(b);
        if (given_fit(b))
            write_selftest(b, b->o->selftest_out);
        return;
    }
    ingot_value *want = NEWN(b->a, ingot_value, b->nout + 1);
    const char *why = no_formula(b);
    if (!why && interpret(b, want)) {
        write_selftest(b, want);
        return;
    }
    context_report(
        b->c, INGOT_NOTE, INGOT_OK,
        "%s: the bundle has no selftest: %s; --selftest DIR takes inputs and outputs from files",
        b->source, why ? why : "the interpreter cannot run it on inputs made by a formula");
}
