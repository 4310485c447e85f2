/* opt_apply.c - an opt is carried out, or refused.
 *
 * The heuristic, .sched files, the tuner and kernel_lower() all come here.  An opt changes what a
 * Nest says of the kernel's loops, never the kernel's expression; a refusal changes nothing and is
 * a sentence for whoever wrote the opt:
 *
 *     UPCAST i1 4       i1 < 10 becomes i1.o < 2 and four copies; i1.r has the last two
 *     UPCAST i7 4       "the kernel has no axis 'i7': it has i0 i1 r0"
 *
 * What is asked of every kind is here, which may come after which is said by opts.def; the kinds
 * themselves:
 *
 *     opt_split.c   SPLIT OVERLAP UPCAST UNROLL DOT
 *     opt_vector.c  VECTOR                       opt_partial.c   PARTIAL
 *     opt_order.c   ORDER JOIN THREAD            opt_bind.c      BIND MASK
 *     opt_stage.c   STAGE PREFETCH               opt_tc.c        TC
 *     opt_image.c   IMAGE
 *     opt_trigger.c TRIGGER, STAY */
#include <string.h>

#include "opt.h"

const char *opt_refuse(Nest *n, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    return sb_take(&sb, n->arena);
}

/* What can be named. */
const char *opt_axes(Nest *n)
{
    const char *all = "";
    for (int i = 0; i < n->norder; i++)
        if (!n->axis[n->order[i]].remainder)
            all = arena_printf(n->arena, "%s %s", all, n->axis[n->order[i]].name);
    return *all ? all + 1 : "none";
}

const char *opt_no_axis(Nest *n, const char *what, const char *name, size_t length)
{
    return opt_refuse(n, "%sthe kernel has no axis '%.*s': it has %s", what, (int)length, name,
                      opt_axes(n));
}

bool opt_on_gpu(const Nest *n)
{
    return n->target && n->target->gpu;
}

bool opt_is_item(const Nest *n, int axis)
{
    return n->axis[axis].bound == BOUND_LANE || n->axis[axis].bound == BOUND_WARP;
}

/* Is it of the kernel's own loop nest, not of one that clears a halo? */
bool opt_is_output(const Nest *n, int axis)
{
    const Node *end = n->k->sink->src[0];
    for (int i = end_stores(end); i < (int)end->nsrc; i++)
        if (end->src[i] == n->k->axes[n->axis[axis].root].range)
            return true;
    return false;
}

bool opt_counts_rounds(const Nest *n)
{
    return n->inner || (n->tc && n->tc->lanes && !n->sharing);
}

/* Has another axis along a row of sums the same blocks of blocks, so that they share their ranges?
 */
static bool shares_ranges(const Nest *n, const Split *s)
{
    bool staged = false;
    for (int i = 0; i < n->k->naxis; i++)
        staged |= n->axis[i].staged;
    const bool nested = s->axis >= n->k->naxis || n->axis[s->inner].split >= 0;
    if (!staged || !nested || s->kind != OPT_SPLIT || !n->axis[s->axis].reduced)
        return false;
    for (const Split *like = n->split; like != s; like++)
        if (like->kind == OPT_SPLIT && like->amount == s->amount && n->axis[like->axis].reduced &&
            n->axis[like->axis].root != n->axis[s->axis].root)
            return true;
    return false;
}

/* Numbers of ranges that a loop nest may need. */
int opt_ranges(const Nest *n)
{
    int sum = n->k->naxis, reduced = 0;
    for (int i = 0; i < n->k->naxis; i++)
        reduced += n->axis[i].reduced;
    for (int i = 0; i < n->nsplit; i++)
        sum += (shares_ranges(n, &n->split[i]) ? 0 : 3) +
               (n->split[i].kind == OPT_VECTOR && n->axis[n->split[i].axis].reduced &&
                        n->split[i].remaining /* terms with loops of their own */
                    ? reduced
                    : 0);
    for (int i = 0; i < n->nsplit; i++)
        sum += n->split[i].kind == OPT_PARTIAL ? opt_ranges_of_rows(n) : 0;
    if (opt_counts_rounds(n)) /* lanes, fragments and masked axes are new */
        return sum + n->nstage + n->k->naxis + 5;
    return sum + n->nstage * (n->norder + 1);
}

const char *opt_no_room(Nest *n, const Opt *o, int more)
{
    n->full = opt_ranges(n) + more > MAX_RANGES;
    return n->full ? opt_refuse(n, "%s %s %lld: the kernel would have more than %d loops",
                                opt_name[o->kind], o->axis, (long long)o->amount, MAX_RANGES)
                   : NULL;
}

/* The axis that an opt names, which has a loop; or why it has none. THREAD may name several, a..b:
 * the last one. */
