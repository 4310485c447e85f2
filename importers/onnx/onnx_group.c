/*
 * onnx_group.c - sequences and optionals as inputs and outputs of the model.
 *
 * The emitted interface has an array of tensors for a sequence, of as many as there may be, with
 * the number of those that are there (ingot_input_group). Bounds come from the options by name: `x`
 * is the length of the sequence x, `x_0`, `x_1`... are the dims of its elements where the file does
 * not give them another name, `x[2]_0` is that of one element. A name bounds the dims of elements
 * and does not make them equal: elements may differ. A sequence of a known length is a list of
 * tensors; otherwise its elements become rows of one tensor (Packed).
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

enum { DEFAULT_LENGTH = 8 }; /* of a sequence of which nothing is said, at most */

/* The dims of an element as bounds: the greatest, and whether they are known. */
typedef struct {
    int rank;
    int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK];
} DimBounds;

static const char *numbered(Model *m, const char *format, const char *name, int i)
{
    size_t len = strlen(name) + 16;
    char *text = ingot_alloc(m->c, len);
    snprintf(text, len, format, name, i);
    return text;
}

static const char *presence_name(Model *m, const char *name)
{
    size_t len = strlen(name) + sizeof "_present";
    char *text = ingot_alloc(m->c, len);
    snprintf(text, len, "%s_present", name);
    return text;
}

/* Where the file declares no rank, there are as many dims as options for them. */
static bool bounds_of(Model *m, const ingot_model_io *io, DimBounds *b)
{
    b->rank = io->rank;
    if (io->rank < 0)
        for (b->rank = 0; b->rank < INGOT_MAX_RANK - 1 &&
                          dim_option(m, numbered(m, "%s_%d", io->name, b->rank));)
            b->rank++;
    if (io->rank >= INGOT_MAX_RANK) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "'%s': its elements have rank %d, at most %d is supported", io->name, io->rank,
                    INGOT_MAX_RANK - 1);
        return false;
    }
    for (int a = 0; a < b->rank; a++) {
        if (io->rank >= 0 && io->dims[a] >= 0) {
            b->lo[a] = b->hi[a] = io->dims[a];
            continue;
        }
        const ingot_model_dim *d = free_bounds(
            m, io->name, io->rank < 0 ? numbered(m, "%s_%d", io->name, a) : io->dim_names[a]);
        if (!d)
            return false;
        b->lo[a] = d->lo;
        b->hi[a] = d->hi;
    }
    return true;
}

/* One tensor of a group: [here, dims...] without the first if it is there in any case. */
static ingot_tensor *element_input(Model *m, const ingot_model_io *io, const char *name,
                                   const DimBounds *b, ingot_dim *here)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = 0;
    if (!dim_is(here, 1))
        dims[rank++] = here;
    for (int a = 0; a < b->rank; a++) {
        const char *own = numbered(m, "%s_%d", name, a);
        const ingot_model_dim *d = dim_option(m, own);
        int64_t lo = d && d->lo > b->lo[a] ? d->lo : b->lo[a],
                hi = d && d->hi < b->hi[a] ? d->hi : b->hi[a];
        dims[rank++] = lo >= hi ? ingot_dim_const(m->c, hi) : ingot_dim_var(m->c, own, lo, hi);
    }
    return ingot_input(m->c, name, io->dtype, rank, dims);
}

/* The tensor of an optional as it is if it is there, zeros if not. */
static ingot_tensor *if_here(ingot_context *c, ingot_tensor *x, ingot_dim *here)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    if (dim_is(here, 1))
        return x;
    for (int a = 0; a < ingot_rank(x); a++)
        lo[a] = hi[a] = ingot_dim_const(c, 0);
    hi[0] = ingot_dim_sub(c, ingot_dim_const(c, 1), here);
    return ingot_squeeze(c, ingot_pad(c, x, lo, hi), 0);
}

static Value *sequence_input(Model *m, const ingot_model_io *io, ingot_dim *present)
{
    DimBounds b;
    const ingot_model_dim otherwise = {.name = io->name, .hi = DEFAULT_LENGTH};
    const ingot_model_dim *given = dim_option(m, io->name);
    bool usual = !given && io->rank >= 0;
    given = usual ? &otherwise : free_bounds(m, io->name, io->name);
    if (!given || !bounds_of(m, io, &b))
        return NULL;
    if (usual)
        ingot_warning(m->c,
                      "the sequence '%s' has room for %d elements; --dim %s=lo..hi for others",
                      io->name, DEFAULT_LENGTH, io->name);
    int64_t lo =
        present && !dim_is(present, 1) ? 0 : given->lo; /* if it is absent there are no elements */
    ingot_dim *length =
        lo == given->hi ? ingot_dim_const(m->c, lo) : ingot_dim_var(m->c, io->name, lo, given->hi);
    if (given->hi > ONNX_MAX_LIST) {
        ingot_error(m->c, INGOT_UNSUPPORTED, "the sequence '%s' may have more than %d elements",
                    io->name, ONNX_MAX_LIST);
        return NULL;
    }
    int n = (int)ingot_dim_hi(length);
    ingot_tensor **x = ingot_alloc(m->c, (size_t)(n + 1) * sizeof *x);
    ingot_dim **here = ingot_alloc(m->c, (size_t)(n + 1) * sizeof *here);
    ingot_input_group(m->c, io->name, n, length, present);
    for (int i = 0; i < n; i++) {
        here[i] = ingot_group_here(m->c, i, length, present);
        x[i] = element_input(m, io, numbered(m, "%s[%d]", io->name, i), &b, here[i]);
        if (ingot_is_poison(x[i]))
            return NULL;
    }
    Value *v = value_sequence(m->c, n, io->dtype);
    if (ingot_dim_is_const(length, NULL)) {
        for (int i = 0; i < n; i++)
            v->item[i] = value_tensor(m->c, x[i]);
        return v;
    }
    return packed_input(m->c, v, x, here, length, b.rank, b.lo, b.hi);
}

