/* linear_code.c - statements of linear IR as instructions; what they cannot mean in any run is found here.
 *
 * The rules are those of the text that render.c writes: a name can be seen from the statement that makes it to the end of
 * the loop that it stands in, the counter of a loop inside of it.  A name that cannot be seen is a fault, where a renderer would
 * spell the value again; only the address of a first lane may be spelled again, since it is none of the statements' nodes. */
#include <string.h>

#include "interp.h"
#include "linear_code.h"

enum { MAX_RANGES = 64, MAX_TILES = 32 };

typedef struct {
    int at, n; /* in the frame; elements */
    ingot_dtype type;
} Operand;

typedef struct {
    Node *node; /* RANGE; NULL: of parts */
    int start,
        outside; /* instructions: the first inside; the one that leaves if there is no iteration */
    int counter, extent;
    int nseen; /* names that could be seen before it */
    const OpenLoop *open;
} OpenBlock;

typedef struct {
    Arena *a;
    const LinearKernel *lk;
    const Linear *l;
    LinearCode *c;
    int tile, stmt;
    Node *self; /* what is being named */
    bool again; /* the address of a first lane: what cannot be seen is computed again */
    int *at,
        *count; /* by node id: where a name's value is, and how many terms an accumulator has; -1 */
    uint32_t *seen;
    int nseen;
    int counter
        [MAX_RANGES]; /* by number of a range: where its counter is; -1: its loop is not open */
    OpenBlock *block;
    int nblock;
    const OpenLoop *open;
    struct Constant {
        int at, n;
        Node *node;
    } * constant;
    int nconstant;
} Build;

/* ---- telling ---------------------------------------------------------------------------------------- */

static const char NO_AXIS[] = "a range that is no axis of the loop nest";

static bool is_fragment_range(const Tile *t, const Node *range)
{
    for (int i = 0; i < TC_AXES && t->tc; i++)
        if (t->fragment[i] == range)
            return true;
    return false;
}

static const char *range_name(const Tile *t, Node *range)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].range == range)
            return t->axis[i].name;
    for (int i = 0; i < t->nreduce; i++)
        if (t->reduce[i].range == range)
            return t->reduce[i].name;
    for (int i = 0; i < t->nfill; i++)
        if (t->fill[i].range == range)
            return t->fill[i].name;
    return range == t->tail.range        ? t->tail.name
           : range == t->lane            ? "the lanes"
           : range == t->four            ? "the four terms"
           : is_fragment_range(t, range) ? "a fragment"
                                         : NO_AXIS;
}

void linear_tell(StrBuf *sb, const Kernel *k, const StmtPlace *s)
{
    static const char *const word[] = {
        [STMT_LOOP] = "loop",   [STMT_PARTS] = "parts",     [STMT_END] = "end",
        [STMT_LET] = "let",     [STMT_ACC] = "acc",         [STMT_UPDATE] = "update",
        [STMT_STORE] = "store", [STMT_BARRIER] = "barrier", [STMT_PREFETCH] = "prefetch"};
    sb_printf(sb, "%s: ", *k->name ? k->name : "a kernel");
    if (!s->stmt) {
        sb_printf(sb, "the work items of loop nest %d", s->tile);
        return;
    }
    bool known = (size_t)s->stmt->kind < sizeof word / sizeof *word && word[s->stmt->kind];
    Node *n = s->stmt->node;
    sb_printf(sb, "statement %d of loop nest %d (%s", s->number, s->tile,
              known ? word[s->stmt->kind] : "unknown");
    if (n && n->op != OP_RANGE)
        sb_printf(sb, ", %s %s", op_info[n->op].text, dtype_info[n->dtype].name);
    if (n && (n->op == OP_LOAD || n->op == OP_STORE))
        sb_printf(sb, " a%lld", (long long)n->src[0]->arg.i);
    sb_puts(sb, ")");
}

