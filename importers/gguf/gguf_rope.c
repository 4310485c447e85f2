/*
 * gguf_rope.c - the angles by which rope turns pairs of elements at each position.
 *
 *     angle[p, i] = p base^(-2 i / turned) / factor[i]
 *
 * (Su et al., arXiv:2104.09864.) For contexts longer than those that a model was trained for,
 * angles are divided: all by one number (linear), by a tensor of the file (Llama 3, longrope), or
 * those that turn slowly more than those that turn fast (YaRN, Peng et al., arXiv:2309.00071). They
 * are computed here, in double, for as many positions as there are.
 */
#include <math.h>
#include <string.h>

#include "gguf_model.h"

/* The index i at which an angle turns so often within the original context. */
static double index_of_turns(const RopeFacts *r, double base, double turns)
{
    return (double)r->turned * log(r->original / (turns * 2 * 3.14159265358979323846)) /
           (2 * log(base));
}

/* How much of an angle is as it was (1), the rest divided by the factor. */
static double unscaled(const RopeFacts *r, double base, int64_t i)
{
    const double low = fmax(floor(index_of_turns(r, base, r->beta_fast)), 0);
    const double high = fmin(ceil(index_of_turns(r, base, r->beta_slow)), (double)r->turned - 1);
    const double y = ((double)i - low) / fmax(0.001, high - low);
    return (1 - fmin(1, fmax(0, y))) * r->extrapolated;
}

/* Of each pair: the angle of position 1. */
static double speed(const RopeFacts *r, bool in_window, int64_t i, const float *divisor)
{
    const double base = in_window ? r->window_base : r->base;
    double angle = pow(base, -2 * (double)i / (double)r->turned);
    if (divisor)
        angle /= (double)divisor[i];
    if (in_window && !r->window_scaled) /* such windows are as they were trained */
        return angle;
    if (r->scaling == ROPE_LINEAR || r->scaling == ROPE_LONG)
        return angle / r->factor;
    if (r->scaling != ROPE_YARN)
        return angle;
    const double mix = unscaled(r, base, i);
    return angle / r->factor * (1 - mix) + angle * mix;
}

static double strength(const RopeFacts *r, bool in_window)
{
    const double of_yarn = r->scaling == ROPE_YARN && r->extrapolated != 0 && r->factor > 1 &&
                                   (!in_window || r->window_scaled)
                               ? 1 + 0.1 * log(r->factor)
                               : 1;
    return r->strength * of_yarn;
}

/* The file's divisors for a context of so many positions; NULL: there are none. */
static const ingot_gguf_tensor *divisors(const GgufModel *m, int64_t positions)
{
    if (m->of[ROPE_FREQS])
        return m->of[ROPE_FREQS];
    return m
        ->of[(double)positions > m->facts.rope.original ? ROPE_LONG_FACTORS : ROPE_SHORT_FACTORS];
}

void gguf_rope_tables(GgufModel *m, int64_t positions, bool in_window, ingot_tensor *angle[2])
{
    const RopeFacts *r = &m->facts.rope;
    const int64_t half = r->turned / 2, dims[2] = {positions, half};
    const ingot_gguf_tensor *t = divisors(m, positions);
    const size_t bytes = (size_t)(positions * half) * sizeof(float);
    float *table[2] = {ingot_alloc(m->c, bytes), ingot_alloc(m->c, bytes)};
    float *divisor = t ? ingot_alloc(m->c, (size_t)half * sizeof *divisor) : NULL;
    if (t && !ingot_const_data(m->c, gguf_weight(m, t), divisor, (size_t)half * sizeof *divisor))
        divisor = NULL;
    for (int64_t i = 0; i < half; i++) {
        const double step = speed(r, in_window, i, divisor), size = strength(r, in_window);
        for (int64_t p = 0; p < positions; p++) {
            table[0][p * half + i] = (float)(size * cos((double)p * step));
            table[1][p * half + i] = (float)(size * sin((double)p * step));
        }
    }
    for (int i = 0; i < 2; i++)
        angle[i] = ingot_data(m->c, i ? "sines" : "cosines", INGOT_F32, 2, dims, table[i]);
}
