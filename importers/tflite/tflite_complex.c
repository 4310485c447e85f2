/*
 * tflite_complex.c - complex numbers: what makes them (RFFT2D), and what makes real ones of them.
 *
 * A tensor [..] of COMPLEX64 is one of f32 [.., 2] in the graph: real and imaginary parts.
 * Operators that only move elements (types "*c" in tflite_ops.def) are applied to each part.
 */
#include "tflite_model.h"

#define X n->in[0]

static ingot_tensor *part(TfliteNode *n, ingot_tensor *x, int64_t which)
{
    const int last = ingot_rank(x) - 1;
    if (ingot_is_poison(x))
        return x;
    x = ingot_slice(n->c, x, last, tfl_dim(n, which), tfl_dim(n, 1), 1);
    return ingot_squeeze(n->c, x, last);
}

static ingot_tensor *of_parts(TfliteNode *n, ingot_tensor *re, ingot_tensor *im)
{
    if (ingot_is_poison(re) || ingot_is_poison(im))
        return ingot_poison(n->c);
    return ingot_stack(n->c, 2, (ingot_tensor *[]){re, im}, ingot_rank(re));
}

bool tfl_is_complex(TfliteNode *n, int i)
{
    return i < n->n_in && n->ti[i] && n->ti[i]->type == INGOT_TFLITE_COMPLEX64;
}

ingot_tensor *tflite_by_parts(TfliteNode *n, TfliteLower *lower)
{
    ingot_tensor *x = X, *done[2];
    if (n->to[0]->type != INGOT_TFLITE_COMPLEX64)
        return tfl_fault(n, "its input is complex, and its result is not");
    for (int i = 0; i < 2; i++) {
        n->in[0] = part(n, x, i);
        done[i] = lower(n);
    }
    n->in[0] = x;
    return of_parts(n, done[0], done[1]);
}

ingot_tensor *tflite_real(TfliteNode *n)
{
    return part(n, X, 0);
}

ingot_tensor *tflite_imag(TfliteNode *n)
{
    return part(n, X, 1);
}

ingot_tensor *tflite_complex_abs(TfliteNode *n)
{
    ingot_tensor *re = part(n, X, 0), *im = part(n, X, 1);
    return ingot_sqrt(n->c, ingot_add(n->c, ingot_mul(n->c, re, re), ingot_mul(n->c, im, im)));
}

static ingot_complex swapped(TfliteNode *n, ingot_complex x)
{
    const int last = ingot_rank(x.re) - 1;
    return (ingot_complex){ingot_transpose(n->c, x.re, last, last - 1),
                           ingot_transpose(n->c, x.im, last, last - 1)};
}

/* The transform of the last two axes, each cut or padded to a length of input 1; of the last one
 * the first half. */
ingot_tensor *tflite_rfft2d(TfliteNode *n)
{
    int64_t size[2];
    const int got = tfl_ints(n, 1, size, 2);
    if (got < 0 || ingot_is_poison(X))
        return ingot_poison(n->c);
    if (got != 2 || ingot_rank(X) < 2 || ingot_rank(X) == INGOT_MAX_RANK)
        return tfl_fault(n, "its input has two axes or more, and its lengths are two numbers");
    for (int i = 0; i < 2; i++)
        if (size[i] < 1 || (size[i] & (size[i] - 1)) || !ingot_dft_fits(size[i]))
            return tfl_unsupported(
                n, "the length %lld is not supported: lengths are powers of two up to 2^22",
                (long long)size[i]);
    ingot_complex y = {ingot_resize_last(n->c, X, size[1]), NULL};
    y = ingot_dft(n->c, (ingot_dft_plan){.n = size[1]}, y, size[1] / 2 + 1);
    y = swapped(n, y);
    y.re = ingot_resize_last(n->c, y.re, size[0]);
    y.im = ingot_resize_last(n->c, y.im, size[0]);
    if (size[0] > 1)
        y = ingot_dft(n->c, (ingot_dft_plan){.n = size[0]}, y, size[0]);
    y = swapped(n, y);
    return of_parts(n, y.re, y.im);
}
