/* custom_source.c - a user's source in the files of a bundle, as it is, behind defines that give
 * its names a prefix.
 *
 * An operator that is a step has a file of its own: what other files could see gets the model's
 * prefix, and a function of the library kernels' form calls it. A function of one element stands
 * before the kernels that call it, in the same file, where the C compiler can make it part of their
 * loops; other sources may stand there too, so all of its names get a prefix and its macros end
 * with it. */
#include <string.h>

#include "bundle_write.h"

static const char *element_type(ingot_dtype d)
{
    switch (d) {
    case INGOT_BOOL: return "_Bool";
    case INGOT_I8: return "int8_t";
    case INGOT_U8: return "uint8_t";
    case INGOT_I16: return "int16_t";
    case INGOT_U16: return "uint16_t";
    case INGOT_I32: return "int32_t";
    case INGOT_U32: return "uint32_t";
    case INGOT_I64: return "int64_t";
    case INGOT_U64: return "uint64_t";
    case INGOT_F64: return "double";
    default: return "float";
    }
}

/* "in[1]", "out[0]": where the tensor of a parameter is. */
static void tensor(StrBuf *sb, const CustomOp *op, const CustomParam *p)
{
    if (p->kind == CUSTOM_INPUT)
        sb_printf(sb, "in[%d]", p->slot);
    else
        sb_printf(sb, "out[%d]", p->slot + (p->kind == CUSTOM_STATE ? op->nout : 0));
}

static void argument(StrBuf *sb, const CustomOp *op, const CustomParam *p)
{
    const CustomParam *of = &op->param[p->of];
    switch (p->kind) {
    case CUSTOM_INPUT:
        if (op->elementwise) {
            sb_printf(sb, "x%d[i]", p->slot);
            break;
        }
        /* fall through */
    case CUSTOM_OUTPUT:
    case CUSTOM_STATE:
        tensor(sb, op, p);
        sb_puts(sb, ".data");
        break;
    case CUSTOM_SCRATCH: sb_puts(sb, "scratch"); break;
    case CUSTOM_SCRATCH_BYTES: sb_printf(sb, "(%s)scratch_bytes", p->type); break;
    case CUSTOM_COUNT:
        sb_printf(sb, "(%s)igrt_lib_numel(&", p->type);
        tensor(sb, op, of);
        sb_puts(sb, ", 0, ");
        tensor(sb, op, of);
        sb_puts(sb, ".rank)");
        break;
    case CUSTOM_DIM:
        sb_printf(sb, "(%s)", p->type);
        tensor(sb, op, of);
        sb_printf(sb, ".dims[%d]", p->axis);
        break;
    case CUSTOM_INT: sb_printf(sb, "(%s)attr_i[%d]", p->type, p->slot); break;
    case CUSTOM_FLOAT: sb_printf(sb, "(%s)attr_f[%d]", p->type, p->slot); break;
    }
}

static void call(StrBuf *sb, const CustomOp *op)
{
    sb_printf(sb, "%s(", op->function);
    const char *separator = "";
    for (int i = 0; i < op->nparam; i++) {
        if (op->elementwise && op->param[i].kind == CUSTOM_OUTPUT)
            continue;
        sb_puts(sb, separator);
        argument(sb, op, &op->param[i]);
        separator = ", ";
    }
    sb_puts(sb, ")");
}

static void body_elementwise(StrBuf *sb, const CustomOp *op)
{
    ingot_dtype to = INGOT_F32;
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_INPUT)
            sb_printf(sb, "    const %s *x%d = in[%d].data;\n", element_type(p->dtype), p->slot,
                      p->slot);
        if (p->kind == CUSTOM_OUTPUT)
            to = p->dtype;
    }
    sb_printf(sb, "    %s *y = out[0].data;\n", element_type(to));
    sb_puts(sb, "    const int64_t n = igrt_lib_numel(out, 0, out->rank);\n"
                "    for (int64_t i = 0; i < n; i++)\n        y[i] = ");
    call(sb, op);
    sb_puts(sb, ";\n    return IGRT_OK;\n");
}

static void body_call(StrBuf *sb, const CustomOp *op)
{
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_STATE)
            sb_printf(sb,
                      "    memcpy(out[%d].data, in[%d].data, (size_t)igrt_lib_numel(&in[%d], 0, "
                      "in[%d].rank) * sizeof(%s));\n",
                      op->nout + p->slot, op->nin + p->slot, op->nin + p->slot, op->nin + p->slot,
                      element_type(p->dtype));
    }
    sb_puts(sb, op->returns_int ? "    return " : "    ");
    call(sb, op);
    sb_puts(sb,
            op->returns_int ? " ? IGRT_ERR_UNSUPPORTED : IGRT_OK;\n" : ";\n    return IGRT_OK;\n");
}

