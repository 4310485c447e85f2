/*
 * onnx_tensor.c - decodes TensorProto and SparseTensorProto, writes TensorProto files.
 *
 * A TensorProto may hold its elements in raw_data, in an external file, or in one of six typed
 * lists, chosen by its type. Whatever the source, the result is a span of dense little-endian
 * elements. Bytes that already have that form are pointed at, not copied:
 *
 *     raw_data, external   8 bits and more        in place, in the mapped file
 *     typed list           of the same width      in place, in the unpacked message
 *     raw_data, external   4 and 2 bits           expanded to one element a byte, low bits first:
 *                                                 0x2f -> f 2 (uint4), -1 2 (int4)
 *     int32_data           4 and 2 bits           each int32 is one such byte
 *     int32_data           8 and 16 bits          narrowed
 *     uint64_data          UINT32                 narrowed
 *     BOOL                 any byte above 1       made 1
 *
 * Dims and data have to agree exactly. Requires a little-endian host.
 */
#include "onnx_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are read in place, which needs a little-endian host"
#endif

/* The typed list that a type uses. */
typedef enum Carrier {
    CARRIER_NONE,
    CARRIER_FLOAT,
    CARRIER_INT32,
    CARRIER_STRING,
    CARRIER_INT64,
    CARRIER_DOUBLE,
    CARRIER_UINT64,
    N_CARRIERS
} Carrier;

static const char *const carrier_names[N_CARRIERS] = {
    "", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"};

typedef struct TypeInfo {
    const char *name;
    unsigned char bits;  /* in raw_data; 0 for strings */
    unsigned char lanes; /* list entries an element, for types of 8 bits and more */
    bool is_signed;      /* matters below 8 bits */
    Carrier carrier;
} TypeInfo;

/* clang-format off */
static const TypeInfo types[] = {
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT]          = {"FLOAT",           32, 1, true,  CARRIER_FLOAT},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8]          = {"UINT8",            8, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8]           = {"INT8",             8, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16]         = {"UINT16",          16, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16]          = {"INT16",           16, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32]          = {"INT32",           32, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64]          = {"INT64",           64, 1, true,  CARRIER_INT64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__STRING]         = {"STRING",           0, 1, false, CARRIER_STRING},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL]           = {"BOOL",             8, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16]        = {"FLOAT16",         16, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE]         = {"DOUBLE",          64, 1, true,  CARRIER_DOUBLE},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32]         = {"UINT32",          32, 1, false, CARRIER_UINT64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64]         = {"UINT64",          64, 1, false, CARRIER_UINT64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64]      = {"COMPLEX64",       64, 2, true,  CARRIER_FLOAT},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128]     = {"COMPLEX128",     128, 2, true,  CARRIER_DOUBLE},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16]       = {"BFLOAT16",        16, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FN]   = {"FLOAT8E4M3FN",     8, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FNUZ] = {"FLOAT8E4M3FNUZ",   8, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E5M2]     = {"FLOAT8E5M2",       8, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E5M2FNUZ] = {"FLOAT8E5M2FNUZ",   8, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT4]          = {"UINT4",            4, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT4]           = {"INT4",             4, 1, true,  CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT4E2M1]     = {"FLOAT4E2M1",       4, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E8M0]     = {"FLOAT8E8M0",       8, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT2]          = {"UINT2",            2, 1, false, CARRIER_INT32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT2]           = {"INT2",             2, 1, true,  CARRIER_INT32},
};
/* clang-format on */

enum { N_TYPES = sizeof types / sizeof *types };

static const TypeInfo *type_info(int32_t dtype)
{
    return dtype > 0 && dtype < N_TYPES ? &types[dtype] : NULL;
}

const char *onnx_dtype_name(int32_t dtype)
{
    const TypeInfo *info = type_info(dtype);
    return info ? info->name : "unknown type";
}

unsigned onnx_dtype_bits(int32_t dtype)
{
    const TypeInfo *info = type_info(dtype);
    return info ? info->bits : 0;
}

