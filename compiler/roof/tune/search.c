/* search.c - the beam: rounds of a few candidates, estimated in hundreds and timed in dozens.
 *
 *     members = the heuristic's
 *     round:    neighbours of the members, estimated; the best few by (estimate * time / estimate of the member),
 *               built into one program with the heuristic's and the members, and timed beside one another;
 *               members = the fastest that are right
 *     end:      two rounds that gained no more than noise, nothing new, or the deadline
 *
 * Whatever the database knows is not timed again, so that a search that was cut off goes on where it was. */
#include <stdlib.h>
#include <string.h>

#include "tune_run.h"

enum { MOST_ROUNDS = 12, MOST_ESTIMATED = 500, PATIENCE = 2, MOST_STATEMENTS = 4000, ALIKE = 4 };
#define NOISY 0.08      /* of a run's times: they say little */
#define ESTIMATING 0.25 /* of the time that is left */

typedef struct {
    Search *s;
    TuneKernel *k;
    Arena *a;
    uint64_t random;
    double deadline;
} Hunt;

static uint32_t below(Hunt *h, uint32_t n)
{
    h->random = h->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(h->random >> 33) % n;
}

/* Of the heuristic's time, in the run in which both were timed. */
static double ratio(const Candidate *c)
{
    return c->verdict == RIGHT && c->ns > 0 && c->base_ns > 0 ? c->ns / c->base_ns : 1e9;
}

/* Beyond the noise of its run. */
static bool wins(const Candidate *c)
{
    return ratio(c) < 1 - 2 * c->noise - 0.01;
}

static void choose_best(TuneKernel *k)
{
    k->best = 0;
    for (int i = 1; i < k->n; i++)
        if (wins(k->candidate[i]) &&
            (!k->best || ratio(k->candidate[i]) < ratio(k->candidate[k->best])))
            k->best = i;
}

