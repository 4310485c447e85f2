/*
 * igrt_wgsl_time.h - the device's clock (igrt_wg_time_begin). WebGPU reads it when a pass begins
 * and when it ends.
 */
#ifndef IGRT_WGSL_TIME_H
#define IGRT_WGSL_TIME_H

#include "igrt_webgpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pass, whose time is taken if somebody asks. */
void *igrt_wg_begin_pass(igrt_wg *wg, void *encoder);
void igrt_wg_free_clock(igrt_wg *wg);

#ifdef __cplusplus
}
#endif
#endif
