/* board.c - the vectors, what comes before main(), and semihosting. board.ld has the memories. */
#include "board.h"

extern uint32_t data_from[], data_to[], data_end[], bss_to[], bss_end[];
extern char stack_top[];
int main(void);
void reset(void);

static void semihost(int op, const void *arg)
{
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arg;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_say(const char *text)
{
    semihost(4, text);
}

void board_say_number(const char *before, uint32_t value)
{
    char text[16];
    int at = 15;
    text[at] = 0;
    text[--at] = '\n';
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    board_say(before);
    board_say(text + at);
}

/* SYS_EXIT_EXTENDED: the application's end, with a status */
void board_leave(int status)
{
    const uint32_t why[2] = {0x20026, (uint32_t)status};
    semihost(0x20, why);
    for (;;)
        ;
}

static void fault(void)
{
    board_say("fault\n");
    board_leave(1);
}

void reset(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the FPU on */
    __asm__ volatile("dsb\nisb");
    for (uint32_t *to = data_to, *from = data_from; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_to; to < bss_end;)
        *to++ = 0;
    board_leave(main());
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};

#define REGISTER(address) (*(volatile uint32_t *)(address))
#if defined(__ARM_FEATURE_MVE) /* mps3-an547: SysTick */
#define CONTROL REGISTER(0xe000e010u)
#define RELOAD REGISTER(0xe000e014u)
#define NOW REGISTER(0xe000e018u)
enum { ON = 5, FIRST = 0xffffff }; /* it has 24 bits */
#else
#define CONTROL REGISTER(0x40000000u)
#define NOW REGISTER(0x40000004u)
#define RELOAD REGISTER(0x40000008u)
enum { ON = 1, FIRST = 0x7fffffff };
#endif

void board_clock_start(void)
{
    RELOAD = (uint32_t)FIRST;
    NOW = (uint32_t)FIRST;
    CONTROL = ON;
}

uint32_t board_clock(void)
{
    return (uint32_t)FIRST - NOW;
}
