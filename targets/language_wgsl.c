/* language_wgsl.c - kernels in WGSL (W3C): no pointers, conditions that are no integers, numbers of
 * 32 bits, arguments and shared memory that are variables of the module.
 *
 * All kernels are one module, so the variables of kernel k05 begin with k05_.  Its arguments are
 * bindings, from 0 on; those that overlap in memory, or are too many, share one (KernelArg.with),
 * of words, in which each begins at a number of the kernel's values; these are the last binding:
 *
 *     struct k05_values { a1: i32, n_batch: i32, c0: f32 }
 *     @group(0) @binding(2) var<uniform> k05_u: k05_values;
 *
 * Elements of less than 32 bits lie in words.  To store one, an item clears its bits and sets them,
 * both atomically, since its neighbours may store beside it.
 *
 * What WGSL leaves open (NaN, infinity, integers of 64 bits) is in runtime_min/igrt_num.wgsl, f64
 * by integers in igrt_f64.wgsl. */
#include "language_wgsl.h"

#include <math.h>
#include <string.h>

#include "render.h"

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_wide(ingot_dtype d)
{
    return d == INGOT_I64 || d == INGOT_U64 || d == INGOT_STRING;
}

static bool is_signed(ingot_dtype d)
{
    return dtype_info[d].kind == 'i' || d == INGOT_INDEX;
}

static const char *type(ingot_dtype d, bool wide)
{
    (void)wide; /* lacks() has refused these */
    if (is_wide(d) || d == INGOT_F64)
        return "vec2<u32>";
    switch (d) {
    case INGOT_F32: return "f32";
    case INGOT_BOOL: return "bool";
    case INGOT_INDEX: return "i32";
    default: return is_signed(d) ? "i32" : "u32"; /* bits of small floats too */
    }
}

/* Neither infinity nor NaN is a constant, and the largest f32 in decimal is rounded to one. */
static void number(StrBuf *sb, double v, ingot_dtype d)
{
    if (d == INGOT_F64) {
        uint64_t u;
        memcpy(&u, &v, sizeof u);
        sb_printf(sb, "vec2<u32>(%uu, %uu)", (unsigned)u, (unsigned)(u >> 32));
    } else if (isnan(v)) {
        sb_puts(sb, "igrt_nan()");
    } else if (isinf(v)) {
        sb_puts(sb, v < 0 ? "-igrt_infinity()" : "igrt_infinity()");
    } else if (fabs(v) > 1e38) {
        sb_printf(sb, "%af", (double)(float)v);
    } else {
        print_shortest(sb, (double)(float)v, true);
        sb_puts(sb, "f");
    }
}

