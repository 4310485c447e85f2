/* rounding_bound.c - how far two ways to compute one element may be apart by rounding alone.
 *
 * A sum that nearly cancels is far from what another order of its terms gives, as a share of what
 * is left:
 *
 *     |fl(sum) - sum| <= n eps (|t1| + .. + |tn|)        about sqrt(n) eps where errors have either
 *                                                        sign
 *
 * (N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4).  So where an element of a
 * step differs by more than others may, what its kernel computes is evaluated for this element, in
 * double and with a running bound of the error, on what lay in memory before the step.  Memory is
 * what the program handed out after each step (side_by_side.c).
 *
 * A kernel or an op that there is no bound for explains nothing. */
#include <math.h>
#include <string.h>

#include "element.h"
#include "verify.h"

enum { MOST_VISITS = 200 * 1000 * 1000, MOST_RANGES = 64 };

/* A value and how far rounding may have moved it. */
typedef struct {
    double v, e;
} Bounded;

typedef struct Late {
    unsigned char *to, *from;
    size_t bytes;
    struct Late *next;
} Late;

/* An argument as it lies in memory before the step: from its first element on, of a root of so many
 * bytes. */
typedef struct {
    const unsigned char *bytes;
    int64_t dim[INGOT_MAX_RANK], from, room;
    bool known;
} BoundOperand;

struct Rounding {
    const Session *s;
    const Plan *p;
    Arena *a, *step_arena;     /* the latter: of what lies in memory before the step at hand */
    unsigned char **memory;    /* by Plan.memories */
    const unsigned char **own; /* by buffer: weights, inputs, outputs */
    Late *late;                /* what the step at hand has written */
    const Step *step;
    BoundOperand **operand; /* by argument, once one is asked for */
    int64_t visits;
    bool unknown; /* something has no bound */
    Node *range[MOST_RANGES];
    int64_t at[MOST_RANGES], extent[MOST_RANGES];
    int nrange;
    Interp *own_sizes, *sizes; /* run-time integers: those that inputs show; of the run at hand */
};

Rounding *rounding_new(const Session *s, const Plan *p, Arena *a)
{
    Rounding *r = NEW(a, Rounding);
    *r = (Rounding){.s = s, .p = p, .a = a};
    r->memory = NEWN(a, unsigned char *, p->nmemory + 1);
    r->own = NEWN(a, const unsigned char *, p->nbuffer + 1);
    for (int i = 0; i < p->nmemory; i++)
        r->memory[i] = arena_alloc(a, (size_t)p->memories[i].bytes + 1);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        const Data *begin = state_data(p, b);
        if (begin)
            memcpy(r->memory[b->memory] + b->offset, begin->bytes, begin->nbytes);
    }
    r->step_arena = arena_new();
    r->sizes = r->own_sizes = interp_new(p->c);
    for (int i = 0; i < p->ndim_source; i++) {
        const DimSource *d = &p->dim_sources[i];
        if (d->dim->op == OP_VAR && d->input < s->nin)
            var_assign(r->sizes, (int)d->dim->arg.i, s->in[d->input].dims[d->axis], 0);
    }
    return r;
}

void rounding_sizes(Rounding *r, Interp *of_run)
{
    r->sizes = of_run ? of_run : r->own_sizes;
}

void rounding_free(Rounding *r)
{
    interp_free(r->own_sizes);
    arena_free(r->step_arena);
    r->step_arena = NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const unsigned char *weight(Rounding *r, const Buffer *b)
{
    Interp *ip = interp_new(r->p->c);
    int64_t dims[INGOT_MAX_RANK];
    unsigned char *to = arena_alloc(r->a, (size_t)b->bytes + 1);
    const void *data = interp_eval(ip, b->node, dims);
    if (data)
        layout_pack(&b->layout, b->rank, dims, (size_t)element_bytes(b->dtype), data, to, NULL,
                    NULL);
    interp_free(ip);
    return data ? to : NULL;
}

/* An integer that depends on no loop of a kernel; false: on something that is not known. */
static bool number(const Rounding *r, Node *n, int64_t *v)
{
    if (idx_value(n, v))
        return true;
    if (n->op == OP_VAR)
        return r->sizes->var_set[n->arg.i] && (*v = dim_value(r->sizes, n), true);
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!number(r, n->src[i], v))
            return false;
    return n->nsrc && op_is_alu(n->op) && (*v = dim_value(r->sizes, n), true);
}

