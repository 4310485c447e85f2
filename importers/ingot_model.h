/* ingot_model.h - a model in a file, of whatever format there is an importer for, as a graph of the
 * builder API.
 *
 *     ingot_model *m = ingot_model_open(c, "model.onnx");
 *     for (int i = 0; i < ingot_model_input_count(m); i++)
 *         ... look at ingot_model_input(m, i) and choose dims and binds ...
 *     bool ok = ingot_model_check(m) && ingot_model_build(m, &options);
 *     ... compile ...
 *     ingot_context_free(c);
 *     ingot_model_close(m);     after the context: weights stay in the mapped file
 *
 * Faults go to the context's sink; a function that fails has told why.
 */
#ifndef INGOT_MODEL_H
#define INGOT_MODEL_H

#include "ingot_train.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct ingot_model ingot_model;

/** What a model takes or gives: formats that know of tensors alone have the first. */
typedef enum {
    INGOT_MODEL_TENSOR,
    INGOT_MODEL_SEQUENCE,
    INGOT_MODEL_OPTIONAL,
    INGOT_MODEL_OTHER
} ingot_model_kind;

/** A model input or output as the file declares it. */
typedef struct {
    const char *name;  /* of an output that the file lists again another one: "y_2" */
    const char *value; /* the file's name */
    ingot_model_kind kind;
    bool sequence;                /* of tensors; kind OPTIONAL: an optional one */
    ingot_dtype dtype;            /* of the tensor, or of a sequence's or optional's tensors */
    int rank;                     /* -1: not declared */
    int64_t dims[INGOT_MAX_RANK]; /* -1: free */
    const char *dim_names[INGOT_MAX_RANK]; /* of the free ones: the file's name, else "x_0" by
                                            * input and axis; NULL for the others */
    int64_t usual[INGOT_MAX_RANK]; /* of the free ones: what the file has where nothing is said; 0:
                                    * nothing */
    bool undeclared; /* an output whose type the file leaves to its nodes: here a tensor's */
} ingot_model_io;

/** What a free dim is: lo == hi fixes it at compile time; same_as: that of another free dim.
 * By name also bounds of any integer tensor's value ("n"; from below 0, if need be) and of any
 * tensor's size ("y_0": that of 'y' along axis 0), which the model checks when it runs; free dims
 * of inputs come first. */
typedef struct {
    const char *name;
    int64_t lo, hi;
    const char *same_as; /* or NULL */
} ingot_model_dim;

/** An input whose value is known at compile time. Everything is borrowed as long as the context. */
typedef struct {
    const char *name;
    ingot_dtype dtype;
    int rank;
    const int64_t *dims;
    const void *bytes; /* dense, row-major; strings: pointers to them */
} ingot_model_bind;

/** How nodes multiply by a weight: what they sum over. */
typedef enum {
    INGOT_WEIGHT_OTHER,
    INGOT_WEIGHT_ROWS,   /* [out, in..]: over all axes but the first */
    INGOT_WEIGHT_COLUMNS /* [in, out]: over the first */
} ingot_weight_form;

/** A float tensor that the file has as a weight. */
typedef struct {
    const char *name;
    /* Where exporters made the name up ("val_4"): the same behind the module of the node that reads
     * it, "layer.0.attn.val_4", which patterns may match, too. Or NULL. */
    const char *path;
    bool statistic; /* a running mean or variance, which follows batches and no gradient */
    ingot_weight_form form;
    /* Of a file that says itself what is trained: it is, or it is not. Whoever trains may differ.
     */
    bool wanted, unwanted;
    /* Integers in the file; data are what they stand for. What takes its place is rounded to them.
     */
    bool integers;
} ingot_model_weight;

/** What a model that is to be trained is built with: once for inference and once for a step, over
 * the same states. ingot_model_train() does both. */
typedef struct {
    /* Asked of each weight, in the file's order: what stands in its place, data itself, a state
     * that begins as that, or what is made of states. */
    ingot_tensor *(*weight)(void *user, const ingot_model_weight *, ingot_tensor *data);
    /* Takes an output in place of ingot_output(). NULL: outputs are declared. */
    void (*output)(void *user, const char *name, ingot_tensor *);
    void *user;
    /* As in a step of training: statistics that are states are those of the batch, and follow it;
     * dropout drops. Otherwise neither, whatever the file says. */
    bool step;
    bool own;       /* the loss, or the step, is the one that the file has */
    bool quantised; /* integers that stand for floats are weights, too */
} ingot_model_training;

#define INGOT_STRING_BYTES 256

/** How TensorFlow Lite's operators on integers round. */
typedef enum {
    INGOT_ROUNDING_REFERENCE, /* as its reference kernels */
    INGOT_ROUNDING_XNNPACK    /* of 8 bits: as its default delegate */
} ingot_rounding;

typedef struct {
    size_t struct_size;
    const ingot_model_dim *dims;
    int n_dims;
    const ingot_model_bind *binds;
    int n_binds;
    /* room for the text of each string that the model makes, on average; 0: INGOT_STRING_BYTES */
    int64_t string_bytes;
    const ingot_model_training *training; /* or NULL */
    /* The model may have functions beside run(): decode() of a language model. */
    bool functions;
    /* Of keys and values that a language model keeps; 0: f16. I8: bytes, with a scale in f16 for
     * each 32 of a head's elements. */
    ingot_dtype cache;
    /* What matrices of a folder of Hugging Face become: "f16", "bf16", "q8_0", "q4_0" or "q4_k";
     * NULL: as they are. */
    const char *weights_type;
    ingot_rounding rounding;
} ingot_model_options;

