/* render_lanes.c - vectors: igrt_<op>_f32x16() and igrt_<op>_i32x16() of igrt_vec.h,
 * igrt_<op>_f64x8() of igrt_vec64.h.  A condition in lanes is a mask of integers. */
#include <string.h>

#include "render.h"

/* clang-format off */
const char *const lane_spelling[OP_COUNT] = {
    [OP_ADD] = "($0 + $1)",  [OP_SUB] = "($0 - $1)", [OP_MUL] = "($0 * $1)",  [OP_DIV] = "($0 / $1)",
    [OP_EQ] = "eq",          [OP_NE] = "ne",         [OP_LT] = "lt",          [OP_LE] = "le",
    [OP_AND] = "and_mask",   [OP_OR] = "or_mask",    [OP_NOT] = "not_mask",
};
/* clang-format on */

const char *lane_form(Op op, int bits, char function[64])
{
    const char *name = lane_spelling[op] ? lane_spelling[op] : op_info[op].text;
    char typed[64], argument[64];
    snprintf(function, 64, "igrt_%s_f%d", name, bits);
    snprintf(typed, sizeof typed, "igrt_%s_##T##x",
             name); /* of a macro that has the type as an argument, */
    snprintf(argument, sizeof argument, ", %s,", name); /* or the name */
    if (strchr(name, '$'))                              /* an operator of C */
        return bits == 64 ? "igrt_vec64.h" : "igrt_vec_f32.h";
    const char *file = bits == 64 ? "igrt_vec64.h" : "igrt_vec_";
    for (const RuntimeFile *f = runtime_files; *f->name; f++) {
        const char *text = (const char *)f->data;
        if (!strncmp(f->name, file, strlen(file)) &&
            (strstr(text, function) || strstr(text, typed) || strstr(text, argument)))
            return f->name;
    }
    return NULL;
}

/* Of an op that ops.def says is computed in lanes; once for each kernel. */
static void need_form(Render *r, Op op, int bits)
{
    char function[64];
    if (op_info[op].lanes < bits || r->formed[bits == 64][op])
        return;
    const char *file = lane_form(op, bits, function);
    if (!file)
        BUG("ops.def says that %s of f%d is computed in lanes, and no igrt_vec*.h has %sxN()",
            op_info[op].text, bits, function);
    r->needs |= header_need(file);
    r->formed[bits == 64][op] = true;
}

void render_lane_op(Render *r, Node *n)
{
    ingot_dtype d = n->src[n->nsrc - 1]->dtype;
    char type[16];
    bool is_float = dtype_is_float(d) || d == INGOT_BOOL;
    if (is_float)
        need_form(r, (Op)n->op, d == INGOT_F64 ? 64 : 32);
    render_spelled(r, is_float ? lane_spelling[n->op] : NULL, render_lane_name(r, d, type), n);
}

/* Lanes along an axis whose size a run says, which leaves a loop over what fills no vector; 0:
 * along none. */
static int open_lanes(const Kernel *k)
{
    for (int i = 0; i < k->nopt; i++)
        for (int j = 0; j < k->naxis && k->opts[i].kind == OPT_VECTOR; j++)
            if (!strcmp(k->opts[i].axis, k->axes[j].name) &&
                !idx_value(k->axes[j].range->src[0], NULL))
                return (int)k->opts[i].amount;
    return 0;
}

bool render_one_lane(Render *r, Node *n)
{
    const int lanes = r->lang->c && !r->t->gpu ? open_lanes(r->k) : 0;
    if (!lanes || n->dtype != INGOT_F32 || n->nsrc != 1 || op_info[n->op].lanes < 32 ||
        op_info[n->op].cost < COST_FUNCTION || lane_spelling[n->op])
        return false;
    need_form(r, (Op)n->op, 32);
    sb_printf(r->sb, "igrt_%s_f32x%d(igrt_splat_f32x%d(", op_info[n->op].text, lanes, lanes);
    render_bare(r, n->src[0]);
    put(r, "))[0]");
    return true;
}