static const char *loop_of(Nest *n, const Opt *o, int *axis)
{
    const char *dots = o->kind == OPT_THREAD ? strstr(o->axis, "..") : NULL;
    const char *name = dots ? dots + 2 : o->axis;
    *axis = nest_find(n, name, strlen(name));
    if (*axis < 0)
        return opt_no_axis(n, "", name, strlen(name));
    if (n->axis[*axis].scanned)
        return opt_refuse(
            n,
            "%s %s: the axis is scanned: its loop runs in order, each element continues the last",
            opt_name[o->kind], o->axis);
    if (n->axis[*axis].extent == 1)
        return opt_refuse(n, "%s %s: no loop is left of the axis: it has one iteration",
                          opt_name[o->kind], o->axis);
    if (n->axis[*axis].bound && o->kind != OPT_STAGE)
        return opt_refuse(n, "%s %s: the axis is bound: its iterations are no loop",
                          opt_name[o->kind], o->axis);
    return NULL;
}

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == length && !memcmp(list, word, length))
            return true;
    return false;
}

/* "STAGE THREAD TRIGGER" as STAGE, THREAD and TRIGGER. */
static const char *listed(Nest *n, const char *words)
{
    const char *text = "";
    while (*words) {
        const int length = (int)strcspn(words, " ");
        const char *rest = words + length + (words[length] == ' ');
        text = arena_printf(n->arena, "%s%s%.*s", text,
                            !*text  ? ""
                            : *rest ? ", "
                                    : " and ",
                            length, words);
        words = rest;
    }
    return text;
}

/* Why it may not come after one of those that were done (opts.def); the last of them is told. */
static const char *out_of_turn(Nest *n, const Opt *o)
{
    for (int i = n->nopt; i-- > 0;) {
        const OptKind done = n->opts[i].kind;
        const char *after = opt_after[done];
        const bool join = o->kind == OPT_JOIN;
        if (has_word(after, opt_name[o->kind]) || (!join && has_word(after, "any")))
            continue;
        if (join)
            return opt_refuse(n, "JOIN %s: it comes before all other opts", o->axis);
        if (!*after)
            return opt_refuse(n, "%s comes last", opt_name[done]);
        return opt_refuse(n, "%s %s: after %s come only %s", opt_name[o->kind], o->axis,
                          opt_name[done], listed(n, after));
    }
    return NULL;
}

static const char *apply(Nest *n, const Opt *o)
{
    if (n->k->serial)
        return opt_refuse(n, "this kernel takes no opts: its iterations run in order");
    const char *why = out_of_turn(n, o);
    if (why)
        return why;
    if (o->kind == OPT_TRIGGER)
        return opt_trigger(n, o);
    if (o->kind == OPT_STAY)
        return opt_stay(n, o);
    if (o->kind == OPT_IMAGE)
        return opt_image(n, o);
    if (o->kind == OPT_ORDER)
        return opt_order(n, o);
    if (o->kind == OPT_JOIN)
        return opt_join(n, o);
    if (o->kind == OPT_TC)
        return opt_tc(n, o);
    int axis;
    why = loop_of(n, o, &axis);
    if (why)
        return why;
    if (o->kind == OPT_THREAD)
        return opt_on_gpu(n) ? opt_refuse(n, "THREAD %s: a GPU has BIND", o->axis)
                             : opt_thread(n, o, axis);
    if (o->kind == OPT_MASK)
        return opt_mask(n, o, axis);
    if (o->kind == OPT_BIND)
        return opt_bind(n, o, axis);
    if (o->kind == OPT_PREFETCH)
        return opt_prefetch(n, o, axis);
    if (o->kind == OPT_STAGE)
        return opt_stage(n, o, axis);
    if (o->kind == OPT_PARTIAL)
        return opt_partial(n, o, axis);
    if (n->row >= 0 && !n->axis[axis].reduced)
        return opt_refuse(
            n,
            "%s %s: the remainder of %s is computed apart from its vectors: no axis of results "
            "is taken apart after that",
            opt_name[o->kind], o->axis, n->axis[n->row].name);
    why = opt_no_room(n, o, 6);
    if (why)
        return why;
    switch (o->kind) {
    case OPT_VECTOR: return opt_vector(n, o, axis);
    case OPT_DOT: return opt_dot(n, o, axis);
    case OPT_SPLIT: return opt_split(n, o, axis);
    case OPT_OVERLAP: return opt_overlap(n, o, axis);
    case OPT_UPCAST:
    case OPT_UNROLL: return opt_copies(n, o, axis);
    default: return opt_refuse(n, "%s: nothing carries it out", opt_name[o->kind]);
    }
}

const char *opt_apply(Nest *n, const Opt *o)
{
    const char *why = apply(n, o);
    if (!why)
        vec_push(n->arena, n->opts, n->nopt, opt_copy(n->arena, o));
    return why;
}

bool nest_opt(Nest *n, OptKind kind, const char *axis, int64_t amount)
{
    Opt o = {.kind = kind, .axis = axis, .amount = amount};
    return !opt_apply(n, &o);
}

bool nest_opt_range(Nest *n, OptKind kind, Node *range, int64_t amount)
{
    return nest_opt(n, kind, nest_loop_name(n, range), amount);
}
