/* tune_ways.c - which kernel of several computes each step of a network on a GPU: timed where it runs, among all others.
 *
 * In the place of driver_bench.c, in a bundle whose steps have several kernels each (Step.way): ./model --bench SECONDS IN. Begins with the
 * compiler's kernels. One group of equal steps after the other takes another kernel, the whole network is recorded anew, as one launch, and
 * both records run in turns: what is faster in most turns stays, and the next one is tried beside it. So launches that overlap, and what
 * is in the caches, are as they will be.
 *
 * times.json, in the folder where it runs, gets a line before and after each: a run that was cut off, or ended by a kernel that is at fault, goes
 * on behind what is there.
 *
 *     {"try": [sweep, group, way]}
 *     {"done": [sweep, group, way], "verdict": "taken", "us": 240.1, "was_us": 242.8}     or "left", "wrong", "failed"
 *     {"network_us": 236.0, "was_us": 249.2, "turns": 15} */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#define driver_bench driver_bench_alone
#include "driver_bench.h"
#undef driver_bench

#include "../model_igrt.h"

#include "../model.h"
#include "../ways.h" /* STEPS, GROUPS, step_group[], group_ways[], MOST_WAYS, TOLERANCE */

#include <math.h>
#include <stdarg.h>
#include <unistd.h>

enum { SWEEPS = 2, SHORT_TURNS = 3, TURNS = 11, LAST_TURNS = 15, AGAIN = 3, RUNS = 10, HANGS = 20 };
static const double run_us = 2500; /* of one record, before the other one's turn */
static const double gain = 0.0015, lost = 0.003;

typedef struct {
    Session *s;
    model_ctx *ctx;
    void *device_in, *device_out;    /* the structs, with memory on the device */
    void **wanted;                   /* outputs of the compiler's kernels */
    int taken[GROUPS];               /* ways */
    double ratio[GROUPS][MOST_WAYS]; /* to what was there then; 0: not known */
    char tried[SWEEPS][GROUPS][MOST_WAYS];
    double us; /* of a run */
    FILE *log;
} Chain;

extern int model_way[];

static void tell(Chain *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(c->log, format, args);
    va_end(args);
    fflush(c->log);
}

static void set_ways(const int *taken)
{
    for (int i = 0; i < STEPS; i++)
        model_way[i] = step_group[i] < 0 ? 0 : taken[step_group[i]];
}

/* What there is already. */
static void read_log(Chain *c)
{
    FILE *f = fopen("times.json", "r");
    char line[512], verdict[32];
    int k, g, w;
    double us, was;
    while (f && fgets(line, sizeof line, f)) {
        const int done = sscanf(
            line,
            "{\"done\": [%d, %d, %d], \"verdict\": \"%31[a-z]\", \"us\": %lf, \"was_us\": %lf", &k,
            &g, &w, verdict, &us, &was);
        if (done < 4 && sscanf(line, "{\"try\": [%d, %d, %d]", &k, &g, &w) != 3)
            continue;
        if (k < 0 || k >= SWEEPS || g < 0 || g >= GROUPS || w < 0 || w >= group_ways[g])
            continue;
        c->tried[k][g][w] = 1;
        if (done < 6)
            continue;
        c->ratio[g][w] = was > 0 ? us / was : 0;
        if (!strcmp(verdict, "taken"))
            c->taken[g] = w;
    }
    if (f)
        fclose(f);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int run_on_device(Chain *c)
{
    return c->s->model->run(c->s->ctx, c->device_in, c->device_out) == IGRT_OK;
}

static int wait_for(Chain *c)
{
    return c->s->model->wait(c->s->ctx) == IGRT_OK;
}

/* Microseconds of a run, of some that follow each other; < 0: it failed. */
static double time_runs(Chain *c, int runs)
{
    const uint64_t begin = driver_now(NULL);
    for (int i = 0; i < runs; i++)
        if (!run_on_device(c))
            return -1;
    if (!wait_for(c))
        return -1;
    return (double)(driver_now(NULL) - begin) * 1e-3 / runs;
}

static void swap(Chain *c, igrt_cu_graph *other)
{
    const igrt_cu_graph mine = c->ctx->record;
    c->ctx->record = *other;
    *other = mine;
}

/* Records the network by these ways, and runs it; what was recorded goes to *was. */
static int record_ways(Chain *c, const int *taken, igrt_cu_graph *was)
{
    memset(was, 0, sizeof *was);
    swap(c, was);
    set_ways(taken);
    c->ctx->stale = 1;
    const int good = run_on_device(c) && run_on_device(c) && wait_for(c);
    c->ctx->stale = 0;
    return good;
}

static size_t output_bytes(const igrt_io *io, const void *base)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    driver_dims(base, io, dims);
    return npy_count(dims, io->rank) * igrt_dtype_bytes(io->dtype);
}

/* Runs with the host's memory: outputs come back. */
static int run_on_host(Chain *c)
{
    c->ctx->config.flags &= ~(unsigned)IGRT_ON_DEVICE;
    const igrt_status status = c->s->model->run(c->s->ctx, c->s->inputs, c->s->outputs);
    c->ctx->config.flags |= IGRT_ON_DEVICE;
    return status == IGRT_OK;
}

