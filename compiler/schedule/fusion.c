/* fusion.c - together in one kernel, or apart?
 *
 * Two passes ask it.  fuse.c: is a value computed by its readers, or by a kernel of its own that
 * stores it?  merge.c: are two kernels that store different values one?  They are answered alike:
 *
 *     1. may it be?  Each pass knows what its kind of fusion forbids (of values must_store()); what
 *        one kernel may hold is the same (region_fits()).
 *     2. what does the plan's file say of it (decisions.c), and what the preset?
 *     3. what takes more time: what being apart costs beyond being together, or the other way
 *        round?  In cycles, of the regions of region.c: what only one of the two ways has.
 *
 * and the answer goes into the same record, which a file may change.  concat_in_place.c asks the
 * first two alone: to lie in a concat takes no time. */
#include <math.h>
#include <string.h>

#include "fusion.h"

Said fusion_wanted(const Plan *p, Said file)
{
    static const Said preset[] = {[PRESET_AUTO] = UNSAID, [PRESET_NONE] = NO, [PRESET_ALL] = YES};
    return file ? file : preset[values_preset(p)];
}

bool fusion_pays(const Fusion *f)
{
    return f->together <= f->apart;
}

/* A sum, or what is made of one in the same kernel, that is compared with what is made of it: the
 * places of a maximum, the gradient that goes to them. Computed twice, in loops of another order,
 * it would not be equal to itself. */
static bool is_matched(Sched *s, Node *n, Node *const *uses)
{
    enum { MOST = 64 };
    Node *view[MOST] = {n};
    int nview = 1;
    for (int v = 0; v < nview; v++) {
        const Info *i = info_of(s, view[v]);
        for (int u = 0; u < i->nuse; u++) {
            Node *t = uses[i->iuse + u];
            const bool compares = t->op >= OP_EQ && t->op <= OP_LE;
            if (compares && is_made_of(s, t->src[t->src[0] == view[v]], n, uses, false))
                return true;
            if (is_move(t) && t->src[0] == view[v] && nview < MOST)
                view[nview++] = t;
        }
    }
    return false;
}

/* What no preset and no file can change. */
const char *must_store(Sched *s, Node *n, Node *const *uses)
{
    const Info *i = info_of(s, n);
    if (i->root)
        return "the caller or a step that is no kernel reads it";
    switch (n->op) {
    case OP_CONCAT: return "its parts are written into it";
    case OP_UPDATE: return "it is written in place";
    case OP_KEEP: return i->in_rows ? NULL : "it is to be kept apart";
    case OP_COPY: return "it is brought to another device";
    case OP_COLLECTIVE: return "it is made of what all processes have";
    case OP_SCAN: return "each element continues the one before it";
    case OP_CALL:
    case OP_LOOP:
    case OP_IF: return "it is a step of its own";
    default: break;
    }
    for (int u = 0; u < i->nuse && i->has_reduce; u++)
        if (uses[i->iuse + u]->op == OP_SCAN)
            return "a reduce in loops that run in order";
    if (i->has_reduce && dtype_is_float(n->dtype) && is_matched(s, n, uses))
        return "it is compared with what is made of it: there is one rounding";
    return NULL;
}

/* ---- a value and its readers ----------------------------------------------------------------- */

enum { WALKED = 8 }; /* results for which a group has an element, at least, if there are so many */

/* How often each element is computed in the readers. */
static double times_computed(const Readers *r)
{
    if (!r->walked)
        return r->times;
    return r->times > WALKED * r->kernels ? r->times / WALKED : r->kernels;
}

/* What an item of a GPU takes that computes n for each term of its reader's reduce, one after the
 * other: 0 where items share the terms, or are lanes of a processor. */
static double time_in_turn(const Node *n, const RegionWork *own, const Readers *r, const Machine *m)
{
    if (r->rows || r->walked || m->core_lanes || !m->processors)
        return 0;
    const double items = (double)m->processors * m->quarters * m->warp; /* that share the rates */
    double time = 0;
    for (int u = 0; u < UNITS; u++)
        time += own->ops[u] * items / m->rate[UNIT_VECTOR];
    return r->terms * time / fmax(1, node_elements(n));
}

/* Storing takes a kernel, a write, and a read by every reader; computing it in its readers takes
 * its operations as often as they read it. Where it takes the place of what dies there, it is no
 * matter of memory, but of time alone: then it counts, too, that products take an operand from
 * memory as it is, spread over the lanes, and one that is computed has to be spread. */
bool fusion_of_value(Sched *s, Node *n, Node *const *uses, const Readers *readers, Fusion *f)
{
    const Target *t = s->target;
    double bytes = node_bytes(n), kernels = readers->kernels;
    RegionWork apart = region_of(s, n), inlined = apart;
    inlined.ops[UNIT_VECTOR] += apart.cases; /* its readers need not have its loops */
    if (info_of(s, n)->has_reduce && (readers->rows || readers->reduced)) { /* no tile there */
        inlined.ops[UNIT_SCALAR] += inlined.ops[UNIT_TILE] + inlined.ops[UNIT_MATRIX];
        inlined.ops[UNIT_TILE] = inlined.ops[UNIT_MATRIX] = 0;
    }
    if (info_of(s, n)->has_reduce && readers->reduced && !readers->rows) { /* and no lanes */
        inlined.ops[UNIT_SCALAR] += inlined.ops[UNIT_VECTOR];
        inlined.ops[UNIT_VECTOR] = 0;
    }
    double memory = kernels * cost_bytes(apart.bytes, apart.bytes, t),
           arithmetic = times_computed(readers) * cost_ops(&inlined, t);
    if (t->gpu && info_of(s, n)->has_reduce)
        arithmetic = fmax(arithmetic, time_in_turn(n, &apart, readers, &t->machine));
    bool in_place = takes_place(s, n, uses);
    if (in_place && t->machine.lanes && !info_of(s, n)->has_reduce && readers->reduced &&
        arithmetic > 0)
        arithmetic += readers->times * node_elements(n) / t->machine.rate[UNIT_VECTOR];
    double written = in_place ? cost_bytes(bytes, bytes, t) : cost_stored(n, t);
    double store = cost_region(&apart, t) + written + kernels * cost_bytes(bytes, bytes, t);
    if (coord_ops(s, n)) /* operations so few that the loads count */
        store += cost_bytes(readers->times * bytes, bytes, t);
    *f = (Fusion){.apart = store, .together = memory > arithmetic ? memory : arithmetic};
    return arithmetic <= 0 || fusion_pays(f);
}

