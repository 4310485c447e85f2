/* compile_apart.h - many programs compiled at once, each in a child process. */
#ifndef COMPILE_APART_H
#define COMPILE_APART_H

#include "compiler.h"

typedef struct {
    const char *source, *machine; /* NULL: of any */
    double most;                  /* seconds after which it counts as hung; 0: there is no limit */
    CompileStatus status;
    StrBuf out; /* the image; of one that failed what the compiler said, or how it ended */
} Compilation;

/* By the target's compiler (Target.compile), as many at a time as there are cores.  It forks: a
 * process with other threads of its own, or one that waits for all children itself, is none to call
 * it from. */
void compile_apart(Arena *, const Target *, bool flush, Compilation *, int n);

#endif