static double element(const igrt_io *io, const void *data, size_t i)
{
    uint32_t word;
    float value;
    switch (io->dtype) {
    case IGRT_F32: return ((const float *)data)[i];
    case IGRT_F64: return ((const double *)data)[i];
    case IGRT_BF16:
        word = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&value, &word, sizeof value);
        return value;
    case IGRT_F16: {
        const unsigned x = ((const uint16_t *)data)[i], e = x >> 10 & 31, m = x & 1023;
        const double v = e == 31 ? (m ? NAN : INFINITY)
                         : e     ? ldexp(1024 + m, (int)e - 25)
                                 : ldexp(m, -24);
        return x >> 15 ? -v : v;
    }
    default: return 0;
    }
}

/* Beside the compiler's kernels, but for how sums are rounded: of the largest value. */
static int is_right(Chain *c)
{
    const igrt_model *m = c->s->model;
    if (!run_on_host(c))
        return 0;
    for (int i = 0; i < m->n_outputs; i++) {
        const igrt_io *io = &m->outputs[i];
        const void *got = driver_pointer(c->s->outputs, io);
        const size_t bytes = output_bytes(io, c->s->outputs),
                     n = bytes / igrt_dtype_bytes(io->dtype);
        const int is_float = io->dtype == IGRT_F32 || io->dtype == IGRT_F64 ||
                             io->dtype == IGRT_F16 || io->dtype == IGRT_BF16;
        double most = 0, off = 0;
        if (!got)
            continue;
        if (!is_float && memcmp(got, c->wanted[i], bytes))
            return 0;
        for (size_t k = 0; k < n && is_float; k++) {
            const double x = element(io, got, k), y = element(io, c->wanted[i], k);
            most = fabs(y) > most ? fabs(y) : most;
            if (isnan(x) != isnan(y))
                return 0;
            off = fabs(x - y) > off ? fabs(x - y) : off;
        }
        if (off > TOLERANCE * most)
            return 0;
    }
    return 1;
}

/* ---- one beside the other ---------------------------------------------------------------------- */

typedef struct {
    double us, was; /* medians */
    double low,
        mid; /* of what is gained in a turn, as a share: the lower quartile and the median */
    int failed;
} Beside;

/* The record that runs, and *was, in turns: at least `few` of them, and `most` unless it is clearly slower. */
static Beside in_turns(Chain *c, igrt_cu_graph *was, int few, int most)
{
    double us[LAST_TURNS], base[LAST_TURNS], gained[LAST_TURNS];
    Beside b = {0};
    int runs = (int)(run_us / (c->us > 1 ? c->us : 1)), n = 0;
    runs = runs < 3 ? 3 : runs > RUNS ? RUNS : runs;
    while (n < most) {
        swap(c, was);
        base[n] = time_runs(c, runs);
        swap(c, was);
        us[n] = time_runs(c, runs);
        if (us[n] <= 0 || base[n] <= 0) {
            b.failed = 1;
            return b;
        }
        gained[n] = 1 - us[n] / base[n];
        if (++n != few)
            continue;
        double sorted[LAST_TURNS];
        memcpy(sorted, gained, sizeof sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, compare_times);
        if (sorted[n / 2] < -lost)
            break;
    }
    qsort(us, (size_t)n, sizeof *us, compare_times);
    qsort(base, (size_t)n, sizeof *base, compare_times);
    qsort(gained, (size_t)n, sizeof *gained, compare_times);
    b.us = us[n / 2];
    b.was = base[n / 2];
    b.low = gained[n / 4];
    b.mid = gained[n / 2];
    return b;
}

/* False: the device does not do any more. */
static int try_way(Chain *c, int sweep, int g, int w)
{
    igrt_cu_graph was;
    int ways[GROUPS];
    Beside b = {0};
    memcpy(ways, c->taken, sizeof ways);
    ways[g] = w;
    tell(c, "{\"try\": [%d, %d, %d]}\n", sweep, g, w);
    c->tried[sweep][g][w] = 1;
    alarm(HANGS);
    const char *verdict = "failed";
    int good = record_ways(c, ways, &was);
    if (good) {
        verdict = is_right(c) ? "left" : "wrong";
        if (verdict[0] == 'l')
            b = in_turns(c, &was, SHORT_TURNS, TURNS);
        if (b.failed)
            verdict = "failed";
    }
    if (b.us > 0 && b.low > 0 && b.mid > gain) {
        verdict = "taken";
        c->taken[g] = w;
        c->us = b.us;
    } else {
        swap(c, &was);
        set_ways(c->taken);
    }
    igrt_cu_free_graph(&c->ctx->gpu, &was);
    if (verdict[0] == 'f' && (!run_on_device(c) || !wait_for(c)))
        return 0;
    alarm(0);
    if (b.us > 0 && b.was > 0)
        c->ratio[g][w] = b.us / b.was;
    tell(c, "{\"done\": [%d, %d, %d], \"verdict\": \"%s\", \"us\": %.3f, \"was_us\": %.3f}\n",
         sweep, g, w, verdict, b.us, b.was);
    return 1;
}

