/* cli_merge.c - `ingot merge MODEL STATES -o FILE`: what training has made of weights goes into the
 * model's file, or into a file of weights.
 *
 *     NAME                                      takes the place of the weight NAME
 *                                               as integers where the model has such
 *     NAME.lora_A, .lora_B, .lora_alpha         w + (alpha / r) B A, added in f64 and rounded once
 *
 * What else is in a file of states (moments, counters) is the optimizer's. */
#include <errno.h>
#include <string.h>

#include "cli.h"
#include "igrt_bits.h"
#include "json.h"
#include "safetensors.h"

typedef struct {
    const char *name, *type;
    HostTensor shape; /* without its data */
    const void *data;
} MergedWeight;

typedef struct {
    Arena *a;
    const char *path; /* of the states */
    ingot_safetensors *states;
    MergedWeight *weight; /* all that the model has */
    int n, taken;         /* of these, from the states */
    bool failed;
} Merge;

static const struct {
    ingot_safetensors_dtype type;
    ingot_dtype dtype;
} types_of_file[] = {{INGOT_ST_F16, INGOT_F16},
                     {INGOT_ST_BF16, INGOT_BF16},
                     {INGOT_ST_F32, INGOT_F32},
                     {INGOT_ST_F64, INGOT_F64}};

static const char *file_type(ingot_dtype d)
{
    for (size_t i = 0; i < sizeof types_of_file / sizeof *types_of_file; i++)
        if (types_of_file[i].dtype == d)
            return ingot_safetensors_dtype_name(types_of_file[i].type);
    BUG("a weight of %s", ingot_dtype_name(d));
}

static double number_at(const void *data, ingot_dtype d, size_t i)
{
    const unsigned char *at = (const unsigned char *)data + i * ingot_dtype_bytes(d);
    union {
        double d;
        float f;
        uint16_t h;
    } u;
    memcpy(&u, at, ingot_dtype_bytes(d));
    return d == INGOT_F64   ? u.d
           : d == INGOT_F32 ? (double)u.f
           : d == INGOT_F16 ? (double)igrt_f16_to_f32(u.h)
                            : (double)igrt_bf16_to_f32(u.h);
}

static void number_put(void *data, ingot_dtype d, size_t i, double x)
{
    union {
        double d;
        float f;
        uint16_t h;
    } u;
    if (d == INGOT_F64)
        u.d = x;
    else if (d == INGOT_F32)
        u.f = (float)x;
    else
        u.h = d == INGOT_F16 ? igrt_f64_to_f16(x) : igrt_f64_to_bf16(x);
    memcpy((unsigned char *)data + i * ingot_dtype_bytes(d), &u, ingot_dtype_bytes(d));
}

static const void *merge_fault(Merge *m, const char *name, const char *why)
{
    m->failed = true;
    (void)complain(INGOT_INVALID, "%s: '%.200s' %s", m->path, name, why);
    return NULL;
}

static const ingot_safetensors_tensor *state_of(const Merge *m, const char *name, const char *part)
{
    return ingot_safetensors_find(m->states, arena_printf(m->a, "%s%s", name, part));
}

static bool has_shape(const ingot_safetensors_tensor *t, int rank, const int64_t *dims)
{
    bool same = t->dtype == INGOT_ST_F32 && t->rank == (size_t)rank;
    for (int a = 0; a < rank && same; a++)
        same = t->shape[a] == (uint64_t)dims[a];
    return same;
}

/* w [out, in..], or [in, out] where the products that read it sum over its first axis. */
static const void *with_adapter(Merge *m, const ingot_model_weight *w, const HostTensor *data,
                                const ingot_safetensors_tensor *a)
{
    const ingot_safetensors_tensor *b = state_of(m, w->name, ".lora_B"),
                                   *alpha = state_of(m, w->name, ".lora_alpha");
    const bool columns = w->form == INGOT_WEIGHT_COLUMNS;
    if (!b || !alpha || !a->rank)
        return merge_fault(m, a->name, "has no .lora_B or .lora_alpha with it");
    int64_t dims[INGOT_MAX_RANK];
    memcpy(dims, data->dims, sizeof dims);
    const int64_t out = dims[columns], rank = (int64_t)a->shape[0];
    if (columns)
        dims[1] = dims[0];
    dims[0] = rank;
    if (w->form == INGOT_WEIGHT_OTHER || !has_shape(a, data->rank, dims) ||
        !has_shape(b, 2, (int64_t[]){out, rank}) || !has_shape(alpha, 0, NULL))
        return merge_fault(m, a->name, "is not for a weight of the model's type and size");
    const int64_t in = out ? (int64_t)data->count / out : 0;
    const double scale = rank ? number_at(alpha->data, INGOT_F32, 0) / (double)rank : 0;
    void *sum = arena_alloc(m->a, data->bytes + 1);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const size_t at = (size_t)(columns ? i * out + o : o * in + i);
            double x = 0;
            for (int64_t k = 0; k < rank; k++)
                x += number_at(b->data, INGOT_F32, (size_t)(o * rank + k)) *
                     number_at(a->data, INGOT_F32, (size_t)(k * in + i));
            number_put(sum, data->dtype, at, number_at(data->data, data->dtype, at) + scale * x);
        }
    return sum;
}

