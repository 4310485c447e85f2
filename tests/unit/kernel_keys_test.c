/* kernel_keys_test.c - what kernels are known by: for each property that makes another kernel of
 * one, a row.
 *
 * Every row is made twice, which gives equal keys; no two rows have an equal one, but where the row
 * says that a key leaves its property out on purpose. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/target.h"
#include "compiler/plan/plan.h"
#include "targets/targets.h"

#ifdef __clang__
/* A row says what differs from PLAIN. */
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

/* The keys, and the bits of those that are to be as those of the first row of the family. */
enum {
    TEXT = 1 << 0,  /* of share.c, with layouts and opts */
    BLANK = 1 << 1, /* the same without numbers that may be arguments */
    KEY = 1 << 2,   /* of a .sched file: what is computed */
    FORM = 1 << 3,  /* there: loops and arguments */
    HASH = 1 << 4,  /* of the tuner's database: beside those of other models */
    ALL = 31
};

/* out[i, j] = in[i, j] * factor + term, or the sum of that over r0 and r1. */
typedef struct {
    const char *what;
    int same; /* keys that are as those of the first row of its family */
    double factor, term;
    ingot_dtype dtype;
    int64_t n, m, most; /* extents; m of `most` > 0 is known at run time: 1 to most */
    Op op;              /* of the factor */
    bool turned, swapped, gated, sums, renamed, reordered, staged, scanned, read, serial;
    int monoid;
    Layout layout;
    Opt opts[2];
    int nopt;
    const char *custom; /* op of the user's, in the place of the product */
    int nint;
    int64_t ints[2];
    double floats[1];
    bool no_float;
    int device, part; /* part: of so many, by a counter that what is read moves on with */
    const char *source;
    Scalar scalar; /* in the place of the factor */
    int beyond;    /* what is read is `left` from there on */
    double left;
    int family;
} KernelKeyRow;

#define PLAIN .factor = 2, .term = 3, .dtype = INGOT_F32, .n = 4, .m = 6, .op = OP_MUL
#define SUM PLAIN, .sums = true, .family = 1
#define RUN PLAIN, .family = 2
#define LAYOUT_OF(...) .layout = {.n = 1, .op = {{__VA_ARGS__}}}
#define OPT_OF(...) .opts = {{__VA_ARGS__}}, .nopt = 1
#define DECIDED (KEY | FORM)           /* layouts and opts */
#define CUSTOM PLAIN, .custom = "op_a" /* of one kind, not of the plain one's */

