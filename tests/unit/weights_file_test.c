/* A file of weights, mapped and read: the same bytes at aligned addresses, and no other length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "igrt_weights.h"

static const char path[] = "weights_file_test.weights";
static unsigned char some[4099];

static void write_file(size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof some; i++)
        some[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t n; bytes; bytes -= n) {
        n = bytes < sizeof some ? bytes : sizeof some;
        assert_int_equal(fwrite(some, 1, n, f), n);
    }
    assert_int_equal(fclose(f), 0);
}

static void check(size_t bytes)
{
    const char *(*const get[])(igrt_weights *, const char *, size_t) = {igrt_weights_open,
                                                                        igrt_weights_read};
    write_file(bytes);
    for (int i = 0; i < 2; i++) {
        igrt_weights w;
        assert_null(get[i](&w, path, bytes));
        assert_int_equal(w.bytes, bytes);
        assert_int_equal((uintptr_t)w.data % 64, 0);
        for (size_t at = 0; at < bytes; at += sizeof some) {
            const size_t n = bytes - at < sizeof some ? bytes - at : sizeof some;
            assert_memory_equal((const unsigned char *)w.data + at, some, n);
        }
        igrt_weights_close(&w);
        igrt_weights_close(&w); /* of nothing */
        assert_non_null(get[i](&w, path, bytes + 1));
        assert_null(w.data);
        assert_int_equal(w.bytes, 0);
        assert_non_null(get[i](&w, "weights_file_test.none", bytes));
    }
    assert_int_equal(remove(path), 0);
}

static void same_bytes(void **state)
{
    (void)state;
    check(1000);            /* less than a page */
    check((size_t)5 << 20); /* several huge ones */
    check(((size_t)2 << 20) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
