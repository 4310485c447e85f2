/* ingot_train.h - losses and optimizers: what makes a training step of a model (docs/training.md).
 *
 *     ingot_tensor *loss = ingot_cross_entropy(c, y, labels, NULL);
 *     ingot_gradient(c, loss, n, weight, gradient);
 *     const ingot_optimizer adam = ingot_optimizer_new(INGOT_ADAM);
 *     ingot_optimize(c, &adam, n, weight, gradient, rate);
 *     ingot_output(c, "loss", loss);
 *
 * Plain compositions of what ingot.h has: whoever wants another loss or another rule writes it as
 * these are written (compiler/train/). */
#ifndef INGOT_TRAIN_H
#define INGOT_TRAIN_H

#include "ingot.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- losses: one number, of f32 or f64; and what training has besides ------------------ */

/* All zeros are the defaults. */
typedef struct {
    size_t struct_size;
    int axis;         /* of the classes; negative: from the end; 0: axis 1, as ONNX and PyTorch */
    double smoothing; /* so much of each label is spread over all classes, 0..1 */
    bool ignores;     /* labels that are `ignored` do not count */
    int64_t ignored;
} ingot_loss_options;

/* The mean over all labels t of -log softmax(x)[t], x [N, C, d...], integer labels [N, d...].
 * Labels that are ignored do not count; if all are, the loss is 0.  One that is no class, and not
 * ignored, makes the loss NaN.  With smoothing s the label is no longer 1 at t, but 1 - s + s/C
 * there and s/C elsewhere (Szegedy et al., arXiv:1512.00567, section 7).  Labels of floats, of x's
 * shape, are the probabilities of the classes.  options may be NULL. */
ingot_tensor *ingot_cross_entropy(ingot_context *, ingot_tensor *x, ingot_tensor *labels,
                                  const ingot_loss_options *);
/* The mean of (y - target)^2 over all elements. */
ingot_tensor *ingot_mse(ingot_context *, ingot_tensor *y, ingot_tensor *target);

/* x / (1 - ratio) where a random number of [0, 1) is at least ratio, else 0: other elements in each
 * run (Srivastava et al., "Dropout", JMLR 15, 2014). For steps of training; inference takes x. */
ingot_tensor *ingot_dropout(ingot_context *, ingot_tensor *x, double ratio);

/* w + p q: a weight w [m, n..] with a correction of rank r, p [m, r] and q [r, n..], all of one
 * type. Matrix products and convolutions (of one group) with it, or with its transposition,
 * multiply by p and q one after the other and never make the sum, which others read (Hu et al.,
 * arXiv:2106.09685). */
ingot_tensor *ingot_low_rank(ingot_context *, ingot_tensor *w, ingot_tensor *p, ingot_tensor *q);

/* ---- optimizers ------------------------------------------------------------------------ */

/* w: a weight, g: its gradient, r: the rate, t: the number of the step, from 1; d: decay.
 *
 *   SGD       w' = w - r (g + d w)
 *   MOMENTUM  m' = beta1 m + g + d w
 *             w' = w - r m', or, nesterov: w - r (g + d w + beta1 m')     (PyTorch's form of both)
 *   ADAM      m' = beta1 m + (1 - beta1) g
 *             v' = beta2 v + (1 - beta2) g^2, where g has d w in it
 *             w' = w - r m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + epsilon)
 *                                                 (Kingma and Ba, arXiv:1412.6980, algorithm 1)
 *   ADAMW     the same, with w (1 - r d) in place of w, and g without d w
 *                                                 (Loshchilov and Hutter, arXiv:1711.05101)
 *
 * With `early`, epsilon is added before the second moment is corrected, and decay follows the step:
 *             w'' = w - r sqrt(1 - beta2^t) / (1 - beta1^t) m' / (sqrt(v') + epsilon)
 *             w' = w'' (1 - r d)                  (AdamW of ONNX Runtime's artifacts and, before
 *                                                 version 5, of Hugging Face's Transformers)
 * With `uncorrected`, both 1 - beta^t are 1. */
typedef enum { INGOT_SGD, INGOT_MOMENTUM, INGOT_ADAM, INGOT_ADAMW } ingot_optimizer_kind;

typedef struct {
    size_t struct_size;
    ingot_optimizer_kind kind;
    double beta1, beta2, epsilon, decay;
    bool nesterov;           /* MOMENTUM */
    bool early, uncorrected; /* ADAM, ADAMW */
    /* The gradients are scaled so that the square root of the sum of all their squares is at most
     * this (Pascanu et al., arXiv:1211.5063); 0: they are not. */
    double clip;
    /* Weights change in every so many runs, by the mean of the gradients in these; 0 or 1: in each.
     */
    int accumulate;
    /* What the loss was multiplied by (ingot_loss_scale()), or NULL: gradients are divided by it.
     * Where one is not finite, nothing changes in this step but the scale, which is halved; after
     * 2000 steps without that it is doubled (Micikevicius et al., "Mixed Precision Training",
     * arXiv:1710.03740; PyTorch's GradScaler). */
    ingot_tensor *loss_scale;
    /* Gradients are the means over all processes of a run (ingot_process_mean()). */
    bool processes;
    /* Asked of each state NAME.m and NAME.v, and of train.step: constant data of its type and shape
     * that it begins as, for a run that goes on. NULL, from it or in its place: zeros. */
    ingot_tensor *(*begins)(void *user, const char *state);
    void *user;
} ingot_optimizer;

/* With the usual numbers, which are PyTorch's: beta1 0.9, beta2 0.999, epsilon 1e-8, decay 0, of
 * ADAMW 0.01. */
ingot_optimizer ingot_optimizer_new(ingot_optimizer_kind);
/* A state train.scale, f32, which begins as `first`: gradients of f16 that are small become zeros,
 * unless the loss is multiplied by this before they are taken. */
ingot_tensor *ingot_loss_scale(ingot_context *, double first);
/* The mean of what each process of a run has, each the same bits: config.comm of a bundle adds in
 * the order of the processes (docs/devices.md). Of one process, x. */
ingot_tensor *ingot_process_mean(ingot_context *, ingot_tensor *x);
/* Gives each weight, a state, its next value, and what it needs to have: states NAME.m and NAME.v,
 * NAME.g where gradients are accumulated, and the counters train.step, train.run and, with a scale,
 * train.finite (i64).  A
 * weight whose gradient is NULL stays as it is.  rate: a float of one element.  Weights narrower
 * than f32 are computed with, and have their states, in f32. */
void ingot_optimize(ingot_context *, const ingot_optimizer *, int n, ingot_tensor *const *weights,
                    ingot_tensor *const *gradients, ingot_tensor *rate);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
