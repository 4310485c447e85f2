/* inspect_steps.c - the steps of a plan, its tensors and its notes as JSON. */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

const char *step_kind(const Step *s)
{
    static const char *const kinds[] = {[STEP_KERNEL] = "generated", [STEP_CALL] = "library",
                                        [STEP_COPY] = "copy",        [STEP_IF] = "if",
                                        [STEP_LOOP] = "loop",        [STEP_CHECK] = "check",
                                        [STEP_INDEX] = "index"};
    return kinds[s->kind];
}

int64_t step_flops(const Step *s)
{
    return s->kind == STEP_KERNEL ? s->kernel->flops : 0;
}

int64_t step_bytes(const Step *s)
{
    int64_t bytes = s->kind == STEP_KERNEL ? s->kernel->bytes : 0;
    if (s->kind == STEP_COPY)
        bytes = sat_mul(2 * element_bytes(s->bufs[0]->dtype), s->elements->hi);
    for (int j = 0; s->kind == STEP_CALL && j < s->nbuf; j++)
        bytes = sat_add(bytes, s->bufs[j]->bytes);
    return bytes;
}

static void count_rounds(const Block *b, int64_t rounds, int64_t *of)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        const bool repeats = s->kind == STEP_LOOP && s->trip;
        of[s->number] = rounds;
        count_rounds(&s->body, repeats ? sat_mul(rounds, s->trip->hi) : rounds, of);
        count_rounds(&s->other, rounds, of);
    }
}

int64_t *plan_rounds(const Plan *p, Arena *a)
{
    int64_t *rounds = NEWN(a, int64_t, p->nstep + 1);
    count_rounds(&p->main, 1, rounds);
    return rounds;
}

static void number_steps(const Block *b, Step **steps)
{
    for (int i = 0; i < b->n; i++) {
        steps[b->step[i]->number] = b->step[i];
        number_steps(&b->step[i]->body, steps);
        number_steps(&b->step[i]->other, steps);
    }
}

Step **plan_steps(const Plan *p, Arena *a)
{
    Step **steps = NEWN(a, Step *, p->nstep + 1);
    number_steps(&p->main, steps);
    return steps;
}

bool step_reads(const Step *s, int i)
{
    return s->kind == STEP_KERNEL || s->kind == STEP_INDEX ? s->kernel->args[i].read
           : s->kind == STEP_CALL                          ? i < s->call->n_in
                                                           : i == 1;
}

bool step_writes(const Step *s, int i)
{
    return s->kind == STEP_KERNEL  ? s->kernel->args[i].written
           : s->kind == STEP_INDEX ? false
           : s->kind == STEP_CALL  ? i >= s->call->n_in
                                   : i == 0;
}

/* ---- small pieces ------------------------------------------------------------------------- */

static void print_ids(StrBuf *sb, const char *name, const Step *s, bool (*which)(const Step *, int))
{
    const char *comma = "";
    sb_printf(sb, ", \"%s\": [", name);
    for (int i = 0; i < s->nbuf; i++)
        if (!which || which(s, i)) {
            sb_printf(sb, "%s%d", comma, s->bufs[i]->id);
            comma = ", ";
        }
    sb_puts(sb, "]");
}

static void print_origin(StrBuf *sb, const Origin *o)
{
    sb_puts(sb, "{\"node\": ");
    json_string(sb, o->node);
    sb_puts(sb, ", \"op\": ");
    json_string(sb, o->op);
    sb_puts(sb, "}");
}

static void print_json_dims(StrBuf *sb, const Context *c, int rank, Node *const *dims)
{
    sb_puts(sb, ", \"dims\": [");
    for (int d = 0; d < rank; d++) {
        StrBuf dim = {0};
        sb_puts(sb, d ? ", " : "");
        if (dims[d]->op == OP_CONST) {
            sb_printf(sb, "%lld", (long long)dims[d]->arg.i);
        } else {
            print_dim(&dim, c, dims[d]);
            json_string(sb, dim.data);
        }
        sb_free(&dim);
    }
    sb_puts(sb, "]");
}

