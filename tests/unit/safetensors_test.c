/*
 * safetensors_test.c - the safetensors reader on files written by hand, good and bad.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t file[4096];
static char err[300];

/* A file of this header and data_len bytes 0, 1, 2... */
static ingot_safetensors *open_header(const char *header, size_t data_len)
{
    size_t n = strlen(header);
    memset(file, 0, 8);
    file[0] = (uint8_t)n;
    file[1] = (uint8_t)(n >> 8);
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < data_len; i++)
        file[8 + n + i] = (uint8_t)i;
    /* an exact block, so that sanitizers see a read past its end */
    uint8_t *exact = malloc(8 + n + data_len);
    memcpy(exact, file, 8 + n + data_len);
    ingot_safetensors *st =
        ingot_safetensors_open_memory("m", exact, 8 + n + data_len, err, sizeof err);
    if (!st)
        free(exact);
    return st;
}

static void close_copy(ingot_safetensors *st, const void *data_start, size_t header)
{
    uint8_t *exact = (uint8_t *)(uintptr_t)data_start - header - 8;
    ingot_safetensors_close(st);
    free(exact);
}

static void refuse(const char *header, size_t data_len, const char *what)
{
    assert_null(open_header(header, data_len));
    if (!strstr(err, what))
        fail_msg("%s: '%s' does not contain '%s'", header, err, what);
}

static void tensors_are_found(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"a\\u00e9\":\"\\ud83d\\ude00\\n\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[2,10]},\n"
        " \"a\" : { \"shape\" : [] , \"data_offsets\":[0,2], \"dtype\":\"BF16\"},"
        "\"empty\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[10,10]},"
        "\"q\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[10,13]}}   ";
    ingot_safetensors *st = open_header(header, 13);
    if (!st)
        fail_msg("%s", err);
    assert_int_equal(ingot_safetensors_count(st), 4);
    const ingot_safetensors_tensor *a = ingot_safetensors_get(st, 0);
    assert_string_equal(a->name, "a");
    assert_int_equal(a->rank, 0);
    assert_int_equal(a->dtype, INGOT_ST_BF16);
    assert_ptr_equal(ingot_safetensors_find(st, "a"), a);
    const ingot_safetensors_tensor *b = ingot_safetensors_find(st, "b");
    assert_non_null(b);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->bytes, 8);
    assert_memory_equal(b->data, "\2\3\4\5", 4);
    assert_non_null(ingot_safetensors_find(st, "empty"));
    assert_int_equal(ingot_safetensors_find(st, "q")->bytes, 3);
    assert_null(ingot_safetensors_find(st, "c"));
    assert_null(ingot_safetensors_find(st, ""));
    assert_null(ingot_safetensors_get(st, 4));
    assert_string_equal(ingot_safetensors_metadata(st, "format"), "pt");
    assert_string_equal(ingot_safetensors_metadata(st, "a\xc3\xa9"), "\xf0\x9f\x98\x80\n");
    assert_null(ingot_safetensors_metadata(st, "b"));
    assert_string_equal(ingot_safetensors_dtype_name(b->dtype), "F32");
    close_copy(st, a->data, sizeof header - 1);
}

