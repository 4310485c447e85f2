/* drawn.c - contents of buffers, element by element: constants have their own, all else is drawn.
 *
 * Floats are k/512 in -1..1, which f16 holds too, and bf16 k/64; integers are small, so that many
 * are indices. What is drawn follows from the value of the graph, so that two buffers with one
 * value agree, and a buffer that is another one's does not. */
#include "drawn.h"

#include <math.h>
#include <string.h>

/* Elements of a constant that is computed for its integers; small floats are that part of the
 * range, and small bytes at most so far from 0. */
enum { FEW = 1 << 16, FRACTION = 32, SMALL = 3 };

struct Content {
    int64_t dims[INGOT_MAX_RANK];
    const unsigned char *bytes; /* dense, or NULL: it is drawn */
    LayoutStorage storage;
    bool flush;   /* subnormal numbers are zeros */
    int64_t from; /* of Buffer.beyond */
};

Drawn *drawn_new(Arena *a, const Plan *p, Interp *ip)
{
    Drawn *d = NEW(a, Drawn);
    *d = (Drawn){.a = a, .p = p, .ip = ip};
    d->content = NEWN(a, struct Content *, p->nbuffer + 1);
    return d;
}

static struct Content *content_of(Drawn *d, const Buffer *b)
{
    struct Content *x = d->content[b->id];
    if (x)
        return x;
    x = d->content[b->id] = NEW(d->a, struct Content);
    int64_t count = 1, dims[INGOT_MAX_RANK];
    for (int i = 0; i < b->rank; i++)
        count = sat_mul(count, x->dims[i] = dim_value(d->ip, b->dims[i]));
    x->storage = layout_storage_of(&b->layout, b->rank, x->dims);
    x->from = b->beyond.from ? dim_value(d->ip, b->beyond.from) : 0;
    if (b->kind != BUF_WEIGHT || !b->node)
        return x;
    if (b->node->op == OP_DATA)
        x->bytes = ((const Data *)b->node->arg.ptr)->bytes;
    else if (!dtype_is_float(b->dtype) && count <= FEW)
        x->bytes = interp_eval(d->ip, b->node, dims);
    x->flush = b->dtype == INGOT_F32 && !d->p->c->keep_subnormals;
    return x;
}

const int64_t *drawn_dims(Drawn *d, const Buffer *b)
{
    return content_of(d, b)->dims;
}

const Buffer *drawn_root(const Drawn *d, const Buffer *b, int64_t *from)
{
    *from = 0;
    for (; b->base; b = b->base)
        *from += b->base_offset ? dim_value(d->ip, b->base_offset) : 0;
    return b;
}

static double drawn_float(const Drawn *d, ingot_dtype t, uint64_t h)
{
    const int most = t == INGOT_F64 || t == INGOT_F32 || t == INGOT_F16 ? 512
                     : t == INGOT_BF16                                  ? 64
                                                                        : 2;
    if (t == INGOT_F8E8M0)
        return ldexp(1, (int)(h % 3) - 1);
    const int within = d->range == DRAW_SMALL && most > FRACTION ? most / FRACTION : most;
    const double v = (double)(1 + (int)(h % (uint64_t)within)) / most;
    const bool negative = d->range == DRAW_NEGATIVE || (h >> 40 & 1 && d->range != DRAW_POSITIVE);
    return negative ? -v : v;
}

static int64_t drawn_int(const Drawn *d, ingot_dtype t, uint64_t h)
{
    if (d->range == DRAW_SMALL && dtype_bits(t) <= 8 && dtype_bits(t) > 4)
        return (int64_t)(h % (2 * SMALL + 1)) - (dtype_info[t].kind == 'u' ? 0 : SMALL);
    if (dtype_bits(t) <= 8)
        return dtype_least(t) + (int64_t)(h % (dtype_most(t) - (uint64_t)dtype_least(t) + 1));
    if (t == INGOT_I64 || t == INGOT_U64 || t == INGOT_INDEX) /* most are indices */
        return (int64_t)(h % 16) - (h >> 40 & 7 || t == INGOT_U64 ? 0 : 16);
    return (int64_t)(h % 1000) - (dtype_info[t].kind == 'u' ? 0 : 500);
}

/* Of a value with this seed. */
static void draw(const Drawn *d, uint64_t seed, ingot_dtype t, int64_t flat, void *out)
{
    const uint64_t h = hash_bytes(seed, &flat, sizeof flat);
    if (t == INGOT_F32) { /* most are, and it holds all of these */
        const float v = (float)drawn_float(d, t, h);
        memcpy(out, &v, sizeof v);
    } else if (dtype_is_float(t)) {
        const double v = drawn_float(d, t, h);
        alu_cast(t, INGOT_F64, 0, 1, out, &v);
    } else {
        store_int(t, drawn_int(d, t, h), out);
    }
}

static uint64_t seed_of(const Drawn *d, uint64_t key)
{
    return hash_bytes(d->seed, &key, sizeof key);
}

static int64_t flat_of(int rank, const int64_t *dims, const int64_t *coord)
{
    int64_t flat = 0;
    for (int i = 0; i < rank; i++)
        flat = flat * dims[i] + coord[i];
    return flat;
}

static uint64_t key_of(const Node *n, ingot_dtype t)
{
    return (uint64_t)n->id << 8 | (uint64_t)t;
}

static uint64_t buffer_seed(const Drawn *d, const Buffer *b)
{
    return seed_of(d, b->node ? key_of(b->node, b->dtype) : (uint64_t)b->id << 40);
}

