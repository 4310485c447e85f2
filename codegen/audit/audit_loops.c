/* audit_loops.c - does every loop end? A loop is bounded if one of the conditions joined by && is a
 * comparison of a counter with a bound, the counter steps towards it in the loop's header and
 * changes nowhere else, and nothing that the bound is made of changes in the loop:
 *
 *     for (int i = 0; i < n; i++)     i counts up; n may be an expression
 *     for (; i + 32 <= bytes; i += 32)
 *     for (int64_t i = n; i-- > 0;)   i counts down
 *     for (; u; u >>= 1)              as often as u has bits, if it is unsigned
 *
 * Everything else is a finding. Conditions are text as clang prints it; which variables change is
 * known from the syntax tree, by name: one of the same name in an inner block counts too, which
 * errs on the safe side. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"

typedef struct {
    Audit *a;
    Function *f;
    int loop;
    const char *init, *cond, *step; /* texts without space around */
} Header;

/* ---- text ----------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *p)
{
    size_t n = 0;
    while (is_word(p[n]))
        n++;
    return n;
}

static const char *trimmed(Audit *a, const char *p, size_t n)
{
    while (n && isspace((unsigned char)*p))
        p++, n--;
    while (n && isspace((unsigned char)p[n - 1]))
        n--;
    return arena_printf(a->a, "%.*s", (int)n, p);
}

/* Behind a string or character that begins at p. */
static const char *behind_literal(const char *p)
{
    char quote = *p++;
    while (*p && *p != quote)
        p += *p == '\\' && p[1] ? 2 : 1;
    return *p ? p + 1 : p;
}

/* p is at an opening bracket; where its closing one is. */
static const char *closing(const char *p)
{
    int depth = 0;
    while (*p) {
        if (*p == '"' || *p == '\'') {
            p = behind_literal(p);
            continue;
        }
        if (strchr("([{", *p))
            depth++;
        if (strchr(")]}", *p) && --depth == 0)
            return p;
        p++;
    }
    return p;
}

/* The end of the part that is ended by the text `stop` outside of brackets, or of all. */
static const char *until(const char *p, const char *stop)
{
    while (*p && strncmp(p, stop, strlen(stop)))
        p = strchr("([{", *p) ? closing(p) + (*closing(p) != 0) : p + 1;
    return p;
}

/* Without brackets around all of it. */
static const char *bare(Audit *a, const char *p)
{
    while (*p == '(' && closing(p)[0] && !closing(p)[1])
        p = trimmed(a, p + 1, strlen(p) - 2);
    return p;
}

/* ---- variables ------------------------------------------------------------------------------ */

static const Variable *variable(const Function *f, const char *p, size_t n)
{
    for (int i = f->nvariable - 1; i >= 0; i--)
        if (strlen(f->variable[i].name) == n && !memcmp(f->variable[i].name, p, n))
            return &f->variable[i];
    return NULL;
}

/* How often the loop, all of it, may change a variable. */
static int writes(const Header *h, const char *p, size_t n)
{
    int count = 0;
    for (int i = 0; i < h->f->nwrite; i++) {
        const Write *w = &h->f->write[i];
        if (strlen(w->name) != n || memcmp(w->name, p, n))
            continue;
        for (int l = w->loop; l >= 0; l = h->f->loop[l].parent)
            count += l == h->loop;
    }
    return count;
}

/* How often the text assigns to it, or steps it. */
static int writes_in(const char *text, const char *name, size_t n)
{
    int count = 0;
    for (const char *p = text; *p;) {
        size_t k = word_length(p);
        if (k == 0) {
            p++;
            continue;
        }
        if (k == n && !memcmp(p, name, n)) {
            const char *q = p + k;
            while (*q == ' ')
                q++;
            bool before = p >= text + 2 && (!memcmp(p - 2, "++", 2) || !memcmp(p - 2, "--", 2));
            bool assigned = (*q == '=' && q[1] != '=') ||
                            (*q && strchr("+-*/%&|^", *q) && q[1] == '=') ||
                            !strncmp(q, ">>=", 3) || !strncmp(q, "<<=", 3);
            count += before || assigned || !strncmp(q, "++", 2) || !strncmp(q, "--", 2);
        }
        p += k;
    }
    return count;
}

