/* random_opts.c - kernels in their naive form and with random opts: the two are run by the
 * interpreter of linear IR, and are compared by C programs too.
 *
 *     random_opts --n CANDIDATES --seed S --every E --files F [--units] OUT
 *
 * Every candidate runs on the same data as its kernel without opts, parts in reverse order; what
 * differs, what is written by one of the two only, and every fault that the interpreter tells of is
 * printed as wrong.  One of E candidates is written to OUT/opts_0.c ... OUT/opts_<F-1>.c as well,
 * each a program that does the same with what a C compiler makes of them. The data are small
 * integers, so that sums are exact in any order and results are equal bit for bit (of a zero but
 * for its sign: a sum without a loop does not start from +0); kernels of functions that round (exp,
 * division, ...) are given a tolerance.  Opts come from opt_apply(): what it refuses is counted,
 * what it does must be right.  random_opts.h is what the programs share; random_opts.py builds and
 * runs them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/render/codegen.h"
#include "compiler/eval/interp.h"
#include "compiler/kernel/tc.h"
#include "compiler/simulate/linear_interp.h"
#include "random_models.h"
#include "targets/targets.h"

enum { MAX_KERNELS = 512, MAX_KERNEL_ARGS = 40, TRIES = 12, MAX_OPTS = 6 };

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct {
    Kernel *k;      /* naive */
    Opt *heuristic; /* its opts were these */
    int nheuristic;
    bool exact;
    int64_t var[64]; /* values of its run-time integers */
} OptsCase;

/* The kernels of a model, with layouts for the target or as they were declared. */
static int kernels_of(Context *c, const Target *t, OptsCase *out, int n, int most)
{
    bool decided = random_below(4) != 0;
    Plan *p = schedule(c, 2, t);
    if (!p)
        exit(1);
    if (decided) {
        copy_inputs(p, t);
        kernel_keys(p);
        choose_layouts(p, t);
        optimise(p, t);
    }
    kernel_share(p);
    for (int i = 0; i < p->nkernel && n < most; i++) {
        Kernel *k = p->kernels[i];
        OptsCase x = {.exact = kernel_is_exact(k)};
        x.k = kernel_copy(k);
        x.heuristic = x.k->opts;
        x.nheuristic = x.k->nopt;
        x.k->nopt = 0;
        for (int v = 0; v < k->nvar; v++) {
            const Var *var = &c->vars[k->vars[v]];
            x.var[v] = var->lo + (int64_t)random_below((uint32_t)(var->hi - var->lo + 1));
        }
        if (k->sink->nsrc < 40 && k->nvar < 64 && k->narg <= MAX_KERNEL_ARGS)
            out[n++] = x;
    }
    plan_free(p);
    return n;
}

/* ---- opts ------------------------------------------------------------------------------------ */

static int applied, refused;

static bool try(Nest *n, const Opt *o)
{
    bool good = !opt_apply(n, o);
    applied += good;
    refused += !good;
    return good;
}

/* Often one of those that were made last, so that parts are taken apart in turn. */
static const char *random_axis(const Nest *n)
{
    uint32_t all = (uint32_t)n->naxis, late = random_below(2) && all > 3 ? 3 : all;
    for (int i = 0; i < 8; i++) {
        const NestAxis *x = &n->axis[all - 1 - random_below(late)];
        if (x->split < 0 && x->form == AXIS_LOOP && !x->remainder && x->extent != 1)
            return x->name;
    }
    return n->axis[random_below(all)].name;
}

static void random_order(Nest *n)
{
    Opt o = {.kind = OPT_ORDER, .axis = ""};
    bool *named = NEWN(n->arena, bool, n->naxis);
    for (int i = 0; i < 3 * n->naxis; i++) {
        int x = (int)random_below((uint32_t)n->naxis);
        const NestAxis *axis = &n->axis[x];
        if (named[x] || axis->split >= 0 || axis->form != AXIS_LOOP || axis->remainder)
            continue;
        named[x] = true;
        o.axis = arena_printf(n->arena, *o.axis ? "%s %s" : "%s%s", o.axis, axis->name);
    }
    (void)try(n, &o);
}

