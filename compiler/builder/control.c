/* control.c - regions, loops, branches, library kernels, and run-time integers that they set.
 *
 * A region is known by a mark: nodes made after region_begin() have ids from the mark up.  What
 * its results reach below the mark comes from outside and is captured: it becomes a source of the
 * LOOP or IF node, which is evaluated before it.  Constants, iotas and dims need no capturing;
 * they are free to make again. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "clone.h"
#include "eval.h"

/* ---- regions --------------------------------------------------------------------------------- */

ingot_region *ingot_region_begin(ingot_context *c)
{
    struct Region *r = NEW(c->arena, struct Region);
    r->mark = c->nnode;
    r->outer = c->region;
    c->region = r;
    return r;
}

ingot_tensor *ingot_region_param(ingot_context *c, ingot_region *r, ingot_dtype d, int rank,
                                 ingot_dim *const *dims)
{
    if ((int)d < 0 || d >= INGOT_INDEX)
        return ingot_error(c, INGOT_INVALID, "region parameter: %d is no element type", (int)d);
    if (!shape_check(c, "region parameter", rank, dims))
        return c->poison;
    Node *p = node_make(c, OP_PARAM, d, (Arg){.i = c->nparam++}, rank, dims, rank, dims);
    vec_push(c->arena, r->param, r->nparam, p);
    return p;
}

ingot_tensor *ingot_region_param_like(ingot_context *c, ingot_region *r, ingot_tensor *x)
{
    if (poisoned(x))
        return x;
    return ingot_region_param(c, r, (ingot_dtype)x->dtype, x->rank, x->shape);
}

/* Free to make again inside: constants, dims and coordinates, and movement of them. */
static bool is_free(Node *x)
{
    while (op_arranges(x->op) || x->op == OP_SHRINK || x->op == OP_FLIP || x->op == OP_CAST)
        x = x->src[0];
    return x->op == OP_CONST || x->op == OP_VAR || x->op == OP_IOTA || x->dtype == INGOT_INDEX;
}

static bool is_param_of(const struct Region *r, Node *x)
{
    for (int i = 0; i < r->nparam; i++)
        if (r->param[i] == x)
            return true;
    return false;
}

bool *region_outside(Arena *a, const Context *c, int nroot, Node *const *root)
{
    int n;
    Node **order = graph_toposort(a, nroot, root, &n);
    bool *outside = NEWN(a, bool, c->nnode + 1);
    for (int i = 0; i < n; i++)
        outside[order[i]->id] = true;
    return outside;
}

void region_captures(Context *c, struct Region *r, const bool *outside)
{
    Arena *a = arena_new();
    r->capture = NULL;
    r->ncapture = 0;
    uint8_t *seen = arena_alloc(a, c->nnode);
    Node **stack = NULL;
    int n = 0;
    for (int i = 0; i < r->nresult; i++)
        vec_push(a, stack, n, r->result[i]);
    while (n > 0) {
        Node *x = stack[--n];
        if (seen[x->id])
            continue;
        seen[x->id] = 1;
        if (outside ? outside[x->id] : x->id < r->mark) {
            if (!is_free(x))
                vec_push(c->arena, r->capture, r->ncapture, x);
            continue;
        }
        /* INPUT, DATA and STATE are outside wherever they were made. */
        if (x->op == OP_INPUT || x->op == OP_DATA || x->op == OP_STATE) {
            vec_push(c->arena, r->capture, r->ncapture, x);
            continue;
        }
        if (x->op == OP_PARAM && !is_param_of(r, x)) {
            ingot_error(c, INGOT_INVALID,
                        "a region's result uses a value of another region's inside");
            break;
        }
        for (uint32_t i = x->nsrc; i-- > 0;)
            vec_push(a, stack, n, x->src[i]);
    }
    arena_free(a);
}

void ingot_region_end(ingot_context *c, ingot_region *r, int n, ingot_tensor *const *results)
{
    if (c->region != r) {
        ingot_error(c, INGOT_INVALID, "regions must end in the reverse order of their beginnings");
        return;
    }
    c->region = r->outer;
    r->result = NEWN(c->arena, Node *, n ? n : 1);
    r->nresult = n;
    bool bad = false;
    for (int i = 0; i < n; i++) {
        r->result[i] = results[i];
        bad |= poisoned(results[i]);
    }
    if (!bad)
        region_captures(c, r, NULL);
}

