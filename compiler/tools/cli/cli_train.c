/* cli_train.c - the options of a model that is to be trained (docs/training.md). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool wrong_value(const Options *o, const char *flag, const char *value, const char *why)
{
    return complain(INGOT_USAGE, "ingot %s: %s '%.200s': %s", o->command, flag, value, why) ==
           INGOT_OK;
}

/* A number in the first n bytes of a text, from least (or above it) to most. */
static bool number_in(const char *text, size_t n, double least, double most, double *out)
{
    char word[64], *end;
    if (!n || n >= sizeof word)
        return false;
    memcpy(word, text, n);
    word[n] = 0;
    *out = strtod(word, &end);
    return !*end && *out >= least && *out <= most;
}

static bool number_of(const char *text, double least, double most, double *out)
{
    return number_in(text, strlen(text), least, most, out);
}

static const struct {
    const char *name;
    ingot_optimizer_kind kind;
} optimizers[] = {
    {"sgd", INGOT_SGD}, {"momentum", INGOT_MOMENTUM}, {"adam", INGOT_ADAM}, {"adamw", INGOT_ADAMW}};

/* One of "rate=1e-3", "nesterov". */
static bool optimizer_setting(Options *o, const char *word, size_t n)
{
    ingot_optimizer *to = &o->optimizer;
    const struct {
        const char *name;
        double most;
        double *at;
    } number[] = {{"rate=", 1e30, &o->training.rate},
                  {"beta1=", 1, &to->beta1},
                  {"beta2=", 1, &to->beta2},
                  {"epsilon=", 1e30, &to->epsilon},
                  {"decay=", 1e30, &to->decay}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const size_t length = strlen(number[i].name);
        if (n > length && !strncmp(word, number[i].name, length))
            return number_in(word + length, n - length, 0, number[i].most, number[i].at);
    }
    const bool adam = to->kind == INGOT_ADAM || to->kind == INGOT_ADAMW;
    const struct {
        const char *name;
        bool fits, *at;
    } flag[] = {{"nesterov", to->kind == INGOT_MOMENTUM, &to->nesterov},
                {"early", adam, &to->early},
                {"uncorrected", adam, &to->uncorrected}};
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
        if (n == strlen(flag[i].name) && !strncmp(word, flag[i].name, n))
            return *flag[i].at = flag[i].fits;
    return false;
}

/* NAME, or NAME:SETTING,SETTING.. */
bool option_optimizer(Options *o, const char *value)
{
    const size_t n = strcspn(value, ":"), count = sizeof optimizers / sizeof *optimizers;
    size_t k = 0;
    while (k < count && (strlen(optimizers[k].name) != n || strncmp(value, optimizers[k].name, n)))
        k++;
    if (k == count)
        return wrong_value(o, "--optimizer", value, "choose sgd, momentum, adam or adamw");
    const ingot_optimizer before = o->optimizer; /* --clip and --accumulate may come first */
    o->optimizer = ingot_optimizer_new(optimizers[k].kind);
    o->optimizer.clip = before.clip;
    o->optimizer.accumulate = before.accumulate;
    o->optimizer.processes = before.processes;
    o->training.rate = 0;
    for (const char *at = value + n; *at; at += strcspn(at, ",")) {
        at++;
        if (!optimizer_setting(o, at, strcspn(at, ",")))
            return wrong_value(o, "--optimizer", value,
                               "after a colon, and with commas between, there may be rate=R, "
                               "beta1=, beta2=, epsilon=, decay= (numbers from 0 on), of momentum "
                               "nesterov, of adam and adamw early, uncorrected");
    }
    return true;
}

bool option_clip(Options *o, const char *value)
{
    return number_of(value, 1e-30, 1e30, &o->optimizer.clip) ||
           wrong_value(o, "--clip", value, "a number above 0 is wanted");
}

