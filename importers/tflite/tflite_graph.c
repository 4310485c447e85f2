/*
 * tflite_graph.c - operators become nodes, in the order of the file, which is that of a run.
 *
 * A graph sees its own tensors alone: what a branch or a loop's body takes is given to it. A tensor
 * has no value until an operator, an input or its data gives it one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tflite_model.h"

typedef struct {
    const char *name, *types;
    int number, least, most, version;
    ingot_tensor *(*lower)(TfliteNode *);
} TfliteRow;

static const TfliteRow rows[] = {
#define TFLITE_OP(name, number, least, most, version, types, lower) \
    {#name, types, number, least, most, version, tflite_##lower},
#include "tflite_ops.def"
#undef TFLITE_OP
};

bool tflite_op_at(int i, ImportedOp *op)
{
    if (i < 0 || i >= (int)(sizeof rows / sizeof rows[0]))
        return false;
    const TfliteRow *r = &rows[i];
    *op = (ImportedOp){"", r->name, r->version, r->least, r->most, ""};
    static const char letter[] = "fhbusijltcx*";
    static const char *const word[] = {"f32", "f16", "i8",   "u8",  "i16",    "i32",
                                       "u32", "i64", "bool", "c64", "string", "*"};
    size_t at = 0;
    for (const char *t = r->types; *t && at < sizeof op->inputs; t++)
        at += (size_t)snprintf(op->inputs + at, sizeof op->inputs - at, "%s%s", at ? "+" : "",
                               word[strchr(letter, *t) - letter]);
    return true;
}

/* Who takes over where the result has integers that stand for real numbers. */
static const struct {
    int number;
    ingot_tensor *(*lower)(TfliteNode *);
} quantized[] = {
#define TFLITE_QUANT(name, lower) {TFL_##name, tflite_q_##lower},
#include "tflite_quant.def"
#undef TFLITE_QUANT
};

/* Who takes over where floats meet weights that are integers with scales. */
static const struct {
    int number, weights;
    bool blocks;
    ingot_tensor *(*lower)(TfliteNode *);
} hybrid[] = {
#define TFLITE_HYBRID(name, weights, blocks, lower) {TFL_##name, weights, blocks, tflite_h_##lower},
#include "tflite_hybrid.def"
#undef TFLITE_HYBRID
};

static bool is_hybrid(TfliteNode *n, int weights)
{
    return n->n_out && n->to[0] && n->to[0]->type == INGOT_TFLITE_FLOAT32 && weights < n->n_in &&
           (tfl_quantized(n->ti[weights]) || tfl_has_blocks(n->ti[weights]));
}

static bool takes_blocks(int number, int input)
{
    for (int i = 0; i < TFL_COUNT(hybrid); i++)
        if (hybrid[i].number == number && hybrid[i].weights == input)
            return hybrid[i].blocks;
    return false;
}

static ingot_tensor *lower(TfliteNode *n, const TfliteRow *row)
{
    for (int i = 0; i < TFL_COUNT(hybrid); i++)
        if (hybrid[i].number == row->number && is_hybrid(n, hybrid[i].weights))
            return hybrid[i].lower(n);
    for (int i = 0; tfl_is_quantized(n) && i < TFL_COUNT(quantized); i++)
        if (quantized[i].number == row->number)
            return quantized[i].lower(n);
    return row->types[0] == '*' && tfl_is_complex(n, 0) ? tflite_by_parts(n, row->lower)
                                                        : row->lower(n);
}

