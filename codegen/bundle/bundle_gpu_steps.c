/* bundle_gpu_steps.c - steps that a GPU bundle enqueues: launches, copies, and transfers between
 * the caller's memory and the device's. */
#include <string.h>

#include "bundle_gpu.h"
#include "language.h"
#include "lowered.h"

/* unit * n[0] * n[1] ..., constants multiplied out. */
static void product(StrBuf *sb, Bundle *b, int64_t unit, int n, Node *const *factor)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        int64_t v;
        if (idx_value(factor[i], &v)) {
            unit = sat_mul(unit, v);
            continue;
        }
        sb_puts(sb, any ? " * " : "");
        print_expr(sb, b, factor[i]);
        any = true;
    }
    if (any && unit == 1)
        return;
    sb_puts(sb, any ? " * " : "");
    sb_printf(sb, unit > INT32_MAX ? "INT64_C(%lld)" : "%lld", (long long)unit);
}

/* The same as a size_t. */
static void sized(StrBuf *sb, Bundle *b, int64_t unit, int n, Node *const *factor)
{
    bool dynamic = false;
    for (int i = 0; i < n; i++)
        dynamic |= factor[i]->op != OP_CONST;
    sb_puts(sb, dynamic ? "(size_t)(" : "");
    product(sb, b, unit, n, factor);
    sb_puts(sb, dynamic ? ")" : "");
}

/* Bytes of the tensor in its actual dims. */
static void bytes(StrBuf *sb, Bundle *b, const Buffer *buffer)
{
    if (buffer->layout.n)
        sb_printf(sb, "%lld", (long long)buffer->bytes);
    else
        sized(sb, b, element_bytes(buffer->dtype), buffer->rank, buffer->dims);
}

/* Where the tensor (and element `offset` of it) starts in its memory, in bytes. */
static void start_offset(StrBuf *sb, Bundle *b, const Buffer *buffer, Node *offset)
{
    int64_t unit = element_bytes(buffer->dtype);
    bool any = false;
    for (; buffer; buffer = buffer->base, offset = NULL) {
        Node *each[2] = {buffer->base ? buffer->base_offset : NULL, offset};
        for (int i = 0; i < 2; i++) {
            if (!each[i] || idx_is(each[i], 0))
                continue;
            sb_puts(sb, any ? " + " : "(size_t)(");
            product(sb, b, unit, 1, &each[i]);
            any = true;
        }
    }
    sb_puts(sb, any ? ")" : "0");
}

/* "TRY(igrt_gpu_read(gpu" */
static void open_gpu(Writer *w, const char *function)
{
    w->b->needs |= NEED_GPU;
    indent(w);
    sb_printf(&w->sb, "TRY(igrt_gpu_%s(gpu", function);
}

/* wait: until the host's memory may be used again. */
static void transfer(Writer *w, const char *function, const Buffer *buffer, bool wait)
{
    Bundle *b = w->b;
    open_gpu(w, function);
    sb_printf(&w->sb, ", mem[%s], ", gpu_mem_of(b, buffer));
    start_offset(&w->sb, b, buffer, NULL);
    sb_puts(&w->sb, ", ");
    address(&w->sb, b, buffer, NULL, strcmp(function, "read") == 0);
    sb_puts(&w->sb, ", ");
    bytes(&w->sb, b, buffer);
    sb_printf(&w->sb, ", %d));\n", wait);
}

static void inputs(Writer *w)
{
    for (int i = 0; i < w->b->nin; i++)
        if (gpu_on_device(w->b, w->b->in[i].b))
            transfer(w, "write", w->b->in[i].b, false);
}

static void outputs(Writer *w)
{
    for (int i = 0; i < w->b->nout; i++)
        if (gpu_on_device(w->b, w->b->out[i].b))
            transfer(w, "read", w->b->out[i].b, false);
    open_gpu(w, "finish");
    sb_puts(&w->sb, "));\n");
}

