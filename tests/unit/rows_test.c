/* rows_test.c - rows of sums that stay in the registers of lanes, by opts: attention without what
 * is transcendental, so that all values are exact.  Interpreted beside the kernel without opts and
 * written as text; barriers, waits and joins left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/choose/choose.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "linear_run.h"

enum {
    ROWS = 40,
    KEYS = 40,
    LONG = 300,
    LONGER = 520,
    DEPTH = 16,
    COLUMNS = 16,
    WIDE = 64,
    MANY = 72
};

static ingot_tensor *operand(Context *c, const char *name, ingot_dtype d, int64_t lines, int64_t n)
{
    ingot_dim *size[] = {(ingot_dim *)(uintptr_t)idx(c, lines), (ingot_dim *)(uintptr_t)idx(c, n)};
    return ingot_input(c, name, d, 2, size);
}

/* e = max(s - max of s + 5, 0), p = e - the sum of e, y = p v. */
static ingot_tensor *result(Context *c, ingot_dtype d, int64_t keys)
{
    ingot_tensor *q = operand(c, "q", d, ROWS, DEPTH), *k = operand(c, "k", d, keys, DEPTH),
                 *v = operand(c, "v", d, keys, COLUMNS);
    ingot_tensor *s = ingot_matmul(c, q, ingot_permute(c, k, (int[]){1, 0}));
    s = ingot_cast(c, s, INGOT_F32);
    ingot_tensor *e = ingot_sub(c, s, ingot_reduce(c, INGOT_REDUCE_MAX, s, 2, true));
    e = ingot_relu(c, ingot_add(c, e, ingot_scalar_f(c, INGOT_F32, 5)));
    ingot_tensor *p = ingot_sub(c, e, ingot_reduce(c, INGOT_REDUCE_ADD, e, 2, true));
    return ingot_matmul(c, ingot_cast(c, p, d), v);
}

static NestRun prepare_keys(ingot_dtype d, int64_t keys, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, "cuda:sm_80", &status));
    NestRun r = run_planned(c, result(c, d, keys), &t, NULL);
    arena_free(a);
    run_opts(r.nest, opts);
    run_lower(&r, true);
    return r;
}

static NestRun prepare(ingot_dtype d, const char *opts)
{
    return prepare_keys(d, KEYS, opts);
}

static void expect(ingot_dtype d, const char *opts, int products)
{
    run_expect(prepare(d, opts), prepare(d, ""), opts, "igrt_mma_dot_", products);
}

#define ALONG(opt) opt(r1) opt(r2) opt(r3) opt(p0) opt(p1)
#define MASKED(axis) "MASK " #axis " 16\n"
#define IN_EIGHTS(axis) "MASK " #axis " 8\n"
#define DIVIDED(axis) "SPLIT " #axis " 16\n"
#define SHARED(axis) "BIND " #axis ".o warp\n"
#define STAGED "STAGE i0.o 1\nSTAGE i0.o 2\nSTAGE i0.o 3\n"

/* A warp has whole rows. */
static const char whole[] =
    ALONG(MASKED) "MASK i0 16\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 2\n"
                  "TC mma.f16 (i0.i; p0; r0)\nTC mma.f16 (i0.i; i1.i; r3)\nBIND i0.o grid\n" STAGED;

/* Three warps have a part of each, two blocks of rows in a group. */
static const char parts[] = ALONG(MASKED)
    ALONG(DIVIDED) "MASK i0 32\nSPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 8\nUPCAST i1.o 2\n"
                   "TC mma.f16 (i0.i.i; p0.i; r0)\nTC mma.f16 (i0.i.i; i1.i; r3.i)\n"
                   "BIND i0.o grid\nBIND i0.i.o warp\n" ALONG(SHARED) STAGED;

static void whole_rows(void **state)
{
    (void)state;
    expect(INGOT_F16, whole, 5 + 3 * 2); /* all of a sixth fragment is masked */
    expect(INGOT_F32,
           ALONG(IN_EIGHTS) "MASK i0 16\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 2\nSPLIT r0 8\n"
                            "TC mma.tf32x3 (i0.i; p0; r0.i)\nTC mma.tf32x3 (i0.i; i1.i; r3)\n"
                            "BIND i0.o grid\n" STAGED,
           5 + 5 * 2);
}

