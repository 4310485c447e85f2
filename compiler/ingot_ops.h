/* ingot_ops.h - the op library: every operator that is a composition of the primitives of
 * ingot.h.  Included by ingot.h; nothing here touches the compiler's internals, and anything a
 * user could write himself belongs here or in his own code.
 *
 * Shapes are written [N, C, H, W]; axis arguments may be negative where said so.  Results have the
 * first operand's dtype unless said otherwise; what does not fit together is an error (ingot.h). */
#if !defined(INGOT_H)
#include "ingot.h" /* includes this file in its place */
#elif !defined(INGOT_OPS_H)
#define INGOT_OPS_H

/* Activations, of floats; formulas as in the ONNX operator specification. */
/* max(x, 0), of any numbers */
ingot_tensor *ingot_relu(ingot_context *, ingot_tensor *x);
/* 1 / (1 + e^-x) */
ingot_tensor *ingot_sigmoid(ingot_context *, ingot_tensor *x);
/* log(1 + e^x) */
ingot_tensor *ingot_softplus(ingot_context *, ingot_tensor *x);
/* x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
ingot_tensor *ingot_gelu(ingot_context *, ingot_tensor *x, bool tanh_form);
/* min(max(x, lo), hi), of any numbers */
ingot_tensor *ingot_clamp(ingot_context *, ingot_tensor *x, double lo, double hi);
/* x < 0 ? alpha x : x; by a tensor, which broadcasts */
ingot_tensor *ingot_leaky_relu(ingot_context *, ingot_tensor *x, double alpha);
ingot_tensor *ingot_prelu(ingot_context *, ingot_tensor *x, ingot_tensor *slope);
/* x < 0 ? alpha (e^x - 1) : x; times gamma */
ingot_tensor *ingot_elu(ingot_context *, ingot_tensor *x, double alpha);
ingot_tensor *ingot_selu(ingot_context *, ingot_tensor *x, double alpha, double gamma);
/* max(0, x) + min(0, alpha (e^(x / alpha) - 1)) */
ingot_tensor *ingot_celu(ingot_context *, ingot_tensor *x, double alpha);
/* max(0, min(1, alpha x + beta)); x times that of 1/6 and 1/2 */
ingot_tensor *ingot_hard_sigmoid(ingot_context *, ingot_tensor *x, double alpha, double beta);
ingot_tensor *ingot_hard_swish(ingot_context *, ingot_tensor *x);
/* x sigmoid(beta x); beta 1: SiLU */
ingot_tensor *ingot_swish(ingot_context *, ingot_tensor *x, double beta);
/* x tanh(softplus x) */
ingot_tensor *ingot_mish(ingot_context *, ingot_tensor *x);
/* x / (1 + |x|) */
ingot_tensor *ingot_softsign(ingot_context *, ingot_tensor *x);
/* x > alpha ? x : 0 */
ingot_tensor *ingot_thresholded_relu(ingot_context *, ingot_tensor *x, double alpha);
/* x < -lambda ? x + bias : x > lambda ? x - bias : 0 (ONNX Shrink) */
ingot_tensor *ingot_soft_shrink(ingot_context *, ingot_tensor *x, double lambda, double bias);

/* Linear algebra.  matmul follows numpy.matmul (1-D operands, broadcast batches); accumulates in
 * the accumulate type of the dtype. */
ingot_tensor *ingot_matmul(ingot_context *, ingot_tensor *a, ingot_tensor *b);
/* y = x w^T + b with w [out, in], b [out] or NULL: the layout of safetensors checkpoints. */
ingot_tensor *ingot_linear(ingot_context *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b);
/* alpha a b + beta d of matrices, transposed where asked; d broadcasts and may be NULL. */
ingot_tensor *ingot_gemm(ingot_context *, ingot_tensor *a, ingot_tensor *b, ingot_tensor *d,
                         double alpha, double beta, bool trans_a, bool trans_b);
/* numpy.einsum: "bij,bjk->bik", "..." for broadcast axes, of n operands of one dtype. */
ingot_tensor *ingot_einsum(ingot_context *, const char *equation, int n,
                           ingot_tensor *const *operands);

