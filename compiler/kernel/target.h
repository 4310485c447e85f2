/* target.h - a target: how its language spells what kernels say, and what the machine can do at which cost.
 *
 * targets/ fills one in, or a target file does (docs/targets.md); no pass asks for a target by name. */
#ifndef TARGET_H
#define TARGET_H

#include "kernels.h"
#include "machine.h"

typedef enum {
    COMPILE_DONE,
    COMPILE_FAILED,
    COMPILE_ABSENT /* the compiler is not installed */
} CompileStatus;
/* What the device has to have, by the name that its language has for it; and what is told where it lacks that. */
typedef struct {
    const char *name, *lacks;
} Extension;
/* First what a language spells differently: the renderer is one for all. */
typedef struct Target Target;
struct Target {
    const char *name;
    const char *suffix; /* of kernel files: ".c", ".cl", ".cu" */
    bool gpu;           /* a kernel is one work item's program: output axes come from its number */
    const char *kernel_word; /* before "void": "", "__kernel ", "extern \"C\" __global__ " */
    const char *global_word; /* before a pointer's type: "", "__global " */
    const char *restrict_word;
    const char *group, *item; /* numbers of this item's group, and of it in there */
    const char *local_word;   /* before the declaration of memory that a group shares */
    const char *barrier;      /* statement: all items of a group have come here */
    const char *begin;        /* statement: kernels before are done; NULL: launches say so */
    const char *next;         /* statement: the kernel behind this one may begin */
    const char *group_word;   /* of a kernel: how many items its groups have */
    /* The same of one that may take all registers of a processor: told otherwise, its compiler waits for each fragment where it is used. */
    const char *group_word_alone;
    const char *
        subgroup_word; /* of a kernel whose neighbours join what they have: of how many items its sub-groups are; or NULL */
    const char *unroll;    /* before a loop: it is to be straight-line; or NULL */
    bool quotient;         /* a division branches: one by a constant is igrt_quotient_f32() */
    const char *aligned;   /* function: a pointer to what begins at a multiple of bytes; or NULL */
    const char *work_item; /* number of this work item, a 64-bit integer; NULL without gpu */
    const char *float_suffix; /* of f32 functions: "f" in C */
    /* By Op, floats: "exp@($0)", @ stands for float_suffix; NULL: igrt_<op>_<type>(). */
    const char *const *spelling;
    Machine machine;
    const char *flags;   /* for the C compiler: "-march=x86-64-v3"; NULL: none */
    const char *link;    /* for the linker; NULL: none */
    const char *cc, *ar; /* what builds for this machine unless told; NULL: cc and ar */
    bool bare;           /* there is no operating system */
    const char *
        triple; /* as the compiler of a target file calls its machine: "arm-none-eabi"; else NULL */
    bool wasm;  /* a program is a module, which run.mjs runs, and has one thread */
    /* GPUs only */
    int nth; /* for a tuner: of a contraction's blocks not the best by the estimate (0) but one of the others, from 1 */
    const char *runtime;  /* prefix of its types in runtime_min: "igrt_cl" */
    bool records;         /* its driver makes one launch of what is enqueued, again and again */
    bool runs;            /* 16 bytes that an unrolled loop goes along are one load (igrt_run.h) */
    const char *pragma;   /* the first line of every kernel file, or "" */
    const char *prologue; /* types and constants, where igrt_num.h is not needed */
    const Extension
        *extensions; /* that the device has to have, ended by a name of NULL; NULL: none */
    /* What a name has behind its colon; NULL, or why there is nothing of that name. */
    const char *(*tune)(Target *, Arena *, const char *machine, ingot_status *);
    /* Kernel source to what its driver loads (or why it did not compile); NULL: the driver takes the source.
     * flush: subnormal numbers are zeros. */
    CompileStatus (*compile)(StrBuf *out, const char *source, const char *machine, bool flush);
};

#endif
