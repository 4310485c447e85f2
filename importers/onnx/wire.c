/*
 * wire.c - checks a protobuf message before protobuf-c sees it, and slims it.
 *
 * protobuf-c recurses once per nested message without a limit, and it copies every bytes field.
 * A hostile file of nested graphs would overflow its stack, and a model's weights would be held
 * twice. This walk goes over the wire format once, with its own stack and a depth limit, and
 * writes a copy in which
 *
 *   - every tag, varint and length has been checked against the message around it,
 *   - every known field has the wire type of its declaration, strings hold no NUL,
 *   - unknown fields are gone (also private ones that a file might try to bring along),
 *   - a long TensorProto.raw_data is two numbers, its offset and its length in the file.
 *
 * The generated descriptors are the schema, so there is no table to keep in step with onnx.proto.
 *
 * The wire format (https://protobuf.dev/programming-guides/encoding): a message is a list of
 * fields, each a varint tag (number << 3 | wire type) and a value:
 *
 *     0 varint   1 eight bytes   2 varint length, bytes   3, 4 group   5 four bytes
 *
 * A nested message changes its length when it is slimmed. Its new length is written as a varint
 * padded to five bytes, patched when the message ends:
 *
 *     in   0a 85 08 | ...................... raw_data .............
 *     out  0a LL LL LL LL LL | ............. mapped_offset mapped_bytes
 *             80 80 80 80 00  while open, then seven bits a byte, low bits first
 */
#include "onnx_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_32 = 5,

    MAX_VARINT = 10,
    PADDED_LENGTH = 5,
    MAX_FIELD = (1 << 29) - 1,

    /* numbers of TensorProto's fields in onnx.proto */
    FIELD_RAW_DATA = 9,
    FIELD_MAPPED_OFFSET = 536870910,
    FIELD_MAPPED_BYTES = 536870911
};

typedef struct MessageFrame {
    const ProtobufCMessageDescriptor *desc;
    size_t end;       /* in the input */
    size_t length_at; /* in the output; the root has none */
    uint64_t seen;    /* bit i: the i-th field of desc, if it is a message or raw_data */
} MessageFrame;

typedef struct WireWalk {
    const uint8_t *in;
    size_t pos;
    uint8_t *out;
    size_t out_len, out_cap;
    bool known_only;
    WireError *err;
    size_t depth;
    MessageFrame stack[WIRE_MAX_DEPTH];
} WireWalk;

/* One tag and value as read. */
typedef struct WireField {
    uint32_t number;
    unsigned wire;
    size_t tag_at, value_at, len; /* the value's bytes, without the length in front of them */
} WireField;

IMPORT_PRINTF(2, 3) static bool fail(WireError *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->what, sizeof err->what, fmt, args);
    va_end(args);
    return false;
}

/* ---- output ------------------------------------------------------------------------------ */

static bool reserve(WireWalk *w, size_t more)
{
    if (more > INT32_MAX - w->out_len)
        return fail(w->err, "the message is larger than 2 GiB, its large weights not counted");
    if (more <= w->out_cap - w->out_len)
        return true;
    size_t cap = w->out_cap ? w->out_cap * 2 : 4096;
    while (cap - w->out_len < more)
        cap *= 2;
    uint8_t *out = realloc(w->out, cap);
    if (!out)
        return fail(w->err, "out of memory");
    w->out = out;
    w->out_cap = cap;
    return true;
}

static bool put_bytes(WireWalk *w, const uint8_t *bytes, size_t n)
{
    if (!reserve(w, n))
        return false;
    if (n)
        memcpy(w->out + w->out_len, bytes, n);
    w->out_len += n;
    return true;
}

