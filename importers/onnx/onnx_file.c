/*
 * onnx_file.c - loads ONNX files: models, and single values as test data has them.
 *
 * Mapped, checked and slimmed by the wire walk, then unpacked by protobuf-c; see onnx_read.h for
 * the picture. The OnnxFile owns the mapping, the unpacked message, every external file that was
 * needed so far (mapped once per location) and the memory of expanded tensors.
 *
 * External data (https://onnx.ai/onnx/repo-docs/ExternalData.html): key-value pairs, of which
 * `location` is a path relative to the model's folder, `offset` and `length` are decimal numbers.
 */
#include "onnx_read.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ImportBlock {
    ImportBlock *next;
    alignas(max_align_t) unsigned char bytes[];
};

/* ---- loading ----------------------------------------------------------------------------- */

static char *copy_string(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

static const ProtobufCMessageDescriptor *root_of(OnnxKind kind)
{
    switch (kind) {
    case ONNX_TENSOR: return &onnx__tensor_proto__descriptor;
    case ONNX_SEQUENCE: return &onnx__sequence_proto__descriptor;
    case ONNX_OPTIONAL: return &onnx__optional_proto__descriptor;
    default: return &onnx__model_proto__descriptor;
    }
}

static const char *kind_fault(OnnxKind kind)
{
    switch (kind) {
    case ONNX_TENSOR: return "not an ONNX tensor";
    case ONNX_SEQUENCE: return "not an ONNX sequence";
    case ONNX_OPTIONAL: return "not an ONNX optional";
    default: return "not an ONNX model";
    }
}

/* Walks and unpacks the bytes as a message of that kind. NULL: *err says why. */
static ProtobufCMessage *unpack_kind(const OnnxFile *file, OnnxKind kind, bool known_only,
                                     WireError *err)
{
    WireSlim slim;
    if (!wire_slim((Span){file->map.data, file->map.len}, root_of(kind), known_only, &slim, err))
        return NULL;
    ProtobufCMessage *message = protobuf_c_message_unpack(root_of(kind), NULL, slim.len, slim.data);
    free(slim.data);
    if (!message)
        snprintf(err->what, sizeof err->what, "cannot be unpacked or out of memory");
    return message;
}

/* Does a message that fits TensorProto make sense as one? A small sequence or optional may fit,
 * too: its elem_type is a data_type, its values are an int32_data. */
static bool is_sound_tensor(OnnxFile *file, ProtobufCMessage *message)
{
    OnnxTensor tensor;
    ImportSink sink = file->sink;
    file->sink = (ImportSink){0};
    bool ok = onnx_tensor_read(file, (Onnx__TensorProto *)message, "", &tensor);
    file->sink = sink;
    return ok;
}

/* Settles ONNX_ANY_VALUE for the first kind that fits. */
static ProtobufCMessage *unpack_any(OnnxFile *file, WireError *err)
{
    static const OnnxKind kinds[] = {ONNX_TENSOR, ONNX_SEQUENCE, ONNX_OPTIONAL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ProtobufCMessage *message = unpack_kind(file, kinds[i], true, err);
        if (!message)
            continue;
        if (kinds[i] != ONNX_TENSOR || is_sound_tensor(file, message)) {
            file->kind = kinds[i];
            return message;
        }
        protobuf_c_message_free_unpacked(message, NULL);
    }
    file->kind = ONNX_TENSOR;
    return unpack_kind(file, ONNX_TENSOR, false, err);
}

/* What is no model is told by what it is, if that is known. True: told. */
static bool told_kind(OnnxFile *file, const char *kind)
{
    if (kind)
        import_error(&file->sink, "%s: not an ONNX model but %s", file->path, kind);
    return kind != NULL;
}

/* A tensor, as input_0.pb has one, in place of the model. */
static const char *value_kind(OnnxFile *file)
{
    WireError err;
    ProtobufCMessage *message = unpack_kind(file, ONNX_TENSOR, true, &err);
    if (!message)
        return NULL;
    bool tensor = is_sound_tensor(file, message);
    protobuf_c_message_free_unpacked(message, NULL);
    return tensor ? "an ONNX tensor, which is data: the model comes first, data by --data" : NULL;
}

/* What a file is that begins like a model and turned out to be none. */
static bool told_late(OnnxFile *file)
{
    if (file->kind != ONNX_MODEL)
        return false;
    const char *kind = onnx_other_protobuf(&file->map);
    return told_kind(file, kind ? kind : value_kind(file));
}

static bool unpack(OnnxFile *file)
{
    if (file->kind == ONNX_MODEL && told_kind(file, onnx_other_kind(&file->map)))
        return false;
    WireError err;
    ProtobufCMessage *message = file->kind == ONNX_ANY_VALUE
                                    ? unpack_any(file, &err)
                                    : unpack_kind(file, file->kind, false, &err);
    if (!message) {
        if (!told_late(file))
            import_error(&file->sink, "%s: byte %zu: %s: %s", file->path, err.offset,
                         kind_fault(file->kind), err.what);
        return false;
    }
    switch (file->kind) {
    case ONNX_TENSOR: file->tensor = (Onnx__TensorProto *)message; break;
    case ONNX_SEQUENCE: file->sequence = (Onnx__SequenceProto *)message; break;
    case ONNX_OPTIONAL: file->optional = (Onnx__OptionalProto *)message; break;
    default: file->model = (Onnx__ModelProto *)message; break;
    }
    if (file->model && !file->model->graph) {
        if (!told_late(file))
            import_error(&file->sink, "%s: %s: it has no graph", file->path,
                         kind_fault(file->kind));
        return false;
    }
    return true;
}

/* bytes: NULL to map the path. */
static OnnxFile *load(const char *path, const Span *bytes, OnnxKind kind, const ImportSink *sink)
{
    OnnxFile *file = calloc(1, sizeof *file);
    char *name = copy_string(path);
    if (!file || !name) {
        free(file);
        free(name);
        import_error(sink, "%s: cannot be read: out of memory", path);
        return NULL;
    }
    file->path = name;
    file->kind = kind;
    if (sink)
        file->sink = *sink;
    if (bytes) {
        file->borrowed = true;
        file->map = (MapFile){bytes->data, bytes->len};
    } else {
        const char *why = mapfile_open(&file->map, path);
        if (why && kind == ONNX_MODEL && told_kind(file, onnx_folder_kind(path))) {
            onnx_file_close(file);
            return NULL;
        }
        if (why) {
            import_error(sink, "%s: cannot be read: %s", path, why);
            onnx_file_close(file);
            return NULL;
        }
    }
    if (!unpack(file)) {
        onnx_file_close(file);
        return NULL;
    }
    return file;
}

OnnxFile *onnx_file_load(const char *path, const ImportSink *sink)
{
    return load(path, NULL, ONNX_MODEL, sink);
}

OnnxFile *onnx_file_load_value(const char *path, OnnxKind kind, const ImportSink *sink)
{
    return load(path, NULL, kind, sink);
}

OnnxFile *onnx_file_load_memory(const char *path, Span bytes, OnnxKind kind, const ImportSink *sink)
{
    return load(path, &bytes, kind, sink);
}

void onnx_file_close(OnnxFile *file)
{
    if (!file)
        return;
    ProtobufCMessage *messages[] = {
        (ProtobufCMessage *)file->model, (ProtobufCMessage *)file->tensor,
        (ProtobufCMessage *)file->sequence, (ProtobufCMessage *)file->optional};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i])
            protobuf_c_message_free_unpacked(messages[i], NULL);
    external_close(&file->externals);
    while (file->blocks) {
        ImportBlock *b = file->blocks;
        file->blocks = b->next;
        free(b);
    }
    if (!file->borrowed)
        mapfile_close(&file->map);
    free(file->path);
    free(file);
}

