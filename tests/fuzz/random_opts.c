/* random_opts.c - kernels in their naive form and with random opts: the two are run by the interpreter of linear IR, and are
 * compared by C programs too.
 *
 *     random_opts --n CANDIDATES --seed S --every E --files F OUT
 *
 * Every candidate runs on the same data as its kernel without opts, parts in reverse order; what differs, what is written by one
 * of the two only, and every fault that the interpreter tells of is printed as wrong.  One of E candidates is written to
 * OUT/opts_0.c ... OUT/opts_<F-1>.c as well, each a program that does the same with what a C compiler makes of them.
 * The data are small integers, so that sums are exact in any order and results are equal bit for
 * bit (of a zero but for its sign: a sum without a loop does not start from +0); kernels of
 * functions that round (exp, division, ...) are given a tolerance.  Opts come from
 * opt_apply(): what it refuses is counted, what it does must be right.  random_opts.h is what the
 * programs share; random_opts.py builds and runs them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/interp/interp.h"
#include "compiler/interp/linear_interp.h"
#include "targets/targets.h"

enum { MAX_KERNELS = 512, MAX_KERNEL_ARGS = 40, TRIES = 12, MAX_OPTS = 6 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

/* ---- models ------------------------------------------------------------------------------------ */

static int64_t size(int64_t most)
{
    static const int64_t sizes[] = {2,  3,  5,  7,  8,  9,  12, 13, 16,
                                    17, 20, 24, 27, 31, 32, 33, 40, 48};
    int64_t n;
    do
        n = sizes[below(sizeof sizes / sizeof *sizes)];
    while (n > most);
    return n;
}

static ingot_tensor *in(Context *c, const char *name, ingot_dtype d, int rank, const int64_t *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = idx(c, n[i]);
    return ingot_input(c, name, d, rank, dims);
}
#define IN(name, d, ...) \
    in(c, name, d, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

/* A weight of type f32 or i8; the programs fill it with data of their own. */
static ingot_tensor *weight(Context *c, ingot_dtype d, int rank, const int64_t *n)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)n[i];
    unsigned char *bytes = ingot_alloc(c, count * elem_bytes(d));
    for (size_t i = 0; i < count; i++) { /* not all alike, or it would be spelled as a number */
        float f = (float)(1 + i % 2);
        memcpy(bytes + 4 * i * (d == INGOT_F32), &f, d == INGOT_F32 ? 4 : 0);
        bytes[i] = d == INGOT_F32 ? bytes[i] : (unsigned char)(1 + i % 2);
    }
    return ingot_data(c, "w", d, rank, n, bytes);
}
#define WEIGHT(d, ...) \
    weight(c, d, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

static void out(Context *c, ingot_tensor *t)
{
    ingot_output(c, "y", t);
}

static ingot_dtype some_float(void)
{
    static const ingot_dtype d[] = {INGOT_F32, INGOT_F32, INGOT_F16, INGOT_BF16, INGOT_F64};
    return d[below(5)];
}

static void products(Context *c)
{
    ingot_dtype d = some_float();
    int64_t m = size(48), k = size(48), n = size(48);
    ingot_tensor *y = ingot_matmul(c, IN("a", d, m, k), IN("b", d, k, n));
    out(c, below(2) ? ingot_relu(c, y) : ingot_add(c, y, IN("d", d, n)));
}

static void batched(Context *c)
{
    int64_t b = size(5), m = size(20), k = size(20), n = size(33);
    ingot_tensor *x = IN("a", INGOT_F32, b, m, k), *y = IN("b", INGOT_F32, b, n, k);
    out(c, ingot_matmul(c, x, ingot_transpose(c, y, 1, 2)));
}

static void linear(Context *c)
{
    int64_t m = size(9), k = size(48), n = size(48);
    out(c, ingot_relu(c, ingot_linear(c, IN("x", INGOT_F32, m, k), WEIGHT(INGOT_F32, n, k),
                                      WEIGHT(INGOT_F32, n))));
}

static void vector_product(Context *c)
{
    int64_t k = size(48), n = size(48);
    out(c, ingot_linear(c, IN("x", INGOT_F32, 1, k), IN("w", INGOT_F32, n, k), NULL));
}

static void narrow_product(Context *c)
{
    static const ingot_dtype types[] = {INGOT_I8, INGOT_U8, INGOT_I16};
    ingot_dtype d = types[below(3)];
    int64_t m = size(20), k = size(33), n = size(33);
    ingot_tensor *a = ingot_cast(c, IN("a", d, m, k), INGOT_I32);
    ingot_tensor *y = ingot_matmul(c, a, ingot_cast(c, WEIGHT(INGOT_I8, k, n), INGOT_I32));
    out(c, ingot_cast(c, ingot_clamp(c, y, -100, 100), INGOT_I8));
}

/* Of bytes, as DOT takes them: four terms at once. */
static void byte_product(Context *c)
{
    int64_t m = size(20), k = 4 * size(12), n = size(33);
    ingot_tensor *a = ingot_cast(c, IN("a", below(2) ? INGOT_I8 : INGOT_U8, m, k), INGOT_I32);
    bool transposed = below(3) != 0;
    ingot_tensor *b =
        transposed ? ingot_transpose(c, WEIGHT(INGOT_I8, n, k), 0, 1) : WEIGHT(INGOT_I8, k, n);
    ingot_tensor *y = ingot_matmul(c, a, ingot_cast(c, b, INGOT_I32));
    out(c, below(2) ? y : ingot_cast(c, ingot_clamp(c, y, -100, 100), INGOT_I8));
}

static void byte_convolution(Context *c)
{
    int64_t ci = 4 * (1 + below(4)), co = size(20), n = 5 + size(9);
    const int64_t one[] = {1, 1};
    ingot_tensor *x = ingot_cast(c, IN("x", INGOT_I8, 1, ci, n, n), INGOT_I32);
    ingot_tensor *w = ingot_cast(c, WEIGHT(INGOT_I8, co, ci, 3, 3), INGOT_I32);
    out(c, ingot_conv(c, x, w, NULL, one, one, one, one, 1));
}

static void three_products(Context *c)
{
    int64_t m = size(17), k = size(24), n = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, m, k);
    for (int i = 0; i < 3; i++)
        ingot_output(c,
                     i == 0   ? "q"
                     : i == 1 ? "k"
                              : "v",
                     ingot_matmul(c, x, WEIGHT(INGOT_F32, k, n)));
}

