/* kernels.c - kernels as WGSL: element by element, a tiled product, a reduction of rows; wgsl.py
 * gives them to a compiler and runs them.
 *
 *     wgsl_kernels DIR
 *
 * writes NAME.wgsl for each network below, which is one kernel, and a line on it to the standard
 * output:
 *
 *     rows k00_softmax_20x300 20 output 0 6000, input 0 6000
 *
 * its name, the kernel's, how many groups are launched, and what each binding is: kind, number,
 * elements. */
#include <stdio.h>
#include <string.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/lowered.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/plan/plan.h"
#include "targets/targets.h"
#include "wgsl.h"

static ingot_tensor *input(ingot_context *c, const char *name, ingot_dtype d, int64_t rows,
                           int64_t columns)
{
    return ingot_input(c, name, d, 2,
                       (ingot_dim *[]){ingot_dim_const(c, rows), ingot_dim_const(c, columns)});
}

/* x > 0 ? tanh(x) * w : x */
static ingot_tensor *elements(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 33, 65), *w = input(c, "w", INGOT_F32, 1, 65);
    return ingot_where(c, ingot_gt(c, x, ingot_like(c, x, 0)), ingot_mul(c, ingot_tanh(c, x), w),
                       x);
}

/* Bytes, of which some are beyond the border: m - 3 where the padded x is not zero. */
static ingot_tensor *bytes(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 10, 30), *m = input(c, "m", INGOT_I8, 13, 31);
    ingot_tensor *b = input(c, "b", INGOT_BOOL, 13, 31);
    ingot_tensor *p = ingot_pad_c(c, x, (int64_t[]){1, 0}, (int64_t[]){2, 1}, 0);
    ingot_tensor *y = ingot_mul(c, p, ingot_cast(c, m, INGOT_F32));
    return ingot_where(c, b, y, ingot_like(c, y, -1));
}

static ingot_tensor *product(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 2048, 48), *w = input(c, "w", INGOT_F32, 48, 1536);
    return ingot_relu(c, ingot_matmul(c, x, w));
}

static ingot_tensor *rows(ingot_context *c)
{
    return ingot_softmax(c, input(c, "x", INGOT_F32, 20, 300), 1);
}

/* What cannot be said is told of by name. */
static ingot_tensor *doubles(ingot_context *c)
{
    return ingot_exp(c, input(c, "x", INGOT_F64, 4, 4));
}

static ingot_tensor *conditions(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", INGOT_F32, 4, 4);
    return ingot_gt(c, x, ingot_like(c, x, 0));
}

static const struct {
    const char *name;
    ingot_tensor *(*model)(ingot_context *);
} cases[] = {{"elements", elements}, {"bytes", bytes}, {"product", product}, {"rows", rows}};

static int64_t groups(const Tiles *tiles, const Kernel *k)
{
    const Tile *t = &tiles->tile[0];
    int64_t items = 1;
    for (int i = 0; !k->serial && i < t->naxis; i++)
        if (t->items ? t->axis[i].bound == BOUND_GRID : !t->axis[i].scanned)
            items *= t->axis[i].range->src[0]->hi;
    const int group = wgsl_group(tiles, k->serial);
    return t->items ? items : (items + group - 1) / group;
}

static void tell(const char *name, const Step *s)
{
    static const char *const kind[] = {[BUF_INPUT] = "input", [BUF_OUTPUT] = "output"};
    const Kernel *k = s->kernel;
    printf("%s %s %lld", name, k->name, (long long)groups(&kernel_lowered(k, true)->tiles, k));
    for (int i = 0, n = 0; i < s->nbuf; i++)
        if (kernel_has_param(k, i))
            printf("%s %s %d %lld", n++ ? "," : "", kind[s->bufs[i]->kind], s->bufs[i]->slot,
                   (long long)(s->bufs[i]->bytes / dtype_info[s->bufs[i]->dtype].bytes));
    printf("\n");
}

static Plan *planned(ingot_context *c, Arena *a, ingot_tensor *y, Target *t)
{
    const ingot_options asked = {.struct_size = sizeof asked, .target = "opencl"};
    const ingot_options o = options_complete(c, &asked);
    Clock clock = clock_start(c, &o);
    ingot_output(c, "y", y);
    *t = *options_check(c, &o, a); /* the same machine, spoken to in another language */
    t->language = &wgsl_language;
    return pipeline_plan(c, t, &o, &clock);
}

static void say(void *user, ingot_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static void keep(void *user, ingot_level level, const char *message)
{
    (void)level;
    snprintf(user, 512, "%s", message);
}

static bool write_case(const char *dir, int i)
{
    ingot_context *c = ingot_context_new(say, NULL);
    Arena *a = arena_new();
    Target t;
    Plan *p = planned(c, a, cases[i].model(c), &t);
    FILE *f = fopen(arena_printf(a, "%s/%s.wgsl", dir, cases[i].name), "w");
    const bool good = p && f && p->nkernel == 1 && p->main.n == 1;
    if (good) {
        StrBuf head = {0}, body = {0};
        const unsigned needs = render_kernel(&body, &t, p->kernels[0], p->kernels[0]->name);
        t.language->file(&head, &t, needs);
        fputs(head.data, f);
        fputs(body.data, f);
        sb_free(&head);
        sb_free(&body);
        tell(cases[i].name, p->main.step[0]);
    } else {
        fprintf(stderr, "%s: %d kernels\n", cases[i].name, p ? p->nkernel : -1);
    }
    if (f)
        fclose(f);
    plan_free(p);
    arena_free(a);
    ingot_context_free(c);
    return good;
}

/* Is it, in these words? */
static bool is_refused(ingot_tensor *(*model)(ingot_context *), const char *wanted)
{
    char said[512] = "";
    ingot_context *c = ingot_context_new(keep, said);
    Arena *a = arena_new();
    Target t;
    Plan *p = planned(c, a, model(c), &t);
    const bool good = !p && strstr(said, wanted);
    if (!good)
        fprintf(stderr, "'%s' where '%s' was wanted\n", said, wanted);
    plan_free(p);
    arena_free(a);
    ingot_context_free(c);
    return good;
}

int main(int argc, char **argv)
{
    bool good = argc == 2 && is_refused(doubles, "no f64") && is_refused(conditions, "whole words");
    for (size_t i = 0; good && i < sizeof cases / sizeof *cases; i++)
        good = write_case(argv[1], (int)i);
    return good ? 0 : 1;
}
