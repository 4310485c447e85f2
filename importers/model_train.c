/*
 * model_train.c - a model as two functions over the same weights: inference, and a step of
 * training.
 *
 *     run         the model as it is
 *     train_step  the model once more (batch norm with the batch's statistics, dropout that drops),
 *                 its loss, the gradients of the loss, and what the optimizer makes of the weights
 *
 * The importer asks for each weight of the file what is to stand in its place; what is trained is a
 * state that begins as the file has it, the same in both functions.
 */
#define _POSIX_C_SOURCE 200809L
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"

typedef struct {
    const char *name;
    ingot_tensor *state; /* NULL: it is frozen */
    bool statistic;
} TrainedWeight;

typedef struct {
    ingot_context *c;
    const ingot_model_train_options *o;
    TrainedWeight *weight;
    int n, room;
    bool *matched;        /* by pattern, the trainable ones first */
    const char *wanted;   /* the output that the loss is of, */
    ingot_tensor *output; /* in the step; NULL: there is none of that name */
} TrainingModel;

/* ---- which weights --------------------------------------------------------------------------- */

static bool matches(const char *const *pattern, int n, bool *matched, const char *name)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        if (!fnmatch(pattern[i], name, 0))
            any = matched[i] = true;
    return any;
}

/* Masks have infinities, and are no weights. */
static bool all_finite(ingot_context *c, ingot_tensor *data)
{
    int64_t n;
    ingot_tensor *numbers = ingot_cast(c, data, INGOT_F32);
    if (!ingot_dim_is_const(ingot_numel(c, data), &n))
        return false;
    float *v = malloc((size_t)n * sizeof *v + 1);
    bool good = v && ingot_const_data(c, numbers, v, (size_t)n * sizeof *v);
    for (int64_t i = 0; good && i < n; i++)
        good = isfinite(v[i]);
    free(v);
    return good;
}

static bool is_trained(TrainingModel *t, const char *name, bool statistic, ingot_tensor *data)
{
    const ingot_model_train_options *o = t->o;
    const bool named = matches(o->trainable, o->n_trainable, t->matched, name);
    if (matches(o->frozen, o->n_frozen, t->matched + o->n_trainable, name))
        return false;
    int64_t n;
    const bool one = ingot_dim_is_const(ingot_numel(t->c, data), &n) && n < 2;
    return named || (!o->n_trainable && (statistic || !one) && all_finite(t->c, data));
}

static TrainedWeight *find_weight(TrainingModel *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->weight[i].name, name))
            return &t->weight[i];
    return NULL;
}

/* The first build decides. */
static ingot_tensor *weight_for(void *user, const char *name, bool statistic, ingot_tensor *data)
{
    TrainingModel *t = user;
    TrainedWeight *w = find_weight(t, name);
    if (w)
        return w->state ? w->state : data;
    if (t->n == t->room) {
        TrainedWeight *more = ingot_alloc(t->c, (size_t)(2 * t->room + 64) * sizeof *more);
        if (t->n)
            memcpy(more, t->weight, (size_t)t->n * sizeof *more);
        t->weight = more;
        t->room = 2 * t->room + 64;
    }
    w = &t->weight[t->n++];
    *w = (TrainedWeight){.name = name, .statistic = statistic};
    if (is_trained(t, name, statistic, data))
        w->state = ingot_state_from(t->c, name, data);
    return w->state ? w->state : data;
}

static bool patterns_good(TrainingModel *t)
{
    const ingot_model_train_options *o = t->o;
    int trained = 0;
    for (int i = 0; i < o->n_trainable + o->n_frozen; i++)
        if (!t->matched[i]) {
            const bool frozen = i >= o->n_trainable;
            ingot_error(t->c, INGOT_USAGE, "--%s '%s': no weight of the model has such a name",
                        frozen ? "frozen" : "trainable",
                        frozen ? o->frozen[i - o->n_trainable] : o->trainable[i]);
            return false;
        }
    for (int i = 0; i < t->n; i++)
        trained += t->weight[i].state && !t->weight[i].statistic;
    if (!trained)
        ingot_error(t->c, INGOT_USAGE,
                    "there is nothing to train: of %d tensors of floats that nodes read, none is "
                    "left as a weight",
                    t->n);
    return trained > 0;
}

