/* options.c - ingot_options, checked: what a name stands for, and what does not go together. */
#include <string.h>
#include <strings.h>

#include "codegen.h"
#include "pipeline.h"
#include "tc.h"

/* --fuse, in the order of Preset */
const char *const option_presets[] = {"auto", "none", "all"};

bool option_wrong(Context *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    context_vreport(c, INGOT_ERROR, INGOT_USAGE, format, ap);
    va_end(ap);
    return false;
}

/* A prefix of C names that is neither a keyword nor the runtime's. */
static bool name_is_good(Context *c, const char *name)
{
    Arena *a = arena_new();
    bool good = strlen(name) < 60 && !strcmp(identifier(a, name), name) && strncmp(name, "igrt", 4);
    static const char *const taken[] = {"main", "driver", "libc", "Makefile", "lib"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        good &= strcmp(name, taken[i]) != 0;
    arena_free(a);
    return good ||
           option_wrong(c, "--name '%.80s': this is no C identifier that names may start with",
                        name);
}

/* --devices: the target with so many of its kind beside it. */
static bool add_devices(Context *c, const ingot_options *o, Target *t, Arena *a)
{
    static const char *const ways[] = {"batch", "tensor", "layers"};
    bool known = !o->parallel;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !known; i++)
        known = !strcmp(o->parallel, ways[i]);
    if (!known)
        return option_wrong(c, "--parallel '%.80s': choose batch, tensor or layers", o->parallel);
    if (o->devices < 0 || o->devices > MOST_DEVICES)
        return option_wrong(c, "--devices %d: from 1 to %d", o->devices, MOST_DEVICES);
    if (o->devices < 2)
        return !o->parallel ||
               option_wrong(c, "--parallel %s: among several devices; --devices says how many",
                            o->parallel);
    const bool here = !o->package || !strcmp(o->package, "cmake") || !strcmp(o->package, "make");
    if (t->devices || t->bare || t->wasm || (t->gpu && !t->joins) || !here)
        return option_wrong(
            c, "--devices %d: a bundle for '%s' is for one device; for C and CUDA it works",
            o->devices, o->target ? o->target : t->name);
    if (o->nmemory || o->io_in_arena)
        return option_wrong(c, "--devices: not with --memory or --io-in-arena: each device has one "
                               "memory, and inputs and outputs are the caller's");
    const Target **beside = NEWN(a, const Target *, o->devices);
    Target *peer = NEW(a, Target);
    *peer = *t;
    for (int i = 0; i + 1 < o->devices; i++)
        beside[i] = peer;
    t->devices = beside;
    t->peers = true;
    return true;
}

/* Names are told apart in capitals too, and the last memory alone may be as large as it has to
 * be. */
static bool check_memories(Context *c, const ingot_options *o, const Target *t)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (o->nmemory && t->gpu)
        return option_wrong(
            c, "--memory: only with the target c; a bundle for '%s' has one arena, on its device",
            t->name);
    for (int i = 0; i < o->nmemory; i++) {
        const char *name = o->memories[i].name ? o->memories[i].name : "";
        size_t n = strspn(name, letters);
        if (!n || name[n] || n > 31 || *name <= '9')
            return option_wrong(
                c, "--memory '%.80s': at most 31 letters and digits are wanted, a letter first",
                name);
        for (int j = 0; j < i; j++)
            if (!strcasecmp(o->memories[j].name, name))
                return option_wrong(c, "--memory '%s': there are two of this name", name);
        if (o->memories[i].bytes < 0 || (!o->memories[i].bytes && i + 1 < o->nmemory))
            return option_wrong(c, "--memory '%s': only the last one may be without a size", name);
    }
    return true;
}

/* --no-rewrite: names of rules, with commas between. */
static bool check_rules(Context *c, const char *list)
{
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        const char *name = rewrite_name(0);
        for (int i = 0; name && (strlen(name) != n || strncmp(at, name, n)); i++)
            name = rewrite_name(i + 1);
        if (!name) {
            StrBuf all = {0};
            for (int i = 0; rewrite_name(i); i++)
                sb_printf(&all, "%s%s", i ? ", " : "", rewrite_name(i));
            (void)option_wrong(c, "--no-rewrite '%.*s': there are %s", (int)(n < 80 ? n : 80), at,
                               all.data);
            sb_free(&all);
            return false;
        }
        at += n;
    }
    return true;
}

