/* text_test.c - the library kernels on strings, and regular expressions: compiled and matched
 * against what Python's re.fullmatch says of the same strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "igrt_text.h"
#include "importers/onnx/onnx_regex.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, 0})

static igrt_tensor tensor(igrt_dtype dtype, void *data, int rank, const int64_t *dims)
{
    igrt_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        t.dims[d] = dims[d];
    return t;
}

/* ---- regular expressions ------------------------------------------------------------------ */

/* clang-format off */
static const char *const strings[] = {
    "", "a", "b", "ab", "aab", "abab", "abc", "aaaa", "aaaaa", "A", "a.b", "a\nb", "\n", "x1_", "a b", " ", "\303\251", "\346\227\245\346\234\254", "a@b.com", "www.x-1.com", "-", "]", "12", "123", "\\", "ba", "aB", "a$", "{2}", "ABAB",
};

/* Which of the strings each matches. */
static const struct {
    const char *pattern, *matches;
} rows[] = {
    {"", "100000000000000000000000000000"},
    {"a", "010000000000000000000000000000"},
    {"a*", "110000011000000000000000000000"},
    {"a+", "010000011000000000000000000000"},
    {"a?", "110000000000000000000000000000"},
    {"ab|ba", "000100000000000000000000010000"},
    {"(ab)+", "000101000000000000000000000000"},
    {"(ab)*", "100101000000000000000000000000"},
    {"(?:ab|a)*b?", "111111011000000000000000000000"},
    {"a{2}", "000000000000000000000000000000"},
    {"a{2,}", "000000011000000000000000000000"},
    {"a{2,4}", "000000010000000000000000000000"},
    {"a{0,2}b", "001110000000000000000000000000"},
    {"(a{1,2}){2}", "000000010000000000000000000000"},
    {"(a|b){0}", "100000000000000000000000000000"},
    {"[ab]+", "011111011000000000000000010000"},
    {"[^ab]", "000000000100100110001100100000"},
    {"[a-c]*", "111111111000000000000000010000"},
    {"[]a]", "010000000000000000000100000000"},
    {"[^]a]", "001000000100100110001000100000"},
    {"[-a]", "010000000000000000001000000000"},
    {"[a\\-]", "010000000000000000001000000000"},
    {"\\d+", "000000000000000000000011000000"},
    {"\\w+", "011111111100010000000011011001"},
    {"\\W", "000000000000100110001100100000"},
    {"\\s", "000000000000100100000000000000"},
    {"\\S+", "011111111110010011111111111111"},
    {"[\\d_x]+", "000000000000010000000011000000"},
    {"[^\\d\\s]+", "011111111110000011101100111101"},
    {".", "011000000100000110001100100000"},
    {"..", "000100000000000001000010011100"},
    {".*", "111111111110011111111111111111"},
    {"(?s).*", "111111111111111111111111111111"},
    {"(?s)a.b", "000010000011001000000000000000"},
    {"a\\.b", "000000000010000000000000000000"},
    {"^a$", "010000000000000000000000000000"},
    {"a^b", "000000000000000000000000000000"},
    {"^ab|ba$", "000100000000000000000000010000"},
    {"(?m)^a$\\n^b$", "000000000001000000000000000000"},
    {"\\bab\\b", "000100000000000000000000000000"},
    {"a\\Bb", "000100000000000000000000000000"},
    {"\\ba\\b b", "000000000000001000000000000000"},
    {"(?i)ab", "000100000000000000000000001000"},
    {"(?i:AB)ab|(?i:AB)+", "000101000000000000000000001001"},
    {"(a|aa)*", "110000011000000000000000000000"},
    {"(a*)*", "110000011000000000000000000000"},
    {"(a*)+b", "001110000000000000000000000000"},
    {"(a?){3}", "110000000000000000000000000000"},
    {"((a)|(b))*", "111111011000000000000000010000"},
    {"\\x61\\x{62}", "000100000000000000000000000000"},
    {"\303\251|\346\227\245\346\234\254", "000000000000000011000000000000"},
    {"[\303\251-\303\277]", "000000000000000010000000000000"},
    {"(?i)\303\211", "000000000000000010000000000000"},
    {"\346\227\245.", "000000000000000001000000000000"},
    {"[[:alpha:]]+", "011111111100000000000000011001"},
    {"[[:digit:][:space:]a]*", "110000011000100100000011000000"},
    {"[[:^alpha:]]", "000000000000100110001100100000"},
    {"www\\.[\\w-]+\\.[a-z]{2,3}", "000000000000000000010000000000"},
    {"[\\w.+-]+@\\w+\\.\\w+", "000000000000000000100000000000"},
    {"a$", "010000000000000000000000000000"},
    {"a\\$", "000000000000000000000000000100"},
    {"\\{2\\}", "000000000000000000000000000010"},
    {"x*", "100000000000000000000000000000"},
    {"(?P<n>a)b", "000100000000000000000000000000"},
    {"\\\\", "000000000000000000000000100000"},
    {"\\A(a|ab)(c|bcd|b)?\\z", "010100100000000000000000000000"},
    {"(a+|b+)*c?", "111111111000000000000000010000"},
    {"(?:a*?b)+?", "001111000000000000000000000000"},
};

