/* Threads that share the work of a step: kernels that can be divided, and tasks that may run at once.  With OIC_HOSTED=0
   there are no threads, and all runs on the caller's.  Opening and closing a pool are the only calls that ask the
   system for anything but sleep.  Include it before headers of the system: see hosted.h.

   A run is divided into chunks of units, of which every thread has its own, one after the other in memory; a thread that
   has done its own takes from the ends of others', so that the others do not wait for one that sleeps or is slow.  Between runs
   threads look for the next for a while, and then sleep. */
#ifndef OIC_POOL_H
#define OIC_POOL_H

#include "../version.h"

#include "hosted.h"

#include "../float_modes.h"
#include "../session.h"

/* Some units of some work, first..end-1; `worker` is a number that no other thread of the run has, from 0 on. */
typedef void oic_part(const void *args, ptrdiff_t first, ptrdiff_t end, int worker);

/* A part of a step.  `run` notes in `why` what it refuses, and touches nothing that another task writes. */
typedef struct {
    oic_status (*run)(void *context, oic_refusal *why);
    void *context;
    oic_status status;
    oic_refusal why;
} oic_task;

#ifndef OIC_WORK_LEAST
#define OIC_WORK_LEAST 32768 /* multiplications and additions that are worth a thread: some microseconds */
#endif
#define OIC_WORK_ELEMENT 16  /* of them that take as long as an operator on one element */
#define OIC_POOL_MOST 64     /* threads of one pool, the caller's included */
#define OIC_POOL_CHUNKS 8    /* of one thread */

#if OIC_HOSTED

#include <pthread.h>

#include "atomic.h"

#define OIC_POOL_LOOKS 2048 /* for the next run, before a thread sleeps: 50 to 100 microseconds */

/* One thread; 0 is the caller. */
typedef struct {
    oic_pool *pool;
    int number;
    pthread_t thread;
    pthread_cond_t given; /* there is a run, or the pool is closing */
    uint32_t asleep;      /* it waits for that */
    uint8_t apart[64];    /* what threads write often is on cache lines of its own */
    uint32_t chunks;      /* of this run, not begun: see oic_pool_claim */
    uint8_t apart_too[64];
} oic_worker;

struct oic_pool {
    /* The run.  It is written while no chunk is left, and read by who has claimed one. */
    oic_part *part;
    const void *args;
    ptrdiff_t units, count; /* units, in so many chunks */

    pthread_mutex_t lock;  /* of who goes to sleep, and who wakes them */
    pthread_cond_t ended;  /* no chunk is left that runs or waits */
    uint32_t busy;         /* a run is going on */
    uint32_t waits;        /* its caller sleeps until `ended` */
    uint32_t closing;
    int threads;           /* the caller's included */
    int looks;             /* OIC_POOL_LOOKS; 0 where there are fewer processors than threads */
    uint8_t apart[64];
    uint32_t run;          /* counts runs */
    uint8_t apart_too[64];
    uint32_t left;         /* chunks that have not ended */
    uint8_t apart_three[64];
    oic_worker worker[OIC_POOL_MOST];
};

/* The chunks of one thread that are not begun, first..end-1, and how many threads take part: in one number, so that
   who changes it saw all of it. */
static inline uint32_t oic_pool_chunks(ptrdiff_t first, ptrdiff_t end, int most)
{
    return (uint32_t)first | (uint32_t)end << 12 | (uint32_t)most << 24;
}

/* Take a chunk, the first or the last; -1 if there is none for this thread.  Who has it reads a run that is going on:
   that cannot end before the chunk does. */
static inline int oic_pool_claim(uint32_t *chunks, int number, int last)
{
    uint32_t seen = oic_atomic_load(chunks);
    for (;;) {
        const uint32_t first = seen & 0xfffu, end = seen >> 12 & 0xfffu, most = seen >> 24;
        if (first >= end || (uint32_t)number >= most) {
            return -1;
        }
        if (oic_atomic_exchange(chunks, &seen, last ? seen - (1u << 12) : seen + 1u)) {
            return (int)(last ? end - 1 : first);
        }
    }
}

