/* fuse.c - decide what is stored.  Everything not stored is recomputed inside each kernel that
 * reads it; so a value is stored where that costs more than a kernel of its own, a write and its
 * reads (cost.c). Whatever that costs, these are stored:
 *
 *   - what a control step, a library kernel or the caller reads;
 *   - what is written in parts or in place;
 *   - what is read beyond its edges, for its buffer gets a halo;
 *   - a sum over rows whose readers do not go along the rows: no loop nest has both;
 *   - what would make a kernel huge.
 *
 * One forward walk: when a node is visited, its sources are decided and its consumers known. */
#include <math.h>

#include "schedule.h"
#include "tc.h"
#include "values.h"

/* Of one kernel: expressions are lowered by recursion. */
enum { MAX_DEPTH = 64, MAX_MOVES = 8 };

Info *info_chunk(Sched *s, uint32_t i)
{
    if (i >= INFO_CHUNKS)
        BUG("more than %d nodes", INFO_CHUNK * INFO_CHUNKS);
    return s->info[i] = NEWN(s->arena, Info, INFO_CHUNK);
}

static double numel(Node *n)
{
    return (double)dims_bound(n->rank, n->shape);
}

/* How often t reads each element of n, on average. */
static double readings(Node *n, Node *t)
{
    bool some = t->op == OP_EXPAND || t->op == OP_GATHER || t->op == OP_SHRINK;
    return some && t->src[0] == n && numel(n) > 0 ? numel(t) / numel(n) : 1;
}

static bool is_leaf(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    return i->buffer || op_info[n->op].cls == LEAF || n->op == OP_PROJ || i->foldable;
}

bool is_computed(Sched *s, Node *n)
{
    return !info_of(s, n)->stored && !is_leaf(s, n);
}

static unsigned reduced_axes(Node *n)
{
    return reduce_axes(n);
}

/* Axes that an EXPAND repeats. */
static unsigned expanded_axes(Node *n)
{
    unsigned axes = 0;
    for (int i = 0; i < n->rank; i++)
        if (idx_is(n->src[0]->shape[i], 1) && !idx_is(n->shape[i], 1))
            axes |= 1u << i;
    return axes;
}

/* The last axes, whose loops are innermost in any order of storage that keeps rows together. */
static bool is_trailing(Node *n, unsigned axes)
{
    bool inside = true;
    for (int i = n->rank; i-- > 0;) {
        if (idx_is(n->shape[i], 1))
            continue;
        bool in = axes >> i & 1;
        if (in && !inside)
            return false;
        inside = in;
    }
    return axes != 0;
}

/* Rows of a GPU are shared by the items of a group (heuristic_parts.c): there are terms for many, and it is known how many. */
static bool row_of_group(const Node *n, unsigned axes)
{
    enum { LEAST = 32, MOST = 1 << 16 };
    int64_t terms = 1, size;
    for (int i = 0; i < n->rank; i++)
        if (axes >> i & 1) {
            if (!idx_value(n->shape[i], &size))
                return false;
            terms = sat_mul(terms, size);
        }
    return terms >= LEAST && terms <= MOST;
}

/* A reduce over rows, expanded over the same rows, costs one more loop over each row and no memory: softmax and the
 * norms are one kernel.  Is this reader of n such an expansion, or a step on the way to one? */
static bool row_reader(const Sched *s, const Info *i, Node *n, Node *t)
{
    if (!s->fuse_rows || i->rows == ~0u)
        return false;
    if (s->target->gpu && !row_of_group(i->rows ? n : t, i->rows ? i->rows : i->pending))
        return false;
    if (op_is_alu(t->op))
        return true;
    if (t->op == OP_EXPAND)
        return i->pending && !i->rows && expanded_axes(t) == i->pending &&
               is_trailing(t, i->pending);
    if (t->op == OP_REDUCE)
        return i->rows && !i->pending && reduced_axes(t) == i->rows && t->src[0] == n;
    return false;
}

/* The first node behind position `after` that reads one of the region. */
static Node *next_reader(Sched *s, int nregion, Node *const *region, Node *const *uses, int after)
{
    Node *next = NULL;
    for (int k = 0; k < nregion; k++) {
        const Info *r = info_of(s, region[k]);
        int u = 0;
        while (u < r->nuse && info_of(s, uses[r->iuse + u])->order <= after)
            u++;
        Node *t = u < r->nuse ? uses[r->iuse + u] : NULL;
        if (t && (!next || info_of(s, t)->order < info_of(s, next)->order))
            next = t;
    }
    return next;
}

