/* accelerator.c - networks on an accelerator that nothing in the tree names (toy.c): placed,
 * planned, and run by the interpreter, which gives each device a memory of its own.
 *
 * Data are small integers, whose sums are exact in any order: results are those of the graph, to
 * the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/nest.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simulate/plan_check.h"
#include "compiler/simulate/plan_interp.h"
#include "toy.h"

/* ---- networks -------------------------------------------------------------------------------- */

enum { ROWS = 32, WIDE = 64, MOST = 1 << 14 };

static float small_number(int i, int seed)
{
    return (float)((i * 7 + seed * 13 + i / 11) % 7 - 3);
}

static ingot_tensor *input(Context *c, const char *name, int64_t rows, int64_t columns)
{
    return ingot_input(c, name, INGOT_F32, 2,
                       (ingot_dim *[]){ingot_dim_const(c, rows), ingot_dim_const(c, columns)});
}

static ingot_tensor *weight(Context *c, int seed, int64_t rows, int64_t columns)
{
    float *data = arena_alloc(c->arena, (size_t)(rows * columns) * sizeof *data);
    for (int i = 0; i < rows * columns; i++)
        data[i] = small_number(i, seed);
    return ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){rows, columns}, data);
}

/* x w + b */
static ingot_tensor *dense(Context *c, ingot_tensor *x, int seed, int64_t in, int64_t out)
{
    return ingot_add(c, ingot_matmul(c, x, weight(c, seed, in, out)), weight(c, seed + 1, 1, out));
}

static void mlp(Context *c)
{
    ingot_tensor *h = ingot_relu(c, dense(c, input(c, "x", ROWS, WIDE), 1, WIDE, WIDE));
    ingot_output(c, "y", dense(c, h, 3, WIDE, WIDE / 2));
}

/* Neither exp nor a division is the accelerator's; the sum between them is, and is not worth its
 * copies. */
static void softmax(Context *c)
{
    ingot_tensor *h = dense(c, input(c, "x", ROWS, WIDE), 1, WIDE, WIDE);
    h = ingot_mul(c, h, ingot_like(c, h, 0)); /* rounds to nothing: exp(0) is 1, the sum 64 */
    ingot_output(c, "y", ingot_softmax(c, h, 1));
}

/* A step of the host's between two of the accelerator's. */
static void between(Context *c)
{
    ingot_tensor *h = dense(c, input(c, "x", ROWS, WIDE), 1, WIDE, WIDE);
    h = ingot_cast(c, ingot_cast(c, h, INGOT_I32), INGOT_F32);
    ingot_output(c, "y", dense(c, h, 3, WIDE, WIDE));
}

/* What several read on the other side is copied once; an output is copied, though the accelerator
 * goes on with it. */
static void forked(Context *c)
{
    ingot_tensor *x = input(c, "x", ROWS, WIDE);
    ingot_tensor *h = dense(c, x, 1, WIDE, WIDE), *g = ingot_relu(c, dense(c, x, 5, WIDE, WIDE));
    ingot_output(c, "h", h);
    ingot_output(c, "i", ingot_cast(c, h, INGOT_I32));
    ingot_output(c, "j", ingot_cast(c, h, INGOT_I8));
    ingot_output(c, "y", dense(c, ingot_add(c, h, g), 3, WIDE, WIDE));
}

/* Too little to be worth two copies. */
static void little(Context *c)
{
    ingot_output(c, "y", ingot_relu(c, input(c, "x", ROWS, WIDE)));
}

/* The same weights on both devices, each of which has them. */
static void shared_weights(Context *c)
{
    ingot_tensor *w = weight(c, 1, WIDE, WIDE);
    ingot_tensor *x = input(c, "x", ROWS, WIDE), *m = ingot_matmul(c, x, w);
    ingot_tensor *n = ingot_cast(c, w, INGOT_I32);
    ingot_output(c, "y", m);
    ingot_output(c, "n", ingot_add(c, n, ingot_cast(c, input(c, "z", WIDE, WIDE), INGOT_I32)));
}

/* An expansion belongs to who reads it: the row is copied, not what it is repeated to. */
static void expanded(Context *c)
{
    ingot_tensor *row = ingot_exp(c, input(c, "b", 1, WIDE)); /* of zeros */
    ingot_tensor *h = ingot_matmul(c, input(c, "x", ROWS, WIDE), weight(c, 1, WIDE, WIDE));
    ingot_output(c, "y", ingot_add(c, h, row));
}

