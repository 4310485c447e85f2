/* cost_nest.c - what a kernel with its opts costs, from its statements: cost_nest().
 *
 * The linear form says what runs in which loop.  Of the body of each loop, per iteration:
 *
 *     issue = max(multiply-adds / 2, loads, stores, all / 5, latency of what waits for itself)
 *             + the time that a vector which is live there and has no register is waited for
 *
 * and each iteration counts a little more for its branch.  Vectors that live through a loop which
 * does not touch them (sums of another loop) are put aside once, not in each iteration.
 *
 * Of the operands of products, rows or vectors, whichever are fewer stay in registers (of 3 rows by
 * 4 vectors the rows); the others come one by one, into a register of their own.  As many sums may
 * leave their registers as in the tiles that are chosen (Machine.spills).
 *
 * An innermost loop of few iterations and few statements is none any more once the C compiler has
 * written it out, and what two of its iterations load is loaded once then: of a window of three, 14
 * pixels wide, 16 of 42 loads are left.  It does that up to about PEELED operations (by what gcc 12
 * made of 240 convolutions).
 *
 * Memory: an access at loops l1 .. ln (outermost first) touches F(d) bytes in the loops inside of
 * depth d.  Let d be the outermost depth whose footprint, of all accesses together, fits a level.
 * Then an iteration of the loop around them finds there what the one before it has touched, and a
 * run of that loop brings in each of its lines once:
 *
 *     traffic = F(d - 1) times the iterations outside of that loop
 *
 * so that in c[i,j] += a[i,k] * b[k,j] with k innermost and too long, a line of a[] comes once for
 * all of its elements.  Where loops and copies walk over the same places (a window and what it
 * slides along), these count once.
 *
 * Items of a device whose processors are cores of a CPU (Machine.core_lanes) are written as
 * numbers, one by one, of which the driver's compiler makes vectors where results lie side by side:
 * of a tile with four columns in a row a product is a fourth of an instruction.  What is loaded
 * behind a condition is loaded by itself, behind a branch.
 *
 * Both go on at once, and the longer one hides most of the other: cycles = (issue^4 +
 * memory^4)^(1/4).  What PREFETCH asks for is hidden better, but does not come faster.  The weights
 * below rank 7,500 candidates of 188 kernels on a Zen 4, and 5,500 of 138 on an Emerald Rapids
 * (tests/tune/rank.py); most may be twice or half of what they are without doing so any worse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_access.h"
#include "cost_nest.h"
#include "kernel.h"
#include "lowered.h"

enum { MAX_ACCESSES = 512 };
#define FIT 0.6 /* of a level of cache that one kernel's data may fill */
/* Of the time of bytes that come into a level, what is left where PREFETCH asks for them. */
static const double ahead[] = {1, 0.85, 0.5};
#define LOAD 0.9   /* cycles of a load of a whole line; */
#define PART 0.5   /* of less, two begin in a cycle; */
#define STORE 1.5  /* a store, */
#define BRANCH 0.3 /* an iteration of a loop, */
#define ENTRY 0.5  /* and its begin */
/* Bytes: where many lines are under way at once. */
const EstimateWeights estimate_weights = {
    .load = LOAD, .store = STORE, .operation = 0.5, .byte = {1.0 / 56, 1.0 / 28, 1.0 / 6}};

enum {
    LATENCY = 4,
    RECIPROCAL = 8,
    SPILT = 4,
    WIDTH = 5,         /* instructions that begin in a cycle */
    PIECE = 800,       /* cycles until the code of one more piece (a rest) is there */
    PEELED = 115,      /* operations that a loop which is written out has, */
    PEELED_TRIPS = 16, /* and iterations */
    GATE =
        8 /* operations that a branch around a load takes, and a number that is put beside others */
};

typedef struct {
    double fma, load, store, alu, slow;
    int first;      /* of the accesses that were added in it */
    bool loops;     /* it has loops in it */
    Node *sum;      /* one of the accumulators that are updated; NULL: none is */
    double chain;   /* how often, in an iteration */
    double live;    /* registers of the vectors that it works on, at the most */
    double through; /* with those that are live beside them, untouched */
} Body;

