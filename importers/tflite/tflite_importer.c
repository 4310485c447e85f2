/*
 * tflite_importer.c - TensorFlow Lite files (LiteRT, .tflite) as an importer: the record, names of
 * inputs and outputs, and what --dim, --bind and --entry may say.
 *
 * A signature is a network that has a name, and names for what it takes and gives: the first, or
 * the one that --entry names, is run(), and others are functions beside it over the same variables.
 * A file without one is its first graph, whose tensors name the inputs and outputs. A size that the
 * file leaves free (-1 in the signature of a shape) is the number that stands in its shape, which
 * is most often 1, unless --dim says another one.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tflite_model.h"

static bool is_tflite(const MapFile *map)
{
    return map->len >= 8 && !memcmp(map->data + 4, "TFL3", 4);
}

static void close_model(void *model)
{
    TfliteModel *m = model;
    ingot_tflite_close(m->file);
    external_close(&m->external);
    free(m->path);
    free(m);
}

/* ---- what goes in and out -------------------------------------------------------------------- */

static const char *name_in(const ingot_tflite_name *names, size_t n, int32_t tensor)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].tensor == (size_t)tensor && names[i].name[0])
            return names[i].name;
    return NULL;
}

/* Another name where `name` is one of those before: y_2, y_3. */
static const char *name_once(TfliteModel *m, const ingot_model_io *all, int n, const char *name)
{
    const size_t room = strlen(name) + 24;
    char *other = ingot_alloc(m->c, room);
    snprintf(other, room, "%s", name);
    for (int k = 2, i = 0; i < n; i++)
        if (!strcmp(all[i].name, other)) {
            snprintf(other, room, "%s_%d", name, k++);
            i = -1;
        }
    return other;
}

static bool describe(TfliteModel *m, const ingot_tflite_tensor *t, const char *name,
                     ingot_model_io *io)
{
    *io = (ingot_model_io){.name = name, .value = t->name, .rank = (int)t->shape.n};
    if (t->shape.n > INGOT_MAX_RANK || !tflite_dtype(t->type, &io->dtype)) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "'%.100s' is %s of rank %zu, which is not supported",
                    name, ingot_tflite_type_name((int)t->type, NULL), t->shape.n);
        return false;
    }
    for (int a = 0; a < io->rank; a++) {
        io->dims[a] = ingot_tflite_i32(&t->shape, (size_t)a);
        if (!t->signature.n || ingot_tflite_i32(&t->signature, (size_t)a) >= 0)
            continue;
        const size_t room = strlen(name) + 16;
        char *dim = ingot_alloc(m->c, room);
        snprintf(dim, room, "%s_%d", name, a);
        io->usual[a] = io->dims[a];
        io->dims[a] = -1;
        io->dim_names[a] = dim;
    }
    return true;
}

static ingot_model_io *describe_some(TfliteModel *m, const TfliteEntry *e, bool inputs, int *n)
{
    const ingot_tflite_graph *g = ingot_tflite_graph_get(m->file, e->graph);
    const ingot_tflite_signature *s = e->names;
    const ingot_tflite_list *list = inputs ? &g->in : &g->out;
    ingot_model_io *io = ingot_alloc(m->c, (list->n + 1) * sizeof *io);
    bool good = true;
    for (*n = 0; (size_t)*n < list->n; ++*n) {
        const int32_t k = ingot_tflite_i32(list, (size_t)*n);
        const ingot_tflite_tensor *t = &g->tensors[k];
        const char *name = !s       ? NULL
                           : inputs ? name_in(s->in, s->n_in, k)
                                    : name_in(s->out, s->n_out, k);
        name = name ? name : t->name[0] ? t->name : inputs ? "input" : "output";
        good &= describe(m, t, name_once(m, io, *n, name), &io[*n]);
    }
    return good ? io : NULL;
}

static bool describe_entry(TfliteModel *m, TfliteEntry *e)
{
    if (!e->in) {
        e->in = describe_some(m, e, true, &e->n_in);
        e->out = describe_some(m, e, false, &e->n_out);
    }
    return e->in && e->out;
}

static void list_entries(TfliteModel *m)
{
    const ingot_tflite_signature *s;
    while (ingot_tflite_signature_get(m->file, (size_t)m->n_entries))
        m->n_entries++;
    m->entries = ingot_alloc(m->c, ((size_t)m->n_entries + 1) * sizeof *m->entries);
    for (int i = 0; (s = ingot_tflite_signature_get(m->file, (size_t)i)); i++)
        m->entries[i] = (TfliteEntry){.name = s->key, .graph = s->graph, .names = s};
    if (!m->n_entries)
        m->entries[m->n_entries++] = (TfliteEntry){.name = "main"};
}