/* The type whose lanes hold d. */
static const char *held_lanes(Render *r, ingot_dtype d, char name[16])
{
    const char *held = d == INGOT_BOOL ? "f32" : d == INGOT_INDEX ? "i32" : lane_type(d);
    r->needs |= strstr(held, "64") ? NEED_VEC64 : 0;
    snprintf(name, 16, "%sx%d", held, r->l.tile->lanes);
    return name;
}

const char *render_lane_name(Render *r, ingot_dtype d, char name[16])
{
    held_lanes(r, d, name);
    r->needs |= strncmp(name, "i32", 3) ? 0 : NEED_VEC_I32;
    return name;
}

/* igrt_load_i8_i32x16(, igrt_load_step_f32x16(: what memory holds, maybe in another width */
static void open_access(Render *r, const char *name, Need needs, ingot_dtype d)
{
    char type[16];
    bool same = !strcmp(dtype_info[d].name, lane_type(d));
    sb_printf(r->sb, "igrt_%s_%s%s%s(", name, same ? "" : dtype_info[d].name, same ? "" : "_",
              held_lanes(r, d, type));
    r->needs |= needs | (same ? 0 : NEED_VEC_NARROW);
}

/* A constant's entry; while the tile is written for the first time it is counted. */
static const Splat *splat_of(Render *r, Node *n)
{
    Splat *s = map_get(&r->splats, (uint64_t)n->id + 1);
    if (!s) {
        s = NEW(r->arena, Splat);
        *s = (Splat){.n = n, .number = -1};
        map_put(&r->splats, (uint64_t)n->id + 1, s);
        vec_push(r->arena, r->splat, r->nsplat, s);
    }
    s->uses++;
    return s;
}

void render_splat(Render *r, Node *n)
{
    const Splat *s = n->op == OP_CONST && n->dtype != INGOT_BOOL ? splat_of(r, n) : NULL;
    if (s && s->number >= 0) {
        sb_printf(r->sb, "v%d", s->number);
        return;
    }
    SplatUse *use = is_named(r, n) ? &r->use[n->id] : NULL;
    if (use) {
        use->splats++;
        use->elsewhere |= use->depth != r->depth;
    }
    if (use && use->in_lanes) {
        if (use->line)
            sb_puts(&r->before, use->line);
        use->line = NULL;
        render_bare(r, n);
        return;
    }
    if (n->dtype == INGOT_BOOL) { /* a mask */
        sb_printf(r->sb, "igrt_splat_i32x%d(-(int)", r->l.tile->lanes);
        render_expr(r, n);
    } else {
        char type[16];
        sb_printf(r->sb, "igrt_splat_%s(", held_lanes(r, n->dtype, type));
        render_bare(r, n);
    }
    put(r, ")");
}

/* Does a type of integers hold all of another one? */
static bool holds_all(ingot_dtype to, ingot_dtype from)
{
    return dtype_is_int(to) && dtype_is_int(from) && dtype_least(to) <= dtype_least(from) &&
           dtype_most(to) >= dtype_most(from);
}

/* Numbers are converted from one type of lanes to another, and wrapped or rounded to what a
 * narrower type holds. */
void render_lane_cast(Render *r, Node *n)
{
    Node *x = n->src[0];
    ingot_dtype from = x->dtype, to = n->dtype;
    int lanes = r->l.tile->lanes;
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    const char *held_to = lane_type(to), *held_from = lane_type(from);
    if (from == INGOT_BOOL || from == INGOT_INDEX)
        held_from = "i32";
    bool convert = strcmp(held_from, held_to) != 0;
    bool narrow = dtype_info[to].bytes < 4 && from != to && (to_float || from != INGOT_BOOL);
    bool small = n->arg.i == CAST_WITHIN;
    narrow &= !small && !holds_all(to, from);
    if (narrow) {
        r->needs |= NEED_VEC_I32;
        sb_printf(r->sb, "igrt_%s_%s_%sx%d(", to_float ? "round" : "wrap", dtype_info[to].name,
                  held_to, lanes);
    }
    if (convert) {
        r->needs |= strstr(held_from, "64") || strstr(held_to, "64") ? NEED_VEC64 : 0;
        bool low = from_float && !to_float && dtype_info[to].bytes < 4;
        r->needs |= low ? NEED_VEC_I32 : 0;
        sb_printf(r->sb, "igrt_%s_%sx%d_%sx%d(",
                  small ? "small"
                  : low ? "low"
                        : "cvt",
                  held_from, lanes, held_to, lanes);
    }
    put(r, from == INGOT_BOOL ? "(-" : "");
    render_operand(r, x, true, from != INGOT_BOOL);
    put(r, from == INGOT_BOOL ? ")" : "");
    put(r, convert ? ")" : "");
    put(r, narrow ? ")" : "");
}

