/* place_devices.c - which device computes which value, and what is copied from one to another.
 *
 * A target may have devices beside the first, each with a memory of its own: an accelerator that
 * computes some ops. Here device 1 has no exp:
 *
 *     before      x - matmul - add - exp - y
 *     devices     0   1        1     0
 *     after       x - COPY 1 - matmul - add - COPY 0 - exp - y
 *
 * Nodes that a device can compute, and that read each other, are a region. It goes there as a whole
 * if it takes less time there, copies included; else it stays on device 0. At its edges what is
 * smaller is copied:
 *
 *     a movement that makes more of what it reads (EXPAND) is left to the side that reads it
 *     a movement that makes less of it (SHRINK) is left to the side that it reads from
 *
 * Constants have no device: each that reads one has it (rangeify.c). Inputs, outputs, states,
 * library kernels, loops and branches are the first one's. Where the graph has copies already
 * (rewrite/shards.c), they say which device computes what. What a .sched file says of a value
 * (`device 1`) counts before all that, and what was decided of each value that had a choice is
 * recorded.
 *
 * Requires the graph as it will be scheduled, variants included. Leaves COPY nodes between devices,
 * and no other edge from one to another. */
#include <math.h>
#include <string.h>

#include "decisions.h"
#include "plan_schedule.h"
#include "rewrite.h"

enum { NO_DEVICE = -1 }; /* constants, sizes */

typedef struct {
    Plan *p;
    const Target *t;
    Arena *a;
    Node **node; /* of the graph, sources first; bodies of loops are not among them */
    int n;
    /* by id */
    uint32_t nnode;
    int *device;
    bool *fixed;        /* a file says which */
    bool *choice;       /* there is more than one that can */
    bool *read_outside; /* the caller reads it */
    bool *captured;     /* so does a body, by the node itself: there it is what is brought back */
    bool given;         /* the graph has copies already: it says which device computes what */
    /* of the region that is looked at, by id */
    int *region;
} Placing;

/* ---- what may be anywhere -------------------------------------------------------------------- */

static bool is_leaf_of_data(const Node *n)
{
    return n->op == OP_INPUT || n->op == OP_STATE || n->op == OP_PARAM;
}

/* Made of numbers and data of the file alone. */
static bool is_free(const Placing *q, const Node *n)
{
    if (n->dtype == INGOT_INDEX)
        return true;
    if (op_info[n->op].cls == LEAF)
        return !is_leaf_of_data(n);
    if (op_info[n->op].cls == CONTROL || n->op == OP_UPDATE)
        return false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (q->device[n->src[i]->id] != NO_DEVICE)
            return false;
    return true;
}

/* Can this device compute it? */
static bool can_compute(const Placing *q, int device, const Node *n)
{
    const OpClass cls = (OpClass)op_info[n->op].cls;
    const bool kernel = (op_is_alu(n->op) && n->op != OP_CUSTOM) || cls == REDUCE || cls == MOVE;
    const Target *t = target_device(q->t, device);
    return !device || (kernel && (!t->computes || t->computes(n)));
}

/* Device 0 for all that is data, what a file says, and who has a choice. False after a fault of the
 * file. */
