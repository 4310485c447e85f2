/*
 * lib_test.c - the library kernels against brute force and worked examples, and the checks of
 * igrt.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "igrt_lib.h"
#include "igrt_pool.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, 0})

static igrt_tensor tensor(igrt_dtype dtype, void *data, int rank, const int64_t *dims)
{
    igrt_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        t.dims[d] = dims[d];
    return t;
}

static uint32_t seed = 1;

static uint32_t random_u32(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* ---- nonzero, compress, readint ---------------------------------------------------------- */

static void nonzero(void **state)
{
    (void)state;
    float x[6] = {1, 0, NAN, -0.0f, 0, -3};
    int64_t y[12], counts[1];
    igrt_tensor in = tensor(IGRT_F32, x, 2, DIMS(2, 3)), out = tensor(IGRT_I64, y, 2, DIMS(2, 6));
    assert_int_equal(igrt_lib_nonzero(&in, 1, &out, 1, NULL, NULL, NULL, 0, counts), IGRT_OK);
    const int64_t wants[6] = {0, 0, 1, 0, 2, 2};
    assert_true(counts[0] == 3 && out.dims[0] == 2 && out.dims[1] == 3);
    assert_memory_equal(y, wants, sizeof wants);

    out.dims[1] = 2;
    assert_int_equal(igrt_lib_nonzero(&in, 1, &out, 1, NULL, NULL, NULL, 0, counts),
                     IGRT_ERR_COUNT);

    uint8_t codes[4] = {0x80, 0, 1, 0x80};
    igrt_tensor f8 = tensor(IGRT_F8E4M3FNUZ, codes, 1, DIMS(4));
    out = tensor(IGRT_I64, y, 2, DIMS(1, 4));
    assert_int_equal(igrt_lib_nonzero(&f8, 1, &out, 1, NULL, NULL, NULL, 0, counts), IGRT_OK);
    assert_int_equal(counts[0], 3);
    f8.dtype = IGRT_F8E4M3FN;
    out.dims[1] = 4;
    assert_int_equal(igrt_lib_nonzero(&f8, 1, &out, 1, NULL, NULL, NULL, 0, counts), IGRT_OK);
    assert_int_equal(counts[0], 1);

    igrt_tensor scalar = tensor(IGRT_F32, x, 0, DIMS(0));
    out = tensor(IGRT_I64, y, 2, DIMS(0, 1));
    assert_int_equal(igrt_lib_nonzero(&scalar, 1, &out, 1, NULL, NULL, NULL, 0, counts), IGRT_OK);
    assert_true(counts[0] == 1 && out.dims[0] == 0);

    float complex_numbers[6] = {0, 0, 0, 1, -0.0f, -0.0f};
    igrt_tensor c = tensor(IGRT_C64, complex_numbers, 1, DIMS(3));
    out = tensor(IGRT_I64, y, 2, DIMS(1, 3));
    assert_int_equal(igrt_lib_nonzero(&c, 1, &out, 1, NULL, NULL, NULL, 0, counts), IGRT_OK);
    assert_true(counts[0] == 1 && y[0] == 1);
}

static void compress(void **state)
{
    (void)state;
    int16_t x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    uint8_t take[6] = {0, 1, 1, 0, 0, 1};
    int64_t counts[1], axis[1] = {0};
    igrt_tensor in[2] = {tensor(IGRT_I16, x, 2, DIMS(3, 2)), tensor(IGRT_BOOL, take, 1, DIMS(3))};
    igrt_tensor out = tensor(IGRT_I16, y, 2, DIMS(3, 2));
    assert_int_equal(igrt_lib_compress(in, 2, &out, 1, axis, NULL, NULL, 0, counts), IGRT_OK);
    assert_true(counts[0] == 2 && out.dims[0] == 2 && out.dims[1] == 2);
    assert_memory_equal(y, ((int16_t[]){3, 4, 5, 6}), 8);

    axis[0] = 1;
    in[1].dims[0] = 2;
    out = tensor(IGRT_I16, y, 2, DIMS(3, 1));
    assert_int_equal(igrt_lib_compress(in, 2, &out, 1, axis, NULL, NULL, 0, counts), IGRT_OK);
    assert_memory_equal(y, ((int16_t[]){2, 4, 6}), 6);

    axis[0] = -1;
    in[1].dims[0] = 6;
    out = tensor(IGRT_I16, y, 1, DIMS(6));
    assert_int_equal(igrt_lib_compress(in, 2, &out, 1, axis, NULL, NULL, 0, counts), IGRT_OK);
    assert_memory_equal(y, ((int16_t[]){2, 3, 6}), 6);
    out.dims[0] = 2;
    assert_int_equal(igrt_lib_compress(in, 2, &out, 1, axis, NULL, NULL, 0, counts),
                     IGRT_ERR_COUNT);
}

