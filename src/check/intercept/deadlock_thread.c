/* The thread that looks for deadlocks twice a second, in one process of each node, and ends the job
 * when it finds one. It handles none of the program's signals, and ends before MPI_Finalize is
 * passed on. */
#include "check/deadlock/deadlock.h"

#include "base/options.h"
#include "base/wait.h"
#include "check/common/reentrancy.h"
#include "check/remote/remote_waits.h"
#include "check/report/finding.h"
#include "host/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const uint64_t look_ns = 500000000;
static const uint64_t patience_ns = 2000000000;

enum { STATUS = 86, STACK_BYTES = 1 << 18 };

static struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t bell;
    bool runs, ends;
    enum oriel_deadlock_reach reach;
} thread_state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .bell = PTHREAD_COND_INITIALIZER};

/* Ends the process if MPI_Abort does not return within 5 s. */
static void *exit_late(void *closure)
{
    struct timespec late = {.tv_sec = 5};
    nanosleep(&late, NULL);
    _exit(*(const int *)closure);
}

/* The program hangs: MPI_Abort ends all of it, with a status that every launcher passes on. Flushes
 * standard output, unless a thread of the program holds its lock. */
static void end_job(void)
{
    oriel_finding_end_alone();
    if (ftrylockfile(stdout) == 0) {
        fflush(stdout);
        funlockfile(stdout);
    }
    static int status;
    pthread_t late;
    typedef int abort_fn(MPI_Comm comm, int code);
    abort_fn *behind = (abort_fn *)oriel_host_symbol("PMPI_Abort");
    status = oriel_options()->check_fail ? STATUS : 1;
    if (behind != NULL && pthread_create(&late, NULL, exit_late, &status) == 0)
        behind(MPI_COMM_WORLD, status);
    _exit(status);
}

/* Waits until the next snapshot. Returns false when the thread must end. */
static bool sleep_until_next_look(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)look_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&thread_state.mutex);
    while (!thread_state.ends &&
           pthread_cond_timedwait(&thread_state.bell, &thread_state.mutex, &until) == 0)
        ;
    bool goes_on = !thread_state.ends;
    pthread_mutex_unlock(&thread_state.mutex);
    return goes_on;
}

static void *deadlock_thread_run(void *closure)
{
    struct oriel_deadlock finder;
    enum oriel_deadlock_reach reach = *(const enum oriel_deadlock_reach *)closure;
    oriel_check_enter(); /* calls of this thread are not the program's */
    bool open = oriel_deadlock_open(&finder, oriel_shm_world_size(), patience_ns);
    finder.look.remote = reach == ORIEL_DEADLOCK_ALL ? oriel_check_remote_waits() : NULL;
    finder.marks = reach == ORIEL_DEADLOCK_MARKS;
    while (open && sleep_until_next_look())
        if (oriel_deadlock_find(&finder, oriel_now_ns()) > 0) {
            oriel_deadlock_report(&finder);
            end_job();
        }
    oriel_deadlock_close(&finder);
    return NULL;
}

/* Leaves signals to the program's threads, except real-time signals, which stop threads for a short
 * time. */
static void block_signals(sigset_t *before)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        sigdelset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

void oriel_deadlock_start(enum oriel_deadlock_reach reach)
{
    pthread_attr_t how;
    sigset_t before;
    thread_state.ends = false;
    thread_state.reach = reach;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    block_signals(&before);
    thread_state.runs =
        pthread_create(&thread_state.thread, &how, deadlock_thread_run, &thread_state.reach) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (thread_state.runs)
        pthread_setname_np(thread_state.thread, "oriel-check");
}

void oriel_deadlock_stop(void)
{
    if (!thread_state.runs || !oriel_shm_is_open()) /* a forked child has no such thread */
        return;
    pthread_mutex_lock(&thread_state.mutex);
    thread_state.ends = true;
    pthread_cond_signal(&thread_state.bell);
    pthread_mutex_unlock(&thread_state.mutex);
    pthread_join(thread_state.thread, NULL);
    thread_state.runs = false;
}
