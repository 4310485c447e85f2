/* bundle.h - what the files of the bundle writer share. */
#ifndef BUNDLE_H
#define BUNDLE_H

#include "bundle_write.h"
#include "igrt.h"

typedef enum { WEIGHTS_NONE, WEIGHTS_ARRAY, WEIGHTS_BLOB, WEIGHTS_INCBIN } WeightsMode;

/* An input or output as a member of the emitted structs. */
typedef struct {
    const Buffer *b;
    const char *field; /* the member: a C identifier, or x[3] of a sequence */
    const char *dims;  /* that of its dims: x_dims, x_dims[3] */
    /* some dim is known at run time only, or its neighbours have others: there is <dims> */
    bool dynamic;
    Node *here; /* of what may be absent: 1 or 0; NULL */
    int lead;   /* first dim of b that the interface shows: 1 where `here` is the first one */
    const IoForm *form; /* NULL: as in the model's file */
} Port;

/* A sequence or an optional: members <field>, <field>_dims, <field>_length, <field>_present. */
typedef struct {
    const IoGroup *g;
    const char *field;
    int rank; /* the greatest of its elements */
} PortGroup;

/* A memory of --memory as the emitted text knows it. */
typedef struct {
    const char *base;  /* memory_dtcm: a variable that points to its start */
    const char *index; /* MODEL_MEMORY_DTCM: its number */
    const char *bytes; /* MODEL_MEMORY_DTCM_BYTES */
    bool needed;       /* by the function of <name>.c that is being written */
} MemoryNames;

/* Locals that a function of <name>.c needs, beside the headers of Need. */
typedef enum {
    NEED_SYM = 1 << 21,
    NEED_ARENA = 1 << 22,
    NEED_WEIGHTS = 1 << 23, /* the blob */
    NEED_INPUTS = 1 << 24,
    NEED_OUTPUTS = 1 << 25,
    NEED_PARTS = 1 << 26, /* RUN: kernels that threads share */
    NEED_FAULT = 1 << 27,
    NEED_PROFILE = 1 << 28,
    NEED_GPU = 1 << 29,
    NEED_MEM = 1 << 30,
} LocalNeed;

typedef struct Gpu Gpu;
typedef struct Bundle Bundle;
struct Bundle {
    Plan *p;
    Context *c;
    Arena *a;
    const Target *target;
    const ingot_options *o;
    const char *name, *upper; /* model, MODEL */
    const char *io, *entry;   /* model_inputs, model_run(); of a further function model_prefill */
    Kernel **kernel;          /* of all functions, equal ones once */
    int nkernel;
    /* bundle_functions.c: of each further function what it has of its own: a plan and ports. */
    Bundle *function;
    int nfunction;
    Bundle *first;      /* of a further function: the model's first one; else NULL */
    const char *source; /* base name of the model file */
    const char *dir;    /* being written */
    Port *in, *out;
    int nin, nout;
    PortGroup *in_group, *out_group;
    int nin_group, nout_group;
    int *sym; /* by variable: its place in sym[], or -1 */
    int nsym;
    MemoryNames *memory; /* by number; NULL without --memory: then there is the arena */
    WeightsMode mode;
    Buffer **weight;          /* one per distinct offset, ascending */
    const char **weight_name; /* without the prefix */
    bool *weight_named;       /* whether the file that is being written has the name */
    int nweight;
    uint64_t sum; /* of the blob */
    int nkernel_file;
    unsigned kernel_needs; /* of all kernels */
    unsigned needs;        /* of the function of <name>.c that is being written */
    unsigned all_needs;    /* of those before it */
    Gpu *gpu;              /* bundle_gpu.c; NULL on a CPU */
    bool has_selftest;
    const char *package; /* --package, or "" */
    const char *folder;  /* of the sources in it: "", "src/" */
    const char **files;  /* written so far */
    int nfile;
    bool failed;
    /* bundle_fat.c: of one for several targets, what each has of its own, under names of its own:
     * model_cuda, model_c. Ports, build files and what is asked of the C compiler are those of C;
     * steps, kernels and contexts are the targets'. */
    Bundle *sub; /* nsub of them, a GPU's first; NULL: there is one target */
    int nsub;
    Bundle *whole;              /* of one of these, what it is a part of; NULL */
    const char *called;         /* the same as config.target names it: "x86-64-v3" */
    const char *suffix;         /* and as names of C do: "x86_64_v3" */
    Bundle *page;               /* of a page's for WebAssembly: what is WGSL beside it; NULL */
    const char *no_gpu;         /* why there is none for this model after all; NULL */
    const char *weights_prefix; /* of the names of weights that several share; NULL: name */
    bool writes_weights;
    int64_t weights_at;    /* where its weights begin in the file of all */
    int64_t weights_there; /* bytes of the file that are written */
    igrt_sum weights_sum;  /* of these, where there are several */
};