/* ---- tuples ---------------------------------------------------------------------------------- */

static Node *tuple_make(Context *c, Op op, const void *arg, int nsrc, Node *const *src)
{
    return node_make(c, op, INGOT_U8, (Arg){.ptr = arg}, nsrc, src, 0, NULL);
}

static Node *proj(Context *c, Node *tuple, int i, ingot_dtype d, int rank, Node *const *dims)
{
    Node *src[1 + INGOT_MAX_RANK] = {tuple};
    for (int a = 0; a < rank; a++)
        src[1 + a] = dims[a];
    return node_make(c, OP_PROJ, d, (Arg){.i = i}, 1 + rank, src, rank, dims);
}

Node *tuple_result(Context *c, Node *t, int i)
{
    if (t->op == OP_CALL) {
        const ingot_call_out *o = &((const Call *)t->arg.ptr)->out[i];
        return proj(c, t, i, o->dtype, o->rank, o->dims);
    }
    const Loop *loop = t->op == OP_LOOP ? t->arg.ptr : NULL;
    Node *x = loop ? loop->body->result[1 + i] : ((const If *)t->arg.ptr)->then_branch->result[i],
         *dims[1 + INGOT_MAX_RANK];
    bool stacked = loop && i >= loop->ncarried;
    if (stacked)
        dims[0] = loop->iterations;
    for (int a = 0; a < x->rank; a++)
        dims[a + stacked] = x->shape[a];
    return proj(c, t, i, (ingot_dtype)x->dtype, x->rank + stacked, dims);
}

/* A run-time integer that a step sets; names are made unique by their number. */
static Node *count_new(Context *c, const char *hint, VarKind kind, int64_t lo, int64_t hi)
{
    Var *v = var_new(c, kind, arena_printf(c->arena, "%s_%d", hint, c->nvar), lo, hi);
    v->what = arena_strdup(c->arena, hint);
    return v->node;
}

static void all_poison(Context *c, int n, Node **out)
{
    for (int i = 0; i < n; i++)
        out[i] = c->poison;
}

static bool any_poison(int n, Node *const *x)
{
    for (int i = 0; i < n; i++)
        if (poisoned(x[i]))
            return true;
    return false;
}

static bool same_type(Context *c, Node *a, Node *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && shape_same(c, a->rank, a->shape, b->shape);
}

static const char *type_text(Context *c, Node *x)
{
    return arena_printf(c->arena, "%s %s", dtype_info[x->dtype].name,
                        shape_text(c, x->rank, x->shape));
}

/* ---- loop ------------------------------------------------------------------------------------ */

static bool loop_check(Context *c, Node *trip, Node *cond, int ncarried, Node *const *carried,
                       struct Region *body, int nscan)
{
    if (c->region == body) {
        ingot_error(c, INGOT_INVALID, "loop: its body has not been ended");
        return false;
    }
    if (body->nparam != 2 + ncarried || body->nresult != 1 + ncarried + nscan) {
        ingot_error(
            c, INGOT_INVALID,
            "loop: the body has %d parameters and %d results; with %d carried and %d stacked "
            "values it must have %d (i, cond, carried) and %d (cond, carried, stacked)",
            body->nparam, body->nresult, ncarried, nscan, 2 + ncarried, 1 + ncarried + nscan);
        return false;
    }
    Node *i = body->param[0], *p = body->param[1], *q = body->result[0];
    if (i->dtype != INGOT_I64 || i->rank || p->dtype != INGOT_BOOL || p->rank ||
        q->dtype != INGOT_BOOL || q->rank || (cond && (cond->dtype != INGOT_BOOL || cond->rank))) {
        ingot_error(c, INGOT_INVALID,
                    "loop: i must be an i64 scalar and the conditions bool scalars");
        return false;
    }
    if (!trip && nscan) {
        ingot_error(c, INGOT_UNSUPPORTED, "loop: stacked values need a bound on the iterations");
        return false;
    }
    for (int k = 0; k < ncarried; k++) {
        Node *param = body->param[2 + k], *next = body->result[1 + k];
        if (same_type(c, param, carried[k]) && same_type(c, param, next))
            continue;
        bool kind = param->dtype == carried[k]->dtype && param->dtype == next->dtype &&
                    param->rank == carried[k]->rank && param->rank == next->rank;
        ingot_error(c, kind ? INGOT_UNSUPPORTED : INGOT_INVALID,
                    "loop: carried value %d starts as %s, is %s inside and %s after an iteration; "
                    "all three must agree",
                    k, type_text(c, carried[k]), type_text(c, param), type_text(c, next));
        return false;
    }
    return true;
}