static bool begin(Placing *q)
{
    for (int i = 0; i < q->n; i++) {
        Node *n = q->node[i];
        for (uint32_t j = 0; (n->op == OP_LOOP || n->op == OP_IF) && j < n->nsrc; j++)
            q->captured[n->src[j]->id] = true;
    }
    for (int i = 0; i < q->n; i++) {
        Node *n = q->node[i];
        const uint32_t id = n->id;
        q->device[id] = is_free(q, n) ? NO_DEVICE : 0;
        if (q->given) {
            q->device[id] = q->device[id] ? NO_DEVICE : device_by_graph(q->p->c, n, q->device);
            continue;
        }
        for (int d = 1; d < q->p->ndevice && !q->device[id]; d++)
            q->choice[id] |= can_compute(q, d, n);
        const ValueChoice *given = q->device[id] ? NULL : value_given(q->p, n);
        if (!given || !given->placed)
            continue;
        if (!can_compute(q, given->device, n)) {
            sched_error(q->p, given->line, "device %d (%s) cannot compute this value (%s)",
                        given->device, target_device(q->t, given->device)->name,
                        op_info[n->op].text);
            return false;
        }
        q->device[id] = given->device;
        q->fixed[id] = true;
    }
    return true;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int region_root(const Placing *q, int id)
{
    while (q->region[id] != id)
        id = q->region[id];
    return id;
}

/* Regions of what may go to a device and stands nowhere else yet: ids of their first nodes; -1: in
 * none. */
static void find_regions(Placing *q, int device)
{
    for (int i = 0; i < q->n; i++) {
        const Node *n = q->node[i];
        const bool may = q->choice[n->id] && can_compute(q, device, n) &&
                         (q->fixed[n->id] ? q->device[n->id] == device : !q->device[n->id]);
        q->region[n->id] = may ? (int)n->id : -1;
        for (uint32_t j = 0; may && j < n->nsrc; j++)
            if (q->region[n->src[j]->id] >= 0)
                q->region[region_root(q, (int)n->src[j]->id)] = (int)n->id;
    }
    for (int i = 0; i < q->n; i++)
        if (q->region[q->node[i]->id] >= 0)
            q->region[q->node[i]->id] = region_root(q, (int)q->node[i]->id);
}

static bool moves_all(const Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_GATHER;
}

/* Movement at an edge belongs to the side where less is copied. */
static void trim_regions(Placing *q)
{
    bool *inside = NEWN(q->a, bool, q->nnode + 1); /* some node of its region reads it */
    for (int i = q->n; i-- > 0;) {
        const Node *n = q->node[i];
        int *region = &q->region[n->id];
        if (*region >= 0 && !inside[n->id] && moves_all(n) && !q->fixed[n->id] &&
            node_bytes((Node *)n) > node_bytes(n->src[0]))
            *region = -1;
        for (uint32_t j = 0; *region >= 0 && j < n->nsrc; j++)
            inside[n->src[j]->id] = true;
    }
    for (int i = 0; i < q->n; i++) {
        const Node *n = q->node[i];
        if (q->region[n->id] >= 0 && moves_all(n) && !q->fixed[n->id] &&
            q->region[n->src[0]->id] < 0 && node_bytes((Node *)n) < node_bytes(n->src[0]))
            q->region[n->id] = -1;
    }
}

/* Time of a region on the first device, and on another one; bytes and number of its copies. */
typedef struct {
    double here, there, bytes;
    int copies;
} RegionTime;

static double time_of(const Machine *m, Node *n, bool summed)
{
    const bool sum = op_info[n->op].cls == REDUCE;
    const double elements = node_elements(sum ? n->src[0] : n),
                 cost = sum ? 1 : op_info[n->op].cost,
                 rate =
                     m->rate[summed || (sum && n->src[0]->op == OP_MUL) ? UNIT_TILE : UNIT_VECTOR];
    return cost * elements > 0 ? cost * elements / rate : 0;
}

static void add_copy_of(RegionTime *t, Node *n)
{
    t->bytes += node_bytes(n);
    t->copies++;
}

/* By id of a region's node. What is read there, and what is read of it elsewhere, is copied once.
 */
static RegionTime *time_regions(const Placing *q, int device)
{
    const Machine *host = &q->t->machine, *m = &target_device(q->t, device)->machine;
    RegionTime *time = NEWN(q->a, RegionTime, q->nnode + 1);
    int *copied = NEWN(q->a, int, q->nnode + 1); /* 1 + the last region that reads it */
    bool *summed = NEWN(q->a, bool, q->nnode + 1), *leaves = NEWN(q->a, bool, q->nnode + 1);
    for (int i = 0; i < q->n; i++) {
        const Node *n = q->node[i];
        const int region = q->region[n->id];
        if (op_info[n->op].cls == REDUCE && n->src[0]->op == OP_MUL)
            summed[n->src[0]->id] = true;
        for (uint32_t j = 0; j < n->nsrc; j++) {
            Node *x = n->src[j];
            leaves[x->id] |= q->region[x->id] >= 0 && region != q->region[x->id];
            if (region < 0 || q->device[x->id] == NO_DEVICE || q->region[x->id] == region ||
                copied[x->id] == region + 1)
                continue;
            copied[x->id] = region + 1;
            add_copy_of(&time[region], x);
        }
    }
    for (int i = 0; i < q->n; i++) {
        Node *n = q->node[i];
        const int region = q->region[n->id];
        if (region < 0)
            continue;
        time[region].here += time_of(host, n, summed[n->id]);
        time[region].there += time_of(m, n, summed[n->id]);
        if (leaves[n->id] || q->read_outside[n->id])
            add_copy_of(&time[region], n);
    }
    return time;
}

static void take_regions(Placing *q, int device)
{
    const Machine *m = &target_device(q->t, device)->machine;
    find_regions(q, device);
    trim_regions(q);
    const RegionTime *time = time_regions(q, device);
    for (int i = 0; i < q->n; i++) {
        const uint32_t id = q->node[i]->id;
        const RegionTime *r = q->region[id] >= 0 ? &time[q->region[id]] : NULL;
        if (!r || q->fixed[id])
            continue;
        const double copies = r->bytes / m->link + r->copies * m->launch;
        if (r->there + copies < r->here)
            q->device[id] = device;
    }
}

/* Of what may be anywhere, but where a file says otherwise. */
static void layers_on(Placing *q)
{
    bool *may = NEWN(q->a, bool, q->nnode + 1);
    for (int i = 0; i < q->n; i++)
        may[q->node[i]->id] = q->choice[q->node[i]->id] && !q->fixed[q->node[i]->id];
    place_layers(q->a, q->t, q->nnode, q->n, q->node, may, q->p->ndevice, q->device);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Where readers find a value: all of them, but for those that have it anyway. */
static int lies_on(const Placing *q, const Node *n)
{
    return q->captured[n->id] && q->device[n->id] > 0 ? 0 : q->device[n->id];
}

/* With copies of the sources that another device has. */
static Node *renew_across(Rewrite *r, Node *t)
{
    const Placing *q = r->user;
    bool crosses = false;
    const int device = q->device[t->id];
    for (uint32_t i = 0; i < t->nsrc && device != NO_DEVICE && t->op != OP_COPY; i++) {
        const int from = lies_on(q, t->src[i]);
        crosses |= from != NO_DEVICE && from != device;
    }
    if (!crosses)
        return NULL;
    Node **src = NEWN(r->a, Node *, t->nsrc);
    for (uint32_t i = 0; i < t->nsrc; i++) {
        const int from = lies_on(q, t->src[i]);
        src[i] = rewritten(r, t->src[i]);
        if (from == NO_DEVICE || from == device)
            continue;
        const bool back = q->device[t->src[i]->id] == device; /* where it came from */
        src[i] = back ? src[i]->src[0] : device_copy(r->c, src[i], device);
    }
    return node_make(r->c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, t->rank,
                     t->shape);
}

/* Of what a body reads. */
static Node *bring_captured(Rewrite *r, Node *now)
{
    const Placing *q = r->user;
    const uint32_t id = r->visiting->id;
    return id < q->nnode && q->captured[id] && q->device[id] > 0 ? device_copy(r->c, now, 0) : now;
}

/* The caller's are of device 0, and so are states but for parts. */
static Node *brought_back(const Placing *q, Context *c, Node *now, const Node *was, int to)
{
    if (!was || lies_on(q, was) == NO_DEVICE || lies_on(q, was) == to)
        return now;
    c->at = c->origins[was->id];
    return device_copy(c, now, to);
}

static void insert_copies(Placing *q)
{
    Context *c = q->p->c;
    const OriginList *at = c->at;
    Node **was = NEWN(q->a, Node *, c->noutput + c->nstate + 1);
    for (int i = 0; i < c->noutput + c->nstate; i++)
        was[i] = i < c->noutput ? c->outputs[i].node : c->states[i - c->noutput].next;
    Rewrite r = {.c = c, .a = q->a, .renew = renew_across, .apply = bring_captured, .user = q};
    (void)rewrite_pass(&r);
    for (int i = 0; i < c->noutput; i++)
        c->outputs[i].node = brought_back(q, c, c->outputs[i].node, was[i], 0);
    for (int i = 0; i < c->nstate; i++)
        c->states[i].next =
            brought_back(q, c, c->states[i].next, was[c->noutput + i], c->states[i].device);
    c->at = at;
    if (q->p->values)
        values_follow(q->p, r.nnode, r.now, NEWN(q->a, Node *, c->nnode + 1),
                      NEWN(q->a, const char *, c->nnode + 1));
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void record_placed(const Placing *q)
{
    for (int i = 0; i < q->n && q->p->values; i++) {
        Node *n = q->node[i];
        if (!q->choice[n->id])
            continue;
        ValueChoice *c = value_record(q->p, n);
        c->placed = true;
        c->device = q->device[n->id];
    }
}

/* Does it say itself what is where? */
static bool is_given(const Placing *q)
{
    for (int i = 0; i < q->n; i++)
        if (q->node[i]->op == OP_COPY)
            return true;
    return false;
}

bool place_on_devices(Plan *p, const Target *t, bool layers, GraphRoots *keep)
{
    Context *c = p->c;
    if (p->ndevice < 2)
        return true;
    if (!keep->node)
        *keep = roots_keep(c, p->arena);
    collectives(c, t);
    Placing q = {.p = p, .t = t, .a = arena_new(), .nnode = c->nnode};
    int nroot;
    Node **roots = rewrite_roots(c, q.a, &nroot);
    q.node = graph_toposort(q.a, nroot, roots, &q.n);
    q.device = NEWN(q.a, int, c->nnode + 1);
    q.fixed = NEWN(q.a, bool, c->nnode + 1);
    q.choice = NEWN(q.a, bool, c->nnode + 1);
    q.read_outside = NEWN(q.a, bool, c->nnode + 1);
    q.captured = NEWN(q.a, bool, c->nnode + 1);
    q.region = NEWN(q.a, int, c->nnode + 1);
    for (int i = 0; i < nroot; i++)
        q.read_outside[roots[i]->id] = true;
    for (uint32_t i = 0; i < c->nnode; i++)
        q.region[i] = -1;
    q.given = is_given(&q);
    const bool good = begin(&q);
    if (layers && good)
        layers_on(&q);
    for (int device = 1; device < p->ndevice && good && !t->peers; device++)
        take_regions(&q, device);
    if (good) {
        record_placed(&q);
        insert_copies(&q);
    }
    arena_free(q.a);
    return good;
}
