/*
 * jinja_value.c - values, and the filters, tests, methods and functions of them that templates use.
 */
#include "jinja.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

JinjaValue jinja_text(const char *text, size_t len)
{
    return (JinjaValue){.kind = JINJA_TEXT, .text = text ? text : "", .len = len};
}

JinjaValue jinja_string(const char *s)
{
    return jinja_text(s, strlen(s));
}

JinjaValue jinja_number(double x)
{
    return (JinjaValue){.kind = JINJA_NUMBER, .number = x};
}

JinjaValue jinja_bool(bool x)
{
    return (JinjaValue){.kind = JINJA_BOOL, .number = x};
}

JinjaValue jinja_none(void)
{
    return (JinjaValue){.kind = JINJA_NONE};
}

JinjaValue jinja_list(Jinja *j, bool dict)
{
    JinjaValue v = {.kind = dict ? JINJA_DICT : JINJA_LIST};
    v.items = jinja_alloc(j, sizeof *v.items);
    return v;
}

void jinja_add(Jinja *j, JinjaItems *all, JinjaValue key, JinjaValue value)
{
    if (all->n == all->room) {
        all->room = 2 * all->room + 4;
        JinjaValue *more = jinja_alloc(j, 2 * all->room * sizeof *more);
        if (all->n) {
            memcpy(more, all->key, all->n * sizeof *more);
            memcpy(more + all->room, all->value, all->n * sizeof *more);
        }
        all->key = more;
        all->value = more + all->room;
    }
    all->key[all->n] = key;
    all->value[all->n++] = value;
}

void jinja_put(Jinja *j, JinjaItems *all, JinjaValue key, JinjaValue value)
{
    for (size_t i = 0; i < all->n; i++)
        if (jinja_equal(all->key[i], key)) {
            all->value[i] = value;
            return;
        }
    jinja_add(j, all, key, value);
}

bool jinja_truth(JinjaValue v)
{
    switch (v.kind) {
    case JINJA_BOOL:
    case JINJA_NUMBER: return v.number != 0;
    case JINJA_TEXT: return v.len > 0;
    case JINJA_LIST:
    case JINJA_DICT: return v.items->n > 0;
    case JINJA_MACRO:
    case JINJA_FUNCTION: return true;
    default: return false;
    }
}

bool jinja_is(JinjaValue text, const char *what)
{
    return text.kind == JINJA_TEXT && text.len == strlen(what) &&
           !memcmp(text.text, what, text.len);
}

bool jinja_equal(JinjaValue a, JinjaValue b)
{
    const bool numbers = (a.kind == JINJA_NUMBER || a.kind == JINJA_BOOL) &&
                         (b.kind == JINJA_NUMBER || b.kind == JINJA_BOOL);
    if (numbers)
        return a.number == b.number;
    if (a.kind != b.kind)
        return false;
    if (a.kind == JINJA_TEXT)
        return a.len == b.len && !memcmp(a.text, b.text, a.len);
    if (a.kind != JINJA_LIST && a.kind != JINJA_DICT)
        return true;
    return a.items == b.items || (!a.items->n && !b.items->n);
}

/* Where `part` begins in a text from `at` on; its length: nowhere. */
static size_t found(JinjaValue text, JinjaValue part, size_t at)
{
    for (; at + part.len <= text.len; at++)
        if (!memcmp(text.text + at, part.text, part.len))
            return at;
    return text.len;
}

bool jinja_contains(Jinja *j, JinjaValue all, JinjaValue x)
{
    if (all.kind == JINJA_TEXT && x.kind == JINJA_TEXT)
        return !x.len || found(all, x, 0) < all.len;
    if (all.kind == JINJA_UNDEFINED)
        return false;
    if (all.kind != JINJA_LIST && all.kind != JINJA_DICT) {
        jinja_fail(j, "'in' of what has no elements");
        return false;
    }
    for (size_t i = 0; i < all.items->n; i++)
        if (jinja_equal(all.kind == JINJA_LIST ? all.items->value[i] : all.items->key[i], x))
            return true;
    return false;
}

