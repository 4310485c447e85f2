/* custom_source.c - the C file of a custom operator: the user's source as it is, behind defines that give what other
 * files could see the model's prefix, then a function of the library kernels' form that calls it. */
#include <string.h>

#include "codegen.h"

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

void custom_source(StrBuf *sb, const CustomOp *op, const char *model)
{
    const char *slash = strrchr(op->file, '/');
    sb_printf(sb, "/* %s_%s.c - the source of a custom operator, '", model, op->name);
    for (const char *p = slash ? slash + 1 : op->file; *p; p++)
        if (*p >= ' ' && *p <= '~' && *p != '*')
            sb_write(sb, p, 1);
    sb_puts(sb, "', as it was given, and what calls it. */\n");
    for (int i = 0; i < op->nexternal; i++)
        sb_printf(sb, "#define %s %s_%s_%s\n", op->external[i], model, op->name, op->external[i]);
    sb_puts(sb, "\n");
    sb_write(sb, op->text, op->bytes);
    if (op->bytes && op->text[op->bytes - 1] != '\n')
        sb_puts(sb, "\n");
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
