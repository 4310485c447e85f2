/* board.h - QEMU's mps2-an386, a Cortex-M4F (and mps2-an385, an M3, and mps3-an547, an M55): text
 * and an end by semihosting, and a clock. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_say(const char *text);
void board_say_number(const char *before, uint32_t value); /* and a newline */
void board_leave(int status);                              /* ends QEMU */

/* Ticks of a timer of 25 MHz. With -icount shift=0 an instruction takes a nanosecond, so a tick is
 * 40 instructions; of mps3-an547's, of 32 MHz, 31.25. */
void board_clock_start(void);
uint32_t board_clock(void); /* since then */

#endif
