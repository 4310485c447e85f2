/* stages.c - steps of a GPU that do not need each other stand side by side.
 *
 *     q  turn q  k  turn k  scores          q k | turn q, turn k | scores
 *
 * A kernel begins beside the one before it unless it reads what that one writes (settled.c).  A
 * stage is a list of kernels of which none reads what another writes: what counts is how many
 * stages there are, each of which waits for the one before.  A kernel comes to the end of an
 * earlier stage where that makes fewer of them and the arena no larger.
 *
 * Leaves the order of the main steps. Requires the final sizes of all buffers, and no step numbers
 * yet. */
#include "plan.h"

enum { HORIZON = 16 }; /* steps that a kernel may come forward */

static bool is_kernel(const Block *b, int i)
{
    return b->step[i]->kind == STEP_KERNEL && !b->step[i]->kernel->serial;
}

/* Of the steps from `first`, which begins a stage, up to `end`. */
static int count_stages(const Block *b, int first, int end)
{
    int n = 1;
    for (int i = first + 1, begin = first; i < end; i++) {
        bool waits = !is_kernel(b, i);
        for (int j = begin; j < i && !waits; j++)
            waits = !is_kernel(b, j) || steps_conflict(b->step[i], b->step[j]);
        n += waits;
        begin = waits ? i : begin;
    }
    return n;
}

static void come_forward(Block *b, int from, int to)
{
    Step *s = b->step[from];
    for (int i = from; i > to; i--)
        b->step[i] = b->step[i - 1];
    b->step[to] = s;
}

static void go_back(Block *b, int from, int to)
{
    Step *s = b->step[from];
    for (int i = from; i < to; i++)
        b->step[i] = b->step[i + 1];
    b->step[to] = s;
}

static double peak_bytes(const Plan *p, const Block *b)
{
    Arena *a = arena_new();
    const Lives l = lives_of(a, p, b);
    double peak = 0;
    for (int i = 0; i < l.n; i++)
        peak = l.bytes[i] > peak ? l.bytes[i] : peak;
    arena_free(a);
    return peak;
}

/* Of the steps behind the stage [first, at) one that belongs to it. */
static bool extend_stage(const Plan *p, Block *b, int first, int at, double *peak)
{
    for (int j = at + 1; j < b->n && j < at + HORIZON && is_kernel(b, j); j++) {
        bool good = is_kernel(b, at);
        for (int i = first; i < j && good; i++)
            good = !steps_conflict(b->step[j], b->step[i]);
        if (!good)
            continue;
        const int end = j + HORIZON < b->n ? j + HORIZON : b->n, was = count_stages(b, first, end);
        come_forward(b, j, at);
        const double then = count_stages(b, first, end) < was ? peak_bytes(p, b) : *peak + 1;
        if (then <= *peak) {
            *peak = then;
            return true;
        }
        go_back(b, at, j);
    }
    return false;
}

void order_in_stages(Plan *p)
{
    Block *b = &p->main;
    double peak = peak_bytes(p, b);
    for (int i = 1, first = 0; i < b->n; i++) {
        bool waits = !is_kernel(b, i) || !is_kernel(b, first);
        for (int j = first; j < i && !waits; j++)
            waits = steps_conflict(b->step[i], b->step[j]);
        if (waits && is_kernel(b, first) && is_kernel(b, i) && extend_stage(p, b, first, i, &peak))
            waits = false;
        first = waits ? i : first;
    }
}