/* Do all readers of n belong to one elementwise region of n's shape that ends in a single node? Then n is
 * computed once by that node's kernel, whatever the number of readers.  (x * sigmoid(x), residual sums.) */
static bool diamond(Sched *s, Node *n, Node *const *uses)
{
    Node *region[32];
    int nregion = 0, start = info_of(s, n)->order;
    region[nregion++] = n;
    Node *t = n;
    while (nregion < 32 && (t = next_reader(s, nregion, region, uses, info_of(s, t)->order)) &&
           info_of(s, t)->order < start + 256) {
        if (!op_is_alu(t->op) || t->rank != n->rank)
            return false;
        region[nregion++] = t;
        /* closed when every reader of all but t lies inside */
        bool closed = true;
        for (int k = 0; k + 1 < nregion && closed; k++) {
            Info *r = info_of(s, region[k]);
            if (r->root)
                return false;
            for (int u = 0; u < r->nuse && closed; u++) {
                bool inside = false;
                for (int m = 0; m < nregion && !inside; m++)
                    inside = uses[r->iuse + u] == region[m];
                closed = inside;
            }
        }
        if (closed)
            return true;
    }
    return false;
}

static bool is_move(Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_KEEP;
}

/* A number in every element? */
static bool is_uniform(Node *n)
{
    while (n->op == OP_EXPAND || n->op == OP_RESHAPE)
        n = n->src[0];
    return n->op == OP_CONST;
}

/* A dot multiplies bytes: integers that are widened, for its sum, are best as narrow as they are. So are the floats that a
 * matrix unit multiplies. */
static bool is_for_dot(const Sched *s, Node *wide)
{
    if (dtype_is_int(wide->dtype))
        return s->target->dot;
    for (; is_move(wide); wide = wide->src[0])
        ;
    for (int i = 0; i < TC_COUNT && wide->op == OP_CAST; i++)
        if (s->target->units >> i & 1 && dtype_is_float(tc_units[i].a) &&
            wide->dtype == tc_units[i].acc && wide->src[0]->dtype == tc_units[i].a)
            return true;
    return false;
}

/* Is what a cast widens stored before the cast? Where bytes are dear, or are what is multiplied. */
static bool keeps_narrow(const Sched *s, Node *wide)
{
    return s->target->byte > 0 || is_for_dot(s, wide);
}

/* Is it worth so many operations whenever an element is read, to have it in memory as this one and not as that? A byte
 * less has not to be fetched, and may be worth something by itself. */
static bool narrow_pays(const Sched *s, Node *narrow, Node *wide, int cost)
{
    const Target *t = s->target;
    double saved = dtype_info[wide->dtype].bytes - dtype_info[narrow->dtype].bytes;
    return is_for_dot(s, wide) ||
           cost / t->rate[UNIT_VECTOR] <= saved * (cost_bytes(1, INFINITY, t) + t->byte);
}

/* What n is made of by casts and little arithmetic with numbers, where that has fewer bytes: the narrow side. */
static Node *narrow_side(Sched *s, Node *n)
{
    Node *best = n, *wide = n;
    for (int cost = 0; node_bytes(n) >= node_bytes(wide) || narrow_pays(s, n, wide, cost);) {
        if (node_bytes(n) < node_bytes(best))
            best = n;
        Info *i = info_of(s, n);
        bool number =
            (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && is_uniform(n->src[1]);
        bool same = n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_FLIP;
        if (i->stored || is_leaf(s, n) || (n->op != OP_CAST && !number && !same) || i->root)
            break;
        cost += op_info[n->op].cost;
        n = n->src[0];
    }
    return best;
}

/* ---- recompute or store ------------------------------------------------------------------------ */

typedef struct {
    double times; /* how often each element is computed if it is not stored */
    double kernels;
    bool rows, reduced; /* all of them go along the rows; one of them is a reduce */
} Readers;

/* Who reads n, or what only moves its elements (so many moves, one behind the other): each of those computes it. */
static void look_through(Sched *s, Node *n, double times, Node *const *uses, int moves, Readers *r)
{
    Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        double more = times * readings(n, t);
        if (is_move(t) && !info_of(s, t)->root && moves) {
            look_through(s, t, more, uses, moves - 1, r);
        } else {
            r->times += more;
            r->kernels++;
            r->reduced |= t->op == OP_REDUCE;
            Info *product = info_of(s, t); /* of what is read several times, and the sum of it */
            for (int v = 0; v < product->nuse && more > 1; v++)
                r->reduced |= uses[product->iuse + v]->op == OP_REDUCE;
        }
    }
}

