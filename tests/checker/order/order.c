/* The harness for the tests of the checker's messages: start and end of the checker as in its
 * library, marks and steps in shared memory, and stubs for the parts that messages only notify.
 * Each case begins in order: all ranks know all earlier events. */
#include "order.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/report/finding.h"
#include "check/common/reentrancy.h"
#include "check/local/local_accesses.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"

enum { NEVER_SENT = 30000 }; /* a tag */

int rank, size;

static struct shared {
    _Atomic uint64_t marks[RANKS_MOST][MARKS];
    _Atomic uint32_t met;
    _Atomic uint32_t failed;
} * shared;

static int unknown, doubts;

/* --- stubs --- */

void oriel_finding_count(const char *what)
{
    unknown += strncmp(what, "calls not modelled", 18) == 0;
    doubts += strncmp(what, "messages with an unknown order", 30) == 0;
}

void oriel_finding_left(const char *name, const struct oriel_site *site)
{
    (void)name, (void)site;
}

struct oriel_site oriel_site_here(const void *address, uint16_t call, uint32_t world_rank,
                                  uint16_t opening)
{
    (void)opening;
    return (struct oriel_site){(uint64_t)(uintptr_t)address, world_rank, call, 0};
}

void oriel_check_frames(const void *address, uintptr_t frame)
{
    (void)address;
    (void)frame;
}

bool oriel_site_is_bound(const void *address)
{
    (void)address;
    return false;
}

oriel_local_group oriel_local_group_new(void)
{
    return 1;
}

void oriel_local_message(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                         oriel_local_group group, const struct oriel_site *site)
{
    (void)writes, (void)group;
    EXPECT(buffer != NULL && count > 0 && datatype != MPI_DATATYPE_NULL && site->call != 0);
}

void oriel_local_complete(oriel_local_group group)
{
    EXPECT(group == 1);
}

/* --- marks --- */

/* Waits and lets the host make progress, unseen by the checker. */
static void wait_a_little(void)
{
    int flag;
    oriel_check_enter();
    MPI_Iprobe(MPI_ANY_SOURCE, NEVER_SENT, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    oriel_check_leave();
    sched_yield();
}

uint64_t tick_now(void)
{
    return oriel_order_now();
}

uint64_t tick_known(int of)
{
    oriel_tick clock[RANKS_MOST];
    oriel_order_clock(clock);
    return clock[of];
}

void mark(int number)
{
    atomic_store(&shared->marks[rank][number], oriel_order_now());
}

/* The other rank has made its mark, or makes it soon. */
bool knows(int of, int number)
{
    uint64_t tick;
    while ((tick = atomic_load(&shared->marks[of][number])) == 0)
        wait_a_little();
    return tick_known(of) >= tick;
}

void meet(void)
{
    uint32_t turn = atomic_fetch_add(&shared->met, 1) / (uint32_t)size;
    while (atomic_load(&shared->met) < (turn + 1) * (uint32_t)size)
        wait_a_little();
}

int unknown_calls(void)
{
    return unknown;
}

bool is_in_doubt(void)
{
    return doubts > 0;
}

void complain(const char *file, int line, const char *what)
{
    fprintf(stderr, "rank %d: %s:%d: %s\n", rank, file, line, what);
    atomic_fetch_add(&shared->failed, 1);
}

/* --- harness --- */

static void start_checker(uint64_t board_bytes)
{
    char path[64];
    struct oriel_key key = {{1000, 0, 0, 0}};
    bool ok = true;
    if (rank == 0)
        ok = oriel_shm_make_sized(size, board_bytes, path, sizeof path) == ORIEL_OK;
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        ok = oriel_shm_join(path) == ORIEL_OK;
    if (!ok || oriel_order_start(rank, size) != ORIEL_OK)
        exit(1);
    shared = oriel_shm_at(oriel_shm_find(&key, sizeof *shared, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    oriel_check_running = true;
}

static void begin_case(void)
{
    meet();
    memset((void *)shared->marks[rank], 0, sizeof shared->marks[rank]);
    oriel_order_unknown_begin(NULL);
    meet();
    oriel_order_unknown_end();
    meet();
    unknown = 0;
}

int order_main(int argc, char **argv, const struct order_case *cases, int count,
               uint64_t board_bytes)
{
    const char *only = argc > 2 && strcmp(argv[1], "--only") == 0 ? argv[2] : "";
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    start_checker(board_bytes);
    for (int i = 0; i < count; i++) {
        if (strstr(cases[i].name, only) == NULL || size < cases[i].least_ranks)
            continue;
        uint32_t failed = atomic_load(&shared->failed);
        begin_case();
        cases[i].run();
        meet();
        bool bad = atomic_load(&shared->failed) != failed;
        if (rank == 0)
            printf("%s %s\n", bad ? "not ok" : "ok", cases[i].name);
        meet();
    }
    EXPECT(oriel_shm_refused() == 0);
    meet();
    int status = atomic_load(&shared->failed) != 0;
    oriel_check_running = false;
    MPI_Finalize();
    return status;
}