Value *group_input(Model *m, const ingot_model_io *io)
{
    ingot_context *c = m->c;
    ingot_dim *present = NULL;
    if (io->dtype == INGOT_STRING) {
        ingot_error(c, INGOT_UNSUPPORTED, "the input '%s' holds strings, which is not supported",
                    io->name);
        return NULL;
    }
    if (io->kind == INGOT_MODEL_OPTIONAL) {
        const char *name = presence_name(m, io->name);
        const ingot_model_dim *given = dim_option(m, name);
        int64_t lo = given && given->lo > 0, hi = given && given->hi < 1 ? 0 : 1;
        present = lo == hi ? ingot_dim_const(c, lo) : ingot_dim_var(c, name, lo, hi);
    }
    Value *inner;
    if (io->sequence) {
        inner = sequence_input(m, io, present);
    } else {
        DimBounds b;
        if (!bounds_of(m, io, &b))
            return NULL;
        ingot_input_group(c, io->name, 1, NULL, present);
        inner = value_tensor(c, if_here(c, element_input(m, io, io->name, &b, present), present));
    }
    if (!inner || !present)
        return inner;
    Value *v = value_sequence(c, 1, io->dtype);
    int64_t known;
    v->kind = VALUE_OPTIONAL;
    v->item[0] = inner;
    if (ingot_dim_is_const(present, &known))
        v->n = (int)known;
    else
        v->present = present;
    return v;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static bool dtype_fits(Model *m, const ingot_model_io *io, ingot_dtype dtype)
{
    if (io->kind == INGOT_MODEL_OTHER || io->undeclared || io->dtype == dtype)
        return true;
    ingot_error(m->c, INGOT_INVALID, "the output '%s' holds %s, the file declares %s", io->name,
                ingot_dtype_name(dtype), ingot_dtype_name(io->dtype));
    return false;
}

/* The tensor x as the one of a group, with a first dim of 1 or 0 if it may be absent. */
static ingot_tensor *element_output(ingot_context *c, ingot_tensor *x, ingot_dim *here)
{
    ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    if (dim_is(here, 1))
        return x;
    x = ingot_unsqueeze(c, x, 0);
    for (int a = 0; a < ingot_rank(x); a++) {
        begin[a] = ingot_dim_const(c, 0);
        size[a] = a ? ingot_shape(x, a) : here;
    }
    return ingot_shrink(c, x, begin, size);
}

static bool sequence_output(Model *m, const ingot_model_io *io, const Value *v, ingot_dim *present)
{
    ingot_context *c = m->c;
    ingot_dim *length = v->packed ? v->packed->length : ingot_dim_const(c, v->n);
    if (!dtype_fits(m, io, v->n && !v->packed ? ingot_dtype_of(v->item[0]->tensor) : v->item_dtype))
        return false;
    ingot_output_group(c, io->name, v->n, length, present);
    for (int i = 0; i < v->n; i++) {
        ingot_dim *here = ingot_group_here(c, i, length, present);
        ingot_tensor *x = v->packed ? packed_element(c, v, i) : v->item[i]->tensor;
        x = element_output(c, x, here);
        if (ingot_is_poison(x))
            return false;
        ingot_output(c, numbered(m, "%s[%d]", io->name, i), x);
    }
    return true;
}

/* What stands for the tensor of an optional that is never there. */
static ingot_tensor *nothing(Model *m, const ingot_model_io *io)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0; a < io->rank; a++)
        dims[a] = ingot_dim_const(m->c, io->dims[a] > 0 ? io->dims[a] : 1);
    ingot_tensor *zero = ingot_cast(m->c, ingot_scalar_i(m->c, INGOT_I32, 0), io->dtype);
    return io->rank > 0 ? ingot_expand(m->c, zero, io->rank, dims) : zero;
}

bool group_output(Model *m, const ingot_model_io *io, const Value *v)
{
    ingot_context *c = m->c;
    ingot_dim *present = NULL;
    bool sequence = io->sequence;
    if (io->kind == INGOT_MODEL_OPTIONAL || v->kind == VALUE_OPTIONAL)
        present = v->kind != VALUE_OPTIONAL ? ingot_dim_const(c, 1)
                  : v->present              ? v->present
                                            : ingot_dim_const(c, v->n);
    const Value *inner = v->kind != VALUE_OPTIONAL ? v : v->n ? v->item[0] : NULL;
    if (inner && inner->kind == VALUE_OPTIONAL) {
        ingot_error(c, INGOT_UNSUPPORTED,
                    "the output '%s' is an optional of an optional, which is not supported",
                    io->name);
        return false;
    }
    sequence = inner ? inner->kind == VALUE_SEQUENCE : sequence;
    if (!inner && sequence)
        inner = value_sequence(c, 0, io->dtype);
    if (sequence)
        return sequence_output(m, io, inner, present);
    ingot_tensor *x = inner ? inner->tensor : nothing(m, io);
    if (ingot_is_poison(x) || !dtype_fits(m, io, ingot_dtype_of(x)))
        return false;
    ingot_output_group(c, io->name, 1, NULL, present);
    ingot_output(c, io->name, element_output(c, x, present));
    return true;
}
