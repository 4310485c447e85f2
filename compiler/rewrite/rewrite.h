/* rewrite.h - what the files of compiler/rewrite share: algebra on the tensor graph, before
 * anything is stored. */
#ifndef REWRITE_H
#define REWRITE_H

#include "builder.h"
#include "cost.h"
#include "graph_rewrite.h"

/* Parts that a piece of the network is computed in, at most: copies are that much time to compile,
 * and the kernels of each strip are started by all threads. */
enum { MOST_PIECES = 32 };

typedef struct Rewrite Rewrite;
struct Rewrite {
    Context *c;
    Arena *a;
    bool float_sums;  /* f32 has lanes, and a multiply-add that i32 has not */
    bool dot;         /* Target.dot */
    bool fours;       /* it takes four bytes each, not two pairs in lanes */
    bool soft_floats; /* floats are functions */
    bool scalar;      /* no lanes: four terms of one result are taken at once */
    bool words;    /* a word of four bytes in lanes becomes four floats sooner than four bytes do */
    bool tables;   /* Machine.tables */
    bool f8;       /* a matrix unit multiplies f8 */
    bool one_sign; /* of bytes in lanes one is to have no sign: not Target.any_sign */
    bool halves;   /* it takes pairs of i16: Machine.dot_i16 */
    bool shorts;   /* one instruction multiplies and adds them: lanes take bytes as such numbers */
    bool custom_calls; /* nothing but OP_CUSTOM is rewritten */
    const char *off;   /* names of rules that are not to be tried, "a,b"; or NULL */
    uint32_t nnode;    /* nodes before this pass */
    Node **now;        /* what became of them; NULL: not yet visited */
    Map replaced;      /* by id + 1, which node became this one, its id + 1; -1: several did */
    Node **roots;      /* of this pass */
    int nroot;
    uint8_t *reads; /* by whom they are read, up to 2; NULL: not yet counted */
    bool changed;
    bool settled;   /* nothing applies any more, but for rules that wait for this */
    bool rounds;    /* a rule applied that rounds otherwise than the graph asks for */
    Node *visiting; /* of the graph before this pass */
    Node *(*apply)(Rewrite *, Node *renewed); /* or NULL: it stays */
    /* what stands for a node of the graph before this pass, or NULL: the same of what its sources
     * became */
    Node *(*renew)(Rewrite *, Node *);
    void *user;
    const Target *target; /* of variants: what they are to be fast on */
    /* bytes that the largest product takes with its operands: what a variant may take more is a
     * part */
    double ram;
    /* casts of bytes that are to read u8 (dot_signs.c), or i16 (wide_bytes.c): a set of ids + 1 */
    Map signless;
    Map strips; /* strips.c: nodes that are made in strips */
    /* and those of the graph before this pass that a sum reads, whatever their axes are called */
    Map summed;
    Map constants; /* winograd_time.c: by id + 1, whether a node is made of nothing else */
};

/* rewrite.c: the model's graph from its leaves up, once; whether anything changed. */
bool rewrite_pass(Rewrite *);
/* rewrite.c: what the model's graph is made for: outputs, next states, and what sets a run-time
 * dim. */
Node **rewrite_roots(Context *, Arena *, int *nroot);

/* rewrite.c: what became of a node; of all below the roots. */
Node *rewritten(const Rewrite *, Node *);
void rewrite_below(Rewrite *, int nroot, Node *const *roots);
/* rewrite.c: it is read once, in the graph before this pass or in what stands for that by now. What
 * is made of it twice would be computed, or stored, twice. */
bool read_once(Rewrite *, Node *);
/* rewrite.c: n itself, if the graph before this pass has it; else the one node of that which became
 * n; NULL: none did, or several. */
Node *node_before(Rewrite *, Node *n);
/* rewrite.c: a node, no LOOP or IF, of other sources. */
Node *made_again(Rewrite *, Node *, Node **src);
/* rewrite_control.c: a LOOP or IF. */
Node *renewed_control(Rewrite *, Node *);