/* Where the bytes of a root are, or NULL: nobody knows them. */
static const unsigned char *root_bytes(Rounding *r, const Buffer *root)
{
    if (root->kind == BUF_ARENA || root->kind == BUF_STATE)
        return r->memory[root->memory] + root->offset;
    if (!r->own[root->id] && root->kind == BUF_INPUT && root->slot < r->s->nin)
        r->own[root->id] = r->s->in[root->slot].data;
    if (!r->own[root->id] && root->kind == BUF_WEIGHT && root->node)
        r->own[root->id] = weight(r, root);
    if (!r->own[root->id] && root->kind == BUF_OUTPUT)
        r->own[root->id] = arena_alloc(r->a, (size_t)root->bytes + 1);
    return r->own[root->id];
}

/* The same of any buffer; *from: its first element, *room: bytes of all that it is a view of. NULL:
 * its place moves, too. */
static const unsigned char *bytes_of(Rounding *r, const Buffer *b, int64_t *from, int64_t *room)
{
    int64_t at;
    *from = 0;
    for (; b->base; b = b->base) {
        if (b->base_offset && !number(r, b->base_offset, &at))
            return NULL;
        *from += b->base_offset ? at : 0;
    }
    *room = b->bytes;
    return root_bytes(r, b);
}

/* A step reads what there was before it, whatever it writes: its bytes come to their place with the
 * next step, or when it runs again. */
static void step_begins(Rounding *r, const Step *step)
{
    for (Late *l = r->late; l; l = l->next)
        memcpy(l->to, l->from, l->bytes);
    arena_free(r->step_arena);
    r->step_arena = arena_new();
    r->late = NULL;
    r->operand = NULL;
    r->step = step;
}

void rounding_wrote(Rounding *r, const Step *step, const Buffer *b, int64_t offset,
                    const char *bytes)
{
    const Buffer *root = buffer_root(b);
    const unsigned char *place =
        root->kind == BUF_OUTPUT ? root_bytes(r, root) : r->memory[root->memory] + offset;
    unsigned char *to = (unsigned char *)(uintptr_t)place;
    bool again = step != r->step;
    for (Late *l = r->late; l && !again; l = l->next)
        again = l->to == to;
    if (again)
        step_begins(r, step);
    Late *l = NEW(r->step_arena, Late), **end = &r->late;
    *l = (Late){.to = to, .bytes = (size_t)b->bytes};
    l->from = arena_alloc(r->step_arena, l->bytes + 1);
    memcpy(l->from, bytes, l->bytes);
    while (*end)
        end = &(*end)->next;
    *end = l;
}

/* What the argument was before the step. */
static const BoundOperand *operand_of(Rounding *r, const Step *s, int arg)
{
    const KernelArg *a = &s->kernel->args[arg];
    if (!r->operand)
        r->operand = NEWN(r->step_arena, BoundOperand *, s->kernel->narg + 1);
    if (r->operand[arg])
        return r->operand[arg];
    BoundOperand *o = r->operand[arg] = NEW(r->step_arena, BoundOperand);
    for (int i = 0; i < a->rank; i++)
        if (!number(r, a->dims[i], &o->dim[i]))
            return o;
    o->bytes = bytes_of(r, s->bufs[arg], &o->from, &o->room);
    o->known = o->bytes && dtype_info[a->dtype].kind != 'c' && a->dtype != INGOT_STRING;
    return o;
}

/* The element with these coordinates; NAN beyond what a slice is cut from. */
static double element_of(const BoundOperand *o, const KernelArg *a, const int64_t *coords)
{
    const int64_t each = element_bytes(a->dtype),
                  at = o->from + layout_at(&a->layout, a->rank, o->dim, coords);
    double v = NAN;
    if (at >= 0 && (at + 1) * each <= o->room)
        interp_to_f64(a->dtype, 1, &v, o->bytes + at * each);
    return v;
}

/* ---- an expression --------------------------------------------------------------------------- */

static Bounded eval(Rounding *r, const Step *s, Node *n);

static Bounded unknown(Rounding *r)
{
    r->unknown = true;
    return (Bounded){0, 0};
}

static int64_t whole(Rounding *r, const Step *s, Node *n)
{
    Bounded x = eval(r, s, n);
    if (x.e > 0 || x.v != floor(x.v))
        (void)unknown(r);
    return (int64_t)x.v;
}

