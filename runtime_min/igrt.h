/*
 * igrt.h - the runtime that ships with a compiled model.
 *
 * Every emitted bundle contains this file, below a line on its licence. It declares what all models
 * share: status codes, element types, the configuration handed to <model>_init, the calling
 * convention of the library kernels and the checksum of the weights. docs/abi.md is the prose of
 * this header.
 *
 * C99. No allocation, no stdio, no globals that change.
 */
#ifndef IGRT_H
#define IGRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a struct or a constant of this header changes its meaning. */
#define IGRT_ABI_VERSION 1

/* Rank limit of tensors that cross the ABI (inputs, outputs, library kernels). */
#define IGRT_MAX_RANK 8

/* Alignment in bytes of every tensor in a weights blob, and of the least aligned arena. */
#define IGRT_ALIGN 64

/* ---- status ------------------------------------------------------------------------------ */

/* X(enumerator suffix, value, text). Values are part of the ABI and never reused. */
#define IGRT_STATUS_LIST(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(ERR_NULL, 1, "a required argument is NULL")                                                  \
    X(ERR_CONFIG, 2, "config.struct_size or a config value does not fit this model")               \
    X(ERR_ARENA_SIZE, 3, "the arena or a memory is missing or too small")                          \
    X(ERR_ARENA_ALIGN, 4, "the arena or a memory is misaligned")                                   \
    X(ERR_WEIGHTS_MISSING, 5, "the weights are missing or misaligned")                             \
    X(ERR_WEIGHTS_SIZE, 6, "the weights have the wrong length")                                    \
    X(ERR_WEIGHTS_CHECKSUM, 7, "the checksum of the weights does not match")                       \
    X(ERR_INPUT, 8, "an input pointer is missing")                                                 \
    X(ERR_OUTPUT, 9, "an output pointer is missing")                                               \
    X(ERR_DIM, 10, "a dim is out of its declared bounds or differs between inputs")                \
    X(ERR_BIND, 11, "an input differs from the value it was bound to at compile time")             \
    X(ERR_COUNT, 12, "a count decided by the data exceeds its bound")                              \
    X(ERR_INDEX, 13, "an index is out of range")                                                   \
    X(ERR_SCRATCH, 14, "a library kernel was given too little scratch")                            \
    X(ERR_UNSUPPORTED, 15, "a library kernel does not take these arguments")                       \
    X(ERR_DEVICE, 16, "the device or its driver failed or is missing")                             \
    X(ERR_BUILD, 17, "the device code did not build")                                              \
    X(ERR_SELFTEST, 18, "the selftest does not give the expected values")                          \
    X(ERR_SHAPE, 19, "a size that the data decides is not one that the model allows")              \
    X(ERR_NO_SELFTEST, 20, "there is no selftest in this bundle")                                  \
    X(ERR_TEXT, 21, "strings are longer than the model has room for (--string-bytes)")             \
    X(ERR_FEATURE, 22, "the processor or device lacks what the bundle is compiled for (--target)") \
    X(ERR_STOPPED, 23, "config.stop ended the run")                                                \
    X(ERR_COMM, 24, "config.comm failed: another process of the run is gone, or takes no such type")

typedef enum igrt_status {
#define IGRT_X(name, value, text) IGRT_##name = value,
    IGRT_STATUS_LIST(IGRT_X)
#undef IGRT_X
        IGRT_STATUS_COUNT = 25
} igrt_status;

/* One line of English for a status, without a full stop; never NULL. */
static inline const char *igrt_status_text(igrt_status status)
{
    switch (status) {
#define IGRT_X(name, value, text) \
    case IGRT_##name: return text;
        IGRT_STATUS_LIST(IGRT_X)
#undef IGRT_X
    case IGRT_STATUS_COUNT: break;
    }
    return "unknown status";
}

/* What made init or the last run of a context fail, where it was a number or the device; of a
 * bundle for a GPU and for C that runs by C, why it does not run on the GPU: <model>_ctx.fault. */
typedef struct igrt_fault {
    /* that number: "node 'r' (Range): the size of axis 0 of its result"; NULL: nothing to tell */
    const char *what;
    int64_t value; /* what it was */
    /* what it may be; least > greatest: there is no such number, what says it all */
    int64_t least, greatest;
} igrt_fault;

