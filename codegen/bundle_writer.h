/* bundle_writer.h - the pen of <name>.c, which several files write. */
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

/* bundle_address.c */
/* The variable that points to the memory of an intermediate tensor. */
const char *memory_base(Bundle *, const Buffer *root);
/* Where element `offset` (NULL: the first) of the buffer is on the host. Views may be nested. */
void address(StrBuf *, Bundle *, const Buffer *, Node *offset, bool written);

/* bundle_steps.c */
void run_steps(Writer *, const Block *);
/* The call alone, as the steps of a thread make it. */
void kernel_call(Writer *, const Step *);
/* The scalar bool, as the host sees it. */
void condition(Writer *, const Buffer *cond);
/* "igrt_outside(&ctx->fault, ", and the head of an if around it: least <= value <= greatest does not hold; what: is the value. */
void open_outside(Writer *);
void run_outside(Writer *, const char *what, Node *value, Node *least, Node *greatest);

/* bundle_dims.c: of the inputs, before the steps; of the outputs and of states that grow, after them. */
void run_dims_in(Writer *);
void run_dims_out(Writer *);
void run_lengths_out(Writer *);

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
