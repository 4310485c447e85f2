/* bundle_gpu_ways.c - what a tuner's program tries for its steps: kernels behind all others, each a
 * program of its own.
 *
 * Where the driver compiles, one is built when it is tried, and may be refused then. Where ingot
 * does, all of them and the program of the others are compiled at once, apart (compile_apart.c):
 * one that does not compile is left out, with a warning, whatever the reason. */
#include <string.h>

#include "bundle_gpu.h"
#include "compile_apart.h"

enum { HANGS = 300 /* seconds; a kernel takes one, or a few */ };

static bool is_way(const Plan *p, const Kernel *k)
{
    for (int i = 0; i < p->main.n; i++)
        for (int j = 0; j < p->main.step[i]->nway; j++)
            if (p->main.step[i]->way[j] == k)
                return true;
    return false;
}

int gpu_own_kernels(const Bundle *b)
{
    for (int i = 0; i < b->nkernel; i++)
        if (is_way(b->p, b->kernel[i]))
            return i;
    return 0;
}

/* ---- compiled here --------------------------------------------------------------------------- */

static int without(Kernel **list, int n, const Kernel *k)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (list[i] != k)
            list[left++] = list[i];
    return left;
}

static void leave_out(Bundle *b, int at)
{
    Plan *p = b->p;
    Gpu *g = b->gpu;
    Kernel *k = p->kernels[at];
    for (int i = at; i + 1 < p->nkernel; i++) {
        g->asked[i] = g->asked[i + 1];
        g->across[i] = g->across[i + 1];
        g->image[i] = g->image[i + 1];
    }
    b->nkernel = p->nkernel = without(p->kernels, p->nkernel, k);
    for (int i = 0; i < p->main.n; i++)
        p->main.step[i]->nway = without(p->main.step[i]->way, p->main.step[i]->nway, k);
    ingot_context_free(k->c); /* the plan frees those that it has */
}

static int count_machines(const Bundle *b)
{
    int n = 0;
    while (gpu_machine(b, n))
        n++;
    return n;
}

/* The same text for each machine. */
static void ask_for(Bundle *b, Arena *a, Kernel *const *kernels, int n, double most,
                    Compilation *to)
{
    StrBuf text = {0};
    const char *machine;
    gpu_kernels_text(&text, b, kernels, n);
    const char *source = sb_take(&text, a);
    for (int i = 0; (machine = gpu_machine(b, i)); i++)
        to[i] = (Compilation){.source = source, .machine = *machine ? machine : NULL, .most = most};
}

/* The first of n that is no image, NULL: all are. */
static const Compilation *not_compiled(const Compilation *c, int n)
{
    for (int i = 0; i < n; i++)
        if (c[i].status != COMPILE_DONE)
            return &c[i];
    return NULL;
}

static void say_why(StrBuf *why, const Compilation *c)
{
    sb_printf(why, "%s%s: %s", c->machine ? " for " : "", c->machine ? c->machine : "",
              c->out.data ? c->out.data : "");
}

static void take_images(Bundle *b, int at, Compilation *c, int n)
{
    b->gpu->image[at] = NEWN(b->a, StrBuf, n);
    for (int i = 0; i < n; i++) {
        b->gpu->image[at][i] = c[i].out;
        c[i].out = (StrBuf){0};
    }
}

CompileStatus gpu_compile_ways(Bundle *b, StrBuf *sb, int *n, StrBuf *why)
{
    Gpu *g = b->gpu;
    Arena *a = arena_new();
    const int first = g->nown, each = count_machines(b), all = b->nkernel;
    Compilation *own = NEWN(a, Compilation, (all - first + 1) * each), *ways = own + each;
    g->nimage = each;
    g->image = NEWN(b->a, StrBuf *, all + 1);
    ask_for(b, a, b->kernel, first, 0, own); /* takes longest, and begins first */
    for (int i = first; i < all; i++)
        ask_for(b, a, &b->kernel[i], 1, HANGS, &ways[(i - first) * each]);
    compile_apart(a, b->target, !b->c->keep_subnormals, own, (all - first + 1) * each);
    const Compilation *bad = not_compiled(own, each);
    const CompileStatus status = bad ? bad->status : COMPILE_DONE;
    if (status == COMPILE_FAILED)
        say_why(why, bad);
    *n = 0;
    for (; *n < each && !bad; ++*n)
        gpu_print_image(sb, b, *n, gpu_machine(b, *n), &own[*n].out);
    for (int i = all - 1; i >= first && !bad; i--) {
        Compilation *c = &ways[(i - first) * each];
        const Compilation *fault = not_compiled(c, each);
        if (!fault) {
            take_images(b, i, c, each);
            continue;
        }
        StrBuf told = {0};
        say_why(&told, fault);
        context_report(b->c, INGOT_WARNING, INGOT_OK, "%s is left out: it does not compile%.300s",
                       b->kernel[i]->name, told.data);
        sb_free(&told);
        leave_out(b, i);
    }
    for (int i = 0; i < (all - first + 1) * each; i++)
        sb_free(&own[i].out);
    arena_free(a);
    return status;
}