static void print_layout(StrBuf *sb, const Layout *l)
{
    StrBuf text = {0};
    layout_print(&text, l);
    sb_puts(sb, ", \"layout\": ");
    json_string(sb, text.data + strspn(text.data, " "));
    sb_free(&text);
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* The names of the file's tensors that a constant is made of. */
static void print_names(StrBuf *sb, Node *root)
{
    Arena *a = arena_new();
    const char *comma = "";
    int n, found = 0;
    Node **order = graph_toposort(a, 1, &root, &n);
    sb_puts(sb, ", \"from\": [");
    for (int i = 0; i < n && found < 8; i++) {
        const Data *d = order[i]->op == OP_DATA ? order[i]->arg.ptr : NULL;
        if (!d || !d->name || !*d->name)
            continue;
        sb_puts(sb, comma);
        json_string(sb, d->name);
        comma = ", ";
        found++;
    }
    sb_puts(sb, "]");
    arena_free(a);
}

static void tensor(StrBuf *sb, const Inspection *x, const Buffer *b, int maker)
{
    static const char *const kinds[] = {"input", "output", "weight", "arena", "state", "local"};
    const Context *c = x->p->c;
    sb_printf(sb, "{\"id\": %d, \"kind\": \"%s\", \"name\": ", b->id, kinds[b->kind]);
    json_string(sb, b->name);
    sb_printf(sb, ", \"dtype\": \"%s\"", dtype_info[b->dtype].name);
    print_json_dims(sb, c, b->rank, b->dims);
    print_layout(sb, &b->layout);
    sb_printf(sb, ", \"bytes\": %lld, \"first\": %d, \"last\": %d, \"device\": %d",
              (long long)b->bytes, b->first, b->last, b->device);
    if (b->kind == BUF_ARENA || b->kind == BUF_STATE)
        sb_printf(sb, ", \"memory\": %d", b->memory);
    if (b->kind == BUF_ARENA || b->kind == BUF_STATE || b->kind == BUF_WEIGHT)
        sb_printf(sb, ", \"offset\": %lld", (long long)b->offset);
    if (b->base) {
        sb_printf(sb, ", \"base\": %d, \"at\": ", b->base->id);
        StrBuf at = {0};
        print_dim(&at, c, b->base_offset);
        json_string(sb, at.data);
        sb_free(&at);
    }
    if (b->kind == BUF_WEIGHT && b->node) {
        sb_printf(sb, ", \"folded\": %s", b->node->op == OP_DATA ? "false" : "true");
        print_names(sb, b->node);
    }
    if (maker >= 0)
        sb_printf(sb, ", \"step\": %d", maker);
    if (b->node)
        sb_printf(sb, ", \"node\": %u", b->node->id);
    if (b->node && c->origins[b->node->id]) {
        sb_puts(sb, ", \"source\": ");
        print_origin(sb, node_origin(c, b->node));
    }
    sb_puts(sb, "}");
}

static int by_place(const void *a, const void *b)
{
    const Buffer *x = *(Buffer *const *)a, *y = *(Buffer *const *)b;
    if (x->memory != y->memory)
        return x->memory - y->memory;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Bytes that two tensors share, one in place of the other, count once. */
int64_t plan_alive(const Plan *p, int step)
{
    Arena *a = arena_new();
    const Buffer **live = NEWN(a, const Buffer *, p->nbuffer + 1);
    int n = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_ARENA && !b->base && b->first <= step && step <= b->last)
            live[n++] = b;
    }
    qsort(live, (size_t)n, sizeof *live, by_place);
    int64_t sum = 0, top = 0;
    for (int i = 0; i < n; i++) {
        const int64_t end = live[i]->offset + live[i]->bytes;
        if (i == 0 || live[i]->memory != live[i - 1]->memory)
            top = 0;
        const int64_t from = live[i]->offset > top ? live[i]->offset : top;
        sum = sat_add(sum, end > from ? end - from : 0);
        top = end > top ? end : top;
    }
    arena_free(a);
    return sum;
}

void inspect_tensors(StrBuf *sb, const Inspection *x)
{
    const Plan *p = x->p;
    Arena *a = arena_new();
    Step **steps = plan_steps(p, a);
    int peak = 0;
    int64_t most = 0;
    for (int s = 0; s < p->nstep; s++) {
        const int64_t alive = plan_alive(p, s);
        peak = alive > most ? s : peak;
        most = alive > most ? alive : most;
    }
    int *maker = NEWN(a, int, p->nbuffer + 1);
    for (int i = 0; i < p->nbuffer; i++)
        maker[i] = -1;
    for (int s = p->nstep; s-- > 0;)
        for (int i = 0; i < steps[s]->nbuf; i++)
            if (step_writes(steps[s], i))
                maker[steps[s]->bufs[i]->id] = s;
    sb_printf(sb, "  \"peak\": {\"step\": %d, \"bytes\": %lld},\n  \"tensors\": [", peak,
              (long long)most);
    const char *comma = "\n    ";
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_LOCAL ||
            ((b->kind == BUF_WEIGHT || b->kind == BUF_ARENA) && b->last < b->first))
            continue;
        sb_puts(sb, comma);
        tensor(sb, x, b, maker[i]);
        comma = ",\n    ";
    }
    sb_puts(sb, "\n  ],\n");
    arena_free(a);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void form_and_layer(StrBuf *sb, const StepForms *f, const Step *s)
{
    const char *layer = step_layer(f, s);
    sb_puts(sb, ", \"form\": ");
    json_string(sb, step_form(f, s));
    if (layer) {
        sb_puts(sb, ", \"layer\": ");
        json_string(sb, layer);
    }
}