static const TfliteRow *find_row(int number)
{
    for (int i = 0; i < TFL_COUNT(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

/* Names of operators that are in no row, for messages. */
static const char *name_of(int number)
{
    static const struct {
        int number;
        const char *name;
    } others[] = {
        {29, "CONCAT_EMBEDDINGS"},
        {31, "CALL"},
        {51, "DELEGATE"},
    };
    for (int i = 0; i < TFL_COUNT(others); i++)
        if (others[i].number == number)
            return others[i].name;
    return NULL;
}

const char *tflite_op_name(TfliteModel *m, const ingot_tflite_op *op)
{
    const TfliteRow *row = find_row(op->builtin);
    const char *name = row ? row->name : name_of(op->builtin);
    if (op->builtin == TFL_CUSTOM)
        return op->custom[0] ? op->custom : "CUSTOM";
    if (name)
        return name;
    char *text = ingot_alloc(m->c, 40);
    snprintf(text, 40, op->builtin >= 162 && op->builtin <= 209 ? "STABLEHLO %d" : "operator %d",
             op->builtin);
    return text;
}

/* "conv1/Relu;conv1/BiasAdd" is what a converter made of several nodes: the first names it. */
static void set_origin(TfliteModel *m, const ingot_tflite_graph *g, const ingot_tflite_op *op)
{
    const int32_t out = op->out.n ? ingot_tflite_i32(&op->out, 0) : -1;
    const char *name = out >= 0 ? g->tensors[out].name : "";
    const size_t len = strcspn(name, ";");
    char *first = ingot_alloc(m->c, len + 1);
    memcpy(first, name, len);
    ingot_set_origin(m->c, first, tflite_op_name(m, op));
}

void tflite_origin(TfliteNode *n)
{
    set_origin(n->s->m, n->s->g, n->op);
}

/* ---- types and constants --------------------------------------------------------------------- */

bool tflite_dtype(ingot_tflite_type type, ingot_dtype *out)
{
    static const struct {
        ingot_tflite_type type;
        ingot_dtype dtype;
    } table[] = {
        {INGOT_TFLITE_FLOAT32, INGOT_F32},   {INGOT_TFLITE_FLOAT16, INGOT_F16},
        {INGOT_TFLITE_INT32, INGOT_I32},     {INGOT_TFLITE_UINT8, INGOT_U8},
        {INGOT_TFLITE_INT64, INGOT_I64},     {INGOT_TFLITE_BOOL, INGOT_BOOL},
        {INGOT_TFLITE_INT16, INGOT_I16},     {INGOT_TFLITE_INT8, INGOT_I8},
        {INGOT_TFLITE_FLOAT64, INGOT_F64},   {INGOT_TFLITE_UINT64, INGOT_U64},
        {INGOT_TFLITE_UINT32, INGOT_U32},    {INGOT_TFLITE_UINT16, INGOT_U16},
        {INGOT_TFLITE_INT4, INGOT_I4},       {INGOT_TFLITE_BFLOAT16, INGOT_BF16},
        {INGOT_TFLITE_INT2, INGOT_I2},       {INGOT_TFLITE_UINT4, INGOT_U4},
        {INGOT_TFLITE_STRING, INGOT_STRING},
    };
    for (int i = 0; i < TFL_COUNT(table); i++)
        if (table[i].type == type) {
            *out = table[i].dtype;
            return true;
        }
    return false;
}

/* Elements of 4 and 2 bits, the first in the lowest bits, become a byte each, with their sign. */
static const void *unpacked(TfliteModel *m, const ingot_tflite_tensor *t, unsigned bits,
                            uint64_t count)
{
    uint8_t *bytes = ingot_alloc(m->c, (size_t)count + 1);
    const unsigned each = 8 / bits, mask = (1u << bits) - 1;
    const unsigned sign = t->type == INGOT_TFLITE_UINT4 ? 0 : 1u << (bits - 1);
    for (uint64_t i = 0; i < count; i++) {
        const unsigned v = t->data[i / each] >> (i % each * bits) & mask;
        bytes[i] = (uint8_t)((v ^ sign) - sign);
    }
    return bytes;
}

ingot_tensor *tflite_constant(TfliteModel *m, const ingot_tflite_tensor *t)
{
    ingot_dtype dtype;
    int64_t dims[INGOT_MAX_RANK];
    unsigned bits;
    uint64_t count = 1;
    const char *type = ingot_tflite_type_name((int)t->type, &bits);
    if (t->sparsity.file) {
        ingot_tflite_tensor dense;
        return tflite_dense(m, t, &dense) ? tflite_constant(m, &dense) : ingot_poison(m->c);
    }
    if (t->shape.n > INGOT_MAX_RANK || !tflite_dtype(t->type, &dtype))
        return ingot_error(m->c, INGOT_UNSUPPORTED,
                           "tensor '%.100s': %s of rank %zu is not supported", t->name, type,
                           t->shape.n);
    for (size_t i = 0; i < t->shape.n; i++)
        count *= (uint64_t)(dims[i] = ingot_tflite_i32(&t->shape, i));
    if (dtype == INGOT_STRING) {
        const char **text = tflite_strings(m, t, count < INT32_MAX ? (int64_t)count : INT32_MAX);
        return text ? ingot_strings(m->c, (int)t->shape.n, dims, text) : ingot_poison(m->c);
    }
    const void *none = ""; /* of no elements */
    return ingot_data(m->c, t->name, dtype, (int)t->shape.n, dims,
                      bits < 8  ? unpacked(m, t, bits, count)
                      : t->data ? t->data
                                : none);
}

/* ---- what is not supported ------------------------------------------------------------------- */

static char type_letter(ingot_tflite_type type)
{
    switch (type) {
    case INGOT_TFLITE_FLOAT32: return 'f';
    case INGOT_TFLITE_FLOAT16: return 'h';
    case INGOT_TFLITE_INT8: return 'b';
    case INGOT_TFLITE_UINT8: return 'u';
    case INGOT_TFLITE_INT16: return 's';
    case INGOT_TFLITE_INT32: return 'i';
    case INGOT_TFLITE_UINT32: return 'j';
    case INGOT_TFLITE_INT64: return 'l';
    case INGOT_TFLITE_BOOL: return 't';
    case INGOT_TFLITE_COMPLEX64: return 'c';
    case INGOT_TFLITE_STRING: return 'x';
    default: return '?';
    }
}

/* Scales are numbers, and none is negative; other kinds have an operator that takes them. */
static bool check_scales(TfliteModel *m, const ingot_tflite_tensor *t, bool blocks)
{
    if (t->other_kind && !(blocks && tfl_has_blocks(t))) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "its tensor '%.100s' has %s, which it may not have",
                    t->name,
                    tfl_has_blocks(t) ? "a scale for each block" : "scales of another kind");
        return false;
    }
    for (size_t i = 0; i < t->scales.n; i++) {
        const float scale = ingot_tflite_f32(&t->scales, i);
        if (scale >= 0 && scale < INFINITY)
            continue;
        ingot_error(m->c, INGOT_INVALID, "its tensor '%.100s' has the scale %g", t->name,
                    (double)scale);
        return false;
    }
    return true;
}

static bool check_types(TfliteModel *m, const ingot_tflite_graph *g, const ingot_tflite_op *op,
                        const TfliteRow *row)
{
    const int32_t first = op->in.n ? ingot_tflite_i32(&op->in, 0) : -1;
    ingot_dtype dtype;
    for (size_t i = 0; i < op->in.n + op->out.n; i++) {
        const int32_t k =
            i < op->in.n ? ingot_tflite_i32(&op->in, i) : ingot_tflite_i32(&op->out, i - op->in.n);
        const bool blocks = i < op->in.n && takes_blocks(op->builtin, (int)i);
        if (k >= 0 && !check_scales(m, &g->tensors[k], blocks))
            return false;
        const bool known =
            k < 0 || g->tensors[k].type == INGOT_TFLITE_RESOURCE ||
            (g->tensors[k].type == INGOT_TFLITE_COMPLEX64 && strchr(row->types, 'c')) ||
            (g->tensors[k].type == INGOT_TFLITE_STRING ? strchr(row->types, 'x') != NULL
                                                       : tflite_dtype(g->tensors[k].type, &dtype));
        if (!known) {
            ingot_error(m->c, INGOT_UNSUPPORTED,
                        "its tensor '%.100s' is %s, which is not supported", g->tensors[k].name,
                        ingot_tflite_type_name((int)g->tensors[k].type, NULL));
            return false;
        }
    }
    if (row->types[0] == '*' || first < 0 ||
        strchr(row->types, type_letter(g->tensors[first].type)))
        return true;
    ingot_error(m->c, INGOT_UNSUPPORTED, "it is not supported for %s",
                ingot_tflite_type_name((int)g->tensors[first].type, NULL));
    return false;
}

static bool check_op(TfliteModel *m, const ingot_tflite_graph *g, const ingot_tflite_op *op)
{
    const TfliteRow *row = find_row(op->builtin);
    const char *what = tflite_op_name(m, op);
    if (tflite_user_op(m, op) || (op->builtin == TFL_CUSTOM && tflite_known_custom(op)))
        return true;
    if (op->builtin == TFL_CUSTOM) {
        const bool flex = !strncmp(op->custom, "Flex", 4);
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    flex ? "'%.100s' is an operator of TensorFlow's (Flex), which is not "
                           "supported: convert the model with builtin operators alone"
                         : "the custom operator '%.100s' is not supported: a C function of yours "
                           "can be it (--op)",
                    what);
        return false;
    }
    if (!row)
        ingot_error(m->c, INGOT_UNSUPPORTED, "%s is not supported", what);
    else if (op->version > row->version)
        ingot_error(m->c, INGOT_UNSUPPORTED, "its version is %d; up to %d is supported",
                    op->version, row->version);
    else if ((int64_t)op->in.n < row->least || (row->most >= 0 && (int)op->in.n > row->most))
        ingot_error(m->c, INGOT_INVALID, "it has %zu inputs, not %d%s", op->in.n, row->least,
                    row->most == row->least ? "" : " or more");
    else
        return check_types(m, g, op, row);
    return false;
}

