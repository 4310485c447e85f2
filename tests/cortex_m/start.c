/* start.c - one run of a model on QEMU's mps2-an386, a Cortex-M4F (examples/cortex_m/board.h): its
 * status, the ticks it takes, and its outputs. Without __arm__ it is a program of the host that
 * tells what the outputs are to be. */
#include "board.h"
#include "model.h"

#if !defined(__arm__)

#include <stdio.h>

void board_say(const char *text)
{
    fputs(text, stdout);
}

void board_say_number(const char *before, uint32_t value)
{
    printf("%s%u\n", before, (unsigned)value);
}

void board_clock_start(void)
{
}

uint32_t board_clock(void)
{
    return 0;
}

#endif

/* name and the bytes in hexadecimal */
static void dump(const char *name, const void *data, uint32_t bytes)
{
    const unsigned char *p = data;
    char two[3] = {0};
    board_say(name);
    for (uint32_t i = 0; i < bytes; i++) {
        two[0] = "0123456789abcdef"[p[i] >> 4];
        two[1] = "0123456789abcdef"[p[i] & 15];
        board_say(two);
    }
    board_say("\n");
}

static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static model_ctx ctx;

int main(void)
{
    RUN_DECLARE
    model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    int status = (int)model_init(&ctx, &config);
    board_clock_start();
    if (!status)
        status = (int)model_run(&ctx, &in, &out);
    uint32_t ticks = board_clock();
    board_say_number("status ", (uint32_t)status);
    board_say_number("ticks ", ticks);
    RUN_DUMP
    return 0;
}