/* A loop of one iteration is no loop: what its body computes of the values that it begins with, an
 * LSTM's of a sequence of one for example. False: something of the body cannot be made again. */
static bool loop_once(Context *c, int ncarried, Node *const *carried, const struct Region *body,
                      int nscan, Node **out)
{
    const int n = ncarried + nscan;
    Arena *a = arena_new();
    Node *first = node_const_zero(c, INGOT_I64), *always = node_bool(c, true);
    Clone q = clone_begin(c, a);
    clone_set(&q, body->param[0], first);
    clone_set(&q, body->param[1], always);
    for (int k = 0; k < ncarried; k++)
        clone_set(&q, body->param[2 + k], carried[k]);
    clone_nodes(&q, n, body->result + 1);
    for (int k = 0; k < n && !q.failed; k++) {
        Node *x = clone_of(&q, body->result[1 + k]);
        out[k] = k < ncarried ? x : ingot_unsqueeze(c, x, 0);
    }
    arena_free(a);
    return !q.failed;
}

void ingot_loop(ingot_context *c, ingot_dim *trip, ingot_tensor *cond, int ncarried,
                ingot_tensor *const *carried, ingot_region *body, int nscan, ingot_tensor **out)
{
    int nout = ncarried + nscan;
    all_poison(c, nout, out);
    if ((trip && poisoned(trip)) || (cond && poisoned(cond)) || any_poison(ncarried, carried) ||
        any_poison(body->nparam, body->param) || any_poison(body->nresult, body->result) ||
        !loop_check(c, trip, cond, ncarried, carried, body, nscan))
        return;
    Node *start = cond ? uniform(cond) : node_bool(c, true);
    Node *next = uniform(body->result[0]);
    if (body->result[0] == body->param[1]) /* cond is handed on unchanged */
        next = start;
    bool always = start && start->arg.i && next && next->arg.i;
    bool never = (start && !start->arg.i) || (trip && trip->hi <= 0);
    if (!trip && always) {
        ingot_error(c, INGOT_INVALID,
                    "loop: no bound on the iterations and a condition that stays true");
        return;
    }
    const bool once = trip && trip->lo == 1 && trip->hi == 1 && start && start->arg.i;
    if (once && loop_once(c, ncarried, carried, body, nscan, out))
        return;
    Loop *loop = NEW(c->arena, Loop);
    *loop = (Loop){.trip = trip, .body = body, .ncarried = ncarried, .nscan = nscan};
    loop->has_cond = !always;
    if (never)
        loop->iterations = idx(c, 0);
    else if (trip && always)
        loop->iterations = trip->lo < 0 ? idx_max(c, trip, idx(c, 0)) : trip;
    else if (nscan)
        loop->iterations = count_new(c, "iterations", VAR_COUNT, 0, trip->hi);
    for (int k = 0; never && k < ncarried; k++)
        out[k] = carried[k];

    Node *tuple = NULL;
    if (!never) {
        int64_t last = trip && trip->hi < INT32_MAX ? trip->hi - 1 : INT32_MAX - 1;
        loop->counter = count_new(c, "i", VAR_LOOP, 0, last);
        int nsrc = 0;
        Node **src = NEWN(c->arena, Node *, 1 + ncarried + body->ncapture);
        src[nsrc++] = cond ? cond : node_bool(c, true);
        for (int k = 0; k < ncarried; k++)
            src[nsrc++] = carried[k];
        for (int k = 0; k < body->ncapture; k++)
            src[nsrc++] = body->capture[k];
        tuple = tuple_make(c, OP_LOOP, loop, nsrc, src);
        if (loop->iterations && loop->iterations->op == OP_VAR && loop->iterations != trip)
            c->vars[loop->iterations->arg.i].setter = tuple;
        for (int k = 0; k < ncarried; k++)
            out[k] = proj(c, tuple, k, (ingot_dtype)carried[k]->dtype, carried[k]->rank,
                          carried[k]->shape);
    }
    for (int k = 0; k < nscan; k++) {
        Node *v = body->result[1 + ncarried + k], *dims[1 + INGOT_MAX_RANK];
        ingot_dtype d = (ingot_dtype)v->dtype;
        dims[0] = loop->iterations;
        for (int a = 0; a < v->rank; a++)
            dims[1 + a] = v->shape[a];
        if (!shape_check(c, "loop", 1 + v->rank, dims))
            continue;
        if (shape_is_empty(1 + v->rank, dims))
            out[ncarried + k] = uniform_make(c, node_const_zero(c, d), 1 + v->rank, dims);
        else
            out[ncarried + k] = proj(c, tuple, ncarried + k, d, 1 + v->rank, dims);
    }
}

