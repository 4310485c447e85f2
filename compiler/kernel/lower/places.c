/* places.c - what the loops inside of an axis read of an argument, in a place of its own (STAGE).
 *
 * A place stands between a load and its buffer: loops over what the axes inside of the STAGE's
 * cover fill it, in the order in which the loops then read it.
 *
 *     LOAD(AFTER(place, END(STORE(place, value), ranges)), at)
 *
 * linearize() sees that the loops that fill run where all that their addresses depend on is
 * known. */
#include <stdlib.h>
#include <string.h>

#include "igrt.h"
#include "lower.h"

/* ---- what all kinds of places share ---------------------------------------------------------- */

static Node *place_buffer(Lower *q, int number, int dtype)
{
    Arg arg = {.i = q->nest->k->narg + number};
    return node_make(q->c, OP_BUFFER, dtype, arg, 0, NULL, 0, NULL);
}

Node *place_store(Lower *q, int number, Node *gate, Node *value, Node *at)
{
    Node *src[] = {place_buffer(q, number, value->dtype), gate, value, at};
    return node_make(q->c, OP_STORE, value->dtype, (Arg){0}, 4, src, 0, NULL);
}

Node *place_fill(Lower *q, Node **fill, int nfill)
{
    return node_make(q->c, OP_END, INGOT_BOOL, (Arg){0}, nfill, fill, 0, NULL);
}

/* The place, filled by these loops. */
static Node *place_after(Lower *q, int number, Node **end, int nend)
{
    Node **src = NEWN(q->a, Node *, nend + 1), *const *store = end[0]->src;
    while ((*store)->src[0]->arg.i != q->nest->k->narg + number)
        store++;
    *src = place_buffer(q, number, (*store)->dtype);
    memcpy((void *)(src + 1), (void *)end, (size_t)nend * sizeof *end);
    return node_make(q->c, OP_AFTER, (*store)->dtype, (*src)->arg, nend + 1, src, 0, NULL);
}

Node *place_store_after(Lower *q, int number, Node *first, Node *value, Node *at)
{
    Node *src[] = {place_after(q, number, &first, 1), node_bool(q->c, true), value, at};
    return node_make(q->c, OP_STORE, value->dtype, (Arg){0}, 4, src, 0, NULL);
}

Node *place_load(Lower *q, int number, Node **end, int nend, Node *at)
{
    Node *place = place_after(q, number, end, nend);
    return node_make(q->c, OP_LOAD, place->dtype, (Arg){0}, 3,
                     (Node *[]){place, node_bool(q->c, true), at}, 0, NULL);
}

static void add_place(Lower *q, Kernel *k, ingot_dtype dtype, int64_t elements)
{
    Node **dim = NEWN(q->a, Node *, 1);
    *dim = idx(q->c, elements);
    k->args[k->narg++] = (KernelArg){
        .dtype = dtype, .rank = 1, .dims = dim, .read = true, .written = true, .early = true};
}

/* The places become arguments of the kernel that is lowered, behind its own. */
void add_places(Lower *q, Tiles *out)
{
    enum { OWN = 3 }; /* what a unit keeps of operands, sums of a cluster, tokens */
    Kernel *k = out->k;
    const int n = k->narg;
    KernelArg *args = NEWN(q->a, KernelArg, n + q->nest->nstage + q->nstaged + OWN);
    memcpy(args, k->args, (size_t)n * sizeof *args);
    k->args = args;
    for (int i = 0; i < q->nest->nstage; i++)
        add_place(q, k, stage_dtype(q->nest, i), q->place[i]);
    for (int i = 0; i < q->nstaged; i++) {
        add_place(q, k, (ingot_dtype)q->staged[i].value->dtype, q->staged[i].elements);
        k->args[k->narg - 1].ranks = q->staged[i].ranks;
    }
    const Tile t = out->n ? out->tile[0] : (Tile){0};
    const int rests = k->narg;
    if (tc_rests(t.tc))
        add_place(q, k, t.tc->b, sat_mul(tc_rests(t.tc), t.items / t.tc->lanes));
    const int joined = k->narg;
    if (t.cluster) {
        add_place(q, k, INGOT_F32, sat_mul(t.cluster->hi, sat_mul(t.share, t.items)));
    }
    const int tokens = k->narg;
    if (t.box)
        add_place(q, k, INGOT_U64, (int64_t)2 * t.depth + (tile_rows_in_place(&t) || t.stay));
    for (int i = 0; i < out->n; i++) {
        out->tile[i].rests = rests;
        out->tile[i].joined = joined;
        out->tile[i].tokens = tokens;
    }
}

