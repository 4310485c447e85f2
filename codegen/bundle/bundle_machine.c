/* bundle_machine.c - which files of a bundle are compiled for which machine.
 *
 * A file that is compiled for one (-march, -mcpu) may hold its instructions anywhere. What runs
 * before init has asked whether the processor has them (runtime_min/igrt_cpu.h) is compiled without
 * these flags: the driver, <name>_init.c, what asks; and of a bundle for several targets all but
 * what is for C. */
#include <string.h>

#include "bundle.h"

/* Whose programs a triple is for, of those whose processors can be asked; NULL: another one. */
static const char *family_of(const char *triple)
{
    static const struct {
        const char *begin, *family;
    } known[] = {{"x86_64", "x86-64"}, {"aarch64", "aarch64"}, {"riscv64", "riscv64"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(triple, known[i].begin, strlen(known[i].begin)))
            return known[i].family;
    return NULL;
}

/* Are there processors of its kind that lack what others have, and does init find out? */
static bool is_asked(const Target *t)
{
    const char *flags = t->flags ? t->flags : "";
    if (t->bare || t->wasm || t->gpu)
        return false;
    if (t->triple)
        return family_of(t->triple) != NULL;
    return !strstr(flags, "-march=rv") || strstr(flags, "-march=rv64gc");
}

/* Does the word choose instructions, and nothing that objects have to agree on? */
static bool chooses_instructions(const char *word)
{
    static const char *const begin[] = {"-march=", "-mcpu=",  "-mtune=",  "-mprefer-vector-width",
                                        "-mavx",   "-msse",   "-mssse",   "-mfma",
                                        "-mf16c",  "-mbmi",   "-mlzcnt",  "-mabm",
                                        "-mamx",   "-mgfni",  "-mpopcnt", "-mmovbe",
                                        "-madx",   "-mxsave", "-maes",    "-mpclmul",
                                        "-mvaes",  "-msve"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strncmp(word, begin[i], strlen(begin[i])))
            return true;
    return false;
}

static const char *flags_that(Arena *a, const Target *t, bool choose)
{
    StrBuf sb = {0};
    const bool asked = is_asked(t);
    for (const char *p = t->flags ? t->flags : ""; *p;) {
        const size_t skip = strspn(p, " "), n = strcspn(p + skip, " ");
        const char *word = arena_printf(a, "%.*s", (int)n, p + skip);
        if (n && (asked && chooses_instructions(word)) == choose)
            sb_printf(&sb, "%s%s", sb.len ? " " : "", word);
        p += skip + n;
    }
    const char *flags = sb.len ? arena_strdup(a, sb.data) : "";
    sb_free(&sb);
    return flags;
}

const char *flags_for_machine(Arena *a, const Target *t)
{
    return flags_that(a, t, true);
}

const char *flags_for_all(Arena *a, const Target *t)
{
    return flags_that(a, t, false);
}

static bool begins_with(const char *s, const char *begin)
{
    return !strncmp(s, begin, strlen(begin));
}

int source_machine(Arena *a, const char *name, int n, const char *const *suffix, const char *file)
{
    int found = n ? -1 : 0;
    size_t longest = 0;
    if (begins_with(file, "host/") || !strcmp(file, arena_printf(a, "%s_igrt_cpu.c", name)))
        return -1;
    if (!n && !strcmp(file, arena_printf(a, "%s_init.c", name)))
        return -1;
    for (int i = 0; i < n; i++) { /* model_x86_64_v4_vnni is none of model_x86_64_v4 */
        const char *own = arena_printf(a, "%s_%s", name, suffix[i]);
        const size_t len = strlen(own);
        if (len <= longest || !begins_with(file, own) || (file[len] != '_' && file[len] != '.'))
            continue;
        longest = len;
        found = strcmp(file + len, "_init.c") != 0 ? i : -1;
    }
    return found;
}

bool bundle_asks_machine(const Bundle *b)
{
    return !b->sub && !b->gpu && is_asked(b->target) && !bundle_is_bare(b);
}

const char *target_family(const Target *t)
{
    const char *flags = t->flags ? t->flags : "";
    if (t->triple)
        return family_of(t->triple);
    if (!is_asked(t) || strstr(flags, "-mthumb"))
        return NULL;
    if (!*flags || strstr(flags, "native"))
        return "";
    if (strstr(flags, "-march=rv64"))
        return "riscv64";
    return strstr(flags, "-march=armv8") || strstr(flags, "-mcpu=") ? "aarch64" : "x86-64";
}
