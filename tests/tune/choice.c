/* choice.c - how far the compiler's choice of opts is from the best that the estimate finds among
 * some others, for a machine that need not be at hand: nothing is built or timed.
 *
 *     choice TARGET[,TARGET] MODEL.onnx...
 *     choice c:x86-64-v3+second256k,c:cortex-a76 resnet18.onnx
 *
 * Of each kernel 50 others are estimated (cost_nest()): half of them one change away from the
 * compiler's, by lot, the other half from the best of these.  A row tells of each that takes a
 * tenth more than the best one; at the end stand how many take 1.15 times as long or more, what
 * share of the estimated time they have, and the sum of all choices by that of the best. */
#include <stdio.h>
#include <string.h>

#include "compiler/pipeline/pipeline.h"
#include "compiler/tools/tune/tune.h"
#include "importers/ingot_model.h"
#include "targets/targets.h"

enum { OTHERS = 50 };
static const double TOLD = 1.1, FAR_FROM_BEST = 1.15;

typedef struct {
    int n, far_off;
    double chosen, best, far_cycles;
} ChoiceSum;

static uint32_t lot(uint64_t *random, int n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33) % (uint32_t)n;
}

/* Estimates so many neighbours of a candidate; the best of all. */
static Candidate *try_neighbours(TuneKernel *k, Candidate *from, Candidate *best, int most,
                                 uint64_t *random)
{
    Tiling *t;
    const int n = tiling_neighbours(k->a, k->base, &from->tiling, &t);
    for (int i = 0; i < n && most > 0; i++) {
        const int j = i + (int)lot(random, n - i);
        const Tiling swap = t[i];
        t[i] = t[j];
        t[j] = swap;
        Candidate *c = candidate_of(k, &t[i]);
        if (!c || candidate_add(k, c) != c)
            continue;
        most--;
        if (candidate_estimate(k, c)->cycles < candidate_estimate(k, best)->cycles)
            best = c;
    }
    return best;
}

static void judge(TuneKernel *k, ChoiceSum *sum)
{
    uint64_t random = k->key[0];
    Candidate *own = k->candidate[0], *best = try_neighbours(k, own, own, OTHERS / 2, &random);
    best = try_neighbours(k, best, best, OTHERS / 2, &random);
    const double chosen = k->nstep * candidate_estimate(k, own)->cycles,
                 least = k->nstep * candidate_estimate(k, best)->cycles;
    sum->n++;
    sum->chosen += chosen;
    sum->best += least;
    if (chosen >= FAR_FROM_BEST * least) {
        sum->far_off++;
        sum->far_cycles += chosen;
    }
    if (chosen >= TOLD * least)
        printf("  %5.3f %11.0f cycles  %s\n      %s\n      %s\n", chosen / least, chosen,
               k->step[0]->kernel->name, own->text, best->text);
}

static bool judge_model(const char *target, const char *path)
{
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_model *m = ingot_model_open(c, path);
    Target t;
    ingot_status status;
    ChoiceSum sum = {0};
    Tuning tuning = {0};
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    const char *why = target_make(&t, c->arena, target, &status);
    if (why)
        fprintf(stderr, "%s: %s\n", target, why);
    Plan *p = !why && m && ingot_model_build(m, NULL) ? plan_make(c, &o) : NULL;
    if (p) {
        printf("%s  %s\n", target, path);
        tune_kernels(&tuning, p, &t, NULL);
        for (int i = 0; i < tuning.n; i++)
            judge(tuning.kernel[i], &sum);
        printf("%s  %s: %d kernels, %d take %.2f times the best or more (%.1f %% of the time), all "
               "%.3f times\n",
               target, path, sum.n, sum.far_off, FAR_FROM_BEST,
               100 * sum.far_cycles / (sum.chosen > 0 ? sum.chosen : 1),
               sum.chosen / (sum.best > 0 ? sum.best : 1));
        tune_free(&tuning);
        plan_free(p);
    }
    ingot_context_free(c);
    ingot_model_close(m);
    return p != NULL;
}

int main(int argc, char **argv)
{
    bool good = argc > 2;
    if (!good)
        fprintf(stderr, "choice TARGET[,TARGET] MODEL.onnx...\n");
    for (char *t = good ? strtok(argv[1], ",") : NULL; t; t = strtok(NULL, ","))
        for (int i = 2; i < argc; i++)
            good &= judge_model(t, argv[i]);
    return good ? 0 : 1;
}
