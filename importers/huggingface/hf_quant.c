/*
 * hf_quant.c - numbers as blocks of few bits, by the rules of llama.cpp's quantiser: files that it
 * makes of the same numbers have the same bytes (Q4_K: within the rounding of sums).
 *
 *     Q8_0  d = largest / 127          q = round(x / d)
 *     Q4_0  d = largest (signed) / -8  q = x / d + 8, rounded, at most 15
 *     Q4_K  of 8 parts of 32: x = d s q - m l q, with s and l of 6 bits
 */
#include "hf_folder.h"

#include <math.h>
#include <string.h>

#include "igrt_num.h"

uint16_t hf_half(float x)
{
    return igrt_f32_to_f16(x);
}

static void put_half(unsigned char *out, float x)
{
    const uint16_t h = hf_half(x);
    memcpy(out, &h, sizeof h);
}

static void q8_0(const float *x, unsigned char *out)
{
    float most = 0;
    for (int i = 0; i < 32; i++)
        most = fmaxf(most, fabsf(x[i]));
    const float d = most / 127, id = d != 0 ? 1 / d : 0;
    put_half(out, d);
    for (int i = 0; i < 32; i++)
        out[2 + i] = (unsigned char)(int8_t)roundf(x[i] * id);
}

static void q4_0(const float *x, unsigned char *out)
{
    float most = 0, largest = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > most)
            most = fabsf(largest = x[i]);
    const float d = largest / -8, id = d != 0 ? 1 / d : 0;
    unsigned char q[32];
    for (int i = 0; i < 32; i++) {
        const float u = x[i] * id + 8.5f;
        q[i] = (unsigned char)(u < 15 ? u : 15);
    }
    put_half(out, d);
    for (int i = 0; i < 16; i++)
        out[2 + i] = (unsigned char)(q[i] | q[i + 16] << 4);
}

/* ---- Q4_K ------------------------------------------------------------------------------------ */

enum { PART = 32, PARTS = 8, TOP = 15, STEPS = 20 };

static int nearest(float x, int most)
{
    const float r = rintf(x);
    return r < 0 ? 0 : r > (float)most ? most : (int)r;
}

/* scale and low of a part, x = scale q - low, which weigh large numbers more. Scales near the plain
 * one are tried; for each the best line through (q, x) is found, and the one with the least error
 * stays. */
static float fit_part(const float x[PART], float *low)
{
    float w[PART], min = 0, max = x[0], squares = 0, sum_w = 0, sum_x = 0, best = INFINITY;
    for (int i = 0; i < PART; i++)
        squares += x[i] * x[i];
    const float size = sqrtf(squares / PART);
    for (int i = 0; i < PART; i++) {
        w[i] = size + fabsf(x[i]);
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    *low = -min;
    if (!(max > min))
        return 0;
    float scale = (max - min) / TOP;
    const float from = min, span = max - min;
    for (int step = -1; step <= STEPS; step++) {
        const float inverse = (step < 0 ? TOP : TOP - 1 + 0.1f * (float)step) / span;
        float q[PART], sum_q = 0, sum_qq = 0, sum_qx = 0, error = 0, s = span / TOP, m = from;
        for (int i = 0; i < PART; i++) {
            q[i] = (float)nearest(inverse * (x[i] - from), TOP);
            sum_q += w[i] * q[i];
            sum_qq += w[i] * q[i] * q[i];
            sum_qx += w[i] * q[i] * x[i];
        }
        const float det = sum_w * sum_qq - sum_q * sum_q;
        if (step >= 0 && !(det > 0))
            continue;
        if (step >= 0) {
            s = (sum_w * sum_qx - sum_x * sum_q) / det;
            m = (sum_qq * sum_x - sum_q * sum_qx) / det;
            if (m > 0) {
                m = 0;
                s = sum_qx / sum_qq;
            }
        }
        for (int i = 0; i < PART; i++)
            error += w[i] * (s * q[i] + m - x[i]) * (s * q[i] + m - x[i]);
        if (error < best) {
            best = error;
            scale = s;
            *low = -m;
        }
    }
    return scale;
}

/* Six bits each: the first four scales and lows are bytes, whose upper two bits are those of the
 * others. */
static void put_small(unsigned char s[12], int j, int scale, int low)
{
    if (j < 4) {
        s[j] = (unsigned char)scale;
        s[j + 4] = (unsigned char)low;
        return;
    }
    s[j + 4] = (unsigned char)((scale & 15) | (low & 15) << 4);
    s[j - 4] = (unsigned char)(s[j - 4] | scale >> 4 << 6);
    s[j] = (unsigned char)(s[j] | low >> 4 << 6);
}

static void q4_k(const float *x, unsigned char *out)
{
    float scale[PARTS], low[PARTS], most_scale = 0, most_low = 0;
    unsigned char q[PARTS * PART];
    for (int j = 0; j < PARTS; j++) {
        scale[j] = fit_part(x + j * PART, &low[j]);
        most_scale = fmaxf(most_scale, scale[j]);
        most_low = fmaxf(most_low, low[j]);
    }
    memset(out, 0, 144);
    put_half(out, most_scale / 63);
    put_half(out + 2, most_low / 63);
    const float d = igrt_f16_to_f32(hf_half(most_scale / 63)),
                m = igrt_f16_to_f32(hf_half(most_low / 63));
    for (int j = 0; j < PARTS; j++) {
        const int s = most_scale > 0 ? nearest(63 / most_scale * scale[j], 63) : 0,
                  l = most_low > 0 ? nearest(63 / most_low * low[j], 63) : 0;
        put_small(out + 4, j, s, l);
        for (int i = 0; i < PART; i++) {
            const float step = d * (float)s, moved = x[j * PART + i] + m * (float)l;
            q[j * PART + i] = (unsigned char)(step > 0 ? nearest(moved / step, TOP) : 0);
        }
    }
    for (int j = 0; j < PARTS; j += 2)
        for (int i = 0; i < PART; i++)
            out[16 + j / 2 * PART + i] =
                (unsigned char)(q[j * PART + i] | q[(j + 1) * PART + i] << 4);
}

/* ---- all types ------------------------------------------------------------------------------- */

void hf_quantise(ingot_gguf_type type, const float *x, size_t n, unsigned char *out)
{
    unsigned block = 1, bytes = 1;
    ingot_gguf_type_name(type, &block, &bytes);
    for (; n; n -= block, x += block, out += bytes)
        switch (type) {
        case INGOT_GGUF_Q8_0: q8_0(x, out); break;
        case INGOT_GGUF_Q4_0: q4_0(x, out); break;
        case INGOT_GGUF_Q4_K: q4_k(x, out); break;
        case INGOT_GGUF_F16: put_half(out, *x); break;
        case INGOT_GGUF_BF16: {
            const uint16_t b = igrt_f32_to_bf16(*x);
            memcpy(out, &b, sizeof b);
            break;
        }
        default: memcpy(out, x, sizeof *x); break;
        }
}