/* ---- written --------------------------------------------------------------------------------- */

/* The host's compiler reads megabytes of a string ten times as fast as of a list of numbers. */
static void string_of_image(StrBuf *sb, const StrBuf *image)
{
    enum { LINE = 24 };
    for (size_t i = 0; i < image->len; i++) {
        const unsigned char x = (unsigned char)image->data[i];
        const char digits[] = {'\\', (char)('0' + (x >> 6)), (char)('0' + (x >> 3 & 7)),
                               (char)('0' + (x & 7))};
        if (i % LINE == 0)
            sb_puts(sb, i ? "\"\n    \"" : "    \"");
        sb_write(sb, digits, sizeof digits);
    }
    sb_puts(sb, image->len ? "\"" : "\"\"");
}

static void images_of_ways(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    StrBuf list = {0}, part = {0}, shared = {0};
    int n = 0;
    for (int i = g->nown; i < b->nkernel; i++) {
        sb_printf(&part, "%d, ", n);
        sb_printf(&shared, "%s%lld", i > g->nown ? ", " : "", (long long)g->asked[i]);
        for (int k = 0; g->image[i] && k < g->nimage; k++, n++) {
            sb_printf(sb, "\nstatic const char way%d[] = /* %s */\n", n, b->kernel[i]->name);
            string_of_image(sb, &g->image[i][k]);
            sb_puts(sb, ";\n");
            sb_printf(&list, "way%d, ", n);
            sb_free(&g->image[i][k]);
        }
    }
    sb_printf(sb,
              "\nconst char *const %s_way_program[] = {%s0};\n"
              "const int %s_way_part[] = {%s%d};\nconst unsigned %s_way_shared[] = {%s};\n",
              b->name, list.data ? list.data : "", b->name, part.data ? part.data : "", n, b->name,
              shared.data ? shared.data : "0");
    sb_free(&list);
    sb_free(&part);
    sb_free(&shared);
}

static void texts_of_ways(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    StrBuf part = {0}, groups = {0};
    int n = 0;
    sb_printf(sb, "\nconst char *const %s_way_program[] = {\n", b->name);
    for (int i = g->nown; i < b->nkernel; i++) {
        StrBuf body = {0};
        sb_printf(&part, "%d, ", n);
        sb_printf(&groups, "%s%d", i > g->nown ? ", " : "",
                  g->across[i] ? b->target->machine.subgroup : 0);
        gpu_kernel_bodies(&body, b, &b->kernel[i], 1);
        gpu_print_lines(sb, body.data, &n);
        sb_free(&body);
    }
    sb_printf(sb, "};\nconst int %s_way_part[] = {%s%d};\nconst int %s_way_subgroup[] = {%s};\n",
              b->name, part.data, n, b->name, groups.data);
    sb_free(&part);
    sb_free(&groups);
}

void gpu_ways_programs(StrBuf *sb, Bundle *b)
{
    if (b->target->compile)
        images_of_ways(sb, b);
    else
        texts_of_ways(sb, b);
}

void gpu_ways_header(StrBuf *sb, const Bundle *b)
{
    const Gpu *g = b->gpu;
    const char *n = b->name, *u = b->upper;
    sb_printf(sb,
              "\n/* Kernels behind the first %s_OWN_KERNELS are of a tuner. Kernel k of these is a "
              "program: ",
              u);
    if (b->target->compile)
        sb_printf(sb,
                  "one of the images\n"
                  " * of %s_way_program from %s_way_part[k] to %s_way_part[k + 1], by the machine. "
                  "Its groups ask for\n"
                  " * %s_way_shared[k] bytes. */\n"
                  "enum {\n    %s_OWN_KERNELS = %d,\n",
                  n, n, n, n, u, g->nown);
    else
        sb_printf(sb,
                  "the first %s_PROGRAM_HEAD\n"
                  " * strings of %s_program, and those of %s_way_program from %s_way_part[k] to "
                  "%s_way_part[k + 1]. What its\n"
                  " * sub-groups have to be a multiple of, 0 if it has none, %s_way_subgroup[k] "
                  "says. */\n"
                  "enum {\n    %s_OWN_KERNELS = %d,\n    %s_PROGRAM_HEAD = %d,\n",
                  u, n, n, n, n, n, u, g->nown, u, g->nhead);
    sb_printf(sb,
              "    %s_FLUSH = %d\n};\n"
              "extern const char *const %s_way_program[];\nextern const int %s_way_part[];\n",
              u, !b->c->keep_subnormals, n, n);
    if (b->target->compile)
        sb_printf(sb, "extern const unsigned %s_way_shared[];\n", n);
    else
        sb_printf(sb, "extern const int %s_way_subgroup[];\n", n);
}
