/* cli_bench.c - bench --per-kernel: every step's time beside what this machine could do.
 *
 * The roofline is measured, not looked up: a small C program, built with the flags that bundles get,
 * tells how many f32 multiply-adds a second one core does, and how fast it reads from cache and
 * from memory.  A step's bound is the larger of its operations over the one and its bytes over the
 * other (Williams, Waterman, Patterson: Roofline, CACM 2009). */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CACHED_BYTES = 1 << 19, PROFILES = 3 };

static const char roof_source[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n"
    "#if defined(__AVX512F__) || defined(__FMA__)\n#include <immintrin.h>\n#elif defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n"
    "#if defined(__AVX512F__)\ntypedef __m512 V;\n#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)\n"
    "#elif defined(__FMA__)\ntypedef __m256 V;\n#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)\n"
    "#elif defined(__aarch64__)\ntypedef float32x4_t V;\n#define FMA(a, b, c) vfmaq_f32(c, a, b)\n"
    "#else\ntypedef float V __attribute__((vector_size(16)));\n#define FMA(a, b, c) ((a) * (b) + (c))\n#endif\n"
    "enum { LANES = sizeof(V) / 4 };\n"
    "static double now(void) { struct timespec t; timespec_get(&t, TIME_UTC); return t.tv_sec + 1e-9 * t.tv_nsec; }\n"
    "static float sink;\n"
    "static double flops(void)\n{\n    V a[12], b, c;\n    float x[LANES];\n"
    "    for (int i = 0; i < LANES; i++) x[i] = 1e-3f;\n    memcpy(&b, x, sizeof b);\n    memcpy(&c, x, sizeof c);\n"
    "    for (int i = 0; i < 12; i++) a[i] = c;\n"
    "    const long n = 1 << 20;\n    double t = now();\n"
    "    V a0=a[0],a1=a[1],a2=a[2],a3=a[3],a4=a[4],a5=a[5],a6=a[6],a7=a[7],a8=a[8],a9=a[9],a10=a[10],a11=a[11];\n"
    "    for (long i = 0; i < n; i++) {\n"
    "        a0=FMA(a0,b,c);a1=FMA(a1,b,c);a2=FMA(a2,b,c);a3=FMA(a3,b,c);a4=FMA(a4,b,c);a5=FMA(a5,b,c);\n"
    "        a6=FMA(a6,b,c);a7=FMA(a7,b,c);a8=FMA(a8,b,c);a9=FMA(a9,b,c);a10=FMA(a10,b,c);a11=FMA(a11,b,c);\n    }\n"
    "    t = now() - t;\n    V s = a0+a1+a2+a3+a4+a5+a6+a7+a8+a9+a10+a11;\n    memcpy(x, &s, sizeof x);\n    sink += x[0];\n"
    "    return 2.0 * 12 * LANES * (double)n / t;\n}\n"
    "static double bandwidth(const float *p, size_t bytes, int times)\n{\n    size_t n = bytes / sizeof(V) / 8 * 8;\n"
    "    V s[8];\n    memset(s, 0, sizeof s);\n    const V *v = (const V *)p;\n    double t = now();\n"
    "    for (int k = 0; k < times; k++)\n        for (size_t i = 0; i < n; i += 8) {\n"
    "            s[0]+=v[i];s[1]+=v[i+1];s[2]+=v[i+2];s[3]+=v[i+3];s[4]+=v[i+4];s[5]+=v[i+5];s[6]+=v[i+6];s[7]+=v[i+7];\n        }\n"
    "    t = now() - t;\n    float x[LANES];\n    V r = s[0]+s[1]+s[2]+s[3]+s[4]+s[5]+s[6]+s[7];\n    memcpy(x, &r, sizeof x);\n    sink += x[0];\n"
    "    return (double)n * sizeof(V) * times / t;\n}\n"
    "int main(void)\n{\n    size_t big = 192u << 20;\n    float *p = aligned_alloc(64, big);\n    if (!p) return 1;\n"
    "    memset(p, 0, big);\n    double f = 0, c = 0, m = 0, x;\n    for (int i = 0; i < 5; i++) {\n"
    "        x = flops(); f = x > f ? x : f;\n        x = bandwidth(p, 1 << 18, 400); c = x > c ? x : c;\n"
    "        x = bandwidth(p, big, 1); m = x > m ? x : m;\n    }\n"
    "    printf(\"%.6g %.6g %.6g %g\\n\", f, c, m, (double)sink * 0);\n    return 0;\n}\n";

typedef struct {
    double flops, cache, memory; /* a second: operations, bytes */
} Roof;

typedef struct {
    int step;
    const char *name;
    double ms, gflops, gbytes, share, roof; /* the last two in per cent */
    double flops, bytes;
} Line;

static char *read_text(Arena *a, const char *path)
{
    MapFile map;
    if (mapfile_open(&map, path))
        return NULL;
    char *text = arena_printf(a, "%.*s", (int)map.len, (const char *)map.data);
    mapfile_close(&map);
    return text;
}

static bool measure_roof(Session *s, Roof *r)
{
    const char *dir = arena_printf(s->a, "%s/roof", s->work), *source = arena_printf(s->a, "%s/roof.c", dir);
    FILE *f = make_dirs(dir) ? fopen(source, "w") : NULL;
    bool ok = f && fputs(roof_source, f) >= 0;
    if (f)
        ok &= fclose(f) == 0;
    ok = ok && build_program(s->a, dir, "roof", s->o->compile.target, "-std=gnu11", false) == INGOT_OK;
    const char *out = arena_printf(s->a, "%s/roof.txt", s->work);
    const char *argv[] = {arena_printf(s->a, "%s/roof", dir), NULL};
    ok = ok && process_run_to(argv, out) == 0;
    const char *text = ok ? read_text(s->a, out) : NULL;
    return text && sscanf(text, "%lf %lf %lf", &r->flops, &r->cache, &r->memory) == 3 && r->flops > 0 && r->cache > 0 && r->memory > 0;
}

/* Operations and bytes of every step, from the lines of `ingot inspect --json`. */
static bool read_steps(Session *s, Line *line, int n)
{
    Model m;
    char *text = NULL;
    if (model_open(&m, s->o, true) == INGOT_OK && model_build(&m, s->o, s->in, s->bound) == INGOT_OK)
        text = ingot_inspect_json(m.c, &s->o->compile);
    for (char *at = text; at && (at = strstr(at, "{\"step\": "));) {
        int step = atoi(at + 9);
        char *flops = strstr(at, "\"flops\": "), *bytes = strstr(at, ", \"bytes\": ");
        for (int i = 0; i < n && flops && bytes; i++)
            if (line[i].step == step) {
                line[i].flops = atof(flops + 9);
                line[i].bytes = atof(bytes + 11);
            }
        at += 9;
    }
    bool ok = text != NULL;
    free(text);
    model_close(&m);
    return ok;
}

/* The driver's table: "step ms % name". Keeps the best of several. */
static int read_profile(Arena *a, char *text, Line **line, int n)
{
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n'), name[256];
        if (end)
            *end++ = 0;
        int step, i;
        double ms, share;
        if (sscanf(at, "%d %lf %lf %255s", &step, &ms, &share, name) == 4) {
            for (i = 0; i < n && (*line)[i].step != step; i++)
                ;
            Line l = {.step = step, .name = arena_strdup(a, name), .ms = ms};
            if (i == n)
                vec_push(a, *line, n, l);
            else if (ms < (*line)[i].ms)
                (*line)[i].ms = ms;
        }
        at = end;
    }
    return n;
}