static void parts_of_rows(void **state)
{
    (void)state;
    expect(INGOT_F16, parts, 2 + 2);
    expect(INGOT_F32,
           ALONG(MASKED)
               ALONG(DIVIDED) "MASK i0 16\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 2\nSPLIT r0 8\n"
                              "TC mma.tf32x3 (i0.i; p0.i; r0.i)\n"
                              "TC mma.tf32x3 (i0.i; i1.i; r3.i)\nBIND i0.o grid\n" ALONG(SHARED)
                                  STAGED,
           2 + 2 * 2);
}

/* They have no room in the registers of one warp. */
static void long_rows(void **state)
{
    (void)state;
    NestRun r = prepare_keys(INGOT_F16, LONG, "");
    assert_true(choose_rows_opts(&r.nest));
    run_free(&r);
}

/* Shares of a row, of scores so far apart that each is 0 or one of a few that are alike. */
static ingot_tensor *shares_of(Context *c, ingot_dtype d, int64_t rows, int64_t width)
{
    ingot_tensor *q = operand(c, "q", d, rows, width), *k = operand(c, "k", d, LONGER, width),
                 *v = operand(c, "v", d, LONGER, width);
    ingot_tensor *s = ingot_matmul(c, q, ingot_permute(c, k, (int[]){1, 0}));
    s = ingot_mul_c(c, ingot_cast(c, s, INGOT_F32), 256);
    return ingot_matmul(c, ingot_cast(c, ingot_softmax(c, s, 1), d), v);
}

static NestRun prepare_result(Context *c, const char *target, ingot_tensor *y, const char *opts)
{
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, target, &status));
    NestRun r = run_planned(c, y, &t, NULL);
    arena_free(a);
    if (opts)
        run_opts(r.nest, opts);
    else
        assert_true(choose_rows_opts(&r.nest));
    run_lower(&r, true);
    r.rounds = true; /* quotients */
    return r;
}

static NestRun prepare_of(const char *target, ingot_dtype d, int64_t rows, int64_t width,
                          const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    return prepare_result(c, target, shares_of(c, d, rows, width), opts);
}

/* Two warpgroups, in groups of their own; rows go block after block. */
#define IN_LINES(axis) "MASK " #axis " 64\nSPLIT " #axis " 64\n"
static const char groups[] =
    ALONG(IN_LINES) "MASK i1 64\nMASK i0 64\nSPLIT i0 64\nMASK r0 64\nSPLIT r0 16\n"
                    "TC wgmma64.f16 (i0.i; p0.i; r0.i)\nTC wgmma64.f16 (i0.i; i1; r2.i)\n"
                    "BIND i0.o grid\nSTAGE i0.o 1 move tma\nSTAGE p0.o 2 depth 2 move tma\n"
                    "STAGE r2.o 3 depth 2 move tma\n";

static NestRun prepare_groups(void)
{
    return prepare_of("cuda:sm_90a", INGOT_F16, MANY, DEPTH, groups);
}

static const struct {
    const char *target;
    ingot_dtype type;
    int64_t rows, width;
    bool groups; /* by warpgroups */
} shares[] = {
    {"cuda:sm_80", INGOT_F16, ROWS, DEPTH, false},
    {"cuda:sm_80", INGOT_F32, ROWS, DEPTH, false},
    {"cuda:sm_90a", INGOT_F16, MANY, WIDE, true},
};

/* opts NULL: the chosen ones */
static NestRun prepare_shares(int i, const char *opts)
{
    return prepare_of(shares[i].target, shares[i].type, shares[i].rows, shares[i].width, opts);
}

/* Rows that no registers have room for come block after block: what was summed before is scaled. */
static void rows_by_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof shares / sizeof *shares); i++) {
        NestRun r = prepare_shares(i, NULL);
        const Tile *t = r.lowered->tiles.tile;
        assert_non_null(t->along);
        assert_ptr_equal(t->along, t->ahead_of);
        assert_int_equal(tc_in_place(t->tc), shares[i].groups);
        /* without opts these would run for half a minute */
        const char *fault =
            run_wrong(&r, shares[i].groups ? prepare_of("cuda:sm_80", shares[i].type,
                                                        shares[i].rows, shares[i].width, NULL)
                                           : prepare_shares(i, ""));
        if (*fault)
            fail_msg("%d: %s", i, fault);
        run_free(&r);
    }
}

