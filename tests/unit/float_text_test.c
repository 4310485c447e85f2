/* Floats as text: the same that the C library writes with as many digits as it takes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "float_text.h"

static void same(float x)
{
    char text[FLOAT_TEXT], want[FLOAT_TEXT];
    float_text(text, x);
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(want, sizeof want, "%.*g", digits, (double)x);
        if ((float)strtod(want, NULL) == x)
            break;
    }
    assert_string_equal(text, want);
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_floats(void **state)
{
    (void)state;
    const float some[] = {0,
                          1,
                          10,
                          0.1f,
                          0.5f,
                          1e-4f,
                          1e-5f,
                          9.9999995e-5f,
                          99999.99f,
                          999999.9f,
                          1e6f,
                          123456.7f,
                          16777216,
                          1e9f,
                          1e10f,
                          3.4028235e38f,
                          1e-38f,
                          1e-45f,
                          0.3f,
                          2.5f,
                          0.00048828125f,
                          1.00000095f,
                          8388608.5f,
                          65504,
                          1e-9f};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        same(some[i]);
        same(-some[i]);
    }
    for (int i = -40; i <= 40; i++) /* beside powers of ten */
        for (int j = -3; j <= 3; j++) {
            const float power =
                strtof((char[]){'1', 'e', i < 0 ? '-' : '+', (char)('0' + abs(i) / 10),
                                (char)('0' + abs(i) % 10), 0},
                       NULL);
            uint32_t bits;
            memcpy(&bits, &power, sizeof bits);
            if (bits > 3 && isfinite(of_bits(bits + 3)))
                same(of_bits(bits + (uint32_t)j));
        }
    uint32_t h = 1;
    for (int i = 0; i < 40000; i++) {
        h = h * 1664525 + 1013904223;
        const float x = of_bits(h), near = (float)(h >> 8) / (1 << 24);
        if (isfinite(x))
            same(x);
        same(near - 0.5f);                        /* as weights are */
        same((float)(h >> 20) / (1 << (h % 13))); /* few digits, and ties */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
