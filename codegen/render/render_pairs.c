/* render_pairs.c - sums of dots.
 *
 * Each dot adds to what is there: dot(a, dot(b, c)) for dot(a, 0) + dot(b, 0) + c. Where bytes are
 * multiplied by pairs, and are of few bits, pairs of i16 are added before they become i32:
 *
 *     s0 += pairs_sum(pairs_more(x1, w1, pairs_more(x0, w0)), c);     row 0
 *     s1 += pairs_sum(pairs_more(x3, w1, pairs_more(x2, w0)), c);     row 1
 *
 * A C compiler keeps the order of such calls, so all weights of a block would be in registers, or
 * rather in memory. Rows that share weights are taken dot by dot:
 *
 *     v0 = w0;  v1 = pairs(x0, v0);            v2 = pairs(x2, v0);
 *     v3 = w1;  v1 = pairs_more(x1, v3, v1);   v2 = pairs_more(x3, v3, v2);
 *     s0 += pairs_sum(v1, c);                  s1 += pairs_sum(v2, c);
 */
#include <string.h>

#include "language_c.h"
#include "render.h"

enum { LEAST = 2 };

typedef struct {
    Node *sum, *rest; /* of dots, and of what is added to them, or NULL */
    Terms dots;
    int pairs, total; /* N of the vN of pairs; of the vN of groups before, or -1 */
    bool written;
} PairSum;

static void sum_of_integers(Render *r, Node *n, Terms *terms, Terms *dots)
{
    for (int i = 0; i < 2; i++) {
        Node *x = n->src[i];
        if (is_named(r, x))
            vec_push(r->arena, terms->term, terms->n, x);
        else if (x->op == OP_ADD && x->dtype == n->dtype)
            sum_of_integers(r, x, terms, dots);
        else if (x->op == OP_REDUCE && is_dot(&r->l, x))
            vec_push(r->arena, dots->term, dots->n, x);
        else
            vec_push(r->arena, terms->term, terms->n, x);
    }
}

static bool find_sum(Render *r, Node *n, PairSum *out)
{
    Terms terms = {0};
    const bool lanes = is_vector(r, n);
    *out = (PairSum){.sum = n, .total = -1};
    if (n->op != OP_ADD || n->dtype != INGOT_I32)
        return false;
    sum_of_integers(r, n, &terms, &out->dots);
    if (!out->dots.n || (lanes && (terms.n > 1 || out->dots.n < LEAST)))
        return false;
    out->rest = terms.n ? terms.term[0] : NULL;
    for (int i = 1; i < terms.n; i++)
        out->rest = node_make(r->k->c, OP_ADD, INGOT_I32, (Arg){0}, 2,
                              (Node *[]){out->rest, terms.term[i]}, 0, NULL);
    return true;
}

static void render_rest(Render *r, const PairSum *s)
{
    const bool lanes = is_vector(r, s->sum);
    if (s->rest)
        render_operand(r, s->rest, lanes, true);
    else if (lanes)
        sb_printf(r->sb, "igrt_splat_i32x%d(0)", r->l.tile->lanes);
    else
        put(r, "0");
}

/* pairs_sum(pairs_more(.. pairs(..)), to) */
static void render_pairs(Render *r, Node *const *dot, int n, const char *to)
{
    StrBuf *out = r->sb, inner = {0};
    const char *pairs = NULL;
    r->sb = &inner;
    for (int i = 0; i < n; i++) {
        inner = (StrBuf){0};
        render_pair(r, dot[i], pairs);
        pairs = sb_take(r->sb, r->arena);
    }
    r->sb = out;
    sb_printf(r->sb, "igrt_pairs_sum_i32x%d(%s, %s)", r->l.tile->lanes, pairs, to);
}

/* "igrt_pairs_sum_i32x8(v1, " and what comes before the last pairs. */
static void render_total(Render *r, const PairSum *s)
{
    sb_printf(r->sb, "igrt_pairs_sum_i32x%d(v%d, ", r->l.tile->lanes, s->pairs);
    if (s->total < 0)
        render_rest(r, s);
    else
        sb_printf(r->sb, "v%d", s->total);
    put(r, ")");
}

