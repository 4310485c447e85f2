/* networks.c - writes bundles whose run() is one training step of a known network, for
 * measurements: networks.py times them beside PyTorch.
 *
 *     networks NAME sgd|adamw DIR [TARGET [RAM [f32|bf16|f16 [drawn]]]]
 *
 * The loss is the cross entropy of logits [rows, classes] and a list of targets.  Weights are
 * states, which begin as zeros: who runs a bundle fills them.  drawn: they begin in the bundle, as
 * step_time.c fills them; a line tells what that leaves the generator at. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/ingot.h"
#include "drawn.h"

typedef ingot_tensor *T;

enum { MOST_WEIGHTS = 512, NAME_BYTES = 64 };

static ingot_context *c;
static T weight[MOST_WEIGHTS];
static char weight_name[MOST_WEIGHTS][NAME_BYTES];
static int nweight;
static bool drawn;

static void tell(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR || level == INGOT_NOTE)
        fprintf(stderr, "%s\n", text);
}

/* A weight: a state of its own. */
static T learned(const char *part, int rank, const int64_t *dims)
{
    const char *name = weight_name[nweight];
    T w;
    snprintf(weight_name[nweight], NAME_BYTES, "w%d.%s", nweight, part);
    if (drawn) {
        size_t n = 1;
        for (int a = 0; a < rank; a++)
            n *= (size_t)dims[a];
        float *begins = ingot_alloc(c, n * sizeof *begins);
        draw_weight(name, rank, dims, begins);
        w = ingot_state_from(c, name, ingot_data(c, NULL, INGOT_F32, rank, dims, begins));
    } else {
        w = ingot_state(c, name, INGOT_F32, rank, dims);
    }
    weight[nweight++] = w;
    return w;
}

static T learned_row(const char *part, int64_t n)
{
    return learned(part, 1, &n);
}

static T input(const char *name, ingot_dtype dtype, int rank, const int64_t *n)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int64_t all = dtype == INGOT_F32 && rank; /* step_time.c draws them before weights */
    for (int a = 0; a < rank; a++) {
        dims[a] = ingot_dim_const(c, n[a]);
        all *= n[a];
    }
    while (all-- > 0)
        (void)noise();
    return ingot_input(c, name, dtype, rank, dims);
}

/* ---- layers ----------------------------------------------------------------------------- */

static T linear(T x, int64_t in, int64_t out)
{
    T w = learned("linear", 2, (int64_t[]){in, out});
    return ingot_add(c, ingot_matmul(c, x, w), learned_row("bias", out));
}

typedef struct {
    int64_t in, out, kernel, stride, pad, groups;
    bool bias;
} ConvLayer;

static T conv(T x, ConvLayer l)
{
    const int64_t groups = l.groups ? l.groups : 1, stride = l.stride ? l.stride : 1;
    T w = learned("conv", 4, (int64_t[]){l.out, l.in / groups, l.kernel, l.kernel});
    T b = l.bias ? learned_row("bias", l.out) : NULL;
    return ingot_conv(c, x, w, b, (int64_t[]){stride, stride}, NULL, (int64_t[]){l.pad, l.pad},
                      (int64_t[]){l.pad, l.pad}, groups);
}

/* In training mode: by the mean and the variance of this batch. */
static T batch_norm(T x, int64_t n)
{
    const unsigned axes = 1u << 0 | 1u << 2 | 1u << 3;
    T mean = ingot_mean(c, x, axes, true), d = ingot_sub(c, x, mean);
    T var = ingot_mean(c, ingot_mul(c, d, d), axes, true);
    T scale = learned_row("scale", n), bias = learned_row("bias", n);
    return ingot_batch_norm(c, x, scale, bias, ingot_reshape_c(c, mean, 1, &n),
                            ingot_reshape_c(c, var, 1, &n), 1e-5);
}

static T conv_norm(T x, ConvLayer l)
{
    return batch_norm(conv(x, l), l.out);
}

