/* stream.c - a matrix times a vector on a GPU, whose time is that of reading the matrix: which
 * matrices are so large, and how the items of a group go along a row.
 *
 * Each item reads 16 bytes at a time, neighbours side by side; a row is a number of such turns:
 *
 *     f16 [8192, 2048]     256 items that read 8 elements each: one turn
 *
 * Digits of 4 bits lie in blocks with a scale; items have two bytes of them, or more. */
#include "cost.h"

enum {
    DIGITS_AS = 4, /* they take as long as f16 of so many bytes: arithmetic counts */
    DIGITS_AT_ONCE = 2
};

int64_t items_at_once(const Machine *m)
{
    return (int64_t)m->processors * m->group;
}

int64_t half_group(const Machine *m)
{
    return m->items < m->group / 2 ? m->items : m->group / 2;
}

bool stream_is_long(const Machine *m, double bytes, bool digits)
{
    const double least = (double)items_at_once(m) * m->access;
    return (digits ? DIGITS_AS : 1) * bytes >= least;
}

int64_t stream_turn(const Machine *m, double element)
{
    return half_group(m) * (element < 1 ? DIGITS_AT_ONCE : m->access / (int64_t)element);
}
