/*
 * driver.h - the command line that rides along with a bundle: ./model IN OUT.
 *
 * The emitted main.c holds one igrt_model table and calls igrt_driver_main. This and driver.c are
 * the only files of the runtime that allocate, print or know about files; a program that links a
 * model does without them. docs/abi.md describes the options, the .npy conventions and the exit
 * statuses.
 */
#ifndef IGRT_DRIVER_H
#define IGRT_DRIVER_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct igrt_chat_form;
struct igrt_typed;
struct igrt_vocab;
struct igrt_sampling;
struct DriverSession;

/* igrt_io.dims_offset of a tensor whose dims are all fixed; an igrt_group's offset of a member that
 * is not there. */
#define IGRT_NO_DIMS ((size_t)-1)

/* One input or output. Use designated initialisers: fields may be added at the end. */
typedef struct igrt_io {
    const char *name;
    igrt_dtype dtype;
    int rank;
    int64_t max_dims[IGRT_MAX_RANK];
    size_t data_offset;              /* of the data pointer in <model>_inputs or <model>_outputs */
    size_t dims_offset;              /* of int64_t dims[rank] in the same struct, or IGRT_NO_DIMS */
    int64_t min_dims[IGRT_MAX_RANK]; /* looked at for run-time dims only */
    int optional;                    /* an input whose file may be absent: its pointer is NULL */
} igrt_io;

/* A sequence, an optional, or both: elements first..first+n-1 of the inputs or outputs. On disk a
 * sequence is a folder of 0.npy, 1.npy, ...; what is absent has no file. */
typedef struct igrt_group {
    const char *name;
    int first, n;
    size_t length_offset;  /* of int64_t: how many elements are there; IGRT_NO_DIMS: no sequence */
    size_t present_offset; /* of int64_t: 1 or 0; IGRT_NO_DIMS: no optional */
} igrt_group;

/* A function of a model beside run(), over the same states: members as in igrt_model. */
typedef struct igrt_function {
    const char *name; /* "train_step" */
    const igrt_io *inputs;
    int n_inputs;
    const igrt_io *outputs;
    int n_outputs;
    size_t inputs_bytes, outputs_bytes;
    const igrt_group *input_groups, *output_groups;
    int n_input_groups, n_output_groups;
    igrt_status (*call)(void *ctx, const void *inputs, void *outputs);
} igrt_function;

/* Of a language model: from text to tokens and back (igrt_vocab.h, igrt_sample.h). */
typedef struct igrt_text_calls {
    const char *file; /* beside the executable; NULL: the vocabulary is linked in */
    size_t bytes;
    igrt_status (*open)(struct igrt_vocab *, const void *data, size_t bytes);
    size_t (*tokenize)(const struct igrt_vocab *, const char *text, size_t len, unsigned how,
                       int32_t *ids, size_t room);
    size_t (*token_text)(const struct igrt_vocab *, int32_t id, unsigned how, char *out,
                         size_t room);
    int32_t (*find)(const struct igrt_vocab *, const char *text, size_t len);
    int32_t (*sample)(struct igrt_sampling *, float *logits, int32_t n, const int32_t *ids,
                      size_t count);
    const void *data; /* what is linked in */
    const struct igrt_chat_form *(*form)(const struct igrt_vocab *);
    size_t (*tokenize_typed)(const struct igrt_vocab *, const char *text, size_t len, unsigned how,
                             const struct igrt_typed *typed, size_t n, int32_t *ids, size_t room);
} igrt_text_calls;

/* A model as the driver sees it; the functions are one-line wrappers in main.c. */
typedef struct igrt_model {
    const char *name;
    const igrt_io *inputs;
    int n_inputs;
    const igrt_io *outputs;
    int n_outputs;
    size_t ctx_bytes, inputs_bytes, outputs_bytes; /* sizeof the three structs */
    size_t arena_align;
    size_t (*arena_bytes)(int threads);
    const char *weights_file; /* beside the executable; NULL if the weights are inside */
    size_t weights_bytes;
    igrt_status (*init)(void *ctx, const igrt_config *config);
    igrt_status (*run)(void *ctx, const void *inputs, void *outputs);
    igrt_status (*reset)(void *ctx);
    igrt_status (*selftest)(void *ctx); /* NULL: the bundle has no golden vectors */
    void (*deinit)(void *ctx);
    const size_t *memory_bytes;                     /* of each memory, instead of the arena */
    int n_memories;                                 /* 0: the arena */
    const igrt_fault *(*fault)(const void *ctx);    /* of the last run; NULL: not known */
    const igrt_group *input_groups, *output_groups; /* in order */
    int n_input_groups, n_output_groups;
    /* Of a GPU bundle; NULL: of a CPU. Makes memory on the device, filled from data if not NULL; of
     * 0 bytes: lets go of *memory. */
    igrt_status (*memory)(void *ctx, size_t bytes, const void *data, void **memory);
    igrt_status (*wait)(void *ctx);         /* until all that run has enqueued is done */
    const char *(*target)(const void *ctx); /* which target runs; NULL: the bundle has one */
    const char *(*cpu_name)(int bit);       /* igrt_cpu_name(); NULL: init asks for no processor */
    const igrt_function *functions;         /* beside run() */
    int n_functions, n_states;
    igrt_status (*state)(const void *ctx, int i, igrt_state *state); /* if there are states */
    const igrt_text_calls *text;                                     /* of a language model; NULL */
} igrt_model;

/* A bundle as a shared library, lib<name>.so, is loaded by programs in other languages through this
 * one symbol, which has all that they need; sizes, so that they can compare the structs that they
 * declare. host/table.c defines it. */
typedef struct igrt_table {
    int abi; /* IGRT_ABI_VERSION */
    size_t model_bytes, io_bytes, group_bytes, config_bytes, pool_bytes;
    const igrt_model *model;
    const char *(*status_text)(igrt_status);
} igrt_table;
extern const igrt_table igrt_bundle;

/* Exit statuses. */
enum {
    IGRT_EXIT_OK = 0,
    IGRT_EXIT_USAGE = 1,       /* unknown option, wrong number of arguments */
    IGRT_EXIT_INPUT = 2,       /* an input file is missing, malformed, of another type or shape */
    IGRT_EXIT_WEIGHTS = 3,     /* the weights file is missing or not the one of this build */
    IGRT_EXIT_MODEL = 4,       /* init or run failed: the message has the status */
    IGRT_EXIT_OUTPUT = 5,      /* OUT cannot be written */
    IGRT_EXIT_SELFTEST = 6,    /* the selftest gives other values */
    IGRT_EXIT_MEMORY = 7,      /* no memory for the arena or the tensors */
    IGRT_EXIT_NO_SELFTEST = 8, /* the bundle has none */
    IGRT_EXIT_DEVICE = 9       /* no such GPU, no driver of it, or it lacks what kernels use */
};

/* driver_chat.c: the whole of --chat, and what the driver calls for that: main.c says it, where the
 * bundle has it. */
int driver_chat(struct DriverSession *s, int argc, char **argv);
extern int (*igrt_driver_chat)(struct DriverSession *s, int argc, char **argv);

/* The whole of main(). */
int igrt_driver_main(int argc, char **argv, const igrt_model *model);

#ifdef __cplusplus
}
#endif
#endif