/* Marks a graph and those that it calls, and theirs. */
static void reach(TfliteModel *m, int64_t graph, bool *reached)
{
    int64_t called;
    const ingot_tflite_graph *g = graph < 0 ? NULL : ingot_tflite_graph_get(m->file, (size_t)graph);
    if (!g || reached[graph])
        return;
    reached[graph] = true;
    for (size_t i = 0; i < g->n_ops; i++)
        for (size_t k = 0; tflite_calls(&g->ops[i], k, &called); k++)
            reach(m, called, reached);
}

bool tflite_check(TfliteModel *m)
{
    const ingot_tflite_graph *g;
    size_t n = 0;
    bool good = true;
    while (ingot_tflite_graph_get(m->file, n))
        n++;
    bool *reached = ingot_alloc(m->c, n + 1);
    for (int i = 0; i < m->n_entries; i++)
        if (tflite_wanted(m, i))
            reach(m, (int64_t)m->entries[i].graph, reached);
    for (size_t k = 0; (g = ingot_tflite_graph_get(m->file, k)); k++)
        for (size_t i = 0; reached[k] && i < g->n_ops; i++) {
            set_origin(m, g, &g->ops[i]);
            good &= check_op(m, g, &g->ops[i]);
        }
    ingot_set_origin(m->c, NULL, NULL);
    if (!good && !m->alone && m->n_entries > 1)
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "the file has %d signatures, and all are built: --entry NAME takes one of them "
                    "('%.60s', '%.60s' ..)",
                    m->n_entries, m->entries[0].name, m->entries[1].name);
    return good;
}

