/* json.c - JSON as RFC 8259 has it; a reader with a bound on depth, for files that anybody may have
 * written. */
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* ---- writing ----------------------------------------------------------------------------- */

void json_string(StrBuf *sb, const char *s)
{
    if (!s) {
        sb_puts(sb, "null");
        return;
    }
    sb_puts(sb, "\"");
    while (*s) {
        const char *plain = s;
        while ((unsigned char)*s >= ' ' && (unsigned char)*s < 0x7f && *s != '"' && *s != '\\')
            s++;
        sb_write(sb, plain, (size_t)(s - plain));
        unsigned char c = (unsigned char)*s;
        int n = utf8_bytes(s);
        if (n) {
            sb_write(sb, s, (size_t)n);
            s += n;
        } else if (c) {
            s++;
            if (c == '"' || c == '\\')
                sb_printf(sb, "\\%c", c);
            else if (c == '\n')
                sb_puts(sb, "\\n");
            else
                sb_printf(sb, "\\u%04x", c);
        }
    }
    sb_puts(sb, "\"");
}

/* ---- reading ----------------------------------------------------------------------------- */

enum { MAX_DEPTH = 64 };
typedef struct {
    Arena *a;
    const char *at, *why;
    int depth;
} JsonReader;

static void space(JsonReader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool is(JsonReader *r, char c)
{
    space(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static bool bad(JsonReader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    return false;
}

static bool hex4(JsonReader *r, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = *r->at;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return bad(r, "an escape is broken");
        *out = *out * 16 + (unsigned)digit;
    }
    return true;
}

static void put_utf8(StrBuf *sb, unsigned c)
{
    unsigned char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (unsigned char)(0x80 | (c & 0x3f));
    b[0] = (unsigned char)(lead[n] | c);
    sb_write(sb, b, n);
}

static bool read_escape(JsonReader *r, StrBuf *sb)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *r->at++;
    const char *known = c ? strchr(from, c) : NULL;
    unsigned u, low;
    if (known) {
        sb_write(sb, &to[known - from], 1);
        return true;
    }
    if (c != 'u' || !hex4(r, &u))
        return bad(r, "an escape is broken");
    const char *behind = r->at;
    if (u >= 0xd800 && u < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        if (!hex4(r, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000)
            u = 0x10000 + ((u - 0xd800) << 10) + (low & 0x3ff);
        else
            r->at = behind;
    }
    put_utf8(sb,
             !u || (u >= 0xd800 && u < 0xe000) ? 0xfffd : u); /* half of a pair is no character */
    return true;
}

static const char *read_string(JsonReader *r)
{
    StrBuf sb = {0};
    bool ok = true;
    while (ok && *r->at && *r->at != '"') {
        size_t n = strcspn(r->at, "\"\\");
        sb_write(&sb, r->at, n);
        r->at += n;
        if (*r->at == '\\') {
            r->at++;
            ok = read_escape(r, &sb);
        }
    }
    ok = ok && (is(r, '"') || bad(r, "a string does not end"));
    char *out = ok ? arena_strdup(r->a, sb.data ? sb.data : "") : NULL;
    sb_free(&sb);
    return out;
}

static bool read_value(JsonReader *r, Json *v);

static bool read_items(JsonReader *r, Json *v, char end)
{
    Json **last = &v->item;
    if (++r->depth > MAX_DEPTH)
        return bad(r, "it is nested too deeply");
    while (!is(r, end)) {
        Json *item = NEW(r->a, Json);
        if (v->item && !is(r, ','))
            return bad(r, "a comma or an end is missing");
        if (v->kind == JSON_OBJECT) {
            if (!is(r, '"') || !(item->name = read_string(r)) || !is(r, ':'))
                return bad(r, "a name is missing");
        }
        if (!read_value(r, item))
            return false;
        *last = item;
        last = &item->next;
    }
    r->depth--;
    return true;
}

static bool read_value(JsonReader *r, Json *v)
{
    static const struct {
        const char *text;
        JsonKind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    space(r);
    for (int i = 0; i < 3; i++)
        if (!strncmp(r->at, words[i].text, strlen(words[i].text))) {
            v->kind = words[i].kind;
            r->at += strlen(words[i].text);
            return true;
        }
    char c = *r->at, *end;
    if (c == '"') {
        r->at++;
        v->kind = JSON_STRING;
        return (v->text = read_string(r)) != NULL;
    }
    if (c == '[' || c == '{') {
        r->at++;
        v->kind = c == '[' ? JSON_LIST : JSON_OBJECT;
        return read_items(r, v, c == '[' ? ']' : '}');
    }
    if (c != '-' && (c < '0' || c > '9'))
        return bad(r, "a value is missing");
    v->kind = JSON_NUMBER;
    v->number = strtod(r->at, &end);
    if (end == r->at || end - r->at > (ptrdiff_t)strspn(r->at, "+-.0123456789eE"))
        return bad(r, "a number is broken"); /* strtod() reads 0x10 and -inf, too */
    r->at = end;
    return true;
}

const Json *json_read(Arena *a, const char *text, const char **why)
{
    JsonReader r = {.a = a, .at = text};
    Json *v = NEW(a, Json);
    bool ok = read_value(&r, v);
    if (ok)
        space(&r);
    if (ok && *r.at)
        ok = bad(&r, "something follows its end");
    *why = r.why;
    return ok ? v : NULL;
}

const Json *json_member(const Json *v, const char *name)
{
    if (!v || v->kind != JSON_OBJECT)
        return NULL;
    const Json *i = v->item;
    while (i && strcmp(i->name, name) != 0)
        i = i->next;
    return i;
}

double json_number(const Json *v, double otherwise)
{
    return v && v->kind == JSON_NUMBER ? v->number : otherwise;
}

const char *json_text(const Json *v, const char *otherwise)
{
    return v && v->kind == JSON_STRING ? v->text : otherwise;
}
