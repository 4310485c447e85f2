/* sizes.c - runs of one context whose sizes change: what it keeps of a launch is of these sizes
 * alone, and more of them than it keeps are made anew. Each run has the results of the one before
 * that had its sizes. */
#include "model.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 1200, WIDTH = 4 };

static float x[MOST * WIDTH], y[2 * MOST * WIDTH], z[MOST * WIDTH];
static double sums[MOST + 1];

/* Of all results, each with a weight of its own. */
static double sum_of(int n)
{
    double sum = 0;
    for (int i = 0; i < 2 * n * WIDTH; i++)
        sum += y[i] * (1 + i % 7);
    for (int i = 0; i < n * WIDTH; i++)
        sum += z[i] * (1 + i % 5);
    return sum;
}

static int run(model_ctx *ctx, int n)
{
    const model_inputs in = {x, {n, WIDTH}};
    model_outputs out;
    memset(&out, 0, sizeof out);
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
    out.y = y;
    out.z = z;
    return model_run(ctx, &in, &out);
}

int main(void)
{
    static unsigned char arena[MODEL_ARENA_BYTES(1) + 1];
    model_config config;
    model_ctx ctx;
    memset(&config, 0, sizeof config);
    config.struct_size = sizeof config;
    config.arena = arena;
    config.arena_bytes = sizeof arena;
    if (model_init(&ctx, &config)) {
        printf("init: %s\n", ctx.fault.what ? ctx.fault.what : "no reason given");
        return 1;
    }
    for (int i = 0; i < MOST * WIDTH; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MOST; i++) {
            const int n = 1 + i * 7 % MOST;
            if (run(&ctx, n)) {
                printf("a run of %d rows fails\n", n);
                return 1;
            }
            if (!round)
                sums[n] = sum_of(n);
            else if (sums[n] != sum_of(n)) {
                printf("%d rows: %g, and before %g\n", n, sum_of(n), sums[n]);
                return 1;
            }
            if (sums[n] == 0)
                return 1;
        }
    model_deinit(&ctx);
    return 0;
}
