/*
 * gguf_test.c - the GGUF reader on files written by hand, good, bad, cut off and mutated.
 *
 * Bytes are given in blocks of their exact size, so that sanitizers see a read past the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MUTATIONS = 5000 };

typedef struct {
    uint8_t bytes[4096];
    size_t len;
} GgufText;

static char err[300];

static void put(GgufText *w, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        w->bytes[w->len++] = (uint8_t)(v >> 8 * i);
}

static void put_text(GgufText *w, const char *text)
{
    put(w, strlen(text), 8);
    memcpy(w->bytes + w->len, text, strlen(text));
    w->len += strlen(text);
}

static void put_header(GgufText *w, uint32_t version, uint64_t tensors, uint64_t keys)
{
    memcpy(w->bytes, "GGUF", 4);
    w->len = 4;
    put(w, version, 4);
    put(w, tensors, 8);
    put(w, keys, 8);
}

static void put_number(GgufText *w, const char *key, uint32_t type, uint64_t v, size_t bytes)
{
    put_text(w, key);
    put(w, type, 4);
    put(w, v, bytes);
}

static void put_tensor(GgufText *w, const char *name, int rank, const uint64_t *dims, uint32_t type,
                       uint64_t offset)
{
    put_text(w, name);
    put(w, (uint64_t)rank, 4);
    for (int i = 0; i < rank; i++)
        put(w, dims[i], 8);
    put(w, type, 4);
    put(w, offset, 8);
}

/* Padding, then so many bytes 0, 1, 2 ... */
static void put_data(GgufText *w, size_t bytes)
{
    while (w->len % 32)
        put(w, 0, 1);
    for (size_t i = 0; i < bytes; i++)
        put(w, i, 1);
}

/* Every type of value, an array of numbers and one of texts, two tensors. */
static void put_all(GgufText *w)
{
    put_header(w, 3, 2, 14);
    put_number(w, "u8", 0, 200, 1);
    put_number(w, "i8", 1, (uint8_t)-3, 1);
    put_number(w, "u16", 2, 60000, 2);
    put_number(w, "i16", 3, (uint16_t)-4, 2);
    put_number(w, "u32", 4, 4000000000u, 4);
    put_number(w, "i32", 5, (uint32_t)-5, 4);
    put_number(w, "f32", 6, 0x3fc00000, 4);
    put_number(w, "yes", 7, 1, 1);
    put_text(w, "general.architecture");
    put(w, 8, 4);
    put_text(w, "llama");
    put_text(w, "numbers");
    put(w, 9, 4);
    put(w, 3, 4);
    put(w, 2, 8);
    put(w, 7, 2);
    put(w, (uint16_t)-8, 2);
    put_text(w, "tokens");
    put(w, 9, 4);
    put(w, 8, 4);
    put(w, 2, 8);
    put_text(w, "a");
    put_text(w, "");
    put_number(w, "u64", 10, UINT64_MAX, 8);
    put_number(w, "i64", 11, (uint64_t)-6, 8);
    put_number(w, "f64", 12, 0x4004000000000000, 8);
    put_tensor(w, "norm", 1, (uint64_t[]){4}, 0, 0);
    put_tensor(w, "q", 2, (uint64_t[]){64, 2}, 2, 32);
    put_data(w, 32 + 72);
}

static ingot_gguf *open_bytes(const uint8_t *bytes, size_t len)
{
    return ingot_gguf_open_memory("m", bytes, len, err, sizeof err);
}

static void refuse(const GgufText *w, const char *what)
{
    uint8_t *exact = malloc(w->len);
    memcpy(exact, w->bytes, w->len);
    assert_null(open_bytes(exact, w->len));
    if (!strstr(err, what))
        fail_msg("'%s' does not contain '%s'", err, what);
    free(exact);
}

