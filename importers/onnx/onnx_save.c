/*
 * onnx_save.c - an ONNX model as a file again, with other numbers in its weights.
 *
 * The message that was read is written: nodes, names and metadata are those of the file. Bytes that
 * were left in mapped files (wire.c) or lie in files of their own come into the message, so that
 * what is written is one file, which protobuf lets have 2 GB. While that is done, tensors of the
 * message stand for others, which is undone in the end: the message owns its own bytes.
 */
#include <string.h>

#include "onnx.h"

typedef struct {
    Onnx__TensorProto *at, was;
} LentTensor;

typedef struct {
    Model *m;
    LentTensor *lent;
    size_t n, room;
    bool failed;
} OnnxSaver;

/* t holds these bytes as raw_data, and nothing else, until all are given back. */
static void lend(OnnxSaver *s, Onnx__TensorProto *t, const void *bytes, size_t len)
{
    if (s->n == s->room) {
        LentTensor *more = ingot_alloc(s->m->c, (2 * s->room + 64) * sizeof *more);
        if (s->n)
            memcpy(more, s->lent, s->n * sizeof *more);
        s->lent = more;
        s->room = 2 * s->room + 64;
    }
    s->lent[s->n++] = (LentTensor){t, *t};
    const Onnx__TensorProto was = *t;
    onnx__tensor_proto__init(t);
    t->n_dims = was.n_dims;
    t->dims = was.dims;
    t->has_data_type = true;
    t->data_type = was.data_type;
    t->name = was.name;
    t->doc_string = was.doc_string;
    t->n_metadata_props = was.n_metadata_props;
    t->metadata_props = was.metadata_props;
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)bytes};
}

static void give_back(OnnxSaver *s)
{
    while (s->n--)
        *s->lent[s->n].at = s->lent[s->n].was;
}

/* Its bytes are somewhere else. */
static void bring(OnnxSaver *s, Onnx__TensorProto *t)
{
    OnnxFile *f = s->m->file;
    OnnxTensor read;
    if (t->has_mapped_bytes) {
        const Span raw = onnx_file_raw(f, t);
        lend(s, t, raw.data, raw.len);
    } else if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        Span raw;
        const unsigned bits = onnx_dtype_bits(t->data_type);
        const char *name = t->name && *t->name ? t->name : "a tensor";
        if (!bits || !onnx_tensor_read(f, t, name, &read) ||
            !onnx_file_external(f, t, name, (read.count * bits + 7) / 8, &raw))
            s->failed = true;
        else
            lend(s, t, raw.data, raw.len);
    }
}

/* All tensors of a message, in attributes and bodies too; depth is bounded by wire.c. */
static void bring_all(OnnxSaver *s, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    if (d == &onnx__tensor_proto__descriptor) {
        bring(s, (Onnx__TensorProto *)message);
        return;
    }
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &d->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        char *at = (char *)message + field->offset;
        const bool many = field->label == PROTOBUF_C_LABEL_REPEATED;
        const size_t n = many ? *(size_t *)((char *)message + field->quantifier_offset) : 1;
        ProtobufCMessage **list = many ? *(ProtobufCMessage ***)at : (ProtobufCMessage **)at;
        for (size_t k = 0; k < n; k++)
            if (list[k])
                bring_all(s, list[k]);
    }
}

static void ask_weights(OnnxSaver *s, OtherWeight *other, void *user)
{
    const Onnx__GraphProto *g = s->m->file->model->graph;
    const Names uses = onnx_weight_uses(s->m, g);
    for (size_t i = 0; i < g->n_initializer && !s->failed; i++) {
        Onnx__TensorProto *p = g->initializer[i];
        const unsigned *use = names_get(&uses, p->name);
        HostTensor data = {.rank = (int)p->n_dims};
        OnnxTensor t;
        if (!use || p->n_dims > INGOT_MAX_RANK || !ingot_onnx_dtype(p->data_type, &data.dtype) ||
            !onnx_weight_type(data.dtype))
            continue;
        s->failed = !onnx_tensor_read(s->m->file, p, "initializer", &t);
        for (int a = 0; a < data.rank && !s->failed; a++)
            data.dims[a] = t.dims[a];
        data.count = (size_t)t.count;
        data.bytes = t.data.len;
        data.data = (void *)(uintptr_t)t.data.data;
        const ingot_model_weight w = onnx_weight(p->name, *use, data.rank);
        const void *bytes = s->failed ? NULL : other(user, &w, &data);
        if (bytes)
            lend(s, p, bytes, data.bytes);
    }
}

typedef struct {
    ProtobufCBuffer base;
    bool (*put)(void *user, const void *bytes, size_t n);
    void *user;
    bool good;
} PutBuffer;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *bytes)
{
    PutBuffer *b = (PutBuffer *)buffer;
    b->good = b->good && b->put(b->user, bytes, n);
}

bool onnx_save(void *model, OtherWeight *other, void *user,
               bool (*put)(void *user, const void *bytes, size_t n), void *out)
{
    OnnxSaver s = {.m = model};
    ProtobufCMessage *message = &s.m->file->model->base;
    ask_weights(&s, other, user);
    if (put && !s.failed)
        bring_all(&s, message);
    if (put && !s.failed) {
        PutBuffer b = {{append}, put, out, true};
        if (protobuf_c_message_get_packed_size(message) > INT32_MAX)
            ingot_error(s.m->c, INGOT_UNSUPPORTED,
                        "with the data of its files it is more than the 2 GB that a file of ONNX "
                        "can have; a .safetensors file can have more");
        else
            protobuf_c_message_pack_to_buffer(message, &b.base);
        s.failed = !b.good || protobuf_c_message_get_packed_size(message) > INT32_MAX;
    }
    give_back(&s);
    return !s.failed;
}
