/*
 * onnx_file_test.c - decoding of every element type, external data inside its folder, test values.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/onnx_file_test.XXXXXX";
static char last_message[1200];

static void keep_message(void *user, const char *message)
{
    (void)user;
    snprintf(last_message, sizeof last_message, "%s", message);
}

static const ImportSink sink = {.fn = keep_message};

static const char *in_folder(const char *name)
{
    static char path[2][200];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", folder, name);
    return path[which];
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Loads a tensor as it would come out of a file. */
static OnnxFile *load_tensor(const Onnx__TensorProto *t, OnnxTensor *out, bool *ok)
{
    static uint8_t bytes[1 << 14];
    size_t n = onnx__tensor_proto__get_packed_size(t);
    assert_true(n <= sizeof bytes);
    onnx__tensor_proto__pack(t, bytes);
    OnnxFile *file =
        onnx_file_load_memory(in_folder("model.onnx"), (Span){bytes, n}, ONNX_TENSOR, &sink);
    assert_non_null(file);
    last_message[0] = '\0';
    *ok = onnx_tensor_read(file, file->tensor, "initializer 'w'", out);
    return file;
}

static void expect_bytes(const Onnx__TensorProto *t, const void *bytes, size_t n)
{
    OnnxTensor out;
    bool ok;
    OnnxFile *file = load_tensor(t, &out, &ok);
    if (!ok)
        fail_msg("%s", last_message);
    assert_int_equal(out.data.len, n);
    assert_memory_equal(out.data.data, bytes, n);
    assert_int_equal(out.data.len, out.count * out.elem_bytes);
    onnx_file_close(file);
}

static void expect_error(const Onnx__TensorProto *t, const char *what)
{
    OnnxTensor out;
    bool ok;
    OnnxFile *file = load_tensor(t, &out, &ok);
    onnx_file_close(file);
    assert_false(ok);
    if (!strstr(last_message, what) || !strstr(last_message, "/model.onnx: initializer 'w': "))
        fail_msg("'%s' does not contain '%s'", last_message, what);
}

static Onnx__TensorProto tensor_of(int32_t dtype, int64_t *dims, size_t rank)
{
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    t.has_data_type = 1;
    t.data_type = dtype;
    t.dims = dims;
    t.n_dims = rank;
    return t;
}

#define TYPE(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static void set_raw(Onnx__TensorProto *t, const void *bytes, size_t n)
{
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){n, (uint8_t *)(uintptr_t)bytes};
}

static void raw_data_is_taken_as_it_is(void **state)
{
    (void)state;
    int64_t dims[] = {2, 3};
    uint8_t bytes[2 * 3 * 16 + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 1);
    for (int32_t dtype = 1; dtype <= TYPE(INT2); dtype++) {
        unsigned bits = onnx_dtype_bits(dtype);
        if (bits < 8 || dtype == TYPE(BOOL))
            continue;
        Onnx__TensorProto t = tensor_of(dtype, dims, 2);
        set_raw(&t, bytes, 6 * bits / 8);
        expect_bytes(&t, bytes, 6 * bits / 8);
        t.raw_data.len--;
        expect_error(&t, "its dims need");
        t.raw_data.len += 2;
        expect_error(&t, "its dims need");
    }
}

static void packed_elements_are_one_a_byte(void **state)
{
    (void)state;
    int64_t five = 5;
    Onnx__TensorProto t = tensor_of(TYPE(UINT4), &five, 1);
    set_raw(&t, "\x2f\x81\xf9", 3);
    expect_bytes(&t, "\x0f\x02\x01\x08\x09", 5);
    t.data_type = TYPE(INT4);
    expect_bytes(&t, "\xff\x02\x01\xf8\xf9", 5);
    t.data_type = TYPE(FLOAT4E2M1);
    expect_bytes(&t, "\x0f\x02\x01\x08\x09", 5);
    t.data_type = TYPE(UINT2);
    set_raw(&t, "\xe4\x02", 2);
    expect_bytes(&t, "\x00\x01\x02\x03\x02", 5);
    t.data_type = TYPE(INT2);
    expect_bytes(&t, "\x00\x01\xfe\xff\xfe", 5);
    set_raw(&t, "\xe4", 1);
    expect_error(&t, "raw_data has 1 bytes, its dims need 2");

    int32_t entries[] = {0x2f, 0x81, 0xf9};
    t = tensor_of(TYPE(INT4), &five, 1);
    t.n_int32_data = 3;
    t.int32_data = entries;
    expect_bytes(&t, "\xff\x02\x01\xf8\xf9", 5);
}

