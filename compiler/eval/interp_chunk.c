/* interp_chunk.c - run a region's program over its box, a chunk of lanes at a time.
 *
 * Lanes of a chunk are a block of kept points (o) times a block of reduced points (r), o fastest,
 * so that a fold takes the values of one output in row-major order of the reduced coordinates.
 * A coordinate splits into a part that depends on o only (worked out once per block of o), a part
 * that depends on r only, and what mixes both (tables and divisions of windows, rare). */
#include "interp_region.h"

#include <string.h>

#include "igrt_num.h"

/* ---- preparation ----------------------------------------------------------------------------- */

static bool is_kept(const Prog *p, uint32_t deps)
{
    return (deps & p->reduced) == 0;
}

static bool is_reduced(const Prog *p, uint32_t deps)
{
    return deps != 0 && (deps & ~p->reduced) == 0;
}

static uint32_t var_deps(const Prog *p, int var)
{
    return var < p->space.rank ? 1u << var : p->space.atom[var - p->space.rank]->deps;
}

static int64_t *longs(Prog *p, int n)
{
    return NEWN(p->arena, int64_t, n);
}

/* Is the kept part of u the row-major number of the kept point? */
static bool is_linear(const Prog *p, const LaneUse *u)
{
    int64_t stride = 1;
    int matched = 0, terms = 0;
    for (int i = 0; i < u->lin->n; i++)
        terms += is_kept(p, var_deps(p, u->lin->t[i].var));
    for (int a = p->space.rank - 1; a >= 0; a--) {
        if (p->reduced >> a & 1 || p->space.ext[a] == 1)
            continue;
        bool found = false;
        for (int i = 0; i < u->lin->n && !found; i++)
            found = u->lin->t[i].var == a && u->lin->t[i].k == stride;
        if (!found)
            return false;
        matched++;
        stride *= p->space.ext[a];
    }
    return matched == terms;
}

static void use_prepare(Prog *p, LaneUse *u, int ob, int rb)
{
    for (int i = 0; i < u->lin->n; i++) {
        const uint32_t deps = var_deps(p, u->lin->t[i].var);
        if (is_kept(p, deps))
            u->has_o = true;
        else if (is_reduced(p, deps))
            u->has_r = true;
        else
            u->has_m = true;
    }
    u->linear = u->has_o && is_linear(p, u);
    for (int i = 0; i < u->lin->n; i++)
        if (u->lin->t[i].var < p->space.rank && !(u->linear && is_kept(p, 1u << u->lin->t[i].var)))
            p->axes_used |= 1u << u->lin->t[i].var;
    u->o = longs(p, ob);
    u->r = longs(p, rb);
    if (u->has_m)
        u->m = longs(p, ob * rb);
    if (u->load)
        u->run = NEWN(p->arena, LaneRun, ob > rb ? ob : rb);
}

static int atom_use(Prog *p, const LinearForm *l)
{
    const LaneUse u = {.lin = l};
    vec_push(p->arena, p->use, p->nuse, u);
    return p->nuse - 1;
}

/* Registers share memory once their last reader has run. */
static void assign_lanes(Prog *p, int nroot, const int *roots, int lanes)
{
    char **spare[2] = {NEWN(p->arena, char *, p->nreg + 1), NEWN(p->arena, char *, p->nreg + 1)};
    int nspare[2] = {0, 0};
    for (int i = 0; i < p->ninstr; i++) {
        const Instr *in = &p->instr[i];
        for (int k = 0; k < in->nin && in->kind != DO_MASK; k++)
            p->reg[in->in[k]].last = i;
        if (in->mask >= 0)
            p->reg[in->mask].last = i;
    }
    for (int i = 0; i < nroot; i++)
        p->reg[roots[i]].pinned = true;
    for (int i = 0; i < p->ninstr; i++) {
        const Instr *in = &p->instr[i];
        Reg *out = &p->reg[in->out];
        const int wide = elem_bytes(out->dtype) > 8;
        if (!out->pinned && nspare[wide])
            out->lanes = spare[wide][--nspare[wide]];
        else
            out->lanes = arena_array(p->arena, (size_t)lanes, wide ? 16 : 8);
        for (int k = -1; k < in->nin; k++) {
            const int r = k < 0 ? in->mask : in->kind == DO_MASK ? -1 : in->in[k];
            if (r < 0 || p->reg[r].pinned || p->reg[r].last != i)
                continue;
            const int w = elem_bytes(p->reg[r].dtype) > 8;
            spare[w][nspare[w]++] = p->reg[r].lanes;
            p->reg[r].last = -2; /* given back once */
        }
        if (out->last == -1 && !out->pinned)
            out->pinned = true; /* read by nobody: never given back */
    }
}

