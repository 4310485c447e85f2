/* step_time.c - CPU time (of several threads: time) of the training step of a bundle that
 * networks.c wrote: milliseconds, the least of all steps; with --kernels that of each step of the
 * plan too.
 *
 *     step_time SECONDS [--threads N]
 *               [--kernels | --losses N [FOLDER] | --learns N [--nudged] | --draws N FOLDER]
 *
 * Weights are drawn (drawn.h), or, where the states are not this program's (-DNOISE=what the last
 * weight left the generator at), begin in the bundle.  --losses prints those of the first N steps
 * and a sum over the states after them, for comparisons between bundles; the folder gets what they
 * begin with: first, target, list (a line for each state: its file, its dims).  --learns prints
 * losses of steps with other data each, which say what the target is; --nudged: at a rate one ulp
 * above.  --draws writes what --learns begins with and its data, all steps in one file, and
 * computes nothing. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drawn.h"
#include "igrt_pool.h"
#include "model.h"

#ifdef STEP_OF_WORDS
#define FIRST ids
#define FIRST_TYPE int64_t
#else
#define FIRST x
#define FIRST_TYPE float
#endif

enum { MOST_STEPS = 4096, WORDS_SEEN = 16 };

static double least[MOST_STEPS];
static const char *kernel[MOST_STEPS];

/* One of so many numbers from 0. */
static double any_of(double n)
{
    return fmin(floor((noise() + 1) / 2 * n), n - 1);
}

static clockid_t measured = CLOCK_PROCESS_CPUTIME_ID;

static uint64_t now_ns(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(measured, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void profile(void *user, int step, const char *name, uint64_t ns)
{
    (void)user;
    if (step < 0 || step >= MOST_STEPS)
        return;
    if (!kernel[step] || (double)ns < least[step])
        least[step] = (double)ns;
    kernel[step] = name;
}

#ifdef NOISE
static void fill_states(const model_ctx *ctx)
{
    (void)ctx;
    noise_state = NOISE;
}
#else
static void fill_states(const model_ctx *ctx)
{
    igrt_state s;
    for (int i = 0; i < MODEL_STATES; i++) {
        const char *part = model_state(ctx, i, &s) == IGRT_OK ? strchr(s.name, '.') : NULL;
        if (part && !strchr(part + 1, '.')) /* else it is a moment */
            draw_weight(s.name, s.rank, s.dims, s.data);
    }
}
#endif

/* Bytes as a file of the folder. */
static void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
        exit(1);
}

/* Words of WORDS_SEEN, whose next one follows from each; images of noise with a brighter part, one
 * of ten.  An eighth of the targets are any of the kinds, so no step's loss comes to nothing: what
 * is learned ends at the entropy of these. */
static void draw(FIRST_TYPE *first, int64_t *target)
{
    const size_t each = FIRST_COUNT / TARGETS, kinds = CLASSES < 10 ? CLASSES : 10;
    for (size_t i = 0; i < FIRST_COUNT; i++)
        first[i] = (FIRST_TYPE)(sizeof(FIRST_TYPE) == 8 ? any_of(WORDS_SEEN) : 1.7 * noise());
    for (size_t i = 0; i < TARGETS; i++)
        if (sizeof(FIRST_TYPE) == 8) {
            const int64_t next = ((int64_t)first[i] * 5 + 3) % WORDS_SEEN;
            target[i] = (noise() > 0.75 ? (int64_t)any_of(WORDS_SEEN) : next) % CLASSES;
        } else {
            const size_t part = each / kinds;
            target[i] = (int64_t)any_of((double)kinds);
            for (size_t k = 0; k < part; k++)
                first[i * each + (size_t)target[i] * part + k] += 1;
            if (noise() > 0.75)
                target[i] = (int64_t)any_of((double)kinds);
        }
}

#ifdef NOISE
static void write_states(const model_ctx *ctx, const char *folder)
{
    (void)ctx;
    (void)folder;
    exit(2);
}

static double sum_of_states(const model_ctx *ctx)
{
    (void)ctx;
    return 0;
}
#else
static void write_states(const model_ctx *ctx, const char *folder)
{
    static char list[MOST_STEPS * 16];
    size_t at = 0;
    igrt_state s;
    for (int i = 0; i < MODEL_STATES; i++) {
        char name[16];
        if (model_state(ctx, i, &s) != IGRT_OK)
            exit(1);
        snprintf(name, sizeof name, "%d", i);
        write_file(folder, name, s.data, s.bytes);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s", name);
        for (int a = 0; a < s.rank; a++)
            at += (size_t)snprintf(list + at, sizeof list - at, " %lld", (long long)s.dims[a]);
        at += (size_t)snprintf(list + at, sizeof list - at, "\n");
    }
    write_file(folder, "list", list, at);
}

static double sum_of_states(const model_ctx *ctx)
{
    igrt_state s;
    double sum = 0;
    for (int i = 0; i < MODEL_STATES; i++)
        if (model_state(ctx, i, &s) == IGRT_OK)
            for (size_t k = 0; k < s.bytes / sizeof(float); k++)
                sum += fabs((double)((const float *)s.data)[k]) * (double)(1 + k % 7);
    return sum;
}
#endif

/* For a program that does the same: the data of so many steps. */
static void write_draws(const char *folder, int steps, FIRST_TYPE *first, int64_t *target)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/first", folder);
    FILE *firsts = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/target", folder);
    FILE *targets = fopen(path, "wb");
    for (int n = 0; n < steps; n++) {
        draw(first, target);
        if (!firsts || !targets ||
            fwrite(first, sizeof *first, FIRST_COUNT, firsts) != FIRST_COUNT ||
            fwrite(target, sizeof *target, TARGETS, targets) != TARGETS)
            exit(1);
    }
    if (fclose(firsts) || fclose(targets))
        exit(1);
}

