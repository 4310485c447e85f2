/* render_memory.c - loads, stores and conversions.  f16 and smaller floats are held as f32: they
 * are converted where they are loaded, stored and cast, and nowhere else. */
#include "render.h"

/* Of an address that is a base, which a pointer is made of, and the way from there: the way; base
 * is NULL of others. */
Node *render_way(Render *r, Node *n, int first, Node **base)
{
    *base = n->op == OP_LOAD && !is_named(r, n->src[first]) ? copy_base(r->l.tile, n) : NULL;
    return *base ? n->src[first]->src[1] : n->src[first];
}

static void element(Render *r, Node *n, int first)
{
    if (render_is_beside(r, n)) {
        render_beside(r, n);
        return;
    }
    if (n->op == OP_LOAD && kernel_takes_image(r->of, n->src[0]->arg.i)) {
        r->needs |= NEED_IMAGE;
        sb_printf(r->sb, "igrt_texel(a%lld, ", (long long)n->src[0]->arg.i);
        render_bare(r, n->src[first]);
        put(r, ")");
        return;
    }
    Node *base, *way = render_way(r, n, first, &base);
    const KernelArg *arg = &r->k->args[n->src[0]->arg.i];
    if (arg->ranks && n->op == OP_LOAD) {
        sb_printf(r->sb, "igrt_cluster_at(a%lld, ", (long long)n->src[0]->arg.i);
        render_expr(r, arg->dims[0]);
        put(r, ", ");
        render_bare(r, way);
        put(r, ")");
        return;
    }
    if (arg->ranks) { /* its own */
        sb_printf(r->sb, "a%lld[", (long long)n->src[0]->arg.i);
        render_bare(r, idx_mod(r->k->c, way, arg->dims[0]));
        put(r, "]");
        return;
    }
    if (n->op == OP_LOAD && r->lang->load && !base) {
        r->lang->load(r, n, way);
        return;
    }
    Parts p = parts_begin(r);
    sb_printf(r->sb, "a%lld", (long long)n->src[0]->arg.i);
    parts_next(r, &p);
    if (base) {
        render_expr(r, base);
        parts_next(r, &p);
    }
    render_bare(r, way);
    parts_end(r, &p, base ? r->lang->behind : r->lang->element);
}

enum { RUN = 16, WORD = 4 };

/* Elements that are read as runs, by the word for their type; NULL: others. */
const char *render_run_word(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32: return "f32";
    case INGOT_F16:
    case INGOT_BF16: return "u16";
    case INGOT_U8:
    case INGOT_F8E4M3FN:
    case INGOT_F8E5M2: return "u8";
    case INGOT_I8: return "i8";
    default: return NULL;
    }
}

/* Is a loop of so many iterations one along runs?  One of an operand's bytes, or of what is
 * narrower than this one, whose vector it is, may be of several: 16 f32 beside 16 bytes. */
static bool is_whole_run(const Render *r, ingot_dtype d, int64_t extent)
{
    const int bytes = dtype_info[d].bytes;
    bool several = bytes == 1;
    for (int i = 0; i < r->k->narg && !several; i++) {
        const int narrow = dtype_info[r->k->args[i].dtype].bytes;
        several = !r->k->args[i].written && render_run_word(r->k->args[i].dtype) &&
                  narrow < bytes && extent % (RUN / narrow) == 0;
    }
    return extent == RUN / bytes || (several && extent % (RUN / bytes) == 0) ||
           (bytes == 1 && extent == WORD);
}

/* Elements of 2 bytes beside others of which a loop has a word: 8 bytes are one access, too. */
static bool is_half_run(ingot_dtype d, int64_t extent)
{
    return dtype_info[d].bytes == 2 && extent == WORD;
}

static Node *run_of(const Render *r, const Node *n, bool halves)
{
    const int64_t arg = n->src[0]->arg.i;
    Context *c = r->k->c;
    Node *zero = idx(c, 0);
    if (!r->lang->runs || !render_run_word(n->dtype) || arg >= r->k->narg ||
        r->k->args[arg].written || !node_is_const_i(n->src[1], 1))
        return NULL;
    for (int i = 0; i < r->l.tile->nreduce; i++) {
        Node *range = r->l.tile->reduce[i].range;
        int64_t stride, extent;
        bool rolled;
        if (!idx_value(range->src[0], &extent) ||
            !(halves ? is_half_run(n->dtype, extent) : is_whole_run(r, n->dtype, extent)))
            continue;
        const int whole = RUN / dtype_info[n->dtype].bytes;
        const int64_t elements = extent < whole ? extent : whole;
        if (range_stride(c, n->src[2], range, &stride) && stride == 1 &&
            idx_is(idx_mod(c, substitute(c, n->src[2], 1, &range, &zero), idx(c, elements)), 0) &&
            render_is_short(r, range, &rolled) && !rolled)
            return range;
    }
    return NULL;
}