static void convolution(Context *c)
{
    int64_t groups = (int64_t)1 << below(3), ci = groups * size(9), co = groups * size(16);
    int64_t h = 8 + size(13), w = 8 + size(13), kh = 1 + below(4), kw = 1 + below(4);
    const int64_t stride[] = {1 + below(2), 1 + below(3)}, dilation[] = {1 + below(2), 1};
    const int64_t lo[] = {below(2), below(3)}, hi[] = {below(2), below(2)};
    bool depthwise = below(3) == 0;
    if (depthwise)
        groups = co = ci;
    ingot_tensor *y =
        ingot_conv(c, IN("x", INGOT_F32, 1, ci, h, w), WEIGHT(INGOT_F32, co, ci / groups, kh, kw),
                   WEIGHT(INGOT_F32, co), stride, dilation, lo, hi, groups);
    out(c, ingot_relu(c, y));
}

/* Two, so that the first has a halo to clear. */
static void convolutions(Context *c)
{
    int64_t ci = size(5), co = size(20), cz = size(17), n = 7 + size(9);
    const int64_t one[] = {1, 1};
    ingot_tensor *y = ingot_conv(c, IN("x", INGOT_F32, 1, ci, n, n),
                                 WEIGHT(INGOT_F32, co, ci, 3, 3), NULL, one, one, one, one, 1);
    y = ingot_conv(c, ingot_relu(c, y), WEIGHT(INGOT_F32, cz, co, 3, 3), NULL, one, one, one, one,
                   1);
    out(c, y);
}

static void transposed(Context *c)
{
    int64_t ci = size(9), co = size(12), n = 4 + size(9), s = 1 + below(2), k = s + below(3);
    const int64_t stride[] = {s, s}, one[] = {1, 1}, zero[] = {0, 0};
    out(c, ingot_conv_transpose(c, IN("x", INGOT_F32, 1, ci, n, n), WEIGHT(INGOT_F32, ci, co, k, k),
                                NULL, stride, one, zero, zero, zero, 1));
}

static void pooling(Context *c)
{
    int64_t ch = size(20), n = 6 + size(13), k = 2 + below(2);
    const int64_t kernel[] = {k, k}, stride[] = {1 + below(2), 2}, one[] = {1, 1},
                  pad[] = {below(2), 0};
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, n, n);
    out(c, below(2) ? ingot_max_pool(c, x, kernel, stride, one, pad, pad)
                    : ingot_avg_pool(c, x, kernel, stride, one, pad, pad, true));
}

static void softmax(Context *c)
{
    int64_t a = size(9), b = size(24), n = size(48);
    out(c, ingot_softmax(c, IN("x", INGOT_F32, a, b, n), below(2) ? -1 : (int)below(3)));
}

