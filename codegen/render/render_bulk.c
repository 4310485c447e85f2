/* render_bulk.c - pieces of weights that come at once (bulk_weights.c).
 *
 *     __shared__ __align__(16) uint64_t bulk_token[1];
 *     extern __shared__ __align__(128) unsigned char bulk[];
 *     const uint8_t *const b4 = (const uint8_t *)(bulk + 0);
 *     if (igrt_bulk_asks()) {
 *         igrt_bulk_begin(bulk_token, 16384);
 *         igrt_bulk(bulk + 0, a4 + i0_o*16384, 16384, bulk_token);
 *     }
 *     __syncthreads();
 *     igrt_after_others();
 *     ..
 *         there = igrt_bulk_wait_behind(bulk_token, q3.begin);
 *         s7 = .. b4[there + (r0_o*512 + r0_i)] ..
 *
 * What the items make of other operands comes before the first load of a loop's body, and the wait
 * stands right there: a token says again and again what it has said. */
#include "language_c.h"
#include "render.h"

static const BulkWeight *piece_of(const Render *r, const Node *load)
{
    for (int i = 0; i < r->l.nbulk && load->op == OP_LOAD && load->src[0]->op == OP_BUFFER; i++)
        if (r->l.bulk[i].arg == load->src[0]->arg.i)
            return &r->l.bulk[i];
    return NULL;
}

bool render_is_bulk(const Render *r, const Node *load)
{
    return piece_of(r, load) != NULL;
}

void render_bulk_begin(Render *r)
{
    const char *local = r->lang->c->local_word;
    if (!r->l.nbulk)
        return;
    const int64_t behind = gpu_shared(r->k, r->narg, r->t);
    sb_printf(r->sb, "    %suint64_t bulk_token[1];\n    extern %sunsigned char bulk[];\n", local,
              local);
    for (int i = 0; i < r->l.nbulk; i++) {
        const BulkWeight *p = &r->l.bulk[i];
        const char *type = r->lang->type(r->k->args[p->arg].dtype, false);
        sb_printf(r->sb, "    const %s *const b%d = (const %s *)(const void *)(bulk + %lld);\n",
                  type, p->arg, type, (long long)(behind + p->at));
    }
    sb_printf(r->sb, "    if (igrt_bulk_asks()) {\n        igrt_bulk_begin(bulk_token, %lld);\n",
              (long long)r->l.bulk_bytes);
    for (int i = 0; i < r->l.nbulk; i++) {
        const BulkWeight *p = &r->l.bulk[i];
        sb_printf(r->sb, "        igrt_bulk(bulk + %lld, a%d + (", (long long)(behind + p->at),
                  p->arg);
        render_expr(r, p->from);
        sb_printf(r->sb, "), %lld, bulk_token);\n", (long long)p->bytes);
    }
    sb_printf(r->sb, "    }\n    %s\n    int there = 0;\n", r->lang->barrier);
    r->needs |= NEED_BULK;
}

/* A line in front of the statement that is written, if none says so yet that can be seen here. */
static void wait_for_pieces(Render *r)
{
    if (r->bulk_waited)
        return;
    r->bulk_waited = r->depth + 1;
    for (int i = 0; i <= r->depth; i++)
        sb_puts(&r->before, "    ");
    if (r->packed < 0)
        sb_puts(&r->before, "there = igrt_bulk_wait(bulk_token);\n");
    else
        sb_printf(&r->before, "there = igrt_bulk_wait_behind(bulk_token, q%d.begin);\n", r->packed);
}

void render_bulk_there(Render *r, int depth, int64_t last)
{
    if (!r->l.nbulk || r->bulk_waited)
        return;
    render_indent(r, depth);
    sb_printf(r->sb, "there = igrt_bulk_wait_behind(bulk_token, q%d[%lld].begin);\n", r->packed,
              (long long)last);
    r->bulk_waited = depth + 1;
}

void render_end_bulk(Render *r, int depth)
{
    if (r->bulk_waited > depth + 1)
        r->bulk_waited = 0;
}

/* Where the element lies among those of its piece, the first of a run if along is its loop. */
static void place_in(Render *r, const BulkWeight *p, Node *load, Node *along)
{
    Context *c = r->k->c;
    Node *zero = idx(c, 0), *at = load->src[2];
    if (along)
        at = substitute(c, at, 1, &along, &zero);
    render_expr(r, idx_sub(c, at, p->from));
}

void render_bulk_word(Render *r, Node *load, Node *along)
{
    const BulkWeight *p = piece_of(r, load);
    wait_for_pieces(r);
    sb_printf(r->sb, "igrt_word_at(b%d + there + (", p->arg);
    place_in(r, p, load, along);
    put(r, "))");
}

void render_bulk(Render *r, Node *load)
{
    const BulkWeight *p = piece_of(r, load);
    wait_for_pieces(r);
    sb_printf(r->sb, "b%d[there + (", p->arg);
    place_in(r, p, load, NULL);
    put(r, ")]");
}
