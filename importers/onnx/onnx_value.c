/*
 * onnx_value.c - values in files of their own, as ONNX's test data has them: input_0.pb is a
 * serialized TensorProto, or a SequenceProto or OptionalProto where the model declares one.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ingot_onnx.h"
#include "onnx_read.h"

static void told(const ValueUser *u, ingot_status why, const char *path, const char *what)
{
    char line[1024];
    snprintf(line, sizeof line, "%s: %s", path, what);
    u->fault(u->user, why, line);
}

static void tell_invalid(void *user, const char *message)
{
    const ValueUser *u = user;
    u->fault(u->user, INGOT_INVALID, message);
}

/* ---- reading ----------------------------------------------------------------------------- */

static char *text_of(const ValueUser *u, ProtobufCBinaryData s)
{
    char *text = u->alloc(u->user, s.len + 1);
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return text;
}

static bool get_tensor(const ValueUser *u, OnnxFile *f, const Onnx__TensorProto *proto,
                       HostTensor *v)
{
    OnnxTensor t;
    *v = (HostTensor){0};
    if (!onnx_tensor_read(f, proto, "tensor", &t))
        return false;
    if (!ingot_onnx_dtype(t.dtype, &v->dtype) || t.rank > INGOT_MAX_RANK) {
        told(u, INGOT_UNSUPPORTED, f->path, "an element type or rank that is not supported");
        return false;
    }
    v->rank = (int)t.rank;
    v->count = (size_t)t.count;
    for (int i = 0; i < v->rank; i++)
        v->dims[i] = t.dims[i];
    if (v->dtype == INGOT_STRING) {
        v->bytes = v->count * sizeof(char *);
        char **list = v->data = u->alloc(u->user, v->bytes + 1);
        for (size_t i = 0; i < v->count; i++)
            list[i] = text_of(u, t.strings[i]);
        return true;
    }
    v->bytes = v->count * t.elem_bytes;
    v->data = u->alloc(u->user, v->bytes + 1);
    memcpy(v->data, t.data.data, v->bytes);
    return true;
}

static bool get_sequence(const ValueUser *u, OnnxFile *f, const Onnx__SequenceProto *s,
                         HostTensor *v)
{
    *v = (HostTensor){.sequence = true, .nitem = (int)s->n_tensor_values};
    v->item = u->alloc(u->user, ((size_t)v->nitem + 1) * sizeof *v->item);
    if (s->n_sequence_values || s->n_optional_values || s->n_map_values ||
        s->n_sparse_tensor_values) {
        told(u, INGOT_INVALID, f->path,
             "a sequence of something else than tensors, which is not supported");
        return false;
    }
    for (int i = 0; i < v->nitem; i++)
        if (!get_tensor(u, f, s->tensor_values[i], &v->item[i]))
            return false;
    return true;
}

static bool get_optional(const ValueUser *u, OnnxFile *f, const ingot_model_io *like, HostTensor *v)
{
    const Onnx__OptionalProto *o = f->optional;
    if (like->sequence && o->sequence_value)
        return get_sequence(u, f, o->sequence_value, v);
    if (!like->sequence && o->tensor_value)
        return get_tensor(u, f, o->tensor_value, v);
    *v = (HostTensor){.absent = true, .sequence = like->sequence, .dtype = like->dtype};
    return true;
}

static OnnxKind kind_of(const ingot_model_io *like)
{
    return like && like->kind == INGOT_MODEL_SEQUENCE   ? ONNX_SEQUENCE
           : like && like->kind == INGOT_MODEL_OPTIONAL ? ONNX_OPTIONAL
                                                        : ONNX_TENSOR;
}

