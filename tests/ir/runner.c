/* runner.c - one IR test: text in, expected text out, in the same file.
 *
 *     # pass simplify          what to do with the text; default: nothing
 *     %1 = ...
 *     return %1
 *     # expect                 without it the text must print back as it is
 *     %1 = ...
 *     return %1
 *
 * Passes: simplify (every node made again by the simplifying constructors), given (the second
 * root is a condition; the first is simplified under it), verify0 and verify1.  Printing what was
 * parsed and parsing that again must give the same nodes, in any case.  With --renew the
 * expectation is rewritten by what was got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compiler.h"

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

/* The word after "# pass" on a line of its own, or "". */
static const char *directive(const char *text, char *word, size_t bytes)
{
    const char *at = strstr(text, "# pass ");
    word[0] = '\0';
    if (at)
        snprintf(word, bytes, "%.*s", (int)strcspn(at + 7, " \n"), at + 7);
    return word;
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
    char error[256] = "", pass[32], *text = read_file(argv[1]);
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

    n = run_pass(c, directive(source, pass, sizeof pass), n, roots);
    text_print_names(&got, c, n, roots);
    /* Without an expectation the file must be what is printed, comments aside. */
    char *want = expect ? expect + strlen("# expect\n") : strchr(source, '%');
    if (argc > 2 && !strcmp(argv[2], "--renew"))
        status = renew(argv[1], text, expect, got.data);
    else if (!want || strcmp(want, got.data) != 0) {
        fprintf(stderr, "%s: expected\n%sgot\n%s", argv[1], want ? want : "", got.data);
        status = 1;
    }
    sb_free(&printed);
    sb_free(&got);
    ingot_context_free(c);
    free(source);
    free(text);
    return status;
}
