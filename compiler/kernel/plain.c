/* plain.c - why a kernel computes one element after the other, for who reads what `ingot compile`
 * prints. */
#include <string.h>

#include "kernel.h"

bool kernel_is_plain(const Kernel *k)
{
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind == OPT_VECTOR || k->opts[i].kind == OPT_DOT ||
            k->opts[i].kind == OPT_TC)
            return false;
    return true;
}

/* What has no form in lanes, or NULL. */
static const char *without_lanes(Arena *a, const Kernel *k, bool *from_data)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    bool *data = NEWN(a, bool, k->c->nnode); /* an index that is made of what is loaded */
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        for (uint32_t s = 0; s < t->nsrc; s++)
            data[t->id] |= t->src[s]->op == OP_LOAD || data[t->src[s]->id];
        for (uint32_t s = 2; t->op == OP_LOAD && s < t->nsrc; s++)
            *from_data |= data[t->src[s]->id];
        if (t->op == OP_LOAD && t->dtype != INGOT_BOOL && !lane_type(t->dtype))
            return arena_printf(a, "there are no vectors of %s", dtype_info[t->dtype].name);
        bool value = op_is_alu(t->op) || t->op == OP_REDUCE || t->op == OP_SCAN;
        if (value && t->dtype != INGOT_INDEX && t->dtype != INGOT_BOOL && !lane_op(t))
            return arena_printf(a, "%s of %s has no vector form", op_info[t->op].text,
                                dtype_info[t->dtype].name);
    }
    return NULL;
}

/* The last line of what the heuristic said: of the axis that it tried last. */
static const char *last_refusal(Arena *a, const Kernel *k)
{
    const char *said = k->choice ? k->choice->tried : NULL, *last = NULL;
    for (const char *at = said; (at = at ? strstr(at, "no lanes along ") : NULL); at++)
        last = at;
    return last ? arena_printf(a, "%.*s", (int)strcspn(last, "\n"), last) : NULL;
}

const char *plain_reason(Arena *a, const Kernel *k)
{
    bool from_data = false, scanned = false, small = true;
    const char *why = without_lanes(a, k, &from_data), *said = last_refusal(a, k);
    for (int i = 0; i < k->naxis; i++) {
        scanned |= k->axes[i].scanned;
        small &= k->axes[i].range->src[0]->hi < 4;
    }
    return k->serial   ? "its stores may collide, so they run in order"
           : why       ? why
           : small     ? "none of its axes has four elements"
           : said      ? said
           : from_data ? "the data decide where it reads"
           : scanned   ? "each element of a running sum needs the one before"
                       : "what it reads or writes does not lie side by side";
}
