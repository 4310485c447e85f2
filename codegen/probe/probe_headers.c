/* probe_headers.c - the intrinsics that a compiler's own headers declare, as libclang reads them.
 *
 * The macros are those of the compiler that was asked, so what its headers leave out for this
 * machine is left out. gcc's headers call builtins that clang has not; bodies are skipped, and a
 * declaration is all that counts. */
#include "probe.h"

#include <string.h>

#ifdef INGOT_LIBCLANG

#include "libclang.h"

/* Headers of intrinsics, by a macro of the machines that have them. */
static const struct {
    const char *header, *macro;
} candidates[] = {
    {"immintrin.h", "__SSE2__"},          {"arm_acle.h", "__ARM_ARCH"},
    {"arm_neon.h", "__ARM_NEON"},         {"arm_mve.h", "__ARM_FEATURE_MVE"},
    {"riscv_vector.h", "__riscv_vector"}, {"wasm_simd128.h", "__wasm_simd128__"},
    {"altivec.h", "__ALTIVEC__"},
};

/* What kernels are interested in, and the macro under which the machine has it. */
static const struct {
    const char *name, *macro;
} wanted[] = {
    {"__smlad", "__ARM_FEATURE_DSP"},           {"__sxtb16", "__ARM_FEATURE_DSP"},
    {"vmladavaq_s8", "__ARM_FEATURE_MVE"},      {"vfmaq_f32", "__ARM_FEATURE_FMA"},
    {"vdotq_s32", "__ARM_FEATURE_DOTPROD"},     {"_mm256_fmadd_ps", "__FMA__"},
    {"_mm512_fmadd_ps", "__AVX512F__"},         {"_mm512_dpbusd_epi32", "__AVX512VNNI__"},
    {"_mm256_dpbusd_avx_epi32", "__AVXVNNI__"}, {"wasm_i32x4_dot_i16x8", "__wasm_simd128__"},
};
enum { NWANTED = sizeof wanted / sizeof *wanted };

typedef struct {
    Probe *p;
    Map names;
    int n;
    bool has[NWANTED];
} HeaderNames;

/* Functions, and macros that stand for them, of the compiler's folder; those that begin with
 * __builtin are nobody's. */
static enum CXChildVisitResult look(CXCursor cursor, CXCursor parent, CXClientData data)
{
    (void)parent;
    HeaderNames *s = data;
    enum CXCursorKind kind = libclang.getCursorKind(cursor);
    bool macro = kind == CXCursor_MacroDefinition && libclang.Cursor_isMacroFunctionLike(cursor);
    if (kind != CXCursor_FunctionDecl && !macro)
        return CXChildVisit_Continue;
    CXFile file;
    libclang.getFileLocation(libclang.getCursorLocation(cursor), &file, NULL, NULL, NULL);
    if (!file)
        return CXChildVisit_Continue;
    Arena *a = s->p->a;
    const char *path = clang_text(a, libclang.getFileName(file)), *headers = s->p->headers;
    const char *name = clang_text(a, libclang.getCursorSpelling(cursor));
    if (strncmp(path, headers, strlen(headers)) || !strncmp(name, "__builtin", 9))
        return CXChildVisit_Continue;
    uint64_t key = hash_bytes(1, name, strlen(name)) | 1;
    if (map_get(&s->names, key))
        return CXChildVisit_Continue;
    map_put(&s->names, key, s);
    s->n++;
    for (int i = 0; i < NWANTED; i++)
        s->has[i] |= !strcmp(name, wanted[i].name);
    return CXChildVisit_Continue;
}

/* The compiler's macros as text, and the header; freestanding, so that nothing of a C library is
 * asked for. */
static void source_of(const Probe *p, const char *header, StrBuf *sb)
{
    for (int i = 0; i < p->nmacro; i++) {
        const char *name = p->macro[i].name;
        bool own = !strncmp(name, "__has_", 6) || !strcmp(name, "__STDC_HOSTED__");
        if (!own)
            sb_printf(sb, "#undef %s\n#define %s %s\n", name, name, p->macro[i].value);
    }
    sb_printf(sb, "#undef __STDC_HOSTED__\n#define __STDC_HOSTED__ 0\n#include <%s>\n", header);
}

static void read_header(Probe *p, const char *header, bool *has)
{
    const char *const arguments[] = {"-target",  p->machine,       "-undef", "-nostdinc",
                                     "-isystem", p->headers,       "-xc",    "-std=gnu11",
                                     "-w",       "-ferror-limit=0"};
    StrBuf sb = {0};
    source_of(p, header, &sb);
    struct CXUnsavedFile text = {"ingot-probe.c", sb.data, sb.len};
    CUnit unit;
    HeaderNames seen = {.p = p};
    if (cunit_open(&unit, p->a, "ingot-probe.c", &text, (int)(sizeof arguments / sizeof *arguments),
                   arguments,
                   CXTranslationUnit_KeepGoing | CXTranslationUnit_SkipFunctionBodies |
                       CXTranslationUnit_DetailedPreprocessingRecord))
        libclang.visitChildren(libclang.getTranslationUnitCursor(unit.unit), look, &seen);
    cunit_close(&unit);
    sb_free(&sb);
    if (seen.n)
        sb_printf(&p->declared, "%s%s %d", p->declared.len ? ", " : "", header, seen.n);
    for (int i = 0; i < NWANTED; i++)
        has[i] |= seen.has[i];
    map_free(&seen.names);
}

void probe_headers(Probe *p)
{
    bool has[NWANTED] = {0};
    if (libclang_load())
        return;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (macro_of(p, candidates[i].macro))
            read_header(p, candidates[i].header, has);
    for (int i = 0; i < NWANTED; i++)
        if (has[i] && macro_of(p, wanted[i].macro))
            sb_printf(&p->found, "%s%s", p->found.len ? " " : "", wanted[i].name);
}

#else

void probe_headers(Probe *p)
{
    (void)p;
}

#endif
