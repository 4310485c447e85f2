/* run_compare.c - how far values are from the wanted ones.
 *
 * An error is told as it is and as a share of the range, which is the largest magnitude among the
 * wanted values; the tolerance is such a share.  Three cases have no such error: nan has to meet
 * nan and infinity the same infinity, which no tolerance excuses; and where all that is wanted is
 * zero, there is no range, and the error itself is held to the tolerance. */
#include <math.h>
#include <string.h>

#include "run.h"

double tolerance_of(ingot_dtype d)
{
    switch (d) {
    case INGOT_F64:
    case INGOT_C128: return 1e-6;
    case INGOT_F32:
    case INGOT_C64: return 1e-3;
    case INGOT_F16: return 1e-2;
    case INGOT_BF16: return 4e-2;
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ:
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ:
    case INGOT_F4E2M1: return 0.25;
    default: return 0;
    }
}

static bool is_complex(ingot_dtype d)
{
    return dtype_info[d].kind == 'c';
}

/* The real numbers of a value: a complex number is two. */
static const double *numbers_of(Arena *a, const HostTensor *v, size_t n)
{
    double *number = NEWN(a, double, n + 1);
    ingot_dtype part = v->dtype == INGOT_C64    ? INGOT_F32
                       : v->dtype == INGOT_C128 ? INGOT_F64
                                                : v->dtype;
    interp_to_f64(part, n, number, v->data);
    return number;
}

static void compare_strings(Difference *d, const HostTensor *got, const HostTensor *want)
{
    char *const *a = got->data, *const *b = want->data;
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(a[i], b[i]) && !d->beyond++)
            d->at = i;
}

/* Whether both are nan, infinite alike or finite; else it is counted. */
static bool same_kind(Difference *d, double got, double want)
{
    if (isnan(got) != isnan(want)) {
        d->nan++;
        return false;
    }
    if ((isinf(got) || isinf(want)) && got != want && !isnan(got)) {
        d->inf++;
        return false;
    }
    return true;
}

static void compare_numbers(Arena *a, Difference *d, const HostTensor *got, const HostTensor *want)
{
    size_t width = d->count ? want->bytes / d->count : 0;
    bool exact =
        dtype_is_int((int)want->dtype); /* integers that a double cannot tell apart differ by 1 */
    const double *x = numbers_of(a, got, d->count), *y = numbers_of(a, want, d->count);
    for (size_t i = 0; i < d->count; i++)
        if (isfinite(y[i]))
            d->range = fmax(d->range, fabs(y[i]));
    d->limit = d->range > 0 ? d->tolerance * d->range : d->tolerance;
    if (d->one_off)
        d->limit = fmax(d->limit, 1);
    for (size_t i = 0; i < d->count; i++) {
        bool alike = same_kind(d, x[i], y[i]);
        double error = alike ? fabs(x[i] - y[i]) : 0;
        if (alike && (x[i] == y[i] || isnan(y[i])))
            error = exact && memcmp((const char *)got->data + i * width,
                                    (const char *)want->data + i * width, width);
        d->beyond += error > d->limit;
        bool worst = alike ? error > d->error && !d->nan && !d->inf : d->nan + d->inf == 1;
        d->error = fmax(d->error, error);
        if (worst) {
            d->at = i;
            d->got = x[i];
            d->want = y[i];
        }
    }
}

Difference value_compare(Arena *a, const HostTensor *got, const HostTensor *want, double tolerance)
{
    ingot_dtype t = want->dtype;
    Difference d = {.count = want->count * (is_complex(t) ? 2 : 1),
                    .strings = t == INGOT_STRING,
                    .complex = is_complex(t)};
    d.tolerance = tolerance >= 0 ? tolerance : tolerance_of(t);
    d.one_off = tolerance < 0 && (t == INGOT_I8 || t == INGOT_U8);
    bool scalars = got->count == 1 && want->count == 1 && (!got->rank || !want->rank);
    d.shape =
        got->dtype != t ||
        (!scalars && (got->rank != want->rank ||
                      memcmp(got->dims, want->dims, (size_t)want->rank * sizeof *want->dims)));
    if (d.shape)
        return d;
    if (d.strings)
        compare_strings(&d, got, want);
    else
        compare_numbers(a, &d, got, want);
    return d;
}

bool difference_is_good(const Difference *d)
{
    return !d->shape && !d->beyond && !d->nan && !d->inf;
}

/* ---- telling ----------------------------------------------------------------------------- */

static void print_type(StrBuf *sb, const HostTensor *v)
{
    sb_printf(sb, "%s[", dtype_info[v->dtype].name);
    for (int i = 0; i < v->rank; i++)
        sb_printf(sb, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    sb_puts(sb, "]");
}

/* "[0,3]" of element `at`. */
static void print_place(StrBuf *sb, const HostTensor *v, size_t at)
{
    size_t n = v->count;
    sb_puts(sb, "[");
    for (int i = 0; i < v->rank; i++) {
        n /= (size_t)v->dims[i];
        sb_printf(sb, "%s%zu", i ? "," : "", at / n % (size_t)v->dims[i]);
    }
    sb_puts(sb, "]");
}

static void print_error(StrBuf *sb, const Difference *d)
{
    if (d->error == 0)
        sb_puts(sb, "equal");
    else if (d->range > 0)
        sb_printf(sb, "largest error %.3g of the range (%.3g)", d->error / d->range, d->error);
    else
        sb_printf(sb, "all wanted are zero, largest error %.3g", d->error);
}

void difference_print(StrBuf *sb, const Difference *d, const HostTensor *got,
                      const HostTensor *want)
{
    if (d->shape) {
        print_type(sb, got);
        sb_puts(sb, " and not ");
        print_type(sb, want);
        return;
    }
    if (d->strings) {
        if (d->beyond) {
            print_place(sb, want, d->at);
            sb_printf(sb, " is \"%.60s\", wanted \"%.60s\"; %zu of %zu strings differ",
                      ((char *const *)got->data)[d->at], ((char *const *)want->data)[d->at],
                      d->beyond, d->count);
        } else {
            sb_puts(sb, "equal");
        }
        return;
    }
    if (!difference_is_good(d)) {
        print_place(sb, want, d->at / (d->complex ? 2 : 1));
        sb_printf(sb, " is %.9g, wanted %.9g; ", d->got, d->want);
    }
    if (d->error > 0 || difference_is_good(d)) {
        print_error(sb, d);
        if (d->beyond)
            sb_printf(sb, "; %zu of %zu are beyond %.3g", d->beyond, d->count, d->limit);
    } else {
        sb_puts(sb, "all others are equal");
    }
    if (d->nan)
        sb_printf(sb, "; %zu of %zu are nan on one side only", d->nan, d->count);
    if (d->inf)
        sb_printf(sb, "; %zu of %zu are infinite on one side only", d->inf, d->count);
}
