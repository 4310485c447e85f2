/* net.c - a network that reads digits, and a step of training that the processes of an MPI run do
 * together: each with its part of the batch, and all with the mean of their gradients.
 *
 *     net DIR BATCH        BATCH: images of one process */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ingot_train.h"

enum { PIXELS = 64, INNER = 96, CLASSES = 10, WEIGHTS = 4 };

/* Numbers of variance 1 / inputs, the same in every process; no inputs: zeros. */
static ingot_tensor *weight(ingot_context *c, const char *name, int rank, const int64_t *dims,
                            int inputs)
{
    static uint64_t random = 1;
    const int64_t n = dims[0] * (rank > 1 ? dims[1] : 1);
    float *v = ingot_alloc(c, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n && inputs; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)(((double)(random >> 32) / 2147483648.0 - 1) * sqrt(3.0 / inputs));
    }
    return ingot_state_from(c, name, ingot_data(c, name, INGOT_F32, rank, dims, v));
}

static ingot_tensor *scores(ingot_context *c, ingot_tensor *const *w, int batch)
{
    ingot_dim *dims[2] = {ingot_dim_const(c, batch), ingot_dim_const(c, PIXELS)};
    ingot_tensor *x = ingot_input(c, "image", INGOT_F32, 2, dims);
    x = ingot_relu(c, ingot_linear(c, x, w[0], w[1]));
    return ingot_linear(c, x, w[2], w[3]);
}

static void step(ingot_context *c, ingot_tensor *const *w, int batch)
{
    ingot_tensor *gradient[WEIGHTS], *y = scores(c, w, batch);
    ingot_dim *rows = ingot_dim_const(c, batch);
    ingot_tensor *label = ingot_input(c, "label", INGOT_I32, 1, &rows);
    ingot_tensor *loss = ingot_cross_entropy(c, y, label, NULL);
    ingot_optimizer adamw = ingot_optimizer_new(INGOT_ADAMW);
    adamw.processes = true;
    ingot_gradient(c, loss, WEIGHTS, w, gradient);
    ingot_optimize(c, &adamw, WEIGHTS, w, gradient, ingot_scalar_f(c, INGOT_F32, 2e-3));
    ingot_output(c, "loss", ingot_process_mean(c, loss));
}

static void tell(void *user, ingot_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "%s%s\n", level == INGOT_ERROR ? "error: " : "", text);
}

int main(int argc, char **argv)
{
    const int batch = argc > 2 ? atoi(argv[2]) : 0;
    if (batch < 1) {
        fprintf(stderr, "usage: %s DIR BATCH\n", argv[0]);
        return 2;
    }
    static const int64_t one[] = {INNER, PIXELS}, two[] = {CLASSES, INNER};
    ingot_context *c = ingot_context_new(tell, NULL);
    ingot_tensor *const w[WEIGHTS] = {
        weight(c, "fc1.weight", 2, one, PIXELS), weight(c, "fc1.bias", 1, one, 0),
        weight(c, "fc2.weight", 2, two, INNER), weight(c, "fc2.bias", 1, two, 0)};
    ingot_output(c, "score", scores(c, w, batch));
    ingot_function(c, "train_step");
    step(c, w, batch);
    const ingot_options options = {
        .struct_size = sizeof options, .name = "digits", .weights = "array", .no_selftest = true};
    const ingot_status status = ingot_compile(c, &options, argv[1]);
    ingot_context_free(c);
    return (int)status;
}
