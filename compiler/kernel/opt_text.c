/* opt_text.c - layouts and opts as a file has them, for people and to be read again. */
#include <string.h>

#include "kernel.h"

/* A name of the model, which may hold any bytes: one line of ASCII, the beginning of a long one. */
void print_name(StrBuf *sb, const char *name)
{
    for (const char *t = name; t && *t && t - name < 80; t++)
        sb_write(sb, *t >= ' ' && *t <= '~' ? t : "?", 1);
}

void print_index(StrBuf *sb, const Context *c, Node *n)
{
    switch (n->op) {
    case OP_CONST: sb_printf(sb, "%lld", (long long)n->arg.i); return;
    case OP_VAR: print_name(sb, c->vars[n->arg.i].name); return;
    default: break;
    }
    sb_printf(sb, "%s(", op_info[n->op].text);
    for (uint32_t i = 0; i < n->nsrc; i++) {
        sb_puts(sb, i ? "," : "");
        print_index(sb, c, n->src[i]);
    }
    sb_puts(sb, ")");
}

void print_dims(StrBuf *sb, const Context *c, int rank, Node *const *dims)
{
    sb_puts(sb, "[");
    for (int i = 0; i < rank; i++) {
        sb_puts(sb, i ? "," : "");
        print_index(sb, c, dims[i]);
    }
    sb_puts(sb, "]");
}

void layout_print(StrBuf *sb, const Layout *l)
{
    if (!l->n)
        sb_puts(sb, " dense");
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        if (op->kind == LAYOUT_SPLIT || op->kind == LAYOUT_CUT || op->kind == LAYOUT_PITCH) {
            static const char *const name[] = {
                [LAYOUT_SPLIT] = "split", [LAYOUT_CUT] = "cut", [LAYOUT_PITCH] = "pitch"};
            sb_printf(sb, " %s(%d,%lld)", name[op->kind], op->axis, (long long)op->a);
        } else if (op->kind == LAYOUT_PAD) {
            sb_printf(sb, " pad(%d,%lld,%lld", op->axis, (long long)op->a, (long long)op->b);
            sb_printf(sb, op->fill ? ",%lld)" : ")", (long long)op->fill);
        } else {
            sb_puts(sb, " permute(");
            for (int j = 0; j < op->perm.n; j++)
                sb_printf(sb, j ? ",%d" : "%d", op->perm.axis[j]);
            sb_puts(sb, ")");
        }
    }
}

const char *const opt_name[OPT_COUNT] = {
#define OPT(id, text, ...) [OPT_##id] = text,
#include "opts.def"
};

const char *const opt_form[OPT_COUNT] = {
#define OPT(id, text, form, after) [OPT_##id] = form,
#include "opts.def"
};

const char *const opt_after[OPT_COUNT] = {
#define OPT(id, text, form, after) [OPT_##id] = after,
#include "opts.def"
};

const char *const bound_name[BOUND_COUNT] = {"", "grid", "lane", "warp", "cluster"};

void opt_print(StrBuf *sb, const Opt *o)
{
    if (opt_is_list(o->kind))
        sb_printf(sb, "%s %s", opt_name[o->kind], o->axis);
    else if (o->kind == OPT_BIND)
        sb_printf(sb, "%s %s %s", opt_name[o->kind], o->axis, bound_name[o->amount]);
    else
        sb_printf(sb, "%s %s %lld", opt_name[o->kind], o->axis, (long long)o->amount);
    if (o->depth)
        sb_printf(sb, " depth %lld", (long long)o->depth);
    if (o->tma)
        sb_puts(sb, " move tma");
}

/* A whole number of digits alone, from 1 to most, that is a word; the text goes on behind it. */
static bool read_number(const char **at, int64_t most, int64_t *v)
{
    const size_t digits = strspn(*at, "0123456789");
    bool good = digits > 0;
    *v = 0;
    for (size_t i = 0; i < digits && good; i++) {
        *v = *v * 10 + (*at)[i] - '0';
        good = *v <= most;
    }
    *at += digits;
    good &= **at == ' ' || !**at;
    *at += **at == ' ';
    return good && *v > 0;
}

/* These words are next; the text goes on behind them. */
static bool skip_words(const char **at, const char *words)
{
    const size_t n = strlen(words);
    if (strncmp(*at, words, n) || ((*at)[n] && (*at)[n] != ' '))
        return false;
    *at += n + ((*at)[n] == ' ');
    return true;
}

static int count_words(const char *text)
{
    int n = *text != 0;
    for (; *text; text++)
        n += *text == ' ';
    return n;
}

bool opt_read(Arena *a, const char *text, Opt *o)
{
    enum { MOST = 1 << 20, MOST_DEPTH = 1 << 10 };
    *o = (Opt){.kind = OPT_COUNT};
    for (int i = 0; i < OPT_COUNT && o->kind == OPT_COUNT; i++)
        if (skip_words(&text, opt_name[i]))
            o->kind = (OptKind)i;
    if (o->kind == OPT_COUNT || !*text)
        return false;
    if (opt_is_list(o->kind)) {
        const int n = count_words(text);
        o->axis = arena_strdup(a, text);
        return n == 1 || o->kind == OPT_ORDER || o->kind == OPT_JOIN || o->kind == OPT_TC;
    }
    const size_t axis = strcspn(text, " ");
    o->axis = arena_printf(a, "%.*s", (int)axis, text);
    text += axis + (text[axis] == ' ');
    if (o->kind == OPT_BIND) {
        for (int i = BOUND_GRID; i < BOUND_COUNT; i++)
            o->amount = strcmp(text, bound_name[i]) ? o->amount : i;
        return o->amount > 0;
    }
    bool good = read_number(&text, MOST, &o->amount);
    if (o->kind == OPT_STAGE && skip_words(&text, "depth"))
        good &= read_number(&text, MOST_DEPTH, &o->depth);
    o->tma = o->kind == OPT_STAGE && skip_words(&text, "move tma");
    return good && !*text;
}
