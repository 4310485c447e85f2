/*
 * igrt_sample.c - which token comes next.
 */
#include "igrt_sample.h"

#include <math.h>

typedef struct SampleToken {
    float logit, share; /* share: of the probability, not divided by the sum */
    int32_t id;
} SampleToken;

/* In 0..1; SplitMix64 (Steele et al., 2014). */
static float drawn(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)((x ^ x >> 31) >> 40) / 16777216.0f;
}

/* Each token of the last ones once, however often it came. */
static void penalise(const igrt_sampling *how, float *logits, int32_t n, const int32_t *ids,
                     size_t count)
{
    const size_t last = how->repeat_last > 0 ? (size_t)how->repeat_last : 64;
    const size_t from = count > last ? count - last : 0;
    if (how->repeat_penalty <= 0.0f || how->repeat_penalty == 1.0f)
        return;
    for (size_t i = from; i < count; i++) {
        int seen = ids[i] < 0 || ids[i] >= n;
        for (size_t k = from; k < i && !seen; k++)
            seen = ids[k] == ids[i];
        if (seen)
            continue;
        float *x = &logits[ids[i]];
        *x = *x > 0.0f ? *x / how->repeat_penalty : *x * how->repeat_penalty;
    }
}

static int is_before(const SampleToken *a, const SampleToken *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Puts x where it belongs in a heap whose root is the least likely. */
static void sift(SampleToken *heap, int n, int at, SampleToken x)
{
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&x, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = x;
}

/* The `most` most likely tokens, the first one first. */
static int most_likely(const float *logits, int32_t n, SampleToken *out, int most)
{
    int count = 0;
    for (int32_t id = 0; id < n; id++) {
        SampleToken x = {logits[id], 0.0f, id};
        if (isnan(x.logit))
            continue;
        if (count < most) {
            out[count++] = x;
            for (int i = count / 2; count == most && i-- > 0;)
                sift(out, count, i, out[i]);
        } else if (is_before(&x, &out[0])) {
            sift(out, count, 0, x);
        }
    }
    for (int i = count / 2; count < most && i-- > 0;)
        sift(out, count, i, out[i]);
    for (int i = count - 1; i > 0; i--) { /* the root is the last of those that are left */
        const SampleToken last = out[0];
        sift(out, i, 0, out[i]);
        out[i] = last;
    }
    return count;
}

/* How many of them stay by top_p and min_p. all: the sum of all tokens' shares. */
static int kept(const igrt_sampling *how, const SampleToken *t, int count, float all)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        if (i && how->min_p > 0.0f && t[i].share < how->min_p)
            return i;
        sum += t[i].share;
        if (how->top_p > 0.0f && how->top_p < 1.0f && sum >= how->top_p * all)
            return i + 1;
    }
    return count;
}

int32_t igrt_sample(igrt_sampling *how, float *logits, int32_t n, const int32_t *ids, size_t count)
{
    SampleToken t[IGRT_SAMPLE_MOST];
    const int greedy = how->temperature <= 0.0f;
    int most = how->top_k > 0 && how->top_k < IGRT_SAMPLE_MOST ? (int)how->top_k : IGRT_SAMPLE_MOST;
    float all = 0.0f, sum = 0.0f;
    penalise(how, logits, n, ids, count);
    int left = most_likely(logits, n, t, greedy ? 1 : most);
    if (greedy || left < 2)
        return left ? t[0].id : 0;
    for (int i = 0; i < left; i++)
        all += t[i].share = expf((t[i].logit - t[0].logit) / how->temperature);
    left = kept(how, t, left, all);
    for (int i = 0; i < left; i++)
        sum += t[i].share;
    float at = drawn(&how->seed) * sum;
    for (int i = 0; i < left; i++) {
        if (at < t[i].share)
            return t[i].id;
        at -= t[i].share;
    }
    return t[0].id;
}
