/* linear_code.h - statements of linear IR as instructions on a frame: linear_code.c makes them,
 * linear_exec.c runs them.
 *
 * A frame is the memory of one thread: every value has its bytes there, in its compute type
 * (dtypes.def), one element for each lane.  Coordinates have 64 bits. */
#ifndef LINEAR_CODE_H
#define LINEAR_CODE_H

#include "linear_interp.h"

typedef enum {
    DO_AFFINE, /* out = constant + sum of terms */
    DO_ALU,    /* out = op(in...), in every lane */
    DO_CAST,
    DO_BITCAST,
    DO_CUSTOM,
    DO_COPY,   /* out = in[0] */
    DO_SPREAD, /* out = in[0], of `from` elements, again and again */
    DO_ZERO,
    DO_RAMP, /* out = in[0], in[0] + arg, in[0] + 2 arg, ... */
    /* out = buffer[in[0]...], the first `part` of n elements, `step` apart, and of each `count`
     * neighbours; in[1]: a gate for every one, or -1 */
    DO_LOAD,
    DO_STORE,         /* buffer[in[0]...] = in[1] */
    DO_STORE_IN_TURN, /* the same, the `count` values of operand[] in turn */
    /* an accumulator gets its identity (in[0]), its count 0; in[1]: how many terms it is to get */
    DO_START,
    DO_UPDATE,
    DO_COUNT, /* an accumulator has one more term */
    DO_TERM,  /* of a SCAN: the next one in order? */
    DO_WHOLE, /* an accumulator has all of its terms? */
    /* out += sums of `count` neighbours; with `part`: out = these */
    DO_FOURS,
    DO_ACROSS,  /* lanes are joined, by halves */
    DO_SKIP,    /* to `to` if in[0] is zero */
    DO_SKIP_IF, /* if it is not */
    DO_JUMP,
    DO_LOOP, /* counter `out` = 0; to `to` if it has no iteration */
    DO_NEXT, /* the counter goes on; to `to` while it is below in[0] */
    /* counter `out` = where the first of this thread's parts begins, of in[0] iterations */
    DO_FIRST,
    DO_LAST,   /* `out` = where its last part ends */
    DO_AXIS,   /* counter `out` = in[0] / in[1] % in[2] */
    DO_FORGET, /* the place `arg` is filled anew */
    DO_TAKE,   /* tile `arg` of a matrix unit holds value `to` from now on */
    DO_HELD,   /* does it still? */
    /* out = lines of n / count elements each: buffer[in[0] + line * step]...; with a group (part):
     * line / group and column * group + line % group */
    DO_LOAD_TILE,
    DO_STORE_TILE, /* buffer[in[0] + line * step...] = in[1] */
    /* buffer `arg`[in[0]...] = buffer `from`[in[1]...], n elements; in[2]: a gate, or zeros, or -1;
     * in[3]: how many of them there are, or -1 */
    DO_BRING,
    DO_COMMIT, /* what the item has brought since the last one, with `part`, is a group */
    DO_WAIT,   /* until all but the last `arg` groups are there */
    /* out = the item's elements of a fragment: buffer[in[0] + line * step + at * count] (operand
     * `from`) */
    DO_LOAD_LANE,
    DO_QUAD, /* together: out = in[0] of the four items that have the same lines, joined */
    /* the items of a warp together: out += in[0] in[1], of each its elements */
    DO_PRODUCTS_OF_LANES,
    DO_PRODUCTS,  /* out += in[0] in[1]: rows, columns, terms are part, count, from */
    DO_LAST_PART, /* to `to` unless this thread has the last part */
    DO_ITEM,      /* counter `out` is what the work item's number is in in[0] iterations */
    DO_ITEM_IS,   /* the thread ends if there is no such work item */
    DO_DEPEND,    /* what was enqueued before the kernel is done */
    DO_BARRIER,   /* it goes on when all items of its group have come here; arg: of its warp */
    DO_LOADER,    /* to `to` unless this is the item that has boxes copied */
    DO_LEAVE,     /* the thread ends */
    /* it goes on when the places of iteration in[0] are free: so many, `arg` iterations ago, are
     * released */
    DO_CLAIM,
    DO_BOX, /* a box of a buffer to the place `arg`[in[0]...]; its coordinates are in operand[] */
    /* the items of a warp together: go on when the copies of iteration in[0] are there */
    DO_FILLED,
    /* together: their products of the iteration before in[0] are done; in[0] -1: all are */
    DO_RELEASE,
    /* out, n elements, the first of which is number `arg`: what groups of a cluster have is added,
     * of which each keeps a share of `from`; in[0]: which group this is */
    DO_JOIN,
    /* together: out += a b, which lie in places `arg` and `from` at in[0] and in[1] */
    DO_PRODUCTS_IN_PLACE,
    DO_DONE,  /* together: all of their products so far are done */
    DO_SCALE, /* out, a fragment's sums: lines by in[0] and in[1] in turn */
} DoKind;