/* A loop's body reads what the accelerator has made: it comes back first. */
static void looped(Context *c)
{
    ingot_tensor *h = dense(c, input(c, "x", ROWS, WIDE), 1, WIDE, WIDE);
    ingot_region *r = ingot_region_begin(c);
    (void)ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL),
                 *carried = ingot_region_param_like(c, r, h), *sum;
    ingot_region_end(c, r, 2, (ingot_tensor *[]){cond, ingot_add(c, carried, h)});
    ingot_loop(c, ingot_dim_const(c, 3), NULL, 1, &h, r, 0, &sum);
    ingot_output(c, "y", dense(c, sum, 3, WIDE, WIDE));
}

/* ---- what a plan is -------------------------------------------------------------------------- */

typedef struct {
    int there, here, in, out, products; /* kernels by device; copies by direction; with the unit */
} Counts;

/* Is the unit in what the kernel comes to, and not in its opts alone? */
static bool multiplies(const Kernel *k)
{
    Tiles tiles = kernel_lower(k);
    bool unit = false;
    for (int i = 0; i < tiles.n; i++)
        unit |= tiles.tile[i].tc == toy_units;
    tiles_free(&tiles);
    return unit;
}

static void count_block(const Block *b, Counts *n)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_KERNEL) {
            *(s->device ? &n->there : &n->here) += 1;
            n->products += multiplies(s->kernel);
            assert_true(s->device == 1 || !multiplies(s->kernel));
        }
        if (s->kind == STEP_COPY && s->bufs[0]->device != s->bufs[1]->device)
            *(s->device ? &n->in : &n->out) += 1;
        count_block(&s->body, n);
        count_block(&s->other, n);
    }
}

typedef struct {
    Context *c;
    char told[1000];
} ToyModel;

static void tell(void *user, ingot_level level, const char *text)
{
    ToyModel *m = user;
    if (level == INGOT_ERROR && !*m->told)
        snprintf(m->told, sizeof m->told, "%s", text);
}

static ToyModel model_new(void (*build)(Context *))
{
    ToyModel m = {0};
    m.c = ingot_context_new(NULL, NULL);
    target_add(m.c, toy_target());
    build(m.c);
    return m;
}

/* Runs the plan, and compares with the graph. */
static void compare(const Plan *p)
{
    Context *c = p->c;
    Arena *a = arena_new();
    ingot_value in[4], want[8], got[8];
    for (int i = 0; i < c->ninput; i++) {
        const Node *n = c->inputs[i].node;
        float *x = arena_alloc(a, MOST * sizeof *x);
        in[i] = (ingot_value){.data = x, .rank = n->rank, .dtype = INGOT_F32};
        int64_t count = 1;
        for (int d = 0; d < n->rank; d++)
            count *= in[i].dims[d] = n->shape[d]->hi;
        for (int k = 0; k < count; k++)
            x[k] = *c->inputs[i].name == 'b' ? 0 : small_number(k, 9 + i);
    }
    assert_int_equal(ingot_interpret(c, c->ninput, in, c->noutput, want), INGOT_OK);
    PlanInterp run = {.p = p};
    if (!plan_interpret(&run, a, in, got))
        fail_msg("%s", run.fault);
    for (int i = 0; i < c->noutput; i++) {
        size_t bytes = elem_bytes(got[i].dtype);
        for (int d = 0; d < got[i].rank; d++)
            bytes *= (size_t)got[i].dims[d];
        assert_memory_equal(got[i].data, want[i].data, bytes);
    }
    PlanCheck check;
    if (!plan_check(p, false, &check))
        fail_msg("%s", check.fault);
    arena_free(a);
}

static ingot_options options(void)
{
    return (ingot_options){.struct_size = sizeof(ingot_options), .target = "toy"};
}

/* What lies in a memory lies in one of its device. */
static void expect_apart(const Plan *p)
{
    assert_int_equal(p->ndevice, 2);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_ARENA && b->last >= b->first)
            assert_int_equal(p->memories[b->memory].device, b->device);
    }
}

