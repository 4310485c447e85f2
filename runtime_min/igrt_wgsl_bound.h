/*
 * igrt_wgsl_bound.h - bind groups of a context. What a launch binds and is told hardly ever changes
 * from run to run, and making a bind group and writing its values costs more than all else that the
 * host does for a launch: so they are kept, and found again by what they are made of.
 */
#ifndef IGRT_WGSL_BOUND_H
#define IGRT_WGSL_BOUND_H

#include "igrt_webgpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bind group of a launch: n ranges of memory and, if there are values, these behind them.
 * keep: no range is the caller's, who may release it and make another one of the same handle. It
 * stays the context's, and lives until the next call at least. NULL: no memory is left. */
void *igrt_wg_bind(igrt_wg *wg, const igrt_wg_kernel *kernel, WgEntry *entry, int n,
                   const uint32_t *value, int values, int keep);
/* A buffer is going to be released. */
void igrt_wg_forget(igrt_wg *wg);
void igrt_wg_free_bound(igrt_wg *wg);

#ifdef __cplusplus
}
#endif
#endif
