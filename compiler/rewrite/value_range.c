/* value_range.c - within which bounds the elements of an integer tensor lie. */
#include <limits.h>
#include <math.h>

#include "rewrite.h"

typedef struct {
    double lo, hi;
} ValueRange;

static bool of_type(ingot_dtype d, ValueRange *b)
{
    if (d != INGOT_BOOL && !dtype_is_int(d))
        return false;
    *b = (ValueRange){(double)dtype_least(d), (double)dtype_most(d)};
    return true;
}

static ValueRange corners(double a, double b, double c, double d)
{
    return (ValueRange){fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d))};
}

/* What the bytes of a file are: until both ends are found, which are soon in most. */
static void of_bytes(Node *n, ValueRange *b)
{
    enum { PIECE = UINT8_MAX + 1 };
    const Data *data = n->arg.ptr;
    if (!data->bytes || !data->nbytes || (n->dtype != INGOT_I8 && n->dtype != INGOT_U8))
        return;
    const uint8_t *p = data->bytes;
    uint8_t flip = n->dtype == INGOT_I8 ? INT8_MAX + 1 : 0, lo = UINT8_MAX,
            hi = 0; /* in the order of u8 */
    for (size_t at = 0; at < data->nbytes && (lo > 0 || hi < UINT8_MAX); at += PIECE) {
        const size_t end = data->nbytes - at < PIECE ? data->nbytes : at + PIECE;
        for (size_t i = at; i < end; i++) {
            const uint8_t v = (uint8_t)(p[i] ^ flip);
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
        }
    }
    *b = (ValueRange){(double)lo - flip, (double)hi - flip};
}

static bool bounds_of(Node *n, int depth, ValueRange *b)
{
    ValueRange type, x, y;
    if (!of_type((ingot_dtype)n->dtype, &type))
        return false;
    *b = type;
    if (depth > DEPTH_ANY)
        return true;
    switch (n->op) {
    case OP_CONST: b->lo = b->hi = (double)n->arg.i; break;
    case OP_DATA: of_bytes(n, b); break;
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_EXPAND:
    case OP_SHRINK:
    case OP_FLIP:
    case OP_GATHER:
    case OP_KEEP:
    case OP_COPY: return bounds_of(n->src[0], depth + 1, b);
    case OP_PAD:
        (void)bounds_of(n->src[0], depth + 1, b);
        *b = (ValueRange){fmin(b->lo, 0), fmax(b->hi, 0)};
        break;
    case OP_CONCAT:
        (void)bounds_of(n->src[0], depth + 1, b);
        for (uint32_t i = 1; i < n->nsrc && bounds_of(n->src[i], depth + 1, &x); i++)
            *b = (ValueRange){fmin(b->lo, x.lo), fmax(b->hi, x.hi)};
        break;
    case OP_CAST:
        if (bounds_of(n->src[0], depth + 1, &x))
            *b = x;
        break;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_MAX:
    case OP_MIN:
        if (!bounds_of(n->src[0], depth + 1, &x) || !bounds_of(n->src[1], depth + 1, &y))
            break;
        *b = n->op == OP_ADD   ? (ValueRange){x.lo + y.lo, x.hi + y.hi}
             : n->op == OP_SUB ? (ValueRange){x.lo - y.hi, x.hi - y.lo}
             : n->op == OP_MUL ? corners(x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi)
             : n->op == OP_MAX ? (ValueRange){fmax(x.lo, y.lo), fmax(x.hi, y.hi)}
                               : (ValueRange){fmin(x.lo, y.lo), fmin(x.hi, y.hi)};
        break;
    case OP_REDUCE: /* of nothing it is an end of the type */
        if (reduce_monoid(n) == INGOT_REDUCE_MAX && bounds_of(n->src[0], depth + 1, &x))
            b->hi = x.hi;
        if (reduce_monoid(n) == INGOT_REDUCE_MIN && bounds_of(n->src[0], depth + 1, &x))
            b->lo = x.lo;
        break;
    case OP_AND: /* with what is not negative */
        if (bounds_of(n->src[1], depth + 1, &y) && y.lo >= 0)
            *b = (ValueRange){0, y.hi};
        break;
    case OP_SHR:
        if (bounds_of(n->src[0], depth + 1, &x) && bounds_of(n->src[1], depth + 1, &y) &&
            x.lo >= 0 && y.lo == y.hi && y.lo >= 0 && y.lo < (double)(CHAR_BIT * sizeof(int64_t)))
            *b = (ValueRange){0, floor(ldexp(x.hi, -(int)y.lo))};
        break;
    default: break;
    }
    if (b->lo < type.lo || b->hi > type.hi) /* it may wrap */
        *b = type;
    return true;
}

bool value_range(Node *n, double *lo, double *hi)
{
    ValueRange b;
    if (!bounds_of(n, 0, &b))
        return false;
    *lo = b.lo;
    *hi = b.hi;
    return true;
}
