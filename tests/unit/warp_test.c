/* warp_test.c - products that the items of a warp have together, by opts, which are applied,
 * printed, lowered, interpreted beside the kernel without opts and written as text; barriers left
 * out, fragments taken for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "linear_run.h"

typedef struct {
    ingot_dtype type;
    int64_t m, n, k;
    int window;  /* of a convolution, whose results are [m][m]; 0: a product of matrices */
    bool turned; /* w is [n][k] */
    const char *target;
    bool constant; /* w is there before anything is enqueued */
    int border;    /* around x, as the convolution has it */
    int fill;      /* what that is */
} WarpProduct;

static const WarpProduct halves = {INGOT_F16, 64, 48, 64, 0, false, "cuda:sm_80", false, 0, 0};
static const WarpProduct deep = {INGOT_F16, 64, 48, 128, 0, false, "cuda:sm_80", false, 0, 0};
static const WarpProduct halves_turned = {INGOT_F16, 50,           40,    56, 0,
                                          true,      "cuda:sm_80", false, 0,  0};
static const WarpProduct constant = {INGOT_F16, 64, 48, 64, 0, false, "cuda:sm_90", true, 0, 0};
static const WarpProduct convolution = {INGOT_F16, 8, 16, 32, 3, false, "cuda:sm_90", false, 0, 0};
static const WarpProduct padded = {INGOT_F16, 8, 16, 32, 3, false, "cuda:sm_90", false, 1, 0};
static const WarpProduct singles = {INGOT_F32, 32, 32, 48, 0, false, "cuda:sm_80", false, 0, 0};
static const WarpProduct bytes = {INGOT_I8, 64, 48, 128, 0, false, "cuda:sm_80", false, 0, 0};
static const WarpProduct bytes_turned = {INGOT_U8, 50, 40, 112, 0, true, "cuda:sm_80", false, 0, 0};
static const WarpProduct bytes_padded = {INGOT_I8, 8, 16, 32, 3, false, "cuda:sm_90", false, 1, -7};
static const WarpProduct bytes_few = {INGOT_I8, 50, 40, 24, 0, true, "cuda:sm_80", false, 0, 0};
static const WarpProduct small_floats = {INGOT_BF16, 32,           32,    48, 0,
                                         false,      "cuda:sm_80", false, 0,  0};

static ingot_tensor *tensor(Context *c, const char *name, ingot_dtype d, int n, const int64_t *dims)
{
    ingot_dim *size[4];
    for (int i = 0; i < n; i++)
        size[i] = (ingot_dim *)(uintptr_t)idx(c, dims[i]);
    const bool byte = d == INGOT_I8 || d == INGOT_U8;
    return ingot_cast(c, ingot_input(c, name, d, n, size), byte ? INGOT_I32 : INGOT_F32);
}

static ingot_tensor *result(Context *c, const WarpProduct *m)
{
    const int64_t one[] = {1, 1}, none[] = {0, 0}, border[] = {0, 0, m->border, m->border};
    if (m->window) {
        int64_t size = m->m + m->window - 1 - 2 * m->border;
        ingot_tensor *x = tensor(c, "x", m->type, 4, (int64_t[]){1, size, size, m->k});
        ingot_tensor *w = tensor(c, "w", m->type, 4, (int64_t[]){m->n, m->k, m->window, m->window});
        x = ingot_permute(c, x, (int[]){0, 3, 1, 2});
        ingot_tensor *fill = m->fill ? ingot_like(c, x, m->fill) : NULL;
        x = fill ? ingot_sub(c, x, fill) : x;
        x = ingot_pad_c(c, x, border, border, 0);
        x = fill ? ingot_add(c, x, fill) : x; /* as quantised models have it */
        x = ingot_conv(c, x, w, NULL, one, one, none, none, 1);
        return ingot_permute(c, x, (int[]){0, 2, 3, 1});
    }
    ingot_tensor *x = tensor(c, "x", m->type, 2, (int64_t[]){m->m, m->k});
    const int64_t dims[] = {m->turned ? m->n : m->k, m->turned ? m->k : m->n};
    ingot_tensor *w = tensor(c, "w", m->type, 2, dims);
    if (m->turned)
        w = ingot_permute(c, w, (int[]){1, 0});
    return ingot_relu(c, ingot_matmul(c, x, w));
}

