/* opt.h - what the files of opts share: opt_apply.c asks the file of each kind. */
#ifndef OPT_H
#define OPT_H

#include "kernel.h"

enum { MAX_RANGES = 64 /* of a loop nest: linearize() counts them in the bits of a word */ };

/* ---- opt_apply.c ----------------------------------------------------------------------------- */

/* A refusal, which lives as long as the nest. */
const char *opt_refuse(Nest *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "...the kernel has no axis 'i9': it has i0 i1" */
const char *opt_no_axis(Nest *, const char *what, const char *name, size_t length);
/* The axes that can be named. */
const char *opt_axes(Nest *);
bool opt_on_gpu(const Nest *);
/* Are its iterations items of a group, or warps of them? */
bool opt_is_item(const Nest *, int axis);
/* Is the axis of the kernel's own loop nest, not of one that clears a halo? */
bool opt_is_output(const Nest *, int axis);
/* Do items fill each place by rounds, of which one range is the counter, and each sum whole?  Else
 * the loops that fill a place may be all of the nest's once more. */
bool opt_counts_rounds(const Nest *);
/* Numbers of ranges that a loop nest may need. */
int opt_ranges(const Nest *);
/* With so many more there would be more than there may be: the refusal, or NULL. */
const char *opt_no_room(Nest *, const Opt *, int more);
/* opt_partial.c: of these, of the loops that begin sums of a place, and of those that add to
 * them. */
int opt_ranges_of_rows(const Nest *);

/* ---- one kind each: NULL, or why it cannot be done ------------------------------------------- */

const char *opt_split(Nest *, const Opt *, int axis);
const char *opt_overlap(Nest *, const Opt *, int axis);
const char *opt_copies(Nest *, const Opt *, int axis); /* UPCAST, UNROLL */
const char *opt_dot(Nest *, const Opt *, int axis);
const char *opt_mask(Nest *, const Opt *, int axis);
const char *opt_bind(Nest *, const Opt *, int axis);
const char *opt_vector(Nest *, const Opt *, int axis);
const char *opt_tc(Nest *, const Opt *);
const char *opt_stage(Nest *, const Opt *, int axis);
const char *opt_partial(Nest *, const Opt *, int axis);
const char *opt_trigger(Nest *, const Opt *);
const char *opt_stay(Nest *, const Opt *);
const char *opt_image(Nest *, const Opt *);
const char *opt_prefetch(Nest *, const Opt *, int axis);
const char *opt_join(Nest *, const Opt *);
const char *opt_order(Nest *, const Opt *);
const char *opt_thread(Nest *, const Opt *, int axis);

/* ---- what they ask of each other ------------------------------------------------------------- */

/* opt_split.c: the axis becomes an outer and an inner one, and perhaps one of what remains. */
Split *opt_divide(Nest *, const Opt *, int axis, AxisForm inner, RestForm);
/* opt_split.c: is the axis a part of one that OVERLAP has taken apart? Lanes along it would be
 * stored or not, each for itself. */
bool opt_overlaps(const Nest *, int axis);
/* opt_split.c: was the axis, or what it is a part of, unrolled with a rest? */
bool opt_has_rest(const Nest *, int axis);
/* opt_split.c: can what is left of an axis of terms be a reduce of its own?  Would n copies along
 * the axis be more than there may be? */
bool opt_rest_is_alone(const Nest *, int axis);
bool opt_too_many_copies(const Nest *, int axis, int64_t n);
/* opt_vector.c: can the kernel's axis become lanes? */
bool opt_in_lanes(const Nest *, int axis);

#endif
