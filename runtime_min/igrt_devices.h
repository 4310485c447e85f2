/*
 * igrt_devices.h - the devices of a model, each with a memory of its own, as threads.
 *
 * What a device does between two waits is a segment. Segments are numbered in an order in which one
 * thread can run them; with more threads each device goes on by itself, and a segment begins when
 * those that it waits for are done. Results are the same bytes either way.
 */
#ifndef IGRT_DEVICES_H
#define IGRT_DEVICES_H

#include "igrt.h"

#define IGRT_MAX_DEVICES 16

typedef struct igrt_devices {
    int n, n_devices;            /* segments; devices, at most IGRT_MAX_DEVICES */
    const unsigned char *device; /* by segment */
    /* by segment and device: how many of that device's segments have to be done before */
    const int *waits;
    igrt_status (*run)(const void *arg, int segment);
} igrt_devices;

#ifdef IGRT_FUNCTIONS
/* Runs all segments: by up to n_devices threads of config.parallel_for, or one after the other if
 * config.threads is 1, or if profile or stop are set, which are called from one thread. The first
 * status that is not IGRT_OK ends the run. */
igrt_status igrt_devices_run(const igrt_config *config, const igrt_devices *devices,
                             const void *arg);
#endif
#endif
