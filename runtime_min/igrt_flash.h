/*
 * igrt_flash.h - the states of a model in flash, or whatever else keeps bytes without a file
 * system: weights that were trained, what the optimizer keeps of them, the counters.
 *
 *     static int erase(void *user, int slot);
 *     static int write(void *user, int slot, size_t at, const void *block);
 *     static int read(void *user, int slot, size_t at, void *block);
 *
 *     const igrt_flash flash = {NULL, erase, write, read, FLASH_BYTES};
 *     igrt_state state[MODEL_STATES];
 *     for (int i = 0; i < MODEL_STATES; i++)
 *         model_state(&ctx, i, &state[i]);
 *     igrt_flash_load(&flash, state, MODEL_STATES);   after model_init()
 *     igrt_flash_save(&flash, state, MODEL_STATES);   after some steps
 *
 * There are two slots. A save takes the one that does not have the newest states, so the power may
 * fail at any time: what is read then are the states before, or the new ones. No heap is used, and
 * some 300 bytes of stack.
 *
 *     block 0    "IGST", which save it is, a sum of names, types and dims, a sum of all other bytes
 *     the rest   the states, one behind the other, in their order; the last block ends with zeros
 */
#ifndef IGRT_FLASH_H
#define IGRT_FLASH_H

#include <string.h>

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { IGRT_FLASH_BLOCK = 64, IGRT_FLASH_MAGIC = 0x54534749 };

/* All return 0 after a failure. Blocks have IGRT_FLASH_BLOCK bytes, and lie at multiples of that;
 * each is written once after the slot was erased, the first one last. */
typedef struct igrt_flash {
    void *user;
    int (*erase)(void *user, int slot);
    int (*write)(void *user, int slot, size_t at, const void *block);
    int (*read)(void *user, int slot, size_t at, void *block);
    size_t bytes; /* of a slot */
} igrt_flash;

/* ---- inside -------------------------------------------------------------------------------- */

/* CRC-32 of IEEE 802.3, a bit at a time. */
static inline uint32_t igrt_flash_sum(uint32_t sum, const void *data, size_t n)
{
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < n; i++) {
        sum ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0xedb88320u & (0u - (sum & 1)));
    }
    return sum;
}

/* Of names, types and dims. */
static inline uint32_t igrt_flash_kinds(const igrt_state *state, int n)
{
    uint32_t sum = ~0u;
    for (int i = 0; i < n; i++) {
        const int64_t kind[2] = {(int64_t)state[i].dtype, state[i].rank};
        sum = igrt_flash_sum(sum, state[i].name, strlen(state[i].name) + 1);
        sum = igrt_flash_sum(sum, kind, sizeof kind);
        sum = igrt_flash_sum(sum, state[i].dims, (size_t)state[i].rank * sizeof state[i].dims[0]);
    }
    return sum;
}

/* How far the states have been taken. */
typedef struct igrt_flash_place {
    int i;
    size_t at;
} igrt_flash_place;

/* The next block, from the states or, if back, into them. False: there was none. */
static inline int igrt_flash_next(igrt_flash_place *p, const igrt_state *state, int n,
                                  unsigned char *block, int back)
{
    size_t have = 0;
    while (p->i < n && have < IGRT_FLASH_BLOCK) {
        const size_t left = state[p->i].bytes - p->at, room = IGRT_FLASH_BLOCK - have;
        const size_t some = left < room ? left : room;
        unsigned char *data = (unsigned char *)state[p->i].data + p->at;
        if (back)
            memcpy(data, block + have, some);
        else
            memcpy(block + have, data, some);
        have += some;
        p->at += some;
        if (some == left) {
            p->i++;
            p->at = 0;
        }
    }
    if (!back && have)
        memset(block + have, 0, IGRT_FLASH_BLOCK - have);
    return have != 0;
}

