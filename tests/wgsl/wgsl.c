/* wgsl.c - WGSL (WebGPU's shading language, W3C) as a language of kernels: no pointers, conditions
 * that are no integers, numbers of 32 bits, one text a kernel, whose arguments and shared memory
 * are variables of the module.
 *
 * It is the proof that Language (codegen/render/language.h) has all that a language differs in:
 * nothing but this file was written for it. There is no runtime for it, so it is no target of
 * `ingot compile`. */
#include <math.h>

#include "codegen/render/render.h"
#include "wgsl.h"

/* ---- values ---------------------------------------------------------------------------------- */

static const char *type(ingot_dtype d, bool wide)
{
    switch (d) {
    case INGOT_F32: return "f32";
    case INGOT_BOOL: return "bool";
    case INGOT_I32:
    case INGOT_I16:
    case INGOT_I8: return "i32";
    case INGOT_U32:
    case INGOT_U16:
    case INGOT_U8: return "u32";
    case INGOT_INDEX:
        if (!wide)
            return "i32";
        break;
    default: break;
    }
    BUG("WGSL has no type for %s",
        d == INGOT_INDEX ? "coordinates of 64 bits" : dtype_info[d].name);
}

/* A word, or a narrow integer that is loaded from one. */
static bool is_spelled(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32:
    case INGOT_BOOL:
    case INGOT_I8:
    case INGOT_U8:
    case INGOT_I16:
    case INGOT_U16:
    case INGOT_I32:
    case INGOT_U32:
    case INGOT_INDEX: return true;
    default: return false;
    }
}

static const char *lacks(const Kernel *k)
{
    int n;
    Node *const *node = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++)
        if (node[i]->op != OP_SINK && node[i]->op != OP_END && node[i]->op != OP_STORE &&
            !is_spelled((ingot_dtype)node[i]->dtype))
            return "WGSL has numbers of 32 bits: no f64, i64 or u64, and f16 as an extension only";
    for (int i = 0; i < k->narg; i++) {
        if (k->args[i].written && dtype_info[k->args[i].dtype].bytes != 4)
            return "WGSL stores whole words: f32, i32 or u32";
        if (layout_elements(&k->args[i].layout, k->args[i].rank, k->args[i].dims) > INT32_MAX)
            return "WGSL has no coordinates of 64 bits";
    }
    return NULL;
}

static void print_f32(StrBuf *sb, double v)
{
    print_shortest(sb, (double)(float)v, true);
    sb_puts(sb, "f");
}

/* Neither infinity nor NaN is a constant of WGSL, and the largest f32 in decimal is rounded to
 * one. */
static void number(StrBuf *sb, double v, ingot_dtype d)
{
    (void)d;
    if (isnan(v))
        sb_puts(sb, "igrt_nan()");
    else if (isinf(v))
        sb_puts(sb, v < 0 ? "-igrt_infinity()" : "igrt_infinity()");
    else if (fabs(v) > 1e38)
        sb_printf(sb, "%af", (double)(float)v);
    else
        print_f32(sb, v);
}

