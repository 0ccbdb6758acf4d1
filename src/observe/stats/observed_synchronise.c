/* The observing entries of synchronisation: each calls the previous entry, and counts it with its
 * time and the waiting part of that. */
#include "observe/stats/observed_call.h"

#define ENTRY(name, kind, target, may_be_short, parameters, arguments)                             \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct oriel_observed *observed = oriel_observed_find(win);                                \
        if (oriel_unlikely(observed == NULL))                                                      \
            return oriel_observe_before.name arguments;                                            \
        bool is_sampled = may_be_short && observed->is_quick;                                      \
        struct oriel_observed_call call =                                                          \
            oriel_observed_call_begin(observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_##kind,           \
                                      __builtin_return_address(0), target, is_sampled);            \
        return oriel_observed_call_return(&call, target, is_sampled,                               \
                                          oriel_observe_before.name arguments);                    \
    }

ENTRY(Win_post, post, -1, false, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ENTRY(Win_start, start, -1, false, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
ENTRY(Win_complete, complete, -1, false, (MPI_Win win), (win))
ENTRY(Win_wait, wait, -1, false, (MPI_Win win), (win))
ENTRY(Win_test, test, -1, true, (MPI_Win win, int *flag), (win, flag))
ENTRY(Win_lock, lock, rank, true, (int lock_type, int rank, int assert, MPI_Win win),
      (lock_type, rank, assert, win))
ENTRY(Win_unlock, unlock, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_lock_all, lock_all, -1, true, (int assert, MPI_Win win), (assert, win))
ENTRY(Win_unlock_all, unlock_all, -1, true, (MPI_Win win), (win))
ENTRY(Win_flush, flush, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_flush_all, flush, -1, true, (MPI_Win win), (win))
ENTRY(Win_flush_local, flush, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_flush_local_all, flush, -1, true, (MPI_Win win), (win))
ENTRY(Win_order, flush, rank, true, (int rank, MPI_Win win), (rank, win))
ENTRY(Win_flush_list, flush, -1, true, (int n, const int ranks[], MPI_Win win), (n, ranks, win))
ENTRY(Win_iflush, flush, rank, true, (int rank, MPI_Win win, MPI_Request *request),
      (rank, win, request))
ENTRY(Win_iflush_all, flush, -1, true, (MPI_Win win, MPI_Request *request), (win, request))
ENTRY(Win_wait_until, sync, -1, true,
      (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison, const void *value),
      (win, disp, datatype, comparison, value))
ENTRY(Win_test_until, sync, -1, true,
      (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison, const void *value,
       int *flag),
      (win, disp, datatype, comparison, value, flag))
ENTRY(Win_sync, sync, -1, true, (MPI_Win win), (win))
ENTRY(Win_notify_wait, notify_wait, -1, true, (MPI_Win win, int number, MPI_Count count),
      (win, number, count))
ENTRY(Win_notify_test, notify_wait, -1, true, (MPI_Win win, int number, MPI_Count count, int *flag),
      (win, number, count, flag))
ENTRY(Win_notify_wait_any, notify_wait, -1, true,
      (MPI_Win win, int n, const int numbers[], int *index), (win, n, numbers, index))

/* Counted for the first window. */
static int observe_Win_flush_windows(int n, const MPI_Win wins[])
{
    struct oriel_observed *observed = n > 0 && wins != NULL ? oriel_observed_find(wins[0]) : NULL;
    if (observed == NULL)
        return oriel_observe_before.Win_flush_windows(n, wins);
    const bool is_sampled = observed->is_quick;
    struct oriel_observed_call call =
        oriel_observed_call_begin(observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_flush,
                                  __builtin_return_address(0), -1, is_sampled);
    return oriel_observed_call_return(&call, -1, is_sampled,
                                      oriel_observe_before.Win_flush_windows(n, wins));
}

/* In a pause, too. */
static int fence_uncounted(int assert, MPI_Win win)
{
    const struct oriel_observed *observed = oriel_observed_find_paused(win);
    if (observed != NULL)
        oriel_waiting_arrive(observed, oriel_now_ns());
    return oriel_observe_before.Win_fence(assert, win);
}

/* Publishes this rank's arrival time (wait_observer.c). */
static int observe_Win_fence(int assert, MPI_Win win)
{
    struct oriel_observed *observed = oriel_observed_find(win);
    if (oriel_unlikely(observed == NULL))
        return fence_uncounted(assert, win);
    struct oriel_observed_call call = oriel_observed_call_begin(
        observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_fence, __builtin_return_address(0), -1, false);
    oriel_waiting_arrive(observed, call.begin_ns);
    return oriel_observed_call_return(&call, -1, false,
                                      oriel_observe_before.Win_fence(assert, win));
}

void oriel_observe_synchronisation(struct oriel_api *table)
{
    table->Win_fence = observe_Win_fence;
    table->Win_post = observe_Win_post;
    table->Win_start = observe_Win_start;
    table->Win_complete = observe_Win_complete;
    table->Win_wait = observe_Win_wait;
    table->Win_test = observe_Win_test;
    table->Win_lock = observe_Win_lock;
    table->Win_unlock = observe_Win_unlock;
    table->Win_lock_all = observe_Win_lock_all;
    table->Win_unlock_all = observe_Win_unlock_all;
    table->Win_flush = observe_Win_flush;
    table->Win_flush_all = observe_Win_flush_all;
    table->Win_flush_local = observe_Win_flush_local;
    table->Win_flush_local_all = observe_Win_flush_local_all;
    table->Win_order = observe_Win_order;
    table->Win_flush_list = observe_Win_flush_list;
    table->Win_flush_windows = observe_Win_flush_windows;
    table->Win_iflush = observe_Win_iflush;
    table->Win_iflush_all = observe_Win_iflush_all;
    table->Win_wait_until = observe_Win_wait_until;
    table->Win_test_until = observe_Win_test_until;
    table->Win_sync = observe_Win_sync;
    table->Win_notify_wait = observe_Win_notify_wait;
    table->Win_notify_test = observe_Win_notify_test;
    table->Win_notify_wait_any = observe_Win_notify_wait_any;
}