/* A rule gives what stands for a node, or NULL: it stays.  Its sources have been rewritten. */
Node *narrow_choice(Rewrite *, Node *);   /* narrow_choice.c */
Node *identity(Rewrite *, Node *);        /* identity.c */
Node *small_power(Rewrite *, Node *);     /* identity.c: of a POW */
Node *shaped_constant(Rewrite *, Node *); /* identity.c: of a RESHAPE */
/* undone_reshape.c: does a convolution or product make it, but for work on elements? */
bool comes_from_products(const Node *, int deep);
Node *undone_reshape(Rewrite *, Node *);    /* undone_reshape.c: of a RESHAPE */
Node *group_sum(Rewrite *, Node *reduce);   /* group_sum.c */
Node *one_hot_sum(Rewrite *, Node *reduce); /* one_hot_sum.c */
/* joined_parts.c */
Node *joined_parts(Rewrite *, Node *sum); /* of an ADD */
Node *narrow_parts(Rewrite *, Node *cast);
Node *kept_parts(Rewrite *, Node *keep);
Node *update_sum(Rewrite *, Node *sum);     /* update_sum.c: of an ADD or SUB */
Node *few_rows(Rewrite *, Node *update);    /* few_rows.c */
Node *triangle(Rewrite *, Node *data);      /* causal_mask.c */
Node *digits(Rewrite *, Node *concat);      /* unpack.c */
Node *integer_sum(Rewrite *, Node *reduce); /* integer_sum.c */

Node *sub_byte(Rewrite *, Node *reduce); /* sub_byte.c */
/* sub_byte.c: which axis of its source is this one of a RESHAPE? -1: none. */
int axis_below(Node *reshape, int axis);

Node *phases(Rewrite *, Node *reduce); /* transposed_conv.c */
/* fold_scale.c */
Node *fold_scale(Rewrite *, Node *); /* of a MUL or DIV */
Node *fold_shift(Rewrite *, Node *add);
Node *fold_number(Rewrite *, Node *add); /* of integers */

/* zero_point.c: of a REDUCE of i32. */
Node *narrow_weights(Rewrite *, Node *reduce);
Node *zero_points(Rewrite *, Node *reduce);
Node *signs(Rewrite *, Node *reduce); /* dot_signs.c */
Node *without_signs(Rewrite *, Node *cast);
bool loses_sign(const Rewrite *, const Node *cast); /* in the next pass, */
void mark_cast(Rewrite *, Node *cast);              /* which is said so */
/* dot_signs.c: of a factor, what it casts is stored for this product alone, or could be. */
bool stored_for_product(Rewrite *, Node *factor, Node *cast);
/* dot_signs.c: it is arithmetic, perhaps in another shape, that one node reads. */
bool computed_once(Rewrite *, Node *);
Node *wide_bytes(Rewrite *, Node *reduce);   /* wide_bytes.c: of i32 */
Node *widened_cast(Rewrite *, Node *marked); /* wide_bytes.c: of bytes; NULL: it stays */

Node *byte_max(Rewrite *, Node *reduce); /* byte_max.c: of bytes */

Node *fours(Rewrite *, Node *reduce); /* pad_dot.c: of i32 */

Node *input_rows(Rewrite *, Node *reduce); /* input_rows.c: of i32 */

Node *float_sum(Rewrite *, Node *reduce); /* float_sum.c: of i32 */
/* float_sum.c: bytes that are widened and moved; zero: perhaps with a zero point that leaves again,
 * (pad of (x - z)) + z. */
bool is_byte(Node *, bool zero);
/* float_sum.c: are along some axis a multiple of four of the product's factors weights, and bytes
 * all? */
bool takes_dot(Rewrite *, Node *product, unsigned axes);
/* dot_signs.c: in how many products of the reduce does each element of a factor take part, other
 * windows aside; are they many? */
