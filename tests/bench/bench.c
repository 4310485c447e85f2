/* bench.c - kernels of odd shapes beside what one core of this machine can do.
 *
 *     bench [--filter TEXT] [--barred] [--dir DIR] [--seconds S] [--target T] [--check] [--prepare
 *         | --prepared]
 *
 * Every case (bench_cases.c) is built through the public API, compiled, built with the flags that
 * bundles get, compared with the interpreter, and timed in one thread by its own driver; the
 * multiply-adds and the bandwidth of the core are measured beside it, in turns: the best of each
 * counts, so that a clock that falls or a neighbour does not pass for a share. A case may be judged
 * by the time of the one before.  --barred leaves out the cases without a bar; with --check a share
 * below the case's bar is a failure.  --prepare does everything but the timing, --prepared only
 * that.  What the interpreter gave stays in DIR for the next time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

typedef struct {
    const char *filter, *dir, *target;
    double seconds;
    bool barred, check, prepare, time;
} Asked;

void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
}

ingot_status complain(ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return status;
}

static void sink_to_stderr(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    say("%s", message);
}

static bool graph_build(const BenchCase *k, BenchGraph *g, double *flops)
{
    *g = (BenchGraph){.c = ingot_context_new(sink_to_stderr, NULL), .a = arena_new()};
    *flops = k->build(g, k->p);
    return !ingot_error_count(g->c);
}

static void graph_free(BenchGraph *g)
{
    ingot_context_free(g->c);
    arena_free(g->a);
}

/* ---- results --------------------------------------------------------------------------------- */

static double element(ingot_dtype d, const void *data, size_t i)
{
    const uint8_t *p = (const uint8_t *)data + i * ingot_dtype_bytes(d);
    float f;
    double x;
    int64_t n = 0;
    uint16_t h;
    switch (d) {
    case INGOT_F32: memcpy(&f, p, 4); return (double)f;
    case INGOT_F64: memcpy(&x, p, 8); return x;
    case INGOT_F16:
        memcpy(&h, p, 2);
        return ldexp((h & 0x7c00 ? 1024 : 0) + (h & 1023), (h >> 10 & 31 ? h >> 10 & 31 : 1) - 25) *
               (h >> 15 ? -1 : 1);
    case INGOT_I32: memcpy(&n, p, 4); return (double)(int32_t)n;
    default: memcpy(&n, p, ingot_dtype_bytes(d)); return (double)n;
    }
}

/* The largest difference over the largest magnitude; -1 if they are not of one shape. */
static double difference(const HostTensor *got, const HostTensor *want)
{
    double worst = 0, scale = 0;
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)got->rank * sizeof *got->dims))
        return -1;
    for (size_t i = 0; i < got->count; i++) {
        double x = element(got->dtype, got->data, i), y = element(got->dtype, want->data, i),
               d = fabs(x - y);
        if (!(d <= worst))
            worst = d;
        scale = fmax(scale, fabs(y));
    }
    return scale > 0 ? worst / scale : worst;
}

/* What the interpreter gives, kept in a file: it takes a second for every 200 million
 * operations. */
static bool expected(BenchGraph *g, const char *file, HostTensor *want)
{
    ingot_status status;
    ingot_value in[MAX_INPUTS], out;
    if (!access(file, R_OK))
        return value_read(g->a, file, want, &status);
    for (int i = 0; i < g->nin; i++) {
        in[i] =
            (ingot_value){.data = g->in[i].data, .rank = g->in[i].rank, .dtype = g->in[i].dtype};
        memcpy(in[i].dims, g->in[i].dims, sizeof in[i].dims);
    }
    if (ingot_interpret(g->c, g->nin, in, 1, &out) != INGOT_OK)
        return false;
    *want = (HostTensor){
        .dtype = out.dtype, .rank = out.rank, .count = 1, .data = (void *)(uintptr_t)out.data};
    for (int i = 0; i < out.rank; i++)
        want->count *= (size_t)(want->dims[i] = out.dims[i]);
    want->bytes = want->count * ingot_dtype_bytes(out.dtype);
    return value_write(g->a, file, NULL, want, &status);
}

static bool result_is_good(const BenchCase *k, BenchGraph *g, const char *dir)
{
    ingot_status status;
    HostTensor got, want;
    const char *argv[] = {arena_printf(g->a, "%s/model", dir), arena_printf(g->a, "%s/in", dir),
                          arena_printf(g->a, "%s/out", dir), NULL};
    if (process_run(argv) ||
        !value_read(g->a, arena_printf(g->a, "%s/out/output_0.npy", dir), &got, &status) ||
        !expected(g, arena_printf(g->a, "%s.npy", dir), &want))
        return false;
    double d = difference(&got, &want), limit = got.dtype == INGOT_F16 ? 1e-3 : 2e-5;
    if (!(d >= 0 && d <= limit))
        say("%s: differs from the interpreter by %g of the range", k->name, d);
    return d >= 0 && d <= limit;
}

/* ---- one case -------------------------------------------------------------------------------- */

static const char *case_dir(Arena *a, const Asked *o, const BenchCase *k)
{
    char *dir = arena_printf(a, "%s/%s", o->dir, k->name);
    for (char *p = dir + strlen(o->dir) + 1; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *p))
            *p = '_';
    return dir;
}

