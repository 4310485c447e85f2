/* cli.h - what the files of the command line share. */
#ifndef CLI_H
#define CLI_H

#include <sys/types.h>

#include "codegen.h"
#include "importers.h"
#include "ingot_onnx.h"

enum { MOST_COUNTS = 8 }; /* of threads, that tune is for */

/* --op NAME=FILE[:FUNCTION] */
typedef struct {
    const char *name, *file, *function; /* NULL: not told */
} CustomFlag;

/* Everything that may be asked for; each command takes some of it (main.c has the table). */
typedef struct {
    const char *command, *model;
    const char *output;                       /* -o */
    const char *output_dir, *data, *selftest; /* folders */
    const char *depfile, *trace;
    bool quiet, clear;   /* -q; --clear of the cache */
    int64_t cache_bytes; /* --size */
    const char **input;  /* --input, one file each */
    int ninput;
    ingot_onnx_dim *dim; /* --dim */
    int ndim;
    const char **bind_name, **bind_text; /* --bind name=text */
    int nbind;
    CustomFlag *op; /* --op */
    int nop;
    const char *more[2]; /* further operands, of plan */
    int nmore;
    ingot_onnx_state *state; /* --state */
    int nstate;
    ingot_memory *memory; /* --memory */
    int nmemory;
    const char *dump;
    const char *triple, *headers;    /* of audit */
    const char *probe;               /* of targets */
    const char *times, *diff, *node; /* of inspect and explain */
    bool dot, assembly, no_assembly;
    int explain_verbose;
    bool json, per_kernel, on_device, no_bind, no_cache, help, interpret;
    int threads;
    int count[MOST_COUNTS], ncount; /* of threads that tune is for */
    bool keep_subnormals;
    ingot_precision precision;
    double seconds;
    double tolerance;     /* negative: by the element's type */
    int64_t string_bytes; /* 0: the importer's */
    int beam, lot;        /* of tune, and the next ones */
    double budget;        /* seconds */
    const char *kernels, *database, *prepare, *measure, *remote, *import, *export_to;
    bool why;
    ingot_options compile;
    Arena *a;
} Options;

/* ---- cli_table.c: commands and options ------------------------------------------------------ */

typedef enum { CLI_NONE, CLI_FILE, CLI_FOLDER } CliPath;

/* One form of an option. Several rows of one flag are ways to use it: the first one is how it is parsed. */
typedef struct {
    const char *flag, *value; /* "--name", "NAME"; NULL: it takes none */
    unsigned on;              /* Command.bit of those that have it */
    const char *text;
    bool word, set; /* a const char *, a bool of Options, */
    size_t at;      /* which is there; neither: */
    bool (*take)(Options *,
                 const char *value); /* false after a message; without a value, the flag */
    const char *choices; /* values, for shells; "@targets", "@rewrites": all there are */
    CliPath path;
} CliOption;
extern const CliOption cli_options[]; /* ended by a flag of NULL */

typedef struct {
    const char *name;
    ingot_status (*run)(Options *);
    unsigned bit;
    const char *operand;  /* "MODEL.onnx"; NULL: none */
    const char *synopsis; /* options that come to mind first; a second operand (NODE) before them */
    const char *what;     /* in a line */
    const char *text;     /* more of it, or NULL */
    const char *examples; /* lines, or NULL */
} Command;
extern const Command cli_commands[]; /* ended by a name of NULL */
const Command *cli_command(const char *name);

/* ---- cli_options.c ------------------------------------------------------------------------ */

bool options_parse(Options *, int argc, char **argv, const Command *); /* false after a message */
bool option_beam(Options *, const char *);
bool option_lot(Options *, const char *);
bool option_bind(Options *, const char *);
bool option_budget(Options *, const char *);
bool option_cache_bytes(Options *, const char *);
bool option_dim(Options *, const char *);
bool option_input(Options *, const char *);
bool option_level(Options *, const char *);
bool option_max_ram(Options *, const char *);
bool option_max_vram(Options *, const char *);
bool option_memory(Options *, const char *);
bool option_state(Options *, const char *);
bool option_op(Options *, const char *);
bool option_precision(Options *, const char *);
bool option_seconds(Options *, const char *);
bool option_string_bytes(Options *, const char *);
bool option_subnormals(Options *, const char *);
bool option_threads(Options *, const char *);
bool option_thread_counts(Options *, const char *);
bool option_tolerance(Options *, const char *);
bool option_verbose(Options *, const char *);

