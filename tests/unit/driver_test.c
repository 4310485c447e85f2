/*
 * driver_test.c - the driver of bundles with a model written by hand: y = 2x with a run-time dim,
 * and a copy of an i4 tensor and of strings. Files are made byte by byte, so that bad ones can be
 * made too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver.h"

/* ---- the model --------------------------------------------------------------------------- */

typedef struct {
    igrt_config config;
} model_ctx;

typedef struct {
    const float *x;
    int64_t x_dims[2];
    const int8_t *q;
    const char *const *s;
    const float *bias; /* optional */
} model_inputs;

typedef struct {
    float *y;
    int64_t y_dims[2];
    int8_t *q;
    const char **s;
} model_outputs;

static size_t arena_bytes(int threads)
{
    return 64 * (size_t)threads;
}

static igrt_status init(void *ctx, const igrt_config *config)
{
    const igrt_status status = igrt_config_check(config, arena_bytes(config->threads), 64, 0);
    ((model_ctx *)ctx)->config = *config;
    return status;
}

typedef struct {
    const model_inputs *in;
    model_outputs *out;
} Task;

static void twice(const void *arg, int64_t begin, int64_t end)
{
    const Task *t = arg;
    for (int64_t i = begin; i < end; i++)
        t->out->y[i] = 2 * t->in->x[i] + (t->in->bias ? *t->in->bias : 0);
}

static igrt_status run(void *ctx, const void *inputs, void *outputs)
{
    model_ctx *c = ctx;
    Task t = {inputs, outputs};
    if (t.in->x_dims[0] == 3)
        return IGRT_ERR_DIM;
    igrt_parallel(&c->config, twice, &t, t.in->x_dims[0] * t.in->x_dims[1]);
    memcpy(t.out->y_dims, t.in->x_dims, sizeof t.in->x_dims);
    memcpy(t.out->q, t.in->q, 3);
    t.out->s[0] = t.in->s[1];
    t.out->s[1] = t.in->s[0];
    if (c->config.profile)
        c->config.profile(c->config.user, 0, "k00_twice", 5);
    return IGRT_OK;
}

static igrt_status reset(void *ctx)
{
    (void)ctx;
    return IGRT_OK;
}

static igrt_status selftest(void *ctx)
{
    (void)ctx;
    return IGRT_ERR_SELFTEST;
}

static void deinit(void *ctx)
{
    (void)ctx;
}

static const igrt_io inputs[] = {
    {.name = "x",
     .dtype = IGRT_F32,
     .rank = 2,
     .max_dims = {4, 2},
     .min_dims = {1, 2},
     .data_offset = offsetof(model_inputs, x),
     .dims_offset = offsetof(model_inputs, x_dims)},
    {.name = "q",
     .dtype = IGRT_I4,
     .rank = 1,
     .max_dims = {3},
     .data_offset = offsetof(model_inputs, q),
     .dims_offset = IGRT_NO_DIMS},
    {.name = "s",
     .dtype = IGRT_STRING,
     .rank = 1,
     .max_dims = {2},
     .data_offset = offsetof(model_inputs, s),
     .dims_offset = IGRT_NO_DIMS},
    {.name = "bias",
     .dtype = IGRT_F32,
     .rank = 0,
     .data_offset = offsetof(model_inputs, bias),
     .dims_offset = IGRT_NO_DIMS,
     .optional = 1},
};

static const igrt_io outputs[] = {
    {.name = "y",
     .dtype = IGRT_F32,
     .rank = 2,
     .max_dims = {4, 2},
     .min_dims = {1, 2},
     .data_offset = offsetof(model_outputs, y),
     .dims_offset = offsetof(model_outputs, y_dims)},
    {.name = "q",
     .dtype = IGRT_I4,
     .rank = 1,
     .max_dims = {3},
     .data_offset = offsetof(model_outputs, q),
     .dims_offset = IGRT_NO_DIMS},
    {.name = "s",
     .dtype = IGRT_STRING,
     .rank = 1,
     .max_dims = {2},
     .data_offset = offsetof(model_outputs, s),
     .dims_offset = IGRT_NO_DIMS},
};

static igrt_model model = {
    .name = "fake",
    .inputs = inputs,
    .n_inputs = 4,
    .outputs = outputs,
    .n_outputs = 3,
    .ctx_bytes = sizeof(model_ctx),
    .inputs_bytes = sizeof(model_inputs),
    .outputs_bytes = sizeof(model_outputs),
    .arena_align = 64,
    .arena_bytes = arena_bytes,
    .init = init,
    .run = run,
    .reset = reset,
    .selftest = selftest,
    .deinit = deinit,
};

