"""The thread pool by itself, under the thread sanitizer where the compiler has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from oic.resources import runtime_dir
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import WARNINGS

PROGRAM = r"""
#include "hosted/pool.h"
#include <stdio.h>

#if OIC_HOSTED
#define REST(run) ((void)((run) % 50 == 0 ? usleep(200) : 0)) /* until threads may sleep */
#else
#define REST(run) (void)(run)
#endif
#define TASKS 37

typedef struct {
    int number;
    int refused;
    int64_t ran;
} part;

static oic_status work(void *context, oic_refusal *why)
{
    part *const p = context;
    p->ran++;
    return p->refused ? oic_refuse(why, OIC_ERR_INDEX, p->number, "part", p->number, 0) : OIC_OK;
}

/* Many runs of all tasks, of which some are refused; 0 if every run gave what it must. */
static int exercise(oic_pool *pool, int runs)
{
    part parts[TASKS] = {{0, 0, 0}};
    for (int run = 0; run < runs; ++run) {
        oic_task tasks[TASKS] = {{.run = work}};
        oic_refusal why = {.status = OIC_OK};
        const int first = run % (TASKS + 5);
        const int count = 1 + run % TASKS;
        int wrong = 0;
        for (int i = 0; i < count; ++i) {
            parts[i].number = i;
            parts[i].refused = i >= first;
            parts[i].ran = 0;
            tasks[i].run = work;
            tasks[i].context = &parts[i];
        }
        if (oic_run_tasks(pool, &why, tasks, count) != (first < count ? OIC_ERR_INDEX : OIC_OK)) {
            return 1;
        }
        wrong = first < count && (why.line != first || why.value != first);
        for (int i = 0; i < count; ++i) {
            wrong |= parts[i].ran > 1 || (i <= first && parts[i].ran != 1);
        }
        if (wrong) {
            return 1;
        }
    }
    return 0;
}

#define UNITS 301

/* Units that are worked on, and by whom. */
typedef struct {
    int64_t *done;
    int64_t own[OIC_POOL_MOST][8]; /* of each worker, written by it alone */
} divided;

static void units(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    divided *const d = *(divided *const *)args;
    for (ptrdiff_t i = first; i < end; ++i) {
        d->done[i] += i + 1;
        d->own[worker][0]++;
    }
}

/* Every unit is worked on once, by no more workers than are wanted; now and then after a pause. */
static int divide(oic_pool *pool, int runs)
{
    int64_t done[UNITS] = {0};
    divided all = {done, {{0}}}, *const d = &all;
    int64_t sum = 0;
    for (int run = 0; run < runs; ++run) {
        const int most = 1 + run % 5;
        const ptrdiff_t count = run * 7 % UNITS;
        memset(&all.own, 0, sizeof all.own);
        oic_divide(pool, most, count, (int64_t)(run % 4) * OIC_WORK_LEAST, units, &d);
        sum = 0;
        for (int i = 0; i < OIC_POOL_MOST; ++i) {
            sum += all.own[i][0];
            if (all.own[i][0] != 0 && i >= most) {
                return 1;
            }
        }
        if (sum != count) {
            return 1;
        }
        for (ptrdiff_t i = 0; i < UNITS; ++i) {
            if (done[i] != (i < count ? i + 1 : 0)) {
                return 1;
            }
            done[i] = 0;
        }
        REST(run);
    }
    return 0;
}

#if OIC_HOSTED
static void *share(void *context)
{
    return exercise(context, 3000) == 0 && divide(context, 3000) == 0 ? context : NULL;
}

int main(void)
{
    if (exercise(NULL, 200) != 0) {
        return 1;
    }
    for (int threads = -1; threads <= 80; threads = threads < 6 ? threads + 1 : threads * 3) {
        oic_pool *const pool = oic_pool_open(threads);
        if (pool == NULL || exercise(pool, 500) != 0 || divide(pool, 500) != 0) {
            return 2;
        }
        oic_pool_close(pool);
    }
    /* Two callers on one pool: the one that finds it busy runs its own tasks. */
    {
        oic_pool *const pool = oic_pool_open(3);
        pthread_t other;
        void *given = NULL;
        int failed = pool == NULL || pthread_create(&other, NULL, share, pool) != 0;
        if (failed) {
            return 3;
        }
        failed = exercise(pool, 3000) || divide(pool, 3000);
        (void)pthread_join(other, &given);
        oic_pool_close(pool);
        oic_pool_close(NULL);
        return failed || given == NULL ? 4 : 0;
    }
}
#else
int main(void)
{
    return exercise(NULL, 500) || divide(NULL, 500);
}
#endif
"""


@pytest.mark.parametrize("flag", ["-fsanitize=thread", "-fsanitize=address,undefined", "-DOIC_HOSTED=0"])
def test_pool(flag: str, tmp_path: Path) -> None:
    source, program = tmp_path / "pool.c", tmp_path / "pool"
    source.write_text("int main(void) { return 0; }\n")
    common = [*find_compiler(), "-std=c99", "-O1", "-g", *WARNINGS, "-Werror", flag, "-pthread"]
    call = [*common, "-I", str(runtime_dir()), str(source), "-o", str(program), "-lm"]
    if subprocess.run(call, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"the C compiler does not know {flag}")
    source.write_text(PROGRAM)
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stdout + ran.stderr[:4000])
