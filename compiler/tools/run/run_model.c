/* run_model.c - from a model file and the command line's --dim and --bind to a graph. */
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "targets.h"

/* Bundles of several functions are for one device, of C, CUDA or OpenCL, or for several processors,
 * so far. */
static bool takes_functions(Arena *a, const char *target)
{
    TargetName *list;
    const int n = target ? target_list(a, target, &list) : 0;
    for (int i = 0; i < n && n > 1; i++)
        if (list[i].gpu)
            return false;
    if (!target || n > 1)
        return true;
    const Target t = machine_target(a, target);
    return t.language && !t.language->binds && target_ndevice(&t) == 1;
}

/* Of several targets the first is a GPU's. */
static bool is_for_gpu(Arena *a, const char *target)
{
    TargetName *list;
    Target t = {0};
    ingot_status status;
    return target_list(a, target, &list) > 0 &&
           (list[0].gpu || (!target_make(&t, a, list[0].target, &status) && t.gpu)); /* a file */
}

/* Is the first of the targets a GPU with that unit? */
static bool gpu_has(Arena *a, const char *target, int unit)
{
    TargetName *list;
    Target t = {0};
    ingot_status status;
    return target && target_list(a, target, &list) > 0 && list[0].gpu &&
           !target_make(&t, a, list[0].target, &status) && t.machine.units >> unit & 1;
}

/* Is the first of the targets a GPU whose groups meet in clusters, and multiply f16? */
static bool groups_meet(Arena *a, const char *target)
{
    TargetName *list;
    Target t = {0};
    ingot_status status;
    return gpu_has(a, target, TC_MMA_F16) && target_list(a, target, &list) > 0 &&
           !target_make(&t, a, list[0].target, &status) && t.machine.cluster > 1;
}

/* The fewest products of bf16 that one of the targets' processors computes in the time of one of
 * f32; GPUs are not asked. */
static double bf16_products(Arena *a, const char *target)
{
    TargetName *list;
    Target t = {0};
    ingot_status status;
    const int n = target_list(a, target ? target : "c", &list);
    double least = 0;
    for (int i = 0; i < n; i++)
        if (!target_make(&t, a, list[i].target, &status) && !t.gpu) {
            const double products = tc_bf16_products(&t.machine);
            least = least > 0 && least < products ? least : products;
        }
    return least;
}

/* From how many multiplications on images with few channels are stored once more: a kernel has to
 * take longer than the one that stores them (H100, 3.8e9: 0.151 ms, and 0.114 with it). */
static int64_t stored_rows(Arena *a, const char *target)
{
    enum { MANY = 1 << 29 };
    return gpu_has(a, target, TC_WGMMA64_F16) ? MANY : 0;
}

/* Where the command line says nothing, a file of weights in blocks is multiplied by bytes on a
 * machine that has dots of them, and by f16 on a GPU whose items multiply fragments together. */
static void set_usual_precision(const LoadedModel *m, const Options *o)
{
    if (!m->file || !o->compile.target)
        return;
    const ingot_precision usual = ingot_model_precision(m->file);
    if (is_for_gpu(o->a, o->compile.target)) {
        if (usual != INGOT_PRECISION_Q8 || !gpu_has(o->a, o->compile.target, TC_MMA_F16))
            return;
        if (!o->precision_said)
            ingot_set_precision(m->c, INGOT_PRECISION_NARROW);
        ingot_set_beside_f8(m->c, INGOT_PRECISION_NARROW);
        return;
    }
    if (o->precision_said)
        return;
    const Target t = machine_target(o->a, o->compile.target);
    if (t.machine.lanes && t.machine.dot)
        ingot_set_precision(m->c, usual);
}

static ingot_status open_told(LoadedModel *m, const Options *o, void *quiet)
{
    m->functions = false;
    m->c = ingot_context_new(sink, quiet);
    ingot_keep_subnormals(m->c, o->keep_subnormals);
    ingot_set_precision(m->c, o->precision);
    for (int i = 0; i < o->nprecision; i++)
        ingot_set_precision_of(m->c, o->precisions[i].nodes, o->precisions[i].precision);
    ingot_set_one_product(m->c, o->compile.target && is_for_gpu(o->a, o->compile.target));
    if (!ingot_one_product(m->c))
        ingot_set_bf16_products(m->c, bf16_products(o->a, o->compile.target));
    ingot_set_rounded_results(m->c, o->train && ingot_one_product(m->c));
    ingot_set_shared_keys(m->c, groups_meet(o->a, o->compile.target));
    ingot_set_stored_rows(m->c, stored_rows(o->a, o->compile.target));
    m->file = ingot_model_open(m->c, o->model);
    set_usual_precision(m, o);
    ingot_model_op *ops = ingot_alloc(m->c, ((size_t)o->nop + 1) * sizeof *ops);
    for (int i = 0; i < o->nop; i++)
        ops[i] = (ingot_model_op){o->op[i].name,
                                  ingot_custom_open(m->c, o->op[i].file, o->op[i].function)};
    bool good = m->file && (!o->entry || ingot_model_set_entry(m->file, o->entry)) &&
                ingot_model_set_ops(m->file, ops, o->nop) &&
                ingot_model_set_states(m->file, o->state, o->nstate);
    if (good && o->slots)
        ingot_model_set_slots(m->file, o->slots);
    return good ? INGOT_OK : ingot_context_status(m->c);
}