static bool put_varint(WireWalk *w, uint64_t v)
{
    uint8_t buf[MAX_VARINT];
    size_t n = 0;
    do {
        buf[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return put_bytes(w, buf, n);
}

static bool put_fixed64(WireWalk *w, uint32_t number, uint64_t v)
{
    uint8_t buf[8];
    for (int i = 0; i < 8; i++)
        buf[i] = (uint8_t)(v >> (8 * i));
    return put_varint(w, (uint64_t)number << 3 | WIRE_64) && put_bytes(w, buf, sizeof buf);
}

static void patch_length(WireWalk *w, const MessageFrame *f)
{
    size_t len = w->out_len - f->length_at - PADDED_LENGTH;
    for (int i = 0; i < PADDED_LENGTH; i++)
        w->out[f->length_at + (size_t)i] =
            (uint8_t)((len >> (7 * i) & 0x7f) | (i < PADDED_LENGTH - 1 ? 0x80 : 0));
}

/* ---- input ------------------------------------------------------------------------------- */

/* Reads a varint at *pos that ends before end. False: cut off, or longer than 64 bits. */
static bool get_varint(const uint8_t *in, size_t *pos, size_t end, uint64_t *v)
{
    *v = 0;
    for (unsigned i = 0; i < MAX_VARINT && *pos < end; i++) {
        uint8_t byte = in[(*pos)++];
        if (i == MAX_VARINT - 1 && byte > 1)
            return false;
        *v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads tag, length and extent of the next field; the position is left after its value. */
static bool get_field(WireWalk *w, const MessageFrame *f, WireField *field)
{
    const char *message = f->desc->short_name;
    uint64_t tag = 0, len = 0;
    field->tag_at = w->pos;
    if (!get_varint(w->in, &w->pos, f->end, &tag))
        return fail(w->err, "%s: a field's tag is cut off or too long", message);
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD)
        return fail(w->err, "%s: a field has the impossible number %llu", message,
                    (unsigned long long)(tag >> 3));
    field->number = (uint32_t)(tag >> 3);
    field->wire = (unsigned)(tag & 7);
    field->value_at = w->pos;

    switch (field->wire) {
    case WIRE_VARINT:
        if (!get_varint(w->in, &w->pos, f->end, &len))
            return fail(w->err, "%s: field %u: a number is cut off or longer than 64 bits", message,
                        field->number);
        field->len = w->pos - field->value_at;
        return true;
    case WIRE_64: len = 8; break;
    case WIRE_32: len = 4; break;
    case WIRE_BYTES:
        if (!get_varint(w->in, &w->pos, f->end, &len))
            return fail(w->err, "%s: field %u: its length is cut off or too long", message,
                        field->number);
        field->value_at = w->pos;
        break;
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        return fail(w->err, "%s: field %u: is a group, which ONNX does not use", message,
                    field->number);
    default:
        return fail(w->err, "%s: field %u: has the impossible wire type %u", message, field->number,
                    field->wire);
    }
    if (len > f->end - w->pos)
        return fail(w->err, "%s: field %u: needs %llu bytes where %zu are left", message,
                    field->number, (unsigned long long)len, f->end - w->pos);
    field->len = (size_t)len;
    w->pos += (size_t)len;
    return true;
}

/* ---- checks ------------------------------------------------------------------------------ */

static unsigned declared_wire(const ProtobufCFieldDescriptor *fd)
{
    switch (fd->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return WIRE_32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return WIRE_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return WIRE_BYTES;
    default: return WIRE_VARINT;
    }
}

static bool packed_is_sound(const uint8_t *in, size_t pos, size_t len, unsigned wire)
{
    if (wire == WIRE_32)
        return len % 4 == 0;
    if (wire == WIRE_64)
        return len % 8 == 0;
    uint64_t v;
    for (size_t end = pos + len; pos < end;)
        if (!get_varint(in, &pos, end, &v))
            return false;
    return true;
}

/* Wire type, packed lists, strings, and that what can be there once is there once. */
static bool check_field(WireWalk *w, MessageFrame *f, const WireField *field,
                        const ProtobufCFieldDescriptor *fd)
{
    const char *message = f->desc->short_name;
    unsigned wire = declared_wire(fd);
    bool repeated = fd->label == PROTOBUF_C_LABEL_REPEATED;
    if (field->wire != wire) {
        if (!repeated || wire == WIRE_BYTES || field->wire != WIRE_BYTES)
            return fail(w->err, "%s.%s: has wire type %u where %u is meant", message, fd->name,
                        field->wire, wire);
        if (!packed_is_sound(w->in, field->value_at, field->len, wire))
            return fail(w->err, "%s.%s: a packed list that ends inside an element", message,
                        fd->name);
    }
    if (fd->type == PROTOBUF_C_TYPE_STRING && field->len > 0 &&
        memchr(w->in + field->value_at, 0, field->len))
        return fail(w->err, "%s.%s: a string with a NUL byte", message, fd->name);

    /* Protobuf merges a message that comes twice and takes the last of two scalars. No exporter
     * relies on it, and two raw_data, one of them left behind, would be ambiguous. */
    bool raw = f->desc == &onnx__tensor_proto__descriptor && fd->id == FIELD_RAW_DATA;
    if (!repeated && (raw || fd->type == PROTOBUF_C_TYPE_MESSAGE)) {
        size_t index = (size_t)(fd - f->desc->fields);
        uint64_t bit = index < 64 ? (uint64_t)1 << index : 0;
        if (f->seen & bit)
            return fail(w->err, "%s.%s: is there twice", message, fd->name);
        f->seen |= bit;
    }
    return true;
}

/* ---- the walk ---------------------------------------------------------------------------- */

static bool enter(WireWalk *w, const WireField *field, const ProtobufCFieldDescriptor *fd)
{
    if (w->depth == WIRE_MAX_DEPTH)
        return fail(w->err, "%s: messages are nested more than %d deep", fd->name, WIRE_MAX_DEPTH);
    static const uint8_t open_length[PADDED_LENGTH];
    size_t length_at = w->out_len;
    if (!put_bytes(w, open_length, sizeof open_length))
        return false;
    w->stack[w->depth++] = (MessageFrame){
        .desc = fd->descriptor, .end = field->value_at + field->len, .length_at = length_at};
    w->pos = field->value_at;
    return true;
}

static bool copy_field(WireWalk *w, MessageFrame *f)
{
    WireField field = {0};
    if (!get_field(w, f, &field))
        return false;
    const ProtobufCFieldDescriptor *fd =
        protobuf_c_message_descriptor_get_field(f->desc, field.number);
    if (field.number == FIELD_MAPPED_OFFSET || field.number == FIELD_MAPPED_BYTES)
        fd = NULL;
    if (!fd) {
        if (w->known_only)
            return fail(w->err, "%s: has the unknown field %u", f->desc->short_name, field.number);
        return true;
    }
    if (!check_field(w, f, &field, fd))
        return false;

    if (f->desc == &onnx__tensor_proto__descriptor && field.number == FIELD_RAW_DATA &&
        field.len >= WIRE_MAPPED_BYTES)
        return put_fixed64(w, FIELD_MAPPED_OFFSET, field.value_at) &&
               put_fixed64(w, FIELD_MAPPED_BYTES, field.len);

    if (!put_varint(w, (uint64_t)field.number << 3 | field.wire))
        return false;
    if (fd->type == PROTOBUF_C_TYPE_MESSAGE)
        return enter(w, &field, fd);
    if (field.wire == WIRE_BYTES && !put_varint(w, field.len))
        return false;
    return put_bytes(w, w->in + field.value_at, field.len);
}

bool wire_slim(Span message, const ProtobufCMessageDescriptor *root, bool known_only,
               WireSlim *slim, WireError *err)
{
    *slim = (WireSlim){0};
    *err = (WireError){0};
    WireWalk w = {.in = message.data, .known_only = known_only, .err = err};
    w.stack[w.depth++] = (MessageFrame){.desc = root, .end = message.len};
    bool ok = reserve(&w, 1); /* an empty message, too, is a buffer */
    while (ok && w.depth > 0) {
        MessageFrame *f = &w.stack[w.depth - 1];
        err->offset = w.pos;
        if (w.pos < f->end) {
            ok = copy_field(&w, f);
            continue;
        }
        if (--w.depth > 0)
            patch_length(&w, f);
    }
    if (!ok) {
        free(w.out);
        return false;
    }
    *slim = (WireSlim){.data = w.out, .len = w.out_len};
    return true;
}