static inline size_t igrt_flash_blocks(const igrt_state *state, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += state[i].bytes;
    return (bytes + IGRT_FLASH_BLOCK - 1) / IGRT_FLASH_BLOCK;
}

/* Does the slot have states of these names, types and dims, whole? head: its block 0. */
static inline int igrt_flash_whole(const igrt_flash *f, int slot, const igrt_state *state, int n,
                                   uint32_t head[4])
{
    const size_t blocks = igrt_flash_blocks(state, n);
    unsigned char block[IGRT_FLASH_BLOCK];
    if (blocks + 1 > f->bytes / IGRT_FLASH_BLOCK || !f->read(f->user, slot, 0, block))
        return 0;
    memcpy(head, block, 4 * sizeof *head);
    if (head[0] != IGRT_FLASH_MAGIC || head[2] != igrt_flash_kinds(state, n))
        return 0;
    uint32_t sum = igrt_flash_sum(~0u, head + 1, 2 * sizeof *head);
    for (size_t k = 1; k <= blocks; k++) {
        if (!f->read(f->user, slot, k * IGRT_FLASH_BLOCK, block))
            return 0;
        sum = igrt_flash_sum(sum, block, sizeof block);
    }
    return sum == head[3];
}

/* The slot of the newest states, -1: there are none; *count: which save they are of. */
static inline int igrt_flash_newest(const igrt_flash *f, const igrt_state *state, int n,
                                    uint32_t *count)
{
    int newest = -1;
    for (int slot = 0; slot < 2; slot++) {
        uint32_t head[4];
        if (!igrt_flash_whole(f, slot, state, n, head))
            continue;
        if (newest < 0 || head[1] - *count < 0x80000000u) {
            newest = slot;
            *count = head[1];
        }
    }
    return newest;
}

/* ---- what callers use ---------------------------------------------------------------------- */

/* Keeps the states. 0: a function of f has failed, or a slot is too small; what was kept before is
 * there. */
static inline int igrt_flash_save(const igrt_flash *f, const igrt_state *state, int n)
{
    uint32_t count = 0;
    const int slot = igrt_flash_newest(f, state, n, &count) == 0;
    const size_t blocks = igrt_flash_blocks(state, n);
    unsigned char block[IGRT_FLASH_BLOCK];
    uint32_t head[4] = {IGRT_FLASH_MAGIC, count + 1, igrt_flash_kinds(state, n), 0};
    uint32_t sum = igrt_flash_sum(~0u, head + 1, 2 * sizeof *head);
    igrt_flash_place place = {0, 0};
    if (blocks + 1 > f->bytes / IGRT_FLASH_BLOCK || !f->erase(f->user, slot))
        return 0;
    for (size_t k = 1; k <= blocks; k++) {
        (void)igrt_flash_next(&place, state, n, block, 0);
        sum = igrt_flash_sum(sum, block, sizeof block);
        if (!f->write(f->user, slot, k * IGRT_FLASH_BLOCK, block))
            return 0;
    }
    head[3] = sum;
    memset(block, 0, sizeof block);
    memcpy(block, head, sizeof head);
    return f->write(f->user, slot, 0, block);
}

/* Reads the newest ones. 0: neither slot has states of these names, types and dims that are whole;
 * none has changed then, unless a read failed that had not failed before. */
static inline int igrt_flash_load(const igrt_flash *f, const igrt_state *state, int n)
{
    uint32_t count = 0;
    const int slot = igrt_flash_newest(f, state, n, &count);
    const size_t blocks = igrt_flash_blocks(state, n);
    unsigned char block[IGRT_FLASH_BLOCK];
    igrt_flash_place place = {0, 0};
    for (size_t k = 1; slot >= 0 && k <= blocks; k++) {
        if (!f->read(f->user, slot, k * IGRT_FLASH_BLOCK, block))
            return 0;
        (void)igrt_flash_next(&place, state, n, block, 1);
    }
    return slot >= 0;
}

#ifdef __cplusplus
}
#endif
#endif