static void integer(StrBuf *sb, int64_t v, ingot_dtype d)
{
    if (d == INGOT_BOOL)
        sb_puts(sb, v ? "true" : "false");
    else if (is_wide(d))
        sb_printf(sb, "vec2<u32>(%uu, %uu)", (unsigned)v, (unsigned)((uint64_t)v >> 32));
    else if (d == INGOT_U32 || d == INGOT_U16 || d == INGOT_U8 || d == INGOT_U4 || d == INGOT_U2)
        sb_printf(sb, "%lluu", (unsigned long long)v);
    else if (v == INT32_MIN)
        sb_puts(sb, "(-2147483647 - 1)");
    else
        sb_printf(sb, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

/* clang-format off */
static const char *const spelling[OP_COUNT] = {
    [OP_NEG] = "(-$0)",        [OP_ABS] = "abs($0)",      [OP_EXP] = "exp($0)",      [OP_SIN] = "sin($0)",
    [OP_COS] = "cos($0)",      [OP_TAN] = "tan($0)",      [OP_ATAN] = "atan($0)",    [OP_COSH] = "cosh($0)",
    [OP_FLOOR] = "floor($0)",  [OP_CEIL] = "ceil($0)",    [OP_TRUNC] = "trunc($0)",
    [OP_ADD] = "($0 + $1)",    [OP_SUB] = "($0 - $1)",    [OP_MUL] = "($0 * $1)",    [OP_DIV] = "($0 / $1)",
};
/* clang-format on */

/* A function of floats that is neither a word of the language nor among the functions of
 * igrt_num.wgsl: somebody has added an op, and only what compiles the module would tell. */
static bool is_unspelled(const Node *n)
{
    const OpClass cls = op_info[n->op].cls;
    char function[64];
    const bool f64 = n->dtype == INGOT_F64;
    if (!dtype_is_float(n->dtype) || (cls != UNARY && cls != BINARY) || (spelling[n->op] && !f64) ||
        n->op == OP_CAST || n->op == OP_BITCAST)
        return false;
    snprintf(function, sizeof function, "fn igrt_%s_%s(", op_info[n->op].text, f64 ? "f64" : "f32");
    return !strstr(runtime_text(f64 ? "igrt_f64.wgsl" : "igrt_num.wgsl"), function);
}

/* Each of them becomes a hundred instructions or more, in line: a compiler of modules takes a
 * second for some hundred of them in a kernel, and minutes for twice as many. */
enum { F64_OPERATIONS = 256 };

static const char *lacks(Arena *a, const Kernel *k)
{
    int n, f64 = 0;
    Node *const *node = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++) {
        const ingot_dtype d = node[i]->dtype;
        if (d == INGOT_C64 || d == INGOT_C128)
            return "WGSL has no complex numbers";
        f64 += d == INGOT_F64 && node[i]->nsrc > 0;
        if (d == INGOT_F64 && is_unspelled(node[i]))
            return arena_printf(a, "WGSL has no f64, and igrt_f64.wgsl no '%s'",
                                op_info[node[i]->op].text);
        if (node[i]->op == OP_CUSTOM)
            return "WGSL calls no function of C";
        if (is_unspelled(node[i]))
            return arena_printf(a,
                                "WGSL has no '%s' of floats: add igrt_%s_f32() to "
                                "runtime_min/igrt_num.wgsl, or the language's word for it to "
                                "spelling[] of targets/language_wgsl.c",
                                op_info[node[i]->op].text, op_info[node[i]->op].text);
    }
    if (f64 > F64_OPERATIONS)
        return arena_printf(a,
                            "WGSL has no f64, and a kernel with %d operations of f64 by integers "
                            "takes too long to compile",
                            f64);
    for (int i = 0; i < k->narg; i++) {
        const ingot_dtype d = k->args[i].dtype;
        if (kernel_has_param(k, i) && (d == INGOT_C64 || d == INGOT_C128))
            return "WGSL has no complex numbers";
        if (layout_elements(&k->args[i].layout, k->args[i].rank, k->args[i].dims) > INT32_MAX)
            return "WGSL has no coordinates of 64 bits";
    }
    for (int i = 0; i < k->nscalar; i++)
        if (k->scalars[i].dtype == INGOT_F64)
            return "WGSL has no scalars of f64";
    return NULL;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* f($0, $1) of a node's sources. */
static bool call(Render *r, Node *n, const char *pattern)
{
    Parts p = parts_begin(r);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        if (i)
            parts_next(r, &p);
        render_bare(r, n->src[i]);
    }
    parts_end(r, &p, pattern);
    return true;
}

static const char *print_into(Render *r, const char *format, const char *a, const char *b)
{
    return arena_printf(r->arena, format, a, b);
}

/* An integer, or a condition, as an integer of another width. */
static bool cast_integer(Render *r, Node *n, ingot_dtype from, ingot_dtype to)
{
    const char *name = dtype_info[to].name, *word = is_signed(from) ? "i32" : "u32";
    const char *value = type(to, false);
    if (to == INGOT_BOOL)
        return call(r, n, is_wide(from) ? "igrt_ne_i64($0, vec2<u32>(0u, 0u))" : "($0 != 0)");
    if (is_wide(to) && is_wide(from))
        return call(r, n, "$0");
    if (is_wide(to) && from == INGOT_BOOL)
        return call(r, n, "vec2<u32>(u32($0), 0u)");
    if (is_wide(to))
        return call(r, n, print_into(r, "igrt_%s_to_i64($0)", word, ""));
    if (to == INGOT_INDEX && is_wide(from)) /* what is clamped later is the same */
        return call(r, n, "igrt_coordinate($0)");
    const char *low = is_wide(from) ? print_into(r, "igrt_low_%s($0)", value, "")
                                    : print_into(r, "%s($0)", value, "");
    if (dtype_info[to].bytes == 4 || to == INGOT_INDEX || from == INGOT_BOOL)
        return call(r, n, low);
    return call(r, n, print_into(r, "igrt_wrap_%s(%s)", name, low));
}

/* To f64, or from it: igrt_f64.wgsl. */
static bool cast_f64(Render *r, Node *n, ingot_dtype from, ingot_dtype to)
{
    const char *wide = from == INGOT_U64 ? "u64" : "i64";
    if (from == to)
        return call(r, n, "$0");
    if (to == INGOT_F64)
        return call(r, n,
                    print_into(r, "igrt_%s_to_f64($0)",
                               from == INGOT_BOOL     ? "bool"
                               : dtype_is_float(from) ? "f32"
                               : is_wide(from)        ? wide
                               : is_signed(from)      ? "i32"
                                                      : "u32",
                               ""));
    if (to == INGOT_F32)
        return call(r, n, "igrt_f64_to_f32($0)");
    if (dtype_is_float(to))
        return false;
    if (is_wide(to))
        return call(r, n, print_into(r, "igrt_f64_to_%s($0)", dtype_info[to].name, ""));
    if (to == INGOT_BOOL)
        return call(r, n, "igrt_f64_to_bool($0)");
    if (to == INGOT_I32 || to == INGOT_INDEX)
        return call(r, n, "igrt_f64_to_i32($0)");
    return call(r, n,
                print_into(r,
                           is_signed(to) ? "igrt_wrap_%s(bitcast<i32>(igrt_f64_to_i64($0).x))"
                                         : "igrt_wrap_%s(igrt_f64_to_i64($0).x)",
                           dtype_info[to].name, ""));
}

static bool cast(Render *r, Node *n)
{
    const ingot_dtype from = n->src[0]->dtype, to = n->dtype;
    if (from == INGOT_F64 || to == INGOT_F64)
        return cast_f64(r, n, from, to);
    if (from == INGOT_STRING || to == INGOT_STRING)
        return from == to && call(r, n, "$0");
    if (dtype_is_float(to)) {
        if (is_small_float(to) || !is_wide(from))
            return false;
        return call(r, n, print_into(r, "igrt_%s_to_f32($0)", dtype_info[from].name, ""));
    }
    if (!dtype_is_float(from))
        return cast_integer(r, n, from, to);
    return to == INGOT_INDEX && call(r, n, "igrt_f32_to_i32($0)");
}

static bool bits(Render *r, Node *n)
{
    const ingot_dtype from = n->src[0]->dtype, to = n->dtype;
    if (dtype_info[from].bytes == 8 && dtype_info[to].bytes == 8)
        return call(r, n, "$0");
    const char *in = from == INGOT_F32      ? "bitcast<u32>($0)"
                     : is_small_float(from) ? NULL
                     : is_signed(from)      ? "bitcast<u32>($0)"
                     : from == INGOT_BOOL   ? "u32($0)"
                                            : "$0";
    const char *mask = dtype_info[to].bytes == 1 ? "0xffu" : "0xffffu";
    if (is_small_float(from)) {
        const bool saturates = from != INGOT_F16 && from != INGOT_BF16 && from != INGOT_F4E2M1;
        in = print_into(r, saturates ? "igrt_f32_to_%s($0, 1%s)" : "igrt_f32_to_%s($0%s)",
                        dtype_info[from].name, from == INGOT_F8E8M0 ? ", 0" : "");
    }
    if (is_small_float(to))
        return call(
            r, n, arena_printf(r->arena, "igrt_%s_to_f32(%s & %s)", dtype_info[to].name, in, mask));
    if (to == INGOT_F32)
        return call(r, n, print_into(r, "bitcast<f32>(%s)", in, ""));
    if (to == INGOT_BOOL)
        return call(r, n, print_into(r, "((%s & 0xffu) != 0u)", in, ""));
    if (dtype_info[to].bytes == 4)
        return call(r, n, print_into(r, is_signed(to) ? "bitcast<i32>(%s)" : "%s", in, ""));
    return call(r, n,
                arena_printf(r->arena,
                             is_signed(to) ? "igrt_wrap_%s(bitcast<i32>(%s))" : "igrt_wrap_%s(%s)",
                             dtype_info[to].name, in));
}

/* Comparisons of what is no number of 32 bits. */
static bool compare(Render *r, Node *n, ingot_dtype d)
{
    const bool ordered = n->op == OP_LT || n->op == OP_LE;
    if (d == INGOT_BOOL && ordered)
        return call(r, n, n->op == OP_LT ? "(!($0) && ($1))" : "(!($0) || ($1))");
    if (!is_wide(d) && d != INGOT_F64)
        return false;
    return call(r, n,
                print_into(r, "igrt_%s_%s($0, $1)", op_info[n->op].text,
                           d == INGOT_F64               ? "f64"
                           : d == INGOT_I64 || !ordered ? "i64"
                                                        : "u64"));
}

/* Integer functions of conditions are those of bytes. */
static bool of_conditions(Render *r, Node *n)
{
    const char *name = op_info[n->op].text;
    switch (n->op) {
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
    case OP_WHERE:
    case OP_ISNAN: return false;
    default: break;
    }
    return call(r, n,
                n->nsrc == 1 ? print_into(r, "(igrt_%s_u8(u32($0)) != 0u)", name, "")
                             : print_into(r, "(igrt_%s_u8(u32($0), u32($1)) != 0u)", name, ""));
}

/* Coordinates have 32 bits, whatever they are made of. */
static bool of_coordinates(Render *r, Node *n)
{
    const bool plain = n->op == OP_FLOORDIV || n->op == OP_MOD;
    if (!r->l.wide || !(plain || n->op == OP_MAX || n->op == OP_MIN) ||
        (plain && n->src[0]->lo >= 0 && n->src[1]->lo > 0))
        return false;
    return call(r, n, print_into(r, "igrt_%s_i32($0, $1)", op_info[n->op].text, ""));
}

static bool op(Render *r, Node *n)
{
    const ingot_dtype d = n->src[n->nsrc - 1]->dtype;
    if (d == INGOT_INDEX && n->dtype == INGOT_INDEX && n->op != OP_CAST)
        return of_coordinates(r, n);
    switch (n->op) {
    case OP_CAST: return cast(r, n);
    case OP_BITCAST: return bits(r, n);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE: return compare(r, n, d);
    case OP_ISNAN:
        return dtype_is_float(d) &&
               call(r, n, d == INGOT_F64 ? "igrt_isnan_f64($0)" : "igrt_isnan_f32($0)");
    case OP_NOT:
        if (d == INGOT_BOOL || dtype_info[d].bytes >= 4)
            return false;
        return call(r, n, print_into(r, "igrt_wrap_%s(~($0))", dtype_info[d].name, ""));
    case OP_DIGIT: return false;
    case OP_WHERE: return false;
    default:
        if (n->dtype == INGOT_F64 && d == INGOT_F64 && n->nsrc <= 3)
            return call(r, n,
                        arena_printf(r->arena, "igrt_%s_f64($0%s%s)", op_info[n->op].text,
                                     n->nsrc > 1 ? ", $1" : "", n->nsrc > 2 ? ", $2" : ""));
        return n->dtype == INGOT_BOOL && d == INGOT_BOOL && of_conditions(r, n);
    }
}

/* ---- how arguments lie ----------------------------------------------------------------------- */

/* "k05" of "k05_gemm_1x10" */
static const char *prefix(Arena *a, const Kernel *k)
{
    return arena_printf(a, "%.*s", (int)strcspn(k->name, "_"), k->name);
}

static bool is_first(const Kernel *k, int arg)
{
    return kernel_has_param(k, arg) && (!k->args[arg].with || k->args[arg].with == arg + 1);
}

/* The argument whose binding it is. */
static int binding_of(const Kernel *k, int arg)
{
    return k->args[arg].with ? k->args[arg].with - 1 : arg;
}

static int binding_number(const Kernel *k, int first)
{
    int n = 0;
    for (int i = 0; i < first; i++)
        n += is_first(k, i);
    return n;
}

/* How the elements of a binding are declared. */
typedef struct {
    bool words, atomic, half, writable;
} Lies;

static Lies lies(const Render *r, int first)
{
    const Kernel *k = r->of;
    const ingot_dtype d = k->args[first].dtype;
    Lies l = {.half = d == INGOT_F16 && r->t->features};
    bool narrow = false;
    for (int i = first; i < k->narg; i++) {
        const KernelArg *a = &k->args[i];
        if (!kernel_has_param(k, i) || binding_of(k, i) != first)
            continue;
        l.words |= a->dtype != d || (a->with && dtype_info[a->dtype].bytes != 4);
        l.writable |= a->writable || a->written;
        narrow |= a->written && element_bytes(a->dtype) < 4;
    }
    l.half &= !l.words;
    l.atomic = narrow && !l.half;
    return l;
}

static const char *element_type(const Render *r, int first, Lies l)
{
    const ingot_dtype d = r->of->args[first].dtype;
    if (l.atomic)
        return "atomic<u32>";
    if (l.half)
        return "f16";
    return l.words || element_bytes(d) < 4 ? "u32" : type(d, false);
}

static bool is_place(const Render *r, int64_t arg)
{
    return arg >= r->narg;
}

/* Word $0 of the binding, or the word that an expression of $0 says. */
static const char *word(Render *r, int first, Lies l, const char *at)
{
    const char *k = prefix(r->arena, r->of);
    return arena_printf(r->arena, l.atomic ? "atomicLoad(&%s_a%d[%s])" : "%s_a%d[%s]", k, first,
                        at);
}

/* "k05_u.a3 + ", where the argument begins in its binding */
static const char *from(Render *r, int arg)
{
    return r->of->args[arg].with
               ? arena_printf(r->arena, "%s_u.a%d + ", prefix(r->arena, r->of), arg)
               : "";
}

/* An element of less than 32 bits, of a word. */
static const char *part_of_word(Render *r, int arg, int first, Lies l)
{
    const ingot_dtype d = r->of->args[arg].dtype;
    const int size = (int)element_bytes(d), each = 4 / size;
    const char *w = word(r, first, l, arena_printf(r->arena, "%s($0) / %d", from(r, arg), each));
    const char *x = arena_printf(r->arena, "extractBits(%s%s%s, (u32($0) & %du) * %du, %du)",
                                 is_signed(d) ? "bitcast<i32>(" : "", w, is_signed(d) ? ")" : "",
                                 each - 1, 8 * size, 8 * size);
    return d == INGOT_BOOL ? arena_printf(r->arena, "(%s != 0u)", x) : x;
}

static const char *load_pattern(Render *r, int arg)
{
    const int first = binding_of(r->of, arg);
    const Lies l = lies(r, first);
    const ingot_dtype d = r->of->args[arg].dtype;
    const char *k = prefix(r->arena, r->of), *begin = from(r, arg);
    if (l.half)
        return arena_printf(r->arena, "igrt_f16_bits(%s_a%d[%s$0])", k, first, begin);
    if (element_bytes(d) < 4)
        return part_of_word(r, arg, first, l);
    if (element_bytes(d) == 8 && l.words)
        return arena_printf(r->arena, "vec2<u32>(%s, %s)",
                            word(r, first, l, arena_printf(r->arena, "%s($0) * 2", begin)),
                            word(r, first, l, arena_printf(r->arena, "%s($0) * 2 + 1", begin)));
    const char *w = word(r, first, l, arena_printf(r->arena, "%s$0", begin));
    return !l.words || d == INGOT_U32
               ? w
               : arena_printf(r->arena, "bitcast<%s>(%s)", type(d, false), w);
}

static void load(Render *r, Node *n, Node *at)
{
    const int64_t arg = n->src[0]->arg.i;
    Parts p = parts_begin(r);
    render_bare(r, at);
    parts_end(r, &p,
              is_place(r, arg)
                  ? arena_printf(r->arena, "%s_a%lld[$0]", prefix(r->arena, r->of), (long long)arg)
                  : load_pattern(r, (int)arg));
}

/* Four bytes, the first of which is number $0: a word, or parts of two. */
static const char *four_pattern(Render *r, int arg, bool aligned)
{
    const int first = binding_of(r->of, arg);
    const Lies l = lies(r, first);
    const char *at = arena_printf(r->arena, "%s($0) / 4", from(r, arg));
    const char *low = word(r, first, l, at);
    return aligned ? low
                   : arena_printf(r->arena, "igrt_word_at(%s, %s, $0)", low,
                                  word(r, first, l, arena_printf(r->arena, "%s + 1", at)));
}

/* In a place each byte is a number of its own. */
static const char *four_of_place(Render *r, int64_t arg)
{
    const char *x = arena_printf(r->arena, "%s_a%lld", prefix(r->arena, r->of), (long long)arg);
    return arena_printf(r->arena,
                        "igrt_four(u32(%s[$0]), u32(%s[$0 + 1]), u32(%s[$0 + 2]), u32(%s[$0 + 3]))",
                        x, x, x, x);
}

static void load_four(Render *r, Node *n, Node *at)
{
    Context *c = r->k->c;
    const int64_t arg = n->src[0]->arg.i;
    const bool aligned = idx_is(idx_mod(c, at, idx(c, 4)), 0);
    const char *pattern =
        is_place(r, arg) ? four_of_place(r, arg) : four_pattern(r, (int)arg, aligned);
    Parts p = parts_begin(r);
    render_bare(r, at);
    parts_next(r, &p);
    if (!node_is_const_i(n->src[1], 1)) {
        render_bare(r, n->src[1]);
        pattern = arena_printf(r->arena, "select(0u, %s, $1)", pattern);
    }
    parts_end(r, &p, pattern);
}

/* Element $0 becomes $1. */
static const char *store_pattern(Render *r, int arg, ingot_dtype d)
{
    const int first = binding_of(r->of, arg), bytes = (int)element_bytes(d);
    const Lies l = lies(r, first);
    const char *k = prefix(r->arena, r->of), *begin = from(r, arg);
    if (l.half)
        return arena_printf(r->arena, "%s_a%d[%s$0] = f16(igrt_f16_to_f32($1));\n", k, first,
                            begin);
    if (bytes < 4) {
        const unsigned mask = bytes == 1 ? 0xffu : 0xffffu;
        return arena_printf(r->arena,
                            "{ let igrt_at = u32($0); let igrt_by = (igrt_at & %du) * %du; "
                            "let igrt_word = %s%s(igrt_at / %du); "
                            "atomicAnd(&%s_a%d[igrt_word], ~(0x%xu << igrt_by)); "
                            "atomicOr(&%s_a%d[igrt_word], (u32($1) & 0x%xu) << igrt_by); }\n",
                            4 / bytes - 1, 8 * bytes, begin, *begin ? "i32" : "", 4 / bytes, k,
                            first, mask, k, first, mask);
    }
    const char *format = l.atomic ? "atomicStore(&%s_a%d[%s], %s);" : "%s_a%d[%s] = %s;";
    if (bytes == 8 && l.words) {
        const char *low =
            arena_printf(r->arena, format, k, first, arena_printf(r->arena, "%sigrt_at * 2", begin),
                         "igrt_value.x");
        const char *high =
            arena_printf(r->arena, format, k, first,
                         arena_printf(r->arena, "%sigrt_at * 2 + 1", begin), "igrt_value.y");
        return arena_printf(r->arena, "{ let igrt_at = $0; let igrt_value = $1; %s %s }\n", low,
                            high);
    }
    return arena_printf(r->arena, "%s\n",
                        arena_printf(r->arena, format, k, first,
                                     arena_printf(r->arena, "%s$0", begin),
                                     l.words && d != INGOT_U32 ? "bitcast<u32>($1)" : "$1"));
}

static void store(Render *r, Node *n, Node *at)
{
    const int64_t arg = n->src[0]->arg.i;
    Parts p = parts_begin(r);
    render_bare(r, at);
    parts_next(r, &p);
    render_stored_value(r, n);
    parts_end(r, &p,
              is_place(r, arg) ? arena_printf(r->arena, "%s_a%lld[$0] = $1;\n",
                                              prefix(r->arena, r->of), (long long)arg)
                               : store_pattern(r, (int)arg, n->dtype));
}

/* a3[i] = a1[j]; a3[i + 1] = a1[j + 1]; .. as far as there are some: what is missing is zero. */
static void copy(Render *r, Node *n, bool later)
{
    (void)later;
    Node *given = n->src[2], *whole = store_whole(n);
    Context *c = r->k->c;
    for (int64_t i = 0; i < store_chunk(n); i++) {
        Node *some = whole ? node_make(c, OP_LT, INGOT_BOOL, (Arg){0}, 2,
                                       (Node *[]){idx(c, i), whole}, 0, NULL)
                           : given->src[1];
        Node *src[] = {given->src[0], some, idx_add(c, given->src[2], idx(c, i))};
        Node *one = node_make(c, OP_LOAD, given->dtype, given->arg, 3, src, 0, NULL);
        Node *to[] = {n->src[0], n->src[1], one, idx_add(c, n->src[3], idx(c, i))};
        if (i)
            render_indent(r, r->depth);
        store(r, node_make(c, OP_STORE, n->dtype, (Arg){0}, 4, to, 0, NULL), to[3]);
    }
}

/* ---- a kernel's head ------------------------------------------------------------------------- */

enum { MOST_GROUPS = 65535 }; /* along an axis: more are folded into the second one */

int wgsl_group(const Tiles *tiles, bool alone)
{
    const int items = tile_group(&tiles->tile[0]);
    return alone ? 1 : items ? items : WGSL_GROUP;
}

/* May there be more groups than an axis takes, of a kernel that does not look by itself which of
 * its items are beyond the last? */
static bool is_folded(const Kernel *k)
{
    const Tile *t = &kernel_lowered(k, true)->tiles.tile[0];
    int64_t groups = 1;
    for (int i = 0; !k->serial && t->items && i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID)
            groups = sat_mul(groups, t->axis[i].range->src[0]->hi);
    return groups > MOST_GROUPS;
}

/* What launches differ in, as members of a struct; how many. */
static int values(StrBuf *sb, const Kernel *k)
{
    int n = 0;
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i) && k->args[i].with)
            sb_printf(sb, "%sa%d: i32", n++ ? ", " : "", i);
    for (int i = 0; i < k->nvar; i++) {
        char var[VAR_NAME_BYTES];
        sb_printf(sb, "%s%s: i32", n++ ? ", " : "", var_name(k->c, k->vars[i], var));
    }
    for (int i = 0; i < k->nscalar; i++)
        sb_printf(sb, "%sc%d: %s", n++ ? ", " : "", i,
                  dtype_is_float(k->scalars[i].dtype) ? "f32" : "i32");
    if (is_folded(k))
        sb_printf(sb, "%sgroups: i32", n++ ? ", " : "");
    return n;
}