/* clang-format off */
static const KernelKeyRow rows[] = {
    {"plain", 0, PLAIN},
    {"another number", BLANK | FORM, PLAIN, .factor = 5},
    {"another term", BLANK | FORM, PLAIN, .term = 5},
    {"both numbers are others", BLANK | FORM, PLAIN, .factor = 5, .term = 7},
    {"a zero", FORM, PLAIN, .term = 0},
    {"the zero that is below", FORM, PLAIN, .term = -0.0},
    {"a factor of zero", FORM, PLAIN, .factor = 0},
    {"two zeros", FORM, PLAIN, .factor = 0, .term = -0.0},
    {"below the normal numbers", FORM, PLAIN, .term = 1e-40},
    {"infinity", FORM, PLAIN, .term = INFINITY},
    {"no number", FORM, PLAIN, .term = NAN},
    {"no number, below zero", FORM, PLAIN, .term = -NAN},
    {"one node twice", FORM, PLAIN, .factor = 3},
    {"another operation", FORM, PLAIN, .op = OP_DIV},
    {"operands in another order", FORM, PLAIN, .swapped = true},
    {"another type", 0, PLAIN, .dtype = INGOT_F16},
    {"another extent", 0, PLAIN, .m = 7},
    {"extents in another order", 0, PLAIN, .n = 6, .m = 4},
    {"coordinates in another order", FORM, PLAIN, .turned = true},
    {"a gate", FORM, PLAIN, .gated = true},
    {"an argument is read too", 0, PLAIN, .read = true},
    {"a mask left zeros in what is read", FORM, PLAIN, .beyond = 3},
    {"from another element on", FORM, PLAIN, .beyond = 4},
    {"another number", FORM, PLAIN, .beyond = 3, .left = -INFINITY},
    {"iterations in order", 0, PLAIN, .serial = true},
    {"a running sum", 0, PLAIN, .scanned = true},
    {"an iteration of six", KEY | FORM, PLAIN, .part = 6}, /* files speak of the first one */
    {"an iteration of eight", KEY | FORM, PLAIN, .part = 8},
    {"another device", FORM, PLAIN, .device = 1},
    {"a third device", FORM, PLAIN, .device = 2},
    {"loops have each other's names", 0, PLAIN, .renamed = true},
    {"loops lie in another order", 0, PLAIN, .reordered = true},

    {"a split", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_SPLIT, .axis = 1, .a = 2)},
    {"of another axis", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_SPLIT, .axis = 0, .a = 2)},
    {"into others", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_SPLIT, .axis = 1, .a = 3)},
    {"a cut", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_CUT, .axis = 1, .a = 2)},
    {"a cut with a rest", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_CUT, .axis = 1, .a = 2, .b = 1)},
    {"a border", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PAD, .axis = 1, .a = 2)},
    {"behind", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PAD, .axis = 1, .b = 2)},
    {"filled", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PAD, .axis = 1, .b = 2, .fill = 1)},
    {"a pitch", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PITCH, .axis = 1, .a = 2)},
    {"axes turned", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PERMUTE, .perm = {2, {1, 0}})},
    {"axes not turned", DECIDED, PLAIN, LAYOUT_OF(.kind = LAYOUT_PERMUTE, .perm = {2, {0, 1}})},

    {"an opt", DECIDED, PLAIN, OPT_OF(OPT_UPCAST, "i0", 2)},
    {"of another kind", DECIDED, PLAIN, OPT_OF(OPT_UNROLL, "i0", 2)},
    {"another axis", DECIDED, PLAIN, OPT_OF(OPT_UPCAST, "i1", 2)},
    {"another amount", DECIDED, PLAIN, OPT_OF(OPT_UPCAST, "i0", 3)},
    {"an order", DECIDED, PLAIN, OPT_OF(OPT_ORDER, "i1 i0", 0)},
    {"another order", DECIDED, PLAIN, OPT_OF(OPT_ORDER, "i0 i1", 0)},
    {"a stage", DECIDED, PLAIN, OPT_OF(OPT_STAGE, "i0", 1)},
    {"a deep one", DECIDED, PLAIN, OPT_OF(OPT_STAGE, "i0", 1, .depth = 2)},
    {"deeper", DECIDED, PLAIN, OPT_OF(OPT_STAGE, "i0", 1, .depth = 3)},
    {"by boxes", DECIDED, PLAIN, OPT_OF(OPT_STAGE, "i0", 1, .depth = 3, .tma = true)},
    {"by boxes, not ahead", DECIDED, PLAIN, OPT_OF(OPT_STAGE, "i0", 1, .tma = true)},
    {"an image", DECIDED, PLAIN, OPT_OF(OPT_IMAGE, "", 1)},
    {"of another argument", DECIDED, PLAIN, OPT_OF(OPT_IMAGE, "", 2)},
    {"two opts", DECIDED, PLAIN, .opts = {{OPT_UPCAST, "i0", 2}, {OPT_UNROLL, "i1", 2}}, .nopt = 2},
    {"the other one first", DECIDED, PLAIN, .opts = {{OPT_UNROLL, "i1", 2}, {OPT_UPCAST, "i0", 2}},
     .nopt = 2},

    {"a sum", 0, SUM},
    {"a product", FORM, SUM, .monoid = INGOT_REDUCE_MUL},
    {"sums have each other's names", 0, SUM, .renamed = true},
    {"sums lie in another order", 0, SUM, .reordered = true},
    {"a row in a place", 0, SUM, .staged = true},

    {"an extent of the run's", 0, RUN, .most = 6},
    {"with other bounds", TEXT | BLANK | KEY | FORM, RUN, .most = 8},

    {"a function", FORM, CUSTOM, .nint = 1, .ints = {5}},
    {"another function", FORM, CUSTOM, .custom = "op_b", .nint = 1, .ints = {5}},
    {"another attribute", FORM, CUSTOM, .nint = 1, .ints = {6}},
    {"a float of it", FORM, CUSTOM, .nint = 1, .ints = {5}, .floats = {-0.0}},
    {"an attribute with the bits of a float", FORM, CUSTOM, .nint = 2,
     .ints = {5, 0x3fe0000000000000}, .no_float = true},
    {"a float with these bits", FORM, CUSTOM, .nint = 1, .ints = {5}, .floats = {0.5}},
    {"a name that ends as an attribute begins", FORM, CUSTOM, .custom = "op_ab", .nint = 1,
     .ints = {5}},
    {"an attribute that is spelt as a name", FORM, CUSTOM, .nint = 1, .ints = {0x6968676665646362}},
    {"a name that is spelt so", FORM, CUSTOM, .custom = "op_abcdefghi"},

    {"a number as an argument", FORM, PLAIN, .scalar = {INGOT_F32, 1, 2, true}},
    {"not always whole", FORM, PLAIN, .scalar = {INGOT_F32, 1, 2, false}},
    {"of another type", FORM, PLAIN, .scalar = {INGOT_I32, 1, 2, true}},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows, KEYS = 5 };