/* What is added to results is loaded by those who store them, and not by the item that has boxes
 * copied: the memory may be the results'. */
static void loader_reads_nothing(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *y = shares_of(c, INGOT_F16, MANY, DEPTH),
                 *x = ingot_sub(c, operand(c, "x", INGOT_F16, MANY, DEPTH),
                                operand(c, "z", INGOT_F16, MANY, DEPTH));
    y = ingot_add(c, y, ingot_add(c, ingot_mul(c, x, x), x));
    NestRun r = prepare_result(c, "cuda:sm_90a", y, groups);
    const Stmt *s = r.lk->tile[0].stmt;
    for (; s->kind != STMT_LOADER; s++)
        assert_false(s->kind == STMT_LET && dtype_is_float((ingot_dtype)s->node->dtype));
    run_free(&r);
}

/* By warpgroups: without each of the waits for places and for products, and each release of them;
 * without what sums so far are scaled by. */
static void groups_left_out(void **state)
{
    (void)state;
    static const StmtKind kind[] = {STMT_CLAIM, STMT_FILLED, STMT_RELEASE, STMT_DONE, STMT_SCALE};
    int faults = 1, left = 0;
    /* what is itself judged by the kernel without opts in rows_by_blocks(), and runs for less long
     */
    NestRun other = prepare_of("cuda:sm_80", INGOT_F16, MANY, DEPTH, NULL), r = prepare_groups();
    const char *fault = run_beside(&r, &other);
    if (*fault)
        fail_msg("with all statements: %s", fault);
    run_free(&r);
    for (; left < faults; left++) {
        r = prepare_groups();
        Linear *l = &r.lk->tile[0];
        int at = -1;
        faults = 0;
        for (int i = 0; i < l->n; i++)
            for (size_t j = 0; j < sizeof kind / sizeof *kind; j++)
                if (l->stmt[i].kind == kind[j] && faults++ == left)
                    at = i;
        assert_true(at >= 0);
        const StmtKind without = l->stmt[at].kind;
        memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
        l->n--;
        fault = run_beside(&r, &other);
        if (!*fault)
            fail_msg("without statement %d of kind %d nothing is wrong", left, (int)without);
        run_free(&r);
    }
    run_free(&other);
    assert_true(left >= 7);
}

/* Two groups of a cluster, of two warps each, have every fourth block of a row. */
#define IN_RANKS(axis) \
    "MASK " #axis " 64\nSPLIT " #axis " 64\nSPLIT " #axis ".i 32\nSPLIT " #axis ".i.i 16\n"
#define OF_CLUSTER(axis) "BIND " #axis ".i.o cluster\n"
#define OF_WARPS(axis) "BIND " #axis ".i.i.o warp\n"
static const char ranks[] = ALONG(
    IN_RANKS) "MASK i0 16\nSPLIT i0 16\nSPLIT i1 8\nUPCAST i1.o 4\nSPLIT r0 16\n"
              "TC mma.f16 (i0.i; p0.i.i.i; r0.i)\nTC mma.f16 (i0.i; i1.i; r2.i.i.i)\n" ALONG(
                  OF_CLUSTER) "BIND i0.o grid\n" ALONG(OF_WARPS) "STAGE i0.o 1\nSTAGE p0.o 2 depth "
                                                                 "3\nSTAGE r2.o 3 depth 3\n";

static int find_loop(const Linear *l, const Node *range)
{
    int at = 0;
    while (at < l->n && (l->stmt[at].kind != STMT_LOOP || l->stmt[at].node != range))
        at++;
    assert_true(at < l->n);
    return at;
}

/* Groups join what they have of rows, the maxima and all sums, where they meet once. What is
 * multiplied with all keys is loaded once. Each barrier, wait and meeting is left out, meetings are
 * of one group alone, and barriers of a group of its warps: but for those that fill what they read.
 */