/* ---- the loss -------------------------------------------------------------------------------- */

typedef enum { LOSS_OUTPUT, LOSS_CROSS_ENTROPY, LOSS_MSE } LossKind;

/* "mse:y" is mse of y; what has no such beginning is an output's name. */
static LossKind loss_kind(const char *loss, const char **output)
{
    static const char *const name[] = {
        [LOSS_CROSS_ENTROPY] = "cross_entropy:", [LOSS_MSE] = "mse:"};
    for (int k = LOSS_CROSS_ENTROPY; k <= LOSS_MSE; k++)
        if (!strncmp(loss, name[k], strlen(name[k]))) {
            *output = loss + strlen(name[k]);
            return (LossKind)k;
        }
    *output = loss;
    return LOSS_OUTPUT;
}

static void note_output(void *user, const char *name, ingot_tensor *t)
{
    TrainingModel *model = user;
    if (!strcmp(name, model->wanted))
        model->output = t;
}

/* A name for a further input: "rate", or "rate_2" where the model has a "rate". */
static const char *input_name_for(TrainingModel *t, const ingot_model *m, const char *name)
{
    const size_t room = strlen(name) + 16;
    char *free_name = ingot_alloc(t->c, room);
    snprintf(free_name, room, "%s", name);
    for (int k = 2, i = 0; i < ingot_model_input_count(m); i++)
        if (!strcmp(ingot_model_input(m, i)->name, free_name)) {
            snprintf(free_name, room, "%s_%d", name, k++);
            i = -1;
        }
    return free_name;
}

static bool output_known(TrainingModel *t, const ingot_model *m)
{
    char list[512] = "";
    for (int i = 0; i < ingot_model_output_count(m); i++) {
        const char *name = ingot_model_output(m, i)->name;
        if (!strcmp(name, t->wanted))
            return true;
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s'%s'", i ? ", " : "", name);
    }
    ingot_error(t->c, INGOT_USAGE, "--loss: the model has no output '%s'; there are: %s", t->wanted,
                list);
    return false;
}

/* What the output is to be: labels of its classes, or a tensor like it. */
static ingot_tensor *target_input(TrainingModel *t, const ingot_model *m, LossKind kind)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    const ingot_loss_options *o = t->o->loss_options;
    int rank = 0, axis = o && o->axis ? o->axis : 1;
    axis = axis < 0 ? axis + ingot_rank(t->output) : axis;
    for (int a = 0; a < ingot_rank(t->output); a++)
        if (kind == LOSS_MSE || a != axis)
            dims[rank++] = ingot_shape(t->output, a);
    return ingot_input(t->c, input_name_for(t, m, "target"),
                       kind == LOSS_MSE ? ingot_dtype_of(t->output) : INGOT_I64, rank, dims);
}