/* ---- element types ----------------------------------------------------------------------- */

/*
 * X(enumerator suffix, value, bytes an element in memory, name).
 * Types of less than 8 bits take one byte an element in every tensor that crosses the ABI:
 * i4 and i2 sign-extended, u4, u2 and f4e2m1 zero-extended. A bool is a byte, 0 or 1.
 * A complex number is its real part, then its imaginary part.
 * A string is a `const char *` to bytes ended by a zero; the caller owns them.
 */
#define IGRT_DTYPE_LIST(X)             \
    X(BOOL, 1, 1, "bool")              \
    X(I8, 2, 1, "i8")                  \
    X(U8, 3, 1, "u8")                  \
    X(I16, 4, 2, "i16")                \
    X(U16, 5, 2, "u16")                \
    X(I32, 6, 4, "i32")                \
    X(U32, 7, 4, "u32")                \
    X(I64, 8, 8, "i64")                \
    X(U64, 9, 8, "u64")                \
    X(F16, 10, 2, "f16")               \
    X(BF16, 11, 2, "bf16")             \
    X(F32, 12, 4, "f32")               \
    X(F64, 13, 8, "f64")               \
    X(F8E4M3FN, 14, 1, "f8e4m3fn")     \
    X(F8E4M3FNUZ, 15, 1, "f8e4m3fnuz") \
    X(F8E5M2, 16, 1, "f8e5m2")         \
    X(F8E5M2FNUZ, 17, 1, "f8e5m2fnuz") \
    X(F8E8M0, 18, 1, "f8e8m0")         \
    X(I4, 19, 1, "i4")                 \
    X(U4, 20, 1, "u4")                 \
    X(F4E2M1, 21, 1, "f4e2m1")         \
    X(I2, 22, 1, "i2")                 \
    X(U2, 23, 1, "u2")                 \
    X(C64, 24, 8, "c64")               \
    X(C128, 25, 16, "c128")            \
    X(STRING, 26, sizeof(const char *), "string")

typedef enum igrt_dtype {
#define IGRT_X(name, value, bytes, text) IGRT_##name = value,
    IGRT_DTYPE_LIST(IGRT_X)
#undef IGRT_X
        IGRT_DTYPE_COUNT = 27
} igrt_dtype;

/* Bytes an element takes in memory; 0 for a value that is no dtype. */
static inline size_t igrt_dtype_bytes(igrt_dtype dtype)
{
    switch (dtype) {
#define IGRT_X(name, value, bytes, text) \
    case IGRT_##name: return bytes;
        IGRT_DTYPE_LIST(IGRT_X)
#undef IGRT_X
    case IGRT_DTYPE_COUNT: break;
    }
    return 0;
}

/* ---- configuration ----------------------------------------------------------------------- */

/* One piece of a parallel step. i is in [0, n); worker is in [0, config.threads) and unique
 * among the tasks that run at the same moment (it picks the per-worker scratch). */
typedef void (*igrt_task_fn)(void *task, int64_t i, int worker);

/* Runs task(arg, i, worker) for every i in [0, n), in any order, and returns when all are done.
 * Provided by the caller; user is config.parallel_user. */
typedef void (*igrt_parallel_for_fn)(void *user, igrt_task_fn task, void *arg, int64_t n);

/* Nanoseconds since any fixed moment; user is config.user. */
typedef uint64_t (*igrt_clock_fn)(void *user);

/* Called after each step of <model>_run when both clock and profile are set; name is static. */
typedef void (*igrt_profile_fn)(void *user, int step, const char *name, uint64_t nanoseconds);

/* Asked after each step of <model>_run, in its thread; user is config.user. Not 0: the run ends
 * with IGRT_ERR_STOPPED. */
typedef int (*igrt_stop_fn)(void *user);

/* igrt_config.flags */
#define IGRT_SKIP_CHECKSUM 1u /* do not read the weights at init just to check them */
/* Of GPU bundles: what run is given is memory on the device (CUDA: a CUdeviceptr as a pointer,
 * OpenCL: a cl_mem), and run returns when everything is enqueued in the stream. Init gives
 * IGRT_ERR_CONFIG where a step of the host needs the data. */