static void file_name(StrBuf *sb, const CustomOp *op)
{
    const char *slash = strrchr(op->file, '/');
    for (const char *p = slash ? slash + 1 : op->file; *p; p++)
        if (*p >= ' ' && *p <= '~' && *p != '*')
            sb_write(sb, p, 1);
}

static void source_text(StrBuf *sb, const CustomOp *op)
{
    sb_write(sb, op->text, op->bytes);
    if (op->bytes && op->text[op->bytes - 1] != '\n')
        sb_puts(sb, "\n");
}

/* ---- in a file with kernels ------------------------------------------------------------------ */

/* A type whose name needs nothing of the source. */
static bool is_plain(const char *type)
{
    static const char *const words[] = {"float",   "double",   "int",      "unsigned int",
                                        "short",   "char",     "long",     "_Bool",
                                        "int8_t",  "int16_t",  "int32_t",  "int64_t",
                                        "uint8_t", "uint16_t", "uint32_t", "uint64_t"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], type))
            return true;
    return false;
}

/* static inline float m_swish(float, float): a first declaration that makes the function one of
 * this file, to be inlined. Without it, if its types are the source's own, the C compiler decides
 * by size. */
static void declare(StrBuf *sb, const CustomOp *op, const char *prefix)
{
    const char *result = "";
    for (int i = 0; i < op->nparam; i++) {
        if (op->param[i].kind == CUSTOM_OUTPUT)
            result = op->param[i].type;
        if (!is_plain(op->param[i].type))
            return;
    }
    sb_printf(sb, "static inline %s %s_%s(", result, prefix, op->function);
    const char *separator = "";
    for (int i = 0; i < op->nparam; i++) {
        if (op->param[i].kind == CUSTOM_OUTPUT)
            continue;
        sb_printf(sb, "%s%s", separator, op->param[i].type);
        separator = ", ";
    }
    sb_puts(sb, ");\n");
}

void custom_paste(StrBuf *sb, const CustomOp *op, const char *prefix)
{
    sb_puts(sb, "\n/* ---- '");
    file_name(sb, op);
    sb_puts(sb, "', as it was given ---- */\n#include <stdint.h>\n");
    declare(sb, op, prefix);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < (pass ? op->ninternal : op->nexternal); i++) {
            const char *name = pass ? op->internal[i] : op->external[i];
            sb_printf(sb, "#define %s %s_%s\n", name, prefix, name);
        }
    source_text(sb, op);
    for (int i = 0; i < op->nexternal; i++)
        sb_printf(sb, "#undef %s\n", op->external[i]);
    for (int i = 0; i < op->ninternal; i++)
        sb_printf(sb, "#undef %s\n", op->internal[i]);
    for (int i = 0; i < op->nmacro; i++)
        sb_printf(sb, "#undef %s\n", op->macro[i]);
    sb_puts(sb, "/* ---- its end ---- */\n\n");
}

/* float x0, float beta; lanes 0: of one element. Attributes are the same in all lanes. */
static void parameters(StrBuf *sb, const CustomOp *op, int lanes)
{
    const char *separator = "";
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_OUTPUT)
            continue;
        if (p->kind != CUSTOM_INPUT)
            sb_printf(sb, "%s%s %c%d", separator, p->kind == CUSTOM_INT ? "int64_t" : "double",
                      p->kind == CUSTOM_INT ? 'i' : 'f', p->slot);
        else if (lanes)
            sb_printf(sb, "%sigrt_%sx%d x%d", separator,
                      p->dtype == INGOT_BOOL ? "i32" : lane_type(p->dtype), lanes, p->slot);
        else
            sb_printf(sb, "%s%s x%d", separator, element_type(p->dtype), p->slot);
        separator = ", ";
    }
    sb_puts(sb, ")\n{\n");
}

