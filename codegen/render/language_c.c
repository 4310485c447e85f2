/* language_c.c - kernels in the C family: C99, OpenCL C, CUDA C++. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "language_c.h"
#include "render.h"

/* ---- values ---------------------------------------------------------------------------------- */

const char *c_value_type(ingot_dtype d, bool wide)
{
    if (d == INGOT_INDEX)
        return wide ? "int64_t" : "int";
    return c_type(d);
}

const char *c_device_type(ingot_dtype d, bool wide)
{
    return d == INGOT_STRING ? "uint64_t" : c_value_type(d, wide);
}

void c_number(StrBuf *sb, double v, ingot_dtype d)
{
    const bool is_f32 = d == INGOT_F32;
    if (isnan(v)) {
        sb_puts(sb, is_f32 ? "NAN" : "((double)NAN)");
    } else if (isinf(v)) {
        sb_puts(sb, v < 0 ? (is_f32 ? "-INFINITY" : "-((double)INFINITY)")
                          : (is_f32 ? "INFINITY" : "((double)INFINITY)"));
    } else {
        print_shortest(sb, v, is_f32);
        sb_puts(sb, is_f32 ? "f" : "");
    }
}

void c_integer(StrBuf *sb, int64_t v, ingot_dtype d)
{
    if (d == INGOT_U64)
        sb_printf(sb, "UINT64_C(%llu)", (unsigned long long)v);
    else if (v == INT64_MIN)
        sb_puts(sb, "(-INT64_C(9223372036854775807) - 1)");
    else if (d == INGOT_U32)
        sb_printf(sb, "%lluu", (unsigned long long)v);
    else if (v > INT32_MAX || v < -INT32_MAX || d == INGOT_I64)
        sb_printf(sb, v < 0 ? "(-INT64_C(%lld))" : "INT64_C(%lld)",
                  v < 0 ? -(long long)v : (long long)v);
    else
        sb_printf(sb, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

void print_scalar(StrBuf *sb, const Scalar *s, double v)
{
    if (dtype_is_float(s->dtype))
        c_number(sb, v, INGOT_F32);
    else
        sb_printf(sb, "%d", (int)v);
}

/* ---- a kernel's head ------------------------------------------------------------------------- */

/* after: of its parameters' names. */
static const char *parameters(StrBuf *sb, const Target *t, const Kernel *k, const char *separator,
                              const char *after)
{
    const CWords *c = t->language->c;
    const char *restricts =
        k->crosses ? "" : c->restrict_word; /* no: some of it arrives meanwhile */
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        if (kernel_takes_image(k, i)) {
            sb_printf(sb, "%s__read_only image2d_t a%d", separator, i);
            separator = ", ";
            continue;
        }
        bool pointers = k->args[i].dtype == INGOT_STRING && !t->gpu, written = k->args[i].written;
        sb_printf(sb, "%s%s%s%s%s *%s%sa%d%s", separator, c->global_word,
                  written || pointers ? "" : "const ", t->language->type(k->args[i].dtype, false),
                  pointers && !written ? "const" : "", restricts, *restricts ? " " : "", i, after);
        separator = ", ";
    }
    for (int i = 0; i < k->nvar; i++) {
        char name[VAR_NAME_BYTES];
        sb_printf(sb, "%sint64_t %s%s", separator, var_name(k->c, k->vars[i], name), after);
        separator = ", ";
    }
    for (int i = 0; i < k->nscalar; i++) {
        sb_printf(sb, "%s%s c%d%s", separator, scalar_type(&k->scalars[i]), i, after);
        separator = ", ";
    }
    return separator;
}

int print_maps(StrBuf *sb, const Kernel *k, const char *separator, const char *before,
               const char *after)
{
    int n = 0;
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].tma)
            sb_printf(sb, "%s%sm%lld%s", n++ ? ", " : separator, before,
                      (long long)k->opts[i].amount, after);
    return n;
}

