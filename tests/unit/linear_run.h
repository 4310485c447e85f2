/* linear_run.h - a kernel with opts, its statements and what they run on, for tests of the
 * interpreter of linear IR.  To be included behind cmocka.h. */
#ifndef LINEAR_RUN_H
#define LINEAR_RUN_H

#include <stdio.h>
#include <string.h>

#include "codegen/render/codegen.h"
#include "compiler/eval/eval.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/nest.h"
#include "compiler/simulate/plan_interp.h"
#include "runtime_min/igrt_num.h"
#include "targets/targets.h"

typedef struct {
    Context *c;
    Plan *p;
    Nest *nest;
    Lowered *lowered;
    Arena *a;
    LinearKernel *lk;
    LinearArg arg[8];
    LinearInterp m;
    bool ran;
    bool rounds; /* sums are not exact: the graph's interpreter would round them elsewhere */
    const Target *t;
} NestRun;

/* The nest of the one kernel of a model that has the output y, as it is planned for that target. */
static inline NestRun run_planned(Context *c, ingot_tensor *y, const Target *t, const Target *plan)
{
    NestRun r = {.c = c, .a = arena_new()};
    Target *own = NEW(r.a, Target);
    *own = *t;
    r.t = own;
    ingot_output(c, "y", y);
    r.p = schedule(c, 2, plan ? plan : own);
    assert_non_null(r.p);
    kernel_share(r.p);
    assert_int_equal(r.p->nkernel, 1);
    r.nest = nest_new(r.p->kernels[0], r.t);
    return r;
}

/* As it is planned for the target's kin of that name. */
static inline NestRun run_new(Context *c, ingot_tensor *y, const Target *t)
{
    return run_planned(c, y, t, target_find(t->name));
}

/* "VECTOR i1 8"; why not, or NULL. */
static inline const char *run_opt(Nest *n, const char *text)
{
    Opt o;
    if (!opt_read(n->arena, arena_printf(n->arena, "%.*s", (int)strcspn(text, ",\n"), text), &o))
        return "no opt";
    return opt_apply(n, &o);
}

/* It is refused in these words; NULL: it is done. */
static inline void refusal(Nest *n, const char *opt, const char *wanted)
{
    const char *why = run_opt(n, opt);
    if (!wanted ? why != NULL : !why || !strstr(why, wanted))
        fail_msg("%s: '%s' where '%s' was wanted", opt, why ? why : "done", wanted ? wanted : "");
}

/* Opts with a comma or the end of a line between them. */
static inline void run_opts(Nest *n, const char *opts)
{
    for (const char *at = opts; *at; at += strspn(at, ",\n ")) {
        const char *why = run_opt(n, at);
        if (why)
            fail_msg("%.*s: %s", (int)strcspn(at, ",\n"), at, why);
        at += strcspn(at, ",\n");
    }
}

/* An argument's elements in order: small integers, of which every sum is exact. */
static inline unsigned char *run_given(NestRun *r, const KernelArg *arg, int64_t n)
{
    const int64_t size = (int64_t)elem_bytes(arg->dtype);
    unsigned char *dense = arena_alloc(r->a, (size_t)(n * size));
    for (int64_t j = 0; j < n; j++) {
        int v = (int)(((uint32_t)j * 2654435761u >> 13) % 7) - 3;
        float f = (float)v;
        if (arg->dtype == INGOT_F32)
            memcpy(dense + j * size, &f, 4);
        else if (arg->dtype == INGOT_F16)
            memcpy(dense + j * size, &(uint16_t){igrt_f32_to_f16(f)}, 2);
        else if (arg->dtype == INGOT_BF16)
            memcpy(dense + j * size, (unsigned char *)&f + 2, 2);
        else
            dense[j * size] = (unsigned char)v;
    }
    return dense;
}

/* As many elements as these sizes have. */
static inline int64_t run_sizes(const KernelArg *arg, int64_t dims[INGOT_MAX_RANK])
{
    int64_t n = 1;
    for (int j = 0; j < arg->rank; j++)
        n *= dims[j] = arg->dims[j]->hi;
    return n;
}

/* A memory of this argument, which has these elements; NULL: none yet. */
static inline void run_lay(NestRun *r, int i, const unsigned char *dense)
{
    const KernelArg *arg = &r->lk->k->args[i];
    const int64_t size = (int64_t)elem_bytes(arg->dtype);
    const int64_t stored = layout_elements(&arg->layout, arg->rank, arg->dims);
    ShadowMemory *m = shadow_new(r->a, stored * size, (int)size);
    int64_t dims[INGOT_MAX_RANK];
    r->arg[i] = (LinearArg){.memory = m};
    if (!dense)
        return;
    run_sizes(arg, dims);
    layout_pack(&arg->layout, arg->rank, dims, (size_t)size, dense, m->bytes, NULL, NULL);
    shadow_given(m, 0, stored * size);
}

static inline void run_give(NestRun *r)
{
    const Kernel *k = r->lk->k;
    int64_t dims[INGOT_MAX_RANK];
    for (int i = 0; i < r->lk->narg; i++)
        run_lay(r, i,
                k->args[i].read ? run_given(r, &k->args[i], run_sizes(&k->args[i], dims)) : NULL);
}

