/* linear_products.c - what matrix units compute: products of blocks, in the order of terms that the
 * unit has. */
#include <string.h>

#include "igrt_num.h"
#include "interp.h"
#include "linear_thread.h"

/* Term after term: of integers in any order the same, of floats in that of AMX: pairs of terms are
 * sums of their own. */
void thread_products(const Thread *t, const Do *d)
{
    const int columns = d->count, terms = d->from;
    for (int m = 0; m < d->part; m++)
        for (int n = 0; n < columns; n++) {
            if (d->type == INGOT_F32) {
                const float *x = (const float *)(void *)(t->f + d->in[0]) + m * terms;
                const float *y = (const float *)(void *)(t->f + d->in[1]) + n;
                float *out = (float *)(void *)(t->f + d->out) + m * columns + n, sum[2] = {0};
                for (int k = 0; k < terms; k++)
                    sum[k % 2] += x[k] * y[k * columns];
                *out += sum[0] + sum[1];
            } else {
                const int32_t *x = (const int32_t *)(void *)(t->f + d->in[0]) + m * terms;
                const int32_t *y = (const int32_t *)(void *)(t->f + d->in[1]) + n;
                int32_t *out = (int32_t *)(void *)(t->f + d->out) + m * columns + n;
                for (int k = 0; k < terms; k++)
                    *out = igrt_add_i32(*out, igrt_mul_i32(x[k], y[k * columns]));
            }
        }
}

/* 32 bits of a fragment's element, in the type of the sums. */
typedef union {
    float f;
    int32_t i;
} Element;
enum { MOST_FRAGMENT = 16 * 32 };

static void add_products(const Tc *u, Element *sum, const Element *x, const Element *y)
{
    for (int k = 0; k < u->k; k++)
        if (u->acc == INGOT_I32)
            sum->i = igrt_add_i32(sum->i, igrt_mul_i32(x[k].i, y[k].i));
        else
            sum->f += x[k].f * y[k].f;
}

/* The items of a warp have come to one product: their fragments are put together, multiplied, and
 * taken apart again. */
void warp_products(const Thread *item, const Do *d)
{
    const Tc *u = item->lk->tc;
    Element a[MOST_FRAGMENT], b[MOST_FRAGMENT], *v;
    for (int lane = 0; lane < u->lanes; lane++) {
        for (int i = 0; i < tc_per_lane(u, TC_ROWS); i++) {
            const TcElement e = tc_element(u, TC_ROWS, lane, i);
            memcpy(&a[e.line * u->k + e.at], item[lane].f + d->in[0] + 4 * i, 4);
        }
        for (int i = 0; i < tc_per_lane(u, TC_COLUMNS); i++) {
            const TcElement e = tc_element(u, TC_COLUMNS, lane, i);
            memcpy(&b[e.line * u->k + e.at], item[lane].f + d->in[1] + 4 * i, 4);
        }
    }
    for (int lane = 0; lane < u->lanes; lane++)
        for (int i = 0; i < tc_per_lane(u, TC_TERMS); i++) {
            const TcElement e = tc_element(u, TC_TERMS, lane, i);
            v = (Element *)(void *)(item[lane].f + d->out) + i;
            add_products(u, v, &a[e.line * u->k], &b[e.at * u->k]);
        }
}

void thread_scale(const Thread *t, const Do *d)
{
    float *const sum = (float *)(void *)(t->f + d->out);
    for (int i = 0; i < d->n; i++)
        sum[i] *= *(const float *)(const void *)(t->f + d->in[i / 2 % 2]);
}

/* Operand a of what all lanes have of it. */
static Element *packed_rows(Arena *a, const Thread *item, const Do *d)
{
    const Tc *u = item->lk->tc;
    Element *x = NEWN(a, Element, u->m * u->k);
    for (int lane = 0; lane < u->lanes; lane++)
        for (int i = 0; i < tc_per_lane(u, TC_ROWS); i++) {
            const TcElement e = tc_element(u, TC_ROWS, lane, i);
            memcpy(&x[(16 * (lane / 32) + e.line) * u->k + e.at], item[lane].f + d->in[0] + 4 * i,
                   4);
        }
    return x;
}

/* The items of a warpgroup have come to one product. */
bool warp_products_in_place(const Thread *item, const Do *d)
{
    const Tc *u = item->lk->tc;
    const int lines[] = {u->m, d->part}, place[] = {(int)d->arg, d->from};
    Arena *a = arena_new();
    Element *x[2], *v;
    bool good = true;
    x[0] = d->arg < 0 ? packed_rows(a, item, d) : NULL;
    for (int i = d->arg < 0; i < 2 && good; i++) {
        const LinearArg *from = &item->arg[place[i]];
        const LaneFragment *f = &d->place[i];
        const int64_t first = *integer(item, d->in[i]);
        const ingot_dtype stored = item->lk->k->args[place[i]].dtype;
        x[i] = NEWN(a, Element, lines[i] * u->k);
        for (int lane = 1; lane < u->lanes && good; lane++)
            good = *integer(&item[lane], d->in[i]) == first ||
                   thread_fault(item, d, "the items of a warp have operands at different places");
        for (int l = 0; l < lines[i] && good; l++)
            for (int k = 0; k < u->k && good; k++) {
                const int64_t at = first + tc_place_element(f, l, k);
                const bool run = f->by_line ? k == 0 : l % f->pitch == 0;
                good = !run || thread_use(item, d, place[i], at, f->by_line ? u->k : f->pitch);
                if (good)
                    alu_cast(u->acc, stored, 0, 1, &x[i][l * u->k + k],
                             from->memory->bytes + from->at + at * d->stored);
            }
    }
    for (int lane = 0; lane < u->lanes && good; lane++)
        for (int i = 0; i < u->m * d->part / u->lanes; i++) {
            const TcElement e = tc_element(u, TC_TERMS, lane, i);
            v = (Element *)(void *)(item[lane].f + d->out) + i;
            add_products(u, v, &x[0][e.line * u->k], &x[1][e.at * u->k]);
        }
    arena_free(a);
    return good;
}