static Readers readers_of(Sched *s, Node *n, Node *const *uses)
{
    Info *i = info_of(s, n);
    Readers r = {.rows = i->has_reduce && (i->rows || i->pending)};
    bool steps = true, later = i->nuse == 1; /* what is moved may be stored as it lies then */
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        later &= is_move(t) && t->op != OP_GATHER && readings(n, t) <= 1;
        r.rows &= row_reader(s, i, n, t);
        steps &= op_is_alu(t->op);
    }
    if (later)
        r.times = r.kernels = 1;
    else
        look_through(s, n, 1, uses, MAX_MOVES, &r);
    r.rows &= i->rows || !steps || i->nuse == 1;
    if (r.rows) /* a sum over a row is one for all of the row; an element is computed in each loop over the row */
        r.times = i->rows ? i->nuse : 1;
    if (r.rows)
        r.kernels = 1;
    if (i->nuse > 1 && diamond(s, n, uses))
        r.times = r.kernels = 1;
    r.reduced |= r.kernels > 1; /* its operands cannot lie as all of its readers would have them */
    if (i->constant && !i->leaves && !coord_cost(s, n)) /* nothing is left of it in a loop */
        r.times = 1;
    return r;
}

enum { MAX_STEPS = 16 };

/* Is v read by nothing that runs after n's kernel? */
static bool dies_by(Sched *s, Node *v, const Node *n, Node *const *uses, int steps)
{
    const Info *i = info_of(s, v);
    bool dies = !i->root && steps;
    for (int u = 0; u < i->nuse && dies; u++) {
        Node *t = uses[i->iuse + u];
        dies = t == n || (info_of(s, t)->order < info_of(s, n)->order &&
                          (!is_computed(s, t) || dies_by(s, t, n, uses, steps - 1)));
    }
    return dies;
}

/* Is n, of which t is a part, made element by element of a stored value as large, which dies in its kernel? Then it is stored
 * in place of that (memplan.c): in lines that are at hand already, and in no more memory. */
static bool takes_place(Sched *s, Node *n, const Node *t, Node *const *uses, int steps)
{
    bool found = false;
    for (uint32_t j = 0;
         j < t->nsrc && (op_is_alu(t->op) || t->op == OP_RESHAPE) && steps && !found; j++) {
        Node *v = t->src[j];
        found = is_computed(s, v)
                    ? takes_place(s, n, v, uses, steps - 1)
                    : info_of(s, v)->stored && v->dtype == n->dtype &&
                          node_bytes(v) == node_bytes(n) && dies_by(s, v, n, uses, steps);
    }
    return found;
}

/* Storing takes a kernel, a write, and a read by every reader; computing it in its readers takes its operations as often as
 * they read it. Where it takes the place of what dies there, it is no matter of memory, but of time alone: then it counts, too,
 * that products take an operand from memory as it is, spread over the lanes, and one that is computed has to be spread. */
