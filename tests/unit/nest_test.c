/* nest_test.c - opts that are tried leave no trace, and opts that are refused change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "targets/targets.h"

/* KEPT: what the allocator's caches may hold more or less, less than a byte a candidate */
enum { CANDIDATES = 10000, WARM = 2000, KEPT = 4096 };

static size_t bytes_in_use(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static Target vectors(void)
{
    Target t = *target_find("c");
    assert_true(target_tune(&t, "x86-64-v4"));
    return t;
}

static ingot_tensor *variable(Context *c, const char *name, int64_t rows, int64_t columns)
{
    return ingot_input(c, name, INGOT_F32, 2, (ingot_dim *[]){idx(c, rows), idx(c, columns)});
}

static Plan *plan_for(Context *c, ingot_tensor *y)
{
    ingot_output(c, "y", y);
    Plan *p = schedule(c, 2, target_find("c"));
    assert_non_null(p);
    kernel_share(p);
    return p;
}

/* max(x w, 0), and softmax over its rows. */
static Plan *plan_of(Context *c, bool softmax)
{
    ingot_tensor *y = ingot_matmul(c, variable(c, "x", 37, 40), variable(c, "w", 40, 50));
    return plan_for(c, softmax ? ingot_softmax(c, variable(c, "z", 37, 50), 1) : ingot_relu(c, y));
}

/* An axis as it is by now or was, and an amount that may not fit. */
static const char *random_opt(Nest *n, uint32_t *state)
{
    static const int64_t amount[] = {2, 3, 4, 5, 8, 16, 1};
    static const OptKind kind[] = {OPT_SPLIT,  OPT_VECTOR, OPT_UPCAST, OPT_UNROLL,
                                   OPT_VECTOR, OPT_UPCAST, OPT_ORDER,  OPT_THREAD,
                                   OPT_STAGE,  OPT_STAGE,  OPT_PARTIAL};
    Opt o = {.kind = kind[next(state) % (sizeof kind / sizeof *kind)],
             .axis = n->axis[(int)(next(state) % (uint32_t)n->naxis)].name,
             .amount = amount[next(state) % (sizeof amount / sizeof *amount)]};
    return opt_apply(n, &o);
}

static void candidates(bool softmax)
{
    Context *c = ingot_context_new(NULL, NULL);
    Plan *p = plan_of(c, softmax);
    Target t = vectors();
    const Kernel *k = p->kernels[0];
    StrBuf before = {0}, after = {0};
    render_kernel(&before, &t, k, "k");
    uint32_t nodes = k->c->nnode, state = 7;
    Nest *plain = nest_new(k, &t);
    size_t bytes = 0;
    int applied = 0, refused = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        if (i == WARM)
            bytes = bytes_in_use();
        Nest *n = nest_clone(plain);
        for (uint32_t j = 0, count = next(&state) % 6; j < count; j++) {
            int nopt = n->nopt, naxis = n->naxis, nsplit = n->nsplit;
            bool good = !random_opt(n, &state);
            applied += good;
            refused += !good;
            assert_int_equal(n->nopt, nopt + good);
            assert_true(good || (n->naxis == naxis && n->nsplit == nsplit));
        }
        Tiles tiles = nest_lower(n);
        for (int j = 0; j < tiles.n; j++)
            verify(tiles.tile[j].nstore, tiles.tile[j].store, 1, "nest_lower");
        tiles_free(&tiles);
        nest_free(n);
    }
    assert_true(bytes_in_use() <= bytes + KEPT);
    nest_free(plain);
    assert_true(applied > CANDIDATES / 2 && refused > CANDIDATES / 2);
    assert_int_equal(k->c->nnode, nodes);
    render_kernel(&after, &t, k, "k");
    assert_string_equal(before.data, after.data);
    sb_free(&before);
    sb_free(&after);
    plan_free(p);
    ingot_context_free(c);
}

