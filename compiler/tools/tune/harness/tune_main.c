/* tune_main.c - runs candidates beside the naive form of their kernel, then times them beside one
 * another.
 *
 *     tune_run [--seconds S] [--only CASE] [--skip CASE.CANDIDATE] [--check]
 *
 * A line of JSON at a time: {"begin": [case, candidate]} before the first runs of each, so that
 * whoever reads knows which one did not come back; then which are right, then the times.
 *
 * Candidates take turns, one run each, all on one core; the first one, which is to be beaten, is
 * there twice, and how far those two are apart is noise.  Memory is as the network has it,
 * whichever candidate ran before: weights are where a run of the network leaves them that touches
 * so much other memory (in the last cache, or in none); results go to places that were used as long
 * ago as the arena is large; operands were written just before; all of it lies in huge pages where
 * there are any.
 */
#define _GNU_SOURCE
#include "tune_case.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mman.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum {
    MAX_ARGS = 64,
    MAX_VARIANTS = 16,
    MAX_CANDIDATES = 256,
    MAX_SETS = 16, /* in which runs follow one another that are too short to be timed alone */
    MAX_RUNS = 120,
    GUARD = 64
};

static const double memory_limit = 32e6, /* bytes of all sets, if there is more than one */
    stream_limit = 64e6;                 /* of what is read between two runs */
static const char *skip[4096];
static int nskip;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* In huge pages where there are any, as a network has its weights and its arena. */
static void *allocate(size_t bytes)
{
    const size_t huge = (size_t)2 << 20, page = bytes >= huge ? huge : 4096;
    void *p = NULL;
    if (posix_memalign(&p, page, (bytes + 64 + page - 1) / page * page)) {
        fprintf(stderr, "tune_run: out of memory\n");
        exit(2);
    }
#ifdef MADV_HUGEPAGE
    if (page == huge)
        (void)madvise(p, (bytes + 64 + page - 1) / page * page, MADV_HUGEPAGE);
#endif
    return p;
}

/* ---- data ------------------------------------------------------------------------------------ */

static uint32_t seed;