int64_t place_offset(const Kernel *k, int narg, int arg)
{
    int64_t at = 0;
    for (int i = narg; i < arg; i++)
        at = sat_add(at, (sat_mul(k->args[i].dims[0]->hi, dtype_info[k->args[i].dtype].bytes) +
                          IGRT_ALIGN - 1) /
                             IGRT_ALIGN * IGRT_ALIGN);
    return at;
}

int64_t places_in_words(const Kernel *k, int narg, int word)
{
    int64_t bytes = 0;
    for (int i = narg; i < k->narg; i++) {
        const int each = dtype_info[k->args[i].dtype].bytes;
        bytes = sat_add(bytes, sat_mul(k->args[i].dims[0]->hi, each < word ? word : each));
    }
    return bytes;
}

bool places_are_local(int64_t bytes, const Target *t)
{
    enum { STACK = 1 << 14 }; /* of any thread of an operating system */
    return t->gpu || (!t->bare && bytes <= STACK);
}

int64_t kernel_scratch(const Kernel *k)
{
    bool staged = false;
    for (int i = 0; i < k->nopt; i++)
        staged |= k->opts[i].kind == OPT_STAGE || k->opts[i].kind == OPT_TC ||
                  k->opts[i].kind == OPT_PARTIAL;
    for (int i = 0; i < k->naxis; i++)
        staged |= k->axes[i].staged;
    if (!staged)
        return 0;
    Tiles t = kernel_lower(k);
    int64_t bytes = place_offset(t.k, k->narg, t.k->narg);
    tiles_free(&t);
    return bytes;
}

/* ---- STAGE of an argument -------------------------------------------------------------------- */

/* Do the lanes of this loop nest read neighbours? */
static bool in_neighbours(const Lower *q, const Piece *p, Node *load)
{
    int64_t stride;
    for (int i = 0; i < q->nest->naxis && p->t.lane; i++) {
        Node *range = q->k->axes[q->nest->axis[i].root].range;
        if (p->at[i] == p->t.lane && depends_on(load, range))
            return access_stride(q->k, load, range, &stride) && stride == 1;
    }
    return true;
}

/* Is the argument worth a place in this loop nest? Not where no loop reads the same again, as in
 * those of a few rows, unless only a place has it in lanes. */
bool place_wanted(const Lower *q, const Piece *p, const Stage *s)
{
    const Nest *n = q->nest;
    Node *load = only_load(q->a, q->end, s->arg);
    if (load && !in_neighbours(q, p, load))
        return true;
    for (int i = nest_position(n, s->axis) + 1; load && i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        Node *at = p->at[n->order[i]];
        if (!x->reduced && at && at->op == OP_RANGE && !depends_on(load, q->k->axes[x->root].range))
            return true;
    }
    return false;
}

/* How the axes of a place follow each other: loops in their order, then copies, then lanes, or the
 * terms of a dot. */
static int rank_in_place(const Lower *q, const Piece *p, int axis)
{
    int at = nest_position(q->nest, axis);
    return p->at[axis] == p->t.lane || p->at[axis] == p->t.four ? 2 * q->nest->naxis
           : at < q->nest->norder                               ? at
                                                                : q->nest->naxis;
}

int64_t place_extent(const Lower *q, const Piece *p, int axis)
{
    if (q->nest->axis[axis].row)
        return q->nest->axis[axis].extent;
    if (p->at[axis] == p->t.lane)
        return p->t.lanes;
    if (p->at[axis]->op == OP_RANGE)
        return p->at[axis]->hi + 1;
    for (int i = 0; i < p->ncopies; i++)
        if (p->copies[i].axis == axis)
            return p->copies[i].n;
    for (int i = 0; i < q->nest->nsplit; i++)
        if (q->nest->split[i].inner == axis && q->nest->split[i].kind == OPT_UNROLL)
            return q->nest->split[i].amount;
    return 1;
}

