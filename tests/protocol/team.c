/* Starts teams and supervises them: a process that fails, or the time limit, ends the others. The
 * parent never creates a memory file or a thread. The file also has the random delays of the
 * protocols, and the count of sleeps that no signal ended. */
#include "team.h"

#include "../busy.h"
#include "make_window.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { SHARE_NS = 200000000 };

struct team *team;
_Thread_local int32_t team_rank = -1;
_Thread_local uint32_t team_timeouts;
bool team_leaves_zombies = true;

static uint64_t first_seed;
static unsigned limit_s = 30;           /* of a team, on a machine of its own */
static _Thread_local uint64_t begin_ns; /* of this rank's body */
static bool has_threads = TEAM_SANITIZED;
static _Thread_local uint64_t random_state;

uint64_t team_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 20;
}

void (*team_at_delay)(void);

/* The protocols call it between the steps of their arguments. */
void oriel_delay(void)
{
    if (team_at_delay != NULL) {
        team_at_delay();
        return;
    }
    if (random_state == 0) /* an additional thread */
        random_state = (team->seed ^ (uint64_t)gettid()) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    uint64_t random = team_random();
    switch (random % 16) {
    case 0:
    case 1: sched_yield(); break;
    case 2:
    case 3:
    case 4:
        for (uint64_t end_ns = oriel_now_ns() + (random >> 8) % 700; oriel_now_ns() < end_ns;)
            oriel_cpu_relax();
        break;
    case 5:
        if ((random >> 8) % 8 == 0)
            usleep(50 + (useconds_t)(random >> 16) % 150);
        break;
    default: break;
    }
}

/* All of Oriel's system calls by number pass here (the linker's --wrap). A sleep gets the longest
 * timeout, so a missing wake shows. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    static const struct timespec longest = {.tv_nsec = 100000000};
    bool waits = number == SYS_futex && b == FUTEX_WAIT;
    if (waits && gettid() != getpid())
        waits = false; /* an agent sleeps until a request: without a wake it never ends */
    if (waits) {
        const struct timespec *limit = (const struct timespec *)(uintptr_t)d;
        team_expect(limit != NULL && limit->tv_sec == 0 && limit->tv_nsec <= longest.tv_nsec);
        d = (long)(uintptr_t)&longest;
    }
    long result = __real_syscall(number, a, b, c, d, e, f);
    if (waits && result < 0 && errno == ETIMEDOUT)
        team_timeouts++;
    return result;
}

void team_complain(const char *file, int line, const char *what)
{
    const char *name = strrchr(file, '/');
    fprintf(stderr, "%s:%d: rank %d of %d: not true: %s\n", name != NULL ? name + 1 : file, line,
            (int)team_rank, (int)team->n, what);
    _exit(1);
}

void team_barrier(void)
{
    uint32_t n = (uint32_t)team->n;
    uint32_t arrived = atomic_fetch_add(&team->arrivals, 1);
    uint32_t full = (arrived / n + 1) * n;
    while ((int32_t)(atomic_load(&team->arrivals) - full) < 0)
        sched_yield();
}

void team_flag_set(int flag, uint32_t value)
{
    atomic_store(&team->flags[flag], value);
}

void team_flag_await(int flag, uint32_t value)
{
    while (atomic_load(&team->flags[flag]) < value)
        usleep(200);
}

void team_die(void)
{
    atomic_fetch_or(&team->dying, UINT32_C(1) << team_rank);
    for (;;)
        raise(SIGKILL);
}

void team_kill(int32_t rank)
{
    atomic_fetch_or(&team->dying, UINT32_C(1) << rank);
    kill(team->members[rank].process.pid, SIGKILL);
    while (oriel_identity_alive(&team->members[rank].process))
        usleep(1000);
}

