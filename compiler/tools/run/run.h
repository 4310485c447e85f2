/* run.h - what commands share that run a model: options, messages, tensors in files, programs and
 * the cache. */
#ifndef RUN_H
#define RUN_H
#include <signal.h>
#include <sys/types.h>

#include "codegen.h"
#include "importer.h"
#include "pipeline.h"

enum { MOST_COUNTS = 8, CHAT_OPTIONS = 9 }; /* of threads, that tune is for; of chat (run_chat.c) */
/* --op NAME=FILE[:FUNCTION] */
typedef struct {
    const char *name, *file, *function; /* NULL: not told */
} CustomFlag;
/* --io [NAME=]FORM */
typedef struct {
    const char *name, *form; /* NULL: of all that can be so */
} IoFlag;

/* --precision WHAT:GLOB */
typedef struct {
    const char *nodes;
    ingot_precision precision;
} NodePrecision;
/* Everything that may be asked for; each command takes some of it (main.c has the table). */
typedef struct {
    const char *command, *model, *entry;      /* --entry: which of its networks */
    const char *function;                     /* --function: of inspect and explain */
    const char *output;                       /* -o */
    const char *output_dir, *data, *selftest; /* folders */
    const char *depfile, *trace;
    bool quiet, clear;   /* -q; --clear of the cache */
    int64_t cache_bytes; /* --size */
    const char **input;  /* --input, one file each */
    int ninput;
    ingot_model_dim *dim; /* --dim */
    int ndim;
    int64_t max_flash; /* --max-flash */
    IoFlag *io;        /* --io */
    int nio;
    const char **bind_name, **bind_text; /* --bind name=text */
    int nbind;
    CustomFlag *op; /* --op */
    int nop;
    const char *more[2]; /* further operands, of plan */
    int nmore;
    ingot_model_state *state; /* --state */
    int nstate;
    bool train; /* --train, and what goes with it */
    ingot_model_train_options training;
    ingot_loss_options loss;
    ingot_optimizer optimizer;
    const char **trainable, **frozen;
    ingot_lora *lora;
    ingot_memory *memory; /* --memory */
    int nmemory;
    const char *dump;
    const char *triple, *headers;    /* of audit */
    const char *probe, *machine;     /* of targets */
    const char *times, *diff, *node; /* of inspect and explain */
    bool dot, assembly, no_assembly;
    const char *chat[CHAT_OPTIONS]; /* texts, which the program reads */
    bool chat_ids;
    int explain_verbose;
    bool json, per_kernel, on_device, no_bind, no_cache, help, interpret;
    int threads;
    int count[MOST_COUNTS], ncount; /* of threads that tune is for */
    bool keep_subnormals;
    ingot_rounding rounding;
    ingot_precision precision;
    bool precision_said;       /* else it is what the file is meant for */
    NodePrecision *precisions; /* --precision WHAT:GLOB */
    int nprecision;
    double seconds;
    double tolerance;         /* negative: by the element's type */
    int64_t string_bytes;     /* 0: the importer's */
    ingot_dtype cache;        /* of keys and values; 0: the importer's */
    int slots;                /* sequences of tokens; 0: one */
    const char *weights_type; /* that matrices are quantised to; NULL: as in the file */
    int beam, lot;            /* of tune, and the next ones */
    double budget;            /* seconds */
    const char *kernels, *database, *prepare, *measure, *remote, *import, *export_to;
    bool why;
    ingot_options compile;
    Arena *a;
} Options;
void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr */
/* The same of what is no fault: nothing with -q. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
ingot_status complain(ingot_status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops all if quiet is not NULL, and all but errors if it is sink_errors. */
void sink(void *quiet, ingot_level, const char *message);
extern char sink_errors[];
bool option_size(const char *text, int64_t *bytes); /* 4096, 256k, 2M */

/* By the name's end: .npy, or a form that an importer has (.pb). Data lives in the arena. False
 * after a message, *status says why. */
bool value_read(Arena *, const char *path, HostTensor *, ingot_status *status);
/* The same of what an input or output `like` is. */
bool value_read_as(Arena *, const char *path, const ingot_model_io *like, HostTensor *,
                   ingot_status *status);
