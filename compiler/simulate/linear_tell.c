/* linear_tell.c - a statement and its ranges in words, for who reads of a fault. */
#include "linear_build.h"

const char NO_AXIS[] = "a range that is no axis of the loop nest";

const char *linear_range_name(const Tile *t, Node *range)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].range == range)
            return t->axis[i].name;
    for (int i = 0; i < t->nreduce; i++)
        if (t->reduce[i].range == range)
            return t->reduce[i].name;
    for (int i = 0; i < t->nfill; i++)
        if (t->fill[i].range == range)
            return t->fill[i].name;
    return range == t->tail.range        ? t->tail.name
           : range == t->lane            ? "the lanes"
           : range == t->four            ? "the terms of a dot"
           : is_fragment_range(t, range) ? "a fragment"
                                         : NO_AXIS;
}

void linear_tell(StrBuf *sb, const Kernel *k, const StmtPlace *s)
{
    static const char *const word[] = {
        [STMT_ITEM] = "item",         [STMT_LOOP] = "loop",       [STMT_PARTS] = "parts",
        [STMT_END] = "end",           [STMT_LET] = "let",         [STMT_ACC] = "acc",
        [STMT_UPDATE] = "update",     [STMT_STORE] = "store",     [STMT_BARRIER] = "barrier",
        [STMT_PREFETCH] = "prefetch", [STMT_COMMIT] = "commit",   [STMT_WAIT] = "wait",
        [STMT_FILL] = "fill",         [STMT_LOADER] = "loader",   [STMT_CLAIM] = "claim",
        [STMT_FILLED] = "filled",     [STMT_RELEASE] = "release", [STMT_KEEP] = "keep",
        [STMT_DONE] = "done",         [STMT_SCALE] = "scale",     [STMT_OVERLAP] = "overlap",
        [STMT_JOIN] = "join",         [STMT_DEPEND] = "depend",   [STMT_NEXT] = "next"};
    sb_printf(sb, "%s: ", *k->name ? k->name : "a kernel");
    if (!s->stmt) {
        sb_printf(sb, "the work items of loop nest %d", s->tile);
        return;
    }
    bool known = (size_t)s->stmt->kind < sizeof word / sizeof *word && word[s->stmt->kind];
    Node *n = s->stmt->node;
    sb_printf(sb, "statement %d of loop nest %d (%s", s->number, s->tile,
              known ? word[s->stmt->kind] : "unknown");
    if (n && n->op != OP_RANGE)
        sb_printf(sb, ", %s %s", op_info[n->op].text, dtype_info[n->dtype].name);
    if (n && (n->op == OP_LOAD || n->op == OP_STORE))
        sb_printf(sb, " a%lld", (long long)n->src[0]->arg.i);
    sb_puts(sb, ")");
}

void code_fault(Build *q, const char *format, ...)
{
    if (q->c->fault)
        return;
    StrBuf sb = {0};
    va_list ap;
    linear_tell(&sb, q->lk->k, &q->c->place[q->stmt]);
    sb_puts(&sb, ": ");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    q->c->fault = sb_take(&sb, q->a);
}
