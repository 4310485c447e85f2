/* probe.c - a compiler is asked, a target file is written.
 *
 * `-dM -E` of an empty file prints all that a compiler defines by itself, which gcc and clang agree
 * on, and from which follow the types, the byte order, the float ABI and the vectors.
 * `-dumpmachine` and `-print-file-name=include` tell what it builds for and where its own headers
 * lie. What of this ingot uses becomes keys that docs/targets.md lists; the others are for whoever
 * reads the file. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ANSWER = 1 << 23, MAX_WORDS = 64, SECONDS = 30 };

/* ---- asking ---------------------------------------------------------------------------------- */

/* Runs the command with these words behind it; its output, or NULL and why. */
static const char *ask(Probe *p, const char *const *more, StrBuf *problem)
{
    const char **argv = NEWN(p->a, const char *, p->nword + 8);
    int n = 0, status = 0, in = open("/dev/null", O_RDWR | O_CLOEXEC), to[2];
    for (; n < p->nword; n++)
        argv[n] = p->word[n];
    for (; *more; more++)
        argv[n++] = *more;
    if (in < 0 || pipe(to)) {
        sb_printf(problem, "%s", strerror(errno));
        return NULL;
    }
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        dup2(in, 0);
        dup2(to[1], 1);
        dup2(in, 2);
        close(to[0]);
        close(to[1]);
        alarm(SECONDS);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (child > 0)
        pending_program(child);
    close(in);
    close(to[1]);
    StrBuf answer = {0};
    char block[1 << 14];
    for (ssize_t got; child > 0 && answer.len < MAX_ANSWER;) {
        got = read(to[0], block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        sb_write(&answer, block, (size_t)got);
    }
    close(to[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    pending_program_ended(child);
    const char *copy = arena_strdup(p->a, answer.data ? answer.data : "");
    sb_free(&answer);
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        sb_printf(problem, "'%s' cannot be run", p->word[0]);
    else if (!WIFEXITED(status) || WEXITSTATUS(status))
        sb_printf(problem, "'%s' fails with %s (and the flags given)", p->word[0], argv[p->nword]);
    else
        return copy;
    return NULL;
}

static const char *first_line(Probe *p, const char *text)
{
    return text ? arena_printf(p->a, "%.*s", (int)strcspn(text, "\r\n"), text) : NULL;
}

static void read_macros(Probe *p)
{
    for (const char *s = p->text; *s;) {
        size_t line = strcspn(s, "\n");
        if (!strncmp(s, "#define ", 8)) {
            const char *name = s + 8, *end = s + line;
            size_t n = strcspn(name, " (\n");
            const char *value = name + n < end ? name + n + 1 : end;
            bool function = name[n] == '(';
            Macro m = {arena_printf(p->a, "%.*s", (int)n, name),
                       arena_printf(p->a, "%.*s", (int)(end - value), value)};
            if (!function)
                vec_push(p->a, p->macro, p->nmacro, m);
        }
        s += line + (s[line] == '\n');
    }
}

const char *macro_of(const Probe *p, const char *name)
{
    for (int i = 0; i < p->nmacro; i++)
        if (!strcmp(p->macro[i].name, name))
            return p->macro[i].value;
    return NULL;
}

static long number(const Probe *p, const char *name)
{
    const char *value = macro_of(p, name);
    return value ? strtol(value, NULL, 0) : 0;
}

/* ---- what follows ---------------------------------------------------------------------------- */

typedef struct {
    const char *simd; /* its name */
    int lanes, registers;
} Vectors;

/* As machine.c has them for the machines that it knows by name. */
static Vectors vectors_of(const Probe *p)
{
    if (macro_of(p, "__AVX512F__"))
        return (Vectors){"avx512", 16, 32};
    if (macro_of(p, "__AVX2__") && macro_of(p, "__FMA__"))
        return (Vectors){"avx2", 8, 16};
    if (macro_of(p, "__SSE2__"))
        return (Vectors){"sse2", 4, macro_of(p, "__x86_64__") ? 16 : 8};
    const long sve = number(p, "__ARM_FEATURE_SVE_BITS");
    if (sve == 256 || sve == 512)
        return (Vectors){"sve", sve == 256 ? 8 : 16, 32};
    if (macro_of(p, "__ARM_NEON") || macro_of(p, "__ARM_NEON__"))
        return (Vectors){"neon", 4, macro_of(p, "__aarch64__") ? 32 : 16};
    if (macro_of(p, "__wasm_simd128__"))
        return (Vectors){"simd128", 4, 12};
    const long rvv = number(p, "__riscv_v_min_vlen");
    if (rvv >= 128)
        return (Vectors){"rvv", rvv >= 512 ? 16 : rvv >= 256 ? 8 : 4, 32};
    if (macro_of(p, "__VSX__"))
        return (Vectors){"vsx", 4, 64};
    /* sums of integers take registers, as many as are free */
    bool few = number(p, "__ARM_ARCH_ISA_THUMB") == 1,
         some = macro_of(p, "__ARM_ARCH") || number(p, "__riscv_xlen") == 32;
    return (Vectors){number(p, "__ARM_FEATURE_MVE") ? "mve" : "none", 0, few ? 5 : some ? 9 : 0};
}

static const char *float_abi(const Probe *p)
{
    if (macro_of(p, "__ARM_PCS_VFP") || macro_of(p, "__riscv_float_abi_double") ||
        macro_of(p, "__riscv_float_abi_single"))
        return "hard";
    if (macro_of(p, "__SOFTFP__") || macro_of(p, "__riscv_float_abi_soft") ||
        macro_of(p, "__SOFT_FP__"))
        return "soft";
    return macro_of(p, "__arm__") ? "softfp" : "hard";
}

/* arm-none-eabi-gcc-12 -> arm-none-eabi-ar; others have the system's. */
static const char *archiver(const Probe *p)
{
    const char *cc = p->word[0], *at = NULL;
    for (const char *s = cc; (s = strstr(s, "-gcc")) != NULL; s++)
        at = s;
    return at ? arena_printf(p->a, "%.*s-ar", (int)(at - cc), cc) : NULL;
}

static const char *unquoted(const Probe *p, const char *s)
{
    size_t n = strlen(s);
    bool quoted = n > 1 && *s == '"' && s[n - 1] == '"';
    return quoted ? arena_printf(p->a, "%.*s", (int)n - 2, s + 1) : s;
}

/* vdpbf16ps, where it multiplies twice as many numbers as f32 has: of AMD. Intel's processors that
 * have it are slower by it than by f32, or multiply by tiles. */
static bool pairs_of_bf16(Probe *p, int lanes)
{
    return lanes == 16 && macro_of(p, "__AVX512BF16__") && !macro_of(p, "__AMX_BF16__") &&
           !macro_of(p, "__cooperlake__");
}

static void write_file(Probe *p, const char *command, StrBuf *out)
{
    Vectors v = vectors_of(p);
    const char *order = macro_of(p, "__BYTE_ORDER__"), *version = macro_of(p, "__VERSION__"),
               *ar = archiver(p);
    bool known = p->found.len > 0 || p->declared.len > 0;
    bool pairs = macro_of(p, "__ARM_FEATURE_DSP") != NULL && !macro_of(p, "__aarch64__") &&
                 strcmp(v.simd, "neon") != 0 &&
                 (!known || (p->found.data && strstr(p->found.data, "__smlad")));
    sb_printf(out,
              "# a target of ingot (docs/targets.md): what this compiler says of its machine\n");
    sb_printf(out, "probe = %s\ncompiler = %s\n", command, p->word[0]);
    if (ar)
        sb_printf(out, "archiver = %s\n", ar);
    sb_puts(out, "flags =");
    for (int i = 1; i < p->nword; i++)
        sb_printf(out, " %s", p->word[i]);
    if (v.lanes == 16)
        sb_puts(out, " -mprefer-vector-width=512");
    sb_printf(out, "\nmachine = %s\nlanes = %d\nregisters = %d\nprefer = %s\ndot = %s\n",
              p->machine, v.lanes, v.registers, v.lanes ? "time" : "ram", pairs ? "yes" : "no");
    if (pairs && number(p, "__ARM_FEATURE_MVE") &&
        (!known || (p->found.data && strstr(p->found.data, "vmladavaq_s8"))))
        sb_puts(out, "dot_terms = 16\n");
    if (pairs_of_bf16(p, v.lanes))
        sb_puts(out, "dot_bf16 = 2\n");
    sb_printf(out, "endian = %s\nint = %ld\npointer = %ld\n",
              order && strstr(order, "BIG") ? "big" : "little", 8 * number(p, "__SIZEOF_INT__"),
              8 * number(p, "__SIZEOF_POINTER__"));
    sb_printf(out, "\n# for people\nversion = %s%s\nfloat_abi = %s\nsimd = %s\nfma = %s\n",
              macro_of(p, "__clang__") ? "clang " : "gcc ", unquoted(p, version), float_abi(p),
              v.simd,
              macro_of(p, "__FMA__") || macro_of(p, "__ARM_FEATURE_FMA") ||
                      macro_of(p, "__riscv_flen") || macro_of(p, "__FP_FAST_FMAF")
                  ? "yes"
                  : "no");
    if (p->declared.len)
        sb_printf(out, "intrinsics = %s\n", p->declared.data);
    if (p->found.len)
        sb_printf(out, "instructions = %s\n", p->found.data);
}

ingot_status probe(Arena *a, const char *command, StrBuf *out, StrBuf *problem)
{
    Probe p = {.a = a};
    char *text = arena_strdup(a, command), *next;
    p.word = NEWN(a, const char *, MAX_WORDS);
    for (char *word = strtok_r(text, " \t\n", &next); word && p.nword < MAX_WORDS;
         word = strtok_r(NULL, " \t\n", &next))
        p.word[p.nword++] = word;
    if (!p.nword) {
        sb_puts(problem, "a compiler is wanted: --probe \"arm-none-eabi-gcc -mcpu=cortex-m55\"");
        return INGOT_USAGE;
    }
    p.text = ask(&p, (const char *const[]){"-dM", "-E", "-x", "c", "-", NULL}, problem);
    if (!p.text)
        return INGOT_TOOL;
    read_macros(&p);
    if (!macro_of(&p, "__SIZEOF_INT__") || !macro_of(&p, "__VERSION__")) {
        sb_printf(problem, "'%s' does not answer -dM -E as gcc and clang do", p.word[0]);
        return INGOT_TOOL;
    }
    p.machine = first_line(&p, ask(&p, (const char *const[]){"-dumpmachine", NULL}, problem));
    if (!p.machine)
        return INGOT_TOOL;
    p.headers =
        first_line(&p, ask(&p, (const char *const[]){"-print-file-name=include", NULL}, problem));
    if (!p.headers)
        return INGOT_TOOL;
    probe_headers(&p);
    write_file(&p, command, out);
    sb_free(&p.declared);
    sb_free(&p.found);
    return INGOT_OK;
}
