/* linear_thread.h - a thread of a kernel whose statements are run: what linear_exec.c and the files
 * beside it share. */
#ifndef LINEAR_THREAD_H
#define LINEAR_THREAD_H

#include "linear_code.h"

/* What is said by tokens between the item that has boxes copied and the warps that read them: how
 * many iterations the one has asked for, and of how many each of the others has released the
 * places. */
typedef struct {
    int64_t claimed, *released;
    bool once;       /* what is filled before all iterations has been asked for */
    int *groups;     /* of products that each warp has begun */
    struct Landing { /* a box under way */
        ShadowMemory *to;
        int64_t at, bytes, iteration;
        unsigned char *data;
    } * landing;
    int nlanding;
    struct ProductUse { /* bytes that products under way read */
        ShadowMemory *of;
        int64_t at, bytes;
        int warp, group;
    } * use;
    int nuse;
} Boxes;

typedef enum { RUNS, AT_BARRIER, AT_PRODUCTS, AT_WARP, AT_TOKEN } Wait;

typedef struct {
    LinearInterp *m;
    const LinearKernel *lk;
    const LinearCode *c;
    const LinearArg *arg;
    unsigned char *f;
    Arena *a; /* of the group */
    Epoch now;
    Epoch shared;    /* of places that a group shares: its clock counts barriers (WARP_CLOCK) */
    uint64_t within; /* its group, from 1 on, << 32 | barriers that it has passed; 0: it has none */
    int pc;          /* where it goes on */
    /* Copies under way, of which `groups` groups have begun; an item has few at a time. */
    struct Flight {
        ShadowMemory *to;
        int64_t at;
        int group, bytes;
        unsigned char data[16];
    } * flight;
    int nflight, groups;
    Wait waits; /* at the instruction before */
    bool loader;
    bool depended; /* what was enqueued before the kernel is done */
    Boxes *boxes;  /* of the group, or NULL */
    /* what the groups of its cluster have given so far, where the sums are in the frame */
    unsigned char *joined;
    bool gives; /* it ends when it has given */
    /* Of groups of a cluster that meet: how often it has, and after how often it goes no further:
     * it begins again when all others have come as far. */
    int met, meets;
    bool joins; /* others have parts of its sums, which it has not joined yet */
} Thread;

static inline int64_t *integer(const Thread *t, int at)
{
    return (int64_t *)(void *)(t->f + at);
}

/* linear_fault.c: what is wrong, where, and in which iteration and thread; they return false.  Of
 * an element: "reads a1[0,3], which ..." */
bool thread_fault(const Thread *, const Do *, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool thread_fault_at(const Thread *, const Do *, const char *what, int64_t element,
                     const char *how);
/* "a1[0,3,27]", or "a1, element 70 of its 64" */
void linear_tell_element(StrBuf *, const Kernel *, int arg, int64_t at, int64_t size);

/* linear_access.c: n elements of a buffer from `first` on may be read or written; each instruction
 * that does. */
bool thread_access(const Thread *, const Do *, int64_t first, int64_t n, bool write);
bool thread_load(const Thread *, const Do *);
bool thread_store(const Thread *, const Do *);
bool thread_load_tile(const Thread *, const Do *);
bool thread_store_tile(const Thread *, const Do *);
bool thread_load_lane(const Thread *, const Do *);
/* Copies that begin, and what waits for all but the last so many groups of them. */
bool thread_bring(Thread *, const Do *);
void thread_wait(Thread *, int but);

/* linear_products.c: of a tile; of fragments that the items of a warp have; of operands that lie in
 * places. */
void thread_products(const Thread *, const Do *);
void thread_scale(const Thread *, const Do *);
void warp_products(const Thread *item, const Do *);
bool warp_products_in_place(const Thread *item, const Do *);

/* linear_boxes.c: a box begins to fill a place; products begin to read one; a token lets the
 * loader, or the warp of this item, go on. */
bool thread_box(Thread *, const Do *);
bool thread_use(const Thread *, const Do *, int arg, int64_t at, int64_t n);
bool thread_pass(Thread *);
static inline int thread_warp(const Thread *t)
{
    return (int)((uint32_t)t->shared / (uint32_t)t->lk->tc->lanes);
}

#endif
