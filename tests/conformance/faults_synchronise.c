/* Faults of synchronisation: known mistakes of hosts and of readers of the standard about epochs,
 * locks and MPI_PROC_NULL. State is process-wide, since each run of a test has one fault and uses
 * one window at a time. breaker.c chooses the fault. */
#include "breaker.h"

static bool posted, tested, fenced;
static int wrong_rank(int rank)
{
    return rank == MPI_PROC_NULL;
}

/* A post with MPI_MODE_NOCHECK counts as one that needs no wait: the target continues as if the
 * epoch had ended. */
static int nocheck_is_not_counted_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    posted = !(assertion & MPI_MODE_NOCHECK);
    return posted ? next.Win_post(group, assertion, win) : MPI_SUCCESS;
}

static int nocheck_is_not_counted_Win_wait(MPI_Win win)
{
    return posted ? next.Win_wait(win) : MPI_SUCCESS;
}

static int nocheck_is_ignored_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    return next.Win_lock(type, rank, assertion & ~MPI_MODE_NOCHECK, win);
}

static bool is_empty(MPI_Group group)
{
    int size = 0;
    PMPI_Group_size(group, &size);
    return size == 0;
}

static int empty_groups_are_refused_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    return is_empty(group) ? MPI_ERR_GROUP : next.Win_post(group, assertion, win);
}

static int empty_groups_are_refused_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    return is_empty(group) ? MPI_ERR_GROUP : next.Win_start(group, assertion, win);
}

static int one_epoch_for_both_sides_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    posted = true;
    return next.Win_post(group, assertion, win);
}

static int one_epoch_for_both_sides_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    return posted ? MPI_ERR_RMA_SYNC : next.Win_start(group, assertion, win);
}

/* MPI_Win_test reports the end of the epoch, but the next post finds it open. */
static int test_leaves_the_epoch_open_Win_test(MPI_Win win, int *flag)
{
    int code = next.Win_test(win, flag);
    tested |= code == MPI_SUCCESS && *flag;
    return code;
}

static int test_leaves_the_epoch_open_Win_post(MPI_Group group, int assertion, MPI_Win win)
{
    return tested ? MPI_ERR_RMA_SYNC : next.Win_post(group, assertion, win);
}

static int fence_always_opens_an_epoch_Win_fence(int assertion, MPI_Win win)
{
    fenced = true;
    return next.Win_fence(assertion, win);
}

static int fence_always_opens_an_epoch_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    return fenced ? MPI_ERR_RMA_SYNC : next.Win_lock(type, rank, assertion, win);
}

static int fence_always_opens_an_epoch_Win_start(MPI_Group group, int assertion, MPI_Win win)
{
    return fenced ? MPI_ERR_RMA_SYNC : next.Win_start(group, assertion, win);
}

static int exclusive_locks_are_shared_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    return next.Win_lock(type == MPI_LOCK_EXCLUSIVE ? MPI_LOCK_SHARED : type, rank, assertion, win);
}

static int shared_locks_are_exclusive_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    return next.Win_lock(type == MPI_LOCK_SHARED ? MPI_LOCK_EXCLUSIVE : type, rank, assertion, win);
}

static int no_lock_for_proc_null_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    return wrong_rank(rank) ? MPI_ERR_RANK : next.Win_lock(type, rank, assertion, win);
}

static int no_flush_of_proc_null_Win_flush(int rank, MPI_Win win)
{
    return wrong_rank(rank) ? MPI_ERR_RANK : next.Win_flush(rank, win);
}

static int no_flush_of_proc_null_Win_flush_local(int rank, MPI_Win win)
{
    return wrong_rank(rank) ? MPI_ERR_RANK : next.Win_flush_local(rank, win);
}

static int sync_needs_an_epoch_Win_sync(MPI_Win win)
{
    return next.Win_flush_all(win) == MPI_SUCCESS ? next.Win_sync(win) : MPI_ERR_RMA_SYNC;
}

/* A wait that looks only once. */
static int wait_does_not_wait_Win_wait(MPI_Win win)
{
    int done;
    return next.Win_test(win, &done);
}

const struct fault synchronisation_faults[] = {
    FAULT(nocheck_is_not_counted, Win_post),       FAULT(nocheck_is_not_counted, Win_wait),
    FAULT(nocheck_is_ignored, Win_lock),           FAULT(empty_groups_are_refused, Win_post),
    FAULT(empty_groups_are_refused, Win_start),    FAULT(one_epoch_for_both_sides, Win_post),
    FAULT(one_epoch_for_both_sides, Win_start),    FAULT(test_leaves_the_epoch_open, Win_test),
    FAULT(test_leaves_the_epoch_open, Win_post),   FAULT(fence_always_opens_an_epoch, Win_fence),
    FAULT(fence_always_opens_an_epoch, Win_lock),  FAULT(fence_always_opens_an_epoch, Win_start),
    FAULT(exclusive_locks_are_shared, Win_lock),   FAULT(shared_locks_are_exclusive, Win_lock),
    FAULT(no_lock_for_proc_null, Win_lock),        FAULT(no_flush_of_proc_null, Win_flush),
    FAULT(no_flush_of_proc_null, Win_flush_local), FAULT(sync_needs_an_epoch, Win_sync),
    FAULT(wait_does_not_wait, Win_wait),           {0},
};
