/*
 * interp_cases.c - runs ONNX backend-test cases through the importer and the reference
 * interpreter: the quickest judge of an operator's meaning, with no code generated.
 *
 *     interp_cases [-v] [--bind] DIR...      DIR holds model.onnx and test_data_set_0/
 *
 * One line a case: its status, its name and why it did not pass; then the counts. With --bind, a
 * case that does not pass is tried again with its small inputs bound at compile time ("bound").
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingot_onnx.h"
#include "onnx_read.h"

enum { MAX_VALUES = 64 };

typedef struct {
    char message[1024]; /* the first error */
    ingot_status status;
} Result;

static void keep_first(void *user, ingot_level level, const char *message)
{
    Result *r = user;
    if (level == INGOT_ERROR && !r->message[0])
        snprintf(r->message, sizeof r->message, "%s", message);
}

static void keep_line(void *user, const char *message)
{
    keep_first(user, INGOT_ERROR, message);
}

/* One value of the data; files stay open until the case is done. */
typedef struct {
    OnnxFile *file;
    OnnxTensor t;
    int64_t dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    void *bytes; /* aligned copy */
} Datum;

static bool read_datum(Datum *d, const char *dir, const char *kind, int i, Result *r)
{
    char path[2048];
    ImportSink sink = {keep_line, r};
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", dir, kind, i);
    d->file = onnx_file_load_value(path, ONNX_ANY_VALUE, &sink);
    if (!d->file)
        return false;
    if (d->file->kind != ONNX_TENSOR) {
        keep_first(r, INGOT_ERROR, "the data has a value that is no tensor");
        return false;
    }
    if (!onnx_tensor_read(d->file, d->file->tensor, kind, &d->t) ||
        !ingot_onnx_dtype(d->t.dtype, &d->dtype) || d->t.rank > INGOT_MAX_RANK) {
        keep_first(r, INGOT_ERROR, "the data has a tensor that cannot be read");
        return false;
    }
    for (size_t a = 0; a < d->t.rank; a++)
        d->dims[a] = d->t.dims[a];
    d->bytes = onnx_file_alloc(d->file, d->t.data.len + 1);
    if (d->t.data.len)
        memcpy(d->bytes, d->t.data.data, d->t.data.len);
    return true;
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* A value's elements as doubles, through a graph that casts it; NULL if that fails. */
static double *as_doubles(ingot_dtype dtype, int rank, const int64_t *dims, const void *bytes,
                          int64_t n)
{
    ingot_context *c = ingot_context_new(NULL, NULL);
    double *out = calloc((size_t)n + 1, sizeof *out);
    ingot_tensor *t = ingot_cast(c, ingot_data(c, NULL, dtype, rank, dims, bytes), INGOT_F64);
    bool ok = n == 0 || ingot_const_data(c, t, out, (size_t)n * sizeof *out);
    ingot_context_free(c);
    if (ok)
        return out;
    free(out);
    return NULL;
}

static bool is_float_type(ingot_dtype d)
{
    return (d >= INGOT_F16 && d <= INGOT_F8E8M0) || d == INGOT_F4E2M1;
}

static bool differs(const Datum *want, const ingot_value *got, const char *name, char *why,
                    size_t size)
{
    if (want->dtype != got->dtype) {
        snprintf(why, size, "'%s' is %s, not %s", name, ingot_dtype_name(got->dtype),
                 ingot_dtype_name(want->dtype));
        return true;
    }
    int64_t n = 1;
    bool same = got->rank == (int)want->t.rank;
    for (int a = 0; same && a < got->rank; a++) {
        same = got->dims[a] == want->dims[a];
        n *= want->dims[a];
    }
    if (!same) {
        snprintf(why, size, "'%s' has another shape: rank %d not %zu", name, got->rank,
                 want->t.rank);
        for (int a = 0; a < got->rank && a < (int)want->t.rank; a++)
            snprintf(why + strlen(why), size - strlen(why), " %lld/%lld", (long long)got->dims[a],
                     (long long)want->dims[a]);
        return true;
    }
    if (!is_float_type(want->dtype) && ingot_dtype_bytes(want->dtype) == 8 &&
        memcmp(want->bytes, got->data, (size_t)n * 8) != 0) {
        snprintf(why, size, "'%s' has other numbers", name);
        return true;
    }
    double *a = as_doubles(want->dtype, got->rank, want->dims, want->bytes, n);
    double *b = as_doubles(want->dtype, got->rank, want->dims, got->data, n);
    double unit = want->dtype == INGOT_F16    ? 1.0 / 512
                  : want->dtype == INGOT_BF16 ? 1.0 / 64
                                              : 1e-3;
    bool off = !a || !b;
    if (off)
        snprintf(why, size, "'%s' cannot be compared", name);
    for (int64_t i = 0; i < n && !off; i++) {
        bool equal = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
        off = !equal &&
              !(is_float_type(want->dtype) && fabs(a[i] - b[i]) <= 1e-7 + unit * fabs(a[i]));
        if (off)
            snprintf(why, size, "'%s'[%lld] is %.9g, not %.9g", name, (long long)i, b[i], a[i]);
    }
    free(a);
    free(b);
    return off;
}

/* ---- one case ------------------------------------------------------------------------------- */

typedef enum { PASSED, BOUND, REFUSED, FAILED } Outcome;
static const char *const outcome_names[] = {"passed", "bound", "refused", "failed"};

static bool small_input(const Datum *d, bool floats)
{
    bool integer = !is_float_type(d->dtype);
    return d->t.rank <= 1 && d->t.count <= 64 && (integer || floats);
}

static Outcome run_case(const char *dir, int binds, Result *r)
{
    char path[2048];
    Datum in[MAX_VALUES] = {{0}}, want[MAX_VALUES] = {{0}};
    ingot_model_dim dims[MAX_VALUES];
    ingot_model_bind bound[MAX_VALUES];
    ingot_model_options o = {.struct_size = sizeof o, .dims = dims, .binds = bound};
    ingot_value values[MAX_VALUES], got[MAX_VALUES];
    Outcome outcome = FAILED;
    ingot_context *c = ingot_context_new(keep_first, r);
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    ingot_onnx *m = ingot_onnx_open(c, path);
    int n_in = m ? ingot_onnx_input_count(m) : 0, n_out = m ? ingot_onnx_output_count(m) : 0;
    bool ok = m && n_in <= MAX_VALUES && n_out <= MAX_VALUES;
    if (ok && !ingot_onnx_check(m)) {
        outcome = REFUSED;
        ok = false;
    }
    for (int i = 0; ok && i < n_in; i++) {
        const ingot_model_io *io = ingot_onnx_input(m, i);
        ok = read_datum(&in[i], dir, "input", i, r);
        if (!ok)
            break;
        if (io->rank == 0 && in[i].t.count == 1)
            in[i].t.rank = 0; /* some published data write a scalar as [1] */
        values[i] =
            (ingot_value){.data = in[i].bytes, .rank = (int)in[i].t.rank, .dtype = in[i].dtype};
        memcpy(values[i].dims, in[i].dims, in[i].t.rank * sizeof *in[i].dims);
        for (int a = 0; a < io->rank && a < (int)in[i].t.rank && o.n_dims < MAX_VALUES; a++)
            if (io->dims[a] < 0)
                dims[o.n_dims++] =
                    (ingot_model_dim){io->dim_names[a], in[i].dims[a], in[i].dims[a]};
        if (io->rank < 0 || (binds && small_input(&in[i], binds > 1)))
            bound[o.n_binds++] = (ingot_model_bind){io->name, in[i].dtype, (int)in[i].t.rank,
                                                    in[i].dims, in[i].bytes};
    }
    for (int i = 0; ok && i < n_out; i++)
        ok = read_datum(&want[i], dir, "output", i, r);
    if (ok && !ingot_onnx_build(m, &o)) {
        outcome = ingot_context_status(c) == INGOT_UNSUPPORTED ? REFUSED : FAILED;
        ok = false;
    }
    memset(got, 0, sizeof got);
    if (ok && ingot_interpret(c, n_in, values, n_out, got) == INGOT_OK) {
        outcome = o.n_binds ? BOUND : PASSED;
        for (int i = 0; i < n_out && outcome <= BOUND; i++)
            if (differs(&want[i], &got[i], ingot_onnx_output(m, i)->name, r->message,
                        sizeof r->message))
                outcome = FAILED;
    }
    ingot_context_free(c);
    for (int i = 0; i < MAX_VALUES; i++) {
        onnx_file_close(in[i].file);
        onnx_file_close(want[i].file);
    }
    ingot_onnx_close(m);
    return outcome;
}

int main(int argc, char **argv)
{
    int counts[4] = {0}, binds = 0;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--bind") == 0) {
            binds = 2;
            continue;
        }
        Result r = {{0}, INGOT_OK};
        Outcome outcome = run_case(argv[i], 0, &r);
        for (int b = 1; b <= binds && outcome > BOUND; b++) {
            Result again = {{0}, INGOT_OK};
            Outcome o = run_case(argv[i], b, &again);
            if (o <= BOUND) {
                r = again;
                outcome = o;
            }
        }
        counts[outcome]++;
        const char *name = strrchr(argv[i], '/');
        if (verbose || outcome > BOUND)
            printf("%-8s %s: %s\n", outcome_names[outcome], name ? name + 1 : argv[i], r.message);
        fflush(stdout);
    }
    for (int i = 0; i < 4; i++)
        printf("%d %s%s", counts[i], outcome_names[i], i < 3 ? ", " : "\n");
    return counts[FAILED] != 0;
}