bool render_sum_of_dots(Render *r, Node *n)
{
    PairSum s;
    const PairSum *written = map_get(&r->chains, (uint64_t)n->id + 1);
    if (written) {
        render_total(r, written);
        return true;
    }
    if (!find_sum(r, n, &s))
        return false;
    StrBuf *out = r->sb, inner = {0};
    r->sb = &inner;
    render_rest(r, &s);
    for (int i = 0, taken; i < s.dots.n; i += taken) {
        const int pairs = render_dot_pairs(r, s.dots.term + i, s.dots.n - i);
        const char *to = sb_take(r->sb, r->arena);
        taken = pairs ? pairs : 1;
        inner = (StrBuf){0};
        if (i + taken == s.dots.n)
            r->sb = out;
        if (pairs)
            render_pairs(r, s.dots.term + i, pairs, to);
        else
            render_dot(r, s.dots.term[i], to);
    }
    return true;
}

/* ---- several at once ------------------------------------------------------------------------- */

/* SumRun and sums up to where something else comes. */
typedef struct {
    const Stmt *stmt;
    int n;
    PairSum **chain;
    int nchain;
    Map let; /* by id + 1: the statement of what gets its name here */
} SumRun;

/* The sums of pairs in what is added. */
static void find_chains(Render *r, Node *n, SumRun *run)
{
    PairSum s;
    if (is_named(r, n) || n->op == OP_LOAD || n->op == OP_REDUCE || !is_vector(r, n))
        return;
    if (!find_sum(r, n, &s)) {
        for (uint32_t i = 0; i < n->nsrc; i++)
            find_chains(r, n->src[i], run);
        return;
    }
    for (int i = 0, pairs; i < s.dots.n; i += pairs)
        if ((pairs = render_dot_pairs(r, s.dots.term + i, s.dots.n - i)) == 0)
            return;
    PairSum *chain = NEW(r->arena, PairSum);
    *chain = s;
    vec_push(r->arena, run->chain, run->nchain, chain);
}

/* What dot d of both multiplies, or NULL: each has its own. */
static Node *shared_operand(const PairSum *a, const PairSum *b, int d)
{
    Node *const *x = a->dots.term[d]->src[0]->src, *const *y = b->dots.term[d]->src[0]->src;
    return x[0] == y[0] ? x[0] : x[1] == y[1] ? x[1] : NULL;
}

static bool share_operands(const PairSum *a, const PairSum *b)
{
    bool same = a->dots.n == b->dots.n;
    for (int i = 0; same && i < a->dots.n; i++)
        same = shared_operand(a, b, i) != NULL;
    return same;
}

/* The word that has a digit. */
static const Node *word_of(const Node *n)
{
    while (n->op != OP_LOAD && op_is_alu(n->op))
        n = n->src[0];
    return n;
}

/* Dots of a word come one after the other, in all rows: it is loaded once, and then done with. */
static void sort_by_words(Render *r, PairSum *const *row, int n)
{
    const int dots = row[0]->dots.n;
    PairSum was[2] = {*row[0], *row[1]};
    int *from = NEWN(r->arena, int, dots), count = 0;
    bool *taken = NEWN(r->arena, bool, dots);
    Node **term = NEWN(r->arena, Node *, dots);
    for (int i = 0; i < dots; i++)
        for (int j = i; j < dots; j++)
            if (!taken[j] && (j == i || word_of(shared_operand(&was[0], &was[1], j)) ==
                                            word_of(shared_operand(&was[0], &was[1], i)))) {
                taken[j] = true;
                from[count++] = j;
            }
    for (int i = 0; i < n; i++) {
        memcpy((void *)term, row[i]->dots.term, (size_t)dots * sizeof *term);
        for (int d = 0; d < dots; d++)
            row[i]->dots.term[d] = term[from[d]];
    }
}

