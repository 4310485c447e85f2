/* net.c - a network that is to read digits, as a bundle: with random weights, and a step of
 * training beside inference.
 *
 *     net DIR [TARGET]
 *
 *     image [N, 8, 8]    conv 3x3, 32 maps    conv 3x3, 32 maps    pool 2x2
 *     [N, 32, 4, 4]      conv 3x3, 64 maps    [N, 1024]    linear, 128    linear, 10 scores */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ingot_train.h"

enum { BATCH = 64, MOST = 16 };

/* The weights: states, the same in both functions. */
typedef struct {
    ingot_context *c;
    ingot_tensor *weight[MOST];
    int n, at;        /* how many there are; the next that is used */
    uint64_t random;  /* of the first values */
    bool is_training; /* the graph that is built is that of the step */
} DigitsNet;

/* In (0, 1]: the upper half of Knuth's linear congruential generator. */
static double uniform(DigitsNet *net)
{
    net->random = net->random * 6364136223846793005u + 1442695040888963407u;
    return (double)((net->random >> 32) + 1) / 4294967296.0;
}

/* Normal numbers of variance 2 / inputs (He et al., arXiv:1502.01852); none: zeros. */
static ingot_tensor *weight(DigitsNet *net, const char *name, int rank, const int64_t *dims,
                            int inputs)
{
    if (net->at < net->n)
        return net->weight[net->at++];
    size_t n = 1;
    for (int a = 0; a < rank; a++)
        n *= (size_t)dims[a];
    float *v = ingot_alloc(net->c, n * sizeof *v);
    for (size_t i = 0; i < n && inputs; i++)
        v[i] = (float)(sqrt(-2 * log(uniform(net))) * cos(6.283185307179586 * uniform(net)) *
                       sqrt(2.0 / inputs));
    ingot_tensor *data = ingot_data(net->c, name, INGOT_F32, rank, dims, v);
    net->at++;
    return net->weight[net->n++] = ingot_state_from(net->c, name, data);
}

static ingot_tensor *conv(DigitsNet *net, const char *name, const char *bias, ingot_tensor *x,
                          int from, int to)
{
    static const int64_t one[2] = {1, 1};
    const int64_t dims[4] = {to, from, 3, 3}, maps = to;
    ingot_tensor *w = weight(net, name, 4, dims, from * 9), *b = weight(net, bias, 1, &maps, 0);
    return ingot_relu(net->c, ingot_conv(net->c, x, w, b, NULL, NULL, one, one, 1));
}

static ingot_tensor *linear(DigitsNet *net, const char *name, const char *bias, ingot_tensor *x,
                            int from, int to)
{
    const int64_t dims[2] = {to, from}, rows = to;
    ingot_tensor *w = weight(net, name, 2, dims, from), *b = weight(net, bias, 1, &rows, 0);
    return ingot_linear(net->c, x, w, b);
}

static ingot_tensor *scores(DigitsNet *net, ingot_tensor *image)
{
    static const int64_t two[2] = {2, 2}, none[2] = {0, 0};
    ingot_context *c = net->c;
    ingot_tensor *x = ingot_unsqueeze(c, image, 1);
    net->at = 0;
    x = conv(net, "conv1.weight", "conv1.bias", x, 1, 32);
    x = conv(net, "conv2.weight", "conv2.bias", x, 32, 32);
    x = ingot_max_pool(c, x, two, two, NULL, none, none);
    x = conv(net, "conv3.weight", "conv3.bias", x, 32, 64);
    x = ingot_flatten(c, x, 1, 4);
    x = ingot_relu(c, linear(net, "fc1.weight", "fc1.bias", x, 1024, 128));
    if (net->is_training)
        x = ingot_dropout(c, x, 0.3);
    return linear(net, "fc2.weight", "fc2.bias", x, 128, 10);
}

static ingot_tensor *images(ingot_context *c)
{
    ingot_dim *dims[3] = {ingot_dim_const(c, BATCH), ingot_dim_const(c, 8), ingot_dim_const(c, 8)};
    return ingot_input(c, "image", INGOT_F32, 3, dims);
}

static void step(DigitsNet *net)
{
    ingot_context *c = net->c;
    ingot_tensor *gradient[MOST], *y = scores(net, images(c));
    ingot_dim *batch = ingot_dim_const(c, BATCH);
    ingot_tensor *label = ingot_input(c, "label", INGOT_I32, 1, &batch);
    const ingot_loss_options smooth = {.struct_size = sizeof smooth, .smoothing = 0.05};
    ingot_tensor *loss = ingot_cross_entropy(c, y, label, &smooth);
    const ingot_optimizer adamw = ingot_optimizer_new(INGOT_ADAMW);
    ingot_gradient(c, loss, net->n, net->weight, gradient);
    ingot_optimize(c, &adamw, net->n, net->weight, gradient,
                   ingot_input(c, "rate", INGOT_F32, 0, NULL));
    ingot_output(c, "loss", loss);
}

static void tell(void *user, ingot_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "%s%s\n", level == INGOT_ERROR ? "error: " : "", text);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIR [TARGET]\n", argv[0]);
        return 2;
    }
    ingot_context *c = ingot_context_new(tell, NULL);
    DigitsNet net = {.c = c, .random = 1};
    ingot_output(c, "score", scores(&net, images(c)));
    net.is_training = true;
    ingot_function(c, "train_step");
    step(&net);
    const ingot_options options = {.struct_size = sizeof options,
                                   .name = "digits",
                                   .target = argc > 2 ? argv[2] : NULL,
                                   .no_selftest = true};
    const ingot_status status = ingot_compile(c, &options, argv[1]);
    ingot_context_free(c);
    return (int)status;
}