static void candidates_of_a_product(void **state)
{
    (void)state;
    candidates(false);
}

static void candidates_of_rows(void **state)
{
    (void)state;
    candidates(true);
}

static void refusal(Nest *n, OptKind kind, const char *axis, int64_t amount, const char *wanted)
{
    Opt o = {.kind = kind, .axis = axis, .amount = amount};
    const char *why = opt_apply(n, &o);
    if (!wanted)
        assert_null(why);
    else if (!why || !strstr(why, wanted))
        fail_msg("%s %s %d: '%s' where '%s' was wanted", opt_name[kind], axis, (int)amount,
                 why ? why : "done", wanted);
}

/* Opts one after the other; the reason that each is refused with, or NULL. */
static void refusals(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Plan *p = plan_of(c, false);
    Target t = vectors();
    Nest *n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_UPCAST, "nope", 4, "no axis 'nope': it has i0 i1 r0");
    refusal(n, OPT_VECTOR, "i1", 5, "4, 8 or 16");
    refusal(n, OPT_UPCAST, "i0", 38, "37 elements");
    refusal(n, OPT_UPCAST, "r0", 4, "is reduced");
    refusal(n, OPT_SPLIT, "r0", 3, "is reduced");
    refusal(n, OPT_UNROLL, "i0", 4, "not reduced");
    refusal(n, OPT_UNROLL, "r0", 41, "40 elements");
    refusal(n, OPT_VECTOR, "i1", 16, NULL);
    refusal(n, OPT_VECTOR, "i0", 16, "lanes already");
    refusal(n, OPT_UPCAST, "i1", 2, "no axis 'i1': it has i0 i1.o r0");
    refusal(n, OPT_UPCAST, "i1.r", 2, "no axis 'i1.r'");
    refusal(n, OPT_UPCAST, "i1.o", 3, NULL);
    refusal(n, OPT_SPLIT, "i1.o.o", 2, "no loop is left");
    refusal(n, OPT_UPCAST, "i0", 32, "at most 64 copies");
    refusal(n, OPT_SPLIT, "i0", 8, NULL);
    refusal(n, OPT_ORDER, "i0.o i0", 0, "no axis 'i0'");
    refusal(n, OPT_ORDER, "i0.o i0.o", 0, "twice");
    refusal(n, OPT_ORDER, "i0.i i0.o i1.o.o r0", 0, NULL);
    refusal(n, OPT_THREAD, "r0", 4, "is reduced");
    refusal(n, OPT_THREAD, "i0.i", 1, "2 to ");
    refusal(n, OPT_THREAD, "r0..i0.i", 4, "no loop around");
    refusal(n, OPT_THREAD, "i0.o..i0.i", 4, "no loop around");
    refusal(n, OPT_THREAD, "i7..i0.i", 4, "no axis 'i7'");
    refusal(n, OPT_THREAD, "i0.o..i7", 4, "no axis 'i7'");
    refusal(n, OPT_THREAD, "i0.i", 4, NULL);
    refusal(n, OPT_UNROLL, "r0", 4, "comes last");
    nest_free(n);
    n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_OVERLAP, "r0", 16, "an axis of results");
    refusal(n, OPT_OVERLAP, "i1", 10, "SPLIT leaves nothing over");
    refusal(n, OPT_OVERLAP, "i1", 50, "50 elements");
    refusal(n, OPT_OVERLAP, "i1", 24, NULL);
    refusal(n, OPT_VECTOR, "i1.i", 8, "some lanes would not be stored");
    nest_free(n);
    n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_SPLIT, "r0", 10, NULL);
    refusal(n, OPT_UNROLL, "r0.i", 3, "has to divide");
    refusal(n, OPT_UNROLL, "r0.i", 5, NULL);
    nest_free(n);
    n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_PREFETCH, "i0", 2, "moves with the axis");
    refusal(n, OPT_UNROLL, "r0", 3, NULL);
    refusal(n, OPT_UNROLL, "r0.o", 2, "already, with a rest");
    refusal(n, OPT_STAGE, "i0", 2, "unrolled with a rest");
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* Lanes inside of blocks: 24 = 16 + 8, and what remains of 50 is a loop. */
static void lanes_of_blocks(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Plan *p = plan_of(c, false);
    Target t = vectors();
    Nest *n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_SPLIT, "i1", 24, NULL);
    refusal(n, OPT_VECTOR, "i1.o", 4, "2 elements");
    refusal(n, OPT_VECTOR, "i1.i", 16, NULL);
    assert_null(nest_check(n));
    Tiles tiles = nest_lower(n);
    assert_int_equal(tiles.n, 3);
    assert_int_equal(tiles.tile[0].lanes, 16);
    assert_int_equal(tiles.tile[2].lanes, 8);
    tiles_free(&tiles);
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* What remains of a row stays beside its vectors, so that the sums over the row are done once. */
static void refusals_beside_a_row(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Plan *p = plan_of(c, true);
    Target t = vectors();
    Nest *n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_VECTOR, "i1", 16, NULL);
    refusal(n, OPT_UPCAST, "i0", 2, "apart from");
    refusal(n, OPT_ORDER, "i1.o i0", 0, "has to stay innermost");
    refusal(n, OPT_ORDER, "i0", 0, NULL);
    refusal(n, OPT_THREAD, "i1.o", 2, "apart from");
    refusal(n, OPT_THREAD, "i0", 2, NULL);
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* Sums of a row in a place: loops over results run for each block of terms, of which the last two
 * of 50 are added behind. */