#define IGRT_ON_DEVICE 2u

/* One of the memories of a model that was compiled for several (--memory). */
typedef struct igrt_memory {
    void *data;   /* aligned to <MODEL>_ARENA_ALIGN, one per context */
    size_t bytes; /* at least <MODEL>_MEMORY_<NAME>_BYTES */
} igrt_memory;

/* The processes that share a run, each with a context of its own: of models that were compiled for
 * several (docs/devices.md). host/igrt_mpi.h has one for the target c, host/igrt_nccl.h one for
 * cuda. Of the two functions, a bundle needs that of its target. All processes call it in the same
 * order. Not 0: it failed. */
typedef struct igrt_comm {
    int rank, size; /* which of them this is, from 0; how many there are */
    /* data[i] becomes the sum of what all processes have there, added in the order of their ranks:
     * the same bits in each. */
    int (*all_reduce)(void *user, void *data, size_t count, igrt_dtype dtype);
    void *user;
    /* CUDA: the sum, or the mean, of what lies in the GPU's memory: put into the stream (CUstream),
     * which may be recording a graph. The same bits in each process. */
    int (*all_reduce_in)(void *user, void *data, size_t count, igrt_dtype dtype, int mean,
                         void *stream);
} igrt_comm;

/*
 * What <model>_init needs. Clear it with memset or `= {0}`, set struct_size to
 * sizeof(igrt_config), then the fields that matter. Everything pointed to stays the caller's and
 * must outlive the context; the struct itself is copied.
 */
typedef struct igrt_config {
    size_t struct_size;  /* sizeof(igrt_config) as the caller saw it */
    void *arena;         /* aligned to <MODEL>_ARENA_ALIGN, one per context */
    size_t arena_bytes;  /* at least <MODEL>_ARENA_BYTES(threads) */
    const void *weights; /* the blob, 64-byte aligned; NULL if the weights are inside model.c */
    size_t weights_bytes;
    int threads;                       /* 0 is 1; more than 1 needs parallel_for */
    igrt_parallel_for_fn parallel_for; /* NULL: steps run in the calling thread */
    void *parallel_user;
    void *device;        /* OpenCL: cl_device_id; CUDA: CUcontext; NULL: the first device */
    void *stream;        /* OpenCL: cl_command_queue; CUDA: CUstream; NULL: the model makes one */
    igrt_clock_fn clock; /* NULL: no profile */
    igrt_profile_fn profile;
    void *user; /* handed to clock, profile and stop */
    unsigned flags;
    const igrt_memory
        *memory; /* in place of the arena, by <MODEL>_MEMORY_<NAME>; init copies the list */
    int n_memories;
    uint64_t seed; /* of random numbers; read at init and reset */
    /* Of GPU bundles, where device and stream are NULL: which GPU, "1" the second one, or how its
     * UUID begins ("GPU-5a3c..", or 8 digits of it and more); NULL: the first. */
    const char *gpu;
    /* Of bundles for several targets: which one runs, "cuda", "c" or a machine, "x86-64-v3"; NULL:
     * a GPU where it can, else C; of several machines the fastest that the processor is. */
    const char *target;
    /* NULL: a run is never ended. Bundles for a GPU, or without an operating system, do not ask:
     * init gives IGRT_ERR_CONFIG. */
    igrt_stop_fn stop;
    const igrt_comm *comm; /* NULL: this process alone */
} igrt_config;

/* Does the parts of a step from begin to end. */
typedef void (*igrt_parts_fn)(const void *arg, int64_t begin, int64_t end);

/* ---- weights ----------------------------------------------------------------------------- */

/*
 * A weights blob is the tensors one after another in the order of the plan, each at an offset that
 * is a multiple of 64, gaps filled with zeros, without a header. Its length and checksum are
 * constants of model.c.
 *
 * The checksum, over little-endian 64-bit words w[0], w[1], ... (the last one padded with zeros):
 *
 *     P = 0x9e3779b97f4a7c15      lane[k] = P * (k + 1), k = 0..3       all arithmetic mod 2^64
 *     for every i:   h = (lane[i % 4] ^ w[i]) * P;  lane[i % 4] = h ^ (h >> 32)
 *     sum = number of bytes;  for k = 0..3:  sum = (sum ^ lane[k]) * P;  sum ^= sum >> 29
 *
 * Four lanes keep four multiplications in flight: it runs at the speed of memory.
 */