static void one_element(StrBuf *sb, const CustomOp *op, const char *prefix, ingot_dtype to)
{
    sb_printf(sb, "\nstatic inline %s %s(", element_type(to), op->name);
    parameters(sb, op, 0);
    sb_printf(sb, "    return %s_%s(", prefix, op->function);
    const char *separator = "";
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_OUTPUT)
            continue;
        if (p->kind == CUSTOM_INPUT)
            sb_printf(sb, "%sx%d", separator, p->slot);
        else
            sb_printf(sb, "%s(%s)%c%d", separator, p->type, p->kind == CUSTOM_INT ? 'i' : 'f',
                      p->slot);
        separator = ", ";
    }
    sb_puts(sb, ");\n}\n");
}

/* Lane by lane, through arrays, as the functions of the C library are in igrt_vec.h. gcc makes a
 * vector of such a loop, if it has not unrolled it before (-O3). A condition is -1 or 0. */
static void in_lanes(StrBuf *sb, const CustomOp *op, ingot_dtype to, int lanes)
{
    const char *held = to == INGOT_BOOL ? "i32" : lane_type(to);
    sb_printf(sb, "\nstatic inline igrt_%sx%d %s_x%d(", held, lanes, op->name, lanes);
    parameters(sb, op, lanes);
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind != CUSTOM_INPUT)
            continue;
        const char *type = p->dtype == INGOT_BOOL ? "i32" : lane_type(p->dtype);
        sb_printf(sb, "    %s u%d[%d];\n    igrt_store_%sx%d(u%d, x%d);\n",
                  *type == 'f' ? "float" : "int32_t", p->slot, lanes, type, lanes, p->slot,
                  p->slot);
    }
    sb_printf(sb,
              "    %s y[%d];\n#pragma GCC unroll 1\n    for (int i = 0; i < %d; i++)\n        y[i] "
              "= %s%s(",
              *held == 'f' ? "float" : "int32_t", lanes, lanes,
              to == INGOT_BOOL ? "-(int32_t)" : "", op->name);
    const char *separator = "";
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_OUTPUT)
            continue;
        bool input = p->kind == CUSTOM_INPUT;
        if (input && p->dtype == INGOT_BOOL)
            sb_printf(sb, "%su%d[i] != 0", separator, p->slot);
        else if (input && p->dtype != INGOT_F32 && p->dtype != INGOT_I32)
            sb_printf(sb, "%s(%s)u%d[i]", separator, element_type(p->dtype), p->slot);
        else if (input)
            sb_printf(sb, "%su%d[i]", separator, p->slot);
        else
            sb_printf(sb, "%s%c%d", separator, p->kind == CUSTOM_INT ? 'i' : 'f', p->slot);
        separator = ", ";
    }
    sb_printf(sb, ");\n    return igrt_load_%sx%d(y);\n}\n", held, lanes);
}

void custom_wrappers(StrBuf *sb, const CustomOp *op, const char *prefix, unsigned needs)
{
    ingot_dtype to = custom_param(op, CUSTOM_OUTPUT, 0)->dtype;
    bool possible = lane_custom(to);
    for (int i = 0; i < op->nparam; i++)
        possible &= op->param[i].kind != CUSTOM_INPUT || lane_custom(op->param[i].dtype);
    one_element(sb, op, prefix, to);
    for (int lanes = 4; lanes <= 16 && possible; lanes *= 2)
        if (needs & (unsigned)NEED_CUSTOM << (lanes / 8))
            in_lanes(sb, op, to, lanes);
}

/* ---- a file of its own ----------------------------------------------------------------------- */

void custom_source(StrBuf *sb, const CustomOp *op, const char *model)
{
    sb_printf(sb, "/* %s_%s.c - the source of a custom operator, '", model, op->name);
    file_name(sb, op);
    sb_puts(sb, "', as it was given, and what calls it. */\n");
    for (int i = 0; i < op->nexternal; i++)
        sb_printf(sb, "#define %s %s_%s_%s\n", op->external[i], model, op->name, op->external[i]);
    sb_puts(sb, "\n");
    source_text(sb, op);
    sb_printf(sb,
              "\n/* ---- what the model calls ---- */\n\n#include <string.h>\n\n#include "
              "\"igrt_lib.h\"\n\nIGRT_LIB_FUNCTION(%s_%s);\n\nIGRT_LIB_FUNCTION(%s_%s)\n{\n"
              "    (void)in, (void)nin, (void)out, (void)nout, (void)attr_i, (void)attr_f;\n"
              "    (void)scratch, (void)scratch_bytes, (void)counts;\n",
              model, op->name, model, op->name);
    if (op->elementwise)
        body_elementwise(sb, op);
    else
        body_call(sb, op);
    sb_puts(sb, "}\n");
}