static void norms(Context *c)
{
    int64_t a = size(12), n = size(48);
    ingot_tensor *x = IN("x", INGOT_F32, 2, a, n), *scale = WEIGHT(INGOT_F32, n);
    switch (below(3)) {
    case 0: out(c, ingot_layer_norm(c, x, 2, scale, WEIGHT(INGOT_F32, n), 1e-5)); break;
    case 1: out(c, ingot_rms_norm(c, x, 2, scale, 1e-5)); break;
    default:
        out(c, ingot_instance_norm(c, x, WEIGHT(INGOT_F32, a), WEIGHT(INGOT_F32, a), 1e-5));
        break;
    }
}

static void attention(Context *c)
{
    int64_t h = 1 + below(3), s = size(20), t = size(24), e = size(20);
    out(c, ingot_attention(c, IN("q", INGOT_F32, 1, h, s, e), IN("k", INGOT_F32, 1, h, t, e),
                           IN("v", INGOT_F32, 1, h, t, e), NULL, 0, below(2) && s <= t));
}

/* Rows that stay in their kernel, and end at a diagonal. */
static void masked_attention(Context *c)
{
    int64_t h = 1 + below(2), t = 16 + size(33), s = 4 + size(12), e = 8 << below(2);
    out(c, ingot_attention(c, IN("q", INGOT_F32, 1, h, s, e), IN("k", INGOT_F32, 1, h, t, e),
                           IN("v", INGOT_F32, 1, h, t, e), NULL, 0, below(4) != 0));
}

/* What a mask leaves of a row, in one of the forms that models have. */
static void masked_rows(Context *c)
{
    int64_t m = size(20), n = size(48);
    ingot_dim *dims[2] = {idx(c, m), idx(c, n)};
    ingot_tensor *x = IN("x", INGOT_F32, m, n), *no = ingot_like(c, x, -INFINITY),
                 *row = ingot_iota(c, 2, dims, 0), *column = ingot_iota(c, 2, dims, 1);
    row = ingot_add(c, row, ingot_scalar_i(c, INGOT_I64, (int64_t)below(9) - 4));
    ingot_tensor *mask = below(2) ? ingot_le(c, column, row) : ingot_lt(c, row, column);
    bool not = mask->op == OP_LT;
    switch (below(3)) {
    case 0: out(c, ingot_sum(c, ingot_where(c, mask, x, ingot_like(c, x, 0)), 2, below(2))); break;
    case 1:
        out(c, ingot_reduce(c, INGOT_REDUCE_MAX,
                            not ? ingot_where(c, mask, no, x) : ingot_where(c, mask, x, no), 2,
                            false));
        break;
    default:
        out(c, ingot_softmax_or_zero(
                   c, ingot_add(c, x, ingot_where(c, mask, ingot_like(c, x, 0), no)), -1));
        break;
    }
}

static void reduces(Context *c)
{
    static const ingot_reduce_op op[] = {INGOT_REDUCE_ADD, INGOT_REDUCE_MAX, INGOT_REDUCE_MIN};
    static const ingot_dtype type[] = {INGOT_F32, INGOT_F32, INGOT_I32,
                                       INGOT_I8,  INGOT_I64, INGOT_F16};
    int64_t a = size(12), b = size(20), n = size(40);
    ingot_tensor *x = IN("x", type[below(6)], a, b, n);
    out(c, ingot_reduce(c, op[below(3)], x, 1 + below(7), below(2)));
}

static void arguments(Context *c)
{
    static const ingot_dtype type[] = {INGOT_F32, INGOT_F32, INGOT_F16,
                                       INGOT_I32, INGOT_U8,  INGOT_I64};
    int64_t a = size(20), n = size(48);
    ingot_tensor *x = IN("x", type[below(6)], a, n);
    int axis = (int)below(2);
    out(c, below(2) ? ingot_argmax(c, x, axis, true, below(2))
                    : ingot_argmin(c, x, axis, true, below(2)));
}

static void cumulated(Context *c)
{
    int64_t a = size(20), n = size(24);
    out(c, ingot_cumsum(c, IN("x", INGOT_F32, a, n), (int)below(2), below(2), below(2)));
}

static void copies(Context *c)
{
    static const ingot_dtype type[] = {INGOT_F32, INGOT_I8, INGOT_I64, INGOT_F16};
    int64_t a = size(24), b = size(33), d = size(17);
    ingot_dtype t = type[below(4)];
    ingot_tensor *x = IN("x", t, a, b, d);
    static const int perm[][3] = {{2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}};
    ingot_tensor *y = ingot_permute(c, x, perm[below(5)]);
    out(c, below(2) ? y : ingot_flip(c, y, 1 + below(7)));
}

