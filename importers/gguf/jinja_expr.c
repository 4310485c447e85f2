/*
 * jinja_expr.c - expressions, computed while they are read.
 *
 *     a if b else c      or      and      not      == < in      + -      ~      * /      -x
 *     x.name  x[i]  x[a:b]  f(..)  x | filter(..)  x is test
 *
 * What is not to be computed (the right side of "false and ..") is read with j->dead.
 */
#include "jinja.h"

#include <stdlib.h>

static JinjaValue or_(Jinja *j);
static JinjaValue unary(Jinja *j);

/* ---- signs and words ------------------------------------------------------------------------- */

static void skip_white(Jinja *j)
{
    while (j->p < j->end && (*j->p == ' ' || (*j->p >= '\t' && *j->p <= '\r')))
        j->p++;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A sign that is not the first half of "==", "//" or "**". */
bool jinja_sign(Jinja *j, const char *sign)
{
    const size_t n = strlen(sign);
    skip_white(j);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, sign, n) != 0)
        return false;
    if (n == 1 && j->end - j->p > 1 &&
        ((*sign == '=' && j->p[1] == '=') || (*sign == '/' && j->p[1] == '/')))
        return false;
    j->p += n;
    return true;
}

static size_t name_length(Jinja *j)
{
    skip_white(j);
    size_t n = 0;
    while (j->p + n < j->end && (is_letter(j->p[n]) || (n && is_digit(j->p[n]))))
        n++;
    return n;
}

bool jinja_word(Jinja *j, const char *word)
{
    const size_t n = name_length(j);
    if (n != strlen(word) || memcmp(j->p, word, n) != 0)
        return false;
    j->p += n;
    return true;
}

JinjaValue jinja_name(Jinja *j)
{
    const size_t n = name_length(j);
    if (!n)
        return (JinjaValue){0};
    j->p += n;
    return jinja_text(j->p - n, n);
}

/* ---- what stands alone ----------------------------------------------------------------------- */