static void random_opt(Nest *n)
{
    static const int64_t amount[] = {2, 3, 4, 5, 6, 7, 8, 16, 20, 24};
    static const OptKind kind[] = {OPT_SPLIT,  OPT_OVERLAP, OPT_UPCAST, OPT_UPCAST, OPT_UNROLL,
                                   OPT_VECTOR, OPT_VECTOR,  OPT_DOT,    OPT_ORDER,  OPT_THREAD};
    Opt o = {.kind = kind[random_below(sizeof kind / sizeof *kind)],
             .axis = random_axis(n),
             .amount = amount[random_below(sizeof amount / sizeof *amount)]};
    if (o.kind == OPT_VECTOR)
        o.amount = INT64_C(4) << random_below(3);
    if (o.kind == OPT_DOT)
        o.amount = random_below(2) ? 4 : 2;
    if (o.kind == OPT_THREAD && random_below(2)) /* inside of other loops */
        o.axis =
            arena_printf(n->arena, "%s..%s", random_below(2) ? o.axis : random_axis(n), o.axis);
    if (o.kind == OPT_ORDER)
        random_order(n);
    else if ((o.kind != OPT_THREAD || random_below(3) == 0) && try(n, &o) && o.kind == OPT_SPLIT &&
             random_below(2)) {
        Opt lanes = {.kind = OPT_VECTOR,
                     .axis = n->axis[n->split[n->nsplit - 1].inner].name,
                     .amount = o.amount < 8 ? 4 : 8};
        (void)try(n, &lanes);
    }
}

/* So many of an axis at once, by the name that these get; NULL: it cannot be cut. */
static const char *unit_part(Nest *n, const char *axis, int64_t extent, int64_t most)
{
    const Opt o = {.kind = random_below(4) ? OPT_SPLIT : OPT_OVERLAP,
                   .axis = arena_printf(n->arena, "%s", axis),
                   .amount = most};
    if (extent <= most)
        return o.axis;
    return try(n, &o) ? arena_printf(n->arena, "%s.i", o.axis) : NULL;
}

/* TC: a matrix unit has the sums over some of the reduced axes, one sum or several, whose terms are
 * cut to as many. */
static void random_unit(Nest *n, const Target *t)
{
    const Tc *unit = NULL;
    const char *rows = NULL, *columns = NULL, *terms = "";
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (!u->lanes && (!unit || random_below(2)))
            unit = u;
    const int64_t each = unit ? unit->k >> random_below(4) : 0;
    for (int i = 0, axes = n->naxis; unit && i < axes; i++) {
        const NestAxis x = n->axis[i];
        const char *part = NULL;
        if (x.reduced)
            part = random_below(8) ? unit_part(n, x.name, x.extent, each) : NULL;
        else if (!columns && x.extent >= unit->n && random_below(2))
            columns = unit_part(n, x.name, x.extent, unit->n);
        else if (!rows && x.extent > 1)
            rows = unit_part(n, x.name, x.extent, 2 + random_below((uint32_t)unit->m - 1));
        if (part)
            terms = arena_printf(n->arena, *terms ? "%s %s" : "%s%s", terms, part);
    }
    if (!rows || !columns || !*terms)
        return;
    const Opt o = {.kind = OPT_TC,
                   .axis =
                       arena_printf(n->arena, "%s (%s; %s; %s)", unit->name, rows, columns, terms)};
    (void)try(n, &o);
}

/* STAGE: some argument, at an axis of which a loop inside reads it again; PREFETCH: what the next
 * iteration of some loop over results reads of it. */
static void random_argument(Nest *n, OptKind kind)
{
    Opt o = {.kind = kind, .amount = random_below((uint32_t)n->k->narg)};
    for (int i = 0; i < n->norder; i++) {
        o.axis = n->axis[n->order[i]].name;
        if (random_below(2) && try(n, &o))
            return;
    }
}

/* PARTIAL: loops over terms stand outside of the last loops over results, and each of them may take
 * its sums to a place. */
static void random_partial(Nest *n)
{
    static const int64_t amount[] = {1, 2, 3, 4, 8};
    Opt order = {.kind = OPT_ORDER, .axis = ""};
    int outer = (int)random_below((uint32_t)n->norder), *terms = NEWN(n->arena, int, n->norder),
        nterms = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < n->norder; i++) {
            const NestAxis *x = &n->axis[n->order[i]];
            if (x->remainder || pass != (x->reduced ? 1 : i < outer ? 0 : 2))
                continue;
            if (x->reduced)
                terms[nterms++] = n->order[i];
            order.axis = nest_and_name(n, order.axis, n->order[i]);
        }
    if (!nterms || !try(n, &order))
        return;
    for (int i = 0; i < nterms; i++)
        for (int j = 0, done = 0; j < 4 && !done; j++) {
            Opt o = {.kind = OPT_PARTIAL,
                     .axis = n->axis[terms[i]].name,
                     .amount = amount[random_below(5)]};
            done = try(n, &o);
        }
}