bool value_write(Arena *, const char *path, const ingot_model_io *like, const HostTensor *,
                 ingot_status *status);
/* stem.pb, or what else importers have, if there is such a file; NULL. */
const char *value_file(Arena *, const char *stem);
/* "neither a STEM.pb nor a STEM.npy" */
const char *value_forms(Arena *, const char *stem);
/* Reproducible values: small integers, floats in -1..1. */
void value_random(Arena *, HostTensor *, uint64_t seed);
bool value_is_group(const HostTensor *); /* no plain tensor */
/* A sequence or an optional: stem.pb, or stem.npy or the folder stem (*npy). */
bool group_read(Arena *, const char *stem, const ingot_model_io *, HostTensor *, bool *npy,
                ingot_status *status);
bool group_write_npy(Arena *, const char *stem, const HostTensor *, ingot_status *status);
typedef struct {
    bool shape; /* another type or shape: nothing else is known */
    bool strings, complex;
    bool one_off;     /* of 8 bits: a value that was quantised may be rounded either way */
    size_t count;     /* numbers that were compared */
    size_t beyond;    /* finite ones further away than the limit; strings that differ */
    size_t nan, inf;  /* that are nan, or this infinity, on one side only */
    double tolerance; /* a share of the range, */
    /* which is the largest magnitude that is wanted; 0: the tolerance is that of the error
     * itself */
    double range;
    double limit;     /* of the error */
    double error;     /* the largest */
    size_t at;        /* the worst element, */
    double got, want; /* and what is there */
} Difference;
double tolerance_of(ingot_dtype); /* a share of the range */
Difference value_compare(Arena *, const HostTensor *got, const HostTensor *want,
                         double tolerance); /* negative: tolerance_of() */
bool difference_is_good(const Difference *);
void difference_print(StrBuf *, const Difference *, const HostTensor *got, const HostTensor *want);
typedef struct {
    ingot_context *c;
    ingot_model *file;
    bool functions; /* it may have functions beside run(), if the target takes them */
} LoadedModel;
/* Opens the file. */
ingot_status model_open(LoadedModel *, const Options *, bool quiet);
/* One whose notes were told: only errors are. */
ingot_status model_open_again(LoadedModel *, const Options *);
void model_close(LoadedModel *);
/* "input 'x' is f32[batch,3]" */
void input_print(StrBuf *, const ingot_model_io *);
/* Builds the graph. values (by input, or NULL) give free dims their size; inputs with bound[i] are
 * bound to theirs. */
ingot_status model_build(LoadedModel *, const Options *, const HostTensor *values,
                         const bool *bound);
/* run_progress.c: of what takes long, how far it is. seconds: that it takes, or 0; then the share
 * that is done is told now and then, or nothing is known of it. */
void progress_quiet(bool);
bool progress_is_quiet(void); /* -q was said */
void progress_begin(const char *what, double seconds);
void progress_at(double share);
void progress_end(void);
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
int cores(void);              /* of this machine, 1 to 64 */
const char *c_compiler(void); /* $CC, or cc */
/* What is known of a target's machine, by a name that was looked at before. */
Target machine_target(Arena *, const char *target);
/* Why programs for the target do not run on this machine; NULL: they may. */
const char *runs_elsewhere(Arena *, const char *target);
/* run_processor.c: whether a C compiler takes flags; lacks: the first feature that they need and
 * the processor of this machine does not have, or NULL. */
bool compiles_for(Arena *, const char *cc, const char *flags, const char **lacks);
/* run_firmware.c: what a bundle for a machine without an operating system takes of it, in bytes. */
typedef struct {
    bool measured;            /* by the target's compiler; else it is estimated */
    int64_t flash, fixed, io; /* fixed: RAM that is there in any case, but for inputs and outputs */
    long stack;               /* at most; -1: not known */
} Firmware;
Firmware firmware_sizes(const Options *, const LoadedModel *, const Target *);
void firmware_tell(const Options *, const Target *, const Firmware *);
/* The words of the C compiler for a target and those that bundles get, ended by NULL. */
const char *const *compiler_words(Arena *, const char *target);
/* Builds a bundle's program ("-std=c99") with the system's C compiler, for the target's machine;
 * check: with -DMODEL_CHECK=1. */
