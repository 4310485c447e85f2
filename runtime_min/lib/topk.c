/*
 * topk.c - the k largest or smallest elements along an axis, in order (ONNX TopK; a full sort if k
 * is the whole dim).
 *
 *   in      0: x, any type with an order    1 (may be left out): k, one i64 element
 *   out     0: values, dims[axis] = k or, if in[1] is given, its bound
 *           1 (may be left out): i64 indices along the axis, the same shape
 *   attr_i  0: axis, 0 <= axis < rank    1: 1 for the largest, 0 for the smallest
 *   scratch IGRT_TOPK_SCRATCH(bound of k)
 *   counts  0: k, only if in[1] is given
 *
 * Equal elements come in the order of their indices. NaN counts as the largest number; -0 equals 0.
 * ERR_COUNT if k is negative or larger than its bound or than the dim.
 *
 * A heap holds the k best so far, the worst on top: O(n log k), then one heapsort.
 */
#include "igrt_lib.h"

/* Smaller is better: keys are complemented for the largest. */
typedef struct RankedItem {
    uint64_t key;
    int64_t index;
} RankedItem;

static int worse(const RankedItem *a, const RankedItem *b)
{
    return a->key != b->key ? a->key > b->key : a->index > b->index;
}

/* Sinks heap[i] in a heap of n with the worst on top. */
static void sink(RankedItem *heap, int64_t i, int64_t n)
{
    const RankedItem item = heap[i];
    for (int level = 0; level < 64; level++) { /* of the heap */
        int64_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && worse(&heap[child + 1], &heap[child]))
            child++;
        if (!worse(&heap[child], &item))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

/* The k best of n elements that start at `base` and lie `step` apart, best first. */
static void select_best(const igrt_tensor *x, int64_t base, int64_t step, int64_t n,
                        RankedItem *heap, int64_t k, uint64_t flip)
{
    for (int64_t i = 0; i < k; i++)
        heap[i] = (RankedItem){igrt_lib_key(x, base + i * step) ^ flip, i};
    for (int64_t i = k / 2; i-- > 0;)
        sink(heap, i, k);
    for (int64_t i = k; i < n; i++) {
        const RankedItem item = {igrt_lib_key(x, base + i * step) ^ flip, i};
        if (k && worse(&heap[0], &item)) {
            heap[0] = item;
            sink(heap, 0, k);
        }
    }
    for (int64_t last = k - 1; last > 0; last--) {
        const RankedItem item = heap[0];
        heap[0] = heap[last];
        heap[last] = item;
        sink(heap, 0, last);
    }
}

IGRT_LIB(topk)
{
    (void)attr_f;
    const int64_t axis = attr_i[0];
    if (nin < 1 || nin > 2 || nout < 1 || nout > 2 || axis < 0 || axis >= in->rank ||
        !igrt_lib_has_key(in->dtype) || out->dtype != in->dtype)
        return IGRT_ERR_UNSUPPORTED;
    if ((nout == 2 && out[1].dtype != IGRT_I64) || (nin == 2 && in[1].dtype != IGRT_I64))
        return IGRT_ERR_UNSUPPORTED;
    const int64_t outer = igrt_lib_numel(in, 0, (int)axis), n = in->dims[axis];
    const int64_t inner = igrt_lib_numel(in, (int)axis + 1, in->rank);
    int64_t k = out->dims[axis];
    if (nin == 2) {
        const int64_t wanted = *(const int64_t *)in[1].data;
        if (wanted < 0 || wanted > k)
            return IGRT_ERR_COUNT;
        counts[0] = k = wanted;
    }
    if (k > n)
        return IGRT_ERR_COUNT;
    if (scratch_bytes < IGRT_TOPK_SCRATCH(k))
        return IGRT_ERR_SCRATCH;

    const size_t bytes = igrt_dtype_bytes(in->dtype);
    const unsigned char *x = in->data;
    unsigned char *values = out->data;
    int64_t *indices = nout == 2 ? out[1].data : NULL;
    RankedItem *heap = scratch;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t base = o * n * inner + i;
            select_best(in, base, inner, n, heap, k, attr_i[1] ? UINT64_MAX : 0);
            for (int64_t j = 0; j < k; j++) {
                const int64_t to = (o * k + j) * inner + i;
                const int64_t from = base + heap[j].index * inner;
                memcpy(values + (size_t)to * bytes, x + (size_t)from * bytes, bytes);
                if (indices)
                    indices[to] = heap[j].index;
            }
        }
    for (int t = 0; t < nout; t++) {
        out[t].rank = in->rank;
        for (int d = 0; d < in->rank; d++)
            out[t].dims[d] = d == axis ? k : in->dims[d];
    }
    return IGRT_OK;
}
