/*
 * fuzz_import.c - libFuzzer target: any bytes as an ONNX model, through the importer, the schedule
 * and the kernels. Start it with small models: fuzz_import CORPUS SEEDS -timeout=30
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ingot.h"
#include "ingot_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched;

static void sink(void *user, ingot_level level, const char *message)
{
    (void)user;
    (void)level;
    for (; *message; message++)
        touched += (unsigned char)*message;
}

/* Every free dim is 2. */
static void build(ingot_context *c, ingot_onnx *m)
{
    enum { MAX_DIMS = 64 };
    ingot_model_dim dims[MAX_DIMS];
    ingot_model_options options = {.struct_size = sizeof options, .dims = dims};
    for (int i = 0; i < ingot_onnx_input_count(m); i++) {
        const ingot_model_io *io = ingot_onnx_input(m, i);
        for (int a = 0; a < io->rank && options.n_dims < MAX_DIMS; a++)
            if (io->dims[a] < 0)
                dims[options.n_dims++] = (ingot_model_dim){io->dim_names[a], 2, 2};
    }
    const bool checked = ingot_onnx_check(m);
    if (ingot_onnx_build(m, &options) && checked)
        free(ingot_dump(c, NULL, "kernels"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("model.onnx", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    ingot_context *c = ingot_context_new(sink, NULL);
    ingot_onnx *m = ingot_onnx_open(c, path);
    if (m)
        build(c, m);
    ingot_context_free(c);
    ingot_onnx_close(m);
    return 0;
}