/* ---- files ------------------------------------------------------------------------------- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void put_file(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

/* A .npy file of the version with the header's text and the data. */
static size_t npy(unsigned char *to, int version, const char *header, const void *data,
                  size_t bytes)
{
    const size_t n = strlen(header), start = version == 1 ? 10 : 12;
    memset(to, 0, start);
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    to[8] = (unsigned char)n;
    to[9] = (unsigned char)(n >> 8);
    memcpy(to + start, header, n);
    memcpy(to + start + n, data, bytes);
    return start + n + bytes;
}

static void put_npy(const char *name, int version, const char *header, const void *data,
                    size_t bytes)
{
    unsigned char file[1024];
    put_file(name, file, npy(file, version, header, data, bytes));
}

static size_t get_file(const char *name, void *data, size_t room)
{
    FILE *f = fopen(in_folder(name), "rb");
    if (!f)
        return 0;
    const size_t n = fread(data, 1, room, f);
    fclose(f);
    return n;
}

static const float x[6] = {1, 2, 3, 4, 5, 6};

static void put_good_files(void)
{
    static const unsigned char q[3] = {0x0f, 0x07, 0xf8}; /* -1, 7, -8 */
    put_npy("input_0.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", x,
            16);
    put_npy("input_1.npy", 1, "{'descr': '|V1', 'fortran_order': False, 'shape': (3,), }\n", q, 3);
    put_npy("input_2.npy", 1, "{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }\n",
            "abcd\0", 6);
    unlink(in_folder("input_3.npy"));
}

/* Runs the driver with its messages in a file; `wants` must be in them. */
static void drive(int status, const char *wants, int argc, char **argv)
{
    char said[4096];
    fflush(stderr);
    fflush(stdout);
    const int err = dup(2), out = dup(1);
    assert_non_null(freopen(in_folder("said"), "wb", stderr));
    assert_true(dup2(2, 1) == 1);
    const int got = igrt_driver_main(argc, argv, &model);
    fflush(stderr);
    fflush(stdout);
    dup2(err, 2);
    dup2(out, 1);
    close(err);
    close(out);
    said[get_file("said", said, sizeof said - 1)] = 0;
    if (got != status || !strstr(said, wants))
        print_error("status %d, wanted %d; said: %s, wanted: %s\n", got, status, said, wants);
    assert_int_equal(got, status);
    assert_non_null(strstr(said, wants));
}

static void drive_files(int status, const char *wants)
{
    char out[128];
    snprintf(out, sizeof out, "%s/a/b", folder);
    char *argv[] = {"fake", folder, out, NULL};
    drive(status, wants, 3, argv);
}

static void bad_input(const char *wants, int version, const char *header, size_t bytes)
{
    put_npy("input_0.npy", version, header, x, bytes);
    drive_files(IGRT_EXIT_INPUT, wants);
    put_good_files();
}

/* ---- tests ------------------------------------------------------------------------------- */