/* Softmax family along one axis (may be negative); max-subtracted. */
ingot_tensor *ingot_softmax(ingot_context *, ingot_tensor *, int axis);
/* Where all of a row is -inf, zeros. */
ingot_tensor *ingot_softmax_or_zero(ingot_context *, ingot_tensor *, int axis);
ingot_tensor *ingot_log_softmax(ingot_context *, ingot_tensor *, int axis);
ingot_tensor *ingot_hardmax(ingot_context *, ingot_tensor *, int axis);
/* log sum e^x over a set of axes. */
ingot_tensor *ingot_logsumexp(ingot_context *, ingot_tensor *, unsigned axes, bool keepdims);

/* n-d convolution: x [N, C, d...], w [M, C/group, k...], b [M] or NULL; arrays have one entry per
 * spatial axis, or are NULL: strides and dilations of 1, no padding; pads_lo/pads_hi are zeros
 * added before and after.  [N, M, o...] with o = (pads_lo + d + pads_hi - dilation (k - 1) - 1) /
 * stride + 1, rounded down. */
ingot_tensor *ingot_conv(ingot_context *, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                         const int64_t *strides, const int64_t *dilations, const int64_t *pads_lo,
                         const int64_t *pads_hi, int64_t group);
/* Transposed: w [C, M/group, k...]; out_pads are added to the end of the result.  [N, M, o...] with
 * o = stride (d - 1) + dilation (k - 1) + 1 + out_pads - pads_lo - pads_hi. */
ingot_tensor *ingot_conv_transpose(ingot_context *, ingot_tensor *x, ingot_tensor *w,
                                   ingot_tensor *b, const int64_t *strides,
                                   const int64_t *dilations, const int64_t *pads_lo,
                                   const int64_t *pads_hi, const int64_t *out_pads, int64_t group);
/* Pooling over the axes 2..rank-1, for which arrays have an entry each; sizes, and NULL, as of a
 * convolution.  count_pads: the average is by the size of the window, else by what of it is in
 * x. */
ingot_tensor *ingot_max_pool(ingot_context *, ingot_tensor *x, const int64_t *kernel,
                             const int64_t *strides, const int64_t *dilations,
                             const int64_t *pads_lo, const int64_t *pads_hi);
ingot_tensor *ingot_avg_pool(ingot_context *, ingot_tensor *x, const int64_t *kernel,
                             const int64_t *strides, const int64_t *dilations,
                             const int64_t *pads_lo, const int64_t *pads_hi, bool count_pads);
/* The same with extra_hi more padding after pads_hi that is never counted (ceil mode); may be
 * NULL. */
ingot_tensor *ingot_avg_pool_ceil(ingot_context *, ingot_tensor *x, const int64_t *kernel,
                                  const int64_t *strides, const int64_t *dilations,
                                  const int64_t *pads_lo, const int64_t *pads_hi,
                                  const int64_t *extra_hi, bool count_pads);
/* Where max_pool found its values: flat i64 positions in x, in row-major order or with the spatial
 * axes in reverse order. */
ingot_tensor *ingot_max_pool_indices(ingot_context *, ingot_tensor *x, const int64_t *kernel,
                                     const int64_t *strides, const int64_t *dilations,
                                     const int64_t *pads_lo, const int64_t *pads_hi,
                                     bool column_major);
/* (sum |x|^p)^(1/p) over windows; over whole axes. */
ingot_tensor *ingot_lp_pool(ingot_context *, ingot_tensor *x, double p, const int64_t *kernel,
                            const int64_t *strides, const int64_t *dilations,
                            const int64_t *pads_lo, const int64_t *pads_hi);
ingot_tensor *ingot_lp_reduce(ingot_context *, ingot_tensor *x, double p, unsigned axes,
                              bool keepdims);

/* Normalisations.  Statistics in f32 or wider. scale / bias may be NULL; they broadcast to x's
 * shape. */
/* (x - mean) / sqrt(var + eps) * scale + bias, each [C], of axis 1. */
ingot_tensor *ingot_batch_norm(ingot_context *, ingot_tensor *x, ingot_tensor *scale,
                               ingot_tensor *bias, ingot_tensor *mean, ingot_tensor *var,
                               double eps);
