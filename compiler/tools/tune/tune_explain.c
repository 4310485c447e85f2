/* tune_explain.c - tune --explain: of each kernel what was tried, what won, and why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune_command.h"

enum { BEST_OF = 10 };

static void print_candidate(const Tune *t, const TuneKernel *k, const char *name, Candidate *c)
{
    printf("  %s: %s\n", name, *c->text ? c->text : "no opts");
    if (c->ns <= 0)
        return;
    printf("    %.4g us", c->ns * 1e-3);
    if (t->roof.flops > 0) {
        const char *what;
        double share = roof_share(&t->roof, k->naive, c->ns, &what);
        printf(", %.0f %% of the roof of %s", 100 * share, what);
    }
    const Estimate *e = candidate_estimate(k, c);
    printf("; estimated %.3g cycles: %.3g operations, %.3g loads, %.3g stores, %.3g in loops, %.3g "
           "for memory\n",
           e->cycles, e->operations, e->loads, e->stores, e->loops, e->memory);
}

/* The figure that fell most, in words. */
static void print_reason(const Estimate *was, const Estimate *is)
{
    const EstimateWeights *w = &estimate_weights;
    const struct {
        const char *what;
        double was, is, weight;
    } row[] = {{"loads", was->loads, is->loads, w->load},
               {"stores", was->stores, is->stores, w->store},
               {"operations", was->operations, is->operations, w->operation},
               {"cycles to enter and count loops", was->loops, is->loops, 1},
               {"cycles to begin with code of rests", was->pieces, is->pieces, 1},
               {"bytes into L1", was->traffic[0], is->traffic[0], w->byte[0]},
               {"bytes into L2", was->traffic[1], is->traffic[1], w->byte[1]},
               {"bytes from memory", was->traffic[2], is->traffic[2], w->byte[2]}};
    int best = -1;
    double gain = 0.02 * was->cycles;
    for (int i = 0; i < (int)(sizeof row / sizeof *row); i++)
        if ((row[i].was - row[i].is) * row[i].weight > gain) {
            gain = (row[i].was - row[i].is) * row[i].weight;
            best = i;
        }
    if (best < 0)
        printf("    why: no figure of the estimate tells; the C compiler makes better code of it, "
               "or lines lie better\n");
    else
        printf("    why: %s: %.3g for %.3g\n", row[best].what, row[best].is, row[best].was);
}

/* Spearman's coefficient of what was estimated and what was timed. */
static double rank_correlation(Candidate *const *c, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double x = 0, y = 0;
        for (int j = 0; j < n; j++) {
            x += c[j]->estimate.cycles < c[i]->estimate.cycles;
            x += 0.5 * (j != i && c[j]->estimate.cycles == c[i]->estimate.cycles);
            y += c[j]->ns / c[j]->base_ns < c[i]->ns / c[i]->base_ns;
        }
        sum += (x - y) * (x - y);
    }
    return 1 - 6 * sum / ((double)n * ((double)n * n - 1));
}

static int by_estimate(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    if (x->estimate.cycles != y->estimate.cycles)
        return x->estimate.cycles < y->estimate.cycles ? -1 : 1;
    const double p = x->ns / x->base_ns, q = y->ns / y->base_ns; /* the slower first */
    return (p < q) - (p > q);
}

static int by_time(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    double p = x->base_ns > 0 ? x->ns / x->base_ns : 1e9,
           q = y->base_ns > 0 ? y->ns / y->base_ns : 1e9;
    return (p > q) - (p < q);
}

/* How the estimate ranks: the coefficient, and the best of ten beside the best of all. */
static bool judge_estimate(Arena *a, const TuneKernel *k, double *rank, double *near, double *noise)
{
    Candidate **c = NEWN(a, Candidate *, k->n + 1);
    double best = 1e300, ten = 1e300;
    int n = 0;
    for (int i = 0; i < k->n; i++)
        if (k->candidate[i]->verdict == RIGHT && k->candidate[i]->ns > 0) {
            (void)candidate_estimate(k, k->candidate[i]);
            c[n++] = k->candidate[i];
        }
    if (n <= BEST_OF) /* the ten are all of them */
        return false;
    qsort(c, (size_t)n, sizeof *c, by_estimate);
    for (int i = 0; i < n; i++) {
        double r = c[i]->ns / c[i]->base_ns;
        best = r < best ? r : best;
        ten = i < BEST_OF && r < ten ? r : ten;
    }
    *rank = rank_correlation(c, n);
    *near = ten / best - 1;
    *noise = k->candidate[0]->noise;
    return true;
}

