/*
 * igrt_webgpu.h - structures of WebGPU in C as igrt_wgsl.c has them: those that it fills in, whose
 * members that stay zero are not told apart.
 */
#ifndef IGRT_WEBGPU_H
#define IGRT_WEBGPU_H

#include "igrt_wgsl.h"

/* What a buffer is for. */
enum {
    WG_MAP_READ = 1,
    WG_COPY_SRC = 4,
    WG_COPY_DST = 8,
    WG_UNIFORM = 64,
    WG_STORAGE = 128,
    WG_QUERY = 512
};
enum { WG_TIMESTAMPS = 9 /* feature */ };

typedef struct WgChain {
    const struct WgChain *next;
    uint32_t type;
} WgChain;

/* Wishes of wgpu-native for its instance; what is behind them is zero. */
typedef struct WgExtras {
    WgChain chain;
    uint64_t backends, flags;
    uint64_t rest[20];
} WgExtras;
typedef struct WgInstance {
    const void *next;
    size_t features;
    const void *feature, *limits;
} WgInstance;
typedef struct WgAdapter {
    const void *next;
    int level, power;
    uint32_t fallback;
    int backend;
    void *surface;
} WgAdapter;
typedef struct WgLimits {
    const void *next;
    uint32_t textures[4], groups, both, per_group, dynamic[2], sampled, samplers, storage_buffers,
        storage_textures, uniforms;
    uint64_t uniform_bytes, storage_bytes;
    uint32_t uniform_align, storage_align, vertex_buffers;
    uint64_t buffer_bytes;
    uint32_t vertex[5], shared, items, sizes[3], groups_of_axis, immediate;
    uint64_t rest[8]; /* of what comes later */
} WgLimits;
typedef struct WgInfo {
    const void *next;
    igrt_wg_text vendor, architecture, device, description;
    int backend, type;
    uint32_t vendor_id, device_id, least, most; /* items of a sub-group */
    uint64_t rest[8];
} WgInfo;
typedef struct WgDevice {
    const void *next;
    igrt_wg_text label;
    size_t features;
    const int *feature;
    const WgLimits *limits;
    const void *queue_next;
    igrt_wg_text queue_label;
    igrt_wg_call lost;
    struct {
        const void *next;
        void (*function)(void);
        void *to, *with;
    } fault;
} WgDevice;
typedef struct WgSource {
    WgChain chain;
    igrt_wg_text text;
} WgSource;
typedef struct WgModule {
    const void *next;
    igrt_wg_text label;
} WgModule;
typedef struct WgPipeline {
    const void *next;
    igrt_wg_text label;
    void *layout;
    const void *stage_next;
    void *module;
    igrt_wg_text entry;
    size_t constants;
    const void *constant;
} WgPipeline;
typedef struct WgBuffer {
    const void *next;
    igrt_wg_text label;
    uint64_t usage, bytes;
    uint32_t mapped;
} WgBuffer;
typedef struct WgEntry {
    const void *next;
    uint32_t binding;
    void *buffer;
    uint64_t offset, bytes;
    void *sampler, *view;
} WgEntry;
typedef struct WgGroup {
    const void *next;
    igrt_wg_text label;
    void *layout;
    size_t n;
    const WgEntry *entry;
} WgGroup;
/* What a set of queries is of, and how many there are. */
typedef struct WgQueries {
    const void *next;
    igrt_wg_text label;
    int type;
    uint32_t count;
} WgQueries;
/* Which of them get the times when a pass begins and ends. */
typedef struct WgTimes {
    const void *next;
    void *set;
    uint32_t begin, end;
} WgTimes;
typedef struct WgPass {
    const void *next;
    igrt_wg_text label;
    const WgTimes *times;
} WgPass;

#endif