JinjaValue jinja_member(JinjaValue o, JinjaValue key)
{
    if (o.kind == JINJA_DICT) {
        for (size_t i = 0; i < o.items->n; i++)
            if (jinja_equal(o.items->key[i], key))
                return o.items->value[i];
    } else if (key.kind == JINJA_NUMBER && (o.kind == JINJA_LIST || o.kind == JINJA_TEXT)) {
        const double n = o.kind == JINJA_LIST ? (double)o.items->n : (double)o.len;
        const double at = key.number < 0 ? key.number + n : key.number;
        if (at >= 0 && at < n)
            return o.kind == JINJA_LIST ? o.items->value[(size_t)at]
                                        : jinja_text(o.text + (size_t)at, 1);
    }
    return (JinjaValue){0};
}

/* x[from:to:step], of bytes where x is a text. */
JinjaValue jinja_slice(Jinja *j, JinjaValue x, const JinjaValue part[3])
{
    if (x.kind != JINJA_LIST && x.kind != JINJA_TEXT)
        return jinja_fail(j, "a slice of what is no list");
    const int64_t n = (int64_t)(x.kind == JINJA_LIST ? x.items->n : x.len);
    const int64_t step = part[2].kind == JINJA_NUMBER ? (int64_t)part[2].number : 1;
    int64_t at[2] = {step < 0 ? n - 1 : 0, step < 0 ? -1 : n};
    for (int i = 0; i < 2; i++) {
        if (part[i].kind != JINJA_NUMBER)
            continue;
        const double told = part[i].number + (part[i].number < 0 ? (double)n : 0);
        const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? n - 1 : n;
        at[i] = told < (double)least ? least : told > (double)most ? most : (int64_t)told;
    }
    if (!step || (x.kind == JINJA_TEXT && step != 1))
        return jinja_fail(j, "a slice of steps of %lld is not known", (long long)step);
    if (x.kind == JINJA_TEXT)
        return jinja_text(x.text + at[0], at[1] > at[0] ? (size_t)(at[1] - at[0]) : 0);
    JinjaValue some = jinja_list(j, false);
    for (int64_t i = at[0]; step > 0 ? i < at[1] : i > at[1]; i += step)
        jinja_add(j, some.items, (JinjaValue){0}, x.items->value[i]);
    return some;
}

JinjaValue jinja_joined(Jinja *j, JinjaValue a, JinjaValue b)
{
    char *text = jinja_alloc(j, a.len + b.len);
    if (a.len)
        memcpy(text, a.text, a.len);
    if (b.len)
        memcpy(text + a.len, b.text, b.len);
    return jinja_text(text, a.len + b.len);
}

JinjaValue jinja_shown(Jinja *j, JinjaValue v)
{
    char *text;
    switch (v.kind) {
    case JINJA_TEXT: return v;
    case JINJA_NONE: return jinja_string("None");
    case JINJA_BOOL: return jinja_string(v.number != 0 ? "True" : "False");
    case JINJA_UNDEFINED: return jinja_string("");
    case JINJA_NUMBER:
        text = jinja_alloc(j, 40);
        snprintf(text, 40, v.real && v.number == floor(v.number) ? "%.1f" : "%.15g", v.number);
        return jinja_string(text);
    default: return jinja_fail(j, "a list is no text");
    }
}

JinjaValue jinja_elements(Jinja *j, JinjaValue v)
{
    JinjaValue all = jinja_list(j, false);
    if (v.kind == JINJA_LIST || jinja_idle(j))
        return v.kind == JINJA_LIST ? v : all;
    if (v.kind == JINJA_DICT)
        for (size_t i = 0; i < v.items->n; i++)
            jinja_add(j, all.items, (JinjaValue){0}, v.items->key[i]);
    else if (v.kind == JINJA_TEXT)
        for (size_t i = 0; i < v.len; i++)
            jinja_add(j, all.items, (JinjaValue){0}, jinja_text(v.text + i, 1));
    else if (v.kind != JINJA_UNDEFINED)
        jinja_fail(j, "a loop over what has no elements");
    return all;
}