static bool store_pays(Sched *s, Node *n, const Readers *readers, Node *const *uses)
{
    const Target *t = s->target;
    double bytes = node_bytes(n), kernels = readers->kernels;
    Region apart = region_of(s, n), inlined = apart;
    if (info_of(s, n)->has_reduce && (readers->rows || readers->reduced)) { /* no tile there */
        inlined.ops[UNIT_SCALAR] += inlined.ops[UNIT_TILE];
        inlined.ops[UNIT_TILE] = 0;
    }
    if (info_of(s, n)->has_reduce && readers->reduced && !readers->rows) { /* and no lanes */
        inlined.ops[UNIT_SCALAR] += inlined.ops[UNIT_VECTOR];
        inlined.ops[UNIT_VECTOR] = 0;
    }
    double memory = kernels * cost_bytes(apart.bytes, apart.bytes, t),
           arithmetic = readers->times * cost_ops(&inlined, t);
    bool in_place = takes_place(s, n, n, uses, MAX_STEPS);
    if (in_place && t->lanes && !info_of(s, n)->has_reduce && readers->reduced && arithmetic > 0)
        arithmetic += readers->times * numel(n) / t->rate[UNIT_VECTOR];
    double written = in_place ? cost_bytes(bytes, bytes, t) : cost_stored(n, t);
    double store = cost_region(&apart, t) + written + kernels * cost_bytes(bytes, bytes, t);
    if (coord_ops(s, n)) /* operations so few that the loads count */
        store += cost_bytes(readers->times * bytes, bytes, t);
    double again = memory > arithmetic ? memory : arithmetic;
    info_of(s, n)->store_cost = store;
    info_of(s, n)->again_cost = again;
    return arithmetic > 0 && store < again;
}

/* A part of a constant that others multiply: a kernel of its own can read it in whatever layout those want (weights.c),
 * where that takes little beside reading all of the constant. */
static bool is_looked_up(Sched *s, Node *n)
{
    const Target *t = s->target;
    Region r = region_of(s, n);
    double shared = r.shared;
    return shared > 0 &&
           cost_region(&r, t) + cost_stored(n, t) <= cost_bytes(shared, shared, t) / LITTLE;
}

/* A term of a sum of products: there are as many as the sum has operations, and no machine keeps them. */
static bool is_term(Sched *s, Node *n, Node *const *uses)
{
    const Info *i = info_of(s, n);
    Node *reader = i->nuse == 1 ? uses[i->iuse] : NULL;
    while (reader && reader->op == OP_ADD && (i = info_of(s, reader))->nuse == 1)
        reader = uses[i->iuse];
    return n->op == OP_MUL && reader && reader->op == OP_REDUCE &&
           (reader->arg.i & 255) == INGOT_REDUCE_ADD;
}

/* Sums of products that a GPU's groups divide among them: a kernel has one such sum, and no other reduce. */
static bool is_for_groups(Sched *s, Node *n)
{
    enum { LEAST = 1 << 10 }; /* operations */
    return s->target->gpu && info_of(s, n)->has_reduce && region_of(s, n).ops[UNIT_TILE] >= LEAST;
}

/* Do sums of products multiply it, as it is or widened, again and again? */
static bool is_multiplied(Sched *s, Node *n, Node *const *uses, int moves, bool again)
{
    const Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        bool wider = t->op == OP_CAST && dtype_info[t->dtype].bytes >= dtype_info[n->dtype].bytes;
        if ((is_move(t) || wider) && moves && !info_of(s, t)->root &&
            is_multiplied(s, t, uses, moves - 1, again || readings(n, t) > 1))
            return true;
        if (t->op == OP_MUL && again && is_term(s, t, uses))
            return true;
    }
    return false;
}

/* An operand of a matrix unit whose items copy it as it lies: so it has to lie somewhere. */
static bool is_copied(Sched *s, Node *n, Node *const *uses)
{
    bool lanes = false;
    for (int i = 0; i < TC_COUNT; i++)
        lanes |= (s->target->units >> i & 1) && tc_units[i].lanes;
    bool wider =
        n->op == OP_CAST && dtype_info[n->dtype].bytes >= dtype_info[n->src[0]->dtype].bytes;
    return lanes && dtype_is_float(n->dtype) && !wider && !is_move(n) &&
           is_multiplied(s, n, uses, MAX_MOVES, false);
}

/* A sum of products that meets another reduce in its reader: there it is no tile for registers. */
static bool company_costs(Sched *s, Node *n, Node *reader)
{
    Info *i = info_of(s, n);
    bool company = false;
    for (uint32_t j = 0; j < reader->nsrc && op_is_alu(reader->op); j++) {
        Node *o = reader->src[j];
        company |= o != n && o->dtype != INGOT_INDEX && info_of(s, o)->order < i->order &&
                   info_of(s, o)->has_reduce && is_computed(s, o);
    }
    if (!company)
        return false;
    Region own = region_of(s, n), together = region_of(s, reader);
    if (is_for_groups(s, n) && together.ops[UNIT_TILE] >= 1.5 * own.ops[UNIT_TILE])
        return true;
    i->stored = true;
    Region apart = region_of(s, reader);
    i->stored = false;
    const Target *t = s->target;
    return cost_region(&own, t) + cost_stored(n, t) + cost_region(&apart, t) <
           cost_region(&together, t);
}