/* ---- kernels by hand ------------------------------------------------------------------------- */

static Node *product(Kernel *k, const KernelKeyRow *r, Node *x)
{
    Node *factor = r->scalar.dtype
                       ? node_make(k->c, OP_PARAM, r->scalar.dtype, (Arg){.i = 0}, 0, NULL, 0, NULL)
                       : node_const_f(k->c, r->dtype, r->factor);
    if (!r->custom)
        return r->swapped ? node_alu2(k->c, r->op, r->dtype, factor, x)
                          : node_alu2(k->c, r->op, r->dtype, x, factor);
    CustomOp *op = NEW(k->c->arena, CustomOp);
    *op = (CustomOp){.name = r->custom, .nint = r->nint, .nfloat = !r->no_float, .text = r->source};
    op->bytes = r->source ? strlen(r->source) : 0;
    CustomUse *use = NEW(k->c->arena, CustomUse);
    *use = (CustomUse){op, r->ints, r->floats};
    return node_custom(k->c, use, r->dtype, 1, &x);
}

static void add_axis(Kernel *k, Node *range, const char *name, bool reduced, bool staged)
{
    Axis *x = &k->axes[k->naxis++];
    *x = (Axis){.range = range, .reduced = reduced, .staged = staged};
    snprintf(x->name, sizeof x->name, "%s", name);
}

static void turn_axes(Kernel *k, const KernelKeyRow *r)
{
    Axis *x = &k->axes[r->sums ? 2 : 0], was = x[0];
    if (r->renamed) {
        x[0].range = x[1].range;
        x[1].range = was.range;
    }
    if (r->reordered) {
        x[0] = x[1];
        x[1] = was;
    }
}

static Kernel *kernel_of(Context *parent, const KernelKeyRow *r)
{
    Context *c = context_child(parent);
    Kernel *k = NEW(c->arena, Kernel);
    *k = (Kernel){.c = c, .narg = 2, .serial = r->serial, .nopt = r->nopt, .device = r->device};
    k->axes = NEWN(c->arena, Axis, 4);
    Node *size[] = {idx(c, r->n), idx(c, r->m)}, *i[4], *yes = node_bool(c, true);
    if (r->most)
        size[1] = node_make(c, OP_VAR, INGOT_INDEX, (Arg){.i = 0}, 0, NULL, 0, NULL);
    for (int j = 0; j < 4; j++)
        i[j] = range_new(c, j, size[j % 2]);
    for (int j = 0; j < 2; j++)
        add_axis(k, i[j], j ? "i1" : "i0", false, false);
    Node *at[] = {r->sums ? i[2] : i[0], r->sums ? i[3] : i[1]};
    Node *buffer[] = {node_make(c, OP_BUFFER, r->dtype, (Arg){.i = 0}, 0, NULL, 0, NULL),
                      node_make(c, OP_BUFFER, r->dtype, (Arg){.i = 1}, 0, NULL, 0, NULL)};
    Node *load[] = {buffer[1], r->gated ? idx_lt(c, i[0], idx(c, 2)) : yes, at[r->turned],
                    at[!r->turned]};
    if (r->part)
        load[2] =
            idx_add(c, load[2], node_make(c, OP_VAR, INGOT_INDEX, (Arg){.i = 0}, 0, NULL, 0, NULL));
    Node *x = product(k, r, node_make(c, OP_LOAD, r->dtype, (Arg){0}, 4, load, 0, NULL));
    x = node_alu2(c, OP_ADD, r->dtype, x, node_const_f(c, r->dtype, r->term));
    if (r->sums && r->staged)
        x = node_make(c, OP_STAGE, r->dtype, (Arg){.i = 2}, 5,
                      (Node *[]){x, i[2], i[3], i[0], i[1]}, 0, NULL);
    else if (r->sums)
        x = node_make(c, OP_REDUCE, r->dtype, reduce_arg(r->monoid, 0, 0), 3,
                      (Node *[]){x, i[2], i[3]}, 0, NULL);
    if (r->scanned)
        x = node_make(c, OP_SCAN, r->dtype, reduce_arg(0, 0, 0), 2, (Node *[]){x, i[1]}, 0, NULL);
    for (int j = 0; j < 2 && r->sums; j++) {
        const char name[] = {r->staged ? 'p' : 'r', j ? '1' : '0', 0};
        add_axis(k, i[2 + j], name, true, r->staged);
    }
    k->axes[1].scanned = r->scanned;
    turn_axes(k, r);
    Node *store[] = {buffer[0], yes, x, i[0], i[1]};
    Node *end[] = {node_make(c, OP_STORE, r->dtype, (Arg){0}, 5, store, 0, NULL), i[0], i[1]};
    Node *all = node_make(c, OP_END, INGOT_BOOL, (Arg){0}, 3, end, 0, NULL);
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &all, 0, NULL);
    k->args = NEWN(c->arena, KernelArg, 2);
    Node **dims = NEWN(c->arena, Node *, 2);
    memcpy((void *)dims, size, sizeof size);
    for (int j = 0; j < 2; j++)
        k->args[j] = (KernelArg){.dtype = r->dtype,
                                 .rank = 2,
                                 .dims = dims,
                                 .read = j || r->read,
                                 .written = !j,
                                 .layout = j ? (Layout){0} : r->layout};
    if (r->beyond)
        k->args[1].beyond = (Beyond){1, 0, idx(c, r->beyond), r->left};
    k->opts = NEWN(c->arena, Opt, 2);
    memcpy(k->opts, r->opts, sizeof r->opts);
    k->nscalar = r->scalar.dtype != 0;
    k->scalars = NEW(c->arena, Scalar);
    *k->scalars = r->scalar;
    kernel_find_vars(k);
    return k;
}