static void joined(Context *c)
{
    int64_t a = size(9), b = size(20), d = size(20), e = size(9);
    ingot_tensor *part[] = {IN("x", INGOT_F32, a, b, e),
                            ingot_relu(c, IN("y", INGOT_F32, a, d, e))};
    out(c, ingot_add_c(c, ingot_concat(c, 2, part, 1), 1));
}

static void blocks(Context *c)
{
    int64_t ch = 4 * size(8), n = size(13);
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, 2 * n, 2 * n);
    out(c, below(2) ? ingot_depth_to_space(c, x, 2, below(2)) : ingot_space_to_depth(c, x, 2));
}

static void elementwise(Context *c)
{
    ingot_dtype d = some_float();
    int64_t a = size(24), n = size(48);
    ingot_tensor *x = IN("x", d, a, n), *y = IN("y", d, below(2) ? 1 : a, n), *z = IN("z", d, a, 1);
    ingot_tensor *s = ingot_add(c, ingot_mul(c, x, y), z);
    out(c, below(2) ? s : ingot_where(c, ingot_lt(c, x, y), s, ingot_mul_c(c, y, 2)));
}

static void functions(Context *c)
{
    int64_t a = size(24), n = size(48);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    switch (below(4)) {
    case 0: out(c, ingot_gelu(c, x, below(2))); break;
    case 1: out(c, ingot_sigmoid(c, x)); break;
    case 2: out(c, ingot_mish(c, x)); break;
    default: out(c, ingot_softsign(c, x)); break;
    }
}

static void gathers(Context *c)
{
    int64_t a = size(20), n = size(33), k = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    if (below(2))
        out(c, ingot_take(c, x, IN("i", INGOT_I64, k), 0));
    else
        out(c, ingot_gather_elements(c, x, IN("i", INGOT_I64, k, n), 0));
}

static void scatters(Context *c)
{
    int64_t a = size(20), n = size(33), k = size(20);
    ingot_tensor *x = IN("x", INGOT_F32, a, n);
    out(c, ingot_scatter_elements(c, below(2) ? INGOT_ADD : INGOT_SET, x, IN("i", INGOT_I64, k, n),
                                  IN("v", INGOT_F32, k, n), 0));
}

/* Sizes of run time, up to a bound. */
static void bounded(Context *c)
{
    ingot_dim *n = ingot_dim_var(c, "n", 1, 20 + size(48)), *k = idx(c, size(33)),
              *m = idx(c, size(33));
    bool rows = below(2);
    ingot_tensor *x =
        ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){rows ? n : k, rows ? k : n});
    switch (below(4)) {
    case 0:
        out(c, ingot_relu(c, ingot_matmul(c, x,
                                          ingot_input(c, "w", INGOT_F32, 2,
                                                      (ingot_dim *[]){rows ? k : n, m}))));
        break;
    case 1: out(c, ingot_softmax(c, x, (int)below(2))); break;
    case 2: out(c, ingot_add_c(c, ingot_relu(c, ingot_transpose(c, x, 0, 1)), 1)); break;
    default: out(c, ingot_sum(c, ingot_mul(c, x, x), 1 + below(3), true)); break;
    }
}

static void resized(Context *c)
{
    int64_t ch = size(17), n = size(12);
    ingot_resize_axis a = {.size = 2 * n,
                           .mode = below(2) ? INGOT_RESIZE_NEAREST : INGOT_RESIZE_LINEAR};
    ingot_tensor *x = IN("x", INGOT_F32, 1, ch, n, n);
    out(c, ingot_resize(c, ingot_resize(c, x, 2, &a), 3, &a));
}

static void (*const models[])(Context *) = {
    products,       convolution,    convolution,      convolutions,     linear,
    vector_product, narrow_product, transposed,       softmax,          norms,
    attention,      reduces,        arguments,        batched,          cumulated,
    copies,         joined,         blocks,           pooling,          elementwise,
    functions,      gathers,        scatters,         bounded,          resized,
    three_products, byte_product,   byte_convolution, masked_attention, masked_rows};

/* ---- kernels ----------------------------------------------------------------------------------- */

typedef struct {
    Kernel *k;      /* naive */
    Opt *heuristic; /* its opts were these */
    int nheuristic;
    bool exact;
    int64_t var[64]; /* values of its run-time integers */
} Case;

