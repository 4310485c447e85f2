/* runner.c - one IR test: text in, expected text out, in the same file.
 *
 *     # pass simplify          what to do with the text; default: nothing
 *     %1 = ...
 *     return %1
 *     # expect                 without it the text must print back as it is
 *     %1 = ...
 *     return %1
 *
 * Passes of expressions: simplify (every node made again by the simplifying constructors), given
 * (the second root is a condition; the first is simplified under it), verify0 and verify1.
 * Passes of a graph, whose roots are its outputs:
 *
 *     rewrite            what its outputs become, but by the rules of a line "# off power,identity"
 *     fuse               its kernels as expressions, naive
 *     fuse gpu           the same where each element is a work item
 *     opts TARGET        the plan that the heuristic makes: layouts, opts, steps; with a line "#
 *                        preset all" as few kernels as may be
 *     lower TARGET       what each pass of lowering makes of its kernels, with lines "# opt VECTOR
 *                        i0 4"; those that have nothing to do are named
 *     linearize          statements of its kernels, with the opts that lines "# opt VECTOR i0 4"
 *                        give
 *     render TARGET      text of its kernels, by the heuristic or with the opts that such lines
 *                        give
 *
 * Printing what was parsed and parsing that again must give the same nodes, in any case.  With
 * --renew the expectation is rewritten by what was got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/render/codegen.h"
#include "compiler/kernel/lowered.h"
#include "compiler/pipeline/pipeline.h"
#include "targets/targets.h"

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    StrBuf sb = {0};
    char block[4096];
    size_t n;
    if (!f)
        return NULL;
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        sb_write(&sb, block, n);
    fclose(f);
    return sb.data;
}

/* What stands after "# pass ", or "". */
static void directive(const char *text, char *pass, size_t bytes)
{
    const char *at = strstr(text, "# pass ");
    snprintf(pass, bytes, "%.*s", at ? (int)strcspn(at + 7, "\n") : 0, at ? at + 7 : "");
}

static Node *simplify(Context *c, Arena *a, Node *root)
{
    int n;
    Node **order = graph_toposort(a, 1, &root, &n), **made = NEWN(a, Node *, root->id + 1);
    for (int i = 0; i < n; i++) {
        Node *x = order[i], **src = NEWN(a, Node *, x->nsrc + 1);
        for (uint32_t j = 0; j < x->nsrc; j++)
            src[j] = made[x->src[j]->id];
        made[x->id] = x->op == OP_RANGE ? range_new(c, (int)x->arg.i, src[0])
                      : x->nsrc         ? node_with(c, x, src)
                                        : x;
    }
    return made[root->id];
}

static int run_pass(Context *c, const char *pass, int n, Node **roots)
{
    Arena *a = arena_new();
    if (!strcmp(pass, "simplify"))
        for (int i = 0; i < n; i++)
            roots[i] = simplify(c, a, roots[i]);
    if (!strcmp(pass, "given") && n == 2) {
        roots[0] = simplify_given(c, simplify(c, a, roots[0]), simplify(c, a, roots[1]));
        n = 1;
    }
    if (!strncmp(pass, "verify", 6))
        verify(n, roots, pass[6] == '1', "parse");
    arena_free(a);
    return n;
}

/* ---- graphs ------------------------------------------------------------------------------ */

/* The model whose outputs are the roots; inputs are named in0, in1, ... */
static void declare(Context *c, int n, Node **roots)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, n, roots, &count);
    for (int slot = 0, found = 1; found; slot++) {
        found = 0;
        for (int i = 0; i < count && !found; i++)
            if (order[i]->op == OP_INPUT && order[i]->arg.i == slot) {
                NamedNode in = {arena_printf(c->arena, "in%d", slot), order[i]};
                vec_push(c->arena, c->inputs, c->ninput, in);
                found = 1;
            }
    }
    for (int i = 0; i < n; i++)
        ingot_output(c, arena_printf(c->arena, "out%d", i), roots[i]);
    arena_free(a);
}

