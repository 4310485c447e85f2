/*
 * gguf_importer.c - GGUF as an importer: the record, and what --dim may say.
 *
 * A file has weights and facts, and no network: that is built (gguf_decoder.c), with
 *
 *     ids     i32 [n]            tokens that come, n of them in one run
 *     past    how many tokens the states hold: keys and values of each layer
 *     logits  f32 [vocabulary]   of the token that comes after them
 *
 * and, where the model may have further functions, decode(): the same for one token, whose products
 * are of a row, over the same weights and states.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_model.h"
#include "gguf_vocab.h"

enum { CHUNK = 128, CONTEXT = 4096 }; /* without --dim; a context is no longer than the model's */

static bool is_gguf(const MapFile *map)
{
    return map->len >= 4 && !memcmp(map->data, "GGUF", 4);
}

void gguf_close(GgufModel *m)
{
    ingot_gguf_close(m->file);
    free(m->layers);
    free((void *)m->weights);
    free(m->vocabulary);
    free(m);
}

static void *open_model(ingot_context *c, const char *path)
{
    char why[512];
    GgufModel *m = calloc(1, sizeof *m);
    ingot_set_file(c, NULL);
    ingot_set_origin(c, NULL, NULL);
    ingot_gguf *file = m ? ingot_gguf_open(path, why, sizeof why) : NULL;
    if (!file) {
        ingot_error(c, INGOT_INVALID, "%s", m ? why : "out of memory");
        free(m);
        return NULL;
    }
    m->c = c;
    m->file = file;
    m->tensors = ingot_gguf_get(file, 0);
    m->n_tensors = ingot_gguf_count(file);
    ingot_set_file(c, path);
    if (gguf_start(m))
        return m;
    gguf_close(m);
    return NULL;
}

/* NAME, or NAME_3 of one of several slots. */
static const char *slot_name(const GgufModel *m, const char *name, int slot, char text[32])
{
    if (m->slots == 1)
        return name;
    snprintf(text, 32, "%s_%d", name, slot);
    return text;
}

void gguf_set_slots(void *model, int slots)
{
    GgufModel *m = model;
    m->slots = slots;
    for (int i = 0; i < slots; i++) {
        const char *name = slot_name(m, "ids", i, m->in_name[i]);
        m->in[i] = (ingot_model_io){.name = name,
                                    .value = name,
                                    .dtype = INGOT_I32,
                                    .rank = 1,
                                    .dims = {-1},
                                    .dim_names = {"n"}};
    }
    m->out = (ingot_model_io){
        .name = "logits",
        .value = "logits",
        .dtype = INGOT_F32,
        .rank = slots > 1 ? 2 : 1,
        .dims = {slots > 1 ? slots : m->facts.vocabulary, slots > 1 ? m->facts.vocabulary : 0}};
}

bool gguf_start(GgufModel *m)
{
    if (gguf_read_facts(m))
        gguf_read_tensors(m);
    if (m->faults)
        return false;
    char lacks[GGUF_VOCAB_WHY] = "";
    if (!m->lacks)
        m->vocabulary = gguf_vocabulary(m->file, &m->vocabulary_bytes, lacks);
    import_hide_controls(lacks); /* some of the file's text is in it */
    if (!m->vocabulary)
        ingot_warning(m->c, "the bundle takes tokens, not text: %s", m->lacks ? m->lacks : lacks);
    else if (*lacks)
        ingot_warning(m->c, "its chat template does not run here (%s): chats go on with the text",
                      lacks);
    gguf_set_slots(m, 1);
    return true;
}

static void close_model(void *model)
{
    gguf_close(model);
}

int gguf_inputs(const void *m)
{
    return ((const GgufModel *)m)->slots;
}

int gguf_one(const void *m)
{
    (void)m;
    return 1;
}

const ingot_model_io *gguf_input(const void *m, int i)
{
    return &((const GgufModel *)m)->in[i];
}

const ingot_model_io *gguf_output(const void *m, int i)
{
    (void)i;
    return &((const GgufModel *)m)->out;
}

static const char *file(const void *m, int i)
{
    return ingot_gguf_file(((const GgufModel *)m)->file, (size_t)i);
}

bool gguf_has_text(const void *m)
{
    return ((const GgufModel *)m)->vocabulary != NULL;
}

/* Sizes of a run: tokens of one, of one at least, and those before them. */
typedef struct {
    int64_t least, most, past;
} GgufSizes;