/* An opt a line.  The terms of both operands lie side by side in a convolution. */
static NestRun prepare(const WarpProduct *m, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, m->target, &status));
    NestRun r = run_new(c, result(c, m), &t);
    arena_free(a);
    run_opts(r.nest, opts);
    const Kernel *k = r.nest->k;
    View v = kernel_view(k);
    for (int i = 0; i < v.nfactor && r.nest->tc && m->window; i++) {
        KernelArg *arg = &k->args[v.factor[i]->src[0]->arg.i];
        if (idx_is(arg->dims[2], m->window)) /* w: x is channels-last */
            layout_put_last(&arg->layout, arg->rank, 1);
    }
    k->args[2].early = m->constant;
    run_lower(&r, true);
    return r;
}

static void expect(const WarpProduct *m, const char *opts, int products)
{
    run_expect(prepare(m, opts), prepare(m, ""), opts, "igrt_mma_dot_", products);
}

static const char of_warps[] =
    "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 24\nSPLIT i1.i 8\nUPCAST i1.i.o 3\nSPLIT r0 32\nSPLIT "
    "r0.i 16\n"
    "TC mma.f16 (i0.i.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\nBIND i0.i.o warp\n"
    "ORDER r0.o r0.i.o\nSTAGE r0.o 1\nSTAGE r0.o 2\n";

/* Warps of a group: two by two, each with copies of fragments. */
static void products_of_warps(void **state)
{
    (void)state;
    expect(&halves, of_warps, 3);
    expect(&halves_turned,
           "MASK i0 32\nMASK i1 8\nMASK r0 16\nSPLIT i0 32\nSPLIT i0.i 16\nUPCAST i0.i.o 2\nSPLIT "
           "i1 8\nSPLIT r0 16\n"
           "TC mma.f16 (i0.i.i; i1.i; r0.i)\nBIND i0.o grid\nBIND i1.o warp\n"
           "STAGE r0.o 1\nSTAGE r0.o 2\n",
           2);
    expect(&small_floats,
           "SPLIT i0 16\nSPLIT i1 8\nSPLIT r0 16\nUPCAST i1.o 4\nTC mma.bf16 (i0.i; i1.i; "
           "r0.i)\nBIND i0.o warp\n"
           "STAGE r0.o 1\nSTAGE r0.o 2\n",
           4);
}

static void convolutions_of_warps(void **state)
{
    (void)state;
    expect(&convolution,
           "JOIN i0 i1\nSPLIT i0_i1 16\nUPCAST i0_i1.o 2\nSPLIT i2 8\nSPLIT r0 16\n"
           "TC mma.f16 (i0_i1.i; i2.i; r0.i)\nBIND i0_i1.o.o grid\nBIND i2.o warp\n"
           "ORDER r1 r2 r0.o\nSTAGE r0.o 1\nSTAGE r0.o 2\n",
           2);
}

/* Each barrier is needed: another warp has not filled its part, or reads it still. */
static void barriers_of_warps(void **state)
{
    (void)state;
    int barriers = 1;
    for (int left = 0; left < barriers; left++) {
        NestRun r = prepare(&halves, of_warps);
        Linear *l = &r.lk->tile[0];
        int at = -1;
        barriers = 0;
        for (int i = 0; i < l->n; i++)
            if (l->stmt[i].kind == STMT_BARRIER && barriers++ == left)
                at = i;
        assert_true(at >= 0 && barriers == 2);
        memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
        l->n--;
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        if (!strstr(fault, "which nothing has written") && !strstr(fault, "a race: "))
            fail_msg("without barrier %d: '%s'", left, fault);
        run_free(&r);
    }
}

