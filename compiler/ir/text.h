/* text.h - what the printer and the parser of IR text share: the table of what a line holds. */
#ifndef TEXT_H
#define TEXT_H

#include "ir.h"

/* How many sources come before the dims that repeat the shape (and are left out of the text), for
 * the ops whose last sources are their own shape; -1 for all others. */
static inline int text_before_dims(int op)
{
    switch (op) {
    case OP_INPUT:
    case OP_DATA:
    case OP_STATE:
    case OP_PARAM:
    case OP_IOTA: return 0;
    case OP_RESHAPE:
    case OP_EXPAND:
    case OP_PROJ: return 1;
    default: return -1;
    }
}

/* Spelled inline where they are used: 7, true. */
static inline bool text_inline(Node *n)
{
    return n->op == OP_CONST && n->rank == 0 && (n->dtype == INGOT_INDEX || n->dtype == INGOT_BOOL);
}

/* Data up to this size is written out, larger one is named by its hash. */
enum { TEXT_DATA_BYTES = 64 };

extern const char *const text_monoid[MONOID_COUNT];
extern const char *const text_update[5];
extern const char *const text_var_kind[3];
uint64_t text_data_hash(const Data *);

#endif
