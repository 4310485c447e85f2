/*
 * unique.c - the different elements, or slices along an axis (ONNX Unique).
 *
 *   in      0: x, any type but complex
 *   out     0: the unique elements, dims[axis] is the bound n on entry (flattened: dims[0])
 *           1: i64 [n], index of the first occurrence of each
 *           2: i64 [m], for each of the m elements or slices of x the place of its like in out[0]
 *           3: i64 [n], how often each occurs
 *           outputs past the first may be left out, or have data NULL
 *   attr_i  0: axis, 0 <= axis < rank, or -1: x is flattened first
 *           1: 1 sorted ascending (slices lexicographically), 0 in the order of first occurrence
 *   scratch IGRT_UNIQUE_SCRATCH(m)
 *   counts  0: n
 *
 * Every NaN is one value, above all others; -0 equals 0. Strings compare by their bytes.
 */
#include "igrt_lib.h"

/* x seen as [outer, m, inner]. */
typedef struct Slices {
    const igrt_tensor *x;
    int64_t outer, m, inner;
} Slices;

static int compare_elements(const igrt_tensor *x, int64_t a, int64_t b)
{
    if (x->dtype == IGRT_STRING) {
        const char *const *s = x->data;
        return strcmp(s[a], s[b]);
    }
    const uint64_t ka = igrt_lib_key(x, a), kb = igrt_lib_key(x, b);
    return (ka > kb) - (ka < kb);
}

static int compare_slices(const Slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            const int64_t base = o * s->m * s->inner + i;
            const int c = compare_elements(s->x, base + a * s->inner, base + b * s->inner);
            if (c)
                return c;
        }
    return 0;
}

/* Equal slices in the order of their indices, so that the first of a group is the first
 * occurrence. */
static int after(const Slices *s, int64_t a, int64_t b)
{
    const int c = s ? compare_slices(s, a, b) : 0;
    return c ? c > 0 : a > b;
}

static void sink(const Slices *s, int64_t *heap, int64_t i, int64_t n)
{
    const int64_t item = heap[i];
    for (int level = 0; level < 64; level++) { /* of the heap */
        int64_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && after(s, heap[child + 1], heap[child]))
            child++;
        if (!after(s, heap[child], item))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

/* Heapsort of slice numbers; s NULL sorts the numbers themselves. */
static void sort(const Slices *s, int64_t *list, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        sink(s, list, i, n);
    for (int64_t last = n - 1; last > 0; last--) {
        const int64_t item = list[0];
        list[0] = list[last];
        list[last] = item;
        sink(s, list, 0, last);
    }
}

static void copy_slices(const Slices *s, const int64_t *first, int64_t n, void *y)
{
    const size_t bytes = (size_t)s->inner * igrt_dtype_bytes(s->x->dtype);
    const unsigned char *from = s->x->data;
    unsigned char *to = y;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t u = 0; u < n; u++, to += bytes)
            memcpy(to, from + (size_t)(o * s->m + first[u]) * bytes, bytes);
}

static void set_vector(igrt_tensor *t, int64_t n)
{
    t->rank = 1;
    t->dims[0] = n;
}

IGRT_LIB(unique)
{
    (void)attr_f;
    const int flat = attr_i[0] < 0, axis = flat ? 0 : (int)attr_i[0];
    if (nin != 1 || nout < 1 || nout > 4 || (!flat && axis >= in->rank) || out->dtype != in->dtype)
        return IGRT_ERR_UNSUPPORTED;
    if (!igrt_lib_has_key(in->dtype) && in->dtype != IGRT_STRING)
        return IGRT_ERR_UNSUPPORTED;
    for (int i = 1; i < nout; i++)
        if (out[i].data && out[i].dtype != IGRT_I64)
            return IGRT_ERR_UNSUPPORTED;
    Slices s = {in, 1, igrt_lib_numel(in, 0, in->rank), 1};
    if (!flat) {
        s.outer = igrt_lib_numel(in, 0, axis);
        s.m = in->dims[axis];
        s.inner = igrt_lib_numel(in, axis + 1, in->rank);
    }
    const int64_t m = s.m;
    if (scratch_bytes < IGRT_UNIQUE_SCRATCH(m))
        return IGRT_ERR_SCRATCH;
    int64_t *order = scratch, *first = m ? order + m : order, *group = m ? first + m : first;

    /* group[i]: the first occurrence of slice i's like; first[0..n): all of those */
    int64_t n = 0;
    for (int64_t i = 0; i < m; i++)
        order[i] = i;
    sort(&s, order, m);
    for (int64_t i = 0; i < m; i++) {
        if (i == 0 || compare_slices(&s, order[i - 1], order[i]))
            first[n++] = order[i];
        group[order[i]] = first[n - 1];
    }
    if (n > out->dims[axis])
        return IGRT_ERR_COUNT;
    if (!attr_i[1])
        sort(NULL, first, n);

    copy_slices(&s, first, n, out->data);
    const int rank = flat ? 1 : in->rank;
    out->rank = rank;
    for (int d = 0; d < rank; d++)
        out->dims[d] = d == axis ? n : in->dims[d];
    for (int64_t u = 0; u < n; u++) /* order[] now: place of each first occurrence */
        order[first[u]] = u;
    int64_t *indices = nout > 1 ? out[1].data : NULL, *inverse = nout > 2 ? out[2].data : NULL;
    int64_t *times = nout > 3 ? out[3].data : NULL;
    for (int64_t u = 0; u < n; u++) {
        if (indices)
            indices[u] = first[u];
        if (times)
            times[u] = 0;
    }
    for (int64_t i = 0; i < m; i++) {
        if (inverse)
            inverse[i] = order[group[i]];
        if (times)
            times[order[group[i]]]++;
    }
    if (nout > 1)
        set_vector(&out[1], n);
    if (nout > 2)
        set_vector(&out[2], m);
    if (nout > 3)
        set_vector(&out[3], n);
    counts[0] = n;
    return IGRT_OK;
}