static void *open_model(ingot_context *c, const char *path)
{
    char why[512];
    TfliteModel *m = calloc(1, sizeof *m);
    ingot_set_file(c, NULL);
    ingot_set_origin(c, NULL, NULL);
    ingot_tflite *file = m ? ingot_tflite_open(path, why, sizeof why) : NULL;
    if (!file) {
        ingot_error(c, INGOT_INVALID, "%s", m ? why : "out of memory");
        free(m);
        return NULL;
    }
    m->c = c;
    m->file = file;
    m->path = strdup(path);
    ingot_set_file(c, path);
    list_entries(m);
    if (m->path && describe_entry(m, &m->entries[0]))
        return m;
    close_model(m);
    return NULL;
}

static const TfliteEntry *chosen(const void *model)
{
    const TfliteModel *m = model;
    return &m->entries[m->chosen];
}

static int input_count(const void *m)
{
    return chosen(m)->n_in;
}

static const ingot_model_io *input(const void *m, int i)
{
    return &chosen(m)->in[i];
}

static int output_count(const void *m)
{
    return chosen(m)->n_out;
}

static const ingot_model_io *output(const void *m, int i)
{
    return &chosen(m)->out[i];
}

static const char *entry(const void *model, int i)
{
    const TfliteModel *m = model;
    return i < m->n_entries ? m->entries[i].name : NULL;
}

static void set_entry(void *model, int i)
{
    TfliteModel *m = model;
    m->chosen = i;
    m->alone = true;
    describe_entry(m, &m->entries[i]);
}

bool tflite_wanted(const TfliteModel *m, int i)
{
    return i == m->chosen || !m->alone;
}

static const char *file(const void *model, int i)
{
    const TfliteModel *m = model;
    return i ? external_path(m->external, i - 1) : m->path;
}

static bool set_ops(void *model, const ingot_model_op *ops, int n)
{
    TfliteModel *m = model;
    m->ops = ops;
    m->n_ops = n;
    return true;
}

static bool check(void *model)
{
    return tflite_check(model);
}

/* ---- building -------------------------------------------------------------------------------- */

static const ingot_model_dim *option_of(const ingot_model_options *o, const char *name)
{
    for (int i = o ? o->n_dims : 0; i-- > 0;)
        if (!strcmp(o->dims[i].name, name))
            return &o->dims[i];
    return NULL;
}

/* Does some input have a free dim of that name? Its number in the file's shape then. */
static bool free_dim(const TfliteModel *m, const char *name, int64_t *size)
{
    for (int k = 0; k < m->n_entries; k++)
        for (int i = 0; m->entries[k].in && i < m->entries[k].n_in; i++) {
            const ingot_model_io *io = &m->entries[k].in[i];
            for (int a = 0; a < io->rank; a++)
                if (io->dim_names[a] && !strcmp(io->dim_names[a], name)) {
                    *size = io->usual[a];
                    return true;
                }
        }
    return false;
}

/* "there is image_0, x_1", of those that are built. */
static const char *free_dims(const TfliteModel *m, char *list, size_t room)
{
    size_t len = 0;
    snprintf(list, room, "there is none");
    for (int k = 0; k < m->n_entries; k++)
        for (int i = 0; m->entries[k].in && i < m->entries[k].n_in; i++) {
            const ingot_model_io *io = &m->entries[k].in[i];
            for (int a = 0; a < io->rank; a++)
                if (io->dim_names[a] && len < room - 1)
                    len += (size_t)snprintf(list + len, room - len, "%s%s",
                                            len ? ", " : "there is ", io->dim_names[a]);
        }
    return list;
}

static bool check_dims(TfliteModel *m, const ingot_model_options *o)
{
    char list[400];
    int64_t size;
    bool good = true;
    for (int i = 0; o && i < o->n_dims; i++)
        if (!free_dim(m, o->dims[i].name, &size) ||
            (o->dims[i].same_as && !free_dim(m, o->dims[i].same_as, &size))) {
            ingot_error(m->c, INGOT_USAGE, "--dim %s: no free dim has that name: %s",
                        o->dims[i].name, free_dims(m, list, sizeof list));
            good = false;
        } else if (!o->dims[i].same_as && o->dims[i].lo < 0) {
            ingot_error(m->c, INGOT_USAGE, "--dim %s: a size is never less than 0",
                        o->dims[i].name);
            good = false;
        }
    return good;
}

