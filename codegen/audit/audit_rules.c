/* audit_rules.c - findings, the functions that were read, and what they may call. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"

/* ---- what may be called --------------------------------------------------------------------- */

static const char *const library[] = {
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "strlen",
    "strcmp",
    "getauxval", /* what an aarch64 has, on Linux */
    "strncmp",
    "strstr",
    "strchr",
    /* libm: also with f and l at the end */
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "llrint",
    "llround",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "pow",
    "remainder",
    "remquo",
    "rint",
    "round",
    "scalbn",
    "scalbln",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    /* what the macros of math.h become in one library or another */
    "__fpclassify",
    "__fpclassifyd",
    "__isnan",
    "__isnand",
    "__isinf",
    "__isinfd",
    "__finite",
    "__signbit",
    "__signbitd",
};

static const char *const heap[] = {
    "malloc", "calloc",       "realloc", "free",    "aligned_alloc", "posix_memalign", "memalign",
    "valloc", "reallocarray", "strdup",  "strndup", "mmap",          "sbrk",           "brk"};

static bool in_list(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(list[i]);
        if (!strncmp(name, list[i], k) &&
            (!name[k] || ((name[k] == 'f' || name[k] == 'l') && !name[k + 1] && list == library)))
            return true;
    }
    return false;
}

#define IN_LIST(name, list) in_list(name, list, sizeof list / sizeof *list)

/* ---- rules and parts ------------------------------------------------------------------------ */

bool rule_holds(Rule rule, AuditPart part)
{
    switch (rule) {
    case RULE_diagnostic:
    case RULE_narrowing:
    case RULE_recursion:
    case RULE_stack:
    case RULE_jump: return true;
    case RULE_global: return part == PART_MODEL;
    default: return part != PART_HOST;
    }
}

static const Function *function_at(const Audit *a, int file, int line)
{
    for (int i = 0; i < a->nfunction; i++)
        if (a->function[i]->file == file && a->function[i]->line <= line &&
            line <= a->function[i]->end_line)
            return a->function[i];
    return NULL;
}

void finding_add(Audit *a, Rule rule, int file, int line, int column, const char *format, ...)
{
    if (!rule_holds(rule, a->file[file].part))
        return;
    va_list ap;
    StrBuf sb = {0};
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    Finding f = {rule, file, line, column, arena_strdup(a->a, sb.data), a->in ? a->in->name : NULL,
                 NULL};
    sb_free(&sb);
    for (int i = 0; i < a->nfinding; i++) {
        const Finding *g = &a->finding[i];
        if (g->file == file && g->line == line && g->column == column && !strcmp(g->what, f.what))
            return; /* a header in another unit */
    }
    vec_push(a->a, a->finding, a->nfinding, f);
}

static int by_place(const void *x, const void *y)
{
    const Finding *a = x, *b = y;
    if (a->file != b->file)
        return a->file - b->file;
    if (a->line != b->line)
        return a->line - b->line;
    return a->column != b->column ? a->column - b->column : (int)a->rule - (int)b->rule;
}

void findings_sort(Audit *a)
{
    if (a->nfinding)
        qsort(a->finding, (size_t)a->nfinding, sizeof *a->finding, by_place);
    for (int i = 0; i < a->nfinding; i++) {
        Finding *f = &a->finding[i];
        const Function *in = function_at(a, f->file, f->line);
        if (!f->function && in)
            f->function = in->name;
        f->node = node_of(a, in, f->file, f->line);
    }
}

/* ---- functions ------------------------------------------------------------------------------ */

Function *function_by_key(const Audit *a, const char *key)
{
    return map_get(&a->by_key, hash_bytes(0, key, strlen(key)));
}

void function_put(Audit *a, Function *f)
{
    map_put(&a->by_key, hash_bytes(0, f->key, strlen(f->key)), f);
    vec_push(a->a, a->function, a->nfunction, f);
}

static bool in_abi(const Audit *a, const char *type)
{
    for (int i = 0; i < a->nabi_type; i++)
        if (!strcmp(a->abi_type[i], type))
            return true;
    return false;
}

static void judge_call(Audit *a, const Function *f, const Edge *e)
{
    const char *name = e->to;
    if (function_by_key(a, name) || e->intrinsic)
        return;
    bool builtin = !strncmp(name, "__builtin_", 10);
    if (builtin)
        name += 10;
    if (!strncmp(name, "alloca", 6))
        finding_add(a, RULE_stack, f->file, e->line, e->column, "'%s' takes room on the stack",
                    e->to);
    else if (IN_LIST(name, heap))
        finding_add(a, RULE_heap, f->file, e->line, e->column, "'%s' is called", e->to);
    else if (!builtin && !IN_LIST(name, library))
        finding_add(a, RULE_call, f->file, e->line, e->column,
                    "'%s' is called, which is neither of this folder nor of the list", e->to);
}

void calls_judge(Audit *a)
{
    for (int i = 0; i < a->nfunction; i++) {
        const Function *f = a->in = a->function[i];
        for (int k = 0; k < f->nedge; k++) {
            const Edge *e = &f->edge[k];
            if (e->kind == EDGE_CALL)
                judge_call(a, f, e);
            else if (e->kind == EDGE_POINTER && !in_abi(a, e->to))
                finding_add(a, RULE_pointer, f->file, e->line, e->column,
                            "a call through a pointer of type '%s'", e->to);
            else if (e->kind == EDGE_ADDRESS && !in_abi(a, e->type))
                finding_add(a, RULE_pointer, f->file, e->line, e->column,
                            "the address of '%s' is taken", e->to);
        }
    }
    a->in = NULL;
}
