/* targets.h - the list of targets. */
#ifndef TARGETS_H
#define TARGETS_H

#include "figures.h"
#include "language.h"

/* "c", "opencl", "cuda", with an optional ":machine"; of a file: c. NULL if there is none of that
 * name. */
const Target *target_find(const char *name);
/* Fill in what a machine ("native", "x86-64-v3"...) can do; false if there is none of that name. */
bool target_tune(Target *, const char *machine);
/* gpu.c: figures of GPUs of NVIDIA's that are called so: "sm_90a+sm_80", "h100"; of several the
 * least. */
void gpu_tune(Machine *, Arena *, const char *machine);
/* What NVRTC calls one of them, "sm_90a"; itself if it is none of gpus.def. */
const char *gpu_arch(const char *name);
const char *gpu_name(int i); /* those of gpus.def, from 0; NULL after the last */
/* What a name stands for, its machine included: "c", "c:native", "cuda:sm_90", or a file. NULL, or
 * why there is none. */
const char *target_make(Target *, Arena *, const char *name, ingot_status *);
/* Of "c:native" the name that says on every machine what it is on this one, as far as there is one;
 * any other name is itself. */
const char *target_everywhere(Arena *, const char *name);
/* Of "cuda:sm_90a+c:native" the two names: of a GPU, and of C where there is none. False: it is no
 * such pair. */
bool target_halves(Arena *, const char *name, const char *half[2]);
/* The names that a target's machine may have, from 0; NULL after the last. */
const char *target_machine(const Target *, int i);
/* target_opencl.c: features of a device by name, "fp16+dot8", or "native": those of the device
 * found here. NULL, or why they cannot be had. */
const char *opencl_tune(Target *, Arena *, const char *features, ingot_status *);
/* target_cuda.c: one or several GPUs, "sm_90a+sm_80". */
const char *cuda_tune(Target *, Arena *, const char *machine, ingot_status *);
const char *opencl_feature(int i); /* the names, from 0; NULL after the last */
/* opencl_device.c: the same of the device found here, "" if it has none of them; NULL: there is no
 * device. */
const char *opencl_native(Arena *);
/* Columns of opencl_features.def. */
typedef struct {
    const char *name, *extension;
    bool dot;
    int subgroup;
    const char *define;
} OpenclFeature;
extern const OpenclFeature opencl_features[]; /* ended by a name of NULL */
/* A name with a '/', or that ends with .target. */
bool target_is_file(const char *name);
/* target_file.c: of C, for the machine that the file tells of. */
const char *target_read(Target *, Arena *, const char *file, ingot_status *);
/* machine.c: what time goes to, from what is known of the machine; halves: it multiplies half a
 * vector at once. */
void target_costs(Target *, bool halves, bool prefer_ram);
/* What "native" is here, by a name that target_tune() knows; NULL: by none. */
const char *native_name(Arena *);
/* The names that target_tune() knows, from 0; NULL after the last. */
const char *machine_name(int i);
/* All of them, ended by NULL. */
extern const Target *const targets[];

/* nvrtc.c: CUDA C++ to a cubin for machine "sm_90", to PTX for those since "compute_75", or else
 * for any GPU. */
CompileStatus nvrtc_compile(StrBuf *out, const char *source, const char *machine, bool flush);

#endif