/* Several steps, for one dim may be said to be another one. */
static ingot_dim *dim_named(TfliteModel *m, const ingot_model_options *o, const char *name)
{
    int64_t size = 1;
    const ingot_model_dim *d = option_of(o, name);
    for (int i = 0; d && d->same_as && i < o->n_dims; i++) {
        name = d->same_as;
        d = option_of(o, name);
    }
    if (!d || d->same_as) {
        free_dim(m, name, &size);
        return ingot_dim_const(m->c, size);
    }
    return d->lo == d->hi ? ingot_dim_const(m->c, d->lo) : ingot_dim_var(m->c, name, d->lo, d->hi);
}

static ingot_tensor *declare(TfliteModel *m, const ingot_model_options *o, const ingot_model_io *io)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0; a < io->rank; a++)
        dims[a] = io->dims[a] >= 0 ? ingot_dim_const(m->c, io->dims[a])
                                   : dim_named(m, o, io->dim_names[a]);
    ingot_tensor *x = ingot_input(m->c, io->name, io->dtype, io->rank, dims);
    for (int i = 0; o && i < o->n_binds; i++)
        if (!strcmp(o->binds[i].name, io->name)) {
            const ingot_model_bind *b = &o->binds[i];
            return ingot_data(m->c, io->name, b->dtype, b->rank, b->dims, b->bytes);
        }
    return x;
}

static void build_entry(TfliteModel *m, const TfliteEntry *e, const ingot_model_options *o)
{
    ingot_tensor **in = ingot_alloc(m->c, ((size_t)e->n_in + 1) * sizeof *in);
    ingot_tensor **out = ingot_alloc(m->c, ((size_t)e->n_out + 1) * sizeof *out);
    for (int i = 0; i < e->n_in; i++)
        in[i] = declare(m, o, &e->in[i]);
    tflite_begin_variables(m);
    tflite_build_graph(m, e->graph, in, out);
    ingot_set_origin(m->c, NULL, NULL);
    tflite_end_variables(m);
    for (int i = 0; i < e->n_out; i++)
        ingot_output(m->c, e->out[i].name, out[i]);
}

/* The key of signature i as the name of a function: small letters, others become _. Where the
 * interface of every bundle has that name (run, init), or a signature before: with its number. */
static const char *function_of(TfliteModel *m, int i)
{
    enum { MOST = 31, ROOM = 48 };
    const char *key = m->entries[i].name;
    char *name = ingot_alloc(m->c, ROOM);
    size_t n = 0;
    for (; key[n] && n < MOST; n++)
        name[n] = (char)(isalnum((unsigned char)key[n]) ? tolower((unsigned char)key[n]) : '_');
    bool good = ingot_function_name(name);
    for (int k = 1; k < i; k++)
        good &= strcmp(m->entries[k].function, name) != 0;
    const size_t end = n > MOST - 4 ? MOST - 4 : n;
    if (!good)
        snprintf(name + end, ROOM - end, "_%d", i);
    return m->entries[i].function = name;
}

static bool build(void *model, const ingot_model_options *options)
{
    TfliteModel *m = model;
    const bool all = !m->alone && options && options->functions;
    bool good = true;
    ingot_set_origin(m->c, NULL, NULL);
    for (int i = 0; i < m->n_entries; i++)
        if (all)
            good &= describe_entry(m, &m->entries[i]);
    if (!good || !check_dims(m, options) || !tflite_check(m))
        return false;
    m->rounding = options ? options->rounding : INGOT_ROUNDING_REFERENCE;
    m->string_bytes =
        options && options->string_bytes > 0 ? options->string_bytes : INGOT_STRING_BYTES;
    build_entry(m, chosen(m), options);
    for (int i = 1; all && i < m->n_entries && !ingot_error_count(m->c); i++) {
        ingot_function(m->c, function_of(m, i));
        build_entry(m, &m->entries[i], options);
    }
    return !ingot_error_count(m->c);
}

static const char *const endings[] = {".tflite", NULL};

const Importer importer_tflite = {
    .name = "TensorFlow Lite",
    .endings = endings,
    .is = is_tflite,
    .open = open_model,
    .close = close_model,
    .input_count = input_count,
    .input = input,
    .output_count = output_count,
    .output = output,
    .build = build,
    .check = check,
    .entry = entry,
    .set_entry = set_entry,
    .file = file,
    .mentions = tflite_mentions,
    .set_ops = set_ops,
    .op = tflite_op_at,
};
