/* audit_report.c - what was checked, on which files, and what was found: as text to be kept, or as
 * JSON. */
#include <stdlib.h>
#include <string.h>

#include "audit.h"

static const struct {
    const char *name, *text;
} rules[] = {
#define X(name, text) {#name, text},
    AUDIT_RULES(X)
#undef X
};

static const char *const parts[] = {"model", "selftest", "driver"};

/* The largest frame first. */
static int by_stack(const void *x, const void *y)
{
    const Function *a = *(Function *const *)x, *b = *(Function *const *)y;
    if (a->frame != b->frame)
        return a->frame < b->frame ? 1 : -1;
    return strcmp(a->key, b->key);
}

typedef struct {
    int functions, loops, constant, run_time;
    const Function *deepest, *most; /* of the model */
    Function **largest;
    int nlargest;
} Totals;

static Totals totals(const Audit *a)
{
    Totals t = {.largest = NEWN(a->a, Function *, a->nfunction + 1)};
    for (int i = 0; i < a->nfunction; i++) {
        Function *f = a->function[i];
        if (a->file[f->file].part != PART_MODEL)
            continue;
        t.functions++;
        t.loops += f->nloop;
        t.constant += f->nconstant;
        t.run_time += f->nrun_time;
        if (!t.deepest || f->depth > t.deepest->depth)
            t.deepest = f;
        if (!t.most || f->stack > t.most->stack)
            t.most = f;
        if (f->frame)
            t.largest[t.nlargest++] = f;
    }
    if (t.nlargest)
        qsort(t.largest, (size_t)t.nlargest, sizeof *t.largest, by_stack);
    return t;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void text_findings(const Audit *a, StrBuf *sb)
{
    if (!a->nfinding)
        sb_puts(sb, "  none\n");
    for (int i = 0; i < a->nfinding; i++) {
        const Finding *f = &a->finding[i];
        sb_printf(sb, "  %s:%d:%d: %s: %s", a->file[f->file].name, f->line, f->column,
                  rules[f->rule].name, f->what);
        if (f->function)
            sb_printf(sb, "; in %s", f->function);
        if (f->node)
            sb_printf(sb, ", %s", f->node);
        sb_puts(sb, "\n");
    }
}

static void text_rules(const Audit *a, StrBuf *sb)
{
    for (int r = 0; r < RULE_COUNT; r++) {
        int n = 0;
        for (int i = 0; i < a->nfinding; i++)
            n += a->finding[i].rule == (Rule)r;
        sb_printf(sb, "  %-10s  %s: ", rules[r].name, rules[r].text);
        if (n)
            sb_printf(sb, "%d findings", n);
        else
            sb_puts(sb, "holds");
        if (!rule_holds((Rule)r, PART_HOST))
            sb_puts(sb, rule_holds((Rule)r, PART_SELFTEST)
                            ? " (not asked of the driver)"
                            : " (not asked of the driver and the selftest)");
        sb_puts(sb, "\n");
    }
}

void report_text(const Audit *a, StrBuf *sb)
{
    Totals t = totals(a);
    sb_printf(sb, "Audit of %s for %s: %d findings\n\n", a->o->dir, a->o->triple, a->nfinding);
    sb_printf(sb, "read by     %s\nheaders of  %s\nflags      ", a->clang, a->headers);
    for (int i = 0; i < a->nargument; i++)
        sb_printf(sb, " %s", a->argument[i]);
    sb_puts(sb, "\n\nFindings\n");
    text_findings(a, sb);
    sb_puts(sb, "\nRules\n");
    text_rules(a, sb);
    sb_puts(sb, "\nFiles (SHA-256, part)\n");
    for (int i = 0; i < a->nfile; i++)
        sb_printf(sb, "  %s  %-8s  %s%s\n", a->file[i].sha256, parts[a->file[i].part],
                  a->file[i].name,
                  a->file[i].read ? "" : " (not read: nothing of this machine includes it)");
    sb_puts(sb, "\nThe model's code\n");
    sb_printf(sb,
              "  %d functions, %d loops: %d with a constant bound, %d with one that is known at "
              "run time\n",
              t.functions, t.loops, t.constant, t.run_time);
    if (t.deepest)
        sb_printf(sb, "  calls are at most %d deep, from %s\n", t.deepest->depth, t.deepest->name);
    if (t.most) {
        sb_printf(sb,
                  "  most bytes of local variables on one way of calls, without what the compiler "
                  "adds: %lld\n   ",
                  (long long)t.most->stack);
        for (const Function *f = t.most; f; f = f->deepest < 0 ? NULL : a->function[f->deepest])
            sb_printf(sb, " %s (%lld)", f->name, (long long)f->frame);
        sb_puts(sb, "\n");
    }
    sb_puts(sb, "  the largest frames:\n");
    for (int i = 0; i < t.nlargest && i < 5; i++)
        sb_printf(sb, "    %8lld  %s  %s:%d\n", (long long)t.largest[i]->frame, t.largest[i]->name,
                  a->file[t.largest[i]->file].name, t.largest[i]->line);
    if (t.run_time)
        sb_puts(sb, "\nBounds that are known at run time\n");
    for (int i = 0; i < a->nfunction; i++) {
        const Function *f = a->function[i];
        for (int k = 0; k < f->nrun_time && a->file[f->file].part == PART_MODEL; k++)
            sb_printf(sb, "  %s:%d: %s: %s\n", a->file[f->file].name, f->line, f->name,
                      f->run_time[k]);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_text(StrBuf *sb, const char *s)
{
    if (!s) {
        sb_puts(sb, "null");
        return;
    }
    sb_puts(sb, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_printf(sb, "\\%c", c);
        else if (c < ' ')
            sb_printf(sb, "\\u%04x", c);
        else
            sb_write(sb, s, 1);
    }
    sb_puts(sb, "\"");
}

static void json_member(StrBuf *sb, const char *name, const char *value)
{
    sb_printf(sb, "\"%s\": ", name);
    json_text(sb, value);
}

void report_json(const Audit *a, StrBuf *sb)
{
    Totals t = totals(a);
    sb_puts(sb, "{");
    json_member(sb, "folder", a->o->dir);
    sb_puts(sb, ", ");
    json_member(sb, "triple", a->o->triple);
    sb_puts(sb, ", ");
    json_member(sb, "clang", a->clang);
    sb_puts(sb, ", ");
    json_member(sb, "headers", a->headers);
    sb_puts(sb, ",\n \"flags\": [");
    for (int i = 0; i < a->nargument; i++) {
        sb_puts(sb, i ? ", " : "");
        json_text(sb, a->argument[i]);
    }
    sb_puts(sb, "],\n \"findings\": [");
    for (int i = 0; i < a->nfinding; i++) {
        const Finding *f = &a->finding[i];
        sb_puts(sb, i ? ",\n  {" : "\n  {");
        json_member(sb, "file", a->file[f->file].name);
        sb_printf(sb, ", \"line\": %d, \"column\": %d, ", f->line, f->column);
        json_member(sb, "rule", rules[f->rule].name);
        sb_puts(sb, ", ");
        json_member(sb, "what", f->what);
        sb_puts(sb, ", ");
        json_member(sb, "function", f->function);
        sb_puts(sb, ", ");
        json_member(sb, "node", f->node);
        sb_puts(sb, "}");
    }
    sb_puts(sb, "],\n \"rules\": [");
    for (int r = 0; r < RULE_COUNT; r++) {
        sb_puts(sb, r ? ",\n  {" : "\n  {");
        json_member(sb, "rule", rules[r].name);
        sb_puts(sb, ", ");
        json_member(sb, "text", rules[r].text);
        sb_printf(sb, ", \"of\": [\"model\"%s%s]}",
                  rule_holds((Rule)r, PART_SELFTEST) ? ", \"selftest\"" : "",
                  rule_holds((Rule)r, PART_HOST) ? ", \"driver\"" : "");
    }
    sb_puts(sb, "],\n \"files\": [");
    for (int i = 0; i < a->nfile; i++) {
        sb_puts(sb, i ? ",\n  {" : "\n  {");
        json_member(sb, "file", a->file[i].name);
        sb_puts(sb, ", ");
        json_member(sb, "sha256", a->file[i].sha256);
        sb_puts(sb, ", ");
        json_member(sb, "part", parts[a->file[i].part]);
        sb_printf(sb, ", \"read\": %s}", a->file[i].read ? "true" : "false");
    }
    sb_printf(sb,
              "],\n \"functions\": %d, \"loops\": %d, \"loops_constant\": %d, \"loops_run_time\": "
              "%d, \"depth\": %d, \"stack_bytes\": %lld}\n",
              t.functions, t.loops, t.constant, t.run_time, t.deepest ? t.deepest->depth : 0,
              t.most ? (long long)t.most->stack : 0LL);
}
