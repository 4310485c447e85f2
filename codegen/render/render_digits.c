/* render_digits.c - digits of a word are multiplied where they lie (GPUs).
 *
 *     s3 = igrt_muladd_f32(x, (float)((byte >> 4 * r1) & 15) - 8.0f, s3);
 *           ->
 *     s3 = igrt_digits_add(s3, x, word, r0 * 8 + v4, 15u);
 *     ..
 *     igrt_digits_sum(s3, -8.0f)
 *
 * Bits of a word, taken for those of a float, are a subnormal number: the digit times a power of
 * two, which x is divided by.  So a digit takes the operation that leaves its bits and the
 * multiply-add, where a shift, an exponent and a subtraction came besides; a GPU does what is no
 * multiply-add at half the rate.  What is added to each digit is multiplied by the sum of all x,
 * once: rows that an item has of the matrix share that sum. */
#include "render.h"

typedef struct DigitSum {
    Node *x, *load, *shift; /* NULL: none */
    Node *along;            /* the loop over the bytes of a word */
    uint32_t mask;
    double more; /* what is added to each digit */
} DigitSum;

static bool has_name(const Render *r, const Node *n)
{
    return n->id < r->l.nknown && r->l.named[n->id];
}

/* A byte of a word as a float: all of it, or some of its bits. */
static bool is_digit(Render *r, Node *n, DigitSum *d)
{
    if (n->op != OP_CAST || n->dtype != INGOT_F32 || has_name(r, n) || n->src[0]->dtype != INGOT_U8)
        return false;
    Node *byte = n->src[0];
    d->mask = UINT8_MAX;
    if (byte->op == OP_AND && byte->src[1]->op == OP_CONST && !has_name(r, byte)) {
        d->mask = (uint32_t)byte->src[1]->arg.i & UINT8_MAX;
        byte = byte->src[0];
        if (byte->op == OP_SHR && !has_name(r, byte)) {
            d->shift = byte->src[1];
            byte = byte->src[0];
        }
    }
    int64_t extent;
    d->load = byte;
    d->along = byte->op == OP_LOAD && byte->nsrc == 3 && !byte->arg.i && byte->id < r->l.nknown
                   ? render_run_of(r, byte)
                   : NULL;
    return d->mask && d->along && idx_value(d->along->src[0], &extent) &&
           extent == (int64_t)sizeof(uint32_t) && !is_vector(r, byte);
}

/* A whole number is added to it, or none. */
static bool is_digit_and(Render *r, Node *n, DigitSum *d)
{
    enum { MOST = 1 << 16 };
    if (n->op == OP_ADD && n->src[1]->op == OP_CONST && !has_name(r, n)) {
        d->more = node_float(n->src[1]);
        n = n->src[0];
    }
    return d->more >= -MOST && d->more <= MOST && is_digit(r, n, d);
}

/* All loops of the sum are written out, so where a digit lies is known. */
static bool is_written_out(Render *r, Node *sum)
{
    int n;
    Node *const *loop = loops_of(&r->l, sum, &n);
    for (int i = 0; i < n; i++) {
        bool rolled;
        if (!idx_value(loop[i]->src[0], NULL) || !render_is_short(r, loop[i], &rolled) || rolled)
            return false;
    }
    return true;
}

static bool is_digit_sum(Render *r, Node *sum, DigitSum *d)
{
    Node *x = sum->src[0];
    if (reduce_form(&r->l, sum) != REDUCE_LOOP || sum->op != OP_REDUCE || reduce_size(sum) > 1 ||
        sum->arg.i != INGOT_REDUCE_ADD || sum->dtype != INGOT_F32 || is_vector(r, sum) ||
        x->op != OP_MUL || has_name(r, x) || !is_written_out(r, sum))
        return false;
    for (int i = 0; i < 2; i++) {
        *d = (DigitSum){.x = x->src[1 - i]};
        if (is_digit_and(r, x->src[i], d))
            return true;
    }
    return false;
}

/* Loads that are read otherwise, too. */
static void keep_loads(Render *r, Node *n, bool *seen)
{
    if (n->id >= r->l.nknown || seen[n->id] || render_is_digits(r, n))
        return;
    seen[n->id] = true;
    r->digit_load[n->id] = false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        keep_loads(r, n->src[i], seen);
}

void render_find_digits(Render *r)
{
    r->digits = NULL;
    if (!r->lang->runs || !r->l.tile->across || r->l.tile->tc)
        return;
    r->digits = NEWN(r->arena, struct DigitSum *, r->l.nknown);
    r->digit_load = NEWN(r->arena, bool, r->l.nknown);
    bool *seen = NEWN(r->arena, bool, r->l.nknown);
    for (int i = 0; i < r->l.n; i++) {
        const Stmt *s = &r->l.stmt[i];
        DigitSum d;
        if (s->kind != STMT_UPDATE || s->term || s->node->id >= r->l.nknown ||
            !is_digit_sum(r, s->node, &d))
            continue;
        r->digits[s->node->id] = NEW(r->arena, DigitSum);
        *r->digits[s->node->id] = d;
        r->digit_load[d.load->id] = true;
        r->needs |= NEED_RUN;
    }
    for (int i = 0; i < r->l.n; i++) {
        const Stmt *s = &r->l.stmt[i];
        const bool is_load = s->kind == STMT_LET && r->digit_load[s->node->id];
        if (s->kind == STMT_UPDATE && render_is_digits(r, s->node))
            keep_loads(r, r->digits[s->node->id]->x, seen);
        else if (s->kind == STMT_UPDATE)
            keep_loads(r, update_value(s), seen);
        else if ((s->kind == STMT_LET || s->kind == STMT_STORE) && !is_load)
            keep_loads(r, s->node, seen);
    }
}

bool render_is_digits(const Render *r, const Node *n)
{
    return r->digits && n->id < r->l.nknown && r->digits[n->id];
}

bool render_in_digits(const Render *r, const Node *load)
{
    return r->digits && load->id < r->l.nknown && r->digit_load[load->id];
}

/* igrt_digits_add(s3, x, word, r0 * 8 + v4, 15u) */
void render_digits_add(Render *r, Node *sum)
{
    const DigitSum *d = r->digits[sum->id];
    sb_printf(r->sb, "s%d = igrt_digits_add(s%d, ", r->number[sum->id], r->number[sum->id]);
    render_bare(r, d->x);
    put(r, ", ");
    render_word_of(r, d->load);
    put(r, ", ");
    render_range(r, d->along);
    put(r, "*8");
    if (d->shift) {
        put(r, " + ");
        render_expr(r, d->shift);
    }
    sb_printf(r->sb, ", %uu);\n", d->mask);
}

/* igrt_digits_sum(s3, -8.0f) */
void render_digits_sum(Render *r, Node *sum)
{
    sb_printf(r->sb, "igrt_digits_sum(s%d, ", r->number[sum->id]);
    render_number(r, r->digits[sum->id]->more, INGOT_F32);
    put(r, ")");
}
