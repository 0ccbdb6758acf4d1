/* Two processes that pass a word back and forth: the minimum round trip of any request to another
 * process. The partner is forked for each loop and dies with its parent; the scheduler places both.
 * raw.c drives the table at the end. */
#define _GNU_SOURCE
#include "raw.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The word counts turns from the batch's number on. This process has the turns at an even distance,
 * the partner the odd ones. */
static _Atomic uint32_t *turn_of(struct raw_run *run)
{
    return (_Atomic uint32_t *)(void *)run->to;
}

static void futex_wait(_Atomic uint32_t *turn, uint32_t mine)
{
    for (uint32_t now; (now = atomic_load(turn)) != mine;)
        syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void futex_pass(_Atomic uint32_t *turn, uint32_t next)
{
    atomic_store(turn, next);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void yield_wait(_Atomic uint32_t *turn, uint32_t mine)
{
    while (atomic_load(turn) != mine)
        sched_yield();
}

static void yield_pass(_Atomic uint32_t *turn, uint32_t next)
{
    atomic_store(turn, next);
}

struct passing {
    void (*wait)(_Atomic uint32_t *turn, uint32_t mine);
    void (*pass)(_Atomic uint32_t *turn, uint32_t next);
};

static _Noreturn void partner(_Atomic uint32_t *turn, const struct passing *how, uint32_t first,
                              uint64_t count)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t i = 0; i < count; i++, first += 2) {
        how->wait(turn, first + 1);
        how->pass(turn, first + 2);
    }
    _exit(0);
}

/* A batch lasts at least 10 ms, so the fork of about 100 us hardly counts. */
static void take_turns(struct raw_run *run, uint64_t count, const struct passing *how)
{
    _Atomic uint32_t *turn = turn_of(run);
    uint32_t next = (uint32_t)run->batch + 2 * (uint32_t)run->done;
    int status = -1;

    pid_t child = fork();
    if (child == 0)
        partner(turn, how, next, count);
    for (uint64_t i = 0; child > 0 && i < count; i++, next += 2) {
        how->pass(turn, next + 1);
        how->wait(turn, next + 2);
    }
    run->done += count;
    run->wrong |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static void prepare(struct raw_run *run)
{
    atomic_store(turn_of(run), (uint32_t)run->batch);
}

static void futex(struct raw_run *run, uint64_t count)
{
    take_turns(run, count, &(struct passing){futex_wait, futex_pass});
}

static void yield(struct raw_run *run, uint64_t count)
{
    take_turns(run, count, &(struct passing){yield_wait, yield_pass});
}

static void check(struct raw_run *run)
{
    run->wrong |= atomic_load(turn_of(run)) != (uint32_t)run->batch + 2 * (uint32_t)run->done;
}

const struct raw_operation raw_pairs[] = {
    {.name = "raw-futex", .shared = true, .prepare = prepare, .repeat = futex, .check = check},
    {.name = "raw-yield", .shared = true, .prepare = prepare, .repeat = yield, .check = check},
    {0},
};