int main(int argc, char **argv)
{
    static const size_t count = FIRST_COUNT;
    static igrt_pool pool;
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const int threads = argc > 3 && !strcmp(argv[2], "--threads") ? atoi(argv[3]) : 1;
    if (argc > 3 && !strcmp(argv[2], "--threads")) {
        argc -= 2;
        argv += 2;
    }
    const int learns = argc > 3 && !strcmp(argv[2], "--learns");
    const int losses = learns || (argc > 3 && !strcmp(argv[2], "--losses")) ? atoi(argv[3]) : 0;
    FIRST_TYPE *first = calloc(count, sizeof *first);
    int64_t *target = calloc(TARGETS, sizeof *target);
    float rate = 1e-3f, loss = 0;
    for (size_t i = 0; i < count; i++)
        first[i] = (FIRST_TYPE)(sizeof(FIRST_TYPE) == 8 ? (double)(i * 37 % 100) : 1.7 * noise());
    for (int i = 0; i < TARGETS; i++)
        target[i] = i % CLASSES;
    model_config config = {.struct_size = sizeof config, .arena_bytes = MODEL_ARENA_BYTES(threads)};
    if (threads > 1) {
        measured = CLOCK_MONOTONIC;
        config.threads = igrt_pool_start(&pool, threads);
        config.parallel_for = igrt_pool_for;
        config.parallel_user = &pool;
    }
    config.arena = aligned_alloc(4096, (config.arena_bytes + 4095) / 4096 * 4096);
    if (argc > 2 && !strcmp(argv[2], "--kernels")) {
        config.clock = now_ns;
        config.profile = profile;
    }
    model_ctx ctx;
    if (model_init(&ctx, &config))
        return 1;
    fill_states(&ctx);
    if (argc > 4 && !strcmp(argv[2], "--draws")) {
        write_states(&ctx, argv[4]);
        write_draws(argv[4], atoi(argv[3]), first, target);
        return 0;
    }
    if (learns && argc > 4 && !strcmp(argv[4], "--nudged")) {
        rate = nextafterf(rate, 1);
    } else if (losses && argc > 4) {
        write_states(&ctx, argv[4]);
        write_file(argv[4], "first", first, count * sizeof *first);
        write_file(argv[4], "target", target, TARGETS * sizeof *target);
    }
    model_inputs in = {.FIRST = first, .target = target, .rate = &rate};
    model_outputs out = {.loss = &loss};
    double best = 1e300, all = 0;
    for (int n = 0; losses ? n < losses : n < 3 || all < 1e9 * seconds; n++) {
        if (learns)
            draw(first, target);
        const uint64_t since = now_ns(NULL);
        if (model_run(&ctx, &in, &out))
            return 2;
        const double ns = (double)(now_ns(NULL) - since);
        all += ns;
        best = ns < best ? ns : best;
        if (losses)
            printf("%.9g\n", (double)loss);
    }
    if (losses && !learns)
        printf("states %.12g\n", sum_of_states(&ctx));
    else if (!losses)
        printf("%.3f ms, loss %.6g\n", best / 1e6, (double)loss);
    for (int i = 0; i < MOST_STEPS; i++)
        if (kernel[i])
            printf("%10.4f ms  %4d %s\n", least[i] / 1e6, i, kernel[i]);
    return 0;
}