static int slowest_first(const void *a, const void *b)
{
    const Line *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms ? 1 : -1) : x->step - y->step;
}

static void rate(Line *line, int n, const Roof *r, int threads)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += line[i].ms;
    for (int i = 0; i < n; i++) {
        Line *l = &line[i];
        double ms = l->ms > 0 ? l->ms : 1e-6, bytes = l->bytes <= CACHED_BYTES ? r->cache * threads : r->memory;
        double compute = l->flops / (r->flops * threads), traffic = l->bytes / bytes;
        l->gflops = l->flops / ms * 1e-6;
        l->gbytes = l->bytes / ms * 1e-6;
        l->share = sum > 0 ? 100 * l->ms / sum : 0;
        l->roof = 100e3 * (compute > traffic ? compute : traffic) / ms;
    }
    qsort(line, (size_t)n, sizeof *line, slowest_first);
}

static void print_table(const Line *line, int n, const Roof *r)
{
    printf("one core: %.1f GFLOP/s of f32 multiply-adds, reads %.1f GB/s from cache and %.1f GB/s from memory\n"
           "step         ms       %%   GFLOP/s      GB/s  %% of roof  name\n",
           r->flops * 1e-9, r->cache * 1e-9, r->memory * 1e-9);
    for (int i = 0; i < n; i++)
        printf("%4d %10.6f  %6.2f  %8.2f  %8.2f  %9.1f  %s\n", line[i].step, line[i].ms, line[i].share, line[i].gflops,
               line[i].gbytes, line[i].roof, line[i].name);
}

/* The driver's line, and what was measured here at its end. */
static void print_json(const char *told, const Line *line, int n, const Roof *r)
{
    printf("%.*s, \"peak_gflops\": %.2f, \"cache_gbps\": %.2f, \"memory_gbps\": %.2f, \"kernels\": [", (int)strcspn(told, "}\n"), told,
           r->flops * 1e-9, r->cache * 1e-9, r->memory * 1e-9);
    for (int i = 0; i < n; i++)
        printf("%s{\"step\": %d, \"name\": \"%s\", \"ms\": %.6f, \"percent\": %.2f, \"gflops\": %.3f, \"gbps\": %.3f, "
               "\"roof_percent\": %.2f}",
               i ? ", " : "", line[i].step, line[i].name, line[i].ms, line[i].share, line[i].gflops, line[i].gbytes, line[i].roof);
    printf("]}\n");
}

int bench_kernels(Session *s, const char *const *profile, const char *const *bench)
{
    const char *out = arena_printf(s->a, "%s/told.txt", s->work);
    Line *line = NULL;
    Roof roof;
    int n = 0;
    for (int i = 0; i < PROFILES; i++) {
        int code = process_run_to(profile, out);
        char *text = code ? NULL : read_text(s->a, out);
        if (!text)
            return code ? code : 1;
        n = read_profile(s->a, text, &line, n);
    }
    if (!measure_roof(s, &roof) || !read_steps(s, line, n)) {
        complain(INGOT_TOOL, "%s: this machine's peak cannot be measured", s->o->model);
        return 1;
    }
    rate(line, n, &roof, s->o->threads);
    if (!s->o->json)
        print_table(line, n, &roof);
    int code = process_run_to(bench, out);
    const char *told = code ? NULL : read_text(s->a, out);
    if (told)
        print_json(told, line, n, &roof);
    return told ? 0 : code ? code : 1;
}
