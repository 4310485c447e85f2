/* places_next_test.c - what a place is filled with next is asked for: all lines of it, each in the
 * buffer, while the place before is read; and a step of training says so of its weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/lowered.h"
#include "compiler/pipeline/pipeline.h"

enum { ROWS = 256, TERMS = 256, COLUMNS = 384, LINE = LOWERED_LINE / (int)sizeof(float) };

static char asked[TERMS * COLUMNS / LINE + 1];

static void keep_told(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR)
        print_message("%s\n", text);
}

/* A step that learns w of x w, or of x w^T. */
static Plan *step_of(const char *target, bool transposed)
{
    Context *c = ingot_context_new(keep_told, NULL);
    ingot_dim *dims[2] = {ingot_dim_const(c, ROWS), ingot_dim_const(c, TERMS)};
    const int64_t size[2] = {transposed ? COLUMNS : TERMS, transposed ? TERMS : COLUMNS};
    static const float zeros[TERMS * COLUMNS];
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, dims), *g,
                 *w = ingot_state_from(c, "w", ingot_data(c, NULL, INGOT_F32, 2, size, zeros));
    ingot_tensor *y = transposed ? ingot_linear(c, x, w, NULL) : ingot_matmul(c, x, w);
    ingot_tensor *loss = ingot_mean(c, ingot_mul(c, y, y), 3, false);
    ingot_output(c, "loss", loss);
    ingot_gradient(c, loss, 1, &w, &g);
    ingot_state_next(c, w, ingot_sub(c, w, ingot_mul_c(c, g, 0.1)));
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    return p;
}

/* Notes the line of an address for all values of the ranges that it moves with. */
static void note(Context *c, Node *at)
{
    Arena *a = arena_new();
    int n;
    Node **order = graph_toposort(a, 1, &at, &n), *range = NULL;
    for (int i = 0; i < n; i++)
        range = order[i]->op == OP_RANGE ? order[i] : range;
    arena_free(a);
    for (int64_t i = 0; range && i <= range->hi; i++) {
        Node *value = idx(c, i);
        note(c, substitute(c, at, 1, &range, &value));
    }
    int64_t value;
    if (!range) {
        assert_true(idx_value(at, &value));
        assert_in_range(value, 0, TERMS * COLUMNS - 1);
        asked[value / LINE] = 1;
    }
}

/* Lines of the argument that the kernel asks for, and how many each iteration does at most. */
static int lines_of(const Kernel *k, int arg, int *each)
{
    const Lowered *l = kernel_lowered(k, false);
    int lines = 0;
    memset(asked, 0, sizeof asked);
    *each = 0;
    for (int i = 0; i < l->linear[0].n; i++) {
        const Stmt *s = &l->linear[0].stmt[i];
        if (s->kind != STMT_PREFETCH || s->node->src[0]->arg.i != arg)
            continue;
        note(l->tiles.k->c, s->node->src[2]);
        ++*each;
    }
    for (size_t i = 0; i < sizeof asked; i++)
        lines += asked[i];
    return lines;
}

static void expect_next(const char *target, bool transposed)
{
    Plan *p = step_of(target, transposed);
    Context *c = p->c;
    int kernels = 0;
    for (int i = 0; i < p->main.n; i++) {
        const Kernel *k = p->main.step[i]->kernel;
        for (int j = 0; k && j < k->nopt; j++) {
            if (k->opts[j].kind != OPT_PREFETCH)
                continue;
            int each;
            const int lines = lines_of(k, (int)k->opts[j].amount, &each);
            /* all but those of the first place */
            assert_in_range(lines, TERMS * COLUMNS / LINE * 4 / 5, TERMS * COLUMNS / LINE - 1);
            assert_in_range(each, 1, MAX_PREFETCH);
            kernels++;
        }
    }
    assert_int_equal(kernels, 1);
    plan_free(p);
    ingot_context_free(c);
}

static void test_next_lines(void **state)
{
    static const char *const target[] = {"c:x86-64-v3", "c:x86-64-v4"};
    (void)state;
    for (size_t t = 0; t < sizeof target / sizeof *target; t++) {
        expect_next(target[t], false);
        expect_next(target[t], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_next_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