/* Sizes that options say; false after an error. */
static bool read_sizes(GgufModel *m, const ingot_model_options *o, GgufSizes *z)
{
    int64_t most = m->facts.context < CONTEXT ? m->facts.context : CONTEXT;
    bool good = true, told = false;
    z->least = 1;
    z->most = most < 8 * CHUNK ? (most + 7) / 8 : CHUNK;
    for (int i = 0; o && i < o->n_dims; i++) {
        const ingot_model_dim *d = &o->dims[i];
        if (!strcmp(d->name, "n") && !d->same_as && d->lo >= 1) {
            z->least = d->lo;
            z->most = d->hi;
        } else if (!strcmp(d->name, "past") && !d->same_as && d->lo == 0 && d->hi >= 1) {
            most = d->hi;
            told = true;
        } else {
            ingot_error(
                m->c, INGOT_USAGE,
                "--dim %s: a language model has --dim n=1..%d (tokens of one run) and --dim "
                "past=0..%d (tokens before them)",
                d->name, CHUNK, CONTEXT);
            good = false;
        }
    }
    if (o && o->cache == INGOT_I8 && m->facts.head % GGUF_CACHE_BLOCK) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "--kv q8: a head has %lld elements, which are no whole blocks of %d; use --kv "
                    "f16",
                    (long long)m->facts.head, GGUF_CACHE_BLOCK);
        good = false;
    }
    if (o && o->n_binds) {
        ingot_error(m->c, INGOT_USAGE,
                    "--bind %s: ids of tokens that are known when compiling are "
                    "not supported",
                    o->binds[0].name);
        good = false;
    }
    if (!told) /* the last run fills the context */
        most = most > z->most ? most - z->most : 1;
    z->past = most;
    return good;
}

/* One function: up to `most` tokens of each slot, `least` at least; of several slots some may have
 * none. */
static void make_function(GgufModel *m, GgufSlot slot[], int64_t least, int64_t most)
{
    char name[32];
    ingot_dim *all = ingot_dim_const(m->c, 0);
    for (int i = 0; i < m->slots; i++) {
        ingot_dim *n = ingot_dim_const(m->c, most);
        if (m->slots > 1)
            n = ingot_dim_var(m->c, slot_name(m, most > 1 ? "n" : "has", i, name), 0, most);
        else if (least < most)
            n = ingot_dim_var(m->c, "n", least, most);
        all = ingot_dim_add(m->c, all, n);
        slot[i].ids = ingot_input(m->c, slot_name(m, "ids", i, name), INGOT_I32, 1, &n);
    }
    ingot_output(m->c, "logits", gguf_decoder(m, slot, m->slots));
}

bool gguf_build(void *model, const ingot_model_options *options)
{
    GgufModel *m = model;
    GgufSlot slot[GGUF_SLOTS];
    GgufSizes z;
    char name[32];
    if (!read_sizes(m, options, &z))
        return false;
    const size_t states = 4 * (size_t)(m->facts.layers * m->slots) * sizeof(ingot_tensor *);
    m->cache = (ingot_tensor **)ingot_alloc(m->c, states);
    memset((void *)m->cache, 0, states);
    if (m->vocabulary)
        ingot_set_vocabulary(m->c, m->vocabulary, m->vocabulary_bytes);
    m->cache_type = options && options->cache ? options->cache : INGOT_F16;
    for (int i = 0; i < m->slots; i++)
        slot[i].past = ingot_dim_var(m->c, slot_name(m, "past", i, name), 0, z.past);
    make_function(m, slot, z.least, z.most);
    if (z.most > 1 && (z.least < z.most || m->slots > 1) && options && options->functions) {
        ingot_function(m->c, "decode");
        make_function(m, slot, 1, 1);
    }
    ingot_set_origin(m->c, NULL, NULL);
    return !ingot_error_count(m->c);
}

static const char *const endings[] = {".gguf", NULL};

const Importer importer_gguf = {
    .name = "GGUF",
    .endings = endings,
    .is = is_gguf,
    .open = open_model,
    .close = close_model,
    .input_count = gguf_inputs,
    .input = gguf_input,
    .output_count = gguf_one,
    .output = gguf_output,
    .build = gguf_build,
    .set_slots = gguf_set_slots,
    .file = file,
    .precision = INGOT_PRECISION_Q8,
    .has_text = gguf_has_text,
    .caches = true,
};
