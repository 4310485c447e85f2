"""The programs that on_device.py links with bundles: they call init and run, and tell what came of
it."""

CUDA = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void mark(const char *text)
{
    FILE *f = fopen(getenv("CUDA_STUB_LOG"), "a");
    fprintf(f, "== %s\\n", text);
    fclose(f);
}
static uint64_t ticks(void *user) { (void)user; return 0; }
static void step(void *user, int n, const char *name, uint64_t ns) { (void)user; (void)n; (void)name; (void)ns; }
int main(int argc, char **argv)
{
    static char place[4][1 << 16], arena[1 << 16];
    static model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = (void *)(((uintptr_t)arena + 255) / 256 * 256), .arena_bytes = 1 << 15};
    if (argc > 1 && strstr(argv[1], "device")) config.flags |= IGRT_ON_DEVICE;
    config.gpu = getenv("WHICH_GPU");
    if (argc > 1 && strstr(argv[1], "profile")) config.clock = ticks, config.profile = step;
    mark("init");
    memset(&ctx, 0xa5, sizeof ctx);
    model_status status = model_init(&ctx, &config);
    const int made = status == IGRT_OK;
    model_inputs in = {IN};
    model_outputs out = {OUT};
    for (int i = 0; status == IGRT_OK && i < 3; i++) {
        in.x = (const void *)place[i / 2 * 2]; /* the third run has others */
        out.y = (void *)place[i / 2 * 2 + 1];
        mark("run");
        status = model_run(&ctx, &in, &out);
    }
    mark("end");
    if (made) model_deinit(&ctx);
    return (int)status;
}
"""

# What a call makes, and the one that lets go of it.

OPENCL = """
#include "model_igrt.h"
#include "model.h"
#include "igrt_gpu_opencl.h"
#include <stdio.h>
int main(void)
{
    static float x[X], y[Y], z[Y];
    static model_ctx host, device;
    model_config config = {.struct_size = sizeof config};
    for (int i = 0; i < X; i++) x[i] = (float)(i % 17) - 8;
    model_status status = model_init(&host, &config);
    if (status == IGRT_ERR_DEVICE) return 77;
    model_inputs in = {.x = x};
    model_outputs out = {.y = y};
    if (status || (status = model_run(&host, &in, &out))) return (int)status;
    config.stream = host.gpu.queue;
    config.flags = IGRT_ON_DEVICE;
    if ((status = model_init(&device, &config))) return (int)status;
    for (int i = 0; i < 2; i++) {
        igrt_gpu_mem a, b;
        if (igrt_gpu_alloc(&device.gpu, sizeof x, x, &a) || igrt_gpu_alloc(&device.gpu, sizeof z, NULL, &b)) return 98;
        in.x = (const float *)a;
        out.y = (float *)b;
        if ((status = model_run(&device, &in, &out))) return (int)status;
        if (igrt_gpu_read(&device.gpu, b, 0, z, sizeof z, 1)) return 98;
        for (int k = 0; k < Y; k++)
            if (z[k] != y[k]) { printf("%d: %g, not %g\\n", k, (double)z[k], (double)y[k]); return 99; }
        igrt_gpu_free(&device.gpu, a);
        igrt_gpu_free(&device.gpu, b);
    }
    model_deinit(&device);
    model_deinit(&host);
    return 0;
}
"""
