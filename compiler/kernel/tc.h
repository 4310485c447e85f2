/* tc.h - matrix units (TC): which blocks they multiply, and how operands have to lie for that.
 *
 * A unit has fragments, blocks of constant size, and multiplies two of them into a third:
 *
 *     c[m][n] += a[m][k] b[k][n]          amx.i8: 16 x 16 sums of 64 terms;  mma.f16: 16 x 8 of 16
 *
 * TC says which axes of a kernel its rows (m), columns (n) and terms (k) are: TC mma.f16 (i0.i;
 * i1.i; r0.i). In the loop nest these three are RANGEs without a loop, and what moves with two of
 * them is a fragment:
 *
 *     a       moves with rows and terms
 *     b       moves with columns and terms
 *     sums    move with rows and columns
 *
 * So a sum of products is the node that it always is, and no op is new:
 *
 *     before    REDUCE(MUL(CAST(LOAD a), CAST(LOAD b)), r0)
 *     after     REDUCE(MUL(CAST(LOAD a), CAST(LOAD b)), r0.o, terms)       accumulator: a fragment
 *
 * Where are fragments, and how do sums leave?  There are three kinds of units:
 *
 *     lanes 0      AMX: in tiles of the core. Sums leave through memory: a place that is filled
 *                  with them (tc_lower.c), from which loops over the rows read them in lanes
 *                  along the columns.
 *     lanes 32     mma: in registers of a warp, a few elements of each in every item
 *                  (tc_element()), which stores its own.
 *     lanes 128    wgmma: sums as above, of a warpgroup; operands stay in the places that boxes
 *                  have filled (tc_in_place()). */
#ifndef TC_H
#define TC_H

#include "target.h"

typedef enum {
#define UNIT(id, ...) TC_##id,
#include "units.def"
    TC_COUNT
} TcId;
/* A unit: the columns of units.def, where they are explained. */
typedef struct Tc {
    const char *name, *feature;
    int m, n, k, group;
    ingot_dtype a, b, acc;
    int tiles, lanes, products, run;
    const char *spelling;
} Tc;
extern const Tc tc_units[TC_COUNT];
/* The units of a machine, one after the other: NULL stands before the first and after the last. */
const Tc *tc_next(const Machine *, const Tc *);
/* More than one row, and less than a fragment of a warp: bytes of the other operand take the time.
 */
static inline bool tc_few_rows(int64_t n)
{
    return n > 1 && n < tc_units[TC_MMA_F16].m;
}
bool tc_has(const Machine *, const Tc *);
bool tc_has_f8(const Machine *); /* one for 8-bit floats */
/* How many products of bf16 the machine computes in the time of one of f32, at least 1. */
double tc_bf16_products(const Machine *);

/* The three axes.  As the name of an operand: TC_ROWS is a, TC_COLUMNS is b, TC_TERMS the sums. */
enum { TC_ROWS, TC_COLUMNS, TC_TERMS, TC_AXES };
/* Sums that one unit takes in a loop nest, each over terms of its own:
 *
 *     y[i,j] = sum over r0 of a[i,r0] b[r0,j] + sum over r1 of c[i,r1] d[r1,j]
 *
 * "amx.bf16 (i.i; j.i; r0.i r1.i)" names the terms of both. Rows and columns are those of y. */
enum { TC_MOST_REDUCED = 4, TC_NAMES = TC_TERMS + TC_MOST_REDUCED };
/* The text of an opt, "amx.i8 (i0.i; i1.i; r0.i)", taken apart; names are not terminated. Those of
 * terms begin at TC_TERMS. */
typedef struct {
    const Tc *unit; /* NULL: there is none of this name */
    const char *axis[TC_NAMES];
    int length[TC_NAMES];
    int n; /* names */
} TcText;
bool tc_read(const Tc *own, const char *text, TcText *); /* own: Machine.own_units */

/* ---- does a unit take it? -------------------------------------------------------------------- */

/* The products of what a REDUCE sums, a b + c d + ..., first to last: how many; 0 if it is
 * something else or has more than `most`. */
enum { TC_MOST_TERMS = 32 };
int tc_terms(Node *body, Node **term, int most);
bool tc_is_of_products(const Kernel *); /* it has such sums, and no other reduce */
/* Is a load of this type what a unit wants?  Bytes with a sign and without are alike, and so are
 * both forms of f8 that units read. */
bool tc_reads(ingot_dtype load, ingot_dtype wanted);
/* Is it a cast from floats that one of the machine's units multiplies to what that adds up: of f16
 * to f32? */
