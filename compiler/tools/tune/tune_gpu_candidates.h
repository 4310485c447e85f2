/* tune_gpu_candidates.h - what the files share that tune for a GPU: the ways in which steps can be
 * computed, and the folder of the program that has them. */
#ifndef TUNE_GPU_CANDIDATES_H
#define TUNE_GPU_CANDIDATES_H

#include "tune_command.h"

enum {
    MOST_WAYS = 20,     /* of a group, with the compiler's */
    MOST_TILE_WAYS = 64 /* where the driver compiles those that are tried, and no others */
};

/* Steps of one kernel, which one entry of the file speaks of (only: an entry each). */
typedef struct {
    Step **step;
    int nstep;
    bool only, stays; /* stays: what its first way says is in the file though nothing won */
    const char **way; /* entries of the file; [0]: the compiler's */
    Kernel **kernel;  /* of each; [0]: NULL */
    int nway, nkernel, most;
} WayGroup;
typedef struct {
    Tune *t;
    Plan *plan;
    WayGroup *group;
    int ngroup;
    /* of the file that the user named: what it says of values, and of kernels that are in no
     * group */
    const char *rest;
} GpuCandidates;

/* One more way of a group, unless it is there, or there is no room, or it cannot be done. */
void ways_add(GpuCandidates *, WayGroup *, int nopt, const Opt *opts);
/* tune_tiles.c: all that is tried of a group where there are no matrix units. */
void ways_of_tiles(GpuCandidates *, WayGroup *);
/* Of a plan, whose steps get the kernels (Step.way). */
ingot_status ways_make(GpuCandidates *);
/* After the program is written: the ways that steps still have. */
void ways_keep_written(GpuCandidates *);

/* tune_gpu.c: files of the folder. */
extern const char ways_list[], ways_times[];
const char *ways_path(const Tune *, const char *dir, const char *name);

/* tune_times.c: the section of the file that comes of what was timed so far, with how many winners,
 * and what is to be told of it.
 * untried: ways that were not tried so far, of those that there are. */
ingot_status tune_gpu_collect(Tune *, const char *dir, StrBuf *text, int *won, int *untried);

#endif