/* ---- cli_help.c: what the tables say, for people and for shells ------------------------------ */

bool option_size(const char *text, int64_t *bytes); /* 4096, 256k, 2M */
void print_help(FILE *, const Command *);           /* NULL: of ingot */
ingot_status command_completion(Options *);
ingot_status command_manual(Options *);

/* ---- main.c ------------------------------------------------------------------------------- */

void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr */
/* The same of what is no fault: nothing with -q. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
ingot_status complain(ingot_status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops all if quiet is not NULL, and all but errors if it is sink_errors. */
void sink(void *quiet, ingot_level, const char *message);
extern char sink_errors[];

/* ---- cli_io.c: tensors in files ----------------------------------------------------------- */

typedef struct Value Value;
struct Value {
    ingot_dtype dtype;
    int rank;
    int64_t dims[INGOT_MAX_RANK];
    size_t count, bytes;
    void *data;    /* dense; strings: char pointers */
    bool raw;      /* numpy has no name for the type: it may be any of this width */
    bool sequence; /* its tensors are in item */
    bool absent;   /* an optional that is not there */
    Value *item;
    int nitem;
};

/* By the name's end: .pb or .npy. Data lives in the arena. False after a message, *status says why. */
bool value_read(Arena *, const char *path, Value *, ingot_status *status);
bool value_write(Arena *, const char *path, const char *name, const Value *, ingot_status *status);
/* A tensor out of an open file. */
bool value_decode(Arena *, OnnxFile *, const Onnx__TensorProto *, const char *path, Value *,
                  ingot_status *status);
/* Reproducible values: small integers, floats in -1..1. */
void value_random(Arena *, Value *, uint64_t seed);

/* ---- cli_group.c: sequences and optionals in files ------------------------------------------ */

bool value_is_group(const Value *); /* no plain tensor */
/* stem.pb, or stem.npy or the folder stem (*npy). */
bool group_read(Arena *, const char *stem, const ingot_onnx_io *, Value *, bool *npy,
                ingot_status *status);
bool group_write_npy(Arena *, const char *stem, const Value *, ingot_status *status);
bool group_write_pb(Arena *, const char *path, const char *name, bool optional, const Value *,
                    ingot_status *status);

/* ---- cli_compare.c: values beside the wanted ones ------------------------------------------ */

typedef struct {
    bool shape; /* another type or shape: nothing else is known */
    bool strings, complex;
    bool one_off;     /* of 8 bits: a value that was quantised may be rounded either way */
    size_t count;     /* numbers that were compared */
    size_t beyond;    /* finite ones further away than the limit; strings that differ */
    size_t nan, inf;  /* that are nan, or this infinity, on one side only */
    double tolerance; /* a share of the range, */
    double
        range; /* which is the largest magnitude that is wanted; 0: the tolerance is that of the error itself */
    double limit;     /* of the error */
    double error;     /* the largest */
    size_t at;        /* the worst element, */
    double got, want; /* and what is there */
} Difference;

double tolerance_of(ingot_dtype); /* a share of the range */
Difference value_compare(Arena *, const Value *got, const Value *want,
                         double tolerance); /* negative: tolerance_of() */
bool difference_is_good(const Difference *);
void difference_print(StrBuf *, const Difference *, const Value *got, const Value *want);

/* ---- cli_model.c: from a file and options to a graph ---------------------------------------- */

typedef struct {
    ingot_context *c;
    ingot_onnx *onnx;
} Model;