static void integer(StrBuf *sb, int64_t v, ingot_dtype d)
{
    if (d == INGOT_BOOL)
        sb_puts(sb, v ? "true" : "false");
    else if (d == INGOT_U32 || d == INGOT_U16 || d == INGOT_U8)
        sb_printf(sb, "%lldu", (long long)v);
    else
        sb_printf(sb, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

/* clang-format off */
static const char *const spelling[OP_COUNT] = {
    [OP_NEG] = "(-$0)",        [OP_ABS] = "abs($0)",      [OP_EXP] = "exp($0)",      [OP_SIN] = "sin($0)",
    [OP_COS] = "cos($0)",      [OP_TAN] = "tan($0)",      [OP_ASIN] = "asin($0)",    [OP_ACOS] = "acos($0)",
    [OP_ATAN] = "atan($0)",    [OP_SINH] = "sinh($0)",    [OP_COSH] = "cosh($0)",    [OP_SQRT] = "sqrt($0)",
    [OP_FLOOR] = "floor($0)",  [OP_CEIL] = "ceil($0)",    [OP_TRUNC] = "trunc($0)",
    [OP_ADD] = "($0 + $1)",    [OP_SUB] = "($0 - $1)",    [OP_MUL] = "($0 * $1)",    [OP_DIV] = "($0 / $1)",
};
/* clang-format on */

/* ---- memory ---------------------------------------------------------------------------------- */

/* Narrow elements of a buffer lie in words; what a group shares is of the type of its values. */
static bool in_words(const Render *r, int64_t arg)
{
    return arg < r->narg && dtype_info[r->k->args[arg].dtype].bytes < 4;
}

static void load(Render *r, Node *n, Node *at)
{
    const int64_t arg = n->src[0]->arg.i;
    const int bits = 8 * dtype_info[n->dtype].bytes, each = 32 / bits;
    char pattern[128], name[32];
    snprintf(name, sizeof name, dtype_info[n->dtype].kind == 'i' ? "bitcast<i32>(a%lld[" : "a%lld[",
             (long long)arg);
    if (!in_words(r, arg))
        snprintf(pattern, sizeof pattern, "a%lld[$0]", (long long)arg);
    else
        snprintf(pattern, sizeof pattern,
                 "%sextractBits(%s($0) / %d]%s, u32(($0) %% %d) * %du, %du)%s",
                 n->dtype == INGOT_BOOL ? "(" : "", name, each,
                 dtype_info[n->dtype].kind == 'i' ? ")" : "", each, bits, bits,
                 n->dtype == INGOT_BOOL ? " != 0u)" : "");
    Parts p = parts_begin(r);
    render_bare(r, at);
    parts_end(r, &p, pattern);
}

/* a3[i] = a1[j]; a3[i + 1] = a1[j + 1]; .. as far as there are some: what is missing is zero. */
static void copy(Render *r, Node *n, bool later)
{
    (void)later;
    Node *from = n->src[2], *whole = store_whole(n);
    Context *c = r->k->c;
    for (int64_t i = 0; i < store_chunk(n); i++) {
        Node *given = whole ? node_make(c, OP_LT, INGOT_BOOL, (Arg){0}, 2,
                                        (Node *[]){idx(c, i), whole}, 0, NULL)
                            : from->src[1];
        Node *src[] = {from->src[0], given, idx_add(c, from->src[2], idx(c, i))};
        sb_printf(r->sb, i ? " a%lld[" : "a%lld[", (long long)n->src[0]->arg.i);
        render_bare(r, idx_add(c, n->src[3], idx(c, i)));
        put(r, "] = ");
        render_load(r, node_make(c, OP_LOAD, from->dtype, from->arg, 3, src, 0, NULL));
        put(r, ";");
    }
    put(r, "\n");
}

/* ---- a kernel's head ------------------------------------------------------------------------- */

enum { GROUP = 64 }; /* items of a group, where a kernel's items are not told apart by groups */

int wgsl_group(const Tiles *tiles, bool serial)
{
    const int items = tile_group(&tiles->tile[0]);
    return serial ? 1 : items ? items : GROUP;
}

static void head(Render *r, const Kernel *k, const Tiles *tiles, const char *name)
{
    int binding = 0;
    for (int i = 0; i < k->narg; i++) {
        const KernelArg *a = &k->args[i];
        if (!kernel_has_param(k, i))
            continue;
        sb_printf(r->sb, "@group(0) @binding(%d) var<storage, %s> a%d: array<%s>;\n", binding++,
                  a->written ? "read_write" : "read", i,
                  in_words(r, i) ? "u32" : type(a->dtype, false));
    }
    for (int i = k->narg; i < r->k->narg; i++)
        sb_printf(r->sb, "var<%s> a%d: array<%s, %lld>;\n",
                  tiles->tile[0].items ? "workgroup" : "private", i,
                  type(r->k->args[i].dtype, false), (long long)r->k->args[i].dims[0]->hi);
    for (int i = 0; i < k->nvar; i++) {
        char var[VAR_NAME_BYTES];
        sb_printf(r->sb, "override %s: i32;\n", var_name(k->c, k->vars[i], var));
    }
    for (int i = 0; i < k->nscalar; i++)
        sb_printf(r->sb, "override c%d: %s;\n", i, type(k->scalars[i].dtype, false));
    sb_printf(r->sb,
              "@compute @workgroup_size(%d)\n"
              "fn %s(@builtin(global_invocation_id) igrt_item: vec3<u32>, "
              "@builtin(workgroup_id) igrt_group: vec3<u32>, "
              "@builtin(local_invocation_index) igrt_lane: u32)\n{\n",
              wgsl_group(tiles, k->serial), name);
}

/* What kernels call; docs/numerics.md says what each gives. */
static void file(StrBuf *sb, const Target *t, unsigned needs)
{
    (void)t;
    (void)needs;
    sb_puts(sb,
            "var<private> igrt_inf: u32 = 0x7f800000u;\n"
            "fn igrt_infinity() -> f32 { return bitcast<f32>(igrt_inf); }\n"
            "fn igrt_nan() -> f32 { return bitcast<f32>(igrt_inf | 0x400000u); }\n"
            "fn igrt_isnan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > "
            "0x7f800000u; }\n"
            "fn igrt_max_f32(x: f32, y: f32) -> f32 { return select(select(y, x, x > y), x, "
            "igrt_isnan_f32(x)); }\n"
            "fn igrt_min_f32(x: f32, y: f32) -> f32 { return select(select(y, x, x < y), x, "
            "igrt_isnan_f32(x)); }\n"
            "fn igrt_max_i32(x: i32, y: i32) -> i32 { return max(x, y); }\n"
            "fn igrt_min_i32(x: i32, y: i32) -> i32 { return min(x, y); }\n"
            "fn igrt_floordiv_i32(x: i32, y: i32) -> i32 { return x / y - select(0, 1, x % y != 0 "
            "&& (x < 0) != (y < 0)); }\n"
            "fn igrt_mod_i32(x: i32, y: i32) -> i32 { return x - igrt_floordiv_i32(x, y) * y; }\n"
            "fn igrt_muladd_f32(x: f32, y: f32, z: f32) -> f32 { return fma(x, y, z); }\n"
            "fn igrt_bits_f32(x: u32) -> f32 { return bitcast<f32>(x); }\n"
            "fn igrt_f32_bits(x: f32) -> u32 { return bitcast<u32>(x); }\n"
            "fn igrt_tanh_f32(x: f32) -> f32 { return tanh(clamp(x, -15.0f, 15.0f)); }\n\n");
}

const Language wgsl_language = {
    .lacks = lacks,
    .suffix = ".wgsl",
    .file = file,
    .head = head,
    .end = "}\n",
    .group = "i32(igrt_group.x)",
    .item = "i32(igrt_lane)",
    .work_item = {"i32(igrt_item.x)", "i32(igrt_item.x)"},
    .type = type,
    .constant = "let $1: $0",
    .variable = "var $1: $0",
    .cast = "$0",
    .number = number,
    .integer = integer,
    .choice = "select($2, $1, $0)",
    .truth = "$0 != 0",
    .logical = true,
    .spelling = spelling,
    .float_suffix = "",
    .element = "$0[$1]",
    .behind = "$0[$1 + $2]",
    .load = load,
    .copy = copy,
    .then = ") {\n",
    .end_then = "}\n",
    .barrier = "workgroupBarrier();",
};
