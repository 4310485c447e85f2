/* bundle_expr.c - integer expressions over the run-time integers, in the C of model.c.
 * The bounds of a node say where C's truncating / and % are already the floor ones. */
#include <string.h>

#include "bundle.h"

/* SYM_BATCH: the place of a run-time integer in sym[]. */
const char *sym_name(const Bundle *b, int var, char out[VAR_NAME_BYTES + 8])
{
    char name[VAR_NAME_BYTES];
    var_name(b->c, var, name);
    snprintf(out, VAR_NAME_BYTES + 8, "SYM_%s", name + 2);
    for (char *p = out; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return out;
}

const char *sym_place(Bundle *b, int var)
{
    char name[VAR_NAME_BYTES + 8];
    b->needs |= NEED_SYM;
    return arena_printf(b->a, "sym[%s]", sym_name(b, var, name));
}

static void infix(StrBuf *sb, Bundle *b, Node *n, const char *sign)
{
    sb_puts(sb, "(");
    print_expr(sb, b, n->src[0]);
    sb_printf(sb, " %s ", sign);
    print_expr(sb, b, n->src[1]);
    sb_puts(sb, ")");
}

static void call(StrBuf *sb, Bundle *b, Node *n, const char *function)
{
    b->needs |= NEED_NUM;
    sb_printf(sb, "%s(", function);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        sb_puts(sb, i ? ", " : "");
        print_expr(sb, b, n->src[i]);
    }
    sb_puts(sb, ")");
}

void print_expr(StrBuf *sb, Bundle *b, Node *n)
{
    bool natural = n->nsrc == 2 && n->src[0]->lo >= 0 && n->src[1]->lo > 0;
    switch (n->op) {
    case OP_CONST:
        if (n->arg.i > INT32_MAX || n->arg.i < -INT32_MAX)
            sb_printf(sb, n->arg.i < 0 ? "(-INT64_C(%lld))" : "INT64_C(%lld)",
                      n->arg.i < 0 ? -(long long)n->arg.i : (long long)n->arg.i);
        else
            sb_printf(sb, n->arg.i < 0 ? "(%lld)" : "%lld", (long long)n->arg.i);
        return;
    case OP_VAR: sb_puts(sb, sym_place(b, (int)n->arg.i)); return;
    case OP_ADD: infix(sb, b, n, "+"); return;
    case OP_SUB: infix(sb, b, n, "-"); return;
    case OP_MUL: infix(sb, b, n, "*"); return;
    case OP_NEG:
        sb_puts(sb, "(-");
        print_expr(sb, b, n->src[0]);
        sb_puts(sb, ")");
        return;
    case OP_FLOORDIV:
        if (natural)
            infix(sb, b, n, "/");
        else
            call(sb, b, n, "igrt_floordiv_i64");
        return;
    case OP_MOD:
        if (natural)
            infix(sb, b, n, "%");
        else
            call(sb, b, n, "igrt_mod_i64");
        return;
    case OP_DIV: call(sb, b, n, "igrt_div_i64"); return;
    case OP_MIN: call(sb, b, n, "igrt_min_i64"); return;
    case OP_MAX: call(sb, b, n, "igrt_max_i64"); return;
    case OP_LT: infix(sb, b, n, "<"); return;
    case OP_LE: infix(sb, b, n, "<="); return;
    case OP_EQ: infix(sb, b, n, "=="); return;
    case OP_NE:
    case OP_XOR: /* of bools */ infix(sb, b, n, "!="); return;
    case OP_AND: infix(sb, b, n, "&&"); return;
    case OP_OR: infix(sb, b, n, "||"); return;
    case OP_NOT:
        sb_puts(sb, "!");
        print_expr(sb, b, n->src[0]);
        return;
    case OP_CAST: print_expr(sb, b, n->src[0]); return;
    case OP_WHERE:
        sb_puts(sb, "(");
        print_expr(sb, b, n->src[0]);
        sb_puts(sb, " ? ");
        print_expr(sb, b, n->src[1]);
        sb_puts(sb, " : ");
        print_expr(sb, b, n->src[2]);
        sb_puts(sb, ")");
        return;
    default: BUG("a dim of the plan holds '%s'", op_info[n->op].text);
    }
}
