/*
 * model_train.c - a model as two functions over the same weights: inference, and a step of
 * training.
 *
 *     run         the model as it is
 *     train_step  the model once more (batch norm with the batch's statistics, dropout that drops),
 *                 its loss, the gradients of the loss, and what the optimizer makes of the weights
 *
 * A file may say its loss and its optimizer itself, and which weights are trained; or it has a step
 * that is all its own.
 *
 * The importer asks for each weight of the file what is to stand in its place; what is trained is a
 * state that begins as the file has it, the same in both functions. A weight with an adapter stays,
 * and what stands in its place is
 *
 *     w + (alpha / r) B A        [out, in] + [out, r] [r, in]         Hu et al., arXiv:2106.09685
 *
 * with the states NAME.lora_A, NAME.lora_B and NAME.lora_alpha, so that a file of saved states says
 * all that `ingot merge` has to know. Of a model that was quantised, integers are weights if that
 * is asked for: floats, which are rounded to integers wherever they are read.
 */
#define _POSIX_C_SOURCE 200809L
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"

enum { ADAPTER_STATES = 2 };
typedef struct {
    const char *name;
    ingot_tensor *value; /* what nodes read: data, a state, or what is made of states */
    int n; /* states that follow the gradient, or, of a statistic, batches; 0: frozen */
    ingot_tensor *state[ADAPTER_STATES];
    const char *state_name[ADAPTER_STATES];
    bool statistic;
} TrainedWeight;

typedef struct {
    ingot_context *c;
    const ingot_model_train_options *o;
    const ImportedTraining *says; /* what the file says; NULL: nothing */
    bool own;                     /* the loss, or the step, is the file's */
    ingot_optimizer optimizer;
    TrainedWeight *weight;
    int n, room;
    bool *matched;        /* by pattern: trainable ones, frozen ones, adapters */
    const char *wanted;   /* the output that the loss is of, */
    ingot_tensor *output; /* in the step; NULL: there is none of that name */
} TrainingModel;

/* ---- which weights --------------------------------------------------------------------------- */

static bool fits(const char *pattern, const ingot_model_weight *w)
{
    return !fnmatch(pattern, w->name, 0) || (w->path && !fnmatch(pattern, w->path, 0));
}

