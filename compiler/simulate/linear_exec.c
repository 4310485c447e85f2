/* linear_exec.c - runs a kernel's statements: one thread after the other, each on the frame that
 * the one before has left; which one comes first changes nothing but in a race.
 *
 * The items of a group have frames of their own: each runs to the next barrier, and goes on when
 * all have come there. */
#include <string.h>

#include "igrt_num.h"
#include "interp.h"
#include "linear_thread.h"

static bool is_held(const Thread *t, const Do *d)
{
    return integer(t, t->c->tiles)[d->arg] == d->to ||
           thread_fault(t, d, "uses tile %d, which does not hold what is wanted", (int)d->arg);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void spread(unsigned char *to, const unsigned char *from, size_t bytes, size_t all)
{
    if (bytes == 4) { /* most are */
        uint32_t word;
        memcpy(&word, from, sizeof word);
        for (size_t i = 0; i < all; i += bytes)
            memcpy(to + i, &word, sizeof word);
        return;
    }
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

/* The second of a pair of bf16 is added first, and each sum rounded, as vdpbf16ps does it. */
static void do_pairs(const Thread *t, const Do *d)
{
    const float *x = (const float *)(void *)(t->f + d->in[0]);
    float *y = (float *)(void *)(t->f + d->out);
    for (int i = 0; i < d->n; i++)
        y[i] = (d->part ? x[2 * i + 1] : y[i] + x[2 * i + 1]) + x[2 * i];
}

static void do_fours(const Thread *t, const Do *d)
{
    const int32_t *x = (const int32_t *)(void *)(t->f + d->in[0]);
    int32_t *y = (int32_t *)(void *)(t->f + d->out);
    for (int i = 0; i < d->n; i++) {
        y[i] = d->part ? 0 : y[i];
        for (int j = 0; j < d->count; j++)
            y[i] = igrt_add_i32(y[i], x[d->count * i + j]);
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
        return thread_fault(t, d, "custom operator '%s' cannot be called here", use->op->name);
    int code = use->op->run(use->op, in, (int)d->node->nsrc, &out, 1, use->ints, use->floats, NULL,
                            0, &why);
    return code == IGRT_OK ||
           thread_fault(t, d, "custom operator '%s': %s", use->op->name, why ? why : "failed");
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
        return thread_fault(t, d, "a coordinate is %lld, and was taken to be in %lld..%lld",
                            (long long)sum, (long long)d->node->lo, (long long)d->node->hi);
    return true;
}

/* What is read of an accumulator is whole: of a SCAN as far as its loop has come. */
static bool is_whole(const Thread *t, const Do *d)
{
    const int64_t *count = integer(t, d->count);
    for (int i = 0; t->boxes && i < t->boxes->nuse; i++)
        if (t->boxes->use[i].warp == thread_warp(t))
            return thread_fault(t, d, "uses sums of products that have not been waited for");
    const bool scan = d->node->op == OP_SCAN;
    const int64_t want = scan ? *integer(t, d->in[0]) + 1 : count[1];
    return count[0] == want ||
           thread_fault(t, d, "uses an accumulator (%s %s) that has %lld of its %lld terms",
                        op_info[d->node->op].text, dtype_info[d->node->dtype].name,
                        (long long)count[0], (long long)want);
}

/* Each group gives what it has summed; when it runs again, it has its share of what all have given,
 * and nothing else.  Is it done until then? */
static bool do_join(Thread *t, const Do *d)
{
    float *all = (float *)(void *)(t->joined + d->out), *own = (float *)(void *)(t->f + d->out);
    for (int i = 0; i < d->n; i++) {
        const bool owns = (d->arg + i) / d->from == *integer(t, d->in[0]);
        if (t->gives)
            all[i] += own[i];
        else
            own[i] = owns ? all[i] : NAN;
    }
    t->joins = false;
    return t->gives && d->part;
}

/* One iteration of a loop, or one work item, stands for all. */
static bool is_sampled(const Thread *t, const Do *d)
{
    return d->one && t->m->sample && t->m->sample->which != SAMPLE_ALL;
}

/* Which iteration of those from begin to end - 1 a sample has. */
static int64_t sampled(const LinearSample *s, int64_t begin, int64_t end)
{
    switch (s->which) {
    case SAMPLE_FIRST: return begin;
    case SAMPLE_LAST: return end - 1;
    case SAMPLE_ALL:
    case SAMPLE_DRAWN: break;
    }
    const int64_t n = end - begin;
    return begin + (int64_t)(hash_bytes(s->seed, &n, sizeof n) % (uint64_t)n);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* It goes on behind this instruction, with others. */
static bool stop(Thread *t, int pc, Wait waits)
{
    t->pc = pc;
    t->waits = waits;
    return true;
}

/* Where the groups of a cluster meet: does it go no further this time? */
static bool ends_here(Thread *t, const Do *d)
{
    return d->part && t->met++ == t->meets;
}

static void do_spread(Thread *t, const Do *d)
{
    spread(t->f + d->out, t->f + d->in[0], (size_t)d->from * (size_t)d->size,
           (size_t)d->n * (size_t)d->size);
}

static void do_ramp(Thread *t, const Do *d)
{
    for (int i = 0; i < d->n; i++)
        integer(t, d->out)[i] = *integer(t, d->in[0]) + i * d->arg;
}

static void do_start(Thread *t, const Do *d)
{
    memcpy(t->f + d->out, t->f + d->in[0], (size_t)d->n * (size_t)d->size);
    integer(t, d->count)[0] = 0;
    integer(t, d->count)[1] = *integer(t, d->in[1]);
}

static void do_update(Thread *t, const Do *d)
{
    unsigned char *out = t->f + d->out, *in = t->f + d->in[0];
    if (d->n > 1 || d->type != INGOT_F32 || !f32_alu(t, d, out, in))
        combine(d, (ingot_dtype)d->type, (size_t)d->n, out, out, in);
}

static bool do_term(Thread *t, const Do *d)
{
    if (*integer(t, d->count) == *integer(t, d->in[0]))
        return true;
    return thread_fault(t, d, "adds term %lld to a scan that has %lld",
                        (long long)*integer(t, d->in[0]), (long long)*integer(t, d->count));
}

static void do_across(Thread *t, const Do *d)
{
    unsigned char *out = t->f + d->out;
    for (int n = d->n / 2; n; n /= 2)
        combine(d, (ingot_dtype)d->type, (size_t)n, out, out,
                out + (size_t)n * elem_bytes(d->type));
}

/* Where it goes on: a loop has another iteration, or none; of a sample it has one. */
static int do_loop(Thread *t, const Do *d, int pc)
{
    if (*integer(t, d->out) >= *integer(t, d->in[0]))
        return d->to;
    if (is_sampled(t, d))
        *integer(t, d->out) = sampled(t->m->sample, *integer(t, d->out), *integer(t, d->in[0]));
    return pc;
}

static int do_next(Thread *t, const Do *d, int pc)
{
    if (is_sampled(t, d))
        return pc;
    return ++*integer(t, d->out) < *integer(t, d->in[0]) ? d->to : pc;
}

/* Where the thread's chunk of a loop begins, or ends: by the part of all, of which there are
 * arg. */
static void do_share(Thread *t, const Do *d, int part)
{
    *integer(t, d->out) = *integer(t, part) * *integer(t, d->in[0]) / d->arg;
}

static void do_axis(Thread *t, const Do *d)
{
    *integer(t, d->out) = *integer(t, d->in[0]) / *integer(t, d->in[1]);
    if (d->in[2] >= 0)
        *integer(t, d->out) %= *integer(t, d->in[2]);
}

/* False: no item is launched. */
static bool do_item(Thread *t, const Do *d)
{
    const int64_t n = *integer(t, d->in[0]), number = *integer(t, t->c->number);
    if (!n)
        return false;
    if (is_sampled(t, d)) {
        *integer(t, d->out) = sampled(t->m->sample, 0, n);
        return true;
    }
    *integer(t, d->out) = number % n;
    *integer(t, t->c->number) = number / n;
    return true;
}

static void do_forget(Thread *t, const Do *d)
{
    ShadowMemory *place = t->arg[d->arg].memory;
    shadow_forget(place, 0, place->size);
}

/* To its end, or to a barrier. */
static bool run(Thread *t)
{
    const LinearCode *c = t->c;
    LinearInterp *m = t->m;
    unsigned char *f = t->f;
    bool good = true;
    t->waits = RUNS;
    for (int pc = t->pc; good && pc < c->n;) {
        const Do *d = &c->code[pc++];
        if (m->most && m->done >= m->most)
            return thread_fault(t, d, "more than %lld instructions", (long long)m->most);
        m->done++;
        switch (d->kind) {
        case DO_AFFINE: good = do_affine(t, d); break;
        case DO_ALU: do_alu(t, d); break;
        case DO_CAST:
        case DO_BITCAST: do_cast(t, d); break;
        case DO_CUSTOM: good = do_custom(t, d); break;
        case DO_COPY: memcpy(f + d->out, f + d->in[0], (size_t)d->n * (size_t)d->size); break;
        case DO_SPREAD: do_spread(t, d); break;
        case DO_ZERO: memset(f + d->out, 0, (size_t)d->n * (size_t)d->size); break;
        case DO_RAMP: do_ramp(t, d); break;
        case DO_LOAD: good = thread_load(t, d); break;
        case DO_STORE:
        case DO_STORE_IN_TURN: good = thread_store(t, d); break;
        case DO_START: do_start(t, d); break;
        case DO_UPDATE: do_update(t, d); break;
        case DO_COUNT: ++*integer(t, d->count); break;
        case DO_TERM: good = do_term(t, d); break;
        case DO_WHOLE: good = is_whole(t, d); break;
        case DO_FOURS: (d->type == INGOT_F32 ? do_pairs : do_fours)(t, d); break;
        case DO_ACROSS: do_across(t, d); break;
        case DO_SKIP: pc = f[d->in[0]] ? pc : d->to; break;
        case DO_SKIP_IF: pc = f[d->in[0]] ? d->to : pc; break;
        case DO_JUMP: pc = d->to; break;
        case DO_LOOP: pc = do_loop(t, d, pc); break;
        case DO_NEXT: pc = do_next(t, d, pc); break;
        case DO_FIRST: do_share(t, d, c->begin); break;
        case DO_LAST: do_share(t, d, c->end); break;
        case DO_AXIS: do_axis(t, d); break;
        case DO_TAKE: integer(t, c->tiles)[d->arg] = d->to; break;
        case DO_HELD: good = is_held(t, d); break;
        case DO_LOAD_TILE: good = thread_load_tile(t, d); break;
        case DO_STORE_TILE: good = thread_store_tile(t, d); break;
        case DO_BRING: good = thread_bring(t, d); break;
        case DO_COMMIT: t->groups++; break;
        case DO_WAIT: thread_wait(t, (int)d->arg); break;
        case DO_LOAD_LANE: good = thread_load_lane(t, d); break;
        case DO_QUAD:
        case DO_PRODUCTS_OF_LANES:
        case DO_PRODUCTS_IN_PLACE: return stop(t, pc, AT_PRODUCTS);
        case DO_PRODUCTS: thread_products(t, d); break;
        case DO_FORGET: do_forget(t, d); break;
        case DO_LAST_PART: pc = *integer(t, c->end) == d->arg ? pc : d->to; break;
        case DO_ITEM:
            if (!do_item(t, d))
                return true;
            break;
        case DO_ITEM_IS:
            if (*integer(t, c->number))
                return true;
            break;
        case DO_DEPEND: t->depended = true; break;
        case DO_BARRIER: return ends_here(t, d) || stop(t, pc, d->arg ? AT_WARP : AT_BARRIER);
        case DO_JOIN:
            if (do_join(t, d))
                return true;
            break;
        case DO_LOADER: pc = t->loader ? pc : d->to; break;
        case DO_LEAVE: return true;
        case DO_BOX: good = thread_box(t, d); break;
        case DO_CLAIM:
        case DO_FILLED:
        case DO_DONE:
        case DO_RELEASE: return stop(t, pc, AT_TOKEN);
        case DO_SCALE: thread_scale(t, d); break;
        }
    }
    return good;
}

static void begin_thread(Thread *t, int64_t number)
{
    t->now = (Epoch)t->m->clock << 32 | (Epoch)number;
    t->pc = t->nflight = t->groups = 0;
    t->depended = !t->lk->items; /* in other kernels nothing comes before it */
    t->joins = t->lk->cluster > 1 && !t->lk->ranks;
    *integer(t, t->c->number) = *integer(t, t->c->begin) = number;
    *integer(t, t->c->end) = number + 1;
    if (t->m->sample && !t->lk->items && t->lk->parts) /* all parts are its own */
        *integer(t, t->c->end) = t->lk->parts;
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
            return thread_fault(&item[at], &item[at].c->code[item[at].pc - 1],
                                "an item waits here for its group, of which item %d does not come",
                                i);
    return true;
}

/* Neighbours of a warp: all of them have what all have together, joined as a tree. */
static void warp_quad(const Thread *item, const Do *d)
{
    const int n = (int)d->arg, lanes = item->lk->warp;
    const size_t bytes = elem_bytes(d->type);
    for (int i = 0; i < lanes; i++)
        memcpy(item[i].f + d->out, item[i].f + d->in[0], bytes);
    for (int i = 0; i < lanes; i += n) {
        for (int apart = 1; apart < n; apart *= 2)
            for (int j = 0; j + apart < n; j += 2 * apart)
                combine(d, (ingot_dtype)d->type, 1, item[i + j].f + d->out, item[i + j].f + d->out,
                        item[i + j + apart].f + d->out);
        for (int j = 1; j < n; j++)
            memcpy(item[i + j].f + d->out, item[i].f + d->out, bytes);
    }
}

/* The items of a warp, each to its end or to a barrier, from one of their products to the next. */
static bool run_warp(Thread *item, int lanes)
{
    for (bool products = true, meets = true; products || meets;) {
        for (int i = 0; i < lanes; i++) {
            const int at = item->m->backwards ? lanes - 1 - i : i;
            if (!run(&item[at]))
                return false;
        }
        products = item[0].waits == AT_PRODUCTS;
        const bool token = item[0].waits == AT_TOKEN;
        meets = item[0].waits == AT_WARP;
        for (int i = 0; i < lanes; i++)
            if ((item[i].waits == AT_PRODUCTS) != products ||
                (item[i].waits == AT_TOKEN) != token || (item[i].waits == AT_WARP) != meets ||
                ((products || token || meets) && item[i].pc != item[0].pc)) {
                const Thread *t = item[i].waits == AT_PRODUCTS ? &item[i] : &item[0];
                return thread_fault(t, &t->c->code[t->pc - 1],
                                    "an item waits here for its warp, of which not all items come");
            }
        for (int i = 0; i < lanes && meets; i++)
            item[i].shared += (Epoch)1 << 32;
        const Do *d = &item->c->code[item->pc - 1];
        if (products && d->kind == DO_PRODUCTS_IN_PLACE && !warp_products_in_place(item, d))
            return false;
        if (products && d->kind == DO_QUAD)
            warp_quad(item, d);
        if (products && d->kind == DO_PRODUCTS_OF_LANES)
            warp_products(item, d);
    }
    return true;
}

/* One by one as far as each can go: the loader behind all others, then every warp from one token to
 * the next. */
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
        while (loader->waits == AT_TOKEN && thread_pass(loader)) {
            moved = true;
            if (!run(loader))
                return false;
        }
        left |= loader->waits != RUNS;
        for (int i = 0; i < n; i += warp) {
            const int at = item->m->backwards ? n - warp - i : i;
            if (item[at].waits == AT_TOKEN && thread_pass(&item[at])) {
                moved = true;
                if (!run_warp(&item[at], warp))
                    return false;
            }
            left |= item[at].waits != RUNS;
        }
    }
    for (int i = 0; i <= n; i++)
        if (item[i].waits != RUNS)
            return thread_fault(&item[i], &item[i].c->code[item[i].pc - 1],
                                "an item waits here for what does not come");
    return true;
}

/* How often all groups of a cluster meet. */
static int meetings(const LinearKernel *lk)
{
    int n = 0;
    for (int i = 0; i < lk->n && lk->ranks; i++)
        for (int j = 0; j < lk->tile[i].n; j++)
            n += lk->tile[i].stmt[j].kind == STMT_BARRIER && lk->tile[i].stmt[j].meets;
    return n;
}

/* Groups of a cluster give, then they take; or each runs once more from the beginning for each time
 * that they meet. */
static int turns_of(const LinearKernel *lk)
{
    return lk->ranks ? lk->cluster * (meetings(lk) + 1) : lk->cluster > 1 ? 2 * lk->cluster : 1;
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
        item[i].joined = lk->cluster > 1 && !lk->ranks ? arena_alloc(a, bytes) : NULL;
        item[i].boxes = NULL;
        item[i].f = arena_alloc(a, bytes);
        item[i].a = a;
    }
    bool good = true;
    const int turns = turns_of(lk);
    const bool gives = lk->cluster > 1 && !lk->ranks;
    for (int64_t g = 0; g < groups / lk->cluster * turns && good; g++) {
        const int turn = (int)(g % turns);
        int64_t group = g / turns * lk->cluster + turn % lk->cluster;
        group = first->m->backwards ? groups - 1 - group : group;
        for (int i = 0; i < n && gives; i++) {
            item[i].gives = turn < lk->cluster;
            if (!turn)
                memset(item[i].joined, 0, bytes);
        }
        for (int j = lk->narg; j < lk->k->narg; j++)
            if (!turn || !lk->k->args[j].ranks)
                shadow_forget(places[j].memory, 0, places[j].memory->size);
        for (int i = 0; i < n; i++) {
            memcpy(item[i].f, first->f, bytes);
            begin_thread(&item[i], group * n + i);
            item[i].met = 0;
            item[i].meets = turn / lk->cluster;
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
            const int warp = lk->warp;
            for (int i = 0; i < n; i++) {
                item[i].shared = phase << (32 + WARP_CLOCK) | (Epoch)i;
                item[i].within = (uint64_t)(group + 1) << 32 | (uint64_t)turn << 16 | phase;
            }
            for (int i = 0; i < n && good; i += warp) {
                const int at = first->m->backwards ? n - warp - i : i;
                good = warp > 1 ? run_warp(&item[at], warp) : run(&item[at]);
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
        sized[i].size = k->args[i].dims[0]->hi * (k->args[i].ranks ? k->args[i].ranks : 1);
        sized[i].memory = shadow_new(lk->arena, sized[i].size * bytes, (int)bytes);
        sized[i].memory->warp = lk->group && !lk->loader && !k->args[i].ranks ? lk->warp : 0;
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
    if (!m->sample && threads >= (int64_t)THREAD_SEVERAL) { /* of these a sample runs a few */
        snprintf(m->fault, sizeof m->fault, "%s: too many work items", k->name);
        return false;
    }
    if (lk->group)
        return run_groups(&t, sized, m->sample ? lk->cluster : threads / lk->group);
    for (int64_t i = 0; i < (m->sample && threads ? 1 : threads); i++) {
        begin_thread(&t, m->backwards ? threads - 1 - i : i);
        for (int j = lk->narg; j < k->narg; j++)
            shadow_forget(sized[j].memory, 0, sized[j].memory->size);
        if (!run(&t))
            return false;
    }
    return true;
}