Node *loop_counter(Context *c, const Loop *loop)
{
    return count_new(c, "i", VAR_LOOP, loop->counter->lo, loop->counter->hi);
}

Node *loop_stacked(Context *c, Node *t, Node *inside)
{
    Loop *loop = (Loop *)(uintptr_t)t->arg.ptr;
    struct Region *body = loop->body;
    int i = 1 + loop->ncarried;
    while (i < body->nresult && body->result[i] != inside)
        i++;
    if (i == body->nresult) {
        Node **more = NEWN(c->arena, Node *, body->nresult + 1);
        memcpy((void *)more, (void *)body->result, (size_t)body->nresult * sizeof *more);
        more[body->nresult++] = inside;
        body->result = more;
        loop->nscan++;
    }
    if (!loop->iterations) {
        loop->iterations = count_new(c, "iterations", VAR_COUNT, 0, loop->trip->hi);
        c->vars[loop->iterations->arg.i].setter = t;
    }
    return tuple_result(c, t, i - 1);
}

/* ---- if -------------------------------------------------------------------------------------- */

Node **if_sources(Arena *a, Node *cond, const If *f, int *n)
{
    const struct Region *const side[] = {f->then_branch, f->else_branch};
    Node **src = NEWN(a, Node *, 1 + side[0]->ncapture + side[1]->ncapture);
    *n = 0;
    src[(*n)++] = cond;
    for (int b = 0; b < 2; b++)
        for (int k = 0; k < side[b]->ncapture; k++) {
            bool twice = false;
            for (int i = 0; b && i < side[0]->ncapture; i++)
                twice |= side[0]->capture[i] == side[1]->capture[k];
            if (!twice)
                src[(*n)++] = side[b]->capture[k];
        }
    return src;
}

void ingot_if(ingot_context *c, ingot_tensor *cond, ingot_region *then_branch,
              ingot_region *else_branch, int n, ingot_tensor **out)
{
    struct Region *r[2] = {then_branch, else_branch};
    all_poison(c, n, out);
    if (poisoned(cond))
        return;
    if (cond->dtype != INGOT_BOOL) {
        ingot_error(c, INGOT_INVALID, "if: the condition is %s; it must be bool",
                    dtype_info[cond->dtype].name);
        return;
    }
    cond = ingot_reshape(c, cond, 0, NULL);
    if (poisoned(cond))
        return;
    if (r[0]->nresult != n || r[1]->nresult != n) {
        ingot_error(c, INGOT_INVALID, "if: the branches have %d and %d results; both must have %d",
                    r[0]->nresult, r[1]->nresult, n);
        return;
    }
    if (cond->op ==
        OP_CONST) { /* the branch is known: no parameters, so its values stand for themselves */
        requires_move(c, c->region ? &c->region->require : &c->require,
                      &r[cond->arg.i ? 0 : 1]->require);
        for (int i = 0; i < n; i++)
            out[i] = r[cond->arg.i ? 0 : 1]->result[i];
        return;
    }
    if (any_poison(n, r[0]->result) || any_poison(n, r[1]->result))
        return;
    for (int i = 0; i < n; i++) {
        Node *a = r[0]->result[i], *b = r[1]->result[i];
        if (same_type(c, a, b))
            continue;
        bool kind = a->dtype == b->dtype;
        ingot_error(c, kind ? INGOT_UNSUPPORTED : INGOT_INVALID,
                    "if: result %d is %s in one branch and %s in the other; they must agree", i,
                    type_text(c, a), type_text(c, b));
        return;
    }
    If *node = NEW(c->arena, If);
    *node = (If){.then_branch = r[0], .else_branch = r[1], .n = n};
    int nsrc;
    Node **src = if_sources(c->arena, cond, node, &nsrc);
    Node *tuple = tuple_make(c, OP_IF, node, nsrc, src);
    for (int i = 0; i < n; i++) {
        Node *a = r[0]->result[i];
        out[i] = proj(c, tuple, i, (ingot_dtype)a->dtype, a->rank, a->shape);
    }
}

