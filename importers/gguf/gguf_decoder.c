/*
 * gguf_decoder.c - the graph of a language model: from ids of tokens to the logits of the next one.
 *
 *     past tokens are in the states (keys and values of each layer), n new ones come
 *     ids [n] -> x [n, width] -> layers -> the last row -> logits [vocabulary]
 *
 * Several sequences (slots) share products, each of which then reads its weights once for all rows:
 *
 *     ids_0 [2], ids_1 [0], ids_2 [1] -> x [3, width]     row 2 is that of slot 2
 *     attention of each slot alone, over its own states -> y [3, ..]
 *     the last row of each slot -> logits [3, vocabulary]
 *
 * On GPUs decode(), to which each slot gives at most one token, has one row of each, whether it has
 * one or not: kernels of rows whose number is known take less. What an idle slot's row comes to is
 * not kept, and no slot reads another's.
 *
 *     has_0 1, has_1 0, has_2 1 -> x [3, width]           keys of slots 0 and 2 are appended
 *
 * Facts and tensors that a family lacks are nodes that are not made.
 */
#include <math.h>
#include <stdio.h>

#include "gguf_model.h"

/* Rows of a slot among those of all. */
typedef struct {
    ingot_dim *from, *n, *queries; /* n of them are kept */
    ingot_tensor *angle[2][2];     /* of this run's positions [n, turned / 2]; in windows: [1] */
} DecoderRows;

typedef struct {
    GgufModel *m;
    ingot_context *c;
    const GgufSlot *slot;
    int slots;
    bool one_each;     /* a row of each slot, of which idle ones keep none */
    ingot_dim *n;      /* rows of all slots */
    DecoderRows *rows; /* of each slot */
} Decoder;

static ingot_tensor *optional(Decoder *d, const ingot_gguf_tensor *t)
{
    return t ? gguf_vector(d->m, t) : NULL;
}

static ingot_tensor *product(Decoder *d, ingot_tensor *x, const ingot_gguf_tensor *w,
                             const ingot_gguf_tensor *bias)
{
    return ingot_linear(d->c, x, gguf_weight(d->m, w), optional(d, bias));
}

static ingot_tensor *norm(Decoder *d, ingot_tensor *x, const ingot_gguf_tensor *w)
{
    if (!w || ingot_is_poison(x))
        return x;
    return ingot_rms_norm(d->c, x, ingot_rank(x) - 1, gguf_vector(d->m, w), d->m->facts.eps);
}

static ingot_tensor *times(Decoder *d, ingot_tensor *x, double k)
{
    return k == 1 ? x : ingot_mul_c(d->c, x, k);
}

/* cap tanh(x / cap) */
static ingot_tensor *capped(Decoder *d, ingot_tensor *x, double cap)
{
    return cap > 0 ? ingot_mul_c(d->c, ingot_tanh(d->c, ingot_mul_c(d->c, x, 1 / cap)), cap) : x;
}

/* Columns of a matrix. */
static ingot_tensor *columns(Decoder *d, ingot_tensor *x, int64_t at, int64_t count)
{
    return ingot_slice(d->c, x, 1, ingot_dim_const(d->c, at), ingot_dim_const(d->c, count), 1);
}

/* ---- attention ---------------------------------------------------------------------------------
 */

static bool has_window(const Facts *f, int64_t layer)
{
    int64_t yes = 0;
    if (!f->window)
        return false;
    if (f->pattern_list)
        return ingot_gguf_integer(f->pattern_list, (size_t)layer, &yes) && yes;
    return f->pattern < 2 || layer % f->pattern < f->pattern - 1;
}

static bool has_rope(const Facts *f, int64_t layer)
{
    return !f->rope.none && (!f->arch->rope_but_last || (layer + 1) % f->arch->rope_but_last);
}

/* [n, heads size] -> [1, heads, n, size] */
static ingot_tensor *in_heads(Decoder *d, ingot_tensor *x, int64_t heads)
{
    static const int perm[] = {0, 2, 1, 3};
    ingot_dim *dims[] = {ingot_dim_const(d->c, 1), d->n, ingot_dim_const(d->c, heads),
                         ingot_dim_const(d->c, d->m->facts.head)};
    return ingot_permute(d->c, ingot_reshape(d->c, x, 4, dims), perm);
}

