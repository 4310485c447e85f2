/* element_error.c - how far rounding may move the result of an operation, whose operands it has
 * moved already.
 *
 *     |fl(f(a + d)) - f(a)| <= |f'(a)| |d| + eps |f(a)|
 *         where f is smooth as far as d reaches
 *
 * (N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 3).  What jumps (a
 * comparison, a floor) may be on either side of the jump.  INFINITY: nothing is known. */
#include "element.h"

#include <float.h>
#include <math.h>

double element_eps(ingot_dtype d)
{
    switch (d) {
    case INGOT_F64: return 0x1p-53;
    case INGOT_F32: return 0x1p-24;
    case INGOT_F16: return 0x1p-11;
    case INGOT_BF16: return 0x1p-8;
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ: return 0x1p-4;
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ: return 0x1p-3;
    case INGOT_F8E8M0: return 0.5;
    case INGOT_F4E2M1: return 0x1p-2;
    default: return 0;
    }
}

double element_most(ingot_dtype d)
{
    switch (d) {
    case INGOT_F64: return DBL_MAX;
    case INGOT_F16: return 65504;
    case INGOT_F8E4M3FN: return 448;
    case INGOT_F8E4M3FNUZ: return 240;
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ: return 57344;
    case INGOT_F4E2M1: return 6;
    default: return FLT_MAX;
    }
}

/* Below it a type has fewer digits, or zeros. */
double element_least(ingot_dtype d)
{
    switch (d) {
    case INGOT_F64: return DBL_MIN;
    case INGOT_F16: return 0x1p-24;
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ: return 0x1p-9;
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ: return 0x1p-16;
    case INGOT_F4E2M1: return 0.5;
    default: return FLT_MIN;
    }
}

static double whole(Op op, double a)
{
    return op == OP_FLOOR   ? floor(a)
           : op == OP_CEIL  ? ceil(a)
           : op == OP_TRUNC ? trunc(a)
                            : rint(a);
}

/* Of what jumps from one whole number to the next. */
static double steps(Op op, double a, double ea)
{
    const double y = whole(op, a);
    return ea == 0 ? 0 : fmax(fabs(whole(op, a + ea) - y), fabs(whole(op, a - ea) - y));
}

static double comparison(Op op, double a, double b, double e)
{
    (void)op;
    return e == 0 || isnan(a) || isnan(b) || fabs(a - b) > e ? 0 : 1;
}

static double power(double a, double b, double ea, double eb, double y)
{
    if (ea == 0 && eb == 0)
        return 0;
    if (a <= 2 * ea)
        return INFINITY;
    return 2 * fabs(y) * (fabs(b) * ea / a + fabs(log(a)) * eb);
}

/* Of a function of one operand, y = f(a). */
static double function(Op op, double a, double e, double y)
{
    const double left = 1 - fabs(a) - e;
    switch (op) {
    case OP_EXP: return e < 50 ? fabs(y) * expm1(e) : INFINITY;
    case OP_LOG: return e == 0 ? 0 : e < fabs(a) / 2 ? 2 * e / fabs(a) : INFINITY;
    case OP_SIN:
    case OP_COS:
    case OP_ATAN:
    case OP_ASINH:
    case OP_TANH: return e;
    case OP_ERF: return 1.13 * e;
    case OP_TAN: return e == 0 ? 0 : e * (1 + y * y) < 0.1 ? 2 * e * (1 + y * y) : INFINITY;
    case OP_SINH:
    case OP_COSH: return e < 50 ? e * cosh(fabs(a) + e) : INFINITY;
    case OP_ASIN:
    case OP_ACOS:
    case OP_ATANH: return e == 0 ? 0 : left > 0 ? e / left : INFINITY;
    case OP_ACOSH: return e == 0 ? 0 : a - e > 1 ? e / sqrt(2 * (a - e - 1)) : INFINITY;
    case OP_SQRT: return e == 0 ? 0 : a > 2 * e ? e / sqrt(a) : INFINITY;
    case OP_NEG:
    case OP_ABS: return e;
    case OP_SIGN: return e == 0 || fabs(a) > e ? 0 : 2;
    case OP_FLOOR:
    case OP_CEIL:
    case OP_TRUNC:
    case OP_ROUND: return steps(op, a, e);
    case OP_ISNAN:
    case OP_NOT: return e > 0 ? 1 : 0;
    default: return e > 0 ? INFINITY : 0;
    }
}

/* Is it the same whatever the operands were within their errors? */
static double logic(Op op, double a, double b, double ea, double eb)
{
    if ((op == OP_AND && ((ea == 0 && a == 0) || (eb == 0 && b == 0))) ||
        (op == OP_OR && ((ea == 0 && a != 0) || (eb == 0 && b != 0))))
        return 0;
    return ea > 0 || eb > 0 ? 1 : 0;
}