/* part: of a launch, which hands its maps on. */
static void prototype(StrBuf *sb, const Target *t, const Kernel *k, const char *fname, bool part)
{
    const CWords *c = t->language->c;
    const char *separator = "";
    sb_printf(sb, "%svoid %s(", t->gpu ? "" : c->kernel_word, fname);
    if (k->crosses) {
        sb_puts(sb, "const igrt_cross_values all");
        separator = ", ";
    }
    separator = parameters(sb, t, k, separator, "");
    if (print_maps(sb, k, separator, part ? c->part_map_word : c->map_word, ""))
        separator = ", ";
    if (part && kernel_is_counted(k))
        sb_printf(sb, "%sint64_t first", separator);
    if (k->scratch)
        sb_printf(sb, "%svoid *%s%sscratch", separator, c->restrict_word,
                  *c->restrict_word ? " " : "");
    if (kernel_parts(k))
        sb_printf(sb, "%sint64_t begin, int64_t end", separator);
    sb_puts(sb, *separator || kernel_parts(k) ? ")" : "void)");
}

void kernel_prototype(StrBuf *sb, const Target *t, const Kernel *k, const char *fname)
{
    prototype(sb, t, k, fname, false);
}

/* Has the place bytes of dots as 16 bits, which are loaded by fours? */
static bool is_wide_place(const Render *r, const Kernel *k, int place)
{
    bool dots = false;
    for (int i = 0; i < k->nopt; i++)
        dots |= k->opts[i].kind == OPT_DOT;
    return dots && !r->t->gpu && r->k->args[place].dtype == INGOT_I16;
}

/* __local float a3[2176]; __attribute__((aligned(64))) float a3[2176]; of a group that is asked for
 * more float *const a3 = (float *)(void *)(shared + 4096); or float *const a3 = (float *)(void
 * *)((char *)scratch + begin * 4096); */
static void places(Render *r, const Kernel *k, bool group)
{
    const bool asked = group && gpu_shared(r->k, k->narg, r->t) > 0;
    /* what is swizzled begins at a multiple of eight lines */
    const bool boxes = kernel_has_boxes(k);
    const char *local = boxes ? r->lang->c->lines_word : r->lang->c->local_word;
    const char *shared = boxes ? "shared_boxes" : "shared";
    if (asked)
        sb_printf(r->sb, "    extern %sunsigned char %s[];\n", local, shared);
    for (int i = k->narg; i < r->k->narg; i++) {
        const char *type = r->lang->type(r->k->args[i].dtype, false);
        long long at = place_offset(r->k, k->narg, i);
        render_indent(r, 0);
        if (asked) {
            sb_printf(r->sb, "%s *const a%d = (%s *)(void *)(%s + %lld);\n", type, i, type, shared,
                      at);
            continue;
        }
        if (!k->scratch && is_wide_place(r, k, i)) { /* aligned as a load of four needs it */
            sb_printf(r->sb, "igrt_i16x4 p%d[%lld];\n", i,
                      (long long)r->k->args[i].dims[0]->hi / 4);
            render_indent(r, 0);
            sb_printf(r->sb, "int16_t *const a%d = (int16_t *)(void *)p%d;\n", i, i);
            continue;
        }
        if (!k->scratch) {
            const char *word = group                 ? local
                               : r->t->machine.lanes ? "__attribute__((aligned(64))) "
                                                     : "";
            sb_printf(r->sb, "%s%s a%d[%lld];\n", word, type, i,
                      (long long)r->k->args[i].dims[0]->hi);
            continue;
        }
        sb_printf(r->sb, "%s *const a%d = (%s *)(void *)((char *)scratch", type, i, type);
        if (kernel_parts(k))
            sb_printf(r->sb, " + begin * %lld", (long long)k->scratch);
        sb_printf(r->sb, at ? " + %lld);\n" : ");\n", at);
    }
}

/* Memory begins at multiples of 16 bytes: neighbours are read and written together. */
static void aligned(Render *r, const Kernel *k)
{
    for (int i = 0; i < k->narg && r->lang->c->aligned; i++) {
        const char *type = r->lang->type(k->args[i].dtype, false);
        const char *constant = k->args[i].written ? "" : "const ";
        if (!kernel_has_param(k, i))
            continue;
        render_indent(r, 0);
        sb_printf(r->sb, "a%d = (%s%s *)%s(a%d, 16);\n", i, constant, type, r->lang->c->aligned, i);
    }
}