static void fault(Build *q, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault(Build *q, const char *format, ...)
{
    if (q->c->fault)
        return;
    StrBuf sb = {0};
    va_list ap;
    linear_tell(&sb, q->lk->k, &q->c->place[q->stmt]);
    sb_puts(&sb, ": ");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    q->c->fault = arena_strdup(q->a, sb.data);
    sb_free(&sb);
}

/* ---- the frame -------------------------------------------------------------------------------------- */

static ingot_dtype held(ingot_dtype d)
{
    return dtype_info[d].compute;
}

static Operand room(Build *q, ingot_dtype type, int n)
{
    Operand o = {q->c->bytes, n, type};
    q->c->bytes += (int)(((size_t)n * elem_bytes(type) + 15) / 16 * 16);
    return o;
}

static Do *add(Build *q, DoKind kind, Operand out)
{
    Do d = {.kind = kind, .type = (uint8_t)out.type, .n = out.n, .part = out.n, .out = out.at};
    d.stmt = q->stmt;
    d.size = (int)elem_bytes(out.type);
    vec_push(q->a, q->c->code, q->c->n, d);
    return &q->c->code[q->c->n - 1];
}

static Do *add_from(Build *q, DoKind kind, Operand out, Operand in)
{
    Do *d = add(q, kind, out);
    d->in[0] = in.at;
    d->from = in.n;
    d->from_type[0] = (uint8_t)in.type;
    return d;
}

static Operand copied(Build *q, Operand x)
{
    Operand out = room(q, x.type, x.n);
    add_from(q, DO_COPY, out, x);
    return out;
}

static Operand constant(Build *q, Node *n, int lanes)
{
    struct Constant c = {.n = lanes, .node = n};
    Operand o = room(q, held(n->dtype), lanes);
    c.at = o.at;
    vec_push(q->a, q->constant, q->nconstant, c);
    return o;
}

static Operand spread(Build *q, Operand x, int n)
{
    if (x.n == n || q->c->fault)
        return x;
    Operand out = room(q, x.type, n);
    add_from(q, DO_SPREAD, out, x);
    return out;
}

/* ---- values ----------------------------------------------------------------------------------------- */

static Operand value(Build *q, Node *n);

static bool is_known(const Build *q, const Node *n)
{
    return n->id < q->l->nknown;
}

static bool in_lanes(const Build *q, const Node *n)
{
    return is_known(q, n) && q->l->vector[n->id];
}

/* Elements along an axis of a fragment that it moves with. */
static int fragment_extent(const Build *q, const Node *n, int axis)
{
    bool moves = is_known(q, n) && q->l->fragment[n->id] >> axis & 1;
    return moves ? (int)q->l->tile->fragment[axis]->hi + 1 : 1;
}

static int width(const Build *q, const Node *n)
{
    if (is_known(q, n) && q->l->fragment[n->id])
        return fragment_extent(q, n, TC_ROWS) * fragment_extent(q, n, TC_COLUMNS) *
               fragment_extent(q, n, TC_TERMS);
    return (in_lanes(q, n) ? q->l->tile->lanes : 1) * (is_known(q, n) && q->l->four[n->id] ? 4 : 1);
}

static bool can_be_seen(const Build *q, const Node *n)
{
    return is_known(q, n) && n != q->self && q->at[n->id] >= 0;
}

/* Ranges whose loops decide its value. */
static uint64_t ranges_of(const Build *q, const Node *n, Map *memo)
{
    uint64_t set = (uint64_t)(uintptr_t)map_get(memo, (uint64_t)n->id + 1);
    if (set)
        return set & ~(UINT64_C(1) << 63);
    const Tile *t = q->l->tile;
    if (n->op == OP_RANGE && n != t->lane && n != t->four && !is_fragment_range(t, n))
        set |= UINT64_C(1) << (n->arg.i & 63);
    for (uint32_t i = 0; i < n->nsrc; i++)
        set |= ranges_of(q, n->src[i], memo);
    const uint32_t first = n->op == OP_END ? (uint32_t)end_stores(n) : reduce_ranges(n);
    for (uint32_t i = first; i < n->nsrc; i++)
        if (!is_fragment_range(t, n->src[i]))
            set &= ~(UINT64_C(1) << (n->src[i]->arg.i & 63));
    map_put(memo, (uint64_t)n->id + 1, (void *)(uintptr_t)(set | UINT64_C(1) << 63));
    return set & ~(UINT64_C(1) << 63);
}

static bool is_open(const Build *q, const Node *range)
{
    return range->arg.i >= 0 && range->arg.i < MAX_RANGES && q->counter[range->arg.i] >= 0;
}

static Operand counter(Build *q, Node *range)
{
    if (is_open(q, range))
        return (Operand){q->counter[range->arg.i], 1, INGOT_INDEX};
    fault(q, "reads the counter of %s, and no such loop is open here",
          range_name(q->l->tile, range));
    return (Operand){0, 1, INGOT_INDEX};
}

/* What has a name, from where it is. */
static Operand named(Build *q, Node *n)
{
    Operand o = {q->at[n->id], width(q, n), held(n->dtype)};
    if (is_accumulated(q->l, n)) {
        Do *d = add(q, DO_WHOLE, (Operand){0, 0, INGOT_INDEX});
        d->node = n;
        d->count = q->count[n->id];
        if (n->op == OP_SCAN)
            d->in[0] = counter(q, n->src[1]).at;
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
            if (is_known(q, n) && q->l->named[n->id] && n != q->self && !q->again)
                break;
            affine(q, n->src[0], k, sum);
            affine(q, n->src[1], n->op == OP_SUB ? -k : k, sum);
            return;
        case OP_MUL:
            if (n->src[1]->op != OP_CONST ||
                (is_known(q, n) && q->l->named[n->id] && n != q->self && !q->again))
                break;
            affine(q, n->src[0], k * n->src[1]->arg.i, sum);
            return;
        default: break;
        }
    }
    AffineTerm t = {value(q, n).at, k};
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
    Do *d = add(q, DO_AFFINE, room(q, INGOT_INDEX, 1));
    d->arg = sum.constant;
    d->term = sum.term;
    d->nterm = sum.n;
    d->node = n;
    return (Operand){d->out, 1, INGOT_INDEX};
}

