/* figures_test.c - each figure of a machine decides something: with another one the plan of a model
 * is another one.
 *
 *     figures_test          as the table says: which model, for which target, and by how much more
 *                           the figure is
 *     figures_test find     prints such rows, and the figures that none was found for */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/tc.h"
#include "compiler/pipeline/pipeline.h"
#include "targets/targets.h"

/* ---- models ---------------------------------------------------------------------------------- */

static ingot_tensor *input(Context *c, const char *name, ingot_dtype d, int rank, const int64_t *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_dim_const(c, n[i]);
    return ingot_input(c, name, d, rank, dims);
}

static ingot_tensor *weight(Context *c, ingot_dtype d, int rank, const int64_t *n)
{
    static float zeros[1 << 22];
    return ingot_data(c, NULL, d, rank, n, zeros);
}

static ingot_tensor *product(Context *c, ingot_dtype d, int64_t m, int64_t n, int64_t k)
{
    ingot_tensor *x = input(c, "x", d, 2, (int64_t[]){m, k});
    const bool floats = dtype_is_float(d);
    const ingot_dtype sum = floats ? INGOT_F32 : INGOT_I32;
    return ingot_matmul(c, ingot_cast(c, x, sum),
                        ingot_cast(c, weight(c, d, 2, (int64_t[]){k, n}), sum));
}

static ingot_tensor *convolution(Context *c, int64_t in, int64_t out, int64_t size, int64_t taps,
                                 int64_t step, int64_t groups)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 4, (int64_t[]){1, in, size, size});
    return ingot_conv(c, x, weight(c, INGOT_F32, 4, (int64_t[]){out, in / groups, taps, taps}),
                      NULL, (int64_t[]){step, step}, (int64_t[]){1, 1},
                      (int64_t[]){taps / 2, taps / 2}, (int64_t[]){taps / 2, taps / 2}, groups);
}

static ingot_tensor *attention(Context *c, ingot_dtype d, int64_t heads, int64_t rows, int64_t each)
{
    ingot_tensor *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = input(c, (const char *const[]){"q", "k", "v"}[i], d, 4,
                     (int64_t[]){1, heads, rows, each});
    return ingot_attention(c, x[0], x[1], x[2], NULL, 0, false);
}

/* Two products of one operand: queries and keys. */
static ingot_tensor *pair(Context *c)
{
    ingot_tensor *x = ingot_cast(c, input(c, "x", INGOT_BF16, 2, (int64_t[]){128, 256}), INGOT_F32),
                 *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = ingot_matmul(c, x,
                            ingot_cast(c,
                                       input(c, (const char *const[]){"w", "v"}[i], INGOT_BF16, 2,
                                             (int64_t[]){256, 256}),
                                       INGOT_F32));
    ingot_output(c, "z", y[1]);
    return y[0];
}

typedef enum {
    HALVES,
    HALVES_SMALL,
    HALVES_DEEP,
    SINGLES,
    SINGLES_SMALL,
    BYTES,
    SHORTS,
    QUANTIZED,
    BRAINS,
    VECTOR,
    VECTOR_BYTES,
    WINDOW,
    SUMMED_TWICE,
    WINDOW_STRIDED,
    ATTENTION,
    ATTENTION_HALVES,
    ROWS,
    COLUMNS,
    HALVES_FINISH,
    HALVES_BESIDE,
    SINGLES_ACROSS,
    WINDOW_DEEP,
    ATTENTION_TF32,
    PAIR,
    ATTENTION_FEW,
    ATTENTION_LONG,
    ATTENTION_LONG_FEW,
    MODELS
} FigureModel;

/* What is stored between two sums, or computed by both. */
static ingot_tensor *summed_twice(Context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 2, (int64_t[]){1024, 1024});
    x = ingot_exp(c, x);
    return ingot_add(c, ingot_sum(c, x, 1 << 0, 1), ingot_sum(c, x, 1 << 1, 1));
}