typedef struct igrt_sum {
    uint64_t lane[4];
    uint64_t bytes;
} igrt_sum;

/* ---- library kernels --------------------------------------------------------------------- */

/* A typed buffer. Dense in row-major order of dims unless the kernel's own comment says more. */
typedef struct igrt_tensor {
    void *data;
    igrt_dtype dtype;
    int rank;
    int64_t dims[IGRT_MAX_RANK]; /* an input: true dims; an output: bounds in, true dims out */
} igrt_tensor;

/* A state of a model: <model>_state(). */
typedef struct igrt_state {
    const char *name;
    igrt_dtype dtype;
    int rank;
    int64_t dims[8];
    void *data;
    size_t bytes;
} igrt_state;

/*
 * Declares library kernel `name`. attr_i and attr_f are laid out as the comment on top of
 * lib/<name>.c says; scratch is planned in the arena (8-byte aligned); counts receives the values
 * that the data decides, in the order of the same comment, and they go to sym[]. Kernels touch
 * nothing else and may run at the same time on different buffers.
 */
#define IGRT_LIB(name) IGRT_LIB_FUNCTION(igrt_lib_##name)
#define IGRT_LIB_FUNCTION(function)                                                  \
    igrt_status function(const igrt_tensor *in, int nin, igrt_tensor *out, int nout, \
                         const int64_t *attr_i, const double *attr_f, void *scratch, \
                         size_t scratch_bytes, int64_t *counts)

#ifdef __cplusplus
}
#endif
#endif

/* ---- functions --------------------------------------------------------------------------- */

/*
 * Of the emitted sources alone. Each model has these under names of its own, which <model>_igrt.h
 * gives them; so whoever includes <model>.h sees none of them, and several models fit into one
 * program.
 */
#if defined(IGRT_FUNCTIONS) && !defined(IGRT_FUNCTIONS_H)
#define IGRT_FUNCTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Is value outside of least..greatest? Then that is written down. */
int igrt_outside(igrt_fault *fault, const char *what, int64_t value, int64_t least,
                 int64_t greatest);

/*
 * The checks shared by every <model>_init, in the order of the status codes. weights_bytes is 0
 * for a model whose weights are inside model.c.
 */
igrt_status igrt_config_check(const igrt_config *config, size_t arena_bytes, size_t arena_align,
                              size_t weights_bytes);

/* Reads weights that are there: is this their checksum, or need it not be looked at? */
igrt_status igrt_weights_check(const igrt_config *config, uint64_t sum);

/* The same for the memories, n of them; one of 0 bytes may be absent. */
igrt_status igrt_memory_check(const igrt_config *config, const size_t *bytes, int n, size_t align);

/* Does n parts: some at a time through config.parallel_for if there is one, threads > 1 and n > 1,
 * else all at once in the calling thread, whose floating-point mode every part has. */
void igrt_parallel(const igrt_config *config, igrt_parts_fn run, const void *arg, int64_t n);

/* Subnormal numbers. */

/*
 * Arithmetic on numbers below the smallest normal one takes most processors a hundred times as
 * long. <model>_run has them flushed: results and operands that are subnormal are zeros of the same
 * sign, in f32 and f64, by the processor's own mode (MXCSR of x86-64, FPCR of aarch64, FPSCR of
 * 32-bit Arm). The mode belongs to a thread. Where there is none, or the compiler is neither gcc
 * nor clang, these do nothing.
 */

/* The floating-point mode of the calling thread; 0 where it cannot be had. */
uint64_t igrt_fp_mode(void);
void igrt_fp_restore(uint64_t mode);

/* Flushes from now on; gives the mode before. */
uint64_t igrt_fp_flush(void);

void igrt_sum_begin(igrt_sum *s);
/* Every piece but the last must be a multiple of 32 bytes long. */
void igrt_sum_add(igrt_sum *s, const void *data, size_t bytes);
uint64_t igrt_sum_end(const igrt_sum *s);

/* The checksum of one whole blob. */
uint64_t igrt_checksum(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