/* Is it what a mask has left there? */
static bool is_beyond(const Buffer *b, const struct Content *x, int64_t flat)
{
    int64_t coord[INGOT_MAX_RANK];
    for (int i = b->rank; i-- > 0; flat /= x->dims[i])
        coord[i] = flat % x->dims[i];
    return coord[b->beyond.axis] >= x->from + (b->beyond.row < 0 ? 0 : coord[b->beyond.row]);
}

/* seed: that of the buffer. */
static void element(const Drawn *d, const Buffer *b, const struct Content *x, uint64_t seed,
                    int64_t flat, void *out)
{
    if (b->beyond.from && is_beyond(b, x, flat)) {
        alu_cast(b->dtype, INGOT_F64, 0, 1, out, &b->beyond.value);
        return;
    }
    if (!x->bytes) {
        draw(d, seed, b->dtype, flat, out);
        return;
    }
    const size_t size = elem_bytes(b->dtype);
    memcpy(out, x->bytes + (size_t)flat * size, size);
    if (x->flush) {
        uint32_t u;
        memcpy(&u, out, sizeof u);
        u &= u & 0x7f800000u ? UINT32_MAX : 0x80000000u;
        memcpy(out, &u, sizeof u);
    }
}

void drawn_element(Drawn *d, const Buffer *b, const int64_t *coord, void *out)
{
    const struct Content *x = content_of(d, b);
    element(d, b, x, buffer_seed(d, b), flat_of(b->rank, x->dims, coord), out);
}

void drawn_elements(Drawn *d, const Buffer *b, int n, int64_t *const *at, const int64_t *first,
                    void *out)
{
    enum { PIECE = 256 };
    const struct Content *x = content_of(d, b);
    const uint64_t seed = buffer_seed(d, b);
    const size_t size = elem_bytes(b->dtype);
    unsigned char *to = out;
    for (int done = 0; done < n; done += PIECE) {
        const int piece = n - done < PIECE ? n - done : PIECE;
        int64_t flat[PIECE] = {0};
        for (int i = 0; i < b->rank; i++) {
            const int64_t *c = at[i] + done, dim = x->dims[i], begin = first[i];
            for (int k = 0; k < piece; k++)
                flat[k] = flat[k] * dim + c[k] + begin;
        }
        for (int k = 0; k < piece; k++, to += size)
            element(d, b, x, seed, flat[k], to);
    }
}

void drawn_node(Drawn *d, const Node *n, const int64_t *dims, const int64_t *coord, void *out)
{
    draw(d, seed_of(d, key_of(n, (ingot_dtype)n->dtype)), (ingot_dtype)n->dtype,
         flat_of(n->rank, dims, coord), out);
}

/* Elements that lie side by side, and differ in one coordinate. */
typedef struct {
    int axis;
    int64_t n, step;
} Ramp;

/* From the element that is stored at `at`, whose coordinates are these, as many of n as differ in
 * the innermost axis of storage alone: that is one coordinate, or a digit of one, so where the last
 * one is says where those between are. */
static Ramp find_ramp(const Buffer *b, const struct Content *x, int64_t at, int64_t n,
                      const int64_t *first)
{
    enum { WORTH = 3 };
    Ramp ramp = {.n = 1};
    int64_t last[INGOT_MAX_RANK], beside = layout_beside(&x->storage, at);
    n = n < beside ? n : beside;
    if (n < WORTH || !layout_find_in(&b->layout, &x->storage, b->rank, x->dims, at + n - 1, last))
        return ramp;
    for (int i = 0; i < b->rank; i++)
        if (last[i] != first[i])
            ramp = (Ramp){i, n, (last[i] - first[i]) / (n - 1)};
    return ramp;
}

static void drawn_filler(const Buffer *b, void *out)
{
    memset(out, 0, elem_bytes(b->dtype));
    if (layout_fill(&b->layout))
        store_int(b->dtype, layout_fill(&b->layout), out);
}

static void stored_dense(const Drawn *d, const Buffer *b, const struct Content *x, int64_t at,
                         int64_t n, unsigned char *out)
{
    const uint64_t seed = buffer_seed(d, b);
    const size_t size = elem_bytes(b->dtype);
    int64_t count = 1;
    for (int i = 0; i < b->rank; i++)
        count *= x->dims[i];
    for (int64_t i = at; i < at + n; i++, out += size)
        if (i >= 0 && i < count)
            element(d, b, x, seed, i, out);
        else
            memset(out, 0, size);
}

void drawn_stored(Drawn *d, const Buffer *view, int64_t at, int64_t n, void *out)
{
    int64_t from, coord[INGOT_MAX_RANK];
    const Buffer *b = drawn_root(d, view, &from);
    at += from;
    const struct Content *x = content_of(d, b);
    if (!b->layout.n) {
        stored_dense(d, b, x, at, n, out);
        return;
    }
    const uint64_t seed = buffer_seed(d, b);
    const size_t size = elem_bytes(b->dtype);
    unsigned char *to = out;
    for (int64_t i = 0; i < n;) {
        if (!layout_find_in(&b->layout, &x->storage, b->rank, x->dims, at + i, coord)) {
            drawn_filler(b, to);
            to += size;
            i++;
            continue;
        }
        const Ramp ramp = find_ramp(b, x, at + i, n - i, coord);
        for (int64_t k = 0; k < ramp.n; k++, i++, to += size) {
            element(d, b, x, seed, flat_of(b->rank, x->dims, coord), to);
            coord[ramp.axis] += ramp.step;
        }
    }
}
