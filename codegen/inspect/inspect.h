/* inspect.h - what is told of a plan: as JSON (docs/report.md), as a page, on a terminal. */
#ifndef INSPECT_H
#define INSPECT_H

#include "codegen.h"
#include "json.h"

/* What steps take, and what the machine could do. */
typedef struct {
    /* by `ingot bench`; else the machine is a nominal one, and times are what its roof allows */
    bool measured;
    int threads;
    double gflops, cache_gbps, memory_gbps; /* of one core */
    double *ms; /* by step; below zero: not measured. NULL without measurements */
} Times;

/* Instructions of a kernel's innermost loop, as a C compiler made them. */
typedef enum {
    INSTR_MULTIPLY_ADD,
    INSTR_ARITHMETIC,
    INSTR_LOAD,
    INSTR_STORE,
    INSTR_SHUFFLE,
    INSTR_CONVERT,
    INSTR_ADDRESS,
    INSTR_BRANCH,
    INSTR_KINDS
} InstrKind;
extern const char *const instr_kind_name[INSTR_KINDS];
typedef struct {
    const char *compiler; /* and its flags */
    const char *text;     /* of the innermost loop that computes most; NULL: there is no loop */
    int count[INSTR_KINDS], total;
    int from_memory; /* in the loop; arithmetic with an operand in memory */
    int function;    /* instructions in all */
} Assembly;

typedef struct Inspection {
    Arena *arena; /* of what follows, the plan aside */
    Plan *p;
    /* of a model with several functions (docs/functions.md): all plans, of which p is one; none
     * otherwise */
    Plan **plans;
    int nplan;
    const Target *t;
    const ingot_options *o;
    struct Imported {
        Node **node;
        int n;
    } * imported; /* by function: results of the graph before it was rewritten */
    Times times;
    Assembly **assembly; /* by kernel; NULL: none */
    /* what the bundle takes of a microcontroller, in bytes; compiler: that measured it, NULL: flash
     * and RAM are estimates, the stack is not known */
    struct Takes {
        const char *compiler;
        int64_t flash, ram, stack;
    } * takes; /* NULL: of another machine */
} Inspection;

/* inspect_times.c: what a nominal machine of the target does; the least time that it allows for a
 * step, in ms. */
Times times_nominal(const Target *);
double times_roof_ms(const Times *, double flops, double bytes);
/* What `ingot bench --per-kernel --json` told of this plan; false with *why if it is of another
 * one. */
bool times_read(Times *, const Plan *, const char *target, const char *text, Arena *,
                const char **why);

/* inspect_kernels.c: ", \"opts\": [...]"; none without a kernel */
void inspect_opts(StrBuf *, const Kernel *);
/* inspect_steps.c */
const char *step_kind(const Step *);
bool step_reads(const Step *, int i); /* its i-th tensor */
bool step_writes(const Step *, int i);
int64_t step_flops(const Step *); /* of a kernel; of others 0 */
int64_t step_bytes(const Step *);
Step **plan_steps(const Plan *, Arena *); /* by number; steps that only check indices too */
/* By number: how often a run comes to the step, for it may be inside loops; of run-time sizes, at
 * most; of a loop that ends by a condition, counted as one. */
int64_t *plan_rounds(const Plan *, Arena *);
int64_t plan_alive(const Plan *, int step); /* bytes of the arena, states aside */

/* inspect_form.c: what is known of a plan's steps beside the plan. */
typedef struct {
    const Plan *p;
    Arena *a;
    Step **steps;
    VariantOf *variant;
    int nvariant;
    bool *product; /* by number: a matrix product or a convolution */
} StepForms;
StepForms step_forms(const Plan *, Arena *);
/* "Winograd F(4x4) products", "3x3 depthwise convolution", "loop"; of a library step its name. */
const char *step_form(const StepForms *, const Step *);
const char *layer_of(Arena *, const Origin *);
/* "layer4.0/conv2", of the heaviest node that it computes; NULL: it computes none of the model. */
const char *step_layer(const StepForms *, const Step *);

/* inspect_expr.c: what a kernel computes, in terms of its arguments: "a0[i0] = max(sum(r0: a1[i0,
 * r0] * a2[r0]), 0)". */
void kernel_expression(StrBuf *, const Kernel *);
/* The loops around its stores, after its opts; the linear statements that are then rendered. */
void kernel_nest(StrBuf *, const Kernel *, bool gpu);
void kernel_linear(StrBuf *, const Kernel *, bool gpu);
/* What a pass of its lowering (lowered.h) leaves, under its name. */
void kernel_after(StrBuf *, const Kernel *, bool gpu, int pass);

/* The parts of the JSON, each with its comma at the end. */
void inspect_graphs(StrBuf *, const Inspection *);
void inspect_tensors(StrBuf *, const Inspection *);
void inspect_steps(StrBuf *, const Inspection *);
void inspect_kernels(StrBuf *, const Inspection *);
void inspect_notes(StrBuf *, const Inspection *);
enum {
    INSPECT_VERSION = 1
}; /* of docs/report.md: another one where a member goes or changes its meaning */
void inspect_json(StrBuf *, const Inspection *);
void inspect_dot(StrBuf *, const Inspection *); /* for Graphviz */

/* inspect_explain.c: a node of the file, a step by number or kernel, or a tensor, in 40 lines
 * (verbose: in as many as it takes); NULL: every step in a line, and the slowest in full; false
 * with names that are near. */
bool explain(StrBuf *, const Inspection *, const char *what, int verbose, StrBuf *near);

/* report.c: the page with the data in it (of several functions: the first is shown first), and with
 * another model's or plan's beside it (or
 * NULL). */
extern const RuntimeFile report_files[];
void report_page(StrBuf *, int n, const StrBuf *json, const char *other);

/* inspect_verbose.c: what -v, -vv ... tell. */
void plan_tell(const Plan *, bool gpu, int verbose);

#endif
