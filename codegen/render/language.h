/* language.h - how a target's language spells what kernels say.
 *
 * The renderer walks the statements of a kernel and is one for all languages: what they spell otherwise are the words and functions of this
 * record.  targets/ has one for each language; no file of render/ asks which one it is. */
#ifndef LANGUAGE_H
#define LANGUAGE_H

#include "codegen.h"

typedef struct Language Language;
struct Language {
    const char *suffix;      /* of kernel files: ".c", ".cl", ".cu" */
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
    /* Of a kernel whose neighbours join what they have: of how many items its sub-groups are; or NULL. */
    const char *subgroup_word;
    const char *unroll;    /* before a loop: it is to be straight-line; or NULL */
    bool quotient;         /* a division branches: one by a constant is igrt_quotient_f32() */
    bool runs;             /* 16 bytes that an unrolled loop goes along are one load (igrt_run.h) */
    const char *aligned;   /* function: a pointer to what begins at a multiple of bytes; or NULL */
    const char *work_item; /* number of this work item, a 64-bit integer; NULL: there are none */
    const char *float_suffix; /* of f32 functions: "f" in C */
    /* By Op, floats: "exp@($0)", @ stands for float_suffix; NULL: igrt_<op>_<type>(). */
    const char *const *spelling;
    const char *pragma;   /* the first lines of every kernel file, or "" */
    const char *prologue; /* types and constants, where igrt_num.h is not needed */
};

#endif
