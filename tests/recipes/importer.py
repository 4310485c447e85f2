"""Add an importer: a text format whose files have several networks, with values in files of a form of its own."""

from checks import STRICT, call, compilers, make

HEADINGS = ("Add an importer",)
PROGRAMS = ("ingot",)

# tiny
# network double x 3 2 2 2       y[rows, 3] = x[rows, 3] * {2, 2, 2}
IMPORTER = r"""/* tiny.c - an importer: networks that multiply, as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"
#include "ingot_ops.h"

enum { MOST = 8 };

typedef struct {
    char name[32], input[32];
    int64_t size;
    float weight[MOST];
    ingot_model_io in, out;
} TinyNet;

typedef struct {
    ingot_context *c;
    int n, chosen;
    TinyNet net[MOST];
} TinyModel;

static bool is_tiny(const MapFile *map)
{
    return map->len > 5 && !memcmp(map->data, "tiny\n", 5);
}

static bool network(TinyNet *net, const char *line)
{
    int at;
    if (sscanf(line, "network %31s %31s %lld%n", net->name, net->input, (long long *)&net->size, &at) != 3 ||
        net->size < 1 || net->size > MOST)
        return false;
    for (int i = 0, more; i < net->size; i++, at += more)
        if (sscanf(line + at, "%f%n", &net->weight[i], &more) != 1)
            return false;
    net->in = (ingot_model_io){.name = net->input, .value = net->input, .dtype = INGOT_F32, .rank = 2,
                               .dims = {-1, net->size}, .dim_names = {"rows"}};
    net->out = net->in;
    net->out.name = net->out.value = "y";
    return true;
}

static void *tiny_open(ingot_context *c, const char *path)
{
    MapFile map;
    const char *why = mapfile_open(&map, path);
    TinyModel *m = calloc(1, sizeof *m);
    char *text = why || !m ? NULL : calloc(1, map.len + 1);
    if (text)
        memcpy(text, map.data, map.len);
    ingot_set_file(c, path);
    for (char *line = text ? strchr(text, '\n') : NULL; line && line[1]; line = strchr(line + 1, '\n')) {
        if (m->n == MOST || !network(&m->net[m->n++], line + 1)) {
            ingot_error(c, INGOT_INVALID, "network %d: it is cut off, or has more than %d numbers", m->n, MOST);
            free(m);
            m = NULL;
            break;
        }
    }
    free(text);
    if (!why)
        mapfile_close(&map);
    if (m)
        m->c = c;
    return m;
}

static void tiny_close(void *m)
{
    free(m);
}

static int one(const void *m)
{
    (void)m;
    return 1;
}

static const ingot_model_io *tiny_input(const void *m, int i)
{
    (void)i;
    return &((const TinyModel *)m)->net[((const TinyModel *)m)->chosen].in;
}

static const ingot_model_io *tiny_output(const void *m, int i)
{
    (void)i;
    return &((const TinyModel *)m)->net[((const TinyModel *)m)->chosen].out;
}

static const char *tiny_entry(const void *m, int i)
{
    return i < ((const TinyModel *)m)->n ? ((const TinyModel *)m)->net[i].name : NULL;
}

static void tiny_set_entry(void *m, int i)
{
    ((TinyModel *)m)->chosen = i;
}

static bool tiny_build(void *model, const ingot_model_options *o)
{
    TinyModel *m = model;
    TinyNet *net = &m->net[m->chosen];
    ingot_dim *dims[2] = {NULL, ingot_dim_const(m->c, net->size)};
    for (int i = 0; o && i < o->n_dims; i++)
        if (!strcmp(o->dims[i].name, "rows"))
            dims[0] = o->dims[i].lo == o->dims[i].hi ? ingot_dim_const(m->c, o->dims[i].lo)
                                                     : ingot_dim_var(m->c, "rows", o->dims[i].lo, o->dims[i].hi);
    if (!dims[0]) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "a dim is free: 'rows' of input '%s'; say --dim rows=1..16", net->input);
        return false;
    }
    ingot_set_origin(m->c, net->name, "network");
    ingot_tensor *x = ingot_input(m->c, net->input, INGOT_F32, 2, dims);
    ingot_tensor *w = ingot_data(m->c, "weight", INGOT_F32, 1, &net->size, net->weight);
    ingot_output(m->c, "y", ingot_mul(m->c, x, w));
    ingot_set_origin(m->c, NULL, NULL);
    return !ingot_error_count(m->c);
}

/* "2 3 1 2 3 4 5 6": rows, columns, elements. */
static bool value_in(const ValueUser *u, const char *path, const ingot_model_io *like, HostTensor *v)
{
    FILE *f = fopen(path, "r");
    long long rows = 0, columns = 0;
    (void)like;
    bool ok = f && fscanf(f, "%lld %lld", &rows, &columns) == 2 && rows >= 0 && columns >= 0 && rows * columns < 1000;
    *v = (HostTensor){.dtype = INGOT_F32, .rank = 2, .dims = {rows, columns}};
    if (ok) {
        v->count = (size_t)(rows * columns);
        v->bytes = 4 * v->count;
        v->data = u->alloc(u->user, v->bytes + 1);
    }
    for (size_t i = 0; ok && i < v->count; i++)
        ok = fscanf(f, "%f", (float *)v->data + i) == 1;
    if (f)
        fclose(f);
    if (!ok)
        u->fault(u->user, INGOT_INVALID, "it has not as many numbers as it says");
    return ok;
}

static bool value_out(const ValueUser *u, const char *path, const char *shown, const ingot_model_io *like,
                      const HostTensor *v)
{
    FILE *f = fopen(path, "w");
    (void)like;
    if (!f) {
        u->fault(u->user, INGOT_IO, shown);
        return false;
    }
    fprintf(f, "%lld %lld", (long long)v->dims[0], (long long)v->dims[1]);
    for (size_t i = 0; i < v->count; i++)
        fprintf(f, " %g", (double)((float *)v->data)[i]);
    return !fclose(f);
}

static const char *const endings[] = {".tiny", NULL};
static const DataForm forms[] = {{".tin", value_in, value_out}, {0}};

const Importer importer_tiny = {.name = "tiny", .endings = endings, .is = is_tiny, .open = tiny_open,
                                .close = tiny_close, .input_count = one, .input = tiny_input,
                                .output_count = one, .output = tiny_output, .build = tiny_build,
                                .entry = tiny_entry, .set_entry = tiny_set_entry, .data = forms};
"""

