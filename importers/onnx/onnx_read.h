/*
 * onnx_read.h - reading ONNX files safely.
 *
 *     path -> MapFile (mmap) -> wire_slim (checks, leaves weights behind) -> protobuf-c -> OnnxFile
 *
 * Weights are never copied if they can stay where they are: an OnnxTensor points into the mapped
 * model, into the mapped file of its external data, or into the unpacked message; only what has to
 * be expanded (packed 4-bit elements, float16 in int32_data) gets memory, owned by the OnnxFile.
 *
 * Element types in this layer are the numbers of ONNX's own TensorProto.DataType.
 */
#ifndef INGOT_ONNX_READ_H
#define INGOT_ONNX_READ_H

#include <stdio.h>

#include "importer.h"
#include "onnx.pb-c.h"

/* ---- the wire walk (wire.c) -------------------------------------------------------------- */

enum {
    WIRE_MAX_DEPTH = 200,    /* nested messages; real models stay below 30 */
    WIRE_MAPPED_BYTES = 1024 /* a raw_data this long or longer stays in the file */
};

/** Where and why a walk stopped. */
typedef struct WireError {
    size_t offset;  /* of the offending field's tag, in bytes from the start */
    char what[192]; /* "GraphProto.node: its 99 bytes end after the message around it" */
} WireError;

/** A checked copy of a message. malloc'd: free(data). */
typedef struct WireSlim {
    uint8_t *data;
    size_t len;
} WireSlim;

/**
 * Checks a serialized message against root's descriptor and writes a slimmed copy that protobuf-c
 * can unpack. In the copy each TensorProto.raw_data of WIRE_MAPPED_BYTES or more is replaced by
 * the private fields mapped_offset and mapped_bytes; fields unknown to the schema are dropped, or
 * refused if known_only is set (used to tell what kind of message a file holds).
 * Returns false with *err filled in; then nothing has to be freed.
 */
bool wire_slim(Span message, const ProtobufCMessageDescriptor *root, bool known_only,
               WireSlim *slim, WireError *err);

/* ---- files that are no ONNX models (onnx_kind.c) ------------------------------------------ */

/** What it is and what to do with it, by its first bytes; NULL: nothing that is known. */
const char *onnx_other_kind(const MapFile *);
/** The same of what begins like a model of ONNX and is none. */
const char *onnx_other_protobuf(const MapFile *);
/** The same of a folder; NULL: it is none. */
const char *onnx_folder_kind(const char *path);

/* ---- ONNX files (onnx_file.c) ------------------------------------------------------------ */

/** What a file holds. Protobuf files do not say, so the reader has to know or to guess. */
typedef enum OnnxKind {
    ONNX_MODEL,
    ONNX_TENSOR,
    ONNX_SEQUENCE,
    ONNX_OPTIONAL,
    ONNX_ANY_VALUE /* a guess: the first of the last three that fits. An optional sequence may be
                      taken for a sequence of sequences: who knows the type should say it. */
} OnnxKind;

typedef struct ImportBlock ImportBlock;

/** A loaded file. Everything reached from it lives until onnx_file_close. */
typedef struct OnnxFile {
    char *path; /* as given, for messages */
    ImportSink sink;
    MapFile map;
    bool borrowed;           /* map is somebody's memory, not ours to unmap */
    OnnxKind kind;           /* never ONNX_ANY_VALUE; exactly the pointer it names is set: */
    Onnx__ModelProto *model; /* its graph is never null */
    Onnx__TensorProto *tensor;
    Onnx__SequenceProto *sequence;
    Onnx__OptionalProto *optional;
    ExternalFile *externals; /* mapped so far */
    ImportBlock *blocks;     /* memory of expanded tensors */
} OnnxFile;

/**
 * Loads a model: maps, walks, unpacks. Tensors are not looked at yet. Returns NULL after telling
 * the sink why. The sink is copied and used by later calls on the file; it may be NULL.
 */
