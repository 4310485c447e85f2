/* tc.h - matrix units (TC): what there is of them, and how their operands lie.
 *
 * A unit multiplies fragments, blocks of two operands, and adds to a block of sums:
 *
 *     c[m][n] += a[m][k] b[k][n]        of constant extents
 *
 * TC takes an axis of results for the rows, another for the columns, and a reduced one for the terms.  A loop nest has a range
 * for each of the three that is no loop.  What moves with two of them is a fragment: a with rows and terms, b with terms and
 * columns, sums with rows and columns.  So a sum of products is the node that it always is,
 *
 *     REDUCE(MUL(CAST(LOAD a), CAST(LOAD b)), loops..., terms)
 *
 * whose accumulator is a fragment.  Sums leave through memory: a place that is filled with them (tc_lower.c), from which loops
 * over the rows read them in lanes along the columns. */
#ifndef TC_H
#define TC_H

#include "target.h"

typedef enum {
#define UNIT(id, ...) TC_##id,
#include "units.def"
    TC_COUNT
} TcId;
/* Columns of units.def. */
typedef struct {
    const char *name, *feature;
    int m, n, k, group;
    ingot_dtype a, b, acc;
    int tiles, lanes, products;
    const char *spelling;
} Tc;
extern const Tc tc_units[TC_COUNT];

enum { TC_ROWS, TC_COLUMNS, TC_TERMS, TC_AXES };
/* "amx.i8 (i0.i; i1.i; r0.i)" taken apart; names are not terminated. */
typedef struct {
    const Tc *unit; /* NULL: there is none of this name */
    const char *axis[TC_AXES];
    int length[TC_AXES];
} TcText;
bool tc_read(const char *text, TcText *);

/* The products of a sum of products, first to last: how many, 0 if it is none or has more than `most`. */
enum { TC_MOST_TERMS = 32 };
int tc_terms(Node *body, Node **term, int most);
bool tc_reads(ingot_dtype load, ingot_dtype wanted); /* bytes with a sign and without are alike */
/* A cast from what one of these units (Target.units) multiplies to what it adds up? */
bool tc_widens(unsigned units, const Node *wide);
/* The loads of a product's operands if the unit takes them and a moves with range[TC_ROWS], b with range[TC_COLUMNS], both with
 * range[TC_TERMS]. */
bool tc_operands(const Tc *, Node *term, Node *const *range, Node **a, Node **b);
/* A sum of products of loads without what its gates choose: the places that they are read from have it. */
Node *tc_bare(Context *, Node *body);
/* What a load of a kernel is to be beyond the edges of what it reads, for all of its readers: of lanes' operands places have that in place of zero
 * (a zero point of bytes).  False: they want different numbers. */
bool tc_fill(const Kernel *, Node *load, int64_t *fill);
/* Does a product have b first? */
bool tc_turned(Node *term, Node *const *range);
/* Whether a kernel's reduce is for the unit: over range[TC_TERMS], of such products only. */
bool tc_takes(const Tc *, Node *reduce, Node *const *range);

/* Which element of a fragment a lane has: of operand TC_ROWS (a) row and term, of TC_COLUMNS (b) column and term, of TC_TERMS (the
 * sums) row and column. */
typedef struct {
    int line, at;
} TcElement;
TcElement tc_element(const Tc *, int operand, int lane, int element);
/* How many of an operand, or of sums, each lane has. */
int tc_per_lane(const Tc *, int operand);
/* So many of an item's sums each group of a cluster stores (the last may have fewer): of whole pairs, or better fours. */
int64_t tc_share(int64_t sums, int64_t groups);
/* The same of sums with the lane as an expression. */
void tc_sum_element(Context *, const Tc *, Node *lane, int element, Node **row, Node **column);
/* Rows of sums that become an operand a (tc_rows.c): of a row the two elements that a lane has in a fragment of sums are those of the terms
 * that it has to have there, so far apart.  For that the columns 0, 1, 2, 3 .. of a fragment may be elements 0, 4, 1, 5 .. of the row:
 * which a column is. */