static void typed_lists_are_read(void **state)
{
    (void)state;
    int64_t two = 2;
    float f[] = {1.5f, -2, 3, 4};
    double d[] = {1.5, -2, 3, 4};
    int64_t l[] = {INT64_MIN, 7};
    uint64_t u[] = {UINT32_MAX, 7}, big[] = {UINT64_MAX, 7};
    uint32_t u32[] = {UINT32_MAX, 7};
    int32_t i[] = {-3, 200};

    Onnx__TensorProto t = tensor_of(TYPE(FLOAT), &two, 1);
    t.n_float_data = 2;
    t.float_data = f;
    expect_bytes(&t, f, 8);
    t.data_type = TYPE(COMPLEX64);
    expect_error(&t, "float_data has 2 entries, its dims need 4");
    t.n_float_data = 4;
    expect_bytes(&t, f, 16);
    t.data_type = TYPE(DOUBLE);
    expect_error(&t, "DOUBLE has data in float_data");

    t = tensor_of(TYPE(DOUBLE), &two, 1);
    t.n_double_data = 2;
    t.double_data = d;
    expect_bytes(&t, d, 16);
    t = tensor_of(TYPE(INT64), &two, 1);
    t.n_int64_data = 2;
    t.int64_data = l;
    expect_bytes(&t, l, 16);
    t = tensor_of(TYPE(UINT64), &two, 1);
    t.n_uint64_data = 2;
    t.uint64_data = big;
    expect_bytes(&t, big, 16);
    t.data_type = TYPE(UINT32);
    expect_error(&t, "outside the range");
    t.uint64_data = u;
    expect_bytes(&t, u32, 8);

    t = tensor_of(TYPE(INT32), &two, 1);
    t.n_int32_data = 2;
    t.int32_data = i;
    expect_bytes(&t, i, 8);
    t.data_type = TYPE(UINT8);
    expect_bytes(&t, "\xfd\xc8", 2);
    t.data_type = TYPE(BOOL);
    expect_bytes(&t, "\1\1", 2);
    t.data_type = TYPE(FLOAT16);
    expect_bytes(&t, "\xfd\xff\xc8\x00", 4);
    i[1] = 256;
    t.data_type = TYPE(INT8);
    expect_error(&t, "outside the range");
    set_raw(&t, "\1\2", 2);
    expect_error(&t, "int32_data and raw_data");
}

static void strings_are_read(void **state)
{
    (void)state;
    int64_t two = 2;
    ProtobufCBinaryData s[] = {{3, (uint8_t *)(uintptr_t) "a\0b"}, {0, NULL}};
    Onnx__TensorProto t = tensor_of(TYPE(STRING), &two, 1);
    t.n_string_data = 2;
    t.string_data = s;
    OnnxTensor out;
    bool ok;
    OnnxFile *file = load_tensor(&t, &out, &ok);
    assert_true(ok);
    assert_int_equal(out.strings[0].len, 3);
    assert_memory_equal(out.strings[0].data, "a\0b", 3);
    assert_int_equal(out.strings[1].len, 0);
    onnx_file_close(file);
}

static void bad_dims_are_refused(void **state)
{
    (void)state;
    int64_t negative[] = {-1, 2}, huge[] = {INT64_MAX, 3}, large[] = {INT64_MAX / 2, 1},
            empty[] = {INT64_MAX, 0, INT64_MAX};
    Onnx__TensorProto t = tensor_of(TYPE(FLOAT), negative, 2);
    expect_error(&t, "negative");
    t.dims = huge;
    expect_error(&t, "more than 2^63");
    t.dims = large;
    expect_error(&t, "address space");
    t = tensor_of(TYPE(FLOAT), empty, 3);
    expect_bytes(&t, "", 0);
    t = tensor_of(TYPE(FLOAT), NULL, 0);
    expect_error(&t, "dims but no data");
    t.data_type = 99;
    expect_error(&t, "data type 99 is not known");
}