static T max_pool(T x, int64_t kernel, int64_t stride, int64_t pad)
{
    return ingot_max_pool(c, x, (int64_t[]){kernel, kernel}, (int64_t[]){stride, stride}, NULL,
                          (int64_t[]){pad, pad}, (int64_t[]){pad, pad});
}

static T pooled(T x)
{
    return ingot_mean(c, x, 1u << 2 | 1u << 3, false);
}

/* ---- networks: logits [rows, classes] --------------------------------------------------- */

static T mlp(int64_t batch)
{
    T x = input("x", INGOT_F32, 2, (int64_t[]){batch, 784});
    return linear(ingot_relu(c, linear(x, 784, 128)), 128, 10);
}

static T cnn(int64_t batch)
{
    T x = input("x", INGOT_F32, 4, (int64_t[]){batch, 1, 28, 28});
    x = ingot_relu(c, conv(x, (ConvLayer){.in = 1, .out = 32, .kernel = 3, .bias = true}));
    x = max_pool(x, 2, 2, 0);
    x = ingot_relu(c, conv(x, (ConvLayer){.in = 32, .out = 64, .kernel = 3, .bias = true}));
    x = ingot_flatten(c, max_pool(x, 2, 2, 0), 1, 4);
    return linear(x, 1600, 10);
}

static T relu6(T x)
{
    return ingot_clamp(c, x, 0, 6);
}

