/* interp_region.c - from a piece of the graph to a linear program over lanes.
 *
 * Everything between one stored value and the stored values it reads is fused.  Movement ops become
 * coordinates (interp_coord.c), so a convolution's window times weights is never stored.  A node
 * read at two different coordinates is computed twice; the planner stores those that would be.
 * Recursion is bounded by the planner, which stores a value wherever a region gets too large. */
#include "interp_region.h"

#include <string.h>

Prog *prog_new(Interp *ip, int rank, const int64_t *box, uint32_t reduced)
{
    Arena *a = arena_new();
    Prog *p = NEW(a, Prog);
    *p = (Prog){.ip = ip, .arena = a, .reduced = reduced, .nkept = 1, .nreduced = 1};
    p->space = (Space){.arena = a, .rank = rank};
    int64_t points = 1;
    for (int i = 0; i < rank; i++) {
        p->space.ext[i] = box[i];
        points *= box[i];
        *(reduced >> i & 1 ? &p->nreduced : &p->nkept) *= box[i];
    }
    /* Enumerating coordinates must stay cheap next to the evaluation itself. */
    p->space.table_limit = points / 8 > 1 << 20 ? 1 << 20 : points / 8 < 64 ? 64 : points / 8;
    if (points == 0)
        return p;
    Coords *root = NEW(a, Coords);
    root->rank = rank;
    root->mask = -1;
    for (int i = 0; i < rank; i++)
        root->x[i] = lin_axis(&p->space, i);
    vec_push(a, p->coords, p->ncoords, root);
    return p;
}

void prog_free(Prog *p)
{
    map_free(&p->value);
    map_free(&p->moved);
    arena_free(p->arena);
}

static int reg_new(Prog *p, ingot_dtype t)
{
    const Reg r = {.dtype = t, .last = -1};
    vec_push(p->arena, p->reg, p->nreg, r);
    return p->nreg - 1;
}

static int emit(Prog *p, Instr in, ingot_dtype t)
{
    in.out = reg_new(p, t);
    vec_push(p->arena, p->instr, p->ninstr, in);
    return in.out;
}

static int use_of(Prog *p, const LinearForm *l)
{
    for (int i = 0; i < p->nuse; i++)
        if (p->use[i].lin == l)
            return i;
    const LaneUse u = {.lin = l};
    vec_push(p->arena, p->use, p->nuse, u);
    return p->nuse - 1;
}

static int emit_fill(Prog *p, Node *n)
{
    char *element = arena_alloc(p->arena, 16);
    if (n->op == OP_CONST && n->dtype != INGOT_INDEX)
        store_const(n, element);
    else
        store_int((ingot_dtype)n->dtype, dim_value(p->ip, n), element);
    const int r =
        emit(p, (Instr){.kind = DO_FILL, .data = element, .mask = -1}, (ingot_dtype)n->dtype);
    p->reg[r].pinned = true;
    return r;
}

/* For what is read from a tensor without elements. */
static int emit_zero(Prog *p, ingot_dtype t)
{
    const int r =
        emit(p, (Instr){.kind = DO_FILL, .data = arena_alloc(p->arena, 16), .mask = -1}, t);
    p->reg[r].pinned = true;
    return r;
}

static bool is_empty(Prog *p, Node *n)
{
    for (int i = 0; i < n->rank; i++)
        if (dim_value(p->ip, n->shape[i]) <= 0)
            return true;
    return false;
}

static void row_major(int rank, const int64_t *dims, int64_t *stride)
{
    int64_t s = 1;
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = s;
        s *= dims[i];
    }
}

static int emit_load(Prog *p, const EvalValue *v, const Coords *at)
{
    int64_t stride[INGOT_MAX_RANK];
    row_major(v->rank, v->dims, stride);
    const int use = use_of(p, lin_sum(&p->space, 0, v->rank, at->x, stride));
    p->use[use].load = true;
    return emit(p, (Instr){.kind = DO_LOAD, .data = v->data, .use = use, .mask = at->mask},
                v->dtype);
}

/* ---- movement -------------------------------------------------------------------------------- */

static Coords *coords_new(Prog *p, int rank, int mask)
{
    Coords *c = NEW(p->arena, Coords);
    c->rank = rank;
    c->mask = mask;
    return c;
}

