/* audit_calls.c - the graph of calls: recursion, depth, and the way that takes most stack.
 *
 * A call through a pointer may reach every function whose address is taken with that type.
 * config.parallel_for is the caller's; it calls the tasks that it is given, so a function that
 * takes an address may reach that function too. */
#include <string.h>

#include "audit.h"

typedef struct {
    Function *f;
    int edge, taken; /* the next edge; of one through a pointer, the next candidate */
    int64_t most;
} CallFrame;

enum { NEW_ONE, OPEN, DONE };

/* Functions whose address is taken somewhere. */
typedef struct {
    Function **f;
    const char **type;
    int n;
} Taken;

static Taken taken_functions(const Audit *a)
{
    Taken t = {0};
    int ntype = 0;
    for (int i = 0; i < a->nfunction; i++)
        for (int k = 0; k < a->function[i]->nedge; k++) {
            const Edge *e = &a->function[i]->edge[k];
            Function *f = e->kind == EDGE_ADDRESS ? function_by_key(a, e->to) : NULL;
            if (!f)
                continue;
            vec_push(a->a, t.f, t.n, f);
            vec_push(a->a, t.type, ntype, e->type);
        }
    return t;
}

/* The driver is a caller of the model like any other: what it hands over is not the model's. */
static bool within(const Audit *a, const Function *from, const Function *to)
{
    return a->file[from->file].part == PART_HOST || a->file[to->file].part != PART_HOST;
}

/* The next function that may be called; NULL: no more. */
static Function *next_callee(const Audit *a, const Taken *t, CallFrame *s, const Edge **by)
{
    while (s->edge < s->f->nedge) {
        const Edge *e = *by = &s->f->edge[s->edge];
        if (e->kind != EDGE_POINTER) {
            s->edge++;
            Function *f = function_by_key(a, e->to);
            if (f && within(a, s->f, f))
                return f;
            continue;
        }
        while (s->taken < t->n) {
            int i = s->taken++;
            if (!strcmp(t->type[i], e->to) && within(a, s->f, t->f[i]))
                return t->f[i];
        }
        s->edge++;
        s->taken = 0;
    }
    return NULL;
}

static int index_of(const Audit *a, const Function *f)
{
    for (int i = 0; i < a->nfunction; i++)
        if (a->function[i] == f)
            return i;
    return -1;
}

static void returned(const Audit *a, CallFrame *s, const Function *callee)
{
    if (callee->depth + 1 > s->f->depth)
        s->f->depth = callee->depth + 1;
    if (callee->stack > s->most) {
        s->most = callee->stack;
        s->f->deepest = index_of(a, callee);
    }
}

void graph_judge(Audit *a)
{
    Taken t = taken_functions(a);
    CallFrame *stack = NEWN(a->a, CallFrame, a->nfunction + 1);
    Map state = {
        0}; /* by key: a function's own address once it is open, the table's once it is done */
    for (int i = 0; i < a->nfunction; i++) {
        int n = 0;
        if (a->function[i]->depth)
            continue;
        a->function[i]->depth = 1;
        map_put(&state, (uint64_t)(uintptr_t)a->function[i], &stack[0]);
        stack[n++] = (CallFrame){.f = a->function[i]};
        while (n) {
            CallFrame *s = &stack[n - 1];
            const Edge *e;
            Function *callee = next_callee(a, &t, s, &e);
            if (!callee) {
                s->f->stack = s->f->frame + s->most;
                map_put(&state, (uint64_t)(uintptr_t)s->f, a);
                if (--n)
                    returned(a, &stack[n - 1], s->f);
                continue;
            }
            if (!callee->depth) {
                callee->depth = 1;
                map_put(&state, (uint64_t)(uintptr_t)callee, &stack[0]);
                stack[n++] = (CallFrame){.f = callee};
            } else if (map_get(&state, (uint64_t)(uintptr_t)callee) == a) {
                returned(a, s, callee);
            } else if (!callee->recursive) {
                callee->recursive = true;
                finding_add(a, RULE_recursion, s->f->file, e->line, e->column,
                            "'%s' may call itself%s%s%s", callee->name,
                            s->f == callee ? "" : " by way of '", s->f == callee ? "" : s->f->name,
                            s->f == callee ? "" : "'");
            }
        }
    }
    map_free(&state);
}
