/*
 * hf_folder.h - a language model as Hugging Face keeps it: a folder, which is read as a GGUF file.
 *
 *     config.json            -> keys ("num_hidden_layers": llama.block_count)     hf_config.c
 *     tokenizer.json ..      -> keys (tokenizer.ggml.tokens, ..)                  hf_vocab.c
 *     *.safetensors          -> tensors ("model.norm.weight": output_norm.weight) hf_weights.c
 *     weights of other types -> blocks (--weights-type)                           hf_quant.c
 *
 * So there is one graph of such models, gguf_decoder.c, and one place that knows what families have
 * (gguf_archs.def).
 */
#ifndef HF_FOLDER_H
#define HF_FOLDER_H

#include "base.h"
#include "gguf_model.h"
#include "json.h"
#include "safetensors.h"

/* Where the numbers of a tensor are. */
typedef struct {
    const ingot_safetensors_tensor *from;
    const float *made;   /* they are computed: no file has them */
    const char *name;    /* in the file; NULL: made */
    bool plus_one;       /* the norms of Gemma, which multiply by 1 + w */
    ingot_gguf_type has; /* before --weights-type */
    void *bytes;         /* malloc'd, where the file's are not what is wanted */
} HfSource;

typedef struct HfFolder HfFolder;
struct HfFolder {
    Arena *a;
    GgufModel *m;
    const char *dir; /* "path/", or "" */
    const Json *config;
    const char *arch; /* of gguf_archs.def */
    bool tied;        /* the embedding is the head */
    StrBuf keys;      /* as a GGUF file has them */
    uint64_t n_keys;
    const char **files; /* all that are read, config.json first */
    int n_files;
    MapFile *maps; /* of safetensors */
    ingot_safetensors **parts;
    int n_parts;
    ingot_gguf_tensor *tensors;
    HfSource *sources; /* of each tensor */
    size_t n_tensors, room;
};

/* ---- hf_keys.c: keys of a GGUF file ---------------------------------------------------------- */

/* A name without a dot in front is the architecture's: "block_count". */
void hf_key_whole(HfFolder *h, const char *name, int64_t v);
void hf_key_real(HfFolder *h, const char *name, double v);
void hf_key_bool(HfFolder *h, const char *name, bool v);
void hf_key_text(HfFolder *h, const char *name, const char *v);
/* An array; n elements of the type follow, by hf_put. */
void hf_key_array(HfFolder *h, const char *name, ingot_gguf_value_type type, uint64_t n);
void hf_put(HfFolder *h, const void *data, size_t bytes);
void hf_put_text(HfFolder *h, const char *first, const char *second); /* one behind the other */
/* The whole header: its keys, no tensors. */
ingot_gguf *hf_header(HfFolder *h, const char *path, char *why, size_t room);

/* ---- files ----------------------------------------------------------------------------------- */

/* The JSON of a file of the folder; NULL: it is not there, and, where it is needed or is no JSON,
 * that was told. */
const Json *hf_json(HfFolder *h, const char *name, bool needed);
/* All of a text file, or NULL. */
const char *hf_text(HfFolder *h, const char *name);
/* Its place in the folder, which is noted as a file that was read. */
const char *hf_path(HfFolder *h, const char *name);
/* Of weight_map in model.safetensors.index.json: each file once. */
bool hf_shards(HfFolder *h, const Json *index, const char ***names, int *n);

/* ---- the parts ------------------------------------------------------------------------------- */

/* False after faults. */
bool hf_read_config(HfFolder *h);
void hf_read_vocabulary(HfFolder *h);
/* What the folder calls a key; name is without the architecture. NULL: the same. */
const char *hf_config_name(const char *name);

bool hf_read_weights(HfFolder *h);
/* A vector that is computed. */
void hf_make_tensor(HfFolder *h, const char *name, const float *values, int64_t n);
void hf_sort_tensors(HfFolder *h);
const ingot_gguf_tensor *hf_find(const HfFolder *h, const char *name);
/* The file's name of a tensor, with the layer's number; NULL: it has none. */
const char *hf_tensor_name(const HfFolder *h, const char *name, char text[GGUF_SHOWN]);
/* --weights-type; false: there is no such one. */
bool hf_set_types(HfFolder *h, const char *type);
const void *hf_data(GgufModel *m, const ingot_gguf_tensor *t);
void hf_close_weights(HfFolder *h);

/* n numbers, whole blocks of them, as a type. */
void hf_quantise(ingot_gguf_type type, const float *x, size_t n, unsigned char *out);
uint16_t hf_half(float x);

#endif