typedef struct {
    int at;
    int64_t k;
} AffineTerm;

typedef struct {
    DoKind kind;
    Op op;
    uint8_t type, from_type[3]; /* of the result, of the operands */
    int64_t arg; /* Node.arg; DO_AFFINE: the constant; LOAD, STORE: the kernel's argument */
    Node *node;
    int n, part, from; /* elements */
    int size, stored;  /* bytes of an element, here and in memory */
    int out, in[4];    /* in the frame */
    int count;         /* of an accumulator: where its count is */
    int64_t step;
    int to;   /* instruction */
    bool one; /* LOOP, NEXT, ITEM: over outputs, of which a sample runs one iteration */
    int stmt;
    AffineTerm *term;
    int nterm;
    int *operand; /* of DO_CUSTOM, DO_BOX, DO_STORE_IN_TURN: in the frame */
    const Box *box;
    LaneFragment place[2]; /* of DO_PRODUCTS_IN_PLACE */
} Do;

/* A loop that is open around a statement. */
typedef struct OpenLoop {
    const char *name;
    int at;
    const struct OpenLoop *outer;
} OpenLoop;

typedef struct {
    const Stmt *stmt;
    int tile, number;
    const OpenLoop *open;
} StmtPlace;

typedef struct LinearCode {
    Do *code;
    int n;
    StmtPlace *place; /* by Do.stmt */
    int nplace;
    unsigned char *frame; /* constants are there; the rest is written before it is read */
    int bytes;
    int tiles;              /* in the frame: what each tile of a matrix unit holds */
    int var, scalar;        /* in the frame: the run-time integers, the numbers, the ... */
    int begin, end, number; /* ... parts of a thread, and what is left of a work item's number */
    int64_t nitem;
    bool wide;
    const char *fault;
} LinearCode;
LinearCode *linear_code(Arena *, const LinearKernel *);
/* "kernel k07_conv, statement 3 of loop nest 0 (update of a sum over r0)" */
void linear_tell(StrBuf *, const Kernel *, const StmtPlace *);

typedef enum {
    ACCESS_GOOD,
    ACCESS_UNWRITTEN,
    ACCESS_RACE,
    ACCESS_READ_RACE,
    ACCESS_UNDER_WAY, /* a copy that nobody has waited for */
    ACCESS_BUSY       /* a product that nobody has waited for */
} AccessFault;
#define THREAD_SEVERAL UINT64_C(0xffffffff)
/* where: the first byte of the cell that is at fault; within: the thread's group << 32 | barriers
 * that it has passed, or 0. */
AccessFault shadow_read(ShadowMemory *, int64_t at, int64_t size, Epoch now, uint64_t within,
                        int64_t *where);
AccessFault shadow_write(ShadowMemory *, int64_t at, int64_t size, Epoch now, uint64_t within,
                         int64_t *where);
/* A copy that has begun: nothing may be read or written there; until it is done, by whoever waits
 * for it. */
AccessFault shadow_begin(ShadowMemory *, int64_t at, int64_t size, Epoch now, int64_t *where);
void shadow_done(ShadowMemory *, int64_t at, int64_t size, Epoch now);
/* The same for all who wait for a token. */
void shadow_landed(ShadowMemory *, int64_t at, int64_t size);
/* A product begins to read what has been written; until it is done. */
AccessFault shadow_use(ShadowMemory *, int64_t at, int64_t size, int64_t *where);
void shadow_used(ShadowMemory *, int64_t at, int64_t size);

#endif
