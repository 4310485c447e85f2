/*
 * importer.h - what an importer is: a record of functions, and what all importers share.
 *
 *     path -> MapFile -> the importer whose `is` says so -> its `open` -> inputs, outputs ->
 * `build`
 *
 * A file is never trusted. Every length, offset, dim and nesting level is checked before it is
 * used, and each fault is told as one line, "FILE: WHO: WHAT: WHY".
 *
 * importers.def is the list; whoever has a model in hand knows ingot_model.h and no format.
 */
#ifndef INGOT_IMPORTER_H
#define INGOT_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingot_model.h"

#if defined(__GNUC__)
#define IMPORT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define IMPORT_PRINTF(fmt, args)
#endif

/* ---- messages ---------------------------------------------------------------------------- */

/** Receives each message: one line of printable text, no newline, valid during the call only. */
typedef struct ImportSink {
    void (*fn)(void *user, const char *message);
    void *user;
} ImportSink;

/**
 * Formats a message and hands it to the sink. A null sink or function drops it. Names come from
 * the file: control characters are replaced by '?', and what passes 1 KiB is cut off.
 */
void import_error(const ImportSink *sink, const char *fmt, ...) IMPORT_PRINTF(2, 3);
/** The same replacement in a text that a message is to hold. */
void import_hide_controls(char *text);

/* ---- mapped files (mapfile.c) ------------------------------------------------------------ */

/** Bytes that somebody else owns. No alignment is promised: read elements with memcpy. */
typedef struct Span {
    const uint8_t *data;
    size_t len;
} Span;

/** A file mapped read-only. data is never null, also when the file is empty. */
typedef struct MapFile {
    const uint8_t *data;
    size_t len;
} MapFile;

/** Maps a regular file. Returns NULL, or why not (a constant string, *map is then empty). */
const char *mapfile_open(MapFile *map, const char *path);

/**
 * Maps dir/location where location comes out of a file and may be hostile: it has to be relative,
 * without "..", and no part of it may be a symbolic link. Returns NULL or why not.
 */
const char *mapfile_open_within(MapFile *map, const char *dir, const char *location);

/** Unmaps. Does nothing to an empty or zeroed MapFile. */
void mapfile_close(MapFile *map);

/* ---- files that a model names (external.c) ----------------------------------------------- */

/** Files beside a model that weights lie in, as far as they have been mapped; NULL: none. */
typedef struct ExternalFile ExternalFile;

/** The mapped file of a location in the folder of `model`, which is a path; as for
 * mapfile_open_within. NULL: *why says why not. It stays until external_close. */
const MapFile *external_map(ExternalFile **, const char *model, const char *location,
                            const char **why);
/** The path of number i of them; NULL: no more. */
const char *external_path(const ExternalFile *, int i);
void external_close(ExternalFile **);

/* ---- values in files --------------------------------------------------------------------- */

/** A tensor in memory, or a sequence of them, or an optional one. */
typedef struct HostTensor HostTensor;
struct HostTensor {
    ingot_dtype dtype;
    int rank;
    int64_t dims[INGOT_MAX_RANK];
    size_t count, bytes;
    void *data;    /* dense; strings: char pointers */
    bool raw;      /* the file has no name for the type: it may be any of this width */
    bool sequence; /* its tensors are in item */
    bool absent;   /* an optional that is not there */
    HostTensor *item;
    int nitem;
};

/** Who reads or writes a value: memory that it lives in, and who hears why not. */
typedef struct ValueUser {
    void *(*alloc)(void *user, size_t bytes); /* aligned for any type, never NULL */
    void (*fault)(void *user, ingot_status, const char *message);
    void *user;
} ValueUser;

/** Files with one value each, as test data of a format has them beside NumPy's, which need no line
 * here: DIR/input_0.pb. In `like` is what the model declares, of which kind and name are asked;
 * NULL: a tensor. False after a fault. */
typedef struct DataForm {
    const char *ending; /* ".pb" */
    bool (*read)(const ValueUser *, const char *path, const ingot_model_io *like, HostTensor *);
    /* shown: the path for messages */
    bool (*write)(const ValueUser *, const char *path, const char *shown,
                  const ingot_model_io *like, const HostTensor *);
} DataForm;