int64_t uses_of(Node *reduce, Node *factor);
bool used_again(Node *reduce, Node *factor);
Node *byte_table(Rewrite *, Node *cast);         /* byte_table.c: of floats to bytes */
Node *requantize(Rewrite *, Node *round);        /* requantize.c */
Node *integer_requantize(Rewrite *, Node *cast); /* integer_requantize.c */
Node *two_bytes(Rewrite *, Node *cast);          /* two_bytes.c: of bytes to bytes */
Node *one_shift(Rewrite *, Node *cast);          /* one_shift.c: of integers to bytes */
Node *choose_bytes(Rewrite *, Node *cast);       /* choose_bytes.c: of floats to bytes */
/* one_shift.c: bounds of the outer MAX and MIN of an i32 narrow *lo and *hi; what is below them. */
Node *below_clamp(Node *, int32_t *lo, int32_t *hi);

/* requantize.c: nothing but constants. */
bool is_constant(Node *, int depth);
/* zero_point.c: integers of the file, widened, less zero points, and moved but not padded. */
bool is_weight(Node *);
/* integer_requantize.c: the largest magnitude that an integer may have; INFINITY: any. */
double largest_integer(Node *, int depth);
/* integer_requantize.c: the elements of a constant (of f64), in the rewrite's memory: *n of them,
 * and the largest magnitude. */
const double *constant_numbers(Rewrite *, Node *k, int64_t *dims, int64_t *n, double *most);
/* zero_point.c: the sum of w over the axes, of size 1 wherever w does not vary, as compact shows;
 * NULL if that cannot be said. */
Node *sum_over(Rewrite *, Node *w, Node *compact, unsigned axes);
/* zero_point.c: of a REDUCE: products of i32 are summed. */
bool sums_integers(Node *reduce);
/* zero_point.c: what is spread over n, if it is one element, or NULL. */
Node *one_number(Node *n);
/* integer_sum.c: move's kind of movement, of x. */
Node *moved(Context *, Node *move, Node *x);
/* integer_sum.c: what is moved, with the axes of n: along each it has n's size, or 1 if it does not
 * vary there; NULL if it cannot be brought into that form. */
Node *compact_form(Rewrite *, Node *n);

/* as_matmul.c: what is repeated along the axes where a factor does not vary. */
Node *compact_of(Node *factor);
/* as_matmul.c: of a REDUCE; try: only whether it can be done. */
Node *as_matmul(Rewrite *, Node *reduce, bool try);
/* as_matmul.c: an elementwise node whose operand has become one, in the shape of that; NULL: it has
 * none. */
Node *joined_elementwise(Rewrite *, Node *);

/* winograd_axes.c: an index tensor at coordinates; NULL: it is more than arithmetic on them. */
Node *index_at(Context *, Node *, Node *const *at, int depth);
/* winograd_axes.c: where x at these coordinates lies below all that moves it: gives that, its
 * coordinates, and whether it is inside. */
Node *source_of(Context *, Node *x, Node *const *coords, Node **at, Node **inside);

/* winograd.c: of a REDUCE, in tiles of 2 and of 4 results; of 2 along the first axis of two. */
Node *winograd2(Rewrite *, Node *reduce, bool try);
Node *winograd4(Rewrite *, Node *reduce, bool try);
Node *winograd2x1(Rewrite *, Node *reduce, bool try);
/* winograd_taps.c: the same of the gradient of a weight. */
Node *winograd_taps(Rewrite *, Node *reduce, bool try);
/* winograd_time.c: of a REDUCE that can be done so, by the time of the direct form; INFINITY: it is
 * not to be done unasked. */
double winograd2_time(Rewrite *, Node *reduce);
double winograd4_time(Rewrite *, Node *reduce);
double winograd2x1_time(Rewrite *, Node *reduce);
double winograd_taps_time(Rewrite *, Node *reduce);
/* winograd_time.c: bytes of a sum of products and of its operands, where these are stored; 0: it is
 * none. */
double product_ram(Rewrite *, Node *);

