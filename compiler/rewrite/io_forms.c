/* io_forms.c - inputs and outputs as the caller has them, not as the model's file does.
 *
 *     x f32, y = cast.i8(clamp(round(x / s) + z)), all read y     ->   x is i8, and all read x
 *     out = (cast.f32(q) - z) * s                                 ->   out is q
 *     x f32[1,3,32,32]                                            ->   permute(x f32[1,32,32,3])
 *
 * A sensor gives bytes, and a caller that looks for the largest of ten numbers needs no floats:
 * then neither the step nor four bytes an element are wanted.  It is a part of what is asked for,
 * not of how it is computed: the interpreter's graph is changed alike.  Movement between the input
 * and that step moves bytes from then on. */
#include <math.h>
#include <string.h>

#include "rewrite.h"

/* y = saturate(round(x / scale) + zero), of a byte's whole range. */
typedef struct {
    Node *chain[8]; /* what becomes y, x not among it */
    int n;
    Node *x;
    float scale;
    int zero;
} Quantised;

/* A constant in f32, or false. */
static bool constant_below(Node *n, double *value)
{
    Node *number = uniform(n);
    if (!number)
        return false;
    *value = dtype_is_float(number->dtype) ? node_float(number) : (double)number->arg.i;
    return true;
}

/* Goes on below one op with a constant, in either place of what commutes; its value, or NAN. */
static double step_below(Quantised *q, Node **at, Op op)
{
    Node *n = *at;
    double value;
    if (n->op != op || n->nsrc != 2)
        return NAN;
    for (int i = 1; i >= (op == OP_DIV ? 1 : 0); i--)
        if (constant_below(n->src[i], &value)) {
            q->chain[q->n++] = n;
            *at = n->src[1 - i];
            return value;
        }
    return NAN;
}

static bool is_byte_type(const Node *n)
{
    return n->dtype == INGOT_I8 || n->dtype == INGOT_U8;
}

/* What a cast to bytes quantises, if it is one that a caller can do. */
static bool quantised_by(Node *cast, Quantised *q)
{
    *q = (Quantised){.n = 0};
    if (cast->op != OP_CAST || !is_byte_type(cast) || cast->src[0]->dtype != INGOT_F32)
        return false;
    const double least = cast->dtype == INGOT_I8 ? INT8_MIN : 0;
    Node *at = cast->src[0];
    const double hi = step_below(q, &at, OP_MIN), lo = step_below(q, &at, OP_MAX);
    if (hi != least + UINT8_MAX || lo != least)
        return false;
    const double zero = step_below(q, &at, OP_ADD);
    if (at->op != OP_ROUND)
        return false;
    q->zero = isnan(zero) ? 0 : (int)zero;
    q->chain[q->n++] = at;
    at = at->src[0];
    const double scale = step_below(q, &at, OP_DIV);
    q->scale = (float)scale;
    q->x = at;
    return scale > 0;
}

/* What a product of f32 dequantises, bytes, or NULL. */
static Node *dequantised(Node *y, Quantised *q)
{
    *q = (Quantised){.n = 0};
    Node *at = y;
    const double scale = step_below(q, &at, OP_MUL);
    if (!(scale > 0) || at->op != OP_CAST || at->dtype != INGOT_F32)
        return NULL;
    at = at->src[0];
    const double zero = step_below(q, &at, OP_SUB);
    q->zero = isnan(zero) ? 0 : (int)zero;
    q->scale = (float)scale;
    while (at->op == OP_CAST && at->dtype == INGOT_I32)
        at = at->src[0];
    return is_byte_type(at) ? at : NULL;
}

static bool only_moves(const Node *n)
{
    return n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_FLIP || n->op == OP_KEEP;
}

/* The same movement of what `from` became. */
static Node *moved_alike(Context *c, Node *n, const Node *from, Node *now)
{
    if (n == from)
        return now;
    Node *x = moved_alike(c, n->src[0], from, now), *src[INGOT_MAX_RANK * 4];
    memcpy((void *)src, (void *)n->src, (size_t)n->nsrc * sizeof *src);
    src[0] = x;
    return node_make(c, n->op, (ingot_dtype)x->dtype, n->arg, (int)n->nsrc, src, n->rank, n->shape);
}