/* Sums of bytes that become bytes. */
static ingot_tensor *quantized(Context *c)
{
    ingot_tensor *x = ingot_cast(c, input(c, "x", INGOT_I8, 2, (int64_t[]){16, 64}), INGOT_I32);
    x = ingot_cast(c, ingot_sum(c, x, 1 << 1, 1), INGOT_F32);
    x = ingot_round(c, ingot_mul(c, x, node_const_f(c, INGOT_F32, 0x1.234p-9)));
    x = ingot_max(c, x, node_const_f(c, INGOT_F32, -128));
    return ingot_cast(c, ingot_min(c, x, node_const_f(c, INGOT_F32, 127)), INGOT_I8);
}

static ingot_tensor *build(Context *c, FigureModel m)
{
    switch (m) {
    case HALVES: return product(c, INGOT_F16, 2048, 1536, 1024);
    case HALVES_SMALL: return product(c, INGOT_F16, 197, 384, 1536);
    case HALVES_DEEP: return product(c, INGOT_F16, 64, 128, 4096);
    case SINGLES: return product(c, INGOT_F32, 197, 3072, 768);
    case SINGLES_SMALL: return product(c, INGOT_F32, 1000, 200, 24);
    case BYTES: return product(c, INGOT_I8, 256, 512, 512);
    case SHORTS: return product(c, INGOT_I16, 256, 512, 512);
    case QUANTIZED: return quantized(c);
    case BRAINS: return product(c, INGOT_BF16, 256, 512, 512);
    case VECTOR: return product(c, INGOT_F32, 1, 4096, 1024);
    case VECTOR_BYTES: return product(c, INGOT_I8, 1, 4096, 1024);
    case WINDOW: return convolution(c, 128, 128, 28, 3, 1, 1);
    case SUMMED_TWICE: return summed_twice(c);
    case WINDOW_STRIDED: return convolution(c, 64, 96, 57, 5, 2, 1);
    case ATTENTION: return attention(c, INGOT_F32, 12, 197, 64);
    case ATTENTION_HALVES: return attention(c, INGOT_F16, 12, 128, 64);
    case ROWS: return ingot_softmax(c, input(c, "x", INGOT_F32, 2, (int64_t[]){300, 4096}), 1);
    case COLUMNS: return ingot_sum(c, input(c, "x", INGOT_F32, 2, (int64_t[]){900, 65536}), 1, 0);
    case HALVES_FINISH: return ingot_gelu(c, product(c, INGOT_F16, 512, 3072, 768), false);
    case HALVES_BESIDE: /* a residual */
        return ingot_add(c, ingot_cast(c, product(c, INGOT_F16, 12544, 1024, 128), INGOT_F16),
                         input(c, "y", INGOT_F16, 2, (int64_t[]){12544, 1024}));
    case SINGLES_ACROSS:
        return ingot_matmul(
            c,
            ingot_permute(c, ingot_exp(c, input(c, "x", INGOT_F32, 2, (int64_t[]){1024, 1024})),
                          (int[]){1, 0}),
            input(c, "w", INGOT_F32, 2, (int64_t[]){1024, 1024}));
    case WINDOW_DEEP:
        return ingot_conv(c, ingot_relu(c, input(c, "x", INGOT_F16, 4, (int64_t[]){1, 512, 7, 7})),
                          weight(c, INGOT_F16, 4, (int64_t[]){512, 512, 3, 3}), NULL,
                          (int64_t[]){1, 1}, (int64_t[]){1, 1}, (int64_t[]){1, 1},
                          (int64_t[]){1, 1}, 1);
    case ATTENTION_TF32: return attention(c, INGOT_F32, 12, 197, 64);
    case PAIR: return pair(c);
    case ATTENTION_FEW: return attention(c, INGOT_F32, 12, 64, 32);
    case ATTENTION_LONG: /* as it is read for GPUs: shares of a row are rounded too */
    case ATTENTION_LONG_FEW:
        ingot_set_one_product(c, true);
        return attention(c, INGOT_F16, m == ATTENTION_LONG ? 32 : 4, 2048, 64);
    case MODELS: break;
    }
    return NULL;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int figure_count(void)
{
    int n = 0;
    while (figures[n].key)
        n++;
    return n;
}

/* Of a figure more by the factor; of bits none; of what is so or not the other. */
static void change(Machine *m, const Figure *f, double factor)
{
    unsigned char *at = (unsigned char *)m + f->at;
    double x;
    int n;
    uint64_t bits = 0;
    bool no;
    switch (f->kind) {
    case FIGURE_DOUBLE:
        memcpy(&x, at, sizeof x);
        x = x != 0 ? x * factor : factor;
        memcpy(at, &x, sizeof x);
        break;
    case FIGURE_INT:
        memcpy(&n, at, sizeof n);
        n = !n ? (int)factor : n * factor < 1 ? 1 : (int)(n * factor);
        memcpy(at, &n, sizeof n);
        break;
    case FIGURE_UNITS: memcpy(at, &bits, sizeof bits); break;
    case FIGURE_BOOL:
        memcpy(&no, at, sizeof no);
        no = !no;
        memcpy(at, &no, sizeof no);
        break;
    }
}

static char *plan_for(Arena *a, FigureModel m, Target t, const char *target)
{
    Context *c = ingot_context_new(NULL, NULL);
    if (m != ATTENTION_TF32) /* --precision */
        t.machine.units &= ~(UINT64_C(1) << TC_MMA_TF32);
    ingot_output(c, "y", build(c, m));
    const ingot_options given = {.struct_size = sizeof given, .target = target},
                        o = options_complete(c, &given);
    Clock k = clock_start(c, &o);
    Plan *p = pipeline_plan(c, &t, &o, &k);
    StrBuf sb = {0};
    if (p)
        plan_print(&sb, p);
    char *text = sb_take(&sb, a);
    plan_free(p);
    ingot_context_free(c);
    return text;
}

static char *plan_of(Arena *a, FigureModel m, const char *target, const Figure *f, double factor)
{
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, target, &status));
    if (f)
        change(&t.machine, f, factor);
    return plan_for(a, m, t, target);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    FigureModel model;
    const char *target;
    double factor;
} FigureRow;

