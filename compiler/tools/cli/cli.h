/* cli.h - what the files of the command line share. */
#ifndef CLI_H
#define CLI_H

#include <sys/types.h>

#include "run.h"
#include "tune_command.h"
#include "verify.h"

/* ---- cli_table.c: commands and options ------------------------------------------------------ */

typedef enum { CLI_NONE, CLI_FILE, CLI_FOLDER } CliPath;

/* One form of an option. Several rows of one flag are ways to use it: the first one is how it is
 * parsed. */
typedef struct {
    const char *flag, *value; /* "--name", "NAME"; NULL: it takes none */
    unsigned on;              /* Command.bit of those that have it */
    const char *text;
    bool word, set; /* a const char *, a bool of Options, */
    size_t at;      /* which is there; neither: */
    bool (*take)(Options *,
                 const char *value); /* false after a message; without a value, the flag */
    const char *choices; /* values, for shells; "@targets", "@rewrites", "@dumps": all there are */
    CliPath path;
} CliOption;
extern const CliOption cli_options[]; /* ended by a flag of NULL */

typedef struct {
    const char *name;
    ingot_status (*run)(Options *);
    unsigned bit;
    const char *operand;  /* "MODEL"; NULL: none */
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
bool option_devices(Options *, const char *);
bool option_max_vram(Options *, const char *);
bool option_memory(Options *, const char *);
bool option_state(Options *, const char *);
bool option_op(Options *, const char *);
bool option_precision(Options *, const char *);
bool option_seconds(Options *, const char *);
bool option_string_bytes(Options *, const char *);
bool option_io(Options *, const char *);
bool option_max_flash(Options *, const char *);
bool option_kv(Options *, const char *);
bool option_slots(Options *, const char *);
bool option_subnormals(Options *, const char *);
bool option_rounding(Options *, const char *);
bool option_threads(Options *, const char *);
bool option_thread_counts(Options *, const char *);
bool option_tolerance(Options *, const char *);
bool option_verbose(Options *, const char *);

/* ---- cli_train.c --------------------------------------------------------------------------- */

bool option_accumulate(Options *, const char *);
bool option_class_axis(Options *, const char *);
bool option_clip(Options *, const char *);
bool option_frozen(Options *, const char *);
bool option_ignore_index(Options *, const char *);
bool option_loss_scale(Options *, const char *);
bool option_lora(Options *, const char *);
bool option_optimizer(Options *, const char *);
bool option_smoothing(Options *, const char *);
bool option_trainable(Options *, const char *);
bool train_options_good(Options *); /* of all of them together; false after a message */

/* ---- cli_help.c: what the tables say, for people and for shells ------------------------------ */

void print_help(FILE *, const Command *); /* NULL: of ingot */
ingot_status command_completion(Options *);
ingot_status command_manual(Options *);

/* ---- main.c ------------------------------------------------------------------------------- */

/* ---- run_io.c: tensors in files ----------------------------------------------------------- */

/* ---- run_group.c: sequences and optionals in files ------------------------------------------ */

/* ---- run_compare.c: values beside the wanted ones ------------------------------------------ */

/* ---- run_model.c: from a file and options to a graph ---------------------------------------- */

/* ---- run_process.c ------------------------------------------------------------------------ */

/* ---- run_cc.c ----------------------------------------------------------------------------- */

/* run_assembly.c: the innermost loops of all kernels, as far as there is a compiler. */
ingot_status times_of_file(const Options *, struct Inspection *); /* cli_inspect.c: --times */

/* ---- machine_peak.c: what one core does a second --------------------------------------------- */

/* ---- run, bench and verify: one model with its inputs, and the program it becomes ----------- */

ingot_status command_audit(Options *); /* cli_audit.c */
ingot_status command_check(Options *); /* main.c, and the next three */
ingot_status command_inspect(Options *);
ingot_status command_operators(Options *);
ingot_status command_targets(Options *);
ingot_status command_plan(Options *);
ingot_status command_compile(Options *); /* cli_compile.c */
ingot_status command_merge(Options *);   /* cli_merge.c */
ingot_status command_explain(Options *); /* cli_explain.c */
/* The same without a program: all steps are interpreted, each kernel with opts and without. */

#endif
