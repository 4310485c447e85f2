/*
 * lsh_projection.c - bits of a locality-sensitive hash (TensorFlow Lite's LSH_PROJECTION).
 *
 *   in      0: f32 [hashes, bits], a seed for each bit
 *           1: x [n, ..], any type but strings: n items, of which the bytes count
 *           2: f32 [n], weights; without it: ones
 *   out     0: i32 [hashes]: the bits of a hash, the first highest, plus its number times 2^bits;
 *              dense: [hashes * bits], a bit each
 *   attr_i  0: dense
 *
 * A bit is 1 if the sum of weight * fingerprint(seed, item), in f64, is above 0. The fingerprint of
 * these bytes one after the other, a signed integer of 64 bits, is FarmHash's (Google, MIT
 * licence).
 */
#include "igrt_lib.h"

#define LSH_K0 UINT64_C(0xc3a5c85c97cb3127)
#define LSH_K1 UINT64_C(0xb492b66fbe98f273)
#define LSH_K2 UINT64_C(0x9ae16a3b2f90404f)

/* The bytes of a seed, then those of an item. */
typedef struct LshKey {
    const uint8_t *seed, *item;
    uint64_t len;
} LshKey;

static uint64_t fetch(const LshKey *k, uint64_t at, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        const uint64_t b = at + (uint64_t)i;
        v = v << 8 | (b < 4 ? k->seed[b] : k->item[b - 4]);
    }
    return v;
}

static uint64_t word(const LshKey *k, uint64_t at)
{
    return fetch(k, at, 8);
}

static uint64_t turned(uint64_t v, int by)
{
    return v >> by | v << (64 - by);
}

static uint64_t shift_mix(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t mixed(uint64_t u, uint64_t v, uint64_t mul)
{
    const uint64_t a = shift_mix((u ^ v) * mul);
    return shift_mix((v ^ a) * mul) * mul;
}

/* of 4 to 16 bytes: a key has a seed at least */
static uint64_t short_key(const LshKey *k)
{
    const uint64_t mul = LSH_K2 + k->len * 2;
    if (k->len < 8)
        return mixed(k->len + (fetch(k, 0, 4) << 3), fetch(k, k->len - 4, 4), mul);
    const uint64_t a = word(k, 0) + LSH_K2, b = word(k, k->len - 8);
    return mixed(turned(b, 37) * mul + a, (turned(a, 25) + b) * mul, mul);
}

/* of 17 to 64 bytes */
static uint64_t middle_key(const LshKey *k)
{
    const uint64_t mul = LSH_K2 + k->len * 2, first = k->len <= 32 ? LSH_K1 : LSH_K2;
    const uint64_t a = word(k, 0) * first, b = word(k, 8), c = word(k, k->len - 8) * mul,
                   d = word(k, k->len - 16) * LSH_K2;
    const uint64_t y = turned(a + b, 43) + turned(c, 30) + d,
                   z = mixed(y, a + turned(b + LSH_K2, 18) + c, mul);
    if (k->len <= 32)
        return z;
    const uint64_t e = word(k, 16) * mul, f = word(k, 24), g = (y + word(k, k->len - 32)) * mul,
                   h = (z + word(k, k->len - 24)) * mul;
    return mixed(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, mul);
}

/* Mixes 32 bytes into two words. */
static void weak(const LshKey *k, uint64_t at, uint64_t a, uint64_t b, uint64_t out[2])
{
    a += word(k, at);
    b = turned(b + a + word(k, at + 24), 21);
    const uint64_t before = a;
    a += word(k, at + 8) + word(k, at + 16);
    out[0] = a + word(k, at + 24);
    out[1] = b + turned(a, 44) + before;
}

typedef struct LshLong {
    uint64_t x, y, z, v[2], w[2];
} LshLong;

/* Mixes 64 bytes in: nine times as much of some in the last round. */
static void long_round(const LshKey *k, uint64_t at, uint64_t mul, uint64_t more, LshLong *s)
{
    const uint64_t x = turned(s->x + s->y + s->v[0] + word(k, at + 8), 37) * mul;
    const uint64_t y = turned(s->y + s->v[1] + word(k, at + 48), 42) * mul;
    s->x = x ^ s->w[1] * more;
    s->y = y + s->v[0] * more + word(k, at + 40);
    s->z = turned(s->z + s->w[0], 33) * mul;
    weak(k, at, s->v[1] * mul, s->x + s->w[0], s->v);
    weak(k, at + 32, s->z + s->w[1], s->y + word(k, at + 16), s->w);
    const uint64_t z = s->z;
    s->z = s->x;
    s->x = z;
}

/* of 65 bytes and more */
static uint64_t long_key(const LshKey *k)
{
    const uint64_t seed = 81, rest = (k->len - 1) & 63, end = k->len - 1 - rest;
    LshLong s = {seed * LSH_K2 + word(k, 0), seed * LSH_K1 + 113, 0, {0, 0}, {0, 0}};
    s.z = shift_mix(s.y * LSH_K2 + 113) * LSH_K2;
    for (uint64_t at = 0; at < end; at += 64)
        long_round(k, at, LSH_K1, 1, &s);
    const uint64_t mul = LSH_K1 + ((s.z & 0xff) << 1);
    s.w[0] += rest;
    s.v[0] += s.w[0];
    s.w[0] += s.v[0];
    long_round(k, k->len - 64, mul, 9, &s);
    return mixed(mixed(s.v[0], s.w[0], mul) + shift_mix(s.y) * LSH_K0 + s.z,
                 mixed(s.v[1], s.w[1], mul) + s.x, mul);
}

static uint64_t fingerprint(const LshKey *k)
{
    return k->len <= 16 ? short_key(k) : k->len <= 64 ? middle_key(k) : long_key(k);
}

IGRT_LIB(lsh_projection)
{
    (void)attr_f, (void)scratch, (void)scratch_bytes, (void)counts;
    if (nin < 2 || nin > 3 || nout != 1 || in[0].dtype != IGRT_F32 || in[0].rank != 2 ||
        in[0].dims[1] > 32 || in[1].rank < 1 || in[1].dtype == IGRT_STRING ||
        out->dtype != IGRT_I32 || (nin == 3 && in[2].dtype != IGRT_F32))
        return IGRT_ERR_UNSUPPORTED;
    const int64_t hashes = in[0].dims[0], bits = in[0].dims[1], n = in[1].dims[0];
    const uint64_t bytes =
        (uint64_t)igrt_lib_numel(&in[1], 1, in[1].rank) * igrt_dtype_bytes(in[1].dtype);
    const uint8_t *seed = in[0].data, *x = in[1].data;
    const float *weight = nin == 3 ? in[2].data : NULL;
    int32_t *y = out->data;
    for (int64_t h = 0; h < hashes; h++) {
        uint32_t all = 0;
        for (int64_t b = 0; b < bits; b++) {
            double score = 0;
            for (int64_t i = 0; i < n; i++) {
                const LshKey key = {seed + 4 * (h * bits + b), x + (uint64_t)i * bytes, 4 + bytes};
                const double value = (double)(int64_t)fingerprint(&key);
                score += weight ? (double)weight[i] * value : value;
            }
            all = all << 1 | (score > 0);
            if (attr_i[0])
                y[h * bits + b] = score > 0;
        }
        if (!attr_i[0])
            y[h] = (int32_t)(all + (bits < 32 ? (uint32_t)h << bits : 0));
    }
    return IGRT_OK;
}
