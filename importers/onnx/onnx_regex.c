/*
 * onnx_regex.c - regular expressions in RE2's syntax, as programs for the library kernel
 * regex_match (its head comment lists the instructions).
 *
 * Thompson's construction: each piece of the expression appends its instructions to the program,
 * and a piece that is alternated or repeated is moved to make room before it. Whether a repetition
 * is greedy makes no difference to whether the whole string matches, nor do captures.
 *
 *   a|b    FORK a, b; a; JUMP end; b          a*     FORK a, end; a; JUMP to the fork
 *   a?     FORK a, end; a                     a+     a; FORK a, end
 *   a{2,4} aa(a(a)?)?
 */
#include <string.h>

#include "onnx.h"
#include "onnx_regex.h"

enum { MATCH, JUMP, FORK, RANGES, OUTSIDE, AT };
enum { AT_BEGIN, AT_END, AT_LINE_BEGIN, AT_LINE_END, AT_EDGE, AT_NO_EDGE };
enum { MAX_CODE = 10000, MAX_PAIRS = 20000, MAX_DEPTH = 200, MAX_REPEAT = 1000, LAST = 0x10ffff };

typedef struct {
    int32_t op, a, b; /* jumps: absolute */
} Instruction;

typedef struct {
    int32_t first, last;
} CharRange;

typedef struct {
    bool fold, lines, dot_newline; /* (?i) (?m) (?s) */
} Flags;

typedef struct {
    const char *at, *fault;
    Instruction *code;
    CharRange *pair;
    int n, n_pair, depth;
    Flags flags;
} RegexParser;

static bool alternatives(RegexParser *);

