/* bundle_io.c - what <name>.h says of inputs and outputs that are not as the model's file has them
 * (compiler/rewrite/io_forms.c): scale and zero point of what is quantised, and functions that do
 * the step which was left to the caller. And where in the arena they lie (--io-in-arena). */
#include <string.h>

#include "bundle.h"

static bool is_quantised(const Port *p)
{
    return p->form && p->form->quantised;
}

/* 0.5f, 1.0f, 1e-05f */
static const char *float_text(Arena *a, float x)
{
    const char *text = arena_printf(a, "%.9g", (double)x);
    return arena_printf(a, strpbrk(text, ".e") ? "%sf" : "%s.0f", text);
}

static const char *macro_prefix(const Bundle *b, const Port *p, bool in)
{
    return upper_case(b->a, arena_printf(b->a, "%s_%s_%s", b->io, in ? "in" : "out", p->field));
}

static void quantise(StrBuf *sb, const Bundle *b, const Port *p, const char *macros)
{
    const char *type = c_type(p->b->dtype);
    const int least = p->b->dtype == INGOT_I8 ? -128 : 0;
    sb_printf(sb,
              "static inline %s %s_quantize_%s(float x)\n{\n"
              "    return (%s)%s_quantized(x / %s_SCALE, %s_ZERO, %d, %d);\n}\n",
              type, b->io, p->field, type, b->io, macros, macros, least, least + 255);
}

static void dequantise(StrBuf *sb, const Bundle *b, const Port *p, const char *macros)
{
    sb_printf(sb,
              "static inline float %s_dequantize_%s(%s q)\n{\n"
              "    return (float)(q - %s_ZERO) * %s_SCALE;\n}\n",
              b->io, p->field, c_type(p->b->dtype), macros, macros);
}

/* The number nearest to x, halves to even, plus zero; the least one of what is no number. x is
 * within 2^9 where it is converted. */
static void rounding(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb,
              "\n/* x rounded, halves to even, plus zero, within least..most. */\n"
              "static inline int32_t %s_quantized(float x, int32_t zero, int32_t least, int32_t "
              "most)\n{\n"
              "    int32_t n;\n    float rest;\n"
              "    if (!(x > (float)(least - zero)))\n        return least;\n"
              "    if (x >= (float)(most - zero))\n        return most;\n"
              "    n = (int32_t)x;\n"
              "    rest = x - (float)n;\n"
              "    n += rest > 0.5f || (rest == 0.5f && n %% 2 != 0);\n"
              "    n -= rest < -0.5f || (rest == -0.5f && n %% 2 != 0);\n"
              "    return n + zero;\n}\n",
              b->io);
}

static void port_form(StrBuf *sb, const Bundle *b, const Port *p, bool in)
{
    const char *macros = macro_prefix(b, p, in);
    if (!is_quantised(p))
        return;
    sb_puts(sb, "\n/* An element q of \"");
    print_comment_text(sb, p->b->name ? p->b->name : "");
    sb_printf(sb,
              "\" stands for (q %c %d) * %.9g. */\n"
              "#define %s_SCALE %s\n#define %s_ZERO (%d)\n",
              p->form->zero < 0 ? '+' : '-', p->form->zero < 0 ? -p->form->zero : p->form->zero,
              (double)p->form->scale, macros, float_text(b->a, p->form->scale), macros,
              p->form->zero);
    if (in)
        quantise(sb, b, p, macros);
    else
        dequantise(sb, b, p, macros);
}

void io_forms_header(StrBuf *sb, const Bundle *b)
{
    bool any = false;
    for (int i = 0; i < b->nin; i++)
        any |= is_quantised(&b->in[i]);
    if (any)
        rounding(sb, b);
    for (int i = 0; i < b->nin; i++)
        port_form(sb, b, &b->in[i], true);
    for (int i = 0; i < b->nout; i++)
        port_form(sb, b, &b->out[i], false);
}

static void place(StrBuf *sb, const Bundle *b, const Port *p, bool in)
{
    const char *type = c_type(p->b->dtype);
    const char *base =
        b->memory ? arena_printf(b->a, "memory[%s]", b->memory[p->b->memory].index) : "arena";
    sb_printf(sb,
              "static inline %s *%s_%s_%s(const %s_ctx *ctx)\n{\n"
              "    return (%s *)(void *)(ctx->%s + %lld);\n}\n",
              type, b->io, in ? "in" : "out", p->field, b->name, type, base,
              (long long)p->b->offset);
}

void io_places_header(StrBuf *sb, const Bundle *b)
{
    if (!b->o->io_in_arena)
        return;
    sb_printf(sb,
              "\n/* Where inputs and outputs lie, in the arena. A run reads its inputs there and "
              "writes over them; its\n * outputs are there until the next input is written. "
              "Members of %s_inputs and %s_outputs, and both\n * pointers to such structs, may be "
              "NULL: what is not is copied. */\n",
              b->io, b->io);
    for (int i = 0; i < b->nin; i++)
        place(sb, b, &b->in[i], true);
    for (int i = 0; i < b->nout; i++)
        place(sb, b, &b->out[i], false);
}
