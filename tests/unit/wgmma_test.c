/* wgmma_test.c - products that the items of a warpgroup have together, of operands that boxes of
 * the buffers are copied to: by opts, which are applied, printed, lowered, interpreted beside the
 * kernel without opts and written as text; what the loading item and the warps say to each other
 * left out, or said at another time. */
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
    int64_t batch, m, n, k;
    bool turned; /* w is [n][k] */
    bool aside;  /* x is [k][m] */
} WgmmaProduct;

static const WgmmaProduct halves = {INGOT_F16, 1, 128, 64, 192, false, false};
static const WgmmaProduct halves_turned = {INGOT_F16, 1, 128, 64, 128, true, false};
static const WgmmaProduct both_turned = {INGOT_F16, 1, 64, 128, 128, true, true};
static const WgmmaProduct wide = {INGOT_BF16, 1, 64, 256, 128, false, false};
static const WgmmaProduct deep = {INGOT_F16, 1, 64, 64, 256, false, false};
static const WgmmaProduct both_sides = {INGOT_F16, 1, 128, 128, 128, false, false};
static const WgmmaProduct tall = {INGOT_F16, 1, 256, 256, 128, false, false};
static const WgmmaProduct square = {INGOT_F16, 1, 192, 192, 192, false, false};
static const WgmmaProduct uneven = {INGOT_F16, 1, 72, 136, 152, false, false};
static const WgmmaProduct singles = {INGOT_F32, 1, 128, 96, 128, true, false};
static const WgmmaProduct singles_uneven = {INGOT_F32, 1, 72, 100, 152, true, false};
static const WgmmaProduct singles_turned = {INGOT_F32, 1, 128, 96, 128, false, false};
static const WgmmaProduct bytes = {INGOT_I8, 1, 128, 64, 384, true, false};
static const WgmmaProduct bytes_uneven = {INGOT_U8, 1, 72, 136, 208, true, false};
static const WgmmaProduct bytes_turned = {INGOT_I8, 1, 128, 64, 256, false, false};
static const WgmmaProduct f8 = {INGOT_F8E4M3FN, 1, 128, 64, 384, true, false};
static const WgmmaProduct f8_uneven = {INGOT_F8E5M2, 1, 72, 136, 208, true, false};
static const WgmmaProduct f8_tall = {INGOT_F8E4M3FN, 1, 256, 256, 256, true, false};
static const WgmmaProduct batched = {INGOT_F16, 3, 100, 72, 72, true, false};

static ingot_tensor *tensor(Context *c, const char *name, ingot_dtype d, int64_t batch, int64_t n,
                            int64_t m)
{
    ingot_dim *size[3] = {(ingot_dim *)(uintptr_t)idx(c, batch), (ingot_dim *)(uintptr_t)idx(c, n),
                          (ingot_dim *)(uintptr_t)idx(c, m)};
    const bool flat = batch == 1;
    const bool byte = d == INGOT_I8 || d == INGOT_U8;
    return ingot_cast(c, ingot_input(c, name, d, flat ? 2 : 3, size + flat),
                      byte ? INGOT_I32 : INGOT_F32);
}

static ingot_tensor *turned(Context *c, ingot_tensor *x, bool flat)
{
    return ingot_permute(c, x, flat ? (int[]){1, 0} : (int[]){0, 2, 1});
}

static NestRun lowered(Context *c, ingot_tensor *y, const char *opts)
{
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, "cuda:sm_90a", &status));
    NestRun r = run_new(c, y, &t);
    arena_free(a);
    run_opts(r.nest, opts);
    run_lower(&r, true);
    return r;
}

static NestRun prepare(const WgmmaProduct *m, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    const bool flat = m->batch == 1;
    ingot_tensor *x =
        tensor(c, "x", m->type, m->batch, m->aside ? m->k : m->m, m->aside ? m->m : m->k);
    ingot_tensor *w =
        tensor(c, "w", m->type, m->batch, m->turned ? m->n : m->k, m->turned ? m->k : m->n);
    x = m->aside ? turned(c, x, flat) : x;
    w = m->turned ? turned(c, w, flat) : w;
    const bool is_f8 = m->type == INGOT_F8E4M3FN || m->type == INGOT_F8E5M2;
    const ingot_dtype result = is_f8 ? INGOT_F16 : m->type;
    return lowered(c, ingot_cast(c, ingot_relu(c, ingot_matmul(c, x, w)), result), opts);
}

static void expect(const WgmmaProduct *m, const char *opts, const char *product, int products)
{
    run_expect(prepare(m, opts), prepare(m, ""), opts, product, products);
}

static void expect_all(const WgmmaProduct *m, const char *opts, const Wanted *wanted)
{
    run_expect_all(prepare(m, opts), prepare(m, ""), opts, wanted);
}

static const char of_boxes[] =
    "SPLIT i0 64\nSPLIT r0 64\nSPLIT r0.i 16\nTC wgmma64.f16 (i0.i; i1; r0.i.i)\nBIND i0.o warp\n"
    "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n";

