/* A program that selects what is observed of it: by MPI_Pcontrol, by regions, or by the options of
 * the run, for which it makes a known mixture of operations. The argument names the actions. */
#include <mpi.h>

#define ORIEL_WEAK
#include "../../include/oriel/oriel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SOME = 10, LONG_MS = 200, MANY = 100000, REGIONS = 300, DEEP = 70, PAUSES = 200 };

enum { PUT_NS = 3000, LONG_PUT_NS = 5000000, LONG_EACH = 997 };

static int rank, ranks;
static MPI_Win halo, table;

/* --- the clock of paced calls: each takes a known time, whatever the load of the machine --- */

static _Thread_local struct {
    int64_t call_ns; /* how long this thread's call takes; 0: not paced */
    int64_t begin_ns, end_ns;
} pace;

/* Libraries use this one, since the program comes first. The first reading in a paced call is its
 * begin, all others are its end. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (pace.call_ns == 0 || clock != CLOCK_MONOTONIC)
        return result;
    int64_t now_ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    if (pace.begin_ns == 0) {
        pace.begin_ns = now_ns > pace.end_ns ? now_ns : pace.end_ns;
        pace.end_ns = pace.begin_ns + pace.call_ns;
        now_ns = pace.begin_ns;
    } else {
        now_ns = pace.end_ns;
    }
    now->tv_sec = now_ns / 1000000000;
    now->tv_nsec = now_ns % 1000000000;
    return result;
}

/* The thread's next call takes call_ns; with 0, as long as it takes. */
static void set_pace(int64_t call_ns)
{
    pace.begin_ns = 0;
    pace.call_ns = call_ns;
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Where this thread puts to. Threads that put at the same time have places of their own. */
static _Thread_local MPI_Aint place;
static _Atomic int places;

static void put_some(MPI_Win win, int count)
{
    int64_t value = rank;
    for (int i = 0; i < count; i++)
        MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % ranks, place, 1, MPI_INT64_T, win);
}

/* --- MPI_Pcontrol --- */

/* Epochs that begin or end in the pause, a window of the pause, and levels that mean nothing. */
static void pause_some(void)
{
    int64_t *memory;
    MPI_Win other;
    MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, halo);
    put_some(halo, SOME);
    MPI_Pcontrol(0);
    MPI_Pcontrol(0);
    put_some(halo, SOME);
    MPI_Win_unlock((rank + 1) % ranks, halo);
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other);
    MPI_Win_set_name(other, "other");
    MPI_Win_fence(0, other);
    put_some(other, SOME);
    sleep_ms(LONG_MS);
    MPI_Win_fence(0, other);
    MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, halo);
    MPI_Pcontrol(7, "for another tool");
    put_some(halo, SOME);
    MPI_Pcontrol(1);
    MPI_Pcontrol(1);
    put_some(halo, SOME);
    MPI_Win_unlock((rank + 1) % ranks, halo);
    MPI_Pcontrol(0);
    MPI_Win_free(&other);
    MPI_Pcontrol(1);
}

/* Rank 0 alone pauses, and is late for a fence of the others. */
static void pause_one(void)
{
    MPI_Win_fence(0, halo);
    if (rank == 0) {
        MPI_Pcontrol(0);
        sleep_ms(LONG_MS);
    }
    MPI_Win_fence(0, halo);
    MPI_Pcontrol(1);
}

/* The pause lasts until the end. */
static void pause_to_end(void)
{
    MPI_Win_lock_all(0, halo);
    put_some(halo, SOME);
    MPI_Win_unlock_all(halo);
    MPI_Pcontrol(0);
    sleep_ms(LONG_MS);
}

static _Atomic int is_done, putting;

static void *put_until_done(void *unused)
{
    (void)unused;
    place = atomic_fetch_add(&places, 1);
    put_some(halo, SOME);
    putting++;
    while (!is_done)
        put_some(halo, 1);
    return NULL;
}

/* One thread pauses and resumes while others put. */
static void pause_threads(void)
{
    pthread_t threads[2];
    MPI_Win_lock_all(0, halo);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, put_until_done, NULL);
    while (putting < 2)
        sleep_ms(1);
    for (int i = 0; i < PAUSES; i++) {
        MPI_Pcontrol(0);
        MPI_Pcontrol(1);
    }
    MPI_Pcontrol(0);
    is_done = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    MPI_Pcontrol(1);
    MPI_Win_unlock_all(halo);
}

/* Flushes the trace, and copies what is in the file then. */
static void flush_and_copy(void)
{
    MPI_Win_lock_all(0, halo);
    put_some(halo, SOME);
    MPI_Pcontrol(2);
    const char *folder = getenv("TEST_COPY");
    if (folder != NULL) {
        char command[4096];
        snprintf(command, sizeof command, "cp %s/rank-%d.oriel %s/copy-%d", folder, rank, folder,
                 rank);
        if (system(command) != 0)
            printf("rank %d has no copy\n", rank);
    }
    MPI_Win_unlock_all(halo);
}

/* --- regions --- */

/* The program also runs without Oriel. */
static void region_begin(const char *name)
{
    if (oriel_region_begin != NULL)
        oriel_region_begin(name);
}

static void region_end(const char *name)
{
    if (oriel_region_end != NULL)
        oriel_region_end(name);
}

static void *region_in_thread(void *unused)
{
    (void)unused;
    region_begin("thread");
    put_some(halo, SOME);
    region_end("thread");
    return NULL;
}

