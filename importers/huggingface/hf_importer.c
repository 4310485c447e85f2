/*
 * hf_importer.c - a folder of Hugging Face as an importer: config.json stands for it.
 */
#include <stdlib.h>
#include <string.h>

#include "hf_folder.h"

enum { MOST_TEXT = 1 << 28 };

/* The beginning of a JSON object that names a type of models. */
static bool is_config(const MapFile *map)
{
    static const char key[] = "\"model_type\"";
    size_t at = 0;
    while (at < map->len && strchr(" \t\r\n", map->data[at]) && map->data[at])
        at++;
    if (at == map->len || map->data[at] != '{' || map->len > 1 << 20)
        return false;
    for (; at + sizeof key - 1 <= map->len; at++)
        if (!memcmp(map->data + at, key, sizeof key - 1))
            return true;
    return false;
}

/* ---- files of the folder ----------------------------------------------------------------------
 */

const char *hf_path(HfFolder *h, const char *name)
{
    const char *path = arena_printf(h->a, "%s%s", h->dir, name);
    const char **files = NEWN(h->a, const char *, h->n_files + 1);
    for (int i = 0; i < h->n_files; i++) {
        if (!strcmp(h->files[i], path))
            return h->files[i];
        files[i] = h->files[i];
    }
    files[h->n_files++] = path;
    h->files = files;
    return path;
}

/* Without a NUL in it, and one behind it; NULL, and why. */
static const char *read_text(Arena *a, const char *path, const char **why)
{
    MapFile map;
    char *text = NULL;
    *why = mapfile_open(&map, path);
    if (*why)
        return NULL;
    if (map.len > MOST_TEXT)
        *why = "it is larger than 256 MB";
    else if (memchr(map.data, 0, map.len))
        *why = "it has a NUL byte: it is no text";
    else
        text = memcpy(arena_alloc(a, map.len + 1), map.data, map.len);
    mapfile_close(&map);
    return text;
}

static bool is_there(const char *path)
{
    MapFile map;
    const char *why = mapfile_open(&map, path);
    if (!why)
        mapfile_close(&map);
    return !why || strcmp(why, "no such file") != 0;
}

const char *hf_text(HfFolder *h, const char *name)
{
    const char *why, *path = arena_printf(h->a, "%s%s", h->dir, name);
    return is_there(path) ? read_text(h->a, hf_path(h, name), &why) : NULL;
}

const Json *hf_json(HfFolder *h, const char *name, bool needed)
{
    const char *why = NULL, *path = arena_printf(h->a, "%s%s", h->dir, name);
    if (!needed && !is_there(path))
        return NULL;
    const char *text = read_text(h->a, hf_path(h, name), &why);
    const Json *v = text ? json_read(h->a, text, &why) : NULL;
    if (!v)
        gguf_fault(h->m, INGOT_INVALID, NULL, "'%s' of this folder: %s", name, why);
    return v;
}

/* A plain name, so that nothing outside of the folder is read. */
static bool is_plain(const char *name)
{
    return *name && *name != '.' && !strpbrk(name, "/\\:") && strlen(name) < 256;
}

bool hf_shards(HfFolder *h, const Json *index, const char ***names, int *n)
{
    enum { MOST_PARTS = 1024 };
    const Json *map = json_member(index, "weight_map");
    const char **list = NEWN(h->a, const char *, MOST_PARTS);
    *n = 0;
    *names = list;
    for (const Json *v = map && map->kind == JSON_OBJECT ? map->item : NULL; v; v = v->next) {
        const char *name = json_text(v, "");
        int i = *n; /* names come in runs */
        while (i > 0 && strcmp(list[i - 1], name) != 0)
            i--;
        if (i > 0)
            continue;
        if (!is_plain(name) || *n == MOST_PARTS) {
            gguf_fault(h->m, INGOT_INVALID, NULL, "model.safetensors.index.json: '%.100s' is %s",
                       name,
                       *n == MOST_PARTS ? "one file too many, of at most 1024"
                                        : "no name of a file in this folder");
            return false;
        }
        list[(*n)++] = name;
    }
    if (!*n)
        gguf_fault(h->m, INGOT_INVALID, NULL, "model.safetensors.index.json: it names no files");
    return *n > 0;
}

/* ---- the record -------------------------------------------------------------------------------
 */