static bool wrong(RegexParser *p, const char *why)
{
    if (!p->fault)
        p->fault = why;
    return false;
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool emit(RegexParser *p, int32_t op, int32_t a, int32_t b)
{
    if (p->n >= MAX_CODE)
        return wrong(p, "it is too large");
    p->code[p->n++] = (Instruction){op, a, b};
    return true;
}

/* Makes room for one instruction at `at`; jumps into what moves follow it. */
static bool insert(RegexParser *p, int at, Instruction x)
{
    if (!emit(p, x.op, x.a, x.b))
        return false;
    memmove(p->code + at + 1, p->code + at, (size_t)(p->n - 1 - at) * sizeof *p->code);
    for (int i = at + 1; i < p->n; i++) {
        Instruction *c = &p->code[i];
        c->a += (c->op == JUMP || c->op == FORK) && c->a >= at;
        c->b += c->op == FORK && c->b >= at;
    }
    p->code[at] = x;
    return true;
}

/* Appends a copy of the instructions from..to. */
static bool repeat(RegexParser *p, int from, int to)
{
    int by = p->n - from;
    for (int i = from; i < to; i++) {
        Instruction c = p->code[i];
        bool jump = c.op == JUMP || c.op == FORK;
        if (!emit(p, c.op, c.a + (jump ? by : 0), c.b + (c.op == FORK ? by : 0)))
            return false;
    }
    return true;
}

/* ---- classes of characters ------------------------------------------------------------------ */

static bool add_pair(RegexParser *p, int32_t first, int32_t last)
{
    if (p->n_pair >= MAX_PAIRS)
        return wrong(p, "its classes are too large");
    p->pair[p->n_pair++] = (CharRange){first, last};
    return true;
}

/* A range, and with (?i) the other cases of its characters. */
static bool add_range(RegexParser *p, int32_t first, int32_t last)
{
    if (!add_pair(p, first, last))
        return false;
    if (!p->flags.fold)
        return true;
    for (int32_t c = first; c <= last && c < 0x20000; c++) {
        int32_t other[] = {igrt_text_lower(c), igrt_text_upper(c)};
        for (int i = 0; i < 2; i++)
            if ((other[i] < first || other[i] > last) && !add_pair(p, other[i], other[i]))
                return false;
    }
    return true;
}

/* Pairs in `text`, such as "azAZ"; outside: all but these, which are in order. */
static bool add_class(RegexParser *p, const char *text, bool outside)
{
    int32_t next = 0;
    for (; *text; text += 2) {
        int32_t first = text[0], last = text[1];
        if (!outside && !add_range(p, first, last))
            return false;
        if (outside && first > next && !add_pair(p, next, first - 1))
            return false;
        next = last + 1;
    }
    return !outside || add_pair(p, next, LAST);
}

/* \d and so on, of ASCII as in RE2. */
static const char *perl_class(char c)
{
    switch (c) {
    case 'd':
    case 'D': return "09";
    case 'w':
    case 'W': return "09AZ__az";
    case 's':
    case 'S': return "\t\n\f\r  ";
    default: return NULL;
    }
}

static const struct {
    const char *name, *pairs;
} posix[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\1\177"},
    {"blank", "\t\t  "},
    {"cntrl", "\1\37\177\177"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZ__az"},
    {"xdigit", "09AFaf"},
};

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

static bool number(RegexParser *p, int base, int most, int32_t *out)
{
    int n = 0;
    for (*out = 0; n < most && digit_of(*p->at) < base; n++, p->at++)
        if ((*out = *out * base + digit_of(*p->at)) > LAST)
            return wrong(p, "a number is too large");
    return n > 0 || wrong(p, "a number is missing");
}

/* What follows a backslash, if it is one character. */
static bool escaped(RegexParser *p, int32_t *out)
{
    static const char from[] = "afnrtv", to[] = "\a\f\n\r\t\v";
    char c = *p->at;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        p->at++;
        *out = to[known - from];
        return true;
    }
    if (c == 'x') {
        p->at++;
        if (*p->at != '{')
            return number(p, 16, 2, out);
        p->at++;
        if (!number(p, 16, 8, out))
            return false;
        return *p->at++ == '}' || wrong(p, "a '}' is missing");
    }
    if (c == '0') {
        return number(p, 8, 3, out);
    }
    if ((c >= '1' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || !c)
        return wrong(p, "an escape is not one of RE2's that are supported");
    *out = igrt_text_next(&p->at);
    return true;
}

/* Within [ ]: a class's name, or one character in *out. */
static bool class_item(RegexParser *p, bool *is_class, int32_t *out)
{
    *is_class = true;
    if (p->at[0] == '[' && p->at[1] == ':') {
        bool outside = p->at[2] == '^';
        const char *name = p->at + 2 + outside, *end = strstr(name, ":]");
        for (int i = 0; end && i < COUNT(posix); i++)
            if (strlen(posix[i].name) == (size_t)(end - name) &&
                !memcmp(posix[i].name, name, (size_t)(end - name))) {
                p->at = end + 2;
                return add_class(p, posix[i].pairs, outside);
            }
        return wrong(p, "a [:class:] is unknown");
    }
    if (p->at[0] == '\\' && perl_class(p->at[1])) {
        char c = p->at[1];
        p->at += 2;
        return add_class(p, perl_class(c), c >= 'A' && c <= 'Z');
    }
    *is_class = false;
    if (*p->at == '\\') {
        p->at++;
        return escaped(p, out);
    }
    *out = igrt_text_next(&p->at);
    return true;
}

static bool bracket(RegexParser *p)
{
    int from = p->n_pair;
    bool outside = *p->at == '^';
    p->at += outside;
    for (bool first = true; *p->at != ']' || first; first = false) {
        int32_t lo, hi;
        bool is_class;
        if (!*p->at)
            return wrong(p, "a ']' is missing");
        if (!class_item(p, &is_class, &lo))
            return false;
        if (is_class)
            continue;
        hi = lo;
        if (p->at[0] == '-' && p->at[1] != ']' && p->at[1]) {
            p->at++;
            if (!class_item(p, &is_class, &hi))
                return false;
            if (is_class || hi < lo)
                return wrong(p, "a range of characters runs backwards");
        }
        if (!add_range(p, lo, hi))
            return false;
    }
    p->at++;
    return emit(p, outside ? OUTSIDE : RANGES, from, p->n_pair - from);
}

/* ---- pieces --------------------------------------------------------------------------------- */

static bool literal(RegexParser *p, int32_t c)
{
    int from = p->n_pair;
    return add_range(p, c, c) && emit(p, RANGES, from, p->n_pair - from);
}

static bool dot(RegexParser *p)
{
    int from = p->n_pair;
    if (p->flags.dot_newline)
        return add_pair(p, -1000, LAST) && emit(p, RANGES, from, 1);
    return add_pair(p, '\n', '\n') && emit(p, OUTSIDE, from, 1);
}

/* (?flags) and (?flags:; p->at is behind the question mark. *open: a group follows. */
static bool group_flags(RegexParser *p, bool *open)
{
    bool on = true;
    for (;; p->at++) {
        switch (*p->at) {
        case 'i': p->flags.fold = on; break;
        case 'm': p->flags.lines = on; break;
        case 's': p->flags.dot_newline = on; break;
        case 'U': break; /* greedy or not: the same strings */
        case '-': on = false; break;
        case ':':
        case ')': *open = *p->at++ == ':'; return true;
        default: return wrong(p, "a (?...) is not one of RE2's");
        }
    }
}

/* p->at is behind the parenthesis. */
static bool group(RegexParser *p)
{
    Flags outer = p->flags;
    if (p->at[0] == '?') {
        bool named = p->at[1] == 'P' ? p->at[2] == '<'
                                     : p->at[1] == '<' && p->at[2] != '=' && p->at[2] != '!';
        bool open = true;
        if (named) {
            const char *end = strchr(p->at, '>');
            if (!end)
                return wrong(p, "a '>' is missing");
            p->at = end + 1;
        } else {
            p->at++;
            if (!group_flags(p, &open))
                return false;
        }
        if (!open)
            return true; /* to the end of the group around it */
    }
    if (++p->depth > MAX_DEPTH)
        return wrong(p, "its groups are nested too deeply");
    if (!alternatives(p))
        return false;
    p->depth--;
    p->flags = outer;
    return *p->at++ == ')' || wrong(p, "a ')' is missing");
}

static bool backslash(RegexParser *p)
{
    int from = p->n_pair;
    int32_t c = *p->at;
    if (perl_class(*p->at)) {
        p->at++;
        return add_class(p, perl_class((char)c), c >= 'A' && c <= 'Z') &&
               emit(p, RANGES, from, p->n_pair - from);
    }
    switch (c) {
    case 'A': p->at++; return emit(p, AT, AT_BEGIN, 0);
    case 'z': p->at++; return emit(p, AT, AT_END, 0);
    case 'b': p->at++; return emit(p, AT, AT_EDGE, 0);
    case 'B': p->at++; return emit(p, AT, AT_NO_EDGE, 0);
    case 'Q': /* all up to \E as it is */
        for (p->at++; *p->at && strncmp(p->at, "\\E", 2) != 0;)
            if (!literal(p, igrt_text_next(&p->at)))
                return false;
        p->at += *p->at ? 2 : 0;
        return true;
    default: return escaped(p, &c) && literal(p, c);
    }
}

static bool atom(RegexParser *p)
{
    char c = *p->at;
    switch (c) {
    case '(': p->at++; return group(p);
    case '[': p->at++; return bracket(p);
    case '.': p->at++; return dot(p);
    case '^': p->at++; return emit(p, AT, p->flags.lines ? AT_LINE_BEGIN : AT_BEGIN, 0);
    case '$': p->at++; return emit(p, AT, p->flags.lines ? AT_LINE_END : AT_END, 0);
    case '\\': p->at++; return backslash(p);
    case '*':
    case '+':
    case '?': return wrong(p, "a repetition has nothing to repeat");
    default: return literal(p, igrt_text_next(&p->at));
    }
}

/* ---- repetitions ---------------------------------------------------------------------------- */

static bool star(RegexParser *p, int from)
{
    return insert(p, from, (Instruction){FORK, from + 1, p->n + 2}) && emit(p, JUMP, from, 0);
}

static bool plus(RegexParser *p, int from)
{
    return emit(p, FORK, from, p->n + 1);
}

static bool maybe(RegexParser *p, int from)
{
    return insert(p, from, (Instruction){FORK, from + 1, p->n + 1});
}

/* {least,most} of the piece that begins at `from`; most -1: any number */
static bool counted(RegexParser *p, int from, int32_t least, int32_t most)
{
    int to = p->n, begin = from;
    for (int32_t i = 1; i < least; i++) {
        begin = p->n;
        if (!repeat(p, from, to))
            return false;
    }
    if (most < 0)
        return least == 0 ? star(p, from) : plus(p, begin);
    /* the optional ones: each forks to the end of all of them */
    int first = least == 0 ? from : p->n, size = to - from, more = most - least, at = first;
    if (more == 0) {
        p->n = least == 0 ? from : p->n;
        return true;
    }
    if (least > 0 && !repeat(p, from, to))
        return false;
    if (!maybe(p, first))
        return false;
    int one = size + 1;
    for (int32_t i = 1; i < more; i++)
        if (!repeat(p, first, first + one))
            return false;
    for (int32_t i = 0; i < more; i++, at += one)
        p->code[at].b = p->n;
    return true;
}

/* {n}, {n,} or {n,m}; anything else is text. */
static bool is_counted(const char *s)
{
    size_t n = strspn(++s, "0123456789");
    s += n;
    if (n && *s == ',')
        s += 1 + strspn(s + 1, "0123456789");
    return n && *s == '}';
}

static bool repetition(RegexParser *p, int from)
{
    for (bool again = false;; again = true) {
        int32_t least = 0, most = -1;
        char c = *p->at;
        if (c != '*' && c != '+' && c != '?' && !(c == '{' && is_counted(p->at)))
            return true;
        if (again)
            return wrong(p, "a repetition follows a repetition");
        p->at++;
        if (c == '{') {
            if (!number(p, 10, 9, &least))
                return false;
            most = least;
            if (*p->at == ',') {
                p->at++;
                most = -1;
                if (*p->at != '}' && !number(p, 10, 9, &most))
                    return false;
            }
            p->at++;
            if (least > MAX_REPEAT || most > MAX_REPEAT || (most >= 0 && most < least))
                return wrong(p, "a repetition has no possible count, or one above 1000");
        }
        p->at += *p->at == '?'; /* lazy */
        bool ok = c == '*'   ? star(p, from)
                  : c == '+' ? plus(p, from)
                  : c == '?' ? maybe(p, from)
                             : counted(p, from, least, most);
        if (!ok)
            return false;
    }
}

static bool sequence(RegexParser *p)
{
    while (*p->at && *p->at != '|' && *p->at != ')') {
        int from = p->n;
        if (!atom(p))
            return false;
        if (!repetition(p, from))
            return false;
    }
    return true;
}

static bool alternatives(RegexParser *p)
{
    int from = p->n;
    if (!sequence(p))
        return false;
    while (*p->at == '|') {
        p->at++;
        /* FORK before all so far, and a JUMP behind it to what will be the end */
        if (!insert(p, from, (Instruction){FORK, from + 1, p->n + 2}) || !emit(p, JUMP, 0, 0))
            return false;
        int jump = p->n - 1;
        if (!sequence(p))
            return false;
        p->code[jump].a = p->n;
    }
    return true;
}

int regex_compile(ingot_context *c, const char *pattern, const int32_t **program,
                  const char **fault)
{
    RegexParser p = {.at = pattern};
    p.code = ingot_alloc(c, MAX_CODE * sizeof *p.code);
    p.pair = ingot_alloc(c, MAX_PAIRS * sizeof *p.pair);
    if (alternatives(&p) && *p.at)
        wrong(&p, "a ')' has no '('");
    if (!p.fault)
        emit(&p, MATCH, 0, 0);
    *fault = p.fault;
    if (p.fault)
        return 0;
    int size = 1 + 3 * p.n + 2 * p.n_pair;
    int32_t *out = ingot_alloc(c, (size_t)size * sizeof *out), *at = out;
    *at++ = p.n;
    for (int i = 0; i < p.n; i++) {
        Instruction x = p.code[i];
        if (x.op == RANGES || x.op == OUTSIDE)
            x.a = 3 * p.n + 2 * x.a;
        *at++ = x.op;
        *at++ = x.a;
        *at++ = x.b;
    }
    for (int i = 0; i < p.n_pair; i++) {
        *at++ = p.pair[i].first;
        *at++ = p.pair[i].last;
    }
    *program = out;
    return size;
}
