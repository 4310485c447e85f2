/* linear_fault.c - what is told when statements do what they must not: the statement, the element,
 * the iteration, the thread. */
#include <stdarg.h>

#include "linear_thread.h"

static void print_counters(StrBuf *sb, const Thread *t, const OpenLoop *open)
{
    if (!open)
        return;
    print_counters(sb, t, open->outer);
    sb_printf(sb, "%s%s = %lld", open->outer ? ", " : "; at ", open->name,
              (long long)*integer(t, open->at));
}

/* "a1[0,3,27]", or "a1, element 70 of its 64" */
void linear_tell_element(StrBuf *sb, const Kernel *k, int arg, int64_t at, int64_t size)
{
    const KernelArg *a = &k->args[arg];
    int64_t dims[INGOT_MAX_RANK], coords[INGOT_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i]->hi;
    bool inside = at >= 0 && at < size;
    if (!inside || !layout_find(&a->layout, a->rank, dims, at, coords)) {
        sb_printf(sb, "a%d, element %lld of its %lld%s", arg, (long long)at, (long long)size,
                  inside ? " (of a border)" : "");
        return;
    }
    sb_printf(sb, "a%d[", arg);
    for (int i = 0; i < a->rank; i++)
        sb_printf(sb, "%s%lld", i ? "," : "", (long long)coords[i]);
    sb_puts(sb, "]");
}

bool thread_fault(const Thread *t, const Do *d, const char *format, ...)
{
    StrBuf sb = {0};
    const StmtPlace *s = &t->c->place[d->stmt];
    va_list ap;
    linear_tell(&sb, t->lk->k, s);
    sb_puts(&sb, ": ");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    print_counters(&sb, t, s->open);
    if (t->lk->parts || t->lk->items)
        sb_printf(&sb, "; in %s %u", t->lk->items ? "work item" : "part", (unsigned)t->now);
    snprintf(t->m->fault, sizeof t->m->fault, "%s", sb.data);
    sb_free(&sb);
    return false;
}

bool thread_fault_at(const Thread *t, const Do *d, const char *what, int64_t element,
                     const char *how)
{
    StrBuf sb = {0};
    linear_tell_element(&sb, t->lk->k, (int)d->arg, element, t->arg[d->arg].size);
    (void)thread_fault(t, d, "%s %s%s", what, sb.data, how);
    sb_free(&sb);
    return false;
}
