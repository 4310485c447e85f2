/* bundle_kernels.c - <name>_kernels.h and <name>_kernels_N.c: the kernels, a limited number a file,
 * so that no compiler run is huge and make can run several; <name>_checks.c: those that only
 * check. */
#include <string.h>

#include "bundle.h"

enum { KERNELS_PER_FILE = 50, BYTES_PER_FILE = 200000 };

/* Functions of the user's that the kernels of a file call, and what these kernels need. */
typedef struct {
    struct CustomFunction {
        const CustomOp *op;
        unsigned needs;
    } * of;
    int n;
} Functions;

/* The first step that runs the kernel, and how many do. */
static void find_steps(const Block *block, const Kernel *k, const Step **first, int *n)
{
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        if (s->kernel == k) {
            *first = *first ? *first : s;
            ++*n;
        }
        find_steps(&s->body, k, first, n);
        find_steps(&s->other, k, first, n);
    }
}

/* What the kernel computes for whom, its arguments' shapes and its cost. */
void kernel_comment(StrBuf *sb, const Bundle *b, const Kernel *k)
{
    const Step *first = NULL;
    int n = 0;
    find_steps(&b->p->main, k, &first, &n);
    for (int i = 0; i < b->nfunction; i++) /* of equal kernels the first is written */
        find_steps(&b->function[i].p->main, k, &first, &n);
    sb_printf(sb, "\n/* %s\n", k->name);
    if (first && first->norigin) {
        sb_puts(sb, " * ");
        print_origins(sb, first, 6);
        if (n > 1)
            sb_printf(sb, ", and %d more steps", n - 1);
        sb_puts(sb, "\n");
    }
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        sb_printf(sb, " * a%d %s ", i,
                  k->args[i].read && k->args[i].written ? "in, out"
                  : k->args[i].written                  ? "out"
                                                        : "in");
        print_shape(sb, b->c, k->args[i].dtype, k->args[i].rank, k->args[i].dims);
        sb_puts(sb, "\n");
    }
    for (int i = 0; i < k->nscalar; i++) {
        sb_printf(sb, " * c%d ", i);
        print_scalar(sb, &k->scalars[i], k->scalars[i].lo);
        sb_puts(sb, " to ");
        print_scalar(sb, &k->scalars[i], k->scalars[i].hi);
        sb_puts(sb, "\n");
    }
    if (k->nopt) {
        sb_puts(sb, " *");
        for (int i = 0; i < k->nopt; i++) {
            sb_puts(sb, i ? " . " : " ");
            opt_print(sb, &k->opts[i]);
        }
        sb_puts(sb, "\n");
    }
    sb_printf(sb, " * %lld flops, %lld bytes */\n", (long long)k->flops, (long long)k->bytes);
}

static void header(Bundle *b)
{
    StrBuf sb = {0};
    const char *whole = whole_upper(b);
    sb_printf(
        &sb,
        "/* %s_kernels.h - the kernels of the model. */\n"
        "#ifndef %s_KERNELS_H\n#define %s_KERNELS_H\n\n#include <stdint.h>\n\n"
        "#if defined(_MSC_VER) && !defined(__clang__)\n#define restrict __restrict\n#endif\n\n"
        "/* For all of them: -D'%s_KERNELS_ATTR=__attribute__((section(\".itcm\")))' */\n"
        "#ifndef %s_KERNELS_ATTR\n#define %s_KERNELS_ATTR\n#endif\n\n",
        b->name, b->upper, b->upper, b->upper, b->upper, b->upper);
    bool checks = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->nkernel; i++) {
            const Kernel *k = b->kernel[i];
            if (k->check != (pass == 1))
                continue;
            if (k->check && !checks)
                sb_printf(
                    &sb,
                    "\n/* -D%s_CHECK=1: indices from data are checked before they are used. */\n"
                    "#ifndef %s_CHECK\n#define %s_CHECK 0\n#endif\n#if %s_CHECK\n",
                    whole, whole, whole, whole);
            checks |= k->check;
            kernel_prototype(&sb, b->target, k, arena_printf(b->a, "%s_%s", b->name, k->name));
            sb_printf(&sb, " %s_KERNELS_ATTR;\n", b->upper);
        }
    sb_puts(&sb, checks ? "#endif\n\n#endif\n" : "\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels.h", b->name), &sb);
}

