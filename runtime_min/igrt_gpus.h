/*
 * igrt_gpus.h - several GPUs of one machine, in one process, for one model (CUDA).
 *
 * Each device has a stream, and one more for copies to it. All of them begin behind what the first
 * one's stream has (igrt_gpus_mark, igrt_gpus_wait), and that goes on behind all of them, so a
 * model's run is one thing to whoever has the stream; recorded, it is one graph with a branch for
 * each stream.
 *
 * A small value crosses by kernels alone: one stores it into the other device's memory, half a word
 * beside each mark, and one that waits there takes it, and clears the marks (igrt_cross.h).
 *
 * GPUs that do not reach each other's memory have these places in the host's, which both reach, and
 * what is too large for them is copied by way of the host. Steps are enqueued one by one then: not
 * every driver records such copies.
 *
 * One GPU may be several devices, which then have one stream. In streams of their own they could
 * wait forever: the kernel behind one that takes begins before that one ends, and its groups can
 * fill the GPU, with no room left for what is to be sent.
 */
#ifndef IGRT_GPUS_H
#define IGRT_GPUS_H

#include "igrt_cuda.h"

/* What crosses, as igrt_cross.h has it. */
typedef struct igrt_crossing {
    uint64_t to, from; /* memory, and places for it, of twice the bytes */
    uint32_t bytes, takes;
} igrt_crossing;
enum { IGRT_CROSSINGS = 8, IGRT_CROSSING_ITEMS = 256 };
typedef struct igrt_crossings {
    igrt_crossing x[IGRT_CROSSINGS];
} igrt_crossings;

/* Entry points beside those of igrt_cu. */
typedef struct igrt_gpus {
    int shared; /* one GPU is several of the devices */
    int hosted; /* two of them do not reach each other: values cross in the host's memory */
    int (*cuDeviceCanAccessPeer)(int *, int, int);
    int (*cuCtxEnablePeerAccess)(void *, unsigned);
    int (*cuStreamWaitEvent)(void *, void *, unsigned);
} igrt_gpus;

#ifdef IGRT_FUNCTIONS
/* Opens the first device, into *first, and those beside it into beside[0..]; behind these come
 * queues of copies to each device. config.gpu has their names, by commas apart; without, they are
 * the first ones of the machine. On failure *fault says why, and igrt_gpus_close() is to follow. */
igrt_status igrt_gpus_open(igrt_gpus *all, igrt_cu *first, igrt_cu *beside, int n_devices,
                           const igrt_config *config, igrt_fault *fault);
void igrt_gpus_close(igrt_cu *beside, int n_devices);

/* The one whose call failed; the first device, if none has. */
const igrt_cu *igrt_gpus_failed(const igrt_cu *first, const igrt_cu *beside, int n_devices);

/* Memory where values cross to a device, without marks. */
igrt_status igrt_gpus_slot(const igrt_gpus *all, igrt_cu *gpu, size_t bytes, igrt_cu_mem *slot);
void igrt_gpus_free_slot(const igrt_gpus *all, igrt_cu *gpu, igrt_cu_mem slot);

/* A run has failed: what was sent and not taken is no value of the next one. By device, its slot.
 */
void igrt_gpus_clear(const igrt_gpus *all, igrt_cu *first, igrt_cu *beside, int n_devices,
                     const igrt_cu_mem *slot, const size_t *bytes);

/* What is recorded or updated goes on with another one's steps; timed: its time begins. */
igrt_cu *igrt_gpus_turn(igrt_cu *from, igrt_cu *to, int timed);

/* All that is enqueued so far; what comes next waits for it. */
igrt_status igrt_gpus_mark(igrt_cu *gpu, void **mark);
igrt_status igrt_gpus_wait(const igrt_gpus *all, igrt_cu *gpu, void *mark);
void igrt_gpus_free_mark(igrt_cu *gpu, void *mark);

/* Is what is sent a launch of its own, before all that takes it?  So it is where steps are enqueued
 * to run now, and where devices share a stream. */
int igrt_gpus_apart(const igrt_gpus *all, const igrt_cu *gpu);
/* n values cross, by one launch: what is sent does not wait for what is taken. */
igrt_status igrt_gpus_cross(igrt_cu *gpu, void *kernel, int n, const igrt_crossing *x);
/* The same n as an argument of a kernel that lets them cross itself. */
igrt_crossings igrt_gpus_crossings(int n, const igrt_crossing *x);
#endif
#endif