static const FigureRow rows[] = {
    {"rate[UNIT_SCALAR]", ATTENTION, "c:c99", 4},
    {"rate[UNIT_VECTOR]", HALVES, "c:x86-64-v4", 0.0625},
    {"rate[UNIT_TILE]", HALVES_SMALL, "c:x86-64-v4", 1000},
    {"rate[UNIT_MATRIX]", PAIR, "c:sapphirerapids", 0.0625},
    {"level[0].bytes", HALVES_SMALL, "c:x86-64-v4", 1000},
    {"level[0].rate", WINDOW, "c:x86-64-v4", 0.25},
    {"level[1].bytes", COLUMNS, "c:x86-64-v4", 1000},
    {"level[1].rate", WINDOW, "c:x86-64-v4", 0.25},
    {"level[2].bytes", COLUMNS, "c:x86-64-v4", 16},
    {"level[2].rate", SUMMED_TWICE, "c:x86-64-v4", 16},
    {"level[3].rate", HALVES, "c:x86-64-v4", 16},
    {"cache", ROWS, "c:x86-64-v4", 1000},
    {"near", WINDOW_STRIDED, "c:x86-64-v4", 1000},
    {"far", HALVES, "c:x86-64-v4", 0.25},
    {"launch", WINDOW, "c:x86-64-v4", 4},
    {"part_ns", HALVES, "c:x86-64-v4", 1000},
    {"byte", WINDOW, "c:x86-64-v4", 4},
    {"turned", SINGLES_ACROSS, "cuda:sm_90a", 16},
    {"start", SINGLES_ACROSS, "cuda:sm_90a", 1000},
    {"shared_rate", BYTES, "cuda:sm_90a", 0.25},
    {"warp_stored", HALVES_BESIDE, "cuda:sm_90a", 16},
    {"warp_products.iteration", BYTES, "cuda:sm_90a", 4},
    {"warp_products.step", BYTES, "cuda:sm_90a", 4},
    {"warp_products.product", BYTES, "cuda:sm_90a", 4},
    {"warp_products.product3", WINDOW, "cuda:sm_90a", 4},
    {"warp_products.split", WINDOW, "cuda:sm_90a", 4},
    {"warp_products.flow", HALVES_SMALL, "cuda:sm_90a", 4},
    {"warp_products.gather", WINDOW, "cuda:sm_90a", 2},
    {"warp_products.issue", WINDOW, "cuda:sm_90a", 4},
    {"warp_products.meet", WINDOW_DEEP, "cuda:sm_90a", 16},
    {"warp_products.member", WINDOW_DEEP, "cuda:sm_90a", 4},
    {"warp_products.crowded", WINDOW_DEEP, "cuda:sm_90a", 0.25},
    {"warp_products.given", WINDOW_DEEP, "cuda:sm_90a", 0.25},
    {"warp_products.join", BYTES, "cuda:sm_90a", 0.0625},
    {"warp_products.stored", BYTES, "cuda:sm_90a", 0.001},
    {"warp_products.address", WINDOW_DEEP, "cuda:sm_90a", 0.25},
    {"warp_products.registers", WINDOW, "cuda:sm_90a", 0.25},
    {"group_products.rate", HALVES_DEEP, "cuda:sm_90a", 0.0625},
    {"group_products.apart", SINGLES, "cuda:sm_90a", 4},
    {"group_products.column", SINGLES, "cuda:sm_90a", 4},
    {"group_products.begin3", SINGLES, "cuda:sm_90a", 1000},
    {"group_products.fill", HALVES, "cuda:sm_90a", 1000},
    {"group_products.latency", HALVES, "cuda:sm_90a", 16},
    {"group_products.flow", HALVES, "cuda:sm_90a", 0.0625},
    {"group_products.flow_all", HALVES, "cuda:sm_90a", 0.25},
    {"group_products.stored", HALVES, "cuda:sm_90a", 0.001},
    {"group_products.given", HALVES_SMALL, "cuda:sm_90a", 4},
    {"group_products.finish", HALVES_FINISH, "cuda:sm_90a", 0.0625},
    {"group_products.group", HALVES, "cuda:sm_90a", 1000},
    {"row_products.flow", ATTENTION, "cuda:sm_90a", 0.25},
    {"row_products.product3", ATTENTION, "cuda:sm_90a", 0.25},
    {"row_products.wait3", ATTENTION, "cuda:sm_90a", 4},
    {"row_products.others", ATTENTION, "cuda:sm_90a", 0.25},
    {"row_products.waited", ATTENTION, "cuda:sm_90a", 4},
    {"row_products.made", ATTENTION_LONG, "cuda:sm_90a", 0.0156},
    {"row_products.alone", ATTENTION_LONG, "cuda:sm_90a", 16},
    {"row_products.rate", ATTENTION_LONG, "cuda:sm_90a", 16},
    {"row_products.begin", ATTENTION_LONG_FEW, "cuda:sm_90a", 16},
    {"row_products.made_overlapped", ATTENTION_LONG, "cuda:sm_90a", 64},
    {"row_products.rate_overlapped", ATTENTION_LONG, "cuda:sm_90a", 0.0625},
    {"row_products.next", ATTENTION_LONG, "cuda:sm_90a", 64},
    {"row_products.join", ATTENTION, "cuda:sm_90a", 16},
    {"row_products.product", ATTENTION_TF32, "cuda:sm_90a", 0.25},
    {"row_products.wait", ATTENTION_TF32, "cuda:sm_90a", 4},
    {"row_products.registers", ATTENTION_FEW, "cuda:sm_90a", 0.25},
    {"line", SINGLES_ACROSS, "c:x86-64-v4", 4},
    {"ways", HALVES_DEEP, "c:x86-64-v4", 0.25},
    {"page", HALVES_SMALL, "c:x86-64-v4", 0.25},
    {"pages", WINDOW_DEEP, "c:x86-64-v4", 0.0625},
    {"lanes", HALVES, "c:x86-64-v4", 4},
    {"registers", HALVES, "c:x86-64-v4", 4},
    {"weight_block", SINGLES, "c:x86-64-v4", 16},
    {"sums", HALVES, "c:c99", 0.25},
    {"chains", HALVES, "c:x86-64-v4", 4},
    {"spills", HALVES, "c:x86-64-v4", 0.25},
    {"units", HALVES, "cuda:sm_90a", 4},
    {"processors", HALVES, "cuda:sm_90a", 4},
    {"close", HALVES_DEEP, "cuda:sm_90a", 0.0625},
    {"cluster", WINDOW_DEEP, "cuda:sm_90a", 4},
    {"quarters", BYTES, "cuda:sm_90a", 0.25},
    {"warp", SINGLES_SMALL, "cuda:sm_90a", 0.25},
    {"file", HALVES, "cuda:sm_90a", 0.25},
    {"item_registers", HALVES, "cuda:sm_80", 0.25},
    {"group", BYTES, "cuda:sm_90a", 0.0625},
    {"loads", SUMMED_TWICE, "cuda:sm_90a", 0.25},
    {"access", VECTOR, "cuda:sm_90a", 4},
    {"sector", BYTES, "cuda:sm_90a", 16},
    {"items", HALVES, "cuda:sm_90a", 0.0625},
    {"shared", HALVES, "cuda:sm_90a", 4},
    {"subgroup", ATTENTION, "opencl:dot8+subgroups32", 4},
    {"dot", BYTES, "c:x86-64-v4", 4},
    {"dot_bf16", BRAINS, "c:x86-64-v4", 4},
    {"dot_i16", SHORTS, "c:x86-64-v4", 0.25},
    {"dot_terms", BYTES, "c:cortex-m55", 0.25},
    {"any_sign", BYTES, "c:x86-64-v4", 4},
    {"pairs", BYTES, "c", 4},
    {"asks", VECTOR_BYTES, "c:x86-64-v4+vnni", 4},
    {"soft_floats", QUANTIZED, "c:cortex-m3", 0.25},
    {"core_lanes", WINDOW, "opencl", 16},
    {"joins_subgroups", ATTENTION_HALVES, "cuda:sm_90a", 4},
    {"place_word", SINGLES, "wgsl", 16},
    {"takes_fours", BYTES, "opencl:dot8+subgroups32", 4},
    {"images", WINDOW, "opencl:images", 4},
};
enum { NROWS = sizeof rows / sizeof *rows };