static void readint(void **state)
{
    (void)state;
    int32_t x[2] = {5, -1};
    const int64_t attr[5] = {0, 1, 8, -1, 3}, bind[5] = {1, 4, 4, -1, -1};
    int64_t counts[2];
    igrt_tensor in = tensor(IGRT_I32, x, 1, DIMS(2));
    assert_int_equal(igrt_lib_readint(&in, 1, NULL, 0, attr, NULL, NULL, 0, counts), IGRT_OK);
    assert_true(counts[0] == 5 && counts[1] == -1);
    assert_int_equal(igrt_lib_readint(&in, 1, NULL, 0, bind, NULL, NULL, 0, counts), IGRT_ERR_BIND);
    x[0] = 9;
    assert_int_equal(igrt_lib_readint(&in, 1, NULL, 0, attr, NULL, NULL, 0, counts),
                     IGRT_ERR_COUNT);
    in.dtype = IGRT_F32;
    assert_int_equal(igrt_lib_readint(&in, 1, NULL, 0, attr, NULL, NULL, 0, counts),
                     IGRT_ERR_UNSUPPORTED);
}

/* ---- topk -------------------------------------------------------------------------------- */

/* a before b in the output, by the contract. */
static int before(float a, int ia, float b, int ib, int largest)
{
    if (a != a || b != b) {
        if (a != a && b != b)
            return ia < ib;
        return largest ? a != a : b != b;
    }
    if (a == b)
        return ia < ib;
    return largest ? a > b : a < b;
}

static void topk(void **state)
{
    (void)state;
    enum { OUTER = 2, N = 9, INNER = 3 };
    static const float pool[] = {1, 2, 3, -1, 0.0f, -0.0f, NAN, INFINITY, -INFINITY};
    float x[OUTER * N * INNER], values[OUTER * N * INNER];
    int64_t indices[OUTER * N * INNER], scratch[N * 2], counts[1] = {-7};
    for (int round = 0; round < 300; round++) {
        const int k = (int)(random_u32() % (N + 1)), largest = round & 1;
        for (int i = 0; i < OUTER * N * INNER; i++)
            x[i] = pool[random_u32() % 9];
        const int64_t attr[2] = {1, largest};
        igrt_tensor in = tensor(IGRT_F32, x, 3, DIMS(OUTER, N, INNER));
        igrt_tensor out[2] = {tensor(IGRT_F32, values, 3, DIMS(OUTER, k, INNER)),
                              tensor(IGRT_I64, indices, 3, DIMS(OUTER, k, INNER))};
        assert_int_equal(igrt_lib_topk(&in, 1, out, 2, attr, NULL, scratch, sizeof scratch, counts),
                         IGRT_OK);
        assert_true(counts[0] == -7);
        for (int o = 0; o < OUTER; o++)
            for (int i = 0; i < INNER; i++)
                for (int e = 0; e < N; e++) { /* the place of e is how many come before it */
                    const float *row = x + o * N * INNER + i;
                    int place = 0;
                    for (int f = 0; f < N; f++)
                        place += f != e && before(row[f * INNER], f, row[e * INNER], e, largest);
                    if (place >= k)
                        continue;
                    const int at = (o * k + place) * INNER + i;
                    assert_true(indices[at] == e);
                    assert_memory_equal(&values[at], &row[e * INNER], 4);
                }
    }
}