void gpu_steps(Writer *w, const char *steps)
{
    const Gpu *g = w->b->gpu;
    if (!g->apart) {
        inputs(w);
        sb_puts(&w->sb, "\n");
        sb_puts(&w->sb, steps);
        outputs(w);
        return;
    }
    line(w, "if (ctx->config.flags & IGRT_ON_DEVICE) {");
    w->depth++;
    if (g->nio)
        line(w, "TRY(bind(ctx, in, out));");
    line(w, "TRY(%s(ctx));", g->records ? "play" : "enqueue");
    w->depth--;
    line(w, "} else {");
    w->depth++;
    inputs(w);
    line(w, "TRY(%s(ctx));", g->records ? "play" : "enqueue");
    outputs(w);
    w->depth--;
    line(w, "}");
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Ranges that work items are numbered by. */
static int counted(const Kernel *k, Node **extent)
{
    const Lowered *l = kernel_lowered(k, true);
    const Tile *t = &l->tiles.tile[0];
    int n = 0;
    for (int i = 0; l->items && i < t->naxis; i++)
        if (t->items ? t->axis[i].bound == BOUND_GRID : !t->axis[i].scanned)
            extent[n++] = t->axis[i].range->src[0];
    return n;
}

/* Is a launch of it the same whatever sizes a run has? */
static bool is_same_launch(const Kernel *k)
{
    Node *extent[INGOT_MAX_RANK * 2];
    int64_t size;
    bool same = k->nvar == 0;
    for (int n = counted(k, extent); n-- > 0 && same;)
        same = idx_value(extent[n], &size);
    return same;
}

/* Items of a group; 0: the device decides. */
static int group_of(const Kernel *k, const Tile *t)
{
    return k->ntogether ? tile_group_together(t) : tile_group(t);
}

/* Work items: elements of the kernel's output axes, or what BIND says, as the renderer takes them
 * apart; and how many are a group. */
static void items(StrBuf *sb, Bundle *b, const Kernel *k)
{
    const Tiles *tiles = &kernel_lowered(k, true)->tiles;
    if (!k->serial && (tiles->n != 1 || tiles->tile[0].lanes > 1))
        BUG("%s: a GPU kernel of several loop nests or lanes", k->name);
    Node *extent[INGOT_MAX_RANK * 2];
    const int n = counted(k, extent), group = k->serial ? 0 : group_of(k, &tiles->tile[0]);
    int64_t groups = k->serial ? 0 : tiles->tile[0].stay;
    for (int i = 0; i < k->ntogether; i++)
        groups += kernel_groups(k->together[i]);
    if (k->ntogether && kernel_is_counted(k))
        sb_printf(sb, "(size_t)end_%d * %d", k->ntogether - 1, group);
    else
        product(sb, b, (group ? group : 1) * (groups ? groups : 1), groups ? 0 : n, extent);
    sb_printf(sb, ", %d, %lld", group, (long long)gpu_asked(k, b->target));
}

static void numbers(Writer *w, int n, const int64_t *x, int64_t unit)
{
    sb_puts(&w->sb, ", (const uint64_t[]){");
    for (int i = 0; i < n; i++)
        sb_printf(&w->sb, "%s%lld", i ? ", " : "", (long long)sat_mul(x[i], unit));
    sb_puts(&w->sb, "}");
}

/* Elements along each axis, as a run has them. */
static void extents(Writer *w, const Box *x)
{
    sb_puts(&w->sb, ", (const uint64_t[]){");
    for (int i = 0; i < x->rank; i++) {
        sb_puts(&w->sb, i ? ", " : "");
        if (!x->end[i]) {
            sb_printf(&w->sb, "%lld", (long long)x->extent[i]);
            continue;
        }
        sb_puts(&w->sb, "(uint64_t)(");
        print_expr(&w->sb, w->b, x->end[i]);
        sb_puts(&w->sb, ")");
    }
    sb_puts(&w->sb, "}");
}

/* Along the axes of the image: where positions begin and end, and how far apart they are. */
static void window_numbers(Writer *w, const Box *x)
{
    for (int what = 0; what < 3; what++) {
        sb_puts(&w->sb, ", (const int[]){");
        for (int i = 1; i + 1 < x->rank; i++)
            sb_printf(&w->sb, "%s%lld", i > 1 ? ", " : "",
                      (long long)(what == 0   ? x->low[i]
                                  : what == 1 ? box_high(x, i)
                                              : x->step[i]));
        sb_puts(&w->sb, "}");
    }
}

/* What boxes of an argument are taken out of, for STAGE .. move tma: igrt_gpu_map m1;
 * TRY(igrt_gpu_make_map(gpu, &m1, ...)); */
static void maps(Writer *w, const Step *s, const Kernel *k, const char *after)
{
    Bundle *b = w->b;
    const Tiles *tiles = &kernel_lowered(k, true)->tiles;
    for (int i = 0, box = 0; i < k->nopt; i++) {
        if (!k->opts[i].tma)
            continue;
        const Box *x = &tiles->tile[0].box[box++];
        const int64_t bytes = element_bytes(k->args[x->arg].dtype);
        line(w, "igrt_gpu_map m%d%s;", x->arg, after);
        open_gpu(w, x->window ? "make_window_map" : "make_map");
        sb_printf(&w->sb, ", &m%d%s, mem[%s], %lld, %d, %d", x->arg, after,
                  gpu_argument_of(b, s, s->bufs[x->arg]), (long long)sat_mul(x->offset, bytes),
                  (int)bytes, x->rank);
        extents(w, x);
        numbers(w, x->rank, x->stride, bytes);
        numbers(w, x->window ? 2 : x->rank, x->size, 1);
        if (x->window)
            window_numbers(w, x);
        sb_puts(&w->sb, "));\n");
    }
}

/* What a launch takes, as it is written. */
typedef struct {
    int nmem, n, nvar;
    size_t start; /* of the line */
} LaunchArgs;

static void one_argument(Writer *w, const Step *s, const Kernel *k, int i)
{
    Bundle *b = w->b;
    const int nint = k->narg + k->nvar;
    if (i < k->narg) {
        if (b->target->language->binds)
            sb_printf(&w->sb, "(igrt_gpu_mem[1]){igrt_gpu_first(mem[%s], %lld)}",
                      gpu_argument_of(b, s, s->bufs[i]), (long long)s->bufs[i]->bytes);
        else
            sb_printf(&w->sb, "&mem[%s]",
                      kernel_takes_image(k, i) ? gpu_image_of(b, s->bufs[i])
                                               : gpu_argument_of(b, s, s->bufs[i]));
    } else if (i < nint) {
        sb_printf(&w->sb, "&%s", sym_place(b, k->vars[i - k->narg]));
    } else {
        const Scalar *scalar = &k->scalars[i - nint];
        sb_printf(&w->sb, "&(%s){", scalar_type(scalar));
        print_scalar(&w->sb, scalar, s->scalars[i - nint]);
        sb_puts(&w->sb, "}");
    }
}

static void arguments(Writer *w, const Step *s, const Kernel *k, LaunchArgs *x)
{
    for (int i = 0; i < k->narg + k->nvar + k->nscalar; i++) {
        if (i < k->narg && !kernel_has_param(k, i))
            continue;
        bool wrap = w->sb.len - x->start > 70;
        sb_puts(&w->sb, wrap ? ",\n    " : x->n ? ", " : "");
        if (wrap) {
            indent(w);
            x->start = w->sb.len;
        }
        one_argument(w, s, k, i);
        x->nmem += i < k->narg;
        x->n++;
    }
    x->nvar += k->nvar;
}

/* Is the launch of these steps the same whatever sizes a run has? */
static bool keeps_launch(const Bundle *b, const Step *s, const Kernel *k)
{
    bool same = b->gpu->records && b->gpu->sized && is_same_launch(k);
    for (int i = 1; i < s->ntogether; i++)
        same &= is_same_launch(s->together[i]->kernel);
    return same;
}

/* TRY(igrt_gpu_fill_image(gpu, mem[MEM_ARENA], 64, 4096, mem[MEM_COPY_7])); */
static void fill_images(Writer *w, const Step *s, const Kernel *k)
{
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i) || !gpu_fills_image(s, k, i))
            continue;
        int64_t offset;
        const char *from = gpu_whole_of(w->b, s->bufs[i], &offset);
        open_gpu(w, "fill_image");
        sb_printf(&w->sb, ", mem[%s], %lld, %lld, mem[%s]));\n", from, (long long)offset,
                  (long long)s->bufs[i]->bytes, gpu_image_of(w->b, s->bufs[i]));
    }
}

