/* alternatives.c - decisions about values that were close: what could as well be stored or
 * recomputed, merged or apart.
 *
 * Both ways were estimated when it was decided (fusion.c), and an estimate is only that: where
 * neither way takes more than some times the other's cycles, a search tries both.  Each comes with
 * the line of a .sched file that makes it the other way. */
#include "decisions.h"

static bool is_close(const Fusion *f, double factor)
{
    return f->apart > 0 && f->together > 0 && f->together <= factor * f->apart &&
           f->apart <= factor * f->together;
}

static const char *line_of(Arena *a, const Plan *p, Node *n, const ValueChoice *other)
{
    StrBuf sb = {0};
    value_print(&sb, p, n, other);
    return sb_take(&sb, a);
}

static const struct {
    const char *yes, *no;
} stores = {"stored", "recomputed"},
  merges = {"merged with another kernel", "in a kernel of its own"};

int plan_alternatives(Arena *a, const Plan *p, double factor, Alternative **out)
{
    Map seen = {0};
    int n = 0, nnode = 0;
    Node *const *node = p->values ? values_nodes(p, &nnode) : NULL;
    *out = NULL;
    for (int i = 0; i < nnode; i++) {
        const uint64_t key = value_key(p, node[i]);
        const ValueChoice *c = value_decided(p, node[i]);
        if (!key || !c || !c->stored || c->variant || map_get(&seen, key))
            continue;
        map_put(&seen, key, (void *)(uintptr_t)c);
        Alternative one = {.key = key, .origin = node_origin(p->c, node[i])};
        if (is_close(&c->stores, factor)) {
            const bool is = c->stored == YES;
            one.is = is ? stores.yes : stores.no;
            one.then = is ? stores.no : stores.yes;
            one.cost = c->stores;
            one.line = line_of(a, p, node[i], &(ValueChoice){.stored = is ? NO : YES});
            vec_push(a, *out, n, one);
        }
        if (c->beside && is_close(&c->merges, factor)) {
            const bool is = c->merged == YES;
            one.is = is ? merges.yes : merges.no;
            one.then = is ? merges.no : merges.yes;
            one.cost = c->merges;
            one.line = line_of(a, p, node[i],
                               &(ValueChoice){.merged = is ? NO : YES, .with = is ? 0 : c->beside});
            vec_push(a, *out, n, one);
        }
    }
    map_free(&seen);
    return n;
}