static void values_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double is;
    } numbers[] = {{"u8", 200},  {"i8", -3},   {"u16", 60000}, {"i16", -4},
                   {"u32", 4e9}, {"i32", -5},  {"f32", 1.5},   {"yes", 1},
                   {"i64", -6},  {"f64", 2.5}, {"numbers", 7}};
    GgufText w = {0};
    double x;
    int64_t n;
    put_all(&w);
    ingot_gguf *g = open_bytes(w.bytes, w.len);
    if (!g)
        fail_msg("%s", err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const ingot_gguf_value *v = ingot_gguf_key(g, numbers[i].key);
        assert_non_null(v);
        assert_true(ingot_gguf_number(v, 0, &x) && x == numbers[i].is);
        assert_true(ingot_gguf_integer(v, 0, &n) ==
                    (numbers[i].is == (double)(int64_t)numbers[i].is));
    }
    assert_false(ingot_gguf_integer(ingot_gguf_key(g, "u64"), 0, &n)); /* beyond int64_t */
    const ingot_gguf_value *v = ingot_gguf_key(g, "numbers");
    assert_true(v->is_array && v->count == 2 && ingot_gguf_integer(v, 1, &n) && n == -8);
    assert_false(ingot_gguf_integer(v, 2, &n));
    assert_null(ingot_gguf_text(v, 0).at);
    v = ingot_gguf_key(g, "tokens");
    assert_true(ingot_gguf_text(v, 0).len == 1 && *ingot_gguf_text(v, 0).at == 'a');
    assert_int_equal(ingot_gguf_text(v, 1).len, 0);
    assert_null(ingot_gguf_text(v, 2).at);
    assert_false(ingot_gguf_number(v, 0, &x));
    assert_null(ingot_gguf_key(g, "none"));
    assert_null(ingot_gguf_text(NULL, 0).at);
    assert_string_equal(ingot_gguf_key_get(g, 0)->key, "f32");
    assert_null(ingot_gguf_key_get(g, 14));
    assert_string_equal(ingot_gguf_file(g, 0), "m");
    assert_null(ingot_gguf_file(g, 1));
    ingot_gguf_close(g);
}

static void tensors_are_found(void **state)
{
    (void)state;
    unsigned block, bytes;
    GgufText w = {0};
    put_all(&w);
    w.bytes[4] = 2; /* version 2 is the same */
    ingot_gguf *g = open_bytes(w.bytes, w.len);
    if (!g)
        fail_msg("%s", err);
    assert_int_equal(ingot_gguf_count(g), 2);
    const ingot_gguf_tensor *t = ingot_gguf_find(g, "q");
    assert_ptr_equal(t, ingot_gguf_get(g, 1));
    assert_int_equal(t->type, INGOT_GGUF_Q4_0);
    assert_true(t->rank == 2 && t->dims[0] == 64 && t->dims[1] == 2 && t->dims[2] == 1);
    assert_int_equal(t->bytes, 72);
    assert_int_equal(*(const uint8_t *)t->data, 32);
    assert_int_equal(ingot_gguf_find(g, "norm")->bytes, 16);
    assert_null(ingot_gguf_find(g, "none"));
    assert_null(ingot_gguf_get(g, 2));
    assert_string_equal(ingot_gguf_type_name(t->type, &block, &bytes), "Q4_0");
    assert_true(block == 32 && bytes == 18);
    assert_null(ingot_gguf_type_name(4, NULL, NULL));
    ingot_gguf_close(g);
}

/* A file of one tensor. */
static void one_tensor(GgufText *w, int rank, const uint64_t *dims, uint32_t type, uint64_t offset)
{
    put_header(w, 3, 1, 0);
    put_tensor(w, "t", rank, dims, type, offset);
    put_data(w, 64);
}