static const char *const refused[] = {
    "(", ")", "a)", "[a", "[b-a]", "*a", "a{3,2}", "a{1001}", "a{1000}{2}", "(?=a)", "(?<!a)", "\\1", "\\pL", "\\", "a**", "(?P<n", "[[:no:]]",
    "((((a{99}){99}){99}){99})",
};
/* clang-format on */

enum { N_STRINGS = sizeof strings / sizeof *strings };

static void regular_expressions(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        ingot_context *c = ingot_context_new(NULL, NULL);
        const int32_t *program;
        const char *fault;
        int64_t size = regex_compile(c, rows[r].pattern, &program, &fault);
        if (!size)
            fail_msg("'%s': %s", rows[r].pattern, fault);
        uint8_t y[N_STRINGS];
        size_t bytes = IGRT_REGEX_MATCH_SCRATCH(program[0]);
        void *scratch = malloc(bytes);
        igrt_tensor in[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)strings, 1, DIMS(N_STRINGS)),
                             tensor(IGRT_I32, (void *)(uintptr_t)program, 1, &size)},
                    out = tensor(IGRT_BOOL, y, 1, DIMS(N_STRINGS));
        assert_int_equal(igrt_lib_regex_match(in, 2, &out, 1, NULL, NULL, scratch, bytes, NULL),
                         IGRT_OK);
        for (int i = 0; i < N_STRINGS; i++)
            if (y[i] != rows[r].matches[i] - '0')
                fail_msg("'%s' on '%s': %d", rows[r].pattern, strings[i], y[i]);
        assert_int_equal(igrt_lib_regex_match(in, 2, &out, 1, NULL, NULL, scratch, bytes - 1, NULL),
                         IGRT_ERR_SCRATCH);
        free(scratch);
        ingot_context_free(c);
    }
}

static void refused_expressions(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof refused / sizeof *refused; r++) {
        ingot_context *c = ingot_context_new(NULL, NULL);
        const int32_t *program;
        const char *fault;
        if (regex_compile(c, refused[r], &program, &fault))
            fail_msg("'%s' is taken", refused[r]);
        assert_non_null(fault);
        ingot_context_free(c);
    }
}

/* ---- characters --------------------------------------------------------------------------- */

static void cases(void **state)
{
    (void)state;
    static const int32_t pairs[][2] = {{'a', 'A'},        {'z', 'Z'},     {0xe9, 0xc9},
                                       {0x101, 0x100},    {0x3c9, 0x3a9}, {0x44f, 0x42f},
                                       {0x10428, 0x10400}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(igrt_text_upper(pairs[i][0]), pairs[i][1]);
        assert_int_equal(igrt_text_lower(pairs[i][1]), pairs[i][0]);
    }
    static const int32_t none[] = {'1', 0xdf, 0x4e00, -1, -200, 0x10ffff, 0x100000};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(igrt_text_upper(none[i]), none[i]);
        assert_int_equal(igrt_text_lower(none[i]), none[i]);
    }
}

/* Every character comes back; malformed bytes come back one by one. */
static void utf8(void **state)
{
    (void)state;
    for (int32_t c = 1; c <= 0x10ffff; c += c < 0x3000 ? 1 : 97) {
        char s[5] = {0};
        const char *at = s;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        int n = igrt_text_encode(c, s);
        assert_int_equal(igrt_text_next(&at), c);
        assert_int_equal(at - s, n);
    }
    static const char *const bad[] = {"\300\200", "\355\240\200", "\364\220\200\200", "\342\202",
                                      "\377x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = bad[i];
        char back[4];
        assert_true(igrt_text_next(&at) < 0 && at == bad[i] + 1);
        at = bad[i];
        assert_int_equal(igrt_text_encode(igrt_text_next(&at), back), 1);
        assert_int_equal(back[0], bad[i][0]);
    }
}

