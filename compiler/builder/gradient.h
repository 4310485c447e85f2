/* gradient.h - what the files of reverse mode share (gradient.c).
 *
 * With g_y the gradient of the loss with respect to a tensor y, a rule gives what y's
 * computation adds to that of one of its sources x: g_x += g_y dy/dx.  The gradient of a tensor
 * has its shape and dtype. */
#ifndef GRADIENT_H
#define GRADIENT_H

#include "builder.h"

/* How a tensor depends on what the gradient is asked for. */
enum {
    PATH_NONE,
    PATH_INTEGER, /* through integers: it changes in steps */
    PATH_FLOAT    /* it has a gradient */
};

typedef struct {
    Context *c;
    Arena *arena; /* of the tables */
    uint32_t n;   /* nodes before the walk: tables are by id, below this */
    uint8_t *path;
    Node **grad;   /* what is known of each tensor's; NULL: nothing has been added */
    Node ***tuple; /* of CALL, LOOP and IF: of each result; NULL: none has a gradient */
    Node **reader; /* the one that the gradient has come from, poison: there are several */
    bool *target;  /* it is asked for */
    bool *live;    /* on the way from the roots */
    bool *rounded; /* a copy of a wider float: its gradient is wide, too */
    bool stops;    /* targets are leaves: what they are made of is no business of this walk */
    bool straight; /* ingot_gradient_options.straight_through */
    bool failed;   /* an error has been told */
} Backward;

/* What source i of n gets where n's is g: NULL for nothing.  Asked only of sources on a path. */
typedef Node *GradientRule(Backward *, Node *n, Node *g, int i);
#define GRADIENT(op, rule) GradientRule gradient_##rule;
#include "gradients.def"

/* ---- gradient.c */
static inline bool has_gradient(const Backward *b, const Node *x)
{
    return x->id < b->n && b->path[x->id] == PATH_FLOAT;
}
/* gradient_gather.c: passes the gradient of a node that a rule has made by another form of it;
 * false: it has none. */
bool gradient_again(Backward *, const Node *made, Node *g);
/* gradient_norm.c: passes the gradient of what has been normalised; false: n has not. */
bool gradient_normalised(Backward *, Node *n, Node *g);
/* gradient_softmax.c: likewise, of shares of a sum of e^z. */
bool gradient_softmax(Backward *, Node *n, Node *g);
/* More of the gradient of x, for rules that pass over nodes in between. */
void gradient_give(Backward *, Node *x, Node *g);
/* "gradient: %s", of the node that is being passed; poison. */
Node *gradient_error(Backward *, Node *n, const char *why);
Node *gradient_no_rule(Backward *, Node *n, const char *what);
/* (gradient_reduce.c) The gradient g of a sum of products as these are given it. */
Node *gradient_rounded(Context *, const Node *sum, Node *g);
/* The type that a factor was rounded to, or INGOT_F32. */
ingot_dtype gradient_factor_dtype(const Node *);
/* gradient_results.c: results of layers are read rounded. Nodes are in order. */
void gradient_round_results(Backward *, int count, Node *const *order);
/* What a walk inside of a region ends at: captures and parameters that are on a path. Those of
 * floats come first, once sorted. */
typedef struct {
    Node **node;
    uint8_t *path;
    int n, nfloat;
} Targets;
Targets targets_new(Backward *, int most);
void targets_add(Targets *, Node *, uint8_t path); /* unless it is on none */
void targets_sort(Targets *);
/* The same walk inside of a region: from the gradients of its roots to those of the targets,
 * out[nfloat] (NULL: none). false after an error. */
bool gradient_inside(const Backward *outer, int nroot, Node *const *root, Node *const *g,
                     const Targets *, Node **out);
/* How the root depends on these targets. */
uint8_t gradient_path(const Backward *outer, Node *root, const Targets *);
Node *gradient_zeros(Context *, Node *like);
/* x[t] along an axis, which is gone; t is a scalar. */
Node *gradient_place(Context *, Node *x, Node *t, int axis);
/* Sum over axes, which stay with size 1: of narrow floats in f32. */
Node *gradient_sum(Context *, Node *x, unsigned axes);
/* reduce.c: whether ingot_max_first() made the reduction. */
bool is_max_first(Context *, const Node *);

/* ---- affine_view.c: y[r] = x[off + coef r] */
typedef struct {
    Node *x;
    int rank; /* of y */
    Node *const *dims;
    int64_t coef[INGOT_MAX_RANK][INGOT_MAX_RANK]; /* by axis of x, by axis of y */
    Node *off[INGOT_MAX_RANK];                    /* by axis of x */
} AffineView;
void view_of(Context *, Node *x, AffineView *); /* x as itself */
/* x where an index for each axis says, as GATHER and UPDATE have it; false: the places are not
 * affine. */
bool view_of_places(Context *, Node *x, Node *const *index, AffineView *);
bool view_is_inside(Context *, const AffineView *); /* no place is out of range, for sure */
/* How many axes of y axis a of x depends on; the first two of them. */
int view_terms(const AffineView *, int a, int *axis);
/* x is a view in turn: of what is below it; false: of nothing that is known. */
bool view_deeper(Context *, AffineView *);

/* ---- gradient_windows.c */
/* The gradient of the x behind a view that folds, from that of the view: sums, pads and
 * reshapes, without a scatter. */
bool view_folds(const AffineView *);
Node *view_adjoint(Context *, const AffineView *, Node *g);
/* Of a REDUCE of products, one of which reads windows of x: a convolution.  What x gets is one
 * too.  False: it is none. */
bool gradient_convolution(Backward *, Node *reduce, Node *g);

/* ---- gradient_custom.c: of input i of a custom operator, from those of its results (NULL:
 * none). */
Node *custom_gradient(Backward *, Node *n, const CustomUse *, Node *const *out, Node *const *g,
                      int i);

/* ---- gradient_control.c: IF and CALL; gradient_loop.c */
void gradient_control(Backward *, Node *tuple);
void gradient_loop(Backward *, Node *tuple);

#endif