/* Groups that stay: four places for two lines of terms are those of two blocks. */
static void places_of_blocks(void **state)
{
    (void)state;
    static const Wanted of_blocks[] = {{"turn % 4*8192 + ", 2},
                                       {"turn % 4*4096 + ", 2},
                                       {"igrt_filled_token(a5, ahead + turn, 4)", 2},
                                       {"igrt_free(a5, 2, 4, turn);", 1},
                                       {0}};
    expect_all(&tall,
               "SPLIT i0 128\nSPLIT i1 64\nSPLIT r0 64\nSPLIT i0.i 64\nSPLIT r0.i 16\n"
               "TC wgmma64.f16 (i0.i.i; i1.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
               "BIND i0.i.o warp\nSTAGE r0.o 1 depth 4 move tma\n"
               "STAGE r0.o 2 depth 4 move tma\nSTAY 3\n",
               of_blocks);
}

/* Lines of terms and terms of lines; more terms than places, or fewer; copies, and warps along the
 * columns; ends that fill no block. */
static void products_of_boxes(void **state)
{
    (void)state;
    static const Wanted of_halves[] = {
        {"igrt_wgmma64_dot_f16<0, 1>", 1}, {"igrt_row_16(", 4}, {"igrt_wgmma_done(&s", 1}, {0}};
    static const Wanted of_both[] = {
        {"igrt_wgmma64_dot_f16<1, 0>", 2}, {"igrt_wgmma_done(&s", 2}, {0}}; /* of each sum */
    expect_all(&halves, of_boxes, of_halves);
    expect(&halves_turned,
           "SPLIT i0 64\nSPLIT r0 64\nSPLIT r0.i 16\nTC wgmma64.f16 (i0.i; i1; r0.i.i)\n"
           "BIND i0.o grid\nSTAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma64_dot_f16<0, 0>", 1);
    expect_all(&both_turned,
               "SPLIT i1 64\nSPLIT r0 64\nSPLIT r0.i 16\nUPCAST i1.o 2\nTC wgmma64.f16 (i0; i1.i; "
               "r0.i.i)\nSTAGE r0.o 1 depth 4 move tma\nSTAGE r0.o 2 depth 4 move tma\n",
               of_both);
    expect(&wide,
           "SPLIT r0 64\nSPLIT r0.i 16\nTC wgmma256.bf16 (i0; i1; r0.i.i)\n"
           "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma256_dot_bf16<0, 1>", 1);
    expect(&wide,
           "SPLIT i1 128\nSPLIT r0 64\nSPLIT r0.i 16\n"
           "TC wgmma128.bf16 (i0; i1.i; r0.i.i)\nBIND i1.o warp\n"
           "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma128_dot_bf16<0, 1>", 1);
    expect(&square,
           "SPLIT i0 64\nSPLIT r0 64\nSPLIT r0.i 16\nTC wgmma192.f16 (i0.i; i1; r0.i.i)\n"
           "BIND i0.o warp\nSTAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_give_registers<24>();", 1);
    expect(&uneven,
           "MASK i0 64\nMASK i1 128\nMASK r0 64\nSPLIT i0 64\nSPLIT i1 128\nSPLIT r0 64\nSPLIT "
           "r0.i 16\nTC wgmma128.f16 (i0.i; i1.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
           "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma128_dot_f16<0, 1>", 1);
    expect(&batched,
           "MASK i1 64\nMASK i2 64\nMASK r0 64\nSPLIT i1 64\nSPLIT i2 64\nSPLIT r0 64\nSPLIT "
           "r0.i 16\nTC wgmma64.f16 (i1.i; i2.i; r0.i.i)\nBIND i0 grid\nBIND i1.o grid\n"
           "BIND i2.o grid\nSTAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma64_dot_f16<0, 0>", 1);
}

