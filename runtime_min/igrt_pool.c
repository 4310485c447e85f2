/*
 * igrt_pool.c - a fixed pool of workers that take indices from one shared counter.
 *
 * A round is announced by incrementing `round`. Idle workers spin for some microseconds, because
 * the next step of a model usually follows at once, and then sleep on a condition. The counters are
 * accessed by the __atomic builtins of gcc and clang (C99 has no atomics).
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_pool.h"

#if IGRT_POOL_PTHREADS

#include <sched.h>

enum { SPINS = 4000 };

static void relax(int spin)
{
    if (spin % 64 == 63) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void take_tasks(igrt_pool *pool, int worker)
{
    for (;;) {
        const int64_t i = __atomic_fetch_add(&pool->next, 1, __ATOMIC_RELAXED);
        if (i >= pool->n)
            return;
        pool->task(pool->arg, i, worker);
    }
}

static void await_round(igrt_pool *pool, unsigned done)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) != done)
            return;
        relax(spin);
    }
    pthread_mutex_lock(&pool->lock);
    __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool->round, __ATOMIC_SEQ_CST) == done)
        pthread_cond_wait(&pool->wake, &pool->lock);
    __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker_main(void *arg)
{
    const igrt_pool_worker *worker = arg;
    igrt_pool *pool = worker->pool;
    for (unsigned done = 0;; done++) {
        await_round(pool, done);
        if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE))
            return NULL;
        take_tasks(pool, worker->index);
        __atomic_fetch_sub(&pool->pending, 1, __ATOMIC_RELEASE);
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
    pool->stop = 0;
    pool->sleepers = 0;
    pool->pending = 0;
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
    pool->n = n;
    __atomic_store_n(&pool->next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->pending, pool->threads - 1, __ATOMIC_RELAXED);
    announce(pool);
    take_tasks(pool, 0);
    for (int spin = 0; __atomic_load_n(&pool->pending, __ATOMIC_ACQUIRE); spin = (spin + 1) % 64)
        relax(spin);
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