static bool matches(const char *const *pattern, int n, bool *matched, const ingot_model_weight *w)
{
    bool any = false;
    for (int i = 0; i < n; i++)
        if (fits(pattern[i], w))
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

static bool is_trained(TrainingModel *t, const ingot_model_weight *w, ingot_tensor *data)
{
    const ingot_model_train_options *o = t->o;
    const bool named = matches(o->trainable, o->n_trainable, t->matched, w);
    if (matches(o->frozen, o->n_frozen, t->matched + o->n_trainable, w))
        return false;
    int64_t n;
    const bool one = ingot_dim_is_const(ingot_numel(t->c, data), &n) && n < 2;
    const bool all = !o->n_trainable && !o->n_lora;
    if (all && (w->wanted || w->unwanted))
        return w->wanted;
    return named || (all && (w->statistic || !one) && all_finite(t->c, data));
}

/* ---- adapters -------------------------------------------------------------------------------- */

/* The one for a weight that products read, or NULL. */
static const ingot_lora *lora_for(TrainingModel *t, const ingot_model_weight *w)
{
    const ingot_model_train_options *o = t->o;
    const ingot_lora *found = NULL;
    for (int i = 0; i < o->n_lora && w->form != INGOT_WEIGHT_OTHER; i++)
        if (fits(o->lora[i].pattern, w)) {
            found = &o->lora[i];
            t->matched[o->n_trainable + o->n_frozen + i] = true;
        }
    return matches(o->frozen, o->n_frozen, t->matched + o->n_trainable, w) ? NULL : found;
}

/* A tensor of numbers of -bound..bound, evenly; the same for the same name (splitmix64 of it). */
static ingot_tensor *random_data(ingot_context *c, const char *name, int rank, const int64_t *dims,
                                 double bound)
{
    int64_t n = 1;
    uint64_t state = 1;
    for (int a = 0; a < rank; a++)
        n *= dims[a];
    for (const char *at = name; *at; at++)
        state = (state ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    float *v = ingot_alloc(c, (size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        v[i] = (float)(bound * (2 * ldexp((double)((z ^ z >> 31) >> 11), -53) - 1));
    }
    return ingot_data(c, NULL, INGOT_F32, rank, dims, v);
}

static const char *adapter_name(ingot_context *c, const char *weight, const char *part)
{
    const size_t room = strlen(weight) + strlen(part) + 1;
    char *name = ingot_alloc(c, room);
    snprintf(name, room, "%s%s", weight, part);
    return name;
}

/* A begins in -1..1 / sqrt(terms), as weights of layers do in PyTorch, and B as zeros: a model
 * begins as the one of the file. */
static ingot_tensor *adapted(TrainingModel *t, TrainedWeight *w, const ingot_lora *lora,
                             ingot_weight_form form, ingot_tensor *data)
{
    ingot_context *c = t->c;
    int64_t dims[INGOT_MAX_RANK], terms = 1;
    const int rank = ingot_rank(data);
    const bool columns = form == INGOT_WEIGHT_COLUMNS; /* [in, out] */
    ingot_static_shape(data, dims);
    const int64_t out = dims[columns];
    if (columns)
        dims[1] = dims[0];
    dims[0] = lora->rank; /* those of A */
    for (int a = 1; a < rank; a++)
        terms *= dims[a];
    w->n = ADAPTER_STATES;
    w->state_name[0] = adapter_name(c, w->name, ".lora_A");
    w->state_name[1] = adapter_name(c, w->name, ".lora_B");
    const char *alpha_name = adapter_name(c, w->name, ".lora_alpha");
    ingot_tensor *start =
        random_data(c, w->name, rank, dims, 1 / sqrt((double)(terms > 0 ? terms : 1)));
    w->state[0] = ingot_state_from(c, w->state_name[0], start);
    w->state[1] = ingot_state(c, w->state_name[1], INGOT_F32, 2, (int64_t[]){out, lora->rank});
    ingot_tensor *alpha =
        ingot_state_from(c, alpha_name, ingot_scalar_f(c, INGOT_F32, lora->alpha));
    ingot_tensor *scaled =
        ingot_mul(c, w->state[1], ingot_mul_c(c, alpha, 1.0 / (double)lora->rank));
    ingot_tensor *a = ingot_cast(c, w->state[0], ingot_dtype_of(data)),
                 *b = ingot_cast(c, scaled, ingot_dtype_of(data));
    return columns
               ? ingot_low_rank(c, data, ingot_transpose(c, a, 0, 1), ingot_transpose(c, b, 0, 1))
               : ingot_low_rank(c, data, b, a);
}

/* ---- what stands in a weight's place ---------------------------------------------------- */

static TrainedWeight *find_weight(TrainingModel *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->weight[i].name, name))
            return &t->weight[i];
    return NULL;
}

/* The first build decides. */
static ingot_tensor *weight_for(void *user, const ingot_model_weight *read, ingot_tensor *data)
{
    TrainingModel *t = user;
    TrainedWeight *w = find_weight(t, read->name);
    if (w)
        return w->value;
    if (t->n == t->room) {
        TrainedWeight *more = ingot_alloc(t->c, (size_t)(2 * t->room + 64) * sizeof *more);
        if (t->n)
            memcpy(more, t->weight, (size_t)t->n * sizeof *more);
        t->weight = more;
        t->room = 2 * t->room + 64;
    }
    w = &t->weight[t->n++];
    *w = (TrainedWeight){.name = read->name, .value = data, .statistic = read->statistic};
    const ingot_lora *lora = lora_for(t, read);
    if (lora) {
        w->value = adapted(t, w, lora, read->form, data);
    } else if (is_trained(t, read, data)) {
        w->value = w->state[w->n] = ingot_state_from(t->c, read->name, data);
        w->state_name[w->n++] = read->name;
    }
    return w->value;
}

/* Pattern i of the list of all, and of which option it is. */
static const char *pattern_of(const ingot_model_train_options *o, int i, const char **option)
{
    const int frozen = i - o->n_trainable, lora = frozen - o->n_frozen;
    *option = lora >= 0 ? "lora" : frozen >= 0 ? "frozen" : "trainable";
    return lora >= 0 ? o->lora[lora].pattern : frozen >= 0 ? o->frozen[frozen] : o->trainable[i];
}

static bool patterns_good(TrainingModel *t)
{
    const ingot_model_train_options *o = t->o;
    int trained = 0;
    for (int i = 0; i < o->n_trainable + o->n_frozen + o->n_lora; i++)
        if (!t->matched[i]) {
            const char *option, *pattern = pattern_of(o, i, &option);
            ingot_error(t->c, INGOT_USAGE, "--%s '%s': no weight of the model%s has such a name",
                        option, pattern,
                        *option == 'l' ? " that a product or a convolution reads" : "");
            return false;
        }
    for (int i = 0; i < t->n; i++)
        trained += t->weight[i].n && !t->weight[i].statistic;
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
    const size_t most = (size_t)t->n * ADAPTER_STATES + 1;
    ingot_tensor **w = ingot_alloc(t->c, most * sizeof *w),
                 **g = ingot_alloc(t->c, most * sizeof *g);
    const char **name = ingot_alloc(t->c, most * sizeof *name);
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->weight[i].n && !t->weight[i].statistic; k++) {
            name[n] = t->weight[i].state_name[k];
            w[n++] = t->weight[i].state[k];
        }
    const int errors = ingot_error_count(t->c);
    ingot_optimizer optimizer = t->optimizer;
    ingot_tensor *scaled = loss;
    if (t->o->loss_scale > 0) {
        optimizer.loss_scale = ingot_loss_scale(t->c, t->o->loss_scale);
        scaled =
            ingot_mul(t->c, loss, ingot_cast(t->c, optimizer.loss_scale, ingot_dtype_of(loss)));
    }
    const ingot_gradient_options through = {.struct_size = sizeof through,
                                            .straight_through = t->o->quantised};
    ingot_gradient_of(t->c, &through, 1, &scaled, NULL, n, w, g);
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
    ingot_optimize(t->c, &optimizer, n, w, g, rate);
    ingot_output(t->c, "loss", optimizer.processes ? ingot_process_mean(t->c, loss) : loss);
    return true;
}