void *onnx_file_alloc(OnnxFile *file, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(ImportBlock))
        return NULL;
    ImportBlock *b = calloc(1, sizeof *b + bytes);
    if (!b)
        return NULL;
    b->next = file->blocks;
    file->blocks = b;
    return b->bytes;
}

Span onnx_file_raw(const OnnxFile *file, const Onnx__TensorProto *proto)
{
    if (proto->has_mapped_bytes)
        return (Span){file->map.data + proto->mapped_offset, (size_t)proto->mapped_bytes};
    if (!proto->has_raw_data)
        return (Span){0};
    static const uint8_t nothing[1];
    return (Span){proto->raw_data.data ? proto->raw_data.data : nothing, proto->raw_data.len};
}

/* ---- external data ----------------------------------------------------------------------- */

const char *onnx_file_name(const OnnxFile *file, int i)
{
    return i ? external_path(file->externals, i - 1) : file->path;
}

/* A decimal number and nothing else. */
static bool parse_size(const char *s, uint64_t *v)
{
    *v = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || *v > (UINT64_MAX - (uint64_t)(*s - '0')) / 10)
            return false;
        *v = *v * 10 + (uint64_t)(*s - '0');
    }
    return true;
}

bool onnx_file_external(OnnxFile *file, const Onnx__TensorProto *proto, const char *where,
                        uint64_t needed, Span *out)
{
    static const char *const keys[] = {"location", "offset", "length"};
    const char *values[3] = {0};
    *out = (Span){0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = proto->external_data[i];
        for (size_t k = 0; k < 3; k++) {
            if (strcmp(entry->key, keys[k]) != 0)
                continue;
            if (values[k]) {
                import_error(&file->sink, "%s: %s: external data: the key '%s' is there twice",
                             file->path, where, keys[k]);
                return false;
            }
            values[k] = entry->value;
        }
    }
    if (!values[0]) {
        import_error(&file->sink, "%s: %s: external data: has no location", file->path, where);
        return false;
    }
    uint64_t offset = 0, length = needed;
    if ((values[1] && !parse_size(values[1], &offset)) ||
        (values[2] && !parse_size(values[2], &length))) {
        import_error(&file->sink, "%s: %s: external data: offset or length is not a number",
                     file->path, where);
        return false;
    }
    if (!length) /* as ONNX Runtime has it: all that the dims need */
        length = needed;
    if (length != needed) {
        import_error(&file->sink,
                     "%s: %s: external data: its length is %llu bytes, its dims need %llu",
                     file->path, where, (unsigned long long)length, (unsigned long long)needed);
        return false;
    }
    const char *why = NULL;
    const MapFile *map = external_map(&file->externals, file->path, values[0], &why);
    if (!map) {
        import_error(&file->sink, "%s: %s: external data '%s': %s", file->path, where, values[0],
                     why);
        return false;
    }
    if (offset > map->len || length > map->len - offset) {
        import_error(&file->sink,
                     "%s: %s: external data '%s': %llu bytes at %llu are outside its %zu bytes",
                     file->path, where, values[0], (unsigned long long)length,
                     (unsigned long long)offset, map->len);
        return false;
    }
    *out = (Span){map->data + offset, (size_t)length};
    return true;
}
