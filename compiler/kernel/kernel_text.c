/* kernel_text.c - what a kernel is, as bytes: equal kernels have one text, and others have another
 * one. Its hashes are what a kernel is known by: in a plan, in a .sched file, in the tuner's
 * database.
 *
 *     nodes, the sink last | its numbers | arguments, with layouts | opts
 *         | names of loops, where they are not the usual ones
 *
 * No part can be taken for another one, nor its end for something in it: nodes and numbers begin
 * with a letter and an argument with its type (a byte below '0'), an opt with a digit, a loop with
 * '#'.  Lists without a length have one by what stands before them: a node has so many sources, an
 * argument so many dims, a permutation as many axes as there are. tests/unit/keys_test.c has a row
 * for each property that has to count. */
#include <string.h>

#include "kernels.h"

_Static_assert(INGOT_DTYPE_COUNT < '#', "a type begins what a letter, a digit or '#' does not");

void dim_key(StrBuf *sb, Node *d)
{
    uint64_t head[2] = {(uint64_t)d->op << 8 | d->nsrc, d->arg.bits};
    sb_write(sb, head, sizeof head);
    for (uint32_t i = 0; i < d->nsrc; i++)
        dim_key(sb, d->src[i]);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

enum { MAX_TEXT = 64 }; /* of an op's name, and a head */

/* at: by id the place of a node, from 1. */
static void text_of_custom(StrBuf *sb, Node *t, const uint32_t *at)
{
    const CustomUse *use = t->arg.ptr;
    const int count[] = {use->op->nint, use->op->nfloat};
    sb_write(sb, use->op->name, strlen(use->op->name) + 1);
    sb_write(sb, count, sizeof count);
    sb_write(sb, use->ints, (size_t)use->op->nint * sizeof *use->ints);
    sb_write(sb, use->floats, (size_t)use->op->nfloat * sizeof *use->floats);
    for (uint32_t j = 0; j < t->nsrc; j++)
        sb_write(sb, &at[t->src[j]->id], sizeof *at);
}

/* A counter of parts is known by how many there are: which number it has says what plans were made
 * before. */
static uint64_t number_of(const Kernel *k, const Node *t)
{
    const Var *v = t->op == OP_VAR ? &k->c->vars[t->arg.i] : NULL;
    return v && v->kind == VAR_PART ? ~(uint64_t)v->hi : t->arg.bits;
}

static void text_of_nodes(StrBuf *sb, const Kernel *k, uint32_t *at, const bool *blank)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        const bool custom = t->op == OP_CUSTOM, hidden = blank && blank[t->id];
        uint64_t head[3] = {t->dtype, custom || hidden ? 0 : number_of(k, t), t->nsrc};
        /* an op's name is the same when ops are added; no op is called blank */
        const char *text = hidden ? "blank" : op_info[t->op].text;
        char *end = sb_room(sb, MAX_TEXT + t->nsrc * sizeof *at);
        for (; *text; text++)
            *end++ = *text;
        memcpy(end, head, sizeof head);
        end += sizeof head;
        for (uint32_t j = 0; j < t->nsrc && !custom; j++, end += sizeof *at)
            memcpy(end, &at[t->src[j]->id], sizeof *at);
        sb->len = (size_t)(end - sb->data);
        at[t->id] = (uint32_t)i + 1;
        if (custom)
            text_of_custom(sb, t, at);
    }
}

/* ---- arguments and opts ---------------------------------------------------------------------- */

static void text_of_layout(StrBuf *sb, const Layout *l)
{
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        int64_t part[5] = {op->kind, op->axis, op->a, op->b, op->fill};
        sb_write(sb, part, sizeof part);
        sb_write(sb, op->perm.axis, op->kind == LAYOUT_PERMUTE ? (size_t)op->perm.n : 0);
    }
}

static void text_of_argument(StrBuf *sb, const KernelArg *arg, bool decided)
{
    uint64_t head[4] = {(uint64_t)arg->dtype, (uint64_t)arg->rank,
                        (uint64_t)arg->written << 1 | (uint64_t)arg->read,
                        decided ? (uint64_t)arg->layout.n : 0};
    sb_write(sb, head, sizeof head);
    for (int j = 0; j < arg->rank; j++)
        dim_key(sb, arg->dims[j]);
    if (decided)
        text_of_layout(sb, &arg->layout);
    if (arg->beyond.from) {
        sb_printf(sb, "beyond %d %d %a ", arg->beyond.axis, arg->beyond.row, arg->beyond.value);
        dim_key(sb, arg->beyond.from);
    }
}

static void text_of_opt(StrBuf *sb, const Opt *o)
{
    bool all = opt_is_list(o->kind);
    sb_puts(sb, opt_name[o->kind]); /* the same when opts are added */
    sb_puts(sb, " ");
    sb_puts(sb, all ? "" : o->axis);
    sb_puts(sb, " ");
    sb_number(sb, o->amount);
    sb_puts(sb, " ");
    sb_puts(sb, all ? o->axis : "");
    sb_puts(sb, ";");
    if (o->depth || o->tma)
        sb_printf(sb, "depth %lld%s;", (long long)o->depth, o->tma ? " tma" : "");
}