bool option_accumulate(Options *o, const char *value)
{
    int64_t n;
    if (!option_number(value, strlen(value), &n) || n < 1 || n > 1 << 20)
        return wrong_value(o, "--accumulate", value, "a number of runs is wanted");
    o->optimizer.accumulate = (int)n;
    return true;
}

bool option_loss_scale(Options *o, const char *value)
{
    return number_of(value, 1, 0x1p60, &o->training.loss_scale) ||
           wrong_value(o, "--loss-scale", value,
                       "a number from 1 on is wanted, 65536 for instance");
}

bool option_smoothing(Options *o, const char *value)
{
    return number_of(value, 0, 1, &o->loss.smoothing) ||
           wrong_value(o, "--label-smoothing", value, "a number from 0 to 1 is wanted");
}

static bool whole_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && !errno;
}

bool option_ignore_index(Options *o, const char *value)
{
    o->loss.ignores = true;
    return whole_number(value, &o->loss.ignored) ||
           wrong_value(o, "--ignore-index", value, "a whole number is wanted");
}

bool option_class_axis(Options *o, const char *value)
{
    int64_t axis;
    if (!whole_number(value, &axis) || axis < -INGOT_MAX_RANK || axis >= INGOT_MAX_RANK || !axis)
        return wrong_value(o, "--class-axis", value,
                           "an axis of the output is wanted, not 0, that of the samples; negative: "
                           "from the end");
    o->loss.axis = (int)axis;
    return true;
}

bool option_trainable(Options *o, const char *value)
{
    vec_push(o->a, o->trainable, o->training.n_trainable, value);
    return true;
}

bool option_frozen(Options *o, const char *value)
{
    vec_push(o->a, o->frozen, o->training.n_frozen, value);
    return true;
}

/* r=N[:alpha=A]:GLOB */
bool option_lora(Options *o, const char *value)
{
    enum { MOST = 1 << 16 };
    static const char rank_is[] = "r=", alpha_is[] = "alpha=";
    const size_t first = strcspn(value, ":");
    const char *rest = value + first + (value[first] != 0);
    int64_t rank = 0;
    double alpha = 0;
    bool good = !strncmp(value, rank_is, strlen(rank_is)) &&
                option_number(value + strlen(rank_is), first - strlen(rank_is), &rank) &&
                rank >= 1 && rank <= MOST;
    if (good && !strncmp(rest, alpha_is, strlen(alpha_is))) {
        const size_t n = strcspn(rest, ":"), name = strlen(alpha_is);
        good = number_in(rest + name, n - name, 0, 1e30, &alpha);
        rest += n + (rest[n] != 0);
    } else {
        alpha = (double)rank;
    }
    if (!good || !*rest)
        return wrong_value(o, "--lora", value,
                           "r=8:GLOB or r=8:alpha=16:GLOB is wanted: the rank, what the correction "
                           "is multiplied by (times 1 / r), names of weights");
    vec_push(o->a, o->lora, o->training.n_lora,
             ((ingot_lora){.pattern = rest, .rank = (int)rank, .alpha = alpha}));
    return true;
}

bool train_options_good(Options *o)
{
    const bool given = o->training.loss || o->optimizer.struct_size || o->training.n_trainable ||
                       o->training.n_frozen || o->training.n_lora || o->training.loss_scale > 0 ||
                       o->training.quantised || o->optimizer.clip > 0 || o->optimizer.accumulate ||
                       o->optimizer.processes || o->loss.axis || o->loss.ignores ||
                       o->loss.smoothing > 0;
    const char *why = !o->train
                          ? (given ? "--loss, --optimizer, --trainable, --frozen, --lora, --clip, "
                                     "--accumulate, --loss-scale, --quantised and what says more "
                                     "of the loss are for "
                                     "--train"
                                   : NULL)
                      : o->nstate ? "--train and --state do not go together"
                                  : NULL;
    return !why || complain(INGOT_USAGE, "ingot %s: %s", o->command, why) == INGOT_OK;
}
