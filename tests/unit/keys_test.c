/* keys_test.c - keys of values stay where the graph stays, and lists of them are paired where it
 * changed; whatever makes another value of one makes another key.  What kernels are known by:
 * kernel_keys_test.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/plan/keys.h"

enum { LAYERS = 10, CHANNELS = 4 };

/* What is different from the plain network. */
typedef enum { PLAIN, TAIL, MIDDLE, NAMES, ORDER, WEIGHTS } NetworkChange;

static float data[2][CHANNELS * CHANNELS * 9];

static Node *weight(Context *c, NetworkChange how, int rank)
{
    int64_t dims[] = {CHANNELS, CHANNELS, 3, 3};
    return ingot_data(c, how == NAMES ? "other" : "w", INGOT_F32, rank, dims, data[how == WEIGHTS]);
}

static Node *conv(Context *c, NetworkChange how, Node *x)
{
    int64_t one[] = {1, 1};
    return ingot_conv(c, x, weight(c, how, 4), weight(c, how, 1), NULL, NULL, one, one, 1);
}

/* Two branches a block, added; every third block is wider inside, so that not all places are
 * equal. */
static Node *block(Context *c, NetworkChange how, Node *x, int number)
{
    Node *left = NULL, *right = NULL;
    for (int i = 0; i < 2; i++)
        if ((how == ORDER) == (i == 0))
            right = ingot_sigmoid(c, x);
        else
            left = ingot_relu(c, conv(c, how, x));
    if (number % 3 == 0)
        left = conv(c, how, left);
    if (how == MIDDLE && number == LAYERS / 2)
        left = ingot_tanh(c, left);
    return ingot_add(c, left, right);
}

static Context *network(NetworkChange how)
{
    Context *c = ingot_context_new(NULL, NULL);
    Node *dims[4];
    int64_t size[] = {1, CHANNELS, 8, 8};
    for (int i = 0; i < 4; i++)
        dims[i] = idx(c, size[i]);
    Node *x = ingot_input(c, how == NAMES ? "picture" : "x", INGOT_F32, 4, dims);
    for (int i = 0; i < LAYERS; i++)
        x = block(c, how, x, i);
    x = ingot_softmax(c, ingot_mean(c, x, 12, false), 1);
    if (how == TAIL)
        x = ingot_sqrt(c, x);
    ingot_output(c, "y", x);
    assert_int_equal(c->nerror, 0);
    return c;
}

/* Keys of what computes, in the order of the graph; each once. */
static int keys_of(Arena *a, Context *c, Key *out, Node **node)
{
    int n, count = 0;
    Node **all = graph_nodes(a, c, &n);
    uint32_t nkey;
    const Key *key = graph_keys(a, c, n, all, &nkey);
    for (int i = 0; i < n; i++) {
        bool known = !op_is_alu(all[i]->op) && all[i]->op != OP_REDUCE;
        for (int j = 0; j < count && !known; j++)
            known = out[j].full == key[all[i]->id].full;
        if (known || all[i]->dtype == INGOT_INDEX)
            continue;
        node[count] = all[i];
        out[count++] = key[all[i]->id];
    }
    return count;
}

static double percent_kept(NetworkChange how)
{
    enum { MAX = 1000 };
    static Key saved[MAX], present[MAX];
    static Node *was[MAX], *is[MAX];
    int to[MAX];
    Arena *a = arena_new();
    Context *plain = network(PLAIN), *other = network(how);
    int n = keys_of(a, plain, saved, was), m = keys_of(a, other, present, is);
    bool used[MAX] = {false};
    keys_align(a, n, saved, m, present, to);
    int kept = 0;
    for (int i = 0; i < m; i++) {
        if (to[i] < 0)
            continue;
        assert_int_equal(is[i]->op, was[to[i]]->op);
        assert_int_equal(is[i]->rank, was[to[i]]->rank);
        used[to[i]] = true;
    }
    for (int i = 0; i < n; i++)
        kept += used[i];
    ingot_context_free(plain);
    ingot_context_free(other);
    arena_free(a);
    return 100.0 * kept / n;
}

static void test_changes(void **state)
{
    (void)state;
    data[1][5] = 1;
    assert_true(percent_kept(PLAIN) == 100);
    assert_true(percent_kept(NAMES) == 100);
    assert_true(percent_kept(ORDER) == 100);
    assert_true(percent_kept(WEIGHTS) == 100);
    assert_true(percent_kept(TAIL) == 100);
    assert_true(percent_kept(MIDDLE) >= 95);
}