Node *render_run_of(const Render *r, const Node *n)
{
    return run_of(r, n, false);
}

/* igrt_run_u16(a1 + (v6 - r0_i_i), r0_i_i) */
static void element_of_run(Render *r, Node *n, Node *range)
{
    r->needs |= NEED_RUN;
    int64_t extent = 0;
    const bool few = idx_value(range->src[0], &extent) && extent == WORD;
    const int bytes = dtype_info[n->dtype].bytes;
    sb_printf(r->sb, "igrt_%s_%s(a%lld + (",
              few && bytes == 1                    ? "word"
              : few && is_half_run(n->dtype, WORD) ? "half"
                                                   : "run",
              render_run_word(n->dtype), (long long)n->src[0]->arg.i);
    render_expr(r, n->src[2]);
    put(r, " - ");
    render_range(r, range);
    put(r, "), ");
    render_range(r, range);
    put(r, ")");
}

/* Zeros came with neighbours that are not given. */
static bool is_gated(const Render *r, const Node *n)
{
    return !node_is_const_i(n->src[1], 1) && (n->arg.i || !render_is_beside(r, n));
}

void render_load(Render *r, Node *n)
{
    if (n->id < r->l.nknown && r->l.fragment[n->id]) {
        render_lane_fragment(r, n);
        return;
    }
    if (is_vector(r, n)) {
        render_lane_load(r, n);
        return;
    }
    bool gated = is_gated(r, n), small = is_small_float(n->dtype);
    Parts p = parts_begin(r);
    if (gated) {
        render_expr(r, n->src[1]);
        parts_next(r, &p);
    }
    if (small)
        render_igrt(r, "%s_to_f32(", dtype_info[n->dtype].name);
    const bool bulk = render_is_bulk(r, n);
    const struct HeldLoad *early = bulk ? NULL : render_held_of(r, n);
    Node *range = early || bulk ? NULL : render_run_of(r, n);
    range = early || bulk || range ? range : run_of(r, n, true);
    if (bulk)
        render_bulk(r, n);
    else if (early)
        render_held(r, early);
    else if (range)
        element_of_run(r, n, range);
    else
        element(r, n, 2);
    put(r, small ? ")" : "");
    if (gated) {
        const bool is_float = dtype_is_float(n->dtype) && !n->arg.i;
        parts_next(r, &p);
        if (is_float)
            render_number(r, 0, held(n->dtype));
        else
            render_integer(r, n->arg.i,
                           n->dtype == INGOT_BOOL || r->lang->strict ? (ingot_dtype)n->dtype
                                                                     : INGOT_I32);
        parts_end(r, &p, r->lang->choice);
    }
}

/* Open a call that turns a held float of `from` into the storage form of small float `to`. */
static void open_pack(Render *r, ingot_dtype from, ingot_dtype to)
{
    render_igrt(r, "%s_to_%s(", held(from) == INGOT_F64 ? "f64" : "f32", dtype_info[to].name);
}

static void close_pack(Render *r, ingot_dtype to, int64_t how)
{
    bool eight = to == INGOT_F8E4M3FN || to == INGOT_F8E4M3FNUZ || to == INGOT_F8E5M2 ||
                 to == INGOT_F8E5M2FNUZ;
    if (eight)
        put(r, how & 1 ? ", 0" : ", 1");
    else if (to == INGOT_F8E8M0)
        sb_printf(r->sb, ", %d, %d", !(how & 1), (int)(how >> 1));
    put(r, ")");
}

/* `igrt_NAME(` or, in lanes, `igrt_NAMEx8(`: what follows it is the same for both. */
static void call_of(Render *r, bool lanes, const char *name)
{
    render_igrt(r, "%s", name);
    if (lanes)
        sb_printf(r->sb, "x%d", r->l.tile->lanes);
    put(r, "(");
}