static T mobilenetv2(int64_t batch)
{
    static const int64_t blocks[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                         {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                         {6, 320, 1, 1}};
    T x = input("x", INGOT_F32, 4, (int64_t[]){batch, 3, 96, 96});
    int64_t in = 32;
    x = relu6(conv_norm(x, (ConvLayer){.in = 3, .out = 32, .kernel = 3, .stride = 2, .pad = 1}));
    for (int b = 0; b < 7; b++)
        for (int i = 0; i < blocks[b][2]; i++) {
            const int64_t wide = in * blocks[b][0], out = blocks[b][1];
            const int64_t stride = i ? 1 : blocks[b][3];
            T y = x;
            if (wide != in)
                y = relu6(conv_norm(y, (ConvLayer){.in = in, .out = wide, .kernel = 1}));
            y = relu6(conv_norm(y, (ConvLayer){.in = wide,
                                               .out = wide,
                                               .kernel = 3,
                                               .stride = stride,
                                               .pad = 1,
                                               .groups = wide}));
            y = conv_norm(y, (ConvLayer){.in = wide, .out = out, .kernel = 1});
            x = stride == 1 && in == out ? ingot_add(c, x, y) : y;
            in = out;
        }
    x = relu6(conv_norm(x, (ConvLayer){.in = 320, .out = 1280, .kernel = 1}));
    return linear(pooled(x), 1280, 1000);
}

/* Of squares of so many pixels; the first layer has `maps` of them. */
static T resnet18(int64_t batch, int64_t size, int64_t maps, int64_t classes)
{
    T x = input("x", INGOT_F32, 4, (int64_t[]){batch, 3, size, size});
    x = conv_norm(x, (ConvLayer){.in = 3, .out = maps, .kernel = 7, .stride = 2, .pad = 3});
    x = max_pool(ingot_relu(c, x), 3, 2, 1);
    int64_t in = maps;
    for (int l = 0; l < 4; l++)
        for (int i = 0; i < 2; i++) {
            const int64_t out = maps << l, stride = l && !i ? 2 : 1;
            ConvLayer wide = {.in = in, .out = out, .kernel = 3, .stride = stride, .pad = 1},
                      same = {.in = out, .out = out, .kernel = 3, .pad = 1},
                      point = {.in = in, .out = out, .kernel = 1, .stride = stride};
            T y = conv_norm(ingot_relu(c, conv_norm(x, wide)), same);
            if (in != out)
                x = conv_norm(x, point);
            x = ingot_relu(c, ingot_add(c, x, y));
            in = out;
        }
    return linear(pooled(x), 8 * maps, classes);
}

typedef struct {
    int64_t batch, length, layers, width, heads, words, places, classes;
    bool causal;
} Transformer;

static T heads_apart(T x, const Transformer *m)
{
    x = ingot_reshape_c(c, x, 4, (int64_t[]){m->batch, m->length, m->heads, m->width / m->heads});
    return ingot_transpose(c, x, 1, 2);
}

static T layer_norm(T x, const Transformer *m)
{
    T scale = learned_row("scale", m->width);
    return ingot_layer_norm(c, x, -1, scale, learned_row("bias", m->width), 1e-5);
}

static T attention(T x, const Transformer *m)
{
    T part[3];
    for (int i = 0; i < 3; i++)
        part[i] = heads_apart(linear(x, m->width, m->width), m);
    T y = ingot_attention(c, part[0], part[1], part[2], NULL, 0, m->causal);
    y = ingot_reshape_c(c, ingot_transpose(c, y, 1, 2), 3,
                        (int64_t[]){m->batch, m->length, m->width});
    return linear(y, m->width, m->width);
}

/* classes 0: the logits are products with the embedding of every word. */
static T transformer(const Transformer *m)
{
    T ids = input("ids", INGOT_I64, 2, (int64_t[]){m->batch, m->length});
    T words = learned("words", 2, (int64_t[]){m->words, m->width});
    T places = learned("places", 2, (int64_t[]){m->places, m->width});
    T here = ingot_slice(c, places, 0, ingot_dim_const(c, 0), ingot_dim_const(c, m->length), 1);
    T x = ingot_add(c, ingot_take(c, words, ids, 0), here);
    for (int l = 0; l < m->layers; l++) {
        x = ingot_add(c, x, attention(layer_norm(x, m), m));
        T y = ingot_gelu(c, linear(layer_norm(x, m), m->width, 4 * m->width), true);
        x = ingot_add(c, x, linear(y, 4 * m->width, m->width));
    }
    x = ingot_reshape_c(c, layer_norm(x, m), 2, (int64_t[]){m->batch * m->length, m->width});
    return m->classes ? linear(x, m->width, m->classes)
                      : ingot_matmul(c, x, ingot_transpose(c, words, 0, 1));
}

static T network(const char *name)
{
    const Transformer bert = {4, 128, 4, 768, 12, 30522, 512, 2, false},
                      gpt2 = {4, 64, 12, 768, 12, 50257, 1024, 0, true},
                      tiny = {2, 16, 1, 64, 4, 100, 32, 0, true},
                      encoder = {4, 32, 2, 64, 4, 100, 32, 2, false};
    if (!strcmp(name, "encoder"))
        return transformer(&encoder);
    if (!strcmp(name, "mlp32") || !strcmp(name, "mlp128"))
        return mlp(strcmp(name, "mlp32") ? 128 : 32);
    if (!strcmp(name, "cnn32"))
        return cnn(32);
    if (!strcmp(name, "mobilenetv2"))
        return mobilenetv2(8);
    if (!strcmp(name, "resnet18"))
        return resnet18(8, 224, 64, 1000);
    if (!strcmp(name, "resnet64"))
        return resnet18(8, 64, 8, 10);
    if (!strcmp(name, "bert4"))
        return transformer(&bert);
    if (!strcmp(name, "gpt2"))
        return transformer(&gpt2);
    return strcmp(name, "tiny") ? NULL : transformer(&tiny);
}

/* ---- the step --------------------------------------------------------------------------- */

static T cross_entropy(T logits, T target)
{
    int64_t n[2];
    ingot_static_shape(logits, n);
    ingot_dim *dims[2] = {ingot_dim_const(c, n[0]), ingot_dim_const(c, n[1])};
    T hit = ingot_eq(c, ingot_iota(c, 2, dims, 1), ingot_unsqueeze(c, target, 1));
    T log_p = ingot_log_softmax(c, logits, 1);
    T kept = ingot_where(c, hit, log_p, ingot_like(c, log_p, 0));
    return ingot_mul_c(c, ingot_sum(c, kept, 3, false), -1.0 / (double)n[0]);
}

/* An average that is a state: next = keep average + (1 - keep) x */
static T average(const char *name, const char *kind, T x, double keep)
{
    static char names[2 * MOST_WEIGHTS][NAME_BYTES + 4];
    static int n;
    int64_t dims[INGOT_MAX_RANK];
    ingot_static_shape(x, dims);
    snprintf(names[n], sizeof names[n], "%s.%s", name, kind);
    T m = ingot_state(c, names[n++], INGOT_F32, ingot_rank(x), dims);
    T next = ingot_add(c, ingot_mul_c(c, m, keep), ingot_mul_c(c, x, 1 - keep));
    ingot_state_next(c, m, next);
    return next;
}

static T one_minus(T x)
{
    return ingot_sub(c, ingot_like(c, x, 1), x);
}

static void adamw(const T *g, T rate)
{
    T steps = ingot_state(c, "steps", INGOT_F32, 0, NULL), t = ingot_add_c(c, steps, 1);
    ingot_state_next(c, steps, t);
    T fix1 = ingot_div(c, rate, one_minus(ingot_pow(c, ingot_like(c, t, 0.9), t)));
    T fix2 =
        ingot_sqrt(c, ingot_reciprocal(c, one_minus(ingot_pow(c, ingot_like(c, t, 0.999), t))));
    for (int i = 0; i < nweight; i++) {
        T m = average(weight_name[i], "m", g[i], 0.9);
        T v = average(weight_name[i], "v", ingot_mul(c, g[i], g[i]), 0.999);
        T root = ingot_add_c(c, ingot_mul(c, ingot_sqrt(c, v), fix2), 1e-8);
        T kept = ingot_sub(c, weight[i], ingot_mul(c, ingot_mul_c(c, rate, 0.01), weight[i]));
        ingot_state_next(c, weight[i],
                         ingot_sub(c, kept, ingot_div(c, ingot_mul(c, fix1, m), root)));
    }
}

static void train(T logits, const char *optimizer)
{
    int64_t n[2];
    ingot_static_shape(logits, n);
    T loss = cross_entropy(logits, input("target", INGOT_I64, 1, n)), g[MOST_WEIGHTS];
    T rate = input("rate", INGOT_F32, 0, NULL);
    ingot_gradient(c, loss, nweight, weight, g);
    ingot_output(c, "loss", loss);
    if (!strcmp(optimizer, "adamw")) {
        adamw(g, rate);
        return;
    }
    for (int i = 0; i < nweight; i++)
        ingot_state_next(c, weight[i], ingot_sub(c, weight[i], ingot_mul(c, rate, g[i])));
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    c = ingot_context_new(tell, NULL);
    ingot_options o = {.struct_size = sizeof o,
                       .target = argc > 4 ? argv[4] : NULL,
                       .max_ram = argc > 5 ? atoll(argv[5]) : 0,
                       .no_selftest = true,
                       .summary = true};
    drawn = argc > 7;
    if (drawn)
        o.weights = "incbin";
    if (argc > 6 && strcmp(argv[6], "f32"))
        ingot_set_precision(c, strcmp(argv[6], "f16") ? INGOT_PRECISION_BF16 : INGOT_PRECISION_F16);
    T logits = network(argv[1]);
    if (!logits)
        return 2;
    if (drawn)
        fprintf(stderr, "drawn: %" PRIu32 "\n", noise_state);
    train(logits, argv[2]);
    const ingot_status status = ingot_compile(c, &o, argv[3]);
    ingot_context_free(c);
    return (int)status;
}
