/* net.c - a small GPT as a bundle: with random weights, and a step of training beside inference.
 *
 *     net DIR [TARGET]
 *
 *     characters [B, 64] -> what each stands for, and where it stands [B, 64, 128]
 *     3 layers, before each half a layer norm, behind it a sum:
 *         attention to the characters before, 4 heads    two linear layers of 512
 *     layer norm, a score for each character that may follow [B, 64, 96]
 *
 * Radford et al., "Language models are unsupervised multitask learners", 2019. */
#include <math.h>
#include <stdio.h>

#include "ingot_train.h"

enum { BATCH = 16, LENGTH = 64, WIDTH = 128, HEADS = 4, LAYERS = 3, CHARACTERS = 96, MOST = 64 };

/* The weights: states, the same in both functions. */
typedef struct {
    ingot_context *c;
    ingot_tensor *weight[MOST];
    int n, at;       /* how many there are; the next that is used */
    uint64_t random; /* of the first values */
} GptNet;

/* In (0, 1]: the upper half of Knuth's linear congruential generator. */
static double uniform(GptNet *net)
{
    net->random = net->random * 6364136223846793005u + 1442695040888963407u;
    return (double)((net->random >> 32) + 1) / 4294967296.0;
}

/* Normal numbers of that deviation about a mean. */
static ingot_tensor *weight(GptNet *net, const char *name, int layer, int rank, int64_t rows,
                            int64_t columns, double mean, double deviation)
{
    const int64_t dims[2] = {rows, columns};
    const size_t n = (size_t)rows * (size_t)(rank == 2 ? columns : 1);
    char text[64];
    if (net->at < net->n)
        return net->weight[net->at++];
    float *v = ingot_alloc(net->c, n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(mean + deviation * sqrt(-2 * log(uniform(net))) *
                                  cos(6.283185307179586 * uniform(net)));
    snprintf(text, sizeof text, layer < 0 ? "%s" : "%s.%d", name, layer);
    ingot_tensor *data = ingot_data(net->c, text, INGOT_F32, rank, dims, v);
    net->at++;
    return net->weight[net->n++] = ingot_state_from(net->c, text, data);
}

static ingot_tensor *linear(GptNet *net, const char *name, int layer, ingot_tensor *x, int from,
                            int to)
{
    return ingot_linear(net->c, x, weight(net, name, layer, 2, to, from, 0, 0.02), NULL);
}

static ingot_tensor *norm(GptNet *net, const char *name, int layer, ingot_tensor *x)
{
    return ingot_layer_norm(net->c, x, -1, weight(net, name, layer, 1, WIDTH, 1, 1, 0), NULL, 1e-5);
}

/* [B, T, WIDTH] -> [B, HEADS, T, WIDTH / HEADS] */
static ingot_tensor *heads(GptNet *net, ingot_tensor *x, int64_t batch)
{
    const int64_t dims[4] = {batch, LENGTH, HEADS, WIDTH / HEADS};
    return ingot_transpose(net->c, ingot_reshape_c(net->c, x, 4, dims), 1, 2);
}

static ingot_tensor *layer(GptNet *net, int i, ingot_tensor *x, int64_t batch)
{
    static const char *const name[3] = {"query", "key", "value"};
    const int64_t dims[3] = {batch, LENGTH, WIDTH};
    ingot_context *c = net->c;
    ingot_tensor *part[3], *y = norm(net, "norm1", i, x);
    for (int k = 0; k < 3; k++)
        part[k] = heads(net, linear(net, name[k], i, y, WIDTH, WIDTH), batch);
    y = ingot_attention(c, part[0], part[1], part[2], NULL, 0, true);
    y = ingot_reshape_c(c, ingot_transpose(c, y, 1, 2), 3, dims);
    x = ingot_add(c, x, linear(net, "joined", i, y, WIDTH, WIDTH));
    y = linear(net, "up", i, norm(net, "norm2", i, x), WIDTH, 4 * WIDTH);
    return ingot_add(c, x, linear(net, "down", i, ingot_gelu(c, y, true), 4 * WIDTH, WIDTH));
}

static ingot_tensor *characters(ingot_context *c, const char *name, int64_t batch)
{
    ingot_dim *dims[2] = {ingot_dim_const(c, batch), ingot_dim_const(c, LENGTH)};
    return ingot_input(c, name, INGOT_I32, 2, dims);
}

static ingot_tensor *scores(GptNet *net, int64_t batch)
{
    ingot_context *c = net->c;
    net->at = 0;
    ingot_tensor *table = weight(net, "characters", -1, 2, CHARACTERS, WIDTH, 0, 0.02);
    ingot_tensor *places = weight(net, "places", -1, 2, LENGTH, WIDTH, 0, 0.02);
    ingot_tensor *x = ingot_take(c, table, characters(c, "text", batch), 0);
    x = ingot_add(c, x, places);
    for (int i = 0; i < LAYERS; i++)
        x = layer(net, i, x, batch);
    return ingot_linear(c, norm(net, "norm", -1, x), table, NULL);
}

static void step(GptNet *net)
{
    ingot_context *c = net->c;
    ingot_tensor *gradient[MOST], *y = scores(net, BATCH);
    const ingot_loss_options last = {.struct_size = sizeof last, .axis = -1};
    ingot_tensor *loss = ingot_cross_entropy(c, y, characters(c, "next", BATCH), &last);
    ingot_optimizer adamw = ingot_optimizer_new(INGOT_ADAMW);
    adamw.beta2 = 0.99;
    adamw.clip = 1;
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
    GptNet net = {.c = c, .random = 1};
    ingot_output(c, "score", scores(&net, 1));
    ingot_function(c, "train_step");
    step(&net);
    const ingot_options options = {.struct_size = sizeof options,
                                   .name = "gpt",
                                   .target = argc > 2 ? argv[2] : NULL,
                                   .no_selftest = true};
    const ingot_status status = ingot_compile(c, &options, argv[1]);
    ingot_context_free(c);
    return (int)status;
}