/* Where a decode is, for its messages. */
typedef struct TensorReader {
    OnnxFile *file;
    const char *where;
} TensorReader;

static bool fail(const TensorReader *r, const char *why)
{
    import_error(&r->file->sink, "%s: %s: cannot be read: %s", r->file->path, r->where, why);
    return false;
}

/* Product of dims. False: a negative dim, or more elements than 2^63 - 1. */
static bool count_elements(const TensorReader *r, const int64_t *dims, size_t rank, uint64_t *count)
{
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return fail(r, "a dim is negative");
        empty = empty || dims[i] == 0;
    }
    *count = empty ? 0 : 1;
    for (size_t i = 0; i < rank && !empty; i++) {
        if (*count > INT64_MAX / (uint64_t)dims[i])
            return fail(r, "its dims multiply to more than 2^63 elements");
        *count *= (uint64_t)dims[i];
    }
    return true;
}

/* Bytes of count elements, packed. False: more than the address space. */
static bool packed_bytes(const TensorReader *r, uint64_t count, unsigned bits, uint64_t *bytes)
{
    uint64_t per_byte = bits < 8 ? 8 / bits : 1;
    uint64_t each = bits < 8 ? 1 : bits / 8;
    uint64_t n = count / per_byte + (count % per_byte != 0);
    if (n > PTRDIFF_MAX / each || (count > PTRDIFF_MAX && bits < 8))
        return fail(r, "it is larger than the address space");
    *bytes = n * each;
    return true;
}

/* ---- bytes to elements ------------------------------------------------------------------- */

/* Element i of a packed list of bits-wide elements, in one byte. */
static uint8_t packed_number(uint8_t byte, uint64_t i, const TypeInfo *info)
{
    unsigned bits = info->bits, shift = (unsigned)(i % (8 / bits)) * bits;
    unsigned mask = (1u << bits) - 1, v = byte >> shift & mask;
    if (info->is_signed && v >> (bits - 1))
        v |= ~mask;
    return (uint8_t)v;
}

/* Gives out->data from bytes in the form of raw_data, whose length has been checked. */
static bool from_raw(const TensorReader *r, Span raw, const TypeInfo *info, OnnxTensor *out)
{
    bool expand = info->bits < 8;
    if (out->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL)
        for (size_t i = 0; i < raw.len && !expand; i++)
            expand = raw.data[i] > 1;
    if (!expand) {
        out->data = raw;
        return true;
    }
    uint8_t *to = onnx_file_alloc(r->file, (size_t)out->count);
    if (!to)
        return fail(r, "out of memory");
    for (uint64_t i = 0; i < out->count; i++)
        to[i] = info->bits < 8 ? packed_number(raw.data[i / (8 / info->bits)], i, info)
                               : (uint8_t)(raw.data[i] != 0);
    out->data = (Span){to, (size_t)out->count};
    out->in_place = false;
    return true;
}

/* int32_data of types below 32 bits. Either sign convention is fine, other values are not. */
static bool from_int32(const TensorReader *r, const Onnx__TensorProto *proto, const TypeInfo *info,
                       OnnxTensor *out)
{
    size_t width = info->bits == 16 ? 2 : 1;
    int32_t low = width == 2 ? INT16_MIN : INT8_MIN, high = width == 2 ? UINT16_MAX : UINT8_MAX;
    uint8_t *to = onnx_file_alloc(r->file, (size_t)out->count * out->elem_bytes);
    if (!to)
        return fail(r, "out of memory");
    for (size_t i = 0; i < proto->n_int32_data; i++)
        if (proto->int32_data[i] < low || proto->int32_data[i] > high)
            return fail(r, "int32_data has a value outside the range of its type");
    for (size_t i = 0; i < (size_t)out->count; i++) {
        if (info->bits < 8) {
            to[i] = packed_number((uint8_t)proto->int32_data[i / (8 / info->bits)], i, info);
        } else if (width == 2) {
            uint16_t v = (uint16_t)proto->int32_data[i];
            memcpy(to + 2 * i, &v, 2);
        } else {
            to[i] = (uint8_t)proto->int32_data[i];
            if (out->dtype == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL)
                to[i] = to[i] != 0;
        }
    }
    out->data = (Span){to, (size_t)out->count * out->elem_bytes};
    return true;
}