/* Loops, one in the other, that accesses stand in. */
typedef struct {
    int depth;
    Node *range[MAX_DEPTH];
    double trips[MAX_DEPTH];
} Loops;

typedef struct {
    const Kernel *k;
    const Target *t;
    Estimate *out;
    const Linear *l;
    double trips[MAX_DEPTH], times[MAX_DEPTH]; /* of the loops open; iterations of all down to it */
    Node *range[MAX_DEPTH];
    Body body[MAX_DEPTH + 1];
    int depth;
    LoopAccess *access;
    int naccess;
    Loops *nest;
    int nnest;
    Arena *a;
    uint32_t *seen; /* by node id: the statement that counted it */
    uint32_t now;
    double *live, *through; /* by statement: as of Body */
    bool ahead;             /* PREFETCH: what comes from beyond L2 is not waited for */
    double beside;          /* of a core's items: results that are one vector; else 1 */
} Count;

/* ---- operations ------------------------------------------------------------------------------ */

static double registers_of(const Count *q, const Node *n)
{
    int lanes = q->t->machine.lanes, bytes = dtype_info[n->dtype].bytes;
    bool vector = n->id < q->l->nknown && q->l->vector[n->id];
    if (!vector || !lanes)
        return n->dtype == INGOT_INDEX ? 1 : 1 / q->beside;
    double wide = (double)q->l->tile->lanes * (bytes > 4 ? bytes : 4) / (4.0 * lanes);
    return wide < 1 ? 1 : wide;
}

/* Bytes that the address moves with an iteration of a range; JUMPS: they are no constant. */
static double stride_of(Count *q, Node *at, Node *range, int bytes)
{
    int64_t step;
    return range_stride(q->k->c, at, range, &step) ? (double)step * bytes : JUMPS;
}

/* The loops that are open, as one of those that accesses stand in. */
static int nest_of(Count *q)
{
    for (int i = 0; i < q->nnest; i++)
        if (q->nest[i].depth == q->depth &&
            !memcmp(q->nest[i].range, q->range, (size_t)q->depth * sizeof *q->range))
            return i;
    Loops n = {.depth = q->depth};
    memcpy(n.range, q->range, sizeof n.range);
    memcpy(n.trips, q->trips, sizeof n.trips);
    vec_push(q->a, q->nest, q->nnest, n);
    return q->nnest - 1;
}

static int bytes_of_element(const Node *n)
{
    const int bytes = dtype_info[n->dtype].bytes;
    return bytes < 1 ? 1 : bytes;
}

/* Bytes between the lanes of a vector that is loaded or stored; 0: it is none. */
static double lane_step(Count *q, Node *n)
{
    Node *lane = q->l->tile->lane;
    if (!lane || n->id >= q->l->nknown || !q->l->vector[n->id])
        return 0;
    double step = stride_of(q, n->src[first_coord(n)], lane, bytes_of_element(n));
    return step < 0 ? -step : step;
}

/* Gives how many of its places lie right before or behind that of another one, which is there
 * already: 0 to 2. */