/* ---- coordinates of a block ------------------------------------------------------------------ */

/* first, first + 1 ..: each `stride` times, then the next one, and 0 behind the last of `ext`; of
 * the first one `gone` are past: (0, stride 2, ext 3, gone 1) 0 1 1 2 2 0 0 .. */
static void count_lanes(int64_t *x, int n, int64_t first, int64_t gone, int64_t stride, int64_t ext)
{
    for (int i = 0; i < n;) {
        const int64_t left = stride == 1 ? ext - first : stride - gone;
        const int end = left < n - i ? i + (int)left : n;
        if (stride == 1) {
            for (const int from = i; i < end; i++)
                x[i] = first + (i - from);
            first = 0;
            continue;
        }
        while (i < end)
            x[i++] = first;
        gone = 0;
        first = first + 1 == ext ? 0 : first + 1;
    }
}

/* The coordinate along each used axis of points first .. first+n-1 of the kept (or reduced) box. */
static void axis_lanes(Prog *p, bool reduced, int64_t first, int n)
{
    int64_t stride = 1;
    for (int a = p->space.rank - 1; a >= 0; a--) {
        if ((p->reduced >> a & 1) != reduced)
            continue;
        const int64_t ext = p->space.ext[a];
        if (p->axes_used >> a & 1)
            count_lanes(p->axis_lane[a], n, first / stride % ext, first % stride, stride, ext);
        stride *= ext;
    }
}

typedef enum { PART_O, PART_R, PART_M } ChunkPart;

static ChunkPart part_of(const Prog *p, uint32_t deps)
{
    return is_kept(p, deps) ? PART_O : is_reduced(p, deps) ? PART_R : PART_M;
}

/* to += k from. Few machines have lanes that multiply 64 bits: small ones are multiplied by 32. */
static void add_multiple(int64_t *to, int64_t k, const int64_t *from, bool small, int n)
{
    if (k == 1) {
        for (int i = 0; i < n; i++)
            to[i] += from[i];
    } else if (small && k >= 0 && k <= UINT32_MAX) {
        for (int i = 0; i < n; i++)
            to[i] += (int64_t)((uint64_t)(uint32_t)k * (uint32_t)from[i]);
    } else {
        for (int i = 0; i < n; i++)
            to[i] += k * from[i];
    }
}

static void use_part(Prog *p, LaneUse *u, ChunkPart part, int n)
{
    int64_t *to = part == PART_O ? u->o : part == PART_R ? u->r : u->m;
    if (part == PART_M && !u->has_m)
        return;
    if (part == PART_O && u->linear) {
        for (int i = 0; i < n; i++)
            to[i] = p->o0 + i;
        return;
    }
    memset(to, 0, (size_t)n * sizeof *to);
    for (int k = 0; k < u->lin->n; k++) {
        const int v = u->lin->t[k].var;
        if (part_of(p, var_deps(p, v)) != part)
            continue;
        const bool axis = v < p->space.rank;
        add_multiple(to, u->lin->t[k].k,
                     axis ? p->axis_lane[v] : p->space.atom[v - p->space.rank]->lane,
                     axis && p->space.ext[v] <= UINT32_MAX, n);
    }
}

static void find_runs(LaneUse *u, const int64_t *x, int n)
{
    u->nrun = 0;
    for (int i = 0; i < n;) {
        const int64_t stride = i + 1 < n ? x[i + 1] - x[i] : 0;
        int j = i + 1;
        while (j < n && x[j] - x[j - 1] == stride)
            j++;
        u->run[u->nrun++] = (LaneRun){i, j - i, x[i], stride};
        i = j;
    }
}

/* The value of u for every lane of the chunk. */
static void use_lanes(const Prog *p, const LaneUse *u, int64_t *x)
{
    for (int r = 0; r < p->rb; r++) {
        const int64_t base = u->lin->c + u->base + u->r[r];
        for (int o = 0; o < p->ob; o++)
            x[r * p->ob + o] = base + u->o[o];
    }
    for (int i = 0; u->has_m && i < p->ob * p->rb; i++)
        x[i] += u->m[i];
}

static void atom_lanes(Prog *p, const Atom *a, ChunkPart part, int n)
{
    const LaneUse *u = &p->use[a->use];
    if (part == PART_M)
        use_lanes(p, u, a->lane);
    for (int i = 0; i < n && part != PART_M; i++)
        a->lane[i] = u->lin->c + (part == PART_O ? u->o[i] : u->r[i]);
    for (int i = 0; i < n; i++)
        a->lane[i] = a->table ? a->table[a->lane[i]] : atom_apply(a, a->lane[i]);
}

