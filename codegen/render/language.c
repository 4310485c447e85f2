/* language.c - patterns of a language's words, and text that all languages share. */
#include <stdlib.h>
#include <string.h>

#include "render.h"

typedef struct {
    const char *text;
    size_t n;
} Part;

static void put_in_order(StrBuf *sb, const char *pattern, const Part *part)
{
    for (const char *p = pattern; *p;) {
        const size_t n = strcspn(p, "$");
        sb_write(sb, p, n);
        p += n;
        if (!*p)
            break;
        sb_write(sb, part[p[1] - '0'].text, part[p[1] - '0'].n);
        p += 2;
    }
}

void print_pattern(StrBuf *sb, const char *pattern, const char *const *text)
{
    Part part[MAX_PARTS] = {{0}};
    for (const char *p = pattern; (p = strchr(p, '$')) != NULL; p += 2)
        part[p[1] - '0'] = (Part){text[p[1] - '0'], strlen(text[p[1] - '0'])};
    put_in_order(sb, pattern, part);
}

Parts parts_begin(Render *r)
{
    return (Parts){.at = {r->sb->len}, .n = 1};
}

void parts_next(Render *r, Parts *p)
{
    if (p->n == MAX_PARTS)
        BUG("more parts than a pattern has");
    p->at[p->n++] = r->sb->len;
}

void parts_end(Render *r, const Parts *p, const char *pattern)
{
    StrBuf *sb = r->sb;
    Part part[MAX_PARTS] = {{0}};
    const size_t from = p->at[0], n = sb->len - from;
    sb_puts(sb, ""); /* there is text, if none was written */
    char *text = arena_alloc(r->arena, n + 1);
    memcpy(text, sb->data + from, n);
    for (int i = 0; i < p->n; i++) {
        const size_t end = i + 1 < p->n ? p->at[i + 1] : sb->len;
        part[i] = (Part){text + (p->at[i] - from), end - p->at[i]};
    }
    sb->len = from;
    sb->data[from] = 0;
    put_in_order(sb, pattern, part);
}

void render_declare(Render *r, const char *pattern, const char *type, const char *name)
{
    print_pattern(r->sb, pattern, (const char *const[]){type, name});
}

const char *render_cast_begin(Render *r, const char *type, bool binds)
{
    const bool bare = binds && r->lang->cast_binds;
    print_pattern(r->sb, r->lang->cast, &type);
    put(r, bare ? "" : "(");
    return bare ? "" : ")";
}

void render_number(Render *r, double v, ingot_dtype d)
{
    r->lang->number(r->sb, v, d);
}

void render_integer(Render *r, int64_t v, ingot_dtype d)
{
    r->lang->integer(r->sb, v, d);
}

/* The fewest digits that read back as the same number, and that it is no integer. */
void print_shortest(StrBuf *sb, double v, bool is_f32)
{
    char text[40];
    snprintf(text, sizeof text, is_f32 ? "%.9g" : "%.17g", v);
    for (int digits = 1; digits < 17; digits++) {
        char shorter[40];
        snprintf(shorter, sizeof shorter, "%.*g", digits, v);
        double back = strtod(shorter, NULL);
        if (is_f32 ? (float)back == (float)v : back == v) {
            memcpy(text, shorter, sizeof text);
            break;
        }
    }
    sb_puts(sb, text);
    if (!strpbrk(text, ".e"))
        sb_puts(sb, ".0");
}