static bool build_as(TrainingModel *t, ingot_model *m, const ingot_model_options *options,
                     bool step)
{
    const bool all = t->own && t->says->own_step;
    ingot_model_training training = {.weight = weight_for,
                                     .output = step && !all ? note_output : NULL,
                                     .user = t,
                                     .step = step,
                                     .own = t->own,
                                     .quantised = t->o->quantised};
    ingot_model_options o = options ? *options : (ingot_model_options){.struct_size = sizeof o};
    o.training = &training;
    return ingot_model_build(m, &o);
}

static bool usage(TrainingModel *t, const char *message)
{
    ingot_error(t->c, INGOT_USAGE, "%s", message);
    return false;
}

/* The optimizer: what is asked for, else the file's, with what the options add to any. */
static bool choose_optimizer(TrainingModel *t)
{
    const ingot_optimizer *asked = t->o->optimizer, *said = t->says ? t->says->optimizer : NULL;
    if (t->own && t->says->own_step)
        return true;
    if (asked && asked->struct_size) {
        t->optimizer = *asked;
        return true;
    }
    if (!said)
        return usage(t, "--train: --optimizer is missing: sgd, momentum, adam or adamw");
    t->optimizer = *said;
    if (asked) {
        t->optimizer.clip = asked->clip > 0 ? asked->clip : said->clip;
        t->optimizer.accumulate = asked->accumulate;
        t->optimizer.processes = asked->processes;
    }
    return true;
}

/* What an optimizer and a loss are changed by, for a step that has neither. */
static bool fits_own_step(TrainingModel *t)
{
    const ingot_model_train_options *o = t->o;
    const ingot_optimizer *by = o->optimizer;
    const bool more = o->n_trainable || o->n_frozen || o->n_lora || o->loss_scale > 0 ||
                      (by && (by->struct_size || by->clip > 0 || by->accumulate || by->processes));
    return !more || usage(t, "--train: the file has a step of its own (TrainingInfoProto), which "
                             "decides all; with --loss its network is trained as options say");
}

static bool choose(TrainingModel *t, const ingot_model *m)
{
    const Importer *by = ingot_model_importer(m);
    if (!by->trains) {
        ingot_error(t->c, INGOT_UNSUPPORTED,
                    "--train: %s files have no weights that could be trained", by->name);
        return false;
    }
    t->says = by->training ? by->training(ingot_model_opened(m)) : NULL;
    t->own = !t->o->loss && t->says && (t->says->loss || t->says->own_step);
    if (!t->o->loss && !t->own)
        return usage(t, "--train: --loss is missing: cross_entropy:OUTPUT, mse:OUTPUT, or an "
                        "output that is the loss");
    return choose_optimizer(t) && (!t->own || !t->says->own_step || fits_own_step(t));
}

bool ingot_model_train(ingot_model *m, const ingot_model_options *options,
                       const ingot_model_train_options *o)
{
    ingot_context *c = ingot_model_context(m);
    TrainingModel t = {.c = c, .o = o};
    t.matched = ingot_alloc(c, (size_t)(o->n_trainable + o->n_frozen + o->n_lora) + 1);
    const int errors = ingot_error_count(c);
    ingot_set_origin(c, NULL, NULL);
    if (!choose(&t, m))
        return false;
    const bool whole = t.own && t.says->own_step;
    LossKind kind = LOSS_OUTPUT;
    if (t.own)
        t.wanted = t.says->loss;
    else
        kind = loss_kind(o->loss, &t.wanted);
    if ((!t.own && !output_known(&t, m)) || !build_as(&t, m, options, false) ||
        (!whole && !patterns_good(&t)))
        return false;
    ingot_function(c, "train_step");
    if (!build_as(&t, m, options, true))
        return false;
    if (whole)
        return ingot_error_count(c) == errors;
    if (!t.output)
        return false;
    ingot_set_origin(c, NULL, NULL);
    ingot_tensor *loss = loss_of(&t, m, kind);
    return !ingot_is_poison(loss) && learn(&t, m, loss) && ingot_error_count(c) == errors;
}
