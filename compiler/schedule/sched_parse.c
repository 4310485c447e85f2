/* sched_parse.c - reads the decisions of a .sched file, in the grammar of docs/sched.md.  Here is
 * only form; whether an axis exists or a layout fits the buffer is seen where it is applied
 * (kernel/replay.c). */
#include <errno.h>
#include <string.h>

#include "schedule.h"

enum { MAX_WORDS = 64, MAX_ARGS = 512 };

typedef struct {
    Plan *p;
    Arena *a;
    char *word[MAX_WORDS];
    int n, line;
    Choice *now; /* the kernel whose lines these are */
} Parse;

void sched_error(const Plan *p, int line, const char *format, ...)
{
    if (p->c->nerror)
        return;
    StrBuf sb = {0};
    sb_printf(&sb, "%s:%d: ", p->sched_file, line);
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    context_report(p->c, INGOT_ERROR, INGOT_USAGE, sb.data);
    sb_free(&sb);
}

/* A whole number of at most 9 digits, up to `end`. */
static bool number(const char **at, int64_t *v)
{
    const char *s = *at;
    for (*v = 0; *s >= '0' && *s <= '9' && s - *at < 9; s++)
        *v = *v * 10 + (*s - '0');
    bool some = s > *at;
    *at = s;
    return some;
}

static bool whole(const char *word, int64_t max, int64_t *v)
{
    return number(&word, v) && !*word && *v <= max;
}

static bool hash(const char *word, uint64_t *v)
{
    *v = 0;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef", *d = word[i] ? strchr(digits, word[i]) : NULL;
        if (!d)
            return false;
        *v = *v << 4 | (uint64_t)(d - digits);
    }
    return !word[16];
}

/* ---- layouts ------------------------------------------------------------------------------------- */

/* name(3,1,...) */
static int constructor(const char *word, const char *name, int64_t *v, int max)
{
    size_t len = strlen(name);
    if (strncmp(word, name, len) || word[len] != '(')
        return -1;
    const char *at = word + len + 1;
    for (int n = 0; n < max; at++) {
        bool minus = *at == '-';
        at += minus;
        if (!number(&at, &v[n]))
            return -1;
        v[n] = minus ? -v[n] : v[n];
        n++;
        if (*at == ')')
            return at[1] ? -1 : n;
        if (*at != ',')
            return -1;
    }
    return -1;
}

static bool layout_op(const char *word, LayoutOp *op)
{
    int64_t v[INGOT_MAX_RANK];
    int n;
    *op = (LayoutOp){0};
    if ((n = constructor(word, "permute", v, INGOT_MAX_RANK)) > 0) {
        op->kind = LAYOUT_PERMUTE;
        op->perm.n = n;
        for (int i = 0; i < n; i++) {
            if (v[i] < 0 || v[i] >= n)
                return false;
            op->perm.axis[i] = (int8_t)v[i];
            for (int j = 0; j < i; j++)
                if (v[j] == v[i])
                    return false;
        }
        return true;
    }
    if (constructor(word, "split", v, 3) == 2) {
        *op =
            (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)(v[0] < 100 ? v[0] : 100), .a = v[1]};
        return v[0] >= 0 && v[1] > 0;
    }
    if ((n = constructor(word, "pad", v, 4)) >= 3) {
        *op = (LayoutOp){
            .kind = LAYOUT_PAD, .axis = (int8_t)(v[0] < 100 ? v[0] : 100), .a = v[1], .b = v[2]};
        op->fill = n == 4 ? v[3] : 0;
        return v[0] >= 0 && v[1] >= 0 && v[2] >= 0;
    }
    return false;
}

