/* sched_parse.c - reads the decisions of a .sched file, in the grammar of docs/sched.md.  Here is
 * only form; whether an axis exists or a layout fits the buffer is seen where it is applied
 * (kernel/replay.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "plan.h"

enum { MAX_WORDS = 64, MAX_ARGS = 512 };

/* "target c:native function prefill threads 2" */
typedef struct {
    char target[256];  /* as sched_target() has it */
    int threads;       /* that it was tuned for; 1 where it says nothing */
    char function[48]; /* of the model, "run" where it says nothing */
} Section;

typedef struct {
    Plan *p;
    Arena *a;
    char *word[MAX_WORDS];
    int n, line;
    const char *target, *also; /* the target's names, as sched_target() has them */
    const Section *section;    /* whose lines count; NULL: all */
    bool skip;                 /* these lines are of another one */
    bool ram_only;             /* no line but "ram" is read, else all but that */
    Choice *now;               /* the kernel whose lines these are */
} Parse;

/* With the file and the line; 0: none of them. */
static void tell(const Plan *p, int line, ingot_level level, ingot_status status,
                 const char *format, va_list ap)
{
    StrBuf sb = {0};
    sb_printf(&sb, line ? "%s:%d: " : "%s: ", p->sched_file, line);
    sb_vprintf(&sb, format, ap);
    context_report(p->c, level, status, "%s", sb.data);
    sb_free(&sb);
}

void sched_note(const Plan *p, int line, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    tell(p, line, INGOT_NOTE, INGOT_OK, format, ap);
    va_end(ap);
}