static void files_without_tensors_are_fine(void **state)
{
    (void)state;
    static const char *const headers[] = {"{}", "{ }", "{\"__metadata__\":{}}"};
    for (size_t i = 0; i < 3; i++) {
        memset(file, 0, 8);
        file[0] = (uint8_t)strlen(headers[i]);
        memcpy(file + 8, headers[i], strlen(headers[i]));
        ingot_safetensors *st =
            ingot_safetensors_open_memory("m", file, 8 + strlen(headers[i]), err, sizeof err);
        assert_non_null(st);
        assert_int_equal(ingot_safetensors_count(st), 0);
        ingot_safetensors_close(st);
    }
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    static const uint8_t short_file[7], long_header[16] = {0, 0, 0, 0, 0, 0, 0, 1},
                                        cut_header[9] = {2, 0, 0, 0, 0, 0, 0, 0, '{'};
    assert_null(ingot_safetensors_open_memory("m", short_file, 7, err, sizeof err));
    assert_non_null(strstr(err, "m: not a safetensors file: it is shorter than 8 bytes"));
    assert_null(ingot_safetensors_open_memory("m", long_header, 16, err, sizeof err));
    assert_non_null(strstr(err, "longer than 100 MB"));
    assert_null(ingot_safetensors_open_memory("m", cut_header, 9, NULL, 0));
    refuse("", 0, "does not start with '{'");
    refuse(" {}", 0, "does not start with '{'");
    refuse("[]", 0, "does not start with '{'");
    refuse("{", 0, "string is missing");
    refuse("{}x", 0, "follows the header");
    refuse("{}", 1, "data follows");
    refuse("{\"a\":1}", 0, "tensor 'a': is not an object");
    refuse("{\"a\"}", 0, "colon");
    refuse("{\"a", 0, "does not end");
    refuse("{\"a\\", 0, "escape");
    refuse("{\"\\u0000\":{}}", 0, "escape");
    refuse("{\"\\ud800\":{}}", 0, "escape");
    refuse("{\"\\udc00\":{}}", 0, "escape");
    refuse("{\"\\u12\":{}}", 0, "escape");
    refuse("{\"\\x\":{}}", 0, "escape");
    refuse("{\"\x01\":{}}", 0, "control character");
    refuse("{\"\xff\":{}}", 0, "UTF-8");
    refuse("{\"\xc0\xaf\":{}}", 0, "UTF-8");
    refuse("{\"\xed\xa0\x80\":{}}", 0, "UTF-8");
    refuse("{\"\xe2\x82", 0, "UTF-8");
    refuse("{\"__metadata__\":[]}", 0, "not an object");
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "string is missing");
    refuse("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "key twice");
    refuse("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "there twice");
}

#define ENTRY(name, rest) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" rest "}"

static void bad_tensors_are_refused(void **state)
{
    (void)state;
    refuse("{\"a\":{}}", 0, "string is missing");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "tensor 'a': lacks");
    refuse("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1, "has a key twice");
    refuse("{\"a\":{\"type\":\"U8\"}}", 1, "has a key other than");
    refuse("{\"a\":{\"dtype\":\"U7\"}}", 1, "dtype is not known");
    refuse("{\"a\":{\"dtype\":8}}", 1, "string is missing");
    refuse("{\"a\":{\"shape\":[1,]}}", 1, "whole number");
    refuse("{\"a\":{\"shape\":[-1]}}", 1, "whole number");
    refuse("{\"a\":{\"shape\":[01]}}", 1, "whole number");
    refuse("{\"a\":{\"shape\":[1.0]}}", 1, "not whole");
    refuse("{\"a\":{\"shape\":[1e3]}}", 1, "not whole");
    refuse("{\"a\":{\"shape\":[18446744073709551616]}}", 1, "too large");
    refuse("{\"a\":{\"shape\":[1}}", 1, "comma or bracket");
    refuse("{\"a\":{\"data_offsets\":[1]}}", 1, "two numbers");
    refuse("{\"a\":{\"data_offsets\":[1,2,3]}}", 1, "two numbers");
    refuse("{\"a\":{\"dtype\":\"I64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
           0, "do not fit");
    refuse("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "do not fit");
    refuse("{" ENTRY("a", "[0,3]") "}", 3, "do not fit");
    refuse("{" ENTRY("a", "[0,2]") "}", 1, "outside the file");
    refuse("{" ENTRY("a", "[2,0]") "}", 2, "outside the file");
    refuse("{" ENTRY("a", "[1,3]") "}", 3, "tensor 'a': there is a hole");
    refuse("{" ENTRY("a", "[0,2]") "," ENTRY("b", "[1,3]") "}", 3, "tensor 'b': its data overlaps");
    refuse("{" ENTRY("a", "[0,2]") "," ENTRY("a", "[2,4]") "}", 4, "tensor 'a': is there twice");
    refuse("{" ENTRY("a", "[0,2]") ",}", 2, "string is missing");
    refuse("{" ENTRY("a\\n", "[0,3]") "}", 3, "tensor 'a?'");
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    static const char header[] = "{" ENTRY("a", "[0,2]") "," ENTRY("b", "[2,4]") "}";
    uint8_t whole[8 + sizeof header - 1 + 4] = {sizeof header - 1};
    memcpy(whole + 8, header, sizeof header - 1);
    for (size_t n = 0; n <= sizeof whole; n++) {
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, whole, n);
        ingot_safetensors *st = ingot_safetensors_open_memory("m", exact, n, err, sizeof err);
        assert_true((st != NULL) == (n == sizeof whole));
        ingot_safetensors_close(st);
        free(exact);
    }
}

static void files_are_mapped(void **state)
{
    (void)state;
    assert_null(ingot_safetensors_open("/nonexistent.safetensors", err, sizeof err));
    assert_string_equal(err, "/nonexistent.safetensors: cannot be read: it cannot be opened");
    assert_null(ingot_safetensors_open("/", err, sizeof err));
    assert_string_equal(err, "/: cannot be read: it is not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found),       cmocka_unit_test(files_without_tensors_are_fine),
        cmocka_unit_test(bad_headers_are_refused), cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(every_cut_is_refused),    cmocka_unit_test(files_are_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