static void coordinates(Prog *p, ChunkPart part, int n)
{
    for (int i = 0; i < p->space.natom; i++) { /* an atom's form only has atoms before it */
        const Atom *a = p->space.atom[i];
        use_part(p, &p->use[a->use], part, n);
        if (part_of(p, a->deps) == part)
            atom_lanes(p, a, part, n);
    }
    for (int i = 0; i < p->nplain; i++)
        use_part(p, &p->use[i], part, n);
}

/* ---- instructions ---------------------------------------------------------------------------- */

#define COPY_RUN(SIZE, C)               \
    case SIZE: {                        \
        C *to = out;                    \
        const C *from = in;             \
        if (stride == 0) {              \
            const C x = *from;          \
            for (int i = 0; i < n; i++) \
                to[i] = x;              \
            return;                     \
        }                               \
        for (int i = 0; i < n; i++)     \
            to[i] = from[i * stride];   \
        return;                         \
    }

static void copy_run(size_t size, void *out, const void *in, int n, int64_t stride)
{
    if (stride == 1) {
        memcpy(out, in, (size_t)n * size);
        return;
    }
    switch (size) {
        COPY_RUN(1, uint8_t)
        COPY_RUN(2, uint16_t)
        COPY_RUN(4, uint32_t)
        COPY_RUN(8, uint64_t)
    default:
        for (int i = 0; i < n; i++)
            memcpy((char *)out + (size_t)i * size, (const char *)in + i * stride * (int64_t)size,
                   size);
    }
}

/* inner[i] elements from `in`, for every lane. */
#define COPY_EACH(SIZE, C)          \
    case SIZE: {                    \
        C *to = out;                \
        const C *from = in;         \
        for (int i = 0; i < n; i++) \
            to[i] = from[x[i]];     \
        return;                     \
    }

static void copy_each(size_t size, void *out, const void *in, int n, const int64_t *x)
{
    switch (size) {
        COPY_EACH(1, uint8_t)
        COPY_EACH(2, uint16_t)
        COPY_EACH(4, uint32_t)
        COPY_EACH(8, uint64_t)
    default:
        for (int i = 0; i < n; i++)
            memcpy((char *)out + (size_t)i * size, (const char *)in + x[i] * (int64_t)size, size);
    }
}

#define ZERO_EACH(SIZE, C)             \
    case SIZE: {                       \
        C *x = out;                    \
        for (int i = 0; i < n; i++)    \
            x[i] = mask[i] ? x[i] : 0; \
        return;                        \
    }

static void zero_masked(size_t size, void *out, const uint8_t *mask, int n)
{
    switch (size) {
        ZERO_EACH(1, uint8_t)
        ZERO_EACH(2, uint16_t)
        ZERO_EACH(4, uint32_t)
        ZERO_EACH(8, uint64_t)
    default:
        for (int i = 0; i < n; i++)
            if (!mask[i])
                memset((char *)out + (size_t)i * size, 0, size);
    }
}

/* Elements at p->offset; lanes outside the mask get zero, and element 0 is read in their stead. */
static void load_offsets(Prog *p, const Instr *in, char *out, const uint8_t *mask)
{
    const int n = p->ob * p->rb;
    const size_t size = elem_bytes(p->reg[in->out].dtype);
    for (int i = 0; mask && i < n; i++)
        p->offset[i] = mask[i] ? p->offset[i] : 0;
    copy_each(size, out, in->data, n, p->offset);
    if (mask)
        zero_masked(size, out, mask, n);
}

static void do_load(Prog *p, const Instr *in, char *out, const uint8_t *mask)
{
    const LaneUse *u = &p->use[in->use];
    const size_t size = elem_bytes(p->reg[in->out].dtype);
    if (mask || u->has_m) {
        use_lanes(p, u, p->offset);
        load_offsets(p, in, out, mask);
        return;
    }
    const int64_t *inner = p->ob == 1 ? u->r : u->o, *outer = p->ob == 1 ? u->o : u->r;
    for (int j = 0; j < p->nouter; j++) {
        const char *base = in->data + (u->lin->c + u->base + outer[j]) * (int64_t)size;
        char *to = out + (size_t)j * (size_t)p->ninner * size;
        if (u->nrun * 4 > p->ninner) {
            copy_each(size, to, base, p->ninner, inner);
            continue;
        }
        for (int k = 0; k < u->nrun; k++) {
            const LaneRun *r = &u->run[k];
            copy_run(size, to + (size_t)r->start * size, base + r->base * (int64_t)size, r->len,
                     r->stride);
        }
    }
}