enum { STAGE_GAIN = 4 }; /* what it takes of the loops that read it, beside bytes */

/* Is a row of it computed once, into a place of the kernel that stays near, rather than by each of its readers there? */
static bool stage_pays(Sched *s, Node *n, const Readers *readers)
{
    const Info *i = info_of(s, n);
    const Target *t = s->target;
    int64_t size;
    double row = dtype_info[n->dtype].bytes;
    for (int d = 0; d < n->rank; d++) {
        if (!idx_value(n->shape[d], &size))
            return false;
        row *= i->rows >> d & 1 ? (double)size : 1;
    }
    double again = (readers->times - 1) * i->cost * numel(n) / t->rate[UNIT_VECTOR];
    double place = cost_bytes((1 + readers->times) * node_bytes(n), row, t);
    return is_trailing(n, i->rows) && 2 * row <= t->level[1].bytes && STAGE_GAIN * place < again;
}

/* Why n is stored; NULL: its readers compute it. */
static const char *should_store(Sched *s, Node *const *order, int norder, Node *n,
                                Node *const *uses)
{
    Info *i = info_of(s, n);
    if (is_leaf(s, n) || n->dtype == INGOT_INDEX)
        return NULL;
    if (i->root)
        return "the caller or a step that is no kernel reads it";
    switch (n->op) {
    case OP_CONCAT: return "its parts are written into it";
    case OP_UPDATE: return "it is written in place";
    case OP_KEEP: return "it is to be kept apart";
    case OP_SCAN: return "each element continues the one before it";
    case OP_CALL:
    case OP_LOOP:
    case OP_IF: return "it is a step of its own";
    default: break;
    }
    if (i->widened || i->in_rows)
        return NULL;
    if (i->depth > MAX_DEPTH)
        return "one kernel would become huge";
    if ((i->loads > MAX_BUFFERS || i->cost > MAX_NODES) && !extent_fits(s, n))
        return "one kernel would become huge";
    /* what is padded is stored without its padding: readers get a halo (layouts.c) */
    for (int u = 0; u < i->nuse; u++)
        if (uses[i->iuse + u]->op == OP_PAD && (i->has_reduce || i->cost > 0) && i->loads)
            return "it is read beyond its edges: its buffer gets a halo";
    for (int u = 0; u < i->nuse && i->has_reduce; u++)
        if (uses[i->iuse + u]->op == OP_SCAN)
            return "a reduce in loops that run in order";
    if ((!i->cost && !i->has_reduce) || (is_move(n) && node_bytes(n) > node_bytes(n->src[0])))
        return NULL;
    if (stage_rows(s, n, norder, order, uses))
        return NULL;
    Readers r = readers_of(s, n, uses);
    if (i->has_reduce && i->rows && !r.rows)
        return "a reduce over rows, with readers that do not go along the rows";
    i->staged =
        !s->target->gpu && r.rows && i->rows && r.times > 1 && stage_pays(s, n, &r) ? i->rows : 0;
    if (i->staged)
        r.times = 1;
    if (r.reduced && is_for_groups(s, n))
        return "a sum of products inside of another reduce";
    if (is_copied(s, n, uses))
        return "a matrix unit multiplies it";
    bool again = r.times > 1 || r.kernels > 1 || (i->has_reduce && r.reduced);
    if (s->target->gpu && r.rows) /* a group goes along the row once its items share its sums */
        again = false;
    if (again && store_pays(s, n, &r, uses))
        return i->has_reduce ? "a reduce that would be computed again where it is read"
                             : "computing it again where it is read costs more than memory";
    if (r.kernels > 1 && is_looked_up(s, n))
        return "it is looked up in a constant that others read too: one kernel alone reads it "
               "there";
    for (int u = 0; u < i->nuse && i->has_reduce; u++)
        if (company_costs(s, n, uses[i->iuse + u]))
            return "a sum of products whose reader has another reduce";
    return NULL;
}