/* `int i = 0`: two words in a row */
static bool declares(const char *init)
{
    size_t n = word_length(init);
    const char *p = init + n;
    while (*p == ' ' || *p == '*')
        p++;
    return n && p > init + n && is_word(*p);
}

static int writes_of_init(const Header *h, const char *name, size_t n)
{
    return declares(h->init) ? 0 : writes_in(h->init, name, n);
}

/* Functions of igrt_num.h that bounds are computed with: of their arguments and nothing else. */
static bool is_pure(const char *p, size_t n)
{
    static const char *const names[] = {"igrt_min_i32",      "igrt_max_i32", "igrt_floordiv_i32",
                                        "igrt_mod_i32",      "igrt_min_i64", "igrt_max_i64",
                                        "igrt_floordiv_i64", "igrt_mod_i64"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], p, n))
            return true;
    return false;
}

enum { CHANGES, CONSTANT, RUN_TIME };

/* What the value of a text is while the loop runs. skip: the counter, which does not matter. */
static int kind_of(const Header *h, const char *text, const Variable *skip)
{
    int kind = CONSTANT;
    char before = 0;
    for (const char *p = text; *p;) {
        if (*p == '"' || *p == '\'') {
            p = behind_literal(p);
            continue;
        }
        size_t n = word_length(p);
        if (!n) {
            if (!strncmp(p, "++", 2) || !strncmp(p, "--", 2))
                return CHANGES;
            if (!strncmp(p, "->", 2))
                p++;
            before = *p == ' ' ? before : *p;
            p++;
            continue;
        }
        const Variable *v = variable(h->f, p, n);
        bool member = before == '.' || (before == '>' && p >= text + 2 && !memcmp(p - 2, "->", 2));
        const char *next = p + n;
        while (*next == ' ')
            next++;
        bool call =
            *next == '(' && !isdigit((unsigned char)*p) && (n != 6 || memcmp(p, "sizeof", 6));
        if (call && !is_pure(p, n))
            return CHANGES;
        if (v && !member && v != skip) {
            const char *star = p;
            while (star > text && (star[-1] == ' ' || star[-1] == '('))
                star--;
            bool unary =
                star > text && star[-1] == '*' &&
                (star == text + 1 || (!is_word(star[-2]) && star[-2] != ' ' && star[-2] != ')'));
            bool memory = unary || !strncmp(next, "->", 2) || *next == '[';
            if (memory && strncmp(v->type, "const ", 6))
                return CHANGES;
            if (writes(h, p, n) > writes_of_init(h, p, n))
                return CHANGES;
            kind = RUN_TIME;
        }
        before = 'a';
        p += n;
    }
    return kind;
}

/* ---- steps ---------------------------------------------------------------------------------- */

typedef enum { NO_STEP, UP, DOWN, HALVE } Direction;

static bool positive_number(const char *p)
{
    char *end;
    return isdigit((unsigned char)*p) && strtoull(p, &end, 0) > 0 &&
           strspn(end, "uUlL)") == strlen(end);
}