static bool pb_read(const ValueUser *u, const char *path, const ingot_model_io *like, HostTensor *v)
{
    ValueUser user = *u;
    const OnnxKind kind = kind_of(like);
    OnnxFile *f = onnx_file_load_value(path, kind, &(ImportSink){tell_invalid, &user});
    *v = (HostTensor){0};
    if (!f)
        return false;
    const bool ok = kind == ONNX_SEQUENCE   ? get_sequence(u, f, f->sequence, v)
                    : kind == ONNX_OPTIONAL ? get_optional(u, f, like, v)
                                            : get_tensor(u, f, f->tensor, v);
    onnx_file_close(f);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------- */

static int32_t onnx_type(ingot_dtype d)
{
    ingot_dtype found;
    for (int32_t i = 1; i < 64; i++)
        if (ingot_onnx_dtype(i, &found) && found == d)
            return i;
    return 0;
}

static bool put_tensor(FILE *f, const char *name, const HostTensor *v)
{
    OnnxTensor t = {.name = name,
                    .dtype = onnx_type(v->dtype),
                    .rank = (size_t)v->rank,
                    .dims = v->dims,
                    .count = v->count,
                    .data = {v->data, v->bytes}};
    if (v->dtype != INGOT_STRING)
        return onnx_tensor_put(f, &t);
    ProtobufCBinaryData *list = malloc((v->count + 1) * sizeof *list);
    for (size_t i = 0; list && i < v->count; i++) {
        char *s = ((char **)v->data)[i];
        list[i] = (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
    }
    t.strings = list;
    t.data = (Span){(const uint8_t *)"", 0};
    const bool ok = list && onnx_tensor_put(f, &t);
    free(list);
    return ok;
}

/* Field 3 of a sequence and of an optional: a message, whose length stands before it. */
static bool put_message(FILE *f, unsigned field, const char *name, const HostTensor *v,
                        bool (*put)(FILE *, const char *, const HostTensor *))
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *inner = open_memstream(&bytes, &len);
    bool ok = inner && put(inner, name, v);
    ok = inner && !fclose(inner) && ok;
    if (ok)
        onnx_field_put(f, field, bytes, len);
    free(bytes);
    return ok;
}

enum { KIND_NOTHING = 0, KIND_TENSOR = 1, KIND_SEQUENCE = 3 };

/* Fields 1 and 2: the name, and what it is of. */
static void put_kind(FILE *f, const char *name, int kind)
{
    onnx_field_put(f, 1, name, strlen(name));
    fputc(2 << 3, f);
    fputc(kind, f);
}

static bool put_sequence(FILE *f, const char *name, const HostTensor *v)
{
    bool ok = true;
    put_kind(f, name, KIND_TENSOR);
    for (int i = 0; i < v->nitem && ok; i++)
        ok = put_message(f, 3, "", &v->item[i], put_tensor);
    return ok;
}

static bool put_optional(FILE *f, const char *name, const HostTensor *v)
{
    put_kind(f, name, v->absent ? KIND_NOTHING : v->sequence ? KIND_SEQUENCE : KIND_TENSOR);
    return v->absent || (v->sequence ? put_message(f, 5, name, v, put_sequence)
                                     : put_message(f, 3, "", v, put_tensor));
}

static bool pb_write(const ValueUser *u, const char *path, const char *shown,
                     const ingot_model_io *like, const HostTensor *v)
{
    char why[256];
    const OnnxKind kind = kind_of(like);
    const char *name = like ? like->name : "";
    FILE *f = fopen(path, "wb");
    int error = f ? 0 : errno;
    bool agrees = true;
    if (f) {
        agrees = kind == ONNX_SEQUENCE   ? put_sequence(f, name, v)
                 : kind == ONNX_OPTIONAL ? put_optional(f, name, v)
                                         : put_tensor(f, name, v);
        error = ferror(f) ? errno : 0;
        if (fclose(f) && !error)
            error = errno;
    }
    if (!error && agrees)
        return true;
    snprintf(why, sizeof why, "cannot be written: %s",
             error ? strerror(error) : "its type, dims and data do not agree");
    told(u, INGOT_IO, shown, why);
    return false;
}

const DataForm onnx_data[] = {{".pb", pb_read, pb_write}, {0}};
