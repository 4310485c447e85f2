/*
 * gguf_logits.c - the logits of a model in a file after a prompt, by the interpreter of graphs.
 *
 *     gguf_logits MODEL.gguf ID...            one a line
 *     gguf_logits -q8_0 FOLDER ID...          of a folder, with matrices of this type
 */
#include "ingot_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static void sink(void *user, ingot_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv)
{
    int32_t ids[MOST];
    const char *type = argc > 1 && *argv[1] == '-' ? argv[1] + 1 : NULL;
    argc -= type != NULL;
    argv += type != NULL;
    const int n = argc - 2;
    if (n < 1 || n > MOST)
        return 2;
    for (int i = 0; i < n; i++)
        ids[i] = (int32_t)strtol(argv[i + 2], NULL, 10);
    const ingot_model_dim dim = {.name = "n", .lo = n, .hi = n};
    const ingot_model_options options = {
        .struct_size = sizeof options, .dims = &dim, .n_dims = 1, .weights_type = type};
    ingot_context *c = ingot_context_new(sink, NULL);
    ingot_model *m = ingot_model_open(c, argv[1]);
    ingot_value in = {.data = ids, .dims = {n}, .rank = 1, .dtype = INGOT_I32}, out = {0};
    if (m && ingot_model_build(m, &options) && ingot_interpret(c, 1, &in, 1, &out) == INGOT_OK)
        for (int64_t i = 0; i < out.dims[0]; i++)
            printf("%.9g\n", (double)((const float *)out.data)[i]);
    const ingot_status status = ingot_context_status(c);
    ingot_context_free(c);
    ingot_model_close(m);
    return (int)status;
}