/* The kernels of a model, with layouts for the target or as they were declared. */
static int kernels_of(Context *c, const Target *t, Case *out, int n, int most)
{
    bool decided = below(4) != 0;
    Plan *p = schedule(c, 2, t);
    if (!p)
        exit(1);
    if (decided) {
        copy_inputs(p);
        kernel_keys(p);
        choose_layouts(p, t);
        optimise(p, t);
    }
    kernel_share(p);
    for (int i = 0; i < p->nkernel && n < most; i++) {
        Kernel *k = p->kernels[i];
        Case x = {.exact = kernel_is_exact(k)};
        x.k = kernel_copy(k);
        x.heuristic = x.k->opts;
        x.nheuristic = x.k->nopt;
        x.k->nopt = 0;
        for (int v = 0; v < k->nvar; v++) {
            const Var *var = &c->vars[k->vars[v]];
            x.var[v] = var->lo + (int64_t)below((uint32_t)(var->hi - var->lo + 1));
        }
        if (k->sink->nsrc < 40 && k->nvar < 64 && k->narg <= MAX_KERNEL_ARGS)
            out[n++] = x;
    }
    plan_free(p);
    return n;
}

/* ---- opts --------------------------------------------------------------------------------------- */

static int applied, refused;

static bool try(Nest *n, const Opt *o)
{
    bool good = !opt_apply(n, o);
    applied += good;
    refused += !good;
    return good;
}

/* Often one of those that were made last, so that parts are taken apart in turn. */
static const char *random_axis(const Nest *n)
{
    uint32_t all = (uint32_t)n->naxis, late = below(2) && all > 3 ? 3 : all;
    for (int i = 0; i < 8; i++) {
        const NestAxis *x = &n->axis[all - 1 - below(late)];
        if (x->split < 0 && x->form == AXIS_LOOP && !x->remainder && x->extent != 1)
            return x->name;
    }
    return n->axis[below(all)].name;
}

static void random_order(Nest *n)
{
    Opt o = {.kind = OPT_ORDER, .axis = ""};
    bool *named = NEWN(n->arena, bool, n->naxis);
    for (int i = 0; i < 3 * n->naxis; i++) {
        int x = (int)below((uint32_t)n->naxis);
        const NestAxis *axis = &n->axis[x];
        if (named[x] || axis->split >= 0 || axis->form != AXIS_LOOP || axis->remainder)
            continue;
        named[x] = true;
        o.axis = arena_printf(n->arena, *o.axis ? "%s %s" : "%s%s", o.axis, axis->name);
    }
    (void)try(n, &o);
}

static void random_opt(Nest *n)
{
    static const int64_t amount[] = {2, 3, 4, 5, 6, 7, 8, 16, 20, 24};
    static const OptKind kind[] = {OPT_SPLIT,  OPT_UPCAST, OPT_UPCAST, OPT_UNROLL, OPT_VECTOR,
                                   OPT_VECTOR, OPT_DOT,    OPT_ORDER,  OPT_THREAD};
    Opt o = {.kind = kind[below(9)], .axis = random_axis(n), .amount = amount[below(10)]};
    if (o.kind == OPT_VECTOR)
        o.amount = INT64_C(4) << below(3);
    if (o.kind == OPT_DOT)
        o.amount = 4;
    if (o.kind == OPT_ORDER)
        random_order(n);
    else if ((o.kind != OPT_THREAD || below(3) == 0) && try(n, &o) && o.kind == OPT_SPLIT &&
             below(2)) {
        Opt lanes = {.kind = OPT_VECTOR,
                     .axis = n->axis[n->split[n->nsplit - 1].inner].name,
                     .amount = o.amount < 8 ? 4 : 8};
        (void)try(n, &lanes);
    }
}

/* STAGE: some argument, at an axis of which a loop inside reads it again; PREFETCH: what the next iteration of some loop over
 * results reads of it. */
static void random_argument(Nest *n, OptKind kind)
{
    Opt o = {.kind = kind, .amount = below((uint32_t)n->k->narg)};
    for (int i = 0; i < n->norder; i++) {
        o.axis = n->axis[n->order[i]].name;
        if (below(2) && try(n, &o))
            return;
    }
}

