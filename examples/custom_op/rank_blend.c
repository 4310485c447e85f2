/* rank_blend.c - each row of x in ascending order, weighted: an operator with two inputs and
 * scratch. */
#include <stdint.h>
#include <string.h>

static void sort(float *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const float v = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1] > v; k--)
            a[k] = a[k - 1];
        a[k] = v;
    }
}

/* y[r][k] = (the k-th smallest of x[r]) w[k] + offset
 *
 * out[y] = in[x]
 * scratch = 4*x_dim1 */
int rank_blend(const float *x, const float *w, float *y, int64_t x_dim0, int64_t x_dim1,
               int32_t n_w, float *scratch, int32_t offset)
{
    if (n_w != x_dim1)
        return 1; /* the run fails */
    for (int64_t r = 0; r < x_dim0; r++) {
        memcpy(scratch, x + r * x_dim1, (size_t)x_dim1 * sizeof *scratch);
        sort(scratch, x_dim1);
        for (int64_t k = 0; k < x_dim1; k++)
            y[r * x_dim1 + k] = scratch[k] * w[k] + (float)offset;
    }
    return 0;
}