static const FigureRow *row_of(const char *name)
{
    for (int i = 0; i < NROWS; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

/* Memory holds all that there is; and what a launch need not ask for is no plan's. */
static const char *const others[] = {"level[3].bytes", "shared_static"};

static bool decides(const char *name)
{
    return strcmp(name, others[0]) != 0 && strcmp(name, others[1]) != 0;
}

/* The plan of a row's model as the machine is: many rows have the same. */
static const char *plan_before(Arena *kept, const FigureRow *r)
{
    static const char *plan[NROWS];
    for (int i = 0; i < NROWS; i++) {
        const bool same = rows[i].model == r->model && !strcmp(rows[i].target, r->target);
        if (same && !plan[i])
            plan[i] = plan_of(kept, r->model, r->target, NULL, 1);
        if (same)
            return plan[i];
    }
    return NULL;
}

static void each_decides(void **state)
{
    (void)state;
    Arena *kept = arena_new();
    for (int i = 0; i < figure_count(); i++) {
        const FigureRow *r = row_of(figures[i].path);
        if (!decides(figures[i].path))
            continue;
        if (!r)
            fail_msg("%s: no model is known that it changes", figures[i].path);
        Arena *a = arena_new();
        if (!strcmp(plan_before(kept, r), plan_of(a, r->model, r->target, &figures[i], r->factor)))
            fail_msg("%s: the plan is as it was", figures[i].path);
        arena_free(a);
    }
    arena_free(kept);
}

static char *plan_with(Arena *a, FigureModel m, const char *target, const Figure *f, double x)
{
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, target, &status));
    assert_null(figure_read(&t.machine, a, f, arena_printf(a, "%.17g", x)));
    return figures_wrong(&t.machine, t.gpu) ? "none" : plan_for(a, m, t, target);
}