/* Sums of products that a GPU's groups divide among them: a kernel has one such sum, and no other
 * reduce. */
bool is_for_groups(Sched *s, Node *n)
{
    enum { LEAST = 1 << 10 }; /* operations */
    return s->target->gpu && info_of(s, n)->has_reduce && region_of(s, n).ops[UNIT_TILE] >= LEAST;
}

/* A sum of products that meets another reduce in its reader: there it is no tile for registers, and
 * of two such sums a matrix unit takes neither. Or what is chosen by a coordinate: each element of
 * a tile computes all that it might be. */
bool fusion_of_company(Sched *s, Node *n, Node *reader, Fusion *f)
{
    Info *i = info_of(s, n);
    const bool units = s->target->machine.units != 0;
    RegionWork own = region_of(s, n), together = region_of(s, reader);
    double least = own.ops[UNIT_TILE]; /* operations of one of them */
    bool company = false;
    for (uint32_t j = 0; j < reader->nsrc && op_is_alu(reader->op); j++) {
        Node *o = reader->src[j];
        const bool other = o != n && o->dtype != INGOT_INDEX && is_computed(s, o);
        if (other && info_of(s, o)->has_reduce) {
            company |= info_of(s, o)->order < i->order;
            if (units && is_for_groups(s, o))
                least = fmin(least, region_of(s, o).ops[UNIT_TILE]);
        } else if (other)
            company |= region_of(s, o).cases > 0;
    }
    if (!company || are_vector_sums(s, n, reader) || are_sums_beside(s, n, reader))
        return true;
    /* sums of their own, and not one that both are made of */
    if (is_for_groups(s, n) && together.ops[UNIT_TILE] >= own.ops[UNIT_TILE] + least / 2)
        return false;
    i->stored = true;
    RegionWork apart = region_of(s, reader);
    i->stored = false;
    const Target *t = s->target;
    *f = (Fusion){.apart = cost_region(&own, t) + cost_stored(n, t) + cost_region(&apart, t),
                  .together = cost_region(&together, t)};
    return fusion_pays(f);
}

/* ---- two kernels ----------------------------------------------------------------------------- */

/* What both kernels compute. */
RegionWork region_of_steps(Sched *s, Arena *a, const Step *into, const Step *from)
{
    Stored *all = NEWN(a, Stored, into->nstored + from->nstored);
    memcpy(all, into->stored, (size_t)into->nstored * sizeof *all);
    memcpy(all + into->nstored, from->stored, (size_t)from->nstored * sizeof *all);
    return region_of_all(s, into->nstored + from->nstored, all);
}

/* Where a matrix unit takes the products of one of them, but not those of both. */
static double products_time(const RegionWork *r, const Target *t)
{
    return r->units ? r->ops[UNIT_TILE] / t->machine.rate[UNIT_TILE] +
                          r->ops[UNIT_MATRIX] / t->machine.rate[UNIT_MATRIX]
                    : 0;
}

/* One kernel launches once and reads once what both read.  Where others run between the two, what
 * the later one makes lies in memory meanwhile: it is fetched from the level that holds what those
 * touch too, and the arena may grow. */
Fusion fusion_of_steps(Sched *s, Arena *a, const Block *b, int i, int j, const RegionWork *both)
{
    const Target *t = s->target;
    const Step *first = b->step[i], *second = b->step[j];
    RegionWork into = region_of_all(s, first->nstored, first->stored),
               from = region_of_all(s, second->nstored, second->stored);
    double twice = into.bytes + from.bytes - both->bytes;
    double gain = t->machine.launch + cost_bytes(twice, both->bytes, t);
    double made = 0, taken = 0, between = 0;
    for (int k = 0; k < second->nbuf; k++) {
        const Buffer *x = second->bufs[k];
        double bytes = second->kernel->args[k].written ? (double)x->bytes : 0;
        made += bytes;
        taken += buffer_root(x)->kind == BUF_ARENA ? bytes : 0;
    }
    for (int k = i + 1; k < j; k++)
        between += b->step[k]->kernel ? (double)b->step[k]->kernel->bytes : 0;
    double later = cost_bytes(made, made + between, t) - cost_bytes(made, made, t);
    double slower = products_time(both, t) - products_time(&into, t) - products_time(&from, t);
    double more = 0;
    if (t->machine.byte > 0) {
        const Lives lives = lives_of(a, s->plan, b);
        more = arena_growth(&lives, (Life){i, j - 1}, taken);
    }
    return (Fusion){.apart = gain, .together = later + more * t->machine.byte + slower};
}
