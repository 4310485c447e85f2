/*
 * gguf_tensors.c - which tensors a model has: their names, shapes, and whether they have to be
 * there.
 *
 * A tensor that has no place in the network is a fault: it would have changed what is computed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_model.h"

/* A size by what it counts. */
typedef enum { NONE, WIDTH, FFN, UPS, HEAD, QUERIES, KEYS, QKV, VOCABULARY, ANGLES } TensorSize;
/* When a tensor has to be there. */
typedef enum { NEEDED, MAYBE, APART, JOINED, GATED, OF_HEADS, POST, MISSING_OUTPUT } TensorNeed;

typedef struct {
    const char *name;
    TensorSize rows, columns; /* rows NONE: a vector */
    TensorNeed need;
} TensorWanted;

static const TensorWanted of_layer[LAYER_TENSORS] = {
    [ATTN_NORM] = {"attn_norm.weight", NONE, WIDTH, NEEDED},
    [ATTN_Q] = {"attn_q.weight", QUERIES, WIDTH, APART},
    [ATTN_K] = {"attn_k.weight", KEYS, WIDTH, APART},
    [ATTN_V] = {"attn_v.weight", KEYS, WIDTH, APART},
    [ATTN_QKV] = {"attn_qkv.weight", QKV, WIDTH, JOINED},
    [ATTN_Q_BIAS] = {"attn_q.bias", NONE, QUERIES, MAYBE},
    [ATTN_K_BIAS] = {"attn_k.bias", NONE, KEYS, MAYBE},
    [ATTN_V_BIAS] = {"attn_v.bias", NONE, KEYS, MAYBE},
    [ATTN_QKV_BIAS] = {"attn_qkv.bias", NONE, QKV, MAYBE},
    [ATTN_Q_NORM] = {"attn_q_norm.weight", NONE, HEAD, OF_HEADS},
    [ATTN_K_NORM] = {"attn_k_norm.weight", NONE, HEAD, OF_HEADS},
    [ATTN_OUT] = {"attn_output.weight", WIDTH, QUERIES, NEEDED},
    [ATTN_OUT_BIAS] = {"attn_output.bias", NONE, WIDTH, MAYBE},
    [ATTN_POST_NORM] = {"post_attention_norm.weight", NONE, WIDTH, POST},
    [FFN_NORM] = {"ffn_norm.weight", NONE, WIDTH, NEEDED},
    [FFN_GATE] = {"ffn_gate.weight", FFN, WIDTH, GATED},
    [FFN_GATE_BIAS] = {"ffn_gate.bias", NONE, FFN, MAYBE},
    [FFN_UP] = {"ffn_up.weight", UPS, WIDTH, NEEDED},
    [FFN_UP_BIAS] = {"ffn_up.bias", NONE, UPS, MAYBE},
    [FFN_DOWN] = {"ffn_down.weight", WIDTH, FFN, NEEDED},
    [FFN_DOWN_BIAS] = {"ffn_down.bias", NONE, WIDTH, MAYBE},
    [FFN_POST_NORM] = {"post_ffw_norm.weight", NONE, WIDTH, POST},
};

static const TensorWanted of_model[MODEL_TENSORS] = {
    [EMBEDDING] = {"token_embd.weight", VOCABULARY, WIDTH, NEEDED},
    [OUTPUT_NORM] = {"output_norm.weight", NONE, WIDTH, NEEDED},
    [OUTPUT] = {"output.weight", VOCABULARY, WIDTH, MAYBE},
    [OUTPUT_BIAS] = {"output.bias", NONE, VOCABULARY, MAYBE},
    [ROPE_FREQS] = {"rope_freqs.weight", NONE, ANGLES, MAYBE},
    [ROPE_LONG_FACTORS] = {"rope_factors_long.weight", NONE, ANGLES, MAYBE},
    [ROPE_SHORT_FACTORS] = {"rope_factors_short.weight", NONE, ANGLES, MAYBE},
};

static int64_t size_of(const Facts *f, TensorSize what)
{
    switch (what) {
    case WIDTH: return f->width;
    case FFN: return f->ffn;
    case UPS: return f->arch->has & GATE_BEFORE_UP ? 2 * f->ffn : f->ffn;
    case HEAD: return f->head;
    case QUERIES: return f->heads * f->head;
    case KEYS: return f->kv_heads * f->head;
    case QKV: return (f->heads + 2 * f->kv_heads) * f->head;
    case VOCABULARY: return f->vocabulary;
    case ANGLES: return f->rope.turned / 2;
    case NONE: break;
    }
    return 1;
}

static bool is_needed(const GgufModel *m, TensorNeed need, bool joined)
{
    switch (need) {
    case NEEDED: return true;
    case APART: return !joined;
    case JOINED: return joined;
    case GATED: return !(m->facts.arch->has & GATE_BEFORE_UP);
    case OF_HEADS: return m->facts.arch->has & HEAD_NORMS;
    case POST: return m->facts.arch->has & POST_NORMS;
    default: return false;
    }
}

