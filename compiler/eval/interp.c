/* interp.c - the reference interpreter: what is stored, in which order, for how long.
 *
 * interp_eval walks the graph below a node (explicit stack, so depth does not matter), and marks
 * the nodes that are stored: those that two readers share, that are repeated by an expand, and
 * reductions, scatters, concats and control flow.  Stored nodes are then evaluated in order, each
 * with everything between it and the stored nodes it reads (interp_region.c), and dropped after
 * their last reader.  A node whose dims use a run-time integer set by a library kernel or a loop
 * comes after that step.
 *
 * Scopes: an iteration of a loop is a scope.  Every node has the level of the innermost scope
 * whose parameters it depends on, so what a body computes from outer values alone is computed
 * once and kept. */
#include "interp.h"

#include <stdarg.h>
#include <string.h>

/* Regions are cut at this many nodes: it bounds recursion and registers. */
enum { REGION_NODES = 200 };
/* A shared elementwise value of more elements than this is computed again by each reader. */
#define SHARE_ELEMENTS (INT64_C(1) << 27)

/* ---- the state ------------------------------------------------------------------------------- */

Interp *interp_new(Context *c)
{
    Arena *a = arena_new();
    Interp *ip = NEW(a, Interp);
    ip->c = c;
    ip->arena = a;
    return ip;
}

void interp_free(Interp *ip)
{
    for (int d = MAX_DEPTH; d >= 0; d--)
        scope_clear(ip, d);
    arena_free(ip->arena);
}

#define GROW(array, from, to)                                                \
    do {                                                                     \
        void *fresh = arena_array(ip->arena, (size_t)(to), sizeof *(array)); \
        if ((from) > 0)                                                      \
            memcpy(fresh, (array), (size_t)(from) * sizeof *(array));        \
        (array) = fresh;                                                     \
    } while (0)

/* Side tables follow the context, which grows while we look at it. */
static void grow(Interp *ip)
{
    if (ip->cap < ip->c->nnode) {
        const uint32_t to = ip->c->nnode + ip->c->nnode / 4 + 16;
        GROW(ip->value, ip->cap, to);
        GROW(ip->num, ip->cap, to);
        GROW(ip->has_num, ip->cap, to);
        GROW(ip->level, ip->cap, to);
        GROW(ip->bound, ip->cap, to);
        GROW(ip->bound_level, ip->cap, to);
        GROW(ip->stamp, ip->cap, to);
        GROW(ip->slot, ip->cap, to);
        ip->cap = to;
    }
    if (ip->nvar < ip->c->nvar) {
        const int to = ip->c->nvar + 16;
        GROW(ip->var, ip->nvar, to);
        GROW(ip->var_set, ip->nvar, to);
        GROW(ip->var_level, ip->nvar, to);
        ip->nvar = to;
    }
}

bool interp_fail(Interp *ip, ingot_status status, const char *format, ...)
{
    if (!ip->failed) {
        va_list ap;
        va_start(ap, format);
        context_vreport(ip->c, INGOT_ERROR, status, format, ap);
        va_end(ap);
    }
    ip->failed = true;
    return false;
}

static Arena *scope_arena(Interp *ip, int level)
{
    EvalScope *s = &ip->scope[level];
    if (!s->arena)
        s->arena = arena_new();
    return s->arena;
}

static void remember(Interp *ip, Node *n, int level)
{
    EvalScope *s = &ip->scope[level];
    vec_push(scope_arena(ip, level), s->trail, s->ntrail, n->id);
    ip->level[n->id] = (uint8_t)level;
}

void value_drop(EvalValue *v)
{
    if (!v)
        return;
    if (v->own)
        arena_free(v->own);
    v->own = NULL;
    for (int i = 0; i < v->nelem; i++)
        value_drop(v->elem[i]);
}

/* Forget everything that depends on the scope. */
void scope_clear(Interp *ip, int depth)
{
    EvalScope *s = &ip->scope[depth];
    for (size_t i = 0; i < s->ntrail; i++) {
        const uint32_t id = s->trail[i];
        if (ip->value[id])
            value_drop(ip->value[id]);
        ip->value[id] = NULL;
        ip->has_num[id] = 0;
    }
    for (int i = 0; i < ip->nvar; i++) /* counts set in this scope are set again in the next */
        if (ip->var_level[i] == depth)
            ip->var_set[i] = 0;
    arena_free(s->arena);
    *s = (EvalScope){0};
}