void sched_error(const Plan *p, int line, const char *format, ...)
{
    if (p->c->nerror)
        return;
    va_list ap;
    va_start(ap, format);
    tell(p, line, INGOT_ERROR, INGOT_USAGE, format, ap);
    va_end(ap);
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

/* ---- layouts --------------------------------------------------------------------------------- */

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

bool sched_layout_op(const char *word, LayoutOp *op)
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
    static const struct {
        const char *name;
        LayoutKind kind;
    } of_amount[] = {{"cut", LAYOUT_CUT}, {"split", LAYOUT_SPLIT}, {"pitch", LAYOUT_PITCH}};
    for (int i = 0; i < 3; i++) {
        if (constructor(word, of_amount[i].name, v, 3) != 2)
            continue;
        *op = (LayoutOp){
            .kind = of_amount[i].kind, .axis = (int8_t)(v[0] < 100 ? v[0] : 100), .a = v[1]};
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
        if (!sched_layout_op(q->word[i], &l->op[l->n++])) {
            sched_error(q->p, q->line,
                        "'%.80s': dense, permute(...) of every axis once, split(axis,n), "
                        "cut(axis,n), pad(axis,lo,hi[,fill]) or pitch(axis,n) is wanted",
                        q->word[i]);
            return false;
        }
    }
    if (!l->n)
        sched_error(q->p, q->line, "the layout is missing");
    return l->n > 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* kernel HASH [only I of N] [copy ARG] [at VALUE form HASH] */
static bool kernel_line(Parse *q)
{
    Choice c = {.line = q->line};
    int64_t nth = 0, of = 0, arg = 0;
    bool good = q->n > 1 && hash(q->word[1], &c.key);
    for (int i = 2; i < q->n && good;) {
        int left = q->n - i;
        if (!strcmp(q->word[i], "only") && left >= 4) {
            good = whole(q->word[i + 1], INT32_MAX, &nth) && !strcmp(q->word[i + 2], "of") &&
                   whole(q->word[i + 3], INT32_MAX, &of) && nth < of;
            i += 4;
        } else if (!strcmp(q->word[i], "copy") && left >= 2) {
            c.copy = true;
            good = whole(q->word[i + 1], MAX_ARGS - 1, &arg);
            i += 2;
        } else if (!strcmp(q->word[i], "at") && left >= 4) {
            char form[24];
            uint64_t x = 0;
            snprintf(form, sizeof form, "00000000%.9s", q->word[i + 3]);
            good = hash(q->word[i + 1], &c.at) && !strcmp(q->word[i + 2], "form") && hash(form, &x);
            c.form = (uint32_t)x;
            i += 4;
        } else {
            good = false;
        }
    }
    if (!good) {
        sched_error(
            q->p, q->line,
            "kernel HASH [only I of N] [copy ARG] [at VALUE form HASH] is wanted, the hash of "
            "16 digits");
        return false;
    }
    c.nth = (int)nth;
    c.of = (int)of;
    c.copy_arg = (int)arg;
    for (int i = 0; i < q->p->ngiven; i++) {
        const Choice *o = q->p->given[i];
        if (o->key == c.key && o->nth == c.nth && o->of == c.of && o->copy == c.copy &&
            o->copy_arg == c.copy_arg) {
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

/* auto: no opts, but those that the compiler chooses */
static bool auto_line(Parse *q)
{
    if (q->n > 1 || q->now->nopt) {
        sched_error(q->p, q->line, q->n > 1 ? "auto stands alone" : "auto, or opts: not both");
        return false;
    }
    q->now->automatic = true;
    return true;
}

static bool unknown_word(Parse *q)
{
    StrBuf names = {0};
    for (int i = 0; i < OPT_COUNT; i++)
        sb_printf(&names, "%s%s", i ? ", " : "", opt_name[i]);
    sched_error(q->p, q->line, "'%.80s': kernel, arg or an opt (%s) is wanted", q->word[0],
                names.data);
    sb_free(&names);
    return false;
}

static bool opt_line(Parse *q)
{
    if (q->now->automatic) {
        sched_error(q->p, q->line, "auto, or opts: not both");
        return false;
    }
    const char *text = q->word[0];
    for (int i = 1; i < q->n; i++)
        text = arena_printf(q->a, "%s %s", text, q->word[i]);
    Opt o;
    if (!opt_read(q->a, text, &o)) {
        if (o.kind == OPT_COUNT)
            return unknown_word(q);
        const bool counts = q->n == 3 && !opt_is_list(o.kind) && o.kind != OPT_BIND;
        sched_error(q->p, q->line, "%s %s is wanted%s", opt_name[o.kind], opt_form[o.kind],
                    counts ? ", a number above 0" : "");
        return false;
    }
    Choice *c = q->now;
    int n = c->nopt;
    vec_push(q->a, c->opt_line, n, q->line);
    vec_push(q->a, c->opts, c->nopt, o);
    return true;
}

/* sched 2; also in between, where files were joined */
static bool version_line(Parse *q)
{
    bool two = q->n == 2, sched = two && !strcmp(q->word[0], "sched");
    if (sched && !strcmp(q->word[1], "2"))
        return true;
    if (sched && !strcmp(q->word[1], "1"))
        sched_error(q->p, q->line,
                    "a file of version 1, whose kernels have other names: write it again with "
                    "--save-sched");
    else
        sched_error(q->p, q->line, "this is no .sched file: its first line is not 'sched 2'");
    return false;
}

/* A section's target; if it is said by its other name ("c:native"), the one that counts. */
static const char *section_target(const Parse *q, const char *word)
{
    const char *name = sched_target(q->a, word);
    return strcmp(name, q->also) ? name : q->target;
}

static bool section_line(Parse *q)
{
    int64_t threads = 1;
    const bool function = q->n >= 4 && !strcmp(q->word[2], "function");
    const int at = function ? 4 : 2;
    if (q->n != at && (q->n != at + 2 || strcmp(q->word[at], "threads") != 0 ||
                       !whole(q->word[at + 1], 64, &threads) || !threads)) {
        sched_error(q->p, q->line,
                    "'target NAME [function NAME] threads N' is wanted, N from 1 to 64");
        return false;
    }
    q->now = NULL;
    q->skip = q->section && (strcmp(section_target(q, q->word[1]), q->section->target) ||
                             strcmp(function ? q->word[3] : "run", function_name(q->p->c)) ||
                             threads != q->section->threads);
    return true;
}

static bool amount(const char *word, double *v)
{
    char *end;
    *v = strtod(word, &end);
    return end > word && !*end && *v >= 0 && *v < 1e18;
}

/* ram byte CYCLES hold BYTES */
static bool ram_line(Parse *q)
{
    PlanRam ram;
    if (q->n == 5 && !strcmp(q->word[1], "byte") && amount(q->word[2], &ram.byte) &&
        !strcmp(q->word[3], "hold") && amount(q->word[4], &ram.hold)) {
        q->p->ram = ram;
        return true;
    }
    sched_error(q->p, q->line, "ram byte CYCLES hold BYTES is wanted");
    return false;
}

static bool line(Parse *q, bool *versioned)
{
    if (!*versioned || !strcmp(q->word[0], "sched")) {
        *versioned = true;
        return version_line(q);
    }
    if (!strcmp(q->word[0], "target") && (q->n == 2 || q->n == 4 || q->n == 6))
        return section_line(q);
    const bool ram = !strcmp(q->word[0], "ram");
    if (q->skip || ram != q->ram_only)
        return true;
    if (ram)
        return ram_line(q);
    if (!strcmp(q->word[0], "value")) {
        q->now = NULL;
        return value_line(q->p, q->line, q->n, q->word);
    }
    if (!strcmp(q->word[0], "kernel"))
        return kernel_line(q);
    if (!q->now) {
        sched_error(q->p, q->line, "'%.80s': a kernel is wanted first", q->word[0]);
        return false;
    }
    if (!strcmp(q->word[0], "auto"))
        return auto_line(q);
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

/* Is it nearer to so many threads?  The most that are not more, else the fewest. */
static bool is_nearer(int x, int y, int threads)
{
    const bool few = x <= threads, also = y <= threads;
    return few != also ? few : few ? x > y : x < y;
}

/* The section for a target: its own, or else the first for its language; of several those for so
 * many threads.  Without a name: there are others only; NULL: there are none. */
static const Section *section_for(const Parse *q, FILE *f, int threads)
{
    const char *target = q->target;
    char text[4096], word[sizeof text];
    Section *best = NULL;
    size_t language = strcspn(target, ":");
    while (fgets(text, sizeof text, f)) {
        Section s = {.threads = 1, .function = "run"};
        if (sscanf(text, " target %4095s function %47s threads %d", word, s.function, &s.threads) <
                2 &&
            sscanf(text, " target %4095s threads %d", word, &s.threads) < 1)
            continue;
        snprintf(s.target, sizeof s.target, "%s", section_target(q, word));
        const bool same =
            strcspn(s.target, ":") == language && !strncmp(s.target, target, language);
        if (!best)
            best = NEW(q->a, Section);
        if (!same || strcmp(s.function, function_name(q->p->c)) != 0)
            continue;
        const bool again = !strcmp(s.target, best->target);
        if (again ? is_nearer(s.threads, best->threads, threads)
                  : !*best->target || !strcmp(s.target, target))
            *best = s;
    }
    rewind(f);
    return best;
}

static bool unreadable(const Plan *p)
{
    context_report(p->c, INGOT_ERROR, INGOT_IO, "%s: %s", p->sched_file, strerror(errno));
    return false;
}

static bool parse(Plan *p, const char *file, const char *target, const char *also, int threads,
                  bool ram_only)
{
    p->sched_file = arena_strdup(p->arena, file);
    FILE *f = fopen(file, "r");
    if (!f)
        return unreadable(p);
    Parse q = {.p = p,
               .a = p->arena,
               .target = sched_target(p->arena, target),
               .also = sched_target(p->arena, also),
               .ram_only = ram_only};
    q.section = section_for(&q, f, threads);
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
    if (ferror(f)) /* a folder, say */
        good = unreadable(p);
    if (good && !versioned) {
        sched_error(p, 1, "the file is empty");
        good = false;
    }
    if (good && q.section && !*q.section->target) {
        sched_error(p, q.line,
                    p->c->function ? "it has no section for target '%s' and function '%s'"
                                   : "it has no section for target '%s'",
                    q.target, function_name(p->c));
        good = false;
    }
    if (good && !ram_only && q.section && strcmp(q.section->target, q.target) != 0)
        sched_note(
            p, 0,
            "its decisions are for target '%s', and this is '%s': kernels may differ, and be "
            "slower",
            q.section->target, q.target);
    fclose(f);
    return good;
}

bool sched_parse_ram(Plan *p, const char *file, const char *target, const char *also, int threads)
{
    return parse(p, file, target, also, threads, true);
}

bool sched_parse(Plan *p, const char *file, const char *target, const char *also, int threads)
{
    return parse(p, file, target, also, threads, false);
}