/* A range of the loops that fill a place, in place of one of the nest's. */
static Node *fill_range(Lower *q, Piece *p, int stage, int axis, int64_t size)
{
    Node **fresh = &p->filled[stage][axis];
    if (!*fresh) {
        TileAxis x = {.name = arena_printf(q->a, "%s.s%d", q->nest->axis[axis].name, stage)};
        x.range = *fresh = range_new(q->c, p->next++, idx(q->c, size));
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    }
    return *fresh;
}

/* Lanes that do not lie side by side, of a loop that does: blocks of it, as many neighbours as
 * there are lanes, are loaded as rows and transposed in registers (join_loads.c).  Gives the loop's
 * range, or NULL: element by element. */
static Node *neighbours_of(Lower *q, const Piece *p, Node *load, const int *leaf, int n)
{
    int64_t stride, size;
    if (!p->t.lane || !node_is_const_i(load->src[1], 1) ||
        !access_stride(q->k, load, p->t.lane, &stride) || llabs(stride) < 2)
        return NULL;
    for (int i = 0; i < n; i++) {
        Node *x = p->at[leaf[i]];
        if (x != p->t.lane && x->op == OP_RANGE && idx_value(x->src[0], &size) && size > 1 &&
            access_stride(q->k, load, x, &stride) && stride == 1)
            return x;
    }
    return NULL;
}

Node *filling_load(Lower *q, Piece *p, Node *n, const int *leaf, Node *const *as, int nleaf)
{
    Env env = env_new(q, NULL);
    Node **own = NEWN(q->a, Node *, nleaf + 1);
    for (int i = 0; i < nleaf; i++) {
        own[i] = p->at[leaf[i]];
        p->at[leaf[i]] = as[i];
    }
    for (int i = 0; i < q->k->naxis; i++)
        if ((p->at[i] || p->sum[i].split) && depends_on(n, q->k->axes[i].range))
            env.value[i] = lower_index(q, p, i);
    env_ready(q, &env);
    q->filling = true;
    Node *load = lower_node(q, p, n, &env);
    q->filling = false;
    for (int i = 0; i < nleaf; i++)
        p->at[leaf[i]] = own[i];
    return load;
}

/* What loops fill a place, whose elements lie at `at` and are filled at `fill`. */
typedef struct {
    Node *to[64], *at, *fill, *loop[64];
    int nloop;
    int64_t elements;
} PlaceWalk;

static void walk_axis(PlaceWalk *w, Lower *q, Node *at, Node *as, int64_t size)
{
    w->at = idx_add(q->c, idx_mul(q->c, at, idx(q->c, w->elements)), w->at);
    w->fill = idx_add(q->c, idx_mul(q->c, as, idx(q->c, w->elements)), w->fill);
    w->elements = sat_mul(w->elements, size);
}

static Node *filled_place(Lower *q, int stage, PlaceWalk *w, Node **end, int64_t columns)
{
    q->place[stage] = w->elements > q->place[stage] ? w->elements : q->place[stage];
    for (int i = 0; i < w->nloop; i++)
        end[columns + i] = w->loop[w->nloop - 1 - i];
    Node *filled = place_fill(q, end, (int)columns + w->nloop);
    return place_load(q, stage, &filled, 1, w->at);
}

/* What a dot reads four by four lies in its place as 16 bits: widened once, for all that read it
 * there. Copies are loops of what fills it, for they fill the same.
 *
 *     for r, copy: four stores      igrt_widen_i8x4(place + .., a2 + ..)
 */