ingot_status build_program(Arena *, const char *dir, const char *name, const char *target,
                           const char *standard, bool check, bool verbose);
/* Compiles dir/kernels_N.c to dir/kernels_N.s; false, silently, if there is no compiler for the
 * target. */
bool compile_to_assembly(Arena *, const char *dir, int n, const char *target);
void assembly_make(const Options *, struct Inspection *);
typedef struct {
    double flops;                    /* f32 operations in multiply-adds */
    double dots;                     /* of bytes; 0: no instruction does several at once */
    double near, cache, far, memory; /* bytes read: from 16 KB, 256 KB, 4 MB, more than any cache */
} Roof;
/* dir holds the program that measures. */
bool roof_build(Arena *, const char *dir, const char *target);
bool roof_measure(Arena *, const char *dir, Roof *);
char *read_text(Arena *, const char *path); /* a whole file; NULL if it cannot be read */
typedef struct {
    Options *o;
    Arena *a;
    int nin, nout;
    HostTensor *in, *out;
    HostTensor *want; /* outputs that lie beside the inputs; data NULL: that one does not */
    const char **want_file;
    const char **out_name; /* printable */
    ingot_dtype *out_dtype;
    ingot_model_io *io; /* the outputs as the model declares them */
    bool *bound;
    bool no_device;       /* there is none that the program could run on */
    bool check;           /* the program checks indices that are data */
    bool npy;             /* inputs were .npy, as outputs are then */
    const DataForm *data; /* as else they are */
    const char *entry;    /* folder of the cache */
    char *work;           /* folder of the run's .npy files */
    struct Moves *moves;  /* verify_moves.c: how far rounding moves the results, or NULL */
    /* Whether that explains a difference of output i. */
    bool (*explained)(struct Moves *, int i, const Difference *, const HostTensor *got,
                      const HostTensor *want);
} Session;
/* run.c: reads or (may_invent) makes up the inputs, and reads the wanted outputs. */
ingot_status session_read(Session *, const LoadedModel *, bool may_invent);
/* DIR/input_N.pb, or what else importers have, or .npy; NULL: there is none. */
const char *data_file(const Session *, const char *what, int i, bool *npy);
/* Whether --data is a folder; false after a message. */
bool data_is_there(const Session *);
/* s->o->input becomes a file, or NULL, for each of n inputs: --input NAME=FILE stands for that
 * input, the others are in order; false after a message. */
bool order_inputs(Session *, int n, const char *const *name);
const char **model_input_names(const Session *, const LoadedModel *);
/* Whether data are what input i is; those of types that numpy has no name for become that. False
 * after a message. */
bool data_fits(const Session *, const ingot_model_io *, int i, HostTensor *, ingot_status *);
/* The same, and has the program ready. */
ingot_status session_prepare(Session *, LoadedModel *, bool may_invent);
ingot_status session_run(Session *); /* fills out */
ingot_status session_outputs(Session *,
                             const char *folder); /* from where a program wrote them, in work */
/* The outputs beside the wanted ones, each told; INGOT_DIFFERS if one is further away than the
 * tolerance. */
ingot_status session_compare(const Session *);
ingot_status driver_failed(const Session *, int code); /* what the status of the program says */
void session_finish(Session *, LoadedModel *);
/* run_cache.c: s->entry is a folder of the cache that holds the program of the model. */
ingot_status session_find_entry(Session *, const LoadedModel *);
const char *this_processor(Arena *); /* what a C compiler that is told -march=native goes by */
/* run_key.c: of all that goes into a program but the data; then with what they decide: sizes, and
 * values of inputs that are bound. */
typedef struct {
    uint64_t a, b;
} CacheKey;
ingot_status cache_key(const Session *, CacheKey *);
CacheKey cache_key_data(const Session *, CacheKey, bool bound);
/* run_whole.c: of n sources of a program, in its folder, small ones become one, which has a file
 * until whole_leave(); how many there are now. */