/* Some opts of its own, or those of the heuristic with one changed; NULL: nothing could be done. */
static Nest *candidate(const OptsCase *x, const Target *t)
{
    Nest *n = nest_new(x->k, t);
    for (int i = 0; i < TRIES; i++) {
        Nest *m = nest_clone(n);
        const bool unit = tc_next(&t->machine, NULL) && random_below(2);
        if (unit)
            random_unit(m, t);
        uint32_t change = !unit && random_below(4) && x->nheuristic
                              ? random_below((uint32_t)x->nheuristic + 1)
                              : UINT32_MAX;
        for (int j = 0; j < x->nheuristic && change != UINT32_MAX; j++) {
            if (j == (int)change)
                random_opt(m);
            else
                (void)try(m, &x->heuristic[j]);
        }
        for (uint32_t j = 0, count = random_below(MAX_OPTS); j < count; j++)
            random_opt(m);
        if (!m->parts && !random_below(4))
            random_argument(m, OPT_PREFETCH);
        if (!m->parts && random_below(2))
            random_partial(m);
        for (uint32_t j = random_below(3); j > 0 && !m->parts; j--)
            random_argument(m, OPT_STAGE);
        if (m->nopt && !nest_check(m)) {
            nest_free(n);
            return m;
        }
        nest_free(m);
    }
    nest_free(n);
    return NULL;
}

/* ---- judged by the interpreter --------------------------------------------------------------- */

/* What a kernel without opts makes of small integers. */
typedef struct {
    Arena *a;
    unsigned char *first[MAX_KERNEL_ARGS]; /* what is in the arguments before */
    ShadowMemory *want[MAX_KERNEL_ARGS];
    char naive[1024]; /* what is wrong with it, or "" */
} Judge;

static int64_t arg_bytes(const KernelArg *arg)
{
    return sat_mul(layout_elements(&arg->layout, arg->rank, arg->dims),
                   (int64_t)elem_bytes(arg->dtype));
}

/* An index made of the ranges, which have these values. */
static int64_t index_at(const Node *n, Node *const *range, const int64_t *at, int rank)
{
    for (int i = 0; i < rank; i++)
        if (n == range[i])
            return at[i];
    if (n->op == OP_CONST)
        return n->arg.i;
    const int64_t x = index_at(n->src[0], range, at, rank),
                  y = index_at(n->src[1], range, at, rank);
    switch (n->op) {
    case OP_ADD: return x + y;
    case OP_MUL: return x * y;
    case OP_FLOORDIV: return x / y;
    case OP_MOD: return x % y;
    case OP_MIN: return x < y ? x : y;
    case OP_MAX: return x > y ? x : y;
    default: abort();
    }
}

/* Which stored elements are the argument's own, of one that is read and has a halo; NULL: it has
 * none, or its size is not known.  All others hold what the halo is filled with, as in a network:
 * loops leave it out. */
static bool *own_elements(Context *c, const KernelArg *arg)
{
    Node *range[INGOT_MAX_RANK];
    int64_t at[INGOT_MAX_RANK] = {0};
    if (!arg->layout.n || arg->layout.op[0].kind != LAYOUT_PAD || arg->written)
        return NULL;
    for (int i = 0; i < arg->rank; i++) {
        if (!idx_value(arg->dims[i], NULL))
            return NULL;
        range[i] = range_new(c, (1 << 20) + i, arg->dims[i]);
    }
    const Node *offset = layout_offset(c, &arg->layout, arg->rank, arg->dims, range);
    bool *own = calloc((size_t)layout_elements(&arg->layout, arg->rank, arg->dims) + 1, 1);
    if (!own)
        exit(2);
    for (int d = 0; d >= 0;) {
        own[index_at(offset, range, at, arg->rank)] = true;
        for (d = arg->rank - 1; d >= 0 && ++at[d] == arg->dims[d]->hi; d--)
            at[d] = 0;
    }
    return own;
}

/* From -3 to 3; of what may be an index from 0 to 3. */
static void fill(Context *c, const KernelArg *arg, unsigned char *p)
{
    size_t bytes = elem_bytes(arg->dtype);
    bool *own = own_elements(c, arg);
    for (int64_t i = 0, n = arg_bytes(arg) / (int64_t)bytes; i < n; i++) {
        int v = (int)((uint64_t)(i * 2654435761 + 12345) >> 7 & 0xffff) % 7 - 3;
        bool index = !dtype_is_float(arg->dtype) && (bytes >= 4 || arg->dtype == INGOT_BOOL);
        store_int(arg->dtype,
                  own && !own[i]             ? layout_fill(&arg->layout)
                  : arg->dtype == INGOT_BOOL ? v & 1
                  : index && v < 0           ? -v
                                             : v,
                  p + (size_t)i * bytes);
    }
    free(own);
}

