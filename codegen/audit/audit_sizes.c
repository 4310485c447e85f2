/* audit_sizes.c - sizes that the run decides lie in sym[]. Kernels' loops have them as bounds, so
 * each has to be compared with constants as soon as it is set, and the run has to end where it is
 * outside:
 *
 *     sym[SYM_N] = in->x_dims[0];
 *     if (igrt_outside(&ctx->fault, "...", sym[SYM_N], 1, 8))
 *         return IGRT_ERR_DIM;
 *
 * or it is the counter of a loop of the same function, which is bounded by what is known already.
 * The syntax tree tells the lines in which sym[] may change; what stands there is compared as
 * text. */
#include <ctype.h>
#include <string.h>

#include "audit.h"

static const char *trimmed_line(const Audit *a, const Function *f, int line)
{
    const SourceFile *s = &a->file[f->file];
    if (line > s->nline)
        return "";
    const char *p = s->line[line - 1];
    size_t n = strcspn(p, "\n");
    while (n && isspace((unsigned char)*p))
        p++, n--;
    return arena_printf(a->a, "%.*s", (int)n, p);
}

/* What follows the text at p, or NULL. */
static const char *after(const char *p, const char *text)
{
    size_t n = strlen(text);
    return p && !strncmp(p, text, n) ? p + n : NULL;
}

/* 8, (-8), INT64_C(8), (-INT64_C(8)) */
static const char *after_number(const char *p)
{
    const char *minus = after(p, "(-");
    p = minus ? minus : p;
    const char *wide = after(p, "INT64_C(");
    p = wide ? wide : p;
    size_t n = p ? strspn(p, "0123456789") : 0;
    p = n ? p + n : NULL;
    p = wide ? after(p, ")") : p;
    return minus ? after(p, ")") : p;
}

static bool is_compared(const Audit *a, const Function *f, int line, const char *size)
{
    const char *test = trimmed_line(a, f, line + 1);
    if (!after(test, "if (igrt_outside(") || !after(trimmed_line(a, f, line + 2), "return "))
        return false;
    const char *at = NULL, *wanted = arena_printf(a->a, ", %s, ", size);
    for (const char *p = test; (p = strstr(p, wanted));
         p++) /* the last: a message may have the same words */
        at = p;
    const char *rest = after_number(after(after_number(after(at, wanted)), ", "));
    return rest && !strcmp(rest, "))");
}

static bool is_counter(const Audit *a, const Function *f, int line, const char *value, size_t n)
{
    for (int i = line; i >= f->line; i--) {
        const char *p = after(trimmed_line(a, f, i), "for (");
        p = after(p, "int64_t ") ? after(p, "int64_t ") : p;
        if (p && !strncmp(p, value, n) && after(p + n, " = 0; "))
            return true;
    }
    return false;
}

void sizes_judge(Audit *a, const Function *f)
{
    for (int i = 0; i < f->nsize; i++) {
        int line = f->size_line[i];
        const char *text = trimmed_line(a, f, line), *end = strstr(text, "] = ");
        bool good = false;
        if (after(text, "sym[") && end) {
            const char *size = arena_printf(a->a, "%.*s", (int)(end + 1 - text), text),
                       *value = end + 4;
            size_t n = strcspn(value, ";");
            good = is_compared(a, f, line, size) || is_counter(a, f, line, value, n);
        }
        if (!good)
            finding_add(a, RULE_size, f->file, line, 1,
                        "a size that the run decides is set, and not compared with its bounds");
    }
}
