/* linear_value.c - values of linear IR as instructions on the frame.
 *
 * A name that cannot be seen is a fault, where a renderer would spell the value again; only the
 * address of a first lane may be spelled again, since it is none of the statements' nodes. */
#include "linear_build.h"

Operand code_room(Build *q, ingot_dtype type, int n)
{
    Operand o = {q->c->bytes, n, type};
    q->c->bytes += (int)(((size_t)n * elem_bytes(type) + 15) / 16 * 16);
    return o;
}

Do *code_add(Build *q, DoKind kind, Operand out)
{
    Do d = {.kind = kind, .type = (uint8_t)out.type, .n = out.n, .part = out.n, .out = out.at};
    d.stmt = q->stmt;
    d.size = (int)elem_bytes(out.type);
    vec_push(q->a, q->c->code, q->c->n, d);
    return &q->c->code[q->c->n - 1];
}

Do *code_add_from(Build *q, DoKind kind, Operand out, Operand in)
{
    Do *d = code_add(q, kind, out);
    d->in[0] = in.at;
    d->from = in.n;
    d->from_type[0] = (uint8_t)in.type;
    return d;
}

static Operand copied(Build *q, Operand x)
{
    Operand out = code_room(q, x.type, x.n);
    code_add_from(q, DO_COPY, out, x);
    return out;
}

Operand code_constant(Build *q, Node *n, int lanes)
{
    struct Constant c = {.n = lanes, .node = n};
    Operand o = code_room(q, code_type(n->dtype), lanes);
    c.at = o.at;
    vec_push(q->a, q->constant, q->nconstant, c);
    return o;
}