void interp_set_var(Interp *ip, int var, int64_t x)
{
    grow(ip);
    var_assign(ip, var, x, 0);
}

void var_assign(Interp *ip, int var, int64_t x, int level)
{
    grow(ip);
    ip->var[var] = x;
    ip->var_set[var] = 1;
    ip->var_level[var] = (uint8_t)level;
}

void interp_bind(Interp *ip, Node *leaf, const void *data)
{
    grow(ip);
    ip->bound[leaf->id] = data;
    ip->bound_level[leaf->id] = (uint8_t)ip->depth;
}

/* ---- values ---------------------------------------------------------------------------------- */

EvalValue *value_of(Interp *ip, Node *n)
{
    return n->id < ip->cap ? ip->value[n->id] : NULL;
}

void *value_data(EvalValue *v)
{
    return (void *)(uintptr_t)v->data;
}

EvalValue *value_new(Interp *ip, int level, ingot_dtype t, int rank, const int64_t *dims)
{
    enum { SMALL = 2048 };
    Arena *a = scope_arena(ip, level);
    EvalValue *v = NEW(a, EvalValue);
    *v = (EvalValue){.rank = rank, .dtype = t, .n = 1, .level = level};
    for (int i = 0; i < rank; i++) {
        v->dims[i] = dims[i];
        v->n *= dims[i];
    }
    const size_t bytes = (size_t)v->n * elem_bytes(t);
    if (bytes > SMALL)
        a = v->own = arena_new();
    v->data = arena_alloc(a, bytes ? bytes : 1);
    return v;
}

void value_set(Interp *ip, Node *n, EvalValue *v)
{
    ip->value[n->id] = v;
    remember(ip, n, v->level);
}

EvalValue *value_need(Interp *ip, Node *n)
{
    EvalValue *v = value_of(ip, n);
    if (v)
        return v;
    if (n->op != OP_CONST && !ip->has_num[n->id])
        BUG("%s was not evaluated", op_info[n->op].text);
    v = value_new(ip, ip->depth, (ingot_dtype)n->dtype, 0, NULL);
    if (n->op == OP_CONST)
        store_const(n, value_data(v));
    else
        store_int((ingot_dtype)n->dtype, dim_value(ip, n), value_data(v));
    return v;
}

/* ---- dims and run-time integers -------------------------------------------------------------- */

/* One operation on scalar integers; only for INDEX and BOOL over them. */
static int64_t scalar_alu(Interp *ip, Node *n)
{
    int64_t x[3] = {0}, r = 0;
    uint8_t t[3] = {0};
    const void *in[3] = {0};
    for (uint32_t i = 0; i < n->nsrc; i++) {
        t[i] = n->src[i]->dtype;
        store_int((ingot_dtype)t[i], dim_value(ip, n->src[i]), &x[i]);
        in[i] = &x[i];
    }
    alu_lanes((Op)n->op, n->arg.i, (ingot_dtype)n->dtype, t, 1, &r, in);
    return load_int((ingot_dtype)n->dtype, &r);
}

int64_t dim_value(Interp *ip, Node *n)
{
    if (n->op == OP_CONST)
        return (int64_t)n->arg.bits;
    if (n->id < ip->cap && ip->has_num[n->id])
        return ip->num[n->id];
    if (n->op == OP_VAR) /* nobody has set it: a state that has no rows yet */
        return n->arg.i < ip->nvar ? ip->var[n->arg.i] : 0;
    const EvalValue *v = value_of(ip, n);
    if (v)
        return load_int(v->dtype, v->data);
    return scalar_alu(ip, n);
}

