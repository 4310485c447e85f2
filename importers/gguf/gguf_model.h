/*
 * gguf_model.h - a language model in a GGUF file, or in a folder that is read as one
 * (importers/huggingface): what its parts know of each other.
 *
 *     gguf.h            the file: keys, tensors
 *     gguf_facts.c      keys -> Facts
 *     gguf_tensors.c    which tensors there are, and whether their shapes fit
 *     gguf_weights.c    a tensor of any type -> an expression over its bytes
 *     gguf_rope.c       angles of positions
 *     gguf_decoder.c    the graph
 *     gguf_importer.c   the record
 */
#ifndef GGUF_MODEL_H
#define GGUF_MODEL_H

#include "gguf.h"
#include "importer.h"

enum { GGUF_SHOWN = 160 };

/* Which elements of a head rope turns together: i with i + 1 (i even), or i with i + half. */
typedef enum { NEIGHBOURS, HALVES } RopePairs;
typedef enum { SILU, GELU } GateKind;

enum {
    HEAD_NORMS = 1,     /* queries and keys of each head are normalised */
    POST_NORMS = 2,     /* attention and ffn are, before they are added */
    ROOT_OF_WIDTH = 4,  /* the embedding is multiplied by it */
    GATE_BEFORE_UP = 8, /* ffn_up holds both, one behind the other */
    SCALES = 16,        /* keys say what scores, residuals and logits are multiplied by */
    TURNS_BY_KEY = 32,  /* rope.scaling.finetuned says whether there is any rope */
    CAPS = 64           /* scores and logits have caps, said by keys or not */
};

typedef struct {
    const char *name;
    RopePairs pairs;
    GateKind gate;
    unsigned has;
    int pattern;          /* of so many layers the last sees all; 1: none does */
    int64_t window;       /* without a key */
    double window_base;   /* 0: as elsewhere */
    int rope_but_last;    /* of so many layers the last has no rope; 0: all have */
    int64_t width_scaled; /* number of layers; 0: none */
} GgufArch;

typedef enum { ROPE_PLAIN, ROPE_LINEAR, ROPE_YARN, ROPE_LONG } RopeScaling;

typedef struct {
    int64_t turned; /* elements of a head */
    double base, window_base;
    bool none;          /* nothing is turned */
    bool window_scaled; /* in windows, too, angles are divided */
    RopeScaling scaling;
    double factor;   /* of the context, by which angles are divided */
    double original; /* context before that */
    double strength; /* of cos and sin */
    double beta_fast, beta_slow;
    double extrapolated; /* how much of YaRN's mix is done */
} RopeFacts;

/* What keys say. */
typedef struct {
    const GgufArch *arch;
    RopePairs pairs;
    int64_t layers, width, ffn, heads, kv_heads, head, context, vocabulary;
    double eps;
    RopeFacts rope;
    double score_scale, score_cap, logit_cap;            /* caps: 0 is none */
    double embedding_scale, residual_scale, logit_scale; /* 1: none; logits are divided */
    int64_t window;                                      /* keys that a query sees; 0: all */
    int pattern;
    const ingot_gguf_value *pattern_list; /* of bools, a layer each; NULL: none */
} Facts;

/* Tensors of a layer (gguf_tensors.c has their names). */
typedef enum {
    ATTN_NORM,
    ATTN_Q,
    ATTN_K,
    ATTN_V,
    ATTN_QKV,
    ATTN_Q_BIAS,
    ATTN_K_BIAS,
    ATTN_V_BIAS,
    ATTN_QKV_BIAS,
    ATTN_Q_NORM,
    ATTN_K_NORM,
    ATTN_OUT,
    ATTN_OUT_BIAS,
    ATTN_POST_NORM,
    FFN_NORM,
    FFN_GATE,
    FFN_GATE_BIAS,
    FFN_UP,
    FFN_UP_BIAS,
    FFN_DOWN,
    FFN_DOWN_BIAS,
    FFN_POST_NORM,
    LAYER_TENSORS
} LayerTensor;