bool tc_widens(const Machine *, const Node *wide);
/* The loads of a product's operands, if the unit takes their types and they move as fragments do: a
 * with range[TC_ROWS], b with range[TC_COLUMNS], both with range[TC_TERMS]. */
bool tc_operands(const Tc *, Node *term, Node *const *range, Node **a, Node **b);
/* The sum without WHEREs, where(inside, a, 0) * b as a * b: what a gate chooses is in the places
 * that the loads are read from. */
Node *tc_bare(Context *, Node *body);
/* Which number is a load beyond the edges of what it reads?  Zero, or of quantised bytes the zero
 * point, which a place then holds there. False: its readers want different ones. */
bool tc_fill(const Kernel *, Node *load, int64_t *fill);
/* Does a product have b first, MUL(b, a)? */
bool tc_turned(Node *term, Node *const *range);
/* Is a kernel's reduce for the unit: over range[TC_TERMS], and of such products only? */
bool tc_takes(const Tc *, Node *reduce, Node *const *range);

/* ---- tiles: which operand has which, and when? (tc_tiles.c) ------------------------------------
 */

enum { TC_MOST_TILES = 32 };
/* The operands of a product; a is NULL where a sum has fewer terms than others. */
typedef struct {
    const void *a, *b;
} TcPair;
/* tiles: of operands that move with rows (TC_ROWS), with columns; together: so many sums take each
 * term before the next one; loads: of a step. */
typedef struct {
    int tiles[2], together, loads[2];
} TcStep;
/* The step of nsum sums, of nterm terms each (pair[sum * nterm + term]), that loads least into so
 * many tiles; false: they are too few. */
bool tc_step(const TcPair *pair, int nsum, int nterm, int room, TcStep *);

/* ---- fragments in registers: who has which element? ------------------------------------------ */

/* A lane has tc_per_lane() elements of each fragment. Of the sums of mma (16 x 8, four a lane) lane
 * 5 has those of line 1, at 2 and 3, and of line 9, at 2 and 3:
 *
 *     line       of a, and of the sums: the row;  of b: the column
 *     at         of a, and of b: the term;        of the sums: the column */
typedef struct {
    int line, at;
} TcElement;
TcElement tc_element(const Tc *, int operand, int lane, int element);
/* How many of an operand, or of sums, each lane has. */
int tc_per_lane(const Tc *, int operand);
/* Groups of a cluster share the sums: each stores so many of an item's (the last may have fewer),
 * whole pairs of them, or better fours. */
int64_t tc_share(int64_t sums, int64_t groups);
/* tc_element() of sums, with the lane as an expression. */
void tc_sum_element(Context *, const Tc *, Node *lane, int element, Node **row, Node **column);
/* Attention: how do sums of one product become operand a of the next, in the registers where they
 * are (tc_rows.c)?  Each lane has two neighbouring columns of a fragment of sums, and has to have
 * two terms of a, which are tc_row_step() apart. Of f16 these are neighbours too: the step is 1. Of
 * f32 it is 4: columns 0, 1, 2, 3, .. of a fragment are then elements 0, 4, 1, 5, .. of the row,
 * which tc_row_column() says. */
int tc_row_step(const Tc *);
Node *tc_row_column(Context *, const Tc *, Node *column);
/* Has an operand to lie in lines, the terms of each side by side?  What turns blocks on their way
 * into registers does so by 16 bits, and registers have four bytes of a line each: so bytes have
 * to. */
static inline bool tc_by_line(const Tc *u)
{
    return u && u->lanes && (u->a == INGOT_I8 || u->a == INGOT_F8E4M3FN);
}

/* ---- fragments in memory: where do they lie? ------------------------------------------------- */

/* A fragment in a place of a group:
 *
 *     by_line     element (line, term) is at first + line * pitch + term
 *     else        at first + term * pitch + line
 *
 * of a unit that reads in place and not by line, in runs of lines that are `apart`. */
typedef struct {
    Node *first;
    int64_t pitch;
    int64_t apart; /* read in place, and not by line: from a run of lines to the next */
    bool rows;     /* operand a: its lines are rows; of b columns */
    bool halves;   /* columns 0, 1, 2 .. are lines 0, 4, 1 .. (tc_row_step()) */
    bool by_line;  /* the terms of a line lie side by side */
} LaneFragment;
/* The fragment of a load with a flat address, for registers of lanes; false: it does not lie so. */
bool tc_lane_fragment(Context *, Node *const *range, Node *load, LaneFragment *);
/* In the registers of a lane, of any unit with lanes; of rows of attention that stay there, with
 * all else of them. */
enum { TC_MOST_SUMS = 128, TC_MOST_ROW = 160 };
/* Rows of more elements are taken by blocks, where they can be. */
enum { TC_LONG_ROW = 512 };
/* Bytes of the pieces that copies into places of a group have, and that lines of fragments are
 * apart by. */