/* The same with the mean and variance over the axes from `axis` on, which may be negative. */
ingot_tensor *ingot_layer_norm(ingot_context *, ingot_tensor *x, int axis, ingot_tensor *scale,
                               ingot_tensor *bias, double eps);
/* Also gives the mean and 1 / sqrt(var + eps), in the wide dtype, size 1 along the axes; may be
 * NULL. */
ingot_tensor *ingot_layer_norm_stats(ingot_context *, ingot_tensor *x, int axis,
                                     ingot_tensor *scale, ingot_tensor *bias, double eps,
                                     ingot_tensor **mean, ingot_tensor **inv_std);
/* x / sqrt(mean of x^2 + eps) * scale, over the axes from `axis` on. */
ingot_tensor *ingot_rms_norm(ingot_context *, ingot_tensor *x, int axis, ingot_tensor *scale,
                             double eps);
/* Statistics of each channel of each sample, of x [N, C, d...]; scale and bias are [C]. */
ingot_tensor *ingot_instance_norm(ingot_context *, ingot_tensor *x, ingot_tensor *scale,
                                  ingot_tensor *bias, double eps);
/* Statistics of C / groups channels each, C a multiple of groups; scale and bias are [C]. */
ingot_tensor *ingot_group_norm(ingot_context *, ingot_tensor *x, int64_t groups,
                               ingot_tensor *scale, ingot_tensor *bias, double eps);
/* (x - mean) / (sqrt(var) + 1e-9) (ONNX MeanVarianceNormalization) */
ingot_tensor *ingot_mean_variance_norm(ingot_context *, ingot_tensor *x, unsigned axes);
/* x / (sum |x|^p)^(1/p) along an axis; 0 where that is 0 (ONNX LpNormalization) */
ingot_tensor *ingot_lp_norm(ingot_context *, ingot_tensor *x, int axis, double p);
/* x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta (ONNX LRN) */
ingot_tensor *ingot_lrn(ingot_context *, ingot_tensor *x, int64_t size, double alpha, double beta,
                        double bias);

/* Positions (i64 [rank, n]) of the nonzero elements in row-major order; n is a run-time dim. */
ingot_tensor *ingot_nonzero(ingot_context *, ingot_tensor *);
/* The slices along axis (-1: the elements, [n]) whose entry of condition, a list of bool, is true;
 * n is a run-time dim. Beyond the list's end there are none. */
ingot_tensor *ingot_compress(ingot_context *, ingot_tensor *x, ingot_tensor *condition, int axis);
/* out: the different slices along axis (-1: elements), index of the first of each, for each of x's
 * its place among them, how often each comes. */
void ingot_unique(ingot_context *, ingot_tensor *, int axis, bool sorted, ingot_tensor *out[4]);
/* ONNX NonMaxSuppression: i64 [count, 3] of (batch, class, box); all but boxes and scores may be
 * NULL. */
ingot_tensor *ingot_nms(ingot_context *, ingot_tensor *boxes, ingot_tensor *scores,
                        ingot_tensor *most_per_class, ingot_tensor *iou, ingot_tensor *least_score,
                        bool centered);
ingot_tensor *ingot_det(ingot_context *, ingot_tensor *); /* [..., n, n] -> [...] */
/* The k greatest (or smallest) along an axis (may be negative), sorted; ties by index. out[0]
 * values, out[1] i64 indices. */
void ingot_topk(ingot_context *, ingot_tensor *, ingot_dim *k, int axis, bool largest,
                ingot_tensor *out[2]);

/* ---- random numbers (build/random.c) ---------------------------------------------------------
 * Others in each run; of *seed, or of config.seed if seed is NULL. */

/* In [0, 1); d: f16, bf16, f32 or f64. */
ingot_tensor *ingot_random_uniform(ingot_context *, ingot_dtype d, int rank, ingot_dim *const *dims,
                                   const uint64_t *seed);
/* Mean 0, variance 1. */
ingot_tensor *ingot_random_normal(ingot_context *, ingot_dtype d, int rank, ingot_dim *const *dims,
                                  const uint64_t *seed);
/* i64 [batch, samples] of x [batch, classes]: class k comes with a probability that is proportional
 * to e^x[k]. */
