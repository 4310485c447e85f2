/*
 * tflite_custom.c - custom operators: C functions of the user's (--op), and
 * TFLite_Detection_PostProcess.
 *
 * Detections: boxes [1, N, 4..] are encoded beside anchors [N, 4], as (y, x, h, w):
 *
 *     y = box_y / scale_y * anchor_h + anchor_y,   h = exp(box_h / scale_h) * anchor_h / 2
 *
 * and become corners (y - h, x - w, y + h, x + w). Of [1, N, classes], perhaps with the background
 * in front, the best class of each box counts, or (use_regular_nms) each class by itself. Boxes
 * that overlap better ones are dropped; what is left is [1, most, 4], and zeros behind.
 */
#include <math.h>
#include <string.h>

#include "tflite_flex.h"

#define X n->in[0]
#define Y n->in[1]

enum { MOST_NUMBERS = 64 };

/* ---- functions of the user's ------------------------------------------------------------------
 */

ingot_custom_op *tflite_user_op(TfliteModel *m, const ingot_tflite_op *op)
{
    const char *name = tflite_op_name(m, op);
    for (int i = 0; i < m->n_ops; i++) {
        const char *colon = strrchr(m->ops[i].name, ':');
        if (!strcmp(colon ? colon + 1 : m->ops[i].name, name))
            return m->ops[i].op;
    }
    return NULL;
}

ingot_tensor *tflite_call_user(TfliteNode *n, ingot_custom_op *op)
{
    TfliteNumber number[MOST_NUMBERS];
    const int count = tflite_flex_numbers(&n->op->custom_options, number, MOST_NUMBERS);
    ingot_attribute attr[MOST_NUMBERS];
    for (int i = 0; i < count; i++)
        attr[i] = (ingot_attribute){.name = number[i].name,
                                    .kind = number[i].is_float ? INGOT_ATTR_FLOAT : INGOT_ATTR_INT,
                                    .i = number[i].i,
                                    .f = number[i].f};
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i])
            return tfl_fault(n, "input %d of a custom operator is left out", i);
    ingot_custom(n->c, op, n->n_in, n->in, count > 0 ? count : 0, attr, n->n_out, n->out);
    return n->n_out ? n->out[0] : ingot_poison(n->c);
}

/* ---- detections ------------------------------------------------------------------------------ */

typedef struct {
    int64_t most, per_class, categories, classes;
    bool regular;
    float least_score, iou, scale[4];
} TfliteDetection;

static bool detection_options(TfliteNode *n, TfliteDetection *d)
{
    TfliteNumber v[MOST_NUMBERS];
    const int count = tflite_flex_numbers(&n->op->custom_options, v, MOST_NUMBERS);
    *d = (TfliteDetection){.per_class = 100, .categories = 1};
    for (int i = 0; i < count; i++) {
        static const char *const scales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
        const char *k = v[i].name;
        if (!strcmp(k, "max_detections"))
            d->most = v[i].i;
        else if (!strcmp(k, "max_classes_per_detection"))
            d->categories = v[i].i;
        else if (!strcmp(k, "detections_per_class"))
            d->per_class = v[i].i;
        else if (!strcmp(k, "num_classes"))
            d->classes = v[i].i;
        else if (!strcmp(k, "use_regular_nms"))
            d->regular = v[i].i != 0;
        else if (!strcmp(k, "nms_score_threshold"))
            d->least_score = (float)v[i].f;
        else if (!strcmp(k, "nms_iou_threshold"))
            d->iou = (float)v[i].f;
        for (int s = 0; s < 4; s++)
            if (!strcmp(k, scales[s]))
                d->scale[s] = (float)v[i].f;
    }
    if (count > 0 && d->most >= 1 && d->most <= 100000 && d->classes >= 1 && d->categories >= 1 &&
        d->per_class >= 1 && d->scale[0] > 0 && d->scale[1] > 0 && d->scale[2] > 0 &&
        d->scale[3] > 0)
        return true;
    tfl_fault(n, "its options are broken, or not there");
    return false;
}

