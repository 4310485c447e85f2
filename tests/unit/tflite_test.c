/*
 * tflite_test.c - the TensorFlow Lite reader on a file written by hand, good, bad, cut off and
 * mutated.
 *
 * Bytes are given in blocks of their exact size, so that sanitizers see a read past the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tflite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MUTATIONS = 6000, MOST_FIELDS = 12 };

/* A FlatBuffer, parents before what they refer to. */
typedef struct {
    uint8_t bytes[4096];
    size_t len;
} TfliteText;

static char err[300];

static void put_at(TfliteText *w, size_t at, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        w->bytes[at + i] = (uint8_t)(v >> 8 * i);
}

static void put(TfliteText *w, uint64_t v, size_t bytes)
{
    put_at(w, w->len, v, bytes);
    w->len += bytes;
}

static void put_align(TfliteText *w)
{
    while (w->len % 8)
        put(w, 0, 1);
}

/* A table of fields of so many bytes (0: it has its default); where each is goes to at[]. */
static size_t put_table(TfliteText *w, const char *fields, size_t *at)
{
    const size_t n = strlen(fields);
    size_t size = 4, table;
    put_align(w);
    put(w, 4 + 2 * n, 2);
    const size_t bytes_at = w->len;
    put(w, 0, 2);
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = (size_t)(fields[i] - '0');
        put(w, bytes ? size : 0, 2);
        at[i] = size;
        size += bytes;
    }
    put_at(w, bytes_at, size, 2);
    table = w->len;
    put(w, 4 + 2 * n, 4);
    while (w->len < table + size)
        put(w, 0, 1);
    for (size_t i = 0; i < n; i++)
        at[i] += table;
    return table;
}

static void put_link(TfliteText *w, size_t at, size_t to)
{
    put_at(w, at, to - at, 4);
}

/* A list of numbers of so many bytes that the field at `at` refers to; where it begins. */
static size_t put_list(TfliteText *w, size_t at, size_t n, const int64_t *v, size_t bytes)
{
    put_align(w);
    put(w, 0, 4);
    put_link(w, at, w->len);
    put(w, n, 4);
    const size_t begin = w->len;
    for (size_t i = 0; i < n; i++)
        put(w, v ? (uint64_t)v[i] : 0, bytes);
    return begin;
}
#define LIST(at, bytes, ...)                                                                      \
    put_list(w, at, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, \
             bytes)

static void put_text(TfliteText *w, size_t at, const char *text)
{
    put_align(w);
    put_link(w, at, w->len);
    put(w, strlen(text), 4);
    for (; *text; text++)
        put(w, (uint8_t)*text, 1);
    put(w, 0, 1);
}

/* shape, type, buffer, name, quantization, is_variable, sparsity, signature */
static void put_tensor(TfliteText *w, size_t link, const char *name, int64_t rows, uint64_t buffer,
                       int scales)
{
    size_t at[MOST_FIELDS], q[MOST_FIELDS];
    put_link(w, link, put_table(w, "41444004", at));
    LIST(at[0], 4, rows, 2);
    put_at(w, at[1], 9, 1);
    put_at(w, at[2], buffer, 4);
    put_text(w, at[3], name);
    LIST(at[7], 4, rows == 1 ? -1 : rows, 2);
    put_link(w, at[4], put_table(w, "0044004", q));
    if (scales == 1) { /* 0.5; 0.25 */
        LIST(q[2], 4, 0x3f000000);
        LIST(q[3], 8, -128);
    } else {
        LIST(q[2], 4, 0x3f000000, 0x3e800000);
        LIST(q[3], 8, 0, 0);
    }
}

/* y = x w: two rows of two weights, a scale each. */
static void put_graph(TfliteText *w, size_t link)
{
    size_t at[MOST_FIELDS], op[MOST_FIELDS], options[MOST_FIELDS], list;
    put_link(w, link, put_table(w, "44444", at));
    list = put_list(w, at[0], 3, NULL, 4);
    put_tensor(w, list, "x", 1, 0, 1);
    put_tensor(w, list + 4, "w", 2, 1, 2);
    put_tensor(w, list + 8, "y", 1, 0, 1);
    LIST(at[1], 4, 0);
    LIST(at[2], 4, 2);
    list = put_list(w, at[3], 1, NULL, 4);
    put_text(w, at[4], "main");
    put_link(w, list, put_table(w, "44414", op));
    LIST(op[1], 4, 0, 1, -1);
    LIST(op[2], 4, 2);
    put_at(w, op[3], 8, 1);
    put_link(w, op[4], put_table(w, "101", options));
    put_at(w, options[0], 3, 1);
    put_at(w, options[2], 1, 1);
}