static bool has_stopped(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    bool stopped = tasks != NULL;
    for (struct dirent *task; stopped && (task = readdir(tasks));) {
        char state = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        stopped = !file || (fscanf(file, "%*d %*s %c", &state) == 1 &&
                            state == 'T'); /* a thread may have ended since */
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return stopped;
}

void team_stop(int32_t rank)
{
    pid_t pid = team->members[rank].process.pid;
    kill(pid, SIGSTOP);
    for (int tries = 0; !has_stopped(pid); tries++) {
        team_expect(tries < 10000);
        usleep(1000);
    }
}

int team_rounds(int most)
{
    return team->n <= 2 ? most : 2 * most / team->n;
}

bool team_time_is_up(void)
{
    return oriel_now_ns() - begin_ns > SHARE_NS;
}

bool team_continues(uint32_t round)
{
    if (team_rank == 0 && round > 0 && atomic_load(&team->last_round) == 0 && team_time_is_up())
        atomic_store(&team->last_round, round);
    uint32_t last_round = atomic_load(&team->last_round);
    return last_round == 0 ||
           round <= last_round; /* all know it: rank 0 decided before their last meeting */
}

static void rank_run(int32_t rank, team_body *body)
{
    team_rank = rank;
    random_state = (team->seed ^ ((uint64_t)rank + 1)) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    struct oriel_window *window = window_open();
    begin_ns = oriel_now_ns();
    body(window);
    window_close(window);
}

struct member {
    int32_t rank;
    team_body *body;
};

static void *thread_run(void *context)
{
    const struct member *member = context;
    rank_run(member->rank, member->body);
    return NULL;
}

/* All ranks in this process. A rank that fails ends it, and the others with it. */
static void threads_run(team_body *body)
{
    pthread_t threads[TEAM_MOST];
    struct member members[TEAM_MOST];
    for (int32_t i = 0; i < team->n; i++) {
        members[i] = (struct member){i, body};
        team_expect(pthread_create(&threads[i], NULL, thread_run, &members[i]) == 0);
    }
    for (int32_t i = 0; i < team->n; i++)
        pthread_join(threads[i], NULL);
}

static void process_run(int32_t first_rank, team_body *body)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_threads)
        threads_run(body);
    else
        rank_run(first_rank, body);
    _exit(0); /* also if a sanitiser changes the exit status after a report */
}

static bool ended_well(int32_t rank, const siginfo_t *info)
{
    if (atomic_load(&team->dying) & (UINT32_C(1) << rank))
        return info->si_code == CLD_KILLED && info->si_status == SIGKILL;
    return info->si_code == CLD_EXITED && info->si_status == 0;
}

/* Checks every process that is not known to have ended. Returns the number of those that have not,
 * -1 if one has failed. */
static int look(const pid_t *pids, int32_t processes, bool *ended)
{
    int running = 0;
    for (int32_t i = 0; i < processes; i++) {
        siginfo_t info = {0};
        if (ended[i])
            continue;
        int how = WEXITED | WNOHANG | (team_leaves_zombies ? WNOWAIT : 0);
        if (waitid(P_PID, (id_t)pids[i], &info, how) != 0 || info.si_pid == 0) {
            running++;
            continue;
        }
        ended[i] = true;
        if (!ended_well(i, &info)) {
            fprintf(stderr, "rank %d of %d ended with code %d, status %d\n", (int)i, (int)team->n,
                    info.si_code, info.si_status);
            return -1;
        }
    }
    return running;
}

void team_run(int32_t n, team_body *body)
{
    pid_t pids[TEAM_MOST];
    bool ended[TEAM_MOST] = {false};
    int32_t processes = has_threads ? 1 : n;
    int running = processes;
    team = mmap(NULL, sizeof *team, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(team, MAP_FAILED);
    team->n = n;
    team->seed = first_seed++;
    fflush(NULL);
    for (int32_t i = 0; i < processes; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            process_run(i, body);
    }
    uint64_t forked_ns = oriel_now_ns();
    uint64_t limit_ns = busy_limit_s(limit_s) * UINT64_C(1000000000);
    while (running > 0 && oriel_now_ns() - forked_ns < limit_ns) {
        usleep(500);
        running = look(pids, processes, ended);
    }
    if (running > 0)
        fprintf(stderr, "%d of %d processes still wait at the time limit\n", running,
                (int)processes);
    for (int32_t i = 0; i < processes; i++) {
        if (!ended[i])
            kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0); /* fails if the process has been reaped */
    }
    munmap(team, sizeof *team);
    assert_int_equal(running, 0);
}

void team_run_sizes(team_body *body)
{
    static const int32_t sizes[] = {2, 3, 4, 8, 16};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        team_run(sizes[i], body);
}

bool team_has_threads(void)
{
    return has_threads;
}

void team_prepare(int argc, char **argv)
{
    const char *seed = getenv("PROTOCOL_SEED");
    const char *limit = getenv("PROTOCOL_LIMIT_S");
    const char *threads = getenv("PROTOCOL_THREADS");
    if (threads != NULL)
        has_threads = strcmp(threads, "0") != 0;
    first_seed = seed != NULL ? strtoull(seed, NULL, 10) : oriel_now_ns() % 1000000;
    if (limit != NULL)
        limit_s = (unsigned)strtoul(limit, NULL, 10);
    printf("PROTOCOL_SEED=%lu%s\n", (unsigned long)first_seed,
           has_threads ? " PROTOCOL_THREADS=1" : "");
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
}