/* --fuse all: computed again wherever it is read, if a kernel can be that large; a reduce too, as long as repeat.c finds
 * that bearable. */
static bool stays_inlined(Sched *s, Node *n, Node *const *uses)
{
    Info *i = info_of(s, n);
    if (i->depth > MAX_DEPTH || !extent_fits(s, n))
        return false;
    for (int u = 0; u < i->nuse && i->has_reduce; u++) {
        Op reader = uses[i->iuse + u]->op;
        if (reader == OP_SCAN ||
            reader == OP_CONCAT) /* in the latter it takes a kernel in any case */
            return false;
    }
    i->spared = true;
    return true;
}

/* The same, after what the file or the preset says. */
static const char *decide(Sched *s, Node *const *order, int norder, Node *n, Node *const *uses)
{
    const char *why = should_store(s, order, norder, n, uses);
    Info *i = info_of(s, n);
    const ValueChoice *given = value_given(s->plan, n);
    Preset preset = values_preset(s->plan);
    bool computes = op_is_alu(n->op) || n->op == OP_REDUCE;
    if (is_leaf(s, n) || n->dtype == INGOT_INDEX || i->constant)
        return why;
    if (given && given->stored == YES)
        return why ? why : "the plan's file says so";
    if (!(given && given->stored == NO) && preset == PRESET_AUTO)
        return why;
    bool must = i->root || op_info[n->op].cls == CONTROL || n->op == OP_CONCAT ||
                n->op == OP_UPDATE || n->op == OP_KEEP;
    if (given && given->stored == NO) {
        if (must)
            sched_error(s->plan, given->line, "this value has to be stored: %s", why);
        return NULL;
    }
    if (must)
        return why;
    if (preset == PRESET_NONE)
        return computes && !i->widened && !is_term(s, n, uses) ? "nothing is fused" : why;
    return why && !stays_inlined(s, n, uses) ? why : NULL;
}