ingot_status model_open(LoadedModel *m, const Options *o, bool quiet)
{
    return open_told(m, o, quiet ? (void *)m : o->quiet ? sink_errors : NULL);
}

ingot_status model_open_again(LoadedModel *m, const Options *o)
{
    return open_told(m, o, sink_errors);
}

void model_close(LoadedModel *m)
{
    ingot_context_free(m->c);
    ingot_model_close(m->file);
}

static int find_input(const LoadedModel *m, const char *name)
{
    for (int i = 0; i < ingot_model_input_count(m->file); i++)
        if (!strcmp(ingot_model_input(m->file, i)->name, name))
            return i;
    return -1;
}

/* Whether --dim may name a size of this input: a free dim, the length of a sequence, the presence
 * of an optional. */
static bool input_has_dim(const ingot_model_io *io, const char *name)
{
    size_t len = strlen(io->name);
    bool group = io->kind == INGOT_MODEL_SEQUENCE || io->kind == INGOT_MODEL_OPTIONAL;
    for (int a = 0; a < io->rank; a++)
        if (io->dims[a] < 0 && !strcmp(io->dim_names[a], name))
            return true;
    if (!group || strncmp(io->name, name, len))
        return false;
    if (!name[len])
        return io->sequence;
    if (!strcmp(name + len, "_present"))
        return io->kind == INGOT_MODEL_OPTIONAL;
    const char *end = name + len; /* x_0, or x[2]_0 */
    bool element = *end == '[' && io->sequence;
    if (element) {
        end += 1 + strspn(end + 1, "0123456789");
        end += *end == ']';
    }
    return (io->rank < 0 || element) && *end == '_' && end[1] >= '0' &&
           end[1] < '0' + INGOT_MAX_RANK && !end[2];
}

static bool dim_exists(const LoadedModel *m, const char *name)
{
    for (int i = 0; i < ingot_model_input_count(m->file); i++)
        if (input_has_dim(ingot_model_input(m->file, i), name))
            return true;
    return false;
}

/* "1,2,3" as elements of dtype; their number, or -1. */
static int64_t parse_elements(const char *text, ingot_dtype d, uint8_t *out, int64_t room)
{
    int64_t n = 0;
    int width = dtype_info[d].bytes;
    while (n < room) {
        char *end;
        if (d == INGOT_F32 || d == INGOT_F64) {
            double v = strtod(text, &end);
            float f = (float)v;
            memcpy(out + n * width, d == INGOT_F32 ? (void *)&f : (void *)&v, (size_t)width);
        } else if (dtype_is_int((int)d) || d == INGOT_BOOL) {
            long long v = strtoll(text, &end, 10);
            memcpy(out + n * width, &v, (size_t)width); /* little-endian */
        } else {
            return -1;
        }
        if (end == text)
            return -1;
        n++;
        if (!*end)
            return n;
        if (*end != ',')
            return -1;
        text = end + 1;
    }
    return -1;
}

void input_print(StrBuf *sb, const ingot_model_io *io)
{
    sb_printf(sb, "input '%s' is %s%s", io->name, dtype_info[io->dtype].name,
              io->rank < 0 ? "" : "[");
    for (int a = 0; a < io->rank; a++) {
        sb_puts(sb, a ? "," : "");
        if (io->dims[a] < 0)
            sb_puts(sb, io->dim_names[a]);
        else
            sb_printf(sb, "%lld", (long long)io->dims[a]);
    }
    sb_puts(sb, io->rank < 0 ? "" : "]");
}

static bool misfits(const char *text, int64_t n, const ingot_model_io *io)
{
    StrBuf sb = {0};
    sb_printf(&sb, "ingot: --bind %s=%.100s: ", io->name, text);
    if (n < 0)
        sb_puts(&sb, "numbers with commas between are wanted, and ");
    else
        sb_printf(&sb, "%lld element%s, and ", (long long)n, n == 1 ? "" : "s");
    input_print(&sb, io);
    (void)complain(INGOT_USAGE, "%s", sb.data);
    sb_free(&sb);
    return false;
}