static void call_of_value(Render *r, Node *n, const char *name)
{
    const bool lanes = is_vector(r, n);
    call_of(r, lanes, name);
    render_operand(r, n->src[0], lanes, true);
}

/* What is about to be rounded to an integer: x * y + z is one operation of the machine, if it has
 * it. */
static void muladd_operand(Render *r, Node *x, bool lanes)
{
    Node *product = NULL, *more = NULL;
    for (int i = 0; i < 2 && x->op == OP_ADD && !is_named(r, x) && !product; i++)
        if (x->src[i]->op == OP_MUL && !is_named(r, x->src[i])) {
            product = x->src[i];
            more = x->src[1 - i];
        }
    if (!product) {
        render_operand(r, x, lanes, true);
        return;
    }
    call_of(r, lanes, "muladd_f32");
    render_operand(r, product->src[0], lanes, lanes);
    put(r, ", ");
    render_operand(r, product->src[1], lanes, lanes);
    put(r, ", ");
    render_operand(r, more, lanes, lanes);
    put(r, ")");
}

/* x, zero, least, most */
void render_quantized_operands(Render *r, Node *n)
{
    Node *zero = n->src[1];
    muladd_operand(r, n->src[0], is_vector(r, n));
    put(r, ", ");
    if (zero->op == OP_CAST) { /* of an integer */
        sb_printf(r->sb, "c%lld", (long long)zero->src[0]->arg.i);
    } else if (zero->op == OP_PARAM) {
        const char *cast = render_cast_begin(r, r->lang->type(INGOT_INDEX, false), true);
        sb_printf(r->sb, "c%lld%s", (long long)zero->arg.i, cast);
    } else {
        sb_printf(r->sb, "%d", (int)node_float(zero));
    }
    sb_printf(r->sb, ", %d, %d", quantize_least(n->arg.i), quantize_most(n->arg.i));
}

void render_quantize(Render *r, Node *n)
{
    const char *end = "";
    if (!is_vector(r, n) && n->dtype != INGOT_F32)
        end = render_cast_begin(r, render_type(r, n->dtype), true);
    call_of(r, is_vector(r, n), n->dtype == INGOT_F32 ? "quantized_f32" : "quantize_f32");
    render_quantized_operands(r, n);
    sb_printf(r->sb, ")%s", end);
}

void render_digit(Render *r, Node *n)
{
    call_of_value(r, n, "digit_f32");
    put(r, ", ");
    render_bare(r, n->src[1]);
    sb_printf(r->sb, ", %d, %d)", digit_mask(n->arg.i), digit_less(n->arg.i));
}

void render_top_byte(Render *r, Node *n)
{
    call_of_value(r, n, "top_byte_f32");
    put(r, ", ");
    render_bare(r, n->src[1]);
    put(r, ")");
}

/* A cast to a small float in its storage form. */
static void packed_cast(Render *r, Node *n)
{
    Node *x = n->src[0];
    ingot_dtype from = x->dtype;
    bool from_float = dtype_is_float(from);
    const char *end = ")";
    if (from == INGOT_INDEX)
        from = r->l.wide ? INGOT_I64 : INGOT_I32;
    open_pack(r, from_float ? from : INGOT_F32, n->dtype);
    /* one rounding from wide integers: round to odd first */
    bool wide = from == INGOT_I64 || from == INGOT_I32 || from == INGOT_U32;
    if (wide)
        render_igrt(r, "%s_to_f32_odd(", r->lang->strict ? dtype_info[from].name : "i64");
    else if (from == INGOT_U64)
        render_igrt(r, "u64_to_f32_odd(");
    else if (!from_float)
        end = render_cast_begin(r, render_type(r, INGOT_F32), false);
    render_expr(r, x);
    put(r, from_float ? "" : end);
    close_pack(r, n->dtype, n->arg.i);
}

/* As it is stored, behind its gate: zero is no bits, in all small floats that have one. */
static void packed_load(Render *r, Node *n)
{
    const bool gated = is_gated(r, n);
    const ingot_dtype bits = dtype_info[n->dtype].bytes == 1 ? INGOT_U8 : INGOT_U16;
    const char *end = gated ? render_cast_begin(r, r->lang->type(bits, false), true) : "";
    Parts p = parts_begin(r);
    if (gated) {
        render_expr(r, n->src[1]);
        parts_next(r, &p);
    }
    element(r, n, 2);
    if (gated) {
        parts_next(r, &p);
        put(r, "0");
        parts_end(r, &p, r->lang->choice);
    }
    put(r, end);
}