static void put_names(TfliteText *w, size_t at, const char *name, uint64_t tensor)
{
    size_t t[MOST_FIELDS], list = put_list(w, at, 1, NULL, 4);
    put_link(w, list, put_table(w, "44", t));
    put_text(w, t[0], name);
    put_at(w, t[1], tensor, 4);
}

static void put_all(TfliteText *w)
{
    size_t root[MOST_FIELDS], at[MOST_FIELDS], list;
    memset(w, 0, sizeof *w);
    put(w, 0, 4);
    memcpy(w->bytes + 4, "TFL3", 4);
    w->len = 8;
    put_link(w, 0, put_table(w, "44404004", root));
    put_at(w, root[0], 3, 4);
    list = put_list(w, root[1], 1, NULL, 4);
    put_link(w, list, put_table(w, "1044", at));
    put_at(w, at[0], 9, 1);
    put_at(w, at[2], 5, 4);
    put_at(w, at[3], 9, 4);
    list = put_list(w, root[2], 1, NULL, 4);
    put_graph(w, list);
    list = put_list(w, root[4], 2, NULL, 4);
    put_link(w, list, put_table(w, "", at));
    put_link(w, list + 4, put_table(w, "4", at));
    LIST(at[0], 1, 1, 2, 3, 4);
    list = put_list(w, root[7], 1, NULL, 4);
    put_link(w, list, put_table(w, "44404", at));
    put_names(w, at[0], "image", 0);
    put_names(w, at[1], "scores", 2);
    put_text(w, at[2], "serving_default");
}

static ingot_tflite *open_bytes(const uint8_t *bytes, size_t len)
{
    return ingot_tflite_open_memory("m", bytes, len, err, sizeof err);
}

static void model_is_read(void **state)
{
    (void)state;
    TfliteText w;
    put_all(&w);
    ingot_tflite *f = open_bytes(w.bytes, w.len);
    if (!f)
        fail_msg("%s", err);
    const ingot_tflite_graph *g = ingot_tflite_graph_get(f, 0);
    assert_true(g->n_tensors == 3 && g->n_ops == 1 && g->in.n == 1 && g->out.n == 1);
    assert_string_equal(g->name, "main");
    assert_int_equal(ingot_tflite_i32(&g->out, 0), 2);
    assert_null(ingot_tflite_graph_get(f, 1));
    const ingot_tflite_tensor *x = &g->tensors[0], *t = &g->tensors[1];
    assert_string_equal(t->name, "w");
    assert_true(t->type == INGOT_TFLITE_INT8 && t->bytes == 4 && t->data[2] == 3);
    assert_true(t->scales.n == 2 && ingot_tflite_f32(&t->scales, 1) == 0.25f);
    assert_true(x->scales.n == 1 && ingot_tflite_i64(&x->zeros, 0) == -128 && !x->data);
    assert_true(x->signature.n == 2 && ingot_tflite_i32(&x->signature, 0) == -1);
    const ingot_tflite_op *op = &g->ops[0];
    assert_true(op->builtin == 9 && op->version == 5 && !op->custom[0] && op->options_type == 8);
    assert_true(op->in.n == 3 && ingot_tflite_i32(&op->in, 2) == -1);
    assert_int_equal(ingot_tflite_int(&op->options, 0, 1, 0), 3);
    assert_int_equal(ingot_tflite_int(&op->options, 1, 1, 7), 7); /* not there */
    assert_int_equal(ingot_tflite_int(&op->options, 9, 4, -7), -7);
    assert_int_equal(ingot_tflite_int(&op->options, 2, 8, 5), 5); /* goes beyond the table */
    assert_int_equal(ingot_tflite_elements(&op->options, 0, 4).n, 0);
    assert_string_equal(ingot_tflite_text(&op->options, 1), "");
    const ingot_tflite_signature *s = ingot_tflite_signature_get(f, 0);
    assert_string_equal(s->key, "serving_default");
    assert_string_equal(s->in[0].name, "image");
    assert_true(s->n_out == 1 && s->out[0].tensor == 2 && s->graph == 0);
    assert_null(ingot_tflite_signature_get(f, 1));
    ingot_tflite_close(f);
}