static Key key(uint64_t full, uint32_t near)
{
    return (Key){full, {near, near, near, near, near}};
}

static void test_align(void **state)
{
    (void)state;
    Arena *a = arena_new();
    int to[6];
    /* 1 2 3 -> 1 (new) 3, and two that are like 2: the first of them takes its place */
    Key saved[] = {key(1, 10), key(2, 20), key(3, 30)};
    Key present[] = {key(1, 10), key(9, 90), key(3, 31), key(7, 20), key(8, 20), key(0, 20)};
    keys_align(a, 3, saved, 6, present, to);
    const int want[] = {0, -1, 2, 1, -1, -1};
    for (int i = 0; i < 6; i++)
        assert_int_equal(to[i], want[i]);
    arena_free(a);
}

/* Values without a difference in sight have one key; far away from both ends all layers are
 * equal. */
static void test_equal_places(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Context *c = ingot_context_new(NULL, NULL);
    Node *dim = idx(c, 16), *x = ingot_input(c, "x", INGOT_F32, 1, &dim), *layer[24];
    for (int i = 0; i < 24; i++)
        layer[i] = x = ingot_tanh(c, ingot_sin(c, x));
    ingot_output(c, "y", x);
    int n;
    Node **all = graph_nodes(a, c, &n);
    uint32_t nkey;
    const Key *k = graph_keys(a, c, n, all, &nkey);
    assert_true(k[layer[8]->id].full == k[layer[12]->id].full);
    assert_true(k[layer[0]->id].full != k[layer[12]->id].full);
    assert_true(k[layer[23]->id].full != k[layer[12]->id].full);
    ingot_context_free(c);
    arena_free(a);
}

/* ---- one property each ----------------------------------------------------------------------- */

/* f(x), of what kind and with which argument. */
typedef struct {
    const char *what;
    Op op;
    int64_t arg;
    const void *ptr;
    ingot_dtype dtype;
    int64_t rows, columns;
    double number; /* x + number */
} ValueRow;

static const int64_t five[] = {5}, six[] = {6}, half_as_int[] = {0x3fe0000000000000};
static const double half[] = {0.5}, zero[] = {0}, below_zero[] = {-0.0};
static const Perm turned = {2, {1, 0}}, straight = {2, {0, 1}};
static const Call call = {.name = "sort", .n_int = 1, .ints = five},
                  call_name = {.name = "topk", .n_int = 1, .ints = five},
                  call_int = {.name = "sort", .n_int = 1, .ints = six},
                  call_none = {.name = "sort"},
                  call_float = {.name = "sort", .n_float = 1, .floats = half},
                  call_bits = {.name = "sort", .n_int = 1, .ints = half_as_int},
                  call_both = {
                      .name = "sort", .n_int = 1, .ints = five, .n_float = 1, .floats = half};
static const CustomOp own = {.name = "op_a", .nint = 1, .nfloat = 1},
                      other = {.name = "op_b", .nint = 1, .nfloat = 1};
static const CustomUse use = {&own, five, zero}, use_name = {&other, five, zero},
                       use_int = {&own, six, zero}, use_float = {&own, five, half},
                       use_sign = {&own, five, below_zero};
static struct Region nothing;
static const Loop loop = {.body = &nothing, .ncarried = 1},
                  loop_carried = {.body = &nothing, .ncarried = 2},
                  loop_scan = {.body = &nothing, .ncarried = 1, .nscan = 1},
                  loop_cond = {.body = &nothing, .ncarried = 1, .has_cond = true};
static const If choice = {&nothing, &nothing, 1}, choices = {&nothing, &nothing, 2};