/* A small float as it is stored, of what is written where it is used: loads and casts do not take
 * the way through f32. */
static bool render_packed(Render *r, Node *n)
{
    if (is_named(r, n) || is_vector(r, n))
        return false;
    if (n->op == OP_CAST && n->src[0]->dtype != INGOT_BOOL)
        packed_cast(r, n);
    else if (n->op == OP_LOAD && (n->dtype != INGOT_F8E8M0 || node_is_const_i(n->src[1], 1)))
        packed_load(r, n);
    else
        return false;
    return true;
}

/* igrt_f32_of_u8_and(x, 0.0f), of what an item has of a run of bytes: a GPU converts integers at an
 * eighth of the rate at which it adds. */
static bool is_byte_of_run(const Render *r, const Node *n)
{
    const int from = n->op == OP_CAST && n->dtype == INGOT_F32 ? n->src[0]->dtype : INGOT_F32;
    return r->lang->runs && r->l.tile->across && (from == INGOT_U8 || from == INGOT_I8);
}

bool render_byte_and(Render *r, Node *n)
{
    enum { MOST = 1 << 16 }; /* exact, whatever is added first */
    Node *byte = n->src[0], *more = n->src[1];
    const double c = more->op == OP_CONST ? node_float(more) : 0.5;
    if (n->op != OP_ADD || !is_byte_of_run(r, byte) || is_named(r, byte) ||
        !(c >= -MOST && c <= MOST) || c != (int)c)
        return false;
    r->needs |= NEED_RUN;
    sb_printf(r->sb, "igrt_f32_of_%s_and(", dtype_info[byte->src[0]->dtype].name);
    render_bare(r, byte->src[0]);
    put(r, ", ");
    render_bare(r, more);
    put(r, ")");
    return true;
}

void render_cast(Render *r, Node *n)
{
    Node *x = n->src[0];
    if (is_byte_of_run(r, n)) {
        r->needs |= NEED_RUN;
        sb_printf(r->sb, "igrt_f32_of_%s_and(", dtype_info[x->dtype].name);
        render_bare(r, x);
        put(r, ", 0.0f)");
        return;
    }
    ingot_dtype from = x->dtype, to = n->dtype;
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    if (from == INGOT_INDEX)
        from = r->l.wide ? INGOT_I64 : INGOT_I32;
    if (to == INGOT_BOOL) {
        const char *end = render_cast_begin(r, r->lang->type(to, false), false);
        render_expr(r, x);
        put(r, " != ");
        if (from_float)
            render_number(r, 0, held(from));
        else
            render_integer(r, 0, from == INGOT_BOOL ? from : INGOT_I32);
        put(r, end);
    } else if (to == INGOT_BF16 && r->lang->runs && from_float && held(from) == INGOT_F32) {
        render_igrt(r, "round_bf16(");
        render_bare(r, x);
        put(r, ")");
    } else if (is_small_float(to)) {
        render_igrt(r, "%s_to_f32(", dtype_info[to].name);
        packed_cast(r, n);
        put(r, ")");
    } else if (to_float) {
        if (from_float && held(from) == to) {
            render_expr(r, x); /* f16 is held as f32 already */
            return;
        }
        const char *end = render_cast_begin(r, render_type(r, to), false);
        render_expr(r, x);
        put(r, end);
    } else if (n->arg.i == CAST_WITHIN) {
        const char *end = render_cast_begin(r, render_type(r, to), true);
        render_igrt(r, "small_f32_i32(");
        render_bare(r, x);
        put(r, ")");
        put(r, end);
    } else if (from_float) {
        ingot_dtype int_type = to == INGOT_INDEX ? INGOT_I64 : to;
        const char *end =
            to == INGOT_INDEX && !r->l.wide ? render_cast_begin(r, render_type(r, to), true) : "";
        render_igrt(r, "%s_to_%s(", held(from) == INGOT_F64 ? "f64" : "f32",
                    dtype_info[int_type].name);
        render_expr(r, x);
        put(r, ")");
        put(r, end);
    } else if (is_narrow(to)) {
        render_igrt(r, "wrap_%s(", dtype_info[to].name);
        const char *end = render_cast_begin(r, r->lang->type(INGOT_I64, false), false);
        render_expr(r, x);
        put(r, end);
        put(r, ")");
    } else {
        const char *end = render_cast_begin(r, render_type(r, to), false);
        render_expr(r, x);
        put(r, end);
    }
}