static bool bind_from_text(LoadedModel *m, const char *text, const ingot_model_io *io,
                           ingot_model_bind *b)
{
    int64_t room = 1 + (int64_t)strlen(text),
            *dims = ingot_alloc(m->c, INGOT_MAX_RANK * sizeof *dims);
    uint8_t *bytes = ingot_alloc(m->c, (size_t)room * 16);
    int64_t n = parse_elements(text, io->dtype, bytes, room), fixed = 1;
    int free_axis = -1, nfree = 0;
    for (int a = 0; a < io->rank; a++) {
        dims[a] = io->dims[a];
        if (dims[a] < 0) {
            free_axis = a;
            nfree++;
        } else {
            fixed = sat_mul(fixed, dims[a]);
        }
    }
    if (free_axis >= 0 && fixed > 0)
        dims[free_axis] = n / fixed;
    bool fits = n >= 0 && nfree <= 1 && fixed > 0 && (nfree ? n % fixed == 0 : n == fixed);
    if (!fits)
        return misfits(text, n, io);
    *b = (ingot_model_bind){io->name, io->dtype, io->rank < 0 ? 0 : io->rank, dims, bytes};
    return true;
}

/* What a dim or a bind that no input has may have been meant to name; NULL: nothing is near. */
static const char *near_name(const LoadedModel *m, const char *typed, bool binds)
{
    const char *near = NULL;
    int best = 3;
    for (int i = 0; i < ingot_model_input_count(m->file); i++) {
        const ingot_model_io *io = ingot_model_input(m->file, i);
        if (binds)
            near = closer(typed, io->name, near, &best);
        for (int a = 0; a < io->rank; a++)
            if (io->dims[a] < 0)
                near = closer(typed, io->dim_names[a], near, &best);
    }
    return near;
}

typedef struct {
    ingot_model_dim *dim;
    ingot_model_bind *bind;
    int ndim, nbind;
} Given;

static bool given_by_flags(LoadedModel *m, const Options *o, Given *g)
{
    for (int i = 0; i < o->ndim; i++)
        vec_push(m->c->arena, g->dim, g->ndim, o->dim[i]);
    for (int i = 0; i < o->nbind; i++) {
        int input = find_input(m, o->bind_name[i]);
        if (input >= 0) {
            ingot_model_bind b;
            if (!bind_from_text(m, o->bind_text[i], ingot_model_input(m->file, input), &b))
                return false;
            vec_push(m->c->arena, g->bind, g->nbind, b);
            continue;
        }
        char *end;
        ingot_model_dim d = {.name = o->bind_name[i]};
        d.lo = d.hi = strtoll(o->bind_text[i], &end, 10);
        if (!dim_exists(m, d.name) || *end || d.lo < 0) {
            const char *near = near_name(m, d.name, true);
            return complain(INGOT_USAGE,
                            "%s: --bind %s: no input and no free dim has that name and value%s%s%s",
                            o->model, d.name, near ? "; did you mean '" : "", near ? near : "",
                            near ? "'?" : "") == INGOT_OK;
        }
        vec_push(m->c->arena, g->dim, g->ndim, d);
    }
    return true;
}

static bool has_dim(const Given *g, const char *name)
{
    for (int i = 0; i < g->ndim; i++)
        if (!strcmp(g->dim[i].name, name))
            return true;
    return false;
}

static bool has_bind(const Given *g, const char *name)
{
    for (int i = 0; i < g->nbind; i++)
        if (!strcmp(g->bind[i].name, name))
            return true;
    return false;
}

/* A size that the data has; a name that the data uses twice gets bounds. */
static void note_dim(LoadedModel *m, Given *g, int nflag, const char *name, int64_t size)
{
    for (int i = 0; i < g->ndim; i++) {
        ingot_model_dim *d = &g->dim[i];
        if (strcmp(d->name, name))
            continue;
        if (i >= nflag) {
            d->lo = size < d->lo ? size : d->lo;
            d->hi = size > d->hi ? size : d->hi;
        }
        return;
    }
    ingot_model_dim d = {.name = arena_strdup(m->c->arena, name), .lo = size, .hi = size};
    vec_push(m->c->arena, g->dim, g->ndim, d);
}

/* Length, presence and dims of a sequence or an optional; of each element of its own. */
static void note_group(LoadedModel *m, Given *g, int nflag, const ingot_model_io *io,
                       const HostTensor *v)
{
    Arena *a = m->c->arena;
    const HostTensor *item = v->sequence ? v->item : v;
    int n = v->absent ? 0 : v->sequence ? v->nitem : 1;
    if (io->kind == INGOT_MODEL_OPTIONAL)
        note_dim(m, g, nflag, arena_printf(a, "%s_present", io->name), !v->absent);
    if (io->sequence)
        note_dim(m, g, nflag, io->name, n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < item[i].rank; k++) {
            if (io->rank < 0)
                note_dim(m, g, nflag, arena_printf(a, "%s_%d", io->name, k), item[i].dims[k]);
            else if (k < io->rank && io->dims[k] < 0)
                note_dim(m, g, nflag, io->dim_names[k], item[i].dims[k]);
            if (io->sequence)
                note_dim(m, g, nflag, arena_printf(a, "%s[%d]_%d", io->name, i, k),
                         item[i].dims[k]);
        }
    for (int k = 0; n == 0 && k < io->rank; k++)
        if (io->dims[k] < 0 && !has_dim(g, io->dim_names[k]))
            note_dim(m, g, nflag, io->dim_names[k], 0);
}

