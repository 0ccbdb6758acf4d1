/* Processes that share the checker's memory: the test creates it and forks them, and each joins it
 * as a checked process would. A process returns by its exit status whether all expectations were
 * met. For the unit tests of check/. */
#ifndef ORIEL_TESTS_UNIT_CHECK_TEAM_H
#define ORIEL_TESTS_UNIT_CHECK_TEAM_H

#include "check/shm/shm.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../busy.h"
#include "cmocka_all.h"
#include "expect.h"

enum { TEAM_MOST = 8, TEAM_STEPS = 64 };

/* The processes' exchange outside the checker's memory. */
struct check_team {
    char path[64];
    int n;
    _Atomic uint32_t step;
    _Atomic uint32_t met;
    _Atomic uint64_t words[8];
};

static struct check_team *team;

static inline void team_await(uint32_t step)
{
    while (atomic_load(&team->step) < step)
        sched_yield();
}

static inline void team_step(uint32_t step)
{
    team_await(step - 1);
    atomic_store(&team->step, step);
}

static inline void team_barrier(void)
{
    uint32_t turn = atomic_fetch_add(&team->met, 1) / (uint32_t)team->n;
    while (atomic_load(&team->met) < (turn + 1) * (uint32_t)team->n)
        sched_yield();
}

/* Time limit of a process. */
static inline unsigned team_limit_s(void)
{
    const char *text = getenv("TEST_SECONDS"); /* for slow environments */
    return busy_limit_s(text == NULL ? 100 : (unsigned)strtoul(text, NULL, 10));
}

static inline pid_t team_fork(int rank, void (*body)(int rank))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(team_limit_s());
        oriel_shm_leave();
        EXPECT(oriel_shm_join(team->path) == ORIEL_OK);
        body(rank);
        oriel_shm_leave();
        _exit(0);
    }
    return pid;
}

static inline bool team_ended_well(int status, bool is_dying)
{
    return is_dying ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                    : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs body in n processes with shared memory of board_bytes. Bit r of dying: that process ends by
 * a signal. A process that fails ends the others, which may wait for it. */
static inline void team_run(int n, uint64_t board_bytes, unsigned dying, void (*body)(int rank))
{
    pid_t pids[TEAM_MOST];
    bool is_well = true;
    void *room =
        mmap(NULL, sizeof *team, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED);
    team = room;
    team->n = n;
    assert_int_equal(oriel_shm_make_sized(n, board_bytes, team->path, sizeof team->path), ORIEL_OK);
    for (int rank = 0; rank < n; rank++)
        pids[rank] = team_fork(rank, body);
    for (int running = n; running > 0; running--) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, 0);
        assert_true(pid > 0);
        for (int rank = 0; rank < n; rank++) {
            if (pids[rank] == pid) {
                is_well = is_well && team_ended_well(status, (dying & (1u << rank)) != 0);
                pids[rank] = 0;
            }
        }
        for (int rank = 0; rank < n && !is_well; rank++)
            if (pids[rank] != 0)
                kill(pids[rank], SIGKILL);
    }
    oriel_shm_leave();
    munmap(room, sizeof *team);
    assert_true(is_well);
}

static inline void team_die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

#endif