static uint32_t random_bits(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static uint16_t half_of(float f) /* of small numbers: normal halves, cut off */
{
    uint32_t b;
    memcpy(&b, &f, 4);
    const int e = (int)(b >> 23 & 255) - 127 + 15;
    if (e <= 0)
        return (uint16_t)(b >> 16 & 0x8000u);
    return (uint16_t)((b >> 16 & 0x8000u) | (uint32_t)e << 10 | (b >> 13 & 0x3ffu));
}

static float half_value(uint16_t h)
{
    const int e = h >> 10 & 31;
    const float m = (float)(h & 1023), s = h & 0x8000 ? -1.0f : 1.0f;
    if (e == 31)
        return m != 0.0f ? NAN : s * INFINITY;
    return s * (e ? ldexpf(m + 1024.0f, e - 25) : ldexpf(m, -24));
}

/* Set 0 holds small integers, set 1 floats in -1 .. 1 and all bytes, set 2 larger numbers with
 * zeros among them. */
static void put_element(unsigned char *p, const TuneArg *a, int set)
{
    const uint32_t r = random_bits();
    const int small = (int)(r % 7) - 3;
    float f = (float)small;
    int64_t v = a->size >= 4 ? (int64_t)(r % 4) : small;
    if (set == 1) {
        f = (float)(r & 0xffff) / 32768.0f - 1.0f;
        v = a->size >= 4 ? (int64_t)(r % 100) : (int64_t)(r & 0xff) - (a->kind == 'i' ? 128 : 0);
    } else if (set == 2) {
        f = r % 5 ? 16.0f * ((float)(r >> 4 & 0xfff) / 2048.0f - 1.0f) : 0.0f;
        v = a->size >= 4 ? (int64_t)(r % 1000) : small * 40;
    }
    if (a->kind == 'u' && v < 0)
        v = -v;
    uint16_t h;
    uint32_t b;
    double d = f;
    switch (a->kind) {
    case 'f': memcpy(p, &f, 4); break;
    case 'd': memcpy(p, &d, 8); break;
    case 'h':
        h = half_of(f);
        memcpy(p, &h, 2);
        break;
    case 'B':
        memcpy(&b, &f, 4);
        h = (uint16_t)(b >> 16);
        memcpy(p, &h, 2);
        break;
    case 'b': *p = (unsigned char)(r & 1); break;
    case 'q': *p = (unsigned char)((r & 0x87u) | 0x30u); break;
    default:
        memcpy(p, &v, (size_t)a->size);
        break; /* little-endian, as the machines that have vectors are */
    }
}

static double number(const unsigned char *p, const TuneArg *a)
{
    float f;
    double d;
    uint16_t h;
    uint32_t b;
    int64_t v = 0;
    switch (a->kind) {
    case 'f': memcpy(&f, p, 4); return f;
    case 'd': memcpy(&d, p, 8); return d;
    case 'h': memcpy(&h, p, 2); return half_value(h);
    case 'B':
        memcpy(&h, p, 2);
        b = (uint32_t)h << 16;
        memcpy(&f, &b, 4);
        return f;
    default: break;
    }
    memcpy(&v, p, (size_t)a->size);
    if (a->kind == 'i' && a->size < 8)
        v = (int64_t)((uint64_t)v << (64 - 8 * a->size)) >> (64 - 8 * a->size);
    return (double)v;
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct {
    const TuneCase *c;
    unsigned char *dense[MAX_ARGS];
    unsigned char *at[MAX_SETS][MAX_ARGS][MAX_VARIANTS];
    size_t bytes[MAX_ARGS][MAX_VARIANTS];
    unsigned char *block;          /* of all sets */
    unsigned char *others;         /* what the rest of the network touches between two runs, */
    size_t nothers, arena;         /* bytes of it; of these, since its results' places were used */
    unsigned char *want[MAX_ARGS]; /* what the naive kernel makes of the data that are there */
    int nset;
} CaseMemory;

/* Bytes of the largest cache, as Linux tells it; 32 MB where it does not. */
static double last_cache(void)
{
    double most = 0;
    for (int i = 2; i < 5; i++) {
        char name[80], unit = 0;
        double n = 0;
        snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *f = fopen(name, "r");
        if (f && fscanf(f, "%lf%c", &n, &unit) >= 1) {
            n *= unit == 'K' ? 1024 : unit == 'M' ? 1 << 20 : 1;
            most = n > most ? n : most;
        }
        if (f)
            fclose(f);
    }
    return most > 0 ? most : 32 << 20;
}

static double without(double all, double own, double most)
{
    return all < own ? 0 : all - own < most ? all - own : most;
}

/* Reading 1.5 times the bytes of a cache leaves nothing in it of what was there.  That takes too
 * long of a cache of 43 MB and more (stream_limit): what a larger one has is timed from it, even
 * where the network comes from memory. */
static void make_others(CaseMemory *m, double weights, double activations)
{
    const double cache = 1.5 * last_cache(), most = cache < stream_limit ? cache : stream_limit;
    m->nothers = (size_t)without(m->c->span, weights + activations, most);
    m->arena = (size_t)without(m->c->arena, activations, (double)m->nothers);
    m->others = allocate(m->nothers + 1);
    memset(m->others, 1, m->nothers + 1);
}

/* Buffers lie one behind the other, at odd multiples of a line, as they may in an arena. */
static void make_memory(CaseMemory *m, const TuneCase *c)
{
    size_t all = 0, activations = 0, weights = 0;
    m->c = c;
    for (int i = 0; i < c->narg; i++) {
        const TuneArg *a = &c->arg[i];
        m->dense[i] = allocate(a->dense * (size_t)a->size + 1);
        for (int v = 0; v < a->variants; v++) {
            m->bytes[i][v] = a->stored[v] * (size_t)a->size;
            all += (m->bytes[i][v] + 2 * GUARD + 64 * 11 + 63) / 64 * 64;
        }
        *(a->weight ? &weights : &activations) += m->bytes[i][0];
    }
    const double sets = all ? memory_limit / (double)all : 1;
    m->nset = sets < 1 ? 1 : sets > MAX_SETS ? MAX_SETS : (int)sets;
    make_others(m, (double)weights, (double)activations);
    m->block = allocate((size_t)m->nset * (all + 4096));
    memset(m->block, 0, (size_t)m->nset * (all + 4096));
    for (int s = 0; s < m->nset; s++) {
        unsigned char *p = m->block + (size_t)s * (all + 4096);
        p += s * 832 % 4096 / 64 * 64;
        for (int i = 0; i < c->narg; i++)
            for (int v = 0; v < c->arg[i].variants; v++) {
                m->at[s][i][v] = p + GUARD;
                p += (m->bytes[i][v] + 2 * GUARD + (size_t)(64 * (i % 11)) + 63) / 64 * 64;
            }
    }
}

static void free_memory(CaseMemory *m)
{
    free(m->block);
    free(m->others);
    for (int i = 0; i < m->c->narg; i++) {
        free(m->dense[i]);
        free(m->want[i]);
    }
}

static void fill_stored(unsigned char *p, const TuneArg *a, size_t n)
{
    if (a->kind != 'i' && a->kind != 'u') {
        memset(p, 0, n * (size_t)a->size);
        return;
    }
    const int64_t v = a->fill;
    for (size_t i = 0; i < n; i++)
        memcpy(p + i * (size_t)a->size, &v, (size_t)a->size);
}

/* Operands of one set of memory; results are the same bytes every time. */
static void fill_set(CaseMemory *m, int set, int data)
{
    const TuneCase *c = m->c;
    seed = 12345u + 977u * (unsigned)data;
    for (int i = 0; i < c->narg; i++) {
        const TuneArg *a = &c->arg[i];
        for (int v = 0; v < a->variants; v++)
            memset(m->at[set][i][v] - GUARD, 0x5a, GUARD);
        for (int v = 0; v < a->variants; v++)
            memset(m->at[set][i][v] + m->bytes[i][v], 0x5a, GUARD);
        if (a->written) {
            fill_stored(m->at[set][i][0], a, a->stored[0]);
            continue;
        }
        for (size_t e = 0; e < a->dense; e++)
            put_element(m->dense[i] + e * (size_t)a->size, a, data);
        for (int v = 0; v < a->variants; v++) {
            fill_stored(m->at[set][i][v], a, a->stored[v]);
            if (a->pack[v])
                a->pack[v](m->at[set][i][v], m->dense[i]);
            else
                memcpy(m->at[set][i][v], m->dense[i],
                       (a->dense < a->stored[v] ? a->dense : a->stored[v]) * (size_t)a->size);
        }
    }
}

static void arguments(const CaseMemory *m, int set, const TuneCandidate *k, void **arg)
{
    for (int i = 0; i < m->c->narg; i++)
        arg[i] = m->at[set][i][k ? k->variant[i] : 0];
}

/* ---- right? ---------------------------------------------------------------------------------- */

#define TOLERANCE 1e-4 /* of the largest value: what the order of a sum makes */

static double slack_of(char kind)
{
    return kind == 'h' ? 0x1p-10 : kind == 'B' ? 0x1p-7 : 0;
}

/* The largest difference, as a share of the largest value; of what may not differ at all
 * INFINITY. */
static double compare(const CaseMemory *m, const TuneArg *a, const unsigned char *got,
                      const unsigned char *want, size_t n, int data)
{
    double scale = 0, worst = 0;
    size_t off = 0;
    const int is_float = a->kind == 'f' || a->kind == 'd' || a->kind == 'h' || a->kind == 'B';
    if (!memcmp(got, want, n * (size_t)a->size))
        return 0;
    for (size_t i = 0; i < n; i++) {
        const double w = fabs(number(want + i * (size_t)a->size, a));
        scale = isfinite(w) && w > scale ? w : scale;
    }
    for (size_t i = 0; i < n; i++) {
        const double x = number(got + i * (size_t)a->size, a),
                     y = number(want + i * (size_t)a->size, a);
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= slack_of(a->kind) * fabs(y))
            continue;
        double d = scale > 0 ? fabs(x - y) / scale : fabs(x - y);
        if (!(d <= 1e300) || (m->c->exact && data == 0))
            d = INFINITY;
        off++;
        worst = d > worst ? d : worst;
    }
    if (!is_float) /* a half may be rounded either way, of few elements */
        return m->c->rounds && off <= 1 + n / 1000 ? 0 : off ? INFINITY : 0;
    return worst <= TOLERANCE && worst > 0                            ? worst
           : worst > TOLERANCE && m->c->rounds && off <= 1 + n / 1000 ? TOLERANCE
                                                                      : worst;
}

static int guards_are_whole(const CaseMemory *m)
{
    for (int i = 0; i < m->c->narg; i++)
        for (int v = 0; v < m->c->arg[i].variants; v++)
            for (int b = 0; b < GUARD; b++)
                if (m->at[0][i][v][-1 - b] != 0x5a ||
                    m->at[0][i][v][m->bytes[i][v] + (size_t)b] != 0x5a)
                    return 0;
    return 1;
}

/* Results as they are before a run. */
static void clear_results(CaseMemory *m)
{
    for (int i = 0; i < m->c->narg; i++)
        if (m->c->arg[i].written)
            fill_stored(m->at[0][i][0], &m->c->arg[i], m->c->arg[i].stored[0]);
}

/* With a set of data in place: what the naive kernel makes of it. */
static void naive(CaseMemory *m)
{
    void *arg[MAX_ARGS];
    arguments(m, 0, NULL, arg);
    m->c->naive(arg);
    for (int i = 0; i < m->c->narg; i++)
        if (m->c->arg[i].written) {
            m->want[i] = m->want[i] ? m->want[i] : allocate(m->bytes[i][0]);
            memcpy(m->want[i], m->at[0][i][0], m->bytes[i][0]);
        }
}

/* At or below TOLERANCE it is right. */
static double judge(CaseMemory *m, int candidate, int data)
{
    void *arg[MAX_ARGS];
    double worst = 0;
    clear_results(m);
    arguments(m, 0, m->c->candidate[candidate], arg);
    m->c->candidate[candidate]->run(arg);
    for (int i = 0; i < m->c->narg; i++) {
        if (!m->c->arg[i].written)
            continue;
        const double e =
            compare(m, &m->c->arg[i], m->at[0][i][0], m->want[i], m->c->arg[i].stored[0], data);
        worst = e > worst ? e : worst;
    }
    return guards_are_whole(m) ? worst : INFINITY;
}

/* ---- how fast? ------------------------------------------------------------------------------- */

typedef struct {
    int number; /* of the candidate */
    double ns[MAX_RUNS];
    int n;
} Timed;

static volatile unsigned sink;

/* A word of each line. */
static void touch(const unsigned char *p, size_t bytes)
{
    unsigned sum = 0;
    for (size_t b = 0; b < bytes; b += 64)
        sum += p[b];
    sink = sum;
}

typedef enum { WEIGHTS, RESULTS, OPERANDS } CasePart;

/* Of a set, in the layouts that the candidate has. */
static void touch_part(const CaseMemory *m, int set, const TuneCandidate *k, CasePart part)
{
    for (int i = 0; i < m->c->narg; i++) {
        const TuneArg *a = &m->c->arg[i];
        const int v = k->variant[i];
        if ((a->weight ? WEIGHTS : a->written ? RESULTS : OPERANDS) == part)
            touch(m->at[set][i][v], m->bytes[i][v]);
    }
}

/* What the network does between two runs of the kernel, for the first `n` sets.  Where its weights
 * are before does not matter then, nor which of their layouts other candidates have read. */
static void run_others(const CaseMemory *m, const TuneCandidate *k, int n)
{
    for (int i = 0; i < n; i++)
        touch_part(m, i, k, WEIGHTS);
    touch(m->others, m->nothers - m->arena);
    for (int i = 0; i < n; i++)
        touch_part(m, i, k, RESULTS);
    touch(m->others + m->nothers - m->arena, m->arena);
    for (int i = 0; i < n; i++)
        touch_part(m, i, k, OPERANDS);
}

/* Of this thread alone, without the time in which others had its core; now() where that is not
 * told. */
static double own_time(void)
{
    struct timespec t;
#ifdef CLOCK_THREAD_CPUTIME_ID
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
#endif
    return now();
}

/* Nanoseconds of a run, on average of `repeat` runs in a set each. */
static double run(CaseMemory *m, int candidate, int repeat)
{
    void *arg[MAX_SETS][MAX_ARGS];
    run_others(m, m->c->candidate[candidate], repeat);
    for (int i = 0; i < repeat; i++)
        arguments(m, i, m->c->candidate[candidate], arg[i]);
    const double t = own_time();
    for (int i = 0; i < repeat; i++)
        m->c->candidate[candidate]->run(arg[i]);
    return (own_time() - t) / repeat;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Others on the machine only ever add time: a low part of the samples is nearest to what a run
 * takes. */
static double quantile(const double *ns, int n, double q)
{
    double sorted[MAX_RUNS];
    memcpy(sorted, ns, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return n ? sorted[(int)(q * (n - 1))] : 0;
}

#define LOW 0.2

/* What a candidate takes: its time beside that of the first one in the rounds that both were in.
 * One that was slow left early, and a machine is not as fast then as later, when few are left. */
static double time_beside(const Timed *t, const Timed *first)
{
    const double then = quantile(first->ns, t->n, LOW);
    return then > 0 ? quantile(t->ns, t->n, LOW) * quantile(first->ns, first->n, LOW) / then : 0;
}

static double halves_apart(const Timed *t)
{
    double part[2][MAX_RUNS];
    int n[2] = {0, 0};
    for (int i = 0; i < t->n; i++)
        part[i & 1][n[i & 1]++] = t->ns[i];
    const double a = quantile(part[0], n[0], LOW), b = quantile(part[1], n[1], LOW);
    return n[1] && a > 0 ? fabs(a - b) / a : 1;
}

static void time_case(int number, CaseMemory *m, Timed *t, int n, double seconds)
{
    for (int s = 1; s < m->nset; s++)
        for (int i = 0; i < m->c->narg; i++)
            for (int v = 0; v < m->c->arg[i].variants; v++)
                memcpy(m->at[s][i][v], m->at[0][i][v], m->bytes[i][v]);
    const double begun = now(), first = run(m, t[0].number, 1), again = run(m, t[0].number, 1);
    int repeat = again > 0 ? (int)(20e3 / (again < first ? again : first)) : 16;
    repeat = repeat > m->nset ? m->nset : repeat;
    repeat = repeat < 1 ? 1 : repeat;
    int live[MAX_CANDIDATES + 1], nlive = n;
    for (int i = 0; i < n; i++)
        live[i] = i;
    for (int round = 0; round < MAX_RUNS && (round < 5 || now() - begun < seconds * 1e9); round++) {
        for (int i = 0; i < nlive; i++) {
            Timed *x = &t[live[(i + round) % nlive]];
            x->ns[x->n++] = run(m, x->number, repeat);
        }
        if (round % 8 == 0) {
            printf("{\"alive\": %d, \"candidates\": %d}\n", number, nlive);
            fflush(stdout);
        }
        double best = INFINITY, limit = round < 4 ? 3 : round < 10 ? 1.5 : 1.12;
        for (int i = 0; i < nlive; i++) {
            const double q = quantile(t[live[i]].ns, t[live[i]].n, LOW);
            best = q < best ? q : best;
        }
        int kept = 0;
        for (int i = 0; i < nlive; i++) { /* the first and its twin, at the end, stay */
            const int l = live[i];
            const int slow = quantile(t[l].ns, t[l].n, LOW) > limit * best;
            if (round < 2 || l == 0 || l == n - 1 || !slow)
                live[kept++] = l;
        }
        nlive = kept;
    }
    const double base = quantile(t[0].ns, t[0].n, LOW),
                 twin = quantile(t[n - 1].ns, t[n - 1].n, LOW);
    double noise = base > 0 ? fabs(base - twin) / base : 1;
    const double h = halves_apart(&t[0]);
    noise = h > noise ? h : noise;
    for (int i = 0; i < n - 1; i++)
        printf("{\"case\": %d, \"candidate\": %d, \"ns\": %.2f, \"median\": %.2f, \"min\": %.2f, "
               "\"runs\": %d}\n",
               number, t[i].number, time_beside(&t[i], &t[0]), quantile(t[i].ns, t[i].n, 0.5),
               quantile(t[i].ns, t[i].n, 0), t[i].n * repeat);
    printf("{\"case\": %d, \"noise\": %.5f, \"sets\": %d}\n", number, noise, m->nset);
    fflush(stdout);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int is_skipped(int c, int j)
{
    char name[32];
    snprintf(name, sizeof name, "%d.%d", c, j);
    for (int i = 0; i < nskip; i++)
        if (!strcmp(skip[i], name))
            return 1;
    return 0;
}

static void tell_begin(int number, int candidate)
{
    printf("{\"begin\": [%d, %d]}\n", number, candidate);
    fflush(stdout);
}

static void run_case(int number, double seconds, int check_only)
{
    static double worst[MAX_CANDIDATES]; /* NAN: it is left out */
    static CaseMemory memory;
    static Timed timed[MAX_CANDIDATES + 1];
    const TuneCase *c = tune_cases[number];
    int n = 0;
    memset(&memory, 0, sizeof memory);
    make_memory(&memory, c);
    for (int j = 0; j < c->n && j < MAX_CANDIDATES; j++)
        worst[j] = is_skipped(number, j) ? NAN : 0;
    for (int data = 0; data < c->sets; data++) {
        tell_begin(number, -1);
        fill_set(&memory, 0, data);
        naive(&memory);
        for (int j = 0; j < c->n && j < MAX_CANDIDATES; j++) {
            if (!(worst[j] <= TOLERANCE))
                continue;
            tell_begin(number, j);
            double w = judge(&memory, j, data);
            if (!(w <= TOLERANCE)) { /* unless one before it has spoilt the data */
                fill_set(&memory, 0, data);
                w = judge(&memory, j, data);
                fill_set(&memory, 0, data);
            }
            worst[j] = w > worst[j] ? w : worst[j];
        }
    }
    for (int j = 0; j < c->n && j < MAX_CANDIDATES; j++) {
        if (isnan(worst[j]))
            continue;
        if (worst[j] <= TOLERANCE) {
            printf("{\"case\": %d, \"candidate\": %d, \"verdict\": \"right\", \"error\": %.3g}\n",
                   number, j, worst[j]);
            timed[n].n = 0;
            timed[n++].number = j;
        } else {
            printf("{\"case\": %d, \"candidate\": %d, \"verdict\": \"wrong\"}\n", number, j);
        }
    }
    fflush(stdout);
    if (n && timed[0].number == 0 && !check_only) {
        timed[n].n = 0;
        timed[n++].number = 0;
        fill_set(&memory, 0, c->sets > 1 ? 1 : 0);
        time_case(number, &memory, timed, n, seconds);
    }
    free_memory(&memory);
}

static void print_machine(void)
{
    char line[512], cpu[512] = "unknown";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (colon && (!strncmp(line, "model name", 10) || !strncmp(line, "Hardware", 8) ||
                      !strncmp(line, "uarch", 5))) {
            snprintf(cpu, sizeof cpu, "%s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
    for (char *p = cpu; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            *p = *p == '\n' ? 0 : '?';
#if defined(__clang__)
    const char *compiler = "clang " __clang_version__;
#elif defined(__GNUC__)
    const char *compiler = "gcc " __VERSION__;
#else
    const char *compiler = "unknown";
#endif
    printf("{\"cpu\": \"%s\", \"compiler\": \"%s\"}\n", cpu, compiler);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    int only = -1, check_only = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--check")) {
            check_only = 1;
        } else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
            seconds = atof(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--only")) {
            only = atoi(argv[++i]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--skip") && nskip < 4096) {
            skip[nskip++] = argv[++i];
        } else {
            fprintf(stderr,
                    "usage: %s [--seconds S] [--only CASE] [--skip CASE.CANDIDATE]... [--check]\n",
                    argv[0]);
            return 2;
        }
    }
#ifdef __linux__
    cpu_set_t set;
    const int core = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(core < 0 ? 0 : core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
#endif
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() |
               0x8040u); /* subnormal numbers are zeros, as in a run of the network */
#endif
    print_machine();
    for (int i = 0; i < tune_ncase; i++)
        if (only < 0 || only == i)
            run_case(i, seconds, check_only);
    printf("{\"done\": true}\n");
    return 0;
}