/* Queries, keys and values of the new tokens, each [1, heads, n, size]. */
static void new_rows(Decoder *d, const LayerTensors *l, ingot_tensor *x, ingot_tensor *out[3])
{
    const Facts *f = &d->m->facts;
    const int64_t heads[3] = {f->heads, f->kv_heads, f->kv_heads};
    ingot_tensor *all = NULL;
    int64_t at = 0;
    if (l->of[ATTN_QKV])
        all = product(d, x, l->of[ATTN_QKV], l->of[ATTN_QKV_BIAS]);
    for (int i = 0; i < 3; i++) {
        out[i] = all ? columns(d, all, at, heads[i] * f->head)
                     : product(d, x, l->of[ATTN_Q + i], l->of[ATTN_Q_BIAS + i]);
        at += heads[i] * f->head;
        out[i] = in_heads(d, out[i], heads[i]);
    }
    out[0] = norm(d, out[0], l->of[ATTN_Q_NORM]);
    out[1] = norm(d, out[1], l->of[ATTN_K_NORM]);
}

/* The state of that name with rows behind it, which are there in the next run. */
static ingot_tensor *grown(Decoder *d, ingot_tensor **state, const char *what, int64_t layer,
                           int slot, ingot_tensor *rows)
{
    char name[48];
    if (ingot_is_poison(rows))
        return rows;
    ingot_dim *dims[] = {ingot_dim_const(d->c, 1), ingot_dim_const(d->c, d->m->facts.kv_heads),
                         d->slot[slot].past, ingot_shape(rows, 3)};
    if (d->slots > 1)
        snprintf(name, sizeof name, "%s_%lld_%d", what, (long long)layer, slot);
    else
        snprintf(name, sizeof name, "%s_%lld", what, (long long)layer);
    if (!*state)
        *state = ingot_growing_state(d->c, name, ingot_dtype_of(rows), 4, dims);
    ingot_tensor *part[2] = {*state, rows};
    ingot_tensor *next = ingot_concat(d->c, 2, part, 2);
    ingot_state_next(d->c, *state, next);
    return next;
}

/* Each row in blocks of 32: [1, heads, n, size / 32, 32], or [.., 1] of what a block has once. */
static ingot_tensor *in_blocks(Decoder *d, ingot_tensor *x, int64_t each)
{
    ingot_dim *dims[5];
    if (ingot_is_poison(x))
        return x;
    for (int i = 0; i < 3; i++)
        dims[i] = ingot_shape(x, i);
    dims[3] = ingot_dim_const(d->c, d->m->facts.head / GGUF_CACHE_BLOCK);
    dims[4] = ingot_dim_const(d->c, each);
    return ingot_reshape(d->c, x, 5, dims);
}

/* Rows of bytes and a scale for each block of them, as llama.cpp's q8_0 has them. */
static ingot_tensor *cached_in_bytes(Decoder *d, const char *const what[2], int64_t layer, int slot,
                                     ingot_tensor *rows, ingot_tensor **state)
{
    enum { LAST = 4, MOST = 127 };
    ingot_context *c = d->c;
    ingot_tensor *x = in_blocks(d, ingot_cast(c, rows, INGOT_F32), GGUF_CACHE_BLOCK);
    ingot_tensor *largest = ingot_reduce(c, INGOT_REDUCE_MAX, ingot_abs(c, x), 1u << LAST, true);
    ingot_tensor *scale = ingot_mul_c(c, largest, 1.0 / MOST);
    ingot_tensor *some = ingot_gt(c, scale, ingot_like(c, scale, 0));
    ingot_tensor *to = ingot_where(c, some, ingot_reciprocal(c, scale), ingot_like(c, scale, 0));
    ingot_tensor *byte = ingot_cast(c, ingot_round(c, ingot_mul(c, x, to)), INGOT_I8);
    byte = grown(d, &state[0], what[0], layer, slot, ingot_flatten(c, byte, 3, 5));
    scale = grown(d, &state[1], what[1], layer, slot,
                  ingot_flatten(c, ingot_cast(c, scale, INGOT_F16), 3, 5));
    x = ingot_mul(c, ingot_cast(c, in_blocks(d, byte, GGUF_CACHE_BLOCK), INGOT_F32),
                  ingot_cast(c, in_blocks(d, scale, 1), INGOT_F32));
    return ingot_flatten(c, x, 3, 5);
}