static void given_by_data(LoadedModel *m, const HostTensor *values, const bool *bound, Given *g)
{
    int nflag = g->ndim;
    for (int i = 0; values && i < ingot_model_input_count(m->file); i++) {
        const ingot_model_io *io = ingot_model_input(m->file, i);
        if (io->kind != INGOT_MODEL_TENSOR) {
            note_group(m, g, nflag, io, &values[i]);
            continue;
        }
        for (int a = 0; a < io->rank && io->rank == values[i].rank; a++)
            if (io->dims[a] < 0 && !has_dim(g, io->dim_names[a])) {
                ingot_model_dim d = {io->dim_names[a], values[i].dims[a], values[i].dims[a], NULL};
                vec_push(m->c->arena, g->dim, g->ndim, d);
            }
        if (bound && bound[i] && !has_bind(g, io->name)) {
            ingot_model_bind b = {io->name, values[i].dtype, values[i].rank, values[i].dims,
                                  values[i].data};
            vec_push(m->c->arena, g->bind, g->nbind, b);
        }
    }
}

/* After a failure: which --dim may be misspelt. */
static void suggest_dims(const LoadedModel *m, const Options *o)
{
    for (int i = 0; i < o->ndim; i++) {
        const char *near =
            dim_exists(m, o->dim[i].name) ? NULL : near_name(m, o->dim[i].name, false);
        if (near)
            say("  --dim %s: did you mean '%s'?", o->dim[i].name, near);
    }
}

/* The emitted model compares an input that is bound with its value. */
static void tell_bound(Context *c, const Given *g)
{
    c->bound = NEWN(c->arena, Node *, c->ninput + 1);
    for (int i = 0; i < g->nbind; i++)
        for (int k = 0; k < c->ninput; k++)
            if (!strcmp(c->inputs[k].name, g->bind[i].name))
                c->bound[k] = ingot_data(c, g->bind[i].name, g->bind[i].dtype, g->bind[i].rank,
                                         g->bind[i].dims, g->bind[i].bytes);
}

/* --train: the functions run and train_step. */
static bool build_functions(LoadedModel *m, const Options *o, const ingot_model_options *options)
{
    ingot_model_train_options t = o->training;
    t.loss_options = &o->loss;
    t.optimizer = &o->optimizer;
    t.trainable = o->trainable;
    t.frozen = o->frozen;
    t.lora = o->lora;
    return o->train ? ingot_model_train(m->file, options, &t) : ingot_model_build(m->file, options);
}

ingot_status model_build(LoadedModel *m, const Options *o, const HostTensor *values,
                         const bool *bound)
{
    Given g = {0};
    if (!given_by_flags(m, o, &g))
        return INGOT_USAGE;
    given_by_data(m, values, bound, &g);
    ingot_model_options options = {.struct_size = sizeof options,
                                   .dims = g.dim,
                                   .n_dims = g.ndim,
                                   .binds = g.bind,
                                   .n_binds = g.nbind,
                                   .string_bytes = o->string_bytes,
                                   .functions =
                                       m->functions && takes_functions(o->a, o->compile.target),
                                   .cache = o->cache,
                                   .weights_type = o->weights_type,
                                   .rounding = o->rounding};
    const bool checked = ingot_model_check(m->file);
    if ((!checked && !ingot_model_builds_rest(m->file)) || !build_functions(m, o, &options) ||
        m->c->nerror) {
        if (!m->c->sink_user)
            suggest_dims(m, o);
        return ingot_context_status(m->c);
    }
    Context *c = m->c;
    for (int i = 0; i < c->nfunction || i == 0; i++) {
        function_select(c, i);
        tell_bound(c, &g);
    }
    function_select(c, 0);
    const int unused = ingot_unused_precision(c);
    if (unused >= 0)
        return complain(INGOT_USAGE,
                        "--precision ..:%s: no product of f32 has such a name: names of nodes are "
                        "wanted (ingot inspect --dump graph has them), * and ? stand for any",
                        o->precisions[unused].nodes);
    for (int i = 0; i < o->nio; i++)
        if (!ingot_set_io(c, o->io[i].name, o->io[i].form))
            return ingot_context_status(c);
    return ingot_context_status(c);
}