/* Some opts of its own, or those of the heuristic with one changed; NULL: nothing could be done. */
static Nest *candidate(const Case *x, const Target *t)
{
    Nest *n = nest_new(x->k, t);
    for (int i = 0; i < TRIES; i++) {
        Nest *m = nest_clone(n);
        uint32_t change =
            below(4) && x->nheuristic ? below((uint32_t)x->nheuristic + 1) : UINT32_MAX;
        for (int j = 0; j < x->nheuristic && change != UINT32_MAX; j++) {
            if (j == (int)change)
                random_opt(m);
            else
                (void)try(m, &x->heuristic[j]);
        }
        for (uint32_t j = 0, count = below(MAX_OPTS); j < count; j++)
            random_opt(m);
        if (!m->parts && !below(4))
            random_argument(m, OPT_PREFETCH);
        for (uint32_t j = below(3); j > 0 && !m->parts; j--)
            random_argument(m, OPT_STAGE);
        if (m->nopt && !nest_check(m)) {
            nest_free(n);
            return m;
        }
        nest_free(m);
    }
    nest_free(n);
    return NULL;
}

/* ---- judged by the interpreter ------------------------------------------------------------------- */

/* What a kernel without opts makes of small integers. */
typedef struct {
    Arena *a;
    unsigned char *first[MAX_KERNEL_ARGS]; /* what is in the arguments before */
    ShadowMemory *want[MAX_KERNEL_ARGS];
    char naive[1024]; /* what is wrong with it, or "" */
} Judge;

static int64_t arg_bytes(const KernelArg *arg)
{
    return sat_mul(layout_elements(&arg->layout, arg->rank, arg->dims),
                   (int64_t)elem_bytes(arg->dtype));
}

/* From -3 to 3; of what may be an index from 0 to 3. */
static void fill(const KernelArg *arg, unsigned char *p)
{
    size_t bytes = elem_bytes(arg->dtype);
    for (int64_t i = 0, n = arg_bytes(arg) / (int64_t)bytes; i < n; i++) {
        int v = (int)((uint64_t)(i * 2654435761 + 12345) >> 7 & 0xffff) % 7 - 3;
        bool index = !dtype_is_float(arg->dtype) && (bytes >= 4 || arg->dtype == INGOT_BOOL);
        store_int(arg->dtype,
                  arg->dtype == INGOT_BOOL ? v & 1
                  : index && v < 0         ? -v
                                           : v,
                  p + (size_t)i * bytes);
    }
}

/* Elements that there are: a dense buffer of a run-time size may be a caller's, and has no more. */
static int64_t elements_of(const Case *x, const KernelArg *arg)
{
    int64_t n = 1;
    if (arg->layout.n)
        return layout_elements(&arg->layout, arg->rank, arg->dims);
    Interp *ip = interp_new(x->k->c);
    for (int i = 0; i < x->k->nvar; i++)
        interp_set_var(ip, x->k->vars[i], x->var[i]);
    for (int i = 0; i < arg->rank; i++)
        n *= dim_value(ip, arg->dims[i]);
    interp_free(ip);
    return n;
}

/* The fault that the run ends with, or "". */
static void interpret(const Case *x, const Judge *j, const Tiles *tiles, bool gpu,
                      ShadowMemory **got, char fault[1024], Arena *a)
{
    LinearInterp m = {.backwards = true};
    LinearArg arg[MAX_KERNEL_ARGS] = {{0}};
    for (int i = 0; i < x->k->narg; i++) {
        const KernelArg *k = &x->k->args[i];
        int64_t bytes = arg_bytes(k);
        got[i] = arg[i].memory = shadow_new(a, bytes, (int)elem_bytes(k->dtype));
        memcpy(got[i]->bytes, j->first[i], (size_t)bytes);
        arg[i].size = elements_of(x, k);
        if (k->read)
            shadow_given(got[i], 0, bytes);
    }
    (void)linear_run(&m, linear_kernel(a, tiles, x->k->narg, gpu), arg, x->var, NULL);
    memcpy(fault, m.fault, sizeof m.fault);
}

static Judge judge_new(const Case *x, const Target *t)
{
    Judge j = {.a = arena_new()};
    for (int i = 0; i < x->k->narg; i++) {
        j.first[i] = arena_alloc(j.a, (size_t)arg_bytes(&x->k->args[i]) + 1);
        fill(&x->k->args[i], j.first[i]);
    }
    Nest *n = nest_new(x->k, t);
    Tiles tiles = nest_lower(n);
    interpret(x, &j, &tiles, false, j.want, j.naive, j.a);
    tiles_free(&tiles);
    nest_free(n);
    return j;
}

/* What rounds is rounded in another order. */
static double apart(const Case *x, int arg)
{
    ingot_dtype d = x->k->args[arg].dtype;
    return x->exact ? 0 : d == INGOT_F16 ? 2e-3 : d == INGOT_BF16 ? 2e-2 : 1e-4;
}