/* ---- library kernels ------------------------------------------------------------------------- */

ingot_dim *ingot_call_count(ingot_context *c, const char *hint, int64_t lo, int64_t hi)
{
    if (lo > hi)
        return ingot_error(c, INGOT_INVALID, "count '%s' has bounds %lld..%lld", hint,
                           (long long)lo, (long long)hi);
    return count_new(c, hint, VAR_COUNT, lo, hi);
}

static void *copy(Context *c, const void *from, size_t n, size_t size)
{
    void *to = arena_array(c->arena, n ? n : 1, size);
    if (n)
        memcpy(to, from, n * size);
    return to;
}

/* Larger operands are left to the model. */
#define FOLD_ELEMENTS (INT64_C(1) << 24)

static bool may_fold(const ingot_call_desc *d)
{
    int64_t elements = 0;
    for (int i = 0; i < d->n_in; i++) {
        int64_t n = 1;
        for (int k = 0; k < d->in[i]->rank; k++)
            n = sat_mul(n, d->in[i]->shape[k]->hi);
        elements = sat_add(elements, n);
        if (d->in[i]->dtype == INGOT_STRING || !ingot_is_const(d->in[i]))
            return false;
    }
    for (int i = 0; i < d->n_out; i++)
        if (d->out[i].dtype == INGOT_STRING) /* pointers are no constants */
            return false;
    return d->n_in && d->n_out && elements <= FOLD_ELEMENTS;
}

/* Results of constants are constants, and so are their counts: the interpreter calls the same
 * kernel now.  One that fails does so in the model. */
static void fold_call(Context *c, const ingot_call_desc *d, ingot_tensor **out)
{
    ingot_tensor *now[8];
    if (d->n_out > 8 || !may_fold(d))
        return;
    ingot_sink sink = c->sink;
    int nerror = c->nerror;
    ingot_status status = c->status;
    c->sink = NULL;
    Interp *ip = interp_new(c);
    bool ok = true;
    for (int i = 0; i < d->n_out && ok; i++) {
        int64_t dims[INGOT_MAX_RANK], n = dtype_info[d->out[i].dtype].bytes;
        const void *bytes = interp_eval(ip, out[i], dims);
        for (int k = 0; k < d->out[i].rank; k++)
            n *= dims[k];
        ok = bytes != NULL;
        if (ok)
            now[i] = ingot_data(c, d->name, d->out[i].dtype, d->out[i].rank, dims,
                                copy(c, bytes, (size_t)n, 1));
    }
    interp_free(ip);
    c->sink = sink;
    c->nerror = nerror;
    c->status = status;
    for (int i = 0; i < d->n_out && ok; i++)
        out[i] = now[i];
    for (int i = 0; i < d->n_count && ok; i++)
        c->vars[d->counts[i]->arg.i].folded = true;
}

