/* target.h - a target: a language that spells what kernels say, and a machine: what it can do at
 * which cost.
 *
 * targets/ fills one in, or a target file does (docs/targets.md); no pass asks for a target by
 * name.
 *
 * Who reads what?
 *
 *     codegen/render/          its `language` (language.h): words, patterns, functions
 *     kernel/opt/, choose/     `machine`, what it can: lanes, registers, units, items of a group
 *     schedule/, cost/         `machine`, what it costs: rates, levels of memory, a launch
 *     codegen/bundle/, tools/  how its programs are built and run
 *
 * "c:x86-64-v4" is target_c, into which target_tune() has written 16 lanes, 32 registers and the
 * flags of the C compiler. */
#ifndef TARGET_H
#define TARGET_H

#include "kernels.h"
#include "machine.h"

typedef enum {
    COMPILE_DONE,
    COMPILE_FAILED,
    COMPILE_ABSENT /* the compiler is not installed */
} CompileStatus;
/* What the device has to have, by the name that its language has for it; and what is told where it
 * lacks that. */
typedef struct {
    const char *name, *lacks;
} Extension;
typedef struct Target Target;
struct Target {
    const char *name;
    bool gpu; /* a kernel is one work item's program: output axes come from its number */
    const struct Language *language; /* how kernels are spelled (codegen/render/language.h) */
    Machine machine;
    const char *flags;   /* for the C compiler: "-march=x86-64-v3"; NULL: none */
    const char *link;    /* for the linker; NULL: none */
    const char *cc, *ar; /* what builds for this machine unless told; NULL: cc and ar */
    bool bare;           /* there is no operating system */
    /* as the compiler of a target file calls its machine: "arm-none-eabi"; else NULL */
    const char *triple;
    /* what a target file begins with, or what "native" is, but for figures; else NULL */
    const char *base;
    bool wasm; /* a program is a module, which run.mjs runs, and has one thread */
    /* Devices beside this one, which is number 0: number 1 first, ended by NULL; NULL: it is the
     * only one. Each is a target of its own, with a memory of its own (Machine.link); its language
     * may be NULL: then the interpreter alone runs its kernels. */
    const struct Target *const *devices;
    bool peers; /* they are as this one is: --devices */
    /* Of such a device: whether it can compute this node of the graph; NULL: all that are no steps
     * of their own. */
    bool (*computes)(const Node *);
    /* GPUs only */
    /* for a tuner: of a contraction's blocks not the best by the estimate (0) but one of the
     * others, from 1 */
    int nth;
    const char *archs;   /* that compile() is called for: "sm_90a+ptx"; NULL: for any */
    const char *runtime; /* prefix of its types in runtime_min: "igrt_cl" */
    bool images;         /* an argument may be one (IMAGE) */
    int branches;  /* in a run of which the host decides nothing: so many inside one another */
    bool rounds;   /* factors of weights of few bits may have 15 bits: --precision narrow */
    bool triggers; /* a kernel may let the one that is enqueued behind it begin early (TRIGGER) */
    bool unrolls;  /* loops that are to be straight-line are so */
    bool records;  /* its driver makes one launch of what is enqueued, again and again */
    bool votes;    /* items of a warp learn of which of them something is true: Language.ballot */
    bool joins;    /* several of them reach each other's memory: --devices */
    const char
        *features; /* what kernel files begin with for what the device has beside; NULL: nothing */
    const Extension
        *extensions; /* that the device has to have, ended by a name of NULL; NULL: none */
    /* What a name has behind its colon; NULL, or why there is nothing of that name. */
    const char *(*tune)(Target *, Arena *, const char *machine, ingot_status *);
    /* The names that are listed of these, from 0; NULL after the last, or no function. */
    const char *(*machine_name)(int i);
    /* Kernel source to what its driver loads (or why it did not compile); NULL: the driver takes
     * the source.
     * flush: subnormal numbers are zeros. */
    CompileStatus (*compile)(StrBuf *out, const char *source, const char *machine, bool flush);
};

static inline int target_ndevice(const Target *t)
{
    int n = 1;
    while (t->devices && t->devices[n - 1])
        n++;
    return n;
}
/* The device of this number. */
static inline const Target *target_device(const Target *t, int device)
{
    return device ? t->devices[device - 1] : t;
}

/* From now on options of this context may name a target that the tree does not have; it is
 * borrowed. */
void target_add(Context *, const Target *);

/* Numbers of n targets: of GPUs as they come, then of machines, the slowest first. */
const int *targets_by_speed(Arena *, int n, const Target *const *);

#endif