/* ---- building -------------------------------------------------------------------------------- */

/* As many zeros (of integers that stand for real numbers: zero points) as the tensor has. */
static ingot_tensor *zeros_of(TfliteModel *m, const ingot_tflite_tensor *t, ingot_dtype dtype,
                              const int64_t *dims)
{
    ingot_dim *d[INGOT_MAX_RANK];
    for (size_t i = 0; i < t->shape.n; i++)
        d[i] = ingot_dim_const(m->c, dims[i]);
    return ingot_expand(m->c, ingot_scalar_i(m->c, dtype, tfl_zero(t)), (int)t->shape.n, d);
}

/* A tensor that lives from run to run, of zeros at first: one, whoever of the functions runs its
 * graph. */
static ingot_tensor *variable(TfliteScope *s, int32_t number)
{
    TfliteModel *m = s->m;
    const ingot_tflite_tensor *t = &s->g->tensors[number];
    int64_t dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    for (int i = 0; i < m->n_states; i++)
        if (m->states[i].tensor == t)
            return m->states[i].state;
    if (m->depth || !tflite_dtype(t->type, &dtype) || t->shape.n > INGOT_MAX_RANK)
        return ingot_error(m->c, INGOT_UNSUPPORTED,
                           "tensor '%.100s': such a variable is not supported", t->name);
    for (size_t i = 0; i < t->shape.n; i++)
        dims[i] = ingot_tflite_i32(&t->shape, i);
    char *name = ingot_alloc(m->c, 32);
    snprintf(name, 32, "state_%d", m->n_states);
    TfliteState made = {t, tfl_zero(t) ? ingot_state_from(m->c, name, zeros_of(m, t, dtype, dims))
                                       : ingot_state(m->c, name, dtype, (int)t->shape.n, dims)};
    m->states = tfl_more(m, m->states, m->n_states, sizeof made);
    m->states[m->n_states++] = made;
    return made.state;
}