/* ---- making strings ----------------------------------------------------------------------- */

static void split_one(const char *s, const char *delimiter, int64_t most, int n,
                      const char *const *want)
{
    char text[64];
    const char *y[8], *x[1] = {s};
    int64_t pieces[1], counts[1];
    igrt_tensor in[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)x, 1, DIMS(1)),
                         tensor(IGRT_U8, (void *)(uintptr_t)delimiter, 1,
                                DIMS((int64_t)strlen(delimiter) + 1))},
                out[3] = {tensor(IGRT_STRING, (void *)(uintptr_t)y, 2, DIMS(1, 8)),
                          tensor(IGRT_I64, pieces, 1, DIMS(1)), tensor(IGRT_U8, text, 1, DIMS(64))};
    assert_int_equal(igrt_lib_string_split(in, 2, out, 3, &most, NULL, NULL, 0, counts), IGRT_OK);
    assert_true(pieces[0] == n && counts[0] == n && out[0].dims[1] == n);
    for (int i = 0; i < n; i++)
        assert_string_equal(y[i], want[i]);
    if (n > 0) {
        out[0].dims[1] = n - 1;
        assert_int_equal(igrt_lib_string_split(in, 2, out, 3, &most, NULL, NULL, 0, counts),
                         IGRT_ERR_COUNT);
        out[0].dims[1] = 8;
        out[2].dims[0] = 1;
        if (*s)
            assert_int_equal(igrt_lib_string_split(in, 2, out, 3, &most, NULL, NULL, 0, counts),
                             IGRT_ERR_TEXT);
    }
}

#define WORDS(...)                                                                       \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *const[]) \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }

static void split(void **state)
{
    (void)state;
    split_one("a,b,,c", ",", -1, WORDS("a", "b", "", "c"));
    split_one("a,b,,c", ",", 2, WORDS("a", "b", ",c"));
    split_one("a,b", ",", 0, WORDS("a,b"));
    split_one("", ",", -1, WORDS(""));
    split_one("a::b:", "::", -1, WORDS("a", "b:"));
    split_one("  a \t b\nc  ", "", -1, WORDS("a", "b", "c"));
    split_one("  a  b  c  ", "", 1, WORDS("a", "b  c  "));
    split_one("a\342\200\203b", "", -1, WORDS("a", "b")); /* an em space */
    split_one("   ", "", -1, 0, NULL);
}

/* Runs of words in the order of their words, each followed by those that it begins. */
static void skip_gram(void **state)
{
    (void)state;
    const char *x[1] = {"a bc  d "}, *y[8];
    char text[64];
    int64_t counts[1], scratch[9];
    igrt_tensor in = tensor(IGRT_STRING, (void *)(uintptr_t)x, 1, DIMS(1)),
                out[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)y, 1, DIMS(8)),
                          tensor(IGRT_U8, text, 1, DIMS(64))};
    const char *const want[] = {"a bc d", "a bc", "a d", "a", "bc d", "bc", "d"};
    assert_int_equal(
        igrt_lib_skip_gram(&in, 1, out, 2, DIMS(3, 1, 1), NULL, scratch, sizeof scratch, counts),
        IGRT_OK);
    assert_true(counts[0] == 7 && out[0].dims[0] == 7);
    for (int i = 0; i < 7; i++)
        assert_string_equal(y[i], want[i]);
    out[0].dims[0] = 6;
    assert_int_equal(
        igrt_lib_skip_gram(&in, 1, out, 2, DIMS(3, 1, 1), NULL, scratch, sizeof scratch, counts),
        IGRT_ERR_COUNT);
    out[1].dims[0] = 6;
    assert_int_equal(
        igrt_lib_skip_gram(&in, 1, out, 2, DIMS(3, 1, 1), NULL, scratch, sizeof scratch, counts),
        IGRT_ERR_TEXT);
    assert_int_equal(igrt_lib_skip_gram(&in, 1, out, 2, DIMS(4, INT64_MAX, 1), NULL, scratch,
                                        sizeof scratch, counts),
                     IGRT_ERR_SCRATCH);
    x[0] = "";
    assert_int_equal(igrt_lib_skip_gram(&in, 1, out, 2, DIMS(1, INT64_MAX, 1), NULL, scratch,
                                        sizeof scratch, counts),
                     IGRT_OK);
    assert_int_equal(counts[0], 0);
}