static void sums_in_a_place(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dim[] = {idx(c, 6), idx(c, 50), idx(c, 37)};
    Plan *p = plan_for(c, ingot_sum(c, ingot_input(c, "x", INGOT_F32, 3, dim), 2, false));
    Kernel *k = p->kernels[0];
    Target t = vectors();
    Nest *n = nest_new(k, &t);
    refusal(n, OPT_PARTIAL, "i1", 4, "takes a reduced axis");
    refusal(n, OPT_PARTIAL, "r0", 51, "50 elements");
    refusal(n, OPT_PARTIAL, "r0", 4, "no loop over results stands inside");
    refusal(n, OPT_VECTOR, "i1", 16, NULL);
    refusal(n, OPT_ORDER, "i0 r0 i1.o", 0, NULL);
    refusal(n, OPT_PARTIAL, "r0", 4, NULL);
    refusal(n, OPT_PARTIAL, "r0.o", 2, "in a place already");
    refusal(n, OPT_UPCAST, "i0", 2, "after PARTIAL");
    refusal(n, OPT_THREAD, "i1.o", 2, "lie in a place");
    refusal(n, OPT_THREAD, "i0", 2, NULL);
    assert_null(nest_check(n));
    nest_keep(n, k);
    StrBuf text = {0};
    render_kernel(&text, &t, k, "k");
    const char *begun = strstr(text.data, "igrt_store_f32x16(a2 + (i1_o_z*16), igrt_splat"),
               *rows = begun ? strstr(begun, "r0_o < 12") : NULL,
               *row = rows ? strstr(rows, "i1_o_r0 < 2") : NULL,
               *read = row ? strstr(row, "i1_o < 2") : NULL;
    assert_non_null(read);
    assert_non_null(strstr(read, "for (int r0_r = 0; r0_r < 2"));
    sb_free(&text);
    nest_free(n);
    n = nest_new(k, &t);
    refusal(n, OPT_VECTOR, "r0", 16, NULL);
    refusal(n, OPT_ORDER, "i0 r0.o i1", 0, NULL);
    refusal(n, OPT_PARTIAL, "r0.o", 3, "without DOT, lanes");
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* Results behind the last whole block, of whose number only the run knows, have sums in a place
 * too: no more than there are. */
static void sums_of_a_rest(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dim[] = {idx(c, 50), ingot_dim_var(c, "n", 1, 100)};
    Plan *p = plan_for(c, ingot_sum(c, ingot_input(c, "x", INGOT_F32, 2, dim), 1, false));
    Kernel *k = p->kernels[0];
    Target t = vectors();
    Nest *n = nest_new(k, &t);
    refusal(n, OPT_SPLIT, "i0", 32, NULL);
    refusal(n, OPT_VECTOR, "i0.i", 16, NULL);
    refusal(n, OPT_ORDER, "i0.o r0 i0.i.o", 0, NULL);
    refusal(n, OPT_PARTIAL, "r0", 5, NULL);
    assert_null(nest_check(n));
    nest_keep(n, k);
    StrBuf text = {0};
    render_kernel(&text, &t, k, "k");
    const char *rest = strstr(text.data, "const int v8 = (int)(n_n % 32);");
    assert_non_null(rest);
    assert_non_null(strstr(rest, "i0_r_z < v8"));
    assert_non_null(strstr(rest, "i0_r_r0 < v8"));
    sb_free(&text);
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* n / 16 vectors and n % 16 elements: what is known at run time only is taken apart too. */
static void sizes_of_run_time(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *n = ingot_dim_var(c, "n", 1, 100);
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, (ingot_dim *[]){idx(c, 5), n});
    Plan *p = plan_for(c, ingot_sum(c, x, 2, false));
    Kernel *k = p->kernels[0];
    Target t = vectors();
    Nest *nest = nest_new(k, &t);
    refusal(nest, OPT_VECTOR, "r0", 16, NULL);
    refusal(nest, OPT_UNROLL, "r0.o", 4, NULL);
    refusal(nest, OPT_UPCAST, "i0", 5, NULL);
    assert_null(nest_check(nest));
    nest_keep(nest, k);
    StrBuf text = {0};
    render_kernel(&text, &t, k, "k");
    assert_non_null(strstr(text.data, "n_n / 64"));
    assert_non_null(strstr(text.data, "n_n / 16"));
    assert_non_null(strstr(text.data, "n_n % 16"));
    sb_free(&text);
    nest_free(nest);
    plan_free(p);
    ingot_context_free(c);
}

/* Whole blocks are all of 4 n rows: nothing is computed, or read, behind them. */
static void rows_without_rest(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dim[] = {ingot_dim_var(c, "n", 1, 100), idx(c, 4), idx(c, 40)};
    ingot_tensor *x = ingot_flatten(c, ingot_input(c, "x", INGOT_F32, 3, dim), 0, 2);
    Plan *p = plan_for(c, ingot_matmul(c, x, variable(c, "w", 40, 16)));
    Target t = vectors();
    Nest *n = nest_new(p->kernels[0], &t);
    refusal(n, OPT_VECTOR, "i1", 16, NULL);
    refusal(n, OPT_UPCAST, "i0", 4, NULL);
    Tiles tiles = nest_lower(n);
    assert_int_equal(tiles.n, 1);
    tiles_free(&tiles);
    nest_free(n);
    plan_free(p);
    ingot_context_free(c);
}

/* The items of a group share the terms of a sum: 40 = 5 parts of 8, of rows in blocks and columns
 * in lanes. */
static void parts_of_sums(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Plan *p = plan_of(c, false);
    Kernel *k = p->kernels[0];
    const Target *t = target_find("opencl");
    Nest *nest = nest_new(k, t);
    refusal(nest, OPT_SPLIT, "r0", 8, NULL);
    refusal(nest, OPT_BIND, "r0.o", BOUND_GRID, "groups of a grid do not meet");
    refusal(nest, OPT_MASK, "i0", 4, NULL);
    refusal(nest, OPT_SPLIT, "i0", 4, NULL);
    refusal(nest, OPT_BIND, "i0.o", BOUND_GRID, NULL);
    refusal(nest, OPT_UPCAST, "i0.i", 4, NULL);
    refusal(nest, OPT_BIND, "i1", BOUND_LANE, NULL);
    refusal(nest, OPT_BIND, "r0.i", BOUND_LANE, "at most 256 items");
    refusal(nest, OPT_BIND, "r0.o", BOUND_LANE, NULL);
    refusal(nest, OPT_STAGE, "r0.i", 1, "sums that items share");
    assert_null(nest_check(nest));
    nest_keep(nest, k);
    StrBuf text = {0};
    render_kernel(&text, t, k, "k");
    assert_non_null(strstr(text.data, "reqd_work_group_size(250, 1, 1)"));
    assert_non_null(strstr(text.data, "a3[1005]")); /* 5 parts of 200 results, and one between */
    assert_non_null(strstr(text.data, "part"));
    sb_free(&text);
    nest_free(nest);
    plan_free(p);
    ingot_context_free(c);
}

/* Each node reads the one before it twice: ways down double with each. */
static void shared_nodes_are_looked_at_once(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    Node *other = range_new(c, 1, idx(c, 8)), *in = range_new(c, 2, idx(c, 8)),
         *late = range_new(c, 3, idx(c, 8)), *e = node_cast(c, in, INGOT_I32);
    for (int i = 0; i < 64; i++)
        e = node_alu2(c, i % 2 ? OP_XOR : OP_MUL, INGOT_I32, e,
                      node_alu2(c, OP_SHL, INGOT_I32, e, node_const_i(c, INGOT_I32, 1)));
    assert_true(depends_on(e, in));
    assert_false(depends_on(e, other));
    assert_false(depends_on(e, late));
    ingot_context_free(c);
}

/* What is printed of an opt is read as that opt, and what has not the form of its kind is none. */
static void opts_are_text(void **state)
{
    (void)state;
    static const char *const good[] = {"UPCAST i0.o 4",
                                       "ORDER i0 r0 i1",
                                       "THREAD i0..i1.o 112",
                                       "BIND i0.i lane",
                                       "STAGE r0 2",
                                       "STAGE r0.o 1 depth 3",
                                       "STAGE i0 1 depth 2 move tma",
                                       "STAGE i0 1 move tma",
                                       "TC mma.f16 (i0.i; i1.i; r0.i)",
                                       "TRIGGER waited",
                                       "IMAGE 2",
                                       "JOIN r1 r2"};
    static const char *const bad[] = {"UPCAST",
                                      "UPCAST i0",
                                      "UPCAST i0 0",
                                      "UPCAST i0 4x",
                                      "UPCAST i0 4 4",
                                      "UPCAST i0 -4",
                                      "BIND i0 nowhere",
                                      "STAGE r0 2 depth",
                                      "TRIGGER a b",
                                      "UPCAST i0 1048577",
                                      "UPCAST i0 4 depth 2",
                                      "STAGE r0 2 move",
                                      "ORDER",
                                      "UPCASTS i0 4",
                                      ""};
    Arena *a = arena_new();
    Opt o;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        StrBuf sb = {0};
        assert_true(opt_read(a, good[i], &o));
        opt_print(&sb, &o);
        assert_string_equal(sb.data, good[i]);
        sb_free(&sb);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(opt_read(a, bad[i], &o));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opts_are_text),
        cmocka_unit_test(shared_nodes_are_looked_at_once),
        cmocka_unit_test(candidates_of_a_product),
        cmocka_unit_test(candidates_of_rows),
        cmocka_unit_test(refusals),
        cmocka_unit_test(lanes_of_blocks),
        cmocka_unit_test(refusals_beside_a_row),
        cmocka_unit_test(sums_in_a_place),
        cmocka_unit_test(sums_of_a_rest),
        cmocka_unit_test(sizes_of_run_time),
        cmocka_unit_test(rows_without_rest),
        cmocka_unit_test(parts_of_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
