/* start.c - one run of a model on QEMU's mps2-an386 (a Cortex-M4F), told by semihosting: the ticks of a timer of 25 MHz.  With
 * -icount shift=0 an instruction takes a nanosecond, so a tick is 40 instructions.  Without __arm__ it is a program of the
 * host that tells what the outputs are to be. */
#include <stdint.h>

#include "model.h"

#if defined(__arm__)

extern uint32_t data_from[], data_to[], data_end[], bss_to[], bss_end[];
extern char stack_top[];
int main(void);

static void semihost(int op, const void *arg)
{
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arg;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void put(const char *text)
{
    semihost(4, text);
}

static void leave(void)
{
    semihost(0x18, (const void *)0x20026);
    for (;;)
        ;
}

static void fault(void)
{
    semihost(4, "fault\n");
    leave();
}

void reset(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the FPU on */
    __asm__ volatile("dsb\nisb");
    for (uint32_t *to = data_to, *from = data_from; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_to; to < bss_end;)
        *to++ = 0;
    main();
    leave();
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};

#define TIMER(offset) (*(volatile uint32_t *)(0x40000000u + (offset)))

#else

#include <stdio.h>

static void put(const char *text)
{
    fputs(text, stdout);
}

static uint32_t timer[4];
#define TIMER(offset) timer[(offset) / 4]

#endif

static void say(const char *name, uint32_t value)
{
    char text[16];
    int at = 15;
    text[at] = 0;
    text[--at] = '\n';
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    put(name);
    put(text + at);
}

/* name and the bytes in hexadecimal */
static void dump(const char *name, const void *data, uint32_t bytes)
{
    const unsigned char *p = data;
    char two[3] = {0};
    put(name);
    for (uint32_t i = 0; i < bytes; i++) {
        two[0] = "0123456789abcdef"[p[i] >> 4];
        two[1] = "0123456789abcdef"[p[i] & 15];
        put(two);
    }
    put("\n");
}

static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static model_ctx ctx;

int main(void)
{
    RUN_DECLARE
    model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    int status = (int)model_init(&ctx, &config);
    TIMER(8) = TIMER(4) = 0xffffffffu;
    TIMER(0) = 1;
    uint32_t from = TIMER(4);
    if (!status)
        status = (int)model_run(&ctx, &in, &out);
    uint32_t ticks = from - TIMER(4);
    say("status ", (uint32_t)status);
    say("ticks ", ticks);
    RUN_DUMP
    return 0;
}