static void ranks_of_rows(void **state)
{
    (void)state;
    int faults = 1, left = 0;
    NestRun other = prepare_of("cuda:sm_80", INGOT_F16, ROWS, 2 * DEPTH, NULL),
            r = prepare_of("cuda:sm_90a", INGOT_F16, ROWS, 2 * DEPTH, ranks);
    assert_non_null(r.lowered->tiles.tile->ranks);
    const Linear *made = &r.lk->tile[0];
    int kept = 0; /* fragments of queries, before the loop over blocks */
    for (int i = find_loop(made, made->tile->along); i-- > 0;)
        kept += made->stmt[i].kind == STMT_LET && made->fragment[made->stmt[i].node->id];
    assert_int_equal(kept, 2);
    int meetings = 0;
    for (int i = 0; i < made->n; i++)
        meetings += made->stmt[i].meets;
    assert_int_equal(meetings, 1);
    const int loop = find_loop(made, made->tile->along);
    assert_true(made->stmt[loop + 2].kind == STMT_BARRIER && made->stmt[loop + 2].alone);
    const char *fault = run_beside(&r, &other);
    if (*fault)
        fail_msg("with all statements: %s", fault);
    run_free(&r);
    for (; left < faults; left++) {
        r = prepare_of("cuda:sm_90a", INGOT_F16, ROWS, 2 * DEPTH, ranks);
        Linear *l = &r.lk->tile[0];
        int at = -1, alone = -1, narrow = -1;
        faults = 0;
        for (int i = 0; i < l->n; i++) {
            const Stmt *s = &l->stmt[i];
            if ((s->kind == STMT_BARRIER || s->kind == STMT_WAIT) && faults++ == left)
                at = i;
            if (s->meets && faults++ == left)
                alone = i;
            if (s->kind == STMT_BARRIER && !s->meets && !s->alone && faults++ == left)
                narrow = i;
        }
        assert_true(at >= 0 || alone >= 0 || narrow >= 0);
        if (alone >= 0) {
            l->stmt[alone].meets = false;
        } else if (narrow >= 0) {
            l->stmt[narrow].alone = true;
        } else {
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
        }
        fault = run_beside(&r, &other);
        if (!strstr(fault, "a race: ") && !strstr(fault, "which nothing has written") &&
            !strstr(fault, "to which a copy is under way"))
            fail_msg("without statement %d (%s): '%s'", left,
                     alone >= 0    ? "alone"
                     : narrow >= 0 ? "of warps"
                                   : "left out",
                     fault);
        run_free(&r);
    }
    run_free(&other);
    assert_true(left >= 3 * 2 + 4 + 1);
}

/* Without each of the barriers, and each of the waits for copies; a wait for too few. */
static void left_out(void **state)
{
    (void)state;
    static const char *const opts[] = {whole, parts};
    static const int wanted[] = {4, 7, 4};
    for (int how = 0; how < 3; how++) {
        int faults = 1;
        NestRun naive = how < 2 ? prepare(INGOT_F16, "") : prepare_shares(0, "");
        for (int left = 0; left < faults; left++) {
            NestRun r = how < 2 ? prepare(INGOT_F16, opts[how]) : prepare_shares(0, NULL);
            Linear *l = &r.lk->tile[0];
            int at = -1;
            faults = 0;
            for (int i = 0; i < l->n; i++) {
                const StmtKind kind = l->stmt[i].kind;
                if ((kind == STMT_BARRIER || kind == STMT_WAIT) && faults++ == left)
                    at = i;
            }
            assert_true(at >= 0);
            const bool wait = l->stmt[at].kind == STMT_WAIT;
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
            const char *fault = run_beside(&r, &naive);
            if (!strstr(fault, "a race: ") && !strstr(fault, "which nothing has written") &&
                !strstr(fault, "to which a copy is under way"))
                fail_msg("%d, without %s %d: '%s'", how, wait ? "wait" : "barrier", left, fault);
            run_free(&r);
        }
        run_free(&naive);
        assert_int_equal(faults, wanted[how]);
    }
}

