/* language_c.h - what C99, OpenCL C and CUDA C++ share as languages of kernels. */
#ifndef LANGUAGE_C_H
#define LANGUAGE_C_H

#include "language.h"

/* Words in which they differ.  Patterns with %d are printed. */
struct CWords {
    const char *kernel_word; /* before "void": "", "__kernel ", "extern \"C\" __global__ " */
    const char *part_word;   /* the same of a function that is a part of one; or NULL */
    const char *global_word; /* before a pointer's type: "", "__global " */
    const char *restrict_word;
    const char *local_word; /* before the declaration of memory that a group shares */
    const char *lines_word; /* of that which boxes of a tensor are copied to */
    const char *group_word; /* of a kernel: how many items its groups have */
    /* The same of one that may take all registers of a processor: told otherwise, its compiler
     * waits for each fragment where it is used. */
    const char *group_word_alone;
    /* Of a kernel whose neighbours join what they have: of how many items its sub-groups are; or
     * NULL. */
    const char *subgroup_word;
    const char *cluster_word;  /* of how many groups its clusters are */
    const char *part_map_word; /* the same of a function that is a part of a kernel */
    const char *map_word;      /* the type of a parameter that says how a tensor lies */
    const char *aligned;  /* function: a pointer to what begins at a multiple of bytes; or NULL */
    const char *fixed;    /* numbers that a function is compiled for, behind its name: "<%s>" */
    const char *pair;     /* type of two f32, .x and .y */
    const char *pragma;   /* the first lines of every kernel file, or "" */
    const char *prologue; /* types and constants, where igrt_num.h is not needed */
};

/* By Op: of floats. targets/target_c.c */
extern const char *const c_spelling[OP_COUNT];

const char *c_value_type(ingot_dtype, bool wide);
const char *c_device_type(ingot_dtype, bool wide); /* strings are handles */
void c_number(StrBuf *, double, ingot_dtype);
void c_integer(StrBuf *, int64_t, ingot_dtype);
void c_file(StrBuf *, const Target *, unsigned needs, const char *kernels);
void c_head(Render *, const Kernel *, const Tiles *, const char *name);
void c_together(Render *, const Kernel *, const int64_t *end, const char *name);
void c_parts(Render *, int depth);
void c_copy(Render *, Node *store, bool later);
void c_prefetch(Render *, Node *load);

#define C_FAMILY                                                                                  \
    .head = c_head, .end = "}\n", .constant = "const $0 $1", .variable = "$0 $1", .chains = true, \
    .cast = "($0)", .cast_binds = true, .number = c_number, .integer = c_integer,                 \
    .choice = "($0 ? $1 : $2)", .truth = "$0", .element = "$0[$1]", .behind = "($0 + $1)[$2]",    \
    .copy = c_copy, .prefetch = c_prefetch, .then = ")\n", .spelling = c_spelling

#endif