static void topk_types(void **state)
{
    (void)state;
    int64_t scratch[8], k[1] = {2}, counts[1], attr[2] = {0, 1};
    int8_t a[4] = {-128, 127, -1, 0}, va[2];
    uint64_t b[4] = {1, UINT64_MAX, 2, UINT64_MAX - 1}, vb[2];
    uint16_t h[4] = {0x3c00, 0xbc00, 0x7e00, 0x4000}, vh[2];
    igrt_tensor in[2] = {tensor(IGRT_I8, a, 1, DIMS(4)), tensor(IGRT_I64, k, 0, DIMS(0))};
    igrt_tensor out = tensor(IGRT_I8, va, 1, DIMS(2));
    assert_int_equal(igrt_lib_topk(in, 2, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_true(va[0] == 127 && va[1] == 0 && counts[0] == 2);
    in[0] = tensor(IGRT_U64, b, 1, DIMS(4));
    out = tensor(IGRT_U64, vb, 1, DIMS(2));
    assert_int_equal(igrt_lib_topk(in, 2, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_true(vb[0] == UINT64_MAX && vb[1] == UINT64_MAX - 1);
    in[0] = tensor(IGRT_F16, h, 1, DIMS(4));
    out = tensor(IGRT_F16, vh, 1, DIMS(2));
    assert_int_equal(igrt_lib_topk(in, 2, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_true(vh[0] == 0x7e00 && vh[1] == 0x4000);
    k[0] = 3;
    assert_int_equal(igrt_lib_topk(in, 2, &out, 1, attr, NULL, scratch, sizeof scratch, counts),
                     IGRT_ERR_COUNT);
    k[0] = 2;
    assert_int_equal(igrt_lib_topk(in, 2, &out, 1, attr, NULL, scratch, 16, counts),
                     IGRT_ERR_SCRATCH);
}

/* ---- unique ------------------------------------------------------------------------------ */

static void unique_flat(void **state)
{
    (void)state;
    float x[6] = {2, 1, 1, 3, 4, 3}, y[6];
    int64_t indices[6], inverse[6], times[6], scratch[18], counts[1], attr[2] = {-1, 0};
    igrt_tensor in = tensor(IGRT_F32, x, 1, DIMS(6));
    igrt_tensor out[4] = {tensor(IGRT_F32, y, 1, DIMS(6)), tensor(IGRT_I64, indices, 1, DIMS(6)),
                          tensor(IGRT_I64, inverse, 1, DIMS(6)),
                          tensor(IGRT_I64, times, 1, DIMS(6))};
    /* the example of the ONNX operator's page */
    assert_int_equal(igrt_lib_unique(&in, 1, out, 4, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_int_equal(counts[0], 4);
    assert_memory_equal(y, ((float[]){2, 1, 3, 4}), 16);
    assert_memory_equal(indices, ((int64_t[]){0, 1, 3, 4}), 32);
    assert_memory_equal(inverse, ((int64_t[]){0, 1, 1, 2, 3, 2}), 48);
    assert_memory_equal(times, ((int64_t[]){1, 2, 2, 1}), 32);
    attr[1] = 1;
    out[0].dims[0] = 6;
    out[2].data = NULL;
    assert_int_equal(igrt_lib_unique(&in, 1, out, 4, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_memory_equal(y, ((float[]){1, 2, 3, 4}), 16);
    assert_memory_equal(indices, ((int64_t[]){1, 0, 3, 4}), 32);
    assert_memory_equal(times, ((int64_t[]){2, 1, 2, 1}), 32);
    out[0].dims[0] = 3;
    assert_int_equal(igrt_lib_unique(&in, 1, out, 1, attr, NULL, scratch, sizeof scratch, counts),
                     IGRT_ERR_COUNT);

    float nans[5] = {NAN, -0.0f, 0, -NAN, INFINITY};
    in = tensor(IGRT_F32, nans, 1, DIMS(5));
    out[0] = tensor(IGRT_F32, y, 1, DIMS(5));
    assert_int_equal(igrt_lib_unique(&in, 1, out, 1, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_true(counts[0] == 3 && y[0] == 0 && isinf(y[1]) && isnan(y[2]));

    const char *words[4] = {"b", "a", "b", ""}, *kept[4];
    in = tensor(IGRT_STRING, words, 1, DIMS(4));
    out[0] = tensor(IGRT_STRING, kept, 1, DIMS(4));
    assert_int_equal(igrt_lib_unique(&in, 1, out, 1, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_true(counts[0] == 3 && kept[0] == words[3] && kept[1] == words[1] &&
                kept[2] == words[0]);
}

static void unique_axis(void **state)
{
    (void)state;
    /* the rows of [[1,0,0],[1,0,0],[2,3,4]], then the columns of [outer 2][3][1] */
    int32_t x[9] = {1, 0, 0, 1, 0, 0, 2, 3, 4}, y[9];
    int64_t inverse[3], scratch[9], counts[1], attr[2] = {0, 1};
    igrt_tensor in = tensor(IGRT_I32, x, 2, DIMS(3, 3));
    igrt_tensor out[3] = {tensor(IGRT_I32, y, 2, DIMS(3, 3)), tensor(IGRT_I64, NULL, 1, DIMS(3)),
                          tensor(IGRT_I64, inverse, 1, DIMS(3))};
    assert_int_equal(igrt_lib_unique(&in, 1, out, 3, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_true(counts[0] == 2 && out[0].dims[0] == 2 && out[0].dims[1] == 3);
    assert_memory_equal(y, ((int32_t[]){1, 0, 0, 2, 3, 4}), 24);
    assert_memory_equal(inverse, ((int64_t[]){0, 0, 1}), 24);
    attr[0] = 1;
    out[0] = tensor(IGRT_I32, y, 2, DIMS(3, 3));
    assert_int_equal(igrt_lib_unique(&in, 1, out, 3, attr, NULL, scratch, sizeof scratch, counts),
                     0);
    assert_int_equal(counts[0], 3);
    assert_memory_equal(y, ((int32_t[]){0, 0, 1, 0, 0, 1, 3, 4, 2}), 36);
    assert_memory_equal(inverse, ((int64_t[]){2, 0, 1}), 24);
}

/* ---- nms, det ---------------------------------------------------------------------------- */

static void nms(void **state)
{
    (void)state;
    float boxes[24] = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                       0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
    float scores[6] = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f}, iou[1] = {0.5f}, least[1] = {0.0f};
    int64_t most[1] = {3}, y[18], scratch[12], counts[1], attr[1] = {0};
    igrt_tensor in[5] = {tensor(IGRT_F32, boxes, 3, DIMS(1, 6, 4)),
                         tensor(IGRT_F32, scores, 3, DIMS(1, 1, 6)),
                         tensor(IGRT_I64, most, 1, DIMS(1)), tensor(IGRT_F32, iou, 1, DIMS(1)),
                         tensor(IGRT_F32, least, 1, DIMS(1))};
    igrt_tensor out = tensor(IGRT_I64, y, 2, DIMS(6, 3));
    assert_int_equal(igrt_lib_nms(in, 5, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_int_equal(counts[0], 3);
    assert_memory_equal(y, ((int64_t[]){0, 0, 3, 0, 0, 0, 0, 0, 5}), 72);
    least[0] = 0.4f;
    out.dims[0] = 6;
    assert_int_equal(igrt_lib_nms(in, 5, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_int_equal(counts[0], 2);
    scores[3] = NAN;
    out.dims[0] = 6;
    assert_int_equal(igrt_lib_nms(in, 5, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_memory_equal(y, ((int64_t[]){0, 0, 0, 0, 0, 4}), 48);
    out.dims[0] = 1;
    assert_int_equal(igrt_lib_nms(in, 5, &out, 1, attr, NULL, scratch, sizeof scratch, counts),
                     IGRT_ERR_COUNT);
    out.dims[0] = 6;
    assert_int_equal(igrt_lib_nms(in, 2, &out, 1, attr, NULL, scratch, sizeof scratch, counts), 0);
    assert_int_equal(counts[0], 0);
}

static void det(void **state)
{
    (void)state;
    float x[8] = {1, 2, 3, 4, 0, 2, 3, 0}, y[2];
    int64_t scratch[4];
    igrt_tensor in = tensor(IGRT_F32, x, 3, DIMS(2, 2, 2)), out = tensor(IGRT_F32, y, 1, DIMS(2));
    assert_int_equal(igrt_lib_det(&in, 1, &out, 1, NULL, NULL, scratch, sizeof scratch, NULL), 0);
    assert_true(fabsf(y[0] + 2) < 1e-6f && y[1] == -6);
    in.dims[2] = 1;
    assert_int_equal(igrt_lib_det(&in, 1, &out, 1, NULL, NULL, scratch, sizeof scratch, NULL),
                     IGRT_ERR_UNSUPPORTED);
}

/* ---- igrt.c, igrt_pool.c ----------------------------------------------------------------- */

static void checksum(void **state)
{
    (void)state;
    unsigned char data[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * 7);
    const uint64_t whole = igrt_checksum(data, sizeof data);
    igrt_sum s;
    igrt_sum_begin(&s);
    igrt_sum_add(&s, data, 320);
    igrt_sum_add(&s, data + 320, 64);
    igrt_sum_add(&s, data + 384, 616);
    assert_true(igrt_sum_end(&s) == whole);
    for (int bit = 0; bit < 8000; bit += 13) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(igrt_checksum(data, sizeof data) != whole);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(igrt_checksum(data, 999) != whole && igrt_checksum(data, 0) != 0);
}

static void memories(void **state)
{
    (void)state;
    static const size_t bytes[] = {64, 0, 100};
    unsigned char *block = aligned_alloc(64, 192);
    igrt_memory m[3] = {{block, 64}, {NULL, 0}, {block + 64, 100}};
    igrt_config c = {.struct_size = sizeof c};
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_ERR_ARENA_SIZE);
    c.memory = m;
    c.n_memories = 2;
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_ERR_ARENA_SIZE);
    c.n_memories = 3;
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_OK);
    m[2].bytes--;
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_ERR_ARENA_SIZE);
    m[2].bytes++;
    m[2].data = block + 96;
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_ERR_ARENA_ALIGN);
    m[2].data = NULL;
    assert_int_equal(igrt_memory_check(&c, bytes, 3, 64), IGRT_ERR_ARENA_SIZE);
    free(block);
}

static void config(void **state)
{
    (void)state;
    unsigned char *arena = aligned_alloc(64, 192);
    assert_non_null(arena);
    unsigned char *weights = arena + 128;
    memset(arena, 3, 192);
    igrt_config c = {.struct_size = sizeof c};
    const uint64_t sum = igrt_checksum(weights, 64);
    assert_int_equal(igrt_config_check(NULL, 128, 64, 64), IGRT_ERR_NULL);
    c.struct_size--;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_CONFIG);
    c.struct_size++;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_ARENA_SIZE);
    c.arena = arena + 1;
    c.arena_bytes = 128;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_ARENA_ALIGN);
    c.arena = arena;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_WEIGHTS_MISSING);
    c.weights = weights;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_WEIGHTS_SIZE);
    c.weights_bytes = 64;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_OK);
    assert_int_equal(igrt_weights_check(&c, sum + 1), IGRT_ERR_WEIGHTS_CHECKSUM);
    assert_int_equal(igrt_weights_check(&c, sum), IGRT_OK);
    c.flags = IGRT_SKIP_CHECKSUM;
    assert_int_equal(igrt_weights_check(&c, sum + 1), IGRT_OK);
    c.threads = 2;
    assert_int_equal(igrt_config_check(&c, 128, 64, 64), IGRT_ERR_CONFIG);
    for (int i = 0; i <= IGRT_STATUS_COUNT; i++)
        assert_true(strlen(igrt_status_text((igrt_status)i)) > 1);
    free(arena);
}

static int hits[1000], calls;

static void count_parts(const void *arg, int64_t begin, int64_t end)
{
    assert_ptr_equal(arg, &calls);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    for (int64_t i = begin; i < end; i++)
        hits[i]++;
}

static void backwards(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    *(int64_t *)user = n;
    for (int64_t i = n; i-- > 0;)
        task(arg, i, (int)(i % 3));
}

static void parallel(void **state)
{
    (void)state;
    static igrt_pool pool;
    igrt_config c = {.threads = igrt_pool_start(&pool, 4)};
    c.parallel_for = igrt_pool_for;
    c.parallel_user = &pool;
    for (int round = 0; round < 500; round++) {
        if (round == 250) { /* they have gone to sleep */
            const struct timespec pause = {0, 20000000};
            nanosleep(&pause, NULL);
        }
        calls = 0;
        const int n =
            1 +
            /* seven tasks of a thread at most, and all of them where its share has 16 parts */
            round * 2;
        igrt_parallel(&c, count_parts, &calls, n);
        assert_in_range(calls, n <= 28 ? n : n < 64 ? 16 : 28, n <= 28 ? n : 28);
    }
    igrt_pool_stop(&pool);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(hits[i], i == 0 ? 500 : 500 - (i + 1) / 2);
    assert_int_equal(c.threads, 4);

    int64_t n = 0;
    c.parallel_for = backwards;
    c.parallel_user = &n;
    calls = 0;
    igrt_parallel(&c, count_parts, &calls, 7);
    assert_true(n == 7 && calls == 7);
    c.threads = 1; /* all at once */
    igrt_parallel(&c, count_parts, &calls, 7);
    assert_int_equal(calls, 8);
}

static void hit(void *arg, int64_t i, int worker)
{
    assert_in_range(worker, 0, *(int *)arg - 1);
    hits[i]++;
}

/* Fewer tasks than threads, as many, and more: each is done once. */
static void pool_tasks(void **state)
{
    (void)state;
    static igrt_pool pool;
    for (int threads = 1; threads <= 7; threads++) {
        int started = igrt_pool_start(&pool, threads);
        memset(hits, 0, sizeof hits);
        for (int64_t n = 0; n < 100; n++)
            igrt_pool_for(&pool, hit, &started, n);
        igrt_pool_stop(&pool);
        for (int i = 0; i < 100; i++)
            assert_int_equal(hits[i], 99 - i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonzero),     cmocka_unit_test(compress),   cmocka_unit_test(readint),
        cmocka_unit_test(topk),        cmocka_unit_test(topk_types), cmocka_unit_test(unique_flat),
        cmocka_unit_test(unique_axis), cmocka_unit_test(nms),        cmocka_unit_test(det),
        cmocka_unit_test(checksum),    cmocka_unit_test(config),     cmocka_unit_test(memories),
        cmocka_unit_test(parallel),    cmocka_unit_test(pool_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