/** Asked of each float tensor that a file has as a weight: what it is to be, of the same type and
 * dims, in bytes that stay until the end; NULL: it stays. */
typedef const void *OtherWeight(void *user, const ingot_model_weight *, const HostTensor *);

/** An operator that an importer knows, for whoever lists them. */
typedef struct ImportedOp {
    const char *domain; /* "ai.onnx"; of a format without domains "" */
    const char *name;
    int since;        /* the first version of the domain that has it; else the greatest known */
    int least, most;  /* inputs; most -1: any number */
    char inputs[192]; /* types for each input, "f16+f32 i64"; the last for those that follow */
} ImportedOp;

/** What a file says of how it is trained. Where it has a step of its own, `build` makes that step's
 * outputs and next values, and there is no loss and no optimizer. */
typedef struct {
    const char *loss;                 /* an output of the step, one number */
    const ingot_optimizer *optimizer; /* or NULL */
    bool own_step;
} ImportedTraining;

/* ---- the record -------------------------------------------------------------------------- */

typedef struct Importer {
    const char *name;           /* "ONNX" */
    const char *const *endings; /* of files, which shells complete: ".onnx"; ends with NULL */

    /* Is the file this importer's, by its bytes? NULL: it takes what nobody before it in the list
     * has taken, and tells what that is, or that it is nothing. */
    bool (*is)(const MapFile *);

    /* As functions of these names in ingot_model.h. What `open` gives is malloc'd, for it is closed
     * after the context; weights stay in the mapped file, from which the graph borrows them. */
    void *(*open)(ingot_context *, const char *path);
    void (*close)(void *);
    int (*input_count)(const void *);
    const ingot_model_io *(*input)(const void *, int i);
    int (*output_count)(const void *);
    const ingot_model_io *(*output)(const void *, int i);
    bool (*build)(void *, const ingot_model_options *);

    /* What a format may lack: NULL. */
    bool (*check)(void *); /* all that is not supported, at once */
    bool builds_rest;      /* then `build` does without it, and reports what else is wrong */
    bool trains;           /* `build` looks at ingot_model_options.training, */
    bool caches;           /* and at .cache, */
    bool retypes;          /* and at .weights_type */
    bool (*set_ops)(void *, const ingot_model_op *, int n);       /* --op */
    bool (*set_states)(void *, const ingot_model_state *, int n); /* --state */
    void (*set_slots)(void *, int n);                             /* --slots */
    const char *(*entry)(const void *, int i); /* names of its networks; NULL: no more */
    void (*set_entry)(void *, int i);
    const char *(*file)(const void *, int i); /* without: the model is one file */
    /* Calls back with each file that its bytes say weights lie in, before anything is opened (the
     * cache of `run` has to know when one has changed); false: it names none. dir: where it lies,
     * "path/" or "./", and its name there. */
    bool (*mentions)(const MapFile *, const char *dir, const char *name,
                     void (*each)(void *user, Span location), void *user);
    const ImportedTraining *(*training)(void *); /* NULL from it: the file says nothing */
    ingot_precision precision;      /* what its files are meant to be multiplied by, unless told */
    bool (*has_text)(const void *); /* a vocabulary, which `build` gives the context */
    /* Asks of each weight; then, with a `put`, writes the model with what was given through it.
     * False after an error, or when put gave false. */
    bool (*save)(void *, OtherWeight *, void *user,
                 bool (*put)(void *user, const void *bytes, size_t n), void *out);
    const DataForm *data;            /* ends with one without an ending */
    bool (*op)(int i, ImportedOp *); /* the operators of the format; false: no more */
} Importer;

#define IMPORTER(name) extern const Importer importer_##name;
#include "importers.def"
#undef IMPORTER

/** All of them, in the order in which they are asked; ends with NULL. */
extern const Importer *const importers[];
/** The one whose file this is; NULL: nobody's. */
const Importer *importer_of(const MapFile *);
/** Who opened the model. */
const Importer *ingot_model_importer(const ingot_model *);
ingot_context *ingot_model_context(const ingot_model *);
/** What its importer's `open` gave. */
void *ingot_model_opened(const ingot_model *);
/** As the importer's `save`; an error where the format has none. */
bool ingot_model_save(ingot_model *, OtherWeight *, void *user,
                      bool (*put)(void *user, const void *bytes, size_t n), void *out);

#endif
