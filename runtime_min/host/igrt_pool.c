/*
 * igrt_pool.c - a fixed pool of workers. Each has a share of consecutive tasks, so that it meets
 * again in its cache what it wrote in the round before; who is through with his own takes from the
 * others'.
 *
 * A round costs what lines of the cache take from core to core, so each thread looks at as few as
 * can be, and no line is written by all:
 *
 *     caller      share 1: task, arg, open        worker 1 waits for open of its own share, and for
 *                 nothing else
 *                 share 2: task, arg, open        worker 2 ...
 *                 its own share; what is left of the others'
 *     worker k    its own share; done += tasks; what is left of the others'; done += tasks
 *     caller      waits until all `done` together are the tasks that were asked for
 *
 * `open` is the next task and the end of the share in one word, and a task is taken by adding one
 * to it: who takes a task knows that its round is on, and so may read `task` and `arg`, however
 * late it comes. A worker that wakes when all tasks are taken is not waited for. Idle workers spin
 * for some microseconds, because the next step of a model usually follows at once, and then sleep
 * on a condition. The counters are accessed by the __atomic builtins of gcc and clang (C99 has no
 * atomics).
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_pool.h"

#if IGRT_POOL_PTHREADS || IGRT_POOL_WASM

#if IGRT_POOL_PTHREADS
#include <sched.h>

enum { SPINS = 2000 }; /* some 50 to 100 microseconds */
#else
enum { SPINS = 20000 };          /* the same: WebAssembly has no pause */
#endif

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb"); /* as long as a pause; a yield is nothing there */
#endif
}

/* Of who waits for the others' last tasks. */
static void give_way(unsigned spin)
{
    enum { YIELDS = 64 };
#if IGRT_POOL_PTHREADS
    if (spin % YIELDS == 0)
        sched_yield();
#endif
    if (spin % YIELDS)
        relax();
}

static int has_tasks(uint64_t open)
{
    return (uint32_t)open < open >> 32;
}

/* Runs what is left of a share. */
static void work_on(igrt_pool_worker *me, igrt_pool_worker *share)
{
    const igrt_pool *pool = me->pool;
    uint64_t done = 0;
    while (has_tasks(__atomic_load_n(&share->open, __ATOMIC_RELAXED))) {
        const uint64_t open = __atomic_fetch_add(&share->open, 1, __ATOMIC_ACQUIRE);
        if (!has_tasks(open))
            break;
        const int64_t i = share->first + (uint32_t)open;
        if (pool->watch)
            pool->watch(pool->watch_user, i, me->index, 0);
        share->task(share->arg, i, me->index);
        if (pool->watch)
            pool->watch(pool->watch_user, i, me->index, 1);
        done++;
    }
    if (done) /* nobody else writes it */
        __atomic_store_n(&me->done, me->done + done, __ATOMIC_RELEASE);
}

static void take_tasks(igrt_pool_worker *me)
{
    igrt_pool *pool = me->pool;
    for (int k = 0; k < pool->threads; k++)
        work_on(me, &pool->worker[(me->index + k) % pool->threads]);
}

/* Whether there is something for it to look at: tasks, or the end. */
static int is_called(const igrt_pool_worker *me)
{
    return has_tasks(__atomic_load_n(&me->open, __ATOMIC_SEQ_CST)) ||
           __atomic_load_n(&me->pool->stop, __ATOMIC_SEQ_CST);
}

#if IGRT_POOL_PTHREADS
static void sleep_once(igrt_pool_worker *me)
{
    igrt_pool *pool = me->pool;
    pthread_mutex_lock(&pool->lock);
    __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    if (!is_called(me))
        pthread_cond_wait(&pool->wake, &pool->lock);
    __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lock);
}

static void wake_all(igrt_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}
#else
/* Whoever calls between the look and the wait has changed what is waited for. */
static void sleep_once(igrt_pool_worker *me)
{
    igrt_pool *pool = me->pool;
    const int calls = __atomic_load_n(&pool->calls, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    if (!is_called(me))
        __builtin_wasm_memory_atomic_wait32(&pool->calls, calls, -1);
    __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
}

static void wake_all(igrt_pool *pool)
{
    __atomic_fetch_add(&pool->calls, 1, __ATOMIC_SEQ_CST);
    __builtin_wasm_memory_atomic_notify(&pool->calls, IGRT_POOL_MAX);
}
#endif

/* Who has slept spins again, even if others have done its share meanwhile: it is to be awake when
 * the next round comes. */
static void await_tasks(igrt_pool_worker *me)
{
    for (int spin = 0; !is_called(me); spin++) {
        relax(); /* and no yield: beside other programs it would miss the rounds that follow */
        if (spin < SPINS)
            continue;
        sleep_once(me);
        spin = 0;
    }
}

static void work(igrt_pool_worker *me)
{
    for (;;) {
        await_tasks(me);
        if (__atomic_load_n(&me->pool->stop, __ATOMIC_ACQUIRE))
            return;
        take_tasks(me);
    }
}

/* After what is_called() looks at has been written. */
static void wake_sleepers(igrt_pool *pool)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) == 0)
        return;
    wake_all(pool);
}