Operand code_spread(Build *q, Operand x, int n)
{
    if (x.n == n || q->c->fault)
        return x;
    Operand out = code_room(q, x.type, n);
    code_add_from(q, DO_SPREAD, out, x);
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

int code_fragment_extent(const Build *q, const Node *n, int axis)
{
    bool moves = code_knows(q, n) && q->l->fragment[n->id] >> axis & 1;
    return moves ? (int)q->l->tile->fragment[axis]->hi + 1 : 1;
}

/* Which operand of a matrix unit's a fragment is: by what it does not move with. */
static int operand_of(const Build *q, const Node *n)
{
    const unsigned moves = q->l->fragment[n->id];
    return !(moves >> TC_TERMS & 1) ? TC_TERMS : moves >> TC_ROWS & 1 ? TC_ROWS : TC_COLUMNS;
}

int code_width(const Build *q, const Node *n)
{
    if (code_knows(q, n) && q->l->fragment[n->id] && tc_in_place(q->l->tile->tc) &&
        n->op == OP_LOAD)
        return 1;
    if (code_knows(q, n) && q->l->fragment[n->id] && q->l->tile->tc->lanes)
        return tc_per_lane(tile_unit(q->l->tile, n).tc, operand_of(q, n));
    if (code_knows(q, n) && q->l->fragment[n->id])
        return code_fragment_extent(q, n, TC_ROWS) * code_fragment_extent(q, n, TC_COLUMNS) *
               code_fragment_extent(q, n, TC_TERMS);
    return (code_in_lanes(q, n) ? q->l->tile->lanes : 1) *
           (code_knows(q, n) && q->l->four[n->id] ? tile_dot(q->l->tile) : 1);
}

static bool can_be_seen(const Build *q, const Node *n)
{
    return code_knows(q, n) && n != q->self && q->at[n->id] >= 0;
}

uint64_t code_ranges_of(const Build *q, const Node *n, Map *memo)
{
    uint64_t set = (uint64_t)(uintptr_t)map_get(memo, (uint64_t)n->id + 1);
    if (set)
        return set & ~(UINT64_C(1) << 63);
    const Tile *t = q->l->tile;
    if (n->op == OP_RANGE && n != t->lane && n != t->four && !is_fragment_range(t, n))
        set |= UINT64_C(1) << (n->arg.i & 63);
    for (uint32_t i = 0; i < n->nsrc; i++)
        set |= code_ranges_of(q, n->src[i], memo);
    const uint32_t first = n->op == OP_END ? (uint32_t)end_stores(n) : reduce_ranges(n);
    for (uint32_t i = first; i < n->nsrc; i++)
        if (!is_fragment_range(t, n->src[i]))
            set &= ~(UINT64_C(1) << (n->src[i]->arg.i & 63));
    map_put(memo, (uint64_t)n->id + 1, (void *)(uintptr_t)(set | UINT64_C(1) << 63));
    return set & ~(UINT64_C(1) << 63);
}

bool code_is_open(const Build *q, const Node *range)
{
    return range->arg.i >= 0 && range->arg.i < MAX_RANGES && q->counter[range->arg.i] >= 0;
}

Operand code_counter(Build *q, Node *range)
{
    if (code_is_open(q, range))
        return (Operand){q->counter[range->arg.i], 1, INGOT_INDEX};
    code_fault(q, "reads the counter of %s, and no such loop is open here",
               linear_range_name(q->l->tile, range));
    return (Operand){0, 1, INGOT_INDEX};
}

/* What has a name, from where it is. */
static Operand named(Build *q, Node *n)
{
    Operand o = {q->at[n->id], code_width(q, n), code_type(n->dtype)};
    if (is_accumulated(q->l, n)) {
        Do *d = code_add(q, DO_WHOLE, (Operand){0, 0, INGOT_INDEX});
        d->node = n;
        d->count = q->count[n->id];
        if (n->op == OP_SCAN)
            d->in[0] = code_counter(q, n->src[1]).at;
    }
    return o;
}

typedef struct {
    int64_t constant;
    AffineTerm *term;
    int n;
} Affine;

static void affine(Build *q, Node *n, int64_t k, Affine *sum)
{
    if (!can_be_seen(q, n)) {
        switch (n->op) {
        case OP_CONST: sum->constant += k * n->arg.i; return;
        case OP_ADD:
        case OP_SUB:
            if (code_knows(q, n) && q->l->named[n->id] && n != q->self && !q->again)
                break;
            affine(q, n->src[0], k, sum);
            affine(q, n->src[1], n->op == OP_SUB ? -k : k, sum);
            return;
        case OP_MUL:
            if (n->src[1]->op != OP_CONST ||
                (code_knows(q, n) && q->l->named[n->id] && n != q->self && !q->again))
                break;
            affine(q, n->src[0], k * n->src[1]->arg.i, sum);
            return;
        default: break;
        }
    }
    AffineTerm t = {code_value(q, n).at, k};
    vec_push(q->a, sum->term, sum->n, t);
}

static Operand affine_value(Build *q, Node *n)
{
    Affine sum = {0};
    if (n->op == OP_ADD || n->op == OP_SUB) {
        affine(q, n->src[0], 1, &sum);
        affine(q, n->src[1], n->op == OP_SUB ? -1 : 1, &sum);
    } else {
        affine(q, n->src[0], n->src[1]->arg.i, &sum);
    }
    Do *d = code_add(q, DO_AFFINE, code_room(q, INGOT_INDEX, 1));
    d->arg = sum.constant;
    d->term = sum.term;
    d->nterm = sum.n;
    d->node = n;
    return (Operand){d->out, 1, INGOT_INDEX};
}

static Operand alu(Build *q, Node *n)
{
    Operand in[3] = {{0, 0, INGOT_BOOL}};
    int lanes = code_width(q, n);
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++)
        in[i] = code_spread(q, code_value(q, n->src[i]), lanes);
    Do *d = code_add(q, DO_ALU, code_room(q, code_type(n->dtype), lanes));
    d->op = n->op;
    d->arg = n->arg.i;
    d->node = n;
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++) {
        d->in[i] = in[i].at;
        d->from_type[i] = (uint8_t)in[i].type;
    }
    return (Operand){d->out, lanes, code_type(n->dtype)};
}

/* a ? b : c, a && b, a || b: what is not asked for is not computed. */
static Operand choice(Build *q, Node *n)
{
    int lanes = code_width(q, n);
    Operand out = code_room(q, code_type(n->dtype), lanes), cond = code_value(q, n->src[0]);
    if (n->op != OP_WHERE) {
        code_add_from(q, DO_COPY, out, cond);
        int skip = q->c->n;
        code_add_from(q, n->op == OP_AND ? DO_SKIP : DO_SKIP_IF, out, cond);
        code_add_from(q, DO_COPY, out, code_value(q, n->src[1]));
        q->c->code[skip].to = q->c->n;
        return out;
    }
    int skip = q->c->n;
    code_add_from(q, DO_SKIP, out, cond);
    code_add_from(q, DO_COPY, out, code_spread(q, code_value(q, n->src[1]), lanes));
    int jump = q->c->n;
    code_add(q, DO_JUMP, out);
    q->c->code[skip].to = q->c->n;
    code_add_from(q, DO_COPY, out, code_spread(q, code_value(q, n->src[2]), lanes));
    q->c->code[jump].to = q->c->n;
    return out;
}