/* Dims whose products agree are flattened and split together, the others stay apart. */
static void reshape_coords(Prog *p, int nd, const int64_t *d, const LinearForm *const *x, int ns,
                           const int64_t *s, const LinearForm **out)
{
    for (int i = 0, j = 0; j < ns;) {
        if (s[j] == 1) {
            out[j++] = lin_const(&p->space, 0);
            continue;
        }
        while (d[i] == 1)
            i++;
        const int i0 = i, j0 = j;
        int64_t a = d[i++], b = s[j++];
        while (a != b) {
            if (a < b && i < nd)
                a *= d[i++];
            else if (j < ns)
                b *= s[j++];
            else
                BUG("reshape changes the number of elements");
        }
        const LinearForm *flat = x[i0];
        if (i - i0 > 1) {
            int64_t stride[INGOT_MAX_RANK];
            row_major(i - i0, d + i0, stride);
            flat = lin_sum(&p->space, 0, i - i0, x + i0, stride);
        }
        if (j - j0 == 1) {
            out[j0] = flat;
            continue;
        }
        for (int k = j0; k < j; k++) {
            b /= s[k];
            out[k] = s[k] == 1 ? lin_const(&p->space, 0) : lin_divmod(&p->space, flat, b, s[k]);
        }
    }
}

static void pad_coords(Prog *p, Node *n, const int64_t *s, const Coords *at, Coords *out)
{
    Instr mask = {.kind = DO_MASK, .mask = at->mask};
    mask.in = NEWN(p->arena, int, n->rank + 1);
    mask.dim = NEWN(p->arena, int64_t, n->rank + 1);
    for (int i = 0; i < n->rank; i++) {
        const int64_t one = 1, lo = dim_value(p->ip, n->src[1 + 2 * i]);
        out->x[i] = lo ? lin_sum(&p->space, -lo, 1, &at->x[i], &one) : at->x[i];
        if (out->x[i]->lo >= 0 && out->x[i]->hi < s[i])
            continue;
        mask.in[mask.nin] = use_of(p, out->x[i]);
        mask.dim[mask.nin++] = s[i];
    }
    if (mask.nin)
        out->mask = emit(p, mask, INGOT_BOOL);
}

static int move(Prog *p, Node *n, int from);