/* Chunks number so many units in order, the first ones one more where that does not come out even. */
static inline ptrdiff_t oic_pool_unit(const oic_pool *pool, ptrdiff_t chunk)
{
    const ptrdiff_t rest = pool->units % pool->count;
    return pool->units / pool->count * chunk + (chunk < rest ? chunk : rest);
}

/* Run chunks until none is left to begin. */
static inline void oic_pool_take(oic_pool *pool, int number)
{
    for (int i = 0, of = number; i < pool->threads; ++i, of = of + 1 < pool->threads ? of + 1 : 0) {
        for (;;) {
            const int chunk = oic_pool_claim(&pool->worker[of].chunks, number, i > 0);
            if (chunk < 0) {
                break;
            }
            pool->part(pool->args, oic_pool_unit(pool, chunk), oic_pool_unit(pool, chunk + 1), number);
            if (oic_atomic_add(&pool->left, UINT32_MAX) == 1 && oic_atomic_load(&pool->waits)) {
                (void)pthread_mutex_lock(&pool->lock);
                (void)pthread_cond_signal(&pool->ended);
                (void)pthread_mutex_unlock(&pool->lock);
            }
        }
    }
}

/* What a thread of a pool does until the pool is closed. */
static inline void *oic_pool_thread(void *context)
{
    oic_worker *const me = (oic_worker *)context;
    oic_pool *const pool = me->pool;
    uint32_t seen = 0;
    (void)oic_float_modes_set();
    while (!oic_atomic_load(&pool->closing)) {
        int looks = 0;
        while (oic_atomic_load(&pool->run) == seen && looks < pool->looks) {
            oic_pause();
            looks++;
        }
        if (oic_atomic_load(&pool->run) == seen) {
            (void)pthread_mutex_lock(&pool->lock);
            for (;;) {
                oic_atomic_store(&me->asleep, 1); /* who starts a run sees this, or this thread sees the run */
                if (oic_atomic_load(&pool->run) != seen) {
                    break;
                }
                (void)pthread_cond_wait(&me->given, &pool->lock);
            }
            oic_atomic_store(&me->asleep, 0);
            (void)pthread_mutex_unlock(&pool->lock);
        }
        seen = oic_atomic_load(&pool->run);
        oic_pool_take(pool, me->number);
    }
    return NULL;
}

/* There is something to do for threads 1..most-1. */
static inline void oic_pool_wake(oic_pool *pool, int most)
{
    (void)oic_atomic_add(&pool->run, 1);
    for (int i = 1; i < most; ++i) {
        oic_worker *const worker = &pool->worker[i];
        if (oic_atomic_load(&worker->asleep)) {
            (void)pthread_mutex_lock(&pool->lock);
            oic_atomic_store(&worker->asleep, 0);
            (void)pthread_cond_signal(&worker->given);
            (void)pthread_mutex_unlock(&pool->lock);
        }
    }
}

/* End the threads and give back the memory; NULL is nothing.  No run may be going on. */
static inline void oic_pool_close(oic_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    oic_atomic_store(&pool->closing, 1);
    oic_pool_wake(pool, pool->threads);
    for (int i = 1; i < pool->threads; ++i) {
        (void)pthread_join(pool->worker[i].thread, NULL);
        (void)pthread_cond_destroy(&pool->worker[i].given);
    }
    (void)pthread_cond_destroy(&pool->ended);
    (void)pthread_mutex_destroy(&pool->lock);
    oic_unmap(pool, sizeof *pool);
}

/* A pool in which `threads` run at once, the caller's included; fewer where the system has no more.
   NULL, which also works as a pool, if there is no memory. */
static inline oic_pool *oic_pool_open(int threads)
{
    oic_pool *const pool = (oic_pool *)oic_map_zeros(sizeof *pool);
    int count = 1;
    if (pool == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->ended, NULL);
    pool->threads = threads < 1 ? 1 : threads < OIC_POOL_MOST ? threads : OIC_POOL_MOST;
    pool->looks = sysconf(_SC_NPROCESSORS_ONLN) < pool->threads ? 0 : OIC_POOL_LOOKS;
    for (; count < pool->threads; ++count) {
        oic_worker *const worker = &pool->worker[count];
        worker->pool = pool;
        worker->number = count;
        (void)pthread_cond_init(&worker->given, NULL);
        if (pthread_create(&worker->thread, NULL, oic_pool_thread, worker) != 0) {
            (void)pthread_cond_destroy(&worker->given);
            break;
        }
    }
    pool->threads = count;
    return pool;
}