/* Processors that are cores have tiles in registers; nobody shares anything. */
static void cores_share_nothing(void **state)
{
    (void)state;
    Arena *a = arena_new();
    const char *plan =
        plan_with(a, WINDOW, "opencl", figure_find("core_lanes"), 16); /* 128 x 28 x 28 */
    assert_non_null(strstr(plan, "UPCAST i0 16"));
    assert_non_null(strstr(plan, "UPCAST i1_i2 4"));
    assert_null(strstr(plan, "STAGE"));
    assert_null(strstr(plan, " lane"));
    arena_free(a);
}

/* A target file may say the least and the most of each figure: there is some plan then, too. */
static void at_their_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        FigureModel model[2];
    } tried[] = {{"c:x86-64-v4", {SINGLES_SMALL, ROWS}}, {"cuda:sm_90a", {HALVES, ATTENTION}}};
    for (int i = 0; i < figure_count(); i++)
        for (int t = 0; t < 2; t++)
            for (int n = 0; n < 2; n++) { /* models in turn */
                const Figure *f = &figures[i];
                const double x = n ? f->most : f->least;
                if (f->kind == FIGURE_UNITS || f->kind == FIGURE_BOOL || !figure_is_of(f, t))
                    continue;
                Arena *a = arena_new();
                if (!*plan_with(a, tried[t].model[(n + i) % 2], tried[t].target, f, x))
                    fail_msg("%s = %g: there is no plan for %s", f->key, x, tried[t].target);
                arena_free(a);
            }
}