/* -v: all that was timed, the fastest first. */
static void print_all(Arena *a, const TuneKernel *k)
{
    Candidate **c = NEWN(a, Candidate *, k->n + 1);
    int n = 0;
    for (int i = 0; i < k->n; i++)
        if (k->candidate[i]->verdict != UNTIMED)
            c[n++] = k->candidate[i];
    qsort(c, (size_t)n, sizeof *c, by_time);
    for (int i = 0; i < n; i++) {
        const Estimate *e = candidate_estimate(k, c[i]);
        printf("    %6.4f %-7s %.6g cycles: %.3g issued (%.3g operations, %.3g loads, %.3g stores, "
               "%.3g of them spilt), "
               "%.3g loops, %.3g memory (%.3g, %.3g, %.3g bytes)  %s\n",
               c[i]->base_ns > 0 ? c[i]->ns / c[i]->base_ns : 0, verdict_name[c[i]->verdict],
               e->cycles, e->issue, e->operations, e->loads, e->stores, e->spills, e->loops,
               e->memory, e->traffic[0], e->traffic[1], e->traffic[2],
               *c[i]->text ? c[i]->text : "no opts");
    }
}

static void explain_kernel(const Tune *t, const TuneKernel *k)
{
    const Step *s = k->step[0];
    int count[REFUSED + 1] = {0};
    for (int i = 0; i < k->n; i++)
        count[k->candidate[i]->verdict]++;
    printf("%s", s->name);
    for (int i = 0; i < s->norigin && i < 3; i++) {
        StrBuf sb = {0};
        sched_origin(&sb, s->origins[i]);
        printf("%s%s", i ? ", " : "  # ", sb.data);
        sb_free(&sb);
    }
    printf("\n  %lld operations, %lld bytes, %d steps", (long long)k->naive->flops,
           (long long)k->naive->bytes, k->nstep);
    if (t->network_ms > 0)
        printf(", %.4g ms, %.1f %% of the network", k->ms, 100 * k->ms / t->network_ms);
    printf("\n  tried:");
    for (int i = RIGHT; i <= REFUSED; i++)
        if (count[i] || i == RIGHT)
            printf("%s %d %s", i > RIGHT ? "," : "", count[i], verdict_name[i]);
    puts(k->at_roof ? "; not searched: it does what the machine can"
         : k->done  ? "; searched to the end"
                    : "; the search goes on with more --budget");
    print_candidate(t, k, "the compiler's choice", k->candidate[0]);
    if (k->best) {
        Candidate *best = k->candidate[k->best];
        print_candidate(t, k, "the fastest", best);
        printf("    %.3f of the time, noise %.3f\n", best->ns / best->base_ns, best->noise);
        print_reason(candidate_estimate(k, k->candidate[0]), candidate_estimate(k, best));
    } else if (count[RIGHT] > 1) {
        printf("  nothing beats it by more than the noise %.3f\n", k->candidate[0]->noise);
    }
    if (t->o->compile.verbose)
        print_all(t->a, k);
}

void tune_explain(Tune *t)
{
    double rank = 0, near = 0, noise = 0, ranks = 0;
    int judged = 0, close = 0, timed = 0;
    if (t->network_ms > 0) /* it ran here */
        (void)tune_roof(t);
    for (int i = 0; i < t->n; i++) {
        const TuneKernel *k = t->order[i];
        explain_kernel(t, k);
        for (int j = 0; j < k->n; j++)
            timed += k->candidate[j]->verdict == RIGHT && k->candidate[j]->ns > 0;
        if (!judge_estimate(t->a, k, &rank, &near, &noise))
            continue;
        ranks += rank;
        close += near <= (noise > 0.03 ? noise : 0.03);
        judged++;
    }
    explain_decisions(t);
    if (judged)
        printf("the estimate: rank correlation %.2f on average of %d kernels, %d candidates timed; "
               "the best of the first ten "
               "is within 3 %%, or the noise, of the fastest in %d\n",
               ranks / judged, judged, timed, close);
    fflush(stdout); /* before what is told next, where both go to one file */
}