static void bool_becomes_zero_or_one(void **state)
{
    (void)state;
    int64_t three = 3;
    Onnx__TensorProto t = tensor_of(TYPE(BOOL), &three, 1);
    set_raw(&t, "\0\1\7", 3);
    expect_bytes(&t, "\0\1\1", 3);
}

/* w: four floats at offset 4 of the location. */
static void expect_external(const char *location, const char *offset, const char *length,
                            const char *error)
{
    int64_t four = 4;
    Onnx__StringStringEntryProto pairs[3], *list[3];
    const char *keys[] = {"location", "offset", "length"}, *values[] = {location, offset, length};
    Onnx__TensorProto t = tensor_of(TYPE(FLOAT), &four, 1);
    t.has_data_location = 1;
    t.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t.external_data = list;
    for (size_t i = 0; i < 3; i++) {
        if (!values[i])
            continue;
        onnx__string_string_entry_proto__init(&pairs[i]);
        pairs[i].key = (char *)(uintptr_t)keys[i];
        pairs[i].value = (char *)(uintptr_t)values[i];
        list[t.n_external_data++] = &pairs[i];
    }
    if (error)
        expect_error(&t, error);
    else
        expect_bytes(&t, "4567890123456789", 16);
}

static void external_data_stays_in_its_folder(void **state)
{
    (void)state;
    write_file("weights", "012345678901234567890123", 24);
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    write_file("sub/weights", "012345678901234567890123", 24);
    assert_int_equal(symlink("weights", in_folder("link")), 0);
    assert_int_equal(symlink("/tmp", in_folder("out")), 0);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);

    expect_external("weights", "4", "16", NULL);
    expect_external("weights", "4", NULL, NULL);
    expect_external("weights", "4", "0", NULL);
    expect_external("./sub//weights", "4", NULL, NULL);
    expect_external(NULL, "4", "16", "has no location");
    expect_external("weights", "x", "16", "not a number");
    expect_external("weights", "-4", "16", "not a number");
    expect_external("weights", "99999999999999999999", NULL, "not a number");
    expect_external("weights", "4", "15", "its length is 15 bytes, its dims need 16");
    expect_external("weights", "9", "16", "outside its 24 bytes");
    expect_external("weights", "18446744073709551615", "16", "outside its 24 bytes");
    expect_external("none", NULL, NULL, "no such file");
    expect_external("", NULL, NULL, "is empty");
    expect_external("/etc/passwd", NULL, NULL, "not relative");
    expect_external("../weights", NULL, NULL, "leaves the model's folder");
    expect_external("sub/../weights", NULL, NULL, "leaves the model's folder");
    expect_external("sub/..", NULL, NULL, "leaves the model's folder");
    expect_external("sub", NULL, NULL, "is a folder");
    expect_external("sub/", NULL, NULL, "names a folder");
    expect_external("link", NULL, NULL, "symbolic link");
    expect_external("out/weights", NULL, NULL, "symbolic link");
    expect_external("fifo", NULL, NULL, "not a regular file");
}

static void saved_tensors_can_be_loaded(void **state)
{
    (void)state;
    int64_t dims[] = {3, 3};
    const uint8_t bytes[9 * 16] = {1, 0, 0xff, 1};
    ProtobufCBinaryData strings[9] = {{2, (uint8_t *)(uintptr_t) "ab"}};
    for (int32_t dtype = 1; dtype <= TYPE(INT2); dtype++) {
        unsigned bits = onnx_dtype_bits(dtype);
        size_t width = (bits + 7) / 8;
        OnnxTensor t = {.name = "x",
                        .dtype = dtype,
                        .rank = 2,
                        .dims = dims,
                        .count = 9,
                        .elem_bytes = width,
                        .data = {bytes, 9 * width},
                        .strings = strings};
        FILE *out = fopen(in_folder("x.pb"), "wb");
        assert_true(out && onnx_tensor_put(out, &t) && !fclose(out));
        OnnxFile *file = onnx_file_load_value(in_folder("x.pb"), ONNX_ANY_VALUE, &sink);
        assert_non_null(file);
        assert_int_equal(file->kind, ONNX_TENSOR);
        OnnxTensor back;
        assert_true(onnx_tensor_read(file, file->tensor, "tensor 'x'", &back));
        assert_string_equal(back.name, "x");
        assert_int_equal(back.count, 9);
        if (bits == 0) {
            assert_memory_equal(back.strings[0].data, "ab", 2);
        } else if (bits >= 8 && dtype != TYPE(BOOL)) {
            assert_memory_equal(back.data.data, bytes, 9 * width);
        } else {
            assert_int_equal(back.data.data[0], 1);
            assert_int_equal(back.data.data[1], 0);
            assert_int_equal(back.data.data[3], 1);
        }
        onnx_file_close(file);
    }
}

