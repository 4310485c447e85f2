/*
 * igrt_wgsl_bound.c - bind groups of a context. See igrt_wgsl_bound.h.
 */
#include "igrt_wgsl_bound.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 4096,   /* bind groups that are kept; then all are made anew */
    PLACES = 8192, /* of the table in which they are found */
    PART = 1024,   /* places for values in a buffer */
    WORDS = 1 + 3 * IGRT_WG_ARGS + IGRT_WG_ALIGN / 8
};

/* A bind group, and what it is made of: the kernel, three words a range, values in pairs. */
typedef struct WgBound {
    void *group;
    uint64_t hash;
    size_t words;
    uint64_t word[];
} WgBound;

struct igrt_wg_bound {
    WgBound *at[PLACES];
    void *values[MOST / PART];
    uint32_t used; /* places for values, which are written once each */
    void *loose;   /* the last one that is not kept */
};

static size_t write_key(uint64_t key[WORDS], const igrt_wg_kernel *kernel, const WgEntry *entry,
                        int n, const uint32_t *value, int values)
{
    size_t words = 0;
    key[words++] = (uint64_t)(uintptr_t)kernel->layout;
    for (int i = 0; i < n; i++) {
        key[words++] = (uint64_t)(uintptr_t)entry[i].buffer;
        key[words++] = entry[i].offset;
        key[words++] = entry[i].bytes;
    }
    for (int i = 0; i < values; i += 2)
        key[words++] = (uint64_t)value[i] << 32 | (i + 1 < values ? value[i + 1] : 0);
    return words;
}

static uint64_t hash_of(const uint64_t *key, size_t words)
{
    uint64_t h = words;
    for (size_t i = 0; i < words; i++) {
        h = (h ^ key[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

/* Where it is, or would be. */
static WgBound **place_of(struct igrt_wg_bound *b, const uint64_t *key, size_t words)
{
    const uint64_t hash = hash_of(key, words);
    size_t i = (size_t)(hash % PLACES);
    while (b->at[i] && (b->at[i]->hash != hash || b->at[i]->words != words ||
                        memcmp(b->at[i]->word, key, words * sizeof *key) != 0))
        i = (i + 1) % PLACES;
    return &b->at[i];
}

/* Values of a launch as the last binding. */
static int bind_values(igrt_wg *wg, WgEntry *entry, int binding, const uint32_t *value, int n)
{
    struct igrt_wg_bound *b = wg->bound;
    void **buffer = &b->values[b->used / PART];
    const WgBuffer asked = {.usage = WG_UNIFORM | WG_COPY_DST,
                            .bytes = (uint64_t)PART * IGRT_WG_ALIGN};
    uint32_t block[IGRT_WG_ALIGN / 4] = {0};
    if (!*buffer)
        *buffer = wg->DeviceCreateBuffer(wg->device, &asked);
    if (!*buffer)
        return 0;
    const WgEntry e = {.binding = (uint32_t)binding,
                       .buffer = *buffer,
                       .offset = (uint64_t)(b->used % PART) * IGRT_WG_ALIGN,
                       .bytes = ((uint64_t)n * 4 + 15) / 16 * 16};
    memcpy(block, value, (size_t)n * 4);
    wg->QueueWriteBuffer(wg->queue, e.buffer, e.offset, block, (size_t)e.bytes);
    *entry = e;
    return 1;
}

static void drop_loose(igrt_wg *wg)
{
    if (wg->bound->loose)
        wg->BindGroupRelease(wg->bound->loose);
    wg->bound->loose = NULL;
}

void *igrt_wg_bind(igrt_wg *wg, const igrt_wg_kernel *kernel, WgEntry *entry, int n,
                   const uint32_t *value, int values, int keep)
{
    uint64_t key[WORDS];
    const size_t words = write_key(key, kernel, entry, n, value, values);
    WgGroup asked = {.layout = kernel->layout, .n = (size_t)n, .entry = entry};
    if (!wg->bound)
        wg->bound = calloc(1, sizeof *wg->bound);
    if (!wg->bound)
        return NULL;
    WgBound *made = *place_of(wg->bound, key, words);
    if (made)
        return made->group;
    if (wg->bound->used == MOST) {
        igrt_wg_submit(wg); /* values may be written over then */
        igrt_wg_forget(wg);
        wg->bound->used = 0;
    }
    if (values && !bind_values(wg, &entry[asked.n++], n, value, values))
        return NULL;
    wg->bound->used++;
    drop_loose(wg);
    void *group = wg->DeviceCreateBindGroup(wg->device, &asked);
    made = keep && group ? malloc(sizeof *made + words * sizeof *key) : NULL;
    if (!made)
        return wg->bound->loose = group;
    made->group = group;
    made->hash = hash_of(key, words);
    made->words = words;
    memcpy(made->word, key, words * sizeof *key);
    *place_of(wg->bound, key, words) = made;
    return group;
}

void igrt_wg_forget(igrt_wg *wg)
{
    for (int i = 0; wg->bound && i < PLACES; i++) {
        if (!wg->bound->at[i])
            continue;
        wg->BindGroupRelease(wg->bound->at[i]->group);
        free(wg->bound->at[i]);
        wg->bound->at[i] = NULL;
    }
}

void igrt_wg_free_bound(igrt_wg *wg)
{
    if (!wg->bound)
        return;
    igrt_wg_forget(wg);
    drop_loose(wg);
    for (int i = 0; i < MOST / PART; i++)
        if (wg->bound->values[i])
            wg->BufferRelease(wg->bound->values[i]);
    free(wg->bound);
    wg->bound = NULL;
}