static int by_ratio(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    double rx = x->base_ns > 0 ? ratio(x) : 1, ry = y->base_ns > 0 ? ratio(y) : 1;
    if (rx != ry)
        return rx < ry ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* The fastest, and the heuristic's where there are not enough. */
static int members_of(Hunt *h, int beam, Candidate **out)
{
    const TuneKernel *k = h->k;
    Candidate **all = NEWN(h->a, Candidate *, k->n + 1);
    int n = 0;
    for (int i = 0; i < k->n; i++)
        if (i == 0 || ratio(k->candidate[i]) < 1.2)
            all[n++] = k->candidate[i];
    qsort(all, (size_t)n, sizeof *all, by_ratio);
    n = n < beam ? n : beam;
    memcpy(out, all, (size_t)n * sizeof *all);
    return n;
}

/* Neighbours of a member, with what they should take by the member's time; of very many a part, by lot. */
static void expand(Hunt *h, const Candidate *from, int most)
{
    Tiling *t;
    int n = tiling_neighbours(h->a, h->k->base, &from->tiling, &t);
    double ns = from->ns > 0 ? from->ns : from->estimate.cycles;
    for (int i = 0; i < n && most > 0 && seconds_now() < h->deadline; i++) {
        int j = i + (int)below(h, (uint32_t)(n - i));
        Tiling swap = t[i];
        t[i] = t[j];
        t[j] = swap;
        Candidate *c = candidate_of(h->k, &t[i]);
        if (!c)
            continue;
        int was = h->k->n;
        int at = candidate_add(h->k, c);
        if (at < was)
            continue;
        h->k->seen++;
        most--;
        c->predicted = c->estimate.cycles * ns / from->estimate.cycles;
        if (c->estimate.statements > MOST_STATEMENTS)
            c->predicted = 1e18;
    }
}

static int by_prediction(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    if (x->predicted != y->predicted)
        return x->predicted < y->predicted ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* Equal for candidates whose innermost code is the same: blocks and order aside. */
static uint64_t innermost(const Candidate *c)
{
    uint64_t all = 0;
    for (int i = 0; i < c->tiling.ncut; i++) {
        const Cut *cut = &c->tiling.cut[i];
        int64_t part[] = {cut->kind, cut->loop.root, cut->amount};
        if (cut->kind != OPT_SPLIT)
            all += hash_bytes(3, part, sizeof part);
    }
    return all | 1;
}

/* The best that nobody has timed; of those that compute the same innermost a few only, for what the estimate says of these is
 * right or wrong for all of them. */
static int pick(Hunt *h, Candidate **out, int most)
{
    const TuneKernel *k = h->k;
    Candidate **all = NEWN(h->a, Candidate *, k->n + 1);
    int n = 0;
    for (int i = 1; i < k->n; i++)
        if (k->candidate[i]->verdict == UNTIMED && k->candidate[i]->predicted < 1e17 &&
            k->candidate[i]->predicted > 0)
            all[n++] = k->candidate[i];
    qsort(all, (size_t)n, sizeof *all, by_prediction);
    Map alike = {0};
    int picked = 0, few = most > 2 * ALIKE ? most / ALIKE : 2;
    for (int i = 0; i < n && picked < most; i++) {
        uint64_t key = innermost(all[i]);
        int so_far = (int)(uintptr_t)map_get(&alike, key);
        if (so_far >= few)
            continue;
        map_put(&alike, key, (void *)(uintptr_t)(so_far + 1));
        out[picked++] = all[i];
    }
    map_free(&alike);
    return picked;
}

/* The few, beside the heuristic's and the fastest so far. */
static bool time_round(Hunt *h, Candidate **fresh, int nfresh, Candidate **member, int nmember,
                       int round)
{
    Search *s = h->s;
    TuneKernel *k = h->k;
    Candidate **all = NEWN(h->a, Candidate *, nfresh + nmember + 1);
    int n = 0;
    all[n++] = k->candidate[0];
    for (int i = 0; i < nmember && i < 2; i++)
        if (member[i] != k->candidate[0])
            all[n++] = member[i];
    for (int i = 0; i < nfresh; i++) {
        fresh[i]->round = round;
        all[n++] = fresh[i];
    }
    TuneCaseOf of = {k, NEWN(h->a, Candidate *, n), n};
    memcpy(of.candidate, all, (size_t)n * sizeof *all);
    double began = seconds_now();
    bool good = measure_build(s->m, s->t, s->dir, &of, 1);
    double built = seconds_now();
    int lock = good ? database_lock(s->d) : -1;
    good = good && measure_run(s->m, s->t, s->dir, &of, 1, false);
    if (good && k->candidate[0]->noise > NOISY) /* somebody else was busy: once more */
        good = measure_run(s->m, s->t, s->dir, &of, 1, false);
    database_unlock(s->d, lock);
    s->m->building += built - began;
    s->m->running += seconds_now() - built;
    k->tried += nfresh;
    if (good && !database_write(s->d, k, all, n)) {
        s->m->why = database_error(s->d);
        good = false;
    }
    return good;
}

bool search_kernel(Search *s, TuneKernel *k, double deadline)
{
    Hunt h = {.s = s, .k = k, .a = arena_new(), .random = k->key[0], .deadline = deadline};
    Candidate **member = NEWN(h.a, Candidate *, s->beam + 1),
              **fresh = NEWN(h.a, Candidate *, s->width + 1);
    bool good = database_read(s->d, k);
    if (!good)
        s->m->why = database_error(s->d);
    choose_best(k);
    k->known = k->done = good && database_done(s->d, k, s->beam);
    int idle = 0;
    for (int round = 1; good && !k->done && seconds_now() < deadline; round++) {
        double before = k->best ? ratio(k->candidate[k->best]) : 1;
        double began = seconds_now();
        h.deadline = began + ESTIMATING * (deadline - began);
        int nmember = members_of(&h, s->beam, member);
        for (int i = 0; i < nmember; i++)
            expand(&h, member[i], MOST_ESTIMATED / nmember);
        int n = pick(&h, fresh, s->width);
        if (round == 1) { /* and what is next to the best of these, by estimate alone */
            for (int i = 0; i < n && i < s->beam; i++)
                expand(&h, fresh[i], MOST_ESTIMATED / (2 * s->beam));
            n = pick(&h, fresh, s->width);
        }
        s->m->estimating += seconds_now() - began;
        if (n && (round == 1 || seconds_now() < deadline))
            good = time_round(&h, fresh, n, member, nmember, round);
        choose_best(k);
        double after = k->best ? ratio(k->candidate[k->best]) : 1;
        double noise = k->candidate[0]->noise > 0.005 ? k->candidate[0]->noise : 0.005;
        idle = after < before * (1 - noise) ? 0 : idle + 1;
        bool ended = !n || idle >= PATIENCE || round >= MOST_ROUNDS;
        if (good && ended && seconds_now() < deadline) {
            k->done = true;
            good = database_finish(s->d, k, s->beam);
        }
        if (s->progress)
            s->progress(s->user, k);
    }
    arena_free(h.a);
    return good;
}

int search_guess(Search *s, TuneKernel *k, int most, Candidate **out)
{
    Hunt h = {.s = s, .k = k, .a = arena_new(), .random = k->key[0], .deadline = 1e300};
    Candidate **best = NEWN(h.a, Candidate *, most + 1);
    expand(&h, k->candidate[0], MOST_ESTIMATED);
    int n = pick(&h, best, s->beam);
    for (int i = 0; i < n; i++)
        expand(&h, best[i], MOST_ESTIMATED / s->beam);
    n = pick(&h, out, most);
    arena_free(h.a);
    return n;
}