void node_dims(Interp *ip, Node *n, int64_t *dims)
{
    for (int i = 0; i < n->rank; i++) {
        dims[i] = dim_value(ip, n->shape[i]);
        if (dims[i] < 0)
            dims[i] = 0;
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct {
    Node *node;
    int pos;       /* in the order */
    int uses;      /* readers, counting through movement; saturates at 2 */
    int last;      /* position of the last stored reader */
    int next_free; /* list of values to drop after a position */
    int region;    /* nodes of its region so far */
    bool stored, forced, scalar, uniform, affine;
} EvalEntry;

typedef struct {
    Node *node;
    uint32_t child; /* the next one to look at */
} Visit;

typedef struct {
    Interp *ip;
    Arena *arena;
    EvalEntry *entry;
    int n;
    Visit *stack;
    int depth, room;
} EvalOrder;

/* What must be known before n: sources, dims, the setter of a run-time integer.  NULL at the end;
 * n itself stands for "none in this place". */
static Node *child_of(Interp *ip, Node *n, uint32_t i)
{
    if (i < n->nsrc)
        return n->src[i];
    i -= n->nsrc;
    if (i < n->rank)
        return n->shape[i];
    i -= n->rank;
    if (n->op == OP_VAR) {
        Node *setter = ip->c->vars[n->arg.i].setter;
        return i == 0 && setter && !ip->var_set[n->arg.i] ? setter : NULL;
    }
    if (n->op == OP_LOOP) {
        const Loop *loop = n->arg.ptr;
        return i ? NULL : loop->trip ? loop->trip : n;
    }
    if (n->op == OP_CALL) {
        const Call *call = n->arg.ptr;
        for (int k = 0; k < call->n_out; k++) {
            if (i < (uint32_t)call->out[k].rank) {
                Node *d = call->out[k].dims[i];
                return call_decides(call, d) ? n : d;
            }
            i -= (uint32_t)call->out[k].rank;
        }
    }
    return NULL;
}

static bool is_known(const Interp *ip, Node *n)
{
    return n->id < ip->cap && (ip->value[n->id] || ip->has_num[n->id]);
}

static bool is_small_index(Node *n)
{
    return n->rank == 0 && n->dtype == INGOT_INDEX;
}

/* The scope level of n: that of the innermost value it depends on. */
static int level_of(Interp *ip, Node *n)
{
    int level = 0;
    if (n->op == OP_VAR)
        level = ip->var_level[n->arg.i];
    if (ip->bound[n->id])
        level = ip->bound_level[n->id];
    if (n->op == OP_LOOP || n->op == OP_IF || n->op == OP_CALL)
        level = ip->depth; /* their bodies may look at outer counters */
    Node *child;
    for (uint32_t i = 0; (child = child_of(ip, n, i)); i++)
        if (ip->level[child->id] > level && child != n)
            level = ip->level[child->id];
    return level;
}

static void push(EvalOrder *w, Node *n)
{
    Interp *ip = w->ip;
    if (is_known(ip, n) || ip->stamp[n->id] == ip->epoch)
        return;
    ip->stamp[n->id] = ip->epoch;
    if (w->depth == w->room) {
        Visit *room = NEWN(w->arena, Visit, 2 * w->room + 64);
        if (w->depth)
            memcpy(room, w->stack, (size_t)w->depth * sizeof *room);
        w->stack = room;
        w->room = 2 * w->room + 64;
    }
    w->stack[w->depth++] = (Visit){n, 0};
}

static void visit(EvalOrder *w, Node *root)
{
    Interp *ip = w->ip;
    push(w, root);
    while (w->depth > 0) {
        Visit *top = &w->stack[w->depth - 1];
        Node *n = top->node, *child = child_of(ip, n, top->child++);
        if (child) {
            push(w, child);
            continue;
        }
        w->depth--;
        ip->slot[n->id] = (uint32_t)w->n;
        ip->level[n->id] = (uint8_t)level_of(ip, n);
        vec_push(w->arena, w->entry, w->n,
                 ((EvalEntry){.node = n, .pos = w->n, .last = -1, .next_free = -1}));
    }
}

static EvalEntry *entry_of(EvalOrder *w, Node *n)
{
    return w->ip->stamp[n->id] == w->ip->epoch ? &w->entry[w->ip->slot[n->id]] : NULL;
}

static bool is_leaf(Op op)
{
    return op == OP_INPUT || op == OP_DATA || op == OP_STATE || op == OP_PARAM;
}

/* Of a custom function whole tensors are computed, by one call of what the C compiler made of
 * it. */
static bool always_stored(Op op)
{
    return op == OP_CUSTOM || is_leaf(op) || op == OP_REDUCE || op == OP_SCAN || op == OP_UPDATE ||
           op == OP_CONCAT || op == OP_CALL || op == OP_LOOP || op == OP_IF || op == OP_PROJ ||
           op == OP_COLLECTIVE;
}

static bool can_store(const EvalEntry *e)
{
    return !e->scalar && e->node->op != OP_CONST;
}

/* Facts that follow from the sources, in order. */
static void facts(EvalOrder *w)
{
    for (int i = 0; i < w->n; i++) {
        EvalEntry *e = &w->entry[i];
        Node *n = e->node;
        bool scalar = n->rank == 0 && (n->dtype == INGOT_INDEX || n->dtype == INGOT_BOOL) &&
                      op_is_alu(n->op) && n->op != OP_CUSTOM;
        bool uniform = true, affine = true;
        for (uint32_t k = 0; k < n->nsrc; k++) {
            const EvalEntry *s = entry_of(w, n->src[k]);
            const bool index = is_small_index(n->src[k]);
            scalar &= s ? s->scalar : index;
            if (k > 0 && op_info[n->op].cls == MOVE)
                continue;
            uniform &= s ? s->uniform : index;
            affine &= s ? s->affine : index;
        }
        e->scalar =
            scalar || is_small_index(n) ||
            (n->op == OP_CONST && !dtype_is_float(n->dtype) && dtype_info[n->dtype].kind != 'c');
        const bool integer = n->dtype == INGOT_I64 || is_small_index(n);
        const bool moves = op_arranges(n->op) || n->op == OP_SHRINK || n->op == OP_FLIP ||
                           n->op == OP_KEEP || n->op == OP_COPY;
        e->uniform =
            integer && (n->op == OP_CONST || is_small_index(n) || (moves && uniform) ||
                        (n->op == OP_CAST && is_small_index(n->src[0])) ||
                        ((n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && uniform));
        e->affine = e->uniform || (integer && (n->op == OP_IOTA || (moves && affine) ||
                                               ((n->op == OP_ADD || n->op == OP_SUB) && affine)));
        if (integer && n->op == OP_MUL && affine)
            for (uint32_t k = 0; k < 2; k++) {
                const EvalEntry *s = entry_of(w, n->src[k]);
                e->affine |= s ? s->uniform : is_small_index(n->src[k]);
            }
        e->stored = always_stored((Op)n->op);
    }
}

/* Is this gather pure movement, that is, are all its indices linear in the coordinates? */
static bool gather_moves(EvalOrder *w, Node *n)
{
    for (uint32_t k = 1; k < n->nsrc; k++) {
        const EvalEntry *s = entry_of(w, n->src[k]);
        if (!s || !s->affine)
            return false;
    }
    return true;
}

static bool repeats(Node *n)
{
    for (int i = 0; i < n->rank; i++)
        if (n->shape[i] != n->src[0]->shape[i])
            return true;
    return false;
}

/* Which sources must be stored, and how often each is read, readers first. */
static void count_uses(EvalOrder *w)
{
    for (int i = w->n - 1; i >= 0; i--) {
        EvalEntry *e = &w->entry[i];
        Node *n = e->node;
        const bool moves = op_info[n->op].cls == MOVE && n->op != OP_CONCAT;
        const bool plain_gather = n->op == OP_GATHER && gather_moves(w, n);
        e->stored |= e->forced;
        if (!e->stored && e->uses >= 2 &&
            (op_is_alu(n->op) || n->op == OP_PAD || (n->op == OP_GATHER && !plain_gather))) {
            int64_t numel =
                1; /* an upper bound is not known before the dims are; constants are enough here */
            for (int k = 0; k < n->rank; k++)
                numel = sat_mul(numel,
                                n->shape[k]->op == OP_CONST ? (int64_t)n->shape[k]->arg.bits : 1);
            e->stored = numel <= SHARE_ELEMENTS;
        }
        e->stored &= can_store(e);
        const int own = e->stored || !(moves || e->uses >= 2) ? 1 : e->uses;
        for (uint32_t k = 0; k < n->nsrc; k++) {
            EvalEntry *s = entry_of(w, n->src[k]);
            if (!s)
                continue;
            /* a linear index becomes coordinates, its values are not looked at */
            bool seen = n->op == OP_GATHER && k > 0 && s->affine;
            for (uint32_t j = 0; j < k && !seen; j++)
                seen = n->src[j] == n->src[k];
            if (!seen) {
                s->uses += own;
                if (k == 0 && ((n->op == OP_EXPAND && repeats(n)) || plain_gather))
                    s->uses = 2;
                s->uses = s->uses > 2 ? 2 : s->uses;
            }
            if (op_info[n->op].cls == CONTROL || n->op == OP_CUSTOM ||
                (k == 0 && (n->op == OP_UPDATE || (n->op == OP_GATHER && !plain_gather))) ||
                (e->scalar && !s->scalar))
                s->forced = true;
        }
    }
}

/* Cut regions that get too large, then find the last reader of every stored value. */
static void cut_and_order(EvalOrder *w)
{
    for (int i = 0; i < w->n; i++) {
        EvalEntry *e = &w->entry[i];
        e->region = 1;
        for (uint32_t k = 0; k < e->node->nsrc; k++) {
            const EvalEntry *s = entry_of(w, e->node->src[k]);
            if (s && !s->stored)
                e->region += s->region;
        }
        if (e->region <= REGION_NODES)
            continue;
        if (e->node->op == OP_EXPAND ||
            e->node->op == OP_GATHER) { /* what is repeated, not the repetition */
            e = entry_of(w, e->node->src[0]);
            if (!e)
                continue;
        }
        e->stored |= can_store(e);
    }
    for (int i = w->n - 1; i >= 0; i--) {
        EvalEntry *e = &w->entry[i];
        const int reader = e->stored || e->scalar ? e->pos : e->last;
        for (uint32_t k = 0; k < e->node->nsrc; k++) {
            EvalEntry *s = entry_of(w, e->node->src[k]);
            if (s && s->last < reader)
                s->last = reader;
        }
    }
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static bool leaf_eval(Interp *ip, Node *n)
{
    const ingot_dtype t = (ingot_dtype)n->dtype;
    const int level = ip->level[n->id];
    const void *data = ip->bound[n->id];
    int64_t dims[INGOT_MAX_RANK];
    node_dims(ip, n, dims);
    if (n->op == OP_DATA && !data)
        data = ((const Data *)n->arg.ptr)->bytes;
    if (n->op == OP_STATE && !data && ip->c->states[n->arg.i].begin)
        data = ((const Data *)ip->c->states[n->arg.i].begin->arg.ptr)->bytes;
    if (!data && n->op != OP_STATE) {
        const char *name = n->op == OP_INPUT ? input_name(ip->c, n) : NULL;
        return interp_fail(ip, INGOT_USAGE, "interpreter: %s %s has no value", op_info[n->op].text,
                           name ? name : "");
    }
    const size_t size = elem_bytes(t), align = size > 8 ? 8 : size;
    if (!data || (uintptr_t)data % align || ip->shake) { /* mapped files keep no alignment */
        EvalValue *v = value_new(ip, level, t, n->rank, dims);
        if (data)
            memcpy(value_data(v), data, (size_t)v->n * size);
        interp_shake(ip, t, v->n, value_data(v));
        value_set(ip, n, v);
        return true;
    }
    EvalValue *v = NEW(scope_arena(ip, level), EvalValue);
    *v = (EvalValue){.data = data, .rank = n->rank, .dtype = t, .n = 1, .level = level};
    for (int i = 0; i < n->rank; i++) {
        v->dims[i] = dims[i];
        v->n *= dims[i];
    }
    value_set(ip, n, v);
    return true;
}

static bool proj_eval(Interp *ip, Node *n)
{
    const EvalValue *tuple = value_of(ip, n->src[0]);
    if (!tuple || n->arg.i >= tuple->nelem)
        BUG("projection %lld of a tuple of %d", (long long)n->arg.i, tuple ? tuple->nelem : 0);
    EvalValue *v = NEW(scope_arena(ip, tuple->level), EvalValue);
    *v = *tuple->elem[n->arg.i];
    v->own = NULL; /* the tuple's, which lives as long as the scope: release() leaves it alone */
    v->level = tuple->level;
    value_set(ip, n, v);
    return true;
}

static bool node_eval(Interp *ip, Node *n)
{
    switch (n->op) {
    case OP_INPUT:
    case OP_DATA:
    case OP_STATE:
    case OP_PARAM: return leaf_eval(ip, n);
    case OP_PROJ: return proj_eval(ip, n);
    case OP_CALL: return call_eval(ip, n);
    case OP_LOOP: return loop_eval(ip, n);
    case OP_IF: return if_eval(ip, n);
    case OP_POISON: return interp_fail(ip, INGOT_USAGE, "interpreter: the graph has an error");
    default: break;
    }
    if (op_info[n->op].cls == LEAF && n->op != OP_IOTA)
        return interp_fail(ip, INGOT_BUG, "interpreter: %s at tensor level", op_info[n->op].text);
    int64_t dims[INGOT_MAX_RANK];
    node_dims(ip, n, dims);
    EvalValue *v = value_new(ip, ip->level[n->id], (ingot_dtype)n->dtype, n->rank, dims);
    const bool ok = n->op == OP_UPDATE       ? update_eval(ip, n, v)
                    : n->op == OP_CONCAT     ? concat_eval(ip, n, v)
                    : n->op == OP_CUSTOM     ? custom_eval(ip, n, v)
                    : n->op == OP_COLLECTIVE ? collective_eval(ip, n, v)
                                             : region_eval(ip, n, v);
    if (ok)
        value_set(ip, n, v);
    return ok;
}

static bool scalar_eval(Interp *ip, Node *n)
{
    if (n->op == OP_CONST)
        return true;
    if (n->op == OP_VAR && !ip->var_set[n->arg.i])
        return interp_fail(ip, INGOT_USAGE, "interpreter: run-time integer '%s' has no value",
                           ip->c->vars[n->arg.i].name);
    ip->num[n->id] = dim_value(ip, n);
    ip->has_num[n->id] = 1;
    remember(ip, n, ip->level[n->id]);
    return true;
}

static void release(Interp *ip, Node *n)
{
    EvalValue *v = ip->value[n->id];
    if (!v || v->level != ip->depth || !v->own) /* outer values stay for the next iteration */
        return;
    value_drop(v);
    ip->value[n->id] = NULL;
}

/* How long a value that is kept takes, for who is told how far it is. */
static double work_of(const Node *n)
{
    const Node *over = n->op == OP_REDUCE ? n->src[0] : n;
    double elements = 1;
    for (int i = 0; i < over->rank; i++)
        elements *= over->shape[i]->hi > 1 ? (double)over->shape[i]->hi : 1;
    return elements;
}

static bool eval_all(Interp *ip, int nroot, Node *const *roots)
{
    grow(ip);
    EvalOrder w = {.ip = ip, .arena = arena_new()};
    ip->epoch++;
    for (int i = 0; i < nroot; i++)
        visit(&w, roots[i]);
    for (int i = 0; i < nroot; i++) {
        EvalEntry *e = entry_of(&w, roots[i]);
        if (e)
            e->forced = true;
    }
    facts(&w);
    count_uses(&w);
    cut_and_order(&w);
    for (int i = 0; i < nroot; i++) {
        EvalEntry *e = entry_of(&w, roots[i]);
        if (e)
            e->last = w.n; /* kept */
    }
    int *head = NEWN(w.arena, int, w.n + 1);
    for (int i = 0; i < w.n; i++)
        head[i] = -1;
    for (int i = 0; i < w.n; i++) {
        EvalEntry *e = &w.entry[i];
        if (e->stored && e->last >= 0 && e->last < w.n) {
            e->next_free = head[e->last];
            head[e->last] = i;
        }
    }
    double all = 0, done = 0;
    bool tell = ip->c->progress && ip->depth == 0;
    for (int i = 0; i < w.n && tell; i++)
        all += w.entry[i].stored ? work_of(w.entry[i].node) : 0;
    for (int i = 0; i < w.n && !ip->failed; i++) {
        EvalEntry *e = &w.entry[i];
        if (tell && e->stored && all > 0) {
            ip->c->progress(done / all);
            done += work_of(e->node);
        }
        if (e->scalar)
            scalar_eval(ip, e->node);
        else if (e->stored && !ip->value[e->node->id])
            node_eval(ip, e->node);
        for (int k = head[i]; k >= 0; k = w.entry[k].next_free)
            release(ip, w.entry[k].node);
    }
    arena_free(w.arena);
    return !ip->failed;
}

/* In the floating-point mode that the model runs in. */
bool eval_roots(Interp *ip, int nroot, Node *const *roots)
{
    const uint64_t mode = ip->c->keep_subnormals ? igrt_fp_mode() : igrt_fp_flush();
    const bool ok = eval_all(ip, nroot, roots);
    igrt_fp_restore(mode);
    return ok;
}

const void *interp_eval(Interp *ip, Node *n, int64_t *dims)
{
    ip->failed = false;
    if (!eval_roots(ip, 1, &n))
        return NULL;
    EvalValue *v = value_need(ip, n);
    for (int i = 0; dims && i < v->rank; i++)
        dims[i] = v->dims[i];
    return v->data;
}
