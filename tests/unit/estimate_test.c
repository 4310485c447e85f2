/* estimate_test.c - what cost_nest() counts of a kernel whose figures are known: lines of weights
 * that L1 does not hold come again for each tile of rows, all vectors of them, and for the rows
 * that are left; the sums of one loop need no registers in another, nor does what a place holds;
 * and rows of an image that several taps of a window read are loaded once where its loops are
 * written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/tools/tune/tune.h"
#include "targets/targets.h"

enum { ROWS = 56, TERMS = 512, COLUMNS = 128 };

typedef struct {
    Context *c;
    float *weights; /* of all products */
    Target target;
    Plan *plan;
    Tuning tuning;
} EstimateFixture;

static ingot_tensor *product(EstimateFixture *f, const char *name)
{
    ingot_dim *dims[2] = {ingot_dim_const(f->c, ROWS), ingot_dim_const(f->c, TERMS)};
    return ingot_matmul(
        f->c, ingot_input(f->c, name, INGOT_F32, 2, dims),
        ingot_data(f->c, NULL, INGOT_F32, 2, (int64_t[]){TERMS, COLUMNS}, f->weights));
}

/* The kernels of a network with this result. */
static void plan_result(EstimateFixture *f, ingot_tensor *x)
{
    ingot_status status;
    ingot_output(f->c, "z", x);
    ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v4"};
    assert_null(target_make(&f->target, f->c->arena, o.target, &status));
    f->plan = plan_make(f->c, &o);
    assert_non_null(f->plan);
    tune_kernels(&f->tuning, f->plan, &f->target, NULL);
}

static void make_weights(EstimateFixture *f, int n)
{
    f->weights = calloc((size_t)n, sizeof *f->weights);
    for (int i = 0; i < n; i++) /* equal ones would be one constant */
        f->weights[i] = (float)(i % 7);
}

static void open_products(EstimateFixture *f, int n)
{
    *f = (EstimateFixture){.c = ingot_context_new(NULL, NULL)};
    make_weights(f, TERMS * COLUMNS);
    ingot_tensor *x = product(f, "x");
    if (n > 1)
        x = ingot_add(f->c, x, product(f, "y"));
    plan_result(f, x);
    assert_int_equal(f->tuning.n, 1);
}

enum { IMAGES = 32, SIDE = 64, TAPS = 3 };

/* A window of 3x3 over each of several images. */
static void open_windows(EstimateFixture *f)
{
    *f = (EstimateFixture){.c = ingot_context_new(NULL, NULL)};
    make_weights(f, IMAGES * TAPS * TAPS);
    const int64_t side = SIDE + TAPS - 1, dims[4] = {1, IMAGES, side, side};
    ingot_dim *dim[4];
    for (int i = 0; i < 4; i++)
        dim[i] = ingot_dim_const(f->c, dims[i]);
    plan_result(f, ingot_conv(f->c, ingot_input(f->c, "x", INGOT_F32, 4, dim),
                              ingot_data(f->c, NULL, INGOT_F32, 4,
                                         (int64_t[]){IMAGES, 1, TAPS, TAPS}, f->weights),
                              NULL, NULL, NULL, NULL, NULL, IMAGES));
}

static void close_products(EstimateFixture *f)
{
    tune_free(&f->tuning);
    plan_free(f->plan);
    ingot_context_free(f->c);
    free(f->weights);
}

/* The compiler's tile, of so many rows by so many vectors. */
static Estimate estimate_tile(EstimateFixture *f, int64_t rows, int64_t vectors)
{
    TuneKernel *k = f->tuning.kernel[0];
    Tiling t = k->candidate[0]->tiling;
    int lanes = -1;
    for (int i = 0; i < t.ncut; i++)
        lanes = t.cut[i].kind == OPT_VECTOR ? t.cut[i].loop.root : lanes;
    for (int i = 0; i < t.ncut; i++)
        if (t.cut[i].kind == OPT_UPCAST)
            t.cut[i].amount = t.cut[i].loop.root == lanes ? vectors : rows;
    Candidate *c = candidate_of(k, &t);
    assert_non_null(c);
    return *candidate_estimate(k, c);
}