/* An item stores another of its elements; a fragment comes from the wrong place. */
static void elements_swapped(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        NestRun r = prepare(&halves, of_warps);
        Linear *l = &r.lk->tile[0];
        Context *c = r.lowered->tiles.k->c;
        for (int i = 0; i < l->n; i++) {
            Stmt *s = &l->stmt[i];
            if (!what && s->kind == STMT_STORE && s->node->arg.i < 2) {
                Node *from = s->node->src[2], *sum = from->src[0];
                Node *other = node_make(c, OP_PROJ, sum->dtype, (Arg){.i = sum->arg.i ^ 1}, 1,
                                        sum->src, 0, NULL);
                s->node = substitute(c, s->node, 1, &sum, &other);
                break;
            }
            if (what && s->kind == STMT_UPDATE && s->term) {
                s->term = l->stmt[i + 1].term;
                break;
            }
        }
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        if (!strstr(fault, "has another value"))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

static const char ahead[] =
    "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 24\nSPLIT i1.i 8\nUPCAST i1.i.o 3\nSPLIT r0 16\n"
    "TC mma.f16 (i0.i.i; i1.i.i; r0.i)\nBIND i0.o grid\nBIND i1.o grid\nBIND i0.i.o warp\n"
    "STAGE r0.o 1 depth 3\nSTAGE r0.o 2 depth 3\n";

/* Places that copies fill while the items compute. */
static void copies_ahead(void **state)
{
    (void)state;
    expect(&halves, ahead, 3);
    expect(&halves_turned,
           "MASK i0 32\nMASK i1 8\nMASK r0 16\nSPLIT i0 32\nSPLIT i0.i 16\nUPCAST i0.i.o 2\n"
           "SPLIT i1 8\nSPLIT r0 16\nTC mma.f16 (i0.i.i; i1.i; r0.i)\nBIND i0.o grid\n"
           "BIND i1.o warp\nSTAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
           2);
    expect(&convolution,
           "JOIN i0 i1\nJOIN r1 r2 r0\nSPLIT i0_i1 16\nSPLIT i2 8\nSPLIT r1_r0 32\n"
           "SPLIT r1_r0.i 16\nTC mma.f16 (i0_i1.i; i2.i; r1_r0.i.i)\nBIND i0_i1.o grid\n"
           "BIND i2.o warp\nSTAGE r1_r0.o 1 depth 4\nSTAGE r1_r0.o 2 depth 4\n",
           1);
}

/* Copies of a window, in two rounds, each behind a gate: a bit of what is known before the loop. */
static void gates_are_bits(void **state)
{
    (void)state;
    static const char opts[] =
        "JOIN i0 i1\nJOIN r1 r2\nSPLIT i0_i1 32\nSPLIT i0_i1.i 16\nUPCAST i0_i1.i.o 2\nSPLIT i2 8\n"
        "SPLIT r0 16\nTC mma.f16 (i0_i1.i.i; i2.i; r0.i)\nBIND i0_i1.o grid\nBIND i2.o warp\n"
        "ORDER r1_r2 r0.o\nSTAGE r1_r2 1 depth 4\nSTAGE r1_r2 2 depth 4\n";
    expect(&padded, opts, 2);
    NestRun r = prepare(&padded, opts);
    const Linear *l = &r.lk->tile[0];
    int bits = 0, known = 0;
    for (int i = 0; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        const Node *gate = s->kind == STMT_STORE && s->async ? s->node->src[2]->src[1] : NULL;
        bits += gate && gate->op == OP_CAST && gate->src[0]->op == OP_AND;
        known += s->kind == STMT_LET && s->depth == 0 && s->node->dtype == INGOT_U32;
    }
    assert_int_equal(bits, 4); /* before the loop, and in it */
    assert_true(known >= 2);
    run_free(&r);
}

static const char early[] =
    "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 24\nSPLIT i1.i 8\nUPCAST i1.i.o 3\nSPLIT r0 32\n"
    "SPLIT r0.i 16\nTC mma.f16 (i0.i.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
    "BIND i0.i.o warp\nORDER r0.o r0.i.o\nPREFETCH r0.i.o 1\n"
    "STAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n";

static int find_kind(const Linear *l, StmtKind kind)
{
    int at = 0;
    while (at < l->n && l->stmt[at].kind != kind)
        at++;
    return at;
}

/* Stores before this statement that bring argument `arg`. */
static int brings(const Linear *l, int end, int64_t arg)
{
    int n = 0;
    for (int i = 0; i < end; i++) {
        const Stmt *s = &l->stmt[i];
        n += s->kind == STMT_STORE && s->node->src[2]->op == OP_LOAD &&
             s->node->src[2]->src[0]->arg.i == arg;
    }
    return n;
}

/* What is constant comes before the kernels before are waited for, and nothing else. */
static void constants_come_early(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        NestRun r = prepare(what ? &constant : &halves, ahead);
        Linear *l = &r.lk->tile[0];
        const int at = find_kind(l, STMT_DEPEND);
        assert_true(at < l->n && !brings(l, at, 1));
        assert_int_equal(brings(l, at, 2), what > 0);
        if (what == 2) {
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
        }
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        if (what < 2 ? *fault : !strstr(fault, ", before what was enqueued earlier is done"))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

/* The next kernel begins when this one has waited, or when it has summed. */
static void next_begins(void **state)
{
    (void)state;
    for (int summed = 0; summed < 2; summed++) {
        char opts[1024];
        snprintf(opts, sizeof opts, "%sTRIGGER %s\n", ahead, summed ? "summed" : "waited");
        run_expect(prepare(&constant, opts), prepare(&constant, ""), opts, "igrt_before_others();",
                   1);
        NestRun r = prepare(&constant, opts);
        const Linear *l = &r.lk->tile[0];
        const int at = find_kind(l, STMT_NEXT), sum = find_kind(l, STMT_UPDATE);
        assert_true(at < l->n && find_kind(l, STMT_DEPEND) < at && (sum < at) == summed);
        run_free(&r);
    }
    NestRun r = prepare(&constant, "");
    refusal(r.nest, "TRIGGER summed", "whose operands STAGE brings ahead");
    refusal(r.nest, "TRIGGER never", "TRIGGER waited, TRIGGER copied or TRIGGER summed");
    refusal(r.nest, "TRIGGER waited", NULL);
    refusal(r.nest, "TRIGGER waited", "it is said already");
    run_free(&r);
}

/* Fragments are loaded before the products of the iteration before. */
static void fragments_ahead(void **state)
{
    (void)state;
    expect(&halves, early, 6); /* behind the loop once more */
    expect(&halves_turned,
           "MASK i0 32\nMASK i1 8\nMASK r0 16\nSPLIT i0 32\nSPLIT i0.i 16\nUPCAST i0.i.o 2\n"
           "SPLIT i1 8\nSPLIT r0 16\nTC mma.f16 (i0.i.i; i1.i; r0.i)\nBIND i0.o grid\n"
           "BIND i1.o warp\nPREFETCH r0.o 2\nSTAGE r0.o 1 depth 3\nSTAGE r0.o 2 depth 3\n",
           4);
    expect(&convolution,
           "JOIN i0 i1\nJOIN r1 r2 r0\nSPLIT i0_i1 16\nSPLIT i2 8\nSPLIT r1_r0 32\n"
           "SPLIT r1_r0.i 16\nTC mma.f16 (i0_i1.i; i2.i; r1_r0.i.i)\nBIND i0_i1.o grid\n"
           "BIND i2.o warp\nORDER r1_r0.o r1_r0.i.o\nPREFETCH r1_r0.i.o 1\n"
           "STAGE r1_r0.o 1\nSTAGE r1_r0.o 2\n",
           2);
    expect(
        &singles,
        "SPLIT i0 16\nSPLIT i1 16\nSPLIT i1.i 8\nUPCAST i1.i.o 2\nSPLIT r0 16\nSPLIT r0.i 8\n"
        "TC mma.tf32x3 (i0.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\nBIND r0.i.o warp\n"
        "PREFETCH r0.o 1\nSTAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
        4);
    for (int what = 0; what < 4; what++) {
        NestRun r = prepare(&halves, early);
        Linear *l = &r.lk->tile[0];
        int at = -1;
        for (int i = 0; i < l->n; i++) {
            const Stmt *s = &l->stmt[i];
            if ((what == 0 && s->kind == STMT_KEEP && s->last) ||   /* what is loaded */
                (what == 1 && s->kind == STMT_UPDATE && s->kept) || /* the last products */
                (what == 2 && s->kind == STMT_WAIT) || (what == 3 && s->kind == STMT_BARRIER))
                at = i;
        }
        assert_true(at >= 0);
        memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
        l->n--;
        static const char *const wanted[] = {"", "terms", "to which a copy is under way",
                                             "nothing has written"};
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        if (!*fault || !strstr(fault, wanted[what]))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

/* Copies of a later iteration begin at the last step of this one, behind the barrier: ahead of it
 * others read what they fill. */
static void copies_of_the_next(void **state)
{
    (void)state;
    NestRun r = prepare(&deep, early);
    Linear *l = &r.lk->tile[0];
    int wait = -1, first = -1, end = -1;
    for (int i = 0; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        wait = s->kind == STMT_WAIT ? i : wait;
        first = s->kind == STMT_LOOP && s->from ? i : first;
        end = first >= 0 && end < 0 && s->kind == STMT_END && s->node == l->stmt[first].node ? i
                                                                                             : end;
    }
    assert_true(wait >= 0 && wait < first && first < end && l->stmt[first].zero);
    assert_int_equal(l->stmt[first].zero->lo, -1); /* two steps, the first of which is 1 below */
    assert_int_equal(l->stmt[first].zero->hi, 0);
    enum { MOST = 64 };
    Stmt copies[MOST];
    const int n = end + 1 - first;
    assert_true(n <= MOST);
    l->stmt[first].zero = NULL;
    memcpy(copies, &l->stmt[first], (size_t)n * sizeof *copies);
    memmove(&l->stmt[wait + n], &l->stmt[wait], (size_t)(first - wait) * sizeof *copies);
    memcpy(&l->stmt[wait], copies, (size_t)n * sizeof *copies);
    const char *fault = run_wrong(&r, prepare(&deep, ""));
    if (!strstr(fault, "a race: writes"))
        fail_msg("'%s'", fault);
    run_free(&r);
}

/* A wait left out, or for too few; a barrier left out. */
static void waits(void **state)
{
    (void)state;
    for (int what = 0, more = 1; more; what++) {
        NestRun r = prepare(&halves, ahead);
        Linear *l = &r.lk->tile[0];
        int barriers = 0, at = -1;
        for (int i = 0; i < l->n; i++) {
            if (what < 2 && l->stmt[i].kind == STMT_WAIT)
                at = i;
            if (l->stmt[i].kind == STMT_BARRIER && barriers++ == what - 1)
                at = i; /* the one before the loop is for what comes before it: there is nothing */
        }
        more = what < barriers;
        assert_true(at >= 0 && barriers == 2);
        if (what == 1) {
            l->stmt[at].count++;
        } else {
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
        }
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        const char *wanted = what < 2 ? "to which a copy is under way" : "a race: ";
        if (!strstr(fault, wanted) && (what < 2 || !strstr(fault, "nothing has written")))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

/* Warps have parts of the terms, and join their sums in a place: an order of terms that the kernel
 * without opts does not have. */
static void terms_of_warps(void **state)
{
    (void)state;
    expect(&halves,
           "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 24\nSPLIT i1.i 8\nUPCAST i1.i.o 3\nSPLIT r0 32\n"
           "SPLIT r0.i 16\nTC mma.f16 (i0.i.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
           "BIND i0.i.o warp\nBIND r0.i.o warp\nSTAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
           3);
    expect(
        &halves_turned,
        "MASK i0 16\nMASK i1 8\nMASK r0 64\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 5\nSPLIT r0 16\n"
        "TC mma.f16 (i0.i; i1.i; r0.i)\nBIND i0.o grid\nBIND r0.o warp\n"
        "STAGE i0.o 1\nSTAGE i0.o 2\n",
        5);
    expect(&convolution,
           "JOIN i0 i1\nJOIN r1 r2 r0\nSPLIT i0_i1 16\nSPLIT i2 8\nSPLIT r1_r0 96\n"
           "SPLIT r1_r0.i 32\nSPLIT r1_r0.i.i 16\nTC mma.f16 (i0_i1.i; i2.i; r1_r0.i.i.i)\n"
           "BIND i0_i1.o grid\nBIND i2.o warp\nBIND r1_r0.i.o warp\n"
           "STAGE r1_r0.o 1 depth 3\nSTAGE r1_r0.o 2 depth 3\n",
           1);
    expect(
        &singles,
        "SPLIT i0 16\nSPLIT i1 16\nSPLIT i1.i 8\nUPCAST i1.i.o 2\nSPLIT r0 16\nSPLIT r0.i 8\n"
        "TC mma.tf32x3 (i0.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\nBIND r0.i.o warp\n"
        "STAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
        2);
}

static const char bytes_opts[] =
    "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 24\nSPLIT i1.i 8\nUPCAST i1.i.o 3\nSPLIT r0 64\n"
    "SPLIT r0.i 32\nTC mma.i8 (i0.i.i; i1.i.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
    "BIND i0.i.o warp\nORDER r0.o r0.i.o\nSTAGE r0.o 1\nSTAGE r0.o 2\n";
static const char bytes_padded_opts[] =
    "JOIN i0 i1\nJOIN r1 r2\nSPLIT i0_i1 32\nSPLIT i0_i1.i 16\nUPCAST i0_i1.i.o 2\nSPLIT i2 8\n"
    "TC mma.i8 (i0_i1.i.i; i2.i; r0)\nBIND i0_i1.o grid\nBIND i2.o warp\n"
    "STAGE r1_r2 1 depth 4\nSTAGE r1_r2 2 depth 4\n";

/* Bytes: w whose terms lie far apart is turned on its way into the place; beyond the edges of x
 * places have what the model has there. */
static void products_of_bytes(void **state)
{
    (void)state;
    expect(&bytes, bytes_opts, 3);
    expect(&bytes_turned,
           "MASK i0 32\nMASK i1 8\nMASK r0 32\nSPLIT i0 32\nSPLIT i0.i 16\nUPCAST i0.i.o 2\n"
           "SPLIT i1 8\nSPLIT r0 32\nTC mma.i8 (i0.i.i; i1.i; r0.i)\nBIND i0.o grid\n"
           "BIND i1.o warp\nPREFETCH r0.o 1\nSTAGE r0.o 1 depth 3\nSTAGE r0.o 2 depth 3\n",
           4);
    expect(&bytes_turned,
           "MASK i0 16\nMASK i1 8\nMASK r0 64\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 5\n"
           "SPLIT r0 64\nSPLIT r0.i 32\nTC mma.i8 (i0.i; i1.i; r0.i.i)\nBIND i0.o grid\n"
           "BIND r0.i.o warp\nSTAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
           5);
    expect(&bytes_padded, bytes_padded_opts, 2);
    /* one block of terms: no loop goes over them, and nothing is ahead */
    expect(
        &bytes_few,
        "MASK i0 32\nMASK r0 32\nSPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 8\nTC mma.i8 (i0.i.i; i1.i; "
        "r0)\nBIND i0.o grid\nBIND i1.o grid\nBIND i0.i.o warp\nSTAGE i0.o 1\nSTAGE i0.o 2\n",
        1);
}

/* Zeros beyond the edges; an element of another fragment; a wait left out. */
static void bytes_wrong(void **state)
{
    (void)state;
    int found = 0;
    NestRun r = prepare(&bytes_padded, bytes_padded_opts);
    Linear *l = &r.lk->tile[0];
    for (int i = 0; i < l->n; i++) {
        Stmt *s = &l->stmt[i];
        Node *from = s->kind == STMT_STORE ? s->node->src[2] : NULL;
        if (!from || from->op != OP_LOAD || !from->arg.i)
            continue;
        assert_int_equal(from->arg.i, -7);
        Node *zero = node_make(r.lowered->tiles.k->c, OP_LOAD, from->dtype, (Arg){0},
                               (int)from->nsrc, from->src, 0, NULL);
        s->node = node_with_source(r.lowered->tiles.k->c, s->node, 2, zero);
        found++;
    }
    assert_true(found > 0);
    const char *fault = run_wrong(&r, prepare(&bytes_padded, ""));
    if (!strstr(fault, "has another value"))
        fail_msg("zeros: '%s'", fault);
    run_free(&r);
    for (int what = 0; what < 2; what++) {
        r = prepare(what ? &bytes_padded : &bytes, what ? bytes_padded_opts : bytes_opts);
        l = &r.lk->tile[0];
        const int at = find_kind(l, what ? STMT_WAIT : STMT_UPDATE);
        assert_true(at < l->n);
        if (what) {
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
        } else {
            l->stmt[at].term = l->stmt[at + 1].term;
        }
        fault = run_wrong(&r, what ? prepare(&bytes_padded, "") : prepare(&bytes, ""));
        if (!strstr(fault, what ? "to which a copy is under way" : "has another value"))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

static void refusals(void **state)
{
    (void)state;
    NestRun r = prepare(&halves, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    refusal(n, "BIND i0 warp", "TC comes before");
    refusal(n, "SPLIT i0 8", NULL);
    refusal(n, "SPLIT i1 8", NULL);
    refusal(n, "SPLIT r0 16", NULL);
    refusal(n, "TC mma.f16 (i0.i; i1.i; r0.i)", "takes 16 rows, 8 columns and 16 terms");
    refusal(n, "TC mma.f16 (i0.o; i1.i; r0.i)", "takes 16 rows, 8 columns and 16 terms");
    nest_free(n);
    n = nest_new(r.p->kernels[0], r.t);
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT i1 8", NULL);
    refusal(n, "SPLIT r0 16", NULL);
    refusal(n, "TC mma.bf16 (i0.i; i1.i; r0.i)", "products of bf16");
    Nest *wide = nest_clone(n);
    refusal(wide, "UPCAST i0.o 4", NULL);
    refusal(wide, "UPCAST i1.o 6", NULL);
    refusal(wide, "TC mma.f16 (i0.i; i1.i; r0.i)", NULL);
    nest_free(wide);
    refusal(n, "TC mma.f16 (i0.i; i1.i; r0.i)", NULL);
    refusal(n, "BIND i0.o lane", "the lanes are those of mma.f16");
    refusal(n, "UPCAST i1.o 2", "after TC");
    refusal(n, "BIND i0.o warp", NULL);
    refusal(n, "PREFETCH i1.o 1", "innermost loop over terms");
    refusal(n, "PREFETCH r0.o 3", "an operand of the unit");
    assert_non_null(strstr(nest_check(n), "STAGE argument"));
    nest_free(n);
    Target old = *target_find("cuda");
    n = nest_new(r.p->kernels[0], &old);
    refusal(n, "SPLIT i0 16", NULL);
    refusal(n, "SPLIT i1 8", NULL);
    refusal(n, "SPLIT r0 16", NULL);
    refusal(n, "TC mma.f16 (i0.i; i1.i; r0.i)", "no such unit (it has: none)");
    nest_free(n);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_warps),
        cmocka_unit_test(convolutions_of_warps),
        cmocka_unit_test(products_of_bytes),
        cmocka_unit_test(bytes_wrong),
        cmocka_unit_test(barriers_of_warps),
        cmocka_unit_test(elements_swapped),
        cmocka_unit_test(copies_ahead),
        cmocka_unit_test(gates_are_bits),
        cmocka_unit_test(waits),
        cmocka_unit_test(constants_come_early),
        cmocka_unit_test(next_begins),
        cmocka_unit_test(fragments_ahead),
        cmocka_unit_test(copies_of_the_next),
        cmocka_unit_test(terms_of_warps),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