static ingot_tensor *external(TfliteModel *m, const ingot_tflite_tensor *t)
{
    ingot_tflite_tensor is;
    return tflite_external(m, t, &is) ? tflite_constant(m, &is) : ingot_poison(m->c);
}

/* A constant of no elements has no bytes: the shape [] that a scalar is reshaped to. */
static bool is_empty(const ingot_tflite_tensor *t)
{
    bool empty = false;
    for (size_t i = 0; i < t->shape.n; i++)
        empty |= !ingot_tflite_i32(&t->shape, i);
    return empty && t->type != INGOT_TFLITE_STRING;
}

static ingot_tensor *value_of(TfliteScope *s, int32_t number)
{
    TfliteModel *m = s->m;
    const ingot_tflite_tensor *t = &s->g->tensors[number];
    ingot_tensor **v = &s->value[number];
    if (!*v && (t->data || t->bytes))
        *v = tflite_constant(m, t);
    else if (!*v && t->external)
        *v = external(m, t);
    else if (!*v && t->is_variable)
        *v = variable(s, number);
    else if (!*v && is_empty(t))
        *v = tflite_constant(m, t);
    else if (!*v)
        *v = ingot_error(m->c, INGOT_INVALID, "tensor '%.100s' is read, and nothing writes it",
                         t->name);
    return *v;
}

ingot_tensor *tflite_read_constant(TfliteNode *n, size_t number)
{
    const ingot_tflite_tensor *t = &n->s->g->tensors[number];
    if (!t->data && !t->bytes && !t->external)
        return tfl_fault(n, "its tensor '%.100s' is no constant", t->name);
    return value_of(n->s, (int32_t)number);
}

/* From which input on some may be left out with -1. */
static int optional_from(int builtin)
{
    switch (builtin) {
    case TFL_BIDIRECTIONAL_SEQUENCE_LSTM:
    case TFL_LSTM:
    case TFL_UNIDIRECTIONAL_SEQUENCE_LSTM: return 1;
    case TFL_SVDF: return 3;
    case TFL_BIDIRECTIONAL_SEQUENCE_RNN: return 9;
    default: return 100;
    }
}

static bool without_output(int builtin)
{
    return builtin == TFL_ASSIGN_VARIABLE || builtin == TFL_CALL_ONCE || builtin == TFL_IF ||
           builtin == TFL_WHILE || builtin == TFL_STABLEHLO_COMPOSITE ||
           builtin == TFL_STABLEHLO_CASE || builtin == TFL_HASHTABLE_IMPORT;
}