static int add_access(Count *q, Node *n)
{
    Context *c = q->k->c;
    Node *at = n->src[first_coord(n)];
    int bytes = bytes_of_element(n);
    LoopAccess x = {
        .arg = (int)n->src[0]->arg.i, .store = n->op == OP_STORE, .depth = q->depth, .lanes = 1};
    x.nest = nest_of(q);
    x.bytes = bytes;
    double step = lane_step(q, n);
    if (step == bytes) {
        x.bytes *= q->l->tile->lanes;
    } else if (step > 0) {
        x.lanes = q->l->tile->lanes;
        x.lane_step = step;
        x.bytes *= is_rows(n) ? (double)x.lanes : 1;
    }
    Node *counter[MAX_DEPTH + 1], *zero[MAX_DEPTH + 1];
    int counters = 0;
    for (int i = 0; i < q->depth; i++) {
        x.stride[i] = stride_of(q, at, q->range[i], bytes);
        counter[counters++] = q->range[i];
    }
    if (q->l->tile->lane)
        counter[counters++] = q->l->tile->lane;
    for (int i = 0; i < counters; i++)
        zero[i] = idx(c, 0);
    int64_t first = 0;
    (void)idx_value(substitute(c, at, counters, counter, zero), &first);
    const double place = (double)first * bytes;
    for (int i = 0; i < q->naccess; i++) {
        LoopAccess *o = &q->access[i];
        if (o->arg != x.arg || o->nest != x.nest || o->bytes != x.bytes || o->lanes != x.lanes ||
            o->lane_step != x.lane_step ||
            memcmp(o->stride, x.stride, (size_t)x.depth * sizeof *x.stride))
            continue;
        int beside = 0;
        for (int j = 0; j < (int)o->copies; j++)
            beside += fabs(o->at[j] - place) == bytes;
        access_add_places(q->a, o, 1, &place, 0, 1);
        return beside;
    }
    access_add_places(q->a, &x, 1, &place, 0, 1);
    if (q->naccess < MAX_ACCESSES)
        q->access[q->naccess++] = x;
    return 0;
}

/* How many results of a core's item lie side by side, of those that a vector holds: of its stores
 * all but the first in a row have another one beside them. */
static double results_beside(Count *q)
{
    enum { LEAST = 2 };
    const double most = q->t->machine.core_lanes;
    double stores = 0, rows = 0, lanes = LEAST;
    for (int i = 0; i < q->l->n && most > 0; i++)
        if (q->l->stmt[i].kind == STMT_STORE) {
            stores++;
            rows += !add_access(q, q->l->stmt[i].node);
        }
    q->naccess = q->nnest = 0;
    while (2 * lanes <= most && 2 * lanes * rows <= stores)
        lanes *= 2;
    return rows > 0 && lanes * rows <= stores ? lanes : 1;
}

/* Instructions of a load or a store: of lanes that lie apart one each, and half of one to put it
 * beside the others; of rows one each, and one each in each of log2(lanes) steps that transpose
 * them. */
static void count_moved(Count *q, Node *n, double *moved)
{
    double step = lane_step(q, n);
    const int lanes = q->l->tile->lanes;
    if (step == 0 || step == bytes_of_element(n)) {
        *moved += registers_of(q, n);
        return;
    }
    double beside = is_rows(n) ? 0 : 0.5;
    for (int i = 1; is_rows(n) && i < lanes; i *= 2)
        beside += 1;
    *moved += lanes;
    q->body[q->depth].alu += beside * lanes;
}

static void count_node(Count *q, Node *n, bool top);

static void count_sources(Count *q, Node *n)
{
    for (uint32_t i = 0; i < n->nsrc; i++)
        count_node(q, n->src[i], false);
}

/* A dot that fills so many registers. */
static double dot_cost(const Count *q, const Node *sum, double wide)
{
    enum { PLAIN = 6 };
    const Machine *m = &q->t->machine;
    if (tile_dot(q->l->tile) == 2) {
        const double rate = dtype_is_float(sum->dtype) ? m->dot_bf16 : m->dot_i16;
        return rate > 0 ? 2 * wide / rate : PLAIN * wide;
    }
    return m->pairs ? 4 * wide : m->dot ? wide : PLAIN * wide;
}

