/* search.c - the beam: rounds of a few candidates, estimated in hundreds and timed in dozens.
 *
 *     members = the heuristic's
 *     round:    neighbours of the members, estimated; the best few by (estimate * time / estimate
 *               of the member), built into one program with the heuristic's and the members, and
 *               timed beside one another; members = the fastest that are right
 *     end:      two rounds that gained no more than noise, nothing new, or the deadline
 *
 * A round of several kernels is built at once, so that all cores have work; what is timed is timed
 * alone. Whatever the database knows is not timed again, so that a search that was cut off goes on
 * where it was. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tune_run.h"

enum {
    MOST_ROUNDS = 12,
    MOST_ESTIMATED = 500,
    PATIENCE = 2,
    MOST_STATEMENTS = 4000,
    ALIKE = 4,
    MOST_TOGETHER = 16,
    FEW = 4,
    ENOUGH = 16
};
#define FAR 1.6         /* from the best estimate: not worth to be compiled */
#define NOISY 0.08      /* of a run's times: they say little */
#define ESTIMATING 0.25 /* of the time that is left */

typedef struct {
    Search *s;
    TuneKernel *k;
    Arena *a; /* of a round */
    uint64_t random;
    double deadline; /* of estimates */
    int round, idle;
    TuneCaseOf of; /* what this round times */
    int nfresh;    /* candidates that are new in it */
    bool judged;   /* the heuristic's was right, in this search */
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
    return strcmp(x->text, y->text);
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

/* Neighbours of a member, with what they should take by the member's time; of very many a part, by
 * lot. */
static void expand(Hunt *h, Candidate *from, int most)
{
    Tiling *t;
    int n = tiling_neighbours(h->a, h->k->base, &from->tiling, &t);
    double cycles = candidate_estimate(h->k, from)->cycles;
    double ns = from->ns > 0 ? from->ns : cycles;
    for (int i = 0; i < n && most > 0 && seconds_now() < h->deadline; i++) {
        int j = i + (int)below(h, (uint32_t)(n - i));
        Tiling swap = t[i];
        t[i] = t[j];
        t[j] = swap;
        Candidate *c = candidate_of(h->k, &t[i]);
        if (!c)
            continue;
        if (candidate_add(h->k, c) != c)
            continue;
        h->k->seen++;
        most--;
        c->predicted = candidate_estimate(h->k, c)->cycles * ns / cycles;
        if (c->estimate.statements > MOST_STATEMENTS)
            c->predicted = 1e18;
    }
}

static int by_prediction(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    if (x->predicted != y->predicted)
        return x->predicted < y->predicted ? -1 : 1;
    return strcmp(x->text, y->text);
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

/* The best that nobody has timed; of those that compute the same innermost a few only, for what the
 * estimate says of these is right or wrong for all of them. */
static int pick(Hunt *h, Candidate **out, int most)
{
    TuneKernel *k = h->k;
    Candidate **all = NEWN(h->a, Candidate *, k->n + 1);
    int n = 0;
    (void)candidate_source(k, k->candidate[0]);
    for (int i = 1; i < k->n; i++)
        if (k->candidate[i]->verdict == UNTIMED && k->candidate[i]->predicted < 1e17 &&
            k->candidate[i]->predicted > 0)
            all[n++] = k->candidate[i];
    qsort(all, (size_t)n, sizeof *all, by_prediction);
    Map alike = {0};
    int picked = 0, few = most > 2 * ALIKE ? most / ALIKE : 2;
    for (int i = 0; i < n && picked < most; i++) {
        if (picked >= FEW && all[i]->predicted > FAR * all[0]->predicted)
            break;
        uint64_t key = innermost(all[i]);
        int so_far = (int)(uintptr_t)map_get(&alike, key);
        if (so_far >= few)
            continue;
        if (candidate_first(k, all[i]) != all[i]) { /* the same in other words */
            all[i]->predicted = 1e18;
            continue;
        }
        map_put(&alike, key, (void *)(uintptr_t)(so_far + 1));
        out[picked++] = all[i];
    }
    map_free(&alike);
    return picked;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* What is next to the members, and of that what is to be timed; none: the search has ended. */
static void plan_round(Hunt *h)
{
    Search *s = h->s;
    TuneKernel *k = h->k;
    Candidate **member = NEWN(h->a, Candidate *, s->beam + 1),
              **fresh = NEWN(h->a, Candidate *, s->width + 1);
    int nmember = members_of(h, s->beam, member);
    for (int i = 0; i < nmember; i++)
        expand(h, member[i], MOST_ESTIMATED / nmember);
    h->nfresh = pick(h, fresh, s->width);
    if (h->round == 1) { /* and what is next to the best of these, by estimate alone */
        for (int i = 0; i < h->nfresh && i < s->beam; i++)
            expand(h, fresh[i], MOST_ESTIMATED / (2 * s->beam));
        h->nfresh = pick(h, fresh, s->width);
    }
    /* beside the heuristic's and the fastest so far */
    h->of = (TuneCaseOf){k, NEWN(h->a, Candidate *, h->nfresh + 3), 0, h->judged};
    h->of.candidate[h->of.n++] = k->candidate[0];
    for (int i = 0; i < nmember && i < 2; i++)
        if (member[i] != k->candidate[0])
            h->of.candidate[h->of.n++] = member[i];
    for (int i = 0; i < h->nfresh; i++) {
        fresh[i]->round = h->round;
        h->of.candidate[h->of.n++] = fresh[i];
    }
}

/* measure_build() leaves out of a case what the compiler refuses: here are all of them. */
static bool write_round(Hunt *h, Candidate *const *all, int n)
{
    return database_write(h->s->d, h->k, all, n);
}

static bool at_roof(const TuneKernel *k)
{
    return k->candidate[k->best]->ns * TUNE_AT_ROOF < k->roof_ns;
}

/* Whether it goes on, by what the round gained and what is left to gain. */
static bool end_round(Hunt *h, double before)
{
    Search *s = h->s;
    TuneKernel *k = h->k;
    choose_best(k);
    double after = k->best ? ratio(k->candidate[k->best]) : 1;
    double noise = k->candidate[0]->noise > 0.005 ? k->candidate[0]->noise : 0.005;
    h->idle = after < before * (1 - noise) ? 0 : h->idle + 1;
    const bool on = h->nfresh && h->idle < PATIENCE && h->round < MOST_ROUNDS && !at_roof(k);
    if (on || seconds_now() >= s->deadline)
        return true;
    k->done = true;
    return database_finish(s->d, k, s->beam);
}

/* One round of each: all are built at once, and timed one after the other. */
static bool time_round(Search *s, Hunt **hunt, int n)
{
    Arena *a = arena_new();
    TuneCaseOf *of = NEWN(a, TuneCaseOf, n);
    Candidate ***all = NEWN(a, Candidate **, n);
    int *count = NEWN(a, int, n);
    for (int i = 0; i < n; i++) {
        of[i] = hunt[i]->of;
        count[i] = of[i].n;
        all[i] = NEWN(a, Candidate *, of[i].n);
        memcpy(all[i], of[i].candidate, (size_t)of[i].n * sizeof **all);
    }
    Spent began = spent_now();
    bool good = measure_build(s->m, s->t, s->dir, of, n);
    spent_add(&s->m->building, began);
    for (int i = 0; i < n && good; i++) {
        Hunt *h = hunt[i];
        double before = h->k->best ? ratio(h->k->candidate[h->k->best]) : 1;
        int lock = database_lock(s->d);
        began = spent_now();
        good = measure_one(s->m, s->t, s->dir, of, n, i);
        if (good && h->k->candidate[0]->noise > NOISY) /* somebody else was busy: once more */
            good = measure_one(s->m, s->t, s->dir, of, n, i);
        database_unlock(s->d, lock);
        spent_add(&s->m->running, began);
        h->k->tried += h->nfresh;
        h->judged = h->k->candidate[0]->verdict == RIGHT;
        good = good && write_round(h, all[i], count[i]) && end_round(h, before);
        if (s->progress)
            s->progress(s->user, h->k);
    }
    arena_free(a);
    return good;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* A round that takes as long as the one before it has to fit. */
static bool search_ends(const Search *s, double last)
{
    return (s->stopped && *s->stopped) || seconds_now() + last >= s->deadline;
}

/* Rounds are dealt out as seats are to parties by D'Hondt: the next one is that of the kernel which
 * may gain most time in the network for each round that it has had. */
static Hunt *next_hunt(Hunt *hunt, int n)
{
    Hunt *next = NULL;
    for (int i = 0; i < n; i++)
        if (!hunt[i].k->done && !hunt[i].a &&
            (!next || hunt[i].k->hope / (hunt[i].round + 1) > next->k->hope / (next->round + 1)))
            next = &hunt[i];
    return next;
}

static bool read_known(Search *s, TuneKernel *k, int most)
{
    if (!database_read(s->d, k, most))
        return false;
    choose_best(k);
    return true;
}

bool search_known(Search *s, TuneKernel *k)
{
    return read_known(s, k, s->all ? 0 : ENOUGH);
}

static bool start_hunt(Search *s, TuneKernel *k)
{
    k->known = k->done = k->at_roof || database_done(s->d, k, s->beam);
    const bool good = read_known(s, k, k->done && !s->all ? ENOUGH : 0);
    if (good && k->done && s->progress)
        s->progress(s->user, k);
    return good;
}

bool search_kernels(Search *s, TuneKernel *const *kernel, int n)
{
    Arena *a = arena_new();
    Hunt *hunt = NEWN(a, Hunt, n + 1), *now[MOST_TOGETHER];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int together = cores < 4 || clock_is_steps() ? 2
                   : cores / 2 < MOST_TOGETHER   ? (int)cores / 2
                                                 : MOST_TOGETHER;
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        hunt[i] = (Hunt){.s = s, .k = kernel[i], .random = kernel[i]->key[0]};
        good = start_hunt(s, kernel[i]);
    }
    for (double last = 0; good && !search_ends(s, last);) {
        int count = 0;
        const Spent began = spent_now();
        const double each = ESTIMATING * (s->deadline - began.seconds) / together;
        for (Hunt *h; good && count < together && (h = next_hunt(hunt, n));) {
            h->a = arena_new();
            h->round++;
            h->deadline = seconds_now() + each;
            plan_round(h);
            now[count++] = h;
            if (h->nfresh)
                continue;
            count--; /* there is nothing that was not tried */
            good = good && end_round(h, 1);
            arena_free(h->a);
            h->a = NULL;
            if (!h->k->done) /* there was no time to look */
                break;
            if (s->progress)
                s->progress(s->user, h->k);
        }
        spent_add(&s->m->estimating, began);
        if (!count)
            break;
        good = good && time_round(s, now, count);
        for (int i = 0; i < count; i++) {
            arena_free(now[i]->a);
            now[i]->a = NULL;
        }
        last = seconds_now() - began.seconds;
    }
    arena_free(a);
    return good;
}

/* Of those that were estimated and are not in the list yet, so many by lot; one whose code is
 * another one's is none. */
static int draw(Hunt *h, Candidate **list, int n, int most)
{
    TuneKernel *k = h->k;
    Candidate **all = NEWN(h->a, Candidate *, k->n + 1);
    int left = 0, drawn = 0;
    for (int i = 1; i < k->n; i++) {
        bool listed = !(k->candidate[i]->predicted > 0 && k->candidate[i]->predicted < 1e17);
        for (int j = 0; j < n && !listed; j++)
            listed = list[j] == k->candidate[i];
        if (!listed)
            all[left++] = k->candidate[i];
    }
    while (left && drawn < most) {
        const int at = (int)below(h, (uint32_t)left);
        Candidate *c = all[at];
        all[at] = all[--left];
        if (candidate_first(k, c) == c)
            list[n + drawn++] = c;
    }
    return drawn;
}

int search_guess(Search *s, TuneKernel *k, int most, int lot, Candidate **out)
{
    Hunt h = {.s = s, .k = k, .a = arena_new(), .random = k->key[0], .deadline = 1e300};
    Candidate **best = NEWN(h.a, Candidate *, most + 1);
    expand(&h, k->candidate[0], MOST_ESTIMATED);
    int n = pick(&h, best, s->beam);
    for (int i = 0; i < n; i++)
        expand(&h, best[i], MOST_ESTIMATED / s->beam);
    n = pick(&h, out, most);
    n += draw(&h, out, n, lot);
    arena_free(h.a);
    return n;
}