static Operand custom(Build *q, Node *n)
{
    int lanes = code_width(q, n), *operand = NEWN(q->a, int, n->nsrc + 1);
    for (uint32_t i = 0; i < n->nsrc; i++)
        operand[i] = code_spread(q, code_value(q, n->src[i]), lanes).at;
    Do *d = code_add(q, DO_CUSTOM, code_room(q, code_type(n->dtype), lanes));
    d->node = n;
    d->operand = operand;
    return (Operand){d->out, lanes, code_type(n->dtype)};
}

Operand code_address(Build *q, Node *offset, bool lanes, bool fours)
{
    Context *c = q->lk->k->c;
    Node *from[2], *to[2];
    int n = 0;
    if (lanes)
        from[n++] = q->l->tile->lane;
    if (fours)
        from[n++] = q->l->tile->four;
    to[0] = to[1] = idx(c, 0);
    if (!n)
        return code_value(q, offset);
    q->again = true;
    Operand at = code_value(q, substitute(c, offset, n, from, to));
    q->again = false;
    return at;
}

bool code_buffer_is_known(Build *q, const Node *access)
{
    const Node *b = linear_buffer(access);
    if (b->op == OP_BUFFER && b->arg.i >= 0 && b->arg.i < q->lk->k->narg)
        return true;
    code_fault(q, "there is no form for %s of a %s", op_info[access->op].text, op_info[b->op].text);
    return false;
}