static void do_mask(Prog *p, const Instr *in, uint8_t *out, const uint8_t *mask)
{
    const int n = p->ob * p->rb;
    if (mask)
        memcpy(out, mask, (size_t)n);
    else
        memset(out, 1, (size_t)n);
    for (int k = 0; k < in->nin; k++) {
        use_lanes(p, &p->use[in->in[k]], p->offset);
        for (int i = 0; i < n; i++)
            out[i] &= p->offset[i] >= 0 && p->offset[i] < in->dim[k];
    }
}

static void do_gather(Prog *p, const Instr *in, char *out, const uint8_t *mask)
{
    const int n = p->ob * p->rb;
    use_lanes(p, &p->use[in->use], p->offset);
    for (int k = 0; k < in->nin; k++)
        if (in->dim[k] < 1) { /* there is no place */
            memset(out, 0, (size_t)n * elem_bytes(p->reg[in->out].dtype));
            return;
        }
    for (int k = 0; k < in->nin; k++) {
        const Reg *index = &p->reg[in->in[k]];
        const int64_t *x = (const int64_t *)(const void *)index->lanes;
        if (index->dtype != INGOT_I64) {
            alu_cast(INGOT_I64, index->dtype, 0, (size_t)n, p->wide, index->lanes);
            x = p->wide;
        }
        for (int i = 0; i < n; i++)
            p->offset[i] += (x[i] < 0             ? 0
                             : x[i] >= in->dim[k] ? in->dim[k] - 1
                                                  : x[i]) *
                            in->stride[k];
    }
    load_offsets(p, in, out, mask);
}