static void bad_tensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        int rank;
        uint64_t dims[5];
        uint32_t type;
        uint64_t offset;
    } bad[] = {
        {"has 0 dims", 0, {0}, 0, 0},
        {"has 5 dims", 5, {1, 1, 1, 1, 1}, 0, 0},
        {"dim 1 is 0", 2, {4, 0}, 0, 0},
        {"type is number 4,", 1, {32}, 4, 0},
        {"type is number 4294967295,", 1, {32}, UINT32_MAX, 0},
        {"no whole number of blocks of 32 (Q4_0)", 2, {33, 2}, 2, 0},
        {"no multiple of the alignment 32", 1, {4}, 0, 16},
        {"cut off: its 68 bytes", 1, {17}, 0, 0},
        {"cut off", 1, {4}, 0, UINT64_MAX - 31},
        {"product beyond 2^63", 4, {1 << 30, 1 << 30, 1 << 30, 1 << 30}, 0, 0},
        {"product beyond 2^63", 2, {UINT64_MAX / 32 * 32, 2}, 2, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        GgufText w = {0};
        one_tensor(&w, bad[i].rank, bad[i].dims, bad[i].type, bad[i].offset);
        refuse(&w, bad[i].why);
        assert_non_null(strstr(err, "m: tensor 't': "));
    }
    GgufText w = {0};
    put_header(&w, 3, 2, 0);
    put_tensor(&w, "a", 1, (uint64_t[]){16}, 0, 0);
    put_tensor(&w, "b", 1, (uint64_t[]){4}, 0, 32);
    put_data(&w, 64);
    refuse(&w, "tensor 'b': its data overlap those of 'a'");
    put_header(&w, 3, 2, 0);
    put_tensor(&w, "a", 1, (uint64_t[]){4}, 0, 0);
    put_tensor(&w, "a", 1, (uint64_t[]){4}, 0, 32);
    put_data(&w, 64);
    refuse(&w, "tensor 'a' is there twice");
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    GgufText w = {0};
    assert_null(ingot_gguf_open_memory("m", NULL, 0, NULL, 0));
    put_header(&w, 1, 0, 0);
    refuse(&w, "GGUF of version 1, not 2 or 3");
    put_header(&w, 3u << 24, 0, 0);
    refuse(&w, "big-endian");
    put_header(&w, 3, 0, UINT64_MAX);
    refuse(&w, "keys and 0 tensors do not fit");
    put_header(&w, 3, UINT64_MAX / 2, 0);
    refuse(&w, "do not fit");
    put_header(&w, 3, 0, 2);
    put_number(&w, "a", 4, 1, 4);
    put_number(&w, "a", 4, 1, 4);
    refuse(&w, "key 'a' is there twice");
    put_header(&w, 3, 0, 1);
    put_number(&w, "a", 13, 1, 8);
    refuse(&w, "key 'a': its value has type 13");
    put_header(&w, 3, 0, 1);
    put_number(&w, "a", 7, 2, 4);
    refuse(&w, "key 'a': a bool is 2");
    put_header(&w, 3, 0, 1);
    put_number(&w, "a\n", 7, 1, 4);
    refuse(&w, "control character");
    put_header(&w, 3, 0, 1);
    put_number(&w, "", 7, 1, 8);
    refuse(&w, "has 0 bytes");
    put_header(&w, 3, 0, 1);
    put_number(&w, "general.alignment", 4, 24, 4);
    refuse(&w, "no power of two");
    put_header(&w, 3, 0, 1);
    put_number(&w, "a", 9, 9, 4);
    put(&w, 1, 8);
    refuse(&w, "array of arrays");
    put_header(&w, 3, 0, 1);
    put_number(&w, "a", 9, 8, 4);
    put(&w, UINT64_MAX / 8, 8);
    refuse(&w, "elements do not fit");
    put_header(&w, 3, 0, 1);
    put_number(&w, "split.no", 2, 1, 4);
    refuse(&w, "file 2 of a model in several");
    put_header(&w, 3, 0, 1);
    put_number(&w, "split.count", 2, 2, 4);
    refuse(&w, "the first of 2 files");
    memcpy(w.bytes, "GGML", 4);
    refuse(&w, "not a GGUF file");
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    GgufText w = {0};
    put_all(&w);
    for (size_t n = 0; n <= w.len; n++) {
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, w.bytes, n);
        ingot_gguf *g = open_bytes(exact, n);
        assert_true((g != NULL) == (n == w.len));
        ingot_gguf_close(g);
        free(exact);
    }
}

