/*
 * igrt_pool.h - a small thread pool for igrt_config.parallel_for, for callers that have none.
 *
 * POSIX threads; elsewhere it is one thread. In WebAssembly others start the workers, which call
 * igrt_pool_work() (IGRT_POOL_WASM). All state is in the struct: no allocation.
 *
 *     static igrt_pool pool;
 *     config.threads = igrt_pool_start(&pool, 4);
 *     config.parallel_for = igrt_pool_for;
 *     config.parallel_user = &pool;
 *     ...
 *     igrt_pool_stop(&pool);
 */
#ifndef IGRT_POOL_H
#define IGRT_POOL_H

#include "igrt.h"

#if defined(__unix__) || defined(__APPLE__)
#define IGRT_POOL_PTHREADS 1
#include <pthread.h>
#else
#define IGRT_POOL_PTHREADS 0
#endif

/* To be defined as 1 for a WebAssembly module whose memory several instances share: each thread is
 * an instance with a stack of its own (clang: -matomics -mbulk-memory). */
#ifndef IGRT_POOL_WASM
#define IGRT_POOL_WASM 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define IGRT_POOL_MAX 64

typedef struct igrt_pool igrt_pool;

/* Task i begins (end is 0) or has ended (1). */
typedef void (*igrt_watch_fn)(void *user, int64_t i, int worker, int end);

/* What one thread writes while others read it lies two lines of the cache away from everything
 * else: one is fetched with its neighbour. */
#define IGRT_POOL_APART 128

/* A thread, and its share of a round: tasks of consecutive numbers, from `first` on. */
typedef struct igrt_pool_worker {
    igrt_pool *pool;
    int index;
#if IGRT_POOL_PTHREADS
    pthread_t thread;
#endif
    char apart[IGRT_POOL_APART];
    uint64_t open; /* what nobody has taken yet: the next task, and above 32 bits the end */
    int64_t first;
    igrt_task_fn task;
    void *arg;
    char done_apart[IGRT_POOL_APART];
    uint64_t done; /* tasks that this thread has done since the pool started */
} igrt_pool_worker;

struct igrt_pool {
    int threads; /* the caller of igrt_pool_for included */
    int stop;
    int sleepers; /* workers that wait on the condition */
    /* called around every task, in its thread; NULL: none. To be set between rounds */
    igrt_watch_fn watch;
    void *watch_user;
    igrt_pool_worker worker[IGRT_POOL_MAX];
    uint64_t asked; /* tasks of all rounds up to this one; apart from what workers read */
#if IGRT_POOL_PTHREADS
    pthread_mutex_t lock;
    pthread_cond_t wake;
#elif IGRT_POOL_WASM
    int calls; /* how often sleepers were woken; they wait for another number */
#endif
};

/* Starts threads - 1 workers; returns how many threads there are, 1 at least. */
int igrt_pool_start(igrt_pool *pool, int threads);

/* An igrt_parallel_for_fn; user is the pool. Not to be called from inside a task. */
void igrt_pool_for(void *user, igrt_task_fn task, void *arg, int64_t n);

#if IGRT_POOL_WASM
/* What worker k of 1 .. threads - 1 does until igrt_pool_stop(), after igrt_pool_start().  One that
 * never comes is not waited for: the others do its share. */
void igrt_pool_work(igrt_pool *pool, int k);
#endif

/* Ends the workers. */
void igrt_pool_stop(igrt_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
