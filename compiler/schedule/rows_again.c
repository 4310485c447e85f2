/* rows_again.c - rows of sums that their gradients make again: attention's backward in blocks.
 *
 *     p = exp(s - m) / l                       of attention.c, whose row nobody stores
 *     gv[j,d] = sum over i of p[i,j] g[i,d]
 *     gs = p (sum over d of g[i,d] v[j,d] - c[i])
 *     gq[i,k] = sum over j of gs[i,j] k[j,k]   gk[j,k] = sum over i of gs[i,j] q[i,k]
 *
 * The kernel of y stores m and 1 / l beside it (Info.kept). Each of these three makes p of them,
 * and of the products that s is a sum of, in the registers where it multiplies it (Dao et al.,
 * "FlashAttention", 2022): products of matrix units take less time than memory of rows times
 * columns. What is asked for is the form: whatever reads elements of the row is made of it element
 * by element, of other sums of products with the same rows and columns, and of what rows have one
 * of, and ends as an operand of sums of products over its rows or its columns. */
#include "rows_again.h"
#include "builder.h"
#include "fusion.h"

enum { MOST_LISTED = 64 };

typedef struct {
    Sched *s;
    Node *const *uses;
    ingot_dtype type;
    const Node *row; /* as many elements as this has */
    RowAgain element[MOST_LISTED];
    Node *beside[MOST_LISTED], *kept[MOST_LISTED],
        *sum[MOST_LISTED]; /* in their kernels; before; which multiply them */
    int nelement, nbeside, nkept, nsum;
} RowsAgain;

static const RowAgain *row_element(const RowsAgain *a, const Node *n)
{
    for (int i = 0; i < a->nelement; i++)
        if (a->element[i].n == n)
            return &a->element[i];
    return NULL;
}