static const void *as_trained(Merge *m, const ingot_model_weight *w, const HostTensor *data)
{
    const ingot_safetensors_tensor *t = state_of(m, w->name, ""),
                                   *a = state_of(m, w->name, ".lora_A");
    if (t) {
        bool same = !strcmp(ingot_safetensors_dtype_name(t->dtype), file_type(data->dtype)) &&
                    t->rank == (size_t)data->rank && t->bytes == data->bytes;
        for (int i = 0; i < data->rank && same; i++)
            same = t->shape[i] == (uint64_t)data->dims[i];
        return same ? t->data : merge_fault(m, w->name, "has another type or size in the model");
    }
    return a ? with_adapter(m, w, data, a) : NULL;
}

static const void *merged_weight(void *user, const ingot_model_weight *w, const HostTensor *data)
{
    Merge *m = user;
    const void *bytes = m->failed ? NULL : as_trained(m, w, data);
    if (w->integers && !bytes)
        return NULL;
    m->taken += bytes != NULL;
    const MergedWeight one = {w->name, file_type(data->dtype), *data, bytes ? bytes : data->data};
    MergedWeight *more = NULL;
    if ((m->n & (m->n - 1)) == 0) {
        more = vec_grow(m->a, m->weight, (size_t)m->n, sizeof *more);
        m->weight = more;
    }
    memcpy(&m->weight[m->n++], &one, sizeof one);
    return bytes;
}

/* ---- the file ------------------------------------------------------------------------ */

static bool put_bytes(void *user, const void *bytes, size_t n)
{
    return output_put(user, bytes, n);
}

/* safetensors.h has the format. */
static void put_safetensors(const Merge *m, OutFile *f)
{
    StrBuf head = {0};
    uint64_t at = 0;
    for (int i = 0; i < m->n; i++) {
        const MergedWeight *w = &m->weight[i];
        sb_puts(&head, i ? "," : "{");
        json_string(&head, w->name);
        sb_printf(&head, ":{\"dtype\":\"%s\",\"shape\":[", w->type);
        for (int a = 0; a < w->shape.rank; a++)
            sb_printf(&head, "%s%lld", a ? "," : "", (long long)w->shape.dims[a]);
        sb_printf(&head, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                  (unsigned long long)(at + w->shape.bytes));
        at += w->shape.bytes;
    }
    sb_puts(&head, m->n ? "}" : "{}");
    while (head.len % sizeof at)
        sb_puts(&head, " ");
    const uint64_t length = head.len;
    (void)output_put(f, &length, sizeof length);
    (void)output_put(f, head.data, head.len);
    for (int i = 0; i < m->n; i++)
        (void)output_put(f, m->weight[i].data, m->weight[i].shape.bytes);
    sb_free(&head);
}

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && !strcmp(path + n - k, ending);
}

static ingot_status write_merged(Merge *m, ingot_model *model, const char *path)
{
    OutFile f;
    const bool weights = ends_with(path, ".safetensors");
    if (!weights && !ends_with(path, ".onnx"))
        return complain(INGOT_USAGE,
                        "merge: -o %s: choose a name that ends in .onnx or .safetensors", path);
    if (!output_begin(&f, m->a, path))
        return complain(INGOT_IO, "%s: cannot be written: %s", path, strerror(errno));
    const bool good = ingot_model_save(model, merged_weight, m, weights ? NULL : put_bytes, &f);
    const ingot_status status = ingot_context_status(ingot_model_context(model));
    if (m->failed || !good || !m->taken) {
        output_drop(&f);
        if (m->failed || status != INGOT_OK)
            return status != INGOT_OK ? status : INGOT_INVALID;
        return good ? complain(INGOT_INVALID, "%s: none of its tensors is a weight of the model",
                               m->path)
                    : complain(INGOT_IO, "%s: cannot be written: %s", path, strerror(f.error));
    }
    if (weights)
        put_safetensors(m, &f);
    if (!output_end(&f))
        return complain(INGOT_IO, "%s: cannot be written: %s", path, strerror(errno));
    note("%s: %d of %d weights are those of %s", path, m->taken, m->n, m->path);
    return INGOT_OK;
}

ingot_status command_merge(Options *o)
{
    char why[512];
    if (o->nmore != 1 || !o->output)
        return complain(INGOT_USAGE, "usage: ingot merge MODEL STATES -o FILE");
    Merge m = {.a = o->a, .path = o->more[0]};
    m.states = ingot_safetensors_open(m.path, why, sizeof why);
    if (!m.states)
        return complain(INGOT_INVALID, "%s", why);
    LoadedModel model;
    ingot_status status = model_open(&model, o, false);
    if (status == INGOT_OK) {
        status = write_merged(&m, model.file, o->output);
        model_close(&model);
    }
    ingot_safetensors_close(m.states);
    return status;
}
