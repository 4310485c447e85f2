/* machine_peak.c - what one core of this machine can do: measured, not looked up.
 *
 * A small C program, built with the flags that bundles get, tells how many multiply-adds a
 * second a core does, of f32 and of u8 with i8 (0: there is no instruction for them), and how fast
 * it reads 16 KB, 256 KB, 4 MB and what is larger than any cache: four levels, by size. */
#include "run.h"

static const char roof_source[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n"
    "#if defined(__linux__)\n#include <sys/mman.h>\n#endif\n"
    "#if defined(__AVX512F__) || defined(__FMA__)\n#include <immintrin.h>\n#elif "
    "defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n"
    "#if defined(__AVX512F__)\ntypedef __m512 V;\n#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)\n"
    "#elif defined(__FMA__)\ntypedef __m256 V;\n#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)\n"
    "#elif defined(__aarch64__)\ntypedef float32x4_t V;\n#define FMA(a, b, c) vfmaq_f32(c, a, b)\n"
    "#else\ntypedef float V __attribute__((vector_size(16)));\n#define FMA(a, b, c) ((a) * (b) + "
    "(c))\n#endif\n"
    "enum { LANES = sizeof(V) / 4 };\n"
    /* without the time in which others had the core */
    "static double now(void) {\n    struct timespec t;\n#if defined(CLOCK_THREAD_CPUTIME_ID)\n"
    "    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return t.tv_sec + 1e-9 * t.tv_nsec;\n"
    "#endif\n    timespec_get(&t, TIME_UTC);\n    return t.tv_sec + 1e-9 * t.tv_nsec;\n}\n"
    "static float sink;\n"
    "#if defined(__AVX512VNNI__)\n#define DOT(x, w, s) _mm512_dpbusd_epi32((__m512i)(s), "
    "(__m512i)(x), "
    "(__m512i)(w))\n"
    "#elif defined(__AVXVNNI__)\n#define DOT(x, w, s) _mm256_dpbusd_avx_epi32((__m256i)(s), "
    "(__m256i)(x), (__m256i)(w))\n"
    "#elif defined(__ARM_FEATURE_DOTPROD)\n#define DOT(x, w, s) vdotq_s32(s, (int8x16_t)(x), "
    "(int8x16_t)(w))\n#endif\n"
    /* sums that begin with different numbers: compilers compute equal ones once */
    "#define SUMS(S) S(0) S(1) S(2) S(3) S(4) S(5) S(6) S(7) S(8) S(9) S(10) S(11)\n"
    "static double flops(void)\n{\n    const V zero = {0}, b = zero + 1e-3f, c = b;\n"
    "    V all = zero;\n    const long n = 1 << 20;\n    double t = now();\n"
    "#define BEGIN(i) V a##i = c + (float)i;\n#define ADD(i) a##i = FMA(a##i, b, c);\n"
    "#define JOIN(i) all += a##i;\n"
    "    SUMS(BEGIN)\n    for (long i = 0; i < n; i++) {\n        SUMS(ADD)\n    }\n"
    "    t = now() - t;\n    SUMS(JOIN)\n    sink += all[0];\n"
    "    return 2.0 * 12 * LANES * (double)n / t;\n}\n"
    "static double dots(void)\n{\n#if defined(DOT)\n    typedef int W "
    "__attribute__((vector_size(sizeof(V))));\n"
    "    const W zero = {0}, x = zero + (int)(now() * 1e-9), w = x;\n"
    "    W all = zero;\n    const long n = 1 << 20;\n    double t = now();\n"
    "#define BEGIN_DOTS(i) W s##i = x + i;\n#define ADD_DOTS(i) s##i = (W)DOT(x, w, s##i);\n"
    "#define JOIN_DOTS(i) all += s##i;\n"
    "    SUMS(BEGIN_DOTS)\n    for (long i = 0; i < n; i++) {\n        SUMS(ADD_DOTS)\n    }\n"
    "    t = now() - t;\n    SUMS(JOIN_DOTS)\n    sink += (float)all[0];\n"
    "    return 2.0 * 12 * 4 * LANES * (double)n / t;\n#else\n    return 0;\n#endif\n}\n"
    "static double bandwidth(const float *p, size_t bytes, int times)\n{\n    size_t n = bytes / "
    "sizeof(V) / 8 * 8;\n"
    "    V s[8];\n    memset(s, 0, sizeof s);\n    const V *v = (const V *)p;\n    double t = "
    "now();\n"
    "    for (int k = 0; k < times; k++)\n        for (size_t i = 0; i < n; i += 8) {\n"
    "            "
    "s[0]+=v[i];s[1]+=v[i+1];s[2]+=v[i+2];s[3]+=v[i+3];s[4]+=v[i+4];s[5]+=v[i+5];s[6]+=v[i+6];s[7]+"
    "=v[i+7];\n        }\n"
    "    t = now() - t;\n    float x[LANES];\n    V r = s[0]+s[1]+s[2]+s[3]+s[4]+s[5]+s[6]+s[7];\n "
    "   memcpy(x, &r, sizeof x);\n    sink += x[0];\n"
    "    return (double)n * sizeof(V) * times / t;\n}\n"
    "int main(void)\n{\n    size_t big = 192u << 20;\n    float *p = aligned_alloc(2u << 20, "
    "big);\n    "
    "if (!p) return 1;\n"
    /* as the program of a bundle has its weights and tensors: in pages of 4 KB a core may read half
     * as fast */
    "#if defined(MADV_HUGEPAGE)\n    madvise(p, big, MADV_HUGEPAGE);\n#endif\n"
    "    memset(p, 0, big);\n    double f = 0, d = 0, l1 = 0, c = 0, l3 = 0, m = 0, x;\n    for "
    "(int i = "
    "0; i < 5; i++) "
    "{\n"
    "        x = flops(); f = x > f ? x : f;\n        x = dots(); d = x > d ? x : d;\n        x = "
    "bandwidth(p, 1 << 14, 6400); l1 = x > l1 "
    "? "
    "x : l1;\n        x = bandwidth(p, 1 << 18, 400); c = x > c ? x : c;\n"
    "        x = bandwidth(p, 1 << 22, 20); l3 = x > l3 ? x : l3;\n"
    "        x = bandwidth(p, big, 1); m = x > m ? x : m;\n    }\n"
    "    printf(\"%.6g %.6g %.6g %.6g %.6g %.6g %g\\n\", f, l1, c, l3, m, d, (double)sink * 0);\n  "
    "  "
    "return 0;\n}\n";

char *read_text(Arena *a, const char *path)
{
    MapFile map;
    if (mapfile_open(&map, path))
        return NULL;
    char *text = arena_alloc(a, map.len + 1);
    memcpy(text, map.data, map.len);
    text[map.len] = 0;
    mapfile_close(&map);
    return text;
}

bool roof_build(Arena *a, const char *dir, const char *target)
{
    const char *file = arena_printf(a, "%s/roof.c", dir);
    return make_dirs(dir) && file_write(file, roof_source, strlen(roof_source)) &&
           build_program(a, dir, "roof", target, "-std=gnu11", false, false) == INGOT_OK;
}

bool roof_measure(Arena *a, const char *dir, Roof *r)
{
    const char *out = arena_printf(a, "%s/roof.txt", dir),
               *argv[] = {arena_printf(a, "%s/roof", dir), NULL};
    const char *text = process_run_to(argv, out) ? NULL : read_text(a, out);
    return text &&
           sscanf(text, "%lf %lf %lf %lf %lf %lf", &r->flops, &r->near, &r->cache, &r->far,
                  &r->memory, &r->dots) == 6 &&
           r->flops > 0 && r->near > 0 && r->cache > 0 && r->far > 0 && r->memory > 0;
}
