/*
 * fuzz_sched.c - libFuzzer target: any bytes as a .sched file of a small model, down to its
 * kernels, and as JSON. Begin with what the model's own file says: with a name in $SEED it is
 * written there. SEED=corpus/seed fuzz_sched corpus
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ingot_ops.h"
#include "inspect.h"

enum { CHANNELS = 8, SIDE = 12, TAPS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ingot_dim **dims(ingot_context *c, ingot_dim **of, int64_t a, int64_t b, int64_t d)
{
    const int64_t size[] = {a, b, d, d};
    for (int i = 0; i < 4; i++)
        of[i] = ingot_dim_const(c, size[i]);
    return of;
}

/* A convolution, what is added to it, and a softmax of each row. */
static void model(ingot_context *c)
{
    static const int64_t ones[] = {1, 1};
    ingot_dim *of[4];
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 4, dims(c, of, 1, CHANNELS, SIDE));
    ingot_tensor *w = ingot_input(c, "w", INGOT_F32, 4, dims(c, of, CHANNELS, CHANNELS, TAPS));
    ingot_tensor *y = ingot_conv(c, x, w, NULL, ones, ones, ones, ones, 1);
    ingot_output(c, "y", ingot_softmax(c, ingot_add(c, y, x), 3));
}

static void compile(const char *sched, const char *save)
{
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_options o = {
        .struct_size = sizeof o, .target = "c:x86-64-v3", .sched = sched, .save_sched = save};
    model(c);
    free(ingot_dump(c, &o, "kernels"));
    ingot_context_free(c);
}

static void as_json(const uint8_t *data, size_t size)
{
    Arena *a = arena_new();
    const char *why;
    char *text = malloc(size + 1); /* of its own, so that its end is seen */
    memcpy(text, data, size);
    text[size] = 0;
    (void)json_read(a, text, &why);
    free(text);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        if (getenv("SEED"))
            compile(NULL, getenv("SEED"));
        file = memfd_create("model.sched", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    as_json(data, size);
    compile(path, NULL);
    return 0;
}