static char escaped(char c)
{
    return (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
}

static JinjaValue string(Jinja *j)
{
    const char quote = *j->p++, *from = j->p;
    size_t n = 0;
    while (j->p < j->end && *j->p != quote)
        j->p += *j->p == '\\' && j->p + 1 < j->end ? 2 : 1;
    if (j->p >= j->end)
        return jinja_fail(j, "a string has no end");
    char *text = jinja_alloc(j, (size_t)(j->p - from));
    for (const char *p = from; p < j->p; p++) {
        const bool known = *p == '\\' && strchr("ntr\\'\"", p[1]);
        if (known)
            p++;
        text[n++] = known ? escaped(*p) : *p;
    }
    j->p++;
    skip_white(j);
    JinjaValue s = jinja_text(text, n);
    if (j->p < j->end && (*j->p == '"' || *j->p == '\''))
        s = jinja_joined(j, s, string(j));
    return s;
}

static JinjaValue number(Jinja *j)
{
    char text[40];
    size_t n = 0;
    bool real = false;
    while (j->p < j->end && n + 1 < sizeof text &&
           (is_digit(*j->p) || (*j->p == '.' && j->p + 1 < j->end && is_digit(j->p[1])))) {
        real = real || *j->p == '.';
        text[n++] = *j->p++;
    }
    text[n] = 0;
    JinjaValue v = jinja_number(strtod(text, NULL));
    v.real = real;
    return v;
}

/* [a, b] or (a, b), behind the sign; a lone (a) is a itself. */
static JinjaValue list(Jinja *j, const char *close)
{
    JinjaValue all = jinja_list(j, false);
    bool commas = *close == ']';
    while (!jinja_sign(j, close)) {
        jinja_add(j, all.items, (JinjaValue){0}, jinja_expression(j));
        if (jinja_sign(j, close))
            return commas || !all.items->n ? all : all.items->value[0];
        commas = true;
        if (!jinja_sign(j, ","))
            return jinja_fail(j, "a list does not end");
    }
    return all;
}

static JinjaValue dict(Jinja *j)
{
    JinjaValue all = jinja_list(j, true);
    while (!jinja_sign(j, "}")) {
        const JinjaValue key = jinja_expression(j);
        if (!jinja_sign(j, ":"))
            return jinja_fail(j, "a dict does not end");
        jinja_put(j, all.items, key, jinja_expression(j));
        if (!jinja_sign(j, ",") && !(j->p < j->end && *j->p == '}'))
            return jinja_fail(j, "a dict does not end");
    }
    return all;
}

static JinjaValue variable(Jinja *j)
{
    const JinjaValue name = jinja_name(j);
    if (name.kind != JINJA_TEXT)
        return jinja_fail(j, "an expression is missing");
    if (jinja_is(name, "true") || jinja_is(name, "True"))
        return jinja_bool(true);
    if (jinja_is(name, "false") || jinja_is(name, "False"))
        return jinja_bool(false);
    if (jinja_is(name, "none") || jinja_is(name, "None"))
        return jinja_none();
    const JinjaVar *v = jinja_find(j, name.text, name.len);
    return v && !jinja_idle(j) ? v->value : (JinjaValue){.text = name.text, .len = name.len};
}

static JinjaValue primary(Jinja *j)
{
    skip_white(j);
    const char c = j->p < j->end ? *j->p : 0;
    if (c == '"' || c == '\'')
        return string(j);
    if (is_digit(c))
        return number(j);
    if (jinja_sign(j, "["))
        return list(j, "]");
    if (jinja_sign(j, "("))
        return list(j, ")");
    return jinja_sign(j, "{") ? dict(j) : variable(j);
}

/* ---- what stands behind it ------------------------------------------------------------------- */

/* Behind "(". */
static void arguments(Jinja *j, JinjaArgs *args)
{
    while (!jinja_sign(j, ")")) {
        const char *from = j->p;
        JinjaValue name = jinja_name(j);
        if (args->n == JINJA_ARGS) {
            jinja_fail(j, "more than %d arguments", JINJA_ARGS);
            j->p = j->end;
            return;
        }
        if (name.kind != JINJA_TEXT || !jinja_sign(j, "=")) {
            j->p = from;
            name = (JinjaValue){0};
        }
        args->name[args->n] = name.text;
        args->len[args->n] = name.len;
        args->value[args->n++] = jinja_expression(j);
        if (!jinja_sign(j, ",") && !(j->p < j->end && *j->p == ')')) {
            jinja_fail(j, "arguments do not end");
            j->p = j->end;
            return;
        }
    }
}

static JinjaValue called(Jinja *j, JinjaValue f)
{
    JinjaArgs args = {0};
    arguments(j, &args);
    if (jinja_idle(j))
        return (JinjaValue){0};
    if (f.kind == JINJA_MACRO)
        return jinja_macro(j, f, &args);
    if (f.kind == JINJA_FUNCTION)
        return jinja_function(j, f, &args);
    return jinja_fail(j, "'%.*s' is no function", (int)(f.len < 40 ? f.len : 40),
                      f.text ? f.text : "");
}

/* Behind "[": a place, or from:to:step. */
static JinjaValue subscript(Jinja *j, JinjaValue x)
{
    JinjaValue part[3] = {{0}};
    int n = 0;
    bool slice = false;
    while (!jinja_sign(j, "]")) {
        if (jinja_sign(j, ":")) {
            slice = true;
            n++;
        } else if (j->p >= j->end) {
            return jinja_fail(j, "'[' does not end");
        } else {
            const JinjaValue v = jinja_expression(j);
            part[n < 3 ? n : 2] = v;
        }
        if (n > 2)
            return jinja_fail(j, "a slice has too many parts");
    }
    if (jinja_idle(j))
        return (JinjaValue){0};
    if (slice)
        return jinja_slice(j, x, part);
    if (x.kind == JINJA_UNDEFINED)
        return jinja_fail(j, "'%.*s' is not defined", (int)(x.len < 40 ? x.len : 40),
                          x.text ? x.text : "");
    return jinja_member(x, part[0]);
}

static JinjaValue attribute(Jinja *j, JinjaValue x)
{
    const JinjaValue name = jinja_name(j);
    const JinjaValue v = jinja_idle(j) ? (JinjaValue){0} : jinja_member(x, name);
    if (v.kind == JINJA_UNDEFINED && jinja_sign(j, "(")) {
        JinjaArgs args = {0};
        arguments(j, &args);
        return jinja_idle(j) ? (JinjaValue){0} : jinja_method(j, name, x, &args);
    }
    if (x.kind == JINJA_UNDEFINED)
        return jinja_fail(j, "'%.*s' is not defined", (int)(x.len < 40 ? x.len : 40),
                          x.text ? x.text : "");
    return v.kind == JINJA_UNDEFINED ? (JinjaValue){.text = name.text, .len = name.len} : v;
}

static JinjaValue tested(Jinja *j, JinjaValue x)
{
    const bool no = jinja_word(j, "not");
    JinjaArgs args = {0};
    const JinjaValue name = jinja_name(j);
    if (jinja_sign(j, "(")) {
        arguments(j, &args);
    } else if (jinja_is(name, "in") || jinja_is(name, "equalto") || jinja_is(name, "eq") ||
               jinja_is(name, "divisibleby")) {
        args.value[args.n++] = unary(j);
    }
    if (jinja_idle(j))
        return (JinjaValue){0};
    return jinja_bool(jinja_test(j, name, x, &args) != no);
}

static JinjaValue behind(Jinja *j, JinjaValue x)
{
    while (jinja_enter(j)) {
        if (jinja_sign(j, ".")) {
            x = attribute(j, x);
        } else if (jinja_sign(j, "[")) {
            x = subscript(j, x);
        } else if (jinja_sign(j, "(")) {
            x = called(j, x);
        } else if (jinja_sign(j, "|")) {
            JinjaArgs args = {0};
            const JinjaValue name = jinja_name(j);
            if (jinja_sign(j, "("))
                arguments(j, &args);
            x = jinja_idle(j) ? (JinjaValue){0} : jinja_filter(j, name, x, &args);
        } else if (jinja_word(j, "is")) {
            x = tested(j, x);
        } else {
            break;
        }
    }
    return x;
}

/* ---- between two ----------------------------------------------------------------------------- */

static JinjaValue arithmetic(Jinja *j, char sign, JinjaValue a, JinjaValue b)
{
    if (jinja_idle(j))
        return (JinjaValue){0};
    if (sign == '+' && a.kind == JINJA_TEXT && b.kind == JINJA_TEXT)
        return jinja_joined(j, a, b);
    if (sign == '+' && a.kind == JINJA_LIST && b.kind == JINJA_LIST) {
        JinjaValue all = jinja_list(j, false);
        for (size_t i = 0; i < a.items->n; i++)
            jinja_add(j, all.items, (JinjaValue){0}, a.items->value[i]);
        for (size_t i = 0; i < b.items->n; i++)
            jinja_add(j, all.items, (JinjaValue){0}, b.items->value[i]);
        return all;
    }
    if ((a.kind != JINJA_NUMBER && a.kind != JINJA_BOOL) ||
        (b.kind != JINJA_NUMBER && b.kind != JINJA_BOOL))
        return jinja_fail(j, "'%c' of values that are no numbers", sign);
    if (b.number == 0 && (sign == '/' || sign == '%' || sign == ':'))
        return jinja_fail(j, "a number is divided by 0");
    JinjaValue r = jinja_number(0);
    const double whole = a.number / (b.number != 0 ? b.number : 1);
    const double down = (double)(int64_t)whole - (whole < (double)(int64_t)whole);
    r.number = sign == '+'   ? a.number + b.number
               : sign == '-' ? a.number - b.number
               : sign == '*' ? a.number * b.number
               : sign == '/' ? whole
               : sign == ':' ? down
                             : a.number - down * b.number;
    r.real = sign == '/' || a.real || b.real;
    return r;
}

static JinjaValue unary(Jinja *j)
{
    if (!jinja_enter(j))
        return (JinjaValue){0};
    j->depth++;
    const bool minus = jinja_sign(j, "-");
    JinjaValue x = minus ? unary(j) : behind(j, primary(j));
    if (minus)
        x = arithmetic(j, '-', jinja_number(0), x);
    j->depth--;
    return x;
}

static JinjaValue product(Jinja *j)
{
    JinjaValue x = unary(j);
    for (;;) {
        const char sign = (char)(jinja_sign(j, "*")    ? '*'
                                 : jinja_sign(j, "//") ? ':'
                                 : jinja_sign(j, "/")  ? '/'
                                 : jinja_sign(j, "%")  ? '%'
                                                       : 0);
        if (!sign)
            return x;
        x = arithmetic(j, sign, x, unary(j));
    }
}

static JinjaValue concatenated(Jinja *j)
{
    JinjaValue x = product(j);
    while (jinja_sign(j, "~")) {
        const JinjaValue y = product(j);
        if (!jinja_idle(j))
            x = jinja_joined(j, jinja_shown(j, x), jinja_shown(j, y));
    }
    return x;
}

static JinjaValue sum(Jinja *j)
{
    JinjaValue x = concatenated(j);
    for (;;) {
        const char sign = (char)(jinja_sign(j, "+") ? '+' : jinja_sign(j, "-") ? '-' : 0);
        if (!sign)
            return x;
        x = arithmetic(j, sign, x, concatenated(j));
    }
}

typedef enum { NO_ORDER, EQUAL, UNEQUAL, AT_MOST, AT_LEAST, LESS, MORE, IN, NOT_IN } JinjaOrder;

static JinjaOrder next_order(Jinja *j)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (int i = 0; i < 6; i++)
        if (jinja_sign(j, signs[i]))
            return (JinjaOrder)(EQUAL + i);
    if (jinja_word(j, "in"))
        return IN;
    const char *p = j->p;
    if (jinja_word(j, "not") && jinja_word(j, "in"))
        return NOT_IN;
    j->p = p;
    return NO_ORDER;
}