int tc_row_step(const Tc *);
Node *tc_row_column(Context *, const Tc *, Node *column);
/* Is an operand taken by lines alone, the terms of each side by side?  What turns blocks on their way into registers does so by 16 bits, and
 * registers have four bytes of a line each. */
static inline bool tc_by_line(const Tc *u)
{
    return u && u->lanes && u->a == INGOT_I8;
}
/* A fragment that lies in a place for the lanes of a group: line after line of terms (by_line), or term after term. */
typedef struct {
    Node *first;
    int64_t pitch;
    int64_t
        apart; /* of a fragment that is read where it lies: from a run of lines to the next, if not by line */
    bool rows;    /* operand a: its lines are rows, of b columns */
    bool halves;  /* its columns are the lines of both halves in turn (tc_row_step()) */
    bool by_line; /* the terms of a line lie side by side */
} LaneFragment;
bool tc_lane_fragment(Context *, Node *const *range, Node *load, LaneFragment *);
/* In the registers of a lane, of any unit with lanes; of rows of attention that stay there, with all else of them. */
enum { TC_MOST_SUMS = 128, TC_MOST_ROW = 160 };
/* Bytes of the pieces that copies into places of a group have, and that lines of fragments are apart by. */
enum { TC_PIECE = 16 };
/* Bytes of the tokens by which a place of a group is told to be full or free. */
enum { TC_TOKENS = 1024 };
/* Bytes of the runs of terms that follow each other in a place which a unit reads: what a box of copies has of a line. */
enum { TC_RUN = 128 };
/* Does a unit read its operands where they lie?  There such runs follow each other, so many elements each. */
static inline bool tc_in_place(const Tc *u)
{
    return u && u->lanes > 32;
}
/* So many steps of a loop over terms may be straight-line code: where the items of a warp multiply once each. */
static inline int tc_straight(const Tc *u)
{
    return u && u->lanes && u->products == 1 && !tc_in_place(u) ? 40 : 32;
}
static inline int64_t tc_run(ingot_dtype d)
{
    return TC_RUN / dtype_info[d].bytes;
}
/* Registers of an item beside its sums, where a unit with lanes multiplies: those of operands and of addresses. */
static inline int tc_beside(const Tc *u)
{
    return u->products > 1 ? 72 : tc_in_place(u) ? 40 : 56;
}
/* Elements of two fragments of b, of which such a unit keeps what is left for its further products, in a place that is each warpgroup's own; or
 * none. */
static inline int64_t tc_rests(const Tc *u)
{
    return tc_in_place(u) && u->products > 1 ? (int64_t)2 * u->n * u->k : 0;
}
/* Registers of an item of as many warpgroups, if one more is there that keeps TC_LOADERS for each of its own. */
enum { TC_LOADERS = 24 };
static inline int tc_registers(int64_t warpgroups)
{
    enum {
        ALL = 512,
        UNIT = 8
    }; /* of an item, if there were one warpgroup; they are given by eights */
    const int64_t launched = ALL / (warpgroups + 1) / UNIT * UNIT;
    return (int)((launched * (warpgroups + 1) - TC_LOADERS) / warpgroups / UNIT * UNIT);
}
bool tc_place_fragment(Context *, Node *const *range, Node *load, LaneFragment *);
/* Which of its lines a column is. */
static inline int tc_lane_line(const Tc *u, bool halves, int column)
{
    return halves ? column / 2 + column % 2 * (u->n / 2) : column;
}
/* Element (line, term) of it, from its first. */
static inline int64_t tc_place_element(const LaneFragment *f, int64_t line, int64_t term)
{
    return f->by_line ? line * f->pitch + term
                      : term * f->pitch + line % f->pitch + line / f->pitch * f->apart;
}

/* Where a fragment begins and how far its lines lie apart, in elements: the rows of a, each the terms side by side; the lines
 * of b, each [columns][group].  False if it does not lie so.  load: with a flat address. */
bool tc_fragment(Context *, const Tc *, Node *const *range, Node *load, Node **first,
                 int64_t *pitch);

#endif