/* Sums of an item: those of a fragment, times its copies. */
static int64_t sums_of_item(const Kernel *k, const Tc *unit)
{
    int64_t n = tc_per_lane(unit, TC_TERMS);
    for (int i = 0; i < k->nopt; i++)
        n *= k->opts[i].kind == OPT_UPCAST ? k->opts[i].amount : 1;
    return n;
}

/* Groups of a warpgroup that rows made of several sums leave registers to (attention's gradients):
 * what is packed of a row takes the place of its sums. */
static int groups_of_rows(const Tile *tile, int64_t bytes, const Target *t)
{
    const int sums = tc_per_lane(tile->tc, TC_TERMS) + tile->rows * tile->row_sums;
    const int64_t registers =
                      (int64_t)(tile->items + t->machine.warp) * (sums + tc_beside(tile->tc)),
                  n = t->machine.file / registers, room = t->machine.shared / bytes;
    return (int)(n < room ? n : room);
}

/* Groups that are to have registers beside each other: two, where one waits while the other's
 * products are made, if their places fit too and the sums leave room. So it is where an item takes
 * operands apart, and where all terms are on their way at once: nothing of a group itself goes on
 * meanwhile. */
static int groups_beside(const Tiles *tiles, const Kernel *k, const Target *t)
{
    enum { SUMS = 24, ITEMS = 128, STEPS = 2, TWO = 2 };
    const Tile *tile = &tiles->tile[0];
    const Tc *unit = tile->tc;
    if (!unit)
        return 1;
    const int64_t bytes = place_offset(tiles->k, k->narg, tiles->k->narg);
    if (tile_rows_in_place(tile) && tile->rows > 1 && tile->items == unit->lanes &&
        2 * bytes <= t->machine.shared) {
        const int n = groups_of_rows(tile, bytes, t);
        return n > 1 ? n : 1;
    }
    const bool room = TWO * bytes <= t->machine.shared,
               apart =
                   tc_rests(unit) && tile->items == ITEMS && tc_per_lane(unit, TC_TERMS) <= SUMS,
               waits =
                   unit->lanes && !tc_in_place(unit) && unit->products == 1 && tile->ahead &&
                   tile->ahead_of->src[0]->hi <= STEPS &&
                   kernel_groups(k) > t->machine.processors &&
                   TWO * tile->items * (sums_of_item(k, unit) + tc_beside(unit)) <= t->machine.file;
    return room && (apart || waits) ? TWO : 1;
}

/* Attributes of the kernel of a GPU. */
static void attributes(Render *r, const Kernel *k, const Tiles *tiles)
{
    const CWords *c = r->lang->c;
    const Tile *tile = &tiles->tile[0];
    if (r->group) {
        put(r, c->part_word);
        return;
    }
    put(r, c->kernel_word);
    if (tile->items)
        sb_printf(r->sb, tile->tc || r->crowd ? c->group_word_alone : c->group_word,
                  tile_group(tile), r->crowd ? r->crowd : groups_beside(tiles, k, r->t));
    if (tile->across && c->subgroup_word)
        sb_printf(r->sb, c->subgroup_word, r->t->machine.subgroup);
    if (tile->cluster || tile->ranks)
        sb_printf(r->sb, c->cluster_word, tile_cluster(tile));
}

void c_head(Render *r, const Kernel *k, const Tiles *tiles, const char *name)
{
    const bool gpu = r->t->gpu;
    if (gpu)
        attributes(r, k, tiles);
    prototype(r->sb, r->t, k, name, r->group != NULL);
    put(r, "\n{\n");
    if (k->crosses)
        sb_printf(r->sb, "    igrt_cross_group(all, %d);\n", k->crosses);
    if (gpu)
        aligned(r, k);
    places(r, k, gpu && tiles->tile[0].items);
    for (int i = 0; i < k->nopt; i++) {
        TcText tc;
        if (k->opts[i].kind == OPT_TC && tc_read(k->units, k->opts[i].axis, &tc) && !tc.unit->lanes)
            sb_printf(r->sb, "    %s_tiles tiles;\n", tc.unit->spelling);
    }
}