static bool prepare(const Asked *o, const BenchCase *k)
{
    BenchGraph g;
    double flops;
    bool ok = graph_build(k, &g, &flops);
    const char *dir = case_dir(g.a, o, k);
    ingot_options options = {.struct_size = sizeof options, .target = o->target, .prefer = "time"};
    ok = ok && make_dirs(o->dir) && ingot_compile(g.c, &options, dir) == INGOT_OK;
    ok = ok && build_program(g.a, dir, "model", o->target, "-std=c99", false, false) == INGOT_OK;
    ok = ok && make_dirs(arena_printf(g.a, "%s/in", dir));
    for (int i = 0; i < g.nin && ok; i++) {
        ingot_status status;
        ok = value_write(g.a, arena_printf(g.a, "%s/in/input_%d.npy", dir, i), NULL, &g.in[i],
                         &status);
    }
    ok = ok && result_is_good(k, &g, dir);
    if (!ok)
        say("%s: failed", k->name);
    graph_free(&g);
    return ok;
}

/* Bytes of the result, from the file that the check left. */
static double result_bytes(Arena *a, const char *dir)
{
    ingot_status status;
    HostTensor v;
    return value_read(a, arena_printf(a, "%s/out/output_0.npy", dir), &v, &status) ? (double)v.bytes
                                                                                   : 0;
}

enum { ROUNDS = 3 };

static void roof_raise(Roof *r, const Roof *by)
{
    r->flops = fmax(r->flops, by->flops);
    r->dots = fmax(r->dots, by->dots);
    r->memory = fmax(r->memory, by->memory);
}

/* The core's roof and the least milliseconds of a run, measured in turns. */
static bool time_beside_roof(Arena *a, const Asked *o, const char *dir, Roof *roof, double *ms)
{
    const char *told = arena_printf(a, "%s/told.txt", dir);
    const char *argv[] = {arena_printf(a, "%s/model", dir), "--bench",
                          arena_printf(a, "%g", o->seconds / ROUNDS), arena_printf(a, "%s/in", dir),
                          NULL};
    *roof = (Roof){0};
    *ms = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        Roof now;
        if (!roof_measure(a, o->dir, &now) || process_run_to(argv, told))
            return false;
        const char *text = read_text(a, told), *at = text ? strstr(text, "\"min_ms\": ") : NULL;
        double t = at ? atof(at + strlen("\"min_ms\": ")) : 0;
        if (!(t > 0))
            return false;
        *ms = fmin(*ms, t);
        roof_raise(roof, &now);
    }
    return true;
}

/* before: milliseconds of the case before, or 0; becomes this one's. */
static bool measure(const Asked *o, const BenchCase *k, double *before)
{
    static const char *const unit[] = {"% flops", "% flops of f64", "% operations on bytes",
                                       "% bytes", "% of the case before"};
    BenchGraph g;
    Roof roof;
    double flops, ms = 0;
    bool ok = graph_build(k, &g, &flops);
    const char *dir = case_dir(g.a, o, k);
    ok = ok && time_beside_roof(g.a, o, dir, &roof, &ms);
    if (ok) {
        double bytes = g.bytes + result_bytes(g.a, dir),
               most = k->of == OF_DOUBLES                 ? roof.flops / 2
                      : k->of == OF_DOTS && roof.dots > 0 ? roof.dots
                                                          : roof.flops,
               rate = k->of == OF_BYTES ? bytes / roof.memory : flops / most;
        double share = k->of == AS_BEFORE ? 100 * *before / ms : 100e3 * rate / ms;
        bool below = share < k->bar && (k->of != AS_BEFORE || *before > 0);
        *before = ms;
        printf("%-34s %9.3f %9.1f %9.1f %9.1f %7.1f %s", k->name, ms, flops / ms * 1e-6,
               bytes / ms * 1e-6, (k->of == OF_BYTES ? roof.memory : most) * 1e-9, share,
               unit[k->of]);
        if (k->bar > 0)
            printf("  bar %g%s", k->bar, below ? "  BELOW" : "");
        printf("\n");
        fflush(stdout);
        ok = !o->check || !below;
    } else {
        say("%s: cannot be timed", k->name);
    }
    graph_free(&g);
    return ok;
}

static bool case_is_asked(const Asked *o, const BenchCase *k)
{
    return strstr(k->name, o->filter) && (!o->barred || k->bar > 0 || k[1].of == AS_BEFORE);
}

static bool parse(Asked *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--check")) {
            o->check = true;
        } else if (!strcmp(argv[i], "--barred")) {
            o->barred = true;
        } else if (!strcmp(argv[i], "--prepare")) {
            o->time = false;
        } else if (!strcmp(argv[i], "--prepared")) {
            o->prepare = false;
        } else if (!next) {
            return false;
        } else {
            if (!strcmp(argv[i], "--filter"))
                o->filter = next;
            else if (!strcmp(argv[i], "--dir"))
                o->dir = next;
            else if (!strcmp(argv[i], "--target"))
                o->target = next;
            else if (!strcmp(argv[i], "--seconds"))
                o->seconds = atof(next);
            else
                return false;
            i++;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    Asked o = {.filter = "",
               .dir = "/tmp/ingot-bench",
               .target = "c:native",
               .seconds = 0.5,
               .prepare = true,
               .time = true};
    if (!parse(&o, argc, argv)) {
        say("usage: %s [--filter TEXT] [--barred] [--dir DIR] [--seconds S] [--target T] [--check] "
            "[--prepare | --prepared]",
            argv[0]);
        return INGOT_USAGE;
    }
    Arena *a = arena_new();
    bool ok = !o.prepare || roof_build(a, o.dir, o.target);
    for (const BenchCase *k = cases; k->name && o.prepare; k++)
        if (case_is_asked(&o, k))
            ok &= prepare(&o, k);
    if (o.time)
        printf("%-34s %9s %9s %9s %9s %7s\n", "", "ms", "GFLOP/s", "GB/s", "peak", "share");
    double before = 0;
    for (const BenchCase *k = cases; k->name && o.time; k++)
        if (case_is_asked(&o, k))
            ok &= measure(&o, k, &before);
    arena_free(a);
    return ok ? 0 : 1;
}