/* Of what is one launch, number i; and what is behind names of what is its own. */
static const Step *part_of(const Step *s, int i)
{
    return i ? s->together[i] : s;
}

static const char *after_of(Bundle *b, const Step *s, int i)
{
    return s->ntogether > 1 ? arena_printf(b->a, "_%d", i) : "";
}

/* Behind the last group of each of those that are one launch: int64_t end_0 = n * 16; */
static void ends(Writer *w, const Step *s)
{
    for (int i = 0; i < s->ntogether; i++) {
        Node *extent[INGOT_MAX_RANK * 2];
        const int n = counted(s->together[i]->kernel, extent);
        indent(w);
        sb_printf(&w->sb, "int64_t end_%d = ", i);
        if (i)
            sb_printf(&w->sb, "end_%d + ", i - 1);
        const bool loose = !kernel_lowered(s->together[i]->kernel, true)->tiles.tile[0].items;
        sb_puts(&w->sb, loose ? "(" : "");
        product(&w->sb, w->b, 1, n, extent);
        if (loose)
            sb_printf(&w->sb, " + %d) / %d", TILE_LOOSE - 1, TILE_LOOSE);
        sb_puts(&w->sb, ";\n");
    }
}

/* The step, by this kernel, and what is one launch with it. */
static void launch(Writer *w, const Step *s, const Kernel *k)
{
    Bundle *b = w->b;
    LaunchArgs x = {0};
    const Kernel *by = s->launch ? s->launch : k;
    line(w, keeps_launch(b, s, k) ? "if (!igrt_gpu_keeps(gpu)) {" : "{");
    w->depth++;
    fill_images(w, s, k);
    for (int i = 1; i < s->ntogether; i++)
        fill_images(w, s->together[i], s->together[i]->kernel);
    const bool sized = s->ntogether > 1 && kernel_is_counted(k);
    for (int i = 0; i < s->ntogether || i < 1; i++)
        maps(w, part_of(s, i), i ? s->together[i]->kernel : k, after_of(b, s, i));
    if (sized)
        ends(w, s);
    indent(w);
    sb_puts(&w->sb, "void *args[] = {");
    x.start = w->sb.len;
    if (k->crosses) {
        sb_puts(&w->sb, "&all");
        x.n++;
    }
    arguments(w, s, k, &x);
    for (int i = 1; i < s->ntogether; i++)
        arguments(w, s->together[i], s->together[i]->kernel, &x);
    for (int i = 0; i < s->ntogether && sized; i++)
        sb_printf(&w->sb, "%s&end_%d", x.n++ ? ", " : "", i);
    for (int i = 0; i < s->ntogether || i < 1; i++) {
        const Kernel *one = i ? s->together[i]->kernel : k;
        x.n += print_maps(&w->sb, one, x.n ? ", " : "", "&", after_of(b, s, i));
    }
    sb_puts(&w->sb, "};\n");
    open_gpu(w, "launch");
    sb_printf(&w->sb, ", %skernel[%s], ", b->p->ndevice > 1 ? "" : "ctx->", /* turn() */
              upper_case(b->a, by->name));
    items(&w->sb, b, by);
    sb_printf(&w->sb, ", %d, %d, %d, args));\n", x.nmem, x.nvar, x.n);
    w->depth--;
    line(w, "}");
}