static Bounded load(Rounding *r, const Step *s, Node *n)
{
    if (n->src[0]->op != OP_BUFFER)
        return unknown(r);
    if (!whole(r, s, n->src[1]))
        return (Bounded){0, 0};
    const KernelArg *a = &s->kernel->args[n->src[0]->arg.i];
    const BoundOperand *o = operand_of(r, s, (int)n->src[0]->arg.i);
    int64_t at[INGOT_MAX_RANK];
    for (int i = 0; i < a->rank && o->known; i++) {
        at[i] = whole(r, s, n->src[first_coord(n) + i]);
        if (at[i] < 0 || at[i] >= o->dim[i])
            return unknown(r);
    }
    const double v = o->known && !r->unknown ? element_of(o, a, at) : NAN;
    return isnan(v) ? unknown(r) : (Bounded){v, 0};
}

/* The next of the ranges; its counter is 0. */
static bool enter(Rounding *r, Node *range)
{
    if (r->nrange == MOST_RANGES || !number(r, range->src[0], &r->extent[r->nrange]))
        return false;
    r->range[r->nrange] = range;
    r->at[r->nrange] = 0;
    return true;
}

/* Each partial sum is rounded, and is no more than all terms are by their sizes. */
static Bounded reduce(Rounding *r, const Step *s, Node *n)
{
    const int monoid = reduce_monoid(n), first = (int)reduce_ranges(n), from = r->nrange;
    int64_t count = 1;
    double sizes = 0;
    Bounded all = {monoid == INGOT_REDUCE_MAX   ? -INFINITY
                   : monoid == INGOT_REDUCE_MIN ? INFINITY
                                                : 0,
                   0};
    if (reduce_size(n) != 1 ||
        (monoid != INGOT_REDUCE_ADD && monoid != INGOT_REDUCE_MAX && monoid != INGOT_REDUCE_MIN))
        return unknown(r);
    for (int i = first; i < (int)n->nsrc; i++, r->nrange++) {
        if (!enter(r, n->src[i]))
            return unknown(r);
        count *= r->extent[r->nrange];
    }
    for (int64_t k = 0; k < count && !r->unknown; k++) {
        int64_t rest = k;
        for (int i = r->nrange; i-- > from; rest /= r->extent[i])
            r->at[i] = rest % r->extent[i];
        Bounded t = eval(r, s, n->src[0]);
        sizes += fabs(t.v);
        all.e = monoid == INGOT_REDUCE_ADD ? all.e + t.e : fmax(all.e, t.e);
        all.v = monoid == INGOT_REDUCE_ADD   ? all.v + t.v
                : monoid == INGOT_REDUCE_MAX ? fmax(all.v, t.v)
                                             : fmin(all.v, t.v);
    }
    r->nrange = from;
    if (monoid == INGOT_REDUCE_ADD)
        all.e += sqrt((double)count) * element_eps((ingot_dtype)n->dtype) * sizes;
    return all;
}

/* As it is stored, of an integer; floats stay double. */
static ingot_dtype computed_in(const Node *n)
{
    return dtype_is_float(n->dtype) ? INGOT_F64 : (ingot_dtype)n->dtype;
}

static Bounded alu(Rounding *r, Node *n, const Bounded *x)
{
    enum { MOST = 16 };
    unsigned char stored[3][MOST], result[MOST];
    uint8_t type[3] = {0};
    const void *in[3] = {NULL, NULL, NULL};
    const double *v[3] = {NULL, NULL, NULL}, *e[3] = {NULL, NULL, NULL};
    const ingot_dtype to = computed_in(n);
    Bounded y = {0, 0};
    for (uint32_t i = 0; i < n->nsrc; i++) {
        type[i] = (uint8_t)computed_in(n->src[i]);
        alu_cast((ingot_dtype)type[i], INGOT_F64, 0, 1, stored[i], &x[i].v);
        in[i] = stored[i];
        v[i] = &x[i].v;
        e[i] = x[i].e > 0 ? &x[i].e : NULL;
    }
    if (n->op == OP_BITCAST && n->dtype != n->src[0]->dtype)
        return unknown(r);
    if (n->op == OP_CAST || n->op == OP_BITCAST)
        alu_cast(to, (ingot_dtype)type[0], n->arg.i, 1, result, in[0]);
    else
        alu_lanes((Op)n->op, n->arg.i, to, type, 1, result, in);
    alu_cast(INGOT_F64, to, 0, 1, &y.v, result);
    if (dtype_is_float(n->dtype) || e[0] || e[1] || e[2])
        element_error(n, 1, v, e, &y.v, &y.e);
    return y;
}

