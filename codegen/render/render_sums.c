/* render_sums.c - four sums whose terms are in lanes, and which are stored side by side, are joined
 * and stored together.
 *
 *     v1 = igrt_hadd_f32x16(s1);   a0[v] = v1 * 0.125f;
 *     v2 = igrt_hadd_f32x16(s2);   a0[v + 1] = v2 * 0.125f;
 *     v3 = ..                      a0[v + 2] = ..
 *     v4 = ..                      a0[v + 3] = ..
 *         ->
 *     igrt_store_f32x4(a0 + v, igrt_hadd4_f32x16(s1, s2, s3, s4) * igrt_splat_f32x4(0.125f));
 *
 * Each sum is the same, to the bit.  To add up sixteen lanes takes ten operations; of four vectors
 * at once fourteen.  What is made of the sums are products with what all four share, and choices
 * (of a mask).  Names that stand between the stores come before them: they are coordinates and
 * conditions. */
#include "render.h"

enum { FOUR = 4 };

static bool is_lane_sum(Render *r, const Node *n)
{
    return n->op == OP_REDUCE && n->dtype == INGOT_F32 && !is_named(r, (Node *)(uintptr_t)n) &&
           reduce_form(&r->l, n) == REDUCE_LANES && n->arg.i == INGOT_REDUCE_ADD &&
           is_vector(r, n->src[0]);
}

static void sources(Node *const *n, int at, Node **out)
{
    for (int i = 0; i < FOUR; i++)
        out[i] = n[i]->src[at];
}

static bool all_are(Render *r, Node *const *n, Op op, ingot_dtype d)
{
    for (int i = 0; i < FOUR; i++)
        if (n[i]->op != op || n[i]->dtype != d || is_named(r, n[i]))
            return false;
    return true;
}

static bool same(Node *const *n)
{
    return n[0] == n[1] && n[0] == n[2] && n[0] == n[3];
}

/* Are these sums, or what is made of them? Written, if `write`. */
static bool sums_of(Render *r, Node *const *n, bool write);

static bool product(Render *r, Node *const *n, bool write)
{
    Node *by[FOUR], *sum[FOUR];
    for (int i = 0; i < 2; i++) {
        sources(n, i, by);
        sources(n, 1 - i, sum);
        if (!same(by) || is_vector(r, by[0]) || !sums_of(r, sum, false))
            continue;
        if (write) {
            put(r, "(");
            (void)sums_of(r, sum, true);
            put(r, " * igrt_splat_f32x4(");
            render_bare(r, by[0]);
            put(r, "))");
        }
        return true;
    }
    return false;
}

static bool choice(Render *r, Node *const *n, bool write)
{
    Node *given[FOUR], *sum[FOUR], *other[FOUR];
    sources(n, 0, given);
    sources(n, 1, sum);
    sources(n, 2, other);
    for (int i = 0; i < FOUR; i++)
        if (is_vector(r, given[i]))
            return false;
    if (!same(other) || is_vector(r, other[0]) || !sums_of(r, sum, false))
        return false;
    if (!write)
        return true;
    put(r, "igrt_where_f32x4((igrt_i32x4){");
    for (int i = 0; i < FOUR; i++) {
        put(r, i ? ", -(" : "-(");
        render_bare(r, given[i]);
        put(r, ")");
    }
    put(r, "}, ");
    (void)sums_of(r, sum, true);
    put(r, ", igrt_splat_f32x4(");
    render_bare(r, other[0]);
    put(r, "))");
    return true;
}

static bool sums_of(Render *r, Node *const *n, bool write)
{
    bool sums = true;
    for (int i = 0; i < FOUR; i++)
        sums &= is_lane_sum(r, n[i]);
    if (!sums)
        return all_are(r, n, OP_MUL, INGOT_F32)     ? product(r, n, write)
               : all_are(r, n, OP_WHERE, INGOT_F32) ? choice(r, n, write)
                                                    : false;
    if (!write)
        return true;
    sb_printf(r->sb, "igrt_hadd4_f32x%d(", r->l.tile->lanes);
    for (int i = 0; i < FOUR; i++) {
        put(r, i ? ", " : "");
        render_bare(r, n[i]->src[0]);
    }
    put(r, ")");
    return true;
}

/* How many statements of those from s on are four stores of one element, side by side, and names
 * that stand between; 0: they are none. */
static int four_neighbours(Render *r, const Stmt *s, int left, Node **store)
{
    int n = 0, count = 0;
    int64_t way;
    for (; count < left && n < FOUR && s[count].depth == s->depth; count++) {
        if (s[count].kind == STMT_LET)
            continue;
        Node *x = s[count].node;
        if (s[count].kind != STMT_STORE || s[count].store != STORE_ONE || x->nsrc != 4 ||
            x->src[2]->dtype != INGOT_F32 || x->src[0]->op != OP_BUFFER || x->dtype != INGOT_F32 ||
            !node_is_const_i(x->src[1], 1) ||
            (n && (x->src[0] != store[0]->src[0] ||
                   !idx_value(idx_sub(r->k->c, x->src[3], store[0]->src[3]), &way) || way != n)))
            break;
        store[n++] = x;
    }
    return n == FOUR ? count : 0;
}

int render_four_sums(Render *r, const Stmt *s, int left)
{
    Node *store[FOUR], *value[FOUR];
    if (!r->lang->c || r->t->gpu || r->l.tile->tc || !r->l.tile->lane || s->kind != STMT_LET ||
        !is_lane_sum(r, s->node))
        return 0;
    const int count = four_neighbours(r, s, left, store);
    if (!count)
        return 0;
    sources(store, 2, value);
    if (!sums_of(r, value, false))
        return 0;
    for (int i = 0; i < count; i++)
        if (s[i].kind == STMT_LET && !is_lane_sum(r, s[i].node) && !is_named(r, s[i].node))
            render_statement(r, &s[i]);
    r->needs |= NEED_VEC;
    render_indent(r, s->depth);
    sb_printf(r->sb, "igrt_store_f32x4(a%lld + ", (long long)store[0]->src[0]->arg.i);
    render_bare(r, store[0]->src[3]);
    put(r, ", ");
    (void)sums_of(r, value, true);
    put(r, ");\n");
    return count;
}