#define IN_BLOCKS(axis) "MASK " #axis " 32\nSPLIT " #axis " 32\n"
/* Warps read what others have copied: it is not enough that each waits for its own. */
static void barriers_of_warps(void **state)
{
    (void)state;
    static const char opts[] =
        ALONG(IN_BLOCKS) "MASK i0 32\nSPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 8\nUPCAST i1.o 2\n"
                         "TC mma.f16 (i0.i.i; p0.i; r0)\nTC mma.f16 (i0.i.i; i1.i; r2.i)\n"
                         "BIND i0.o grid\nBIND i0.i.o warp\nSTAGE i0.o 1\n"
                         "STAGE p0.o 2 depth 3\nSTAGE r2.o 3 depth 3\n";
    NestRun naive = prepare_shares(0, ""), r = prepare_shares(0, opts);
    Linear *l = &r.lk->tile[0];
    const int at = find_loop(l, l->tile->along) + 2;
    assert_true(l->stmt[at].kind == STMT_BARRIER && !l->stmt[at].alone);
    l->stmt[at].alone = true;
    const char *fault = run_beside(&r, &naive);
    if (!strstr(fault, "a race: ") && !strstr(fault, "which nothing has written") &&
        !strstr(fault, "to which a copy is under way"))
        fail_msg("'%s'", fault);
    run_free(&r);
    run_free(&naive);
}

static Node *with_gate(Context *c, Node *store, Node *gate)
{
    Node *src[] = {store->src[0], gate, store->src[2], store->src[3]};
    return node_with(c, store, src);
}

/* What is joined of a row: one lane of a line stores what all four have, or each of them does; all
 * warps store theirs, or one does not. */
static void joins(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        NestRun r = prepare(INGOT_F16, parts);
        Linear *l = &r.lk->tile[0];
        const Tile *t = r.lowered->tiles.tile;
        bool planted = false;
        for (int i = 0; i < l->n && !planted; i++) {
            Node *n = l->stmt[i].node, *part = NULL;
            planted = l->stmt[i].kind == STMT_STORE && n->src[0]->arg.i == 7; /* the maxima */
            for (int j = 0; j < t->naxis; j++)
                part = strcmp(t->axis[j].name, "r1.o") ? part : t->axis[j].range;
            Context *c = r.lowered->tiles.k->c;
            if (planted && what)
                part = node_alu2(c, OP_LT, INGOT_BOOL, part, idx(c, 2));
            if (planted)
                l->stmt[i].node = with_gate(c, n,
                                            what ? node_alu2(c, OP_AND, INGOT_BOOL, n->src[1], part)
                                                 : node_bool(c, true));
        }
        assert_true(planted);
        const char *fault = run_wrong(&r, prepare(INGOT_F16, ""));
        if (!strstr(fault, what ? "which nothing has written" : "a race: "))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
}

static void refusals(void **state)
{
    (void)state;
    NestRun r = prepare(INGOT_F16, ALONG(MASKED) "MASK i0 16\nSPLIT i0 16\nSPLIT i1 8\n");
    Nest *n = nest_clone(r.nest);
    refusal(n, "SPLIT p0 16", NULL);
    refusal(n, "TC mma.f16 (i0.i; p0.i; r0)", "is not all of rows of 16");
    refusal(n, "SPLIT p1 16", NULL);
    refusal(n, "SPLIT r1 16", NULL);
    refusal(n, "SPLIT r2 16", NULL);
    refusal(n, "SPLIT r3 16", NULL);
    refusal(n, "TC mma.f16 (i0.i; p0.i; r0)", NULL);
    refusal(n, "TC mma.f16 (i0.i; i1.i; r3.o)", "its terms are along them");
    refusal(n, "TC mma.f16 (i0.i; i1.i; r3.i)", NULL);
    assert_non_null(strstr(nest_check(n), "blocks of a row are for warps"));
    nest_free(n);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_rows),      cmocka_unit_test(parts_of_rows),
        cmocka_unit_test(long_rows),       cmocka_unit_test(rows_by_blocks),
        cmocka_unit_test(left_out),        cmocka_unit_test(barriers_of_warps),
        cmocka_unit_test(joins),           cmocka_unit_test(loader_reads_nothing),
        cmocka_unit_test(groups_left_out), cmocka_unit_test(ranks_of_rows),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
