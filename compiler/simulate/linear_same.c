/* linear_same.c - whether two runs have written the same to a kernel's argument. */
#include <math.h>
#include <string.h>

#include "interp.h"
#include "linear_thread.h"

static bool same_number(ingot_dtype d, const unsigned char *p, const unsigned char *q, double apart)
{
    double x, y;
    if (!memcmp(p, q, elem_bytes(d)))
        return true;
    if (!dtype_is_float(d))
        return false;
    interp_to_f64(d, 1, &x, p);
    interp_to_f64(d, 1, &y, q);
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= apart * (1 + fabs(y));
}

bool linear_same(const Kernel *k, int arg, const LinearArg *got, const LinearArg *want,
                 double apart, char fault[1024])
{
    const ingot_dtype d = k->args[arg].dtype;
    const int64_t bytes = (int64_t)elem_bytes(d);
    const int64_t n = layout_elements(&k->args[arg].layout, k->args[arg].rank, k->args[arg].dims);
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = got->at + i * bytes, q = want->at + i * bytes;
        const bool here = shadow_written(got->memory, p), there = shadow_written(want->memory, q);
        if (here == there &&
            (!here || same_number(d, got->memory->bytes + p, want->memory->bytes + q, apart)))
            continue;
        StrBuf sb = {0};
        linear_tell_element(&sb, k, arg, i, n);
        snprintf(fault, 1024, "%s: %s %s", k->name, sb.data,
                 here && there ? "has another value"
                 : here        ? "is written, and should not be"
                               : "is not written");
        sb_free(&sb);
        return false;
    }
    return true;
}