void ingot_call(ingot_context *c, const ingot_call_desc *d, ingot_tensor **out)
{
    all_poison(c, d->n_out, out);
    if (any_poison(d->n_in, d->in) || any_poison(d->n_count, d->counts))
        return;
    for (int i = 0; i < d->n_out; i++)
        if (!shape_check(c, d->name, d->out[i].rank, d->out[i].dims))
            return;
    if (d->n_kept && c->region) { /* the next iteration would write over it */
        ingot_error(c, INGOT_UNSUPPORTED,
                    "%s: strings are made in a loop or a branch, which is not supported", d->name);
        return;
    }
    for (int i = 0; i < d->n_count; i++)
        if (d->counts[i]->op != OP_VAR || c->vars[d->counts[i]->arg.i].kind != VAR_COUNT ||
            c->vars[d->counts[i]->arg.i].setter) {
            ingot_error(c, INGOT_INVALID, "%s: count %d is not a fresh one from ingot_call_count",
                        d->name, i);
            return;
        }
    Call *call = NEW(c->arena, Call);
    *call = (Call){.name = arena_strdup(c->arena, d->name),
                   .n_in = d->n_in,
                   .n_out = d->n_out,
                   .n_int = d->n_int,
                   .n_float = d->n_float,
                   .n_count = d->n_count,
                   .out = copy(c, d->out, (size_t)d->n_out, sizeof *d->out),
                   .ints = copy(c, d->ints, (size_t)d->n_int, sizeof *d->ints),
                   .floats = copy(c, d->floats, (size_t)d->n_float, sizeof *d->floats),
                   .counts = copy(c, (const void *)d->counts, (size_t)d->n_count, sizeof(Node *)),
                   .scratch_bytes = d->scratch_bytes,
                   .n_kept = d->n_kept,
                   .custom = d->custom,
                   .gradient = d->gradient,
                   .gradient_user = d->gradient_user};
    Node *tuple = tuple_make(c, OP_CALL, call, d->n_in, d->in);
    for (int i = 0; i < d->n_count; i++)
        c->vars[d->counts[i]->arg.i].setter = tuple;
    for (int i = 0; i < d->n_out; i++)
        out[i] = proj(c, tuple, i, d->out[i].dtype, d->out[i].rank, d->out[i].dims);
    fold_call(c, d, out);
}

/* The value is read by library kernel "readint": an integer in, a count out; ints: the kind of
 * check (0: a count out of bounds), least, greatest.  The step itself checks the bounds, for it can
 * tell more. */
static Node *read_scalar(Context *c, Node *x, const char *name, int64_t lo, int64_t hi)
{
    ingot_dim *count = ingot_call_count(c, name, lo, hi);
    static const int64_t ints[3] = {0, INT64_MIN, INT64_MAX};
    ingot_call_desc d = {.name = "readint",
                         .n_in = 1,
                         .in = &x,
                         .n_int = 3,
                         .ints = ints,
                         .n_count = 1,
                         .counts = &count};
    if (!poisoned(count))
        ingot_call(c, &d, NULL);
    return count;
}

Node *dim_copy(Context *c, Node *d, const char *what, int64_t lo, int64_t hi)
{
    return read_scalar(c, node_cast(c, d, INGOT_I64), what, lo, hi);
}

ingot_dim *ingot_read_dim(ingot_context *c, ingot_tensor *x, const char *name, int64_t lo,
                          int64_t hi)
{
    if (poisoned(x))
        return x;
    if (!dtype_is_int(x->dtype))
        return ingot_error(c, INGOT_INVALID,
                           "dim '%s' is read from a %s tensor; it must be an integer", name,
                           dtype_info[x->dtype].name);
    x = ingot_reshape(c, x, 0, NULL);
    if (poisoned(x))
        return x;
    if (x->op == OP_CONST)
        return idx(c, x->arg.i);
    if (x->op == OP_CAST && x->src[0]->dtype == INGOT_INDEX)
        return x->src[0];
    int64_t value;
    int one;
    if (ingot_const_ints(c, x, &value, 1, &one) && value >= lo && value <= hi)
        return idx(c, value);
    int64_t key[] = {INT64_C(0x64616572), x->id, lo, hi}; /* "read" */
    uint64_t h = hash_bytes(0, key, sizeof key);
    Node *known = map_get(&c->memo, h);
    if (!known) {
        known = read_scalar(c, x, name, lo, hi);
        map_put(&c->memo, h, (void *)(uintptr_t)known);
    }
    return known;
}