static Operand alu(Build *q, Node *n)
{
    Operand in[3] = {{0, 0, INGOT_BOOL}};
    int lanes = width(q, n);
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++)
        in[i] = spread(q, value(q, n->src[i]), lanes);
    Do *d = add(q, DO_ALU, room(q, held(n->dtype), lanes));
    d->op = n->op;
    d->arg = n->arg.i;
    d->node = n;
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++) {
        d->in[i] = in[i].at;
        d->from_type[i] = (uint8_t)in[i].type;
    }
    return (Operand){d->out, lanes, held(n->dtype)};
}

/* a ? b : c, a && b, a || b: what is not asked for is not computed. */
static Operand choice(Build *q, Node *n)
{
    int lanes = width(q, n);
    Operand out = room(q, held(n->dtype), lanes), cond = value(q, n->src[0]);
    if (n->op != OP_WHERE) {
        add_from(q, DO_COPY, out, cond);
        int skip = q->c->n;
        add_from(q, n->op == OP_AND ? DO_SKIP : DO_SKIP_IF, out, cond);
        add_from(q, DO_COPY, out, value(q, n->src[1]));
        q->c->code[skip].to = q->c->n;
        return out;
    }
    int skip = q->c->n;
    add_from(q, DO_SKIP, out, cond);
    add_from(q, DO_COPY, out, spread(q, value(q, n->src[1]), lanes));
    int jump = q->c->n;
    add(q, DO_JUMP, out);
    q->c->code[skip].to = q->c->n;
    add_from(q, DO_COPY, out, spread(q, value(q, n->src[2]), lanes));
    q->c->code[jump].to = q->c->n;
    return out;
}

static Operand custom(Build *q, Node *n)
{
    int lanes = width(q, n), *operand = NEWN(q->a, int, n->nsrc + 1);
    for (uint32_t i = 0; i < n->nsrc; i++)
        operand[i] = spread(q, value(q, n->src[i]), lanes).at;
    Do *d = add(q, DO_CUSTOM, room(q, held(n->dtype), lanes));
    d->node = n;
    d->operand = operand;
    return (Operand){d->out, lanes, held(n->dtype)};
}

/* The offset of an access in elements; in lanes (or by fours) that of the first, from where memory goes on. */
static Operand address(Build *q, Node *offset, bool lanes, bool fours)
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
        return value(q, offset);
    q->again = true;
    Operand at = value(q, substitute(c, offset, n, from, to));
    q->again = false;
    return at;
}

/* Of a place, also once it is filled. */
static const Node *buffer_of(const Node *access)
{
    const Node *b = access->src[0];
    return b->op == OP_AFTER ? b->src[0] : b;
}

static bool buffer_is_known(Build *q, const Node *access)
{
    const Node *b = buffer_of(access);
    if (b->op == OP_BUFFER && b->arg.i >= 0 && b->arg.i < q->lk->k->narg)
        return true;
    fault(q, "there is no form for %s of a %s", op_info[access->op].text, op_info[b->op].text);
    return false;
}

