/* ops_text.c - tensors of strings: pointers to bytes that end in a zero.
 *
 * Movement ops and where() copy pointers as they copy numbers.  Strings are compared and made by
 * library kernels.  Those that make some write the bytes into an output of their own, with room for
 * `bytes` a string on average, which is kept to the end of the run since pointers to it may be
 * anywhere. */
#include <string.h>

#include "ops.h"

/* The room for the text of at most n strings. */
static ingot_call_out text_room(ingot_context *c, int64_t n, int64_t bytes)
{
    int64_t most = n > 0 && bytes > INT64_MAX / n ? INT64_MAX : n * bytes;
    return (ingot_call_out){INGOT_U8, 1, {ingot_dim_const(c, most > 0 ? most : 1)}};
}

static bool strings_check(ingot_context *c, const char *what, ingot_tensor *x)
{
    if (ingot_is_poison(x))
        return false;
    if (ingot_dtype_of(x) == INGOT_STRING)
        return true;
    ingot_error(c, INGOT_INVALID, "%s: a tensor of strings is needed, not of %s", what,
                ingot_dtype_name(ingot_dtype_of(x)));
    return false;
}

static int64_t most_elements(ingot_context *c, ingot_tensor *x)
{
    int64_t hi = ingot_dim_hi(ingot_numel(c, x));
    return hi < 0 ? 0 : hi;
}

ingot_tensor *ingot_strings(ingot_context *c, int rank, const int64_t *dims, const char *const *v)
{
    int64_t n = 1, bytes = 0;
    ingot_call_out to = {INGOT_STRING, rank, {NULL}};
    ingot_tensor *out;
    if (rank < 0 || rank > INGOT_MAX_RANK)
        return ingot_error(c, INGOT_INVALID, "strings: a rank of %d", rank);
    for (int a = 0; a < rank; a++) {
        n *= dims[a];
        to.dims[a] = ingot_dim_const(c, dims[a]);
    }
    for (int64_t i = 0; i < n; i++)
        bytes += (int64_t)strlen(v[i]) + 1;
    char *text = ingot_alloc(c, (size_t)bytes + 1), *at = text;
    for (int64_t i = 0; i < n; i++) {
        size_t length = strlen(v[i]) + 1;
        memcpy(at, v[i], length);
        at += length;
    }
    bytes += bytes == 0;
    ingot_tensor *in = ingot_data(c, NULL, INGOT_U8, 1, &bytes, text);
    ingot_call(c, &(ingot_call_desc){.name = "text", .n_in = 1, .in = &in, .n_out = 1, .out = &to},
               &out);
    return out;
}

/* Both broadcast to one shape; false after an error. */
static bool broadcast_pair(ingot_context *c, const char *what, ingot_tensor *in[2])
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (!strings_check(c, what, in[0]) || !strings_check(c, what, in[1]))
        return false;
    int ra = ingot_rank(in[0]), rb = ingot_rank(in[1]), rank = ra > rb ? ra : rb;
    for (int a = 0; a < rank; a++) {
        ingot_dim *da = a < rank - ra ? NULL : ingot_shape(in[0], a - (rank - ra));
        ingot_dim *db = a < rank - rb ? NULL : ingot_shape(in[1], a - (rank - rb));
        int64_t one;
        dims[a] = !da || (db && ingot_dim_is_const(da, &one) && one == 1) ? db : da;
    }
    for (int i = 0; i < 2; i++) {
        in[i] = ingot_expand(c, in[i], rank, dims);
        if (ingot_is_poison(in[i]))
            return false;
    }
    return true;
}

ingot_tensor *ingot_string_equal(ingot_context *c, ingot_tensor *a, ingot_tensor *b)
{
    ingot_tensor *in[2] = {a, b}, *out;
    if (!broadcast_pair(c, "string_equal", in))
        return ingot_poison(c);
    ingot_call_out to = {INGOT_BOOL, 0, {NULL}};
    to.rank = ops_dims(in[0], to.dims);
    ingot_call(
        c, &(ingot_call_desc){.name = "string_equal", .n_in = 2, .in = in, .n_out = 1, .out = &to},
        &out);
    return out;
}