static void step(StrBuf *sb, const Inspection *x, const StepForms *forms, const Step *s,
                 int64_t rounds, int inside, bool other)
{
    const Kernel *k = s->kind == STEP_KERNEL ? s->kernel : NULL;
    int64_t bytes = sat_mul(rounds, step_bytes(s)), flops = sat_mul(rounds, step_flops(s));
    sb_printf(sb, "{\"step\": %d, \"kind\": \"%s\", \"name\": ", s->number, step_kind(s));
    json_string(sb, k ? k->name : s->name);
    sb_printf(sb, ", \"device\": %d", s->device);
    form_and_layer(sb, forms, s);
    if (inside >= 0)
        sb_printf(sb, ", \"inside\": \"%d\"%s, \"rounds\": %lld", inside,
                  other ? ", \"branch\": \"else\"" : "", (long long)rounds);
    sb_puts(sb, ", \"source\": [");
    for (int j = 0; j < s->norigin; j++) {
        sb_puts(sb, j ? ", " : "");
        print_origin(sb, s->origins[j]);
    }
    sb_puts(sb, "]");
    inspect_opts(sb, k);
    sb_printf(sb, ", \"flops\": %lld, \"bytes\": %lld", (long long)flops, (long long)bytes);
    print_ids(sb, "tensors", s, NULL);
    print_ids(sb, "reads", s, step_reads);
    print_ids(sb, "writes", s, step_writes);
    for (int i = 0; k && i < k->nscalar; i++)
        sb_printf(sb, i ? ", %.9g" : ", \"scalars\": [%.9g", s->scalars[i]);
    if (k && k->nscalar)
        sb_puts(sb, "]");
    if (s->scratch)
        sb_printf(sb, ", \"scratch\": %d", s->scratch->id);
    sb_puts(sb, ", \"nodes\": [");
    for (int i = 0; i < s->nvalue; i++)
        sb_printf(sb, i ? ", %u" : "%u", s->values[i]->id);
    sb_printf(sb, "], \"parts\": %d, \"roof_ms\": %.6g", k ? kernel_parts(k) : 0,
              (double)rounds *
                  times_roof_ms(&x->times, (double)step_flops(s), (double)step_bytes(s)));
    if (x->times.ms && x->times.ms[s->number] >= 0)
        sb_printf(sb, ", \"ms\": %.6g", x->times.ms[s->number]);
    sb_puts(sb, "}");
}

static void steps(StrBuf *sb, const Inspection *x, const StepForms *forms, const int64_t *rounds,
                  const Block *b, int inside, bool other, const char **comma)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_INDEX)
            continue; /* not in what is released */
        sb_puts(sb, *comma);
        *comma = ",\n    ";
        step(sb, x, forms, s, rounds[s->number], inside, other);
        steps(sb, x, forms, rounds, &s->body, s->number, false, comma);
        steps(sb, x, forms, rounds, &s->other, s->number, true, comma);
    }
}

void inspect_steps(StrBuf *sb, const Inspection *x)
{
    Arena *a = arena_new();
    const char *comma = "\n    ";
    const StepForms forms = step_forms(x->p, a);
    sb_puts(sb, "  \"steps\": [");
    steps(sb, x, &forms, plan_rounds(x->p, a), &x->p->main, -1, false, &comma);
    sb_puts(sb, "\n  ],\n");
    arena_free(a);
}

/* ---- notes ----------------------------------------------------------------------------------- */

void inspect_notes(StrBuf *sb, const Inspection *x)
{
    const Plan *p = x->p;
    sb_puts(sb, "  \"notes\": [");
    for (int i = 0; i < p->nnote; i++) {
        const Note *n = &p->notes[i];
        sb_printf(sb, "%s\n    {\"pass\": \"%s\", \"what\": \"%s\", \"why\": ", i ? "," : "",
                  n->pass, n->what);
        json_string(sb, n->why);
        if (n->node)
            sb_printf(sb, ", \"node\": %u", n->node->id);
        if (n->step)
            sb_printf(sb, ", \"step\": %d", n->step->number);
        if (n->buffer)
            sb_printf(sb, ", \"tensor\": %d", n->buffer->id);
        if (n->other)
            sb_printf(sb, ", \"of\": %d", n->other->id);
        if (n->operations >= 0)
            sb_printf(sb, ", \"operations\": %lld", (long long)n->operations);
        if (n->bytes >= 0)
            sb_printf(sb, ", \"bytes\": %lld", (long long)n->bytes);
        if (n->cost.together > 0 && !n->step)
            sb_printf(sb, ", \"stored_cycles\": %.4g, \"again_cycles\": %.4g", n->cost.apart,
                      n->cost.together);
        sb_puts(sb, "}");
    }
    sb_puts(sb, p->nnote ? "\n  ],\n" : "],\n");
}