static Node *load_wide(Lower *q, Piece *p, int stage, Node *n, const int *leaf, int kept)
{
    enum { FOUR = 4 };
    PlaceWalk w = {.at = idx(q->c, 0), .fill = idx(q->c, 0), .elements = 1};
    int four = 0;
    for (int i = kept; i-- > 0;) {
        Node *x = p->at[leaf[i]];
        const int64_t size = x == p->t.four ? FOUR : place_extent(q, p, leaf[i]);
        Node *as =
            size > 1 && x != p->t.four ? fill_range(q, p, stage, leaf[i], size) : idx(q->c, 0);
        if (as->op == OP_RANGE)
            w.loop[w.nloop++] = as;
        four = x == p->t.four ? i : four;
        w.to[i] = as;
        walk_axis(&w, q, x, as, size);
    }
    Node **end = NEWN(q->a, Node *, FOUR + w.nloop + 1);
    for (int64_t i = 0; i < FOUR; i++) {
        w.to[four] = idx(q->c, i);
        Node *byte = filling_load(q, p, n, leaf, w.to, kept);
        end[i] = place_store(q, stage, node_bool(q->c, true), node_cast(q->c, byte, INGOT_I16),
                             idx_add(q->c, w.fill, w.to[four]));
    }
    return filled_place(q, stage, &w, end, FOUR);
}

/* n: the load as the kernel has it, load: as it is in this loop nest. */
Node *load_through_place(Lower *q, Piece *p, Node *n, Node *load)
{
    int stage = nest_stage(q->nest, n->src[0]->arg.i);
    int *leaf = NEWN(q->a, int, q->nest->naxis + 1), nleaf = 0, row = 0;
    if (stage < 0 || !p->filled[stage])
        return load;
    for (int i = 0; i < q->k->naxis; i++)
        if ((p->at[i] || p->sum[i].split) && depends_on(n, q->k->axes[i].range))
            lower_leaves(p, i, leaf, &nleaf);
    int outside = nest_position(q->nest, q->nest->stage[stage].axis), kept = 0;
    for (int i = 0; i < nleaf;
         i++) /* output loops outside of the axis, and the axis itself, stay */
        if (q->nest->axis[leaf[i]].reduced || p->at[leaf[i]] == p->t.lane ||
            rank_in_place(q, p, leaf[i]) > outside)
            leaf[kept++] = leaf[i];
    for (int i = 1; i < kept; i++)
        for (int j = i; j > 0 && rank_in_place(q, p, leaf[j]) < rank_in_place(q, p, leaf[j - 1]);
             j--) {
            int t = leaf[j];
            leaf[j] = leaf[j - 1];
            leaf[j - 1] = t;
        }
    if (stage_is_wide(q->nest))
        return load_wide(q, p, stage, n, leaf, kept);
    place_next(q, p, stage, n, leaf, kept);
    PlaceWalk w = {.at = idx(q->c, 0), .fill = idx(q->c, 0), .elements = 1};
    Node *rows = neighbours_of(q, p, load, leaf, kept), *block = NULL;
    int64_t columns = 1, pitch = 0;
    for (int i = kept; i-- > 0;) {
        Node *x = p->at[leaf[i]], *as = x;
        int64_t size = place_extent(q, p, leaf[i]);
        bool lanes = x == p->t.lane && (rows || in_neighbours(q, p, n));
        if (x->op == OP_RANGE && !lanes) {
            const bool part = x == p->t.lane && p->t.part; /* there is nothing behind it */
            int64_t count = part ? p->t.part : size;
            if (x == rows) {
                columns = size < p->t.lanes ? size : p->t.lanes;
                count = ceil_div(size, columns);
                pitch = w.elements;
            }
            as = count > 1 ? fill_range(q, p, stage, leaf[i], count) : idx(q->c, 0);
            if (count > 1)
                w.loop[w.nloop++] = as;
            if (x ==
                rows) /* the last block ends with the loop, and shares some with the one before */
                block = as =
                    idx_min(q->c, idx_mul(q->c, as, idx(q->c, columns)), idx(q->c, size - columns));
            row = x == rows ? i : row;
        }
        w.to[i] = as;
        walk_axis(&w, q, x, as, size);
    }
    Node **end = NEWN(q->a, Node *, columns + w.nloop + 1);
    for (int64_t i = 0; i < columns; i++) {
        if (rows)
            w.to[row] = idx_add(q->c, block, idx(q->c, i));
        end[i] =
            place_store(q, stage, node_bool(q->c, true), filling_load(q, p, n, leaf, w.to, kept),
                        idx_add(q->c, w.fill, idx(q->c, i * pitch)));
    }
    return filled_place(q, stage, &w, end, columns);
}