/* A fragment, line after line: a [rows][terms], b [terms][columns]. */
static Operand load_fragment(Build *q, Node *n)
{
    const Tile *t = q->l->tile;
    Operand out = room(q, held(n->dtype), width(q, n));
    Node *first;
    int64_t pitch;
    if (!buffer_is_known(q, n) || n->nsrc != 3 || !node_is_const_i(n->src[1], 1) ||
        !tc_fragment(q->lk->k->c, t->tc, t->fragment, n, &first, &pitch)) {
        fault(q, "there is no form for a fragment that lies so");
        return out;
    }
    bool rows = fragment_extent(q, n, TC_ROWS) > 1;
    q->again = true;
    Operand at = value(q, first);
    q->again = false;
    Do *d = add_from(q, DO_LOAD_TILE, out, at);
    d->node = n;
    d->arg = buffer_of(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->step = pitch;
    d->count = fragment_extent(q, n, rows ? TC_ROWS : TC_TERMS);
    d->part = rows ? 1 : t->tc->group;
    return out;
}

static void tile(Build *q, DoKind kind, int number, const Node *holds)
{
    Do *d = add(q, kind, (Operand){0, 0, INGOT_INDEX});
    d->arg = number;
    d->to = (int)holds->id + 1;
}

static Operand load(Build *q, Node *n)
{
    if (is_known(q, n) && q->l->fragment[n->id])
        return load_fragment(q, n);
    const Tile *t = q->l->tile;
    bool lanes = in_lanes(q, n), fours = is_known(q, n) && q->l->four[n->id];
    int skip = -1, mask = -1, count = is_rows(n) ? (int)n->src[3]->arg.i : 1;
    Operand out = room(q, held(n->dtype), count * width(q, n));
    int64_t step = 1;
    if (!buffer_is_known(q, n))
        return out;
    if (n->nsrc != 3 && !is_rows(n)) {
        fault(q, "a load has %d coordinates where one offset is wanted", (int)n->nsrc - 2);
        return out;
    }
    if (lanes && !fours && !range_stride(q->lk->k->c, n->src[2], t->lane, &step)) {
        fault(q, "what is loaded does not lie evenly apart");
        return out;
    }
    if (in_lanes(q, n->src[1]) && !fours && count == 1) {
        mask = value(q, n->src[1]).at;
    } else if (!node_is_const_i(n->src[1], 1)) {
        if (fours || width(q, n->src[1]) > 1 || count > 1) {
            fault(q, "there is no form for a load with this gate");
            return out;
        }
        Operand gate = value(q, n->src[1]);
        add(q, DO_ZERO, out);
        skip = q->c->n;
        add_from(q, DO_SKIP, out, gate);
    }
    Operand at = address(q, n->src[2], lanes, fours);
    Do *d = add_from(q, DO_LOAD, out, at);
    d->node = n;
    d->arg = buffer_of(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->in[1] = mask;
    d->step = step;
    d->count = count;
    d->n = d->part = width(q, n);
    if (lanes && t->part)
        d->part = t->part * (fours ? 4 : 1);
    if (skip >= 0)
        q->c->code[skip].to = q->c->n;
    return out;
}

/* One of the neighbours that a load of rows takes, in lanes. */
static Operand row(Build *q, Node *n)
{
    const Node *rows = n->src[0];
    Operand all = {0, width(q, n), held(n->dtype)};
    if (!is_rows(rows) || n->arg.i < 0 || n->arg.i >= rows->src[3]->arg.i) {
        fault(q, "there is no form for this %s", op_info[n->op].text);
        return all;
    }
    all.at = value(q, n->src[0]).at + (int)(n->arg.i * all.n * (int64_t)elem_bytes(all.type));
    return all;
}

/* A coordinate as a number of every lane. */
static Operand ramp(Build *q, Node *n)
{
    Operand out = room(q, INGOT_INDEX, q->l->tile->lanes);
    int64_t step;
    if (!range_stride(q->lk->k->c, n, q->l->tile->lane, &step)) {
        fault(q, "a coordinate that does not advance evenly along the lanes is used as a number");
        return out;
    }
    Do *d = add_from(q, DO_RAMP, out, address(q, n, true, false));
    d->arg = step;
    return out;
}

static Operand reduce(Build *q, Node *n)
{
    Operand x = value(q, n->src[0]);
    if (is_dot(q->l, n)) {
        Operand out = room(q, x.type, width(q, n));
        if (x.n != 4 * out.n || x.type != INGOT_I32 || reduce_monoid(n) != INGOT_REDUCE_ADD)
            fault(q, "there is no form for this sum of four terms");
        add_from(q, DO_FOURS, out, x);
        return out;
    }
    if (is_horizontal(q->l, n)) {
        x = copied(q, spread(q, x, q->l->tile->lanes));
        Do *d = add_from(q, DO_ACROSS, (Operand){x.at, x.n, x.type}, x);
        d->op = monoid_op((ingot_reduce_op)reduce_monoid(n));
        return (Operand){x.at, 1, x.type};
    }
    fault(q, "uses a %s whose accumulator cannot be seen here", op_info[n->op].text);
    return x;
}

/* The state of a reduce before the element at hand. */
static Operand param(Build *q, Node *n)
{
    Node *of = reduce_sibling(q->lk->k->c, n, reduce_part(n));
    if (!can_be_seen(q, of))
        fault(q, "reads the state of a reduce whose accumulator cannot be seen here");
    return (Operand){q->c->fault ? 0 : q->at[of->id], width(q, of), held(of->dtype)};
}

/* Regions are of bounded depth (fuse.c), so recursion is bounded. */
static Operand value(Build *q, Node *n)
{
    Operand none = {0, width(q, n), held(n->dtype)};
    if (q->c->fault)
        return none;
    if (can_be_seen(q, n))
        return named(q, n);
    if (n->dtype == INGOT_INDEX && in_lanes(q, n))
        return ramp(q, n);
    if (is_known(q, n) && q->l->named[n->id] && n != q->self && !q->again) {
        fault(q, "uses a %s before the statement that makes it, or outside of its loop",
              op_info[n->op].text);
        return none;
    }
    switch (n->op) {
    case OP_CONST: return constant(q, n, 1);
    case OP_RANGE: return counter(q, n);
    case OP_PARAM:
        if (is_scalar_argument(n) && n->arg.i < q->lk->k->nscalar)
            return (Operand){q->c->scalar + 16 * (int)n->arg.i, 1, held(n->dtype)};
        return param(q, n);
    case OP_VAR:
        for (int i = 0; i < q->lk->k->nvar; i++)
            if (q->lk->k->vars[i] == n->arg.i)
                return (Operand){q->c->var + 16 * i, 1, INGOT_INDEX};
        fault(q, "reads a run-time integer that is none of the kernel's");
        return none;
    case OP_LOAD: return load(q, n);
    case OP_PROJ: return row(q, n);
    case OP_REDUCE:
    case OP_SCAN: return reduce(q, n);
    case OP_CUSTOM: return custom(q, n);
    default: break;
    }
    if (!op_is_alu(n->op)) {
        fault(q, "there is no form for %s in an expression", op_info[n->op].text);
        return none;
    }
    bool linear =
        n->op == OP_ADD || n->op == OP_SUB || (n->op == OP_MUL && n->src[1]->op == OP_CONST);
    if (n->dtype == INGOT_INDEX && linear)
        return affine_value(q, n);
    bool logic = (n->op == OP_AND || n->op == OP_OR) && n->dtype == INGOT_BOOL;
    if ((n->op == OP_WHERE && width(q, n->src[0]) == 1) || (logic && width(q, n) == 1))
        return choice(q, n);
    if (n->op == OP_CAST || n->op == OP_BITCAST) {
        Operand x = spread(q, value(q, n->src[0]), width(q, n));
        Do *d = add_from(q, n->op == OP_CAST ? DO_CAST : DO_BITCAST,
                         room(q, held(n->dtype), width(q, n)), x);
        d->node = n;
        return (Operand){d->out, d->n, held(n->dtype)};
    }
    return alu(q, n);
}

/* ---- statements ------------------------------------------------------------------------------------- */

static void name(Build *q, Node *n, Operand o)
{
    q->at[n->id] = o.at;
    vec_push(q->a, q->seen, q->nseen, n->id);
}

static void let(Build *q, Node *n)
{
    q->self = n;
    Operand o = value(q, n);
    q->self = NULL;
    if (is_known(q, n))
        name(q, n, o);
}

static void open_counter(Build *q, Node *range, const char *text, int at)
{
    OpenLoop *o = NEW(q->a, OpenLoop);
    *o = (OpenLoop){text, at, q->open};
    q->open = o;
    if (range && range->arg.i >= 0 && range->arg.i < MAX_RANGES)
        q->counter[range->arg.i] = at;
}

/* A loop from what the counter is by now; its counter is not open yet. */
static OpenBlock *open_loop(Build *q, Node *node, Operand at, Operand extent)
{
    OpenBlock b = {.node = node, .nseen = q->nseen, .open = q->open, .counter = at.at};
    b.extent = extent.at;
    b.outside = q->c->n;
    add_from(q, DO_LOOP, at, extent);
    b.start = q->c->n;
    vec_push(q->a, q->block, q->nblock, b);
    return &q->block[q->nblock - 1];
}

static bool is_fill_range(const Build *q, const Node *range)
{
    const Tile *t = q->l->tile;
    for (int i = 0; i < t->nfill; i++)
        if (t->fill[i].range == range)
            return true;
    return false;
}

/* The loops that fill a place begin: what it had before is not to be read again, if they alone write it. */
static void forget_places(Build *q, const Stmt *s)
{
    const Linear *l = q->l;
    int depth = 0, first = (int)(s - l->stmt), end = first;
    for (; end < l->n; end++) {
        depth += l->stmt[end].kind == STMT_LOOP || l->stmt[end].kind == STMT_PARTS;
        depth -= l->stmt[end].kind == STMT_END;
        if (!depth)
            break;
    }
    for (int place = q->lk->narg; place < q->lk->k->narg; place++) {
        int inside = 0, outside = 0;
        for (int i = 0; i < l->n; i++)
            if (l->stmt[i].kind == STMT_STORE && l->stmt[i].node->op == OP_STORE &&
                l->stmt[i].node->src[0]->arg.i == place)
                ++*(i > first && i < end ? &inside : &outside);
        if (inside && !outside && !q->lk->group) /* of a group all items fill it */
            add(q, DO_FORGET, (Operand){0, 0, INGOT_INDEX})->arg = place;
    }
}

static void loop(Build *q, const Stmt *s)
{
    Node *range = s->node;
    if (range_name(q->l->tile, range) == NO_AXIS)
        fault(q, "counts through %s", NO_AXIS);
    if (is_fill_range(q, range) && !(q->nblock && q->block[q->nblock - 1].node &&
                                     is_fill_range(q, q->block[q->nblock - 1].node)))
        forget_places(q, s);
    Operand at = room(q, INGOT_INDEX, 1), extent = value(q, range->src[0]);
    add(q, DO_ZERO, at);
    open_loop(q, range, at, extent);
    open_counter(q, range, range_name(q->l->tile, range), at.at);
}

static void parts(Build *q)
{
    const Tile *t = q->l->tile;
    Operand at = room(q, INGOT_INDEX, 1), end = room(q, INGOT_INDEX, 1);
    if (!t->fused) {
        OpenBlock b = {.nseen = q->nseen, .open = q->open, .counter = -1, .outside = q->c->n};
        add(q, DO_LAST_PART, at)->arg = t->parts;
        vec_push(q->a, q->block, q->nblock, b);
        return;
    }
    Operand extent = value(q, q->l->fused);
    add_from(q, DO_FIRST, at, extent)->arg = t->parts;
    add_from(q, DO_LAST, end, extent)->arg = t->parts;
    open_loop(q, NULL, at, end);
    if (t->fused == 1) {
        open_counter(q, t->axis[0].range, t->axis[0].name, at.at);
        return;
    }
    for (int i = 0; i < t->fused; i++) {
        if (!q->l->counted[i])
            continue;
        Operand x = room(q, INGOT_INDEX, 1), inner = value(q, q->l->inner[i]), axis = {-1, 1, 0};
        if (i)
            axis = value(q, t->axis[i].range->src[0]);
        Do *d = add_from(q, DO_AXIS, x, at);
        d->in[1] = inner.at;
        d->in[2] = axis.at;
        open_counter(q, t->axis[i].range, t->axis[i].name, x.at);
    }
}

static void close_counter(Build *q, Node *range)
{
    if (range && is_open(q, range))
        q->counter[range->arg.i] = -1;
}

static void end(Build *q, Node *node)
{
    if (!q->nblock || q->block[q->nblock - 1].node != node) {
        fault(q, "ends a loop that is not the innermost one");
        return;
    }
    const OpenBlock b = q->block[--q->nblock];
    const Tile *t = q->l->tile;
    if (b.counter >= 0) {
        Do *d = add(q, DO_NEXT, (Operand){b.counter, 1, INGOT_INDEX});
        d->in[0] = b.extent;
        d->to = b.start;
    }
    q->c->code[b.outside].to = q->c->n;
    close_counter(q, node);
    for (int i = 0; !node && i < t->fused; i++)
        close_counter(q, t->axis[i].range);
    q->open = b.open;
    for (; q->nseen > b.nseen; q->nseen--)
        q->at[q->seen[q->nseen - 1]] = -1;
}

/* Is every loop open that decides what it sums? */
static bool loops_are_open(Build *q, Node *n)
{
    Map memo = {0};
    uint64_t set = ranges_of(q, n, &memo);
    map_free(&memo);
    const Tile *t = q->l->tile;
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    for (int pass = 0; pass < 4; pass++) {
        const TileAxis *axes = all[pass];
        const int naxis = count[pass];
        for (int i = 0; i < naxis; i++) {
            Node *r = axes[i].range;
            bool own = n->op == OP_SCAN && r == n->src[1];
            if (own || !(set >> (r->arg.i & 63) & 1) || is_open(q, r))
                continue;
            fault(q,
                  "the accumulator starts outside of the loop over %s, which decides what it sums",
                  axes[i].name);
            return false;
        }
    }
    return true;
}

static void start(Build *q, Node *n)
{
    if (!is_accumulated(q->l, n)) {
        fault(q, "%s has no accumulator", op_info[n->op].text);
        return;
    }
    if (!loops_are_open(q, n))
        return;
    Context *c = q->lk->k->c;
    Node *terms = idx(c, 1);
    for (uint32_t i = reduce_ranges(n); n->op == OP_REDUCE && i < n->nsrc; i++)
        if (!is_fragment_range(q->l->tile, n->src[i]))
            terms = idx_mul(c, terms, n->src[i]->src[0]);
    q->again = true;
    Operand want = value(q, terms);
    q->again = false;
    Operand first = constant(q, reduce_identity(c, n), width(q, n));
    Operand out = room(q, held(n->dtype), width(q, n));
    Operand count = room(q, INGOT_INDEX, 2); /* so far, wanted */
    Do *d = add_from(q, DO_START, out, first);
    d->in[1] = want.at;
    d->count = q->count[n->id] = count.at;
    name(q, n, out);
}

/* One product of a sum that a matrix unit takes. */
static void products(Build *q, const Stmt *s)
{
    Node *a, *b, *n = s->node;
    const Tile *t = q->l->tile;
    if (!is_known(q, n) || q->at[n->id] < 0 || !s->term ||
        !tc_operands(t->tc, s->term, t->fragment, &a, &b)) {
        fault(q, "there is no form for this product of fragments");
        return;
    }
    tile(q, DO_HELD, s->tile[0], n);
    tile(q, DO_HELD, s->tile[1], a);
    tile(q, DO_HELD, s->tile[2], b);
    bool turned = tc_turned(s->term, t->fragment);
    Operand x = value(q, s->term->src[turned]), y = value(q, s->term->src[1 - turned]);
    Operand acc = {q->at[n->id], width(q, n), held(n->dtype)};
    if (x.type != acc.type || y.type != acc.type)
        fault(q, "there is no form for a product of these types");
    Do *d = add_from(q, DO_PRODUCTS, acc, x);
    d->in[1] = y.at;
    d->part = fragment_extent(q, n, TC_ROWS);
    d->count = fragment_extent(q, n, TC_COLUMNS);
    d->from = (int)t->fragment[TC_TERMS]->hi + 1;
    if (s->last)
        add(q, DO_COUNT, acc)->count = q->count[n->id];
}

static void store_fragment(Build *q, const Stmt *s)
{
    Node *n = s->node, *zero = idx(q->lk->k->c, 0), *first;
    const Tile *t = q->l->tile;
    int64_t pitch, step;
    if (!buffer_is_known(q, n))
        return;
    tile(q, DO_HELD, s->tile[0], n->src[2]);
    bool good = range_stride(q->lk->k->c, n->src[3], t->fragment[TC_ROWS], &pitch) &&
                range_stride(q->lk->k->c, n->src[3], t->fragment[TC_COLUMNS], &step) && step == 1;
    if (!good)
        fault(q, "there is no form for a fragment that lies so");
    first = substitute(q->lk->k->c, n->src[3], TC_AXES, t->fragment, (Node *[]){zero, zero, zero});
    q->again = true;
    Operand at = value(q, first);
    q->again = false;
    Operand x = value(q, n->src[2]);
    Do *d = add_from(q, DO_STORE_TILE, x, at);
    d->in[1] = x.at;
    d->node = n;
    d->arg = buffer_of(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->step = pitch;
    d->count = fragment_extent(q, n->src[2], TC_ROWS);
}

static void update(Build *q, Node *n)
{
    if (!is_accumulated(q->l, n) || !is_known(q, n) || q->at[n->id] < 0) {
        fault(q, "adds to an accumulator that has not been started here");
        return;
    }
    Operand acc = {q->at[n->id], width(q, n), held(n->dtype)};
    if (reduce_size(n) > 1) {
        Node *next[MAX_STATE];
        reduce_step(q->lk->k->c, n, next);
        Operand whole = spread(q, value(q, next[reduce_part(n)]), acc.n);
        add_from(q, DO_COPY, acc, whole);
        add(q, DO_COUNT, acc)->count = q->count[n->id];
        return;
    }
    Operand x = spread(q, value(q, n->src[0]), acc.n);
    if (n->op == OP_SCAN) {
        Do *d = add_from(q, DO_TERM, acc, counter(q, n->src[1]));
        d->node = n;
        d->count = q->count[n->id];
    }
    Do *d = add_from(q, DO_UPDATE, acc, x);
    d->op = monoid_op((ingot_reduce_op)reduce_monoid(n));
    d->node = n;
    add(q, DO_COUNT, acc)->count = q->count[n->id];
}

static void store(Build *q, Node *n)
{
    const Tile *t = q->l->tile;
    bool lanes = in_lanes(q, n), two = n->nsrc > 4;
    int skip = -1, w = lanes ? t->lanes : 1;
    if (!buffer_is_known(q, n))
        return;
    if (!q->lk->k->args[buffer_of(n)->arg.i].written) {
        fault(q, "writes to an argument that the kernel only reads");
        return;
    }
    if ((two && (n->nsrc != 5 || !lanes || t->part)) || n->nsrc < 4) {
        fault(q, "there is no form for this store");
        return;
    }
    if (!node_is_const_i(n->src[1], 1)) {
        if (lanes) {
            fault(q, "there is no form for a store in lanes with a gate");
            return;
        }
        Operand gate = value(q, n->src[1]);
        skip = q->c->n;
        add_from(q, DO_SKIP, gate, gate);
    }
    Operand at = address(q, n->src[3], lanes, false), x = spread(q, value(q, n->src[2]), w);
    Operand y = two ? spread(q, value(q, n->src[4]), w) : x;
    Do *d = add_from(q, two ? DO_STORE_TWO : DO_STORE, x, at);
    d->in[1] = x.at;
    d->in[2] = y.at;
    d->node = n;
    d->arg = buffer_of(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->part = lanes && t->part ? t->part : w;
    if (skip >= 0)
        q->c->code[skip].to = q->c->n;
}

static void statement(Build *q, const Stmt *s)
{
    Node *n = s->node;
    bool wanted = s->kind != STMT_PARTS && s->kind != STMT_END && s->kind != STMT_BARRIER &&
                  s->kind != STMT_PREFETCH;
    if (wanted && (!n || (s->kind == STMT_LOOP) != (n->op == OP_RANGE) ||
                   (s->kind == STMT_STORE) != (n->op == OP_STORE))) {
        fault(q, "there is no form for this statement");
        return;
    }
    switch (s->kind) {
    case STMT_LOOP: loop(q, s); return;
    case STMT_PARTS: parts(q); return;
    case STMT_END: end(q, n); return;
    case STMT_LET:
        let(q, n);
        if (is_known(q, n) && q->l->fragment[n->id])
            tile(q, DO_TAKE, s->tile[0], n);
        return;
    case STMT_ACC:
        start(q, n);
        if (is_products(q->l, n))
            tile(q, DO_TAKE, s->tile[0], n);
        return;
    case STMT_UPDATE:
        if (is_products(q->l, n))
            products(q, s);
        else
            update(q, n);
        return;
    case STMT_STORE:
        if (is_products(q->l, n->src[2]))
            store_fragment(q, s);
        else
            store(q, n);
        return;
    case STMT_PREFETCH: return; /* nothing is read */
    case STMT_BARRIER: add(q, DO_BARRIER, (Operand){0, 1, INGOT_INDEX}); return;
    }
    fault(q, "there is no form for statements of kind %d", (int)s->kind);
}

/* ---- work items ------------------------------------------------------------------------------------- */

static bool is_item_axis(const Build *q, const Node *range)
{
    const Tile *t = q->l->tile;
    for (int i = 0; q->lk->items && i < t->naxis; i++)
        if (t->axis[i].range == range)
            return t->items ? t->axis[i].bound != BOUND_NOT : !t->axis[i].scanned;
    return false;
}

/* The number of a work item is taken apart, the innermost axis first. */
static void work_item(Build *q)
{
    const Tile *t = q->l->tile;
    q->c->nitem = 1;
    for (int i = t->naxis; i-- > 0;) {
        if (!is_item_axis(q, t->axis[i].range))
            continue;
        Operand at = room(q, INGOT_INDEX, 1), extent = value(q, t->axis[i].range->src[0]);
        add_from(q, DO_ITEM, at, extent);
        open_counter(q, t->axis[i].range, t->axis[i].name, at.at);
        q->c->nitem = sat_mul(q->c->nitem, t->axis[i].range->src[0]->hi);
    }
    add(q, DO_ITEM_IS, (Operand){0, 1, INGOT_INDEX});
}

/* ---- kernels ---------------------------------------------------------------------------------------- */

static void loop_nest(Build *q, int number)
{
    const Linear *l = q->l = &q->lk->tile[number];
    q->tile = number;
    q->at = NEWN(q->a, int, l->nknown + 1);
    q->count = NEWN(q->a, int, l->nknown + 1);
    memset(q->at, -1, (l->nknown + 1) * sizeof *q->at);
    memset(q->counter, -1, sizeof q->counter);
    q->nseen = q->nblock = 0;
    q->open = NULL;
    for (int i = -1; i < l->n && !q->c->fault; i++) {
        StmtPlace p = {.stmt = i < 0 ? NULL : &l->stmt[i], .tile = number, .number = i};
        q->stmt = q->c->nplace;
        p.open = q->open;
        vec_push(q->a, q->c->place, q->c->nplace, p);
        if (i < 0) {
            if (q->lk->items && number)
                fault(q, "a work item's program has several loop nests");
            if (q->lk->items)
                work_item(q);
        } else if (!is_item_axis(q, l->stmt[i].node)) {
            statement(q, &l->stmt[i]);
            q->c->place[q->stmt].open = q->open;
        }
    }
    if (q->nblock)
        fault(q, "a loop is not ended");
}

LinearCode *linear_code(Arena *a, const LinearKernel *lk)
{
    LinearCode *c = NEW(a, LinearCode);
    Build q = {.a = a, .lk = lk, .c = c};
    c->var = room(&q, INGOT_INDEX, 2 * lk->k->nvar + 2).at;
    c->scalar = room(&q, INGOT_F32, 4 * lk->k->nscalar + 4).at;
    c->tiles = room(&q, INGOT_INDEX, MAX_TILES).at;
    c->begin = room(&q, INGOT_INDEX, 1).at;
    c->end = room(&q, INGOT_INDEX, 1).at;
    c->number = room(&q, INGOT_INDEX, 1).at;
    for (int i = 0; i < lk->n && !c->fault; i++)
        loop_nest(&q, i);
    c->frame = arena_alloc(a, (size_t)c->bytes);
    for (int i = 0; i < q.nconstant; i++) {
        const struct Constant *k = &q.constant[i];
        ingot_dtype d = k->node->dtype, h = held(d);
        unsigned char *to = c->frame + k->at, stored[16];
        store_const(k->node, stored);
        for (int j = 0; j < k->n; j++)
            alu_cast(h, d, 0, 1, to + (size_t)j * elem_bytes(h), stored);
    }
    return c;
}

LinearKernel *linear_kernel(Arena *a, const Tiles *tiles, int narg, bool gpu)
{
    LinearKernel *lk = NEW(a, LinearKernel);
    *lk = (LinearKernel){
        .arena = a, .k = tiles->k, .n = tiles->n, .narg = narg, .items = gpu && !tiles->k->serial};
    lk->tile = NEWN(a, Linear, tiles->n + 1);
    for (int i = 0; i < tiles->n; i++) {
        lk->tile[i].arena = a;
        linearize(&lk->tile[i], tiles->k, &tiles->tile[i]);
        lk->group = lk->items ? tiles->tile[i].items : 0;
        lk->parts = tiles->tile[i].parts > lk->parts ? tiles->tile[i].parts : lk->parts;
    }
    return lk;
}
