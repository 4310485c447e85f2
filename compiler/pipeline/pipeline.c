/* pipeline.c - the list of passes, from a graph to a plan:
 *
 *     custom calls, rewrite                what is computed
 *     variants, devices, schedule          which values are stored, by which kernels, where
 *     copied inputs, layouts, optimise     how they lie, and how loops run
 *     states, early, stages                what is updated in place; the order of steps
 *     share, memplan                       equal kernels are one; where every buffer lies
 *     together                             kernels of a GPU that are one launch
 *     settled                              what a GPU's kernels read while others still run
 *     backward                             which of them begin with their last blocks
 *     nest_lower .. pair_stores            their statements (lowered.c lists these passes)
 *
 * What a .sched file says takes part in each: values_match() and variants_apply() before the
 * schedule, optimise() per kernel. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "codegen.h"
#include "decisions.h"
#include "language.h"
#include "lowered.h"
#include "pipeline.h"
#include "segments.h"

enum {
    GPU_ALIGN = 512
}; /* of buffers in a device arena: IGRT_CL_ALIGN, a multiple of CUDA's 256 */

static int opt_level(const ingot_options *o)
{
    return o->naive ? 0 : 2;
}

/* ---- timing ------------------------------------------------------------------------------ */

Clock clock_start(Context *c, const ingot_options *o)
{
    Clock k = {.c = c, .verbose = o->verbose};
    clock_gettime(CLOCK_MONOTONIC, &k.since);
    return k;
}

void passed(Clock *k, const char *pass)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (k->verbose) {
        double ms = (double)(now.tv_sec - k->since.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - k->since.tv_nsec) * 1e-6;
        context_report(k->c, INGOT_NOTE, INGOT_OK, "%10.1f ms  %s", ms, pass);
    }
    k->since = now;
}

/* ---- passes ------------------------------------------------------------------------------ */

static void verify_graph(Context *c, const char *after)
{
    if (!INGOT_VERIFY)
        return;
    for (int i = 0; i < c->noutput; i++)
        verify(1, &c->outputs[i].node, 0, after);
}

static void verify_kernels(const Plan *p, const char *after)
{
    for (int i = 0; INGOT_VERIFY && i < p->nkernel; i++)
        verify(1, &p->kernels[i]->sink, 1, after);
}

/* A step that reads what another device has is the compiler's fault. */
static void verify_devices(Plan *p)
{
    const char *why = p->ndevice > 1 ? devices_fault(p->arena, p) : NULL;
    if (why)
        BUG("%s", why);
}

/* So is one that reads a state behind its update in place. */
static void verify_states(Plan *p)
{
    const char *why = states_fault(p->arena, p);
    if (why)
        BUG("%s", why);
}