/* A fragment, line after line: a [rows][terms], b [terms][columns]. */
static Operand load_fragment(Build *q, Node *n)
{
    const Tile *t = q->l->tile;
    Operand out = code_room(q, code_type(n->dtype), code_width(q, n));
    Node *first;
    int64_t pitch;
    if (!code_buffer_is_known(q, n) || n->nsrc != 3 || !node_is_const_i(n->src[1], 1) ||
        !tc_fragment(q->lk->k->c, t->tc, t->fragment, n, &first, &pitch)) {
        code_fault(q, "there is no form for a fragment that lies so");
        return out;
    }
    bool rows = code_fragment_extent(q, n, TC_ROWS) > 1;
    q->again = true;
    Operand at = code_value(q, first);
    q->again = false;
    Do *d = code_add_from(q, DO_LOAD_TILE, out, at);
    d->node = n;
    d->arg = linear_buffer(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->step = pitch;
    d->count = code_fragment_extent(q, n, rows ? TC_ROWS : TC_TERMS);
    d->part = rows ? 1 : t->tc->group;
    return out;
}

/* The item's elements; or where all of them lie. */
static Operand load_lane_fragment(Build *q, Node *n)
{
    LaneFragment f;
    const TileUnit u = tile_unit(q->l->tile, n);
    if (tc_in_place(q->l->tile->tc) && code_buffer_is_known(q, n) &&
        tc_place_fragment(q->lk->k->c, u.tc, u.fragment, n, &f)) {
        q->again = true;
        Operand at = code_value(q, f.first), out = code_room(q, INGOT_INDEX, 1);
        q->again = false;
        code_add_from(q, DO_COPY, out, at);
        return out;
    }
    Operand out = code_room(q, code_type(n->dtype), code_width(q, n));
    if (!code_buffer_is_known(q, n) || n->nsrc != 3 || !node_is_const_i(n->src[1], 1) ||
        !tc_lane_fragment(q->lk->k->c, q->l->tile->fragment, n, &f)) {
        code_fault(q, "there is no form for a fragment that lies so");
        return out;
    }
    q->again = true;
    Operand at = code_value(q, f.first);
    q->again = false;
    Do *d = code_add_from(q, DO_LOAD_LANE, out, at);
    d->node = n;
    d->arg = linear_buffer(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->step = f.by_line ? f.pitch : 1;
    d->count = f.by_line ? 1 : (int)f.pitch;
    d->part = f.halves;
    d->from = operand_of(q, n);
    return out;
}

void code_tile(Build *q, DoKind kind, int number, const Node *holds)
{
    Do *d = code_add(q, kind, (Operand){0, 0, INGOT_INDEX});
    d->arg = number;
    d->to = (int)holds->id + 1;
}

static Operand load(Build *q, Node *n)
{
    if (code_knows(q, n) && q->l->fragment[n->id])
        return q->l->tile->tc->lanes ? load_lane_fragment(q, n) : load_fragment(q, n);
    const Tile *t = q->l->tile;
    bool lanes = code_in_lanes(q, n), fours = code_knows(q, n) && q->l->four[n->id];
    int skip = -1, mask = -1, count = is_rows(n) ? (int)n->src[3]->arg.i : 1;
    Operand out = code_room(q, code_type(n->dtype), count * code_width(q, n));
    int64_t step = 1;
    if (!code_buffer_is_known(q, n))
        return out;
    if (n->nsrc != 3 && !is_rows(n)) {
        code_fault(q, "a load has %d coordinates where one offset is wanted", (int)n->nsrc - 2);
        return out;
    }
    if (lanes && !fours && !range_stride(q->lk->k->c, n->src[2], t->lane, &step)) {
        code_fault(q, "what is loaded does not lie evenly apart");
        return out;
    }
    if (code_in_lanes(q, n->src[1]) && !fours && count == 1) {
        mask = code_value(q, n->src[1]).at;
    } else if (!node_is_const_i(n->src[1], 1)) {
        if (code_width(q, n->src[1]) > 1 || count > 1) {
            code_fault(q, "there is no form for a load with this gate");
            return out;
        }
        Operand gate = code_value(q, n->src[1]);
        if (n->arg.i)
            code_add_from(q, DO_COPY, out,
                          code_value(q, node_const_i(q->lk->k->c, n->dtype, n->arg.i)));
        else
            code_add(q, DO_ZERO, out);
        skip = q->c->n;
        code_add_from(q, DO_SKIP, out, gate);
    }
    Operand at = code_address(q, n->src[2], lanes, fours);
    Do *d = code_add_from(q, DO_LOAD, out, at);
    d->node = n;
    d->arg = linear_buffer(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->in[1] = mask;
    d->step = step;
    d->count = count;
    d->n = d->part = code_width(q, n);
    if (lanes && t->part)
        d->part = t->part * (fours ? tile_dot(t) : 1);
    if (skip >= 0)
        q->c->code[skip].to = q->c->n;
    return out;
}

/* What the item has of an operand: a value for each element, then the ranges of the fragment. */
static Operand packed(Build *q, Node *n)
{
    Operand out = code_room(q, code_type(n->dtype), code_width(q, n));
    const int bytes = (int)elem_bytes(out.type);
    for (int i = 0; i < out.n && i < (int)n->nsrc; i++) {
        Operand x = code_value(q, n->src[i]);
        if (x.n != 1 || x.type != out.type)
            code_fault(q, "there is no form for a fragment of such values");
        code_add_from(q, DO_COPY, (Operand){out.at + i * bytes, 1, out.type}, x);
    }
    return out;
}

/* One of the neighbours that a load of rows takes, in lanes. */
static Operand row(Build *q, Node *n)
{
    const Node *rows = n->src[0];
    if (rows->op == OP_REDUCE && is_products(q->l, n->src[0])) { /* of a fragment of sums */
        Operand sums = code_value(q, n->src[0]);
        if (n->arg.i < 0 || n->arg.i >= sums.n)
            code_fault(q, "an item has no element %d of a fragment", (int)n->arg.i);
        return (Operand){sums.at + (int)(n->arg.i * (int64_t)elem_bytes(sums.type)), 1, sums.type};
    }
    Operand all = {0, code_width(q, n), code_type(n->dtype)};
    if (!is_rows(rows) || n->arg.i < 0 || n->arg.i >= rows->src[3]->arg.i) {
        code_fault(q, "there is no form for this %s", op_info[n->op].text);
        return all;
    }
    all.at = code_value(q, n->src[0]).at + (int)(n->arg.i * all.n * (int64_t)elem_bytes(all.type));
    return all;
}

/* A coordinate as a number of every lane. */
static Operand ramp(Build *q, Node *n)
{
    Operand out = code_room(q, INGOT_INDEX, q->l->tile->lanes);
    int64_t step;
    if (!range_stride(q->lk->k->c, n, q->l->tile->lane, &step)) {
        code_fault(q,
                   "a coordinate that does not advance evenly along the lanes is used as a number");
        return out;
    }
    Do *d = code_add_from(q, DO_RAMP, out, code_address(q, n, true, false));
    d->arg = step;
    return out;
}

void code_dots(Build *q, Node *n, Operand out, Operand x, bool added)
{
    const int terms = tile_dot(q->l->tile);
    if (x.n != terms * out.n || x.type != out.type || reduce_monoid(n) != INGOT_REDUCE_ADD ||
        (x.type != INGOT_I32 && (terms != 2 || x.type != INGOT_F32)))
        code_fault(q, "there is no form for this sum of %d terms", terms);
    Do *d = code_add_from(q, DO_FOURS, out, x);
    d->count = terms;
    d->part = !added;
}

static Operand reduce(Build *q, Node *n)
{
    Operand x = code_value(q, n->src[0]);
    switch (reduce_form(q->l, n)) {
    case REDUCE_DOT: {
        Operand out = code_room(q, x.type, code_width(q, n));
        code_dots(q, n, out, x, false);
        return out;
    }
    case REDUCE_QUAD:
    case REDUCE_ACROSS: {
        Do *d = code_add_from(q, DO_QUAD, code_room(q, x.type, 1), x);
        d->op = monoid_op((ingot_reduce_op)reduce_monoid(n));
        d->arg = n->src[1]->hi + 1;
        return (Operand){d->out, 1, x.type};
    }
    case REDUCE_LANES: {
        x = copied(q, code_spread(q, x, q->l->tile->lanes));
        Do *d = code_add_from(q, DO_ACROSS, (Operand){x.at, x.n, x.type}, x);
        d->op = monoid_op((ingot_reduce_op)reduce_monoid(n));
        return (Operand){x.at, 1, x.type};
    }
    case REDUCE_LOOP:
    case REDUCE_PRODUCTS: break;
    }
    code_fault(q, "uses a %s whose accumulator cannot be seen here", op_info[n->op].text);
    return x;
}

/* The state of a reduce before the element at hand. */
static Operand param(Build *q, Node *n)
{
    Node *of = reduce_sibling(q->lk->k->c, n, reduce_part(n));
    if (!can_be_seen(q, of))
        code_fault(q, "reads the state of a reduce whose accumulator cannot be seen here");
    return (Operand){q->c->fault ? 0 : q->at[of->id], code_width(q, of), code_type(of->dtype)};
}

/* Regions are of bounded depth (fuse.c), so recursion is bounded. */
Operand code_value(Build *q, Node *n)
{
    Operand none = {0, code_width(q, n), code_type(n->dtype)};
    if (q->c->fault)
        return none;
    if (can_be_seen(q, n))
        return named(q, n);
    if (n->dtype == INGOT_INDEX && code_in_lanes(q, n))
        return ramp(q, n);
    if (code_knows(q, n) && q->l->named[n->id] && n != q->self && !q->again) {
        code_fault(q, "uses a %s before the statement that makes it, or outside of its loop",
                   op_info[n->op].text);
        return none;
    }
    switch (n->op) {
    case OP_CONST: return code_constant(q, n, 1);
    case OP_RANGE: return code_counter(q, n);
    case OP_PARAM:
        if (is_scalar_argument(n) && n->arg.i < q->lk->k->nscalar)
            return (Operand){q->c->scalar + 16 * (int)n->arg.i, 1, code_type(n->dtype)};
        return param(q, n);
    case OP_VAR:
        for (int i = 0; i < q->lk->k->nvar; i++)
            if (q->lk->k->vars[i] == n->arg.i)
                return (Operand){q->c->var + 16 * i, 1, INGOT_INDEX};
        code_fault(q, "reads a run-time integer that is none of the kernel's");
        return none;
    case OP_LOAD: return load(q, n);
    case OP_PROJ: return row(q, n);
    case OP_PACK: return packed(q, n);
    case OP_REDUCE:
    case OP_SCAN: return reduce(q, n);
    case OP_CUSTOM: return custom(q, n);
    default: break;
    }
    if (!op_is_alu(n->op)) {
        code_fault(q, "there is no form for %s in an expression", op_info[n->op].text);
        return none;
    }
    bool linear =
        n->op == OP_ADD || n->op == OP_SUB || (n->op == OP_MUL && n->src[1]->op == OP_CONST);
    if (n->dtype == INGOT_INDEX && linear)
        return affine_value(q, n);
    bool logic = (n->op == OP_AND || n->op == OP_OR) && n->dtype == INGOT_BOOL;
    if ((n->op == OP_WHERE && code_width(q, n->src[0]) == 1) || (logic && code_width(q, n) == 1))
        return choice(q, n);
    if (n->op == OP_CAST || n->op == OP_BITCAST) {
        Operand x = code_spread(q, code_value(q, n->src[0]), code_width(q, n));
        Do *d = code_add_from(q, n->op == OP_CAST ? DO_CAST : DO_BITCAST,
                              code_room(q, code_type(n->dtype), code_width(q, n)), x);
        d->node = n;
        return (Operand){d->out, d->n, code_type(n->dtype)};
    }
    return alu(q, n);
}
