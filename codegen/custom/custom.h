/* custom.h - what the files of custom operators share: a user's C source is opened (custom_open.c),
 * read by libclang (custom_read.c) and called while compiling (custom_run.c).
 * compiler/builder/custom.c uses it, custom_source.c emits it. */
#ifndef CUSTOM_H
#define CUSTOM_H

#include "codegen.h"

/* "op: file:line: what"; returns false. */
bool custom_fault(Context *, const CustomOp *, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Fills in what the source says. False after an error. */
bool custom_read(Context *, CustomOp *);
/* CustomOp.run */
int custom_run(const CustomOp *, const struct igrt_tensor *in, int nin, struct igrt_tensor *out,
               int nout, const int64_t *ints, const double *floats, void *scratch,
               size_t scratch_bytes, const char **why);

#endif