MODEL = """tiny
network double x 3 2 2 2
network other x 3 1 10 100
"""


def write(tree):
    tree.insert("importers/importers.def", "IMPORTER(onnx)", "IMPORTER(tiny)", before=True)
    tree.new("importers/tiny/tiny.c", IMPORTER)


def check(tried):
    model, data, out = (tried.work / n for n in ("m.tiny", "tiny_data", "tiny_out"))
    model.write_text(MODEL)
    data.mkdir()
    (data / "input_0.tin").write_text("2 3 1 2 3 4 5 6")
    rows = "--dim", "rows=1..4"
    for entry, want in (("double", "2 4 6 8 10 12"), ("other", "1 20 300 4 50 600")):
        (data / "output_0.tin").write_text(f"2 3 {want}")
        which = ("--entry", entry) if entry != "double" else ()
        call(tried.ingot, "run", model, "-q", "--data", data, "--output-dir", out, *rows, *which)
        assert (out / "output_0.tin").read_text() == f"2 3 {want}"
    tried.verify(model, *rows)
    assert "every node is supported" in call(tried.ingot, "check", model, *rows)
    assert " mul " in call(tried.ingot, "inspect", model, "--dump", "graph", *rows)
    for cc in compilers():
        make(tried.compile(model, "c:c99", *rows), cc, STRICT)
    depfile = tried.work / "tiny.d"
    tried.compile(model, "c", "--depfile", depfile, *rows)
    assert "m.tiny" in depfile.read_text()
    assert "*.tiny" in call(tried.ingot, "completion", "bash")
    tried.refused(4, "'rows' of input 'x'", "check", model)
    tried.refused(2, "there are: 'double', 'other'", "check", model, "--entry", "triple", *rows)
    tried.refused(2, "tiny files have no", "check", model, "--state", "x=y", *rows)
    short = tried.work / "short.tiny"
    short.write_text(MODEL[:-4])
    tried.refused(3, "network 2: it is cut off", "check", short, *rows)
    return "two networks of a text format"