/* Its opts are known: statements, and what they run on. */
static inline void run_lower(NestRun *r, bool gpu)
{
    if (nest_check(r->nest))
        fail_msg("%s", nest_check(r->nest));
    r->lowered = lower_nest(r->nest, gpu);
    r->lk = linear_kernel(r->a, r->lowered);
    run_give(r);
}

static inline void run_free(NestRun *r)
{
    lowered_free(r->lowered);
    nest_free(r->nest);
    plan_free(r->p);
    ingot_context_free(r->c);
    arena_free(r->a);
}

/* Whether the graph tells what the kernel's arguments hold: they are the model's, and dense. */
static inline bool run_is_told(const NestRun *r)
{
    const Kernel *k = r->lk->k;
    const Block *b = &r->p->main;
    bool told = b->n == 1 && b->step[0]->nbuf == r->lk->narg && !k->nvar && !k->nscalar;
    for (int i = 0; told && i < r->lk->narg; i++) {
        const KernelArg *arg = &k->args[i];
        const BufferKind kind = b->step[0]->bufs[i]->kind;
        int64_t dims[INGOT_MAX_RANK];
        told = (kind == BUF_INPUT && !arg->written) || (kind == BUF_OUTPUT && !arg->read);
        told &= run_sizes(arg, dims) == layout_elements(&arg->layout, arg->rank, arg->dims);
    }
    return told;
}

/* What the graph's interpreter says of what it writes. */
static inline void run_tell(NestRun *r)
{
    const Kernel *k = r->lk->k;
    Buffer *const *bufs = r->p->main.step[0]->bufs;
    Interp *ip = interp_new(r->p->c);
    int64_t dims[INGOT_MAX_RANK];
    for (int i = 0; i < r->lk->narg; i++)
        if (!k->args[i].written)
            interp_bind(ip, bufs[i]->node, run_given(r, &k->args[i], run_sizes(&k->args[i], dims)));
    for (int i = 0; i < r->lk->narg; i++)
        if (k->args[i].written) {
            const void *dense = interp_eval(ip, bufs[i]->node, dims);
            assert_non_null(dense);
            run_lay(r, i, dense);
        }
    interp_free(ip);
}

/* The kernel without opts is run as far as that takes no time; where it does not end until then,
 * the graph says what it would write, which the graph's interpreter knows a hundred times sooner.
 */
static inline void run_naive(NestRun *naive)
{
    enum { NO_TIME = 1 << 19 }; /* instructions */
    const bool told = !naive->rounds && run_is_told(naive);
    naive->m.most = told ? NO_TIME : 0;
    const bool ended = linear_run(&naive->m, naive->lk, naive->arg, NULL, NULL);
    if (!ended && (!told || naive->m.done < NO_TIME))
        fail_msg("the kernel without opts: %s", naive->m.fault);
    if (!ended)
        run_tell(naive);
    naive->ran = true;
}

/* Runs it, and the kernel without opts to compare with where it ends: "", or what is wrong. The
 * other is run once, and remains the caller's. */
static inline const char *run_beside(NestRun *r, NestRun *naive)
{
    static char fault[1024];
    *fault = 0;
    if (!linear_run(&r->m, r->lk, r->arg, NULL, NULL))
        memcpy(fault, r->m.fault, sizeof fault);
    else if (!naive->ran)
        run_naive(naive);
    for (int i = 0; i < r->lk->narg && !*fault; i++)
        if (r->lk->k->args[i].written)
            (void)linear_same(r->lk->k, i, &r->arg[i], &naive->arg[i], 0, fault);
    return fault;
}

static inline const char *run_wrong(NestRun *r, NestRun naive)
{
    const char *fault = run_beside(r, &naive);
    run_free(&naive);
    return fault;
}

/* How often something stands in the text of a kernel. */
typedef struct {
    const char *text;
    int n;
} Wanted;

/* Of a kernel with these opts: what is printed can be read again, the text has what is wanted, up
 * to one without text, and the values are those of the kernel without opts. */
static inline void run_expect_all(NestRun r, NestRun naive, const char *opts, const Wanted *wanted)
{
    StrBuf printed = {0}, text = {0};
    for (int i = 0; i < r.nest->nopt; i++) {
        opt_print(&printed, &r.nest->opts[i]);
        sb_puts(&printed, "\n");
    }
    assert_string_equal(printed.data, opts);
    const char *fault = run_wrong(&r, naive);
    if (*fault)
        fail_msg("%s", fault);
    Kernel *k = kernel_copy(r.p->kernels[0]); /* the nest's own has axes that opts made */
    for (int i = 0; i < k->narg; i++)
        k->args[i].layout = r.nest->k->args[i].layout;
    nest_keep(r.nest, k);
    k->scratch = kernel_scratch(k);
    render_kernel(&text, r.t, k, "k");
    for (; wanted->text; wanted++) {
        int count = 0;
        for (const char *at = text.data; (at = strstr(at, wanted->text)); at++)
            count++;
        if (count != wanted->n)
            fail_msg("%d of %s where %d were wanted:\n%s", count, wanted->text, wanted->n,
                     text.data);
    }
    ingot_context_free(k->c);
    sb_free(&printed);
    sb_free(&text);
    run_free(&r);
}

static inline void run_expect(NestRun r, NestRun naive, const char *opts, const char *product,
                              int products)
{
    run_expect_all(r, naive, opts, (const Wanted[]){{product, products}, {NULL, 0}});
}

#endif