/* The value of an integer node at `from` as a linear form; NULL if it is not plainly one. */
static const LinearForm *lin_value(Prog *p, Node *n, int from)
{
    const int64_t plus[2] = {1, 1}, minus[2] = {1, -1};
    const LinearForm *x[2];
    switch (n->op) {
    case OP_IOTA: return p->coords[from]->x[n->arg.i];
    case OP_CONST:
        return n->dtype == INGOT_I64 || n->dtype == INGOT_INDEX
                   ? lin_const(&p->space, (int64_t)n->arg.bits)
                   : NULL;
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_EXPAND:
    case OP_SHRINK:
    case OP_FLIP:
    case OP_KEEP:
    case OP_COPY: return lin_value(p, n->src[0], move(p, n, from));
    default: break;
    }
    if (n->dtype == INGOT_INDEX)
        return lin_const(&p->space, dim_value(p->ip, n));
    if (n->dtype != INGOT_I64)
        return NULL;
    if (n->op == OP_CAST)
        return n->src[0]->dtype == INGOT_INDEX ? lin_value(p, n->src[0], from) : NULL;
    if (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (!(x[i] = lin_value(p, n->src[i], from)))
            return NULL;
    if (n->op != OP_MUL)
        return lin_sum(&p->space, 0, 2, x, n->op == OP_ADD ? plus : minus);
    if (x[0]->n && x[1]->n)
        return NULL;
    const int varies = x[0]->n != 0;
    return lin_sum(&p->space, 0, 1, &x[!varies], &x[varies]->c);
}

/* Coordinates of n's source 0, for n at coordinates `from`.  Number of the result. */
static int move(Prog *p, Node *n, int from)
{
    const uint64_t key = ((uint64_t)n->id << 32 | (uint64_t)from) + 1;
    const intptr_t known = (intptr_t)map_get(&p->moved, key);
    if (known)
        return (int)known - 1;
    Node *x = n->src[0];
    const Coords *at = p->coords[from];
    Coords *out = coords_new(p, x->rank, at->mask);
    int64_t d[INGOT_MAX_RANK], s[INGOT_MAX_RANK];
    node_dims(p->ip, n, d);
    node_dims(p->ip, x, s);
    const int64_t one = 1, minus = -1;
    for (int i = 0; i < x->rank && n->op != OP_RESHAPE && n->op != OP_PAD; i++) {
        const LinearForm *l = NULL;
        if (n->op == OP_PERMUTE) {
            out->x[((const Perm *)n->arg.ptr)->axis[i]] = at->x[i];
            continue;
        }
        switch (n->op) {
        case OP_EXPAND: l = s[i] == 1 ? lin_const(&p->space, 0) : at->x[i]; break;
        case OP_SHRINK:
            l = lin_sum(&p->space, dim_value(p->ip, n->src[1 + 2 * i]), 1, &at->x[i], &one);
            break;
        case OP_FLIP:
            l = n->arg.i >> i & 1 ? lin_sum(&p->space, d[i] - 1, 1, &at->x[i], &minus) : at->x[i];
            break;
        case OP_KEEP:
        case OP_COPY: l = at->x[i]; break;
        case OP_GATHER:
            l = lin_value(p, n->src[1 + i], from);
            if (!l)
                BUG("gather planned as movement has a data-dependent index");
            l = lin_clamp(&p->space, l, s[i]);
            break;
        default: BUG("%s is no movement", op_info[n->op].text);
        }
        out->x[i] = l;
    }
    if (n->op == OP_RESHAPE)
        reshape_coords(p, n->rank, d, at->x, x->rank, s, out->x);
    if (n->op == OP_PAD)
        pad_coords(p, n, s, at, out);
    vec_push(p->arena, p->coords, p->ncoords, out);
    map_put(&p->moved, key, (void *)(intptr_t)p->ncoords);
    return p->ncoords - 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int add(Prog *p, Node *n, int at);

static int add_gather(Prog *p, Node *n, int at)
{
    Node *x = n->src[0];
    const EvalValue *v = value_of(p->ip, x);
    bool linear = true;
    const LinearForm *l[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        linear &= (l[i] = lin_value(p, n->src[1 + i], at)) != NULL;
    if (linear || x->op == OP_CONST)
        return add(p, x, x->op == OP_CONST ? at : move(p, n, at));
    if (!v)
        BUG("gather from a value that is not stored");
    int64_t stride[INGOT_MAX_RANK];
    row_major(v->rank, v->dims, stride);
    Instr in = {.kind = DO_GATHER, .node = n, .data = v->data, .mask = p->coords[at]->mask};
    in.in = NEWN(p->arena, int, v->rank);
    in.dim = NEWN(p->arena, int64_t, v->rank);
    in.stride = NEWN(p->arena, int64_t, v->rank);
    const LinearForm *offset[INGOT_MAX_RANK];
    int64_t k[INGOT_MAX_RANK];
    int noffset = 0;
    for (int i = 0; i < v->rank; i++) {
        if (l[i]) {
            offset[noffset] = lin_clamp(&p->space, l[i], v->dims[i]);
            k[noffset++] = stride[i];
            continue;
        }
        in.in[in.nin] = add(p, n->src[1 + i], at);
        in.dim[in.nin] = v->dims[i];
        in.stride[in.nin++] = stride[i];
    }
    in.use = use_of(p, lin_sum(&p->space, 0, noffset, offset, k));
    return emit(p, in, v->dtype);
}

static int add_new(Prog *p, Node *n, int at)
{
    const EvalValue *v = value_of(p->ip, n);
    if (v)
        return emit_load(p, v, p->coords[at]);
    if (n->op == OP_CONST || (n->dtype == INGOT_INDEX && n->rank == 0))
        return emit_fill(p, n);
    if (n->op == OP_IOTA)
        return emit(
            p, (Instr){.kind = DO_IOTA, .use = use_of(p, p->coords[at]->x[n->arg.i]), .mask = -1},
            INGOT_I64);
    if (op_is_alu(n->op)) {
        Instr in = {.kind = DO_ALU, .node = n, .mask = -1};
        in.in = NEWN(p->arena, int, n->nsrc);
        for (uint32_t i = 0; i < n->nsrc; i++)
            in.in[in.nin++] = add(p, n->src[i], at);
        return emit(p, in, (ingot_dtype)n->dtype);
    }
    if (n->op == OP_GATHER || n->op == OP_PAD)
        if (is_empty(p, n->src[0]))
            return emit_zero(p, (ingot_dtype)n->dtype);
    if (n->op == OP_GATHER)
        return add_gather(p, n, at);
    if (op_info[n->op].cls != MOVE || n->op == OP_CONCAT)
        BUG("%s is not stored", op_info[n->op].text);
    const int to = move(p, n, at), x = add(p, n->src[0], to);
    if (n->op != OP_PAD || p->coords[to]->mask < 0)
        return x;
    Instr pad = {.kind = DO_PAD, .nin = 1, .mask = p->coords[to]->mask};
    pad.in = NEW(p->arena, int);
    pad.in[0] = x;
    return emit(p, pad, (ingot_dtype)n->dtype);
}

static int add(Prog *p, Node *n, int at)
{
    const bool everywhere = n->op == OP_CONST || (n->dtype == INGOT_INDEX && n->rank == 0);
    const uint64_t key = ((uint64_t)n->id << 32 | (everywhere ? 0 : (uint64_t)at)) + 1;
    const intptr_t known = (intptr_t)map_get(&p->value, key);
    if (known)
        return (int)known - 1;
    const int r = add_new(p, n, at);
    map_put(&p->value, key, (void *)(intptr_t)(r + 1));
    return r;
}

int prog_add(Prog *p, Node *n)
{
    return add(p, n, 0);
}

/* ---- sinks: what happens to the lanes of a root ---------------------------------------------- */

static void sink_store(Prog *p, int n, const char *const *regs)
{
    EvalValue *v = p->user;
    const size_t size = elem_bytes(v->dtype);
    memcpy((char *)value_data(v) + (size_t)p->o0 * size, regs[0], (size_t)n * size);
}

typedef struct {
    Op op;
    ingot_reduce_op monoid;
    ingot_dtype from, compute;
    char *acc;  /* one per kept point of the block */
    char *wide; /* the chunk in the compute type */
    EvalValue *out;
} Fold;

static void sink_fold(Prog *p, int n, const char *const *regs)
{
    Fold *f = p->user;
    const size_t size = elem_bytes(f->compute);
    if (p->r0 == 0)
        for (int i = 0; i < p->ob; i++)
            alu_identity(f->monoid, f->compute, f->acc + (size_t)i * size);
    const char *v = regs[0];
    if (f->from != f->compute) {
        alu_cast(f->compute, f->from, 0, (size_t)n, f->wide, v);
        v = f->wide;
    }
    const uint8_t types[2] = {(uint8_t)f->compute, (uint8_t)f->compute};
    if (p->ob == 1)
        alu_fold(f->op, f->compute, (size_t)n, f->acc, v);
    for (int j = 0; p->ob > 1 && j < p->nouter; j++) {
        const void *in[2] = {f->acc, v + (size_t)j * (size_t)p->ob * size};
        alu_lanes(f->op, 0, f->compute, types, (size_t)p->ob, f->acc, in);
    }
    if (p->r0 + n / p->ob < p->nreduced)
        return;
    char *out = (char *)value_data(f->out) + (size_t)p->o0 * elem_bytes(f->out->dtype);
    alu_cast(f->out->dtype, f->compute, 1, (size_t)p->ob, out, f->acc);
    if (f->op == OP_ADD || f->op == OP_MUL)
        interp_shake(p->ip, f->out->dtype, p->ob, out);
}

/* The greatest (least) element and its index, of each kept point of the block. */
typedef struct {
    bool greatest, last;
    int part;
    ingot_dtype value, index;
    char *best;     /* as they are stored */
    int64_t *first; /* the index */
    EvalValue *out;
} Extreme;

static int compare(const Extreme *s, const char *a, const char *b)
{
    if (dtype_is_float(s->value)) {
        double x, y;
        alu_cast(INGOT_F64, s->value, 0, 1, &x, a);
        alu_cast(INGOT_F64, s->value, 0, 1, &y, b);
        if (x != x || y != y)
            return (x != x) - (y != y);
        return s->greatest ? (x > y) - (x < y) : (x < y) - (x > y);
    }
    int64_t x = load_int(s->value, a), y = load_int(s->value, b);
    int more = dtype_info[s->value].kind == 'u'
                   ? ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y)
                   : (x > y) - (x < y);
    return s->greatest ? more : -more;
}

static void sink_extreme(Prog *p, int n, const char *const *regs)
{
    Extreme *s = p->user;
    const size_t size = elem_bytes(s->value), index = elem_bytes(s->index);
    for (int i = 0; i < n; i++) {
        const int at = i % p->ob;
        const char *v = regs[0] + (size_t)i * size;
        const int64_t x = load_int(s->index, regs[1] + (size_t)i * index);
        const bool begin = p->r0 == 0 && i < p->ob;
        const int order = begin ? 1 : compare(s, v, s->best + (size_t)at * size);
        if (order < 0 || (order == 0 && (s->last ? x < s->first[at] : x > s->first[at])))
            continue;
        memcpy(s->best + (size_t)at * size, v, size);
        s->first[at] = x;
    }
    if (p->r0 + n / p->ob < p->nreduced)
        return;
    char *out = (char *)value_data(s->out);
    for (int i = 0; i < p->ob && s->part; i++)
        store_int(s->index, s->first[i], out + (size_t)(p->o0 + i) * index);
    if (!s->part)
        memcpy(out + (size_t)p->o0 * size, s->best, (size_t)p->ob * size);
}

/* A state of several values, over at least one element. */
static void state_eval(Prog *p, Node *n, EvalValue *out)
{
    const int monoid = reduce_monoid(n);
    Extreme s = {.greatest = monoid == MONOID_ARGMAX || monoid == MONOID_ARGMAX_LAST,
                 .last = monoid == MONOID_ARGMAX_LAST || monoid == MONOID_ARGMIN_LAST,
                 .part = reduce_part(n),
                 .value = (ingot_dtype)n->src[0]->dtype,
                 .index = (ingot_dtype)n->src[1]->dtype,
                 .best = NEWN(p->arena, char, LANES * 16),
                 .first = NEWN(p->arena, int64_t, LANES),
                 .out = out};
    const int root[2] = {prog_add(p, n->src[0]), prog_add(p, n->src[1])};
    prog_run(p, 2, root, sink_extreme, &s);
}

typedef struct {
    Op op;
    ingot_reduce_op monoid;
    char *acc; /* one per kept point of the block */
    EvalValue *out;
    int64_t length, inner; /* of the scanned axis; elements from one to the next along it */
} Scan;

static void sink_scan(Prog *p, int n, const char *const *regs)
{
    Scan *s = p->user;
    const ingot_dtype t = s->out->dtype;
    const size_t size = elem_bytes(t);
    const uint8_t types[2] = {(uint8_t)t, (uint8_t)t};
    for (int i = 0; i < p->ob && p->r0 == 0; i++)
        alu_identity(s->monoid, t, s->acc + (size_t)i * size);
    for (int j = 0; j < n / p->ob; j++) {
        const void *in[2] = {s->acc, regs[0] + (size_t)j * (size_t)p->ob * size};
        alu_lanes(s->op, 0, t, types, (size_t)p->ob, s->acc, in);
        for (int i = 0; i < p->ob; i++) {
            const int64_t kept = p->o0 + i, row = kept / s->inner * s->length + p->r0 + j;
            memcpy((char *)value_data(s->out) + (size_t)(row * s->inner + kept % s->inner) * size,
                   s->acc + (size_t)i * size, size);
        }
    }
}

static void scan_eval(Interp *ip, Node *n, EvalValue *out)
{
    const uint32_t axes = reduce_axes(n);
    Prog *p = prog_new(ip, out->rank, out->dims, axes);
    Scan s = {.monoid = (ingot_reduce_op)reduce_monoid(n), .out = out, .length = 1, .inner = 1};
    s.op = monoid_op(s.monoid);
    s.acc = NEWN(p->arena, char, LANES * 16);
    for (int i = out->rank; i-- > 0 && s.length == 1;)
        if (axes >> i & 1)
            s.length = out->dims[i];
        else
            s.inner *= out->dims[i];
    const int root = prog_add(p, n->src[0]);
    prog_run(p, 1, &root, sink_scan, &s);
    prog_free(p);
}

bool region_eval(Interp *ip, Node *n, EvalValue *out)
{
    if (out->n == 0)
        return true;
    if (n->op == OP_SCAN) {
        scan_eval(ip, n, out);
        return true;
    }
    if (n->op != OP_REDUCE) {
        Prog *p = prog_new(ip, out->rank, out->dims, 0);
        const int root = prog_add(p, n);
        prog_run(p, 1, &root, sink_store, out);
        prog_free(p);
        return true;
    }
    Node *x = n->src[0];
    int64_t box[INGOT_MAX_RANK];
    node_dims(ip, x, box);
    if (reduce_size(n) > 1) {
        Prog *p = prog_new(ip, x->rank, box, reduce_axes(n));
        if (p->nreduced)
            state_eval(p, n, out);
        prog_free(p);
        return true;
    }
    Fold f = {
        .monoid = (ingot_reduce_op)reduce_monoid(n), .from = (ingot_dtype)x->dtype, .out = out};
    f.op = monoid_op(f.monoid);
    f.compute = f.from == INGOT_INDEX ? INGOT_INDEX : dtype_info[f.from].compute;
    Prog *p = prog_new(ip, x->rank, box, reduce_axes(n));
    if (p->nreduced == 0) {
        _Alignas(16) char identity[16];
        const size_t size = elem_bytes(out->dtype);
        alu_identity(f.monoid, out->dtype, identity);
        for (int64_t i = 0; i < out->n; i++)
            memcpy((char *)value_data(out) + (size_t)i * size, identity, size);
        prog_free(p);
        return true;
    }
    f.acc = NEWN(p->arena, char, LANES * 16);
    f.wide = NEWN(p->arena, char, LANES * 16);
    const int root = prog_add(p, x);
    prog_run(p, 1, &root, sink_fold, &f);
    prog_free(p);
    return true;
}

typedef struct {
    Node *node;
    EvalValue *out;
    int64_t stride[INGOT_MAX_RANK];
} Scatter;

static void sink_update(Prog *p, int n, const char *const *regs)
{
    static const Op combine[] = {OP_CAST, OP_ADD, OP_MUL, OP_MAX, OP_MIN};
    const Scatter *s = p->user;
    const ingot_dtype t = s->out->dtype;
    const size_t size = elem_bytes(t);
    const uint8_t types[2] = {(uint8_t)t, (uint8_t)t};
    for (int i = 0; i < n; i++) {
        int64_t offset = 0;
        bool inside = true;
        for (int a = 0; a < s->out->rank && inside; a++) {
            const ingot_dtype ti = (ingot_dtype)s->node->src[2 + a]->dtype;
            const int64_t x = load_int(ti, regs[1 + a] + (size_t)i * elem_bytes(ti));
            inside = x >= 0 && x < s->out->dims[a];
            offset += x * s->stride[a];
        }
        if (!inside)
            continue;
        char *to = (char *)value_data(s->out) + (size_t)offset * size;
        const void *in[2] = {to, regs[0] + (size_t)i * size};
        if (s->node->arg.i == INGOT_SET)
            memcpy(to, in[1], size);
        else
            alu_lanes(combine[s->node->arg.i], 0, t, types, 1, to, in);
    }
}

/* out holds a zeroed value of n's shape. */
bool update_eval(Interp *ip, Node *n, EvalValue *out)
{
    Node *x = n->src[0];
    const EvalValue *old = value_need(ip, x);
    if (out->n == 0)
        return true;
    memcpy(value_data(out), old->data, (size_t)out->n * elem_bytes(out->dtype));
    Scatter s = {.node = n, .out = out};
    row_major(out->rank, out->dims, s.stride);
    int64_t box[INGOT_MAX_RANK];
    node_dims(ip, n->src[1], box);
    Prog *p = prog_new(ip, n->src[1]->rank, box, 0);
    if (p->nkept > 0) {
        int root[1 + INGOT_MAX_RANK];
        for (int i = 0; i < 1 + x->rank; i++)
            root[i] = prog_add(p, n->src[1 + i]);
        prog_run(p, 1 + x->rank, root, sink_update, &s);
    }
    prog_free(p);
    return true;
}

typedef struct {
    EvalValue *out;
    int64_t inner, out_inner;
    int64_t at; /* elements of the part, of the whole, before the part, per outer point */
} Slot;

static void sink_concat(Prog *p, int n, const char *const *regs)
{
    const Slot *s = p->user;
    const size_t size = elem_bytes(s->out->dtype);
    for (int64_t i = 0, m; i < n; i += m) {
        const int64_t outer = (p->o0 + i) / s->inner, inner = (p->o0 + i) % s->inner;
        m = s->inner - inner < n - i ? s->inner - inner : n - i;
        memcpy((char *)value_data(s->out) + (size_t)(outer * s->out_inner + s->at + inner) * size,
               regs[0] + (size_t)i * size, (size_t)m * size);
    }
}

bool concat_eval(Interp *ip, Node *n, EvalValue *out)
{
    if (out->n == 0)
        return true;
    const int axis = (int)n->arg.i;
    int64_t after = 1;
    for (int i = axis + 1; i < out->rank; i++)
        after *= out->dims[i];
    Slot s = {.out = out, .out_inner = out->dims[axis] * after};
    for (uint32_t k = 0; k < n->nsrc; k++) {
        int64_t box[INGOT_MAX_RANK];
        node_dims(ip, n->src[k], box);
        s.inner = box[axis] * after;
        if (s.inner > 0) {
            Prog *p = prog_new(ip, out->rank, box, 0);
            const int root = prog_add(p, n->src[k]);
            prog_run(p, 1, &root, sink_concat, &s);
            prog_free(p);
        }
        s.at += s.inner;
    }
    return true;
}
