/*
 * wire_test.c - the wire walk on messages written by hand, good and bad.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_read.h"

#include <stdlib.h>
#include <string.h>

/* A message under construction. */
typedef struct Msg {
    uint8_t *data;
    size_t len;
} Msg;

static Msg msg(const void *bytes, size_t n)
{
    Msg m = {malloc(n + 1), n};
    assert_non_null(m.data);
    memcpy(m.data, bytes, n);
    return m;
}

#define LITERAL(s) msg(s, sizeof(s) - 1)

/* A field of wire type 2 around inner, which is freed. */
static Msg wrap(unsigned field, Msg inner)
{
    uint8_t head[20];
    size_t n = 0;
    for (uint64_t v = (uint64_t)field << 3 | 2; v || !n; v >>= 7)
        head[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    uint64_t v = inner.len;
    do
        head[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    while (v >>= 7);
    Msg m = {malloc(n + inner.len + 1), n + inner.len};
    assert_non_null(m.data);
    memcpy(m.data, head, n);
    memcpy(m.data + n, inner.data, inner.len);
    free(inner.data);
    return m;
}

static Msg join(Msg a, Msg b)
{
    Msg m = {malloc(a.len + b.len + 1), a.len + b.len};
    assert_non_null(m.data);
    memcpy(m.data, a.data, a.len);
    memcpy(m.data + a.len, b.data, b.len);
    free(a.data);
    free(b.data);
    return m;
}

static Msg zeros(size_t n)
{
    Msg m = {calloc(1, n + 1), n};
    assert_non_null(m.data);
    return m;
}

/* The walk has to stop with this in its message. Frees m. */
static void refuse(Msg m, const ProtobufCMessageDescriptor *root, const char *what)
{
    WireSlim slim;
    WireError err;
    bool ok = wire_slim((Span){m.data, m.len}, root, false, &slim, &err);
    free(m.data);
    assert_false(ok);
    if (!strstr(err.what, what))
        fail_msg("'%s' does not contain '%s'", err.what, what);
}

static Onnx__TensorProto *accept_tensor(Msg m)
{
    WireSlim slim;
    WireError err;
    if (!wire_slim((Span){m.data, m.len}, &onnx__tensor_proto__descriptor, false, &slim, &err))
        fail_msg("refused: %s", err.what);
    Onnx__TensorProto *t = onnx__tensor_proto__unpack(NULL, slim.len, slim.data);
    free(slim.data);
    assert_non_null(t);
    return t;
}

#define TENSOR &onnx__tensor_proto__descriptor
#define MODEL &onnx__model_proto__descriptor
#define TYPE &onnx__type_proto__descriptor

static void long_raw_data_stays_in_the_file(void **state)
{
    (void)state;
    for (size_t n = WIRE_MAPPED_BYTES - 1; n <= WIRE_MAPPED_BYTES; n++) {
        Msg m = join(LITERAL("\x08\x05"), wrap(9, zeros(n)));
        Onnx__TensorProto *t = accept_tensor(m);
        assert_int_equal(t->n_dims, 1);
        assert_int_equal(t->dims[0], 5);
        if (n < WIRE_MAPPED_BYTES) {
            assert_true(t->has_raw_data);
            assert_false(t->has_mapped_bytes);
            assert_int_equal(t->raw_data.len, n);
        } else {
            assert_false(t->has_raw_data);
            assert_true(t->has_mapped_bytes && t->has_mapped_offset);
            assert_int_equal(t->mapped_bytes, n);
            assert_int_equal(t->mapped_offset, m.len - n);
        }
        onnx__tensor_proto__free_unpacked(t, NULL);
        free(m.data);
    }
}

/* Lengths around the weight shrink; what follows it is still in place. */
static void lengths_are_rewritten(void **state)
{
    (void)state;
    Msg tensor = join(wrap(9, zeros(5000)), wrap(8, LITERAL("w")));
    Msg graph = join(join(wrap(5, tensor), wrap(5, wrap(8, LITERAL("v")))), wrap(2, LITERAL("g")));
    Msg m = join(wrap(7, graph), wrap(2, LITERAL("maker")));
    WireSlim slim;
    WireError err;
    assert_true(wire_slim((Span){m.data, m.len}, MODEL, true, &slim, &err));
    assert_true(slim.len < 100);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, slim.len, slim.data);
    assert_non_null(model);
    assert_string_equal(model->producer_name, "maker");
    assert_string_equal(model->doc_string, "");
    assert_string_equal(model->graph->name, "g");
    assert_int_equal(model->graph->n_initializer, 2);
    assert_string_equal(model->graph->initializer[0]->name, "w");
    assert_int_equal(model->graph->initializer[0]->mapped_bytes, 5000);
    assert_string_equal(model->graph->initializer[1]->name, "v");
    onnx__model_proto__free_unpacked(model, NULL);
    free(slim.data);
    free(m.data);
}

static void private_fields_cannot_be_smuggled_in(void **state)
{
    (void)state;
    Onnx__TensorProto given = ONNX__TENSOR_PROTO__INIT;
    given.has_mapped_offset = given.has_mapped_bytes = 1;
    given.mapped_offset = 12345;
    given.mapped_bytes = 1 << 30;
    Msg m = zeros(onnx__tensor_proto__get_packed_size(&given));
    onnx__tensor_proto__pack(&given, m.data);
    Onnx__TensorProto *t = accept_tensor(m);
    assert_false(t->has_mapped_bytes || t->has_mapped_offset);
    onnx__tensor_proto__free_unpacked(t, NULL);

    WireSlim slim;
    WireError err;
    assert_false(wire_slim((Span){m.data, m.len}, TENSOR, true, &slim, &err));
    free(m.data);
}

static void unknown_fields_are_dropped(void **state)
{
    (void)state;
    Msg m = join(wrap(500, zeros(3000)), join(LITERAL("\xf8\x06\x01"), wrap(8, LITERAL("w"))));
    WireSlim slim;
    WireError err;
    assert_true(wire_slim((Span){m.data, m.len}, TENSOR, false, &slim, &err));
    assert_int_equal(slim.len, 3);
    free(slim.data);
    assert_false(wire_slim((Span){m.data, m.len}, TENSOR, true, &slim, &err));
    assert_non_null(strstr(err.what, "unknown field 500"));
    free(m.data);
}

/* Sequence<Sequence<...>>: TypeProto and TypeProto.Sequence take turns, two levels a turn. */
static Msg nested_types(size_t levels)
{
    Msg m = zeros(0);
    for (size_t i = 1; i < levels; i++)
        m = wrap(i % 2 ? 1 : 4, m);
    return levels % 2 ? m : wrap(4, m);
}

static void depth_is_limited(void **state)
{
    (void)state;
    WireSlim slim;
    WireError err;
    Msg m = nested_types(WIRE_MAX_DEPTH - 1);
    assert_true(wire_slim((Span){m.data, m.len}, TYPE, true, &slim, &err));
    ProtobufCMessage *t = protobuf_c_message_unpack(TYPE, NULL, slim.len, slim.data);
    assert_non_null(t);
    protobuf_c_message_free_unpacked(t, NULL);
    free(slim.data);
    free(m.data);
    refuse(nested_types(WIRE_MAX_DEPTH + 1), TYPE, "nested more than 200 deep");
    refuse(nested_types(10001), TYPE, "nested more than 200 deep");
}

static void bad_encodings_are_refused(void **state)
{
    (void)state;
    refuse(LITERAL("\x08"), TENSOR, "cut off");
    refuse(LITERAL("\x88"), TENSOR, "tag is cut off");
    refuse(LITERAL("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), TENSOR, "longer than 64 bits");
    refuse(LITERAL("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), TENSOR, "64 bits");
    refuse(LITERAL("\x02\x00"), TENSOR, "impossible number 0");
    refuse(LITERAL("\xfa\xff\xff\xff\xff\x01\x00"), TENSOR, "impossible number");
    refuse(LITERAL("\x0b\x0c"), TENSOR, "group");
    refuse(LITERAL("\x0f"), TENSOR, "wire type 7");
    refuse(LITERAL("\x42\x05w"), TENSOR, "needs 5 bytes where 1 are left");
    refuse(LITERAL("\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01w"), TENSOR, "where 1 are left");
    refuse(LITERAL("\x41w1234567"), TENSOR, "TensorProto.name: has wire type 1");
    refuse(LITERAL("\x12\x01\x01"), TENSOR, "TensorProto.data_type: has wire type 2");
    refuse(LITERAL("\x42\x03w\0v"), TENSOR, "NUL");
    refuse(LITERAL("\x22\x03\0\0\0"), TENSOR, "inside an element");
    refuse(LITERAL("\x2a\x02\x01\x80"), TENSOR, "inside an element");
    refuse(LITERAL("\x52\x07\0\0\0\0\0\0\0"), TENSOR, "inside an element");
    refuse(LITERAL("\x4a\x01\x01\x4a\x01\x01"), TENSOR, "raw_data: is there twice");
    refuse(join(wrap(7, zeros(0)), wrap(7, zeros(0))), MODEL, "graph: is there twice");
    /* an inner message may not reach past the one around it */
    refuse(LITERAL("\x3a\x02\x12\x05"
                   "abcde"),
           MODEL, "needs 5 bytes where 0 are left");
}

static void packed_and_single_lists_are_the_same(void **state)
{
    (void)state;
    Msg m = LITERAL("\x0a\x03\x02\x81\x01\x08\x03\x22\x04\0\0\x80?\x25\0\0\0@");
    Onnx__TensorProto *t = accept_tensor(m);
    assert_int_equal(t->n_dims, 3);
    assert_int_equal(t->dims[1], 129);
    assert_int_equal(t->dims[2], 3);
    assert_int_equal(t->n_float_data, 2);
    assert_true(t->float_data[0] == 1 && t->float_data[1] == 2);
    onnx__tensor_proto__free_unpacked(t, NULL);
    free(m.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_raw_data_stays_in_the_file),
        cmocka_unit_test(lengths_are_rewritten),
        cmocka_unit_test(private_fields_cannot_be_smuggled_in),
        cmocka_unit_test(unknown_fields_are_dropped),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(bad_encodings_are_refused),
        cmocka_unit_test(packed_and_single_lists_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