ingot_tensor *ingot_multinomial(ingot_context *, ingot_tensor *x, ingot_dim *samples,
                                const uint64_t *seed);
/* The generator itself, Threefry-2x32 of 20 rounds: two words (u32) of a key and a counter. */
void ingot_threefry(ingot_context *, ingot_tensor *const key[2], ingot_tensor *const counter[2],
                    ingot_tensor *out[2]);

/* ---- strings: tensors of pointers to bytes that end in a zero; `bytes`: room for the text of each
 * on average -- */

ingot_tensor *ingot_strings(ingot_context *, int rank, const int64_t *dims,
                            const char *const *v); /* a constant; copies them */
ingot_tensor *ingot_string_equal(ingot_context *, ingot_tensor *,
                                 ingot_tensor *); /* broadcasting */
ingot_tensor *ingot_string_concat(ingot_context *, ingot_tensor *, ingot_tensor *, int64_t bytes);
/* [n] or [1, n] without the stopwords (NULL: none), in lower (1) or upper (2) case;
 * runtime_min/lib/string_normalize.c */
ingot_tensor *ingot_string_normalize(ingot_context *, ingot_tensor *, ingot_tensor *stopwords,
                                     int to_case, bool case_sensitive, int64_t bytes);
/* out: the pieces [..., most], i64 how many of each; delimiter "": white space; most_splits < 0:
 * any number */
void ingot_string_split(ingot_context *, ingot_tensor *, const char *delimiter, int64_t most_splits,
                        int64_t bytes, ingot_tensor *out[2]);
/* Runs of n words of the first string, with at most `skips` left out between two of them; shorter:
 * those of fewer words, too. At most `most` runs; runtime_min/lib/skip_gram.c */
ingot_tensor *ingot_skip_gram(ingot_context *, ingot_tensor *, int64_t n, int64_t skips,
                              bool shorter, int64_t most, int64_t bytes);
/* Whether a program of runtime_min/lib/regex_match.c, of n numbers, matches the whole string. */
ingot_tensor *ingot_regex_match(ingot_context *, ingot_tensor *, int64_t n, const int32_t *program);
/* i64: where each element stands among keys, an ascending list of its type; -1: nowhere. */
ingot_tensor *ingot_lookup(ingot_context *, ingot_tensor *, ingot_tensor *keys);
/* i32: bits of a locality-sensitive hash of x [n, ..], by seeds f32 [hashes, bits] and weights f32
 * [n] (NULL: ones): [hashes], or dense: [hashes * bits]; runtime_min/lib/lsh_projection.c */
ingot_tensor *ingot_lsh_projection(ingot_context *, ingot_tensor *x, ingot_tensor *seeds,
                                   ingot_tensor *weights, bool dense);

/* ---- gathers, scatters, coordinates ---------------------------------------------------------- */

/* GatherElements, ScatterElements: index has x's rank; negative indices wrap. */
ingot_tensor *ingot_gather_elements(ingot_context *, ingot_tensor *x, ingot_tensor *index,
                                    int axis);
ingot_tensor *ingot_scatter_elements(ingot_context *, ingot_update_op, ingot_tensor *x,
                                     ingot_tensor *index, ingot_tensor *v, int axis);
/* GatherND, ScatterND: index [..., k] holds tuples that address k axes of x after `batch` ones. */
ingot_tensor *ingot_gather_nd(ingot_context *, ingot_tensor *x, ingot_tensor *index, int batch);
ingot_tensor *ingot_scatter_nd(ingot_context *, ingot_update_op, ingot_tensor *x,
                               ingot_tensor *index, ingot_tensor *v);
/* A new axis of size depth with `on` at the index and `off` elsewhere (scalars of one dtype). */
ingot_tensor *ingot_one_hot(ingot_context *, ingot_tensor *index, ingot_dim *depth, int axis,
                            ingot_tensor *off, ingot_tensor *on);
/* The triangle of the last two axes on and above (or below) the k-th diagonal; zeros elsewhere. */
ingot_tensor *ingot_trilu(ingot_context *, ingot_tensor *x, ingot_dim *k, bool upper);
/* start + i step for i in 0..n-1: [n], in the dtype of both. */
ingot_tensor *ingot_range(ingot_context *, ingot_dim *n, ingot_tensor *start, ingot_tensor *step);
/* Running sums, products, maxima ... (ingot_scan), computed in f32 for the narrow floats.
 * exclusive: without the element itself (sums and products); reverse: from the end. */
