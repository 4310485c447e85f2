/* target_list.c - several targets by one name, for a bundle that chooses when it begins:
 *
 *     cuda:sm_90a+c:native             a GPU, and C where there is none
 *     c:x86-64-v2,x86-64-v3,armv9.target   C for several machines
 *     opencl+c:x86-64-v2,x86-64-v4+vnni    both
 *
 * A '+' that no target for C follows is the machine's: "x86-64-v4+vnni". */
#include <string.h>
#include <unistd.h>

#include "targets.h"

/* "cuda:sm_90a+c:native": where the '+' is; NULL: it is no GPU's, or it stands alone. */
static const char *behind_gpu(Arena *a, const char *name)
{
    const Target *gpu = target_find(arena_printf(a, "%.*s", (int)strcspn(name, ":+"), name));
    if (!gpu || !gpu->gpu)
        return NULL;
    for (const char *at = strchr(name, '+'); at; at = strchr(at + 1, '+')) {
        const bool file = target_is_file(at + 1) && !strchr(at + 1, '+');
        if (file || (at[1] == 'c' && (!at[2] || at[2] == ':' || at[2] == ',')))
            return at;
    }
    return NULL;
}

/* What a target for C is called in the bundle: "x86-64-v3" of c:x86-64-v3, "any" of c, "board" of
 * boards/board.target. */
static const char *short_name(Arena *a, const char *target)
{
    if (target_is_file(target)) {
        const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target,
                   *dot = strstr(base, ".target");
        return arena_printf(a, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
    }
    const char *colon = strchr(target, ':');
    return colon ? arena_strdup(a, colon + 1) : "any";
}

/* Of names of functions and files. */
static const char *suffix_of(Arena *a, const char *name)
{
    char *s = arena_strdup(a, name);
    for (char *p = s; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *p))
            *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : '_';
    return s;
}

static void add(Arena *a, TargetName **list, int *n, const char *target, const char *name, bool gpu)
{
    const TargetName t = {.target = target, .name = name, .suffix = suffix_of(a, name), .gpu = gpu};
    vec_push(a, *list, *n, t);
}

int target_list(Arena *a, const char *name, TargetName **list)
{
    int n = 0;
    const char *plus = behind_gpu(a, name), *rest = plus ? plus + 1 : name;
    *list = NULL;
    if (plus)
        add(a, list, &n, arena_printf(a, "%.*s", (int)(plus - name), name),
            arena_printf(a, "%.*s", (int)strcspn(name, ":+"), name), true);
    const Target *only = target_find(arena_printf(a, "%.*s", (int)strcspn(rest, ":,"), rest));
    const bool divided =
        strchr(rest, ',') && !(only && only->gpu) && !(target_is_file(rest) && !access(rest, F_OK));
    if (!divided) {
        add(a, list, &n, arena_strdup(a, rest), plus ? "c" : short_name(a, rest),
            !plus && only && only->gpu);
        return n;
    }
    for (const char *at = rest; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char *word = arena_printf(a, "%.*s", (int)strcspn(at, ","), at);
        if (!target_is_file(word) && strcmp(word, "c") != 0 && strncmp(word, "c:", 2) != 0)
            word = arena_printf(a, "c:%s", word);
        add(a, list, &n, word, short_name(a, word), false);
    }
    return n;
}

const char *target_list_text(Arena *a, int n, const TargetName *list)
{
    const char *text = list[0].target;
    for (int i = 1; i < n; i++)
        text = arena_printf(a, "%s%s%s", text, i + 1 < n ? ", " : " or ", list[i].target);
    return text;
}