/* Fails, naming the tensors to blame: those of this memory, or of all (-1). */
static bool too_much(const Plan *p, int memory, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool too_much(const Plan *p, int memory, const char *format, ...)
{
    StrBuf sb = {0};
    const Buffer *worst[5];
    int n = memplan_peak(p, memory, worst, 5);
    va_list ap;
    sb_printf(&sb, "%s: ", p->c->file ? p->c->file : "model");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    sb_puts(&sb, "; the largest tensors at the peak:");
    for (int i = 0; i < n; i++) {
        const Origin *o = worst[i]->node ? node_origin(p->c, worst[i]->node) : NULL;
        sb_puts(&sb, i ? ", " : " ");
        if (worst[i]->name)
            sb_printf(&sb, "'%s' ", worst[i]->name);
        else if (o)
            sb_printf(&sb, "output of '%s' (%s) ", o->node, o->op);
        print_shape(&sb, p->c, worst[i]->dtype, worst[i]->rank, worst[i]->dims);
        sb_printf(&sb, " %lld bytes", (long long)worst[i]->bytes);
    }
    context_report(p->c, INGOT_ERROR, INGOT_UNSUPPORTED, "%s", sb.data);
    sb_free(&sb);
    return false;
}

/* --max-vram: what a bundle has on each GPU, if the caller's tensors are the host's: these are on
 * the first. */
static bool fits_gpu(const Plan *p, int64_t limit)
{
    for (int d = 0; d < p->ndevice; d++) {
        const int64_t given = d ? 0 : plan_given_bytes(p),
                      arena = d ? p->memories[memories_from(p, d)].bytes : p->arena_bytes,
                      weights = p->ndevice > 1 ? device_weights(p, d) : p->weights_bytes,
                      all = sat_add(sat_add(arena, weights), given);
        if (all > limit)
            return too_much(p, p->ndevice > 1 ? memories_from(p, d) : -1,
                            "needs %lld bytes on the GPU (%lld the arena, %lld weights, %lld "
                            "inputs and outputs), --max-vram allows %lld",
                            (long long)all, (long long)arena, (long long)weights, (long long)given,
                            (long long)limit);
    }
    return true;
}

bool plan_fits(const Plan *p, int64_t limit, bool silent)
{
    int last = memories_end(p, 0) - 1;
    const Memory *m = &p->memories[last];
    if (m->limit && m->bytes > m->limit)
        return too_much(p, last, "--memory '%s' of %lld bytes is %lld bytes too small for what %s",
                        m->name, (long long)m->limit, (long long)(m->bytes - m->limit),
                        last ? "the memories before it do not hold" : "has to lie in it");
    if (limit && p->arena_bytes > limit)
        return !silent && too_much(p, -1, "needs %lld bytes of RAM, --max-ram allows %lld",
                                   (long long)p->arena_bytes, (long long)limit);
    return true;
}

static void set_memories(Plan *p, const ingot_options *o)
{
    for (int i = 0; i < o->nmemory; i++) {
        Memory m = {.name = o->memories[i].name, .limit = o->memories[i].bytes};
        vec_push(p->arena, p->memories, p->nmemory, m);
    }
    for (int i = 0; p->peers && i < p->ndevice; i++) {
        Memory m = {.name = arena_printf(p->arena, "device%d", i), .device = i};
        vec_push(p->arena, p->memories, p->nmemory, m);
    }
}

/* The target's name in files that are for other machines too. */
static const char *target_of(const Plan *p, const ingot_options *o)
{
    return target_everywhere(p->arena, o->target ? o->target : "c");
}

static bool prefers_time(const ingot_options *o)
{
    return o->prefer && !strcmp(o->prefer, "time");
}

/* What a file says of values, and the variants it asks for. */
static bool begin_decisions(Plan *p, const Target *t, const ingot_options *o, GraphRoots *keep)
{
    Preset preset = PRESET_AUTO;
    for (int i = 0; o->fuse && i < 3; i++)
        preset = strcmp(o->fuse, option_presets[i]) ? preset : (Preset)i;
    values_begin(p, preset);
    if (o->sched && !sched_parse(p, o->sched, target_of(p, o), o->target ? o->target : "c",
                                 o->threads > 1 ? o->threads : 1))
        return false;
    if (!values_devices(p))
        return false;
    values_match(p);
    variants_apply(p, t, prefers_time(o), keep);
    return true;
}

static bool not_saved(Context *c, const char *file)
{
    context_report(c, INGOT_ERROR, INGOT_IO, "%s: %s", file, strerror(errno));
    return false;
}

bool save_begin(Context *c, OutFile *f, const char *file, const char *text)
{
    *f = (OutFile){0};
    if (!file)
        return true;
    return (output_begin(f, c->arena, file) &&
            (output_put(f, text, strlen(text)), output_written(f))) ||
           not_saved(c, file);
}

bool save_end(Context *c, OutFile *f, const char *file, bool good)
{
    if (!file)
        return true;
    if (!good)
        output_drop(f);
    return !good || output_keep(f) || not_saved(c, file);
}

Plan *plan_saved(Plan *p, const ingot_options *o)
{
    OutFile f;
    if (p && save_begin(p->c, &f, o->save_sched, p->saved) &&
        save_end(p->c, &f, o->save_sched, true))
        return p;
    plan_free(p);
    return NULL;
}

/* What was decided about values, memories too, and about kernels. */
static void save(Plan *p, const ingot_options *o, const StrBuf *kernels)
{
    StrBuf text = {0};
    sched_print_values(&text, p, target_of(p, o));
    if (kernels->len)
        sb_write(&text, kernels->data, kernels->len);
    p->saved = arena_strdup(p->arena, text.data);
    sb_free(&text);
}

/* " (node 'conv1' (Conv) and others)": of which nodes of the model a kernel is. */
static const char *kernel_of(Plan *p, const Kernel *k)
{
    int n;
    Step **step = kernel_steps(p, p->arena, &n);
    for (int i = 0; i < n; i++)
        if (step[i]->kernel == k && step[i]->norigin) {
            const Origin *o = step[i]->origins[0];
            return arena_printf(p->arena, " (node '%s' (%s)%s)", o->node, o->op ? o->op : "",
                                step[i]->norigin > 1 ? " and others" : "");
        }
    return "";
}

/* Has the target's language what the kernels say? */
static bool can_be_said(Plan *p, const Target *t)
{
    bool good = true;
    for (int i = 0; i < p->nkernel; i++) {
        const Kernel *k = p->kernels[i];
        const Language *l = target_device(t, k->device)->language;
        const char *what = l && l->lacks ? l->lacks(p->arena, k) : NULL;
        if (what)
            ingot_error(p->c, INGOT_UNSUPPORTED, "--target '%s': kernel %s%s: %s", t->name, k->name,
                        kernel_of(p, k), what);
        good = good && !what;
    }
    return good;
}

static void lower(Plan *p, const Target *t, Clock *k)
{
    for (int pass = 0; pass < LOWER_PASSES; pass++) {
        for (int i = 0; i < p->nkernel; i++)
            kernel_lower_pass(p->kernels[i], t->gpu, pass);
        passed(k, lower_pass[pass].name);
    }
}

/* What the model's graph is for a target, as its rules leave it. */
static void rewrite_graph(Context *c, const Target *t, const ingot_options *o, Clock *k)
{
    verify_graph(c, "import");
    if (t->gpu)
        graph_custom_calls(c);
    graph_read_as(c);
    if (o->naive)
        return;
    (void)graph_rewrite(c, t, o->no_rewrite);
    verify_graph(c, "rewrite");
    passed(k, "rewrite");
}

static bool has_outputs(Context *c)
{
    if (!c->noutput && !c->noutput_group)
        ingot_error(c, INGOT_INVALID, "the model has no outputs");
    return c->noutput || c->noutput_group;
}

/* --parallel: what each device computes. */
static bool split_graph(Context *c, const Target *t, const ingot_options *o)
{
    if (!t->peers || !o->parallel || !strcmp(o->parallel, "layers"))
        return true;
    const Parallel how = strcmp(o->parallel, "batch") ? PARALLEL_TENSOR : PARALLEL_BATCH;
    graph_read_as(c); /* what it was told is of these nodes, and not of parts of them */
    if (shards(c, t, how, o->devices))
        return true;
    ingot_error(c, INGOT_UNSUPPORTED,
                "--parallel %s: nothing of the model can be split among %d "
                "devices%s",
                o->parallel, o->devices,
                how == PARALLEL_BATCH ? ": no input has a first dim that is a known multiple of it"
                                      : ", or nothing is faster so");
    return false;
}

static void order_steps(Plan *p, const Target *t, const ingot_options *o)
{
    states_in_place(p);
    run_early(p);
    if (t->triggers)
        order_in_stages(p);
    if (!prefers_time(o))
        recompute(p, t);
    if (p->ram.hold > 0)
        (void)recompute_to_fit(p, t, p->ram.hold);
    else if (t->triggers && prefers_time(o) && !o->max_ram && !o->max_vram)
        find_asides(p);
}

static bool place_buffers(Plan *p, const Target *t)
{
    const bool good = memplan(p, t->gpu ? GPU_ALIGN : 64);
    if (good && t->triggers) {
        find_together(p, t);
        find_settled(p);
        find_backward(p, t);
    }
    return good;
}

/* By which file, if any: what it says is for the plan that it was written for. */
static bool begin_ram(Plan *p, const ingot_options *o, const Within *w)
{
    if (o->sched && !sched_parse_ram(p, o->sched, target_of(p, o), o->target ? o->target : "c",
                                     o->threads > 1 ? o->threads : 1))
        return false;
    p->ram.byte = w->ram.byte > 0 ? w->ram.byte : p->ram.byte;
    p->ram.hold = w->ram.hold > 0 ? w->ram.hold : p->ram.hold;
    return true;
}

static Plan *plan_of_graph(Plan *p, const Target *t, const ingot_options *o, Clock *k,
                           const Within *w, PlanTaken *taken)
{
    Context *c = p->c;
    rewrite_graph(c, t, o, k);
    GraphRoots keep = {0}, model = {0};
    if (w->room > 0)
        model = roots_keep(c, p->arena);
    if (w->room > 0 && !patches(c, t, w->room)) {
        plan_free(p);
        return NULL;
    }
    p->verbose = o->verbose > 0;
    p->ndevice = target_ndevice(t);
    p->peers = t->peers;
    bool ready = o->naive || begin_decisions(p, t, o, &keep);
    ready = ready && place_on_devices(p, t, o->parallel && !strcmp(o->parallel, "layers"), &keep);
    verify_graph(c, "devices");
    ready = ready && plan_schedule(p, opt_level(o), t);
    roots_restore(c, &keep);
    roots_restore(c, &model);
    passed(k, "schedule");
    StrBuf record = {0}; /* of every kernel step: later on equal kernels are one */
    const bool lends = o->io_in_arena && !t->gpu;
    if (ready && o->naive && lends)
        ready = plan_io_in_arena(p);
    if (ready && !o->naive) {
        if (values_preset(p) != PRESET_ALL)
            copy_inputs(p, t);
        if (!t->gpu)
            find_masked_buffers(p);
        kernel_keys(p);
        if (!t->gpu || t->machine.units)
            choose_layouts(p, t);
        optimise(p, t);
        ready = !o->sched || choices_report(p);
        if (o->save_sched)
            sched_print_kernels(&record, p);
        passed(k, "optimise");
        ready = ready && (!lends || plan_io_in_arena(p));
        if (ready)
            order_steps(p, t, o);
    }
    if (ready)
        order_for_devices(p);
    if (ready) {
        kernel_share(p);
        verify_kernels(p, "schedule");
        set_memories(p, o);
        ready = place_buffers(p, t);
        if (ready)
            *taken = (PlanTaken){p->arena_bytes, p->state_bytes,
                                 w->judge ? plan_cycles(p, w->judge) : 0};
        ready = ready && plan_fits(p, o->max_ram, w->silent) &&
                (!t->gpu || !o->max_vram || fits_gpu(p, o->max_vram));
        passed(k, "memplan");
        verify_kernels(p, "memplan");
        verify_devices(p);
        verify_states(p);
    }
    ready = ready && can_be_said(p, t);
    if (ready)
        lower(p, t, k);
    if (ready && o->save_sched)
        save(p, o, &record);
    sb_free(&record);
    if (ready)
        return p;
    plan_free(p);
    return NULL;
}

Plan *plan_once(Context *c, const Target *t, const ingot_options *o, Clock *k, const Within *w,
                PlanTaken *taken)
{
    *taken = (PlanTaken){0};
    if (c->nerror)
        return NULL;
    if (!has_outputs(c) || !split_graph(c, t, o))
        return NULL;
    Plan *p = plan_new(c);
    if (!begin_ram(p, o, w)) {
        plan_free(p);
        return NULL;
    }
    Target own = *t;
    if (p->ram.byte > 0)
        own.machine.byte = p->ram.byte;
    return plan_of_graph(p, &own, o, k, w, taken);
}

Plan *pipeline_plan(Context *c, const Target *t, const ingot_options *o, Clock *k)
{
    Plan *p = plan_within_ram(c, t, o, k);
    if (p)
        plan_tell(p, t->gpu, o->verbose);
    return p;
}