/* The custom functions that a kernel calls, added to those of its file. */
static void find_functions(Bundle *b, const Kernel *k, unsigned needs, Functions *all)
{
    int n;
    Node **order = graph_toposort(b->a, 1, &k->sink, &n);
    for (int i = 0; i < n; i++) {
        const CustomOp *op =
            order[i]->op == OP_CUSTOM ? ((const CustomUse *)order[i]->arg.ptr)->op : NULL;
        int at = 0;
        while (at < all->n && all->of[at].op != op)
            at++;
        if (op && at == all->n)
            vec_push(b->a, all->of, all->n, ((struct CustomFunction){op, 0}));
        if (op)
            all->of[at].needs |= needs;
    }
}

static void file_end(Bundle *b, StrBuf *body, unsigned needs, Functions *functions)
{
    StrBuf sb = {0};
    sb_printf(&sb, "/* %s_kernels_%d.c */\n", b->name, b->nkernel_file);
    if (functions->n)
        sb_puts(&sb, "/* floating-point exceptions are ignored: both sides of a condition can "
                     "be computed "
                     "in lanes */\n#if defined(__GNUC__) && !defined(__clang__)\n"
                     "#pragma GCC optimize(\"no-trapping-math\")\n#endif\n");
    for (int i = 0; i < functions->n; i++)
        custom_paste(
            &sb, functions->of[i].op,
            arena_printf(b->a, "%s_%d_%s", b->name, b->nkernel_file, functions->of[i].op->name));
    print_kernel_headers(&sb, needs);
    sb_printf(&sb, "#include \"%s_kernels.h\"\n", b->name);
    b->kernel_needs |= needs;
    for (int i = 0; i < functions->n; i++)
        custom_wrappers(
            &sb, functions->of[i].op,
            arena_printf(b->a, "%s_%d_%s", b->name, b->nkernel_file, functions->of[i].op->name),
            functions->of[i].needs);
    *functions = (Functions){0};
    sb_write(&sb, body->data, body->len);
    sb_free(body);
    *body = (StrBuf){0};
    bundle_source(b, arena_printf(b->a, "%s_kernels_%d.c", b->name, b->nkernel_file++), &sb);
}

static unsigned one_kernel(StrBuf *body, const Bundle *b, const Kernel *k)
{
    kernel_comment(body, b, k);
    unsigned needs =
        render_kernel(body, b->target, k, arena_printf(b->a, "%s_%s", b->name, k->name));
    if (body->data[body->len - 1] != '\n')
        sb_puts(body, "\n");
    return needs;
}

/* <name>_checks.c: what is compiled with -D<NAME>_CHECK=1 only. */
static void checks(Bundle *b)
{
    StrBuf sb = {0}, body = {0};
    unsigned needs = 0;
    for (int i = 0; i < b->nkernel; i++)
        if (b->kernel[i]->check)
            needs |= one_kernel(&body, b, b->kernel[i]);
    if (!body.len)
        return;
    sb_printf(&sb,
              "/* %s_checks.c - with -D%s_CHECK=1: the greatest index that is out of range, or "
              "INT64_MIN. */\n"
              "#include \"%s_kernels.h\"\n#if %s_CHECK\n",
              b->name, whole_upper(b), b->name, whole_upper(b));
    print_kernel_headers(&sb, needs);
    b->kernel_needs |= needs;
    sb_write(&sb, body.data, body.len);
    sb_puts(&sb, "#endif\n");
    sb_free(&body);
    bundle_source(b, arena_printf(b->a, "%s_checks.c", b->name), &sb);
}

void bundle_kernels(Bundle *b)
{
    if (!b->nkernel)
        return;
    if (b->gpu) {
        gpu_kernels(b);
        return;
    }
    header(b);
    for (int custom = 0; custom < 2; custom++) { /* what calls a source of the user's is apart */
        StrBuf body = {0};
        Functions called = {0};
        unsigned needs = 0;
        int n = 0;
        for (int i = 0; i < b->nkernel && !b->failed; i++) {
            const Kernel *k = b->kernel[i];
            Functions own = {0};
            find_functions(b, k, 0, &own);
            if (k->check || (own.n > 0) != custom)
                continue;
            unsigned wants = one_kernel(&body, b, k);
            needs |= wants;
            find_functions(b, k, wants, &called);
            if (++n == KERNELS_PER_FILE || body.len > BYTES_PER_FILE) {
                file_end(b, &body, needs, &called);
                needs = 0;
                n = 0;
            }
        }
        if (n)
            file_end(b, &body, needs, &called);
    }
    checks(b);
}