static void run_instr(Prog *p, const Instr *in)
{
    const int n = p->ob * p->rb;
    const Reg *reg = p->reg, *out = &reg[in->out];
    const uint8_t *mask = in->mask >= 0 ? (const uint8_t *)reg[in->mask].lanes : NULL;
    switch (in->kind) {
    case DO_FILL: break; /* done once, by prog_run */
    case DO_LOAD: do_load(p, in, out->lanes, mask); break;
    case DO_IOTA: use_lanes(p, &p->use[in->use], (int64_t *)(void *)out->lanes); break;
    case DO_ALU: {
        uint8_t types[3] = {0};
        const void *x[3] = {0};
        for (int k = 0; k < in->nin; k++) {
            types[k] = (uint8_t)reg[in->in[k]].dtype;
            x[k] = reg[in->in[k]].lanes;
        }
        alu_lanes((Op)in->node->op, in->node->arg.i, out->dtype, types, (size_t)n, out->lanes, x);
        interp_shake_alu(p->ip, in->node, n, out->lanes);
        break;
    }
    case DO_MASK: do_mask(p, in, (uint8_t *)out->lanes, mask); break;
    case DO_PAD: {
        const size_t size = elem_bytes(out->dtype);
        memcpy(out->lanes, reg[in->in[0]].lanes, (size_t)n * size);
        zero_masked(size, out->lanes, mask, n);
        break;
    }
    case DO_GATHER: do_gather(p, in, out->lanes, mask); break;
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Blocks of a box that begin at the same place of its inner axes have the same coordinates but for
 * where they begin: these are worked out once. So blocks are cut where an axis ends:
 *
 *     box 1820 18 32, 1024 lanes: 18 points of the last axis would fill 576 lanes, 32 of the next
 *     one 1024: blocks of [1, 18, 32], since not even two of the outermost axis's points fit */
static void cut_blocks(Prog *p, int ob_max)
{
    int64_t inner = 1;
    uint32_t whole = 0; /* axes of which a block has all points */
    p->steady = false;
    p->cut = p->space.rank - 1;
    for (; p->cut >= 0; p->cut--) {
        if (p->reduced >> p->cut & 1)
            continue;
        if (inner * p->space.ext[p->cut] > ob_max)
            break;
        inner *= p->space.ext[p->cut];
        whole |= 1u << p->cut;
    }
    if (p->cut < 0) /* one block */
        return;
    const int64_t ext = p->space.ext[p->cut], most = ob_max / inner,
                  parts = (ext + most - 1) / most;
    p->some = (ext + parts - 1) / parts;
    p->inner = inner;
    p->steady = true;
    for (int i = 0; i < p->space.natom; i++)
        if (p->space.atom[i]->deps & ~p->reduced & ~whole)
            p->steady = false;
}

static int block_size(const Prog *p, int ob_max)
{
    const int64_t left = p->nkept - p->o0;
    if (!p->steady)
        return left < ob_max ? (int)left : ob_max;
    const int64_t at = p->o0 / p->inner % p->space.ext[p->cut], rest = p->space.ext[p->cut] - at;
    return (int)((rest < p->some ? rest : p->some) * p->inner);
}

/* What a form has at the first point of the block. */
static int64_t base_of(const Prog *p, const LaneUse *u)
{
    int64_t base = 0;
    for (int k = 0; k < u->lin->n; k++) {
        const int v = u->lin->t[k].var;
        if (v < p->space.rank && !(p->reduced >> v & 1) && v <= p->cut)
            base += u->lin->t[k].k * p->first[v];
    }
    return base;
}

/* Coordinates of the block, where the one before it had so many points (0: there was none). */
static void begin_block(Prog *p, int before)
{
    const bool steady = p->steady && before;
    if (steady) {
        int64_t rest = p->o0 / p->inner;
        for (int a = p->cut; a >= 0; a--)
            if (!(p->reduced >> a & 1)) {
                p->first[a] = rest % p->space.ext[a];
                rest /= p->space.ext[a];
            }
        for (int i = 0; i < p->nuse; i++)
            p->use[i].base = base_of(p, &p->use[i]);
    }
    if (!steady) {
        axis_lanes(p, false, p->o0, p->ob);
        coordinates(p, PART_O, p->ob);
    }
    for (int i = 0; i < p->nuse && p->ob > 1 && !(steady && p->ob == before); i++)
        if (p->use[i].load)
            find_runs(&p->use[i], p->use[i].o, p->ob);
}

void prog_run(Prog *p, int nroot, const int *roots, void (*sink)(Prog *, int, const char *const *),
              void *user)
{
    const int ob_max = p->nkept < LANES ? (int)p->nkept : LANES;
    const int rb_room = LANES / ob_max, rb_max = p->nreduced < rb_room ? (int)p->nreduced : rb_room;
    const char *regs[1 + INGOT_MAX_RANK];
    p->user = user;
    p->nplain = p->nuse;
    for (int i = 0; i < p->space.natom; i++) {
        Atom *a = p->space.atom[i];
        a->use = atom_use(p, a->table ? a->at : a->of);
        a->lane = longs(p, ob_max * rb_max);
    }
    for (int i = 0; i < p->nuse; i++)
        use_prepare(p, &p->use[i], ob_max, rb_max);
    for (int a = 0; a < p->space.rank; a++)
        if (p->axes_used >> a & 1)
            p->axis_lane[a] = longs(p, p->reduced >> a & 1 ? rb_max : ob_max);
    assign_lanes(p, nroot, roots, ob_max * rb_max);
    p->offset = longs(p, ob_max * rb_max);
    p->wide = longs(p, ob_max * rb_max);
    for (int i = 0; i < p->ninstr; i++)
        if (p->instr[i].kind == DO_FILL)
            copy_run(elem_bytes(p->reg[p->instr[i].out].dtype), p->reg[p->instr[i].out].lanes,
                     p->instr[i].data, ob_max * rb_max, 0);
    for (int i = 0; i < nroot; i++)
        regs[i] = p->reg[roots[i]].lanes;
    const bool one_sweep = rb_max == p->nreduced; /* the reduced part is the same for every block */
    cut_blocks(p, ob_max);
    for (p->o0 = 0; p->o0 < p->nkept; p->o0 += p->ob) {
        const int before = p->o0 ? p->ob : 0;
        p->ob = block_size(p, ob_max);
        begin_block(p, before);
        for (p->r0 = 0; p->r0 < p->nreduced; p->r0 += p->rb) {
            p->rb = p->nreduced - p->r0 < rb_max ? (int)(p->nreduced - p->r0) : rb_max;
            p->ninner = p->ob == 1 ? p->rb : p->ob;
            p->nouter = p->ob == 1 ? 1 : p->rb;
            if (!one_sweep || p->o0 == 0) {
                axis_lanes(p, true, p->r0, p->rb);
                coordinates(p, PART_R, p->rb);
            }
            coordinates(p, PART_M, p->ob * p->rb);
            for (int i = 0; i < p->nuse && p->ob == 1; i++)
                if (p->use[i].load)
                    find_runs(&p->use[i], p->use[i].r, p->rb);
            for (int i = 0; i < p->ninstr; i++)
                run_instr(p, &p->instr[i]);
            sink(p, p->ob * p->rb, regs);
        }
    }
}