enum { TC_PIECE = 16 };
/* Bytes of the tokens by which a place of a group is told to be full or free. */
enum { TC_TOKENS = 1024 };
/* Bytes of the runs of terms that follow each other in a place which most units read: what a box of
 * copies has of a line. */
enum { TC_RUN = 128 };
/* Does a unit read its operands where they lie?  Then they lie in runs of tc_run() elements. */
static inline bool tc_in_place(const Tc *u)
{
    return u && u->lanes > 32;
}
/* Has a processor copies of pieces to what a group shares? Those that boxes come by. */
static inline bool machine_copies(const Machine *m)
{
    return m->units >> TC_WGMMA64_F16 & 1;
}
/* How many steps of a loop over terms may be straight-line code?  More where the items of a warp
 * multiply once each. */
static inline int tc_straight(const Tc *u)
{
    return u && u->lanes && u->products == 1 && !tc_in_place(u) ? 40 : 32;
}
/* Do both differ in nothing but their columns? */
static inline bool tc_alike(const Tc *x, const Tc *y)
{
    return x->m == y->m && x->k == y->k && x->a == y->a && x->b == y->b && x->acc == y->acc &&
           x->lanes == y->lanes && x->products == y->products && x->run == y->run;
}
static inline int64_t tc_run(const Tc *u)
{
    return u->run / dtype_info[u->a].bytes;
}
/* Does a product take a whole line of terms, with sums of its own, which items add to those of the
 * lines before when it is done?  Then an item has two sums for each of its results. */
static inline bool tc_adds(const Tc *u)
{
    return tc_in_place(u) && u->k == tc_run(u);
}
/* Sums that an item has of a block of the unit. */
static inline int64_t tc_sums_of(const Tc *u, int64_t results)
{
    return (tc_adds(u) ? 2 : 1) * results / u->lanes;
}
/* Does the unit add up all terms of f8 itself, with few bits? */
static inline bool tc_is_short(const Tc *u)
{
    return tc_in_place(u) && u->a == INGOT_F8E4M3FN && !tc_adds(u);
}
/* Registers of an item beside its sums, where a unit with lanes multiplies: those of operands and
 * of addresses. */
static inline int tc_beside(const Tc *u)
{
    return u->products > 1 ? 72 : tc_in_place(u) ? 40 + 8 * tc_adds(u) : 56;
}
/* f32 in three products: what the first one leaves of b (b - tf32(b)) has to lie in a place of each
 * warpgroup's own, of so many elements, two fragments; 0: the unit needs none. */
static inline int64_t tc_rests(const Tc *u)
{
    return tc_in_place(u) && u->products > 1 ? (int64_t)2 * u->n * u->k : 0;
}
/* How many registers has an item of so many warpgroups and of one more, that of the loader; and if
 * the latter keeps TC_LOADERS for each of its own and gives away the rest?  Two: launched with 168
 * each, 240 then. */
enum { TC_LOADERS = 24 };
static inline int tc_launched(int64_t warpgroups)
{
    enum {
        ALL = 512,
        UNIT = 8
    }; /* of an item, if there were one warpgroup; they are given by eights */
    return (int)(ALL / (warpgroups + 1) / UNIT * UNIT);
}
static inline int tc_registers(int64_t warpgroups)
{
    enum { UNIT = 8 };
    const int64_t launched = tc_launched(warpgroups) * (warpgroups + 1);
    return (int)((launched - TC_LOADERS) / warpgroups / UNIT * UNIT);
}
/* The fragment of a load that a unit reads in place; false: it does not lie so. */
bool tc_place_fragment(Context *, const Tc *, Node *const *range, Node *load, LaneFragment *);
/* Which line of a fragment a column is (LaneFragment.halves). */
static inline int tc_lane_line(const Tc *u, bool halves, int column)
{
    return halves ? column / 2 + column % 2 * (u->n / 2) : column;
}
/* Where element (line, term) of a fragment lies, counted from its first. */
static inline int64_t tc_place_element(const LaneFragment *f, int64_t line, int64_t term)
{
    return f->by_line ? line * f->pitch + term
                      : term * f->pitch + line % f->pitch + line / f->pitch * f->apart;
}

/* The same of a unit without lanes (AMX): where a fragment begins and how far its lines lie apart,
 * in elements. A line of a is a row, its terms side by side; a line of b is [columns][group]. False
 * if it does not lie so. load: with a flat address. */
bool tc_fragment(Context *, const Tc *, Node *const *range, Node *load, Node **first,
                 int64_t *pitch);

#endif