/* Of those that were close, once more beside what the others have become; and the compiler's. */
static int is_again(const Chain *c, int g, int w)
{
    int better = 0;
    if (w == c->taken[g])
        return 0;
    if (!w)
        return 1;
    for (int i = 1; i < group_ways[g]; i++)
        better += i != c->taken[g] && c->ratio[g][i] > 0 && c->ratio[g][i] < c->ratio[g][w];
    return c->ratio[g][w] > 0 && c->ratio[g][w] < 1 + 2 * lost && better < AGAIN;
}

static int search(Chain *c, uint64_t deadline)
{
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int w = sweep ? 0 : 1; w < MOST_WAYS; w++)
            for (int g = 0; g < GROUPS; g++) {
                if (w >= group_ways[g] || c->tried[sweep][g][w] || (sweep && !is_again(c, g, w)))
                    continue;
                if (driver_now(NULL) > deadline)
                    return IGRT_EXIT_OK;
                if (!try_way(c, sweep, g, w))
                    return driver_fail(IGRT_EXIT_MODEL, "the device failed with way %d of group %d",
                                       w, g);
            }
    return IGRT_EXIT_OK;
}

/* All that was taken beside the compiler's, in turns. */
static int last(Chain *c)
{
    static const int none[GROUPS];
    igrt_cu_graph was;
    alarm(HANGS);
    if (!record_ways(c, none, &was))
        return driver_fail(IGRT_EXIT_MODEL, "the network does not run any more");
    swap(c, &was);
    set_ways(c->taken);
    const Beside b = in_turns(c, &was, LAST_TURNS, LAST_TURNS);
    alarm(0);
    igrt_cu_free_graph(&c->ctx->gpu, &was);
    if (b.failed)
        return driver_fail(IGRT_EXIT_MODEL, "the network does not run any more");
    tell(c, "{\"network_us\": %.3f, \"was_us\": %.3f, \"turns\": %d}\n", b.us, b.was, LAST_TURNS);
    return IGRT_EXIT_OK;
}

/* ---- begin ------------------------------------------------------------------------------------- */

/* Structs like the driver's, with memory on the device: inputs are there. */
static int make_device_io(Chain *c)
{
    Session *s = c->s;
    const igrt_model *m = s->model;
    c->device_in = calloc(1, m->inputs_bytes);
    c->device_out = calloc(1, m->outputs_bytes);
    if (!c->device_in || !c->device_out)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    memcpy(c->device_in, s->inputs, m->inputs_bytes);
    memcpy(c->device_out, s->outputs, m->outputs_bytes);
    for (int i = 0; i < m->n_inputs + m->n_outputs; i++) {
        const int input = i < m->n_inputs;
        const igrt_io *io = input ? &m->inputs[i] : &m->outputs[i - m->n_inputs];
        void *base = input ? c->device_in : c->device_out, *host = driver_pointer(base, io),
             *place = NULL;
        const size_t bytes = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
        if (!host)
            continue;
        if (m->memory(s->ctx, bytes ? bytes : 1, input ? host : NULL, &place) != IGRT_OK)
            return driver_fail(IGRT_EXIT_MODEL, "memory on the device");
        driver_set_pointer(base, io, place);
    }
    return IGRT_EXIT_OK;
}

static int keep_wanted(Chain *c)
{
    const igrt_model *m = c->s->model;
    c->wanted = calloc((size_t)m->n_outputs + 1, sizeof *c->wanted);
    if (!c->wanted)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    for (int i = 0; i < m->n_outputs; i++) {
        const size_t bytes = output_bytes(&m->outputs[i], c->s->outputs);
        const void *from = driver_pointer(c->s->outputs, &m->outputs[i]);
        c->wanted[i] = malloc(bytes ? bytes : 1);
        if (!c->wanted[i])
            return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
        if (from)
            memcpy(c->wanted[i], from, bytes);
    }
    return IGRT_EXIT_OK;
}

int driver_bench(Session *s)
{
    static Chain chain;
    Chain *c = &chain;
    igrt_cu_graph was;
    const uint64_t deadline = driver_now(NULL) + (uint64_t)(s->options->seconds * 1e9);
    *c = (Chain){.s = s, .ctx = s->ctx};
    read_log(c);
    c->log = fopen("times.json", "a");
    if (!c->log)
        return driver_fail(IGRT_EXIT_OUTPUT, "times.json cannot be written");
    int status = run_on_host(c) ? keep_wanted(c) : driver_fail(IGRT_EXIT_MODEL, "run");
    if (status == IGRT_EXIT_OK)
        status = make_device_io(c);
    if (status != IGRT_EXIT_OK)
        return status;
    s->config.flags |= IGRT_ON_DEVICE;
    if (!record_ways(c, c->taken, &was))
        return driver_fail(IGRT_EXIT_MODEL, "run on the device");
    igrt_cu_free_graph(&c->ctx->gpu, &was);
    c->us = time_runs(c, RUNS);
    status = search(c, deadline);
    if (status == IGRT_EXIT_OK)
        status = last(c);
    fclose(c->log);
    return status;
}