ingot_tensor *ingot_string_concat(ingot_context *c, ingot_tensor *a, ingot_tensor *b, int64_t bytes)
{
    ingot_tensor *in[2] = {a, b}, *out[2];
    if (!broadcast_pair(c, "string_concat", in))
        return ingot_poison(c);
    ingot_call_out to[2] = {{INGOT_STRING, 0, {NULL}},
                            text_room(c, most_elements(c, in[0]), bytes)};
    to[0].rank = ops_dims(in[0], to[0].dims);
    ingot_call(
        c,
        &(ingot_call_desc){
            .name = "string_concat", .n_in = 2, .in = in, .n_out = 2, .n_kept = 1, .out = to},
        out);
    return out[0];
}

ingot_tensor *ingot_string_normalize(ingot_context *c, ingot_tensor *x, ingot_tensor *stopwords,
                                     int to_case, bool case_sensitive, int64_t bytes)
{
    ingot_tensor *in[2] = {x, stopwords}, *out[2];
    if (!strings_check(c, "string_normalize", x) ||
        (stopwords && !strings_check(c, "string_normalize", stopwords)))
        return ingot_poison(c);
    int rank = ingot_rank(x);
    int64_t first = 1;
    if (rank < 1 || rank > 2 ||
        (rank == 2 && !(ingot_dim_is_const(ingot_shape(x, 0), &first) && first == 1)))
        return ingot_error(c, INGOT_INVALID, "string_normalize: its shape has to be [n] or [1, n]");
    int64_t most = most_elements(c, x);
    ingot_dim *m = ingot_call_count(c, "words", 0, most > 0 ? most : 1);
    ingot_call_out to[2] = {{INGOT_STRING, rank, {NULL}}, text_room(c, most, bytes)};
    to[0].dims[0] = ingot_dim_const(c, 1);
    to[0].dims[rank - 1] = m;
    int64_t ints[2] = {to_case, case_sensitive};
    ingot_call(c,
               &(ingot_call_desc){.name = "string_normalize",
                                  .n_in = stopwords ? 2 : 1,
                                  .in = in,
                                  .n_out = 2,
                                  .n_kept = 1,
                                  .out = to,
                                  .n_int = 2,
                                  .ints = ints,
                                  .n_count = 1,
                                  .counts = &m},
               out);
    return out[0];
}

void ingot_string_split(ingot_context *c, ingot_tensor *x, const char *delimiter,
                        int64_t most_splits, int64_t bytes, ingot_tensor *out[2])
{
    out[0] = out[1] = ingot_poison(c);
    if (!strings_check(c, "string_split", x))
        return;
    int64_t length = (int64_t)strlen(delimiter) + 1;
    char *copy = ingot_alloc(c, (size_t)length);
    memcpy(copy, delimiter, (size_t)length);
    ingot_tensor *in[2] = {x, ingot_data(c, NULL, INGOT_U8, 1, &length, copy)}, *results[3];
    int64_t pieces = most_splits >= 0 && most_splits < bytes ? most_splits + 1 : bytes;
    ingot_dim *m = ingot_call_count(c, "pieces", 0, pieces);
    ingot_call_out to[3] = {{INGOT_STRING, 0, {NULL}},
                            {INGOT_I64, 0, {NULL}},
                            text_room(c, most_elements(c, x), bytes)};
    to[1].rank = ops_dims(x, to[1].dims);
    to[0].rank = ops_dims(x, to[0].dims) + 1;
    if (to[0].rank > INGOT_MAX_RANK) {
        ingot_error(c, INGOT_UNSUPPORTED, "string_split: a result of rank %d is above %d",
                    to[0].rank, INGOT_MAX_RANK);
        return;
    }
    to[0].dims[to[0].rank - 1] = m;
    ingot_call(c,
               &(ingot_call_desc){.name = "string_split",
                                  .n_in = 2,
                                  .in = in,
                                  .n_out = 3,
                                  .n_kept = 1,
                                  .out = to,
                                  .n_int = 1,
                                  .ints = &most_splits,
                                  .n_count = 1,
                                  .counts = &m},
               results);
    out[0] = results[0];
    out[1] = results[1];
}