static double other(const Node *n, const double *x, const double *e, double y)
{
    const double a = x[0], b = x[1], ea = e[0], eb = e[1];
    switch (n->op) {
    case OP_ADD:
    case OP_SUB: return ea + eb;
    case OP_MUL: return fabs(a) * eb + fabs(b) * ea + ea * eb;
    case OP_MULACC:
        return fabs(a) * eb + fabs(b) * ea + ea * eb + e[2] +
               fabs(a * b) * element_eps((ingot_dtype)n->dtype);
    case OP_DIV:
        if (!dtype_is_float(n->dtype))
            return ea > 0 || eb > 0 ? INFINITY : 0;
        return ea == 0 && eb == 0 ? 0
               : eb < fabs(b) / 2 ? 2 * (ea + fabs(y) * eb) / fabs(b)
                                  : INFINITY;
    case OP_MAX:
    case OP_MIN: return fmax(ea, eb);
    case OP_POW: return power(a, b, ea, eb, y);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE: return comparison((Op)n->op, a, b, ea + eb);
    case OP_AND:
    case OP_OR:
        return n->dtype == INGOT_BOOL ? logic((Op)n->op, a, b, ea, eb)
               : ea > 0 || eb > 0     ? INFINITY
                                      : 0;
    case OP_WHERE:
        if (ea > 0)
            return x[1] == x[2] ? fmax(e[1], e[2]) : fabs(x[1] - x[2]) + fmax(e[1], e[2]);
        return a != 0 ? e[1] : e[2];
    default: return ea > 0 || eb > 0 || e[2] > 0 ? INFINITY : 0;
    }
}

/* Of a conversion: a whole number is another one, or the same. */
static double converted(const Node *n, double a, double ea, double y)
{
    if (ea == 0)
        return 0;
    if (dtype_is_float(n->dtype))
        return ea + element_eps((ingot_dtype)n->dtype) * fabs(y);
    if (n->dtype == INGOT_BOOL)
        return fabs(a) > ea ? 0 : 1;
    return dtype_is_float(n->src[0]->dtype) ? steps(OP_TRUNC, a, ea) : ea;
}

/* Of x and y in [a, b], sums and products: what most elements are, and what nothing jumps in. */
static bool is_smooth(Op op)
{
    return op == OP_ADD || op == OP_SUB || op == OP_MUL;
}

/* Where the operands are exact, the result is off by its own rounding alone. */
static void rounding(const Node *n, int count, const double *const *a, const double *y, double *e)
{
    const ingot_dtype d = (ingot_dtype)n->dtype;
    const double eps = element_eps(d), floor_of = element_least(d), most = element_most(d);
    for (int k = 0; k < count; k++) {
        const double size = fabs(y[k]), off = eps * size + floor_of;
        const bool infinite = isinf(a[0][k]) || isinf(a[1][k]);
        e[k] = size <= DBL_MAX ? (size + off >= most ? INFINITY : off)
               : isnan(y[k])   ? 0
               : infinite      ? 0 /* already, and not by rounding */
                               : INFINITY;
    }
}

void element_error(const Node *n, int count, const double *const *a, const double *const *ea,
                   const double *y, double *e)
{
    const bool is_float = dtype_is_float(n->dtype);
    const ingot_dtype d = (ingot_dtype)n->dtype;
    if (is_float && is_smooth((Op)n->op) && !ea[0] && !ea[1]) {
        rounding(n, count, a, y, e);
        return;
    }
    const bool exact = n->op == OP_NEG || n->op == OP_ABS || n->op == OP_WHERE ||
                       n->op == OP_CAST || n->op == OP_BITCAST || n->op == OP_MAX ||
                       n->op == OP_MIN;
    const double eps = exact || !is_float          ? 0
                       : op_info[n->op].cost >= 16 ? 8 * element_eps(d)
                                                   : element_eps(d);
    for (int k = 0; k < count; k++) {
        double x[3] = {0, 0, 0}, ex[3] = {0, 0, 0};
        for (int i = 0; i < 3; i++) {
            x[i] = a[i] ? a[i][k] : 0;
            ex[i] = ea[i] ? ea[i][k] : 0;
        }
        e[k] = n->op == OP_CAST ? converted(n, x[0], ex[0], y[k])
               : n->nsrc == 1   ? function((Op)n->op, x[0], ex[0], y[k])
                                : other(n, x, ex, y[k]);
        e[k] += eps > 0 ? eps * fabs(y[k]) + element_least(d) : 0;
        const bool sure = ex[0] < INFINITY && ex[1] < INFINITY && ex[2] < INFINITY;
        if (isinf(y[k]) && sure && (isinf(x[0]) || isinf(x[1]) || isinf(x[2])))
            e[k] = 0; /* infinite already, and not by rounding */
        else if (!(e[k] >= 0))
            e[k] = isnan(y[k]) ? 0 : INFINITY;
        if (is_float && isfinite(y[k]) && fabs(y[k]) + e[k] >= element_most(d))
            e[k] = INFINITY; /* in its own type it may be infinite by now */
    }
}