/* Elements that there are: a dense buffer of a run-time size may be a caller's, and has no more. */
static int64_t elements_of(const OptsCase *x, const KernelArg *arg)
{
    int64_t n = 1;
    if (arg->layout.n)
        return layout_elements(&arg->layout, arg->rank, arg->dims);
    Interp *ip = interp_new(x->k->c);
    for (int i = 0; i < x->k->nvar; i++)
        interp_set_var(ip, x->k->vars[i], x->var[i]);
    for (int i = 0; i < arg->rank; i++)
        n *= dim_value(ip, arg->dims[i]);
    interp_free(ip);
    return n;
}

/* The fault that the run ends with, or "". */
static void interpret(const OptsCase *x, const Judge *j, const Lowered *lowered, ShadowMemory **got,
                      char fault[1024], Arena *a)
{
    LinearInterp m = {.backwards = true};
    LinearArg arg[MAX_KERNEL_ARGS] = {{0}};
    for (int i = 0; i < x->k->narg; i++) {
        const KernelArg *k = &x->k->args[i];
        int64_t bytes = arg_bytes(k);
        got[i] = arg[i].memory = shadow_new(a, bytes, (int)elem_bytes(k->dtype));
        memcpy(got[i]->bytes, j->first[i], (size_t)bytes);
        arg[i].size = elements_of(x, k);
        if (k->read)
            shadow_given(got[i], 0, bytes);
    }
    (void)linear_run(&m, linear_kernel(a, lowered), arg, x->var, NULL);
    memcpy(fault, m.fault, sizeof m.fault);
}

static Judge judge_new(const OptsCase *x, const Target *t)
{
    Judge j = {.a = arena_new()};
    for (int i = 0; i < x->k->narg; i++) {
        j.first[i] = arena_alloc(j.a, (size_t)arg_bytes(&x->k->args[i]) + 1);
        fill(x->k->c, &x->k->args[i], j.first[i]);
    }
    Nest *n = nest_new(x->k, t);
    Lowered *lowered = lower_nest(n, false);
    interpret(x, &j, lowered, j.want, j.naive, j.a);
    lowered_free(lowered);
    nest_free(n);
    return j;
}

/* What rounds is rounded in another order. */
static double apart(const OptsCase *x, int arg)
{
    ingot_dtype d = x->k->args[arg].dtype;
    return x->exact ? 0 : d == INGOT_F16 ? 2e-3 : d == INGOT_BF16 ? 2e-2 : 1e-4;
}

/* What is wrong with loop nests of the kernel, or "". */
static void judge(const OptsCase *x, const Judge *j, const Lowered *lowered, char fault[1024])
{
    Arena *a = arena_new();
    ShadowMemory *got[MAX_KERNEL_ARGS];
    interpret(x, j, lowered, got, fault, a);
    for (int i = 0; i < x->k->narg && !*fault; i++)
        (void)linear_same(x->k, i, &(LinearArg){.memory = got[i]},
                          &(LinearArg){.memory = j->want[i]}, apart(x, i), fault);
    arena_free(a);
}

static void judge_nest(const OptsCase *x, const Judge *j, const Nest *n, char fault[1024])
{
    Lowered *lowered = lower_nest(n, false);
    judge(x, j, lowered, fault);
    lowered_free(lowered);
}

/* The kernel as the program of a GPU's work items. */
static void judge_items(const OptsCase *x, const Judge *j, const Target *t, char fault[1024])
{
    Nest *n = nest_new(x->k, t);
    Lowered *lowered = lower_nest(n, true);
    *fault = 0;
    if (lowered->tiles.n == 1)
        judge(x, j, lowered, fault);
    lowered_free(lowered);
    nest_free(n);
}

/* ---- programs -------------------------------------------------------------------------------- */

static char kind_letter(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32: return 'f';
    case INGOT_F64: return 'd';
    case INGOT_F16: return 'h';
    case INGOT_BF16: return 'B';
    case INGOT_BOOL: return 'b';
    default: return 'i';
    }
}

