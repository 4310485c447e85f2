/* vec_turns.h - vectors that are stored in turn: igrt_store2_*() and igrt_store4_*(), with what
 * lies before and behind left alone. Included by vec_test.c. */
#ifndef VEC_TURNS_H
#define VEC_TURNS_H

#define PAIR(T, E, N)                                                                  \
    {                                                                                  \
        E a[N], b[N], to[2 * N + 2];                                                   \
        for (int i = 0; i < N; i++) {                                                  \
            a[i] = (E)(2 * i);                                                         \
            b[i] = (E)(2 * i + 1);                                                     \
        }                                                                              \
        to[0] = to[2 * N + 1] = (E)-1;                                                 \
        igrt_store2_##T##x##N(to + 1, igrt_load_##T##x##N(a), igrt_load_##T##x##N(b)); \
        for (int i = 0; i < 2 * N; i++)                                                \
            assert_true(to[i + 1] == (E)i);                                            \
        assert_true(to[0] == (E)-1 && to[2 * N + 1] == (E)-1);                         \
    }

#define SAME(x) (x)
#define FOUR(E, R, N, LOAD, STORE, AS)                                 \
    {                                                                  \
        R v[4][N];                                                     \
        E to[4 * N + 2];                                               \
        for (int i = 0; i < 4 * N; i++)                                \
            v[i % 4][i / 4] = (R)i;                                    \
        to[0] = to[4 * N + 1] = (E)-1;                                 \
        STORE(to + 1, LOAD(v[0]), LOAD(v[1]), LOAD(v[2]), LOAD(v[3])); \
        for (int i = 0; i < 4 * N; i++)                                \
            assert_true(to[i + 1] == (E)AS((R)i));                     \
        assert_true(to[0] == (E)-1 && to[4 * N + 1] == (E)-1);         \
    }
#define FOURS(N)                                                            \
    FOUR(float, float, N, igrt_load_f32x##N, igrt_store4_f32x##N, SAME)     \
    FOUR(int32_t, int32_t, N, igrt_load_i32x##N, igrt_store4_i32x##N, SAME) \
    FOUR(uint16_t, float, N, igrt_load_f32x##N, igrt_store4_bf16_f32x##N, igrt_f32_to_bf16)

static void pairs(void **state)
{
    (void)state;
    PAIR(f32, float, 4)
    PAIR(f32, float, 8)
    PAIR(f32, float, 16)
    PAIR(i32, int32_t, 4)
    PAIR(i32, int32_t, 8)
    PAIR(i32, int32_t, 16)
}

static void fours(void **state)
{
    (void)state;
    FOURS(4)
    FOURS(8)
    FOURS(16)
}

#endif
