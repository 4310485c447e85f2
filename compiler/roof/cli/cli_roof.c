/* cli_roof.c - what one core of this machine can do: measured, not looked up.
 *
 * A small C program, built with the flags that bundles get, tells how many multiply-adds a
 * second a core does, of f32 and of u8 with i8 (0: there is no instruction for them), and how fast it reads 16 KB, 256 KB, 4 MB and what is larger than any cache: four levels, by size. */
#include "cli.h"

static const char roof_source[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n"
    "#if defined(__AVX512F__) || defined(__FMA__)\n#include <immintrin.h>\n#elif "
    "defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n"
    "#if defined(__AVX512F__)\ntypedef __m512 V;\n#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)\n"
    "#elif defined(__FMA__)\ntypedef __m256 V;\n#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)\n"
    "#elif defined(__aarch64__)\ntypedef float32x4_t V;\n#define FMA(a, b, c) vfmaq_f32(c, a, b)\n"
    "#else\ntypedef float V __attribute__((vector_size(16)));\n#define FMA(a, b, c) ((a) * (b) + "
    "(c))\n#endif\n"
    "enum { LANES = sizeof(V) / 4 };\n"
    "static double now(void) { struct timespec t; timespec_get(&t, TIME_UTC); return t.tv_sec + "
    "1e-9 * t.tv_nsec; }\n"
    "static float sink;\n"
    "static double flops(void)\n{\n    V a[12], b, c;\n    float x[LANES];\n"
    "    for (int i = 0; i < LANES; i++) x[i] = 1e-3f;\n    memcpy(&b, x, sizeof b);\n    "
    "memcpy(&c, x, sizeof c);\n"
    "    for (int i = 0; i < 12; i++) a[i] = c;\n"
    "    const long n = 1 << 20;\n    double t = now();\n"
    "    V "
    "a0=a[0],a1=a[1],a2=a[2],a3=a[3],a4=a[4],a5=a[5],a6=a[6],a7=a[7],a8=a[8],a9=a[9],a10=a[10],a11="
    "a[11];\n"
    "    for (long i = 0; i < n; i++) {\n"
    "        "
    "a0=FMA(a0,b,c);a1=FMA(a1,b,c);a2=FMA(a2,b,c);a3=FMA(a3,b,c);a4=FMA(a4,b,c);a5=FMA(a5,b,c);\n"
    "        "
    "a6=FMA(a6,b,c);a7=FMA(a7,b,c);a8=FMA(a8,b,c);a9=FMA(a9,b,c);a10=FMA(a10,b,c);a11=FMA(a11,b,c);"
    "\n    }\n"
    "    t = now() - t;\n    V s = a0+a1+a2+a3+a4+a5+a6+a7+a8+a9+a10+a11;\n    memcpy(x, &s, "
    "sizeof x);\n    sink += x[0];\n"
    "    return 2.0 * 12 * LANES * (double)n / t;\n}\n"
    "#if defined(__AVX512VNNI__)\n#define DOT(s) s=_mm512_dpbusd_epi32(s,x,w)\n"
    "static double dots(void)\n{\n    __m512i x=_mm512_set1_epi32((int)(now()*1e-9)),w=x;\n"
    "    __m512i a=x,b=x,c=x,d=x,e=x,f=x,g=x,h=x,i=x,j=x,k=x,l=x;\n    const long n = 1 << 20;\n"
    "    double t = now();\n    for (long z = 0; z < n; z++) {\n"
    "        DOT(a);DOT(b);DOT(c);DOT(d);DOT(e);DOT(f);DOT(g);DOT(h);DOT(i);DOT(j);DOT(k);DOT(l);\n"
    "        __asm__ volatile(\"\" : \"+v\"(x));\n    }\n    t = now() - t;\n"
    "    a=_mm512_add_epi32(a,_mm512_add_epi32(b,_mm512_add_epi32(c,_mm512_add_epi32(d,_mm512_add_"
    "epi32(e,f)))));\n"
    "    g=_mm512_add_epi32(g,_mm512_add_epi32(h,_mm512_add_epi32(i,_mm512_add_epi32(j,_mm512_add_"
    "epi32(k,l)))));\n"
    "    sink += (float)_mm512_reduce_add_epi32(_mm512_add_epi32(a,g));\n"
    "    return 2.0 * 12 * 64 * (double)n / t;\n}\n"
    "#else\nstatic double dots(void) { return 0; }\n#endif\n"
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
    "int main(void)\n{\n    size_t big = 192u << 20;\n    float *p = aligned_alloc(64, big);\n    "
    "if (!p) return 1;\n"
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
    char *text = arena_printf(a, "%.*s", (int)map.len, (const char *)map.data);
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