/* ---- their keys ------------------------------------------------------------------------------ */

typedef struct {
    StrBuf key[KEYS]; /* in the order of the bits */
} Keys;

/* As share.c has it: what a kernel is not chosen by. */
static void blank_numbers(const Kernel *k, bool *blank)
{
    for (uint32_t i = 0; i < k->c->nnode; i++) {
        Node *n = k->c->nodes[i];
        const double v = n->op == OP_CONST && dtype_is_float(n->dtype) ? node_float(n) : 0;
        blank[i] = isfinite(v) && fabs(v) > 1e-38;
    }
}

static Keys keys_of(const KernelKeyRow *r)
{
    Keys out = {0};
    Context *c = ingot_context_new(NULL, NULL);
    if (r->most)
        (void)ingot_dim_var(c, "m", 1, r->most);
    if (r->part) {
        (void)ingot_dim_var(c, "part", 0, r->part - 1);
        c->vars[0].kind = VAR_PART;
    }
    Kernel *k = kernel_of(c, r);
    Arena *a = arena_new();
    bool *blank = NEWN(a, bool, k->c->nnode);
    blank_numbers(k, blank);
    kernel_text(&out.key[0], a, k, true, NULL);
    kernel_text(&out.key[1], a, k, true, blank);
    sb_write(&out.key[0], &k->serial, sizeof k->serial); /* as share.c does */
    sb_write(&out.key[1], &k->serial, sizeof k->serial);
    Plan p = {.c = c, .arena = a};
    Step *s = NEW(a, Step);
    *s = (Step){.kind = STEP_KERNEL, .kernel = k};
    p.main = (Block){.step = &s, .n = 1};
    kernel_keys(&p);
    sb_write(&out.key[2], &k->choice->key, sizeof k->choice->key);
    sb_write(&out.key[3], &k->choice->form, sizeof k->choice->form);
    const uint64_t hash[] = {kernel_hash(k, 1), kernel_hash(k, 2)};
    sb_write(&out.key[4], hash, sizeof hash);
    assert_true(hash[0] != hash[1] && hash[0] != kernel_hash(k, 0));
    ingot_context_free(k->c);
    ingot_context_free(c);
    arena_free(a);
    return out;
}

static void free_keys(Keys *k)
{
    for (int i = 0; i < KEYS; i++)
        sb_free(&k->key[i]);
}

static bool same(const StrBuf *x, const StrBuf *y)
{
    return x->len == y->len && !memcmp(x->data, y->data, x->len);
}

static const KernelKeyRow *head_of(const KernelKeyRow *r)
{
    const KernelKeyRow *head = rows;
    while (head->family != r->family)
        head++;
    return head;
}

static bool to_be_same(const KernelKeyRow *x, const KernelKeyRow *y, int key)
{
    return x->family == y->family && (x == head_of(x) || x->same >> key & 1) &&
           (y == head_of(y) || y->same >> key & 1);
}