void render_horizontal(Render *r, Node *n)
{
    static const char *const name[] = {[INGOT_REDUCE_ADD] = "hadd",
                                       [INGOT_REDUCE_MUL] = "hmul",
                                       [INGOT_REDUCE_MAX] = "hmax",
                                       [INGOT_REDUCE_MIN] = "hmin"};
    char type[16];
    sb_printf(r->sb, "igrt_%s_%s(", name[n->arg.i], render_lane_name(r, n->dtype, type));
    if (is_vector(r, n->src[0]))
        render_bare(r, n->src[0]);
    else /* what differed by lane has been simplified away: a mask whose lanes are all alike */
        render_splat(r, n->src[0]);
    put(r, ")");
}

static Node *of_first_lane(Render *r, Node *e)
{
    Node *zero = idx(r->k->c, 0), *lane = r->l.tile->lane;
    return substitute(r->k->c, e, 1, &lane, &zero);
}

static int64_t lane_step(Render *r, Node *e)
{
    int64_t step;
    if (!range_stride(r->k->c, e, r->l.tile->lane, &step))
        BUG("a coordinate that does not advance evenly along the lanes");
    return step;
}

/* A coordinate as a number of every lane. */
void render_ramp(Render *r, Node *e)
{
    int lanes = r->l.tile->lanes;
    int64_t step = is_vector(r, e) ? lane_step(r, e) : 0;
    sb_printf(r->sb, "igrt_%s_i32x%d(", !step ? "splat" : step == 1 ? "iota" : "ramp", lanes);
    put(r, r->l.wide ? "(int)(" : "");
    render_int(r, step ? of_first_lane(r, e) : e);
    put(r, r->l.wide ? ")" : "");
    if (step && step != 1)
        sb_printf(r->sb, ", %lld", (long long)step);
    put(r, ")");
}

/* "a3 + offset" of lane 0: the access goes on from there. */
static void first_lane(Render *r, Node *buffer, Node *offset, const char *plus)
{
    sb_printf(r->sb, "a%lld%s", (long long)buffer->arg.i, plus);
    render_expr(r, of_first_lane(r, offset));
}

/* Lanes that lie apart, of a part of a vector, or behind a gate that differs from lane to lane:
 * igrt_load_mask_f32x16(a1, at, 2, mask). */
static void load_masked(Render *r, Node *n, int64_t step)
{
    int part = r->l.tile->part, lanes = r->l.tile->lanes;
    bool gate = is_vector(r, n->src[1]);
    open_access(r, "load_mask", NEED_VEC_APART, n->dtype);
    first_lane(r, n->src[0], n->src[2], ", ");
    sb_printf(r->sb, ", %lld, ", (long long)step);
    if (part && gate)
        sb_printf(r->sb, "igrt_and_mask_f32x%d(", lanes);
    if (part)
        sb_printf(r->sb, gate ? "igrt_first_i32x%d(%d), " : "igrt_first_i32x%d(%d)", lanes, part);
    if (gate)
        render_operand(r, n->src[1], true, true);
    put(r, part && gate ? "))" : ")");
}

void render_lane_load(Render *r, Node *n)
{
    bool choice = !node_is_const_i(n->src[1], 1), gated = choice && !is_vector(r, n->src[1]);
    int64_t step = lane_step(r, n->src[2]);
    int part = r->l.tile->part;
    if (gated) {
        put(r, "(");
        render_expr(r, n->src[1]);
        put(r, " ? ");
    }
    if ((choice && !gated) || (step != 1 && part)) {
        load_masked(r, n, step);
    } else {
        open_access(r,
                    step != 1 ? "load_step"
                    : part    ? "load_part"
                              : "load",
                    step != 1 ? NEED_VEC_APART : NEED_VEC, n->dtype);
        first_lane(r, n->src[0], n->src[2], " + ");
        if (step != 1)
            sb_printf(r->sb, ", %lld)", (long long)step);
        else
            sb_printf(r->sb, part ? ", %d)" : ")", part);
    }
    if (gated) {
        put(r, " : ");
        render_splat(r, node_const_zero(r->k->c, n->dtype));
        put(r, ")");
    }
}

