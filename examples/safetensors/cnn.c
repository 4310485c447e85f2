/* cnn.c - a small convolutional network whose weights come out of a .safetensors file.
 *
 *     example_cnn WEIGHTS.safetensors DIR
 *
 * The network, in the notation of the usual frameworks, with the names the checkpoint has to have:
 *
 *     conv1 3x3 -> relu -> maxpool 2x2     conv1.weight [c1, c0, 3, 3]   conv1.bias [c1]
 *     conv2 3x3 -> relu -> maxpool 2x2     conv2.weight [c2, c1, 3, 3]   conv2.bias [c2]
 *     mean over the picture                fc.weight [classes, c2]       fc.bias [classes]
 *     linear -> softmax
 *
 * Sizes are read off the weights.  make_weights.py writes a file to try it with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingot.h"
#include "safetensors.h"

static void print_message(void *user, ingot_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "cnn: %s%s\n", level == INGOT_ERROR ? "error: " : "", message);
}

/* A tensor of the file as a constant of the graph: its bytes stay in the mapped file. */
static ingot_tensor *load(ingot_context *c, const ingot_safetensors *file, const char *name,
                          size_t rank)
{
    const ingot_safetensors_tensor *t = ingot_safetensors_find(file, name);
    int64_t dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    if (!t)
        return ingot_error(c, INGOT_INVALID, "the checkpoint has no tensor '%s'", name);
    if (t->rank != rank)
        return ingot_error(c, INGOT_INVALID, "'%s' has rank %zu; it must have %zu", name, t->rank,
                           rank);
    switch (t->dtype) {
    case INGOT_ST_F32: dtype = INGOT_F32; break;
    case INGOT_ST_F16: dtype = INGOT_F16; break;
    case INGOT_ST_BF16: dtype = INGOT_BF16; break;
    default:
        return ingot_error(c, INGOT_UNSUPPORTED, "'%s' is %s; this network takes floats", name,
                           ingot_safetensors_dtype_name(t->dtype));
    }
    for (size_t i = 0; i < rank; i++)
        dims[i] = (int64_t)t->shape[i];
    /* Half-precision checkpoints are computed in f32: the cast is done while the bundle is
     * written. */
    return ingot_cast(c, ingot_data(c, name, dtype, (int)rank, dims, t->data), INGOT_F32);
}

/* 3x3 convolution that keeps the picture's size, relu, 2x2 maximum. */
static ingot_tensor *block(ingot_context *c, const ingot_safetensors *file, ingot_tensor *x,
                           const char *weight, const char *bias)
{
    static const int64_t one[2] = {1, 1}, two[2] = {2, 2};
    ingot_set_origin(c, weight, "Conv");
    x = ingot_conv(c, x, load(c, file, weight, 4), load(c, file, bias, 1), one, one, one, one, 1);
    return ingot_max_pool(c, ingot_relu(c, x), two, two, NULL, NULL, NULL);
}

int main(int argc, char **argv)
{
    char why[256];
    if (argc != 3) {
        fprintf(stderr, "usage: %s WEIGHTS.safetensors DIR\n", argv[0]);
        return INGOT_USAGE;
    }
    ingot_safetensors *file = ingot_safetensors_open(argv[1], why, sizeof why);
    if (!file) {
        fprintf(stderr, "cnn: error: %s\n", why);
        return INGOT_IO;
    }
    ingot_context *c = ingot_context_new(print_message, NULL);
    ingot_set_file(c, argv[1]);

    /* One picture of 32 x 32; the channels are what conv1 takes. */
    ingot_tensor *w = load(c, file, "conv1.weight", 4);
    if (!ingot_is_poison(w)) {
        ingot_dim *shape[4] = {ingot_dim_const(c, 1), ingot_shape(w, 1), ingot_dim_const(c, 32),
                               ingot_dim_const(c, 32)};
        ingot_tensor *x = ingot_input(c, "image", INGOT_F32, 4, shape);
        x = block(c, file, x, "conv1.weight", "conv1.bias");
        x = block(c, file, x, "conv2.weight", "conv2.bias");
        ingot_set_origin(c, "head", "Linear");
        x = ingot_mean(c, x, 1u << 2 | 1u << 3, false); /* [1, c2] */
        x = ingot_linear(c, x, load(c, file, "fc.weight", 2), load(c, file, "fc.bias", 1));
        ingot_output(c, "probabilities", ingot_softmax(c, x, -1));
    }
    ingot_status status = ingot_context_status(c);
    ingot_options options = {.struct_size = sizeof options, .name = "cnn"};
    if (status == INGOT_OK)
        status = ingot_compile(c, &options, argv[2]);
    ingot_context_free(c);
    ingot_safetensors_close(file); /* after the context: constants point into it */
    return (int)status;
}