static IoForm *form_of(Context *c, const NamedNode *io)
{
    IoForm *f = NEW(c->arena, IoForm);
    if (io->form) {
        *f = *io->form;
        return f;
    }
    f->dtype = (ingot_dtype)io->node->dtype;
    f->rank = io->node->rank;
    for (int i = 0; i < f->rank; i++)
        f->dims[i] = io->node->shape[i]->hi;
    return f;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef struct {
    Rewrite r;
    NamedNode *in;
    Node *now;     /* the new input */
    ingot_dtype d; /* wanted of it */
    Quantised all; /* of every reader */
    bool *moved;   /* by id: the input, moved; */
    bool *own;     /* and what becomes of it on the way to bytes */
    Node **cast;   /* those bytes */
    int ncast;
} InputForm;

/* Why an input cannot be bytes, or NULL: then what reads it is known. */
static const char *find_readers(InputForm *f, int n, Node *const *nodes)
{
    Context *c = f->r.c;
    Arena *a = f->r.a;
    f->moved = NEWN(a, bool, c->nnode + 1);
    f->own = NEWN(a, bool, c->nnode + 1);
    f->moved[f->in->node->id] = f->own[f->in->node->id] = true;
    for (int i = 0; i < n; i++)
        if (only_moves(nodes[i]) && f->moved[nodes[i]->src[0]->id])
            f->moved[nodes[i]->id] = f->own[nodes[i]->id] = true;
    for (int i = 0; i < n; i++) {
        Quantised q;
        if (!quantised_by(nodes[i], &q) || !f->moved[q.x->id])
            continue;
        if (nodes[i]->dtype != f->d)
            return nodes[i]->dtype == INGOT_I8 ? "it is quantised to i8: say int8"
                                               : "it is quantised to u8: say uint8";
        if (f->ncast && (q.scale != f->all.scale || q.zero != f->all.zero))
            return "it is quantised in two ways";
        f->all = q;
        for (int k = 0; k < q.n; k++)
            f->own[q.chain[k]->id] = true;
        vec_push(a, f->cast, f->ncast, nodes[i]);
    }
    if (!f->ncast)
        return "no QuantizeLinear of one scale reads it";
    for (int i = 0; i < n; i++) {
        bool good = f->own[nodes[i]->id];
        for (int k = 0; k < f->ncast; k++)
            good |= nodes[i] == f->cast[k];
        for (uint32_t k = 0; !good && k < nodes[i]->nsrc; k++)
            if (f->own[nodes[i]->src[k]->id]) {
                const Origin *o = node_origin(c, nodes[i]);
                return o ? arena_printf(a, "'%s' (%s) reads it as it is", o->node, o->op)
                         : "it is read as it is, too";
            }
    }
    for (int i = 0; i < c->noutput; i++)
        if (f->own[c->outputs[i].node->id])
            return "it is an output, too";
    return NULL;
}

static Node *renew_bytes(Rewrite *r, Node *t)
{
    InputForm *f = r->user;
    for (int i = 0; i < f->ncast; i++)
        if (t == f->cast[i]) {
            Quantised q;
            (void)quantised_by(t, &q);
            return moved_alike(r->c, q.x, f->in->node, f->now);
        }
    return NULL;
}

static Node *input_like(Context *c, const Node *old, ingot_dtype d, int rank, Node *const *dims)
{
    return node_make(c, OP_INPUT, d, old->arg, rank, dims, rank, dims);
}

static const char *input_bytes(Context *c, NamedNode *in, ingot_dtype d)
{
    InputForm f = {.r = {.c = c, .a = arena_new(), .renew = renew_bytes}, .in = in, .d = d};
    f.r.user = &f;
    int n;
    Node **nodes = graph_nodes(f.r.a, c, &n);
    const char *why = in->node->dtype == INGOT_F32 ? find_readers(&f, n, nodes) : "it is not f32";
    if (!why) {
        f.now = input_like(c, in->node, d, in->node->rank, in->node->shape);
        (void)rewrite_pass(&f.r);
        IoForm *form = form_of(c, in);
        form->quantised = true;
        form->scale = f.all.scale;
        form->zero = f.all.zero;
        in->node = f.now;
        in->form = form;
    } else {
        why = arena_strdup(c->arena, why);
    }
    arena_free(f.r.a);
    return why;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static const char *output_bytes(Context *c, NamedNode *out, ingot_dtype d)
{
    Node *y = out->node;
    while (only_moves(y))
        y = y->src[0];
    Quantised q;
    Node *bytes = dequantised(y, &q);
    if (!bytes)
        return "no DequantizeLinear of one scale gives it";
    if (bytes->dtype != d)
        return bytes->dtype == INGOT_I8 ? "it is dequantised from i8: say int8"
                                        : "it is dequantised from u8: say uint8";
    IoForm *form = form_of(c, out);
    form->quantised = true;
    form->scale = q.scale;
    form->zero = q.zero;
    out->node = moved_alike(c, out->node, y, bytes);
    out->form = form;
    return NULL;
}

/* ---- channels last --------------------------------------------------------------------------- */

/* From the file's axes to those with the channels last, or back. */
static void channel_axes(int rank, bool back, int *perm)
{
    for (int i = 0; i < rank; i++)
        perm[i] = back ? (i == 0   ? 0
                          : i == 1 ? rank - 1
                                   : i - 1)
                       : (i == 0          ? 0
                          : i == rank - 1 ? 1
                                          : i + 1);
}

static Node *renew_input(Rewrite *r, Node *t)
{
    InputForm *f = r->user;
    int perm[INGOT_MAX_RANK];
    channel_axes(t->rank, true, perm);
    return t == f->in->node ? ingot_permute(r->c, f->now, perm) : NULL;
}

static const char *channels_last(Context *c, NamedNode *io, bool input)
{
    const Node *x = io->node;
    if (x->rank < 3)
        return "it has no axes behind its channels";
    if (io->form && io->form->last)
        return NULL;
    IoForm *form = form_of(c, io);
    form->last = true;
    int perm[INGOT_MAX_RANK];
    channel_axes(x->rank, false, perm);
    if (input) {
        InputForm f = {.r = {.c = c, .a = arena_new(), .renew = renew_input}, .in = io};
        f.r.user = &f;
        Node *dims[INGOT_MAX_RANK];
        for (int i = 0; i < x->rank; i++)
            dims[i] = x->shape[perm[i]];
        f.now = input_like(c, x, (ingot_dtype)x->dtype, x->rank, dims);
        (void)rewrite_pass(&f.r);
        io->node = f.now;
        arena_free(f.r.a);
    } else {
        io->node = ingot_permute(c, io->node, perm);
    }
    io->form = form;
    return NULL;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

typedef enum { IO_INT8, IO_UINT8, IO_NHWC, IO_FORMS } IoWanted;
static const char *const io_names[IO_FORMS] = {"int8", "uint8", "nhwc"};

/* Why it cannot be so, or NULL. */
static const char *take_form(Context *c, NamedNode *io, int number, bool input, IoWanted form)
{
    const ingot_dtype d = form == IO_UINT8 ? INGOT_U8 : INGOT_I8;
    const IoGroup *group = input ? c->input_groups : c->output_groups;
    const int ngroup = input ? c->ninput_group : c->noutput_group;
    for (int i = 0; i < ngroup; i++)
        if (group[i].first <= number && number < group[i].first + group[i].n)
            return "it is an element of a sequence or an optional";
    if (input && c->bound && c->bound[number])
        return "it is bound to a value";
    if (form == IO_NHWC)
        return channels_last(c, io, input);
    if (io->node->dtype == d) /* it is so already */
        return NULL;
    return input ? input_bytes(c, io, d) : output_bytes(c, io, d);
}

/* Of each that can be so; channels are the inputs' and outputs' that have axes behind them. */
static bool set_all(Context *c, IoWanted form)
{
    int n = 0;
    for (int i = 0; i < c->ninput; i++)
        n += !take_form(c, &c->inputs[i], i, true, form);
    for (int i = 0; i < c->noutput; i++)
        n += !take_form(c, &c->outputs[i], i, false, form);
    if (!n)
        context_report(c, INGOT_ERROR, INGOT_UNSUPPORTED,
                       "%s: --io %s: no input or output can be so", c->file ? c->file : "model",
                       io_names[form]);
    return n > 0;
}

bool ingot_set_io(ingot_context *c, const char *name, const char *form)
{
    IoWanted wanted = 0;
    while (wanted < IO_FORMS && strcmp(io_names[wanted], form) != 0)
        wanted++;
    if (wanted == IO_FORMS) {
        context_report(c, INGOT_ERROR, INGOT_USAGE, "--io '%.80s': choose int8, uint8 or nhwc",
                       form);
        return false;
    }
    if (c->nerror)
        return false;
    if (!name)
        return set_all(c, wanted);
    const char *why = NULL;
    bool known = false;
    for (int i = 0; i < c->ninput && !why; i++)
        if (!strcmp(c->inputs[i].name, name)) {
            known = true;
            why = take_form(c, &c->inputs[i], i, true, wanted);
        }
    for (int i = 0; i < c->noutput && !why; i++)
        if (!strcmp(c->outputs[i].name, name)) {
            known = true;
            why = take_form(c, &c->outputs[i], i, false, wanted);
        }
    if (!known)
        why = "no input or output has this name";
    if (why)
        context_report(c, INGOT_ERROR, known ? INGOT_UNSUPPORTED : INGOT_USAGE,
                       "%s: --io %.200s=%s: %s", c->file ? c->file : "model", name, form, why);
    return !why;
}

/* ---- values ---------------------------------------------------------------------------------- */

static ingot_value bytes_of(Arena *a, const IoForm *f, ingot_dtype d, const ingot_value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    uint8_t *to = arena_array(a, (size_t)n + 1, 1);
    const int least = d == INGOT_I8 ? INT8_MIN : 0, most = least + UINT8_MAX;
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, (const uint8_t *)v->data + 4 * i, 4);
        const float whole = rintf(x / f->scale) + (float)f->zero;
        to[i] = (uint8_t)(int)(!(whole > (float)least) ? (float)least
                               : whole > (float)most   ? (float)most
                                                       : whole);
    }
    ingot_value out = *v;
    out.data = to;
    out.dtype = d;
    return out;
}

static ingot_value channels_moved(Arena *a, const ingot_value *v)
{
    const size_t bytes = (size_t)dtype_info[v->dtype].bytes;
    int64_t inner = 1;
    for (int i = 2; i < v->rank; i++)
        inner *= v->dims[i];
    const int64_t channels = v->dims[1], each = channels * inner;
    uint8_t *to = arena_array(a, (size_t)(v->dims[0] * each) + 1, bytes);
    for (int64_t b = 0; b < v->dims[0]; b++)
        for (int64_t k = 0; k < channels; k++)
            for (int64_t i = 0; i < inner; i++)
                memcpy(to + (size_t)(b * each + i * channels + k) * bytes,
                       (const uint8_t *)v->data + (size_t)(b * each + k * inner + i) * bytes,
                       bytes);
    ingot_value out = *v;
    for (int i = 1; i + 1 < v->rank; i++)
        out.dims[i] = v->dims[i + 1];
    out.dims[v->rank - 1] = channels;
    out.data = to;
    return out;
}

ingot_value io_value(Arena *a, const NamedNode *io, const ingot_value *v)
{
    const IoForm *f = io->form;
    ingot_value out = *v;
    if (!f || !v->data || v->rank != f->rank)
        return out;
    if (f->quantised && v->dtype == INGOT_F32)
        out = bytes_of(a, f, (ingot_dtype)io->node->dtype, v);
    bool as_file = f->last;
    for (int i = 0; i < v->rank; i++)
        as_file &= v->dims[i] == f->dims[i];
    return as_file ? channels_moved(a, &out) : out;
}