OnnxFile *onnx_file_load(const char *path, const ImportSink *sink);

/** The files that it was read from: path, then external data so far; NULL: no more. */
const char *onnx_file_name(const OnnxFile *file, int i);

/** Loads a value in a file of its own (input_0.pb); kind is not ONNX_MODEL. */
OnnxFile *onnx_file_load_value(const char *path, OnnxKind kind, const ImportSink *sink);

/**
 * As above from memory, which has to outlive the file; path is for messages and for the folder of
 * external data. kind may be any.
 */
OnnxFile *onnx_file_load_memory(const char *path, Span bytes, OnnxKind kind,
                                const ImportSink *sink);

/** Frees it all. NULL is allowed. */
void onnx_file_close(OnnxFile *file);

/** Memory that lives as long as the file, zeroed, aligned for any type. NULL: out of memory. */
void *onnx_file_alloc(OnnxFile *file, size_t bytes);

/** The raw_data of a tensor wherever it is; {NULL, 0} if it has none. */
Span onnx_file_raw(const OnnxFile *file, const Onnx__TensorProto *proto);

/**
 * The external data of a tensor whose data_location is EXTERNAL. needed is the tensor's size in
 * bytes; offset and length in the file have to agree with it. Returns false after one message that
 * starts with where.
 */
bool onnx_file_external(OnnxFile *file, const Onnx__TensorProto *proto, const char *where,
                        uint64_t needed, Span *out);

/* ---- tensors (onnx_tensor.c) ------------------------------------------------------------- */

/** A tensor's elements, dense, row-major, little-endian, one element in elem_bytes. */
typedef struct OnnxTensor {
    const char *name;
    int32_t dtype; /* TensorProto.DataType */
    size_t rank;
    const int64_t *dims;
    uint64_t count;    /* elements; 1 for a scalar */
    size_t elem_bytes; /* 0 for strings; 1 for 4-bit and 2-bit types (sign-extended if signed) */
    Span data;         /* count * elem_bytes; unaligned; never null */
    const ProtobufCBinaryData *strings; /* count of them, if dtype is STRING */
    bool in_place;                      /* data lies in the mapped model or external file */
} OnnxTensor;

/** "FLOAT16"; "unknown type" for what this compiler does not know. */
const char *onnx_dtype_name(int32_t dtype);

/** Bits of an element as stored in raw_data; 0 for strings and unknown types. */
unsigned onnx_dtype_bits(int32_t dtype);

/**
 * Decodes a tensor. where names its place for messages ("initializer 'w'", "node 'n' (Op)").
 * Returns false after one message. Decoding twice gives the expanded bytes twice.
 */
bool onnx_tensor_read(OnnxFile *file, const Onnx__TensorProto *proto, const char *where,
                      OnnxTensor *out);

/** As above for a sparse tensor, made dense; refused above ONNX_MAX_DENSE_BYTES. */
bool onnx_tensor_read_sparse(OnnxFile *file, const Onnx__SparseTensorProto *proto,
                             const char *where, OnnxTensor *out);
#define ONNX_MAX_DENSE_BYTES ((uint64_t)1 << 30)

/** Writes a TensorProto: name, dtype, rank, dims and data or strings. False: they do not agree. */
bool onnx_tensor_put(FILE *, const OnnxTensor *);
/** Writes a field of a message that holds bytes, or a message. */
void onnx_field_put(FILE *, unsigned field, const void *bytes, size_t len);

/* ---- values in files (onnx_value.c) ------------------------------------------------------ */

/** input_0.pb: a TensorProto, SequenceProto or OptionalProto. */
extern const DataForm onnx_data[];

/* onnx_save.c: as Importer.save has it; of an open model. */
bool onnx_save(void *model, OtherWeight *, void *user,
               bool (*put)(void *user, const void *bytes, size_t n), void *out);
/* onnx_import.c: number i of the operators that there are; false: no more. */
bool onnx_op_at(int i, ImportedOp *);

#endif
