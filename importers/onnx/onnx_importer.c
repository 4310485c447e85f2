/*
 * onnx_importer.c - ONNX as an importer: the record, and what its bytes say of files beside it.
 */
#define _GNU_SOURCE
#include <string.h>

#include "onnx.h"

static void *open_model(ingot_context *c, const char *path)
{
    return ingot_onnx_open(c, path);
}

static void close_model(void *m)
{
    ingot_onnx_close(m);
}

static int input_count(const void *m)
{
    return ingot_onnx_input_count(m);
}

static const ingot_model_io *input(const void *m, int i)
{
    return ingot_onnx_input(m, i);
}

static int output_count(const void *m)
{
    return ingot_onnx_output_count(m);
}

static const ingot_model_io *output(const void *m, int i)
{
    return ingot_onnx_output(m, i);
}

static bool build(void *m, const ingot_model_options *options)
{
    return ingot_onnx_build(m, options);
}

static bool check(void *m)
{
    return ingot_onnx_check(m);
}

static bool set_ops(void *m, const ingot_model_op *ops, int n)
{
    ingot_onnx_set_ops(m, ops, n);
    return true;
}

static bool set_states(void *m, const ingot_model_state *states, int n)
{
    return ingot_onnx_set_states(m, states, n);
}

static const char *file(const void *m, int i)
{
    return ingot_onnx_file(m, i);
}

/* A length as protobuf writes it, at *at; the bytes behind it, or NULL. */
static const uint8_t *varint_text(const uint8_t *at, const uint8_t *end, size_t *len)
{
    *len = 0;
    for (int shift = 0; at < end && shift < 28; shift += 7) {
        *len |= (size_t)(*at & 0x7f) << shift;
        if (!(*at++ & 0x80))
            return *len <= (size_t)(end - at) ? at : NULL;
    }
    return NULL;
}

/* Files that tensors of the model say they lie in, {key: "location", value: "weights/a.bin"}; other
 * artifacts of ONNX Runtime's training. */
static bool mentions(const MapFile *map, const char *dir, const char *own,
                     void (*each)(void *user, Span location), void *user)
{
    (void)dir;
    const bool artifact = memmem(map->data, map->len, "InPlaceAccumulator", 18) != NULL;
    if (artifact)
        artifacts_mention(own, each, user);
    static const char entry[] = "\x0a\x08"
                                "location\x12";
    const uint8_t *at = map->data, *end = at + map->len;
    Span before = {0};
    while ((at = memmem(at, (size_t)(end - at), entry, sizeof entry - 1))) {
        Span text = {0};
        text.data = varint_text(at += sizeof entry - 1, end, &text.len);
        const bool again = text.data && before.data && text.len == before.len &&
                           !memcmp(text.data, before.data, text.len);
        if (text.data && !again)
            each(user, text);
        before = text;
    }
    return artifact || memmem(map->data, map->len, "location", 8) != NULL;
}

static const ImportedTraining *training(void *model)
{
    const Model *m = model;
    return m->artifacts ? artifacts_training(m) : own_step(m) ? &m->own : NULL;
}

static const char *const endings[] = {".onnx", NULL};

const Importer importer_onnx = {
    .name = "ONNX",
    .endings = endings,
    .open = open_model,
    .close = close_model,
    .input_count = input_count,
    .input = input,
    .output_count = output_count,
    .output = output,
    .build = build,
    .check = check,
    .builds_rest = true,
    .trains = true,
    .training = training,
    .set_ops = set_ops,
    .set_states = set_states,
    .file = file,
    .mentions = mentions,
    .save = onnx_save,
    .data = onnx_data,
    .op = onnx_op_at,
};