/** An operator that a function of the user's computes: "acme.com:Swish"; without a domain, the
 * format's own. */
typedef struct {
    const char *name;
    ingot_custom_op *op;
} ingot_model_op;

/** An input and an output that are one tensor in the context, which lives from run to run: zero at
 * first, then what the run before has made of it. */
typedef struct {
    const char *input, *output;
} ingot_model_state;

/** The file that stands for a model: config.json of a folder that an importer takes, else
 * the path itself.
 * malloc'd; NULL: out of memory. */
char *ingot_model_path(const char *path);

/** Maps and reads a model file, or a folder of Hugging Face; its first bytes tell the format. NULL
 * on failure. */
ingot_model *ingot_model_open(ingot_context *, const char *path);
/** Unmaps; to be called after the context is freed. NULL is allowed. */
void ingot_model_close(ingot_model *);

/** Of the networks that the file has, the one of this name is meant; to be said before all else.
 * False after an error, which lists those that are there. Without it, the first is. */
bool ingot_model_set_entry(ingot_model *, const char *name);

/** What products of such a file are meant to multiply where nothing else is asked for. */
ingot_precision ingot_model_precision(const ingot_model *);

/** The files that were read: the model is number 0, then its external data as far as it has been
 * used. NULL: no more. They stay until the model is closed. */
const char *ingot_model_file(const ingot_model *, int i);

/** Inputs that are no weights, and outputs, in the file's order. */
int ingot_model_input_count(const ingot_model *);
const ingot_model_io *ingot_model_input(const ingot_model *, int i);
int ingot_model_output_count(const ingot_model *);
const ingot_model_io *ingot_model_output(const ingot_model *, int i);

/** These operators are the user's; to be said before the model is checked. The list is borrowed.
 * False after an error. */
bool ingot_model_set_ops(ingot_model *, const ingot_model_op *, int n);

/** These inputs and outputs become states: they are no longer among the model's inputs and outputs,
 * whose numbers change. A `*` in both names stands for any text, the same in both, and makes a
 * state of each input that fits. To be said first. The list is borrowed. False after an error. */
bool ingot_model_set_states(ingot_model *, const ingot_model_state *, int n);

/** A language model continues so many sequences of tokens in one run, 1 to 64, each of which has an
 * input of its own. To be said first. Of other models building is an error then. */
void ingot_model_set_slots(ingot_model *, int n);

/** Whether it takes tokens of text by a vocabulary that its bundle has. */
bool ingot_model_has_text(const ingot_model *);

/** Whether the format can tell what is not supported of a model without building it. */
bool ingot_model_has_check(const ingot_model *);
/** Then reports all of it, before any work. True if there is nothing. Building fails otherwise. */
bool ingot_model_check(ingot_model *);
/** Whether building reports, after a check that found something, what is wrong besides. */
bool ingot_model_builds_rest(const ingot_model *);

/** Declares inputs, builds all nodes, declares outputs. A bound input is still declared, so that
 * inputs keep their numbers, but its value is the constant. options may be NULL. */
bool ingot_model_build(ingot_model *, const ingot_model_options *);

/** Weights whose names or paths match stay as they are, and get a correction that is trained:
 * adapters NAME.lora_A [rank, in..], which begin at random, and NAME.lora_B [out, rank], which
 * begin as zeros; alpha / rank times their product is added (arXiv:2106.09685). */
typedef struct {
    const char *pattern;
    int rank;
    double alpha;
} ingot_lora;

/** What a model is to learn, and how (docs/training.md). */
typedef struct {
    size_t struct_size;
    /* "cross_entropy:OUTPUT", "mse:OUTPUT", or the name of an output that is one number, the
     * loss; NULL: what the file says */
    const char *loss;
    const ingot_loss_options *loss_options; /* or NULL */
    const ingot_optimizer *optimizer;       /* NULL, or struct_size 0: what the file says */
    double rate;                            /* 0: an input of each step */
    /* Patterns of names or paths of weights (* ? []): those that are trained, all where there are
     * none, but for those that are frozen. */
    const char *const *trainable, *const *frozen;
    int n_trainable, n_frozen;
    /* Adapters; of several that match, the last one counts. Where there are some, weights without
     * one are trained only if `trainable` names them. */
    const ingot_lora *lora;
    int n_lora;
    double loss_scale; /* what ingot_loss_scale() begins as; 0: there is none */
    /* Rounding to integers has slope 1, within their range; weights that the file has as integers
     * are trained as floats, which are rounded wherever they are read. */
    bool quantised;
} ingot_model_train_options;

/** Builds the model twice over the same weights: the function run() for inference, and
 * train_step(), whose inputs are those of the model, then "target" (unless an output is the loss)
 * and "rate", and whose output is "loss". A file that says how it is trained has a loss with inputs
 * of its own in place of "target", or a step that is all its own. False after an error. */
bool ingot_model_train(ingot_model *, const ingot_model_options *,
                       const ingot_model_train_options *);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