void gpu_kernel(Writer *w, const Step *s)
{
    if (s->follows)
        return;
    for (int i = 0; i < s->nway; i++) {
        line(w, "%sif (%s_way[%d] == %d)", i ? "else " : "", w->b->name, s->number, i + 1);
        launch(w, s, s->way[i]);
    }
    if (s->nway && w->b->gpu->nown) /* below zero: the step is left out */
        line(w, "else if (%s_way[%d] == 0)", w->b->name, s->number);
    else if (s->nway)
        line(w, "else");
    launch(w, s, s->kernel);
}

void gpu_copy_place(Writer *w, const Step *s, int which)
{
    sb_printf(&w->sb, "mem[%s] + ", gpu_mem_of(w->b, s->bufs[which]));
    start_offset(&w->sb, w->b, s->bufs[which], which ? s->src_offset : s->dst_offset);
}

void gpu_copy_bytes(Writer *w, const Step *s)
{
    sized(&w->sb, w->b, element_bytes(s->bufs[0]->dtype), 1, &s->elements);
}

void gpu_copy(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Buffer *dst = s->bufs[0], *src = s->bufs[1];
    open_gpu(w, "copy");
    sb_printf(&w->sb, ", mem[%s], ", gpu_mem_of(b, dst));
    start_offset(&w->sb, b, dst, s->dst_offset);
    sb_printf(&w->sb, ", mem[%s], ", gpu_mem_of(b, src));
    start_offset(&w->sb, b, src, s->src_offset);
    sb_puts(&w->sb, ", ");
    sized(&w->sb, b, element_bytes(dst->dtype), 1, &s->elements);
    sb_puts(&w->sb, "));\n");
}

