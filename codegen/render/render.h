/* render.h - what the files of the renderer share: render.c (statements), render_expr.c (values),
 * render_memory.c (loads, stores, conversions), render_runs.c (accesses of 16 bytes) and
 * render_lanes.c (vectors). */
#ifndef RENDER_H
#define RENDER_H

#include "language.h"
#include "lowered.h"

struct Render {
    Arena *arena; /* of this rendering */
    StrBuf *sb;
    const Target *t;
    const Language *lang; /* the target's */
    const Kernel *k;      /* as it was lowered: arguments, and places behind them */
    const Kernel *of;     /* itself */
    const char *group;    /* of a part of a launch: the number of its group, as text; or NULL */
    Linear l;             /* that of the tile which is written */
    Map names;            /* RANGE id -> its axis' name in C */
    int *number;          /* by id: N of the name vN; -1 where no such name can be seen */
    int *kept;            /* by id of a fragment: N of the name pN under which it is kept, or -1 */
    int nvalue;
    struct Seen {
        uint32_t id;
        int depth;
    } * seen; /* the names that can be seen, innermost last */
    int nseen;
    unsigned needs;
    bool each_part; /* inside of a loop over the parts: this one ends where the next one begins */
    bool formed[2][OP_COUNT]; /* ops whose function on lanes is known to be there */
    bool bare;                /* the next expression stands alone: no parentheses around it */
    /* constants in all lanes: node id -> Splat; a tile that writes one often gives it a name */
    Map splats;
    struct Splat **splat;
    int nsplat;
    struct SplatUse *use; /* by id of a value */
    int depth;            /* of the statement that is written */
    StrBuf before;        /* lines that come before it */
    Node **waiting;       /* numbers whose lines have not come yet, or have */
    int nwaiting;
    int narg;              /* of the kernel itself: what follows them are places */
    struct Beside *beside; /* by id of a load */
    struct Row *row;       /* that items have as they were loaded */
    int nrow;
    const Stmt *loaded, *stored; /* up to which the operands of stores have come; are used */
    struct Run *run;             /* neighbours that are loaded together */
    int nrun;
    int *run_of;           /* by id of a load: 1 + its run, 0: it has none */
    struct HeldLoad *held; /* loads that came before the kernel waited */
    int nheld, crowd;      /* groups that are to have registers beside each other, or 0 */
    Node *walked;          /* the loop in which runs are read that were held, or NULL */
    Node *ahead_of;        /* the counter of the loop that comes in parts (render_loops.c) */
    int packed;            /* N of the factors qN packed last that can be seen; or -1 */
    int bulk_waited; /* 1 + the depth at which pieces of weights are known to be there, or 0 */
    struct DigitSum **digits; /* by id of a sum of digits in words, or NULL: there are none */
    bool *digit_load;         /* by id of a load: only such sums read it */
    Node **
        added; /* by id of a sum of dots: what alone reads it, a sum with something else, or NULL */
    bool *begun; /* by id of the latter: the accumulator begins with what is added, so it is that */
    /* what an iteration of overlapped blocks leaves to the next one, the N of the names vN that it
     * has there, and of its own meanwhile */
    struct Overlapped {
        Node *value;
        int number, own;
    } * overlapped;
    int noverlapped;
    bool *near; /* by id of a tanh(x): of all that it becomes a part of it is one beside a number */
    int contracts; /* render_muladd_near(): 1, -1: not, 0: nobody asked */
    Map chains; /* render_pairs.c: by id + 1 of a sum of dots, the PairSum that was written of it */
    const Stmt *chained; /* up to which statements were searched for these */
};

/* A kernel by itself; group: as above. */
unsigned render_one(StrBuf *, const Target *, const Kernel *, const char *group,
                    const char *function_name);

typedef struct {
    Node **term;
    int n;
} Terms;

/* 16 neighbouring bytes of a buffer, and the accesses to their elements; whole once there are as
 * many as there are elements. */
typedef struct Run {
    Node *buffer, *gate, *base;
    int64_t block; /* the first one is so many elements behind the base */
    Node *access[8];
    int n, elements;
    int depth; /* of the statement before which it was loaded */
    bool held; /* it came before: in piece `piece` of `pieces` of an iteration, in hN, N = of */
    int of, piece, pieces;
} Run;