/* Opens the file. */
ingot_status model_open(Model *, const Options *, bool quiet);
void model_close(Model *);
/* "input 'x' is f32[batch,3]" */
void input_print(StrBuf *, const ingot_onnx_io *);
/* Builds the graph. values (by input, or NULL) give free dims their size; inputs with bound[i] are
 * bound to theirs. */
ingot_status model_build(Model *, const Options *, const Value *values, const bool *bound);

/* cli_progress.c: of what takes long, how far it is. seconds: that it takes, or 0; then the share that is done is told now
 * and then, or nothing is known of it. */
void progress_quiet(bool);
bool progress_is_quiet(void); /* -q was said */
void progress_begin(const char *what, double seconds);
void progress_at(double share);
void progress_end(void);

/* ---- cli_process.c ------------------------------------------------------------------------ */

/* Runs a program found by PATH; its exit status, 128 + signal, or -1 if it cannot be started. */
int process_run(const char *const *argv);
/* Its standard output goes to the file. */
int process_run_to(const char *const *argv, const char *file);
/* The same in two halves, the second in a folder: -1 after a message. */
pid_t process_start(const char *const *argv);
pid_t process_start_in(const char *const *argv, const char *dir);
int process_wait(pid_t);
/* The file that a program of this name is, by PATH, or NULL. */
const char *find_program(Arena *, const char *name);
int cores(void); /* of this machine, 1 to 64 */

/* ---- cli_cc.c ----------------------------------------------------------------------------- */

const char *c_compiler(void); /* $CC, or cc */
/* What is known of a target's machine, by a name that was looked at before. */
Target machine_target(Arena *, const char *target);
/* Why programs for the target do not run on this machine; NULL: they may. */
const char *runs_elsewhere(Arena *, const char *target);
const char *this_processor(Arena *); /* what a C compiler that is told -march=native goes by */
/* The words of the C compiler for a target and those that bundles get, ended by NULL. */
const char *const *compiler_words(Arena *, const char *target);
/* Builds a bundle's program ("-std=c99") with the system's C compiler, for the target's machine; check: with -DMODEL_CHECK=1. */
ingot_status build_program(Arena *, const char *dir, const char *name, const char *target,
                           const char *standard, bool check, bool verbose);
/* Compiles dir/kernels_N.c to dir/kernels_N.s; false, silently, if there is no compiler for the target. */
bool compile_to_assembly(Arena *, const char *dir, int n, const char *target);

/* cli_assembly.c: the innermost loops of all kernels, as far as there is a compiler. */
struct Inspection;
ingot_status times_of_file(const Options *, struct Inspection *); /* cli_inspect.c: --times */
void assembly_make(const Options *, struct Inspection *);

/* ---- cli_roof.c: what one core does a second ----------------------------------------------- */

typedef struct {
    double flops;                    /* f32 operations in multiply-adds */
    double dots;                     /* of bytes; 0: no instruction does several at once */
    double near, cache, far, memory; /* bytes read: from 16 KB, 256 KB, 4 MB, more than any cache */
} Roof;
/* dir holds the program that measures. */
bool roof_build(Arena *, const char *dir, const char *target);
bool roof_measure(Arena *, const char *dir, Roof *);
char *read_text(Arena *, const char *path); /* a whole file; NULL if it cannot be read */

/* ---- run, bench and verify: one model with its inputs, and the program it becomes ----------- */

typedef struct {
    Options *o;
    Arena *a;
    int nin, nout;
    Value *in, *out;
    Value *want; /* outputs that lie beside the inputs; data NULL: that one does not */
    const char **want_file;
    const char **out_name; /* printable */
    ingot_dtype *out_dtype;
    ingot_onnx_io *io; /* the outputs as the model declares them */
    bool *bound;
    bool check;        /* the program checks indices that are data */
    bool npy;          /* inputs were .npy */
    const char *entry; /* folder of the cache */
    char *work;        /* folder of the run's .npy files */
} Session;