static void bindings(Render *r, const Kernel *k, const char *name)
{
    for (int i = 0; i < k->narg; i++) {
        if (!is_first(k, i))
            continue;
        const Lies l = lies(r, i);
        sb_printf(r->sb, "@group(0) @binding(%d) var<storage, %s> %s_a%d: array<%s>;\n",
                  binding_number(k, i), l.writable ? "read_write" : "read", name, i,
                  element_type(r, i, l));
    }
    StrBuf members = {0};
    if (values(&members, k))
        sb_printf(r->sb,
                  "struct %s_values { %s }\n@group(0) @binding(%d) var<uniform> %s_u: %s_values;\n",
                  name, members.data, binding_number(k, k->narg), name, name);
    sb_free(&members);
}

/* Its own names of what launches differ in. */
static void name_values(Render *r, const Kernel *k, const char *name)
{
    for (int i = 0; i < k->nvar; i++) {
        char var[VAR_NAME_BYTES];
        var_name(k->c, k->vars[i], var);
        sb_printf(r->sb, "    let %s = %s_u.%s;\n", var, name, var);
    }
    for (int i = 0; i < k->nscalar; i++)
        sb_printf(r->sb, "    let c%d = %s_u.c%d;\n", i, name, i);
    if (is_folded(k))
        sb_printf(r->sb,
                  "    if (i32(igrt_group.x + igrt_group.y * %du) >= %s_u.groups) {\n        "
                  "return;\n    }\n",
                  MOST_GROUPS, name);
}

