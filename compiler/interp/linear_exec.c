/* linear_exec.c - runs a kernel's statements: one thread after the other, each on the frame that the one before has left; which
 * one comes first changes nothing but in a race.
 *
 * The items of a group have frames of their own: each runs to the next barrier, and goes on when all have come there. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "interp.h"
#include "linear_code.h"
#include "runtime_min/igrt_num.h"

/* What is said by tokens between the item that has boxes copied and the warps that read them: how many iterations the one has asked for,
 * and of how many each of the others has released the places. */
typedef struct {
    int64_t claimed, *released;
    int *groups;     /* of products that each warp has begun */
    struct Landing { /* a box under way */
        ShadowMemory *to;
        int64_t at, bytes, iteration;
        unsigned char *data;
    } * landing;
    int nlanding;
    struct Use { /* bytes that products under way read */
        ShadowMemory *of;
        int64_t at, bytes;
        int warp, group;
    } * use;
    int nuse;
} Boxes;

typedef struct {
    LinearInterp *m;
    const LinearKernel *lk;
    const LinearCode *c;
    const LinearArg *arg;
    unsigned char *f;
    Arena *a; /* of the group */
    Epoch now;
    Epoch shared; /* of places that a group shares: its clock is the number of barriers */
    int pc;       /* where it goes on */
    /* Copies under way, of which `groups` groups have begun; an item has few at a time. */
    struct Flight {
        ShadowMemory *to;
        int64_t at;
        int group, bytes;
        unsigned char data[16];
    } * flight;
    int nflight, groups;
    enum { RUNS, AT_BARRIER, AT_PRODUCTS, AT_TOKEN } waits; /* at the instruction before */
    bool loader;
    Boxes *boxes; /* of the group, or NULL */
    unsigned char *
        joined; /* what the other groups of its cluster have given so far, where the sums are in the frame */
} Thread;

static int64_t *integer(const Thread *t, int at)
{
    return (int64_t *)(void *)(t->f + at);
}

/* ---- faults ----------------------------------------------------------------------------------------- */

static void print_counters(StrBuf *sb, const Thread *t, const OpenLoop *open)
{
    if (!open)
        return;
    print_counters(sb, t, open->outer);
    sb_printf(sb, "%s%s = %lld", open->outer ? ", " : "; at ", open->name,
              (long long)*integer(t, open->at));
}

/* "a1[0,3,27]", or "a1, element 70 of its 64" */
static void print_element(StrBuf *sb, const Kernel *k, int arg, int64_t at, int64_t size)
{
    const KernelArg *a = &k->args[arg];
    int64_t dims[INGOT_MAX_RANK], coords[INGOT_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i]->hi;
    bool inside = at >= 0 && at < size;
    if (!inside || !layout_find(&a->layout, a->rank, dims, at, coords)) {
        sb_printf(sb, "a%d, element %lld of its %lld%s", arg, (long long)at, (long long)size,
                  inside ? " (of a border)" : "");
        return;
    }
    sb_printf(sb, "a%d[", arg);
    for (int i = 0; i < a->rank; i++)
        sb_printf(sb, "%s%lld", i ? "," : "", (long long)coords[i]);
    sb_puts(sb, "]");
}

