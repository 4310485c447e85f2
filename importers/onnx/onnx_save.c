/*
 * onnx_save.c - an ONNX model as a file again, with other numbers in its weights.
 *
 * The message that was read is written: nodes, names and metadata are those of the file. Bytes that
 * were left in mapped files (wire.c) or lie in files of their own come into the message, so that
 * what is written is one file, which protobuf lets have 2 GB. While that is done, tensors of the
 * message stand for others, which is undone in the end: the message owns its own bytes.
 */
#include <math.h>
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

/* ---- integers that stand for floats ---------------------------------------------------------- */

/* An initializer that DequantizeLinear reads: element i is (q - zero[k]) * scale[k], k =
 * scale_at(i). */
typedef struct {
    Onnx__TensorProto *at;
    HostTensor data; /* the integers */
    const float *scale;
    const void *zero;    /* NULL: all are 0 */
    int64_t size, inner; /* of the scales' axis, of what is behind it; 0: one scale for all */
    int64_t block;       /* of elements of one scale; 0: none */
} IntegerWeight;

static int64_t integer_at(const void *data, ingot_dtype d, size_t i)
{
    return d == INGOT_I8    ? ((const int8_t *)data)[i]
           : d == INGOT_U8  ? ((const uint8_t *)data)[i]
           : d == INGOT_I16 ? ((const int16_t *)data)[i]
           : d == INGOT_U16 ? ((const uint16_t *)data)[i]
                            : ((const int32_t *)data)[i];
}

static size_t scale_at(const IntegerWeight *w, size_t i)
{
    if (!w->inner)
        return 0;
    const int64_t inner = (int64_t)i % w->inner, k = (int64_t)i / w->inner % w->size;
    if (!w->block)
        return (size_t)k;
    const int64_t outer = (int64_t)i / w->inner / w->size;
    return (size_t)((outer * ((w->size + w->block - 1) / w->block) + k / w->block) * w->inner +
                    inner);
}

static double zero_at(const IntegerWeight *w, size_t i)
{
    return w->zero ? (double)integer_at(w->zero, w->data.dtype, scale_at(w, i)) : 0;
}

/* A copy, aligned. */
static void *elements_of(OnnxSaver *s, const Onnx__TensorProto *p, OnnxTensor *t)
{
    if (!onnx_tensor_read(s->m->file, p, "initializer", t)) {
        s->failed = true;
        return NULL;
    }
    void *copy = ingot_alloc(s->m->c, t->data.len + 1);
    memcpy(copy, t->data.data, t->data.len);
    return copy;
}

/* False: it is none, or of another form than those that are trained (trained_integers()). */
static bool integer_weight(OnnxSaver *s, const Onnx__GraphProto *g, Onnx__TensorProto *p,
                           IntegerWeight *w)
{
    const Onnx__NodeProto *reader = NULL;
    for (size_t i = 0; i < g->n_node && !reader; i++)
        if (!strcmp(g->node[i]->op_type, "DequantizeLinear") && g->node[i]->n_input >= 2 &&
            !strcmp(g->node[i]->input[0], p->name))
            reader = g->node[i];
    if (!reader)
        return false;
    *w = (IntegerWeight){.at = p, .data = {.rank = (int)p->n_dims}};
    const char *zero_name = reader->n_input > 2 ? reader->input[2] : "";
    const Onnx__TensorProto *scale = initializer_named(g, reader->input[1]),
                            *zero = *zero_name ? initializer_named(g, zero_name) : NULL;
    OnnxTensor t, scales;
    int64_t axis = int_attribute(reader, "axis", 1);
    if (p->n_dims > INGOT_MAX_RANK || !ingot_onnx_dtype(p->data_type, &w->data.dtype) ||
        !onnx_integer_weight_type(w->data.dtype) || !scale ||
        scale->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
        (*zero_name && (!zero || zero->data_type != p->data_type)))
        return false;
    w->data.data = elements_of(s, p, &t);
    w->scale = elements_of(s, scale, &scales);
    w->zero = zero ? elements_of(s, zero, &(OnnxTensor){0}) : NULL;
    if (s->failed)
        return false;
    for (int a = 0; a < w->data.rank; a++)
        w->data.dims[a] = t.dims[a];
    w->data.count = (size_t)t.count;
    w->block = int_attribute(reader, "block_size", 0);
    axis += axis < 0 ? w->data.rank : 0;
    if (scales.count > 1 && axis >= 0 && axis < w->data.rank) {
        w->size = w->data.dims[axis];
        w->inner = 1;
        for (int a = (int)axis + 1; a < w->data.rank; a++)
            w->inner *= w->data.dims[a];
    }
    return w->data.count == 0 || scale_at(w, w->data.count - 1) < (size_t)scales.count;
}

/* The floats that they stand for are offered; what comes in their place is rounded. */
static void ask_integers(OnnxSaver *s, const IntegerWeight *w, OtherWeight *other, void *user)
{
    const size_t n = w->data.count, one = ingot_dtype_bytes(w->data.dtype);
    float *x = ingot_alloc(s->m->c, n * sizeof *x + 1);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)integer_at(w->data.data, w->data.dtype, i) - zero_at(w, i)) *
               w->scale[scale_at(w, i)];
    HostTensor data = w->data;
    data.dtype = INGOT_F32;
    data.bytes = n * sizeof *x;
    data.data = x;
    const ingot_model_weight as = {.name = w->at->name, .integers = true};
    const float *taken = other(user, &as, &data);
    if (!taken)
        return;
    const bool is_signed =
        w->data.dtype == INGOT_I8 || w->data.dtype == INGOT_I16 || w->data.dtype == INGOT_I32;
    const double range = ldexp(1, 8 * (int)one), low = is_signed ? -range / 2 : 0;
    unsigned char *q = ingot_alloc(s->m->c, n * one + 1);
    for (size_t i = 0; i < n; i++) {
        double y = (double)rintf(taken[i] / w->scale[scale_at(w, i)]) + zero_at(w, i);
        y = y > low ? y < low + range - 1 ? y : low + range - 1 : low;
        const int64_t whole = (int64_t)y;
        memcpy(q + i * one, &whole, one); /* little-endian, as the file's */
    }
    lend(s, w->at, q, n * one);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void ask_weights(OnnxSaver *s, OtherWeight *other, void *user)
{
    const Onnx__GraphProto *g = s->m->file->model->graph;
    const Names uses = onnx_weight_uses(s->m, g);
    for (size_t i = 0; i < g->n_initializer && !s->failed; i++) {
        Onnx__TensorProto *p = g->initializer[i];
        const unsigned *use = names_get(&uses, p->name);
        HostTensor data = {.rank = (int)p->n_dims};
        OnnxTensor t;
        IntegerWeight integers;
        if (integer_weight(s, g, p, &integers))
            ask_integers(s, &integers, other, user);
        if (s->failed || !use || p->n_dims > INGOT_MAX_RANK ||
            !ingot_onnx_dtype(p->data_type, &data.dtype) || !onnx_weight_type(data.dtype))
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