/* strips.c: a concat, of parts that fit; nothing is left of it in the context but its node. */
Node *concat_of(Context *, int n, Node *const *part, int axis);
/* strips.c: a value that a loop makes strip by strip, along an axis. */
typedef struct {
    Node *counter, *first; /* of the loop; where its strip begins, made of that */
    Node *part;            /* the strip, made of both */
    int axis;
    Node *size;      /* of the whole */
    uint32_t oldest; /* the first value of this counter; 0: this is it */
} Strips;
/* strips.c: what stands for it until its loop is made; for a node that reads such a one, another
 * such, or NULL. */
Node *strips(Rewrite *, const Strips *);
Node *in_strips(Rewrite *, Node *);
void find_summed(Rewrite *, int n, Node *const *nodes);
/* strips.c: is it computed, element by element, of what some sum reads too? */
bool reads_summed(Rewrite *, const Node *);
/* strips.c: of these nodes, which are to be results of loops: a second pass, whose strips those are
 * and whose user is the first one, makes the loops. */
void strip_loops(const Rewrite *, int n, Node *const *nodes, Map *loops);
Node *strip_loop(Rewrite *, Node *);

/* batch_strips.c: of a REDUCE: products of matrices that are made of products, some matrices at a
 * time. */
Node *batch_strips(Rewrite *, Node *reduce, bool try);
double batch_strips_time(Rewrite *, Node *reduce);

/* dead_elements.c: no value of the model's graph is larger than what is read of it; whether one
 * was. */
bool demand(Context *);
/* A part of values: lo <= i < hi along this axis. */
typedef struct GraphPart {
    int axis;
    int64_t lo, hi;
    const Node *kept;               /* what it is made of and is there as a whole; NULL: inputs */
    double share;                   /* so much of each sum may it take at most */
    const struct GraphPart *across; /* the same along one axis more, or NULL: axis, lo and hi */
} GraphPart;
/* dead_elements.c: what stands for this part of all roots; false: it takes more. */
bool roots_part(Context *, Arena *, int nroot, Node *const *roots, const GraphPart *, Node **part);
/* dead_elements.c: how many elements of each value that takes, by id; NULL: it takes more. */
double *part_elements(const Context *, Arena *, int nroot, Node *const *roots, const GraphPart *);

/* borders.c: the nodes of a graph in order, and the values that all goes through. */
typedef struct {
    Node **order;
    int n;
    bool *run;    /* by id: it depends on an input */
    bool *summed; /* a product that is summed */
    bool *result; /* a result of the model */
    int *last;    /* by place in the order: the last one that reads what is there by then */
} Borders;
Borders find_borders(Context *, Arena *, int nroot, Node *const *roots);
/* All that comes later is made of this value alone, and it is stored. */
bool is_border(const Borders *, int place);
/* The model's graph with this one in place of a border; whether that is another graph. */
bool exchange_border(Context *, Arena *, Node *from, Node *to);
/* batches.c: the results in parts of a few rows, whose values a cache holds; whether they are. */
bool batches(Context *, const Target *);
/* tile_graph.c: values that no cache holds, in bands of rows; whether there were any. */
bool bands(Context *, const Target *);

/* scale_products.c: of any node; itself if that is no REDUCE with scales. */
Node *scale_products(Rewrite *, Node *);
/* sum_parts.c: of any node; itself if that is no long sum of products for a CPU's matrix unit. */
Node *sum_parts(Rewrite *, Node *);
/* join_products.c: products of one operand by several weights, in the model's graph; whether there
 * were any. */
bool join_products(Context *);
/* join_sums.c: of two sums over the same elements one; whether there were any. */
bool join_sums(Context *);

/* shard_cost.c: cycles of a sum of products: of arithmetic, or of reading its constants. */
double product_time(const Target *, Node *sum);
/* The same file: a sum of values of n devices takes less time where each adds a piece of it, which
 * the others get, than where each gets all values. */
bool reduces_in_pieces(const Target *, int n, double bytes);

/* value_range.c: bounds of all elements of an integer tensor; false: none are known. */
bool value_range(Node *, double *lo, double *hi);

#endif
