/* function.c - several functions of one model over the same states.
 *
 * A context has the inputs, outputs, next values and requirements of one function at a time, the
 * selected one; those of the others are put aside.  So whatever reads a graph (interpreter,
 * rewrites, scheduler, reports) sees a model of one function, and states are all that functions
 * have in common. */
#include <string.h>

#include "ir.h"

static void put_aside(Context *c, ModelFunction *f)
{
    f->inputs = c->inputs;
    f->ninput = c->ninput;
    f->outputs = c->outputs;
    f->noutput = c->noutput;
    f->bound = c->bound;
    f->input_groups = c->input_groups;
    f->ninput_group = c->ninput_group;
    f->output_groups = c->output_groups;
    f->noutput_group = c->noutput_group;
    f->require = c->require;
    f->nstate = c->nstate;
    f->next = NEWN(c->arena, Node *, c->nstate + 1);
    for (int i = 0; i < c->nstate; i++)
        f->next[i] = c->states[i].next;
    f->nvar = c->nvar;
    f->length = NEWN(c->arena, Node *, c->nvar + 1);
    f->setter = NEWN(c->arena, Node *, c->nvar + 1);
    for (int i = 0; i < c->nvar; i++) {
        f->length[i] = c->vars[i].next;
        f->setter[i] = c->vars[i].setter;
    }
}

static void bring_back(Context *c, const ModelFunction *f)
{
    c->inputs = f->inputs;
    c->ninput = f->ninput;
    c->outputs = f->outputs;
    c->noutput = f->noutput;
    c->bound = f->bound;
    c->input_groups = f->input_groups;
    c->ninput_group = f->ninput_group;
    c->output_groups = f->output_groups;
    c->noutput_group = f->noutput_group;
    c->require = f->require;
    for (int i = 0; i < c->nstate; i++)
        c->states[i].next = i < f->nstate ? f->next[i] : NULL;
    for (int i = 0; i < c->nvar; i++) {
        c->vars[i].next = i < f->nvar ? f->length[i] : NULL;
        c->vars[i].setter = i < f->nvar ? f->setter[i] : NULL;
    }
}

void function_select(Context *c, int i)
{
    if (!c->nfunction || i == c->function)
        return;
    put_aside(c, &c->functions[c->function]);
    bring_back(c, &c->functions[i]);
    c->function = i;
}

void function_begin(Context *c, const char *name)
{
    if (!c->nfunction) {
        ModelFunction first = {.name = "run"};
        vec_push(c->arena, c->functions, c->nfunction, first);
    }
    ModelFunction next = {.name = arena_strdup(c->arena, name)};
    vec_push(c->arena, c->functions, c->nfunction, next);
    function_select(c, c->nfunction - 1);
}

const char *function_name(const Context *c)
{
    return c->nfunction ? c->functions[c->function].name : "run";
}

const char *input_name(const Context *c, const Node *input)
{
    for (int i = 0; i < c->ninput; i++)
        if (c->inputs[i].node == input)
            return c->inputs[i].name;
    return NULL;
}

int64_t state_room_along(const Context *c, int state, int axis)
{
    const StateTensor *s = &c->states[state];
    int64_t room = s->room ? s->room[axis] : s->node->shape[axis]->hi;
    for (int i = 0; i < c->nfunction || i == 0; i++) {
        const ModelFunction *f = c->nfunction && i != c->function ? &c->functions[i] : NULL;
        const Node *next = !f ? s->next : state < f->nstate ? f->next[state] : NULL;
        if (next && next->shape[axis]->hi > room)
            room = next->shape[axis]->hi;
    }
    return room;
}