/* Of a copy of what this process has: what all of them make of it. */
void gpu_all_reduce(Writer *w, const Step *s)
{
    indent(w);
    sb_puts(&w->sb, "TRY(igrt_cu_all_reduce(gpu, ctx->config.comm, ");
    gpu_copy_place(w, s, 0);
    sb_puts(&w->sb, ", (size_t)");
    print_expr(&w->sb, w->b, s->elements);
    sb_printf(&w->sb, ", IGRT_%s, %d));\n", dtype_enum(s->bufs[0]->dtype),
              collective_of(s->collective).kind == ALL_MEAN);
}

void gpu_call_inputs(Writer *w, const Step *s)
{
    for (int i = 0; i < s->call->n_in; i++)
        if (!gpu_on_host(s->bufs[i]) && gpu_on_device(w->b, s->bufs[i]))
            transfer(w, "read", s->bufs[i], true);
}

void gpu_call_outputs(Writer *w, const Step *s)
{
    for (int i = s->call->n_in; i < s->nbuf; i++)
        if (gpu_on_device(w->b, s->bufs[i]))
            transfer(w, "write", s->bufs[i], true);
}

/* "unsigned char cond3 = 0; TRY(igrt_gpu_if(gpu, mem[MEM_ARENA_0], 0, 1, &cond3));" */
void gpu_condition(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    line(w, "unsigned char cond%d = 0;", s->number);
    open_gpu(w, s->kind == STEP_IF ? "if" : "while");
    sb_printf(&w->sb, ", mem[%s], ", gpu_mem_of(b, s->cond));
    start_offset(&w->sb, b, s->cond, NULL);
    if (s->kind == STEP_IF)
        sb_printf(&w->sb, ", %d, &cond%d));\n", s->other.n > 0, s->number);
    else
        sb_printf(&w->sb, ", i%d, &cond%d));\n", s->number, s->number);
}

void gpu_branch(Writer *w, const Step *s)
{
    gpu_condition(w, s);
    line(w, "if (cond%d) {", s->number);
    run_steps(w, &s->body);
    line(w, "}");
    if (s->other.n) {
        open_gpu(w, "else");
        sb_printf(&w->sb, ", &cond%d));\n", s->number);
        line(w, "if (!cond%d) {", s->number);
        run_steps(w, &s->other);
        line(w, "}");
    }
    open_gpu(w, "end_if");
    sb_puts(&w->sb, "));\n");
}
