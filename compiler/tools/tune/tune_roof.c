/* tune_roof.c - what kernels may gain, by what one core of this machine can do (machine_peak.c).
 *
 * Rounds go to the kernels that may gain most: their time in the network, less what the machine
 * allows.  A kernel that multiplies at nearly the rate of the core is not searched; the database
 * keeps that, so that the next run leaves the same ones alone. */
#include <math.h>
#include <string.h>

#include "tune_command.h"

static const char found_there[] = "# at the roof of operations";
#define MOST_BYTES 0.9 /* where data lie is not known so well */

static double operations_ns(const Roof *r, const Kernel *k)
{
    return (double)k->flops / r->flops * 1e9;
}

static double bytes_ns(const Roof *r, const Kernel *k)
{
    const double bytes = (double)k->bytes, rate = bytes <= 1 << 15   ? r->near
                                                  : bytes <= 1 << 19 ? r->cache
                                                  : bytes <= 1 << 23 ? r->far
                                                                     : r->memory;
    return bytes / rate * 1e9;
}

double roof_share(const Roof *r, const Kernel *k, double ns, const char **what)
{
    const double compute = operations_ns(r, k), memory = bytes_ns(r, k);
    *what = compute > memory ? "operations" : "bytes";
    return fmax(compute, memory) / ns;
}

bool tune_roof(Tune *t)
{
    if (clock_is_steps() && !t->o->remote) /* as of estimates: a cycle is a nanosecond */
        t->roof = (Roof){.flops = 64e9, .near = 64e9, .cache = 32e9, .far = 16e9, .memory = 8e9};
    const char *dir = arena_printf(t->a, "%s/roof", t->dir);
    if (t->roof.flops <= 0 && !t->o->remote && roof_build(t->a, dir, t->o->compile.target) &&
        !roof_measure(t->a, dir, &t->roof))
        t->roof = (Roof){0};
    return t->roof.flops > 0;
}

/* The roof is that of f32: bytes and halves may have instructions of their own. */
static bool is_f32(const Kernel *k)
{
    bool all = true;
    for (int i = 0; i < k->narg; i++)
        all &= k->args[i].dtype == INGOT_F32;
    return all;
}

static const char *key_of(const Tune *t, const TuneKernel *k)
{
    return text_key(t, "roof, ", k->hash);
}

/* Nanoseconds that a core takes for it in the network. */
static double time_of(const Tune *t, const TuneKernel *k)
{
    return k->ms * 1e6 / k->nstep * t->o->threads;
}

/* Others may have been at work while it was measured: no kernel does more than a core can. */
static void raise_roof(Tune *t)
{
    for (int i = 0; i < t->n; i++) {
        const TuneKernel *k = t->order[i];
        if (k->ms > 0 && is_f32(k->naive))
            t->roof.flops = fmax(t->roof.flops, (double)k->naive->flops / time_of(t, k) * 1e9);
    }
}

/* With nothing known of the roof all of a kernel's time is hope. */
static bool set_hope(Tune *t, TuneKernel *k)
{
    const Roof *r = &t->roof;
    if (r->flops <= 0 || k->ms <= 0)
        return true;
    const double ns = time_of(t, k);
    const double compute = operations_ns(r, k->naive) / ns,
                 bytes = fmin(bytes_ns(r, k->naive) / ns, MOST_BYTES);
    k->hope = k->ms * (1 - fmin(fmax(compute, bytes), TUNE_AT_ROOF));
    if (!is_f32(k->naive))
        return true;
    k->roof_ns = operations_ns(r, k->naive);
    k->at_roof = compute > TUNE_AT_ROOF;
    return !k->at_roof || database_keep_outcome(t->d, key_of(t, k), found_there);
}

ingot_status tune_hopes(Tune *t)
{
    bool wanted = false;
    int there = 0;
    for (int i = 0; i < t->n; i++) {
        TuneKernel *k = t->order[i];
        const char *known = t->o->kernels ? NULL : database_outcome(t->d, t->a, key_of(t, k));
        k->hope = k->ms;
        k->at_roof = known && !strcmp(known, found_there);
        wanted |= !k->at_roof && !database_done(t->d, k, t->o->beam);
    }
    const bool search = wanted && t->o->budget > 0 && !t->o->kernels && tune_roof(t);
    if (search)
        raise_roof(t);
    for (int i = 0; i < t->n; i++) {
        TuneKernel *k = t->order[i];
        if (search && !k->at_roof && !database_done(t->d, k, t->o->beam) && !set_hope(t, k))
            return complain(INGOT_IO, "%s", database_error(t->d));
        there += k->at_roof;
    }
    if (search && t->o->compile.verbose)
        note("  a core does %.4g operations a nanosecond", t->roof.flops * 1e-9);
    if (there)
        note("  %d of %d kernels do what the machine can: not searched", there, t->n);
    return INGOT_OK;
}
