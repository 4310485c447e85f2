/*
 * igrt_sample.h - which token comes next, by the logits of all.
 *
 *     igrt_sampling how = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 1};
 *     id = igrt_sample(&how, logits, n, ids, count);
 *
 * In this order: tokens that came lately are made less likely, the top_k most likely stay, then
 * those of which it takes no more to have top_p of all probability, then those at least min_p times
 * as likely as the first; of what is left one is drawn. The same numbers and seed give the same
 * tokens, for any number of threads and any chunks of the prompt that gave the same logits.
 */
#ifndef IGRT_SAMPLE_H
#define IGRT_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { IGRT_SAMPLE_MOST = 1024 }; /* tokens that one is drawn from, at most */

/* All zeros: the most likely token. */
typedef struct igrt_sampling {
    float temperature;    /* 0: the most likely token, always */
    int32_t top_k;        /* 0: IGRT_SAMPLE_MOST */
    float top_p;          /* 0 or 1: all */
    float min_p;          /* 0: all */
    float repeat_penalty; /* 0 or 1: none; logits above 0 are divided by it, others multiplied */
    int32_t repeat_last;  /* of so many tokens before; 0: 64 */
    uint64_t seed;        /* drawn from, and changed */
} igrt_sampling;

/* logits [n], which the penalty changes; ids [count]: the tokens so far. */
int32_t igrt_sample(igrt_sampling *how, float *logits, int32_t n, const int32_t *ids, size_t count);

#ifdef __cplusplus
}
#endif
#endif
