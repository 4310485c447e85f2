/* probe.h - asks a C compiler what its machine has: `ingot targets --probe "arm-none-eabi-gcc
 * -mcpu=cortex-m55"`. */
#ifndef PROBE_H
#define PROBE_H

#include "compiler.h"

/* out: a target file (docs/targets.md).  command: a compiler and its flags, words apart; nothing
 * else is run, and no shell.
 * problem: why there is none. */
ingot_status probe(Arena *, const char *command, StrBuf *out, StrBuf *problem);

/* ---- what the files of this folder share ---------------------------------------------------- */

typedef struct {
    const char *name, *value;
} Macro;

typedef struct {
    Arena *a;
    const char **word; /* of the command */
    int nword;
    const char *text; /* all that the compiler defines: "#define NAME VALUE" lines */
    Macro *macro;
    int nmacro;
    const char *machine; /* what it builds for, as it says: "arm-none-eabi" */
    const char *headers; /* the folder of its own headers; NULL: not known */
    StrBuf declared;     /* "arm_acle.h 74, arm_neon.h 4012" */
    StrBuf found;        /* of the instructions that kernels are interested in: "__smlad" */
} Probe;

const char *macro_of(const Probe *, const char *name); /* its value; NULL: it is not defined */
/* probe_headers.c: the intrinsics that the compiler's headers declare under its macros; without
 * libclang nothing. */
void probe_headers(Probe *);

#endif