ingot_tensor *ingot_skip_gram(ingot_context *c, ingot_tensor *x, int64_t n, int64_t skips,
                              bool shorter, int64_t most, int64_t bytes)
{
    ingot_tensor *out[2];
    enum { MOST_WORDS = 1 << 16 }; /* the scratch grows with them */
    if (!strings_check(c, "skip_gram", x))
        return ingot_poison(c);
    if (n < 1 || n > MOST_WORDS)
        return ingot_error(c, INGOT_UNSUPPORTED,
                           "skip_gram: runs of %lld words are not between 1 and %d", (long long)n,
                           MOST_WORDS);
    ingot_dim *m = ingot_call_count(c, "runs", 0, most);
    ingot_call_out to[2] = {{INGOT_STRING, 1, {m}}, text_room(c, most, bytes)};
    int64_t ints[3] = {n, skips, shorter};
    ingot_call(c,
               &(ingot_call_desc){.name = "skip_gram",
                                  .n_in = 1,
                                  .in = &x,
                                  .n_out = 2,
                                  .n_kept = 1,
                                  .out = to,
                                  .n_int = 3,
                                  .ints = ints,
                                  .n_count = 1,
                                  .counts = &m,
                                  .scratch_bytes = (size_t)n * 24},
               out);
    return out[0];
}

ingot_tensor *ingot_regex_match(ingot_context *c, ingot_tensor *x, int64_t n,
                                const int32_t *program)
{
    ingot_tensor *in[2] = {x, NULL}, *out;
    if (!strings_check(c, "regex_match", x))
        return ingot_poison(c);
    int32_t *copy = ingot_alloc(c, (size_t)n * sizeof *copy);
    memcpy(copy, program, (size_t)n * sizeof *copy);
    in[1] = ingot_data(c, NULL, INGOT_I32, 1, &n, copy);
    ingot_call_out to = {INGOT_BOOL, 0, {NULL}};
    to.rank = ops_dims(x, to.dims);
    ingot_call(c,
               &(ingot_call_desc){.name = "regex_match",
                                  .n_in = 2,
                                  .in = in,
                                  .n_out = 1,
                                  .out = &to,
                                  .scratch_bytes = (size_t)program[0] * 16},
               &out);
    return out;
}

ingot_tensor *ingot_lookup(ingot_context *c, ingot_tensor *x, ingot_tensor *keys)
{
    ingot_tensor *in[2] = {x, keys}, *out;
    if (ingot_is_poison(x) || ingot_is_poison(keys))
        return ingot_poison(c);
    if (ingot_dtype_of(x) != ingot_dtype_of(keys) || ingot_rank(keys) != 1)
        return ingot_error(c, INGOT_INVALID, "lookup: keys have to be a list of %s, not of %s",
                           ingot_dtype_name(ingot_dtype_of(x)),
                           ingot_dtype_name(ingot_dtype_of(keys)));
    ingot_call_out to = {INGOT_I64, 0, {NULL}};
    to.rank = ops_dims(x, to.dims);
    ingot_call(c, &(ingot_call_desc){.name = "lookup", .n_in = 2, .in = in, .n_out = 1, .out = &to},
               &out);
    return out;
}

ingot_tensor *ingot_lsh_projection(ingot_context *c, ingot_tensor *x, ingot_tensor *seeds,
                                   ingot_tensor *weights, bool dense)
{
    ingot_tensor *in[3] = {seeds, x, weights}, *out;
    const int n_in = weights ? 3 : 2;
    for (int i = 0; i < n_in; i++)
        if (ingot_is_poison(in[i]))
            return ingot_poison(c);
    if (ingot_dtype_of(seeds) != INGOT_F32 || ingot_rank(seeds) != 2 || ingot_rank(x) < 1 ||
        ingot_dtype_of(x) == INGOT_STRING || ingot_dim_hi(ingot_shape(seeds, 1)) > 32 ||
        (weights && (ingot_dtype_of(weights) != INGOT_F32 || ingot_rank(weights) != 1)))
        return ingot_error(
            c, INGOT_INVALID,
            "lsh_projection: f32 seeds of up to 32 bits for each hash, a list of items, "
            "and f32 weights of them are needed");
    if (weights)
        ingot_require_equal(c, ingot_shape(weights, 0), ingot_shape(x, 0), "the number of weights");
    ingot_dim *count = ingot_shape(seeds, 0);
    ingot_call_out to = {
        INGOT_I32, 1, {dense ? ingot_dim_mul(c, count, ingot_shape(seeds, 1)) : count}};
    const int64_t is_dense = dense;
    ingot_call(c,
               &(ingot_call_desc){.name = "lsh_projection",
                                  .n_in = n_in,
                                  .in = in,
                                  .n_out = 1,
                                  .out = &to,
                                  .n_int = 1,
                                  .ints = &is_dense},
               &out);
    return out;
}