/* Input i as floats. */
static ingot_tensor *real(TfliteNode *n, int i)
{
    if (!tfl_quantized(n->ti[i]))
        return n->in[i];
    ingot_tensor *x = ingot_cast(n->c, n->in[i], INGOT_F32);
    x = ingot_add_c(n->c, x, -(double)tfl_zero(n->ti[i]));
    return ingot_mul(n->c, x, ingot_scalar_f(n->c, INGOT_F32, (double)tfl_scale(n->ti[i])));
}

/* Coordinates k and k + 1 of [.., N, 4]: [N, 2] */
static ingot_tensor *two_of(TfliteNode *n, ingot_tensor *x, int k)
{
    x = ingot_slice(n->c, x, ingot_rank(x) - 1, tfl_dim(n, k), tfl_dim(n, 2), 1);
    return ingot_rank(x) == 3 ? ingot_squeeze(n->c, x, 0) : x;
}

/* [N, 4] of corners */
static ingot_tensor *corners(TfliteNode *n, const TfliteDetection *d)
{
    ingot_context *c = n->c;
    const int64_t two[] = {2};
    float *scale = ingot_alloc(c, sizeof d->scale);
    memcpy(scale, d->scale, sizeof d->scale);
    ingot_tensor *box = real(n, 0), *anchor = real(n, 2);
    ingot_tensor *at = two_of(n, anchor, 0), *size = two_of(n, anchor, 2);
    ingot_tensor *centre =
        ingot_div(c, two_of(n, box, 0), ingot_data(c, NULL, INGOT_F32, 1, two, scale));
    centre = ingot_add(c, ingot_mul(c, centre, size), at);
    ingot_tensor *half =
        ingot_div(c, two_of(n, box, 2), ingot_data(c, NULL, INGOT_F32, 1, two, scale + 2));
    half = ingot_mul(c, ingot_mul_c(c, ingot_exp(c, half), 0.5), size);
    ingot_tensor *parts[] = {ingot_sub(c, centre, half), ingot_add(c, centre, half)};
    return ingot_concat(c, 2, parts, 1);
}

/* Rows of x [k, ..] at `index`, and zeros up to so many. */
static ingot_tensor *filled(TfliteNode *n, ingot_tensor *x, int64_t most)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (ingot_is_poison(x))
        return x;
    for (int a = 0; a < ingot_rank(x); a++)
        lo[a] = hi[a] = tfl_dim(n, 0);
    hi[0] = ingot_dim_sub(n->c, tfl_dim(n, most), ingot_shape(x, 0));
    return ingot_unsqueeze(n->c, ingot_pad(n->c, x, lo, hi), 0);
}

/* i64 [k, 3] of (0, class, box): scores [1, classes, N] of at least that, of one class each. */
static ingot_tensor *kept_boxes(TfliteNode *n, const TfliteDetection *d, ingot_tensor *boxes,
                                ingot_tensor *scores, int64_t most)
{
    ingot_context *c = n->c;
    const float below = nextafterf(d->least_score, -INFINITY); /* more than this is enough */
    return ingot_nms(c, ingot_unsqueeze(c, boxes, 0), scores, ingot_scalar_i(c, INGOT_I64, most),
                     ingot_scalar_f(c, INGOT_F32, (double)d->iou),
                     ingot_scalar_f(c, INGOT_F32, (double)below), false);
}

static ingot_tensor *column(TfliteNode *n, ingot_tensor *x, int i)
{
    return ingot_squeeze(n->c, ingot_slice(n->c, x, 1, tfl_dim(n, i), tfl_dim(n, 1), 1), 1);
}

/* boxes [k, 4], classes and scores [k] */
static ingot_tensor *results(TfliteNode *n, ingot_tensor *boxes, ingot_tensor *classes,
                             ingot_tensor *scores, ingot_tensor *count, int64_t room)
{
    n->out[1] = filled(n, ingot_cast(n->c, classes, INGOT_F32), room);
    if (n->n_out > 2)
        n->out[2] = filled(n, scores, room);
    if (n->n_out > 3)
        n->out[3] = ingot_unsqueeze(n->c, ingot_cast(n->c, count, INGOT_F32), 0);
    return filled(n, boxes, room);
}

