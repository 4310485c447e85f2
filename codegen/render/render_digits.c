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
#include "kernel.h"
#include "render.h"

typedef struct DigitSum {
    Node *x, *load, *shift; /* NULL: none */
    Node *along;            /* the loop over the bytes of a word */
    uint32_t mask;
    double more; /* what is added to each digit */
    /* Factors are packed: once for all sums of the loop's body that have them, the first of which
     * this is; NULL: they are not. */
    Node *packs;
    int packed;  /* 1 + the depth at which they have been */
    Node *turns; /* the loop in whose every iteration they are packed before it; or NULL */
    int number;  /* N of the factors qN, then of all iterations */
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

/* 4 r1: the second loop of two steps, as the place of a digit in its byte. */
static bool is_half(const DigitSum *d, const Node *loop)
{
    enum { HALF = 4 };
    const Node *n = d->shift;
    while (n->op == OP_CAST)
        n = n->src[0];
    if (n->op != OP_MUL || !node_is_const_i(n->src[1], HALF))
        return false;
    n = n->src[0];
    while (n->op == OP_CAST)
        n = n->src[0];
    return n == loop && loop->hi == 1;
}

/* Are the factors those of all eight digits of a word, and may they be rounded?  A word's digits
 * are multiplied by the sum of what is added to them besides. */
static bool can_pack(Render *r, const Node *sum, const DigitSum *d)
{
    enum { DIGIT = 15, MOST_MORE = 16, LOOPS = 2 };
    int n;
    Node *const *loop = loops_of(&r->l, sum, &n);
    return r->t->rounds && r->l.tile->trigger == TRIGGER_COPIED && n == LOOPS && d->mask == DIGIT &&
           d->shift && d->more == (double)(int)d->more && d->more >= -MOST_MORE &&
           d->more <= MOST_MORE && (loop[0] == d->along || loop[1] == d->along) &&
           is_half(d, loop[loop[0] == d->along]) && !depends_on(d->load, loop[loop[0] == d->along]);
}

/* Sums that follow each other in the body of a loop, and have the same factors. */
static void find_packed(Render *r)
{
    Node *first = NULL;
    for (int i = 0; i < r->l.n; i++) {
        const Stmt *s = &r->l.stmt[i];
        if (s->kind == STMT_LOOP || s->kind == STMT_END)
            first = NULL;
        if (s->kind != STMT_UPDATE || !render_is_digits(r, s->node))
            continue;
        DigitSum *d = r->digits[s->node->id];
        const DigitSum *as = first ? r->digits[first->id] : NULL;
        if (!can_pack(r, s->node, d))
            continue;
        const bool same = as && as->x == d->x && as->more == d->more && as->along == d->along;
        d->packs = first = same ? first : s->node;
        r->needs |= NEED_BULK;
    }
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
    find_packed(r);
}

bool render_is_packed(const Render *r, const Node *n)
{
    return render_is_digits(r, n) && r->digits[n->id]->packs;
}

bool render_packs_too(const Render *r, const Node *n)
{
    return render_is_packed(r, n) && r->digits[n->id]->packs != n;
}

void render_end_packed(Render *r, int depth)
{
    for (uint32_t i = 0; r->digits && i < r->l.nknown; i++)
        if (r->digits[i] && r->digits[i]->packed > depth + 1) {
            r->digits[i]->packed = 0;
            r->packed = -1;
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

/* r0*8 + v4: where the digit begins. */
static void render_place(Render *r, const DigitSum *d)
{
    render_range(r, d->along);
    put(r, "*8");
    if (d->shift) {
        put(r, " + ");
        render_expr(r, d->shift);
    }
}

/* igrt_packed_sum(q3, word), behind a line that makes q3 of the factors. */
static void packed_sum(Render *r, Node *sum)
{
    const Node *first = r->digits[sum->id]->packs;
    DigitSum *d = r->digits[first->id];
    if (d->turns) {
        sb_printf(r->sb, "igrt_packed_sum(q%d[", d->number);
        render_range(r, d->turns);
        put(r, "], ");
        render_word_of(r, r->digits[sum->id]->load, true);
        put(r, ")");
        return;
    }
    const int number = r->number[first->id];
    if (!d->packed) {
        d->packed = r->depth + 1;
        r->packed = number;
        for (int i = 0; i <= r->depth; i++)
            sb_puts(&r->before, "    ");
        sb_printf(&r->before, "const igrt_packed q%d = igrt_pack(s%d, %d);\n", number, number,
                  (int)d->more);
    }
    sb_printf(r->sb, "igrt_packed_sum(q%d, ", number);
    render_word_of(r, r->digits[sum->id]->load, true);
    put(r, ")");
}

/* The loops in an iteration of a loop, of which one adds to this sum: up to their end. */
static int loops_around(const Stmt *loop, int end, int at, int *last)
{
    int first = at;
    while (loop[first].kind != STMT_LOOP || loop[first].depth != loop->depth + 1)
        first--;
    for (*last = at; *last < end && loop[*last].depth > loop->depth + 1; ++*last)
        ;
    return first;
}

/* Nothing is done in these loops but packed sums, and nothing stands before them in an iteration.
 */
static bool are_packed_alone(const Render *r, const Stmt *loop, int first, int last)
{
    for (int i = 1; i < first; i++)
        if (loop[i].kind != STMT_ACC)
            return false;
    for (int i = first; i <= last; i++)
        if (loop[i].kind != STMT_LOOP && loop[i].kind != STMT_END && loop[i].kind != STMT_LET &&
            !(loop[i].kind == STMT_UPDATE && render_is_packed(r, loop[i].node)))
            return false;
    return true;
}

/* const igrt_packed q5[4]: what one iteration packs, of statements first to last. */
static void pack_ahead(Render *r, const Stmt *loop, Node *sum, int first, int last)
{
    DigitSum *d = r->digits[sum->id];
    const int own = r->nvalue++;
    d->number = r->nvalue++;
    render_indent(r, loop->depth);
    sb_printf(r->sb, "igrt_packed q%d[%lld];\n", d->number, (long long)loop->node->hi + 1);
    render_indent(r, loop->depth);
    render_loop(r, loop);
    render_indent(r, loop->depth + 1);
    sb_printf(r->sb, "igrt_few s%d;\n", own);
    for (int i = first; i <= last; i++) {
        r->number[sum->id] = own;
        if (loop[i].kind == STMT_LET && render_in_digits(r, loop[i].node))
            continue;
        if (loop[i].kind != STMT_UPDATE || loop[i].node == sum)
            render_with_lines(r, &loop[i]);
    }
    r->number[sum->id] = -1;
    render_indent(r, loop->depth + 1);
    sb_printf(r->sb, "q%d[", d->number);
    render_range(r, loop->node);
    sb_printf(r->sb, "] = igrt_pack(s%d, %d);\n", own, (int)d->more);
    render_loop_end(r, loop->depth);
    d->turns = loop->node;
}

int render_packs_ahead(Render *r, const Stmt *s, int *last)
{
    int64_t extent;
    bool rolled, found = false;
    if (s->kind != STMT_LOOP || !r->digits || s->from || s->zero || s->upto ||
        !idx_value(s->node->src[0], &extent) || !render_is_short(r, s->node, &rolled) || rolled)
        return 0;
    const int end = stmt_end(s, 0);
    int first = 0;
    for (int i = 1; i < end; i++) {
        if (s[i].kind != STMT_UPDATE || !render_is_packed(r, s[i].node) ||
            render_packs_too(r, s[i].node) || s[i].depth <= s->depth + 1)
            continue;
        int from, upto;
        from = loops_around(s, end, i, &upto);
        if ((found && from != first) || !are_packed_alone(r, s, from, upto))
            return 0;
        pack_ahead(r, s, s[i].node, first = from, *last = upto);
        r->packed = r->digits[s[i].node->id]->number;
        found = true;
    }
    if (found)
        render_bulk_there(r, s->depth, extent - 1);
    return found ? first : 0;
}

bool render_is_ahead(const Render *r, const Node *sum)
{
    return render_is_packed(r, sum) && r->digits[r->digits[sum->id]->packs->id]->turns;
}

/* igrt_digits_add(s3, x, word, r0 * 8 + v4, 15u) */
void render_digits_add(Render *r, Node *sum)
{
    const DigitSum *d = r->digits[sum->id];
    if (d->packs) {
        sb_printf(r->sb, "s%d.x[(", r->number[sum->id]);
        render_place(r, d);
        put(r, ")/4] = ");
        render_bare(r, d->x);
        put(r, ";\n");
        return;
    }
    sb_printf(r->sb, "s%d = igrt_digits_add(s%d, ", r->number[sum->id], r->number[sum->id]);
    render_bare(r, d->x);
    put(r, ", ");
    render_word_of(r, d->load, false);
    put(r, ", ");
    render_place(r, d);
    sb_printf(r->sb, ", %uu);\n", d->mask);
}

/* igrt_digits_sum(s3, -8.0f) */
void render_digits_sum(Render *r, Node *sum)
{
    if (render_is_packed(r, sum)) {
        packed_sum(r, sum);
        return;
    }
    sb_printf(r->sb, "igrt_digits_sum(s%d, ", r->number[sum->id]);
    render_number(r, r->digits[sum->id]->more, INGOT_F32);
    put(r, ")");
}
