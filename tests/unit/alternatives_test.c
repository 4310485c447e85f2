/* alternatives_test.c - what could be decided otherwise: each alternative comes with the line by
 * which it is so, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"

enum { ROWS = 64, COLUMNS = 96, CHANNELS = 16, SIDE = 20 };
#define ANY 1e9 /* factor of estimates: whatever they say */

static float weights[CHANNELS * CHANNELS * 9];

static Context *c;
static Arena *a;

static int start(void **state)
{
    (void)state;
    c = ingot_context_new(NULL, NULL);
    a = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_free(a);
    ingot_context_free(c);
    return 0;
}

/* One value that two kernels read: a sigmoid, of which rows and columns are reduced. */
static void read_twice(void)
{
    ingot_dim *dims[] = {ingot_dim_const(c, ROWS), ingot_dim_const(c, COLUMNS)};
    ingot_tensor *s = ingot_sigmoid(c, ingot_input(c, "x", INGOT_F32, 2, dims));
    ingot_output(c, "rows", ingot_reduce(c, INGOT_REDUCE_MAX, s, 1, false));
    ingot_output(c, "columns", ingot_reduce(c, INGOT_REDUCE_MAX, s, 2, false));
}

static ingot_tensor *conv(ingot_tensor *x)
{
    const int64_t one[] = {1, 1};
    return ingot_conv(
        c, x, ingot_data(c, "w", INGOT_F32, 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, weights),
        NULL, one, one, one, one, 1);
}

static void two_convolutions(bool alike)
{
    ingot_dim *dims[] = {ingot_dim_const(c, 1), ingot_dim_const(c, CHANNELS),
                         ingot_dim_const(c, SIDE), ingot_dim_const(c, SIDE)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 4, dims);
    ingot_tensor *y = conv(ingot_tanh(c, conv(x)));
    ingot_output(c, "y", alike ? ingot_tanh(c, y) : y);
}

/* By a file of these lines; NULL: none. */
static Plan *plan_by(const char *lines)
{
    char file[] = "/tmp/alternatives_XXXXXX";
    ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v3"};
    if (lines) {
        const int fd = mkstemp(file);
        FILE *f = fdopen(fd, "w");
        assert_non_null(f);
        fprintf(f, "sched 2\ntarget c:x86-64-v3\n%s", lines);
        assert_int_equal(fclose(f), 0);
        o.sched = file;
    }
    Plan *p = plan_make(c, &o);
    if (lines)
        unlink(file);
    assert_non_null(p);
    return p;
}

static const Alternative *find(const Alternative *of, int n, const char *is)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(of[i].is, is))
            return &of[i];
    return NULL;
}

/* Stored or not: the line makes it the other way, and the plan of that offers to go back. */
static void the_other_way(void **state)
{
    (void)state;
    read_twice();
    Alternative *of, *back;
    Plan *p = plan_by(NULL);
    const int n = plan_alternatives(a, p, ANY, &of);
    assert_true(n > 0);
    const Alternative *one = find(of, n, "recomputed");
    const bool stored = !one;
    one = stored ? find(of, n, "stored") : one;
    assert_non_null(one);
    assert_string_equal(one->then, stored ? "recomputed" : "stored");
    assert_true(one->cost.apart > 0 && one->cost.together > 0);
    Plan *other = plan_by(one->line);
    assert_int_equal(other->nstep, p->nstep + (stored ? -1 : 1));
    const Alternative *same = NULL;
    const int m = plan_alternatives(a, other, ANY, &back);
    for (int i = 0; i < m; i++)
        same = back[i].key == one->key ? &back[i] : same;
    assert_non_null(same);
    assert_string_equal(same->is, one->then);
    Plan *again = plan_by(same->line);
    assert_int_equal(again->nstep, p->nstep);
    assert_int_equal(again->kernels[0]->hash, p->kernels[0]->hash);
    plan_free(p);
    plan_free(other);
    plan_free(again);
}

/* What the estimate is sure of is none. */
static void only_what_is_close(void **state)
{
    (void)state;
    read_twice();
    Alternative *of;
    Plan *p = plan_by(NULL);
    const int n = plan_alternatives(a, p, ANY, &of);
    double apart = 0;
    for (int i = 0; i < n; i++) {
        const Fusion *f = &of[i].cost;
        const double r = f->apart > f->together ? f->apart / f->together : f->together / f->apart;
        apart = r > apart ? r : apart;
    }
    assert_true(apart > 1);
    assert_true(plan_alternatives(a, p, apart * 0.99, &of) < n);
    assert_int_equal(plan_alternatives(a, p, apart * 1.01, &of), n);
    plan_free(p);
}

/* The layout that a kernel's first result got. */
static const Layout *layout_of(const Plan *p, uint64_t key, int *nopt)
{
    for (int i = 0; i < p->main.n; i++) {
        const Step *s = p->main.step[i];
        if (!s->choice || s->choice->key != key || s->choice->copy)
            continue;
        *nopt = s->kernel->nopt;
        for (int j = 0; j < s->nbuf; j++)
            if (s->kernel->args[j].written)
                return &s->bufs[j]->layout;
    }
    return NULL;
}

/* The first convolution's result lies as the model has it: with its border, and with opts that the
 * compiler chose for that. */
static void another_layout(void **state)
{
    (void)state;
    two_convolutions(false);
    Alternative *of;
    int nopt = 0;
    Plan *p = plan_by(NULL);
    const int n = plan_other_layouts(a, p, &of);
    assert_true(n > 0);
    Plan *other = plan_by(of[0].line);
    const Layout *was = layout_of(p, of[0].key, &nopt), *is = layout_of(other, of[0].key, &nopt);
    assert_true(was && is && !layout_equal(was, is));
    assert_true(nopt > 0);
    StrBuf text = {0};
    layout_print(&text, is);
    assert_string_equal(text.data + 1, of[0].then);
    sb_free(&text);
    int64_t border[2][2];
    for (int i = 2; i < 4; i++) {
        layout_halo(was, i, &border[0][0], &border[0][1]);
        layout_halo(is, i, &border[1][0], &border[1][1]);
        assert_memory_equal(border[0], border[1], sizeof border[0]);
    }
    plan_free(p);
    plan_free(other);
}

/* Of two equal kernels the second one writes what the caller reads, as the model has it: the line
 * speaks of the first alone. */
static void where_it_is_chosen(void **state)
{
    (void)state;
    two_convolutions(true);
    Alternative *of;
    int nopt = 0;
    Plan *p = plan_by(NULL);
    assert_true(plan_other_layouts(a, p, &of) > 0);
    assert_non_null(strstr(of[0].line, " only 0 of 2"));
    Plan *other = plan_by(of[0].line);
    assert_false(layout_equal(layout_of(p, of[0].key, &nopt), layout_of(other, of[0].key, &nopt)));
    plan_free(p);
    plan_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_other_way, start, end),
        cmocka_unit_test_setup_teardown(only_what_is_close, start, end),
        cmocka_unit_test_setup_teardown(another_layout, start, end),
        cmocka_unit_test_setup_teardown(where_it_is_chosen, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