ingot_tensor *ingot_cumulate(ingot_context *, ingot_reduce_op, ingot_tensor *x, int axis,
                             bool exclusive, bool reverse);
ingot_tensor *ingot_cumsum(ingot_context *, ingot_tensor *x, int axis, bool exclusive,
                           bool reverse);
/* [N, C, H, W]: blocks of channels to blocks of pixels and back; crd: channel-major order. */
ingot_tensor *ingot_depth_to_space(ingot_context *, ingot_tensor *x, int64_t block, bool crd);
ingot_tensor *ingot_space_to_depth(ingot_context *, ingot_tensor *x, int64_t block);

/* ---- attention, recurrences, resizing -------------------------------------------------------- */

/* softmax(q k^T scale + mask) v; q [batch, heads, s, size], k and v [batch, kv_heads, t, size],
 * heads a multiple of kv_heads.  mask (or NULL) broadcasts to [batch, heads, s, t]: bool (true:
 * seen) or numbers to add.  scale 0: 1 / sqrt(size).  causal: query i sees keys up to i + t - s.  A
 * query that sees nothing gives zeros. */
ingot_tensor *ingot_attention(ingot_context *, ingot_tensor *q, ingot_tensor *k, ingot_tensor *v,
                              ingot_tensor *mask, double scale, bool causal);
/* Its parts, for what comes between: q k^T scale, [batch, heads, s, t] in f32 at least; p v, in p's
 * dtype. */
ingot_tensor *ingot_attention_scores(ingot_context *, ingot_tensor *q, ingot_tensor *k,
                                     double scale);
ingot_tensor *ingot_attention_values(ingot_context *, ingot_tensor *p, ingot_tensor *v);
/* bool [s, t]: query i, at place i + first, sees `left` keys before its place and `right` behind
 * it; -1 (of one of them): all.  first is i64, a scalar or [batch, 1, 1, 1], which gives [batch, 1,
 * s, t]. */
ingot_tensor *ingot_band(ingot_context *, ingot_dim *s, ingot_dim *t, ingot_tensor *first,
                         int64_t left, int64_t right);
/* Rotary embedding of the last axis by cos, sin [..., R/2], broadcast; pairs (i, i + R/2) or (2i,
 * 2i + 1). */
ingot_tensor *ingot_rotary(ingot_context *, ingot_tensor *x, ingot_tensor *cos, ingot_tensor *sin,
                           bool interleaved);
/* A function of x and two numbers; ingot_hard_sigmoid() is one. */
typedef struct {
    ingot_tensor *(*apply)(ingot_context *, ingot_tensor *x, double alpha, double beta);
    double alpha, beta;
} ingot_activation;
/* A recurrent layer; what is left out is none, zeros, or as usual. */
typedef struct {
    ingot_tensor *w, *r;        /* [gates * hidden, input], [gates * hidden, hidden] */
    ingot_tensor *b, *rb;       /* biases of the two products, [gates * hidden] */
    ingot_tensor *state, *cell; /* before the first step, [batch, hidden]; cell: LSTM */
    ingot_tensor *lengths; /* [batch]: past its length a sequence keeps its state and gives zeros */
    /* the gates' letters in the order of the rows: "ifoc" (or "ifgo", "iofc" ...); GRU "zrh", or
     * "rzn" */
    const char *order;
    bool reverse;   /* from the last step to the first */
    bool last_only; /* all states are not wanted: out[0] is NULL */
    double clip;    /* gates are sums between -clip and clip, then a function; 0: no clip */
    ingot_activation
        act[3];       /* of gates, candidate, and the LSTM's cell: sigmoid, tanh, tanh; RNN: tanh */
    bool reset_after; /* GRU: reset * (h r^T + rb), as PyTorch does (ONNX linear_before_reset); else
                                   (reset * h) r^T + rb */
    bool input_forget;      /* LSTM: f = 1 - i */
    ingot_tensor *peephole; /* LSTM: of i, o and f, [3 * hidden] */
    /* LSTM: x w^T, or h r^T if recurrent, unless it is ingot_linear()'s, for weights that are kept
     * in another form: w and r may then have any dtype. */
    ingot_tensor *(*product)(ingot_context *, void *user, ingot_tensor *x, bool recurrent);
    void *user;
} ingot_recurrence;
/* x [length, batch, input]; out: all states [length, batch, hidden], the last state, and (LSTM) the
 * last cell. */