static bool listed(int n, Node *const *list, const Node *x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static bool put(Node **list, int *n, Node *x)
{
    if (listed(*n, list, x))
        return true;
    if (*n == MOST_LISTED)
        return false;
    list[(*n)++] = x;
    return true;
}

/* It lies in memory, of the type that units multiply, whatever moves it. */
static bool is_operand(const RowsAgain *a, Node *x)
{
    for (int deep = 0; deep < DEPTH_FEW; deep++) {
        const bool moves = is_move(x) && x->op != OP_GATHER && x->op != OP_PAD;
        const bool lies = !is_computed(a->s, x) || must_store(a->s, x, a->uses) ||
                          is_rounded_operand(a->s, x, a->uses);
        if (lies || (!moves && x->op != OP_CAST))
            return lies && x->dtype == a->type;
        x = x->src[0];
    }
    return false;
}

/* A sum of products with as many elements as the row. */
static bool is_inner(const RowsAgain *a, Node *x)
{
    if (x->op != OP_REDUCE || !is_sum_of_products(x) || node_elements(x) != node_elements(a->row))
        return false;
    Node *product = below_casts(x->src[0]);
    return is_operand(a, product->src[0]) && is_operand(a, product->src[1]);
}

/* What an element is made of beside others: a sum of products of its own; what rows have one of,
 * which is stored; or what nothing is computed for. */
static bool take_beside(RowsAgain *a, Node *x, int deep)
{
    const Info *i = info_of(a->s, x);
    if (x->dtype == INGOT_INDEX || row_element(a, x) || listed(a->nbeside, a->beside, x) ||
        listed(a->nkept, a->kept, x) || i->constant || coord_ops(a->s, x) || uniform(x))
        return true;
    if (!deep || i->root)
        return false;
    if (x->op == OP_REDUCE && !is_inner(a, x))
        return 2 * node_elements(x) <= node_elements(a->row) && put(a->kept, &a->nkept, x);
    if (x->op != OP_REDUCE && !op_is_alu(x->op) && !op_arranges(x->op))
        return false;
    for (uint32_t j = 0; j < x->nsrc && x->op != OP_REDUCE; j++)
        if (!take_beside(a, x->src[j], deep - 1))
            return false;
    return put(a->beside, &a->nbeside, x);
}

/* A sum of products over the rows or the columns of an element. */
static Node *multiplied_in(const RowsAgain *a, const Node *product, const RowAgain *e)
{
    const Info *i = info_of(a->s, product);
    Node *sum = i->nuse == 1 ? a->uses[i->iuse] : NULL;
    if (product->op != OP_MUL || !sum || sum->op != OP_REDUCE || i->root ||
        reduce_monoid(sum) != INGOT_REDUCE_ADD || sum->dtype != INGOT_F32 ||
        (reduce_axes(sum) != 1u << e->axis[0] && reduce_axes(sum) != 1u << e->axis[1]))
        return NULL;
    Node *other = product->src[product->src[0] == e->n];
    return other != e->n && !row_element(a, other) && is_operand(a, other) ? sum : NULL;
}

static bool add_element(RowsAgain *a, Node *n, const int *axis)
{
    const RowAgain *known = row_element(a, n);
    if (known || axis[0] < 0 || axis[1] < 0)
        return known && known->axis[0] == axis[0] && known->axis[1] == axis[1];
    if (a->nelement == MOST_LISTED || (info_of(a->s, n)->root))
        return false;
    a->element[a->nelement++] = (RowAgain){n, {axis[0], axis[1]}};
    return true;
}

/* What reads an element. */
static bool take_reader(RowsAgain *a, const RowAgain *e, Node *t)
{
    Node *sum = multiplied_in(a, t, e);
    if (sum)
        return put(a->sum, &a->nsum, sum);
    if (op_arranges(t->op)) {
        const int axis[] = {axis_moved(t, e->axis[0]), axis_moved(t, e->axis[1])};
        return add_element(a, t, axis);
    }
    if ((!op_is_alu(t->op) && t->op != OP_KEEP) || t->op == OP_CUSTOM)
        return false;
    return add_element(a, t, e->axis);
}

/* All that reads elements of the row but `inside`, the kernel that makes it. */
static bool take_readers(RowsAgain *a, bool (*inside)(const void *, const Node *), const void *of)
{
    for (int i = 0; i < a->nelement; i++) {
        const RowAgain e = a->element[i];
        const Info *f = info_of(a->s, e.n);
        for (int u = 0; u < f->nuse; u++) {
            Node *t = a->uses[f->iuse + u];
            if (!inside(of, t) && !take_reader(a, &e, t))
                return false;
        }
    }
    for (int i = 0; i < a->nelement; i++)
        for (uint32_t j = 0; j < a->element[i].n->nsrc && !inside(of, a->element[i].n); j++)
            if (!take_beside(a, a->element[i].n->src[j], DEPTH_FEW))
                return false;
    return a->nsum > 0;
}

/* What is made beside elements is read by nothing else. */
static bool beside_inside(const RowsAgain *a)
{
    for (int i = 0; i < a->nbeside; i++) {
        const Info *f = info_of(a->s, a->beside[i]);
        for (int u = 0; u < f->nuse; u++) {
            const Node *t = a->uses[f->iuse + u];
            if (!row_element(a, t) && !listed(a->nbeside, a->beside, t))
                return false;
        }
    }
    return true;
}

/* The operand of a product that is an element: as it is rounded, in front of what moves it. */
static Node *rounded_operand(const RowsAgain *a, const Node *sum)
{
    const Node *product = sum->src[0];
    Node *x = product->src[row_element(a, product->src[0]) ? 0 : 1];
    while (x->dtype != a->type && (op_arranges(x->op) || x->op == OP_CAST))
        x = x->src[0];
    while (op_arranges(x->op) && row_element(a, x->src[0]))
        x = x->src[0];
    return x->dtype == a->type && row_element(a, x) ? x : NULL;
}

bool rows_again(Sched *s, Node *const *uses, ingot_dtype type, int nrow, const RowAgain *row,
                bool (*inside)(const void *, const Node *), const void *of)
{
    RowsAgain a = {.s = s, .uses = uses, .type = type, .row = row[0].n};
    for (int i = 0; i < nrow; i++)
        if (!add_element(&a, row[i].n, row[i].axis))
            return false;
    if (!take_readers(&a, inside, of) || !beside_inside(&a))
        return false;
    for (int i = 0; i < a.nsum; i++)
        if (!rounded_operand(&a, a.sum[i]))
            return false;
    for (int i = 0; i < a.nelement; i++)
        info_of(s, a.element[i].n)->in_rows = true;
    for (int i = 0; i < a.nbeside; i++)
        info_of(s, a.beside[i])->in_rows = true;
    for (int i = 0; i < a.nkept; i++)
        info_of(s, a.kept[i])->kept = true;
    for (int i = 0; i < a.nsum; i++) {
        info_of(s, a.sum[i])->sums_again = info_of(s, a.sum[i]->src[0])->in_rows = true;
        info_of(s, rounded_operand(&a, a.sum[i]))->again = true;
    }
    return true;
}