/* Is all of n known before the sums of the run go on? */
static bool is_known(Render *r, const SumRun *run, Node *n)
{
    if (n->op == OP_RANGE || n->op == OP_CONST || n->op == OP_BUFFER)
        return true;
    for (int i = 0; i < run->n && n->op == OP_REDUCE; i++)
        if (run->stmt[i].kind == STMT_UPDATE && run->stmt[i].node == n)
            return false;
    if (is_named(r, n))
        return true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!is_known(r, run, n->src[i]))
            return false;
    return true;
}

/* What n needs gets its name. */
static void name_before(Render *r, const SumRun *run, Node *n)
{
    if (n->op == OP_RANGE || n->op == OP_CONST || n->op == OP_BUFFER || is_named(r, n))
        return;
    for (uint32_t i = 0; i < n->nsrc; i++)
        name_before(r, run, n->src[i]);
    const Stmt *let = map_get(&run->let, (uint64_t)n->id + 1);
    if (let)
        render_statement(r, let);
}

/* "v4 = ", or where it begins "igrt_i32x8 v4 = " */
static void begin_line(Render *r, const SumRun *run, int *number)
{
    const bool first = *number < 0;
    if (first)
        *number = r->nvalue++;
    render_indent(r, run->stmt->depth);
    if (first)
        sb_printf(r->sb, "igrt_i32x%d ", r->l.tile->lanes);
    sb_printf(r->sb, "v%d = ", *number);
}

/* Rows that share weights: dot by dot. */
static void render_together(Render *r, const SumRun *run, PairSum *const *row, int n)
{
    const Terms *dots = &row[0]->dots;
    sort_by_words(r, row, n);
    for (int i = 0; i < n; i++)
        row[i]->pairs = -1;
    for (int d = 0, first = 0, group = 0; d < dots->n; d++) {
        if (d == first + group) {
            first = d;
            group = render_dot_pairs(r, dots->term + d, dots->n - d);
        }
        for (int i = 0; i < n; i++) {
            char to[16];
            name_before(r, run, row[i]->dots.term[d]);
            begin_line(r, run, &row[i]->pairs);
            snprintf(to, sizeof to, "v%d", row[i]->pairs);
            render_pair(r, row[i]->dots.term[d], d == first ? NULL : to);
            put(r, ";\n");
        }
        for (int i = 0; i < n && d + 1 == first + group && d + 1 < dots->n; i++) {
            int total = row[i]->total;
            if (total < 0 && row[i]->rest)
                name_before(r, run, row[i]->rest);
            begin_line(r, run, &total);
            render_total(r, row[i]);
            row[i]->total = total;
            put(r, ";\n");
        }
    }
    for (int i = 0; i < n; i++)
        map_put(&r->chains, (uint64_t)row[i]->sum->id + 1, row[i]);
}

void render_chains(Render *r, const Stmt *s)
{
    const Stmt *const end = r->l.stmt + r->l.n;
    SumRun run = {.stmt = s};
    if (s < r->chained || !r->t->machine.pairs || !r->l.tile->four || tile_dot(r->l.tile) != 4 ||
        r->l.tile->lanes != r->t->machine.lanes)
        return;
    for (; s < end && (s->kind == STMT_LET || s->kind == STMT_UPDATE); s++, run.n++)
        if (s->depth != run.stmt->depth)
            break;
    r->chained = s + !run.n;
    for (int i = 0; i < run.n; i++) {
        if (run.stmt[i].kind == STMT_UPDATE)
            find_chains(r, update_value(&run.stmt[i]), &run);
        else
            map_put(&run.let, (uint64_t)run.stmt[i].node->id + 1, (void *)&run.stmt[i]);
    }
    PairSum **row = NEWN(r->arena, PairSum *, run.nchain + 1);
    for (int i = 0, n; i < run.nchain; i++) {
        n = 0;
        for (int j = i; j < run.nchain; j++)
            if (!run.chain[j]->written && share_operands(run.chain[i], run.chain[j]) &&
                is_known(r, &run, run.chain[j]->sum))
                row[n++] = run.chain[j];
        for (int j = 0; j < n; j++)
            row[j]->written = true;
        if (n >= LEAST)
            render_together(r, &run, row, n);
    }
    map_free(&run.let);
}