/* Of what is written inside one statement; named values are counted where they are named. */
static void count_node(Count *q, Node *n, bool top)
{
    Body *b = &q->body[q->depth];
    bool named = n->id < q->l->nknown && q->l->named[n->id];
    if ((named && !top) || n->op == OP_CONST || n->op == OP_RANGE || n->op == OP_BUFFER ||
        n->op == OP_VAR || is_scalar_argument(n) || q->seen[n->id] == q->now)
        return;
    q->seen[n->id] = q->now;
    double wide = registers_of(q, n);
    if (n->dtype == INGOT_INDEX) {
        b->alu += n->op == OP_FLOORDIV || n->op == OP_MOD ? 1 : 0;
        count_sources(q, n);
        return;
    }
    if (n->op == OP_LOAD) {
        const bool gated = q->t->machine.core_lanes && !node_is_const_i(n->src[1], 1);
        double moved = 0;
        count_moved(q, n, &moved);
        b->load += add_access(q, n) && !gated ? moved : moved * q->beside;
        b->alu += gated ? GATE : 0;
        count_node(q, n->src[1], false);
        return;
    }
    if (is_dot(q->l, n)) { /* two loads and one instruction where there is one */
        b->alu += dot_cost(q, n, wide);
        count_sources(q, below_casts(n->src[0]));
        return;
    }
    if (op_is_alu(n->op)) {
        int cost = op_info[n->op].cost;
        if (n->op == OP_DIV || n->op == OP_SQRT)
            b->slow += RECIPROCAL * wide;
        else if (cost > 4)
            b->slow += cost * wide * 0.5;
        else
            b->alu += wide;
    } else if (reduce_form(q->l, n) == REDUCE_LANES) {
        b->alu += 2 * 4 + 2;
    }
    if (is_loop(q->l, n))
        return;
    count_sources(q, n);
}

