/* vec_digits.h - products of a digit and a byte with a sign, of which as many pairs are added in
 * i16 as fit: the same as one dot after the other. The largest that there are come first. */
#ifndef VEC_DIGITS_H
#define VEC_DIGITS_H

static uint32_t next(void);

#define DIGITS_OF(N, COUNT)                                                                        \
    {                                                                                              \
        igrt_i32x##N sum = igrt_splat_i32x##N(7), dots = sum, p = sum;                             \
        igrt_i32x##N turned = sum;                                                                 \
        for (int i = 0; i < (COUNT); i++) {                                                        \
            const igrt_i32x##N a = igrt_load_i8x4_i32x##N(x[i]), b = igrt_load_u8x4_i32x##N(w[i]); \
            dots = igrt_dot_i8_u7_i32x##N(a, b, dots);                                             \
            p = i ? igrt_pairs_more_i8_u7_i32x##N(a, b, p) : igrt_pairs_i8_u7_i32x##N(a, b);       \
            turned =                                                                               \
                i ? igrt_pairs_more_u7_i8_i32x##N(b, a, turned) : igrt_pairs_u7_i8_i32x##N(b, a);  \
        }                                                                                          \
        p = igrt_pairs_sum_i32x##N(p, sum);                                                        \
        turned = igrt_pairs_sum_i32x##N(turned, sum);                                              \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(p[i] == dots[i] && turned[i] == dots[i]);                                  \
    }

static void digit_pairs(void **state)
{
    static const struct {
        int bits, count;
    } most[] = {{15, 8}, {31, 4}, {63, 2}};
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int n = 0; n < 200; n++) {
            int8_t x[8][64];
            uint8_t w[8][64];
            for (int i = 0; i < 512; i++) {
                x[i / 64][i % 64] = n ? (int8_t)next() : -128;
                w[i / 64][i % 64] = (uint8_t)(n ? (int)next() & most[k].bits : most[k].bits);
            }
            DIGITS_OF(4, most[k].count)
            DIGITS_OF(8, most[k].count)
            DIGITS_OF(16, most[k].count)
        }
}

#endif
