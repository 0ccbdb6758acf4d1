/* The time at which a rank dies (fault.h): by the clock, or by its own instructions, which a tracer
 * counts. */
#include "fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOWEST_STEP_US = 50, SLACK_US = 50000 };

/* Shared with the tracer: selects the victim's steps that count. */
enum stage { PREPARES, COUNTS, OVER };
static volatile enum stage *stage;

static void *kill_then(void *delay_us)
{
    usleep((useconds_t) * (long *)delay_us);
    raise(SIGKILL);
    return NULL;
}

void die_after_us(long requested_us)
{
    static long delay_us;
    pthread_t thread;
    delay_us = requested_us;
    pthread_create(&thread, NULL, kill_then, &delay_us);
}

/* The end of a step: the trap of the step itself, or a signal for the victim, which is
 * delivered. */
static int signal_to_pass_on(int status)
{
    return WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

static bool step(pid_t thread, int *status)
{
    return ptrace(PTRACE_SINGLESTEP, thread, NULL, (void *)(intptr_t)signal_to_pass_on(*status)) ==
               0 &&
           waitpid(thread, status, __WALL) == thread && WIFSTOPPED(*status);
}

/* Traces only the calling thread, whose id is the process's if it is the main thread. */
static void trace(pid_t thread, long steps, int ready)
{
    int status = 0;
    char refused = 0;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 ||
        waitpid(thread, &status, __WALL) != thread)
        refused = (char)errno;
    bool stopped = WIFSTOPPED(status);
    if (write(ready, &refused, 1) != 1)
        _exit(1);
    for (long counted = 0; stopped && counted < steps && *stage != OVER;
         counted += *stage == COUNTS)
        stopped = step(thread, &status);
    if (stopped && *stage == OVER)
        ptrace(PTRACE_DETACH, thread, NULL, (void *)(intptr_t)signal_to_pass_on(status));
    else if (stopped)
        kill(thread, SIGKILL);
    _exit(0);
}

void die_after_steps(long steps)
{
    int ready[2];
    char refused = ECHILD; /* if the tracer ends before it can report */
    pid_t thread = getpid();
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || pipe(ready) != 0)
        abort();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t tracer = fork();
    if (tracer == 0) {
        close(ready[0]);
        trace(thread, steps, ready[1]);
    }
    close(ready[1]); /* only the tracer's end stays open, so the read ends with the tracer */
    bool is_traced = tracer > 0 && read(ready[0], &refused, 1) == 1 && refused == 0;
    close(ready[0]);
    if (!is_traced) {
        fprintf(stderr, "this process cannot be traced: %s\n",
                strerror(refused)); /* faults.py knows this text */
        abort();
    }
    *stage = COUNTS;
}

void live_on(void)
{
    if (stage != NULL)
        *stage = OVER;
}

/* TEST_DEATH_TIME: a number of us, or a number of steps followed by "steps". */
static bool counts_steps(long *count)
{
    const char *requested = getenv("TEST_DEATH_TIME");
    char *end = NULL;
    *count = requested ? strtol(requested, &end, 10) : 10000;
    return requested && strcmp(end, "steps") == 0;
}

void die_on_request(void)
{
    long count;
    if (counts_steps(&count))
        die_after_steps(count);
    else
        die_after_us(count);
}

double dead_after_seconds(void)
{
    long count;
    return 1e-6 * (double)(SLACK_US + (counts_steps(&count) ? count * SLOWEST_STEP_US : count));
}