void render_bitcast(Render *r, Node *n)
{
    Node *x = n->src[0];
    ingot_dtype from = x->dtype, to = n->dtype;
    const bool call = to == INGOT_F32 || to == INGOT_F64 || is_small_float(to);
    /* to raw bits of the source, then to the destination */
    if (to == INGOT_F32)
        render_igrt(r, "bits_f32(");
    else if (to == INGOT_F64)
        render_igrt(r, "bits_f64(");
    else if (is_small_float(to))
        render_igrt(r, "%s_to_f32(", dtype_info[to].name);
    const int bytes = dtype_info[to].bytes;
    const ingot_dtype bits = !call        ? to
                             : bytes == 8 ? INGOT_U64
                             : bytes == 4 ? INGOT_U32
                             : bytes == 2 ? INGOT_U16
                                          : INGOT_U8;
    const char *end = render_cast_begin(r, r->lang->type(bits, false), false);
    put(r, call ? "" : "(");
    if (from == INGOT_F32) {
        render_igrt(r, "f32_bits(");
    } else if (from == INGOT_F64) {
        render_igrt(r, "f64_bits(");
    } else if (is_small_float(from)) {
        open_pack(r, INGOT_F32, from);
    }
    render_expr(r, x);
    if (from == INGOT_F32 || from == INGOT_F64)
        put(r, ")");
    else if (is_small_float(from))
        close_pack(r, from, 0);
    put(r, end);
    put(r, ")");
}

void render_stored_value(Render *r, Node *n)
{
    if (is_small_float(n->dtype) && render_packed(r, n->src[2]))
        return;
    if (!is_small_float(n->dtype)) {
        render_bare(r, n->src[2]);
        return;
    }
    open_pack(r, n->dtype, n->dtype);
    render_expr(r, n->src[2]);
    close_pack(r, n->dtype, 1); /* arithmetic does not saturate; casts have done so already */
}

Node *render_rounded_here(Render *r, const Node *store)
{
    Node *n = store->src[2];
    const bool rounded = (n->dtype == INGOT_BF16 || n->dtype == INGOT_F16) && n->op == OP_CAST &&
                         !n->arg.i && n->src[0]->dtype == INGOT_F32;
    return rounded && r->lang->runs && !is_named(r, n) && !is_vector(r, n) ? n->src[0] : NULL;
}

void render_pair_of_16(Render *r, Node *one, Node *other)
{
    Node *x = render_rounded_here(r, one), *y = render_rounded_here(r, other);
    if (x && y) {
        render_igrt(r, "pair_%s(", dtype_info[one->dtype].name);
        render_bare(r, x);
        put(r, ", ");
        render_bare(r, y);
    } else {
        put(r, "igrt_pair_16(");
        render_stored_value(r, one);
        put(r, ", ");
        render_stored_value(r, other);
    }
    put(r, ")");
}

static void store_one(Render *r, Node *n)
{
    element(r, n, 3);
    put(r, " = ");
    render_stored_value(r, n);
    put(r, ";\n");
}

static void store_in_form(Render *r, const Stmt *s)
{
    Node *n = s->node;
    switch (s->store) {
    case STORE_BOX: render_box(r, box_of(&r->l, n), n, s->depth); break;
    case STORE_CHUNK: r->lang->copy(r, n, s->async); break;
    case STORE_LANES:
    case STORE_IN_TURN: render_lane_store(r, n); break;
    case STORE_FRAGMENT: break; /* render_fragment_store() */
    case STORE_ONE:
        if (r->lang->store)
            r->lang->store(r, n, n->src[3]);
        else
            store_one(r, n);
        break;
    }
}

void render_store(Render *r, const Stmt *s)
{
    const bool given = !node_is_const_i(s->node->src[1], 1);
    if (given)
        render_then(r, s->node->src[1], s->depth);
    store_in_form(r, s);
    if (given)
        render_end_then(r, s->depth);
}