/* What is wrong with loop nests of the kernel, or "". */
static void judge(const Case *x, const Judge *j, const Tiles *tiles, bool gpu, char fault[1024])
{
    Arena *a = arena_new();
    ShadowMemory *got[MAX_KERNEL_ARGS];
    interpret(x, j, tiles, gpu, got, fault, a);
    for (int i = 0; i < x->k->narg && !*fault; i++)
        (void)linear_same(x->k, i, &(LinearArg){.memory = got[i]},
                          &(LinearArg){.memory = j->want[i]}, apart(x, i), fault);
    arena_free(a);
}

static void judge_nest(const Case *x, const Judge *j, const Nest *n, char fault[1024])
{
    Tiles tiles = nest_lower(n);
    judge(x, j, &tiles, false, fault);
    tiles_free(&tiles);
}

/* The kernel as the program of a GPU's work items. */
static void judge_items(const Case *x, const Judge *j, const Target *t, char fault[1024])
{
    Nest *n = nest_new(x->k, t);
    Tiles tiles = nest_lower(n);
    *fault = 0;
    if (tiles.n == 1)
        judge(x, j, &tiles, true, fault);
    tiles_free(&tiles);
    nest_free(n);
}

/* ---- programs ------------------------------------------------------------------------------------ */

static char kind_letter(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32: return 'f';
    case INGOT_F64: return 'd';
    case INGOT_F16: return 'h';
    case INGOT_BF16: return 'B';
    case INGOT_BOOL: return 'b';
    default: return 'i';
    }
}

static void put_call(StrBuf *sb, const Case *x, const char *name, const char *buffers, int parts,
                     int64_t scratch)
{
    const char *separator = "";
    sb_printf(sb, parts ? "        %s(" : "    %s(", name);
    for (int i = 0; i < x->k->narg; i++)
        if (kernel_has_param(x->k, i)) {
            sb_printf(sb, "%s(void *)(%s[%d] + GUARD)", separator, buffers, i);
            separator = ", ";
        }
    for (int i = 0; i < x->k->nvar; i++) {
        sb_printf(sb, "%s%lld", separator, (long long)x->var[i]);
        separator = ", ";
    }
    for (int i = 0; i < x->k->nscalar; i++) {
        sb_puts(sb, separator);
        print_scalar(sb, &x->k->scalars[i], x->k->scalars[i].lo);
        separator = ", ";
    }
    if (scratch) {
        sb_printf(sb, "%splaces(%lld)", separator, (long long)scratch * (parts ? parts : 1));
        separator = ", ";
    }
    sb_printf(sb, parts ? "%sat - 1, at);\n" : ");\n", separator);
}

static void put_opts(StrBuf *sb, const Nest *n)
{
    for (int i = 0; i < n->nopt; i++) {
        sb_puts(sb, i ? ", " : "");
        opt_print(sb, &n->opts[i]);
    }
}

/* The kernel without opts, as a function of the program. */
static void put_naive(StrBuf *sb, const Case *x, int number, const Target *t)
{
    char name[64];
    snprintf(name, sizeof name, "k%d_naive", number);
    sb_puts(sb, "static ");
    render_kernel(sb, t, x->k, name);
}

static void put_candidate(StrBuf *sb, StrBuf *calls, const Case *x, const Nest *m, const char *name,
                          const Target *t)
{
    Kernel *k = kernel_copy(x->k);
    nest_keep(m, k);
    k->scratch = kernel_scratch(k);
    sb_puts(sb, "/* ");
    put_opts(sb, m);
    sb_puts(sb, " */\nstatic ");
    render_kernel(sb, t, k, name);
    sb_printf(calls, "    start(now, a, %d);\n", k->narg);
    if (m->parts)
        sb_printf(calls, "    for (int at = %d; at > 0; at--)\n", m->parts);
    put_call(calls, x, name, "now", m->parts, k->scratch);
    sb_printf(calls, "    wrong += judge(a, %d, %d, \"%s %s: ", k->narg, x->exact, x->k->name,
              name);
    put_opts(calls, m);
    sb_puts(calls, "\");\n");
    ingot_context_free(k->c);
}

static void put_test(StrBuf *sb, const Case *x, int number, const StrBuf *calls)
{
    char name[64];
    snprintf(name, sizeof name, "k%d_naive", number);
    sb_printf(sb, "static int test_%d(void)\n{\n    static const Arg a[] = {", number);
    for (int i = 0; i < x->k->narg; i++) {
        const KernelArg *arg = &x->k->args[i];
        sb_printf(sb, "{%lld, '%c', %d}, ", (long long)arg_bytes(arg), kind_letter(arg->dtype),
                  (int)elem_bytes(arg->dtype));
    }
    sb_printf(sb, "};\n    int wrong = 0;\n    start(want, a, %d);\n", x->k->narg);
    put_call(sb, x, name, "want", 0, x->k->scratch);
    sb_write(sb, calls->data, calls->len);
    sb_puts(sb, "    return wrong;\n}\n");
}