static void all_vectors_come_again(void **state)
{
    (void)state;
    EstimateFixture f;
    open_products(&f, 1);
    const double weights = sizeof(float) * TERMS * COLUMNS;
    Estimate of7 = estimate_tile(&f, 7, 4), of4 = estimate_tile(&f, 4, 4);
    assert_true(of7.traffic[0] > ROWS / 7 * weights && of7.traffic[0] < 1.2 * ROWS / 7 * weights);
    assert_true(of4.traffic[0] > ROWS / 4 * weights && of4.traffic[0] < 1.2 * ROWS / 4 * weights);
    assert_true(of7.spills == 0); /* 28 sums and 4 vectors */
    assert_true(estimate_tile(&f, 8, 4).spills > 0);
    close_products(&f);
}

/* 56 rows by fives: the one that is left has a loop of its own, behind that of eleven tiles, and
 * reads all weights once more. */
static void the_rest_is_one_loop_of_two(void **state)
{
    (void)state;
    EstimateFixture f;
    open_products(&f, 1);
    const double weights = sizeof(float) * TERMS * COLUMNS;
    Estimate of5 = estimate_tile(&f, 5, 4);
    assert_true(of5.traffic[0] > (ROWS / 5 + 1) * weights);
    assert_true(of5.traffic[0] < 1.2 * (ROWS / 5 + 1) * weights);
    close_products(&f);
}

static void sums_of_two_loops(void **state)
{
    (void)state;
    EstimateFixture f;
    open_products(&f, 2);
    Estimate e = estimate_tile(&f, 7, 4);
    assert_true(e.spills < 0.01 * e.operations);
    close_products(&f);
}

/* Attention's rows lie in places between its loops: a product that reads them there keeps neither
 * their maxima nor their sums in registers. */
static void rows_in_places(void **state)
{
    (void)state;
    enum { HEADS = 4, KEYS = 128, DEPTH = 64 };
    EstimateFixture f = {.c = ingot_context_new(NULL, NULL)};
    ingot_tensor *x[3];
    for (int i = 0; i < 3; i++) {
        ingot_dim *dims[3] = {ingot_dim_const(f.c, HEADS), ingot_dim_const(f.c, KEYS),
                              ingot_dim_const(f.c, DEPTH)};
        x[i] = ingot_input(f.c, (const char *[]){"q", "k", "v"}[i], INGOT_F32, 3, dims);
    }
    ingot_tensor *scores = ingot_matmul(f.c, x[0], ingot_permute(f.c, x[1], (int[]){0, 2, 1}));
    plan_result(&f, ingot_matmul(f.c, ingot_softmax(f.c, scores, 2), x[2]));
    Estimate most = {0};
    for (int i = 0; i < f.tuning.n; i++) {
        TuneKernel *k = f.tuning.kernel[i];
        const Estimate *e = candidate_estimate(k, k->candidate[0]);
        most = e->operations > most.operations ? *e : most;
    }
    assert_true(most.operations > 2.0 * HEADS * KEYS * KEYS * DEPTH / 16);
    assert_true(most.spills < 0.01 * most.operations);
    close_products(&f);
}

/* Beside it there are copies from and to the layout that the model declares. */
static TuneKernel *kernel_of_sum(const EstimateFixture *f)
{
    TuneKernel *found = NULL;
    for (int i = 0; i < f->tuning.n; i++) {
        const Kernel *k = f->tuning.kernel[i]->naive;
        for (int j = 0; j < k->naxis; j++)
            found = k->axes[j].reduced ? f->tuning.kernel[i] : found;
    }
    assert_non_null(found);
    return found;
}

/* Of n rows of results at once n + 2 rows of the image, three times; of eight the loops are too
 * long to be written out, and each tap loads its own. */
static void taps_share_rows(void **state)
{
    (void)state;
    EstimateFixture f;
    open_windows(&f);
    TuneKernel *k = kernel_of_sum(&f);
    Candidate *of4 = candidate_read(k, "VECTOR i0 16; UPCAST i1 4"),
              *of8 = candidate_read(k, "VECTOR i0 16; UPCAST i1 8");
    assert_non_null(of4);
    assert_non_null(of8);
    const double results = IMAGES * SIDE * SIDE / 16, taps = TAPS * TAPS;
    assert_true(candidate_estimate(k, of4)->loads < (6.0 / 4 * TAPS + taps / 4 + 0.5) * results);
    assert_true(candidate_estimate(k, of8)->loads > taps * results);
    close_products(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_vectors_come_again), cmocka_unit_test(the_rest_is_one_loop_of_two),
        cmocka_unit_test(sums_of_two_loops), cmocka_unit_test(rows_in_places),
        cmocka_unit_test(taps_share_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