/* extern "C" __global__ __launch_bounds__(256) void k01_with_k02(float *a0_0, .., float *a0_1, ..)
 * {
 *     if (blockIdx.x < 256)
 *         k01_with_k02_0(a0_0, ..);
 *     else
 *         k01_with_k02_1(a0_1, ..);
 * }
 *
 * Where a run says how many groups there are, end_0 .. are arguments in place of 256, and a part
 * takes the first group that is its own. */
void c_together(Render *r, const Kernel *k, const int64_t *end, const char *name)
{
    StrBuf *sb = r->sb;
    const char *separator = "";
    attributes(r, k, &kernel_lowered(k->together[0], true)->tiles);
    sb_printf(sb, "void %s(", name);
    for (int i = 0; i < k->ntogether; i++)
        separator =
            parameters(sb, r->t, k->together[i], separator, arena_printf(r->arena, "_%d", i));
    const bool counted = kernel_is_counted(k->together[0]);
    for (int i = 0; i < k->ntogether && counted; i++)
        sb_printf(sb, "%sint64_t end_%d", separator, i);
    for (int i = 0; i < k->ntogether; i++)
        if (print_maps(sb, k->together[i], separator, r->lang->c->map_word,
                       arena_printf(r->arena, "_%d", i)))
            separator = ", ";
    put(r, ")\n{\n");
    for (int i = 0; i < k->ntogether; i++) {
        const Kernel *one = k->together[i];
        const bool last = i == k->ntogether - 1;
        separator = "";
        sb_printf(sb, i ? "    else" : "    ");
        if (!last && counted)
            sb_printf(sb, "%sif (%s < end_%d)", i ? " " : "", r->lang->group, i);
        else if (!last)
            sb_printf(sb, "%sif (%s < %lld)", i ? " " : "", r->lang->group, (long long)end[i]);
        sb_printf(sb, "\n        %s_%d(", name, i);
        for (int j = 0; j < one->narg; j++)
            if (kernel_has_param(one, j)) {
                sb_printf(sb, "%sa%d_%d", separator, j, i);
                separator = ", ";
            }
        for (int j = 0; j < one->nvar; j++) {
            char var[VAR_NAME_BYTES];
            sb_printf(sb, "%s%s_%d", separator, var_name(one->c, one->vars[j], var), i);
            separator = ", ";
        }
        if (print_maps(sb, one, separator, "", arena_printf(r->arena, "_%d", i)))
            separator = ", ";
        if (counted)
            sb_printf(sb, i ? "%send_%d" : "%s0", separator, i - 1);
        put(r, ");\n");
    }
}

void c_file(StrBuf *sb, const Target *t, unsigned needs, const char *kernels)
{
    static const struct {
        unsigned need;
        const char *file;
    } header[] = {{NEED_ACROSS, "igrt_across.h"}, {NEED_RUN, "igrt_run.h"},
                  {NEED_BULK, "igrt_bulk.h"},     {NEED_IMAGE, "igrt_image.h"},
                  {NEED_MMA, "igrt_mma.h"},       {NEED_WGMMA, "igrt_wgmma.h"},
                  {NEED_TURNS, "igrt_turns.h"}};
    (void)kernels;
    sb_puts(sb, t->language->c->pragma);
    sb_puts(sb, t->features ? t->features : "");
    if (needs & (NEED_NUM | NEED_DOT | NEED_ACROSS))
        runtime_whole(sb, needs & NEED_DOT ? "igrt_dot.h" : "igrt_num.h");
    else
        sb_puts(sb, t->language->c->prologue);
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        if (needs & header[i].need)
            sb_puts(sb, runtime_text(header[i].file));
}

/* ---- parts that threads share ---------------------------------------------------------------- */

/* Where part `edge` of the loop begins: every part has as many iterations as any other, or one
 * more. */
static void part_edge(Render *r, const char *edge, Node *extent)
{
    int64_t n, parts = r->l.tile->parts;
    if (idx_value(extent, &n) && n % parts == 0) {
        sb_printf(r->sb, n == parts ? "%s" : "%s*%lld", edge, (long long)(n / parts));
        return;
    }
    sb_printf(r->sb, "%s*", edge);
    render_expr(r, extent);
    sb_printf(r->sb, "/%lld", (long long)parts);
}

