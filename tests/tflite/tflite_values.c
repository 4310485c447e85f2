/*
 * tflite_values.c - results of models in files, by the interpreter of graphs.
 *
 *     tflite_values [--build] [--xnnpack] DIR...      of each: DIR/model.tflite, DIR/in_0 ..
 * (bytes; strings with a NUL behind each) -> DIR/out_0 ..
 *
 * One line for each: DIR, its status, then of each output its type and shape: "f32[1,4]". Faults go
 * to DIR/faults. --build: the graph is built, and not run. --xnnpack: rounded as that does it.
 */
#include "ingot_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *dir;
static bool build_only;
static ingot_model_options options = {.struct_size = sizeof options};

static FILE *file_of(const char *stem, int number, const char *mode)
{
    char path[4096];
    if (number < 0)
        snprintf(path, sizeof path, "%s/%s", dir, stem);
    else
        snprintf(path, sizeof path, "%s/%s_%d", dir, stem, number);
    return fopen(path, mode);
}

static void sink(void *user, ingot_level level, const char *message)
{
    FILE *f = file_of("faults", -1, "a");
    (void)user;
    if (f) {
        fprintf(f, "%d %s\n", (int)level, message);
        fclose(f);
    }
}

static size_t value_bytes(const ingot_value *v)
{
    size_t n = v->dtype == INGOT_STRING ? sizeof(char *) : ingot_dtype_bytes(v->dtype);
    for (int i = 0; i < v->rank; i++)
        n *= (size_t)v->dims[i];
    return n;
}

/* Strings, each with a NUL behind it. */
static size_t read_texts(ingot_context *c, ingot_value *v, size_t count, FILE *f)
{
    enum { ROOM = 1 << 16 };
    const char **text = ingot_alloc(c, (count + 1) * sizeof *text);
    char *at = ingot_alloc(c, ROOM), *end = at + (f ? fread(at, 1, ROOM - 1, f) : 0);
    size_t got = 0;
    for (; got < count && at < end; at += strlen(at) + 1)
        text[got++] = at;
    v->data = text;
    return got * sizeof(char *);
}

static ingot_value read_input(ingot_context *c, const ingot_model_io *io, int i)
{
    ingot_value v = {.rank = io->rank, .dtype = io->dtype};
    for (int a = 0; a < io->rank; a++)
        v.dims[a] = io->dims[a] < 0 ? 1 : io->dims[a];
    const size_t bytes = value_bytes(&v);
    void *data = ingot_alloc(c, bytes + 1);
    v.data = data;
    FILE *f = file_of("in", i, "rb");
    const size_t got = io->dtype == INGOT_STRING ? read_texts(c, &v, bytes / sizeof(char *), f)
                       : f                       ? fread(data, 1, bytes, f)
                                                 : 0;
    if (got != bytes)
        ingot_error(c, INGOT_IO, "in_%d: it has not %zu bytes", i, bytes);
    if (f)
        fclose(f);
    return v;
}

static void write_output(const ingot_value *v, int i)
{
    FILE *f = file_of("out", i, "wb");
    printf(" %s[", ingot_dtype_name(v->dtype));
    for (int a = 0; a < v->rank; a++)
        printf("%s%lld", a ? "," : "", (long long)v->dims[a]);
    printf("]");
    const size_t bytes = value_bytes(v);
    const char *const *text = v->data;
    for (size_t k = 0; f && v->dtype == INGOT_STRING && k * sizeof(char *) < bytes; k++)
        fwrite(text[k], 1, strlen(text[k]) + 1, f);
    if (f && v->dtype != INGOT_STRING)
        fwrite(v->data, 1, bytes, f);
    if (f)
        fclose(f);
}

static void run_one(void)
{
    enum { MOST = 64 };
    char path[4096];
    ingot_value in[MOST], out[MOST] = {{0}};
    ingot_context *c = ingot_context_new(sink, NULL);
    snprintf(path, sizeof path, "%s/model.tflite", dir);
    ingot_model *m = ingot_model_open(c, path);
    if (m && ingot_model_build(m, &options) && !build_only) {
        const int n_in = ingot_model_input_count(m), n_out = ingot_model_output_count(m);
        if (n_in > MOST || n_out > MOST)
            ingot_error(c, INGOT_IO, "%d inputs, %d outputs: more than %d", n_in, n_out, MOST);
        for (int i = 0; i < n_in && i < MOST; i++)
            in[i] = read_input(c, ingot_model_input(m, i), i);
        if (!ingot_error_count(c))
            ingot_interpret(c, n_in, in, n_out, out);
    }
    printf("%s %d", dir, (int)ingot_context_status(c));
    for (int i = 0; i < MOST && out[i].data; i++)
        write_output(&out[i], i);
    printf("\n");
    fflush(stdout);
    ingot_context_free(c);
    ingot_model_close(m);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        dir = argv[i];
        if (!strcmp(dir, "--build"))
            build_only = true;
        else if (!strcmp(dir, "--xnnpack"))
            options.rounding = INGOT_ROUNDING_XNNPACK;
        else
            run_one();
    }
    return 0;
}
