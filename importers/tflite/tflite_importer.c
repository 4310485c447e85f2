/*
 * tflite_importer.c - TensorFlow Lite files (LiteRT, .tflite) as an importer: the record, names of
 * inputs and outputs, and what --dim, --bind and --entry may say.
 *
 * A signature is a network that has a name, and names for what it takes and gives. A file without
 * one is its first graph, whose tensors name the inputs and outputs. A size that the file leaves
 * free (-1 in the signature of a shape) is the number that stands in its shape, which is most often
 * 1, unless --dim says another one.
 */
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
        ingot_error(m->c, INGOT_UNSUPPORTED, "'%.100s' is %s of rank %zu: that is not supported",
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

static bool describe_all(TfliteModel *m)
{
    const TfliteEntry *e = &m->entries[m->chosen];
    const ingot_tflite_graph *g = ingot_tflite_graph_get(m->file, e->graph);
    const ingot_tflite_signature *s = e->names;
    bool good = true;
    m->n_in = m->n_out = 0;
    m->in = ingot_alloc(m->c, (g->in.n + 1) * sizeof *m->in);
    m->out = ingot_alloc(m->c, (g->out.n + 1) * sizeof *m->out);
    for (size_t i = 0; i < g->in.n; i++, m->n_in++) {
        const int32_t k = ingot_tflite_i32(&g->in, i);
        const char *name = s ? name_in(s->in, s->n_in, k) : NULL;
        name = name ? name : g->tensors[k].name[0] ? g->tensors[k].name : "input";
        good &= describe(m, &g->tensors[k], name_once(m, m->in, m->n_in, name), &m->in[m->n_in]);
    }
    for (size_t i = 0; i < g->out.n; i++, m->n_out++) {
        const int32_t k = ingot_tflite_i32(&g->out, i);
        const char *name = s ? name_in(s->out, s->n_out, k) : NULL;
        name = name ? name : g->tensors[k].name[0] ? g->tensors[k].name : "output";
        good &=
            describe(m, &g->tensors[k], name_once(m, m->out, m->n_out, name), &m->out[m->n_out]);
    }
    return good;
}

static void list_entries(TfliteModel *m)
{
    const ingot_tflite_signature *s;
    while (ingot_tflite_signature_get(m->file, (size_t)m->n_entries))
        m->n_entries++;
    m->entries = ingot_alloc(m->c, ((size_t)m->n_entries + 1) * sizeof *m->entries);
    for (int i = 0; (s = ingot_tflite_signature_get(m->file, (size_t)i)); i++)
        m->entries[i] = (TfliteEntry){s->key, s->graph, s};
    if (!m->n_entries)
        m->entries[m->n_entries++] = (TfliteEntry){"main", 0, NULL};
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
    ingot_set_file(c, path);
    list_entries(m);
    if (describe_all(m))
        return m;
    close_model(m);
    return NULL;
}

static int input_count(const void *m)
{
    return ((const TfliteModel *)m)->n_in;
}

static const ingot_model_io *input(const void *m, int i)
{
    return &((const TfliteModel *)m)->in[i];
}

static int output_count(const void *m)
{
    return ((const TfliteModel *)m)->n_out;
}

static const ingot_model_io *output(const void *m, int i)
{
    return &((const TfliteModel *)m)->out[i];
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
    describe_all(m);
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
    for (int i = 0; i < m->n_in; i++)
        for (int a = 0; a < m->in[i].rank; a++)
            if (m->in[i].dim_names[a] && !strcmp(m->in[i].dim_names[a], name)) {
                *size = m->in[i].usual[a];
                return true;
            }
    return false;
}

static bool check_dims(TfliteModel *m, const ingot_model_options *o)
{
    char list[400] = "there is none";
    int64_t size;
    bool good = true;
    size_t len = 0;
    for (int i = 0; i < m->n_in; i++)
        for (int a = 0; a < m->in[i].rank; a++)
            if (m->in[i].dim_names[a] && len < sizeof list - 1)
                len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                        len ? ", " : "there is ", m->in[i].dim_names[a]);
    for (int i = 0; o && i < o->n_dims; i++)
        if (!free_dim(m, o->dims[i].name, &size) ||
            (o->dims[i].same_as && !free_dim(m, o->dims[i].same_as, &size))) {
            ingot_error(m->c, INGOT_USAGE, "--dim %s: no free dim has that name: %s",
                        o->dims[i].name, list);
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

static bool build(void *model, const ingot_model_options *options)
{
    TfliteModel *m = model;
    ingot_set_origin(m->c, NULL, NULL);
    if (!check_dims(m, options) || !tflite_check(m))
        return false;
    ingot_tensor **in = ingot_alloc(m->c, ((size_t)m->n_in + 1) * sizeof *in);
    ingot_tensor **out = ingot_alloc(m->c, ((size_t)m->n_out + 1) * sizeof *out);
    for (int i = 0; i < m->n_in; i++)
        in[i] = declare(m, options, &m->in[i]);
    tflite_build_graph(m, m->entries[m->chosen].graph, in, out);
    ingot_set_origin(m->c, NULL, NULL);
    tflite_end_variables(m);
    for (int i = 0; i < m->n_out; i++)
        ingot_output(m->c, m->out[i].name, out[i]);
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
    .set_ops = set_ops,
    .op = tflite_op_at,
};