/* What the counter of fused axes makes of each of them. */
static void fused_axes(Render *r, bool narrow, int depth)
{
    const Tile *t = r->l.tile;
    for (int i = 0; i < t->fused; i++) {
        Node *inner = r->l.inner[i], *range = t->axis[t->uncut + i].range;
        if (!r->l.counted[i])
            continue;
        render_indent(r, depth);
        sb_printf(r->sb, "const %s ", render_type(r, INGOT_INDEX));
        render_range(r, range);
        put(r, narrow ? " = (int)(at" : " = at");
        if (!idx_is(inner, 1)) {
            put(r, " / ");
            render_expr(r, inner);
        }
        if (i) {
            put(r, " % ");
            render_expr(r, range->src[0]);
        }
        put(r, narrow ? ");\n" : ";\n");
    }
}

/* for (int at = (int)(begin*112/16); at < end*112/16; at++) { */
void c_parts(Render *r, int depth)
{
    const Tile *t = r->l.tile;
    if (!t->fused) {
        sb_printf(r->sb, "if (%s == %d) {\n", r->each_part ? "next" : "end", t->parts);
        return;
    }
    Node *extent = r->l.fused;
    bool narrow = extent->hi > INT32_MAX && !r->l.wide; /* the axes are of 32 bits nevertheless */
    const char *type = narrow ? "int64_t" : render_type(r, INGOT_INDEX), *name = "at";
    if (t->fused == 1)
        name = map_get(&r->names, (uint64_t)t->axis[t->uncut].range->id + 1);
    sb_printf(r->sb, "for (%s %s = (%s)(", type, name, type);
    part_edge(r, r->each_part ? "part" : "begin", extent);
    sb_printf(r->sb, "); %s < ", name);
    part_edge(r, r->each_part ? "next" : "end", extent);
    sb_printf(r->sb, "; %s++) {\n", name);
    if (t->fused > 1)
        fused_axes(r, narrow, depth + 1);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A condition where any number but zero is true. */
static void given(Render *r, Node *n)
{
    const bool bits = n->op == OP_CAST && n->src[0]->dtype == INGOT_U32 && !is_named(r, n);
    render_bare(r, bits ? n->src[0] : n);
}

/* igrt_copy_async_16(a3 + .., a1 + .., given); */
void c_copy(Render *r, Node *n, bool later)
{
    Node *from = n->src[2];
    Node *whole = store_whole(n);
    const char *what = whole ? "part_" : from->arg.i ? "or_" : "";
    sb_printf(r->sb, "igrt_copy_%s%s%d(a%lld + ", what, later ? "async_" : "",
              (int)store_chunk(n) * dtype_info[n->dtype].bytes, (long long)n->src[0]->arg.i);
    render_expr(r, n->src[3]);
    Node *base, *way = render_way(r, from, 2, &base);
    sb_printf(r->sb, ", a%lld + ", (long long)from->src[0]->arg.i);
    if (base) {
        render_expr(r, base);
        put(r, " + ");
    }
    render_expr(r, way);
    put(r, ", ");
    if (whole) { /* in bytes */
        render_expr(r, from->src[1]);
        put(r, " ? ");
        render_expr(r, whole);
        sb_printf(r->sb, "*%d : 0);\n", dtype_info[n->dtype].bytes);
        return;
    }
    given(r, from->src[1]);
    if (from->arg.i) /* four bytes of it */
        sb_printf(r->sb, ", 0x%08xu", (uint32_t)(uint8_t)from->arg.i * 0x01010101u);
    put(r, ");\n");
}

void c_prefetch(Render *r, Node *n)
{
    if (!node_is_const_i(n->src[1], 1)) {
        put(r, "if (");
        render_bare(r, n->src[1]);
        put(r, ") ");
    }
    sb_printf(r->sb, "igrt_prefetch%s(a%lld + (",
              tile_streams(r->l.tile, (int)n->src[0]->arg.i) ? "_once" : "",
              (long long)n->src[0]->arg.i);
    render_bare(r, n->src[2]);
    put(r, "));\n");
}
