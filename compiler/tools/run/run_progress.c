/* run_progress.c - what takes more than two seconds tells how far it is, and how long it will go
 * on.
 *
 * On a terminal that is one line, written anew; elsewhere a line after 2, 4, 8 ... seconds, then
 * every minute. A thread of its own tells it, so that whoever works or waits need not. Nothing is
 * told with -q, nor where the clock counts steps (docs/tune.md): then nothing takes long. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

#define PATIENCE 2.0 /* seconds without a word */
#define OFTEN 0.25   /* on a terminal */
#define SELDOM 60.0

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    const char *what;
    double began, told, share;
    double seconds; /* share: that is done, or below 0; seconds: that it takes, or 0 */
    bool quiet, running, stop, terminal, shown;
} p = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_time(char *out, size_t bytes, double s)
{
    if (s < 90)
        snprintf(out, bytes, "%.0f s", s);
    else if (s < 5400)
        snprintf(out, bytes, "%.0f min", s / 60);
    else
        snprintf(out, bytes, "%.1f h", s / 3600);
}

/* "verify, the interpreter: 40 %, 12 s left" */
static void tell(double passed)
{
    char time[32], text[160];
    double share = p.seconds > 0 ? passed / p.seconds : p.share;
    if (share > 0.01 && share < 1) {
        print_time(time, sizeof time, passed * (1 - share) / share);
        snprintf(text, sizeof text, "%s: %.0f %%, %s left", p.what, 100 * share, time);
    } else {
        print_time(time, sizeof time, passed);
        snprintf(text, sizeof text, "%s: %s so far", p.what, time);
    }
    fprintf(stderr, p.terminal ? "\r  %s\033[K" : "  %s\n", text);
    p.shown = p.terminal;
}

static bool is_due(double passed)
{
    if (passed < PATIENCE)
        return false;
    if (p.terminal)
        return passed - p.told >= OFTEN;
    return passed >= 2 * p.told || passed - p.told >= SELDOM;
}

static void *teller(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&p.lock);
    while (!p.stop) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 200000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p.wake, &p.lock, &t);
        double passed = now() - p.began;
        if (!p.stop && is_due(passed)) {
            tell(passed);
            p.told = passed;
        }
    }
    if (p.shown)
        fputs("\r\033[K", stderr);
    pthread_mutex_unlock(&p.lock);
    return NULL;
}

void progress_quiet(bool quiet)
{
    p.quiet = quiet;
}

bool progress_is_quiet(void)
{
    return p.quiet;
}

void progress_begin(const char *what, double seconds)
{
    const char *clock = getenv("INGOT_CLOCK");
    progress_end();
    if (p.quiet || (clock && !strcmp(clock, "steps")))
        return;
    p.what = what;
    p.began = now();
    p.told = 0;
    p.share = -1;
    p.seconds = seconds;
    p.stop = p.shown = false;
    p.terminal = isatty(STDERR_FILENO);
    p.running = !pthread_create(&p.thread, NULL, teller, NULL);
}

void progress_at(double share)
{
    pthread_mutex_lock(&p.lock);
    p.share = share;
    pthread_mutex_unlock(&p.lock);
}

void progress_end(void)
{
    if (!p.running)
        return;
    pthread_mutex_lock(&p.lock);
    p.stop = true;
    pthread_cond_signal(&p.wake);
    pthread_mutex_unlock(&p.lock);
    pthread_join(p.thread, NULL);
    p.running = false;
}