static ingot_tensor *loss_of(TrainingModel *t, const ingot_model *m, LossKind kind)
{
    int64_t n;
    if (kind == LOSS_OUTPUT && ingot_dim_is_const(ingot_numel(t->c, t->output), &n) && n == 1)
        return t->output;
    if (kind == LOSS_OUTPUT)
        return ingot_error(t->c, INGOT_USAGE,
                           "--loss %s: that output is more than one number; what it is to learn is "
                           "said as mse:%s or cross_entropy:%s",
                           t->wanted, t->wanted, t->wanted);
    ingot_tensor *target = target_input(t, m, kind);
    return kind == LOSS_MSE ? ingot_mse(t->c, t->output, target)
                            : ingot_cross_entropy(t->c, t->output, target, t->o->loss_options);
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Weights that the loss does not depend on stay as they are, which is seldom meant. */
static void tell_idle(TrainingModel *t, int n, ingot_tensor *const *gradient,
                      const char *const *name)
{
    char list[256] = "";
    int idle = 0;
    for (int i = 0; i < n; i++) {
        const size_t at = strlen(list);
        if (!gradient[i] && idle++ < 4)
            snprintf(list + at, sizeof list - at, "%s'%.40s'", idle > 1 ? ", " : "", name[i]);
    }
    if (idle)
        ingot_warning(t->c,
                      "the loss does not depend on %d of %d weights, which stay as they are: %s%s; "
                      "--frozen makes constants of them",
                      idle, n, list, idle > 4 ? " .." : "");
}

static bool learn(TrainingModel *t, const ingot_model *m, ingot_tensor *loss)
{
    int n = 0;
    ingot_tensor **w = ingot_alloc(t->c, ((size_t)t->n + 1) * sizeof *w),
                 **g = ingot_alloc(t->c, ((size_t)t->n + 1) * sizeof *g);
    const char **name = ingot_alloc(t->c, ((size_t)t->n + 1) * sizeof *name);
    for (int i = 0; i < t->n; i++)
        if (t->weight[i].state && !t->weight[i].statistic) {
            name[n] = t->weight[i].name;
            w[n++] = t->weight[i].state;
        }
    const int errors = ingot_error_count(t->c);
    ingot_gradient(t->c, loss, n, w, g);
    ingot_set_origin(t->c, NULL, NULL);
    if (ingot_error_count(t->c) > errors) {
        ingot_error(
            t->c, INGOT_UNSUPPORTED,
            "it cannot be trained through the nodes above; --frozen GLOB leaves the weights "
            "before them as they are");
        return false;
    }
    tell_idle(t, n, g, name);
    ingot_tensor *rate = t->o->rate != 0
                             ? ingot_scalar_f(t->c, INGOT_F32, t->o->rate)
                             : ingot_input(t->c, input_name_for(t, m, "rate"), INGOT_F32, 0, NULL);
    ingot_optimize(t->c, t->o->optimizer, n, w, g, rate);
    ingot_output(t->c, "loss", loss);
    return true;
}

static bool build_as(TrainingModel *t, ingot_model *m, const ingot_model_options *options,
                     bool step)
{
    ingot_model_training training = {
        .weight = weight_for, .output = step ? note_output : NULL, .user = t, .step = step};
    ingot_model_options o = options ? *options : (ingot_model_options){.struct_size = sizeof o};
    o.training = &training;
    return ingot_model_build(m, &o);
}

bool ingot_model_train(ingot_model *m, const ingot_model_options *options,
                       const ingot_model_train_options *o)
{
    ingot_context *c = ingot_model_context(m);
    TrainingModel t = {.c = c, .o = o};
    t.matched = ingot_alloc(c, (size_t)(o->n_trainable + o->n_frozen) + 1);
    const LossKind kind = loss_kind(o->loss, &t.wanted);
    const int errors = ingot_error_count(c);
    ingot_set_origin(c, NULL, NULL);
    if (!ingot_model_importer(m)->trains) {
        ingot_error(c, INGOT_UNSUPPORTED, "--train: %s files have no weights that could be trained",
                    ingot_model_importer(m)->name);
        return false;
    }
    if (!output_known(&t, m) || !build_as(&t, m, options, false) || !patterns_good(&t))
        return false;
    ingot_function(c, "train_step");
    if (!build_as(&t, m, options, true) || !t.output)
        return false;
    ingot_set_origin(c, NULL, NULL);
    ingot_tensor *loss = loss_of(&t, m, kind);
    return !ingot_is_poison(loss) && learn(&t, m, loss) && ingot_error_count(c) == errors;
}
