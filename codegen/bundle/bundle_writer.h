/* bundle_writer.h - the pen of <name>.c, which several files write. */
#ifndef BUNDLE_WRITER_H
#define BUNDLE_WRITER_H

#include "bundle.h"

/* bundle_roll.c: a step, or a loop over steps that are the same but for where their tensors lie. A
 * step that is a loop of the plan has a body, too, of which it is one iteration.
 * What differs from step to step are numbers: of the step, of the first byte of each argument, of
 * the scratch. In a loop each of them grows by its stride. */
enum { MAX_ROLLED = 3 }; /* loops in loops */
typedef struct Rolled Rolled;
struct Rolled {
    const Step *step; /* NULL: a loop */
    int count;        /* iterations */
    const Rolled *body;
    int nbody;
    int64_t *number, *stride; /* of all steps of the first iteration; by how much they grow */
    int nnumber;
    int depth;    /* of loops */
    double cost;  /* of its text, in steps */
    uint64_t key; /* equal where all is but the numbers */
};
/* The steps of a block as they are written. */
const Rolled *roll_steps(const Bundle *, const Block *, int *n);

typedef struct {
    Bundle *b;
    StrBuf sb;
    int depth; /* of indentation */
    /* The loops around the step that is written, and which of their numbers is its first. */
    int nloop;
    const Rolled *loop[MAX_ROLLED];
    int at[MAX_ROLLED];
} Writer;

/* bundle_run.c */
void indent(Writer *);
void line(Writer *, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool steps_have(const Block *, StepKind);
/* Declares what the function that was written needs, which the next one needs no more; calls:
 * library kernels too. */
void run_locals(Writer *, bool calls);
/* bundle_devices.c: of a plan for several devices what each does between two waits, as functions;
 * and their call. */
void devices_functions(Writer *);
void devices_run(Writer *);

/* bundle_address.c */
/* The variable that points to the memory of an intermediate tensor. */
const char *memory_base(Bundle *, const Buffer *root);
/* Where element `offset` (NULL: the first) of the buffer is on the host. Views may be nested. */
void address(StrBuf *, Bundle *, const Buffer *, Node *offset, bool written);

/* Whether it is known in bytes from the start of a memory; then the same without a type, arena +
 * 4096, and how many of these bytes the views say as constants. */
bool is_bytes(const Bundle *, const Buffer *);
void address_in_bytes(StrBuf *, Bundle *, const Buffer *);
int64_t known_offset(const Buffer *);
int64_t c_element_bytes(ingot_dtype); /* of the C type in which addresses count */

/* bundle_steps.c */
void run_steps(Writer *, const Block *);
/* Of each kernel that can be cut: its arguments as a struct, and the function that calls it for
 * some of its parts. */
void parts_functions(Writer *);
/* The scalar bool, as the host sees it. */
void condition(Writer *, const Buffer *cond);
/* "igrt_outside(&ctx->fault, ", and the head of an if around it: least <= value <= greatest does
 * not hold; what: is the value. */
void open_outside(Writer *);
void run_outside(Writer *, const char *what, Node *value, Node *least, Node *greatest);

/* bundle_dims.c: of the inputs, before the steps; of the outputs and of states that grow, after
 * them. */
void run_dims_in(Writer *);
void run_dims_out(Writer *);
void run_lengths_out(Writer *);

/* bundle_gpu*.c */
void gpu_constants(StrBuf *, Bundle *);
void gpu_functions(StrBuf *, Bundle *);
void gpu_locals(Writer *, unsigned needs);
/* Of run(): transfers, and the steps, whose text is given; or the calls of enqueue(), which has
 * them where no step needs the host. */
void gpu_steps(Writer *, const char *steps);
bool gpu_is_apart(const Bundle *);
void gpu_apart_functions(StrBuf *, Bundle *);
void gpu_ready(StrBuf *, const Bundle *); /* of init() */
/* Of several devices: the steps, and what is around them. */
int gpu_devices_steps(Writer *, bool *copies); /* launches that are no kernels of the model */
void gpu_devices_enqueue(StrBuf *, const Bundle *);
/* bundle_gpu_asides.c: of a function some of whose steps run beside the others. */
bool gpu_steps_aside(const Bundle *);
void gpu_asides_steps(Writer *);
void gpu_asides_enqueue(StrBuf *, const Bundle *);
void gpu_devices_reset(StrBuf *, const Bundle *); /* of reset(): states are zeros */
void gpu_zero_states(StrBuf *, const Bundle *, int device,
                     int64_t bytes); /* of one: bundle_run.c */
/* What functions of the context call a device, and its arena. */
const char *gpu_device(const Bundle *, int device);
const char *gpu_arena(const Bundle *, int device);
void gpu_kernel(Writer *, const Step *);
void gpu_copy(Writer *, const Step *);
void gpu_all_reduce(Writer *, const Step *);
void gpu_call_inputs(Writer *, const Step *);
void gpu_call_outputs(Writer *, const Step *);
bool gpu_on_host(const Buffer *); /* a condition that the host knows anyway */
/* One that it does not: the branch; and what a loop asks before each iteration, into
 * `cond<number>`. */
void gpu_branch(Writer *, const Step *);
void gpu_condition(Writer *, const Step *);

#endif