static void put_call(StrBuf *sb, const OptsCase *x, const char *name, const char *buffers,
                     int parts, int64_t scratch)
{
    const char *separator = "";
    sb_printf(sb, parts ? "        %s(" : "    %s(", name);
    for (int i = 0; i < x->k->narg; i++)
        if (kernel_has_param(x->k, i)) {
            sb_printf(sb, "%s(void *)(%s[%d] + GUARD)", separator, buffers, i);
            separator = ", ";
        }
    for (int i = 0; i < x->k->nvar; i++) {
        sb_printf(sb, "%s%lld", separator, (long long)x->var[i]);
        separator = ", ";
    }
    for (int i = 0; i < x->k->nscalar; i++) {
        sb_puts(sb, separator);
        print_scalar(sb, &x->k->scalars[i], x->k->scalars[i].lo);
        separator = ", ";
    }
    if (scratch) {
        sb_printf(sb, "%splaces(%lld)", separator, (long long)scratch * (parts ? parts : 1));
        separator = ", ";
    }
    sb_printf(sb, parts ? "%sat - 1, at);\n" : ");\n", separator);
}

static void put_opts(StrBuf *sb, const Nest *n)
{
    for (int i = 0; i < n->nopt; i++) {
        sb_puts(sb, i ? ", " : "");
        opt_print(sb, &n->opts[i]);
    }
}

/* The kernel without opts, as a function of the program. */
static void put_naive(StrBuf *sb, const OptsCase *x, int number, const Target *t)
{
    char name[64];
    snprintf(name, sizeof name, "k%d_naive", number);
    sb_puts(sb, "static ");
    render_kernel(sb, t, x->k, name);
}

static void put_candidate(StrBuf *sb, StrBuf *calls, const OptsCase *x, const Nest *m,
                          const char *name, const Target *t)
{
    Kernel *k = kernel_copy(x->k);
    nest_keep(m, k);
    k->scratch = kernel_scratch(k);
    sb_puts(sb, "/* ");
    put_opts(sb, m);
    sb_puts(sb, " */\nstatic ");
    render_kernel(sb, t, k, name);
    sb_printf(calls, "    start(now, a, %d);\n", k->narg);
    if (m->parts)
        sb_printf(calls, "    for (int at = %d; at > 0; at--)\n", m->parts);
    put_call(calls, x, name, "now", m->parts, k->scratch);
    sb_printf(calls, "    wrong += judge(a, %d, %d, \"%s %s: ", k->narg, x->exact, x->k->name,
              name);
    put_opts(calls, m);
    sb_puts(calls, "\");\n");
    ingot_context_free(k->c);
}

/* Runs of the argument's own elements and of what is around them, in turn. */
static bool put_runs(StrBuf *sb, const OptsCase *x, int number, int i)
{
    const KernelArg *arg = &x->k->args[i];
    bool *own = own_elements(x->k->c, arg), last = true;
    const int64_t n = layout_elements(&arg->layout, arg->rank, arg->dims);
    if (!own)
        return false;
    sb_printf(sb, "static const int runs_%d_%d[] = {", number, i);
    for (int64_t at = 0, begin = 0; at <= n; at++)
        if (at == n || own[at] != last) {
            sb_printf(sb, "%lld, ", (long long)(at - begin));
            begin = at;
            last = !last;
        }
    sb_puts(sb, "-1};\n");
    free(own);
    return true;
}

static void put_test(StrBuf *sb, const OptsCase *x, int number, const StrBuf *calls)
{
    char name[64];
    bool around[MAX_KERNEL_ARGS];
    snprintf(name, sizeof name, "k%d_naive", number);
    for (int i = 0; i < x->k->narg; i++)
        around[i] = put_runs(sb, x, number, i);
    sb_printf(sb, "static int test_%d(void)\n{\n    static const ArgData a[] = {", number);
    for (int i = 0; i < x->k->narg; i++) {
        const KernelArg *arg = &x->k->args[i];
        sb_printf(sb, "{%lld, '%c', %d, ", (long long)arg_bytes(arg), kind_letter(arg->dtype),
                  (int)elem_bytes(arg->dtype));
        sb_printf(sb, around[i] ? "runs_%d_%d, %lld}, " : "0, 0}, ", number, i,
                  (long long)layout_fill(&arg->layout));
    }
    sb_printf(sb, "};\n    int wrong = 0;\n    start(want, a, %d);\n", x->k->narg);
    put_call(sb, x, name, "want", 0, x->k->scratch);
    sb_write(sb, calls->data, calls->len);
    sb_puts(sb, "    return wrong;\n}\n");
}

