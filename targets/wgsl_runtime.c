/* wgsl_runtime.c - the functions of igrt_num.wgsl that kernels call, and what these call in turn.
 *
 * A module says what it needs and nothing else: a browser compiles all of it.  Functions below
 * "// for i8 i16:" are a pattern, which is filled in for each of these types. */
#include <stdlib.h>
#include <string.h>

#include "codegen.h"
#include "language_wgsl.h"

/* A function, or a variable, and whether it is called. */
typedef struct {
    const char *name, *text;
    bool called;
} WgslItem;

typedef struct {
    Arena *arena;
    WgslItem *item;
    int n;
} WgslItems;

static bool in_name(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* "igrt_add_i8" of "fn igrt_add_i8(x: ..." */
static const char *name_of(Arena *a, const char *text)
{
    const char *at = strstr(text, "igrt_");
    size_t n = 0;
    while (at && in_name(at[n]))
        n++;
    return arena_printf(a, "%.*s", (int)n, at ? at : "");
}

static void add_item(WgslItems *all, const char *text)
{
    const WgslItem item = {.name = name_of(all->arena, text), .text = text};
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->item[i].name, item.name)) /* the first one counts */
            return;
    vec_push(all->arena, all->item, all->n, item);
}

/* The text of a type: "$T" is i8, "$V" i32, "$B" 8. */
static const char *filled_in(Arena *a, const char *text, const char *type)
{
    StrBuf sb = {0};
    const char *value = *type == 'i' ? "i32" : *type == 'u' ? "u32" : type;
    for (const char *p = text; *p; p++) {
        const char *part = *p != '$'     ? NULL
                           : p[1] == 'T' ? type
                           : p[1] == 'V' ? value
                           : p[1] == 'B' ? type + 1
                                         : NULL;
        if (part)
            p++;
        sb_write(&sb, part ? part : p, part ? strlen(part) : 1);
    }
    return sb_take(&sb, a);
}

/* An item of a section "i8 i16", or of "all". */
static void add_items(WgslItems *all, const char *types, const char *text)
{
    if (!strcmp(types, "all")) {
        add_item(all, text);
        return;
    }
    for (const char *at = types; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        add_item(all, filled_in(all->arena, text, arena_printf(all->arena, "%.*s", (int)n, at)));
        at += n;
    }
}

/* Where the item that begins here ends: behind its line, or behind a line "}". */
static const char *end_of(const char *item)
{
    const char *eol = strchr(item, '\n');
    if (!eol)
        return item + strlen(item);
    if (eol[-1] == '}' || eol[-1] == ';')
        return eol + 1;
    const char *end = strstr(eol, "\n}\n");
    return end ? end + 3 : item + strlen(item);
}

static void read_items(WgslItems *all, const char *text)
{
    const char *types = "all";
    while (*text) {
        const char *eol = strchr(text, '\n');
        const size_t line = eol ? (size_t)(eol - text) + 1 : strlen(text);
        if (!strncmp(text, "// for ", 7)) {
            types = arena_printf(all->arena, "%.*s", (int)strcspn(text + 7, ":"), text + 7);
        } else if (!strncmp(text, "fn ", 3) || !strncmp(text, "var<", 4)) {
            const char *end = end_of(text);
            add_items(all, types, arena_printf(all->arena, "%.*s", (int)(end - text), text));
            text = end;
            continue;
        }
        text += line;
    }
}

/* What a text calls, and what that calls. */
static void call_items(WgslItems *all, const char *text)
{
    for (const char *p = strstr(text, "igrt_"); p; p = strstr(p + 1, "igrt_")) {
        size_t n = 0;
        while (in_name(p[n]))
            n++;
        for (int i = 0; i < all->n; i++) {
            WgslItem *x = &all->item[i];
            if (!x->called && strlen(x->name) == n && !memcmp(x->name, p, n)) {
                x->called = true;
                call_items(all, x->text);
            }
        }
    }
}

void wgsl_runtime(StrBuf *sb, const char *first, const char *text)
{
    WgslItems all = {.arena = arena_new()};
    read_items(&all, first);
    read_items(&all, runtime_text("igrt_num.wgsl"));
    read_items(&all, runtime_text("igrt_f64.wgsl"));
    call_items(&all, text);
    for (int i = 0; i < all.n; i++)
        if (all.item[i].called)
            sb_puts(sb, all.item[i].text);
    arena_free(all.arena);
}
