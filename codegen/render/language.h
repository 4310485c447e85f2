/* language.h - how a target's language spells what kernels say.
 *
 * The renderer (render.c, render_expr.c, render_memory.c) walks the statements of a kernel and is
 * one for all languages: what they spell otherwise are the words and functions of this record.
 * targets/ has one for each; no file of render/ asks which one it is.
 *
 * A word with parts is a pattern: "$0" is its first part, "$1" the second one, in any order.  Of `x
 * < 3 ? y : 0` C's is "($0 ? $1 : $2)", WGSL's "select($2, $1, $0)".
 *
 * C, OpenCL C and CUDA C++ are one family: language_c.h has what they share.  Vectors
 * (render_lanes.c), products of bytes by fours (render_dot.c) and matrix units (render_tc.c,
 * render_beside.c) are functions of the runtime's headers, which this family alone includes: a
 * target of another language has a machine without them. */
#ifndef LANGUAGE_H
#define LANGUAGE_H

#include "codegen.h"

typedef struct Render Render;
typedef struct Language Language;
typedef struct CWords CWords;
struct Language {
    /* What a kernel says that the language has no words for, a type or a function: the model is
     * refused with that.  NULL: it has them all. */
    const char *(*lacks)(Arena *, const Kernel *);
    /* ---- files and kernels ---- */
    const char *suffix; /* of kernel files: ".c", ".cl", ".cu" */
    /* What stands above the kernels of a GPU's file, which need this (Need); their text. */
    void (*file)(StrBuf *, const Target *, unsigned needs, const char *kernels);
    /* A kernel up to its first statement: name, arguments, memory that its group shares or that it
     * has for itself (the lowered kernel's arguments behind those of the kernel), how many items a
     * group has.  Argument N is aN in statements, a scalar cN, a run-time integer what var_name()
     * says. */
    void (*head)(Render *, const Kernel *, const Tiles *lowered, const char *name);
    /* Of a launch of several kernels, whose functions are name_0, name_1, ..: what calls them; up
     * to which group each goes. NULL: there are no such. */
    void (*together)(Render *, const Kernel *, const int64_t *end, const char *name);
    const char *end; /* and what is behind its last one */
    /* GPUs whose arguments are no pointers but bindings, of exact bytes, which may not overlap
     * where one of them is written: arguments are told how they lie (KernelArg.with, .writable),
     * and hosts how many bytes they have. */
    bool binds;
    /* Then, behind a kernel's name in the list of them: what the host has to know of it. */
    void (*entry)(StrBuf *, const Kernel *);
    /* GPUs: numbers of this item's group, and of the item in there, as coordinates. */
    const char *group, *item;
    const char *work_item[2]; /* of the item among all; [1]: where that takes 64 bits */
    const char *part_item[2]; /* the same of a part of a launch, by the number of its group */
    /* CPUs: the loop over parts of a kernel that threads share; around loops that go part by
     * part. */
    void (*parts)(Render *, int depth);
    const char *each_part, *end_part;

    /* ---- values ---- */
    /* The type that holds a value: floats smaller than f32 are f32 then; of INGOT_INDEX that of
     * coordinates, wide: of 64 bits. */
    const char *(*type)(ingot_dtype, bool wide);
    const char *constant, *variable; /* declared as type $0, name $1: "const $0 $1" */
    bool chains;                     /* float s0 = 0.0f, s1 = s0; declares two */
    const char *cast; /* what stands before the parentheses of a cast to $0: "($0)" */
    bool cast_binds;  /* (int)x: a name, or a call, needs no parentheses */
    void (*number)(StrBuf *, double, ingot_dtype);   /* a float's literal */
    void (*integer)(StrBuf *, int64_t, ingot_dtype); /* an integer's, or a condition's */
    const char *choice;                              /* if $0, then $1, else $2 */
    const char *truth;                               /* the condition that integer $0 is not zero */
    bool logical;      /* conditions are no integers: they are compared where integers have ^ */
    bool f64_by_calls; /* it has no f64: operators are functions */
    bool strict;       /* a narrow integer, or its zero, is none where a wider one is wanted */
    /* An operation of a node that it spells by itself, whole; false: as all languages do. */
    bool (*op)(Render *, Node *);
    /* By Op, floats: "exp@($0)", @ stands for float_suffix; NULL: igrt_<op>_<type>(). */
    const char *const *spelling;
    const char *float_suffix; /* of f32 functions: "f" in C */
    /* a division branches: one by a constant is igrt_quotient_f32(), that of a sigmoid
     * igrt_reciprocal_f32(); so does erf, igrt_erf_and_f32() does not */
    bool quotient;

    /* ---- memory ---- */
    const char *element; /* element $1 of argument $0 */
    const char
        *behind; /* element $2 behind element $1 of it, where that is worked out once for several */
    bool runs;   /* 16 bytes that an unrolled loop goes along are one load (igrt_run.h) */
    /* An element as its value in an expression; the statement that stores the value of a STORE.
     * NULL: elements are of the type of their values, small floats of that of their bits. */
    void (*load)(Render *, Node *load, Node *at);
    void (*store)(Render *, Node *store, Node *at);
    /* Several elements of a place from as many of a buffer, a STORE of a chunk; later: they are on
     * their way (STMT_WAIT). */
    void (*copy)(Render *, Node *store, bool later);
    void (*prefetch)(Render *, Node *load); /* or NULL */
    /* DOT: what four bytes are, and those of a LOAD, whose first one lies there.  NULL: igrt_i8x4
     * and a function of a pointer. */
    const char *four;
    void (*load_four)(Render *, Node *load, Node *first);

    /* ---- statements ---- */
    const char *then,
        *end_then;       /* behind the condition of one statement, and behind that; NULL: nothing */
    const char *barrier; /* all items of a group have come here */
    const char *begin;   /* kernels before are done; NULL: launches say so */
    const char *next;    /* the kernel behind this one may begin */
    /* a bit for each of the items that run together, of those of which it is true; the number of an
     * item among them, and of the lowest bit of `left`; or NULL */
    const char *ballot, *item_of_warp, *lowest_left;
    const char *unroll; /* before a loop: it is to be straight-line; or NULL */
    const char *assume; /* called with what is known to hold; or NULL */

    const CWords *c; /* of the C family; NULL: it is no such language */
};

/* ---- render.c: parts of text that a pattern puts in order ------------------------------------ */

/* For functions of a language, which render.h has more for.  Each part is what is written until the
 * next one begins:
 *     Parts p = parts_begin(r);  .. the first part ..  parts_next(r, &p);  .. the second ..
 *         parts_end(r, &p, "$1($0)"); */
enum { MAX_PARTS = 3 };
typedef struct {
    size_t at[MAX_PARTS];
    int n;
} Parts;
Parts parts_begin(Render *);
void parts_next(Render *, Parts *);
void parts_end(Render *, const Parts *, const char *pattern);
/* The same of parts that are known. */
void print_pattern(StrBuf *, const char *pattern, const char *const *part);

#endif