static int candidates, compiled, wrong;

static void tell(const OptsCase *x, const Nest *n, const char *fault)
{
    StrBuf sb = {0};
    if (n)
        put_opts(&sb, n);
    printf("wrong: %s %s: %s\n", x->k->name, sb.data ? sb.data : "", fault);
    wrong++;
    sb_free(&sb);
}

/* n candidates of a kernel; whether the program has any of them. */
static bool try_case(StrBuf *sb, const OptsCase *x, int number, int n, int every, const Target *t)
{
    StrBuf calls = {0};
    char name[64], fault[1024];
    int count = 0;
    Judge j = judge_new(x, t);
    if (*j.naive)
        tell(x, NULL, j.naive);
    judge_items(x, &j, t, fault);
    if (*fault)
        tell(x, NULL, fault);
    for (int i = 0; i < n; i++) {
        Nest *m = candidate(x, t);
        if (!m)
            continue;
        judge_nest(x, &j, m, fault);
        if (*fault)
            tell(x, m, fault);
        if (candidates++ % every == 0) {
            if (!count)
                put_naive(sb, x, number, t);
            snprintf(name, sizeof name, "k%d_%d", number, count++);
            put_candidate(sb, &calls, x, m, name, t);
        }
        nest_free(m);
    }
    if (count)
        put_test(sb, x, number, &calls);
    compiled += count;
    sb_free(&calls);
    arena_free(j.a);
    return count > 0;
}

static bool put_file(const char *folder, int number, const StrBuf *body)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/opts_%d.c", folder, number);
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(body->data, 1, body->len, f) == body->len;
    return f && fclose(f) == 0 && good;
}

int main(int argc, char **argv)
{
    int n = 200, files = 4, every = 10, nkernel = 0;
    unsigned long seed = 1;
    size_t models = random_nmodel;
    const char *folder = NULL, *machine = "native";
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--n"))
            n = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--seed"))
            seed = strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && !strcmp(argv[i], "--files"))
            files = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--every"))
            every = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--machine"))
            machine = argv[++i];
        else if (!strcmp(argv[i], "--units"))
            models = random_nunit;
        else
            folder = argv[i];
    }
    Target t = *target_find("c");
    if (!folder || n < 1 || files < 1 || every < 1 || !target_tune(&t, machine)) {
        fprintf(stderr,
                "usage: random_opts [--n N] [--seed S] [--every E] [--files F] [--machine M] "
                "[--units] OUT\n");
        return 2;
    }
    random_seed(seed);
    static OptsCase cases[MAX_KERNELS];
    Context *context[MAX_KERNELS];
    int ncontext = 0,
        wanted = n < MAX_KERNELS ? (n < 80 ? n : 80 + (n - 80) / 40) : MAX_KERNELS / 2;
    for (int i = 0; nkernel < wanted; i++) {
        Context *c = context[ncontext++] = ingot_context_new(NULL, NULL);
        random_models[random_nmodel - 1 - (size_t)i % models](c);
        nkernel = kernels_of(c, &t, cases, nkernel, wanted);
    }
    bool good = true;
    for (int f = 0; f < files; f++) {
        StrBuf sb = {0};
        sb_puts(&sb, "#include \"random_opts.h\"\n\n");
        StrBuf calls = {0};
        for (int i = f; i < nkernel; i += files)
            if (try_case(&sb, &cases[i], i, n / nkernel + (i < n % nkernel), every, &t))
                sb_printf(&calls, "    wrong += test_%d();\n", i);
        /* igrt_cpu_lacks() also asks the system for AMX's tiles */
        sb_printf(&sb,
                  "int main(void)\n{\n    int wrong = igrt_cpu_lacks(IGRT_CPU_BUILT) != 0;\n%s"
                  "    return wrong > 0;\n}\n",
                  calls.data ? calls.data : "");
        sb_free(&calls);
        good &= put_file(folder, f, &sb);
        sb_free(&sb);
    }
    int exact = 0;
    for (int i = 0; i < nkernel; i++) {
        exact += cases[i].exact;
        ingot_context_free(cases[i].k->c);
    }
    for (int i = 0; i < ncontext; i++)
        ingot_context_free(context[i]);
    printf("kernels %d (%d bit for bit), candidates %d (%d compiled), applied %d, refused %d\n",
           nkernel, exact, candidates, compiled, applied, refused);
    printf("flags %s\n", t.flags ? t.flags : "");
    return good ? 0 : 1;
}
