/* weight_value.h - what bundle_weights.c asks of weight_value.c. */
#ifndef WEIGHT_VALUE_H
#define WEIGHT_VALUE_H

#include "bundle.h"

typedef struct {
    const uint8_t *bytes; /* in the buffer's layout; NULL: the bundle has failed */
    Interp *interp;       /* owner of the bytes of a recipe */
    void *packed;         /* or of those that a layout has moved */
} WeightValue;

WeightValue weight_value(Bundle *, const Buffer *);
void weight_value_close(WeightValue *);

/* Several weights may be made of one tensor of the file, as the digits and the scales of blocks
 * are: by tensor, the last of them, its number plus one. */
Map weight_last_readers(const Bundle *);
/* Weight i is written: what no later one is made of need not stay in memory. */
void weight_forget_sources(const Bundle *, int i, const Map *last);

#endif
