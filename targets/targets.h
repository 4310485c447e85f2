/* targets.h - the list of targets. */
#ifndef TARGETS_H
#define TARGETS_H

#include "figures.h"
#include "language.h"

/* "c", "opencl", "cuda", with an optional ":machine". NULL if there is none of that name. */
const Target *target_find(const char *name);
/* Fill in what a machine ("native", "x86-64-v3"...) can do; false if there is none of that name. */
bool target_tune(Target *, const char *machine);
/* gpu.c: figures of GPUs of NVIDIA's that are called so: "sm_90a+sm_80", "h100"; of several the
 * least. */
void gpu_tune(Machine *, Arena *, const char *machine);
/* What is wrong with "sm90", which is no name of a GPU; NULL: all of "sm_90a+sm_80" are. */
const char *gpu_fault(Arena *, const char *machine);
/* What NVRTC calls one of them, "sm_90a"; itself if it is none of gpus.def. */
const char *gpu_arch(const char *name);
/* cuda_device.c: what the driver tells of the first device; 0: it does not tell. False: there is
 * none. */
typedef struct {
    int major, minor, processors;
    int shared, shared_static, items; /* that a group may have; without asking for it */
    int file, l2;
    int khz, memory_khz, bus_bits;
    bool clusters;
} CudaDevice;
bool cuda_device(CudaDevice *);
/* gpu.c: its figures, and what NVRTC is called for; its name in gpus.def, or NULL. */
const char *gpu_device_tune(Machine *, Arena *, const CudaDevice *);
const char *gpu_device_name(Arena *, const CudaDevice *);
const char *gpu_native_name(Arena *); /* that of the device found here */
const char *gpu_name(int i);          /* those of gpus.def, from 0; NULL after the last */
/* What a name stands for, its machine included: "c", "c:native", "cuda:sm_90", or a file. NULL, or
 * why there is none. */
const char *target_make(Target *, Arena *, const char *name, ingot_status *);
/* Of "c:native" the name that says on every machine what it is on this one, as far as there is one;
 * any other name is itself. */
const char *target_everywhere(Arena *, const char *name);
/* target_list.c: a target that a name is of, and what is called after it in a bundle of several. */
typedef struct {
    const char *target; /* "c:x86-64-v3" */
    const char *name;   /* what config.target says: "x86-64-v3"; beside a GPU alone "c" */
    const char *suffix; /* the same in names of functions and files: "x86_64_v3" */
    bool gpu;
} TargetName;
/* Of "cuda:sm_90a+c:x86-64-v2,x86-64-v3" the three, the GPU's first; how many: 1 of most. */
int target_list(Arena *, const char *name, TargetName **list);
/* "c:x86-64-v2, c:x86-64-v3 or c:native" */
const char *target_list_text(Arena *, int n, const TargetName *list);
/* The names that a target's machine may have, from 0; NULL after the last. */
const char *target_machine(const Target *, int i);
/* target_opencl.c: features of a device by name, "fp16+dot8", or "native": those of the device
 * found here. NULL, or why they cannot be had. */
const char *opencl_tune(Target *, Arena *, const char *features, ingot_status *);
/* target_wgsl.c: features of an adapter, "f16+subgroups32"; their names, from 0; NULL after the
 * last. */
const char *wgsl_tune(Target *, Arena *, const char *features, ingot_status *);
const char *wgsl_feature(int i);
/* target_cuda.c: one or several GPUs, "sm_90a+sm_80". */
const char *cuda_tune(Target *, Arena *, const char *machine, ingot_status *);
const char *opencl_feature(int i); /* the names, from 0; NULL after the last */
/* hipcc.c: HIP C++ to a code object for machine "gfx90a". */
CompileStatus hipcc_compile(StrBuf *out, const char *source, const char *machine, bool flush);
/* opencl_device.c: the same of the device found here, "" if it has none of them; NULL: there is no
 * device. What else it tells is in device, if not NULL; 0: it does not tell. */
typedef struct {
    int64_t processors, items, shared, cache,
        line;           /* compute units; that a group may have; bytes */
    int64_t core_lanes; /* Machine */
} OpenclDevice;
const char *opencl_native(Arena *, OpenclDevice *device);
/* target_opencl.c: figures of GPUs as that device has them. */
void opencl_device_tune(Machine *, const OpenclDevice *);
/* Columns of opencl_features.def. */
typedef struct {
    const char *name, *extension;
    bool dot, images;
    int subgroup;
    const char *define;
} OpenclFeature;
extern const OpenclFeature opencl_features[]; /* ended by a name of NULL */
/* A name with a '/', or that ends with .target. */
bool target_is_file(const char *name);
/* target_file.c: what the file tells of: a machine for C, or any target with other figures. */
const char *target_read(Target *, Arena *, const char *file, ingot_status *);
/* machine.c: what time goes to, from what is known of the machine; halves: it multiplies half a
 * vector at once. */
void target_costs(Target *, bool halves, bool prefer_ram);
/* The rates of one core with vectors of so many lanes, which it multiplies whole. */
void core_rates(Machine *, int lanes);
/* A figure of Machine: a row of figures.def. */
typedef enum { FIGURE_DOUBLE, FIGURE_INT, FIGURE_UNITS, FIGURE_BOOL } FigureKind;
typedef enum { OF_ALL, OF_CPUS, OF_GPUS } FigureOf;
typedef struct {
    const char *key, *path; /* "level1.bytes": level[0].bytes */
    size_t at, size;
    FigureKind kind;
    FigureOf of;
    double least, most;
} Figure;
extern const Figure figures[]; /* ended by a key of NULL */
bool figure_is_of(const Figure *, bool gpu);
const Figure *figure_find(const char *key); /* NULL: there is none */
const char *figure_near(const char *key);   /* what may have been meant, or NULL */
/* Takes what a target file says of a figure; NULL, or why that is none. */
const char *figure_read(Machine *, Arena *, const Figure *, const char *value);
/* Lines "key = value": all figures, of a GPU or of a CPU. */
void figures_print(StrBuf *, const Machine *, bool gpu);
/* Why figures, each good by itself, do not go together; NULL: they do. */
const char *figures_wrong(const Machine *, bool gpu);
/* target_file.c: a target as a file that says the same, for --target FILE; NULL, or why there is
 * none of that name. */
const char *target_print(StrBuf *, Arena *, const char *name, ingot_status *);

/* native_caches.c: those of the processor that the compiler runs on; 0: not known, or there is
 * none. */
enum { CACHES = 3 };
typedef struct {
    double bytes[CACHES], most; /* by level; of the largest of all */
    int ways, line;             /* of the first level */
    int cores;
} Caches;
Caches native_caches(void);
/* What "native" is here, by a name that target_tune() knows; NULL: by none. */
const char *native_name(Arena *);
/* The names that target_tune() knows, from 0; NULL after the last. */
const char *machine_name(int i);
/* All of them, ended by NULL. */
extern const Target *const targets[];

/* targets.c: a function of a library that was opened by dlopen(), as a pointer to it; false: it has
 * none of that name. */
bool library_find(void *library, const char *name, void *function);
/* nvrtc.c: CUDA C++ to a cubin for machine "sm_90", to PTX for those since "compute_75", or else
 * for any GPU. */
CompileStatus nvrtc_compile(StrBuf *out, const char *source, const char *machine, bool flush);

#endif
