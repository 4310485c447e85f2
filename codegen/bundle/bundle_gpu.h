/* bundle_gpu.h - what the device of a bundle has: what the files of bundle_gpu.c share. */
#ifndef BUNDLE_GPU_H
#define BUNDLE_GPU_H

#include "bundle_writer.h"
#include "segments.h"

/* A place in ctx->mem. */
typedef struct {
    BufferKind kind; /* states are in the arena too */
    int64_t key;     /* offset, or number of the input or output */
    int64_t bytes;
    const Buffer *b; /* the first one there */
    bool image;      /* f32 that kernels read as one: weights, or copied before each that does */
    int device;
    /* Of an input or output: whose it is, and its name there. */
    const Plan *p;
    const char *function, *field; /* "": of the first function; else "TRAIN_STEP_" */
} Mem;

struct Gpu {
    bool *used;            /* by buffer: the device touches it */
    bool *imaged;          /* by buffer: kernels read it as an image */
    Mem *mem;              /* [0] is the arena, its parts follow */
    int nmem, npart, nall; /* after the parts come the inputs and outputs, of all functions */
    int io, nio;           /* of these the own ones */
    int64_t host_bytes;    /* of the arena that host steps use */
    int nline;             /* strings of program text */
    bool apart;            /* no step of a run needs the host's memory */
    bool records;          /* and what a run enqueues is recorded, for the next one; */
    bool sized;            /* it depends on sizes of run time */
    bool branches;         /* some steps the data decides about */
    bool copies;           /* some step is neither a kernel nor a loop of them */
    int64_t launches;      /* of kernels, in a run; at most */
    bool shared;           /* some kernel's groups share what has to be asked for: */
    int64_t *asked;        /* bytes, by kernel */
    bool *across;          /* by kernel: neighbours join what they have */
    /* kernels of the program; behind them a tuner's, which are programs of their own
     * (bundle_gpu_ways.c); 0: there are none */
    int nown;
    int nhead; /* then: of the strings of program text, those above the kernels */
    /* Or, by kernel, what it was compiled to, for each of so many machines; NULL: the compiler is
     * not installed. */
    StrBuf **image;
    int nimage;
};

/* bundle_gpu.c: whether a buffer has memory on the device; what its place in ctx->mem is called,
 * and by number. */
bool gpu_on_device(const Bundle *, const Buffer *);
const char *gpu_mem_of(Bundle *, const Buffer *);
const char *gpu_mem_name(const Bundle *, int i);
/* The same as an argument of this step: of buffers that begin at one place the largest, for all. */
const char *gpu_argument_of(Bundle *, const Step *, const Buffer *);
/* The same of the image of a buffer. */
const char *gpu_image_of(Bundle *, const Buffer *);
bool gpu_fills_image(const Step *, const Kernel *, int arg);
/* The memory that a buffer is in, which is no part of another one, and where there it begins. */
const char *gpu_whole_of(Bundle *, const Buffer *, int64_t *offset);

/* Of ctx a member of which each function has its own: record, record_train_step. */
const char *gpu_own(const Bundle *, const char *member);

/* bundle_gpu_kernels.c: kernels as text; what they need of the runtime is noted. */
void gpu_kernel_bodies(StrBuf *, Bundle *, Kernel *const *kernels, int n);
/* The kernel file, <name>_kernels.cl or .cu, or what it would be with a few kernels. */
void gpu_kernels_text(StrBuf *, Bundle *, Kernel *const *kernels, int n);
/* One C string literal a line of a text; how many there are is added to *n. */
void gpu_print_lines(StrBuf *, const char *text, int *n);
/* image<n>[] */
void gpu_print_image(StrBuf *, const Bundle *, int n, const char *machine, const StrBuf *image);
/* The nth machine of the target's ("cuda:sm_90+sm_80+ptx"; of ptx every machine makes its own: ""),
 * or NULL. */
const char *gpu_machine(const Bundle *, int nth);

/* bundle_gpu_bind.c: which arguments of a kernel share a binding (Language.binds); bytes of all
 * weights on the device, each rounded up to where a binding may begin. */
void gpu_bind(Bundle *);
int64_t gpu_weight_bytes(const Bundle *);

/* bundle_gpu_steps.c: "mem[MEM_ARENA_0] + 64", where a copy begins: to (0), from (1); and how many
 * bytes it has. */
void gpu_copy_place(Writer *, const Step *, int which);
void gpu_copy_bytes(Writer *, const Step *);

/* bundle_gpu_devices.c: of several devices members of the context, functions, what init and release
 * do, and the steps. */
int64_t gpu_slot_bytes(const Step *);             /* where a copy crosses */
int gpu_devices_launches(Bundle *, bool *copies); /* of what crosses; is there a copy besides? */
void gpu_devices_members(StrBuf *, const Bundle *);
void gpu_devices_functions(StrBuf *, const Bundle *);
void gpu_devices_start(StrBuf *, const Bundle *);
void gpu_devices_slots(StrBuf *, const Bundle *);
void gpu_devices_release(StrBuf *);

/* What each device and each queue of copies does. */
Segments gpu_queues(const Plan *, Arena *);
/* Steps whose kernels let values cross themselves get such ones; before kernels are counted. */
void gpu_devices_kernels(Bundle *, Plan *);

/* bundle_gpu_cross.c: a half of a copy; the kernel that computes the step behind so many of them
 * and lets them cross, or NULL. */
typedef struct {
    const Step *step;
    StepPart part;
} Crossing;
Kernel *gpu_crossing_kernel(Plan *, const Step *, const Crossing *, int n);

/* bundle_gpu_together.c: steps that are one launch get a kernel for it, before kernels are
 * counted. */
void gpu_together_kernels(Plan *);

/* bundle_gpu_ways.c: how many kernels are in the program that init loads; 0: all are. */
int gpu_own_kernels(const Bundle *);
/* That program's images, how many; its status, and why it does not compile. The ways get theirs, or
 * are left out. */
CompileStatus gpu_compile_ways(Bundle *, StrBuf *, int *n, StrBuf *why);
void gpu_ways_header(StrBuf *, const Bundle *);
void gpu_ways_programs(StrBuf *, Bundle *);

#endif
