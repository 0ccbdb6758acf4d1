/* More scenarios of fault.h: waits by messages between ranks on several nodes. The survivors access
 * the victim's memory and lock, or a lock for which the victim waits. After a call has failed
 * because of the victim, the next one to it must also fail, and soon. */
#include "fault.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The time for which a survivor continues without an error. */
static double end_of_patience(void)
{
    return seconds_now() + (with_victim ? 0.5 : 15);
}

static void nothing(void)
{
}
static void lock_victim_shared(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, victim, 0, win);
}
static void lock_victim_exclusive(void)
{
    if (world_rank == (victim == 0 ? 1 : 0))
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win);
}

static int put(void)
{
    return MPI_Put(bulk, 1, MPI_DOUBLE, victim, world_rank, 1, MPI_DOUBLE, win);
}
static int put_all(void)
{
    return MPI_Put(bulk, FAULT_ELEMENTS, MPI_DOUBLE, victim, 0, FAULT_ELEMENTS, MPI_DOUBLE, win);
}
static int get(void)
{
    return MPI_Get(bulk, 1, MPI_DOUBLE, victim, world_rank, 1, MPI_DOUBLE, win);
}
static int get_all(void)
{
    return MPI_Get(bulk, FAULT_ELEMENTS, MPI_DOUBLE, victim, 0, FAULT_ELEMENTS, MPI_DOUBLE, win);
}
static int accumulate(void)
{
    return MPI_Accumulate(bulk, FAULT_ELEMENTS, MPI_DOUBLE, victim, 0, FAULT_ELEMENTS, MPI_DOUBLE,
                          MPI_SUM, win);
}
static int fetch_and_add(void)
{
    static int64_t one = 1, before;
    return MPI_Fetch_and_op(&one, &before, MPI_INT64_T, victim, world_rank, MPI_SUM, win);
}

static int flush(int code)
{
    return code != MPI_SUCCESS ? code : MPI_Win_flush(victim, win);
}

/* In a lock_all epoch: repeats until an error, then once more. */
static int repeat(int (*operate)(void), int in_a_row)
{
    double end = end_of_patience();
    int code = MPI_Win_lock_all(0, win);
    while (code == MPI_SUCCESS && seconds_now() < end) {
        for (int i = 0; i < in_a_row && code == MPI_SUCCESS; i++)
            code = operate();
        code = flush(code);
    }
    if (code != MPI_SUCCESS && flush(operate()) == MPI_SUCCESS)
        return MPI_SUCCESS;
    return code;
}

static int wait_put(void)
{
    return repeat(put, 1);
}
static int wait_get(void)
{
    return repeat(get, 1);
}
static int wait_fetch(void)
{
    return repeat(fetch_and_add, 1);
}
static int wait_bulk_put(void)
{
    return repeat(put_all, 30);
}
static int wait_bulk_get(void)
{
    return repeat(get_all, 30);
}
static int wait_bulk_accumulate(void)
{
    return repeat(accumulate, 30);
}

/* Waits past the victim's death. */
static void let_it_die(void)
{
    usleep(100000);
}

static int wait_unlock(void)
{
    let_it_die();
    int code = put();
    int end = MPI_Win_unlock(victim, win);
    return code != MPI_SUCCESS ? code : end;
}

static int wait_lock(void)
{
    double end = end_of_patience();
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && seconds_now() < end) {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win);
        if (code == MPI_SUCCESS)
            code = MPI_Win_unlock(victim, win);
    }
    return code;
}

/* A survivor without the error holds the lock on the victim's memory; the others wait for it. */
static int wait_after_survivor(void)
{
    if (world_rank != (victim == 0 ? 1 : 0))
        return wait_lock();
    usleep(300000);
    return wait_unlock();
}

static int wait_lock_all_first_use(void)
{
    let_it_die();
    int code = MPI_Win_lock_all(0, win);
    return code != MPI_SUCCESS ? code : flush(put());
}

static int wait_unlock_all(void)
{
    let_it_die();
    int code = MPI_Win_lock_all(0, win);
    if (code == MPI_SUCCESS)
        code = put();
    int end = MPI_Win_unlock_all(win);
    return code != MPI_SUCCESS ? code : end;
}