static void sparse_tensors_become_dense(void **state)
{
    (void)state;
    int64_t two = 2, at_dims[] = {2, 2}, dims[] = {2, 3}, linear[] = {1, 5}, pairs[] = {0, 1, 1, 2};
    Onnx__TensorProto values = tensor_of(TYPE(INT8), &two, 1);
    Onnx__TensorProto indices = tensor_of(TYPE(INT64), &two, 1);
    set_raw(&values, "\x05\x06", 2);
    set_raw(&indices, linear, sizeof linear);
    Onnx__SparseTensorProto s = ONNX__SPARSE_TENSOR_PROTO__INIT;
    s.values = &values;
    s.indices = &indices;
    s.dims = dims;
    s.n_dims = 2;
    OnnxFile *file = onnx_file_load_memory("x", (Span){(const uint8_t *)"", 0}, ONNX_TENSOR, &sink);
    OnnxTensor t;
    assert_true(onnx_tensor_read_sparse(file, &s, "s", &t));
    assert_memory_equal(t.data.data, "\0\5\0\0\0\6", 6);
    set_raw(&indices, pairs, sizeof pairs);
    indices.dims = at_dims;
    indices.n_dims = 2;
    assert_true(onnx_tensor_read_sparse(file, &s, "s", &t));
    assert_memory_equal(t.data.data, "\0\5\0\0\0\6", 6);
    pairs[3] = 3;
    assert_false(onnx_tensor_read_sparse(file, &s, "s", &t));
    pairs[3] = -1;
    assert_false(onnx_tensor_read_sparse(file, &s, "s", &t));
    pairs[2] = 0;
    pairs[3] = 1;
    assert_false(onnx_tensor_read_sparse(file, &s, "s", &t));
    assert_non_null(strstr(last_message, "rising order"));
    onnx_file_close(file);
}

static void bad_files_are_told(void **state)
{
    (void)state;
    assert_null(onnx_file_load(in_folder("missing.onnx"), &sink));
    assert_non_null(strstr(last_message, "missing.onnx: cannot be read: no such file"));
    assert_null(onnx_file_load(folder, &sink));
    assert_non_null(strstr(last_message, "a folder"));
    write_file("empty.onnx", "", 0);
    assert_null(onnx_file_load(in_folder("empty.onnx"), &sink));
    assert_non_null(strstr(last_message, "empty.onnx: not an ONNX model: it has no graph"));
    write_file("text.onnx", "hello, world\n", 13);
    assert_null(onnx_file_load(in_folder("text.onnx"), &sink));
    assert_non_null(strstr(last_message, "text.onnx: byte 2: not an ONNX model: "));
    write_file("cut.onnx", "\x08\x08\x12\x05on",
               6); /* whose first field, a number, is no message of another format */
    assert_null(onnx_file_load(in_folder("cut.onnx"), &sink));
    assert_non_null(strstr(last_message, "cut.onnx: byte "));
    assert_null(onnx_file_load(in_folder("text.onnx"), NULL));
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"weights", "sub/weights", "link",       "out",      "fifo",
                                        "x.pb",    "sub",         "empty.onnx", "text.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in_folder(names[i]));
    return remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data_is_taken_as_it_is),
        cmocka_unit_test(packed_elements_are_one_a_byte),
        cmocka_unit_test(typed_lists_are_read),
        cmocka_unit_test(strings_are_read),
        cmocka_unit_test(bad_dims_are_refused),
        cmocka_unit_test(bool_becomes_zero_or_one),
        cmocka_unit_test(external_data_stays_in_its_folder),
        cmocka_unit_test(saved_tensors_can_be_loaded),
        cmocka_unit_test(sparse_tensors_become_dense),
        cmocka_unit_test(bad_files_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