/* bundle.c */
void bundle_file(Bundle *, const char *name, const StrBuf *text);   /* writes and frees the text */
void bundle_source(Bundle *, const char *name, const StrBuf *text); /* the same, in Bundle.folder */
void bundle_runtime(Bundle *, const char *name,
                    const StrBuf *text);             /* the same of a copy of the runtime's */
const char *bundle_path(Bundle *, const char *name); /* of a file that the caller writes */
bool bundle_is_bare(const Bundle *);                 /* for a machine without an operating system */
bool bundle_asks_machine(const Bundle *); /* bundle_machine.c: init does, in a file of its own */
void bundle_fail(Bundle *, ingot_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void bundle_prepare(Bundle *, int nplan,
                    Plan *const *); /* names, ports; weights of so many plans */
void bundle_ports(Bundle *);        /* of the function that the context selects */
WeightsMode weights_mode(const Bundle *, int nweight, int64_t bytes);
char *upper_case(Arena *, const char *);
void print_origins(StrBuf *, const Step *, int max); /* 'conv1' (Conv) + 'relu1' (Relu) */

/* Of one of several targets what all have: files, the runtime under its private names; else itself.
 */
static inline Bundle *whole_of(Bundle *b)
{
    return b->whole ? b->whole : b->first ? b->first : b;
}

static inline const char *whole_name(const Bundle *b)
{
    return b->whole ? b->whole->name : b->name;
}

/* What names of weights begin with. */
static inline const char *weights_prefix(const Bundle *b)
{
    return b->weights_prefix ? b->weights_prefix : b->name;
}

static inline const char *whole_upper(const Bundle *b)
{
    return b->whole ? b->whole->upper : b->upper;
}

/* The bundle, or what of it is for a GPU; NULL: nothing is. */
static inline const Bundle *gpu_part(const Bundle *b)
{
    const Bundle *first = b->sub ? &b->sub[0] : b;
    return first->gpu ? first : NULL;
}

/* Of several targets the first one for C, which writes the weights of all that are. */
static inline int first_for_c(const Bundle *b)
{
    return b->sub[0].target->gpu ? 1 : 0;
}

int64_t arena_bytes(const Bundle *);        /* of the caller's; of several targets the greatest */
int64_t weights_file_bytes(const Bundle *); /* with the weights of all targets */

/* bundle_functions.c */
void functions_prepare(Bundle *, int n, Plan *const *);
void functions_header(StrBuf *, Bundle *); /* what <name>.h has of them */
void functions_io(StrBuf *, Bundle *);     /* what <name>_io.h of several targets has of them */
void functions_run(Bundle *);              /* <name>_<function>.c */
bool bundle_has_states(const Bundle *);    /* that programs may look at */
void states_header(StrBuf *, const Bundle *);
void states_run(StrBuf *, Bundle *);   /* <name>_state() */
void states_begin(StrBuf *, Bundle *); /* of reset(): those that begin as data */

/* bundle_fat.c */
void fat_prepare(Bundle *, int n, const FatTarget *, int64_t shared);
void fat_header(StrBuf *, const Bundle *);    /* of <name>.h: the context, and which target runs */
const char *fat_sym(const Bundle *, int var); /* an lvalue: the place of a variable's value */
void fat_run(Bundle *);                       /* <name>.c */

/* bundle_header.c, bundle_hpp.c, bundle_table.c, bundle_run.c, bundle_weights.c, bundle_kernels.c,
 * bundle_build.c: a file or two each */
void bundle_header(Bundle *);
void bundle_io_header(
    Bundle *); /* <name>_io.h: types that the interfaces of several targets have in common */
void bundle_hpp(Bundle *);
void bundle_main(Bundle *);
void print_port(StrBuf *, const Bundle *, const Port *); /* "x" f32[1,3], in comments */
/* The bytes of each memory; in two files, which may be compiled as one. */
void memory_table(StrBuf *, const Bundle *, const char *name);
const char *dtype_enum(ingot_dtype); /* F32 of IGRT_F32 */
void bundle_run(Bundle *);
void bundle_function(Bundle *);            /* the same of a further function */
void io_structs(StrBuf *, const Bundle *); /* bundle_header.c: <io>_inputs, <io>_outputs */
void ports_comment(StrBuf *, const Bundle *);
void io_forms_header(StrBuf *, const Bundle *); /* bundle_io.c, and the next one */
void io_places_header(StrBuf *, const Bundle *);
void bundle_weights(Bundle *);
/* "{1.0f, 2.5f}": the elements of a typed array; what they need */
unsigned print_array(StrBuf *, ingot_dtype, const uint8_t *bytes, int64_t n);
void bundle_kernels(Bundle *);
void bundle_selftest(Bundle *);
void bundle_build(Bundle *);
bool is_source(const char *file);
const char *machine_flags(const Bundle *); /* of the C compiler */
/* bundle_package.c: what --package adds, for other build systems */
void bundle_package(Bundle *);
/* bundle_web.c: --package web: of what is WGSL, or NULL, and for WebAssembly, or NULL; of what
 * pages may have (web_may()). */
void bundle_web(Bundle *, Bundle *gpu, Bundle *wasm);
bool bundle_is_web(const Bundle *);
/* Whether targets and model are such as pages have at all; false: it is told. */
bool web_may(Bundle *, const Bundle *gpu, const Bundle *wasm);
/* Why the steps of a run are no list for a page's GPU, or NULL. */
const char *web_needs_host(Bundle *);
/* bundle_page.c: the half for WebAssembly: of the makefile, and of the module's data. */
void page_make(StrBuf *, const Bundle *);
void page_wasm(StrBuf *, Bundle *);
/* bundle_weight_names.c */
void name_weights(Bundle *);
const char *weight_name(const Bundle *, const Buffer *); /* an array, or an offset in the blob */
void weight_offsets(StrBuf *, const Bundle *);

void kernel_comment(StrBuf *, const Bundle *, const Kernel *);

/* bundle_gpu*.c */
void gpu_prepare(Bundle *);
int64_t gpu_arena_bytes(const Bundle *); /* of the caller's arena */
void gpu_kernels(Bundle *);
void gpu_members(StrBuf *, const Bundle *); /* of the context */
/* Has the bundle, its first function or another one, steps that run beside the others?  Marks of
 * such that somebody waits for, and one more; 0: there are none. */
int gpu_aside_marks(const Bundle *);

/* bundle_expr.c: INDEX and BOOL expressions over sym[] in emitted C */
void print_expr(StrBuf *, Bundle *, Node *);
const char *sym_name(const Bundle *, int var, char out[VAR_NAME_BYTES + 8]);
const char *sym_place(Bundle *, int var); /* sym[SYM_BATCH] */

#endif
