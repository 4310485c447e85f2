/*
 * nms.c - greedy suppression of overlapping boxes (ONNX NonMaxSuppression).
 *
 *   in      0: boxes f32 [batch, n, 4]    1: scores f32 [batch, classes, n]
 *           2: i64, most boxes per class (default 0)    3: f32, IoU threshold (default 0)
 *           4: f32, score threshold (default none); 2 to 4 may be left out or have data NULL
 *   out     0: i64 [count, 3] of (batch, class, box); dims[0] is the bound on entry
 *   attr_i  0: 0 for boxes (y1, x1, y2, x2) in any corner order, 1 for (xc, yc, width, height)
 *   scratch IGRT_NMS_SCRATCH(n)
 *   counts  0: count
 *
 * In a class boxes are taken by falling score, equal scores by rising index; a box is dropped if
 * its IoU with one taken before exceeds the threshold. Scores must exceed the score threshold. A
 * box whose score is NaN is never taken.
 */
#include "igrt_lib.h"

typedef struct ScoredBox {
    float score;
    int64_t box;
} ScoredBox;

typedef struct BoxCorners {
    float y1, x1, y2, x2;
} BoxCorners;

static BoxCorners corners(const float *b, int centered)
{
    if (centered) {
        const float w = b[2] * 0.5f, h = b[3] * 0.5f;
        return (BoxCorners){b[1] - h, b[0] - w, b[1] + h, b[0] + w};
    }
    return (BoxCorners){igrt_min_f32(b[0], b[2]), igrt_min_f32(b[1], b[3]),
                        igrt_max_f32(b[0], b[2]), igrt_max_f32(b[1], b[3])};
}

/* Intersection over union > threshold; boxes without area overlap nothing. */
static int overlap(const BoxCorners *a, const BoxCorners *b, float threshold)
{
    const float h = igrt_min_f32(a->y2, b->y2) - igrt_max_f32(a->y1, b->y1);
    const float w = igrt_min_f32(a->x2, b->x2) - igrt_max_f32(a->x1, b->x1);
    if (!(h > 0 && w > 0))
        return 0;
    const float area_a = (a->y2 - a->y1) * (a->x2 - a->x1);
    const float area_b = (b->y2 - b->y1) * (b->x2 - b->x1);
    const float both = h * w;
    return both / (area_a + area_b - both) > threshold;
}

static int after(const ScoredBox *a, const ScoredBox *b)
{
    return a->score != b->score ? a->score < b->score : a->box > b->box;
}

/* A heap with the next candidate on top. */
static void sink(ScoredBox *heap, int64_t i, int64_t n)
{
    const ScoredBox item = heap[i];
    for (int level = 0; level < 64; level++) { /* of the heap */
        int64_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && after(&heap[child], &heap[child + 1]))
            child++;
        if (!after(&item, &heap[child]))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static const void *optional(const igrt_tensor *in, int nin, int i)
{
    return i < nin ? in[i].data : NULL;
}

IGRT_LIB(nms)
{
    (void)attr_f;
    if (nin < 2 || nout != 1 || in[0].dtype != IGRT_F32 || in[1].dtype != IGRT_F32 ||
        in[0].rank != 3 || in[1].rank != 3 || out->dtype != IGRT_I64)
        return IGRT_ERR_UNSUPPORTED;
    const int64_t n = in[0].dims[1], classes = in[1].dims[1], bound = out->dims[0];
    if (scratch_bytes < IGRT_NMS_SCRATCH(n))
        return IGRT_ERR_SCRATCH;
    const int64_t *most = optional(in, nin, 2);
    const float *iou = optional(in, nin, 3), *least = optional(in, nin, 4);
    const float threshold = iou ? *iou : 0.0f;
    ScoredBox *heap = scratch;
    int64_t *y = out->data, count = 0;
    for (int64_t b = 0; b < in[1].dims[0]; b++) {
        const float *boxes = (const float *)in[0].data + b * n * 4;
        for (int64_t c = 0; c < classes; c++) {
            const float *scores = (const float *)in[1].data + (b * classes + c) * n;
            const int64_t begin = count;
            int64_t left = 0;
            for (int64_t i = 0; i < n; i++)
                if (scores[i] == scores[i] && (!least || scores[i] > *least))
                    heap[left++] = (ScoredBox){scores[i], i};
            for (int64_t i = left / 2; i-- > 0;)
                sink(heap, i, left);
            for (int64_t tried = 0; tried < n && left > 0 && count - begin < (most ? *most : 0);
                 tried++) {
                const int64_t box = heap[0].box;
                const BoxCorners mine = corners(boxes + 4 * box, attr_i[0] != 0);
                heap[0] = heap[--left];
                sink(heap, 0, left ? left : 1);
                int keep = 1;
                for (int64_t t = begin; t < count && keep; t++) {
                    const BoxCorners other = corners(boxes + 4 * y[3 * t + 2], attr_i[0] != 0);
                    keep = !overlap(&mine, &other, threshold);
                }
                if (!keep)
                    continue;
                if (count == bound)
                    return IGRT_ERR_COUNT;
                y[3 * count] = b;
                y[3 * count + 1] = c;
                y[3 * count + 2] = box;
                count++;
            }
        }
    }
    out->rank = 2;
    out->dims[0] = count;
    out->dims[1] = 3;
    counts[0] = count;
    return IGRT_OK;
}
