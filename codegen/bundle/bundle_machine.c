/* bundle_machine.c - which files of a bundle are compiled for which machine.
 *
 * A file that is compiled for one (-march, -mcpu) may hold its instructions anywhere. What runs
 * before init has asked whether the processor has them (runtime_min/igrt_cpu.h) is compiled without
 * these flags: the driver, <name>_init.c, what asks; and of a bundle for a GPU and for C all but
 * the half for C. */
#include <string.h>

#include "bundle.h"

/* Are there processors of its kind that lack what others have, and does init find out? */
static bool is_asked(const Target *t)
{
    const char *flags = t->flags ? t->flags : "";
    if (t->bare || t->wasm || t->gpu)
        return false;
    if (t->triple)
        return !strncmp(t->triple, "x86_64", 6) || !strncmp(t->triple, "aarch64", 7);
    return !strstr(flags, "-march=rv");
}

/* Does the word choose instructions, and nothing that objects have to agree on? */
static bool chooses_instructions(const char *word)
{
    static const char *const begin[] = {"-march=", "-mcpu=",  "-mtune=",  "-mprefer-vector-width",
                                        "-mavx",   "-msse",   "-mssse",   "-mfma",
                                        "-mf16c",  "-mbmi",   "-mlzcnt",  "-mabm",
                                        "-mamx",   "-mgfni",  "-mpopcnt", "-mmovbe",
                                        "-madx",   "-mxsave", "-maes",    "-mpclmul",
                                        "-mvaes"};
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

bool source_is_for_any(Arena *a, const char *name, bool halves, const char *file)
{
    const char *half = halves ? arena_printf(a, "%s_c", name) : name;
    if (begins_with(file, "host/") || !strcmp(file, arena_printf(a, "%s_init.c", half)) ||
        !strcmp(file, arena_printf(a, "%s_igrt_cpu.c", name)))
        return true;
    return halves && !begins_with(file, arena_printf(a, "%s_", half)) &&
           !begins_with(file, arena_printf(a, "%s.", half));
}

bool bundle_asks_machine(const Bundle *b)
{
    return !b->half && !b->gpu && is_asked(b->target) && !bundle_is_bare(b);
}