/* Of bytes 128 lie in a line, of which a product takes 32; sums are integers. */
static void products_of_bytes(void **state)
{
    (void)state;
    expect(&bytes,
           "SPLIT i0 64\nSPLIT r0 128\nSPLIT r0.i 32\nTC wgmma64.i8 (i0.i; i1; r0.i.i)\n"
           "BIND i0.o warp\nSTAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma64_dot_i8_i8(", 1);
    expect(&bytes_uneven,
           "MASK i0 64\nMASK i1 128\nMASK r0 128\nSPLIT i0 64\nSPLIT i1 128\nSPLIT r0 128\nSPLIT "
           "r0.i 32\nTC wgmma128.i8 (i0.i; i1.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o grid\n"
           "STAGE r0.o 1 depth 3 move tma\nSTAGE r0.o 2 depth 3 move tma\n",
           "igrt_wgmma128_dot_u8_u8(", 1);
    NestRun r = prepare(&bytes_turned, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    static const char *const opts[] = {"SPLIT i0 64",
                                       "SPLIT r0 128",
                                       "SPLIT r0.i 32",
                                       "TC wgmma64.i8 (i0.i; i1; r0.i.i)",
                                       "BIND i0.o warp",
                                       "STAGE r0.o 1 depth 2 move tma",
                                       "STAGE r0.o 2 depth 2 move tma"};
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
        refusal(n, opts[i], NULL);
    assert_non_null(strstr(nest_check(n), "argument 2 is no whole runs of 128 bytes"));
    nest_free(n);
    run_free(&r);
}

/* Of f8 a product takes a line of 128, and items add its sums; or 32, to the unit's own sums. */
static void products_of_f8(void **state)
{
    (void)state;
    static const Wanted of_lines[] = {
        {"igrt_wgmma64x2_dot_f8e4m3fn_f8e4m3fn(&s1, v3, v4, a5, r0_o, 2);", 1},
        {"igrt_free(a5, r0_o, 2);", 1},
        {0}};
    expect_all(&f8,
               "SPLIT i0 64\nSPLIT r0 128\nTC wgmma64.f8 (i0.i; i1; r0.i)\nBIND i0.o warp\n"
               "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
               of_lines);
    expect(&f8,
           "SPLIT i0 64\nSPLIT r0 128\nSPLIT r0.i 32\nTC wgmma64.f8s (i0.i; i1; r0.i.i)\n"
           "BIND i0.o warp\nSTAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma64_dot_f8e4m3fn_f8e4m3fn(", 1);
    expect(&f8_uneven,
           "MASK i0 64\nMASK i1 192\nMASK r0 128\nSPLIT i0 64\nSPLIT r0 128\n"
           "TC wgmma192.f8 (i0.i; i1; r0.i)\nBIND i0.o grid\n"
           "STAGE r0.o 1 depth 3 move tma\nSTAGE r0.o 2 depth 3 move tma\n",
           "igrt_wgmma192x2_dot_f8e5m2_f8e5m2(", 1);
    static const Wanted of_blocks[] = {{"igrt_filled(a5, r0_o + turn, 2);", 1},
                                       {", a5, r0_o + turn, 2);", 1},
                                       {", a5 + 4, 0, 1);", 1},
                                       {0}};
    expect_all(&f8_tall,
               "SPLIT i0 128\nSPLIT i1 64\nSPLIT r0 128\nSPLIT i0.i 64\n"
               "TC wgmma64.f8 (i0.i.i; i1.i; r0.i)\nBIND i0.o grid\nBIND i1.o grid\n"
               "BIND i0.i.o warp\nSTAGE r0.o 1 depth 2 move tma\n"
               "STAGE r0.o 2 depth 2 move tma\nSTAY 3\n",
               of_blocks);
    expect(&f8_tall,
           "SPLIT i0 64\nSPLIT i1 64\nSPLIT r0 128\n"
           "TC wgmma64.f8 (i0.i; i1.i; r0.i)\nBIND i0.o grid\nBIND i1.o grid\n"
           "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma64x2_dot_", 1);
    expect(&f8,
           "SPLIT i0 16\nSPLIT i1 8\nSPLIT r0 128\nSPLIT r0.i 32\n"
           "TC mma.f8 (i0.i; i1.i; r0.i.i)\nBIND i0.o grid\nBIND i1.o warp\n"
           "STAGE r0.o 1 depth 2\nSTAGE r0.o 2 depth 2\n",
           "igrt_mma_dot_f8e4m3fn_f8e4m3fn(", 1);
}

static const char of_clusters[] =
    "SPLIT r0 128\nSPLIT r0.i 64\nSPLIT r0.i.i 16\n"
    "TC wgmma64.f16 (i0; i1; r0.i.i.i)\nBIND r0.o cluster\n"
    "STAGE r0.i.o 1 depth 2 move tma\nSTAGE r0.i.o 2 depth 2 move tma\n";

/* Groups have parts of the terms, and each joins a share of the sums. */
static void sums_of_clusters(void **state)
{
    (void)state;
    expect(&deep, of_clusters, "igrt_cluster_give<32, 16, 128, 2>", 1);
    expect(&deep,
           "SPLIT i0 32\nSPLIT i0.i 16\nSPLIT i1 32\nSPLIT i1.i 8\nUPCAST i1.i.o 4\nSPLIT r0 64\n"
           "SPLIT r0.i 32\nSPLIT r0.i.i 16\nTC mma.f16 (i0.i.i; i1.i.i; r0.i.i.i)\nBIND i0.o "
           "grid\nBIND i1.o grid\nBIND i0.i.o warp\nBIND r0.o cluster\nSTAGE r0.i.o 1 depth 2\n"
           "STAGE r0.i.o 2 depth 2\n",
           "igrt_cluster_take<4, 4, 64, 4>", 4);
}

static const char of_rests[] =
    "SPLIT i0 64\nSPLIT i1 48\nSPLIT r0 32\nTC wgmma48.tf32x3 (i0.i; i1.i; r0.i)\nBIND i0.o "
    "warp\nBIND i1.o grid\nSTAGE r0.o 1 depth 3 move tma\nSTAGE r0.o 2 depth 3 move tma\n";

/* f32 by three products: warpgroups with rests of their own, groups with parts of the terms, ends
 * that fill no block. */
static void products_in_three(void **state)
{
    (void)state;
    static const Wanted of_singles[] = {
        {"igrt_wgmma_dot_tf32x3(&s1, v3, v4, a5 + (int)threadIdx.x / 128 * 3072, a6, r0_o, 3);", 1},
        {"igrt_free(a6, r0_o, 3);", 1},
        {"#pragma unroll 6\n", 1}, /* two turns of three places */
        {"igrt_is_beside_loader(256)", 1},
        {"igrt_give_registers<24>();", 1},
        {"igrt_take_registers<240>();", 1},
        {0}};
    expect_all(&singles, of_rests, of_singles);
    expect(&singles,
           "SPLIT i0 64\nSPLIT r0 64\nSPLIT r0.i 32\nTC wgmma96.tf32x3 (i0.i; i1; r0.i.i)\n"
           "BIND i0.o grid\nBIND r0.o cluster\nSTAGE r0.i.o 1 depth 2 move tma\n"
           "STAGE r0.i.o 2 depth 2 move tma\n",
           "igrt_cluster_give<48, 24, 128, 2>", 1);
    expect(&singles_uneven,
           "MASK i0 64\nMASK i1 64\nMASK r0 32\nSPLIT i0 64\nSPLIT i1 64\nSPLIT r0 32\n"
           "TC wgmma64.tf32x3 (i0.i; i1.i; r0.i)\nBIND i0.o grid\nBIND i1.o grid\n"
           "STAGE r0.o 1 depth 2 move tma\nSTAGE r0.o 2 depth 2 move tma\n",
           "igrt_wgmma_dot_tf32x3(&s1, v3, v4, a5, a6, r0_o, 2);", 1);
}

/* All 65,536 of a processor, by eights, less 24 for each of 128 loaders. */
static void registers_of_warpgroups(void **state)
{
    (void)state;
    assert_int_equal(tc_registers(2), 240);
    assert_int_equal(tc_registers(3), 160);
    assert_int_equal(tc_registers(4), 112);
}

/* Four warpgroups have room for 64 sums in each item, not for 128: nobody compiles these. */
static void sums_of_warpgroups(void **state)
{
    (void)state;
    static const char *const opts[] = {"SPLIT i0 64",
                                       "SPLIT i1 128",
                                       "SPLIT r0 64",
                                       "SPLIT r0.i 16",
                                       "TC wgmma128.f16 (i0.i; i1.i; r0.i.i)",
                                       "BIND i0.o warp",
                                       "BIND i1.o grid",
                                       "STAGE r0.o 1 depth 2 move tma",
                                       "STAGE r0.o 2 depth 2 move tma"};
    NestRun r = prepare(&tall, "");
    Nest *few = nest_new(r.p->kernels[0], r.t), *many = nest_clone(few);
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        refusal(few, opts[i], NULL);
        if (i == 4)
            refusal(many, "TC wgmma256.f16 (i0.i; i1; r0.i.i)", NULL);
        else if (i != 1 && i != 6)
            refusal(many, opts[i], NULL);
    }
    assert_null(nest_check(few));
    assert_non_null(strstr(nest_check(many), "wgmma256.f16 has 128 sums in each item"));
    nest_free(few);
    nest_free(many);
    run_free(&r);
}

