/*
 * gpu_test.c - igrt_opencl.c and igrt_cuda.c on whatever device there is; skipped where there is
 * none.
 *
 * Both run the same plan: an arena with two buffers, weights, two kernels in a row, a read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "igrt_cuda.h"
#include "igrt_opencl.h"

enum { N = 1000 };

static float input[N], weights[N], output[N];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        input[i] = (float)i;
        weights[i] = (float)(i % 7);
        output[i] = -1;
    }
}

/* (x * w) * 3 for all but the elements past `count`, which stay zero. */
static void check_output(int count)
{
    for (int i = 0; i < N; i++)
        assert_true(output[i] == (i < count ? input[i] * weights[i] * 3 : 0));
}

static void opencl(void **state)
{
    static const char *const source[2] = {
        "__kernel void mul(__global const float *x, __global const float *w, __global float *y)\n"
        "{ int i = get_global_id(0); if (i < 1000) y[i] = x[i] * w[i]; }\n",
        "__kernel void scale(__global const float *x, __global float *y, int n, float f)\n"
        "{ int i = get_global_id(0); if (i < n) y[i] = x[i] * f; }\n"};
    static const char *const wrong[1] = {"__kernel void k(void) { this is not C; }\n"};
    const size_t global[1] = {1024}, local[1] = {64}, none[1] = {0};
    const int count = 900;
    const float factor = 3;
    char log[4096];
    igrt_cl cl;
    void *program, *mul, *scale, *arena, *x, *y, *z, *w, *event;
    uint64_t ns = 0;
    (void)state;
    fill();
    if (igrt_cl_open(&cl, NULL, NULL, NULL, 1) != IGRT_OK) {
        igrt_cl_close(&cl);
        skip();
    }
    assert_int_equal(igrt_cl_build(&cl, wrong, 1, NULL, &program, log, sizeof log), IGRT_ERR_BUILD);
    assert_true(program == NULL && strlen(log) > 0 && cl.error != 0);
    assert_int_equal(igrt_cl_build(&cl, source, 2, "", &program, log, sizeof log), IGRT_OK);
    assert_int_equal(igrt_cl_kernel(&cl, program, "mul", &mul), IGRT_OK);
    assert_int_equal(igrt_cl_kernel(&cl, program, "scale", &scale), IGRT_OK);
    assert_int_equal(igrt_cl_kernel(&cl, program, "missing", &event), IGRT_ERR_DEVICE);
    assert_int_equal(igrt_cl_buffer(&cl, 16384, NULL, &arena), IGRT_OK);
    assert_int_equal(igrt_cl_buffer(&cl, sizeof weights, weights, &w), IGRT_OK);
    assert_int_equal(igrt_cl_part(&cl, arena, 0, sizeof input, &x), IGRT_OK);
    assert_int_equal(igrt_cl_part(&cl, arena, 4096, sizeof input, &y), IGRT_OK);
    assert_int_equal(igrt_cl_part(&cl, arena, 8192, 0, &z), IGRT_OK);
    igrt_cl_free_buffer(&cl, z);
    assert_int_equal(igrt_cl_part(&cl, arena, 8192, sizeof input, &z), IGRT_OK);

    assert_int_equal(igrt_cl_write(&cl, x, 0, input, sizeof input, 1), IGRT_OK);
    assert_int_equal(igrt_cl_zero(&cl, arena, 8192, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cl_arg_buffer(&cl, mul, 0, x), IGRT_OK);
    assert_int_equal(igrt_cl_arg_buffer(&cl, mul, 1, w), IGRT_OK);
    assert_int_equal(igrt_cl_arg_buffer(&cl, mul, 2, y), IGRT_OK);
    assert_int_equal(igrt_cl_arg_buffer(&cl, scale, 0, y), IGRT_OK);
    assert_int_equal(igrt_cl_arg_buffer(&cl, scale, 1, z), IGRT_OK);
    assert_int_equal(igrt_cl_arg_value(&cl, scale, 2, &count, sizeof count), IGRT_OK);
    assert_int_equal(igrt_cl_arg_value(&cl, scale, 3, &factor, sizeof factor), IGRT_OK);
    assert_int_equal(igrt_cl_launch(&cl, mul, 1, global, local, &event), IGRT_OK);
    assert_int_equal(igrt_cl_launch(&cl, scale, 1, global, NULL, NULL), IGRT_OK);
    assert_int_equal(igrt_cl_elapsed(&cl, event, &ns), IGRT_OK);
    assert_true(ns > 0);
    assert_int_equal(igrt_cl_launch(&cl, mul, 1, none, NULL, &event), IGRT_OK);
    assert_int_equal(igrt_cl_elapsed(&cl, event, &ns), IGRT_OK);
    assert_int_equal(igrt_cl_read(&cl, z, 0, output, sizeof output, 1), IGRT_OK);
    check_output(count);

    /* a second model on the first one's queue */
    igrt_cl second;
    assert_int_equal(igrt_cl_open(&second, NULL, cl.queue, NULL, 0), IGRT_OK);
    assert_true(second.context == cl.context && second.device == cl.device && second.profiling);
    memset(output, 0, sizeof output);
    assert_int_equal(igrt_cl_copy(&second, z, 0, x, 0, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cl_read(&second, x, 0, output, sizeof output, 1), IGRT_OK);
    check_output(count);
    assert_int_equal(igrt_cl_finish(&second), IGRT_OK);
    igrt_cl_close(&second);

    igrt_cl_free_buffer(&cl, x);
    igrt_cl_free_buffer(&cl, y);
    igrt_cl_free_buffer(&cl, z);
    igrt_cl_free_buffer(&cl, w);
    igrt_cl_free_buffer(&cl, arena);
    igrt_cl_free_kernel(&cl, mul);
    igrt_cl_free_kernel(&cl, scale);
    igrt_cl_free_program(&cl, program);
    igrt_cl_close(&cl);
}

/* y[i] = x[i] * w[i];  z[i] = y[i] * f for i < n */
static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry mul(.param .u64 px, .param .u64 pw, .param .u64 py) {\n"
    " .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %d<8>;\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    " mad.lo.s32 %r4, %r1, %r2, %r3; setp.ge.s32 %p, %r4, 1000; @%p ret;\n"
    " mul.wide.s32 %d1, %r4, 4;\n"
    " ld.param.u64 %d2, [px]; add.s64 %d3, %d2, %d1; ld.global.f32 %f1, [%d3];\n"
    " ld.param.u64 %d4, [pw]; add.s64 %d5, %d4, %d1; ld.global.f32 %f2, [%d5];\n"
    " mul.f32 %f3, %f1, %f2;\n"
    " ld.param.u64 %d6, [py]; add.s64 %d7, %d6, %d1; st.global.f32 [%d7], %f3; ret; }\n"
    ".visible .entry scale(.param .u64 px, .param .u64 py, .param .u32 pn, .param .f32 pf) {\n"
    " .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    " mad.lo.s32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [pn];\n"
    " setp.ge.s32 %p, %r4, %r5; @%p ret; mul.wide.s32 %d1, %r4, 4;\n"
    " ld.param.u64 %d2, [px]; add.s64 %d3, %d2, %d1; ld.global.f32 %f1, [%d3];\n"
    " ld.param.f32 %f2, [pf]; mul.f32 %f3, %f1, %f2;\n"
    " ld.param.u64 %d4, [py]; add.s64 %d5, %d4, %d1; st.global.f32 [%d5], %f3; ret; }\n";

static void cuda_step(igrt_cu *cu, void *mul, void *scale, igrt_cu_ptr arena, igrt_cu_ptr w)
{
    const unsigned grid[3] = {16, 1, 1}, block[3] = {64, 1, 1}, none[3] = {0, 1, 1};
    igrt_cu_ptr x = arena, y = arena + 4096, z = arena + 8192;
    int count = 900;
    float factor = 3;
    void *mul_args[3] = {&x, &w, &y}, *scale_args[4] = {&y, &z, &count, &factor};
    assert_int_equal(igrt_cu_launch(cu, mul, none, block, 0, mul_args), IGRT_OK);
    assert_int_equal(igrt_cu_launch(cu, mul, grid, block, 0, mul_args), IGRT_OK);
    assert_int_equal(igrt_cu_launch(cu, scale, grid, block, 0, scale_args), IGRT_OK);
}

static void cuda(void **state)
{
    char log[4096];
    igrt_cu cu;
    void *module, *mul, *scale, *none = NULL;
    igrt_cu_graph graph = {0};
    igrt_cu_ptr arena, w;
    uint64_t ns = 0;
    (void)state;
    fill();
    if (igrt_cu_open(&cu, NULL, NULL, NULL) != IGRT_OK) {
        igrt_cu_close(&cu);
        skip();
    }
    assert_int_equal(
        igrt_cu_module(&cu, ".version 6.0\n.target sm_50\nnonsense\n", &module, log, sizeof log),
        IGRT_ERR_BUILD);
    assert_true(module == NULL && strlen(log) > 0 && cu.error != 0);
    assert_int_equal(igrt_cu_module(&cu, ptx, &module, log, sizeof log), IGRT_OK);
    assert_int_equal(igrt_cu_kernel(&cu, module, "mul", 0, &mul), IGRT_OK);
    assert_int_equal(igrt_cu_kernel(&cu, module, "scale", 64 * 1024, &scale), IGRT_OK);
    assert_int_equal(igrt_cu_kernel(&cu, module, "missing", 0, &none), IGRT_ERR_DEVICE);
    assert_int_equal(igrt_cu_buffer(&cu, 16384, NULL, &arena), IGRT_OK);
    assert_int_equal(igrt_cu_buffer(&cu, sizeof weights, weights, &w), IGRT_OK);
    assert_int_equal(igrt_cu_write(&cu, arena, input, sizeof input), IGRT_OK);
    assert_int_equal(igrt_cu_zero(&cu, arena + 8192, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cu_time_begin(&cu), IGRT_OK);
    cuda_step(&cu, mul, scale, arena, w);
    assert_int_equal(igrt_cu_time_end(&cu, &ns), IGRT_OK);
    assert_true(ns > 0);
    assert_int_equal(igrt_cu_read(&cu, arena + 8192, output, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cu_finish(&cu), IGRT_OK);
    check_output(900);

    /* the same as a graph, from a stream of another igrt_cu */
    igrt_cu second;
    assert_int_equal(igrt_cu_open(&second, cu.context, cu.stream, NULL), IGRT_OK);
    assert_int_equal(igrt_cu_capture_begin(&second, &graph), IGRT_OK);
    assert_int_equal(igrt_cu_zero(&second, arena + 4096, 8192), IGRT_OK);
    cuda_step(&second, mul, scale, arena, w);
    assert_int_equal(igrt_cu_capture_end(&second), IGRT_OK);
    for (int i = 0; i < N; i++)
        input[i] = (float)-i;
    assert_int_equal(igrt_cu_write(&second, arena, input, sizeof input), IGRT_OK);
    assert_int_equal(igrt_cu_replay(&second, &graph), IGRT_OK);
    assert_int_equal(igrt_cu_replay(&second, &graph), IGRT_OK);
    assert_int_equal(igrt_cu_copy(&second, arena + 8192, arena, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cu_read(&second, arena, output, sizeof output), IGRT_OK);
    assert_int_equal(igrt_cu_finish(&second), IGRT_OK);
    check_output(900);
    igrt_cu_free_graph(&second, &graph);
    igrt_cu_close(&second);

    igrt_cu_free_buffer(&cu, arena);
    igrt_cu_free_buffer(&cu, w);
    igrt_cu_free_module(&cu, module);
    igrt_cu_close(&cu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opencl),
        cmocka_unit_test(cuda),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