/* cli_run.c: reads or (may_invent) makes up the inputs, and reads the wanted outputs. */
ingot_status session_read(Session *, const Model *, bool may_invent);
/* The same, and has the program ready. */
ingot_status session_prepare(Session *, Model *, bool may_invent);
ingot_status session_run(Session *); /* fills out */
ingot_status session_outputs(Session *,
                             const char *folder); /* from where a program wrote them, in work */
/* The outputs beside the wanted ones, each told; INGOT_DIFFERS if one is further away than the tolerance. */
ingot_status session_compare(const Session *);
ingot_status driver_failed(const Session *, int code); /* what the status of the program says */
void session_finish(Session *, Model *);
/* cli_cache.c: s->entry is a folder of the cache that holds the program of the model. */
ingot_status session_find_entry(Session *, const Model *);
/* cli_key.c: of all that goes into a program but the data; then with what they decide: sizes, and values of inputs that are bound. */
typedef struct {
    uint64_t a, b;
} CacheKey;
ingot_status cache_key(const Session *, CacheKey *);
CacheKey cache_key_data(const Session *, CacheKey, bool bound);
/* cli_objects.c: whether a source of a bundle ("host/driver.c") is the same in all; the folder of the cache for the objects of
 * those, by the compiler's words, or NULL. */
bool object_is_shared(const char *source);
const char *objects_folder(Arena *, const char *const *words, int n);
/* The header of that folder to be included before all else where a source takes it, if it is precompiled; whether that is worth a try;
 * the try. */
const char *objects_head(Arena *, const char *folder);
bool objects_head_wanted(Arena *, const char *folder);
void objects_precompile(Arena *, const char *folder, const char *const *words, int n);
bool source_takes_head(
    const char *path);            /* it includes the headers of vector kernels before all else */
#define OBJECTS_SUFFIX ".objects" /* of that folder's name; those without are models */
/* cli_store.c: the folders of the cache. */
const char *cache_root(Arena *);
void cache_used(const char *entry);                          /* now */
void cache_limit(Arena *, const char *entry, int64_t bytes); /* the entry stays */
ingot_status command_cache(Options *);

ingot_status command_audit(Options *); /* cli_audit.c */
ingot_status command_check(Options *); /* main.c, and the next three */
ingot_status command_inspect(Options *);
ingot_status command_targets(Options *);
ingot_status command_plan(Options *);
ingot_status command_tune(Options *);    /* cli_tune.c */
ingot_status command_compile(Options *); /* cli_compile.c */
ingot_status command_explain(Options *); /* cli_explain.c */
ingot_status command_run(Options *);
ingot_status command_bench(Options *);
/* cli_bench.c: profile and bench are the program's command lines; its status, or 1. */
int bench_kernels(Session *, const char *const *profile, const char *const *bench);
ingot_status command_verify(Options *); /* cli_verify.c */
/* Each kernel of the session's program beside its naive form, step by step (lockstep()); INGOT_DIFFERS if one differs. */
ingot_status verify_beside_naive(const Session *, const char *out);
/* cli_rounding.c: how far an element of a step's result may be from what another order of the same sums gives, or 0. */
typedef struct Rounding Rounding;
Rounding *rounding_new(const Session *, const Plan *, Arena *);
void rounding_free(Rounding *);
/* The step wrote these bytes there; before it is asked about. */
void rounding_wrote(Rounding *, const Step *, const Buffer *, int64_t offset, const char *bytes);
double rounding_bound(Rounding *, const Step *, const Buffer *, size_t element);
/* cli_lockstep.c: runs the program beside its naive twin (the same plan without opts, in a folder of its own) on the same
 * inputs, step by step; tells the steps that differ, or with -v all. INGOT_DIFFERS if one does. The outputs of the twin are
 * left in a folder `out` in work. */
ingot_status lockstep(const Session *, const Plan *, const char *twin, const char *out);
/* The same without a program: all steps are interpreted, each kernel with opts and without. */
struct PlanInterp;
ingot_status interpreter_failed(const Session *, const struct PlanInterp *); /* after a message */
ingot_status lockstep_interpreted(const Session *, struct PlanInterp *, const ingot_value *in,
                                  ingot_value *out);

#endif