/* The vN that a load has come in, together with its neighbours, and which of them it is; -1: it has
 * not. */
typedef struct Beside {
    int number, part;
} Beside;

/* Eight loads that came in vN, and the first store that needs them. */
typedef struct Row {
    Node *load[8];
    int number;
    const Stmt *store;
} Row;

/* How often a constant is written in all lanes of a tile, and then N of its name vN, or -1. */
typedef struct Splat {
    Node *n;
    int uses, number;
} Splat;

/* How often a number's name is written, and how often of these in all lanes.  If it is so always,
 * and more than once, in the loop that has it, the name is that of the lanes. */
typedef struct SplatUse {
    int names, splats, depth;
    bool let, elsewhere, in_lanes; /* let: one statement names it, not the loop that sums it */
    const char *line; /* that gives it its name, not written yet: it comes before its first use */
} SplatUse;

static inline void put(Render *r, const char *s)
{
    sb_puts(r->sb, s);
}

static inline bool is_vector(Render *r, Node *n)
{
    return n->id < r->l.nknown && r->l.vector[n->id];
}

/* Four bytes of a dot. */
static inline bool is_four(Render *r, Node *n)
{
    return n->id < r->l.nknown && r->l.four[n->id];
}

void render_begin_value(Render *, const Stmt *);
void render_variable(Render *, Node *, int number); /* "float v3" */
/* What masks choose of a block, where they do not leave all of it: how many statements; 0: they are
 * none. */
int render_masks(Render *, const Stmt *, int left);
/* Do the last groups along the range have more blocks of rows to go through?  Then they begin
 * first. */
bool render_last_first(Render *, Node *range);
/* BIND: what the group and the item in it are, out of their numbers. */
void render_group_item(Render *, const char *group, const char *item, int depth);
/* render_stay.c: the statements of groups that stay, in the loops over their blocks; and where such
 * a loop begins. */
void render_stay(Render *);
void render_stay_end(Render *);
/* Rows of attention, whose loops are of any length: tokens count the iterations of all blocks, and
 * the number of a place is that of such a count. Queries have tokens of their own. */