/* Nothing but a stored value of fewer bytes, widened where it is read. */
static bool is_widened(Sched *s, Node *n, int cost)
{
    Node *narrow = n;
    while (narrow->nsrc && (info_of(s, narrow)->widened || narrow == n))
        narrow = narrow->src[0];
    if (!n->nsrc || !narrow_pays(s, narrow, n, cost))
        return false;
    Info *below = info_of(s, n->src[0]);
    bool number = (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && is_uniform(n->src[1]);
    if (n->op == OP_CAST && dtype_info[n->dtype].bytes > dtype_info[n->src[0]->dtype].bytes)
        return below->widened || (below->stored && keeps_narrow(s, n)) || is_leaf(s, n->src[0]) ||
               (is_move(n->src[0]) && !below->cost && below->loads == 1);
    return (is_move(n) || number || n->op == OP_CAST) && below->widened;
}

/* Memory moves by lines. */
static double lines(const Sched *s, double bytes)
{
    return ceil(bytes / s->target->line);
}

/* Is a constant that grows when it is folded read faster than it is computed, each time? Beside others it has half of a
 * level of memory. */
static bool fold_pays(Sched *s, Node *n, double bytes, double leaves)
{
    const Target *t = s->target;
    if (is_for_dot(s, n))
        return false;
    Region r = region_of(s, n);
    return cost_bytes(bytes, 2 * bytes, t) + (bytes - leaves) * t->byte <
           cost_bytes(leaves, 2 * leaves, t) + cost_ops(&r, t);
}

/* Is a constant made of fewer bytes computed where it is read, rather than in every run beforehand? */
static bool unpacking_pays(Sched *s, Node *n, double bytes, double leaves)
{
    const Target *t = s->target;
    double saved = (bytes - leaves) / numel(n);
    return info_of(s, n)->cost / t->rate[UNIT_VECTOR] <=
           saved * (cost_bytes(1, INFINITY, t) + t->byte);
}

/* What n's fused expression costs, given that its sources are decided. */
static void analyse(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    int cost = op_info[n->op].cls == REDUCE ? 0 : op_info[n->op].cost, loads = 0, depth = 0;
    unsigned pending = 0, rows = 0;
    if (n->op == OP_WHERE && info_of(s, n->src[0])->constant && !info_of(s, n->src[0])->leaves)
        cost = 0; /* inside or outside of a padded tensor: a question of coordinates */
    bool constant = n->op != OP_INPUT && n->op != OP_STATE && n->op != OP_PARAM &&
                    n->op != OP_VAR && op_info[n->op].cls != CONTROL && n->op != OP_RANGE;
    bool reduce = n->op == OP_REDUCE;
    double leaves = n->op == OP_DATA ? node_bytes(n) : 0;
    bool integers = !dtype_is_float(n->dtype) && op_is_alu(n->op); /* it may be such itself */
    bool compute = cost > 0 || reduce || n->op == OP_SCAN || n->op == OP_GATHER ||
                   n->op == OP_UPDATE || n->op == OP_CONCAT;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Info *f = info_of(s, n->src[j]);
        constant &= f->constant;
        leaves += f->leaves;
        if (n->src[j]->dtype == INGOT_INDEX)
            continue;
        if (n->op == OP_GATHER && j > 0)
            cost += index_cost(s, n->src[j]);
        if (f->stored || is_leaf(s, n->src[j])) {
            loads += n->src[j]->op != OP_CONST && n->src[j]->op != OP_IOTA;
            continue;
        }
        /* of what is made of coordinates, a part is left in the loops that read it */
        bool coordinates = (n->op == OP_GATHER && j > 0 && !f->loads) ||
                           (f->constant && !f->leaves && !dtype_is_float(n->src[j]->dtype));
        cost += !coordinates ? f->cost : integers ? 0 : coord_cost(s, n->src[j]);
        pending |= f->pending;
        if (f->rows)
            rows = !rows || rows == f->rows ? f->rows : ~0u;
        loads += f->loads;
        depth = f->depth > depth ? f->depth : depth;
        reduce |= f->has_reduce;
        compute |= f->constant && f->cost > 0;
    }
    if (n->op == OP_EXPAND && pending && expanded_axes(n) == pending) {
        rows = pending;
        pending = 0;
    } else if (n->op == OP_REDUCE) {
        pending |= reduced_axes(n);
        rows = 0;
    } else if (!op_is_alu(n->op)) { /* other coordinates: rows are rows no more */
        rows = rows ? ~0u : 0;
        pending = 0;
    }
    i->pending = pending;
    i->rows = rows;
    i->constant = constant;
    i->leaves = leaves;
    enum { MANY = 1 << 20 }; /* what is shared counts for each use: it may double with each node */
    i->cost = cost > MANY ? MANY : cost;
    i->loads = loads > MANY ? MANY : loads;
    i->most = extent_most(s, n);
    i->depth = depth + 1;
    i->has_reduce = reduce;
    double bytes = node_bytes(n);
    /* Readers see through movement; steps that read memory do not. */
    bool may_fold = constant && (compute || i->root) && leaves > 0 && n->op != OP_CONST &&
                    n->dtype != INGOT_INDEX && bytes > 0;
    bool shrinks = lines(s, bytes) <= lines(s, leaves);
    bool unpacked = may_fold && !reduce && unpacking_pays(s, n, bytes, leaves);
    i->foldable = may_fold && (shrinks || ((!unpacked || 2 * bytes <= s->target->level[0].bytes) &&
                                           fold_pays(s, n, bytes, leaves)));
    i->widened = !reduce && (is_widened(s, n, i->cost) || (unpacked && !i->foldable));
    if (i->foldable)
        i->why = shrinks ? "a constant, and no larger than what it is made of"
                         : "a small constant that takes longer to compute than to read";
    if (i->foldable && bytes < leaves)
        i->leaves = bytes; /* what is made of it is compared with it */
}

/* What is stored, and of what could have been: reduces, what several readers compute, and what the file speaks of. */
static void record(Sched *s, Node *n)
{
    const Info *i = info_of(s, n);
    bool choice =
        n->op == OP_REDUCE || (op_is_alu(n->op) && i->nuse > 1 && i->cost > 0 && i->loads);
    const ValueChoice *given = value_given(s->plan, n);
    choice |= given && given->stored;
    if (!s->plan->values || op_info[n->op].cls == CONTROL || n->dtype == INGOT_INDEX || i->constant)
        return;
    if (i->stored)
        value_record(s->plan, n)->stored = YES;
    else if (choice && i->needed)
        value_record(s->plan, n)->stored = NO;
}