static void expect(void (*build)(Context *), Counts wanted)
{
    ToyModel m = model_new(build);
    const ingot_options o = options();
    Plan *p = plan_make(m.c, &o);
    assert_non_null(p);
    Counts n = {0};
    count_block(&p->main, &n);
    if (memcmp(&n, &wanted, sizeof n)) {
        StrBuf sb = {0};
        plan_print(&sb, p);
        fputs(sb.data, stderr);
        fail_msg("%d kernels there, %d here, %d copies in, %d out, %d products", n.there, n.here,
                 n.in, n.out, n.products);
    }
    expect_apart(p);
    compare(p);
    plan_free(p);
    ingot_context_free(m.c);
}

static void placed(void **state)
{
    (void)state;
    expect(mlp, (Counts){.there = 2, .in = 1, .out = 1, .products = 2});
    expect(softmax, (Counts){.there = 2, .here = 1, .in = 1, .out = 1, .products = 1});
    expect(between, (Counts){.there = 2, .here = 1, .in = 2, .out = 2, .products = 2});
    expect(forked, (Counts){.there = 3, .here = 1, .in = 1, .out = 2, .products = 3});
    expect(little, (Counts){.here = 1});
    expect(shared_weights, (Counts){.there = 1, .here = 1, .in = 1, .out = 1, .products = 1});
    expect(expanded, (Counts){.there = 1, .here = 1, .in = 2, .out = 1, .products = 1});
    expect(looped, (Counts){.there = 2, .here = 2, .in = 2, .out = 2, .products = 2});
}

/* ---- decisions ------------------------------------------------------------------------------- */

static const char file[] = "accelerator_test.sched";

static char *saved(const Plan *p)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(p->saved, f);
    fclose(f);
    return strdup(p->saved);
}

static void write_changed(const char *text, const char *from, const char *to)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
        fwrite(text, 1, (size_t)(at - text), f);
        fputs(to, f);
    }
    fputs(text, f);
    fclose(f);
}

static char *printed(Plan *p)
{
    StrBuf sb = {0};
    plan_print(&sb, p);
    return sb.data;
}

/* What a file says counts: the plan is the same by an unedited one, and all on the host where it
 * says so. */
static void decided(void **state)
{
    (void)state;
    ToyModel m = model_new(between);
    ingot_options o = options();
    o.save_sched = file;
    Plan *p = plan_make(m.c, &o);
    assert_non_null(p);
    char *text = saved(p), *first = printed(p);
    assert_non_null(strstr(text, " device 1  # "));
    assert_non_null(strstr(first, "device 1"));
    plan_free(p);
    o.save_sched = NULL;
    o.sched = file;
    p = plan_make(m.c, &o);
    assert_non_null(p);
    char *again = printed(p);
    assert_string_equal(first, again);
    plan_free(p);

    write_changed(text, " device 1", " device 0");
    p = plan_make(m.c, &o);
    assert_non_null(p);
    Counts n = {0};
    count_block(&p->main, &n);
    assert_int_equal(n.there + n.in + n.out, 0);
    compare(p);
    plan_free(p);
    free(text);
    free(first);
    free(again);
    remove(file);
    ingot_context_free(m.c);
}

static void expect_told(const char *text, const char *from, const char *to, const char *wanted)
{
    ToyModel m = {0};
    m.c = ingot_context_new(tell, &m);
    target_add(m.c, toy_target());
    between(m.c);
    ingot_options o = options();
    o.sched = file;
    write_changed(text, from, to);
    Plan *p = plan_make(m.c, &o);
    if (p || !strstr(m.told, wanted) || strncmp(m.told, file, strlen(file)))
        fail_msg("'%s' is not in '%s'", wanted, m.told);
    ingot_context_free(m.c);
}