static Direction step_of(const Audit *a, const char *part, const char *v, size_t n)
{
    (void)a;
    if ((!strncmp(part, "++", 2) || !strncmp(part, "--", 2)) && strlen(part) == n + 2 &&
        !memcmp(part + 2, v, n))
        return part[0] == '+' ? UP : DOWN;
    if (strncmp(part, v, n) || is_word(part[n]))
        return NO_STEP;
    const char *p = part + n;
    if (!strcmp(p, "++") || !strcmp(p, "--"))
        return *p == '+' ? UP : DOWN;
    if ((!strncmp(p, " += ", 4) || !strncmp(p, " -= ", 4)) && positive_number(p + 4))
        return p[1] == '+' ? UP : DOWN;
    if ((!strncmp(p, " >>= ", 5) && positive_number(p + 5)))
        return HALVE;
    if (strncmp(p, " = ", 3))
        return NO_STEP;
    p += 3; /* v = (T)(v >> k) */
    while (*p == '(') {
        const char *end = closing(p);
        if (strncmp(p + 1, v, n) || is_word(p[1 + n])) {
            p = end + 1; /* a cast */
            continue;
        }
        p++;
    }
    return !strncmp(p, v, n) && !strncmp(p + n, " >> ", 4) && positive_number(p + n + 4 + 0)
               ? HALVE
               : NO_STEP;
}

static Direction step_in_header(const Header *h, const char *v, size_t n)
{
    for (const char *p = h->step; *p;) {
        const char *end = until(p, ",");
        Direction s = step_of(h->a, trimmed(h->a, p, (size_t)(end - p)), v, n);
        if (s != NO_STEP)
            return s;
        p = *end ? end + 1 : end;
    }
    return NO_STEP;
}

/* ---- conditions ----------------------------------------------------------------------------- */

typedef struct {
    const char *left, *right;
    enum { NONE, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, UNEQUAL } op;
} Comparison;

static Comparison comparison(Audit *a, const char *text)
{
    static const struct {
        const char *text;
        int op;
    } ops[] = {{" <= ", LESS_EQUAL},
               {" >= ", GREATER_EQUAL},
               {" < ", LESS},
               {" > ", GREATER},
               {" != ", UNEQUAL}};
    Comparison c = {text, "", NONE};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const char *p = until(text, ops[i].text);
        if (!*p)
            continue;
        c.left = bare(a, trimmed(a, text, (size_t)(p - text)));
        c.right = bare(a, trimmed(a, p + strlen(ops[i].text), strlen(p + strlen(ops[i].text))));
        c.op = ops[i].op;
        return c;
    }
    return c;
}

static Comparison mirrored(Comparison c)
{
    static const int other[] = {NONE, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, UNEQUAL};
    Comparison m = {c.right, c.left, NONE};
    m.op = other[c.op];
    return m;
}

/* Is it changed nowhere but once, by its step? */
static bool steps_once(const Header *h, const char *v, size_t n)
{
    int in_header = writes_of_init(h, v, n) + writes_in(h->cond, v, n) + writes_in(h->step, v, n);
    return writes_in(h->cond, v, n) + writes_in(h->step, v, n) == 1 && writes(h, v, n) == in_header;
}

/* The left side begins with a counter that steps towards the right side. *run_time: the bound is no
 * constant. */
static bool bounds(const Header *h, Comparison c, bool *run_time)
{
    size_t n = word_length(c.left);
    const Variable *v = n ? variable(h->f, c.left, n) : NULL;
    if (!v || !steps_once(h, c.left, n))
        return false;
    const char *rest = c.left + n;
    Direction step = step_in_header(h, c.left, n);
    if (step == NO_STEP && !strncmp(rest, "--", 2)) { /* i-- > 0 */
        step = DOWN;
        rest += 2;
    }
    if (*rest && strncmp(rest, " + ", 3) && strncmp(rest, " * ", 3) && strncmp(rest, " - ", 3))
        return false;
    if (variable(h->f, c.right, n) == v && !strncmp(c.right, c.left, n) && !is_word(c.right[n]))
        return false;
    int kind = kind_of(h, c.right, NULL), of_rest = kind_of(h, rest, NULL);
    if (kind == CHANGES || of_rest == CHANGES)
        return false;
    bool zero = c.op == NONE || ((c.op == UNEQUAL || c.op == GREATER) && !strcmp(c.right, "0"));
    *run_time = kind == RUN_TIME || of_rest == RUN_TIME;
    switch (step) {
    case UP: return c.op == LESS || (c.op == LESS_EQUAL && (!v->is_unsigned || kind == CONSTANT));
    case DOWN:
        *run_time =
            *run_time || !declares(h->init) || kind_of(h, until(h->init, "="), v) != CONSTANT;
        if (v->is_unsigned)
            return zero || c.op == GREATER;
        return c.op == GREATER || c.op == GREATER_EQUAL;
    case HALVE: return v->is_unsigned && zero;
    case NO_STEP: break;
    }
    return false;
}