/* Those of no layer. */
typedef enum {
    EMBEDDING,
    OUTPUT_NORM,
    OUTPUT,
    OUTPUT_BIAS,
    ROPE_FREQS,
    ROPE_LONG_FACTORS,
    ROPE_SHORT_FACTORS,
    MODEL_TENSORS
} ModelTensor;

typedef struct {
    const ingot_gguf_tensor *of[LAYER_TENSORS]; /* NULL: there is none */
} LayerTensors;

typedef struct GgufModel GgufModel;
enum { GGUF_CACHE_BLOCK = 32, GGUF_SLOTS = 64 };

struct GgufModel {
    ingot_context *c;
    ingot_gguf *file;                 /* keys */
    const ingot_gguf_tensor *tensors; /* its own, or those of the folder, by name */
    size_t n_tensors;
    void *folder; /* NULL: it is a file. Else, of the folder: */
    /* The bytes of a tensor, in the type that it has. */
    const void *(*data)(GgufModel *, const ingot_gguf_tensor *);
    /* What the folder calls a key or tensor, in text or elsewhere. */
    const char *(*shown)(const GgufModel *, const char *name, char text[GGUF_SHOWN]);
    Facts facts;
    const ingot_gguf_tensor *of[MODEL_TENSORS];
    LayerTensors *layers;
    ingot_tensor **weights; /* of each tensor of the file, once asked for */
    /* The states, of each slot's layers keys and values: rows, and scales of those in bytes; NULL
     * before. */
    ingot_tensor **cache;
    ingot_tensor *angle[2][2]; /* of all positions, once asked for: cos and sin; in windows: [1] */
    ingot_dtype cache_type;    /* INGOT_I8: bytes, with a scale for each GGUF_CACHE_BLOCK */
    ingot_model_io in[GGUF_SLOTS], out;
    char in_name[GGUF_SLOTS][32];
    void *vocabulary;  /* NULL: it is of no kind that is known */
    const char *lacks; /* why, where the folder has told */
    size_t vocabulary_bytes;
    int slots;    /* sequences of one run */
    int faults;   /* that were told */
    bool unsized; /* sizes are among them */
};

/* The parts of an importer's record, of a model whose keys and tensors are known. */
bool gguf_start(GgufModel *m); /* false after faults, which are told */
void gguf_close(GgufModel *m); /* frees it, but for the folder */
int gguf_inputs(const void *model);
int gguf_one(const void *model);
const ingot_model_io *gguf_input(const void *model, int i);
const ingot_model_io *gguf_output(const void *model, int i);
void gguf_set_slots(void *model, int slots);
bool gguf_build(void *model, const ingot_model_options *);
bool gguf_has_text(const void *model);

/* Tells a fault of the key or tensor of that name; NULL: of the file. */
void gguf_fault(GgufModel *m, ingot_status, const char *name, const char *format, ...)
    IMPORT_PRINTF(4, 5);

/* Faults are told and counted; false: nothing can be asked of tensors. */
bool gguf_read_facts(GgufModel *m);
void gguf_read_tensors(GgufModel *m);

/* Whether there is an expression for the type. */
bool gguf_type_known(int type);
/* f32 [rows, columns]; the same one for a tensor that is asked for again: an embedding that is the
 * head, too. */
ingot_tensor *gguf_weight(GgufModel *m, const ingot_gguf_tensor *t);
/* f32 [columns], of one row. */
ingot_tensor *gguf_vector(GgufModel *m, const ingot_gguf_tensor *t);

/* cos and sin, f32 [positions, turned / 2] each, of as many positions as were asked for first. */
void gguf_rope_tables(GgufModel *m, int64_t positions, bool in_window, ingot_tensor *angle[2]);

/* A sequence: ids i32 [n] come, past are in its states. */
typedef struct {
    ingot_tensor *ids;
    ingot_dim *past;
} GgufSlot;

/* Logits of the last token of each slot: f32 [slots, vocabulary], [vocabulary] of one. Of another
 * function of the model: over the same states. */
ingot_tensor *gguf_decoder(GgufModel *m, const GgufSlot *slot, int slots);

#endif