static void refused(void **state)
{
    (void)state;
    ToyModel m = model_new(between);
    ingot_options o = options();
    o.save_sched = file;
    Plan *p = plan_make(m.c, &o);
    assert_non_null(p);
    char *text = saved(p);
    plan_free(p);
    ingot_context_free(m.c);
    expect_told(text, " device 1", " device 2",
                "there is no device 2: the target has devices 0 to 1");
    expect_told(text, " device 1", " device one", "device N");
    expect_told(text, " stored  # cast", " stored device 1  # cast",
                "device 1 (toy accelerator) cannot compute this value (cast)");
    free(text);
    remove(file);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* The same with a slower link: nothing is worth copies any more. */
static void figures_count(void **state)
{
    (void)state;
    Target host = *toy_target(), slow = *host.devices[0];
    const Target *const beside[] = {&slow, NULL};
    host.devices = beside;
    for (int i = 0; i < 2; i++) {
        slow = *toy_target()->devices[0];
        slow.machine.link = i ? 0.01 : slow.machine.link;
        Context *c = ingot_context_new(NULL, NULL);
        target_add(c, &host);
        mlp(c);
        const ingot_options o = options();
        Plan *p = plan_make(c, &o);
        assert_non_null(p);
        Counts n = {0};
        count_block(&p->main, &n);
        assert_int_equal(n.there, i ? 0 : 2);
        compare(p);
        plan_free(p);
        ingot_context_free(c);
    }
}

/* Without its unit it multiplies as it does all else. */
static void unit_is_its_own(void **state)
{
    (void)state;
    Target host = *toy_target(), plain = *host.devices[0];
    const Target *const beside[] = {&plain, NULL};
    host.devices = beside;
    plain.machine.own_units = NULL;
    Context *c = ingot_context_new(NULL, NULL);
    target_add(c, &host);
    mlp(c);
    const ingot_options o = options();
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    Counts n = {0};
    count_block(&p->main, &n);
    assert_int_equal(n.there, 2);
    assert_int_equal(n.products, 0);
    compare(p);
    plan_free(p);
    ingot_context_free(c);
}

/* ---- all the rest ---------------------------------------------------------------------------- */

/* Without opts, too, and whatever is stored. */
static void in_every_form(void **state)
{
    (void)state;
    void (*const model[])(Context *) = {mlp, softmax, between, forked, expanded, looped};
    for (int form = 0; form < 3; form++)
        for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
            ToyModel m = model_new(model[i]);
            ingot_options o = options();
            o.naive = form == 0;
            o.fuse = form == 1 ? "none" : form == 2 ? "all" : NULL;
            Plan *p = plan_make(m.c, &o);
            assert_non_null(p);
            expect_apart(p);
            compare(p);
            plan_free(p);
            ingot_context_free(m.c);
        }
}

static void told_of(void **state)
{
    (void)state;
    ToyModel m = {0};
    m.c = ingot_context_new(tell, &m);
    target_add(m.c, toy_target());
    mlp(m.c);
    const ingot_options o = options();
    char *json = ingot_inspect_json(m.c, &o);
    assert_non_null(
        strstr(json, "{\"name\": \"arena of device 1\", \"device\": 1, \"size\": null"));
    assert_non_null(strstr(json, "\"kind\": \"copy\", \"name\": \"copy\", \"device\": 1"));
    free(json);
    char *kernels = ingot_dump(m.c, &o, "kernels");
    assert_non_null(strstr(kernels, "toy accelerator has no language; the interpreter runs it"));
    free(kernels);
    assert_int_equal(ingot_compile(m.c, &o, "accelerator_test_bundle"), INGOT_UNSUPPORTED);
    assert_non_null(strstr(m.told, "--target 'toy': bundles are for one device, and it has 2"));
    ingot_context_free(m.c);
    m = (ToyModel){0}; /* a context that was not told of it */
    m.c = ingot_context_new(tell, &m);
    mlp(m.c);
    assert_null(plan_make(m.c, &o));
    assert_non_null(strstr(m.told, "--target 'toy': unknown"));
    ingot_context_free(m.c);
}

/* A plan whose step reaches into another memory is not run. */
static void faults_are_found(void **state)
{
    (void)state;
    ToyModel m = model_new(mlp);
    const ingot_options o = options();
    Plan *p = plan_make(m.c, &o);
    assert_non_null(p);
    Step *first = p->main.step[0]; /* the copy in */
    assert_int_equal(first->kind, STEP_COPY);
    first->bufs[0]->device = 0;
    float x[ROWS * WIDE] = {0};
    ingot_value in = {.data = x, .dims = {ROWS, WIDE}, .rank = 2, .dtype = INGOT_F32}, out;
    Arena *a = arena_new();
    PlanInterp run = {.p = p};
    assert_false(plan_interpret(&run, a, &in, &out));
    assert_non_null(strstr(run.fault, "runs on device 1 and uses buffer"));
    arena_free(a);
    plan_free(p);
    ingot_context_free(m.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placed),          cmocka_unit_test(decided),
        cmocka_unit_test(refused),         cmocka_unit_test(figures_count),
        cmocka_unit_test(unit_is_its_own), cmocka_unit_test(in_every_form),
        cmocka_unit_test(told_of),         cmocka_unit_test(faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