void ingot_lstm(ingot_context *, ingot_tensor *x, const ingot_recurrence *, ingot_tensor *out[3]);
void ingot_gru(ingot_context *, ingot_tensor *x, const ingot_recurrence *, ingot_tensor *out[2]);
void ingot_rnn(ingot_context *, ingot_tensor *x, const ingot_recurrence *, ingot_tensor *out[2]);

/* Interpolation along one axis; the names are those of ONNX Resize. */
typedef enum { INGOT_RESIZE_NEAREST, INGOT_RESIZE_LINEAR, INGOT_RESIZE_CUBIC } ingot_resize_mode;
typedef enum {
    INGOT_COORDS_HALF_PIXEL,
    INGOT_COORDS_HALF_PIXEL_SYMMETRIC,
    INGOT_COORDS_PYTORCH_HALF_PIXEL,
    INGOT_COORDS_ALIGN_CORNERS,
    INGOT_COORDS_ASYMMETRIC,
    INGOT_COORDS_TF_HALF_PIXEL_FOR_NN,
    /* the part of the axis from roi_start to roi_end, where 0 to 1 is all of it */
    INGOT_COORDS_TF_CROP_AND_RESIZE
} ingot_resize_coords;
typedef enum {
    INGOT_NEAREST_PREFER_FLOOR,
    INGOT_NEAREST_PREFER_CEIL,
    INGOT_NEAREST_FLOOR,
    INGOT_NEAREST_CEIL
} ingot_resize_nearest;
typedef struct {
    int64_t size; /* new number of elements */
    double scale; /* 0: size / old size */
    ingot_resize_mode mode;
    ingot_resize_coords coords;
    ingot_resize_nearest nearest;
    double cubic_a;       /* ONNX and PyTorch: -0.75; Catmull-Rom: -0.5 */
    bool antialias;       /* widen the filter when shrinking */
    bool exclude_outside; /* taps outside weigh nothing; else the edge is repeated */
    double roi_start, roi_end;
} ingot_resize_axis;
/* Where element o of the result lies among `in` elements; NAN outside of them in a crop, where the
 * value that ingot_resize() gives means nothing. */
double ingot_resize_source(const ingot_resize_axis *, int64_t in, int64_t o);
/* Whether it repeats every element `scale` times, whatever their number: nearest neighbours at a
 * whole ratio. */
bool ingot_resize_repeats(const ingot_resize_axis *);
/* The axis has a size that is known when compiling, unless ingot_resize_repeats(): then `size` is
 * not looked at. */
ingot_tensor *ingot_resize(ingot_context *, ingot_tensor *x, int axis, const ingot_resize_axis *);

/* ---- Fourier transforms ---------------------------------------------------------------------- */

/* Complex numbers; im NULL: all are real. */
typedef struct {
    ingot_tensor *re, *im;
} ingot_complex;

typedef struct {
    int64_t n;            /* the length: that of x's last axis */
    ingot_tensor *length; /* NULL; if only the run knows it: a scalar i64, and n is its bound */
    bool inverse;         /* exponents are positive (nothing is divided by n) */
} ingot_dft_plan;

/* Whether a transform of this length is supported: its tables have at most 2^22 elements. */
bool ingot_dft_fits(int64_t n);
/* The first `bins` elements of the transform along the last axis:
 * y[k] = sum of x[j] exp(-2 pi i j k / n) over j. */
ingot_complex ingot_dft(ingot_context *, ingot_dft_plan, ingot_complex x, int64_t bins);
/* The last axis cut or padded with zeros to this size. */
ingot_tensor *ingot_resize_last(ingot_context *, ingot_tensor *x, int64_t size);
/* A constant of at most 2^22 elements is computed now; anything else is given back as it is. */
ingot_tensor *ingot_freeze(ingot_context *, ingot_tensor *);

#endif
