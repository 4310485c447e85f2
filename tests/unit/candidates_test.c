/* candidates_test.c - which opts are a candidate of a kernel: those that leave room for the loops
 * that clear a halo, which opts know nothing of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/lowered.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/tools/tune/tune.h"
#include "targets/targets.h"

enum {
    CHANNELS = 16,
    SIDE = 16,
    TAPS = 3,
    WEIGHTS = CHANNELS * CHANNELS * TAPS * TAPS * TAPS,
    RANK = 5
};

typedef struct {
    Context *c;
    float *weights;
    Target target;
    Plan *plan;
    Tuning tuning;
} CandidatesFixture;

static ingot_tensor *window(CandidatesFixture *f, ingot_tensor *x, int number)
{
    float *w = &f->weights[number * WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++) /* equal ones would be one constant */
        w[i] = (float)((i + number) % 7);
    return ingot_conv(f->c, x,
                      ingot_data(f->c, NULL, INGOT_F32, RANK,
                                 (int64_t[]){CHANNELS, CHANNELS, TAPS, TAPS, TAPS}, w),
                      NULL, NULL, NULL, (int64_t[]){1, 1, 1}, (int64_t[]){1, 1, 1}, 1);
}

/* Two convolutions, of which the second reads beyond the edges of what the first one stores: the
 * first clears its halo. */
static TuneKernel *open_halo(CandidatesFixture *f)
{
    ingot_status status;
    ingot_dim *dims[RANK];
    *f = (CandidatesFixture){.c = ingot_context_new(NULL, NULL),
                             .weights = calloc(2 * WEIGHTS, sizeof *f->weights)};
    for (int i = 0; i < RANK; i++)
        dims[i] = ingot_dim_const(f->c, (int64_t[]){1, CHANNELS, SIDE, SIDE, SIDE}[i]);
    ingot_tensor *x = ingot_input(f->c, "x", INGOT_F32, RANK, dims);
    ingot_output(f->c, "y", window(f, window(f, x, 0), 1));
    ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v4"};
    assert_null(target_make(&f->target, f->c->arena, o.target, &status));
    f->plan = plan_make(f->c, &o);
    assert_non_null(f->plan);
    tune_kernels(&f->tuning, f->plan, &f->target, NULL);
    for (int i = 0; i < f->tuning.n; i++) {
        TuneKernel *k = f->tuning.kernel[i];
        bool sums = false;
        for (int j = 0; j < k->loops->naxis; j++)
            sums |= k->loops->axes[j].reduced;
        if (sums && k->naive->naxis > k->loops->naxis)
            return k;
    }
    fail_msg("no convolution clears a halo");
    return NULL;
}

static void close_halo(CandidatesFixture *f)
{
    tune_free(&f->tuning);
    plan_free(f->plan);
    ingot_context_free(f->c);
    free(f->weights);
}

/* Takes the axes in halves, one after the other, as often as the nest without halos can be cut: so
 * many cuts at most. */
static int halve(const TuneKernel *k, int most, char *text, size_t bytes)
{
    Nest *n = nest_clone(k->base);
    size_t length = 0;
    int cuts = 0;
    text[0] = 0;
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < n->norder && cuts < most; i++) {
            const NestAxis *x = &n->axis[n->order[i]];
            const Opt o = {.kind = OPT_SPLIT, .axis = x->name, .amount = 2};
            if (x->extent < 4 || x->extent % 2 || opt_apply(n, &o))
                continue;
            length += (size_t)snprintf(text + length, bytes - length, "%sSPLIT %s 2",
                                       cuts ? "; " : "", o.axis);
            any = true;
            cuts++;
            break; /* the order is another now */
        }
    }
    nest_free(n);
    return cuts;
}

static void loops_of_halos_count(void **state)
{
    (void)state;
    CandidatesFixture f;
    TuneKernel *k = open_halo(&f);
    bool fits = true;
    int least = 0;
    char text[2048];
    for (int cuts = 1; cuts <= MAX_CUTS && halve(k, cuts, text, sizeof text) == cuts; cuts++) {
        Candidate *c = candidate_read(k, text);
        if (c) { /* what is a candidate can be lowered */
            assert_true(fits);
            Kernel *whole = candidate_kernel(k, c);
            assert_true(kernel_lowered(whole, false)->tiles.n > 0);
            ingot_context_free(whole->c);
        }
        least = !c && fits ? cuts : least;
        fits = c != NULL;
    }
    assert_true(least > 1); /* and what would have too many loops is none */
    close_halo(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loops_of_halos_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