static ingot_tensor *cached(Decoder *d, bool values, int64_t layer, int slot, ingot_tensor *rows)
{
    static const char *const what[2][2] = {{"keys", "keys_scale"}, {"values", "values_scale"}};
    ingot_tensor **state =
        &d->m->cache[2 * (2 * (slot * d->m->facts.layers + layer) + (int64_t)values)];
    if (d->m->cache_type == INGOT_I8)
        return cached_in_bytes(d, what[values], layer, slot, rows, state);
    return grown(d, state, what[values][0], layer, slot, ingot_cast(d->c, rows, d->m->cache_type));
}

/* Elements 0, 2, 4 .. 1, 3, 5 .. of each head: pairs of neighbours are halves then. Of queries and
 * keys alike it changes no score, and what rope makes of the halves lies side by side: in lanes. */
static ingot_tensor *evens_first(Decoder *d, ingot_tensor *x)
{
    static const int perm[] = {0, 1, 2, 4, 3};
    if (ingot_is_poison(x))
        return x;
    ingot_dim *dims[5], *two = ingot_dim_const(d->c, 2);
    for (int i = 0; i < 3; i++)
        dims[i] = ingot_shape(x, i);
    dims[3] = ingot_dim_const(d->c, d->m->facts.head / 2);
    dims[4] = two;
    /* Products have an order of their own, but for those of one row, where each kernel less counts,
     * or of a row of each slot, or of many on GPUs whose groups have boxes brought to them: there
     * both neighbours are made of the two sums that one kernel has. */
    enum { MANY = 128 };
    int64_t rows;
    const bool one = ingot_dim_is_const(dims[2], &rows) && rows == 1,
               many = ingot_dim_hi(dims[2]) >= MANY && ingot_shared_keys(d->c);
    if (!ingot_one_product(d->c) || (!one && !many && !d->one_each))
        x = ingot_contiguous(d->c, x);
    x = ingot_permute(d->c, ingot_reshape(d->c, x, 5, dims), perm);
    return ingot_flatten(d->c, x, 3, 5);
}

/* What the product with that weight rounds its other operand to. */
static ingot_dtype rounded_for(const Decoder *d, const ingot_gguf_tensor *w)
{
    if (ingot_precision_here(d->c) != INGOT_PRECISION_NARROW)
        return INGOT_F32;
    return w->type == INGOT_GGUF_F16    ? INGOT_F16
           : w->type == INGOT_GGUF_BF16 ? INGOT_BF16
                                        : INGOT_F32;
}

/* Of one slot: its rows of queries, keys and values -> [n, heads size] */
static ingot_tensor *attention_of(Decoder *d, int64_t layer, int slot, ingot_tensor *const all[3])
{
    static const int perm[] = {0, 2, 1, 3};
    const Facts *f = &d->m->facts;
    const DecoderRows *r = &d->rows[slot];
    const bool window = has_window(f, layer);
    const bool apart = f->pairs == NEIGHBOURS && f->rope.turned != f->head;
    ingot_dim *past = d->slot[slot].past;
    ingot_tensor *row[3];
    for (int i = 0; i < 3; i++) {
        ingot_dim *n = i ? r->n : r->queries;
        row[i] = d->slots > 1 ? ingot_slice(d->c, all[i], 2, r->from, n, 1) : all[i];
        if (i < 2 && has_rope(f, layer))
            row[i] = ingot_rotary(d->c, row[i], r->angle[window][0], r->angle[window][1], apart);
    }
    ingot_tensor *k = cached(d, false, layer, slot, row[1]),
                 *v = cached(d, true, layer, slot, row[2]);
    ingot_tensor *s =
        capped(d, ingot_attention_scores(d->c, row[0], k, f->score_scale), f->score_cap);
    if (ingot_is_poison(s))
        return s;
    ingot_tensor *seen = ingot_band(d->c, r->queries, ingot_dim_add(d->c, past, r->n),
                                    ingot_from_dim(d->c, past), window ? f->window - 1 : -1, 0);
    s = ingot_where(d->c, seen, s, ingot_like(d->c, s, -INFINITY));
    ingot_tensor *y = ingot_attention_values(d->c, ingot_softmax_or_zero(d->c, s, 3), v);
    if (ingot_is_poison(y))
        return y;
    ingot_dim *dims[] = {r->queries, ingot_dim_const(d->c, f->heads * f->head)};
    return ingot_reshape(d->c, ingot_permute(d->c, y, perm), 2, dims);
}