static void nest_regions(void)
{
    pthread_t thread;
    MPI_Win_lock_all(0, halo);
    region_begin("step");
    for (int i = 0; i < 3; i++) {
        region_begin("exchange");
        put_some(halo, SOME);
        sleep_ms(10);
        MPI_Win_flush_all(halo);
        region_end("exchange");
    }
    put_some(halo, SOME);
    pthread_create(&thread, NULL, region_in_thread, NULL);
    pthread_join(thread, NULL);
    region_end(NULL);
    put_some(halo, SOME);
    MPI_Win_unlock_all(halo);
}

/* One of each kind; every region that was begun is counted. */
static void *leave_region(void *unused)
{
    (void)unused;
    region_begin("left by a thread");
    return NULL;
}

static void mistake_regions(void)
{
    char name[80];
    pthread_t thread;
    region_end("nothing");
    region_begin("outer");
    region_begin("in\tner");
    region_end("another");
    region_end("outer");
    region_begin("");
    region_end("");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    region_begin(name);
    region_end(name);
    for (int i = 0; i < DEEP; i++)
        region_begin("region 0");
    for (int i = 0; i < DEEP; i++)
        region_end("region 0");
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, leave_region, NULL);
        pthread_join(thread, NULL);
    }
    region_begin("left open");
    region_begin("left open, too");
    region_begin("last");
    region_end("last");
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "region %d", i);
        region_begin(name);
        region_end(name);
    }
}

static void leave_open(void)
{
    region_begin("alone");
}

/* A region begins in a pause, one ends in it, and one contains it. */
static void pause_regions(void)
{
    MPI_Win_lock_all(0, halo);
    region_begin("around");
    region_begin("before");
    put_some(halo, SOME);
    MPI_Pcontrol(0);
    put_some(halo, SOME);
    sleep_ms(LONG_MS);
    region_end("before");
    region_begin("within");
    MPI_Pcontrol(1);
    put_some(halo, SOME);
    region_end("within");
    region_end("around");
    MPI_Win_unlock_all(halo);
}

/* --- a known mixture: MANY puts of two times to two targets, MANY / 2 gets, and a few --- */

static void mix(void)
{
    int64_t values[8] = {0};
    MPI_Win_lock_all(0, halo);
    MPI_Win_lock_all(0, table);
    for (int i = 0; i < MANY; i++) {
        set_pace((1 + i % 2) * PUT_NS);
        MPI_Put(values, 1 + i % 2, MPI_INT64_T, i % ranks, 0, 1 + i % 2, MPI_INT64_T, halo);
        set_pace(0);
        if (i % 2 == 0)
            MPI_Get(values, 8, MPI_INT64_T, rank, 0, 8, MPI_INT64_T, table);
        if (i % 1000 == 0)
            MPI_Win_flush_all(halo);
    }
    put_some(table, 3);
    MPI_Win_unlock_all(table);
    MPI_Win_unlock_all(halo);
}

/* --- the same number of paced puts by one thread, or by more than there are processors --- */

enum { CROWD = 20 };

struct share {
    int puts, long_each; /* each such put is a long one; 0: none */
};

static void *put_share(void *argument)
{
    const struct share *share = argument;
    int64_t value = rank;
    place = atomic_fetch_add(&places, 1);
    for (int i = 1; i <= share->puts; i++) {
        set_pace(share->long_each != 0 && i % share->long_each == 0 ? LONG_PUT_NS : PUT_NS);
        MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % ranks, place, 1, MPI_INT64_T, halo);
        set_pace(0);
    }
    return NULL;
}

static void put_by(int count, int long_each)
{
    pthread_t threads[CROWD];
    struct share share = {.puts = 2 * MANY / count, .long_each = long_each};
    MPI_Win_lock_all(0, halo);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, put_share, &share);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(halo);
}

static void put_alone(void)
{
    put_by(1, 0);
}

static void put_in_a_crowd(void)
{
    put_by(CROWD, 0);
}

static void put_uneven(void)
{
    put_by(1, LONG_EACH);
}

/* --- puts of which signals interrupt some, for a time that no put takes --- */

static volatile sig_atomic_t interrupts;

static void interrupt(int number)
{
    int error = errno;
    (void)number;
    interrupts++;
    sleep_ms(5);
    errno = error;
}

static void put_interrupted(void)
{
    const struct timeval each = {.tv_usec = 6000}, none = {.tv_usec = 0};
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    MPI_Win_lock_all(0, halo);
    setitimer(ITIMER_REAL, &(struct itimerval){each, each}, NULL);
    while (interrupts < 100)
        put_some(halo, 1);
    setitimer(ITIMER_REAL, &(struct itimerval){none, none}, NULL);
    MPI_Win_unlock_all(halo);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(void);
    } actions[] = {{"pause", pause_some},
                   {"pause_one", pause_one},
                   {"pause_to_end", pause_to_end},
                   {"pause_threads", pause_threads},
                   {"flush", flush_and_copy},
                   {"regions", nest_regions},
                   {"mistakes", mistake_regions},
                   {"open", leave_open},
                   {"pause_regions", pause_regions},
                   {"mix", mix},
                   {"alone", put_alone},
                   {"crowd", put_in_a_crowd},
                   {"uneven", put_uneven},
                   {"interrupted", put_interrupted}};
    const char *what = argc > 1 ? argv[1] : "mix";
    int provided;
    int64_t *memory;
    if (strcmp(what, "early") == 0)
        MPI_Pcontrol(1); /* a mistake that MPICH reports */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(8 * CROWD, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &halo);
    MPI_Win_set_name(halo, "halo");
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &table);
    MPI_Win_set_name(table, "table");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(what, actions[i].name) == 0)
            actions[i].act();
    MPI_Win_free(&table);
    MPI_Win_free(&halo);
    printf("rank %d is done\n", rank);
    MPI_Finalize();
    return 0;
}