/* By recursion, as expressions of kernels are lowered. */
static Bounded eval(Rounding *r, const Step *s, Node *n)
{
    if (r->unknown || ++r->visits > MOST_VISITS)
        return unknown(r);
    if (n->op == OP_CONST)
        return dtype_is_float(n->dtype) ? (Bounded){node_float(n), 0}
                                        : (Bounded){(double)n->arg.i, 0};
    if (n->op == OP_PARAM && !n->nsrc)
        return (Bounded){s->scalars[n->arg.i], 0};
    int64_t v;
    if (n->op == OP_VAR)
        return number(r, n, &v) ? (Bounded){(double)v, 0} : unknown(r);
    if (n->op == OP_LOAD)
        return load(r, s, n);
    if (n->op == OP_REDUCE)
        return reduce(r, s, n);
    for (int i = 0; i < r->nrange && n->op == OP_RANGE; i++)
        if (r->range[i] == n)
            return (Bounded){(double)r->at[i], 0};
    Bounded x[3] = {{0, 0}, {0, 0}, {0, 0}};
    if (!op_is_alu(n->op) || n->op == OP_CUSTOM || n->nsrc > 3)
        return unknown(r);
    for (uint32_t i = 0; i < n->nsrc; i++)
        x[i] = eval(r, s, n->src[i]);
    return r->unknown ? (Bounded){0, 0} : alu(r, n, x);
}

/* ---- an element ------------------------------------------------------------------------------ */

/* Ranges times strides, of a coordinate. */
typedef struct {
    Node *range[INGOT_MAX_RANK];
    int64_t stride[INGOT_MAX_RANK];
    int n;
} Strided;

/* Divides a coordinate into its terms, the largest stride first, and what is constant of it. */
static bool strided(const Rounding *r, Node *x, Strided *t, int64_t *constant)
{
    int64_t v, stride = 1;
    if (number(r, x, &v)) {
        *constant += v;
        return true;
    }
    if (x->op == OP_ADD)
        return strided(r, x->src[0], t, constant) && strided(r, x->src[1], t, constant);
    if (x->op == OP_MUL && number(r, x->src[1], &stride))
        x = x->src[0];
    if (x->op != OP_RANGE || stride <= 0 || t->n == INGOT_MAX_RANK)
        return false;
    int at = t->n++;
    for (; at > 0 && t->stride[at - 1] < stride; at--) {
        t->range[at] = t->range[at - 1];
        t->stride[at] = t->stride[at - 1];
    }
    t->range[at] = x;
    t->stride[at] = stride;
    return true;
}

/* The counters of the loops in which this store writes these coordinates; false: in none, or in
 * more than one. Axes that lie in one, i*8 + j, are read like digits. */
static bool loops_at(Rounding *r, const Node *store, int rank, const int64_t *coord)
{
    r->nrange = 0;
    for (int i = 0; i < rank; i++) {
        Strided t = {.n = 0};
        int64_t constant = 0;
        if (!strided(r, store->src[first_coord(store) + i], &t, &constant))
            return false;
        int64_t rest = coord[i] - constant;
        for (int k = 0; k < t.n; k++) {
            if (!enter(r, t.range[k]) || rest < 0 || rest / t.stride[k] >= r->extent[r->nrange] ||
                (k > 0 && t.stride[k] * r->extent[r->nrange] > t.stride[k - 1]))
                return false;
            r->at[r->nrange++] = rest / t.stride[k];
            rest %= t.stride[k];
        }
        if (rest)
            return false;
    }
    return true;
}

double rounding_bound(Rounding *r, const Step *s, const Buffer *b, size_t element)
{
    if (s->kind != STEP_KERNEL || s->kernel->serial || r->visits > MOST_VISITS)
        return 0;
    double most = 0;
    const Node *end = s->kernel->sink->src[s->kernel->sink->nsrc - 1];
    for (int i = 0; i < end_stores(end); i++) {
        Node *store = end->src[i];
        const int arg = (int)store->src[0]->arg.i;
        const KernelArg *a = &s->kernel->args[arg];
        const Buffer *to = s->bufs[arg];
        int64_t dim[INGOT_MAX_RANK], coord[INGOT_MAX_RANK], from = 0;
        bool known = to == b || to->base == b;
        if (to != b && known && to->base_offset)
            known = number(r, to->base_offset, &from);
        for (int d = 0; d < a->rank && known; d++)
            known = number(r, a->dims[d], &dim[d]);
        if (!known || !layout_find(&a->layout, a->rank, dim, (int64_t)element - from, coord) ||
            !loops_at(r, store, a->rank, coord))
            continue;
        r->unknown = false;
        Bounded x = eval(r, s, store->src[2]);
        if (!r->unknown && isfinite(x.e))
            most = fmax(most, 2 * x.e); /* both are so near to what is exact */
    }
    r->nrange = 0;
    return most;
}
