/* cost_access.c - how many bytes the places of an access are, each counted once. */
#include <math.h>
#include <stdlib.h>

#include "cost_access.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of places in equal runs, equally far from each other: how many one has. Of others all are one. */
static void find_runs(LoopAccess *x)
{
    const int n = (int)x->copies;
    int run = 1;
    while (run < n && x->at[run] - x->at[run - 1] == x->apart)
        run++;
    x->run = n;
    x->runs_apart = 0;
    if (run == n || n % run)
        return;
    const double step = x->at[run] - x->at[0];
    for (int i = run; i < n; i++)
        if (x->at[i] - x->at[i - run] != step)
            return;
    x->run = run;
    x->runs_apart = step;
}

void access_add_places(Arena *a, LoopAccess *x, int n, const double *place, double stride,
                       int trips)
{
    const int had = (int)x->copies, all = had + n * trips;
    double *at = NEWN(a, double, all);
    for (int i = 0; i < had; i++)
        at[i] = x->at[i];
    for (int k = 0; k < trips; k++)
        for (int i = 0; i < n; i++)
            at[had + k * n + i] = place[i] + k * stride;
    qsort(at, (size_t)all, sizeof *at, ascending);
    int kept = 0;
    x->apart = 0;
    for (int i = 0; i < all; i++) {
        const double gap = kept ? at[i] - at[kept - 1] : 0;
        if (kept && gap <= 0)
            continue;
        x->apart = kept && (x->apart <= 0 || gap < x->apart) ? gap : x->apart;
        at[kept++] = at[i];
    }
    x->at = at;
    x->copies = kept;
    find_runs(x);
}

/* n places that lie a step apart, each followed by `trips` - 1 others that lie `stride` apart: how
 * many there are. */
static double slide(double n, double *step, double trips, double stride)
{
    if (stride <= 0 || trips <= 1)
        return n;
    if (stride == JUMPS || *step == JUMPS)
        return n * trips;
    if (n <= 1 || *step <= 0) {
        *step = stride;
        return n * trips;
    }
    const double ratio = stride > *step ? stride / *step : *step / stride;
    const bool apart = stride > *step,
               slides = ratio == floor(ratio) && ratio <= (apart ? n : trips);
    *step = apart ? *step : stride;
    if (!slides)
        return n * trips;
    return apart ? n + ratio * (trips - 1) : trips + ratio * (n - 1);
}

typedef struct {
    double step, n;
} StrideCount;

/* The shortest steps first. */
static void add_walk(StrideCount *w, int *n, double step, double count)
{
    if (step <= 0 || count <= 1)
        return;
    int at = (*n)++;
    for (; at > 0 && w[at - 1].step > step; at--)
        w[at] = w[at - 1];
    w[at] = (StrideCount){step, count};
}

/* Does a loop move its runs by less than one is long?  Places of such windows rank better as if all
 * were one run. */
static bool slides_along(const LoopAccess *x, int d)
{
    bool slides = false;
    for (int i = d; i < x->depth; i++)
        slides |= x->stride[i] != 0 && fabs(x->stride[i]) < x->run * x->apart;
    return slides;
}

double access_footprint(const LoopAccess *x, int d, const double *trips, double line)
{
    StrideCount w[MAX_DEPTH + 3];
    int n = 0, first = 0;
    const double together = slides_along(x, d) ? x->copies : x->run;
    add_walk(w, &n, x->apart, together);
    add_walk(w, &n, x->runs_apart, x->copies / together);
    add_walk(w, &n, x->lanes > 1 ? x->lane_step : 0, x->lanes);
    for (int i = d; i < x->depth; i++)
        add_walk(w, &n, fabs(x->stride[i]), trips[i]);
    double run = x->bytes, bytes; /* without a gap of a line */
    for (; first < n && w[first].step <= fmax(run, line); first++)
        run += (w[first].n - 1) * w[first].step;
    bytes = fmax(run, line);
    for (int i = first; i < n; i++) {
        double step = w[i].step, places = w[i].n;
        while (i + 1 < n && step != JUMPS && floor(w[i + 1].step / step) * step == w[i + 1].step &&
               w[i + 1].step / step <= places)
            places = slide(places, &step, w[i + 1].n, w[i + 1].step), i++;
        bytes *= places;
    }
    return bytes;
}