static const char *shown(const GgufModel *m, const char *name, char text[GGUF_SHOWN])
{
    const HfFolder *h = m->folder;
    const char *theirs = hf_tensor_name(h, name, text);
    const size_t len = h->arch ? strlen(h->arch) : 0;
    if (!theirs && len && !strncmp(name, h->arch, len) && name[len] == '.')
        theirs = hf_config_name(name + len + 1);
    return theirs ? theirs : name;
}

static void close_folder(void *model)
{
    GgufModel *m = model;
    HfFolder *h = m->folder;
    gguf_close(m);
    hf_close_weights(h);
    arena_free(h->a);
}

static const char *folder_of(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_printf(a, "%.*s", (int)(slash - path + 1), path) : "";
}

static bool read_folder(HfFolder *h, const char *path)
{
    char why[512];
    GgufModel *m = h->m;
    const char *slash = strrchr(path, '/');
    h->config = hf_json(h, slash ? slash + 1 : path, true);
    if (!h->config || !hf_read_config(h) || !hf_read_weights(h))
        return false;
    hf_sort_tensors(h);
    hf_read_vocabulary(h);
    m->tensors = h->tensors;
    m->n_tensors = h->n_tensors;
    if (m->faults)
        return false;
    m->file = hf_header(h, path, why, sizeof why);
    if (!m->file)
        gguf_fault(m, INGOT_INVALID, NULL, "%s", why);
    return m->file && gguf_start(m);
}

static void *open_folder(ingot_context *c, const char *path)
{
    GgufModel *m = calloc(1, sizeof *m);
    ingot_set_file(c, NULL);
    ingot_set_origin(c, NULL, NULL);
    if (!m) {
        ingot_error(c, INGOT_IO, "out of memory");
        return NULL;
    }
    Arena *a = arena_new();
    HfFolder *h = NEW(a, HfFolder);
    *h = (HfFolder){.a = a, .m = m, .dir = folder_of(a, path)};
    m->c = c;
    m->folder = h;
    m->data = hf_data;
    m->shown = shown;
    ingot_set_file(c, path);
    if (read_folder(h, path))
        return m;
    sb_free(&h->keys);
    close_folder(m);
    return NULL;
}

static bool build_folder(void *model, const ingot_model_options *options)
{
    GgufModel *m = model;
    if (options && options->weights_type && !hf_set_types(m->folder, options->weights_type)) {
        ingot_error(m->c, INGOT_USAGE, "--weights-type %s: f16, bf16, q8_0, q4_0 or q4_k is wanted",
                    options->weights_type);
        return false;
    }
    return gguf_build(m, options);
}

static const char *file_of(const void *model, int i)
{
    const HfFolder *h = ((const GgufModel *)model)->folder;
    return i < h->n_files ? h->files[i] : NULL;
}

static bool mention(void (*each)(void *user, Span location), void *user, const char *name)
{
    each(user, (Span){(const uint8_t *)name, strlen(name)});
    return true;
}

/* All that open_folder() may read beside config.json. */
static bool mentions(const MapFile *map, const char *dir, const char *own,
                     void (*each)(void *user, Span location), void *user)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "tokenizer.json", "tokenizer_config.json",
                                        "chat_template.jinja"};
    const char *why;
    (void)map;
    (void)own;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        mention(each, user, names[i]);
    Arena *a = arena_new();
    const char *text = read_text(a, arena_printf(a, "%s%s", dir, names[1]), &why);
    const Json *list = json_member(text ? json_read(a, text, &why) : NULL, "weight_map"),
               *before = NULL;
    for (const Json *v = list ? list->item : NULL; v; before = v, v = v->next)
        if (is_plain(json_text(v, "")) && (!before || strcmp(json_text(before, ""), v->text) != 0))
            mention(each, user, v->text);
    arena_free(a);
    return true;
}

static const char *const endings[] = {NULL};

const Importer importer_huggingface = {
    .name = "Hugging Face",
    .endings = endings,
    .is = is_config,
    .open = open_folder,
    .close = close_folder,
    .input_count = gguf_inputs,
    .input = gguf_input,
    .output_count = gguf_one,
    .output = gguf_output,
    .build = build_folder,
    .file = file_of,
    .mentions = mentions,
    .precision = INGOT_PRECISION_Q8,
    .has_text = gguf_has_text,
    .caches = true,
    .set_slots = gguf_set_slots,
    .retypes = true,
};