/* What is said of products in three is left out, as of others; of 32 bits no unit reads terms of
 * lines; one sum is all that a warpgroup has. */
static void faults_of_three(void **state)
{
    (void)state;
    static const struct {
        StmtKind kind;
        const char *wanted;
    } wrong[] = {{STMT_CLAIM, "to which a copy is under way"},
                 {STMT_FILLED, "which nothing has written"},
                 {STMT_RELEASE, "waits here for what does not come"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        NestRun r = prepare(&singles, of_rests);
        Linear *l = &r.lk->tile[0];
        int at = 0;
        while (at < l->n && l->stmt[at].kind != wrong[i].kind)
            at++;
        assert_true(at < l->n);
        memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
        l->n--;
        const char *fault = run_wrong(&r, prepare(&singles, ""));
        if (!strstr(fault, wrong[i].wanted))
            fail_msg("%zu: '%s'", i, fault);
        run_free(&r);
    }
    static const char *const opts[] = {"SPLIT i0 64", "SPLIT i1 48", "SPLIT r0 32"};
    NestRun r = prepare(&singles_turned, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    for (int i = 0; i < 3; i++)
        assert_null(run_opt(n, opts[i]));
    Nest *other = nest_clone(n);
    static const char *const last[] = {"TC wgmma48.tf32x3 (i0.i; i1.i; r0.i)", "BIND i0.o grid",
                                       "BIND i1.o grid", "STAGE r0.o 1 depth 2 move tma",
                                       "STAGE r0.o 2 depth 2 move tma"};
    for (int i = 0; i < 5; i++)
        assert_null(run_opt(n, last[i]));
    const char *why = nest_check(n);
    if (!why || !strstr(why, "argument 2"))
        fail_msg("'%s'", why ? why : "");
    assert_null(run_opt(other, "UPCAST i1.o 2"));
    why = run_opt(other, last[0]);
    if (!why || !strstr(why, "no copies"))
        fail_msg("'%s'", why ? why : "");
    nest_free(n);
    nest_free(other);
    run_free(&r);
}

static void joins_left_out(void **state)
{
    (void)state;
    NestRun r = prepare(&deep, of_clusters);
    Linear *l = &r.lk->tile[0];
    int at = 0;
    while (at < l->n && l->stmt[at].kind != STMT_JOIN)
        at++;
    assert_true(at < l->n);
    memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
    l->n--;
    const char *fault = run_wrong(&r, prepare(&deep, ""));
    if (!strstr(fault, "before the other groups' parts of its sums are joined"))
        fail_msg("'%s'", fault);
    run_free(&r);
}

/* What is said is left out, or said before the products it is about, or a copy is of another box:
 * what is wrong then. */
static void tokens_left_out(void **state)
{
    (void)state;
    static const struct {
        StmtKind kind;
        int which;
        bool early; /* it comes first in its loop */
        const char *wanted;
    } wrong[] = {
        {STMT_CLAIM, 0, false, "to which a copy is under way"},
        {STMT_FILLED, 0, false, "which nothing has written"},
        {STMT_RELEASE, 0, false, "waits here for what does not come"},
        {STMT_RELEASE, 0, true, "which is read by a product that has not been waited for"},
        {STMT_RELEASE, 1, false, "uses sums of products that have not been waited for"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        NestRun r = prepare(&halves, of_boxes);
        Linear *l = &r.lk->tile[0];
        int at = -1, loop = -1, found = 0;
        for (int j = 0; j < l->n; j++) {
            if (l->stmt[j].kind == STMT_FILLED)
                loop = j;
            if (l->stmt[j].kind == wrong[i].kind && found++ == wrong[i].which)
                at = j;
        }
        assert_true(at >= 0 && loop >= 0);
        const Stmt moved = l->stmt[at];
        if (wrong[i].early) {
            memmove(&l->stmt[loop + 2], &l->stmt[loop + 1],
                    (size_t)(at - loop - 1) * sizeof *l->stmt);
            l->stmt[loop + 1] = moved;
        } else {
            memmove(&l->stmt[at], &l->stmt[at + 1], (size_t)(l->n - at - 1) * sizeof *l->stmt);
            l->n--;
        }
        const char *fault = run_wrong(&r, prepare(&halves, ""));
        if (!strstr(fault, wrong[i].wanted))
            fail_msg("%zu: '%s'", i, fault);
        run_free(&r);
    }
}

/* Boxes that begin elsewhere, or are taken for others. */
static void boxes_misplaced(void **state)
{
    (void)state;
    NestRun naive = prepare(&halves, "");
    for (int what = 0; what < 3; what++) {
        NestRun r = prepare(&halves, of_boxes);
        Tile *t = &r.lowered->tiles.tile[0];
        Box *b = &t->box[0];
        if (what == 0)
            b->at[0] = idx(r.lowered->tiles.k->c, 0);
        else if (what == 1)
            b->stride[1] += 8;
        else
            b->extent[1] = 100;
        const char *fault = run_beside(&r, &naive);
        if (!strstr(fault, what == 1 ? "outside of the buffer" : "has another value"))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
    run_free(&naive);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Channels last, so many of them in and out, an image of these sizes (0: it has fewer axes). */
typedef struct {
    int64_t batch, channels, size[3], taps, stride, apart;
    int64_t border; /* before it; behind it one less */
} WgmmaWindow;

static const WgmmaWindow flat = {2, 64, {6, 9, 0}, 3, 1, 1, 1};
static const WgmmaWindow strided = {6, 64, {6, 5, 0}, 3, 2, 1, 2};
static const WgmmaWindow dilated = {2, 128, {5, 6, 0}, 2, 1, 2, 2};
static const WgmmaWindow points = {4, 96, {9, 8, 0}, 1, 2, 1, 0};
static const WgmmaWindow frames = {6, 64, {24, 0, 0}, 5, 2, 1, 2};
static const WgmmaWindow narrow = {2, 32, {6, 9, 0}, 3, 1, 1, 1};
static const WgmmaWindow thirds = {6, 96, {7, 6, 0}, 3, 2, 1, 2};
static const WgmmaWindow volume = {3, 64, {3, 4, 2}, 2, 1, 1, 1};

static NestRun prepare_window(const WgmmaWindow *m, const char *opts)
{
    Context *c = ingot_context_new(NULL, NULL);
    const int n = m->size[2] ? 3 : m->size[1] ? 2 : 1;
    ingot_dim *image[5], *window[5];
    int first[5], last[5];
    int64_t stride[3], apart[3], before[3], behind[3];
    for (int i = 0; i < n; i++) {
        image[i + 1] = (ingot_dim *)(uintptr_t)idx(c, m->size[i]);
        window[i + 1] = (ingot_dim *)(uintptr_t)idx(c, m->taps);
        first[i + 2] = i + 1;
        last[i + 1] = i + 2;
        stride[i] = m->stride;
        apart[i] = m->apart;
        before[i] = m->border;
        behind[i] = m->border ? m->border - 1 : 0;
    }
    image[0] = (ingot_dim *)(uintptr_t)idx(c, m->batch);
    window[0] = image[n + 1] = window[n + 1] = (ingot_dim *)(uintptr_t)idx(c, m->channels);
    first[0] = last[0] = 0;
    first[1] = n + 1;
    last[n + 1] = 1;
    ingot_tensor *x = ingot_input(c, "x", INGOT_F16, n + 2, image),
                 *w = ingot_input(c, "w", INGOT_F16, n + 2, window);
    x = ingot_permute(c, ingot_cast(c, x, INGOT_F32), first);
    w = ingot_permute(c, ingot_cast(c, w, INGOT_F32), first);
    ingot_tensor *y = ingot_conv(c, x, w, NULL, stride, apart, before, behind, 1);
    y = ingot_cast(c, ingot_relu(c, ingot_permute(c, y, last)), INGOT_F16);
    return lowered(c, y, opts);
}

#define WINDOW_BLOCKS(rows, terms)                                                       \
    "MASK " rows " 64\nSPLIT " rows " 64\nSPLIT " terms " 64\nSPLIT " terms ".i 16\nTC " \
    "wgmma64.f16 "
#define WINDOW_PLACES(terms) \
    "STAGE " terms ".o 1 depth 2 move tma\nSTAGE " terms ".o 2 depth 2 move tma\n"
static const char of_windows[] = "JOIN i0 i1 i2\nJOIN r1 r2 r0\n" WINDOW_BLOCKS(
    "i0_i2", "r1_r0") "(i0_i2.i; i3; r1_r0.i.i)\n"
                      "BIND i0_i2.o grid\n" WINDOW_PLACES("r1_r0");

/* Rows that go on from image to image, with a border, steps, taps apart, a single tap; along one
 * axis and along three. */
static void windows(void **state)
{
    (void)state;
    static const Wanted two[] = {{"igrt_window_4(", 1}, {"igrt_box_2(", 1}, {0}},
                        one[] = {{"igrt_window_3(", 1}, {0}},
                        three[] = {{"igrt_window_5(", 1}, {0}};
    static const char halves[] = "JOIN i0 i1 i2\nJOIN r1 r2 r0\nSPLIT i3 64\n" WINDOW_BLOCKS(
        "i0_i2", "r1_r0") "(i0_i2.i; i3.i; r1_r0.i.i)\nBIND i0_i2.o grid\nBIND i3.o "
                          "grid\n" WINDOW_PLACES("r1_r0");
    static const char single[] =
        "JOIN i0 i1 i2\nMASK i3 128\nSPLIT i3 64\nMASK r0 128\n" WINDOW_BLOCKS(
            "i0_i2", "r0") "(i0_i2.i; i3.i; r0.i.i)\nBIND i0_i2.o grid\nBIND i3.o "
                           "grid\n" WINDOW_PLACES("r0");
    static const char along[] = "JOIN i0 i1\nJOIN r1 r0\n" WINDOW_BLOCKS(
        "i0_i1", "r1_r0") "(i0_i1.i; i2; r1_r0.i.i)\nBIND i0_i1.o grid\n" WINDOW_PLACES("r1_r0");
    static const char deep_windows[] = "JOIN i0 i1 i2 i3\nJOIN r1 r2 r3 r0\n" WINDOW_BLOCKS(
        "i0_i3", "r1_r0") "(i0_i3.i; i4; r1_r0.i.i)\nBIND i0_i3.o grid\n" WINDOW_PLACES("r1_r0");
    const struct {
        const WgmmaWindow *m;
        const char *opts;
        const Wanted *wanted;
    } all[] = {{&flat, of_windows, two}, {&strided, of_windows, two},
               {&dilated, halves, two},  {&points, single, two},
               {&frames, along, one},    {&volume, deep_windows, three}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        run_expect_all(prepare_window(all[i].m, all[i].opts), prepare_window(all[i].m, ""),
                       all[i].opts, all[i].wanted);
}

/* Lines of 64 bytes: of 32 channels each, which a product of 16 terms begins in the middle of. */
static void windows_of_half_lines(void **state)
{
    (void)state;
    static const Wanted half[] = {{"igrt_window_4(", 1}, {"igrt_wgmma_half_lines(", 2}, {0}},
                        whole[] = {{"igrt_window_4(", 1}, {"igrt_wgmma_lines(", 2}, {0}};
    static const char few[] =
        "JOIN i0 i1 i2\nJOIN r1 r2 r0\nMASK i0_i2 64\nSPLIT i0_i2 64\nSPLIT r1_r0 32\n"
        "SPLIT r1_r0.i 16\nTC wgmma32h.f16 (i0_i2.i; i3; r1_r0.i.i)\nBIND i0_i2.o "
        "grid\n" WINDOW_PLACES("r1_r0");
    static const char more[] =
        "JOIN i0 i1 i2\nJOIN r1 r2 r0\nMASK i0_i2 64\nSPLIT i0_i2 64\nMASK i3 128\nSPLIT i3 "
        "64\nSPLIT r1_r0 32\nSPLIT r1_r0.i 16\nTC wgmma64h.f16 (i0_i2.i; i3.i; r1_r0.i.i)\n"
        "BIND i0_i2.o grid\nBIND i3.o grid\n" WINDOW_PLACES("r1_r0");
    static const char columns[] =
        "JOIN i0 i1 i2\nJOIN r1 r2 r0\nMASK i0_i2 64\nSPLIT i0_i2 64\nSPLIT i3 32\nSPLIT r1_r0 "
        "64\nSPLIT r1_r0.i 16\nTC wgmma32.f16 (i0_i2.i; i3.i; r1_r0.i.i)\nBIND i0_i2.o "
        "grid\nBIND i3.o grid\n" WINDOW_PLACES("r1_r0");
    const struct {
        const WgmmaWindow *m;
        const char *opts;
        const Wanted *wanted;
    } all[] = {{&narrow, few, half}, {&thirds, more, half}, {&flat, columns, whole}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        run_expect_all(prepare_window(all[i].m, all[i].opts), prepare_window(all[i].m, ""),
                       all[i].opts, all[i].wanted);
}

/* The gradient of a convolution by its weights, [channels][64 of results][taps][taps]: positions
 * are terms, and what lies side by side are results. */
static NestRun prepare_taps(const WgmmaWindow *m, const char *opts)
{
    enum { RESULTS = 64 };
    Context *c = ingot_context_new(NULL, NULL);
    const int turn[] = {3, 0, 1, 2};
    int64_t step[] = {1, 1}, before[2], behind[2], stride[2];
    ingot_dim *image[4], *result[4];
    image[0] = result[0] = (ingot_dim *)(uintptr_t)idx(c, m->batch);
    image[3] = (ingot_dim *)(uintptr_t)idx(c, m->channels);
    result[3] = (ingot_dim *)(uintptr_t)idx(c, RESULTS);
    for (int i = 0; i < 2; i++) {
        const int64_t results = ceil_div(m->size[i], m->stride);
        image[i + 1] = (ingot_dim *)(uintptr_t)idx(c, m->size[i]);
        result[i + 1] = (ingot_dim *)(uintptr_t)idx(c, results);
        stride[i] = m->stride;
        before[i] = m->border;
        behind[i] = (results - 1) * m->stride + m->taps - m->border - m->size[i];
    }
    ingot_tensor *x = ingot_input(c, "x", INGOT_F16, 4, image),
                 *g = ingot_input(c, "g", INGOT_F16, 4, result);
    x = ingot_permute(c, ingot_cast(c, x, INGOT_F32), turn);
    g = ingot_permute(c, ingot_cast(c, g, INGOT_F32), turn);
    ingot_tensor *y = ingot_conv(c, x, g, NULL, step, stride, before, behind, 1);
    return lowered(c, ingot_cast(c, y, INGOT_F16), opts);
}

#define TAPS_BLOCKS(columns)                                                                  \
    "JOIN i2 i3 i0\nJOIN r0 r1 r2\nSPLIT i2_i0 " columns "\nMASK r0_r2 64\nSPLIT r0_r2 64\n"  \
    "SPLIT r0_r2.i 16\nTC wgmma" columns ".f16 (i1; i2_i0.i; r0_r2.i.i)\nBIND i2_i0.o grid\n" \
    "STAGE r0_r2.o 1 depth 2 move tma\nSTAGE r0_r2.o 2 depth 2 move tma\n"
static void windows_of_taps(void **state)
{
    (void)state;
    static const WgmmaWindow near = {3, 64, {6, 9, 0}, 3, 1, 1, 1},
                             steps = {5, 128, {10, 9, 0}, 3, 2, 1, 1};
    static const Wanted wanted[] = {{"igrt_window_4(", 1}, {"igrt_box_2(", 1}, {0}},
                        both[] = {{"igrt_window_4(", 2}, {"igrt_box_2(", 1}, {0}};
    run_expect_all(prepare_taps(&near, TAPS_BLOCKS("64")), prepare_taps(&near, ""),
                   TAPS_BLOCKS("64"), wanted);
    run_expect_all(prepare_taps(&steps, TAPS_BLOCKS("64")), prepare_taps(&steps, ""),
                   TAPS_BLOCKS("64"), wanted);
    run_expect_all(prepare_taps(&steps, TAPS_BLOCKS("128")), prepare_taps(&steps, ""),
                   TAPS_BLOCKS("128"), both);
}

/* Windows that begin elsewhere, have another tap, or other positions. */
static void windows_misplaced(void **state)
{
    (void)state;
    NestRun naive = prepare_window(&strided, "");
    for (int what = 0; what < 5; what++) {
        NestRun r = prepare_window(&strided, of_windows);
        Context *c = r.lowered->tiles.k->c;
        Box *b = &r.lowered->tiles.tile[0].box[0];
        assert_true(b->window);
        if (what == 0)
            b->at[2] = idx(c, b->low[2]);
        else if (what == 1)
            b->tap[1] = b->tap[2];
        else if (what == 2)
            b->step[1] = 1;
        else if (what == 3)
            b->many[2]--;
        else
            b->low[1]--;
        const char *fault = run_beside(&r, &naive);
        if (!strstr(fault, "has another value"))
            fail_msg("%d: '%s'", what, fault);
        run_free(&r);
    }
    run_free(&naive);
}

static void refusals(void **state)
{
    (void)state;
    NestRun r = prepare(&both_sides, "");
    Nest *n = nest_new(r.p->kernels[0], r.t);
    static const char *const good[] = {"SPLIT i0 64", "SPLIT i1 64", "SPLIT r0 64",
                                       "SPLIT r0.i 16"};
    for (int i = 0; i < 4; i++)
        refusal(n, good[i], NULL);
    Nest *other = nest_clone(n);
    refusal(n, "TC wgmma128.f16 (i0.i; i1.i; r0.i.i)", "takes 64 rows, 128 columns and 16 terms");
    refusal(n, "TC wgmma64.f16 (i0.i; i1.i; r0.i.i)", NULL);
    refusal(n, "STAGE r0.o 1 depth 2 move tma", "the loop over i0.o is outside of it: BIND it");
    refusal(n, "BIND i0.o grid", NULL);
    refusal(n, "BIND i1.o grid", NULL);
    refusal(n, "BIND i0.o cluster", "the axis is bound");
    refusal(other, "BIND r0.o cluster", "of a matrix unit's sums (TC before)");
    refusal(n, "STAGE r0.o 1 depth 2", "reads its operands where they lie: move tma is wanted");
    refusal(n, "STAGE r0.o 1", "move tma is wanted");
    refusal(n, "STAGE r0.o 1 depth 2 move tma", NULL);
    refusal(n, "STAGE r0.o 2 depth 3 move tma", "one depth, axis and move");
    assert_non_null(strstr(nest_check(n), "STAGE argument 2"));
    nest_free(n);
    nest_free(other);
    n = nest_new(r.p->kernels[0], r.t);
    static const char *const narrow[] = {"SPLIT i0 64",
                                         "SPLIT i1 64",
                                         "SPLIT r0 32",
                                         "SPLIT r0.i 16",
                                         "TC wgmma64.f16 (i0.i; i1.i; r0.i.i)",
                                         "BIND i0.o grid",
                                         "BIND i1.o grid",
                                         "STAGE r0.o 1 depth 2 move tma",
                                         "STAGE r0.o 2 depth 2 move tma"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        refusal(n, narrow[i], NULL);
    assert_non_null(strstr(nest_check(n), "is no whole runs of 128 bytes"));
    nest_free(n);
    Target old;
    Arena *a = arena_new();
    ingot_status status;
    assert_null(target_make(&old, a, "cuda:sm_100", &status));
    n = nest_new(r.p->kernels[0], &old);
    for (int i = 0; i < 4; i++)
        refusal(n, good[i], NULL);
    refusal(n, "TC wgmma64.f16 (i0.i; i1.i; r0.i.i)", "no such unit");
    nest_free(n);
    arena_free(a);
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_boxes),
        cmocka_unit_test(places_of_blocks),
        cmocka_unit_test(products_of_bytes),
        cmocka_unit_test(products_of_f8),
        cmocka_unit_test(sums_of_clusters),
        cmocka_unit_test(joins_left_out),
        cmocka_unit_test(tokens_left_out),
        cmocka_unit_test(boxes_misplaced),
        cmocka_unit_test(windows),
        cmocka_unit_test(windows_of_half_lines),
        cmocka_unit_test(windows_of_taps),
        cmocka_unit_test(windows_misplaced),
        cmocka_unit_test(refusals),
        cmocka_unit_test(products_in_three),
        cmocka_unit_test(registers_of_warpgroups),
        cmocka_unit_test(sums_of_warpgroups),
        cmocka_unit_test(faults_of_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
