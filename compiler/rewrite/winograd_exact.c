/* winograd_exact.c - convolutions of integers in fewer products (winograd.c), without rounding.
 *
 * The matrices of F(m, 3) have fractions. Here B, G and A are integers, and a result of a window
 * comes out `scale` times as large:
 *
 *     scale y[m t + e] = sum over a of A[e,a] * ( sum over c of (B x)[a] * (G w)[a] )
 *
 * The transforms of bytes are numbers of 16 bits, pairs of which are multiplied and added to an
 * i32. Those sums may wrap, for all is modulo 2^32. There scale = 2^s * odd, and odd has an
 * inverse: times that, 2^s y is left, which is y shifted, as long as it is less than 2^31. The
 * weights are known, so that the largest sum which x may give is known too.
 *
 *     F(4, 3) along two axes: scale 576 = 9 * 64, and 9 * 954437177 = 1 modulo 2^32 */
#include <limits.h>
#include <math.h>

#include "eval.h"
#include "winograd.h"

#define EXACT_TILE_OF_2                                                        \
    TILE_OF_2, .scale = 2, .g = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}}, \
               .a = {{1, 1, 1, 0}, {0, 1, -1, -1}}
const WinogradForm exact2 = {EXACT_TILE_OF_2, .windows = 2},
                   exact2x1 = {EXACT_TILE_OF_2, .windows = 1};
const WinogradForm exact4 = {
    TILE_OF_4, .windows = 2, .scale = 4 * 6, /* denominators of the points 0, 1 and 2 */
    .g = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 2 * 6}},
    .a = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 2}}};

/* The largest size of a transform, by that of what is transformed along one axis. */
static double growth(int rows, int columns, const double *m, int pitch)
{
    double most = 0;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int j = 0; j < columns; j++)
            sum += fabs(m[i * pitch + j]);
        most = fmax(most, sum);
    }
    return most;
}

static int64_t scale_of(const ProductAxes *s, const WinogradForm *f)
{
    int64_t scale = 1;
    for (int i = 0; i < transformed_windows(s, f); i++)
        scale *= f->scale;
    return scale;
}

/* How many times 2 divides it. */
static int shift_of(int64_t scale)
{
    int shift = 0;
    while ((scale >> shift) % 2 == 0)
        shift++;
    return shift;
}

/* The largest size of a sum of products of x within these bounds: of weights above and below 0. */
static double largest_sum(Context *c, const ProductAxes *s, double lo, double hi)
{
    unsigned axes = 0;
    for (int i = 0; i < s->n[SUM]; i++)
        axes |= 1u << s->axis[SUM][i];
    for (int i = 0; i < s->n[TAP]; i++)
        axes |= 1u << s->axis[TAP][i];
    Interp *ip = interp_new(c);
    Node *part[2] = {ingot_max_c(c, s->w, 0), ingot_min_c(c, s->w, 0)};
    const int32_t *sum[2];
    int64_t dims[INGOT_MAX_RANK], n = 1;
    for (int side = 0; side < 2; side++)
        sum[side] =
            interp_eval(ip, ingot_reduce(c, INGOT_REDUCE_ADD, part[side], axes, true), dims);
    double most = sum[0] && sum[1] ? 0 : INFINITY;
    for (int i = 0; i < s->w->rank; i++)
        n *= dims[i];
    for (int64_t i = 0; i < n && most < INFINITY; i++)
        most = fmax(most, fmax(fabs(sum[0][i] * hi + sum[1][i] * lo),
                               fabs(sum[0][i] * lo + sum[1][i] * hi)));
    interp_free(ip);
    return most;
}

bool is_exact(Context *c, const ProductAxes *s, const WinogradForm *f)
{
    double lo, hi, least, most, x = 1, w = 1;
    if (!value_range(s->x, &lo, &hi) || !value_range(s->w, &least, &most))
        return false;
    for (int i = 0; i < transformed_windows(s, f); i++) {
        x *= growth(f->points, f->points, f->b[0], MAX_POINTS);
        w *= growth(f->points, TAPS, f->g[0], TAPS);
    }
    if (x * fmax(-lo, hi) > INT16_MAX || w * fmax(-least, most) > INT16_MAX)
        return false;
    if (*s->largest < 0)
        *s->largest = largest_sum(c, s, lo, hi);
    return ldexp(*s->largest, shift_of(scale_of(s, f))) <= INT32_MAX;
}

Node *as_pairs(Context *c, Node *x)
{
    return ingot_cast(c, ingot_contiguous(c, ingot_cast(c, x, INGOT_I16)), INGOT_I32);
}

Node *unscaled(Context *c, const ProductAxes *s, const WinogradForm *f, Node *y)
{
    enum { RIGHT = 3 }; /* bits of the inverse that an odd number itself has right */
    const int64_t scale = scale_of(s, f);
    const int shift = shift_of(scale);
    const uint32_t odd = (uint32_t)(scale >> shift);
    uint32_t inverse = odd;
    for (size_t bits = RIGHT; bits < CHAR_BIT * sizeof odd; bits *= 2) /* each step doubles these */
        inverse *= 2 - odd * inverse;
    if (odd != 1)
        y = ingot_mul_c(c, y, (int32_t)inverse);
    return shift ? ingot_shrr(c, y, ingot_like(c, y, shift)) : y;
}