/* No byte of Machine is without a figure, but for what the last one leaves of eight. Those of
 * devices beside the first have their tests in tests/accelerator. */
static void all_are_here(void **state)
{
    (void)state;
    static unsigned char known[sizeof(Machine)];
    size_t without = 0;
    for (int i = 0; i < figure_count(); i++)
        memset(known + figures[i].at, 1, figures[i].size);
    memset(known + offsetof(Machine, link), 1, sizeof((Machine *)0)->link);
    memset(known + offsetof(Machine, own_units), 1, sizeof((Machine *)0)->own_units);
    known[offsetof(Machine, tables)] = 1; /* what the processor's features say */
    for (size_t i = 0; i < sizeof known; i++)
        without += !known[i];
    assert_true(without < sizeof(double));
}

static void find(void)
{
    static const char *const targets_of[] = {"c:x86-64-v4",
                                             "cuda:sm_90a",
                                             "cuda:sm_80",
                                             "c:sapphirerapids",
                                             "c:x86-64-v4+vnni",
                                             "c:c99",
                                             "opencl:dot8+subgroups32",
                                             "c:x86-64-v3"};
    static const double factors[] = {4, 0.25, 2, 0.5, 16, 0.0625, 1000, 0.001};
    enum { TARGETS = sizeof targets_of / sizeof *targets_of, FACTORS = 8 };
    static char *was[MODELS][TARGETS];
    Arena *kept = arena_new();
    for (int i = 0; i < figure_count(); i++) {
        bool found = row_of(figures[i].path) || !decides(figures[i].path);
        const int tries = figures[i].kind == FIGURE_UNITS || figures[i].kind == FIGURE_BOOL ? 1
                          : figures[i].kind == FIGURE_INT                                   ? 6
                                                          : FACTORS;
        for (int t = 0; t < TARGETS && !found; t++)
            for (int m = 0; m < MODELS && !found; m++)
                for (int j = 0; j < tries && !found; j++) {
                    Arena *a = arena_new();
                    if (!was[m][t])
                        was[m][t] = plan_of(kept, (FigureModel)m, targets_of[t], NULL, 1);
                    found = strcmp(was[m][t], plan_of(a, (FigureModel)m, targets_of[t], &figures[i],
                                                      factors[j])) != 0;
                    if (found)
                        printf("{\"%s\", %d, \"%s\", %g},\n", figures[i].path, m, targets_of[t],
                               factors[j]);
                    arena_free(a);
                }
        if (!found)
            printf("none: %s\n", figures[i].path);
        (void)fflush(stdout);
    }
    arena_free(kept);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_decides), cmocka_unit_test(cores_share_nothing),
        cmocka_unit_test(at_their_bounds), cmocka_unit_test(all_are_here)};
    if (argc > 1 && !strcmp(argv[1], "find")) {
        find();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