static bool is_bounded(const Header *h, bool *run_time)
{
    for (const char *p = h->cond; *p;) {
        const char *end = until(p, "&&");
        const char *text = bare(h->a, trimmed(h->a, p, (size_t)(end - p)));
        if (!*until(text, "||")) {
            Comparison c = comparison(h->a, text);
            if (bounds(h, c, run_time) || (c.op != NONE && bounds(h, mirrored(c), run_time)))
                return true;
        }
        p = *end ? end + 2 : end;
    }
    return false;
}

static void judge(Header *h)
{
    const CLoop *l = &h->f->loop[h->loop];
    bool run_time = false;
    if (l->kind == LOOP_DO ? !strcmp(h->cond, "0") : is_bounded(h, &run_time)) {
        if (!run_time)
            h->f->nconstant++;
        else
            vec_push(h->a->a, h->f->run_time, h->f->nrun_time, h->cond);
        return;
    }
    static const char *const word[] = {"for", "while", "do"};
    finding_add(h->a, RULE_loop, h->f->file, l->line, l->column,
                "no bound is seen of this %s loop, whose condition is '%s'", word[l->kind],
                h->cond);
}

/* ---- the loops of a text -------------------------------------------------------------------- */

static void split_header(Header *h, const char *open, const char *end)
{
    Audit *a = h->a;
    const char *inside = trimmed(a, open + 1, (size_t)(end - open - 1));
    h->init = h->step = "";
    h->cond = inside;
    if (h->f->loop[h->loop].kind != LOOP_FOR)
        return;
    const char *one = until(inside, ";"), *two = *one ? until(one + 1, ";") : one;
    h->init = trimmed(a, inside, (size_t)(one - inside));
    h->cond = *one ? trimmed(a, one + 1, (size_t)(two - one - 1)) : "";
    h->step = *two ? trimmed(a, two + 1, strlen(two + 1)) : "";
}

void loops_judge(Audit *a, Function *f, const char *text)
{
    int next = 0, ndo = 0, depth = 0;
    struct DoLoop {
        int loop, depth;
    } *dos = NEWN(a->a, struct DoLoop, f->nloop);
    for (const char *p = text; *p;) {
        if (*p == '"' || *p == '\'') {
            p = behind_literal(p);
            continue;
        }
        depth += (*p == '{') - (*p == '}');
        size_t n = word_length(p);
        if (!n) {
            p++;
            continue;
        }
        bool is_for = n == 3 && !memcmp(p, "for", 3), is_while = n == 5 && !memcmp(p, "while", 5);
        const char *open = p + n + strspn(p + n, " ");
        if (n == 2 && !memcmp(p, "do", 2) && next < f->nloop)
            dos[ndo++] = (struct DoLoop){next++, depth};
        if ((is_for || is_while) && *open == '(') {
            const char *end = closing(open);
            bool tail = is_while && ndo && dos[ndo - 1].depth == depth && *end && end[1] == ';';
            Header h = {.a = a, .f = f, .loop = tail ? dos[--ndo].loop : next++};
            if (h.loop >= f->nloop)
                break;
            split_header(&h, open, end);
            judge(&h);
        }
        p += n;
    }
    if (next != f->nloop)
        finding_add(a, RULE_loop, f->file, f->line, f->column,
                    "the loops of '%s' are not understood", f->name);
}
