/* interp_region.h - a fused region of the graph as a linear program over lanes.
 *
 * interp_region.c builds it: every instruction writes one register, an array with one element per
 * lane.  interp_chunk.c runs it: the box is cut into blocks of kept coordinates, each swept by
 * blocks of reduced coordinates in row-major order. */
#ifndef INTERP_REGION_H
#define INTERP_REGION_H

#include "interp.h"

enum { LANES = 1024 };

typedef enum { DO_FILL, DO_LOAD, DO_IOTA, DO_ALU, DO_MASK, DO_PAD, DO_GATHER } RegionInstrKind;
typedef struct {
    RegionInstrKind kind;
    Node *node;
    int out;          /* register */
    int nin, *in;     /* ALU, PAD, GATHER: registers; MASK: uses */
    int mask;         /* register of lanes that may be read, or -1: all */
    int use;          /* LOAD, GATHER: element offset; IOTA: value */
    const char *data; /* LOAD, GATHER: from; FILL: the element */
    int64_t *dim;     /* MASK, GATHER: in[i] lies in (is clamped to) 0..dim[i]-1 */
    int64_t *stride;  /* GATHER */
} Instr;

typedef struct {
    ingot_dtype dtype;
    int last;    /* instruction that reads it last */
    bool pinned; /* filled once */
    char *lanes;
} Reg;

typedef struct {
    int start, len;
    int64_t base, stride;
} LaneRun;

/* A LinearForm that is needed for every lane.  Lane j*ninner + i of a chunk has the value
 * lin->c + base + inner[i] + outer[j] + mixed[j*ninner + i]. */
typedef struct {
    const LinearForm *lin;
    bool has_o, has_r, has_m;
    bool linear; /* linear: kept part is the row-major number of the kept point */
    bool load;
    int64_t base; /* of the block, whose o are beside it */
    int64_t *o, *r, *m;
    int nrun;
    LaneRun *run; /* inner[] as arithmetic progressions */
} LaneUse;

typedef struct {
    int rank;
    const LinearForm *x[INGOT_MAX_RANK];
    int mask; /* register or -1 */
} Coords;

typedef struct {
    uint64_t key;
    int to;
} Memo;

typedef struct Region_ Prog;
struct Region_ {
    Interp *ip;
    Arena *arena;
    Space space;
    uint32_t reduced; /* axes */
    Coords **coords;
    int ncoords;
    Instr *instr;
    int ninstr;
    Reg *reg;
    int nreg;
    LaneUse *use;
    int nuse, nplain; /* the first nplain ones are the instructions', the others the atoms' */
    Map value, moved; /* (node, coords) -> register + 1;  (movement node, coords) -> coords + 1 */
    /* running */
    int64_t nkept, nreduced, o0, r0;
    int ob, rb, ninner, nouter;
    bool steady; /* blocks are `some` points of axis `cut`, of each the `inner` ones of the kept
                  * axes behind it: their o are those of the first block */
    int cut;
    int64_t some, inner,
        first[INGOT_MAX_RANK]; /* first: coordinates of the block up to that axis */
    int64_t *axis_lane[INGOT_MAX_RANK];
    int64_t *offset, *wide; /* of the instruction that is being run */
    uint32_t axes_used;
    void (*sink)(Prog *, int n, const char *const *regs); /* called for every chunk */
    int nroot, *root;                                     /* registers given to the sink */
    void *user;
};

Prog *prog_new(Interp *, int rank, const int64_t *box, uint32_t reduced);
void prog_free(Prog *);
int prog_add(Prog *, Node *); /* at the root coordinates; register number */
void prog_run(Prog *, int nroot, const int *roots, void (*sink)(Prog *, int, const char *const *),
              void *user);

#endif
