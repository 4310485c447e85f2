/* cpu_digits.c - products of weights that lie in blocks, some of whose numbers share a word: which
 * loops over their terms are written out.
 *
 *     a word of a row of Q4_K    k .. k + 3 in the low digits, k + 32 .. k + 35 in the high ones,
 *                                which are of two blocks with scales of their own */
#include "cpu.h"

bool takes_digits(const Node *n, Node *r)
{
    const bool shift = n->op == OP_SHR || n->op == OP_SHL;
    for (uint32_t i = 0; i < n->nsrc && op_is_alu(n->op); i++)
        if ((shift && i == 1 && depends_on(n->src[1], r)) || takes_digits(n->src[i], r))
            return true;
    return false;
}

/* Is it a product of some bits of a byte? */
static bool has_digits(const Node *n)
{
    if (n->op == OP_AND && n->src[1]->op == OP_CONST && n->dtype == INGOT_U8)
        return true;
    for (uint32_t i = 0; i < n->nsrc && op_is_alu(n->op); i++)
        if (has_digits(n->src[i]))
            return true;
    return false;
}

/* Of blocks of weights, the loops over the dots of a block. Which digit of a word is taken is known
 * where its loop is written out. One row waits for memory, or, if blocks have parts with scales of
 * their own, for instructions: those of a loop count if a part has few dots, or if a vector of
 * words is less than a line of the cache. Where dots are made of pairs of i16, those of digits are
 * all written out: their pairs add up before they become i32. Those of two i16 are few operations,
 * beside which the ones of a loop count. */
void unroll_digits(Nest *nest, const View *v, const RegisterTile *tile, const LoopPlace *place,
                   int n)
{
    enum { MOST_DOTS = 4, MOST_PAIRS = 8, WORD = 4 };
    const Machine *m = &nest->target->machine;
    const bool parts_of_blocks = v->outer->nsrc - reduce_ranges(v->outer) > 1;
    const bool pairs = m->pairs && has_digits(v->dot->src[0]),
               halves = tile->nfour && tile->terms == 2 && !dtype_is_float(v->dot->dtype);
    const int64_t most = pairs ? MOST_PAIRS : MOST_DOTS;
    int64_t dots = 1, all = 1;
    for (int i = 0; i < n; i++) {
        const NestAxis *x = &nest->axis[nest_loop(nest, nest_root(nest, place[i].range))];
        all *= x->extent;
        const int64_t digits = x->extent;
        if (place[i].key < 0 && nest_opt_range(nest, OPT_UNROLL, place[i].range, digits))
            dots *= digits;
    }
    const bool loop =
        tile->rows || !parts_of_blocks || (all > MOST_DOTS && tile->width * WORD >= m->line);
    if (tile->width <= 1 || (loop && !pairs && !halves))
        return;
    for (int i = 0; i < n && dots < most; i++) {
        const NestAxis *x = &nest->axis[nest_loop(nest, nest_root(nest, place[i].range))];
        int64_t parts = x->extent < most / dots ? x->extent : most / dots;
        while (parts > 1 && x->extent % parts)
            parts--;
        if (parts > 1 && nest_opt_range(nest, OPT_UNROLL, place[i].range, parts))
            dots *= parts;
    }
}

/* Digits of a word that are in blocks of their own (K types: the low and the high halves of 64
 * bytes) are taken by the sums around: these blocks are written out too. */
void unroll_digits_of_blocks(Nest *nest, const View *v)
{
    enum { MOST = 4 };
    for (int i = 0; i < v->nreduce; i++) {
        const Node *dots = v->reduce[i];
        int64_t blocks = 1;
        for (int j = 0; j < v->nreduce && dot_terms(dots); j++) {
            const Node *sum = v->reduce[j];
            for (uint32_t d = reduce_ranges(sum); d < sum->nsrc && sum->dtype == INGOT_F32; d++) {
                Node *r = sum->src[d];
                const int64_t digits = range_extent(r);
                if (digits > 1 && blocks * digits <= MOST && takes_digits(dots->src[0], r) &&
                    nest_opt_range(nest, OPT_UNROLL, r, digits))
                    blocks *= digits;
            }
        }
    }
}