static bool compared(Jinja *j, JinjaOrder o, JinjaValue a, JinjaValue b)
{
    if (o == EQUAL || o == UNEQUAL)
        return jinja_equal(a, b) == (o == EQUAL);
    if (o == IN || o == NOT_IN)
        return jinja_contains(j, b, a) == (o == IN);
    double d = a.number - b.number;
    if (a.kind == JINJA_TEXT && b.kind == JINJA_TEXT) {
        const int c = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);
        d = c ? c : (double)a.len - (double)b.len;
    } else if (a.kind != JINJA_NUMBER || b.kind != JINJA_NUMBER) {
        jinja_fail(j, "values that have no order are compared");
    }
    return o == LESS ? d < 0 : o == MORE ? d > 0 : o == AT_MOST ? d <= 0 : d >= 0;
}

static JinjaValue comparison(Jinja *j)
{
    JinjaValue x = sum(j);
    bool all = true;
    for (JinjaOrder o = next_order(j), first = o;; o = next_order(j)) {
        if (o == NO_ORDER)
            return first == NO_ORDER || jinja_idle(j) ? x : jinja_bool(all);
        const JinjaValue y = sum(j);
        if (!jinja_idle(j))
            all = compared(j, o, x, y) && all;
        x = y;
    }
}

static JinjaValue not_(Jinja *j)
{
    if (!jinja_word(j, "not"))
        return comparison(j);
    if (!jinja_enter(j))
        return (JinjaValue){0};
    j->depth++;
    const JinjaValue x = not_(j);
    j->depth--;
    return jinja_bool(!jinja_truth(x));
}