static bool package_is_known(Context *c, const char *name)
{
    static const char *const packages[] = {"cmake",   "make",  "zephyr", "esp-idf",
                                           "arduino", "cmsis", "web"};
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++)
        if (!strcmp(name, packages[i]))
            return true;
    return option_wrong(
        c, "--package '%.80s': choose cmake, make, zephyr, esp-idf, arduino, cmsis or web", name);
}

/* One that was added to the context counts before those of the tree. */
static const char *make_target(const Context *c, Target *t, Arena *a, const char *name,
                               ingot_status *status)
{
    for (int i = 0; i < c->ntarget; i++)
        if (!strcmp(c->targets[i]->name, name)) {
            *t = *c->targets[i];
            *status = INGOT_OK;
            return NULL;
        }
    return target_make(t, a, name, status);
}

/* Units that add up all terms of f8 themselves, with few bits, or those that do not: as --precision
 * has it. */
static bool f8_units(Context *c, Target *t)
{
    const bool fast = precision_wanted(c, INGOT_PRECISION_FP8_FAST),
               wanted = fast || precision_wanted(c, INGOT_PRECISION_FP8);
    for (int i = 0; i < TC_COUNT; i++) {
        const Tc *u = &tc_units[i];
        if (u->a == INGOT_F8E4M3FN && tc_in_place(u) && tc_is_short(u) != fast)
            t->machine.units &= ~(UINT64_C(1) << i);
    }
    return !wanted || t->machine.units >> TC_MMA_F8 & 1 ||
           option_wrong(
               c,
               "--precision fp8: the target '%s' has no unit that multiplies such numbers; "
               "cuda:sm_89 and cuda:sm_90a have",
               t->name);
}

/* What the target's name stands for, in the arena; NULL after an error. */
const Target *options_check(Context *c, const ingot_options *o, Arena *a)
{
    if (c->nerror)
        return NULL;
    static const char *const weights[] = {"auto", "array", "blob", "incbin"};
    bool known = !o->weights;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0] && !known; i++)
        known = !strcmp(o->weights, weights[i]);
    if (!known &&
        !option_wrong(c, "--weights '%.80s': choose auto, array, blob or incbin", o->weights))
        return NULL;
    if (o->name && !name_is_good(c, o->name))
        return NULL;
    if (o->package && !package_is_known(c, o->package))
        return NULL;
    const char *name = o->target ? o->target : "c";
    Target *t = NEW(a, Target);
    ingot_status status;
    const char *why = make_target(c, t, a, name, &status);
    if (why) {
        const bool file = target_is_file(name); /* which the reason names */
        context_report(c, INGOT_ERROR, status, "--target%s%.80s%s: %s", file ? "" : " '",
                       file ? "" : name, file ? "" : "'", why);
        return NULL;
    }
    if (!f8_units(c, t))
        return NULL;
    if (!precision_wanted(c, INGOT_PRECISION_TF32))
        t->machine.units &= ~(UINT64_C(1) << TC_MMA_TF32);
    t->rounds = ingot_precision_of(c) == INGOT_PRECISION_NARROW && !c->nprecision;
    bool ram = o->prefer && !strcmp(o->prefer, "ram");
    if (o->prefer)
        t->machine.byte = ram ? DEAR : 0;
    if (o->prefer && !ram && strcmp(o->prefer, "time") != 0) {
        option_wrong(c, "--prefer '%.80s': choose ram or time", o->prefer);
        return NULL;
    }
    if (o->io_in_arena && t->gpu) {
        option_wrong(c, "--io-in-arena: only for the target c; the arena of '%s' is on its device",
                     t->name);
        return NULL;
    }
    if (!add_devices(c, o, t, a) || !check_memories(c, o, t) || !check_rules(c, o->no_rewrite))
        return NULL;
    if ((o->sched || o->save_sched) && o->naive) {
        option_wrong(c, "--sched, --save-sched: not with -O0");
        return NULL;
    }
    bool preset = !o->fuse;
    for (int i = 0; i < 3 && !preset; i++)
        preset = !strcmp(o->fuse, option_presets[i]);
    if (!preset) {
        option_wrong(c, "--fuse '%.80s': choose auto, none or all", o->fuse);
        return NULL;
    }
    return t;
}

/* Fields that the caller's header does not have yet keep their defaults. */
ingot_options options_complete(Context *c, const ingot_options *o)
{
    ingot_options full = {0};
    size_t n = o ? o->struct_size : 0;
    if (o && !n && (o->name || o->target || o->weights || o->max_ram))
        option_wrong(
            c, "ingot_options: struct_size is 0, so what it says would not be seen; set it to "
               "sizeof(ingot_options)");
    if (n)
        memcpy(&full, o, n < sizeof full ? n : sizeof full);
    return full;
}
