/*
 * hf_weights.c - the tensors of a folder's safetensors, under the names and in the types of a GGUF
 * file.
 *
 * They stay in the mapped files, but for those that become something else: those of another type
 * (--weights-type), norms of Gemma, whose weights lack a one, vectors, which are f32. Such a one is
 * made when the graph asks for it.
 *
 * Rows of q and k are as they are: rope turns halves of a head in these files, where a GGUF file of
 * the same model may have them in the order of neighbours (gguf_decoder.c does either).
 */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hf_folder.h"
#include "igrt_num.h"

typedef enum { ANY_FAMILY, WITH_POST, WITHOUT_POST } NameOf;

static const struct {
    const char *theirs, *ours;
    NameOf of;
} layer_names[] = {
#define NAME(theirs, ours) {theirs, ours, ANY_FAMILY},
#define PRE_NAME(theirs, ours) {theirs, ours, WITHOUT_POST},
#define POST_NAME(theirs, ours) {theirs, ours, WITH_POST},
#include "hf_names.def"
#undef NAME
#undef PRE_NAME
#undef POST_NAME
};

static const struct {
    const char *theirs, *ours;
} model_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

enum {
    LAYER_NAMES = sizeof layer_names / sizeof *layer_names,
    MODEL_NAMES = sizeof model_names / sizeof *model_names
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_of(const HfFolder *h, int i)
{
    const bool post = !strcmp(h->arch, "gemma2") || !strcmp(h->arch, "gemma3");
    return layer_names[i].of == ANY_FAMILY || (layer_names[i].of == WITH_POST) == post;
}

/* "PREFIX7.REST" -> "REST" and 7; NULL: it is none. */
static const char *of_layer(const char *name, const char *prefix, long *layer)
{
    char *end;
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9')
        return NULL;
    *layer = strtol(name + n, &end, 10);
    return *end == '.' && *layer < 1 << 24 ? end + 1 : NULL;
}

/* NULL: the network has nothing of that name, which is then told under it. */
static const char *our_name(HfFolder *h, const char *name)
{
    long layer;
    const char *rest = of_layer(name, "model.layers.", &layer);
    for (int i = 0; i < MODEL_NAMES && !rest; i++)
        if (!strcmp(name, model_names[i].theirs))
            return model_names[i].ours;
    for (int i = 0; i < LAYER_NAMES && rest; i++)
        if (!strcmp(rest, layer_names[i].theirs) && is_of(h, i))
            return arena_printf(h->a, "blk.%ld.%s", layer, layer_names[i].ours);
    return NULL;
}

const char *hf_tensor_name(const HfFolder *h, const char *name, char text[GGUF_SHOWN])
{
    long layer;
    const ingot_gguf_tensor *t = hf_find(h, name);
    if (t && h->sources[t - h->tensors].name)
        return h->sources[t - h->tensors].name;
    const char *rest = of_layer(name, "blk.", &layer);
    for (int i = 0; i < MODEL_NAMES && !rest; i++)
        if (!strcmp(name, model_names[i].ours))
            return model_names[i].theirs;
    for (int i = 0; i < LAYER_NAMES && rest; i++)
        if (!strcmp(rest, layer_names[i].ours) && is_of(h, i)) {
            snprintf(text, GGUF_SHOWN, "model.layers.%ld.%s", layer, layer_names[i].theirs);
            return text;
        }
    return NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ingot_gguf_tensor *)a)->name, ((const ingot_gguf_tensor *)b)->name);
}

const ingot_gguf_tensor *hf_find(const HfFolder *h, const char *name)
{
    const ingot_gguf_tensor wanted = {.name = name};
    return h->n_tensors ? bsearch(&wanted, h->tensors, h->n_tensors, sizeof wanted, by_name) : NULL;
}

typedef struct {
    ingot_gguf_tensor tensor; /* first: by_name() */
    HfSource source;
} NamedTensor;

void hf_sort_tensors(HfFolder *h)
{
    NamedTensor *list = NEWN(h->a, NamedTensor, h->n_tensors + 1);
    for (size_t i = 0; i < h->n_tensors; i++)
        list[i] = (NamedTensor){h->tensors[i], h->sources[i]};
    qsort(list, h->n_tensors, sizeof *list, by_name);
    for (size_t i = 0; i < h->n_tensors; i++) {
        h->tensors[i] = list[i].tensor;
        h->sources[i] = list[i].source;
        if (i && !by_name(&list[i - 1], &list[i]))
            gguf_fault(h->m, INGOT_INVALID, list[i].source.name,
                       "two tensors of these files are the same one of the network");
    }
}