/* Not a step that reads memory. */
static bool is_kernel(Node *n)
{
    return op_info[n->op].cls != CONTROL && op_info[n->op].cls != LEAF;
}

/* A kernel that stores t repeats more than it should: values of it get kernels of their own, which may do so again. */
static void bound_repeats(Sched *s, Node *const *order, Node *t)
{
    Node **kernel = NULL, *root = t;
    int n = 0;
    vec_push(s->arena, kernel, n, root);
    while (n) {
        Node *apart = repeats_too_much(s, kernel[n - 1]);
        if (!apart) {
            n--;
            continue;
        }
        Info *i = info_of(s, apart);
        i->stored = true;
        i->spared = false;
        i->why = "computing it again where it is read would repeat too much of the network";
        for (int j = i->order + 1; j <= info_of(s, t)->order; j++)
            analyse(s, order[j]);
        vec_push(s->arena, kernel, n, apart);
    }
}

void fuse(Sched *s, int n, Node **order)
{
    /* consumers, each named once */
    int total = 0;
    s->operations = s->repeated = 0;
    for (int i = 0; i < n; i++) {
        info_of(s, order[i])->nuse = 0;
        info_of(s, order[i])->needed = false;
        info_of(s, order[i])->in_rows = info_of(s, order[i])->sums_rows = false;
        info_of(s, order[i])->spared = info_of(s, order[i])->once = false;
        info_of(s, order[i])->order = i;
    }
    for (int pass = 0; pass < 2; pass++) {
        static Node *none[1];
        Node **uses = pass ? NEWN(s->arena, Node *, total + 1) : none;
        if (pass) {
            int at = 0;
            for (int i = 0; i < n; i++) {
                Info *f = info_of(s, order[i]);
                f->iuse = at;
                at += f->nuse;
                f->nuse = 0;
            }
        }
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            for (uint32_t j = 0; j < t->nsrc; j++) {
                Info *f = info_of(s, t->src[j]);
                bool inside = f->order < n && order[f->order] == t->src[j];
                bool twice = f->nuse && f->reader == i;
                if (twice || !inside)
                    continue;
                if (pass)
                    uses[f->iuse + f->nuse] = t;
                f->reader = i;
                f->nuse++;
                total += !pass;
            }
        }
        if (!pass)
            continue;
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            analyse(s, t);
            const char *why = decide(s, order, n, t, uses);
            bool stored = why;
            Node *narrow =
                stored && keeps_narrow(s, t) && !info_of(s, t)->root ? narrow_side(s, t) : t;
            info_of(s, narrow)->stored = stored && !is_leaf(s, narrow);
            if (stored)
                info_of(s, narrow)->why = why;
            for (int j = info_of(s, narrow)->order + 1; narrow != t && j <= i; j++)
                analyse(s, order[j]); /* what is stored now costs its readers nothing */
            s->operations += node_operations(s, t);
            if (stored && values_preset(s->plan) == PRESET_ALL && is_kernel(narrow))
                bound_repeats(s, order, narrow);
        }
    }
    /* what only foldable constants read is evaluated with them, at compile time */
    for (int i = n; i-- > 0;) {
        Info *f = info_of(s, order[i]);
        f->needed |= f->root;
        for (uint32_t j = 0; j < order[i]->nsrc && f->needed && !f->foldable; j++)
            info_of(s, order[i]->src[j])->needed = true;
        f->stored &= f->needed;
    }
    for (int i = 0; i < n; i++) {
        Info *f = info_of(s, order[i]);
        bool folded = f->foldable && f->needed,
             again = !f->stored && f->needed && f->again_cost > 0 && !is_leaf(s, order[i]);
        record(s, order[i]);
        if (!folded && !f->stored && !again)
            continue;
        plan_note(s->plan,
                  (Note){.pass = "fuse",
                         .what = folded  ? "folded"
                                 : again ? "not stored"
                                         : "stored",
                         .why = again ? "computing it where it is read costs less than a kernel, a "
                                        "write and the reads"
                                      : f->why,
                         .node = order[i],
                         .operations = f->cost,
                         .bytes = (int64_t)node_bytes(order[i]),
                         .stored = folded ? 0 : f->store_cost,
                         .again = folded ? 0 : f->again_cost});
    }
}
