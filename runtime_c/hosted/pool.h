/* Tasks that may run at once, and threads to run them.  With OIC_HOSTED=0 there are no threads, and tasks
   run in order on the caller's.  Opening and closing a pool are the only calls that ask the system for
   anything; a run costs a lock and a signal.  Include it before headers of the system: see hosted.h. */
#ifndef OIC_POOL_H
#define OIC_POOL_H

#include "../version.h"

#include "hosted.h"

#include "../float_modes.h"
#include "../session.h"

/* A part of a step.  `run` notes in `why` what it refuses, and touches nothing that another task writes. */
typedef struct {
    oic_status (*run)(void *context, oic_refusal *why);
    void *context;
    oic_status status;
    oic_refusal why;
} oic_task;

#if OIC_HOSTED

#include <pthread.h>

#define OIC_POOL_MOST 64 /* threads of one pool, the caller's included */

struct oic_pool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t given; /* there are tasks to take, or the pool is closing */
    pthread_cond_t ended; /* no task is left that runs or waits */
    oic_task *tasks;
    int count; /* tasks of this run; 0: there is none */
    int next;  /* the first that no thread has taken */
    int left;  /* those that have not ended */
    int closing;
    int started; /* threads beside the caller's */
    pthread_t thread[OIC_POOL_MOST];
};

/* Run tasks until all are taken.  The caller holds the lock, and holds it afterwards. */
static inline void oic_pool_take(oic_pool *pool)
{
    while (pool->next < pool->count) {
        oic_task *const task = &pool->tasks[pool->next++];
        (void)pthread_mutex_unlock(&pool->lock);
        task->status = task->run(task->context, &task->why);
        (void)pthread_mutex_lock(&pool->lock);
        if (--pool->left == 0) {
            (void)pthread_cond_signal(&pool->ended);
        }
    }
}

/* What a thread of a pool does until the pool is closed. */
static inline void *oic_pool_thread(void *context)
{
    oic_pool *const pool = context;
    (void)oic_float_modes_set();
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (pool->next < pool->count) {
            oic_pool_take(pool);
        } else {
            (void)pthread_cond_wait(&pool->given, &pool->lock);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* End the threads and give back the memory; NULL is nothing.  No run may be going on. */
static inline void oic_pool_close(oic_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->closing = 1;
    (void)pthread_cond_broadcast(&pool->given);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; ++i) {
        (void)pthread_join(pool->thread[i], NULL);
    }
    (void)pthread_cond_destroy(&pool->ended);
    (void)pthread_cond_destroy(&pool->given);
    (void)pthread_mutex_destroy(&pool->lock);
    oic_unmap(pool, sizeof *pool);
}

/* A pool in which `threads` run at once, the caller's included; fewer where the system has no more.
   NULL, which also works as a pool, if there is no memory. */
static inline oic_pool *oic_pool_open(int threads)
{
    oic_pool *const pool = oic_map_zeros(sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->given, NULL);
    (void)pthread_cond_init(&pool->ended, NULL);
    while (pool->started + 1 < threads && pool->started + 1 < OIC_POOL_MOST) {
        if (pthread_create(&pool->thread[pool->started], NULL, oic_pool_thread, pool) != 0) {
            break;
        }
        pool->started++;
    }
    return pool;
}

/* Run tasks on the threads of a pool and the caller's, and wait for all; 0, with none run, if the pool
   is NULL or another caller's tasks are running on it. */
static inline int oic_pool_run(oic_pool *pool, oic_task *tasks, int count)
{
    if (pool == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->count != 0) {
        (void)pthread_mutex_unlock(&pool->lock);
        return 0;
    }
    pool->tasks = tasks;
    pool->count = pool->left = count;
    pool->next = 0;
    for (int i = 1; i < count && i <= pool->started; ++i) {
        (void)pthread_cond_signal(&pool->given);
    }
    oic_pool_take(pool);
    while (pool->left > 0) {
        (void)pthread_cond_wait(&pool->ended, &pool->lock);
    }
    pool->tasks = NULL;
    pool->count = pool->next = 0;
    (void)pthread_mutex_unlock(&pool->lock);
    return 1;
}

#else

static inline int oic_pool_run(oic_pool *pool, oic_task *tasks, int count)
{
    (void)pool;
    (void)tasks;
    (void)count;
    return 0;
}

#endif

/* Run tasks, at once if there is a pool and it is free, else in order.  The first that is refused, in the
   order of the array, gives the status and `why`; in order, those after it do not run. */
static inline oic_status oic_run_tasks(oic_pool *pool, oic_refusal *why, oic_task *tasks, int count)
{
    const int ran = oic_pool_run(pool, tasks, count);
    for (int i = 0; i < count; ++i) {
        if (!ran) {
            tasks[i].status = tasks[i].run(tasks[i].context, &tasks[i].why);
        }
        if (tasks[i].status != OIC_OK) {
            *why = tasks[i].why;
            return tasks[i].status;
        }
    }
    return OIC_OK;
}

#endif