static ingot_tensor *attention(Decoder *d, const LayerTensors *l, int64_t layer, ingot_tensor *x)
{
    const Facts *f = &d->m->facts;
    ingot_tensor *row[3], *y[GGUF_SLOTS];
    new_rows(d, l, x, row);
    for (int i = 0; i < 2 && has_rope(f, layer); i++)
        if (f->pairs == NEIGHBOURS && f->rope.turned == f->head)
            row[i] = evens_first(d, row[i]);
    for (int i = 0; i < d->slots; i++) {
        y[i] = attention_of(d, layer, i, row);
        if (d->one_each) /* each slot's kernel stores it so */
            y[i] = ingot_cast(d->c, y[i], rounded_for(d, l->of[ATTN_OUT]));
    }
    x = d->slots > 1 ? ingot_concat(d->c, d->slots, y, 0) : y[0];
    x = ingot_is_poison(x) ? x : ingot_cast(d->c, x, INGOT_F32);
    return product(d, x, l->of[ATTN_OUT], l->of[ATTN_OUT_BIAS]);
}

/* ---- layers ------------------------------------------------------------------------------------
 */

static ingot_tensor *ffn(Decoder *d, const LayerTensors *l, ingot_tensor *x)
{
    const Facts *f = &d->m->facts;
    ingot_tensor *up = product(d, x, l->of[FFN_UP], l->of[FFN_UP_BIAS]), *gate;
    if (f->arch->has & GATE_BEFORE_UP) {
        gate = columns(d, up, 0, f->ffn);
        up = columns(d, up, f->ffn, f->ffn);
    } else {
        gate = product(d, x, l->of[FFN_GATE], l->of[FFN_GATE_BIAS]);
    }
    gate = f->arch->gate == GELU ? ingot_gelu(d->c, gate, true) : ingot_swish(d->c, gate, 1);
    return product(d, ingot_mul(d->c, gate, up), l->of[FFN_DOWN], l->of[FFN_DOWN_BIAS]);
}

static ingot_tensor *one_layer(Decoder *d, int64_t layer, ingot_tensor *x)
{
    const LayerTensors *l = &d->m->layers[layer];
    const double scale = d->m->facts.residual_scale;
    ingot_tensor *y = attention(d, l, layer, norm(d, x, l->of[ATTN_NORM]));
    x = ingot_add(d->c, x, times(d, norm(d, y, l->of[ATTN_POST_NORM]), scale));
    y = ffn(d, l, norm(d, x, l->of[FFN_NORM]));
    return ingot_add(d->c, x, times(d, norm(d, y, l->of[FFN_POST_NORM]), scale));
}

/* The angles of positions past .. past + n - 1, or of that of the only row, if it is kept or not.
 */
static void read_angles(Decoder *d, const GgufSlot *slot, DecoderRows *r)
{
    const int64_t positions = ingot_dim_hi(ingot_dim_add(d->c, slot->past, r->queries));
    for (int w = 0; w < 2; w++) {
        if (!d->m->angle[w][0])
            gguf_rope_tables(d->m, positions, w, d->m->angle[w]);
        for (int i = 0; i < 2; i++)
            r->angle[w][i] = ingot_slice(d->c, d->m->angle[w][i], 0, slot->past, r->queries, 1);
        if (!d->m->facts.window || (d->m->facts.rope.window_base == d->m->facts.rope.base &&
                                    d->m->facts.rope.window_scaled))
            break;
    }
    if (!r->angle[1][0])
        for (int i = 0; i < 2; i++)
            r->angle[1][i] = r->angle[0][i];
}