static bool layout(Parse *q, int from, Layout *l)
{
    *l = (Layout){0};
    if (from + 1 == q->n && !strcmp(q->word[from], "dense"))
        return true;
    for (int i = from; i < q->n; i++) {
        if (l->n == (int)(sizeof l->op / sizeof *l->op)) {
            sched_error(q->p, q->line, "more than %d constructors in one layout", l->n);
            return false;
        }
        if (!layout_op(q->word[i], &l->op[l->n++])) {
            sched_error(q->p, q->line,
                        "'%.80s': dense, permute(...) of every axis once, split(axis,n) or "
                        "pad(axis,lo,hi[,fill]) is wanted",
                        q->word[i]);
            return false;
        }
    }
    if (!l->n)
        sched_error(q->p, q->line, "the layout is missing");
    return l->n > 0;
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* kernel HASH NTH [copy ARG] */
static bool kernel_line(Parse *q)
{
    Choice c = {.line = q->line};
    int64_t nth, arg = 0;
    bool good =
        (q->n == 3 || q->n == 5) && hash(q->word[1], &c.key) && whole(q->word[2], INT32_MAX, &nth);
    if (good && q->n == 5) {
        c.copy = true;
        good = !strcmp(q->word[3], "copy") && whole(q->word[4], MAX_ARGS - 1, &arg);
    }
    if (!good) {
        sched_error(q->p, q->line,
                    "kernel HASH NUMBER [copy ARG] is wanted, the hash of 16 digits");
        return false;
    }
    c.nth = (int)nth;
    c.copy_arg = (int)arg;
    for (int i = 0; i < q->p->ngiven; i++) {
        const Choice *o = q->p->given[i];
        if (o->key == c.key && o->nth == c.nth && o->copy == c.copy && o->copy_arg == c.copy_arg) {
            sched_error(q->p, q->line, "this kernel stands in line %d already", o->line);
            return false;
        }
    }
    q->now = NEW(q->a, Choice);
    *q->now = c;
    vec_push(q->a, q->p->given, q->p->ngiven, q->now);
    return true;
}

/* arg N layout|copy LAYOUT */
static bool arg_line(Parse *q)
{
    int64_t i;
    bool copy = q->n > 2 && !strcmp(q->word[2], "copy");
    if (q->n < 4 || !whole(q->word[1], MAX_ARGS - 1, &i) ||
        (!copy && strcmp(q->word[2], "layout"))) {
        sched_error(q->p, q->line, "arg NUMBER layout|copy LAYOUT is wanted");
        return false;
    }
    Choice *c = q->now;
    if (i >= c->narg) {
        ArgChoice *more = NEWN(q->a, ArgChoice, i + 1);
        if (c->narg)
            memcpy(more, c->arg, (size_t)c->narg * sizeof *more);
        c->arg = more;
        c->narg = (int)i + 1;
    }
    ArgChoice *arg = &c->arg[i];
    int *line = copy ? &arg->copy_line : &arg->line;
    if (*line) {
        sched_error(q->p, q->line, "the same of argument %d stands in line %d already", (int)i,
                    *line);
        return false;
    }
    *line = q->line;
    *(copy ? &arg->copied : &arg->owned) = true;
    return layout(q, 3, copy ? &arg->copy : &arg->layout);
}

static bool opt_line(Parse *q)
{
    Opt o = {.kind = OPT_COUNT};
    for (int i = 0; i < OPT_COUNT; i++)
        if (!strcmp(q->word[0], opt_name[i]))
            o.kind = (OptKind)i;
    if (o.kind == OPT_COUNT) {
        sched_error(q->p, q->line,
                    "'%.80s': kernel, arg or an opt (SPLIT, VECTOR, UPCAST, UNROLL, ORDER, THREAD) "
                    "is wanted",
                    q->word[0]);
        return false;
    }
    if (o.kind == OPT_ORDER) {
        if (q->n < 2) {
            sched_error(q->p, q->line, "ORDER wants the names of axes, outermost first");
            return false;
        }
        o.axis = q->word[1];
        for (int i = 2; i < q->n; i++)
            o.axis = arena_printf(q->a, "%s %s", o.axis, q->word[i]);
    } else {
        bool good = q->n == 3 && whole(q->word[2], 1 << 20, &o.amount) && o.amount > 0;
        if (!good) {
            sched_error(q->p, q->line, "%s AXIS NUMBER is wanted", opt_name[o.kind]);
            return false;
        }
        o.axis = q->word[1];
    }
    Choice *c = q->now;
    int n = c->nopt;
    vec_push(q->a, c->opt_line, n, q->line);
    vec_push(q->a, c->opts, c->nopt, o);
    return true;
}

static bool line(Parse *q, bool *versioned)
{
    if (!*versioned) {
        *versioned = q->n == 2 && !strcmp(q->word[0], "sched") && !strcmp(q->word[1], "1");
        if (!*versioned)
            sched_error(q->p, q->line, "this is no .sched file: its first line is not 'sched 1'");
        return *versioned;
    }
    if (!strcmp(q->word[0], "kernel"))
        return kernel_line(q);
    if (!strcmp(q->word[0], "target") && q->n == 2 && !q->now)
        return true; /* for people: every opt is checked against the target that is compiled for */
    if (!q->now) {
        sched_error(q->p, q->line, "'%.80s': a kernel is wanted first", q->word[0]);
        return false;
    }
    return strcmp(q->word[0], "arg") ? opt_line(q) : arg_line(q);
}

static bool split_words(Parse *q, char *text)
{
    text[strcspn(text, "#\r\n")] = 0;
    q->n = 0;
    for (char *s = text;;) {
        s += strspn(s, " \t");
        if (!*s)
            return true;
        if (q->n == MAX_WORDS) {
            sched_error(q->p, q->line, "more than %d words in a line", MAX_WORDS);
            return false;
        }
        q->word[q->n++] = s;
        s += strcspn(s, " \t");
        if (*s)
            *s++ = 0;
    }
}

bool sched_parse(Plan *p, const char *file)
{
    p->sched_file = arena_strdup(p->arena, file);
    FILE *f = fopen(file, "r");
    if (!f) {
        StrBuf sb = {0};
        sb_printf(&sb, "%s: %s", file, strerror(errno));
        context_report(p->c, INGOT_ERROR, INGOT_IO, sb.data);
        sb_free(&sb);
        return false;
    }
    Parse q = {.p = p, .a = p->arena};
    bool good = true, versioned = false;
    char text[4096];
    while (good && fgets(text, sizeof text, f)) {
        q.line++;
        if (strlen(text) + 1 == sizeof text) {
            sched_error(p, q.line, "the line is too long");
            good = false;
            break;
        }
        char *words = arena_strdup(p->arena, text);
        good = split_words(&q, words) && (!q.n || line(&q, &versioned));
    }
    if (good && !versioned) {
        sched_error(p, q.line, "the file is empty");
        good = false;
    }
    fclose(f);
    return good;
}