static void add_tensor(HfFolder *h, const ingot_gguf_tensor *t, const HfSource *s)
{
    if (h->n_tensors == h->room) {
        const size_t room = h->room ? 2 * h->room : 512;
        ingot_gguf_tensor *tensors = NEWN(h->a, ingot_gguf_tensor, room);
        HfSource *sources = NEWN(h->a, HfSource, room);
        for (size_t i = 0; i < h->n_tensors; i++) {
            tensors[i] = h->tensors[i];
            sources[i] = h->sources[i];
        }
        h->tensors = tensors;
        h->sources = sources;
        h->room = room;
    }
    h->tensors[h->n_tensors] = *t;
    h->sources[h->n_tensors++] = *s;
}

void hf_make_tensor(HfFolder *h, const char *name, const float *values, int64_t n)
{
    const ingot_gguf_tensor t = {.name = name,
                                 .type = INGOT_GGUF_F32,
                                 .rank = 1,
                                 .dims = {(uint64_t)n, 1, 1, 1},
                                 .data = values,
                                 .bytes = (size_t)n * sizeof *values};
    add_tensor(h, &t, &(HfSource){.made = values, .has = INGOT_GGUF_F32});
}

static void read_tensor(HfFolder *h, const ingot_safetensors_tensor *from)
{
    static const struct {
        ingot_safetensors_dtype dtype;
        ingot_gguf_type type;
    } types[] = {{INGOT_ST_F32, INGOT_GGUF_F32},
                 {INGOT_ST_F16, INGOT_GGUF_F16},
                 {INGOT_ST_BF16, INGOT_GGUF_BF16}};
    const size_t len = strlen(from->name), tail = strlen(".rotary_emb.inv_freq");
    int i = 0;
    if (h->tied && !strcmp(from->name, "lm_head.weight"))
        return;
    if (len > tail && !strcmp(from->name + len - tail, ".rotary_emb.inv_freq"))
        return; /* older files have the angles, too */
    while (i < 3 && types[i].dtype != from->dtype)
        i++;
    if (i == 3 || from->rank < 1 || from->rank > 2) {
        gguf_fault(h->m, INGOT_UNSUPPORTED, from->name,
                   "a tensor of type %s and rank %zu is not supported: F32, F16 or BF16 of rank 1 "
                   "or 2 are",
                   ingot_safetensors_dtype_name(from->dtype), from->rank);
        return;
    }
    const char *name = our_name(h, from->name);
    const size_t n = from->bytes / (ingot_safetensors_dtype_bits(from->dtype) / 8);
    ingot_gguf_tensor t = {.name = name ? name : from->name,
                           .type = types[i].type,
                           .rank = (int)from->rank,
                           .dims = {from->shape[from->rank - 1], 1, 1, 1},
                           .data = from->data,
                           .bytes = from->bytes};
    if (from->rank == 2)
        t.dims[1] = from->shape[0];
    else
        t.type = INGOT_GGUF_F32;
    if (!n) {
        gguf_fault(h->m, INGOT_INVALID, from->name, "a tensor without elements");
        return;
    }
    const bool gemma = !strncmp(h->arch, "gemma", 5);
    add_tensor(h, &t,
               &(HfSource){.from = from,
                           .name = from->name,
                           .has = types[i].type,
                           .plus_one = gemma && name && from->rank == 1 && strstr(name, "norm")});
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool open_part(HfFolder *h, const char *name)
{
    char why[512];
    const char *path = hf_path(h, name), *fault = mapfile_open(&h->maps[h->n_parts], path);
    if (fault) {
        gguf_fault(h->m, INGOT_IO, NULL, "'%s' of it: %s", name, fault);
        return false;
    }
    const MapFile *map = &h->maps[h->n_parts];
    ingot_safetensors *st =
        ingot_safetensors_open_memory(path, map->data, map->len, why, sizeof why);
    h->parts[h->n_parts++] = st;
    if (!st) {
        gguf_fault(h->m, INGOT_INVALID, NULL, "%s", why);
        return false;
    }
    for (size_t i = 0; i < ingot_safetensors_count(st); i++)
        read_tensor(h, ingot_safetensors_get(st, i));
    return true;
}

bool hf_read_weights(HfFolder *h)
{
    static const char *single[] = {"model.safetensors"};
    const char **names = single;
    int n = 1;
    const Json *index = hf_json(h, "model.safetensors.index.json", false);
    if (h->m->faults || (index && !hf_shards(h, index, &names, &n)))
        return false;
    h->maps = NEWN(h->a, MapFile, n);
    h->parts = NEWN(h->a, ingot_safetensors *, n);
    for (int i = 0; i < n; i++)
        if (!open_part(h, names[i]))
            return false;
    return true;
}

void hf_close_weights(HfFolder *h)
{
    for (size_t i = 0; i < h->n_tensors; i++)
        free(h->sources[i].bytes);
    for (int i = 0; i < h->n_parts; i++) {
        ingot_safetensors_close(h->parts[i]);
        mapfile_close(&h->maps[i]);
    }
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Matrices become the type, or, where their rows are no whole blocks of it, one with smaller
 * blocks. */
bool hf_set_types(HfFolder *h, const char *type)
{
    static const struct {
        const char *name;
        ingot_gguf_type type[3]; /* one after the other, until rows fit */
    } types[] = {
        {"f16", {INGOT_GGUF_F16}},
        {"bf16", {INGOT_GGUF_BF16}},
        {"q8_0", {INGOT_GGUF_Q8_0, INGOT_GGUF_F16}},
        {"q4_0", {INGOT_GGUF_Q4_0, INGOT_GGUF_F16}},
        {"q4_k", {INGOT_GGUF_Q4_K, INGOT_GGUF_Q8_0, INGOT_GGUF_F16}},
    };
    size_t k = 0;
    while (k < sizeof types / sizeof *types && strcmp(types[k].name, type) != 0)
        k++;
    if (k == sizeof types / sizeof *types)
        return false;
    for (size_t i = 0; i < h->n_tensors; i++) {
        ingot_gguf_tensor *t = &h->tensors[i];
        unsigned block = 0, bytes = 0;
        if (!h->sources[i].from || h->sources[i].from->rank != 2)
            continue;
        for (int j = 0; j < 3; j++) {
            t->type = types[k].type[j];
            ingot_gguf_type_name(t->type, &block, &bytes);
            if (t->dims[0] % block == 0)
                break;
        }
        t->bytes = (size_t)(t->dims[0] / block * t->dims[1]) * bytes;
    }
    return true;
}

static void widen(float *to, const unsigned char *from, ingot_gguf_type type, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t u;
        if (type == INGOT_GGUF_F32) {
            memcpy(&to[i], from + 4 * i, 4);
            continue;
        }
        memcpy(&u, from + 2 * i, 2);
        to[i] = type == INGOT_GGUF_F16 ? igrt_f16_to_f32(u) : igrt_bf16_to_f32(u);
    }
}

/* Pages of the file that have been read: they are still in it. */
static void forget(const unsigned char *from, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)from + page - 1) / page * page,
                    last = ((uintptr_t)from + bytes) / page * page;
    if (last > first)
        madvise((void *)first, last - first, MADV_DONTNEED);
}