/* The first bytes that are `old` become `new`, and the file is refused. */
static void spoilt(const char *old, const char *new, size_t n, const char *why)
{
    TfliteText w;
    put_all(&w);
    size_t at = 0;
    while (at + n < w.len && memcmp(w.bytes + at, old, n))
        at++;
    assert_true(at + n < w.len);
    memcpy(w.bytes + at, new, n);
    uint8_t *exact = malloc(w.len);
    memcpy(exact, w.bytes, w.len);
    assert_null(open_bytes(exact, w.len));
    if (!strstr(err, why))
        fail_msg("'%s' does not contain '%s'", err, why);
    free(exact);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    spoilt("TFL3", "TFL2", 4, "its bytes 4 to 8 are not 'TFL3'");
    spoilt("\4\0\0\0\1\2\3\4", "\3\0\0\0\1\2\3\4", 8, "need 4 bytes, not 3");
    spoilt("\4\0\0\0\1\2\3\4", "\xff\xff\xff\xff\1\2\3\4", 8, "buffer 1: its bytes");
    spoilt("\2\0\0\0\2\0\0\0\2\0\0\0", "\2\0\0\0\xff\xff\xff\xff\2\0\0\0", 12, "dim 0 is negative");
    spoilt("\2\0\0\0\2\0\0\0\2\0\0\0", "\2\0\0\0\xff\xff\xff\x7f\2\0\0\0", 12,
           "2 scales, and no such axis 0");
    spoilt("\3\0\0\0\0\0\0\0\1\0\0\0\xff\xff\xff\xff", "\3\0\0\0\0\0\0\0\3\0\0\0\xff\xff\xff\xff",
           16, "refers to tensor 3, and there are 3");
    spoilt("\1\0\0\0w", "\1\0\0\1w", 5, "tensor 1: its name or shape");
    spoilt("serving", "serv\0ng", 7, "signature 0: it is broken");
    assert_null(ingot_tflite_open_memory("m", NULL, 0, NULL, 0));
    assert_null(ingot_tflite_open("/nonexistent/x.tflite", err, sizeof err));
    assert_non_null(strstr(err, "cannot be opened"));
}

/* What is accepted keeps the promises: data, lists and texts inside the file. */
static void check_promises(const ingot_tflite *f, const uint8_t *bytes, size_t len)
{
    const ingot_tflite_graph *g;
    uint64_t sum = 0;
    for (size_t i = 0; (g = ingot_tflite_graph_get(f, i)); i++) {
        for (size_t k = 0; k < g->n_tensors; k++) {
            const ingot_tflite_tensor *t = &g->tensors[k];
            if (t->data)
                assert_true(t->data >= bytes && t->bytes <= (size_t)(bytes + len - t->data));
            for (size_t j = 0; j < t->scales.n; j++)
                sum += ingot_tflite_f32(&t->scales, j) > 0;
            sum += strlen(t->name);
        }
        for (size_t k = 0; k < g->n_ops; k++) {
            for (size_t j = 0; j < g->ops[k].in.n; j++)
                assert_true(ingot_tflite_i32(&g->ops[k].in, j) < (int)g->n_tensors);
            for (unsigned j = 0; j < 8; j++) {
                sum += (uint64_t)ingot_tflite_int(&g->ops[k].options, j, 4, 0);
                sum += ingot_tflite_elements(&g->ops[k].options, j, 8).n;
                sum += strlen(ingot_tflite_text(&g->ops[k].options, j));
            }
        }
    }
    assert_true(sum || !sum);
}

static uint32_t drawn(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

static void mutations_are_refused_or_sound(void **state)
{
    (void)state;
    TfliteText w;
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
        ingot_tflite *f = open_bytes(exact, len);
        if (f)
            check_promises(f, exact, len);
        else
            assert_true(strlen(err) > 8);
        accepted += f != NULL;
        ingot_tflite_close(f);
        free(exact);
    }
    assert_true(accepted > MUTATIONS / 10 && accepted < MUTATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_is_read),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(mutations_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