static bool fault(const Thread *t, const Do *d, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fault(const Thread *t, const Do *d, const char *format, ...)
{
    StrBuf sb = {0};
    const StmtPlace *s = &t->c->place[d->stmt];
    va_list ap;
    linear_tell(&sb, t->lk->k, s);
    sb_puts(&sb, ": ");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    print_counters(&sb, t, s->open);
    if (t->lk->parts || t->lk->items)
        sb_printf(&sb, "; in %s %u", t->lk->items ? "work item" : "part", (unsigned)t->now);
    snprintf(t->m->fault, sizeof t->m->fault, "%s", sb.data);
    sb_free(&sb);
    return false;
}

static bool fault_at(const Thread *t, const Do *d, const char *what, int64_t element,
                     const char *how)
{
    StrBuf sb = {0};
    print_element(&sb, t->lk->k, (int)d->arg, element, t->arg[d->arg].size);
    (void)fault(t, d, "%s %s%s", what, sb.data, how);
    sb_free(&sb);
    return false;
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static bool access_elements(const Thread *t, const Do *d, int64_t first, int64_t n, bool write)
{
    const LinearArg *a = &t->arg[d->arg];
    const int64_t size = d->stored;
    int64_t where = 0;
    if (first < 0 || first + n > a->size)
        return fault_at(t, d, write ? "writes" : "reads",
                        first < 0 || first >= a->size ? first : a->size, ", outside of the buffer");
    int64_t at = a->at + first * size;
    Epoch now = t->lk->group && d->arg >= t->lk->narg ? t->shared : t->now;
    const bool begins = write && ((d->kind == DO_BRING && d->part) || d->kind == DO_BOX);
    Access how = begins  ? shadow_begin(a->memory, at, n * size, now, &where)
                 : write ? shadow_write(a->memory, at, n * size, now, &where)
                         : shadow_read(a->memory, at, n * size, now, &where);
    int64_t element = (where - a->at) / size;
    switch (how) {
    case ACCESS_GOOD: return true;
    case ACCESS_UNWRITTEN: return fault_at(t, d, "reads", element, ", which nothing has written");
    case ACCESS_RACE:
        return fault_at(t, d, write ? "a race: writes" : "a race: reads", element,
                        t->lk->items ? ", which another work item writes"
                                     : ", which another part writes");
    case ACCESS_UNDER_WAY:
        return fault_at(t, d, write ? "writes" : "reads", element,
                        ", to which a copy is under way that nobody has waited for");
    case ACCESS_BUSY:
        return fault_at(t, d, "a race: writes", element,
                        ", which a product reads that nobody has waited for");
    case ACCESS_READ_RACE:
        return fault_at(t, d, "a race: writes", element,
                        t->lk->items ? ", which another work item reads"
                                     : ", which another part reads");
    }
    return false;
}

/* One by one: what the gate of a lane refuses is zero. */
static bool load_apart(const Thread *t, const Do *d, int64_t first, ingot_dtype stored)
{
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    memset(t->f + d->out, 0, (size_t)(d->count * d->n) * held);
    for (int row = 0; row < d->count; row++)
        for (int i = 0; i < d->part; i++) {
            const int64_t at = first + row + i * d->step;
            if (d->in[1] >= 0 && !t->f[d->in[1] + i])
                continue;
            if (!access_elements(t, d, at, 1, false))
                return false;
            alu_cast((ingot_dtype)d->type, stored, 0, 1,
                     t->f + d->out + (size_t)(row * d->n + i) * held,
                     t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * (int64_t)size);
        }
    return true;
}

static bool do_load(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    if (d->step != 1 || d->in[1] >= 0 || d->count > 1)
        return load_apart(t, d, first, stored);
    if (!access_elements(t, d, first, d->part, false))
        return false;
    const unsigned char *from =
        t->arg[d->arg].memory->bytes + t->arg[d->arg].at + first * (int64_t)size;
    unsigned char *to = t->f + d->out;
    if (stored == d->type && d->n == 1 && size == 4)
        memcpy(to, from, 4);
    else if (stored == d->type)
        memcpy(to, from, (size_t)d->part * size);
    else
        alu_cast(d->type, stored, 0, (size_t)d->part, to, from);
    memset(to + (size_t)d->part * held, 0, (size_t)(d->n - d->part) * held);
    return true;
}

static bool do_store(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const bool two = d->kind == DO_STORE_TWO;
    if (!access_elements(t, d, first, two ? 2 * d->part : d->part, true))
        return false;
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    unsigned char *to = t->arg[d->arg].memory->bytes + t->arg[d->arg].at + first * (int64_t)size;
    if (!two && stored == d->type) {
        memcpy(to, t->f + d->in[1], (size_t)d->part * size);
        return true;
    }
    for (int i = 0; i < d->part; i++) /* arithmetic does not saturate; casts have done so already */
        for (int j = 0; j < 1 + two; j++, to += size)
            alu_cast(stored, d->type, 1, 1, to, t->f + d->in[1 + j] + (size_t)i * held);
    return true;
}

/* Lines of a fragment, in each of which the elements lie side by side, or a group of lines does. */
static bool do_load_tile(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const int width = d->n / d->count;
    for (int line = 0; line < d->count / d->part; line++) {
        const int64_t at = first + line * d->step;
        if (!access_elements(t, d, at, width * d->part, false))
            return false;
        for (int i = 0; i < width * d->part; i++)
            alu_cast((ingot_dtype)d->type, stored, 0, 1,
                     t->f + d->out +
                         (size_t)((line * d->part + i % d->part) * width + i / d->part) *
                             (size_t)d->size,
                     t->arg[d->arg].memory->bytes + t->arg[d->arg].at + (at + i) * d->stored);
    }
    return true;
}

static bool do_store_tile(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const int width = d->n / d->count;
    for (int line = 0; line < d->count; line++) {
        const int64_t at = first + line * d->step;
        if (!access_elements(t, d, at, width, true))
            return false;
        memcpy(t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * d->stored,
               t->f + d->in[1] + (size_t)(line * width) * (size_t)d->size,
               (size_t)width * (size_t)d->size);
    }
    return true;
}

static void do_wait(Thread *t, int but)
{
    int left = 0;
    for (int i = 0; i < t->nflight; i++) {
        const struct Flight *f = &t->flight[i];
        if (f->group >= t->groups - but) {
            t->flight[left++] = *f;
            continue;
        }
        memcpy(f->to->bytes + f->at, f->data, (size_t)f->bytes);
        shadow_done(f->to, f->at, f->bytes, t->shared);
    }
    t->nflight = left;
}

static bool do_bring(Thread *t, const Do *d)
{
    const int64_t to = *integer(t, d->in[0]), from = *integer(t, d->in[1]);
    const LinearArg *at = &t->arg[d->arg], *of = &t->arg[d->from];
    const bool zero = d->in[2] >= 0 && !t->f[d->in[2]];
    const size_t bytes = (size_t)d->n * (size_t)d->stored;
    const int64_t whole = zero ? 0 : d->in[3] >= 0 ? *integer(t, d->in[3]) : d->n;
    Do read = *d;
    read.arg = d->from;
    if (!zero && (whole < 1 || whole > d->n))
        return fault(t, d, "brings %lld of %d elements", (long long)whole, d->n);
    if (!zero && !access_elements(t, &read, from, (int)whole, false))
        return false;
    if (!access_elements(t, d, to, d->n, true))
        return false;
    unsigned char *p = at->memory->bytes + at->at + to * d->stored;
    if ((to * d->stored) % (int64_t)bytes || (!zero && (from * d->stored) % (int64_t)bytes))
        return fault(t, d, "brings %zu bytes that do not begin at a multiple of that", bytes);
    if (d->part) {
        struct Flight f = {at->memory, at->at + to * d->stored, t->groups, (int)bytes, {0}};
        if (!zero)
            memcpy(f.data, of->memory->bytes + of->at + from * d->stored,
                   (size_t)(whole * d->stored));
        vec_push(t->a, t->flight, t->nflight, f);
        return true;
    }
    memset(p, 0, bytes);
    if (!zero)
        memcpy(p, of->memory->bytes + of->at + from * d->stored, (size_t)(whole * d->stored));
    return true;
}

static bool do_load_lane(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const int lane = (int)(uint32_t)t->now % t->lk->tc->lanes;
    for (int i = 0; i < d->n; i++) {
        const TcElement e = tc_element(t->lk->tc, d->from, lane, i);
        const int64_t at = first + e.line * d->step + (int64_t)e.at * d->count;
        if (!access_elements(t, d, at, 1, false))
            return false;
        alu_cast((ingot_dtype)d->type, stored, 0, 1, t->f + d->out + i * d->size,
                 t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * d->stored);
    }
    return true;
}

static bool is_held(const Thread *t, const Do *d)
{
    return integer(t, t->c->tiles)[d->arg] == d->to ||
           fault(t, d, "uses tile %d, which does not hold what is wanted", (int)d->arg);
}

/* ---- values ----------------------------------------------------------------------------------------- */

static void spread(unsigned char *to, const unsigned char *from, size_t bytes, size_t all)
{
    for (size_t i = 0; i < all; i += bytes)
        memcpy(to + i, from, bytes);
}

/* A value of a small float is held as f32: it has its own form for this one operation. */
static void do_cast(const Thread *t, const Do *d)
{
    const ingot_dtype to = d->node->dtype, from = d->node->src[0]->dtype;
    const size_t n = (size_t)d->n;
    uint64_t raw[2 * 64],
        bits[2 * 64]; /* lanes by four of up to 8 bytes, as many pieces as it takes */
    const size_t piece = 64;
    for (size_t i = 0; i < n; i += piece) {
        const size_t m = n - i < piece ? n - i : piece;
        const unsigned char *x = t->f + d->in[0] + i * elem_bytes(d->from_type[0]);
        unsigned char *y = t->f + d->out + i * elem_bytes(d->type);
        const bool same = to == (ingot_dtype)d->type;
        if (d->kind == DO_CAST) {
            alu_cast(to, (ingot_dtype)d->from_type[0], d->node->arg.i, m, same ? (void *)y : raw,
                     x);
        } else {
            alu_cast(from, (ingot_dtype)d->from_type[0], 0, m, bits, x);
            memcpy(same ? (void *)y : raw, bits, m * elem_bytes(to));
        }
        if (!same)
            alu_cast((ingot_dtype)d->type, to, 0, m, y, raw);
    }
}

static void do_fours(const Thread *t, const Do *d)
{
    const int32_t *x = (const int32_t *)(void *)(t->f + d->in[0]);
    int32_t *y = (int32_t *)(void *)(t->f + d->out);
    for (int i = 0; i < d->n; i++) {
        y[i] = 0;
        for (int j = 0; j < 4; j++)
            y[i] = igrt_add_i32(y[i], x[4 * i + j]);
    }
}

/* Term after term: of integers in any order the same, of floats in that of AMX: pairs of terms are sums of their own. */
static void do_products(const Thread *t, const Do *d)
{
    const int columns = d->count, terms = d->from;
    for (int m = 0; m < d->part; m++)
        for (int n = 0; n < columns; n++) {
            if (d->type == INGOT_F32) {
                const float *x = (const float *)(void *)(t->f + d->in[0]) + m * terms;
                const float *y = (const float *)(void *)(t->f + d->in[1]) + n;
                float *out = (float *)(void *)(t->f + d->out) + m * columns + n, sum[2] = {0};
                for (int k = 0; k < terms; k++)
                    sum[k % 2] += x[k] * y[k * columns];
                *out += sum[0] + sum[1];
            } else {
                const int32_t *x = (const int32_t *)(void *)(t->f + d->in[0]) + m * terms;
                const int32_t *y = (const int32_t *)(void *)(t->f + d->in[1]) + n;
                int32_t *out = (int32_t *)(void *)(t->f + d->out) + m * columns + n;
                for (int k = 0; k < terms; k++)
                    *out = igrt_add_i32(*out, igrt_mul_i32(x[k], y[k * columns]));
            }
        }
}

enum { MOST_FRAGMENT = 16 * 16 };
/* The items of a warp have come to one product: their fragments are put together, multiplied, and taken apart again. */
static void do_products_of_lanes(const Thread *item, const Do *d)
{
    const Tc *u = item->lk->tc;
    float a[MOST_FRAGMENT], b[MOST_FRAGMENT], *v;
    for (int lane = 0; lane < u->lanes; lane++) {
        for (int i = 0; i < tc_per_lane(u, TC_ROWS); i++) {
            const TcElement e = tc_element(u, TC_ROWS, lane, i);
            memcpy(&a[e.line * u->k + e.at], item[lane].f + d->in[0] + 4 * i, 4);
        }
        for (int i = 0; i < tc_per_lane(u, TC_COLUMNS); i++) {
            const TcElement e = tc_element(u, TC_COLUMNS, lane, i);
            memcpy(&b[e.line * u->k + e.at], item[lane].f + d->in[1] + 4 * i, 4);
        }
    }
    for (int lane = 0; lane < u->lanes; lane++)
        for (int i = 0; i < tc_per_lane(u, TC_TERMS); i++) {
            const TcElement e = tc_element(u, TC_TERMS, lane, i);
            v = (float *)(void *)(item[lane].f + d->out) + i;
            for (int k = 0; k < u->k; k++)
                *v += a[e.line * u->k + k] * b[e.at * u->k + k];
        }
}

/* ---- boxes ------------------------------------------------------------------------------------------ */

/* What the copy takes of a box: zero beyond the ends. */
static bool do_box(Thread *t, const Do *d)
{
    const Box *b = d->box;
    const LinearArg *of = &t->arg[b->arg], *to = &t->arg[d->arg];
    const int64_t size = d->stored, place = *integer(t, d->in[0]);
    Do read = *d;
    read.arg = b->arg;
    if (!access_elements(t, d, place, b->elements, true))
        return false;
    unsigned char *data = arena_alloc(t->a, (size_t)(b->elements * size));
    memset(data, 0, (size_t)(b->elements * size));
    for (int64_t e = 0; e < b->elements; e++) {
        int64_t rest = e, from = b->offset;
        bool inside = true;
        for (int i = 0; i < b->rank; i++) { /* the runs of the first axis are outermost */
            int64_t at = *integer(t, d->operand[i]) + rest % b->size[i];
            at += i ? 0 : e / (b->elements / b->count) * TC_RUN;
            rest /= b->size[i];
            from += at * b->stride[i];
            inside &= at < b->extent[i];
        }
        if (!inside)
            continue;
        if (!access_elements(t, &read, from, 1, false))
            return false;
        memcpy(data + e * size, of->memory->bytes + of->at + from * size, (size_t)size);
    }
    struct Landing l = {to->memory, to->at + place * size, b->elements * size,
                        t->boxes->claimed - 1, data};
    vec_push(t->a, t->boxes->landing, t->boxes->nlanding, l);
    return true;
}

/* Copies may be done as soon as they have begun, and no later than when somebody has waited for them. */
static void land(Boxes *b, int64_t upto)
{
    int left = 0;
    for (int i = 0; i < b->nlanding; i++) {
        const struct Landing *l = &b->landing[i];
        if (l->iteration > upto) {
            b->landing[left++] = *l;
            continue;
        }
        memcpy(l->to->bytes + l->at, l->data, (size_t)l->bytes);
        shadow_landed(l->to, l->at, l->bytes);
    }
    b->nlanding = left;
}

/* The warp's products are done, but for the last so many groups. */
static void use_done(Boxes *b, int warp, int but)
{
    int left = 0;
    for (int i = 0; i < b->nuse; i++) {
        const struct Use *u = &b->use[i];
        if (u->warp == warp && u->group < b->groups[warp] - but)
            shadow_used(u->of, u->at, u->bytes);
        else
            b->use[left++] = *u;
    }
    b->nuse = left;
}

static int warp_of(const Thread *t)
{
    return (int)((uint32_t)t->shared / (uint32_t)t->lk->tc->lanes);
}

static bool use_place(const Thread *t, const Do *d, int arg, int64_t at, int64_t n)
{
    const LinearArg *a = &t->arg[arg];
    const int warp = warp_of(t);
    Do read = *d;
    read.arg = arg;
    int64_t where = 0;
    if (at < 0 || at + n > a->size)
        return fault_at(t, &read, "reads", at, ", outside of the buffer");
    struct Use u = {a->memory, a->at + at * d->stored, n * d->stored, warp, t->boxes->groups[warp]};
    const Access how = shadow_use(u.of, u.at, u.bytes, &where);
    if (how != ACCESS_GOOD)
        return fault_at(t, &read, "reads", (where - a->at) / d->stored,
                        how == ACCESS_UNWRITTEN
                            ? ", which nothing has written"
                            : ", to which a copy is under way that nobody has waited for");
    vec_push(t->a, t->boxes->use, t->boxes->nuse, u);
    return true;
}

/* The items of a warpgroup have come to one product. */
static bool do_products_in_place(const Thread *item, const Do *d)
{
    const Tc *u = item->lk->tc;
    const int lines[] = {u->m, u->n}, place[] = {(int)d->arg, d->from};
    Arena *a = arena_new();
    float *x[2];
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        const LinearArg *from = &item->arg[place[i]];
        const LaneFragment *f = &d->place[i];
        const int64_t first = *integer(item, d->in[i]);
        const ingot_dtype stored = item->lk->k->args[place[i]].dtype;
        x[i] = NEWN(a, float, lines[i] * u->k);
        for (int lane = 1; lane < u->lanes && good; lane++)
            good = *integer(&item[lane], d->in[i]) == first ||
                   fault(item, d, "the items of a warp have operands at different places");
        for (int l = 0; l < lines[i] && good; l++)
            for (int k = 0; k < u->k && good; k++) {
                const int64_t at = first + tc_place_element(f, l, k);
                const bool run = f->by_line ? k == 0 : l % TC_RUN == 0;
                good = !run || use_place(item, d, place[i], at, f->by_line ? u->k : TC_RUN);
                if (good)
                    alu_cast(INGOT_F32, stored, 0, 1, &x[i][l * u->k + k],
                             from->memory->bytes + from->at + at * d->stored);
            }
    }
    for (int lane = 0; lane < u->lanes && good; lane++)
        for (int i = 0; i < tc_per_lane(u, TC_TERMS); i++) {
            const TcElement e = tc_element(u, TC_TERMS, lane, i);
            float *v = (float *)(void *)(item[lane].f + d->out) + i;
            for (int k = 0; k < u->k; k++)
                *v += x[0][e.line * u->k + k] * x[1][e.at * u->k + k];
        }
    arena_free(a);
    return good;
}

/* Can the loader go on, or the warp of this item? What that changes. */
static bool pass_token(Thread *t)
{
    enum { LAG = 1 }; /* groups of products that go on behind a release */
    const Do *d = &t->c->code[t->pc - 1];
    Boxes *b = t->boxes;
    const int64_t iteration = d->in[0] < 0 ? 0 : *integer(t, d->in[0]);
    const int warp = t->loader ? 0 : warp_of(t);
    switch (d->kind) {
    case DO_CLAIM:
        for (int i = 0; i < t->lk->group / t->lk->tc->lanes; i++)
            if (b->released[i] < iteration - d->arg + 1)
                return false;
        b->claimed = iteration + 1;
        return true;
    case DO_FILLED:
        if (b->claimed <= iteration)
            return false;
        land(b, iteration);
        return true;
    default: /* DO_RELEASE */
        b->groups[warp]++;
        use_done(b, warp, d->in[0] < 0 ? 0 : LAG);
        b->released[warp] = d->in[0] < 0 ? b->released[warp] : iteration;
        return true;
    }
}

static void combine(const Do *d, ingot_dtype type, size_t n, void *out, const void *x,
                    const void *y)
{
    const uint8_t types[3] = {(uint8_t)type, (uint8_t)type, (uint8_t)type};
    const void *in[3] = {x, y, x};
    alu_lanes(d->op, 0, type, types, n, out, in);
}

static bool do_custom(const Thread *t, const Do *d)
{
    const CustomUse *use = d->node->arg.ptr;
    igrt_tensor in[MAX_ALU_SRC], out = {.data = t->f + d->out, .rank = 1, .dims = {d->n}};
    const char *why = NULL;
    out.dtype = (igrt_dtype)(d->node->dtype + 1);
    for (uint32_t i = 0; i < d->node->nsrc; i++) {
        in[i] = (igrt_tensor){.data = t->f + d->operand[i], .rank = 1, .dims = {d->n}};
        in[i].dtype = (igrt_dtype)(d->node->src[i]->dtype + 1);
    }
    if (!use->op->run)
        return fault(t, d, "custom operator '%s' cannot be called here", use->op->name);
    int code = use->op->run(use->op, in, (int)d->node->nsrc, &out, 1, use->ints, use->floats, NULL,
                            0, &why);
    return code == IGRT_OK ||
           fault(t, d, "custom operator '%s': %s", use->op->name, why ? why : "failed");
}

/* Coordinates are compared and computed in one place, since there are so many of them. */
static bool index_alu(const Thread *t, const Do *d)
{
    const int64_t x = *integer(t, d->in[0]), y = *integer(t, d->in[1]);
    int64_t *out = integer(t, d->out);
    switch (d->op) {
    case OP_MUL: *out = igrt_mul_i64(x, y); return true;
    case OP_FLOORDIV: *out = igrt_floordiv_i64(x, y); return true;
    case OP_MOD: *out = igrt_mod_i64(x, y); return true;
    case OP_MAX: *out = igrt_max_i64(x, y); return true;
    case OP_MIN: *out = igrt_min_i64(x, y); return true;
    case OP_LT: t->f[d->out] = x < y; return true;
    case OP_LE: t->f[d->out] = x <= y; return true;
    default: return false;
    }
}

/* What scalar kernels are mostly made of. */
static bool f32_alu(const Thread *t, const Do *d, const unsigned char *x, const unsigned char *y)
{
    float a, b, r;
    memcpy(&a, x, sizeof a);
    memcpy(&b, y, sizeof b);
    switch (d->op) {
    case OP_ADD: r = a + b; break;
    case OP_MUL: r = a * b; break;
    default: return false;
    }
    memcpy(t->f + d->out, &r, sizeof r);
    return true;
}

static void do_alu(const Thread *t, const Do *d)
{
    if (d->n == 1 && d->type == INGOT_F32 && f32_alu(t, d, t->f + d->in[0], t->f + d->in[1]))
        return;
    if (d->from_type[0] == INGOT_INDEX && d->n == 1 && index_alu(t, d))
        return;
    const void *in[3] = {t->f + d->in[0], t->f + d->in[1], t->f + d->in[2]};
    alu_lanes(d->op, d->arg, (ingot_dtype)d->type, d->from_type, (size_t)d->n, t->f + d->out, in);
}

static bool do_affine(const Thread *t, const Do *d)
{
    int64_t sum = d->arg;
    for (int i = 0; i < d->nterm; i++)
        sum += d->term[i].k * *integer(t, d->term[i].at);
    *integer(t, d->out) = sum;
    if (sum < d->node->lo || sum > d->node->hi)
        return fault(t, d, "a coordinate is %lld, and was taken to be in %lld..%lld",
                     (long long)sum, (long long)d->node->lo, (long long)d->node->hi);
    return true;
}

/* What is read of an accumulator is whole: of a SCAN as far as its loop has come. */
static bool is_whole(const Thread *t, const Do *d)
{
    const int64_t *count = integer(t, d->count);
    for (int i = 0; t->boxes && i < t->boxes->nuse; i++)
        if (t->boxes->use[i].warp == warp_of(t))
            return fault(t, d, "uses sums of products that nobody has waited for");
    const bool scan = d->node->op == OP_SCAN;
    const int64_t want = scan ? *integer(t, d->in[0]) + 1 : count[1];
    return count[0] == want ||
           fault(t, d, "uses an accumulator (%s %s) that has %lld of its %lld terms",
                 op_info[d->node->op].text, dtype_info[d->node->dtype].name, (long long)count[0],
                 (long long)want);
}

/* A group's sums go to the first of its cluster, which comes last. */
static void do_join(const Thread *t, const Do *d)
{
    const bool gives = *integer(t, d->in[0]) != 0;
    float *to = (float *)(void *)((gives ? t->joined : t->f) + d->out);
    const float *from = (const float *)(const void *)((gives ? t->f : t->joined) + d->out);
    for (int i = 0; i < d->n; i++)
        to[i] += from[i];
}

/* ---- threads ---------------------------------------------------------------------------------------- */

/* To its end, or to a barrier. */
static bool run(Thread *t)
{
    const LinearCode *c = t->c;
    LinearInterp *m = t->m;
    unsigned char *f = t->f;
    t->waits = RUNS;
    for (int pc = t->pc; pc < c->n;) {
        const Do *d = &c->code[pc++];
        if (m->most && m->done >= m->most)
            return fault(t, d, "more than %lld instructions", (long long)m->most);
        m->done++;
        switch (d->kind) {
        case DO_AFFINE:
            if (!do_affine(t, d))
                return false;
            break;
        case DO_ALU: do_alu(t, d); break;
        case DO_CAST:
        case DO_BITCAST: do_cast(t, d); break;
        case DO_CUSTOM:
            if (!do_custom(t, d))
                return false;
            break;
        case DO_COPY: memcpy(f + d->out, f + d->in[0], (size_t)d->n * (size_t)d->size); break;
        case DO_SPREAD:
            spread(f + d->out, f + d->in[0], (size_t)d->from * (size_t)d->size,
                   (size_t)d->n * (size_t)d->size);
            break;
        case DO_ZERO: memset(f + d->out, 0, (size_t)d->n * (size_t)d->size); break;
        case DO_RAMP:
            for (int i = 0; i < d->n; i++)
                integer(t, d->out)[i] = *integer(t, d->in[0]) + i * d->arg;
            break;
        case DO_LOAD:
            if (!do_load(t, d))
                return false;
            break;
        case DO_STORE:
        case DO_STORE_TWO:
            if (!do_store(t, d))
                return false;
            break;
        case DO_START:
            memcpy(f + d->out, f + d->in[0], (size_t)d->n * (size_t)d->size);
            integer(t, d->count)[0] = 0;
            integer(t, d->count)[1] = *integer(t, d->in[1]);
            break;
        case DO_UPDATE:
            if (d->n > 1 || d->type != INGOT_F32 || !f32_alu(t, d, f + d->out, f + d->in[0]))
                combine(d, (ingot_dtype)d->type, (size_t)d->n, f + d->out, f + d->out,
                        f + d->in[0]);
            break;
        case DO_COUNT: ++*integer(t, d->count); break;
        case DO_TERM:
            if (*integer(t, d->count) != *integer(t, d->in[0]))
                return fault(t, d, "adds term %lld to a scan that has %lld",
                             (long long)*integer(t, d->in[0]), (long long)*integer(t, d->count));
            break;
        case DO_WHOLE:
            if (!is_whole(t, d))
                return false;
            break;
        case DO_FOURS: do_fours(t, d); break;
        case DO_ACROSS:
            for (int n = d->n / 2; n; n /= 2)
                combine(d, (ingot_dtype)d->type, (size_t)n, f + d->out, f + d->out,
                        f + d->out + (size_t)n * elem_bytes(d->type));
            break;
        case DO_SKIP: pc = f[d->in[0]] ? pc : d->to; break;
        case DO_SKIP_IF: pc = f[d->in[0]] ? d->to : pc; break;
        case DO_JUMP: pc = d->to; break;
        case DO_LOOP: pc = *integer(t, d->out) < *integer(t, d->in[0]) ? pc : d->to; break;
        case DO_NEXT: pc = ++*integer(t, d->out) < *integer(t, d->in[0]) ? d->to : pc; break;
        case DO_FIRST:
            *integer(t, d->out) = *integer(t, c->begin) * *integer(t, d->in[0]) / d->arg;
            break;
        case DO_LAST:
            *integer(t, d->out) = *integer(t, c->end) * *integer(t, d->in[0]) / d->arg;
            break;
        case DO_AXIS:
            *integer(t, d->out) = *integer(t, d->in[0]) / *integer(t, d->in[1]);
            if (d->in[2] >= 0)
                *integer(t, d->out) %= *integer(t, d->in[2]);
            break;
        case DO_TAKE: integer(t, c->tiles)[d->arg] = d->to; break;
        case DO_HELD:
            if (!is_held(t, d))
                return false;
            break;
        case DO_LOAD_TILE:
            if (!do_load_tile(t, d))
                return false;
            break;
        case DO_STORE_TILE:
            if (!do_store_tile(t, d))
                return false;
            break;
        case DO_BRING:
            if (!do_bring(t, d))
                return false;
            break;
        case DO_COMMIT: t->groups++; break;
        case DO_WAIT: do_wait(t, (int)d->arg); break;
        case DO_LOAD_LANE:
            if (!do_load_lane(t, d))
                return false;
            break;
        case DO_PRODUCTS_OF_LANES:
            t->pc = pc;
            t->waits = AT_PRODUCTS;
            return true;
        case DO_PRODUCTS: do_products(t, d); break;
        case DO_FORGET: {
            const ShadowMemory *place = t->arg[d->arg].memory;
            shadow_forget(t->arg[d->arg].memory, 0, place->size);
            break;
        }
        case DO_LAST_PART: pc = *integer(t, c->end) == d->arg ? pc : d->to; break;
        case DO_ITEM: {
            const int64_t n = *integer(t, d->in[0]), number = *integer(t, c->number);
            *integer(t, d->out) = n ? number % n : 0;
            *integer(t, c->number) = n ? number / n : 1;
            break;
        }
        case DO_ITEM_IS:
            if (*integer(t, c->number))
                return true;
            break;
        case DO_BARRIER:
            t->pc = pc;
            t->waits = AT_BARRIER;
            return true;
        case DO_JOIN:
            do_join(t, d);
            if (*integer(t, d->in[0]) && d->part)
                return true;
            break;
        case DO_LOADER: pc = t->loader ? pc : d->to; break;
        case DO_LEAVE: return true;
        case DO_BOX:
            if (!do_box(t, d))
                return false;
            break;
        case DO_PRODUCTS_IN_PLACE:
            t->pc = pc;
            t->waits = AT_PRODUCTS;
            return true;
        case DO_CLAIM:
        case DO_FILLED:
        case DO_RELEASE:
            t->pc = pc;
            t->waits = AT_TOKEN;
            return true;
        }
    }
    return true;
}

static void begin_thread(Thread *t, int64_t number)
{
    t->now = (Epoch)t->m->clock << 32 | (Epoch)number;
    t->pc = t->nflight = t->groups = 0;
    *integer(t, t->c->number) = *integer(t, t->c->begin) = number;
    *integer(t, t->c->end) = number + 1;
}

/* All items have to come to the same barrier. */
static bool all_wait(const Thread *item, int n, bool *any)
{
    int nwait = 0, at = 0;
    for (int i = 0; i < n; i++) {
        nwait += item[i].waits != RUNS;
        at = item[i].waits ? i : at;
    }
    *any = nwait > 0;
    for (int i = 0; i < n && nwait; i++)
        if (!item[i].waits || item[i].pc != item[at].pc)
            return fault(&item[at], &item[at].c->code[item[at].pc - 1],
                         "an item waits here for its group, of which item %d does not come", i);
    return true;
}

/* The items of a warp, each to its end or to a barrier, from one of their products to the next. */
static bool run_warp(Thread *item, int lanes)
{
    for (bool products = true; products;) {
        for (int i = 0; i < lanes; i++) {
            const int at = item->m->backwards ? lanes - 1 - i : i;
            if (!run(&item[at]))
                return false;
        }
        products = item[0].waits == AT_PRODUCTS;
        const bool token = item[0].waits == AT_TOKEN;
        for (int i = 0; i < lanes; i++)
            if ((item[i].waits == AT_PRODUCTS) != products ||
                (item[i].waits == AT_TOKEN) != token ||
                ((products || token) && item[i].pc != item[0].pc)) {
                const Thread *t = item[i].waits == AT_PRODUCTS ? &item[i] : &item[0];
                return fault(t, &t->c->code[t->pc - 1],
                             "an item waits here for its warp, of which not all items come");
            }
        const Do *d = &item->c->code[item->pc - 1];
        if (products && d->kind == DO_PRODUCTS_IN_PLACE && !do_products_in_place(item, d))
            return false;
        if (products && d->kind != DO_PRODUCTS_IN_PLACE)
            do_products_of_lanes(item, d);
    }
    return true;
}

/* One by one as far as each can go: the loader behind all others, then every warp from one token to the next. */
static bool run_boxes(Thread *item, int n, int warp)
{
    Boxes *b = item->boxes;
    const int warps = n / warp;
    *b = (Boxes){.released = NEWN(item->a, int64_t, warps), .groups = NEWN(item->a, int, warps)};
    Thread *loader = &item[n];
    bool moved = run(loader), left = false;
    if (!moved)
        return false;
    for (int i = 0; i < n; i += warp)
        if (!run_warp(&item[i], warp))
            return false;
    while (moved) {
        moved = left = false;
        while (loader->waits == AT_TOKEN && pass_token(loader)) {
            moved = true;
            if (!run(loader))
                return false;
        }
        left |= loader->waits != RUNS;
        for (int i = 0; i < n; i += warp) {
            const int at = item->m->backwards ? n - warp - i : i;
            if (item[at].waits == AT_TOKEN && pass_token(&item[at])) {
                moved = true;
                if (!run_warp(&item[at], warp))
                    return false;
            }
            left |= item[at].waits != RUNS;
        }
    }
    for (int i = 0; i <= n; i++)
        if (item[i].waits != RUNS)
            return fault(&item[i], &item[i].c->code[item[i].pc - 1],
                         "an item waits here for what does not come");
    return true;
}

static bool run_groups(const Thread *first, const LinearArg *places, int64_t groups)
{
    const LinearKernel *lk = first->lk;
    const int n = lk->group;
    const size_t bytes = (size_t)first->c->bytes;
    Arena *a = arena_new();
    Thread *item = NEWN(a, Thread, n + 1);
    for (int i = 0; i < n + lk->loader; i++) {
        item[i] = *first;
        item[i].loader = i == n;
        item[i].joined = lk->cluster > 1 ? arena_alloc(a, bytes) : NULL;
        item[i].boxes = NULL;
        item[i].f = arena_alloc(a, bytes);
        item[i].a = a;
    }
    bool good = true;
    for (int64_t g = 0; g < groups && good; g++) {
        int64_t group = first->m->backwards ? groups - 1 - g : g;
        const int rank = lk->cluster - 1 - (int)(g % lk->cluster);
        group += rank - group % lk->cluster;
        for (int i = 0; i < n && lk->cluster > 1 && rank == lk->cluster - 1; i++)
            memset(item[i].joined, 0, bytes);
        for (int j = lk->narg; j < lk->k->narg; j++)
            shadow_forget(places[j].memory, 0, places[j].memory->size);
        for (int i = 0; i < n; i++) {
            memcpy(item[i].f, first->f, bytes);
            begin_thread(&item[i], group * n + i);
        }
        bool any = !lk->loader;
        if (lk->loader) {
            Boxes boxes;
            memcpy(item[n].f, first->f, bytes);
            begin_thread(&item[n], group * n);
            item[n].now += (Epoch)(groups * n);
            for (int i = 0; i <= n; i++) {
                item[i].boxes = &boxes;
                item[i].shared = (Epoch)2 << 32 | (Epoch)i;
            }
            good = run_boxes(item, n, lk->tc->lanes);
        }
        for (Epoch phase = 2; any && good; phase++) {
            const int warp = lk->tc ? lk->tc->lanes : 1;
            for (int i = 0; i < n; i++)
                item[i].shared = phase << 32 | (Epoch)i;
            for (int i = 0; i < n && good; i += warp) {
                const int at = first->m->backwards ? n - warp - i : i;
                good = lk->tc ? run_warp(&item[at], warp) : run(&item[at]);
            }
            good = good && all_wait(item, n, &any);
        }
    }
    arena_free(a);
    return good;
}

bool linear_run(LinearInterp *m, LinearKernel *lk, const LinearArg *arg, const int64_t *var,
                const double *scalar)
{
    const Kernel *k = lk->k;
    if (!lk->code)
        lk->code = linear_code(lk->arena, lk);
    const LinearCode *c = lk->code;
    *m->fault = 0;
    if (c->fault) {
        snprintf(m->fault, sizeof m->fault, "%s", c->fault);
        return false;
    }
    LinearArg *sized = NEWN(lk->arena, LinearArg, k->narg + 1);
    for (int i = lk->narg; i < k->narg; i++) {
        const int64_t bytes = (int64_t)elem_bytes(k->args[i].dtype);
        sized[i].memory = shadow_new(lk->arena, k->args[i].dims[0]->hi * bytes, (int)bytes);
        sized[i].size = k->args[i].dims[0]->hi;
    }
    for (int i = 0; i < lk->narg; i++) {
        sized[i] = arg[i];
        if (!sized[i].size)
            sized[i].size = layout_elements(&k->args[i].layout, k->args[i].rank, k->args[i].dims);
    }
    m->clock += m->clock ? 1 : 2; /* what is given has clock 1 */
    Thread t = {.m = m, .lk = lk, .c = c, .arg = sized, .f = c->frame};
    for (int i = 0; i < k->nvar; i++)
        *integer(&t, c->var + 16 * i) = var[i];
    for (int i = 0; i < k->nscalar; i++) {
        const double value = scalar ? scalar[i] : k->scalars[i].lo;
        const float f = (float)value;
        const int32_t whole = k->scalars[i].whole ? (int32_t)value : 0;
        memcpy(t.f + c->scalar + 16 * i,
               dtype_is_float(k->scalars[i].dtype) ? (const void *)&f : &whole, 4);
    }
    const int64_t threads = lk->items ? c->nitem : lk->parts ? lk->parts : 1;
    if (threads >= (int64_t)THREAD_SEVERAL) {
        snprintf(m->fault, sizeof m->fault, "%s: too many work items", k->name);
        return false;
    }
    if (lk->group)
        return run_groups(&t, sized, threads / lk->group);
    for (int64_t i = 0; i < threads; i++) {
        begin_thread(&t, m->backwards ? threads - 1 - i : i);
        for (int j = lk->narg; j < k->narg; j++)
            shadow_forget(sized[j].memory, 0, sized[j].memory->size);
        if (!run(&t))
            return false;
    }
    return true;
}

/* ---- two runs --------------------------------------------------------------------------------------- */

static bool same_number(ingot_dtype d, const unsigned char *p, const unsigned char *q, double apart)
{
    double x, y;
    if (!memcmp(p, q, elem_bytes(d)))
        return true;
    if (!dtype_is_float(d))
        return false;
    interp_to_f64(d, 1, &x, p);
    interp_to_f64(d, 1, &y, q);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= apart * (1 + fabs(y));
}

bool linear_same(const Kernel *k, int arg, const LinearArg *got, const LinearArg *want,
                 double apart, char fault[1024])
{
    const ingot_dtype d = k->args[arg].dtype;
    const int64_t bytes = (int64_t)elem_bytes(d);
    const int64_t n = layout_elements(&k->args[arg].layout, k->args[arg].rank, k->args[arg].dims);
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = got->at + i * bytes, q = want->at + i * bytes;
        const bool here = shadow_written(got->memory, p), there = shadow_written(want->memory, q);
        if (here == there &&
            (!here || same_number(d, got->memory->bytes + p, want->memory->bytes + q, apart)))
            continue;
        StrBuf sb = {0};
        print_element(&sb, k, arg, i, n);
        snprintf(fault, 1024, "%s: %s %s", k->name, sb.data,
                 here && there ? "has another value"
                 : here        ? "is written, and should not be"
                               : "is not written");
        sb_free(&sb);
        return false;
    }
    return true;
}