/* clang-format off */
static const ValueRow value_rows[] = {
    {"neg", OP_NEG, .dtype = INGOT_F32},
    {"another operation", OP_ABS, .dtype = INGOT_F32},
    {"another type", OP_NEG, .dtype = INGOT_F16},
    {"another size", OP_NEG, .dtype = INGOT_F32, .columns = 7},
    {"sizes in another order", OP_NEG, .dtype = INGOT_F32, .rows = 6, .columns = 4},
    {"a number", OP_ADD, .dtype = INGOT_F32, .number = 3},
    {"another number", OP_ADD, .dtype = INGOT_F32, .number = 5},
    {"zero", OP_ADD, .dtype = INGOT_F32, .number = 0},
    {"below zero", OP_ADD, .dtype = INGOT_F32, .number = -0.0},
    {"no number", OP_ADD, .dtype = INGOT_F32, .number = NAN},
    {"none below zero", OP_ADD, .dtype = INGOT_F32, .number = -NAN},
    {"a number of another type", OP_ADD, .dtype = INGOT_F16, .number = 3},
    {"a sum", OP_REDUCE, INGOT_REDUCE_ADD | 1 << 8, .dtype = INGOT_F32},
    {"of another axis", OP_REDUCE, INGOT_REDUCE_ADD | 2 << 8, .dtype = INGOT_F32},
    {"a product", OP_REDUCE, INGOT_REDUCE_MUL | 1 << 8, .dtype = INGOT_F32},
    {"a running sum", OP_SCAN, INGOT_REDUCE_ADD | 0 << 8, .dtype = INGOT_F32},
    {"along another axis", OP_SCAN, INGOT_REDUCE_ADD | 1 << 8, .dtype = INGOT_F32},
    {"a running product", OP_SCAN, INGOT_REDUCE_MUL | 0 << 8, .dtype = INGOT_F32},
    {"turned round", OP_FLIP, 1, .dtype = INGOT_F32},
    {"another axis", OP_FLIP, 2, .dtype = INGOT_F32},
    {"axes turned", OP_PERMUTE, .ptr = &turned, .dtype = INGOT_F32},
    {"axes as they were", OP_PERMUTE, .ptr = &straight, .dtype = INGOT_F32},
    {"a part of all", OP_CONCAT, 0, .dtype = INGOT_F32},
    {"along 1", OP_CONCAT, 1, .dtype = INGOT_F32},
    {"a cast", OP_CAST, 0, .dtype = INGOT_I32},
    {"that wraps", OP_CAST, CAST_WRAP, .dtype = INGOT_I32},
    {"the same bits", OP_BITCAST, .dtype = INGOT_I32},
    {"coordinates", OP_IOTA, 0, .dtype = INGOT_I64},
    {"of another axis", OP_IOTA, 1, .dtype = INGOT_I64},
    {"an update", OP_UPDATE, 0, .dtype = INGOT_F32},
    {"that adds", OP_UPDATE, 1, .dtype = INGOT_F32},
    {"a library kernel", OP_CALL, .ptr = &call, .dtype = INGOT_F32},
    {"another one", OP_CALL, .ptr = &call_name, .dtype = INGOT_F32},
    {"another integer", OP_CALL, .ptr = &call_int, .dtype = INGOT_F32},
    {"none", OP_CALL, .ptr = &call_none, .dtype = INGOT_F32},
    {"a float", OP_CALL, .ptr = &call_float, .dtype = INGOT_F32},
    {"its bits", OP_CALL, .ptr = &call_bits, .dtype = INGOT_F32},
    {"both", OP_CALL, .ptr = &call_both, .dtype = INGOT_F32},
    {"a function of the user's", OP_CUSTOM, .ptr = &use, .dtype = INGOT_F32},
    {"another one", OP_CUSTOM, .ptr = &use_name, .dtype = INGOT_F32},
    {"another integer", OP_CUSTOM, .ptr = &use_int, .dtype = INGOT_F32},
    {"another float", OP_CUSTOM, .ptr = &use_float, .dtype = INGOT_F32},
    {"the other zero", OP_CUSTOM, .ptr = &use_sign, .dtype = INGOT_F32},
    {"a loop", OP_LOOP, .ptr = &loop, .dtype = INGOT_F32},
    {"that carries two", OP_LOOP, .ptr = &loop_carried, .dtype = INGOT_F32},
    {"that collects", OP_LOOP, .ptr = &loop_scan, .dtype = INGOT_F32},
    {"that ends early", OP_LOOP, .ptr = &loop_cond, .dtype = INGOT_F32},
    {"a choice", OP_IF, .ptr = &choice, .dtype = INGOT_F32},
    {"of two", OP_IF, .ptr = &choices, .dtype = INGOT_F32},
    {"an element", OP_PROJ, 0, .dtype = INGOT_F32},
    {"another element", OP_PROJ, 1, .dtype = INGOT_F32},
};
/* clang-format on */
enum { VALUE_ROWS = sizeof value_rows / sizeof *value_rows };

