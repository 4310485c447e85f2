/*
 * igrt_pool.c - a fixed pool of workers. Each has a share of consecutive tasks, so that it meets again in its cache what it
 * wrote in the round before; who is through with his own takes from the others'.
 *
 * A round is announced by incrementing `round`. Idle workers spin for some microseconds, because
 * the next step of a model usually follows at once, and then sleep on a condition. A round is over when all tasks are taken
 * and nobody is inside: a worker that wakes late finds it closed and is not waited for. The counters are
 * accessed by the __atomic builtins of gcc and clang (C99 has no atomics).
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_pool.h"

#if IGRT_POOL_PTHREADS

#include <sched.h>

enum { SPINS = 2000 }; /* some 50 to 100 microseconds */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb"); /* as long as a pause; a yield is nothing there */
#endif
}

static void take_tasks(igrt_pool *pool, int worker)
{
    for (int k = 0; k < pool->threads; k++) {
        igrt_pool_worker *share = &pool->worker[(worker + k) % pool->threads];
        for (;;) {
            const int64_t i = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED);
            if (i >= share->end)
                break;
            if (pool->watch)
                pool->watch(pool->watch_user, i, worker, 0);
            pool->task(pool->arg, i, worker);
            if (pool->watch)
                pool->watch(pool->watch_user, i, worker, 1);
        }
    }
}

/* Waits for another round than the one before; gives it. */
static unsigned await_round(igrt_pool *pool, unsigned before)
{
    unsigned round;
    for (int spin = 0; spin < SPINS; spin++) {
        round = __atomic_load_n(&pool->round, __ATOMIC_ACQUIRE);
        if (round != before)
            return round;
        relax(); /* and no yield: beside other programs it would miss the rounds that follow */
    }
    pthread_mutex_lock(&pool->lock);
    __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    while ((round = __atomic_load_n(&pool->round, __ATOMIC_SEQ_CST)) == before)
        pthread_cond_wait(&pool->wake, &pool->lock);
    __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lock);
    return round;
}

static void *worker_main(void *arg)
{
    const igrt_pool_worker *worker = arg;
    igrt_pool *pool = worker->pool;
    for (unsigned round = 0;;) {
        round = await_round(pool, round);
        if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE))
            return NULL;
        __atomic_fetch_add(&pool->inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&pool->open, __ATOMIC_SEQ_CST))
            take_tasks(pool, worker->index);
        __atomic_fetch_sub(&pool->inside, 1, __ATOMIC_RELEASE);
    }
}

static void announce(igrt_pool *pool)
{
    __atomic_fetch_add(&pool->round, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

int igrt_pool_start(igrt_pool *pool, int threads)
{
    pool->threads = 1;
    pool->watch = NULL;
    pool->stop = 0;
    pool->sleepers = 0;
    pool->open = 0;
    pool->inside = 0;
    pool->round = 0;
    if (threads > IGRT_POOL_MAX)
        threads = IGRT_POOL_MAX;
    if (threads < 2)
        return 1;
    if (pthread_mutex_init(&pool->lock, NULL))
        return 1;
    if (pthread_cond_init(&pool->wake, NULL)) {
        pthread_mutex_destroy(&pool->lock);
        return 1;
    }
    int started = 1;
    for (; started < threads; started++) {
        igrt_pool_worker *worker = &pool->worker[started];
        worker->pool = pool;
        worker->index = started;
        if (pthread_create(&worker->thread, NULL, worker_main, worker))
            break;
    }
    if (started == 1) {
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->lock);
    }
    pool->threads = started;
    return started;
}

void igrt_pool_for(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    igrt_pool *pool = user;
    if (pool->threads < 2) {
        for (int64_t i = 0; i < n; i++)
            task(arg, i, 0);
        return;
    }
    pool->task = task;
    pool->arg = arg;
    for (int k = 0; k < pool->threads; k++) {
        pool->worker[k].next = n * k / pool->threads;
        pool->worker[k].end = n * (k + 1) / pool->threads;
    }
    __atomic_store_n(&pool->open, 1, __ATOMIC_SEQ_CST);
    announce(pool);
    take_tasks(pool, 0);
    __atomic_store_n(&pool->open, 0, __ATOMIC_SEQ_CST);
    for (int spin = 1; __atomic_load_n(&pool->inside, __ATOMIC_SEQ_CST); spin = (spin + 1) % 64) {
        if (spin)
            relax();
        else
            sched_yield();
    }
}

void igrt_pool_stop(igrt_pool *pool)
{
    if (pool->threads < 2)
        return;
    __atomic_store_n(&pool->stop, 1, __ATOMIC_RELEASE);
    announce(pool);
    for (int k = 1; k < pool->threads; k++)
        pthread_join(pool->worker[k].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    pool->threads = 1;
}

#else

int igrt_pool_start(igrt_pool *pool, int threads)
{
    (void)threads;
    pool->threads = 1;
    return 1;
}

void igrt_pool_for(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    (void)user;
    for (int64_t i = 0; i < n; i++)
        task(arg, i, 0);
}

void igrt_pool_stop(igrt_pool *pool)
{
    (void)pool;
}

#endif
