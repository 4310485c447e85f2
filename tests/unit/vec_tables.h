/* vec_tables.h - of vec_test.c: bytes that a table makes of bytes, igrt_table.h.
 * Included by vec_test.c. */
#ifndef VEC_TABLES_H
#define VEC_TABLES_H

#include <stdbool.h>

#include "runtime_min/igrt_table.h"

static uint32_t next(void); /* random bits */

/* n of them, somewhere in a buffer whose other elements stay as they are; in place, too. */
static void tables(void **state)
{
    (void)state;
    enum { ALL = 512, LEFT = 7 };
    for (int turn = 0; turn < 500; turn++) {
        uint8_t table[256], x[ALL], y[ALL];
        int16_t s[ALL], u[ALL];
        const int from = (int)(next() % 64), n = (int)(next() % (ALL - 64)),
                  flip = next() % 2 ? 128 : 0;
        for (int i = 0; i < 256; i++)
            table[i] = (uint8_t)next();
        for (int i = 0; i < ALL; i++) {
            x[i] = (uint8_t)next();
            y[i] = LEFT;
            s[i] = u[i] = LEFT;
        }
        igrt_table_8(y + from, x + from, table, flip, n);
        igrt_table_i8_i16(s + from, x + from, table, flip, n);
        igrt_table_u8_i16(u + from, x + from, table, flip, n);
        for (int i = 0; i < ALL; i++) {
            const bool made = i >= from && i < from + n;
            const uint8_t wanted = made ? table[x[i] ^ flip] : LEFT;
            assert_int_equal(y[i], wanted);
            assert_int_equal(s[i], (int8_t)wanted);
            assert_int_equal(u[i], wanted);
        }
        igrt_table_8(x + from, x + from, table, flip, n);
        assert_memory_equal(x + from, y + from, (size_t)n);
    }
}

#endif