static bool is_allowed(const GgufModel *m, TensorNeed need, bool joined)
{
    return need == MAYBE || is_needed(m, need, joined);
}

static void check_shape(GgufModel *m, const TensorWanted *w, const ingot_gguf_tensor *t)
{
    const int64_t rows = size_of(&m->facts, w->rows), columns = size_of(&m->facts, w->columns);
    if (!gguf_type_known(t->type)) {
        gguf_fault(m, INGOT_UNSUPPORTED, t->name, "weights of type %s are not supported",
                   ingot_gguf_type_name(t->type, NULL, NULL));
        return;
    }
    /* the rank says nothing: [4096] may be a matrix of one row, [4096,1] a vector */
    if (t->dims[0] == (uint64_t)columns && t->dims[1] == (uint64_t)rows && t->dims[2] == 1 &&
        t->dims[3] == 1)
        return;
    char is[96] = "", wanted[48];
    for (int i = 0; i < t->rank; i++)
        snprintf(is + strlen(is), sizeof is - strlen(is), "%s%llu", i ? "," : "",
                 (unsigned long long)t->dims[i]);
    snprintf(wanted, sizeof wanted, w->rows == NONE ? "%lld" : "%lld,%lld", (long long)columns,
             (long long)rows);
    gguf_fault(m, INGOT_INVALID, t->name,
               "it is [%s], and by the keys it has to be [%s] (innermost first)", is, wanted);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ingot_gguf_tensor *)a)->name, ((const ingot_gguf_tensor *)b)->name);
}

static const ingot_gguf_tensor *find_tensor(const GgufModel *m, const char *name)
{
    const ingot_gguf_tensor wanted = {.name = name};
    if (!m->folder)
        return ingot_gguf_find(m->file, name);
    return m->n_tensors ? bsearch(&wanted, m->tensors, m->n_tensors, sizeof wanted, by_name) : NULL;
}

/* The tensor of that name, in *out. */
static void read_tensor(GgufModel *m, const TensorWanted *w, const char *name, bool joined,
                        const ingot_gguf_tensor **out)
{
    const ingot_gguf_tensor *t = find_tensor(m, name);
    *out = NULL;
    if (t && is_allowed(m, w->need, joined)) {
        *out = t;
        check_shape(m, w, t);
    } else if (!t && is_needed(m, w->need, joined)) {
        gguf_fault(m, INGOT_INVALID, name, "the file lacks this tensor");
    }
}

static bool is_used(const GgufModel *m, const ingot_gguf_tensor *t)
{
    long layer;
    char *end;
    for (int i = 0; i < MODEL_TENSORS; i++)
        if (m->of[i] == t)
            return true;
    if (strncmp(t->name, "blk.", 4))
        return false;
    layer = strtol(t->name + 4, &end, 10);
    if (layer < 0 || layer >= m->facts.layers)
        return false;
    for (int i = 0; i < LAYER_TENSORS; i++)
        if (m->layers[layer].of[i] == t)
            return true;
    return false;
}

void gguf_read_tensors(GgufModel *m)
{
    const ingot_gguf_tensor *t = find_tensor(m, of_model[EMBEDDING].name);
    m->facts.vocabulary = t ? (int64_t)t->dims[1] : 1;
    if (m->facts.layers > (int64_t)m->n_tensors) /* what is allocated is bounded */
    {
        gguf_fault(m, INGOT_INVALID, NULL, "it has %lld layers, but only %zu tensors",
                   (long long)m->facts.layers, m->n_tensors);
        return;
    }
    m->layers = calloc((size_t)m->facts.layers, sizeof *m->layers);
    m->weights = (ingot_tensor **)calloc(m->n_tensors, sizeof *m->weights);
    if (!m->layers || !m->weights) {
        gguf_fault(m, INGOT_IO, NULL, "out of memory");
        return;
    }
    for (int i = 0; i < MODEL_TENSORS; i++)
        read_tensor(m, &of_model[i], of_model[i].name, false, &m->of[i]);
    for (int64_t l = 0; l < m->facts.layers; l++) {
        char name[80];
        snprintf(name, sizeof name, "blk.%lld.%s", (long long)l, of_layer[ATTN_QKV].name);
        const bool joined = find_tensor(m, name) != NULL;
        for (int i = 0; i < LAYER_TENSORS; i++) {
            snprintf(name, sizeof name, "blk.%lld.%s", (long long)l, of_layer[i].name);
            read_tensor(m, &of_layer[i], name, joined, &m->layers[l].of[i]);
        }
    }
    for (size_t i = 0; i < m->n_tensors; i++)
        if (!is_used(m, &m->tensors[i]))
            gguf_fault(m, INGOT_UNSUPPORTED, m->tensors[i].name,
                       "a model of architecture '%s' has no place for this tensor",
                       m->facts.arch->name);
}