static void concat_and_room(void **state)
{
    (void)state;
    const char *a[2] = {"ab", NULL}, *b[2] = {"c", "d"}, *y[2];
    char text[6];
    igrt_tensor in[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)a, 1, DIMS(2)),
                         tensor(IGRT_STRING, (void *)(uintptr_t)b, 1, DIMS(2))},
                out[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)y, 1, DIMS(2)),
                          tensor(IGRT_U8, text, 1, DIMS(6))};
    assert_int_equal(igrt_lib_string_concat(in, 2, out, 2, NULL, NULL, NULL, 0, NULL), IGRT_OK);
    assert_string_equal(y[0], "abc");
    assert_string_equal(y[1], "d");
    out[1].dims[0] = 5;
    assert_int_equal(igrt_lib_string_concat(in, 2, out, 2, NULL, NULL, NULL, 0, NULL),
                     IGRT_ERR_TEXT);
}

static void normalize(void **state)
{
    (void)state;
    const char *x[4] = {"Monday", "\303\211t\303\251", "TUESDAY", "x"}, *stop[2] = {"monday", "X"},
               *y[4];
    char text[64];
    int64_t counts[1];
    igrt_tensor in[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)x, 2, DIMS(1, 4)),
                         tensor(IGRT_STRING, (void *)(uintptr_t)stop, 1, DIMS(2))},
                out[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)y, 2, DIMS(1, 4)),
                          tensor(IGRT_U8, text, 1, DIMS(64))};
    assert_int_equal(igrt_lib_string_normalize(in, 2, out, 2, DIMS(1, 0), NULL, NULL, 0, counts),
                     IGRT_OK);
    assert_true(counts[0] == 2 && out[0].dims[1] == 2);
    assert_string_equal(y[0], "\303\251t\303\251");
    assert_string_equal(y[1], "tuesday");
    out[0].dims[1] = 4;
    assert_int_equal(igrt_lib_string_normalize(in, 2, out, 2, DIMS(2, 1), NULL, NULL, 0, counts),
                     IGRT_OK);
    assert_int_equal(counts[0], 4);
    assert_string_equal(y[1], "\303\211T\303\211");
    in[0].dims[1] = 0;
    assert_int_equal(igrt_lib_string_normalize(in, 2, out, 2, DIMS(0, 1), NULL, NULL, 0, counts),
                     IGRT_OK);
    assert_int_equal(counts[0], 1);
    assert_string_equal(y[0], "");
}

static void lookup(void **state)
{
    (void)state;
    const char *x[4] = {"b", "", "zz", "c"}, *keys[3] = {"a", "b", "c"};
    int64_t y[4];
    igrt_tensor in[2] = {tensor(IGRT_STRING, (void *)(uintptr_t)x, 1, DIMS(4)),
                         tensor(IGRT_STRING, (void *)(uintptr_t)keys, 1, DIMS(3))},
                out = tensor(IGRT_I64, y, 1, DIMS(4));
    assert_int_equal(igrt_lib_lookup(in, 2, &out, 1, NULL, NULL, NULL, 0, NULL), IGRT_OK);
    assert_memory_equal(y, DIMS(1, -1, -1, 2), sizeof y);
    float f[4] = {-1, 2.5f, 0.0f / 0.0f, 3}, sorted[3] = {-1, 3, 0.0f / 0.0f};
    in[0] = tensor(IGRT_F32, f, 1, DIMS(4));
    in[1] = tensor(IGRT_F32, sorted, 1, DIMS(3));
    assert_int_equal(igrt_lib_lookup(in, 2, &out, 1, NULL, NULL, NULL, 0, NULL), IGRT_OK);
    assert_memory_equal(y, DIMS(0, -1, 2, 1), sizeof y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_expressions),
        cmocka_unit_test(refused_expressions),
        cmocka_unit_test(cases),
        cmocka_unit_test(utf8),
        cmocka_unit_test(split),
        cmocka_unit_test(skip_gram),
        cmocka_unit_test(concat_and_room),
        cmocka_unit_test(normalize),
        cmocka_unit_test(lookup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