/* Numbers [1] of each slot -> [slots], by one kernel. */
static ingot_tensor *one_of_each(Decoder *d, ingot_tensor *const *number)
{
    ingot_dim *dims[] = {ingot_dim_const(d->c, d->slots)};
    ingot_tensor *slot = ingot_iota(d->c, 1, dims, 0),
                 *all = ingot_expand(d->c, number[0], 1, dims);
    for (int i = 1; i < d->slots; i++)
        all = ingot_where(d->c, ingot_eq(d->c, slot, ingot_scalar_i(d->c, INGOT_I64, i)),
                          ingot_expand(d->c, number[i], 1, dims), all);
    return ingot_contiguous(d->c, all);
}

/* A row of each slot: the id 0, where one has none. */
static ingot_tensor *read_one_each(Decoder *d)
{
    ingot_tensor *ids[GGUF_SLOTS];
    ingot_dim *one = ingot_dim_const(d->c, 1), *none = ingot_dim_const(d->c, 0);
    for (int i = 0; i < d->slots; i++) {
        ingot_dim *n = ingot_shape(d->slot[i].ids, 0), *rest = ingot_dim_sub(d->c, one, n);
        d->rows[i] = (DecoderRows){.from = ingot_dim_const(d->c, i), .n = n, .queries = one};
        ids[i] = ingot_pad(d->c, d->slot[i].ids, &none, &rest);
        read_angles(d, &d->slot[i], &d->rows[i]);
    }
    d->n = ingot_dim_const(d->c, d->slots);
    return one_of_each(d, ids);
}

/* Where the rows of each slot begin; all ids, one behind the other. */
static ingot_tensor *read_slots(Decoder *d)
{
    ingot_tensor *ids[GGUF_SLOTS];
    if (d->one_each)
        return read_one_each(d);
    d->n = ingot_dim_const(d->c, 0);
    for (int i = 0; i < d->slots; i++) {
        ids[i] = d->slot[i].ids;
        ingot_dim *n = ingot_shape(ids[i], 0);
        d->rows[i] = (DecoderRows){.from = d->n, .n = n, .queries = n};
        d->n = ingot_dim_add(d->c, d->n, n);
        read_angles(d, &d->slot[i], &d->rows[i]);
    }
    return d->slots > 1 ? ingot_concat(d->c, d->slots, ids, 0) : ids[0];
}

/* The last row of each slot (of one without rows: any) [slots, width] */
static ingot_tensor *last_rows(Decoder *d, ingot_tensor *x)
{
    ingot_dim *one = ingot_dim_const(d->c, 1);
    ingot_tensor *last[GGUF_SLOTS];
    if (d->one_each)
        return x;
    for (int i = 0; i < d->slots; i++) {
        ingot_dim *end = ingot_dim_add(d->c, d->rows[i].from, d->rows[i].n);
        ingot_dim *at = ingot_dim_sub(d->c, ingot_dim_max(d->c, end, one), one);
        last[i] = ingot_slice(d->c, x, 0, at, one, 1);
    }
    return d->slots > 1 ? ingot_concat(d->c, d->slots, last, 0) : last[0];
}

ingot_tensor *gguf_decoder(GgufModel *m, const GgufSlot *slot, int slots)
{
    DecoderRows rows[GGUF_SLOTS];
    Decoder d = {.m = m, .c = m->c, .slot = slot, .slots = slots, .rows = rows};
    d.one_each =
        slots > 1 && ingot_one_product(m->c) && ingot_dim_hi(ingot_shape(slot[0].ids, 0)) == 1;
    const ingot_gguf_tensor *head = m->of[m->of[OUTPUT] ? OUTPUT : EMBEDDING];
    ingot_tensor *ids = read_slots(&d);
    ingot_tensor *x = ingot_take(m->c, gguf_weight(m, m->of[EMBEDDING]), ids, 0);
    x = times(&d, x, m->facts.embedding_scale);
    for (int64_t l = 0; l < m->facts.layers; l++)
        x = one_layer(&d, l, x);
    x = product(&d, norm(&d, last_rows(&d, x), m->of[OUTPUT_NORM]), head, m->of[OUTPUT_BIAS]);
    x = capped(&d, times(&d, x, 1 / m->facts.logit_scale), m->facts.logit_cap);
    const int64_t dims[] = {slots, m->facts.vocabulary};
    return ingot_reshape_c(m->c, x, slots > 1 ? 2 : 1, slots > 1 ? dims : dims + 1);
}
