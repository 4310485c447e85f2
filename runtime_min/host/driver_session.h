/*
 * driver_session.h - what a run of the driver holds, and the parts that it is made of.
 */
#ifndef IGRT_DRIVER_SESSION_H
#define IGRT_DRIVER_SESSION_H

#include "driver_npy.h"
#include "driver_timeline.h"
#include "igrt_pool.h"
#include "igrt_weights.h"

#include <stdio.h>

enum { PATH_BYTES = 4096 };

typedef enum DriverMode { MODE_RUN, MODE_BENCH, MODE_PROFILE, MODE_SELFTEST, MODE_CHAT } DriverMode;

typedef struct DriverOptions {
    DriverMode mode;
    int threads;
    double seconds;
    unsigned flags;
    int poison;
    uint64_t seed;
    const char *gpu, *target;
    const char *in, *out;
    const char *function;                           /* instead of run(); or NULL */
    const char *places, *trace, *follow, *timeline; /* files, or NULL */
    const char *argv0;
    int chat_argc; /* what follows --chat */
    char **chat_argv;
} DriverOptions;

/* What a step writes, as the file of places tells: bytes of the arena, or of an output. */
typedef struct TracePlace {
    int step, output; /* output -1: the arena */
    size_t offset, bytes;
} TracePlace;

/* --trace: the bytes of each place go to a file after its step; --follow: then others take their
 * place. */
typedef struct DriverTrace {
    FILE *to, *from;
    TracePlace *place;
    int n;
    int failed;
} DriverTrace;

/* The steps of one run, as the profile callback sees them. */
typedef struct Profile {
    int n, room;
    struct {
        const char *name;
        uint64_t best;       /* nanoseconds of a run: of all its calls in it */
        uint64_t sum, calls; /* of the run that goes on */
    } * step;
} Profile;

/* Everything the driver holds while it runs. */
typedef struct DriverSession {
    const igrt_model *model;
    const DriverOptions *options;
    igrt_pool pool;
    igrt_config config;
    igrt_memory *memory;
    void *ctx, *inputs, *outputs;
    igrt_weights weights;
    igrt_timeline timeline;
    int ready; /* init was done */
    int ran;   /* once at least */
    DriverTrace trace;
    Profile profile;
} DriverSession;

/* driver_io.c: a file that could not be written whole goes; devices and pipes stay. */
void driver_drop(const char *path);

/* driver.c: the model with this function of it in the place of run(). */
igrt_model driver_function(const igrt_model *, const igrt_function *);

/* driver_io.c: members of the structs of inputs and outputs. */
void *driver_pointer(const void *base, const igrt_io *io);
void driver_set_pointer(void *base, const igrt_io *io, void *p);
void driver_dims(const void *base, const igrt_io *io, int64_t *dims);

/* Input or output number N of the model: a tensor, or a group of them. */
typedef struct Argument {
    const igrt_group *group; /* NULL: a tensor */
    const igrt_io *io;       /* the tensor, or the group's elements */
    int n;
} Argument;

/* The places in the two lists that the next argument comes from. */
typedef struct Cursor {
    int io, group;
} Cursor;

int driver_next_input(const igrt_model *m, Cursor *at, Argument *a);
int driver_next_output(const igrt_model *m, Cursor *at, Argument *a);

/* Files to and from memory; exit statuses. */
int driver_read_inputs(DriverSession *s);
int driver_allocate_outputs(DriverSession *s);
int driver_write_outputs(const DriverSession *s);

/* driver.c: the path of a file beside the executable; exit status. */
int driver_beside(const DriverSession *s, const char *file, char path[PATH_BYTES]);
/* driver.c: the model runs once; exit status. */
int driver_run(DriverSession *s);

/* driver_trace.c: opens the files; what the model calls after each step. */
int driver_open_trace(DriverSession *s);
void driver_trace_step(void *user, int step, const char *name, uint64_t nanoseconds);

/* driver_bench.c: times, of the model, of its steps, of its threads; what the model calls for
 * them. */
uint64_t driver_now(void *user);
void driver_note_step(void *user, int step, const char *name, uint64_t nanoseconds);
int driver_bench(DriverSession *s);
int driver_profile(DriverSession *s);
int driver_timeline(DriverSession *s);

/* driver_options.c: the command line; exit status. */
int driver_options(int argc, char **argv, const igrt_model *model, DriverOptions *o);
void driver_help(FILE *f, const igrt_model *m, const char *argv0);

#endif