static inline bool render_rows_stay(const Tile *t)
{
    return t->stay && t->along;
}
void render_rows_token(Render *, const char *what, bool next);
bool render_place_of_rows(Render *, Node *mod); /* it is written: (r1_o + turn) % 3 */
/* Of several warpgroups whose blocks of attention overlap, and who ask for products in turn. */
void render_turns_of_blocks(Render *, const char *what, int depth);
void render_blocks(Render *, int depth);
/* Where a block's part of a place begins, if blocks have some of them: turn % 4 * 8192 + */
void render_place_of_block(Render *, int64_t place);
/* render_overlap.c: the statements of blocks that overlap; and what is said between them. */
typedef enum {
    OVERLAP_HOLD,    /* names of what is kept */
    OVERLAP_KEEP,    /* it is kept */
    OVERLAP_TURN,    /* a warpgroup waits for its turn to ask for products */
    OVERLAP_NEXT,    /* scores are asked for; products of what is kept follow */
    OVERLAP_SCORES,  /* and are asked for; scores (node) are there */
    OVERLAP_RESULTS, /* results (node) are there, and the places are free */
    OVERLAP_LAST,    /* products of what is kept follow, the last ones */
    OVERLAP_WHOLE,   /* results (node) are whole */
    OVERLAP_ASKED,   /* of groups that stay: queries are free where it was the last block */
    OVERLAP_READ,    /* queries are free */
    OVERLAP_TURNED   /* the next block of rows has places behind those of this one */
} OverlapPart;
void render_overlap(Render *);
void render_overlap_part(Render *, const Stmt *);
/* Do the first products of a sum take what they find for zero? */
bool render_begins_products(const Render *, const Node *sum);
static inline bool is_named(Render *r, Node *n)
{
    return n->id < r->l.nknown && r->l.named[n->id] && r->number[n->id] >= 0;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Type that holds a value of dtype d in an expression: small floats are f32. */
static inline ingot_dtype held(ingot_dtype d)
{
    return dtype_is_float(d) && d != INGOT_F64 ? INGOT_F32 : d;
}

static inline bool is_small_float(ingot_dtype d)
{
    return dtype_is_float(d) && d != INGOT_F32 && d != INGOT_F64;
}

static inline bool is_narrow(ingot_dtype d)
{
    return d == INGOT_I4 || d == INGOT_U4 || d == INGOT_I2 || d == INGOT_U2;
}

/* ---- language.c ------------------------------------------------------------------------------ */

/* Type and name, by a pattern of the language: constant or variable. */
void render_declare(Render *, const char *pattern, const char *type, const char *name);
/* "(float)(" or "f32("; gives what ends it.  binds: what follows is a name or a call, for which
 * some languages need no parentheses. */
const char *render_cast_begin(Render *, const char *type, bool binds);
void render_number(Render *, double, ingot_dtype);
void render_integer(Render *, int64_t, ingot_dtype);
/* Digits of a float, of as few as read back: "0.1", "3.0". */
void print_shortest(StrBuf *, double, bool is_f32);

/* render.c */
void render_statement(Render *, const Stmt *);
void render_with_lines(Render *, const Stmt *); /* and what has to come before it */
void render_loop_end(Render *, int depth);
/* "const int i0" */
void render_coordinate(Render *, const char *pattern, Node *range);
/* render_loop_text.c: where a loop begins, behind its indent. */
void render_loop(Render *, const Stmt *);

/* ---- render_masked.c ------------------------------------------------------------------------ */

void render_masked_group(Render *, const Stmt *wait);

/* ---- render_loops.c ------------------------------------------------------------------------- */

/* A loop of one item in parts, whose loads come together; false: it is none. What ends it. */
bool render_loop_ahead(Render *, const Stmt *);
void render_end_ahead(Render *, const Stmt *);

/* ---- render_expr.c -------------------------------------------------------------------------- */

void render_expr(Render *, Node *);
/* Where nothing around it can bind: an argument, an index, a right-hand side. */
void render_bare(Render *, Node *);
void render_expr_as(Render *, Node *, bool alone);
/* An operand of what is computed in lanes, or not: what is the same in all lanes is spread over
 * them. */
void render_operand(Render *, Node *, bool lanes, bool alone);
void render_int(Render *, Node *);   /* bare, of the type of coordinates */
void render_range(Render *, Node *); /* its name */
const char *range_name(const Render *, const Node *);
/* The type of one value of dtype d. */
const char *render_type(Render *, ingot_dtype d);
/* The type whose functions compute on d, as in igrt_<op>_<type>(). */
const char *render_arith(ingot_dtype d);
const char *render_operator(Op); /* "+", or NULL */
/* A pattern such as "exp@($0)", or a function: its name, or NULL if that is the op's own. */
void render_spelled(Render *, const char *spelling, const char *type, Node *);

/* ---- render_memory.c ------------------------------------------------------------------------ */

void render_load(Render *, Node *);
/* The unrolled loop that goes along 16 bytes of an operand, of which this is one element; NULL:
 * there is none. Its type in the names of functions for that. */
Node *render_run_of(const Render *, const Node *load);
const char *render_run_word(ingot_dtype);
/* Where an access reads or writes: src[first], of which the part that is worked out once for
 * several accesses is *base, or NULL. */
Node *render_way(Render *, Node *access, int first, Node **base);
void render_store(Render *, const Stmt *);
void render_stored_value(Render *, Node *store);
bool render_are_beside(const Render *, Node *a, Node *b);
void render_two_fragments(Render *, Node *load, int first); /* with the one beside it */
/* A byte of a run and a number, where it is that; false: nothing was written. */
bool render_byte_and(Render *, Node *);
void render_cast(Render *, Node *);
/* The f32 that a store of 16 bits rounds itself, or NULL; and two such stores as one word. */
Node *render_rounded_here(Render *, const Node *store);
void render_pair_of_16(Render *, Node *one, Node *other);
void render_quantize(Render *, Node *);
/* render_memory.c: what follows its bracket, up to the next one. */
void render_quantized_operands(Render *, Node *quantize);
void render_digit(Render *, Node *);
void render_top_byte(Render *, Node *);
void render_bitcast(Render *, Node *);

/* ---- render_beside.c ------------------------------------------------------------------------ */

/* Those of statements s[0] and s[1], of `left` that there are, as one; false: they are none. */
bool render_two_stores(Render *, const Stmt *s, int left);
/* Sixteen stores of a warpgroup's sums that are two rows of neighbours: of how many statements, 0:
 * they are none. */
int render_rows_of_stores(Render *, const Stmt *, int left);
/* Before a statement of a matrix unit's tile: operands of the stores that follow are loaded. */
void render_operands_ahead(Render *, const Stmt *);
bool render_is_beside(const Render *, const Node *); /* is it a load that has come so? */
void render_beside(Render *, const Node *);

/* ---- render_held.c -------------------------------------------------------------------------- */

/* Is the loop unrolled, but for one that is `rolled` in turn? */
bool render_is_short(const Render *, const Node *range, bool *rolled);
/* Before the wait for kernels before this one: weights that are loaded behind it come first. */
void render_hold(Render *, const Stmt *wait);
/* Behind the wait: what an item's sums are made of, if it reads that once more. */
void render_hold_rows(Render *, const Stmt *wait);
bool render_goes_along_rows(const Render *);
void render_piece(Render *, const struct Run *);
const struct HeldLoad *render_held_of(const Render *, const Node *load); /* NULL: it is not one */
void render_held(Render *, const struct HeldLoad *);
/* Of iterations that come together: a load, arrays for n of each, and what fills them. */
void render_hold_ahead(Render *, Node *load);
void render_declare_ahead(Render *, int n, int depth);
void render_load_ahead(Render *, int depth);

/* The word that has the byte: h3[r0_o], or what is loaded there; behind the loop along its bytes if
 * that has ended. */
void render_word_of(Render *, Node *load, bool ended);

/* ---- render_bulk.c -------------------------------------------------------------------------- */

/* Before the wait for kernels before this one: pieces of weights are asked for. */
void render_bulk_begin(Render *);
bool render_is_bulk(const Render *, const Node *load); /* is it of such a piece? */
/* An element of it, or the word of which the loop `along` goes along the bytes. */
void render_bulk(Render *, Node *load);
void render_bulk_word(Render *, Node *load, Node *along);
void render_end_bulk(Render *, int depth); /* a loop has ended */
/* All pieces are there from here on, behind factors qN[last]. */
void render_bulk_there(Render *, int depth, int64_t last);

/* ---- render_digits.c ------------------------------------------------------------------------ */

/* Of the tile that is written: sums of products with digits of words. */
void render_find_digits(Render *);
bool render_is_digits(const Render *, const Node *sum);
bool render_in_digits(const Render *, const Node *load); /* do only these read it? */
bool render_is_packed(const Render *, const Node *sum);  /* the factors of a word's digits are */
bool render_packs_too(const Render *, const Node *sum);  /* another sum packs the same factors */
void render_end_packed(Render *, int depth);             /* a loop has ended */
/* Before a loop in whose every iteration factors are packed: all of them are.  Which statement of
 * it begins what has packed them, and up to which (last); 0: none are. */
int render_packs_ahead(Render *, const Stmt *, int *last);
bool render_is_ahead(const Render *, const Node *sum); /* are they, of this sum? */
void render_digits_add(Render *, Node *sum);
void render_digits_sum(Render *, Node *sum);

/* ---- render_runs.c -------------------------------------------------------------------------- */

/* Of the tile that is written: loads that are 16 neighbouring bytes. */
void render_find_runs(Render *);
bool render_has_images(const Render *); /* are arguments images (IMAGE)? */
/* Before a statement: those that it needs are loaded. */
void render_runs_before(Render *, const Stmt *);
/* A WHERE that gives such an element, or zero where it is not given: it is the element, whose gate
 * says that already. */
bool render_is_given(Render *, const Node *where);
/* Stores that are 16 neighbouring bytes each: of how many statements, 0: they are none. */
int render_runs_of_stores(Render *, const Stmt *, int left);
/* render_fours.c: four stores of results that are quantised alike: of how many statements, 0: they
 * are none, or the machine has no use for it. */
int render_four_stores(Render *, const Stmt *, int left);
/* render_sums.c: four sums across lanes that are stored side by side: of how many statements, 0:
 * they are none. */
int render_four_sums(Render *, const Stmt *, int left);
/* render_across.c: sums of neighbours that one of them stores: of how many statements, 0: they are
 * none. */
int render_sums_across(Render *, const Stmt *, int left);

/* ---- render_lanes.c ------------------------------------------------------------------------- */

/* Of floats: as Language.spelling, or the middle of a function's name. */
extern const char *const lane_spelling[OP_COUNT];
/* The type whose functions compute on d in lanes, as in igrt_<op>_<type>(): "f32x16"; conditions
 * have those of floats. */
const char *render_lane_name(Render *, ingot_dtype d, char name[16]);
/* An op whose form in lanes ops.def promises. */
void render_lane_op(Render *, Node *);
/* The file that has the function of an op on lanes of floats of 32 or 64 bits, and the function's
 * name but for "xN"; NULL: none has. */
const char *lane_form(Op, int bits, char function[64]);
/* A function of one number as a lane of its form in lanes, which may round otherwise than the C
 * library's: where a run says which elements of a row are lanes, the others have the same bits.
 * False: it is the library's. */
bool render_one_lane(Render *, Node *);
void render_lane_cast(Render *, Node *);
void render_splat(Render *, Node *);
void render_ramp(Render *, Node *coordinate);
void render_horizontal(Render *, Node *);
void render_lane_load(Render *, Node *);
/* "igrt_f32x16 v4[16];", and what fills it: a load of rows. */
void render_rows(Render *, Node *, int depth);
void render_lane_store(Render *, Node *);
/* The type of a value in lanes, numbers or masks. */
void render_lane_type(Render *, ingot_dtype);

/* ---- render_dot.c --------------------------------------------------------------------------- */

/* What is added to by a dot: the name of an accumulator, or "0". */
void render_dot(Render *, Node *dot, const char *to);
/* A product of numbers of 16 bits that this sum adds, in lanes; false: nothing is written. */
bool render_short_product(Render *, Node *reduce, Node *product, int sum);
/* The number that is added to a sum of dots, and to nothing else, is what its accumulator begins
 * with, if it is known then: sums of integers are exact in any order. To be asked for once, where
 * the accumulator is declared; NULL: there is none. */
void render_find_begins(Render *);
Node *render_begin_of(Render *, const Node *sum);
/* igrt_widen_i8x4(a7 + r0*4, a2 + ..): of so many statements, four stores of bytes side by side
 * into a place of 16 bits, and names of their addresses; 0: these are none. */
int render_widened(Render *, const Stmt *, int left);
/* render_tables.c: loops over bytes that a table makes of bytes; how many statements; 0: they are
 * something else. */
int render_table_loops(Render *, const Stmt *, int left);
/* How many of n dots, from the first on, add up within i16, where that takes less: 0, or 2 at
 * least. The products of one of them, added to those called `to` (NULL: these are the first). */
int render_dot_pairs(Render *, Node *const *dot, int n);
void render_pair(Render *, Node *dot, const char *to);
/* render_pairs.c */
bool render_sum_of_dots(Render *, Node *); /* false: it is none */
/* Before a statement: sums of pairs of the statements from it on are begun, several at once. */
void render_chains(Render *, const Stmt *);
void render_four(Render *, Node *); /* a cast from bytes, or the load of them */
void render_four_type(Render *, Node *);

/* ---- render_tc.c ---------------------------------------------------------------------------- */

/* Around a loop nest in which a matrix unit computes. */
void render_tc_begin(Render *);
void render_tc_end(Render *);
/* The type of a fragment in the registers of lanes; one element of its sums. */
void render_fragment_type(Render *, Node *);
void render_fragment_element(Render *, Node *proj);
/* One made of what the item has; the load of one. */
void render_pack(Render *, Node *);
void render_lane_fragment(Render *, Node *load);
bool render_token(Render *, const Stmt *);
void render_loader_end(Render *, int depth);
int render_turns(const Tile *);
int render_joins(Render *, const Stmt *, int left);
void render_box(Render *, const Box *, Node *store, int depth);
void render_ask_for_box(Render *, const Box *, int depth);
/* Statements, of fragments in tiles. */
void render_fragment_zero(Render *, int tile);
void render_fragment_load(Render *, Node *load, int tile);
void render_fragment_store(Render *, Node *store, int tile);
void render_products(Render *, const Stmt *);

/* ---- render.c ------------------------------------------------------------------------------- */

void render_indent(Render *, int depth);
/* A condition, and the statement that is done where it holds, which is written next. */
void render_then(Render *, Node *condition, int depth);
void render_end_then(Render *, int depth);
/* "igrt_" and what is formatted: a name of the runtime's. */
void render_igrt(Render *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