static int wait_complete(void)
{
    int code = MPI_Win_start(victim_group, 0, win);
    if (code != MPI_SUCCESS)
        return code;
    for (double end = end_of_patience(); code == MPI_SUCCESS && seconds_now() < end;)
        code = get();
    int last = MPI_Win_complete(win);
    return code != MPI_SUCCESS ? code : last;
}

static void connect_and_post(void)
{
    connect_all();
    post_to_survivors(win);
}

static int wait_put_and_fence(void)
{
    let_it_die();
    int code = put();
    int end = MPI_Win_fence(0, win);
    return code != MPI_SUCCESS ? code : end;
}

static void fence_before(void)
{
    MPI_Win_fence(0, win);
}

/* The victim dies in the queue for rank 0's lock, which rank 0 holds. */
static void die_waiting(void)
{
    die_after_us(200000);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

static void hold_own(void)
{
    if (world_rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

/* All ranks have acquired and released the window's locks before any holds one. */
static void connect_and_barrier(void)
{
    connect_all();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void connect_and_hold_own(void)
{
    connect_and_barrier();
    hold_own();
}

static int wait_after_waiter(void)
{
    usleep(world_rank == 0 ? 600000 : 100000);
    if (world_rank == 0)
        return MPI_Win_unlock(0, win);
    int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    return code != MPI_SUCCESS ? code : MPI_Win_unlock(0, win);
}

static MPI_Comm living;

static void part(void)
{
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == victim, world_rank, &living);
    MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN);
}

/* The survivors can make a window of their own, whatever the state of the first one. */
static int make_own(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    double *base;
    MPI_Win own;
    int code = MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, living, &base, &own);
    if (code == MPI_SUCCESS)
        return MPI_Win_free(&own);
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: no window of the survivors: %s\n", world_rank, text);
    return code;
}

/* One survivor is late. The others check that it lives, even if its node's first rank, which would
 * report its address, has died. */
static int wait_own_window(void)
{
    usleep(world_rank == world_size - 1 ? 1500000 : 100000);
    return make_own() == MPI_SUCCESS ? MPI_Win_fence(0, win) : MPI_SUCCESS;
}

/* The late survivor has freed the first window, which the others still have. */
static int wait_own_window_after_free(void)
{
    let_it_die();
    if (world_rank != world_size - 1)
        return wait_own_window();
    int code = MPI_Win_free(&win);
    usleep(1500000);
    return make_own() == MPI_SUCCESS ? code : MPI_SUCCESS;
}

const struct scenario scenarios[] = {
    {"put", nothing, nothing, wait_put, false, NULL, true},
    {"get", nothing, nothing, wait_get, false, NULL, true},
    {"fetch", nothing, nothing, wait_fetch, false, NULL, true},
    {"bulk-put", nothing, nothing, wait_bulk_put, false, NULL, true},
    {"bulk-get", nothing, nothing, wait_bulk_get, false, NULL, true},
    {"bulk-accumulate", nothing, nothing, wait_bulk_accumulate, false, NULL, true},
    {"unlock", nothing, nothing, wait_unlock, false, lock_victim_shared, true},
    {"lock", nothing, nothing, wait_lock, false, NULL, true},
    {"lock-after-survivor", nothing, nothing, wait_after_survivor, false, lock_victim_exclusive,
     true},
    {"lock-after-waiter", connect_and_barrier, die_waiting, wait_after_waiter, true,
     connect_and_hold_own, true},
    {"lock-all", nothing, nothing, wait_lock_all_first_use, false, NULL, true},
    {"unlock-all", nothing, nothing, wait_unlock_all, false, NULL, true},
    {"complete", connect_and_post, nothing, wait_complete, false, connect_all, true},
    {"own-window", part, nothing, wait_own_window, false, part, true},
    {"own-window-after-free", part, nothing, wait_own_window_after_free, false, part, true},
    {"put-fence", fence_before, nothing, wait_put_and_fence, false, fence_before, true},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
