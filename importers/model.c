/*
 * model.c - a model of any format: who imports it, and what is the same for all importers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "importer.h"

struct ingot_model {
    const Importer *by;
    void *it; /* what the importer opened */
    ingot_context *c;
    char *path;
    int slots; /* that were asked for; 0: none were */
};

#define IMPORTER(name) &importer_##name,
const Importer *const importers[] = {
#include "importers.def"
    NULL};
#undef IMPORTER

const Importer *importer_of(const MapFile *map)
{
    for (int i = 0; importers[i]; i++)
        if (!importers[i]->is || importers[i]->is(map))
            return importers[i];
    return NULL;
}

const Importer *ingot_model_importer(const ingot_model *m)
{
    return m->by;
}

ingot_context *ingot_model_context(const ingot_model *m)
{
    return m->c;
}

void *ingot_model_opened(const ingot_model *m)
{
    return m->it;
}

void import_hide_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void import_error(const ImportSink *sink, const char *fmt, ...)
{
    if (!sink || !sink->fn)
        return;
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    import_hide_controls(line);
    if ((size_t)n >= sizeof line)
        memcpy(line + sizeof line - 4, "...", 4);
    sink->fn(sink->user, line);
}

char *ingot_model_path(const char *path)
{
    static const char config[] = "/config.json";
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *file = malloc(n + sizeof config);
    if (!file)
        return NULL;
    memcpy(file, path, n);
    memcpy(file + n, config, sizeof config);
    MapFile map = {0};
    const bool folder = !stat(path, &st) && S_ISDIR(st.st_mode) && !mapfile_open(&map, file);
    if (!folder || !importer_of(&map)->is) /* nobody's: the folder is told of */
        strcpy(file, path);
    mapfile_close(&map);
    return file;
}

/* What cannot be mapped is the last importer's to tell of: a folder, a file that is not there. */
static const Importer *importer_at(const char *path)
{
    MapFile map;
    const char *why = mapfile_open(&map, path);
    const Importer *by = importer_of(&map);
    if (!why)
        mapfile_close(&map);
    return by;
}

ingot_model *ingot_model_open(ingot_context *c, const char *path)
{
    char *name = ingot_model_path(path);
    const Importer *by = importer_at(name ? name : path);
    ingot_model *m = calloc(1, sizeof *m);
    if (!by || !m || !name) {
        ingot_set_file(c, NULL);
        ingot_error(c, by ? INGOT_IO : INGOT_INVALID, "%s: %s", path,
                    by ? "out of memory" : "no importer knows such files");
    } else {
        *m = (ingot_model){by, by->open(c, name), c, name, 0};
        if (m->it)
            return m;
    }
    free(name);
    free(m);
    return NULL;
}

void ingot_model_close(ingot_model *m)
{
    if (!m)
        return;
    m->by->close(m->it);
    free(m->path);
    free(m);
}

/* An option that this format has nothing for. */
static bool nothing_for(const ingot_model *m, const char *option, const char *what)
{
    ingot_set_origin(m->c, NULL, NULL);
    ingot_error(m->c, INGOT_USAGE, "%s: %s files have no %s", option, m->by->name, what);
    return false;
}

ingot_precision ingot_model_precision(const ingot_model *m)
{
    return m->by->precision;
}

bool ingot_model_set_entry(ingot_model *m, const char *name)
{
    char list[512] = "";
    const char *entry;
    if (!m->by->entry)
        return nothing_for(m, "--entry", "networks of several names");
    for (int i = 0; (entry = m->by->entry(m->it, i)); i++) {
        if (!strcmp(entry, name)) {
            m->by->set_entry(m->it, i);
            return true;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s'%s'", i ? ", " : "", entry);
    }
    ingot_set_origin(m->c, NULL, NULL);
    ingot_error(m->c, INGOT_USAGE, "there is no network '%s'; there are: %s", name, list);
    return false;
}

const char *ingot_model_file(const ingot_model *m, int i)
{
    return m->by->file ? m->by->file(m->it, i) : i ? NULL : m->path;
}

int ingot_model_input_count(const ingot_model *m)
{
    return m->by->input_count(m->it);
}

const ingot_model_io *ingot_model_input(const ingot_model *m, int i)
{
    return m->by->input(m->it, i);
}

int ingot_model_output_count(const ingot_model *m)
{
    return m->by->output_count(m->it);
}

const ingot_model_io *ingot_model_output(const ingot_model *m, int i)
{
    return m->by->output(m->it, i);
}

bool ingot_model_set_ops(ingot_model *m, const ingot_model_op *ops, int n)
{
    if (m->by->set_ops)
        return m->by->set_ops(m->it, ops, n);
    return !n || nothing_for(m, "--op", "operators that a function of yours could be");
}

bool ingot_model_save(ingot_model *m, OtherWeight *other, void *user,
                      bool (*put)(void *user, const void *bytes, size_t n), void *out)
{
    return m->by->save ? m->by->save(m->it, other, user, put, out)
                       : nothing_for(m, "merge", "weights that are trained");
}

bool ingot_model_set_states(ingot_model *m, const ingot_model_state *states, int n)
{
    if (m->by->set_states)
        return m->by->set_states(m->it, states, n);
    return !n || nothing_for(m, "--state", "inputs and outputs that could be one tensor");
}

void ingot_model_set_slots(ingot_model *m, int n)
{
    m->slots = n;
    if (m->by->set_slots)
        m->by->set_slots(m->it, n);
}

bool ingot_model_has_text(const ingot_model *m)
{
    return m->by->has_text && m->by->has_text(m->it);
}

bool ingot_model_has_check(const ingot_model *m)
{
    return m->by->check != NULL;
}

bool ingot_model_check(ingot_model *m)
{
    return !m->by->check || m->by->check(m->it);
}

bool ingot_model_builds_rest(const ingot_model *m)
{
    return m->by->builds_rest;
}

bool ingot_model_build(ingot_model *m, const ingot_model_options *options)
{
    const bool kept = options && options->cache;
    if ((kept || m->slots) && !m->by->caches) {
        ingot_error(m->c, INGOT_USAGE,
                    "%s: %s files have no caches of keys and values that an option is for: what "
                    "they compute says how their states are kept",
                    kept ? "--kv" : "--slots", m->by->name);
        return false;
    }
    if (options && options->weights_type && !m->by->retypes) {
        ingot_error(m->c, INGOT_USAGE,
                    "--weights-type: %s files have weights in the types that they have; folders of "
                    "Hugging Face are quantised",
                    m->by->name);
        return false;
    }
    return m->by->build(m->it, options);
}
