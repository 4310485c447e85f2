/* kernels.c - the kernels of a plan, equal ones once, and candidates for how they are computed. */
#include <string.h>

#include "choose.h"
#include "tune.h"

const char *const verdict_name[] = {"untimed", "right", "wrong", "crashed", "hung", "refused"};

/* ---- candidates ------------------------------------------------------------------------------ */

/* "VECTOR i0 16; UPCAST i2 8; arg 3 split(0,32) permute(0,2,1)" */
static const char *text_of(TuneKernel *k, const Candidate *c)
{
    StrBuf sb = {0};
    for (int i = 0; i < c->nopt; i++) {
        sb_puts(&sb, i ? "; " : "");
        opt_print(&sb, &c->opts[i]);
    }
    for (int i = 0; c->layout && i < k->naive->narg; i++)
        if (c->layout[i]) {
            sb_printf(&sb, "%sarg %d", sb.len ? "; " : "", i);
            layout_print(&sb, c->layout[i]);
        }
    return sb_take(&sb, k->a);
}

static void set_layouts(const TuneKernel *k, Kernel *to, const Layout *const *layout)
{
    for (int i = 0; i < to->narg; i++)
        to->args[i].layout = layout && layout[i] ? *layout[i] : k->naive->args[i].layout;
}

static Kernel *with_opts(const TuneKernel *k, const Candidate *c)
{
    Kernel *copy = kernel_copy(k->naive);
    set_layouts(k, copy, c ? c->layout : NULL);
    for (int i = 0; c && i < c->nopt; i++)
        vec_push(copy->c->arena, copy->opts, copy->nopt, opt_copy(copy->c->arena, &c->opts[i]));
    return copy;
}

Kernel *candidate_kernel(const TuneKernel *k, const Candidate *c)
{
    Kernel *copy = with_opts(k, c);
    copy->scratch = kernel_scratch(copy);
    return copy;
}

/* With the loops that clear halos, which the nest is without, there are no more than a nest has. */
static bool has_room(const TuneKernel *k, const Candidate *c)
{
    if (k->naive->naxis == k->loops->naxis)
        return true;
    Kernel *whole = with_opts(k, c);
    const bool has = kernel_has_room(whole);
    ingot_context_free(whole->c);
    return has;
}

static uint64_t source_hash(const TuneKernel *k, const Kernel *kernel)
{
    StrBuf sb = {0};
    render_kernel(&sb, k->target, kernel, "k");
    uint64_t h = hash_bytes(7, sb.data, sb.len);
    sb_free(&sb);
    return h ? h : 1;
}

/* Layouts of weights that follow the loops, where they are others than the kernel's. */
static const Layout **follow(TuneKernel *k, const Nest *n)
{
    const Layout **layout = NULL;
    for (int i = 0; i < k->naive->narg; i++) {
        Layout *l = NEW(k->a, Layout);
        if (!k->follows[i] || !weight_layout(n, i, l) || layout_equal(l, &k->naive->args[i].layout))
            continue;
        layout = layout ? layout : NEWN(k->a, const Layout *, k->naive->narg);
        layout[i] = l;
    }
    return layout;
}

/* Of a nest that has all of its opts. */
static Candidate *finish(TuneKernel *k, Nest *n, const Layout **layout)
{
    Candidate *c = NEW(k->a, Candidate);
    bool good = tiling_of(n, &c->tiling);
    for (int i = 0; i < n->nopt; i++)
        vec_push(k->a, c->opts, c->nopt, opt_copy(k->a, &n->opts[i]));
    c->layout = layout;
    set_layouts(k, n->k, layout);
    good = good && !nest_check(n);
    set_layouts(k, n->k, NULL);
    if (!good)
        return NULL;
    c->text = text_of(k, c);
    return has_room(k, c) ? c : NULL;
}

Candidate *candidate_of(TuneKernel *k, const Tiling *t)
{
    Nest *n = tiling_apply(k->base, t);
    Candidate *c = n ? finish(k, n, follow(k, n)) : NULL;
    nest_free(n);
    return c;
}

const Estimate *candidate_estimate(const TuneKernel *k, Candidate *c)
{
    if (!c->estimate.statements) {
        Kernel *copy = candidate_kernel(k, c);
        c->estimate = cost_nest(copy, k->target);
        ingot_context_free(copy->c);
    }
    return &c->estimate;
}

uint64_t candidate_source(TuneKernel *k, Candidate *c)
{
    if (!c->source) {
        Kernel *copy = candidate_kernel(k, c);
        c->source = source_hash(k, copy);
        ingot_context_free(copy->c);
        if (!map_get(&k->by_source, c->source))
            map_put(&k->by_source, c->source, c);
    }
    return c->source;
}

Candidate *candidate_first(TuneKernel *k, Candidate *c)
{
    return map_get(&k->by_source, candidate_source(k, c));
}

Candidate *candidate_add(TuneKernel *k, Candidate *c)
{
    uint64_t key = hash_bytes(5, c->text, strlen(c->text));
    Candidate *there = map_get(&k->by_text, key);
    if (there)
        return there;
    map_put(&k->by_text, key, c);
    vec_push(k->a, k->candidate, k->n, c);
    return c;
}

/* ---- from text ------------------------------------------------------------------------------- */

static bool read_layout(const char *text, Layout *l)
{
    char word[96];
    int used;
    *l = (Layout){0};
    for (; sscanf(text, " %95s%n", word, &used) == 1; text += used)
        if (strcmp(word, "dense") != 0 &&
            (l->n == (int)(sizeof l->op / sizeof *l->op) || !sched_layout_op(word, &l->op[l->n++])))
            return false;
    return true;
}