/* Boxes by their best class; each that is kept has its `categories` best ones. */
static ingot_tensor *fast(TfliteNode *n, const TfliteDetection *d, ingot_tensor *boxes,
                          ingot_tensor *scores)
{
    ingot_context *c = n->c;
    const int64_t top = d->categories < d->classes ? d->categories : d->classes;
    ingot_tensor *best[2];
    if (top != d->categories)
        return tfl_unsupported(n, "more categories than classes are not supported");
    ingot_topk(c, scores, tfl_dim(n, top), 1, true, best); /* [N, top] */
    ingot_tensor *one = ingot_reduce(c, INGOT_REDUCE_MAX, scores, 2, false);
    one = ingot_unsqueeze(c, ingot_unsqueeze(c, one, 0), 0);
    ingot_tensor *kept = kept_boxes(n, d, boxes, one, d->most);
    if (ingot_is_poison(kept) || ingot_is_poison(best[0]))
        return ingot_poison(c);
    ingot_tensor *at = column(n, kept, 2), *rows[3];
    ingot_tensor *from[] = {ingot_unsqueeze(c, boxes, 1), best[1], best[0]};
    ingot_dim *dims[] = {ingot_shape(boxes, 0), tfl_dim(n, top), tfl_dim(n, 4)};
    from[0] = ingot_expand(c, from[0], 3, dims);
    for (int i = 0; i < 3; i++)
        rows[i] = ingot_flatten(c, ingot_take(c, from[i], at, 0), 0, 2);
    return results(n, rows[0], rows[1], rows[2], ingot_from_dim(c, ingot_shape(kept, 0)),
                   d->most * top);
}

/* Each class by itself; the best of all of them. */
static ingot_tensor *regular(TfliteNode *n, const TfliteDetection *d, ingot_tensor *boxes,
                             ingot_tensor *scores)
{
    ingot_context *c = n->c;
    const int64_t each = d->per_class < d->most ? d->per_class : d->most;
    ingot_tensor *by_class = ingot_unsqueeze(c, ingot_transpose(c, scores, 0, 1), 0);
    ingot_tensor *kept = kept_boxes(n, d, boxes, by_class, each), *order[2];
    if (ingot_is_poison(kept))
        return kept;
    ingot_tensor *at = column(n, kept, 2), *class = column(n, kept, 1);
    ingot_tensor *score = ingot_gather(c, scores, (ingot_tensor *[]){at, class});
    ingot_dim *count = ingot_dim_min(c, ingot_shape(kept, 0), tfl_dim(n, d->most));
    ingot_topk(c, score, count, 0, true, order);
    if (ingot_is_poison(order[0]))
        return order[0];
    at = ingot_take(c, at, order[1], 0);
    return results(n, ingot_take(c, boxes, at, 0), ingot_take(c, class, order[1], 0), order[0],
                   ingot_from_dim(c, count), d->most);
}

static ingot_tensor *detections(TfliteNode *n)
{
    TfliteDetection d;
    int64_t all;
    if (!detection_options(n, &d))
        return ingot_poison(n->c);
    if (n->n_in != 3 || n->n_out < 2 || ingot_rank(X) != 3 || ingot_rank(Y) != 3 ||
        ingot_rank(n->in[2]) != 2 || !ingot_dim_is_const(ingot_shape(Y, 2), &all) ||
        (all != d.classes && all != d.classes + 1))
        return tfl_fault(n, "its boxes, scores and anchors do not fit together");
    ingot_tensor *scores = ingot_squeeze(n->c, real(n, 1), 0);
    scores = ingot_slice(n->c, scores, 1, tfl_dim(n, all - d.classes), tfl_dim(n, d.classes), 1);
    ingot_tensor *boxes = ingot_contiguous(n->c, corners(n, &d));
    if (ingot_is_poison(boxes) || ingot_is_poison(scores))
        return ingot_poison(n->c);
    return d.regular ? regular(n, &d, boxes, scores) : fast(n, &d, boxes, scores);
}

/* ---- those that are known ---------------------------------------------------------------------
 */

TfliteLower *tflite_known_custom(const ingot_tflite_op *op)
{
    return strcmp(op->custom, "TFLite_Detection_PostProcess") ? NULL : detections;
}