void render_rows(Render *r, Node *n, int depth)
{
    int v = r->number[n->id], lanes = r->l.tile->lanes, part = r->l.tile->part;
    render_lane_type(r, n->dtype);
    sb_printf(r->sb, " v%d[%d];\n", v, lanes);
    render_indent(r, depth);
    open_access(r, "load_rows", NEED_VEC_ROWS, n->dtype);
    sb_printf(r->sb, "v%d, ", v);
    first_lane(r, n->src[0], n->src[2], " + ");
    sb_printf(r->sb, ", %lld, %d, %lld);\n", (long long)lane_step(r, n->src[2]),
              part ? part : lanes, (long long)n->src[3]->arg.i);
}

/* What a store of f16 or bf16 is given: it rounds, so a cast beside it need not. */
static Node *stored_operand(Render *r, const Node *n, int i)
{
    Node *x = n->src[i];
    bool rounds = x->op == OP_CAST && x->dtype == n->dtype && dtype_is_float(x->dtype) &&
                  dtype_info[x->dtype].bytes < 4 && x->src[0]->dtype == INGOT_F32;
    return rounds && !is_named(r, x) && is_vector(r, x->src[0]) ? x->src[0] : x;
}

/* A store keeps the low bits of integers: what would be wrapped for it need not be. */
static Node *unwrapped(Render *r, Node *n)
{
    const Node *x = n->op == OP_CAST ? n->src[0] : n;
    const bool wraps = x != n && x->dtype == INGOT_I32 && dtype_is_int(n->dtype) &&
                       (dtype_bits(n->dtype) == 8 || dtype_bits(n->dtype) == 16);
    return wraps && !is_named(r, n) ? n->src[0] : n;
}

/* igrt_store_quantized_i8_f32x16(p, x, -128, -128, 127): a move to bytes may cut off an end of the
 * type. */
static bool store_quantized(Render *r, Node *n)
{
    Node *x = unwrapped(r, stored_operand(r, n, 2));
    const bool bytes = n->dtype == INGOT_I8 || n->dtype == INGOT_U8;
    if (x->op != OP_QUANTIZE || x->dtype == INGOT_F32 || !bytes || is_named(r, x) ||
        !is_vector(r, x) || x->src[1]->op == OP_CAST || x->src[1]->op == OP_PARAM)
        return false;
    r->needs |= NEED_VEC | NEED_VEC_NARROW;
    sb_printf(r->sb, "igrt_store_quantized_%s_f32x%d(", dtype_info[n->dtype].name,
              r->l.tile->lanes);
    first_lane(r, n->src[0], n->src[3], " + ");
    put(r, ", ");
    render_quantized_operands(r, x);
    put(r, ");\n");
    return true;
}

void render_lane_store(Render *r, Node *n)
{
    int part = r->l.tile->part;
    const int turns = store_turns(n);
    if (!part && turns == 1 && store_quantized(r, n))
        return;
    open_access(r,
                part         ? "store_part"
                : turns == 1 ? "store"
                : turns == 2 ? "store2"
                             : "store4",
                NEED_VEC, n->dtype);
    first_lane(r, n->src[0], n->src[3], " + ");
    for (int i = 0; i < turns; i++) {
        put(r, ", ");
        Node *x = stored_operand(r, n, i ? 3 + i : 2);
        render_operand(r, turns == 1 ? unwrapped(r, x) : x, true, true);
    }
    sb_printf(r->sb, part ? ", %d);\n" : ");\n", part);
}

void render_lane_type(Render *r, ingot_dtype d)
{
    sb_printf(r->sb, "igrt_%sx%d", d == INGOT_BOOL ? "i32" : lane_type(d), r->l.tile->lanes);
}