static void test_table(void **state)
{
    (void)state;
    static Keys all[ROWS];
    int bad = 0;
    for (int i = 0; i < ROWS; i++) {
        Keys again = keys_of(&rows[i]);
        all[i] = keys_of(&rows[i]);
        for (int key = 0; key < KEYS; key++) {
            if (!same(&again.key[key], &all[i].key[key]) && ++bad)
                print_error("'%s': key %d is not the same again\n", rows[i].what, key);
            for (int j = 0; j < i; j++) {
                const bool want = to_be_same(&rows[i], &rows[j], key);
                if (1 << key == FORM && &rows[j] != head_of(&rows[i]))
                    continue; /* it is no more than a hint */
                if (same(&all[i].key[key], &all[j].key[key]) != want && ++bad)
                    print_error("'%s' and '%s': key %d is %s\n", rows[j].what, rows[i].what, key,
                                want ? "another one" : "the same");
            }
        }
        free_keys(&again);
    }
    for (int i = 0; i < ROWS; i++)
        free_keys(&all[i]);
    assert_int_equal(bad, 0);
}

/* Of a serial kernel with a seed no hash of another one with another seed. */
static void test_seeds(void **state)
{
    (void)state;
    const KernelKeyRow plain = {"", 0, PLAIN}, serial = {"", 0, PLAIN, .serial = true};
    Context *c = ingot_context_new(NULL, NULL);
    Kernel *x = kernel_of(c, &plain), *y = kernel_of(c, &serial);
    for (uint64_t i = 0; i < 4; i++)
        for (uint64_t j = 0; j < 4; j++)
            assert_true(kernel_hash(x, i) != kernel_hash(y, j));
    ingot_context_free(x->c);
    ingot_context_free(y->c);
    ingot_context_free(c);
}

/* The database knows a function by what its file says, other keys by its name: opts still fit. */
static void test_functions(void **state)
{
    (void)state;
    const KernelKeyRow was = {"", 0, CUSTOM, .source = "x + 1"},
                       is = {"", 0, CUSTOM, .source = "x + 2"};
    Keys x = keys_of(&was), y = keys_of(&is);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(same(&x.key[i], &y.key[i]), i != 4);
    free_keys(&x);
    free_keys(&y);
}

/* ---- what is joined -------------------------------------------------------------------------- */

/* x op a + b, and y op c + d: so many kernels, with so many numbers as arguments. */
static const struct {
    const char *what;
    Op op;
    double a, b, c, d;
    int kernels, scalars;
} pairs[] = {
    {"equal", OP_MUL, 2, 3, 2, 3, 1, 0},
    {"all numbers differ", OP_MUL, 2, 3, 5, 7, 1, 2},
    {"one differs", OP_MUL, 2, 3, 5, 3, 1, 1},
    {"a zero there", OP_MUL, 2, 3, 5, 0, 2, 0},
    {"a zero here", OP_MUL, 2, 0, 5, 3, 2, 0},
    {"zeros here and there", OP_MUL, 2, 0, 5, 0, 1, 1},
    {"a zero of the other sign", OP_MUL, 2, 0, -0.0, 3, 2, 0},
    {"below the normal numbers", OP_MUL, 2, 3, 5, 1e-40, 2, 0},
    {"infinity", OP_MUL, 2, 3, 5, INFINITY, 2, 0},
    {"one node twice, here and there", OP_MUL, 3, 3, 5, 5, 1, 1},
    {"one node twice, here", OP_MUL, 3, 3, 5, 7, 2, 0},
    {"one node twice, there", OP_MUL, 3, 7, 5, 5, 2, 0},
    {"divisors", OP_DIV, 3, 1, 5, 1, 1, 1},
    {"a divisor by which a product is", OP_DIV, 3, 1, 4, 1, 2, 0},
};

static ingot_tensor *affine(Context *c, const char *name, Op op, double by, double add)
{
    ingot_dim *dims[] = {idx(c, 3), idx(c, 8)};
    ingot_tensor *x = ingot_input(c, name, INGOT_F32, 2, dims);
    ingot_tensor *k = ingot_scalar_f(c, INGOT_F32, by);
    return ingot_add(c, op == OP_DIV ? ingot_div(c, x, k) : ingot_mul(c, x, k),
                     ingot_scalar_f(c, INGOT_F32, add));
}

static void test_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        ingot_output(c, "a", affine(c, "x", pairs[i].op, pairs[i].a, pairs[i].b));
        ingot_output(c, "b", affine(c, "y", pairs[i].op, pairs[i].c, pairs[i].d));
        Plan *p = schedule(c, 2, target_find("c"));
        assert_non_null(p);
        kernel_share(p);
        if (p->nkernel != pairs[i].kernels || p->kernels[0]->nscalar != pairs[i].scalars)
            fail_msg("%s: %d kernels, %d numbers", pairs[i].what, p->nkernel,
                     p->kernels[0]->nscalar);
        plan_free(p);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