#if IGRT_POOL_PTHREADS
static void *worker_main(void *me)
{
    work(me);
    return NULL;
}

static int start_workers(igrt_pool *pool, int threads)
{
    if (pthread_mutex_init(&pool->lock, NULL))
        return 1;
    if (pthread_cond_init(&pool->wake, NULL)) {
        pthread_mutex_destroy(&pool->lock);
        return 1;
    }
    int started = 1;
    while (started < threads && !pthread_create(&pool->worker[started].thread, NULL, worker_main,
                                                &pool->worker[started]))
        started++;
    if (started == 1) {
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->lock);
    }
    return started;
}

static void end_workers(igrt_pool *pool)
{
    for (int k = 1; k < pool->threads; k++)
        pthread_join(pool->worker[k].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
}
#else
void igrt_pool_work(igrt_pool *pool, int k)
{
    work(&pool->worker[k]);
}

static int start_workers(igrt_pool *pool, int threads)
{
    pool->calls = 0;
    return threads;
}

static void end_workers(igrt_pool *pool)
{
    (void)pool; /* they return */
}
#endif

int igrt_pool_start(igrt_pool *pool, int threads)
{
    pool->threads = 1;
    pool->watch = NULL;
    pool->stop = 0;
    pool->sleepers = 0;
    pool->asked = 0;
    if (threads > IGRT_POOL_MAX)
        threads = IGRT_POOL_MAX;
    if (threads < 2)
        return 1;
    for (int k = 0; k < threads; k++) {
        igrt_pool_worker *worker = &pool->worker[k];
        worker->pool = pool;
        worker->index = k;
        worker->open = 0;
        worker->done = 0;
    }
    pool->threads = start_workers(pool, threads);
    return pool->threads;
}

static uint64_t tasks_done(const igrt_pool *pool)
{
    uint64_t done = 0;
    for (int k = 0; k < pool->threads; k++)
        done += __atomic_load_n(&pool->worker[k].done, __ATOMIC_ACQUIRE);
    return done;
}

/* Tasks first .. first + n - 1; shares of n / threads, rounded up or down, of which the caller's is
 * never empty. */
static void do_round(igrt_pool *pool, igrt_task_fn task, void *arg, int64_t first, int64_t n)
{
    const int threads = pool->threads;
    pool->asked += (uint64_t)n;
    for (int k = 0; k < threads; k++) {
        igrt_pool_worker *share = &pool->worker[k];
        const int64_t begin = (n * k + threads - 1) / threads;
        const int64_t end = (n * (k + 1) + threads - 1) / threads;
        if (begin == end) /* its thread sleeps on */
            continue;
        share->first = first;
        share->task = task;
        share->arg = arg;
        __atomic_store_n(&share->open, (uint64_t)end << 32 | (uint64_t)begin, __ATOMIC_RELEASE);
    }
    wake_sleepers(pool);
    take_tasks(&pool->worker[0]);
    for (unsigned spin = 1; tasks_done(pool) != pool->asked; spin++)
        give_way(spin);
}

enum { ROUND_TASKS = 1 << 30 }; /* that a share can count */

void igrt_pool_for(void *user, igrt_task_fn task, void *arg, int64_t n)
{
    igrt_pool *pool = user;
    for (int64_t i = 0; i < n && pool->threads < 2; i++)
        task(arg, i, 0);
    for (int64_t first = 0; first < n && pool->threads >= 2; first += ROUND_TASKS)
        do_round(pool, task, arg, first, n - first < ROUND_TASKS ? n - first : ROUND_TASKS);
}

void igrt_pool_stop(igrt_pool *pool)
{
    if (pool->threads < 2)
        return;
    __atomic_store_n(&pool->stop, 1, __ATOMIC_SEQ_CST);
    wake_sleepers(pool);
    end_workers(pool);
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
