/* nvrtc.c - CUDA C++ compiled offline by NVRTC, NVIDIA's compiler as a library.
 *
 * $INGOT_NVRTC is its file, or any other word: then there is none, and kernels stay source.
 *
 * It is opened at run time, with declarations of our own, so that ingot builds and runs without it;
 * no GPU is needed. For a machine "sm_75" the result is a cubin for just that one, for "compute_75"
 * PTX, which the driver of any later GPU compiles when it loads it; without a machine PTX of the
 * oldest architecture that this NVRTC knows. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

#ifndef INGOT_NVRTC /* where CMake found it */
#define INGOT_NVRTC "libnvrtc.so"
#endif

typedef struct {
    int (*version)(int *major, int *minor);
    int (*num_archs)(int *n);
    int (*archs)(int *list);
    int (*create)(void **program, const char *source, const char *name, int n,
                  const char *const *headers, const char *const *names);
    int (*compile)(void *program, int n, const char *const *options);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*ptx_size)(void *program, size_t *bytes);
    int (*ptx)(void *program, char *image);
    int (*cubin_size)(void *program, size_t *bytes);
    int (*cubin)(void *program, char *image);
    int (*destroy)(void **program);
} Nvrtc;

/* The library stays open: it is of a hundred megabytes, and there is no use in loading it twice. */
static bool nvrtc_open(Nvrtc *v)
{
    static const char *const names[] = {"libnvrtc.so", INGOT_NVRTC, "libnvrtc.so.13",
                                        "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"};
    const char *told = getenv("INGOT_NVRTC");
    void *library = told && *told ? dlopen(told, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library && !(told && *told); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library && library_find(library, "nvrtcVersion", &v->version) &&
           library_find(library, "nvrtcGetNumSupportedArchs", &v->num_archs) &&
           library_find(library, "nvrtcGetSupportedArchs", &v->archs) &&
           library_find(library, "nvrtcCreateProgram", &v->create) &&
           library_find(library, "nvrtcCompileProgram", &v->compile) &&
           library_find(library, "nvrtcGetProgramLogSize", &v->log_size) &&
           library_find(library, "nvrtcGetProgramLog", &v->log) &&
           library_find(library, "nvrtcGetPTXSize", &v->ptx_size) &&
           library_find(library, "nvrtcGetPTX", &v->ptx) &&
           library_find(library, "nvrtcGetCUBINSize", &v->cubin_size) &&
           library_find(library, "nvrtcGetCUBIN", &v->cubin) &&
           library_find(library, "nvrtcDestroyProgram", &v->destroy);
}

static int oldest_arch(const Nvrtc *v)
{
    int n = 0, list[256] = {0};
    if (v->num_archs(&n) || n < 1 || n > 256 || v->archs(list))
        return 75;
    int oldest = list[0];
    for (int i = 1; i < n; i++)
        oldest = list[i] < oldest ? list[i] : oldest;
    return oldest;
}

/* Appends what the two functions give. */
static bool take(StrBuf *out, void *program, int (*size)(void *, size_t *),
                 int (*get)(void *, char *))
{
    size_t bytes = 0;
    if (size(program, &bytes) || !bytes)
        return false;
    char *text = malloc(bytes);
    bool ok = text && !get(program, text);
    if (ok)
        sb_write(out, text, bytes);
    free(text);
    return ok;
}

typedef struct {
    const Nvrtc *v;
    void *program;
    const char *const *options;
    int n;
    bool good;
} NvrtcWork;

static void *compile(void *of)
{
    NvrtcWork *c = of;
    c->good = !c->v->compile(c->program, c->n, c->options);
    return NULL;
}

/* The library takes a file of many kernels by recursion, and 8 MB of stack are not enough for some.
 */
static bool compile_deeply(NvrtcWork *c)
{
    const size_t stack = (size_t)1 << 28;
    pthread_attr_t attributes;
    pthread_t thread;
    bool begun = false;
    if (!pthread_attr_init(&attributes)) {
        begun = !pthread_attr_setstacksize(&attributes, stack) &&
                !pthread_create(&thread, &attributes, compile, c) && !pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (!begun)
        compile(c);
    return c->good;
}

CompileStatus nvrtc_compile(StrBuf *out, const char *source, const char *machine, bool flush)
{
    Nvrtc v;
    void *program = NULL;
    char arch[64];
    if (!nvrtc_open(&v))
        return COMPILE_ABSENT;
    machine = machine ? gpu_arch(machine) : NULL;
    const bool named = machine && *machine, cubin = named && strncmp(machine, "compute_", 8);
    if (named)
        snprintf(arch, sizeof arch, "--gpu-architecture=%.30s", machine);
    else
        snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", oldest_arch(&v));
    const char *const options[] = {arch, "--fmad=false", flush ? "--ftz=true" : "--ftz=false",
                                   "--std=c++17"};
    if (v.create(&program, source, "kernels.cu", 0, NULL, NULL)) {
        sb_puts(out, "nvrtcCreateProgram failed");
        return COMPILE_FAILED;
    }
    NvrtcWork c = {&v, program, options, (int)(sizeof options / sizeof *options), false};
    bool ok = compile_deeply(&c);
    if (!ok)
        take(out, program, v.log_size, v.log);
    else if (cubin)
        ok = take(out, program, v.cubin_size, v.cubin);
    else
        ok = take(out, program, v.ptx_size, v.ptx);
    v.destroy(&program);
    return ok ? COMPILE_DONE : COMPILE_FAILED;
}