static void head(Render *r, const Kernel *k, const Tiles *tiles, const char *name)
{
    const char *own = prefix(r->arena, k);
    const bool alone = k->serial && !kernel_lowered(k, true)->items; /* one item runs all of it */
    bindings(r, k, own);
    for (int i = k->narg; i < r->k->narg; i++)
        sb_printf(r->sb, "var<%s> %s_a%d: array<%s, %lld>;\n",
                  tiles->tile[0].items ? "workgroup" : "private", own, i,
                  type(r->k->args[i].dtype, false), (long long)r->k->args[i].dims[0]->hi);
    sb_printf(r->sb, "@compute @workgroup_size(%d)\nfn %s(", wgsl_group(tiles, alone), name);
    if (tiles->tile[0].items)
        sb_puts(r->sb, "@builtin(workgroup_id) igrt_group: vec3<u32>, "
                       "@builtin(local_invocation_index) igrt_lane: u32");
    else
        sb_puts(r->sb, "@builtin(global_invocation_id) igrt_item: vec3<u32>");
    sb_puts(r->sb, ") {\n");
    name_values(r, k, own);
}

/* Behind its name: bindings of its arguments, in order; '#': it wants to know how many groups there
 * are. */
static void entry(StrBuf *sb, const Kernel *k)
{
    const char *separator = ":";
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i)) {
            sb_printf(sb, "%s%d", separator, binding_number(k, binding_of(k, i)));
            separator = ",";
        }
    sb_puts(sb, is_folded(k) ? "#" : "");
}

