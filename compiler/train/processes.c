/* processes.c - what the processes of a run have together, by the communicator that a bundle is
 * given. */
#include "ir.h"
#include "train.h"

ingot_tensor *ingot_process_mean(ingot_context *c, ingot_tensor *x)
{
    const Collective mean = {.kind = ALL_MEAN, .processes = true};
    if (ingot_is_poison(x))
        return x;
    ingot_tensor *wide = train_wide(c, x);
    return ingot_cast(c, collective_make(c, &mean, 1, &wide), ingot_dtype_of(x));
}
