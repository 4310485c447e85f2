/* drawn.h - weights and data that look random, the same in each program that draws them in the same
 * order. */
#ifndef DRAWN_H
#define DRAWN_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static uint32_t noise_state = 7;

static double noise(void)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return (double)(int32_t)noise_state / 2147483648.0;
}

/* What a weight begins as: norms near 1, others by the number of their inputs. */
static void draw_weight(const char *name, int rank, const int64_t *dims, float *w)
{
    double in = rank == 2 ? (double)dims[0] : 1;
    size_t n = 1;
    for (int a = 0; a < rank; a++) {
        n *= (size_t)dims[a];
        in *= rank > 2 && a ? (double)dims[a] : 1;
    }
    const double size =
        strstr(name, "words") || strstr(name, "places") || rank == 1 ? 0.02 : sqrt(3 / in);
    for (size_t k = 0; k < n; k++)
        w[k] = (float)((strstr(name, "scale") != NULL) + size * noise());
}

#endif