static uint32_t drawn(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

/* What is accepted keeps the promises: data and texts inside the file, found by their names. */
static void check_promises(const ingot_gguf *g, const uint8_t *bytes, size_t len)
{
    const ingot_gguf_tensor *t;
    const ingot_gguf_value *v;
    for (size_t i = 0; (t = ingot_gguf_get(g, i)); i++) {
        const uint8_t *at = t->data;
        assert_true(at >= bytes && at <= bytes + len && t->bytes <= (size_t)(bytes + len - at));
        assert_ptr_equal(ingot_gguf_find(g, t->name), t);
    }
    for (size_t i = 0; (v = ingot_gguf_key_get(g, i)); i++) {
        assert_ptr_equal(ingot_gguf_key(g, v->key), v);
        for (size_t k = 0; v->texts && k < v->count; k++)
            assert_true(v->texts[k].len <= (size_t)((const char *)bytes + len - v->texts[k].at));
    }
}

static void mutations_are_refused_or_sound(void **state)
{
    (void)state;
    GgufText w = {0};
    uint32_t seed = 1;
    int accepted = 0;
    put_all(&w);
    for (int i = 0; i < MUTATIONS; i++) {
        size_t len = drawn(&seed, 8) ? w.len : drawn(&seed, (uint32_t)w.len + 1);
        uint8_t *exact = malloc(len + 1);
        memcpy(exact, w.bytes, len);
        for (uint32_t k = drawn(&seed, 4); k-- > 0 && len;) {
            static const uint8_t often[] = {0, 1, 0x7f, 0x80, 0xff};
            const uint32_t at = drawn(&seed, (uint32_t)len), how = drawn(&seed, 10);
            exact[at] = how < 5 ? often[how] : (uint8_t)drawn(&seed, 256);
        }
        ingot_gguf *g = open_bytes(exact, len);
        if (g)
            check_promises(g, exact, len);
        else
            assert_true(strlen(err) > 8);
        accepted += g != NULL;
        ingot_gguf_close(g);
        free(exact);
    }
    assert_true(accepted > MUTATIONS / 10 && accepted < MUTATIONS);
}

static void write_part(const char *path, int no, int tensors)
{
    GgufText w = {0};
    put_header(&w, 3, 1, no ? 2 : 3);
    put_number(&w, "split.no", 2, (uint64_t)no, 2);
    put_number(&w, "split.count", 2, 2, 2);
    if (!no)
        put_number(&w, "split.tensors.count", 5, (uint64_t)tensors, 4);
    put_tensor(&w, no ? "b" : "a", 1, (uint64_t[]){4}, 0, 0);
    put_data(&w, 16);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(w.bytes, 1, w.len, f), w.len);
    fclose(f);
}

static void parts_are_one_model(void **state)
{
    (void)state;
    char path[2][64];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "/tmp/gguf_test_%ld-%05d-of-00002.gguf", (long)getpid(),
                 i + 1);
        write_part(path[i], i, 2);
    }
    ingot_gguf *g = ingot_gguf_open(path[0], err, sizeof err);
    if (!g)
        fail_msg("%s", err);
    assert_int_equal(ingot_gguf_count(g), 2);
    assert_non_null(ingot_gguf_find(g, "b"));
    assert_string_equal(ingot_gguf_file(g, 1), path[1]);
    ingot_gguf_close(g);
    assert_null(ingot_gguf_open(path[1], err, sizeof err));
    assert_non_null(strstr(err, "it is file 2 of a model in several, not file 1"));
    write_part(path[0], 0, 3);
    assert_null(ingot_gguf_open(path[0], err, sizeof err));
    assert_non_null(strstr(err, "its 2 files have 2 tensors, not 3"));
    unlink(path[1]);
    assert_null(ingot_gguf_open(path[0], err, sizeof err));
    assert_non_null(strstr(err, "-00002-of-00002.gguf: cannot be opened"));
    unlink(path[0]);
    assert_null(ingot_gguf_open("/", err, sizeof err));
    assert_string_equal(err, "/: is not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),         cmocka_unit_test(tensors_are_found),
        cmocka_unit_test(bad_headers_are_refused), cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(every_cut_is_refused),    cmocka_unit_test(mutations_are_refused_or_sound),
        cmocka_unit_test(parts_are_one_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
