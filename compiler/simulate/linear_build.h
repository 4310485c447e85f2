/* linear_build.h - what makes instructions of statements: linear_tell.c (faults), linear_value.c
 * (values) and linear_code.c (statements). */
#ifndef LINEAR_BUILD_H
#define LINEAR_BUILD_H

#include "interp.h"
#include "linear_code.h"

enum { MAX_RANGES = 64 };

typedef struct {
    int at, n; /* in the frame; elements */
    ingot_dtype type;
} Operand;

typedef struct {
    Node *node; /* RANGE; NULL: of parts */
    int start,
        outside; /* instructions: the first inside; the one that leaves if there is no iteration */
    int counter, extent;
    bool one;  /* see Do */
    int nseen; /* names that could be seen before it */
    const OpenLoop *open;
} OpenBlock;

typedef struct {
    Arena *a;
    const LinearKernel *lk;
    const Linear *l;
    LinearCode *c;
    int tile, stmt;
    Node *self; /* what is being named */
    bool again; /* the address of a first lane: what cannot be seen is computed again */
    int *at,
        *count; /* by node id: where a name's value is, and how many terms an accumulator has; -1 */
    uint32_t *seen;
    int nseen;
    /* by node id of a fragment: where what is kept of it lies, and whether there is any; or
     * -1 */
    int *kept, *holds;
    /* by number of a range: where its counter is; -1: its loop is not open */
    int counter[MAX_RANGES];
    OpenBlock *block;
    int nblock;
    const OpenLoop *open;
    struct Constant {
        int at, n;
        Node *node;
    } * constant;
    int nconstant;
} Build;

static inline ingot_dtype code_type(ingot_dtype d)
{
    return dtype_info[d].compute;
}

static inline bool is_fragment_range(const Tile *t, const Node *range)
{
    for (int i = 0; i < TC_AXES && t->tc; i++)
        if (t->fragment[i] == range)
            return true;
    return t->inner && t->inner_columns == range;
}

static inline bool code_knows(const Build *q, const Node *n)
{
    return n->id < q->l->nknown;
}

static inline bool code_in_lanes(const Build *q, const Node *n)
{
    return code_knows(q, n) && q->l->vector[n->id];
}

/* ---- linear_tell.c --------------------------------------------------------------------------- */

extern const char NO_AXIS[]; /* the name of a range that is none of an axis of the loop nest */
const char *linear_range_name(const Tile *, Node *range);
/* The first one of a kernel is kept. */
void code_fault(Build *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- linear_value.c -------------------------------------------------------------------------- */

/* n elements of the frame. */
Operand code_room(Build *, ingot_dtype, int n);
/* An instruction. */
Do *code_add(Build *, DoKind, Operand out);
Do *code_add_from(Build *, DoKind, Operand out, Operand in);
Operand code_constant(Build *, Node *, int lanes);
Operand code_spread(Build *, Operand, int n);
/* The instructions that compute a node, unless a name of it can be seen. */
Operand code_value(Build *, Node *);
/* Sums of neighbours of x, as DOT of node n adds them; added: to what is in out. */
void code_dots(Build *, Node *n, Operand out, Operand x, bool added);
/* The offset of an access in elements; in lanes (or by fours) that of the first, from where memory
 * goes on. */
Operand code_address(Build *, Node *offset, bool lanes, bool fours);
/* Elements: of a value; along an axis of a fragment that it moves with. */
int code_width(const Build *, const Node *);
int code_fragment_extent(const Build *, const Node *, int axis);
/* Ranges whose loops decide its value, as bits. */
uint64_t code_ranges_of(const Build *, const Node *, Map *memo);
bool code_is_open(const Build *, const Node *range);
Operand code_counter(Build *, Node *range);
bool code_buffer_is_known(Build *, const Node *access);
/* DO_TAKE, DO_HELD */
void code_tile(Build *, DoKind, int number, const Node *holds);

#endif