static JinjaValue and_(Jinja *j)
{
    JinjaValue x = not_(j);
    while (jinja_word(j, "and")) {
        const int off = !jinja_truth(x);
        j->dead += off;
        const JinjaValue y = not_(j);
        j->dead -= off;
        x = off ? x : y;
    }
    return x;
}

static JinjaValue or_(Jinja *j)
{
    JinjaValue x = and_(j);
    while (jinja_word(j, "or")) {
        const int off = jinja_truth(x);
        j->dead += off;
        const JinjaValue y = and_(j);
        j->dead -= off;
        x = off ? x : y;
    }
    return x;
}

JinjaValue jinja_condition(Jinja *j)
{
    return or_(j);
}

/* Whether x is wanted is known behind it: a failure of it counts only then. */
JinjaValue jinja_expression(Jinja *j)
{
    const bool failed = j->failed;
    if (!jinja_enter(j))
        return (JinjaValue){0};
    j->depth++;
    JinjaValue x = or_(j);
    const bool x_failed = j->failed;
    if (jinja_word(j, "if")) {
        j->failed = failed;
        const bool on = jinja_truth(or_(j));
        JinjaValue y = {0};
        if (jinja_word(j, "else")) {
            j->dead += on;
            y = jinja_expression(j);
            j->dead -= on;
        }
        if (on)
            j->failed = j->failed || x_failed;
        else
            x = y;
    }
    j->depth--;
    return x;
}