static void count_update(Count *q, const Stmt *s)
{
    Node *n = s->node, *x = update_value(s);
    Body *b = &q->body[q->depth];
    double wide = registers_of(q, n);
    bool product = n->op == OP_REDUCE && reduce_monoid(n) == INGOT_REDUCE_ADD && x->op == OP_MUL &&
                   dtype_is_float(n->dtype);
    bool named = x->id < q->l->nknown && q->l->named[x->id];
    b->sum = n;
    b->chain = 1;
    if (product && !named) {
        b->fma += wide;
        count_sources(q, x);
        return;
    }
    if (is_dot(q->l, x) && !named) {
        b->fma += dot_cost(q, n, wide);
        count_sources(q, below_casts(x->src[0]));
        return;
    }
    b->alu += wide;
    count_node(q, x, false);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Is a sum added to in one iteration after the other?  Of a loop that was written out it is there
 * when the iteration ends. */
static bool is_carried(const Count *q, const Body *b)
{
    int n = 0;
    Node *const *range = b->sum && q->depth ? loops_of(q->l, b->sum, &n) : NULL;
    for (int i = 0; i < n; i++)
        if (range[i] == q->range[q->depth - 1])
            return true;
    return false;
}

/* Vectors that have no register. */
static double spilt_of(const Count *q, const Body *b)
{
    const Machine *m = &q->t->machine;
    const double vectors = b->live - b->fma, numbers = b->load - vectors;
    double live = b->live, spilt;
    if (m->lanes && b->fma > 0 && vectors >= 1 && numbers >= 1)
        live = b->fma + fmin(vectors, numbers) + 1 - floor(b->fma / m->spills);
    spilt = m->registers && live > m->registers ? live - m->registers : 0;
    /* of a body of few instructions few are touched */
    return b->sum ? spilt : fmin(spilt, b->fma + b->alu);
}

static double load_cycles(const Machine *m)
{
    return m->lanes && (double)m->lanes * sizeof(float) < m->line ? PART : LOAD;
}

static void end_body(Count *q)
{
    Body *b = &q->body[q->depth];
    const double times = q->depth ? q->times[q->depth - 1] : 1,
                 entries = q->depth > 1 ? q->times[q->depth - 2] : 1;
    double instructions, spilt, cycles;
    if (q->depth)
        q->out->loops += ENTRY * entries + BRANCH * times;
    spilt = spilt_of(q, b);
    if (q->t->machine.registers && b->through > q->t->machine.registers) {
        double aside =
            b->through - (b->live > q->t->machine.registers ? b->live : q->t->machine.registers);
        q->out->loads += entries * aside;
        q->out->stores += entries * aside;
        q->out->spills += entries * aside;
        q->out->issue += entries * aside * 2;
    }
    q->out->spills += times * spilt;
    instructions = b->fma + b->load * 0.5 + b->store + b->alu + 2;
    cycles = (b->fma + b->alu) / 2;
    cycles = fmax(cycles, load_cycles(&q->t->machine) * b->load + 0.5 * spilt);
    cycles = fmax(cycles, STORE * (b->store + spilt));
    cycles = fmax(cycles, instructions / WIDTH);
    cycles = is_carried(q, b) ? fmax(cycles, LATENCY * b->chain) : cycles;
    cycles += b->slow + SPILT * spilt; /* what was stored is waited for */
    q->out->issue += times * cycles;
    q->out->operations += times * (b->fma + b->alu);
    q->out->loads += times * (b->load + spilt);
    q->out->stores += times * (b->store + spilt);
}

static void open_part(Count *q, Node *range, double trips)
{
    if (q->depth == MAX_DEPTH)
        BUG("more loops than an estimate counts");
    double outside = q->depth ? q->times[q->depth - 1] : 1;
    q->range[q->depth] = range;
    q->trips[q->depth] = trips;
    q->times[q->depth] = outside * q->trips[q->depth];
    q->body[++q->depth] = (Body){.first = q->naccess};
}

static void open_loop(Count *q, Node *range)
{
    open_part(q, range, (double)range->hi + 1);
}

/* A loop, or some iterations of one. */
static void open_loop_of(Count *q, const Stmt *s)
{
    int64_t from, upto;
    const bool part = s->from && idx_value(s->from, &from) && idx_value(s->upto, &upto);
    open_part(q, s->node, part ? (double)(upto - from) : (double)s->node->hi + 1);
}

/* The iterations of the innermost loop, written out, are part of the loop around it: loads of the
 * same place become one. */
static void peel_loop(Count *q)
{
    Body *around = &q->body[q->depth - 1];
    const Body *b = &q->body[q->depth];
    const double trips = q->trips[q->depth - 1];
    double before = 0, after = 0;
    const int depth = --q->depth, into_nest = nest_of(q);
    for (int i = b->first; i < q->naccess; i++) {
        LoopAccess *x = &q->access[i];
        const double wide = x->lanes * fmax(1, x->bytes / 64);
        before += x->store ? 0 : wide * x->copies * trips;
        if (x->stride[depth] != 0)
            access_add_places(q->a, x, (int)x->copies, x->at, x->stride[depth], (int)trips);
        after += x->store ? 0 : wide * x->copies;
        x->depth = depth;
        x->nest = into_nest;
    }
    around->fma += trips * b->fma;
    around->alu += trips * b->alu;
    around->slow += trips * b->slow;
    around->store += trips * b->store;
    around->load += trips * b->load * (before > 0 ? after / before : 1);
    around->sum = b->sum ? b->sum : around->sum;
    around->chain = fmax(around->chain, trips * b->chain);
    around->live = fmax(around->live, b->live);
    around->through = fmax(around->through, b->through);
}

static void close_loop(Count *q)
{
    const Body *b = &q->body[q->depth];
    const double trips = q->trips[q->depth - 1];
    if (!b->loops && trips <= PEELED_TRIPS &&
        trips * (b->fma + b->load + b->store + b->alu) <= PEELED) {
        peel_loop(q);
        return;
    }
    end_body(q);
    q->body[--q->depth].loops = true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double footprint(const Count *q, const LoopAccess *x, int d)
{
    const double line = q->t->machine.line > 0 ? q->t->machine.line : 64;
    return access_footprint(x, d, q->nest[x->nest].trips, line);
}

/* How many loops, from the outermost, two accesses have in common. */
static int common_loops(const Loops *a, const Loops *b)
{
    int d = 0;
    while (d < a->depth && d < b->depth && a->range[d] == b->range[d])
        d++;
    return d;
}

/* Bytes that an iteration of the first d loops of a nest touches, by all accesses inside of them,
 * those of its other inner loops (a rest beside its vectors) too. */
static double touched_bytes(const Count *q, const Loops *n, int d)
{
    double all = 0;
    for (int i = 0; i < q->naccess; i++)
        if (common_loops(n, &q->nest[q->access[i].nest]) >= d)
            all += footprint(q, &q->access[i], d);
    return all;
}

/* One tile's accesses. */
static void add_traffic(Count *q)
{
    const Level *level = q->t->machine.level;
    double *traffic = q->out->traffic;
    for (int i = 0; i < 4 && level[i].bytes > 0; i++)
        for (int n = 0; n < q->nnest; n++) {
            const Loops *nest = &q->nest[n];
            int d = 0;
            while (d <= nest->depth && touched_bytes(q, nest, d) > FIT * level[i].bytes)
                d++;
            if (i && !d) /* there from the start */
                continue;
            d -= d > 0; /* line by line, as the loop around it goes on */
            double outside = 1;
            for (int e = 0; e < d; e++)
                outside *= nest->trips[e];
            for (int j = 0; j < q->naccess; j++)
                if (q->access[j].nest == n)
                    traffic[i] += outside * footprint(q, &q->access[j], d);
        }
}

/* ---- registers ------------------------------------------------------------------------------- */

typedef struct {
    int first, last; /* statements between which a name is live */
    int *touch, n;   /* those that make, change or use it, in order */
} LiveSpan;

/* What was stored to a place is read from there: it needs no register until then. */
static void use(const Count *q, LiveSpan *span, Node *n, int at, const int *loop_end)
{
    if (n->op == OP_AFTER)
        return;
    if (n->id < q->l->nknown && span[n->id].first >= 0) {
        /* used in a loop that began after it: to the end of the outermost such loop */
        int last = at;
        for (int i = span[n->id].first; i <= at; i++)
            last = loop_end[i] > last ? loop_end[i] : last;
        span[n->id].last = last > span[n->id].last ? last : span[n->id].last;
        vec_push(q->a, span[n->id].touch, span[n->id].n, at);
        return;
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        use(q, span, n->src[i], at, loop_end);
}

static bool touched(const LiveSpan *s, int from, int to)
{
    int low = 0, high = s->n;
    while (low < high) { /* the first at or behind `from` */
        int mid = (low + high) / 2;
        if (s->touch[mid] < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->n && s->touch[low] <= to;
}

/* How many registers the named vectors take at each statement, by whether its loop touches them. */
static void find_live(Count *q)
{
    const Linear *l = q->l;
    LiveSpan *span = NEWN(q->a, LiveSpan, l->nknown + 1);
    int *loop_end = NEWN(q->a, int, l->n + 1), *open = NEWN(q->a, int, l->n + 1), nopen = 0;
    int *begin = NEWN(q->a, int, l->n + 1),
        *end = NEWN(q->a, int, l->n + 1); /* of the loop around */
    q->live = NEWN(q->a, double, l->n + 1);
    q->through = NEWN(q->a, double, l->n + 1);
    for (uint32_t i = 0; i < l->nknown; i++)
        span[i].first = -1;
    for (int i = 0; i < l->n; i++) {
        begin[i] = nopen ? open[nopen - 1] : 0;
        if (l->stmt[i].kind == STMT_LOOP || l->stmt[i].kind == STMT_PARTS)
            open[nopen++] = i;
        if (l->stmt[i].kind == STMT_END && nopen)
            loop_end[open[--nopen]] = i;
    }
    for (int i = 0; i < l->n; i++)
        end[i] = loop_end[begin[i]] ? loop_end[begin[i]] : l->n;
    for (int i = 0; i < l->n; i++) {
        Node *n = l->stmt[i].node;
        StmtKind kind = l->stmt[i].kind;
        if (!n || kind == STMT_LOOP || kind == STMT_END)
            continue;
        for (uint32_t j = 0; kind != STMT_ACC && j < n->nsrc; j++)
            use(q, span, n->src[j], i, loop_end);
        if (n->id < l->nknown && l->vector[n->id]) {
            if ((kind == STMT_LET || kind == STMT_ACC) && span[n->id].first < 0) {
                span[n->id] = (LiveSpan){.first = i, .last = i};
                vec_push(q->a, span[n->id].touch, span[n->id].n, i);
            }
            if (kind == STMT_UPDATE)
                use(q, span, n, i, loop_end);
        }
    }
    for (uint32_t id = 0; id < l->nknown; id++)
        for (int i = span[id].first; i >= 0 && i <= span[id].last; i++) {
            double wide = registers_of(q, q->k->c->nodes[id]);
            q->through[i] += wide;
            if (touched(&span[id], begin[i], end[i]))
                q->live[i] += wide;
        }
}

/* A GPU's items have a loop each here: what they do together. */
static void count_tile(Count *q, const Kernel *k, const Linear *l)
{
    const Tile *tile = l->tile;
    int items = 0;
    q->l = l;
    q->depth = 0;
    q->naccess = q->nnest = 0;
    q->seen = NEWN(q->a, uint32_t, k->c->nnode + 4096);
    q->now = 0;
    q->body[0] = (Body){.first = 0};
    q->beside = 1;
    while (items < l->n && l->stmt[items].kind == STMT_ITEM)
        items++;
    for (int i = items; i-- > 0;) /* the innermost comes first */
        open_loop(q, l->stmt[i].node);
    if (items && q->t->machine.core_lanes)
        q->out->loops += q->t->machine.start * q->times[q->depth - 1];
    q->beside = results_beside(q);
    find_live(q);
    for (int i = items; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        q->now++;
        q->out->statements++;
        switch (s->kind) {
        case STMT_LOOP: open_loop_of(q, s); break;
        case STMT_PARTS: /* one loop, of several axes */
            for (int j = 0; j < tile->fused; j++)
                open_loop(q, tile->axis[tile->uncut + j].range);
            break;
        case STMT_END:
            for (int j = s->node ? 1 : tile->fused; j-- > 0;)
                close_loop(q);
            break;
        case STMT_PREFETCH:
            q->body[q->depth].load += 1;
            q->ahead = true;
            break;
        case STMT_ACC: q->body[q->depth].alu += 1; break;
        case STMT_LET: count_node(q, s->node, true); break;
        case STMT_UPDATE: count_update(q, s); break;
        case STMT_STORE:
            count_moved(q, s->node, &q->body[q->depth].store);
            add_access(q, s->node);
            for (uint32_t j = 1; j < s->node->nsrc; j++)
                count_node(q, s->node->src[j], false);
            break;
        default: break;
        }
        Body *now = &q->body[q->depth];
        /* what opens and closes a loop stands outside of it */
        bool inside = s->kind != STMT_END && s->kind != STMT_LOOP && s->kind != STMT_PARTS;
        if (inside && q->live[i] > now->live)
            now->live = q->live[i];
        if (inside && q->through[i] > now->through)
            now->through = q->through[i];
    }
    for (int i = 0; i < items; i++)
        close_loop(q);
    end_body(q);
    add_traffic(q);
}

Estimate cost_nest(const Kernel *k, const Target *t)
{
    Estimate e = {0};
    Arena *a = arena_new();
    const Lowered *lowered = kernel_lowered(k, t->gpu);
    Count *q = NEW(a, Count);
    *q = (Count){.k = lowered->tiles.k, .t = t, .out = &e, .a = a};
    q->access = NEWN(a, LoopAccess, MAX_ACCESSES);
    for (int i = 0; i < lowered->tiles.n; i++)
        count_tile(q, q->k, &lowered->linear[i]);
    double bytes = 0;
    for (int i = 0; i < 3 && t->machine.level[i].bytes > 0; i++) {
        bytes += e.traffic[i] * estimate_weights.byte[i];
        e.memory += (q->ahead ? ahead[i] : 1) * e.traffic[i] * estimate_weights.byte[i];
    }
    e.pieces = PIECE * lowered->tiles.n;
    const double most = fmax(e.issue, e.memory), least = e.issue + e.memory - most,
                 part = most > 0 ? least / most : 0;
    e.cycles = fmax(most * sqrt(sqrt(1 + part * part * part * part)), bytes) + e.loops + e.pieces;
    arena_free(a);
    return e;
}
