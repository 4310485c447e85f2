/* mlp.c - a network built in C and compiled to C: 784 - 128 - 10, the classic digits classifier.
 *
 *     example_mlp DIR
 *
 * writes a bundle into DIR: model.h, model.c, weights and a small runtime.  The weights here are a
 * formula, so that the example needs no files; examples/safetensors loads trained ones. */
#include <math.h>
#include <stdio.h>

#include "ingot.h"

/* The compiler never prints: it hands every message to a sink. */
static void print_message(void *user, ingot_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "mlp: %s%s\n", level == INGOT_ERROR ? "error: " : "", message);
}

/* Weights [out, in] as checkpoints store them.  ingot_data does not copy the bytes, so they live
 * in the context; a mapped file would serve as well. */
static ingot_tensor *weights(ingot_context *c, const char *name, int64_t out, int64_t in)
{
    float *w = ingot_alloc(c, (size_t)(out * in) * sizeof *w);
    for (int64_t i = 0; i < out * in; i++)
        w[i] = sinf((float)i * 0.7f) / sqrtf((float)in);
    return ingot_data(c, name, INGOT_F32, 2, (int64_t[]){out, in}, w);
}

static ingot_tensor *bias(ingot_context *c, const char *name, int64_t out)
{
    float *b = ingot_alloc(c, (size_t)out * sizeof *b);
    for (int64_t i = 0; i < out; i++)
        b[i] = 0.01f * (float)(i % 7);
    return ingot_data(c, name, INGOT_F32, 1, &out, b);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return INGOT_USAGE;
    }
    ingot_context *c = ingot_context_new(print_message, NULL);

    /* Any number of images up to 16: the batch is a run-time dim with bounds.  For a fixed batch
     * use ingot_dim_const. */
    ingot_dim *batch = ingot_dim_var(c, "batch", 1, 16);
    ingot_dim *shape[2] = {batch, ingot_dim_const(c, 784)};
    ingot_tensor *x = ingot_input(c, "pixels", INGOT_F32, 2, shape);

    /* Nothing is computed here: each call returns the description of a tensor. The origin names
     * what is built next in messages and in the comments of the emitted code. */
    ingot_set_origin(c, "fc1", "Linear");
    x = ingot_linear(c, x, weights(c, "fc1.weight", 128, 784), bias(c, "fc1.bias", 128));
    x = ingot_relu(c, x);
    ingot_set_origin(c, "fc2", "Linear");
    x = ingot_linear(c, x, weights(c, "fc2.weight", 10, 128), bias(c, "fc2.bias", 10));
    ingot_set_origin(c, "probabilities", "Softmax");
    x = ingot_softmax(c, x, -1);
    ingot_output(c, "probabilities", x);

    /* A mistake above has been told to the sink by now, and the compiler would refuse. */
    ingot_options options = {.struct_size = sizeof options, .name = "mlp", .target = "c"};
    ingot_status status = ingot_context_status(c);
    if (status == INGOT_OK)
        status = ingot_compile(c, &options, argv[1]);
    if (status == INGOT_OK)
        printf("%s: mlp.h, mlp.c and what they need; `make -C %s` builds ./mlp\n", argv[1],
               argv[1]);
    ingot_context_free(c);
    return (int)status;
}