static int candidates, compiled, wrong;

static void tell(const Case *x, const Nest *n, const char *fault)
{
    StrBuf sb = {0};
    if (n)
        put_opts(&sb, n);
    printf("wrong: %s %s: %s\n", x->k->name, sb.data ? sb.data : "", fault);
    wrong++;
    sb_free(&sb);
}

/* n candidates of a kernel; whether the program has any of them. */
static bool try_case(StrBuf *sb, const Case *x, int number, int n, int every, const Target *t)
{
    StrBuf calls = {0};
    char name[64], fault[1024];
    int count = 0;
    Judge j = judge_new(x, t);
    if (*j.naive)
        tell(x, NULL, j.naive);
    judge_items(x, &j, t, fault);
    if (*fault)
        tell(x, NULL, fault);
    for (int i = 0; i < n; i++) {
        Nest *m = candidate(x, t);
        if (!m)
            continue;
        judge_nest(x, &j, m, fault);
        if (*fault)
            tell(x, m, fault);
        if (candidates++ % every == 0) {
            if (!count)
                put_naive(sb, x, number, t);
            snprintf(name, sizeof name, "k%d_%d", number, count++);
            put_candidate(sb, &calls, x, m, name, t);
        }
        nest_free(m);
    }
    if (count)
        put_test(sb, x, number, &calls);
    compiled += count;
    sb_free(&calls);
    arena_free(j.a);
    return count > 0;
}

static bool put_file(const char *folder, int number, const StrBuf *body)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/opts_%d.c", folder, number);
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(body->data, 1, body->len, f) == body->len;
    return f && fclose(f) == 0 && good;
}

int main(int argc, char **argv)
{
    int n = 200, files = 4, every = 10, nkernel = 0;
    unsigned long seed = 1;
    const char *folder = NULL, *machine = "native";
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--n"))
            n = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--seed"))
            seed = strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && !strcmp(argv[i], "--files"))
            files = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--every"))
            every = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--machine"))
            machine = argv[++i];
        else
            folder = argv[i];
    }
    Target t = *target_find("c");
    if (!folder || n < 1 || files < 1 || every < 1 || !target_tune(&t, machine)) {
        fprintf(stderr,
                "usage: random_opts [--n N] [--seed S] [--every E] [--files F] [--machine M] "
                "OUT\n");
        return 2;
    }
    state = seed;
    static Case cases[MAX_KERNELS];
    Context *context[MAX_KERNELS];
    int ncontext = 0,
        wanted = n < MAX_KERNELS ? (n < 80 ? n : 80 + (n - 80) / 40) : MAX_KERNELS / 2;
    for (int i = 0; nkernel < wanted; i++) {
        Context *c = context[ncontext++] = ingot_context_new(NULL, NULL);
        models[(size_t)i % (sizeof models / sizeof *models)](c);
        nkernel = kernels_of(c, &t, cases, nkernel, wanted);
    }
    bool good = true;
    for (int f = 0; f < files; f++) {
        StrBuf sb = {0};
        sb_puts(&sb, "#include \"random_opts.h\"\n\n");
        StrBuf calls = {0};
        for (int i = f; i < nkernel; i += files)
            if (try_case(&sb, &cases[i], i, n / nkernel + (i < n % nkernel), every, &t))
                sb_printf(&calls, "    wrong += test_%d();\n", i);
        sb_printf(&sb, "int main(void)\n{\n    int wrong = 0;\n%s    return wrong > 0;\n}\n",
                  calls.data ? calls.data : "");
        sb_free(&calls);
        good &= put_file(folder, f, &sb);
        sb_free(&sb);
    }
    int exact = 0;
    for (int i = 0; i < nkernel; i++) {
        exact += cases[i].exact;
        ingot_context_free(cases[i].k->c);
    }
    for (int i = 0; i < ncontext; i++)
        ingot_context_free(context[i]);
    printf("kernels %d (%d bit for bit), candidates %d (%d compiled), applied %d, refused %d\n",
           nkernel, exact, candidates, compiled, applied, refused);
    printf("flags %s\n", t.flags ? t.flags : "");
    return good ? 0 : 1;
}