JinjaValue jinja_arg(const JinjaArgs *args, int place, const char *name)
{
    int i = 0;
    for (int k = 0; k < args->n; k++) {
        const bool by_place = !args->name[k];
        if (by_place ? i == place
                     : args->len[k] == strlen(name) && !memcmp(args->name[k], name, args->len[k]))
            return args->value[k];
        i += by_place;
    }
    return (JinjaValue){0};
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool in_set(char c, JinjaValue set)
{
    if (set.kind != JINJA_TEXT)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c && memchr(set.text, c, set.len) != NULL;
}

enum { LEFT = 1, RIGHT = 2 };

static JinjaValue stripped(JinjaValue x, JinjaValue set, int sides)
{
    while ((sides & LEFT) && x.len && in_set(*x.text, set)) {
        x.text++;
        x.len--;
    }
    while ((sides & RIGHT) && x.len && in_set(x.text[x.len - 1], set))
        x.len--;
    return x;
}

/* ASCII alone: of other letters nothing is known. how: 'u', 'l', 't' (each word), 'c' (the first).
 */
static JinjaValue cased(Jinja *j, JinjaValue x, char how)
{
    char *text = jinja_alloc(j, x.len);
    bool first = true;
    for (size_t i = 0; i < x.len; i++) {
        const char c = x.text[i];
        const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
        const bool up = how == 'u' || (how != 'l' && first);
        text[i] = (char)(lower && up ? c - 32 : upper && !up ? c + 32 : c);
        first = how == 't' ? !lower && !upper : false;
    }
    return jinja_text(text, x.len);
}

static JinjaValue replaced(Jinja *j, JinjaValue x, JinjaValue from, JinjaValue to)
{
    JinjaValue out = jinja_text("", 0);
    size_t at = 0;
    if (from.kind != JINJA_TEXT || to.kind != JINJA_TEXT || !from.len)
        return jinja_fail(j, "replace needs two texts");
    for (size_t next; at < x.len && (next = found(x, from, at)) < x.len && jinja_enter(j);
         at = next + from.len) {
        out = jinja_joined(j, out, jinja_text(x.text + at, next - at));
        out = jinja_joined(j, out, to);
    }
    return jinja_joined(j, out, jinja_text(x.text + at, x.len - at));
}

static JinjaValue split(Jinja *j, JinjaValue x, JinjaValue by, double most)
{
    JinjaValue all = jinja_list(j, false);
    size_t at = 0;
    if (by.kind != JINJA_TEXT || !by.len)
        return jinja_fail(j, "split needs a text");
    for (size_t next; most-- != 0 && (next = found(x, by, at)) < x.len && jinja_enter(j);
         at = next + by.len)
        jinja_add(j, all.items, (JinjaValue){0}, jinja_text(x.text + at, next - at));
    jinja_add(j, all.items, (JinjaValue){0}, jinja_text(x.text + at, x.len - at));
    return all;
}

static bool starts(JinjaValue x, JinjaValue part, bool ends)
{
    return part.kind == JINJA_TEXT && part.len <= x.len &&
           !memcmp(ends ? x.text + x.len - part.len : x.text, part.text, part.len);
}

static JinjaValue pairs_of(Jinja *j, JinjaValue dict)
{
    JinjaValue all = jinja_list(j, false);
    for (size_t i = 0; i < dict.items->n; i++) {
        JinjaValue pair = jinja_list(j, false);
        jinja_add(j, pair.items, (JinjaValue){0}, dict.items->key[i]);
        jinja_add(j, pair.items, (JinjaValue){0}, dict.items->value[i]);
        jinja_add(j, all.items, (JinjaValue){0}, pair);
    }
    return all;
}

/* By keys that are texts. */
static JinjaValue sorted_pairs(Jinja *j, JinjaValue dict)
{
    JinjaValue all = pairs_of(j, dict);
    JinjaValue *v = all.items->value;
    for (size_t i = 1; i < all.items->n; i++)
        for (size_t k = i; k > 0 && jinja_enter(j); k--) {
            const JinjaValue a = v[k - 1].items->value[0], b = v[k].items->value[0], low = v[k];
            const int c =
                memcmp(a.text ? a.text : "", b.text ? b.text : "", a.len < b.len ? a.len : b.len);
            if (c < 0 || (!c && a.len <= b.len))
                break;
            v[k] = v[k - 1];
            v[k - 1] = low;
        }
    return all;
}

/* Each {} is an argument. */
static JinjaValue formatted(Jinja *j, JinjaValue x, const JinjaArgs *args)
{
    const JinjaValue place = jinja_text("{}", 2);
    JinjaValue out = jinja_text("", 0);
    size_t at = 0;
    for (int i = 0; i < args->n && !args->name[i]; i++) {
        const size_t next = found(x, place, at);
        if (next == x.len)
            break;
        out = jinja_joined(j, out, jinja_text(x.text + at, next - at));
        out = jinja_joined(j, out, jinja_shown(j, args->value[i]));
        at = next + place.len;
    }
    out = jinja_joined(j, out, jinja_text(x.text + at, x.len - at));
    return found(out, jinja_text("{", 1), 0) < out.len
               ? jinja_fail(j, "format is known of {} alone")
               : out;
}

static JinjaValue text_method(Jinja *j, JinjaValue name, JinjaValue x, const JinjaArgs *args)
{
    const JinjaValue a = jinja_arg(args, 0, ""), b = jinja_arg(args, 1, "maxsplit");
    if (jinja_is(name, "strip"))
        return stripped(x, a, LEFT | RIGHT);
    if (jinja_is(name, "lstrip"))
        return stripped(x, a, LEFT);
    if (jinja_is(name, "rstrip"))
        return stripped(x, a, RIGHT);
    if (jinja_is(name, "split"))
        return split(j, x, a, b.kind == JINJA_NUMBER ? b.number : -1);
    if (jinja_is(name, "startswith"))
        return jinja_bool(starts(x, a, false));
    if (jinja_is(name, "endswith"))
        return jinja_bool(starts(x, a, true));
    if (jinja_is(name, "replace"))
        return replaced(j, x, a, b);
    if (jinja_is(name, "format"))
        return formatted(j, x, args);
    if (jinja_is(name, "upper") || jinja_is(name, "lower") || jinja_is(name, "title") ||
        jinja_is(name, "capitalize"))
        return cased(j, x, *name.text);
    return jinja_fail(j, "texts have no method '%.*s' here", (int)name.len, name.text);
}

JinjaValue jinja_method(Jinja *j, JinjaValue name, JinjaValue x, const JinjaArgs *args)
{
    const JinjaValue a = jinja_arg(args, 0, "");
    if (name.kind != JINJA_TEXT)
        return jinja_fail(j, "a method has no name");
    if (x.kind == JINJA_TEXT)
        return text_method(j, name, x, args);
    if (x.kind == JINJA_DICT && jinja_is(name, "get")) {
        const JinjaValue v = jinja_member(x, a), without = jinja_arg(args, 1, "default");
        return v.kind != JINJA_UNDEFINED         ? v
               : without.kind != JINJA_UNDEFINED ? without
                                                 : jinja_none();
    }
    if (x.kind == JINJA_DICT && jinja_is(name, "items"))
        return pairs_of(j, x);
    if (x.kind == JINJA_DICT && jinja_is(name, "keys"))
        return jinja_elements(j, x);
    if (x.kind == JINJA_LIST && jinja_is(name, "append")) {
        jinja_add(j, x.items, (JinjaValue){0}, a);
        return jinja_none();
    }
    return jinja_fail(j, "the method '%.*s' is not known", (int)name.len, name.text);
}

/* ---- filters --------------------------------------------------------------------------------- */

static JinjaValue joined_list(Jinja *j, JinjaValue x, JinjaValue between)
{
    JinjaValue out = jinja_text("", 0);
    if (x.kind != JINJA_LIST)
        return jinja_fail(j, "join of what is no list");
    for (size_t i = 0; i < x.items->n; i++) {
        if (i && between.kind == JINJA_TEXT)
            out = jinja_joined(j, out, between);
        out = jinja_joined(j, out, jinja_shown(j, x.items->value[i]));
    }
    return out;
}

/* selectattr("role", "equalto", "user"), rejectattr(..), map(attribute=..) */
static JinjaValue selected(Jinja *j, JinjaValue x, const JinjaArgs *args, bool wanted)
{
    JinjaValue some = jinja_list(j, false);
    const JinjaValue name = jinja_arg(args, 0, ""), test = jinja_arg(args, 1, "");
    JinjaArgs rest = {.n = args->n > 2 ? args->n - 2 : 0};
    if (x.kind == JINJA_NONE || x.kind == JINJA_UNDEFINED) /* a fault only for who reads it */
        return some;
    if (x.kind != JINJA_LIST)
        return jinja_fail(j, "selectattr of what is no list");
    for (int i = 0; i < rest.n; i++)
        rest.value[i] = args->value[i + 2];
    for (size_t i = 0; i < x.items->n; i++) {
        const JinjaValue v = jinja_member(x.items->value[i], name);
        if ((test.kind == JINJA_TEXT ? jinja_test(j, test, v, &rest) : jinja_truth(v)) == wanted)
            jinja_add(j, some.items, (JinjaValue){0}, x.items->value[i]);
    }
    return some;
}

static JinjaValue mapped(Jinja *j, JinjaValue x, const JinjaArgs *args)
{
    JinjaValue all = jinja_list(j, false);
    const JinjaValue attribute = jinja_arg(args, -1, "attribute"), filter = jinja_arg(args, 0, "");
    const JinjaArgs none = {0};
    if (x.kind != JINJA_LIST)
        return jinja_fail(j, "map of what is no list");
    for (size_t i = 0; i < x.items->n; i++)
        jinja_add(j, all.items, (JinjaValue){0},
                  attribute.kind == JINJA_TEXT ? jinja_member(x.items->value[i], attribute)
                                               : jinja_filter(j, filter, x.items->value[i], &none));
    return all;
}

static JinjaValue list_filter(Jinja *j, JinjaValue name, JinjaValue x, const JinjaArgs *args)
{
    const size_t n = x.kind == JINJA_LIST || x.kind == JINJA_DICT ? x.items->n : x.len;
    if (jinja_is(name, "length") || jinja_is(name, "count"))
        return jinja_number((double)n);
    if (jinja_is(name, "first"))
        return jinja_member(x, jinja_number(0));
    if (jinja_is(name, "last"))
        return jinja_member(x, jinja_number(-1));
    if (jinja_is(name, "join"))
        return joined_list(j, x, jinja_arg(args, 0, "d"));
    if (jinja_is(name, "list"))
        return jinja_elements(j, x);
    if (jinja_is(name, "items") && x.kind == JINJA_DICT)
        return pairs_of(j, x);
    if (jinja_is(name, "dictsort") && x.kind == JINJA_DICT)
        return sorted_pairs(j, x);
    if (jinja_is(name, "selectattr") || jinja_is(name, "rejectattr"))
        return selected(j, x, args, *name.text == 's');
    if (jinja_is(name, "map"))
        return mapped(j, x, args);
    return jinja_fail(j, "the filter '%.*s' is not known", (int)name.len, name.text);
}

/* A text as JSON has it; nothing else comes so far. */
static JinjaValue as_json(Jinja *j, JinjaValue x)
{
    if (x.kind != JINJA_TEXT)
        return x.kind == JINJA_NONE     ? jinja_string("null")
               : x.kind == JINJA_BOOL   ? jinja_string(x.number != 0 ? "true" : "false")
               : x.kind == JINJA_NUMBER ? jinja_shown(j, x)
                                        : jinja_fail(j, "tojson of lists is not known");
    char *text = jinja_alloc(j, 2 * x.len + 2);
    size_t n = 0;
    text[n++] = '"';
    for (size_t i = 0; i < x.len; i++) {
        const char c = x.text[i];
        if (c == '"' || c == '\\' || c == '\n' || c == '\t')
            text[n++] = '\\';
        text[n++] = (char)(c == '\n' ? 'n' : c == '\t' ? 't' : c);
    }
    text[n++] = '"';
    return jinja_text(text, n);
}

JinjaValue jinja_filter(Jinja *j, JinjaValue name, JinjaValue x, const JinjaArgs *args)
{
    if (name.kind != JINJA_TEXT)
        return jinja_fail(j, "a filter has no name");
    if (jinja_is(name, "default") || jinja_is(name, "d")) {
        const bool any = jinja_truth(jinja_arg(args, 1, "boolean"));
        const bool lacks = any ? !jinja_truth(x) : x.kind == JINJA_UNDEFINED;
        return lacks ? jinja_arg(args, 0, "default_value") : x;
    }
    if (jinja_is(name, "safe"))
        return x;
    if (jinja_is(name, "tojson"))
        return as_json(j, x);
    if (jinja_is(name, "string"))
        return jinja_shown(j, x);
    if (jinja_is(name, "int") || jinja_is(name, "float")) {
        JinjaValue v = jinja_number(x.kind == JINJA_TEXT ? 0 : x.number);
        v.number = *name.text == 'i' ? trunc(v.number) : v.number;
        v.real = *name.text == 'f';
        return v;
    }
    if (x.kind == JINJA_UNDEFINED)
        x = jinja_text("", 0);
    if (x.kind == JINJA_TEXT && (jinja_is(name, "upper") || jinja_is(name, "lower") ||
                                 jinja_is(name, "title") || jinja_is(name, "capitalize")))
        return cased(j, x, *name.text);
    if (x.kind == JINJA_TEXT && jinja_is(name, "trim"))
        return stripped(x, jinja_arg(args, 0, "chars"), LEFT | RIGHT);
    if (x.kind == JINJA_TEXT && jinja_is(name, "replace"))
        return replaced(j, x, jinja_arg(args, 0, "old"), jinja_arg(args, 1, "new"));
    return list_filter(j, name, x, args);
}

/* ---- tests and functions --------------------------------------------------------------------- */

bool jinja_test(Jinja *j, JinjaValue name, JinjaValue x, const JinjaArgs *args)
{
    static const struct {
        const char *name;
        unsigned kinds; /* of which it is true */
    } kinds[] = {
        {"undefined", 1u << JINJA_UNDEFINED},
        {"defined", ~(1u << JINJA_UNDEFINED)},
        {"none", 1u << JINJA_NONE},
        {"string", 1u << JINJA_TEXT},
        {"number", 1u << JINJA_NUMBER | 1u << JINJA_BOOL},
        {"boolean", 1u << JINJA_BOOL},
        {"mapping", 1u << JINJA_DICT},
        {"iterable", 1u << JINJA_TEXT | 1u << JINJA_LIST | 1u << JINJA_DICT},
        {"sequence", 1u << JINJA_TEXT | 1u << JINJA_LIST | 1u << JINJA_DICT},
        {"callable", 1u << JINJA_MACRO | 1u << JINJA_FUNCTION},
    };
    const JinjaValue a = jinja_arg(args, 0, "");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (jinja_is(name, kinds[i].name))
            return kinds[i].kinds >> x.kind & 1;
    if (jinja_is(name, "true") || jinja_is(name, "false"))
        return x.kind == JINJA_BOOL && (x.number != 0) == (*name.text == 't');
    if (jinja_is(name, "equalto") || jinja_is(name, "eq") || jinja_is(name, "=="))
        return jinja_equal(x, a);
    if (jinja_is(name, "ne") || jinja_is(name, "!="))
        return !jinja_equal(x, a);
    if (jinja_is(name, "in"))
        return jinja_contains(j, a, x);
    if (jinja_is(name, "odd") || jinja_is(name, "even"))
        return (fmod(x.number, 2) != 0) == (*name.text == 'o');
    if (jinja_is(name, "divisibleby"))
        return a.number != 0 && fmod(x.number, a.number) == 0;
    jinja_fail(j, "the test '%.*s' is not known", (int)name.len, name.text ? name.text : "");
    return false;
}

/* Always the same day, that of Llama 3.1's template: a model is compiled to the same bytes on any.
 */
static JinjaValue day(Jinja *j, JinjaValue format)
{
    static const char *const parts[] = {"d26",  "m07",     "Y2024", "bJul", "BJuly",
                                        "aFri", "AFriday", "H00",   "M00",  "S00"};
    JinjaValue out = jinja_text("", 0);
    for (size_t i = 0; i < format.len; i++) {
        JinjaValue part = jinja_text(format.text + i, 1);
        if (format.text[i] == '%' && i + 1 < format.len) {
            i++;
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
                if (parts[k][0] == format.text[i])
                    part = jinja_string(parts[k] + 1);
        }
        out = jinja_joined(j, out, part);
    }
    return out;
}

JinjaValue jinja_function(Jinja *j, JinjaValue f, const JinjaArgs *args)
{
    const JinjaValue a = jinja_arg(args, 0, ""), b = jinja_arg(args, 1, "");
    if (!strcmp(f.text, "raise_exception"))
        return jinja_fail(j, "%.*s", (int)(a.len < 120 ? a.len : 120),
                          a.text ? a.text : "it fails");
    if (!strcmp(f.text, "strftime_now"))
        return day(j, a);
    if (!strcmp(f.text, "range")) {
        JinjaValue all = jinja_list(j, false);
        const bool two = b.kind == JINJA_NUMBER;
        for (double i = two ? a.number : 0; i < (two ? b.number : a.number) && jinja_enter(j); i++)
            jinja_add(j, all.items, (JinjaValue){0}, jinja_number(i));
        return all;
    }
    JinjaValue all = jinja_list(j, true); /* namespace(a=1), dict(a=1) */
    for (int i = 0; i < args->n; i++)
        if (args->name[i])
            jinja_put(j, all.items, jinja_text(args->name[i], args->len[i]), args->value[i]);
    return all;
}