static bool uint32_from_uint64(const TensorReader *r, const Onnx__TensorProto *proto,
                               OnnxTensor *out)
{
    uint8_t *to = onnx_file_alloc(r->file, proto->n_uint64_data * 4);
    if (!to)
        return fail(r, "out of memory");
    for (size_t i = 0; i < proto->n_uint64_data; i++) {
        uint32_t v = (uint32_t)proto->uint64_data[i];
        if (v != proto->uint64_data[i])
            return fail(r, "uint64_data has a value outside the range of its type");
        memcpy(to + 4 * i, &v, 4);
    }
    out->data = (Span){to, proto->n_uint64_data * 4};
    return true;
}

static bool from_list(const TensorReader *r, const Onnx__TensorProto *proto, const TypeInfo *info,
                      OnnxTensor *out)
{
    size_t bytes = (size_t)out->count * out->elem_bytes;
    switch (info->carrier) {
    case CARRIER_FLOAT: out->data = (Span){(const uint8_t *)proto->float_data, bytes}; return true;
    case CARRIER_INT64: out->data = (Span){(const uint8_t *)proto->int64_data, bytes}; return true;
    case CARRIER_DOUBLE:
        out->data = (Span){(const uint8_t *)proto->double_data, bytes};
        return true;
    case CARRIER_UINT64:
        if (info->bits == 32)
            return uint32_from_uint64(r, proto, out);
        out->data = (Span){(const uint8_t *)proto->uint64_data, bytes};
        return true;
    case CARRIER_STRING: out->strings = proto->string_data; return true;
    default:
        if (info->bits != 32)
            return from_int32(r, proto, info, out);
        out->data = (Span){(const uint8_t *)proto->int32_data, bytes};
        return true;
    }
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Finds the source, and checks that there is one and that its size is that of the dims. */
static bool read_elements(const TensorReader *r, const Onnx__TensorProto *proto,
                          const TypeInfo *info, OnnxTensor *out)
{
    const size_t lengths[N_CARRIERS] = {
        [CARRIER_FLOAT] = proto->n_float_data,   [CARRIER_INT32] = proto->n_int32_data,
        [CARRIER_STRING] = proto->n_string_data, [CARRIER_INT64] = proto->n_int64_data,
        [CARRIER_DOUBLE] = proto->n_double_data, [CARRIER_UINT64] = proto->n_uint64_data};
    bool external = proto->has_data_location &&
                    proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    Span raw = onnx_file_raw(r->file, proto);
    uint64_t bytes = 0;
    if (info->bits && !packed_bytes(r, out->count, info->bits, &bytes))
        return false;

    for (Carrier c = CARRIER_FLOAT; c < N_CARRIERS; c++) {
        if (lengths[c] == 0 || (c == info->carrier && !external && raw.len == 0))
            continue;
        import_error(&r->file->sink, "%s: %s: cannot be read: %s has data in %s%s", r->file->path,
                     r->where, info->name, carrier_names[c],
                     external  ? " and an external file"
                     : raw.len ? " and raw_data"
                               : "");
        return false;
    }
    if (external) {
        if (raw.len)
            return fail(r, "it has raw_data and an external file");
        if (!info->bits)
            return fail(r, "strings cannot be in an external file");
        if (!onnx_file_external(r->file, proto, r->where, bytes, &raw))
            return false;
        out->in_place = true;
        return from_raw(r, raw, info, out);
    }
    if (raw.len) {
        if (!info->bits)
            return fail(r, "strings cannot be in raw_data");
        if (raw.len != bytes) {
            import_error(&r->file->sink,
                         "%s: %s: cannot be read: raw_data has %zu bytes, its dims need %llu",
                         r->file->path, r->where, raw.len, (unsigned long long)bytes);
            return false;
        }
        out->in_place = proto->has_mapped_bytes;
        return from_raw(r, raw, info, out);
    }
    uint64_t entries =
        info->bits && info->bits < 8 ? bytes : out->count * info->lanes; /* count < 2^63 */
    size_t have = lengths[info->carrier];
    if (have != entries) {
        if (have == 0)
            return fail(r, "it has dims but no data");
        import_error(&r->file->sink,
                     "%s: %s: cannot be read: %s has %zu entries, its dims need %llu",
                     r->file->path, r->where, carrier_names[info->carrier], have,
                     (unsigned long long)entries);
        return false;
    }
    return from_list(r, proto, info, out);
}

bool onnx_tensor_read(OnnxFile *file, const Onnx__TensorProto *proto, const char *where,
                      OnnxTensor *out)
{
    TensorReader r = {file, where};
    *out = (OnnxTensor){
        .name = proto->name, .dtype = proto->data_type, .rank = proto->n_dims, .dims = proto->dims};
    const TypeInfo *info = type_info(proto->data_type);
    if (!info) {
        import_error(&file->sink, "%s: %s: cannot be read: its data type %d is not known",
                     file->path, where, (int)proto->data_type);
        return false;
    }
    if (proto->segment)
        return fail(&r, "tensors in segments are not supported");
    if (!count_elements(&r, proto->dims, proto->n_dims, &out->count))
        return false;
    out->elem_bytes = info->bits ? (info->bits + 7u) / 8u : 0;
    if (!read_elements(&r, proto, info, out))
        return false;
    if (!out->data.data) {
        static const uint8_t nothing[1];
        out->data = (Span){nothing, 0};
    }
    return true;
}

/* Element i of integers of 1, 2, 4 or 8 bytes: the standard's are i64, ONNX Runtime takes shorter
 * ones too. */
static int64_t index_at(const OnnxTensor *indices, uint64_t i)
{
    size_t width = indices->elem_bytes;
    uint64_t v = 0;
    for (size_t b = 0; b < width; b++)
        v |= (uint64_t)indices->data.data[i * width + b] << (8 * b);
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    return (int64_t)((v ^ sign) - sign);
}

static bool is_index_type(int32_t dtype)
{
    return dtype == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
           dtype == ONNX__TENSOR_PROTO__DATA_TYPE__INT32 ||
           dtype == ONNX__TENSOR_PROTO__DATA_TYPE__INT16 ||
           dtype == ONNX__TENSOR_PROTO__DATA_TYPE__INT8;
}

/* The place in the dense tensor of the i-th of nnz indices, which are linear or a row of
 * coordinates; -1: outside. */
static int64_t dense_place(const OnnxTensor *indices, uint64_t i, const int64_t *dims, size_t rank,
                           uint64_t count)
{
    int64_t place = 0;
    if (indices->rank == 1) {
        int64_t at = index_at(indices, i);
        return at >= 0 && (uint64_t)at < count ? at : -1;
    }
    for (size_t d = 0; d < rank; d++) {
        int64_t at = index_at(indices, i * rank + d);
        if (at < 0 || at >= dims[d])
            return -1;
        place = place * dims[d] + at;
    }
    return place;
}

bool onnx_tensor_read_sparse(OnnxFile *file, const Onnx__SparseTensorProto *proto,
                             const char *where, OnnxTensor *out)
{
    TensorReader r = {file, where};
    OnnxTensor values, indices;
    uint64_t count = 0;
    *out = (OnnxTensor){0};
    if (!proto->values || !proto->indices)
        return fail(&r, "a sparse tensor needs values and indices");
    if (!onnx_tensor_read(file, proto->values, where, &values) ||
        !onnx_tensor_read(file, proto->indices, where, &indices) ||
        !count_elements(&r, proto->dims, proto->n_dims, &count))
        return false;
    if (values.rank != 1 || values.elem_bytes == 0)
        return fail(&r, "the values of a sparse tensor have to be a list of numbers");
    bool linear = indices.rank == 1;
    if (!is_index_type(indices.dtype) || (indices.rank != 1 && indices.rank != 2) ||
        indices.dims[0] != values.dims[0] ||
        (!linear && (uint64_t)indices.dims[1] != proto->n_dims))
        return fail(&r, "the indices of a sparse tensor do not match its values and dims");
    if (count == 0 && values.count > 0)
        return fail(&r, "an index of a sparse tensor is outside its dims");
    if (count > ONNX_MAX_DENSE_BYTES / values.elem_bytes)
        return fail(&r, "a sparse tensor of more than 1 GiB when dense is not supported");

    size_t width = values.elem_bytes;
    uint8_t *to = onnx_file_alloc(file, (size_t)count * width);
    if (!to)
        return fail(&r, "out of memory");
    int64_t last = -1;
    for (uint64_t i = 0; i < values.count; i++) {
        int64_t place = dense_place(&indices, i, proto->dims, proto->n_dims, count);
        if (place < 0)
            return fail(&r, "an index of a sparse tensor is outside its dims");
        if (place <= last)
            return fail(&r, "the indices of a sparse tensor are not in rising order");
        memcpy(to + (size_t)place * width, values.data.data + i * width, width);
        last = place;
    }
    *out = (OnnxTensor){.name = values.name,
                        .dtype = values.dtype,
                        .rank = proto->n_dims,
                        .dims = proto->dims,
                        .count = count,
                        .elem_bytes = width,
                        .data = {to, (size_t)count * width}};
    return true;
}

/* ---- writing ----------------------------------------------------------------------------- */

static void put_varint(FILE *f, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        putc((int)(v & 0x7f) | 0x80, f);
    putc((int)v, f);
}

void onnx_field_put(FILE *f, unsigned field, const void *bytes, size_t len)
{
    put_varint(f, (uint64_t)field << 3 | 2);
    put_varint(f, len);
    if (len)
        fwrite(bytes, 1, len, f);
}

static void put_raw(FILE *f, const OnnxTensor *t, const TypeInfo *info)
{
    if (info->bits >= 8) {
        onnx_field_put(f, 9, t->data.data, t->data.len);
        return;
    }
    unsigned per_byte = 8u / info->bits, mask = (1u << info->bits) - 1;
    put_varint(f, 9 << 3 | 2);
    put_varint(f, t->count / per_byte + (t->count % per_byte != 0));
    for (uint64_t i = 0; i < t->count; i += per_byte) {
        unsigned byte = 0;
        for (unsigned k = 0; k < per_byte && i + k < t->count; k++)
            byte |= (t->data.data[i + k] & mask) << (k * info->bits);
        putc((int)byte, f);
    }
}

bool onnx_tensor_put(FILE *f, const OnnxTensor *t)
{
    const TypeInfo *info = type_info(t->dtype);
    uint64_t count = 1;
    for (size_t i = 0; i < t->rank; i++)
        count *= (uint64_t)t->dims[i];
    size_t width = info ? (info->bits + 7u) / 8u : 0;
    if (!info || count != t->count || t->data.len != t->count * width)
        return false;
    for (size_t i = 0; i < t->rank; i++) {
        put_varint(f, 1 << 3);
        put_varint(f, (uint64_t)t->dims[i]);
    }
    put_varint(f, 2 << 3);
    put_varint(f, (uint64_t)t->dtype);
    if (info->bits == 0)
        for (uint64_t i = 0; i < t->count; i++)
            onnx_field_put(f, 6, t->strings[i].data, t->strings[i].len);
    onnx_field_put(f, 8, t->name, strlen(t->name));
    if (info->bits)
        put_raw(f, t, info);
    return true;
}