/* Row by row, so that no more than one is there as f32. */
static void convert(const ingot_gguf_tensor *t, const HfSource *s, float *row, unsigned char *to)
{
    const size_t columns = (size_t)t->dims[0], rows = (size_t)t->dims[1];
    const size_t width = s->has == INGOT_GGUF_F32 ? 4 : 2, bytes = t->bytes / rows;
    const unsigned char *from = s->from->data;
    for (size_t i = 0; i < rows; i++) {
        widen(row, from + i * columns * width, s->has, columns);
        for (size_t k = 0; s->plus_one && k < columns; k++)
            row[k] += 1;
        hf_quantise(t->type, row, columns, to + i * bytes);
    }
    forget(from, s->from->bytes);
}

const void *hf_data(GgufModel *m, const ingot_gguf_tensor *t)
{
    HfFolder *h = m->folder;
    HfSource *s = &h->sources[t - h->tensors];
    if (s->made || (t->type == s->has && !s->plus_one))
        return t->data;
    if (s->bytes)
        return s->bytes;
    const size_t elements = (size_t)(t->dims[0] * t->dims[1]);
    const size_t bytes = t->type == INGOT_GGUF_F32 ? elements * sizeof(float) : t->bytes;
    ingot_gguf_tensor made = *t;
    made.bytes = bytes;
    float *row = malloc((size_t)t->dims[0] * sizeof *row);
    s->bytes = malloc(bytes);
    if (row && s->bytes)
        convert(&made, s, row, s->bytes);
    free(row);
    return s->bytes;
}