/* Run `count` chunks of `units` on at most so many threads, the caller's among them, and wait for all; 0, with none run,
   if that is the caller's alone, or another caller's run is going on. */
static inline int oic_pool_run(oic_pool *pool, int most, oic_part *part, const void *args, ptrdiff_t units,
                               ptrdiff_t count)
{
    uint32_t idle = 0;
    most = pool == NULL ? 0 : most < pool->threads ? most : pool->threads;
    most = most < count ? most : (int)count;
    if (most < 2 || !oic_atomic_exchange(&pool->busy, &idle, 1)) {
        return 0;
    }
    pool->part = part;
    pool->args = args;
    pool->units = units;
    pool->count = count;
    oic_atomic_store(&pool->left, (uint32_t)count);
    for (int i = 0; i < most; ++i) {
        oic_atomic_store(&pool->worker[i].chunks, oic_pool_chunks(count * i / most, count * (i + 1) / most, most));
    }
    oic_pool_wake(pool, most);
    oic_pool_take(pool, 0);
    for (int looks = 0; oic_atomic_load(&pool->left) != 0; ++looks) {
        if (looks < pool->looks) {
            oic_pause();
            continue;
        }
        (void)pthread_mutex_lock(&pool->lock);
        oic_atomic_store(&pool->waits, 1); /* who ends the last chunk sees this, or this thread sees that none is left */
        while (oic_atomic_load(&pool->left) != 0) {
            (void)pthread_cond_wait(&pool->ended, &pool->lock);
        }
        oic_atomic_store(&pool->waits, 0);
        (void)pthread_mutex_unlock(&pool->lock);
    }
    oic_atomic_store(&pool->busy, 0);
    return 1;
}

#else

static inline int oic_pool_run(oic_pool *pool, int most, oic_part *part, const void *args, ptrdiff_t units,
                               ptrdiff_t count)
{
    (void)pool;
    (void)most;
    (void)part;
    (void)args;
    (void)units;
    (void)count;
    return 0;
}

#endif

/* All units of a kernel that can be divided, on at most so many threads of a pool and no more than `work`, its
   multiplications and additions, is worth; on the caller's alone if the pool is NULL or busy.  In about so many chunks. */
static inline void oic_divide_in(oic_pool *pool, int most, ptrdiff_t chunks, ptrdiff_t units, int64_t work, oic_part *part,
                                 const void *args)
{
    const int64_t worth = work / OIC_WORK_LEAST;
    const int threads = worth < most ? (int)worth : most;
    const ptrdiff_t least = chunks < threads ? threads : chunks, fine = (ptrdiff_t)threads * OIC_POOL_CHUNKS;
    const ptrdiff_t count = least < fine ? least : fine;
    if (!oic_pool_run(pool, threads, part, args, units, count < units ? count : units)) {
        part(args, 0, units, 0);
    }
}

static inline void oic_divide(oic_pool *pool, int most, ptrdiff_t units, int64_t work, oic_part *part, const void *args)
{
    oic_divide_in(pool, most, units, units, work, part, args);
}

typedef struct {
    oic_task *task;
} oic_tasks;

static inline void oic_tasks_part(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    oic_task *const task = ((const oic_tasks *)args)->task;
    (void)worker;
    for (ptrdiff_t i = first; i < end; ++i) {
        task[i].status = task[i].run(task[i].context, &task[i].why);
    }
}

/* Run tasks, at once if there is a pool and it is free, else in order.  The first that is refused, in the
   order of the array, gives the status and `why`; in order, those after it do not run. */
static inline oic_status oic_run_tasks(oic_pool *pool, oic_refusal *why, oic_task *tasks, int count)
{
    const oic_tasks all = {tasks};
    const ptrdiff_t chunks = (ptrdiff_t)OIC_POOL_MOST * OIC_POOL_CHUNKS;
    const int ran = oic_pool_run(pool, OIC_POOL_MOST, oic_tasks_part, &all, count, count < chunks ? count : chunks);
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