static void good(void **state)
{
    (void)state;
    unsigned char file[512], wants[512];
    put_good_files();
    drive_files(IGRT_EXIT_OK, "");
    size_t n = get_file("a/b/output_0.npy", file, sizeof file);
    assert_int_equal(n % 64, 16);
    assert_memory_equal(file + n - 16, ((float[]){2, 4, 6, 8}), 16);
    assert_non_null(
        strstr((char *)file + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"));
    n = get_file("a/b/output_1.npy", file, sizeof file);
    assert_memory_equal(file + n - 3, "\xff\x07\xf8", 3);
    assert_non_null(strstr((char *)file + 10, "'|V1', 'fortran_order': False, 'shape': (3,)"));
    n = get_file("a/b/output_2.npy", file, sizeof file);
    assert_memory_equal(file + n - 6, "d\0\0abc", 6);
    assert_non_null(strstr((char *)file + 10, "'|S3'"));

    /* versions 2 and 3, Fortran order, keys in another order, an optional input */
    const float bias = 0.5f;
    put_npy("input_3.npy", 3, "{'shape': (), 'fortran_order': False, 'descr': '<f4'}", &bias, 4);
    put_npy("input_0.npy", 2, "{'fortran_order': True, 'descr': '<f4', 'shape': (2, 2)}", x, 16);
    char out[128];
    snprintf(out, sizeof out, "%s/c", folder);
    char *argv[] = {"fake", "-t", "2", "--poison", folder, out, NULL};
    drive(IGRT_EXIT_OK, "", 6, argv);
    n = get_file("c/output_0.npy", wants, sizeof wants);
    assert_memory_equal(wants + n - 16, ((float[]){2.5f, 6.5f, 4.5f, 8.5f}), 16);
}

static void bad_files(void **state)
{
    (void)state;
    put_good_files();
    bad_input("type '<f8'", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", 16);
    bad_input("type '>f4'", 1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", 16);
    bad_input("shape [5,2]", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }", 24);
    bad_input("f32[<=4,2]", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 16);
    bad_input("truncated", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 15);
    bad_input("after the last", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
              17);
    bad_input("too large", 1,
              "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 16);
    bad_input("more than 8", 1,
              "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4);
    bad_input("structured", 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}",
              16);
    bad_input("malformed descr", 1, "{'descr': '<\xff', 'fortran_order': False, 'shape': (2, 2)}",
              16);
    bad_input("is missing", 1, "{'descr': '<f4', 'shape': (2, 2), }", 16);
    bad_input("version", 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 16);
    put_file("input_0.npy", "\x93NUMPY", 6);
    drive_files(IGRT_EXIT_INPUT, "magic");
    unlink(in_folder("input_0.npy"));
    drive_files(IGRT_EXIT_INPUT, "No such file");
    put_good_files();

    /* every single byte of a good file changed: some status, no crash */
    unsigned char file[256];
    const size_t n = get_file("input_0.npy", file, sizeof file);
    for (size_t i = 0; i < n - 16; i++) {
        const unsigned char was = file[i];
        file[i] = (unsigned char)(was ^ (1 << i % 8));
        put_file("input_0.npy", file, n);
        file[i] = was;
        char out[128];
        snprintf(out, sizeof out, "%s/a", folder);
        char *argv[] = {"fake", folder, out, NULL};
        const int err = dup(2);
        assert_non_null(freopen("/dev/null", "w", stderr));
        const int got = igrt_driver_main(3, argv, &model);
        fflush(stderr);
        dup2(err, 2);
        close(err);
        assert_true(got == IGRT_EXIT_OK || got == IGRT_EXIT_INPUT);
    }
}

static void statuses(void **state)
{
    (void)state;
    put_good_files();
    put_npy("input_0.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", x, 24);
    drive_files(IGRT_EXIT_MODEL, "status 10");
    put_good_files();
    char *bench[] = {"fake", "--bench", "0.001", folder, NULL};
    drive(IGRT_EXIT_OK, "\"median_ms\": ", 4, bench);
    char *profile[] = {"fake", "--profile", folder, NULL};
    drive(IGRT_EXIT_OK, "k00_twice", 3, profile);
    char *test[] = {"fake", "--selftest", NULL};
    drive(IGRT_EXIT_SELFTEST, "selftest", 2, test);
    char *help[] = {"fake", "--help", NULL};
    drive(IGRT_EXIT_OK, "input  0: x f32[<=4,2]", 2, help);
    char *unknown[] = {"fake", "--colour", NULL};
    drive(IGRT_EXIT_USAGE, "--colour", 2, unknown);
    drive(IGRT_EXIT_USAGE, "number of folders", 1, unknown);
    char *threads[] = {"fake", folder, folder, "-t", NULL};
    drive(IGRT_EXIT_USAGE, "-t needs", 4, threads);
    char *nowhere[] = {"fake", folder, "/proc/nope", NULL};
    drive(IGRT_EXIT_OUTPUT, "/proc/nope", 3, nowhere);
    model.weights_file = "no such file.weights";
    model.weights_bytes = 64;
    drive_files(IGRT_EXIT_WEIGHTS, "no such file.weights");
    model.weights_file = NULL;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/driver_test.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"input_0.npy",
                                        "input_1.npy",
                                        "input_2.npy",
                                        "input_3.npy",
                                        "said",
                                        "a/b/output_0.npy",
                                        "a/b/output_1.npy",
                                        "a/b/output_2.npy",
                                        "a/b",
                                        "c/output_0.npy",
                                        "c/output_1.npy",
                                        "c/output_2.npy",
                                        "c",
                                        "a/output_0.npy",
                                        "a/output_1.npy",
                                        "a/output_2.npy",
                                        "a"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in_folder(names[i]));
    remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(statuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