int whole_join(Arena *, const char *dir, const char **file, int n);
void whole_leave(Arena *, const char *dir);
/* run_objects.c: whether a source of a bundle ("host/driver.c") is the same in all; the folder of
 * the cache for the objects of those, by the compiler's words, or NULL. */
bool object_is_shared(const char *source);
const char *objects_folder(Arena *, const char *const *words, int n);
/* The header of that folder to be included before all else where a source takes it, if it is
 * precompiled; whether that is worth a try; the try. */
const char *objects_head(Arena *, const char *folder);
bool objects_head_wanted(Arena *, const char *folder);
void objects_precompile(Arena *, const char *folder, const char *const *words, int n);
bool source_takes_head(
    const char *path); /* it includes the headers of vector kernels before all else */
/* run_store.c: the folders of the cache. */
const char *cache_root(Arena *);
void cache_used(const char *entry);                          /* now */
void cache_limit(Arena *, const char *entry, int64_t bytes); /* the entry stays */
ingot_status command_cache(Options *);
ingot_status command_run(Options *);
ingot_status command_bench(Options *);
ingot_status command_chat(Options *); /* run_chat.c */
/* run_chat.c: s->entry is that of a language model's program, without data. */
ingot_status session_talks(Session *, LoadedModel *);
/* run_tokens.c: of a language model's program, which s->entry has. */
ingot_status bench_tokens(Session *);
/* run_cache.c: opens and builds the model, with the inputs bound that `bound` says, and plans it
 * for the session's target, without a word; NULL: it cannot. The caller frees the plan, then closes
 * the model. */
Plan *session_plan(const Session *, LoadedModel *, const bool *bound);
#define TRAIN_STEP "train_step" /* the function that bench --train times */
/* run_bench.c: profile and bench are the program's command lines; its status, or 1. */
int bench_kernels(Session *, const char *const *profile, const char *const *bench);

/* run_timeline.c: adds to a timeline of the program's what the plan knows of its steps; false: it
 * cannot. */
bool timeline_tell(Session *, const char *path);

/* A child process that dies with this one; out: its standard output, or NULL. */
typedef struct {
    pid_t pid;
    FILE *out;
} Child;
/* In a folder, or where this one is (NULL); quiet: its messages are dropped; most: seconds of a
 * core that it has, and whatever it starts, each; 0: an hour. */
bool child_start(Child *, const char *const *argv, const char *dir, bool piped, bool quiet,
                 int most);
/* A line of its output without the newline, in the arena; NULL: it has ended, or nothing came while
 * it had a core for so many seconds, or in `waits` times as long (*late: then it still runs). */
char *child_line(Child *, Arena *, double seconds, int waits, bool *late);
/* Its exit status, or 128 + signal; after so many seconds it is killed (then 128 + SIGKILL). */
int child_end(Child *, double seconds);
/* Whether it has ended, with which status; waits for nothing. */
bool child_has_ended(Child *, int *code);
/* Seconds since any fixed moment, by which budgets are counted; where steps are counted in their
 * place, every question is one. */
double seconds_now(void);
/* Whether steps are counted ($INGOT_CLOCK=steps): then times are estimates. */
bool clock_is_steps(void);
/* What $INGOT_CLOCK says, if that is none; NULL. */
const char *clock_unknown(void);
/* Of such a clock: what is done now is to take so long. */
void clock_pass(double seconds);
/* Of the machine, whatever budgets are counted by. */
double machine_seconds(void);
/* What hangs takes its core: limits are seconds of that, so that a busy machine ends nobody.  One
 * that waits for something has so many times as long. */
enum { CHILD_WAITS = 40 };
/* What a part of the search took: of the clock, and of all cores, in child processes that have
 * ended too. */
typedef struct {
    double seconds, cpu;
} Spent;
Spent spent_now(void);
void spent_add(Spent *, Spent since);

#define OBJECTS_SUFFIX ".objects" /* of that folder's name; those without are models */

/* The n characters as a whole number; false: they are none. */
bool option_number(const char *text, size_t n, int64_t *out);

#endif