/* With the extension for f16 devices convert by themselves; f16(x) rounds, and what packs that is
 * exact. Not by bitcasts between u32 and vec2<f16>, which naga (wgpu 29) refuses. */
static const char half[] =
    "fn igrt_f16_to_f32(h: u32) -> f32 { return unpack2x16float(h).x; }\n"
    "fn igrt_f16_bits(x: f16) -> u32 { return pack2x16float(vec2<f32>(f32(x), 0.0)); }\n"
    "fn igrt_f32_to_f16(x: f32) -> u32 { return igrt_f16_bits(f16(x)); }\n";

static void file(StrBuf *sb, const Target *t, unsigned needs, const char *kernels)
{
    if (t->features)
        sb_puts(sb, t->features);
    if (needs & NEED_ACROSS)
        sb_puts(sb, "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n");
    wgsl_runtime(sb, t->features ? half : "", kernels);
    sb_puts(sb, "\n");
}

const Language wgsl_language = {
    .lacks = lacks,
    .suffix = ".wgsl",
    .file = file,
    .head = head,
    .end = "}\n",
    .binds = true,
    .entry = entry,
    .group = "i32(igrt_group.x + igrt_group.y * 65535u)",
    .item = "i32(igrt_lane)",
    .work_item = {"i32(igrt_item.x + igrt_item.y * 4194240u)",
                  "i32(igrt_item.x + igrt_item.y * 4194240u)"},
    .type = type,
    .constant = "let $1: $0",
    .variable = "var $1: $0",
    .cast = "$0",
    .number = number,
    .integer = integer,
    .choice = "select($2, $1, $0)",
    .truth = "$0 != 0",
    .logical = true,
    .strict = true,
    .f64_by_calls = true,
    .op = op,
    .spelling = spelling,
    .float_suffix = "",
    .element = "$0[$1]",
    .behind = "$0[$1 + $2]",
    .load = load,
    .store = store,
    .copy = copy,
    .four = "u32",
    .load_four = load_four,
    .then = ") {\n",
    .end_then = "}\n",
    .barrier = "workgroupBarrier();",
};