/* ---- loops ----------------------------------------------------------------------------------- */

typedef struct {
    Axis *axis;
    int n;
} AxisList;

static void add_axis(AxisList *x, Node *range, char letter, int *number)
{
    for (int i = 0; i < x->n; i++)
        if (x->axis[i].range == range)
            return;
    Axis *one = &x->axis[x->n++];
    one->range = range;
    one->staged = letter == 'p';
    one->reduced = one->staged || letter == 'r';
    snprintf(one->name, sizeof one->name, "%c%d", letter, (*number)++);
}

/* Those of an END's loops that are no other's. */
static void add_loops(AxisList *x, Node *end, char letter, int *number)
{
    for (uint32_t i = (uint32_t)end_stores(end); i < end->nsrc; i++)
        if (end->src[i]->op == OP_RANGE)
            add_axis(x, end->src[i], letter, number);
}

/* The loops of a kernel with the names that they have in most of them: i0, i1, .. as the END nests
 * them, r0, r1, .. of reduces and p0, p1, .. of places in the order of the nodes, h0, h1, .. of
 * further ENDs. */
static AxisList usual_axes(Arena *a, const Kernel *k)
{
    int n, ni = 0, nr = 0, np = 0, nh = 0;
    Node *const *order = kernel_nodes(k, &n);
    AxisList x = {.axis = NEWN(a, Axis, n)};
    add_loops(&x, k->sink->src[0], 'i', &ni);
    for (int staged = 0; staged < 2; staged++)
        for (int i = 0; i < n; i++) {
            int nown;
            Node *const *own = own_ranges(order[i], &nown);
            for (int j = 0; j < nown && order[i]->op == (staged ? OP_STAGE : OP_REDUCE); j++)
                add_axis(&x, own[j], staged ? 'p' : 'r', staged ? &np : &nr);
        }
    for (uint32_t i = 1; i < k->sink->nsrc; i++)
        add_loops(&x, k->sink->src[i], 'h', &nh);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < x.n && order[i]->op == OP_SCAN; j++)
            x.axis[j].scanned |= order[i]->src[1] == x.axis[j].range && !x.axis[j].reduced;
    return x;
}

static bool same_axis(const Axis *x, const Axis *y)
{
    return x->range == y->range && x->reduced == y->reduced && x->staged == y->staged &&
           x->scanned == y->scanned && !strcmp(x->name, y->name);
}

/* The order of loops and their names, which opts speak of, where they do not follow from the
 * nodes. */
static void text_of_axes(StrBuf *sb, Arena *a, const Kernel *k)
{
    const AxisList usual = usual_axes(a, k);
    bool same = usual.n == k->naxis;
    for (int i = 0; i < k->naxis && same; i++)
        same = same_axis(&usual.axis[i], &k->axes[i]);
    for (int i = 0; i < k->naxis && !same; i++) {
        const Axis *x = &k->axes[i];
        sb_printf(sb, "#%s %d%d%d %lld ", x->name, x->reduced, x->staged, x->scanned,
                  (long long)x->range->arg.i);
        dim_key(sb, x->range->src[0]);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

void kernel_text(StrBuf *sb, Arena *a, const Kernel *k, bool decided, const bool *blank)
{
    text_of_nodes(sb, k, NEWN(a, uint32_t, k->c->nnode), blank);
    for (int i = 0; i < k->nscalar; i++)
        sb_puts(sb, k->scalars[i].whole ? "whole" : "any");
    for (int i = 0; i < k->narg; i++)
        text_of_argument(sb, &k->args[i], decided);
    for (int i = 0; i < k->narg && decided && kernel_has_boxes(k); i++)
        if (k->args[i].same) /* nest_place() */
            sb_printf(sb, "same %d %d ", i, k->args[i].same);
    for (int i = 0; i < k->nopt && decided; i++)
        text_of_opt(sb, &k->opts[i]);
    text_of_axes(sb, a, k);
    if (k->device)
        sb_printf(sb, "device %d", k->device);
}

/* What a kernel's text has by name alone, for whoever compares it with those of other models:
 * bounds of run-time sizes, functions of the user's. */
static void text_around(StrBuf *sb, const Kernel *k)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    for (int i = 0; i < k->nvar; i++) {
        const Var *v = &k->c->vars[k->vars[i]];
        const int64_t bounds[] = {v->lo, v->hi};
        sb_write(sb, bounds, sizeof bounds);
    }
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_CUSTOM) {
            const CustomOp *op = ((const CustomUse *)order[i]->arg.ptr)->op;
            sb_write(sb, &op->bytes, sizeof op->bytes);
            sb_write(sb, op->text, op->bytes);
        }
}

uint64_t kernel_hash(const Kernel *k, uint64_t seed)
{
    const uint64_t serial = (uint64_t)k->serial << 32; /* no seed is that large */
    Arena *a = arena_new();
    StrBuf text = {0};
    kernel_text(&text, a, k, true, NULL);
    text_around(&text, k);
    uint64_t h = hash_bytes(seed ^ serial, text.data, text.len) | 1;
    sb_free(&text);
    arena_free(a);
    return h;
}

/* ---- the record ------------------------------------------------------------------------------ */
