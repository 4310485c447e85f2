/* kernel_keys.c - by what key a file names a kernel: its text, which of the steps with that text it
 * is, and the value that it stores. */
#include "decisions.h"
#include "kernels.h"

/* Its loops and arguments, whatever it computes in them. */
static uint32_t form_of(const Kernel *k)
{
    StrBuf text = {0};
    for (int i = 0; i < k->naxis; i++) {
        sb_puts(&text, k->axes[i].reduced ? "+" : " ");
        sb_puts(&text, k->axes[i].staged ? "p" : k->axes[i].scanned ? "n" : "");
        dim_key(&text, k->axes[i].range->src[0]);
    }
    for (int i = 0; i < k->narg; i++) {
        sb_puts(&text, i && !k->args[i - 1].rank ? "," : "");
        sb_number(&text, k->args[i].dtype);
        sb_puts(&text, k->args[i].read ? "1" : "0");
        sb_puts(&text, k->args[i].written ? "1" : "0");
        for (int j = 0; j < k->args[i].rank; j++)
            dim_key(&text, k->args[i].dims[j]);
    }
    uint32_t form = (uint32_t)hash_bytes(k->serial, text.data, text.len);
    sb_free(&text);
    return form;
}

/* As it is in the first iteration of a loop that the compiler made: loops that are alike have one
 * key. */
static void key_text(StrBuf *text, Arena *a, const Kernel *k)
{
    Node *counter = NULL;
    for (int i = 0; i < k->nvar; i++)
        if (k->c->vars[k->vars[i]].kind == VAR_PART)
            counter = k->c->vars[k->vars[i]].node;
    if (!counter) {
        kernel_text(text, a, k, false, NULL);
        return;
    }
    Kernel *first = kernel_copy(k);
    Node *zero = idx(first->c, 0), *from = import_index(first->c, a, counter);
    first->sink = substitute(first->c, first->sink, 1, &from, &zero);
    kernel_text(text, a, first, false, NULL);
    ingot_context_free(first->c);
}

/* count: of the steps before that are the same kernel, by key. */
static void key_step(Plan *p, Map *count, const Step *s)
{
    Arena *scratch = arena_new();
    StrBuf text = {0};
    key_text(&text, scratch, s->kernel);
    Choice *c = s->kernel->choice = NEW(p->arena, Choice);
    c->key = hash_bytes(s->kernel->serial, text.data, text.len) | 1;
    c->narg = s->kernel->narg;
    c->arg = NEWN(p->arena, ArgChoice, c->narg);
    c->form = form_of(s->kernel);
    c->at = s->value ? value_key(p, s->value) : 0;
    int match = s->value ? value_match(p, s->value) : -1;
    c->near = match < 0 ? 0 : value_given_key(p, match);
    c->nth = (int)(uintptr_t)map_get(count, c->key);
    map_put(count, c->key, (void *)(uintptr_t)(c->nth + 1));
    sb_free(&text);
    arena_free(scratch);
}

void kernel_keys(Plan *p)
{
    Arena *a = arena_new();
    Map count = {0};
    int n;
    Step *const *step = kernel_steps(p, a, &n);
    for (int i = 0; i < n; i++)
        key_step(p, &count, step[i]);
    for (int i = 0; i < n; i++) {
        Choice *c = step[i]->kernel->choice;
        c->of = (int)(uintptr_t)map_get(&count, c->key);
    }
    map_free(&count);
    arena_free(a);
}