/* "# opt UPCAST i0 4", of every kernel. */
static void add_opts(const char *text, Kernel *k, const Target *t)
{
    Nest *n = nest_new(k, t);
    for (const char *at = text; (at = strstr(at, "# opt ")); at++) {
        const char *line = arena_printf(n->arena, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
        Opt o;
        const char *why = opt_read(n->arena, line, &o) ? opt_apply(n, &o) : "no opt";
        if (why)
            fprintf(stderr, "%s: %s\n", line, why);
    }
    nest_keep(n, k);
    nest_free(n);
}

/* The kernel after each pass that changed something. */
static void print_passes(StrBuf *sb, const Kernel *k, bool gpu)
{
    const Lowered *l = kernel_lowered(k, gpu);
    for (int i = 0; i < LOWER_PASSES; i++)
        if (l->changed[i])
            kernel_after(sb, k, gpu, i);
        else
            sb_printf(sb, "%s has nothing to do\n\n", lower_pass[i].name);
}

/* loop %3 { let %5 ... }, then the nodes. */
static void print_linear(StrBuf *sb, const Kernel *k)
{
    static const char *const word[] = {"item", "loop", "parts",  "end",
                                       "let",  "acc",  "update", "store"};
    Arena *a = arena_new();
    const Lowered *lowered = kernel_lowered(k, false);
    for (int i = 0; i < lowered->tiles.n; i++) {
        const Linear l = lowered->linear[i];
        Node **shown = NULL;
        int nshown = 0;
        for (int j = 0; j < l.n; j++)
            if (l.stmt[j].node)
                vec_push(a, shown, nshown, l.stmt[j].node);
        StrBuf nodes = {0};
        text_print(&nodes, nshown, shown);
        char *number = strstr(nodes.data, "return"); /* what each statement's node is there */
        sb_printf(sb, "tile %d lanes %d\n", i, l.tile->lanes);
        for (int j = 0; j < l.n; j++) {
            sb_printf(sb, "%*s%s", 4 * l.stmt[j].depth + 4, "", word[l.stmt[j].kind]);
            if (l.stmt[j].node) {
                number += strcspn(number, " ");
                sb_printf(sb, "%.*s", (int)strcspn(number + 1, " \n") + 1, number);
                number++;
            }
            sb_puts(sb, "\n");
        }
        sb_printf(sb, "%.*s", (int)(strstr(nodes.data, "return") - nodes.data), nodes.data);
        sb_free(&nodes);
    }
    arena_free(a);
}

/* False: this is no pass of graphs. */
static bool run_graph(StrBuf *got, Context *c, const char *text, const char *pass, int n,
                      Node **roots)
{
    const char *name = strchr(pass, ' ');
    bool fuse = !strncmp(pass, "fuse", 4), opts = !strncmp(pass, "opts ", 5);
    bool rewrite = !strncmp(pass, "rewrite", 7);
    bool linear = !strcmp(pass, "linearize"), render = !strncmp(pass, "render ", 7);
    bool lower = !strncmp(pass, "lower ", 6);
    if (!fuse && !opts && !linear && !render && !rewrite && !lower)
        return false;
    declare(c, n, roots);
    if (rewrite) {
        char off[64] = "";
        const char *at = strstr(text, "# off ");
        snprintf(off, sizeof off, "%.*s", at ? (int)strcspn(at + 6, "\n") : 0, at ? at + 6 : "");
        Target t;
        ingot_status status;
        if (name && target_make(&t, c->arena, name + 1, &status))
            return false;
        (void)graph_rewrite(c, name ? &t : NULL, off);
        for (int i = 0; i < n; i++)
            roots[i] = c->outputs[i].node;
        text_print(got, n, roots);
        return true;
    }
    bool given = strstr(text, "# opt ") != NULL;
    const char *machine = opts || render || lower ? name + 1 : linear ? "c:x86-64-v4" : "c";
    Target tuned, *t = &tuned;
    ingot_status made;
    if (target_make(t, c->arena, machine, &made))
        return false;
    const char *preset = strstr(text, "# preset all\n") ? "all" : NULL;
    ingot_options o = {.struct_size = sizeof o, .target = machine, .fuse = preset};
    const Target *fused = target_find(fuse && name ? name + 1 : "c");
    Plan *p = opts || (render && !given) ? plan_make(c, &o) : schedule(c, 2, fused);
    if (!p)
        return true;
    if (opts) {
        plan_print(got, p);
    } else {
        if (!p->nkernel)
            kernel_share(p);
        for (int i = 0; i < p->nkernel; i++) {
            Kernel *k = p->kernels[i];
            verify(1, &k->sink, 1, "schedule");
            if (given)
                add_opts(text, k, t);
            if (!render)
                sb_printf(got, "kernel %s\n", k->name);
            if (fuse)
                text_print(got, 1, &k->sink);
            else if (lower)
                print_passes(got, k, t->gpu);
            else if (linear)
                print_linear(got, k);
            else
                render_kernel(got, t, k, k->name);
        }
    }
    plan_free(p);
    return true;
}

/* Passes ask for the values of data; a text may have left out long ones. */
static const char *data_without_bytes(int n, Node **roots)
{
    Arena *a = arena_new();
    const char *name = NULL;
    int count;
    Node **order = graph_toposort(a, n, roots, &count);
    for (int i = 0; i < count && !name; i++)
        if (order[i]->op == OP_DATA && !((const Data *)order[i]->arg.ptr)->bytes)
            name = ((const Data *)order[i]->arg.ptr)->name;
    arena_free(a);
    return name;
}

static int renew(const char *path, const char *text, const char *expect, const char *got)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return 2;
    fprintf(f, "%.*s# expect\n%s", expect ? (int)(expect - text) : (int)strlen(text), text, got);
    return fclose(f) ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: runner FILE.ir [--renew]\n");
        return 2;
    }
    char error[256] = "", pass[64], *text = read_file(argv[1]);
    if (!text) {
        fprintf(stderr, "%s: cannot be read\n", argv[1]);
        return 2;
    }
    char *expect = strstr(text, "# expect\n");
    size_t length = expect ? (size_t)(expect - text) : strlen(text);
    char *source = malloc(length + 1);
    memcpy(source, text, length);
    source[length] = '\0';

    int n, m;
    Context *c = ingot_context_new(NULL, NULL);
    Node **roots = text_parse(c, source, &n, error, sizeof error);
    if (!roots) {
        fprintf(stderr, "%s: %s\n", argv[1], error);
        return 1;
    }
    StrBuf printed = {0}, got = {0};
    text_print_names(&printed, c, n, roots);
    Node **again = text_parse(c, printed.data, &m, error, sizeof error);
    bool same = again && n == m;
    for (int i = 0; same && i < n; i++)
        same = roots[i] == again[i];
    int status = same ? 0 : 1;
    if (!same)
        fprintf(stderr, "%s: printed and parsed again it is not the same: %s\n%s", argv[1], error,
                printed.data);

    directive(source, pass, sizeof pass);
    const char *hollow = *pass ? data_without_bytes(n, roots) : NULL;
    if (hollow) {
        fprintf(stderr, "%s: data \"%s\" has no hex=: the pass needs its bytes\n", argv[1], hollow);
        return 1;
    }
    if (!run_graph(&got, c, source, pass, n, roots)) {
        n = run_pass(c, pass, n, roots);
        text_print_names(&got, c, n, roots);
    }
    /* Without an expectation the file must be what is printed, comments aside. */
    char *want = expect ? expect + strlen("# expect\n") : strchr(source, '%');
    if (argc > 2 && !strcmp(argv[2], "--renew"))
        status = renew(argv[1], text, expect, got.data);
    else if (!want || !got.data || strcmp(want, got.data) != 0) {
        fprintf(stderr, "%s: expected\n%sgot\n%s", argv[1], want ? want : "",
                got.data ? got.data : "");
        status = 1;
    }
    sb_free(&printed);
    sb_free(&got);
    ingot_context_free(c);
    free(source);
    free(text);
    return status;
}