static ingot_tensor *made_of(TfliteNode *n)
{
    const int builtin = n->op->builtin;
    ingot_custom_op *user = tflite_user_op(n->s->m, n->op);
    const TfliteRow *row = find_row(builtin);
    if (user)
        return tflite_call_user(n, user);
    const int least = row && row->most >= 0 ? row->least : n->n_in; /* of many: all */
    for (int i = 0; i < least; i++)
        if (!n->in[i] && i < optional_from(builtin))
            return tfl_fault(n, "its input %d is missing", i);
    if (!n->n_out && row && !without_output(builtin))
        return tfl_fault(n, "it has no output");
    return row ? lower(n, row) : tflite_known_custom(n->op)(n);
}

static void build_op(TfliteScope *s, const ingot_tflite_op *op)
{
    ingot_context *c = s->m->c;
    const size_t n_in = op->in.n, n_out = op->out.n;
    TfliteNode n = {.c = c, .s = s, .op = op, .n_in = (int)n_in, .n_out = (int)n_out};
    n.in = ingot_alloc(c, (n_in + 1) * sizeof *n.in);
    n.ti = ingot_alloc(c, (n_in + 1) * sizeof *n.ti);
    n.out = ingot_alloc(c, (n_out + 1) * sizeof *n.out);
    n.to = ingot_alloc(c, (n_out + 1) * sizeof *n.to);
    set_origin(s->m, s->g, op);
    bool poison = false;
    for (size_t i = 0; i < n_in; i++) {
        const int32_t k = ingot_tflite_i32(&op->in, i);
        n.ti[i] = k < 0 ? NULL : &s->g->tensors[k];
        n.in[i] = k < 0 ? NULL : value_of(s, k);
        poison |= k >= 0 && ingot_is_poison(n.in[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        const int32_t k = ingot_tflite_i32(&op->out, i);
        n.out[i] = ingot_poison(c);
        n.to[i] = k < 0 ? NULL : &s->g->tensors[k];
        if (k < 0)
            poison = true;
    }
    ingot_tensor *first = poison ? ingot_poison(c) : made_of(&n);
    for (size_t i = 0; i < n_out; i++) {
        const int32_t k = ingot_tflite_i32(&op->out, i);
        if (k >= 0)
            s->value[k] = poison ? ingot_poison(c) : i ? n.out[i] : first;
    }
}

/* An operator that replaces a row; false: it is no such one. */
static bool build_row(TfliteScope *s, const TfliteRows *list, const ingot_tflite_op *op)
{
    const int32_t i = tflite_row_at(list, op);
    if (i < 0)
        return tflite_is_part_of_row(list, op);
    const int32_t front = ingot_tflite_i32(&op->in, 0);
    for (size_t k = 0; k < s->g->n_ops; k++) {
        const ingot_tflite_op *slice = &s->g->ops[k];
        if (slice->builtin != TFL_SLICE || !slice->out.n ||
            ingot_tflite_i32(&slice->out, 0) != front)
            continue;
        set_origin(s->m, s->g, op);
        s->value[ingot_tflite_i32(&op->out, 0)] =
            tflite_with_row(s->m, value_of(s, ingot_tflite_i32(&slice->in, 0)), value_of(s, i),
                            value_of(s, ingot_tflite_i32(&op->in, 1)));
    }
    return true;
}

bool tflite_build_graph(TfliteModel *m, size_t graph, ingot_tensor *const *in, ingot_tensor **out)
{
    TfliteScope s = {.m = m, .g = ingot_tflite_graph_get(m->file, graph)};
    s.value = ingot_alloc(m->c, (s.g->n_tensors + 1) * sizeof *s.value);
    for (size_t i = 0; i < s.g->in.n; i++)
        s.value[ingot_tflite_i32(&s.g->in, i)] = in[i];
    const TfliteRows *list = tflite_rows(m, s.g);
    for (size_t i = 0; i < s.g->n_ops; i++)
        if (!build_row(&s, list, &s.g->ops[i]))
            build_op(&s, &s.g->ops[i]);
    ingot_set_origin(m->c, NULL, NULL);
    for (size_t i = 0; i < s.g->out.n; i++)
        out[i] = value_of(&s, ingot_tflite_i32(&s.g->out, i));
    return !ingot_error_count(m->c);
}
