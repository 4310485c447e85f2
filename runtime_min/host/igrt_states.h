/*
 * igrt_states.h - the states of a model as a .safetensors file: weights that were trained, what the
 * optimizer keeps of them, the counters. For callers that have an operating system (POSIX).
 *
 *     igrt_state state[MODEL_STATES];
 *     char why[256];
 *     for (int i = 0; i < MODEL_STATES; i++)
 *         model_state(&ctx, i, &state[i]);
 *     if (!igrt_states_save("net.safetensors", state, MODEL_STATES, why, sizeof why))
 *         fprintf(stderr, "%s\n", why);
 *
 * A run that goes on after a load gives the same bytes as one that was never interrupted. States
 * that grow have the room of their greatest size; their lengths are not among the states.
 */
#ifndef IGRT_STATES_H
#define IGRT_STATES_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes n states. The file is written as "PATH.partial", flushed to the disk, and renamed:
 * whenever the process is ended, PATH is the old file or the new one. Returns 1; or 0, with one
 * line, "PATH: WHAT", in why (room counts its zero).
 */
int igrt_states_save(const char *path, const igrt_state *state, int n, char *why, size_t room);

/*
 * Reads them again. A file that is cut off or damaged, or that has other names, types or dims than
 * the n states, is refused before any of them has changed: 0, and why.
 */
int igrt_states_load(const char *path, const igrt_state *state, int n, char *why, size_t room);

#ifdef __cplusplus
}
#endif
#endif