static uint64_t key_of(const ValueRow *r)
{
    Context *c = ingot_context_new(NULL, NULL);
    Node *dims[] = {idx(c, r->rows ? r->rows : 4), idx(c, r->columns ? r->columns : 6)};
    Node *in[] = {idx(c, 4), idx(c, 6)}, *x = ingot_input(c, "x", INGOT_F32, 2, in);
    Node *src[] = {x, r->op == OP_ADD ? node_const_f(c, r->dtype, r->number) : NULL};
    Arg arg = {.i = r->arg};
    if (r->ptr)
        arg.ptr = r->ptr;
    Node *y = node_make(c, r->op, r->dtype, arg, src[1] ? 2 : 1, src, 2, dims);
    Arena *a = arena_new();
    uint32_t nkey;
    const uint64_t key =
        graph_keys(a, c, src[1] ? 3 : 2, (Node *[]){x, src[1] ? src[1] : y, y}, &nkey)[y->id].full;
    arena_free(a);
    ingot_context_free(c);
    return key;
}

static void test_properties(void **state)
{
    (void)state;
    uint64_t keys[VALUE_ROWS];
    for (int i = 0; i < VALUE_ROWS; i++) {
        keys[i] = key_of(&value_rows[i]);
        assert_true(keys[i] == key_of(&value_rows[i]));
        for (int j = 0; j < i; j++)
            if (keys[i] == keys[j])
                fail_msg("'%s' and '%s' have one key", value_rows[i].what, value_rows[j].what);
    }
}

/* Numbers are one node where type and bits are the same, and only there. */
static void test_numbers(void **state)
{
    (void)state;
    const double v[] = {0, -0.0, 1, -1, 2, INFINITY, -INFINITY, NAN, -NAN, 1e-40, 0x1p-149, 1e300};
    const ingot_dtype d[] = {INGOT_F32, INGOT_F64, INGOT_F16, INGOT_I32, INGOT_I64, INGOT_BOOL};
    enum { V = sizeof v / sizeof *v, D = sizeof d / sizeof *d };
    Context *c = ingot_context_new(NULL, NULL);
    Node *n[V * D];
    for (int i = 0; i < V * D; i++) {
        n[i] = node_const_f(c, d[i / V], v[i % V]);
        assert_ptr_equal(n[i], node_const_f(c, d[i / V], v[i % V]));
        for (int j = 0; j < i; j++)
            assert_int_equal(n[i] == n[j],
                             n[i]->dtype == n[j]->dtype && n[i]->arg.bits == n[j]->arg.bits);
    }
    assert_ptr_not_equal(n[0], n[1]);
    assert_ptr_not_equal(n[7], n[8]);
    assert_ptr_equal(n[0], node_const_zero(c, INGOT_F32));
    ingot_context_free(c);
}

/* Permutations are compared by address. */
static void test_permutations(void **state)
{
    (void)state;
    static const int order[][4] = {{1, 0},    {1, 0, 2}, {1, 0, 2, 3},
                                   {0, 2, 1}, {2, 0, 1}, {0, 1, 3, 2}};
    static const int rank[] = {2, 3, 4, 3, 3, 4};
    Context *c = ingot_context_new(NULL, NULL);
    const void *perm[6];
    for (int i = 0; i < 6; i++) {
        Node *dims[] = {idx(c, 2), idx(c, 3), idx(c, 4), idx(c, 5)};
        Node *x = ingot_input(c, (char[]){'a', (char)('0' + i), 0}, INGOT_F32, rank[i], dims);
        Node *y = ingot_input(c, (char[]){'b', (char)('0' + i), 0}, INGOT_F32, rank[i], dims);
        perm[i] = ingot_permute(c, x, order[i])->arg.ptr;
        assert_ptr_equal(perm[i], ingot_permute(c, y, order[i])->arg.ptr);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(perm[i], perm[j]);
    }
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),      cmocka_unit_test(test_align),
        cmocka_unit_test(test_equal_places), cmocka_unit_test(test_properties),
        cmocka_unit_test(test_numbers),      cmocka_unit_test(test_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
