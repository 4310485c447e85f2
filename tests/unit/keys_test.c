/* keys_test.c - keys of values stay where the graph stays, and lists of them are paired where it changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/schedule/keys.h"

enum { LAYERS = 10, CHANNELS = 4 };

/* What is different from the plain network. */
typedef enum { PLAIN, TAIL, MIDDLE, NAMES, ORDER, WEIGHTS } Change;

static float data[2][CHANNELS * CHANNELS * 9];

static Node *weight(Context *c, Change how, int rank)
{
    int64_t dims[] = {CHANNELS, CHANNELS, 3, 3};
    return ingot_data(c, how == NAMES ? "other" : "w", INGOT_F32, rank, dims, data[how == WEIGHTS]);
}

static Node *conv(Context *c, Change how, Node *x)
{
    int64_t one[] = {1, 1};
    return ingot_conv(c, x, weight(c, how, 4), weight(c, how, 1), NULL, NULL, one, one, 1);
}

/* Two branches a block, added; every third block is wider inside, so that not all places are equal. */
static Node *block(Context *c, Change how, Node *x, int number)
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

static Context *network(Change how)
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

static double percent_kept(Change how)
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

/* Values without a difference in sight have one key; far away from both ends all layers are equal. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_equal_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