/* One part between semicolons. */
static bool read_part(TuneKernel *k, Nest *n, char *part, const Layout **layout)
{
    int arg, used = 0;
    if (sscanf(part, "arg %d%n", &arg, &used) == 1 && used) {
        Layout *l = NEW(k->a, Layout);
        if (arg < 0 || arg >= k->naive->narg || !k->follows[arg] || !read_layout(part + used, l))
            return false;
        layout[arg] = l;
        return true;
    }
    Opt o;
    return opt_read(k->a, part, &o) && !opt_apply(n, &o);
}

Candidate *candidate_read(TuneKernel *k, const char *text)
{
    Nest *n = nest_clone(k->base);
    const Layout **layout = NEWN(k->a, const Layout *, k->naive->narg + 1);
    bool good = true, any = false;
    for (char *at = arena_strdup(k->a, text); *at && good;) {
        size_t length = strcspn(at, ";(");
        if (at[length] == '(') /* TC unit (a; b; c) */
            length = strcspn(at, ")") + strcspn(at + strcspn(at, ")"), ";");
        bool more = at[length] != 0;
        at[length] = 0;
        good = read_part(k, n, at, layout);
        at += length + more;
        at += strspn(at, " ");
    }
    for (int i = 0; i < k->naive->narg; i++)
        any |= layout[i] != NULL;
    Candidate *c = good ? finish(k, n, any ? layout : NULL) : NULL;
    nest_free(n);
    return c;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Without what clears halos, which has loops that no opt knows. */
static Kernel *loops_of(const Kernel *k)
{
    Kernel *copy = kernel_copy(k);
    Node *end = copy->sink->src[0];
    copy->sink = node_make(copy->c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
    int n = 0;
    for (int i = 0; i < copy->naxis; i++)
        if (*copy->axes[i].name != 'h')
            copy->axes[n++] = copy->axes[i];
    copy->naxis = n;
    return copy;
}

/* Weights whose layout is the one that the loops of the heuristic's opts ask for. */
static void find_followers(TuneKernel *k, const Step *s)
{
    Arena *a = arena_new();
    View v = kernel_view(k->loops);
    Nest *n = nest_clone(k->base);
    for (int i = 0; i < k->candidate[0]->nopt; i++)
        (void)opt_apply(n, &k->candidate[0]->opts[i]);
    for (int i = 0; i < k->naive->narg; i++) {
        int uses = 0;
        Layout l;
        for (int j = 0; j < v.nload; j++)
            uses += v.load[j]->src[0]->arg.i == i;
        k->follows[i] = s->bufs[i]->kind == BUF_WEIGHT && uses == 1 && s->choice->arg[i].owned &&
                        k->naive->args[i].layout.n && weight_layout(n, i, &l) &&
                        layout_equal(&l, &k->naive->args[i].layout);
    }
    nest_free(n);
    arena_free(a);
}

static bool can_be_tuned(const Step *s)
{
    const Kernel *k = s->kernel;
    bool good = s->kind == STEP_KERNEL && !k->check && !k->serial && s->choice &&
                s->choice->narg == k->narg;
    for (int i = 0; i < k->narg && good; i++)
        good = k->args[i].dtype != INGOT_STRING && !(k->args[i].read && k->args[i].written);
    return good;
}

static TuneKernel *kernel_new(Tuning *t, const Step *s)
{
    TuneKernel *k = NEW(t->a, TuneKernel);
    k->a = t->a;
    k->target = t->target;
    k->naive = kernel_copy(s->kernel);
    k->naive->nopt = 0;
    k->naive->scratch = 0;
    k->key[0] = kernel_hash(k->naive, 1);
    k->key[1] = kernel_hash(k->naive, 2);
    snprintf(k->hash, sizeof k->hash, "%016llx%016llx", (unsigned long long)k->key[0],
             (unsigned long long)k->key[1]);
    k->loops = loops_of(k->naive);
    k->base = nest_new(k->loops, t->target);
    k->follows = NEWN(t->a, bool, k->naive->narg + 1);
    Nest *n = nest_clone(k->base);
    bool good = true;
    for (int i = 0; i < s->kernel->nopt && good; i++)
        good = !opt_apply(n, &s->kernel->opts[i]);
    Candidate *c = good ? finish(k, n, NULL) : NULL;
    nest_free(n);
    if (!c)
        return NULL;
    (void)candidate_add(k, c);
    find_followers(k, s);
    return k;
}

static void add_block(Tuning *t, Map *known, const Block *b)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kernel && can_be_tuned(s)) {
            TuneKernel *k = map_get(known, s->kernel->hash);
            if (!k) {
                k = kernel_new(t, s);
                if (k) {
                    map_put(known, s->kernel->hash, k);
                    vec_push(t->a, t->kernel, t->n, k);
                }
            }
            if (k)
                vec_push(t->a, k->step, k->nstep, s);
        }
        add_block(t, known, &s->body);
        add_block(t, known, &s->other);
    }
}

void tune_kernels(Tuning *t, Plan *p, const Target *target, const char *values)
{
    Map known = {0};
    *t = (Tuning){.p = p, .a = arena_new(), .target = target, .values = values};
    t->arena = p->arena_bytes;
    t->span = p->arena_bytes + p->weights_bytes;
    add_block(t, &known, &p->main);
    map_free(&known);
}

void tune_free(Tuning *t)
{
    for (int i = 0; i < t->n; i++) {
        nest_free(t->kernel[i]->base);
        map_free(&t->kernel[i]->by_text);
        map_free(&t->kernel[i]->by_source);
        ingot_context_free(t->kernel[i]->loops->c);
        ingot_context_free(t->kernel[i]->naive->c);
    }
    if (t->a)
        arena_free(t->a);
}
