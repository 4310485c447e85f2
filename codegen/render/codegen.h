/* codegen.h - from a plan to text: kernels in the target's language, and the bundle around them. */
#ifndef CODEGEN_H
#define CODEGEN_H

#include "compiler.h"
#include "nest.h"

/* ---- signature.c: how a kernel is declared and called ------------------------------------- */

/* The name of run-time integer `var` in emitted C: an identifier, unique in the context. */
enum { VAR_NAME_BYTES = 48 };
const char *var_name(const Context *, int var, char out[VAR_NAME_BYTES]);
/* A kernel argument that is neither read nor written has no parameter (memplan.c: in place). */
bool kernel_has_param(const Kernel *, int arg);
/* Of a language of the C family:
 * "void model_k00_add_4(const float *restrict a0, float *restrict a1, int64_t n)", without a
 * final character. Parameter aN is argument N, cN its scalar argument N; a kernel that can be cut
 * takes the first of its parts that it is to do, and the one after the last: "int64_t begin,
 * int64_t end". */
void kernel_prototype(StrBuf *, const Target *, const Kernel *, const char *function_name);
/* "m0, m2", each of them between two words: what says how tensors lie whose elements come by boxes;
 * separator: before the first. How many there are. */
int print_maps(StrBuf *, const Kernel *, const char *separator, const char *before,
               const char *after);
/* Type of one element in emitted C; strings are pointers. */
const char *c_type(ingot_dtype);
/* Bytes of one element in memory, strings included. */
int64_t element_bytes(ingot_dtype);
const char *scalar_type(const Scalar *);
void print_scalar(StrBuf *, const Scalar *, double); /* "0.5f", "-3" */
/* Text made safe inside a comment: one line, ASCII, without comment marks. */
void print_comment_text(StrBuf *, const char *);
/* "text" with escapes, a C and a JSON string. */
void print_string(StrBuf *, const char *);

/* A C identifier from any text; never a keyword. */
char *identifier(Arena *, const char *text);
/* "3", "batch*3": an INDEX expression for people. */
void print_dim(StrBuf *, const Context *, Node *);
/* "f32[1,3,n]" */
void print_shape(StrBuf *, const Context *, ingot_dtype, int rank, Node *const *dims);

/* ---- needs ---------------------------------------------------------------------------------- */

/* What a text needs around it, of headers: said while it is written. Functions of
 * a bundle's <name>.c need more (LocalNeed). */
typedef enum {
    NEED_MATH = 1 << 0,   /* NAN, INFINITY */
    NEED_NUM = 1 << 1,    /* igrt_num.h, or whatever includes it */
    NEED_VEC = 1 << 2,    /* igrt_vec_f32.h: lanes; what is more of them is below */
    NEED_VEC64 = 1 << 3,  /* igrt_vec64.h: lanes of 64 bits */
    NEED_DOT = 1 << 4,    /* igrt_dot.h, igrt_dot_vec.h */
    NEED_CUSTOM = 1 << 5, /* << 0, 1, 2: op_swish_x4(), _x8(), _x16() */
    NEED_VEC_NARROW = 1 << 8,
    NEED_VEC_I32 = 1 << 9,
    NEED_VEC_APART = 1 << 10,
    NEED_VEC_ROWS = 1 << 11,
    NEED_VEC_MATH = 1 << 12,
    NEED_VEC_ALL =
        NEED_VEC | NEED_VEC_NARROW | NEED_VEC_I32 | NEED_VEC_APART | NEED_VEC_ROWS | NEED_VEC_MATH,
    NEED_DOT_BF16 = 1 << 13, /* igrt_dot_bf16.h */
    NEED_DOT_I16 = 1 << 14,  /* igrt_dot_i16.h */
    NEED_DOT_WIDE = 1 << 15, /* igrt_dot_wide.h, igrt_four.h */
    NEED_RUN = 1 << 16,      /* igrt_run.h */
    NEED_ACROSS = 1 << 17,   /* igrt_across.h */
    NEED_AMX = 1 << 18,      /* igrt_amx.h */
    NEED_MMA = 1 << 19,      /* igrt_mma.h */
    NEED_WGMMA = 1 << 20,    /* igrt_wgmma.h */
    NEED_IMAGE = 1 << 21,    /* igrt_image.h */
    NEED_BULK = 1 << 22,     /* igrt_bulk.h */
    NEED_TABLE = 1 << 23,    /* igrt_table.h */
    NEED_TURNS = 1 << 24,    /* igrt_turns.h */
} Need;

/* ---- render.c ----------------------------------------------------------------------------- */

/* render_together.c: bytes that a group shares where a launch has to ask for them, or 0: a kernel
 * as it was lowered, whose arguments are followed by places. */
int64_t gpu_shared(const Kernel *lowered, int narg, const Target *);
/* ... and with pieces of weights behind them (TRIGGER copied), as the launch says it. */
int64_t gpu_asked(const Kernel *, const Target *);
bool gpu_bulk(const Kernel *); /* has it such pieces? */
/* render_together.c: one kernel function as text, without the comment on top; what it needs. */
unsigned render_kernel(StrBuf *, const Target *, const Kernel *, const char *function_name);
/* Groups of a launch whose number no run changes. */
int64_t kernel_groups(const Kernel *);
bool kernel_is_counted(const Kernel *); /* does a run say how many groups there are? */

/* ---- runtime_text.c ------------------------------------------------------------------------ */

/* The runtime's headers that kernels need, none of which another one brings; how many. */
enum { MAX_KERNEL_HEADERS = 16 };
int kernel_headers(unsigned needs, const char *file[MAX_KERNEL_HEADERS]);
/* The #includes of a C file whose kernels need this. */
void print_kernel_headers(StrBuf *, unsigned needs);
/* What needs the header of that name. */
unsigned header_need(const char *file);

/* ---- how kernels are compiled ---------------------------------------------------------------- */

/* Predictive commoning (gcc's) carries what a window's next tap reads again from one iteration to
 * the next: a copy for each row, and scalars that have to be spread over the lanes anew, where a
 * load does both for nothing. */
#define FLAG_OF_GCC "-fno-predictive-commoning"

/* bundle_machine.c: of a target's flags those that choose instructions, where a bundle asks at init
 * whether they are there; and the others, which all files are compiled with. */
const char *flags_for_machine(Arena *, const Target *);
const char *flags_for_all(Arena *, const Target *);
/* For which machine the source of a bundle's folder is compiled: 0, or of a bundle for several
 * targets the place in suffix[] (of those that are for C) of the one whose it is; -1: for any. */
int source_machine(Arena *, const char *name, int n, const char *const *suffix, const char *file);
/* Whose programs a target for C is for, of those whose processors can be asked: "x86-64",
 * "aarch64", "riscv64", "" (any); NULL: another one. */
const char *target_family(const Target *);

/* ---- bundle.c (inspect.h has what is told of a plan) ---------------------------------------- */

/* ---- pipeline/compile.c ---------------------------------------------------------------------- */

/* ---- runtime_files: the sources of runtime_min, inside the compiler ------------------------ */

typedef struct {
    const char *name; /* base name, of the driver's behind "host/"; "" ends the list */
    const unsigned char *data;
    size_t bytes;
} RuntimeFile;
extern const RuntimeFile runtime_files[];
/* runtime_text.c: the file of a name, or NULL; its text; the one that a line includes, or NULL; its
 * text with what it includes in place. */
const RuntimeFile *runtime_file(const char *name, size_t n);
const char *runtime_text(const char *name);
const RuntimeFile *runtime_included(const char *line, size_t n);
void runtime_whole(StrBuf *, const char *name);

#endif
