/* bundle_writer.h - the pen of <name>.c, for bundle_run.c and bundle_gpu.c. */
#ifndef BUNDLE_WRITER_H
#define BUNDLE_WRITER_H

#include "bundle.h"

typedef struct {
    Bundle *b;
    StrBuf sb;
    int depth; /* of indentation */
} Writer;

/* bundle_run.c */
void indent(Writer *);
void line(Writer *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where element `offset` (NULL: the first) of the buffer is on the host. Views may be nested. */
void address(StrBuf *, Bundle *, const Buffer *, Node *offset, bool written);
/* The scalar bool, as the host sees it. */
void condition(Writer *, const Buffer *cond);

/* bundle_gpu.c */
void gpu_constants(StrBuf *, Bundle *);
void gpu_functions(StrBuf *, Bundle *);
void gpu_locals(Writer *, unsigned needs);
/* Of run(): transfers, and the steps, whose text is given; or the calls of enqueue(), which has them where no step needs the host. */
void gpu_steps(Writer *, const char *steps);
bool gpu_is_apart(const Bundle *);
void gpu_apart_functions(StrBuf *, Bundle *);
void gpu_ready(StrBuf *, const Bundle *); /* of init() */
void gpu_kernel(Writer *, const Step *);
void gpu_copy(Writer *, const Step *);
void gpu_call_inputs(Writer *, const Step *);
void gpu_call_outputs(Writer *, const Step *);
/* Brings a condition to the host: true if it has to be read into `cond<number>` first. */
bool gpu_condition(Writer *, const Buffer *cond, int number);

#endif
