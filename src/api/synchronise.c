/* Fence, post, start, complete, wait, test (MPI-4.1, 13.5.1, 13.5.2), and MPI_Group_free. Arguments
 * are checked here; sync/ does the rest. A group that repeats is not translated again. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "rma/deferred.h"
#include "sync/sync.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <stdlib.h>

static enum oriel_status check_active_target(const struct oriel_window *window)
{
    return oriel_likely(window->holding == NULL)
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_SYNC,
                            "the window was opened from a memory handle, and has only "
                            "passive-target epochs");
}

int oriel_entry_Win_fence(int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_fence(assert, win)
                                              : oriel_error_not_a_window("MPI_Win_fence");
    int taken = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    enum oriel_status status = oriel_check_assert(assert, taken);
    if (status == ORIEL_OK)
        status = check_active_target(window);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, "MPI_Win_fence", status);
    const enum oriel_status done = oriel_deferred_complete(window, -1);
    status = oriel_fence(window, (assert &MPI_MODE_NOSUCCEED) != 0);
    if (status == ORIEL_OK)
        status = done;
    return oriel_error_raise(window, "MPI_Win_fence", status);
}

/* The number of freed handles. A handle that the program has not freed still means the same group.
 * The host may reuse a freed handle for another group. */
static _Atomic uint64_t groups_freed;

static uint64_t group_key(MPI_Group group)
{
    return (uint64_t)(uintptr_t)group;
}

int oriel_entry_Group_free(MPI_Group *group)
{
    /* first: the host may reuse the handle in another thread */
    atomic_fetch_add_explicit(&groups_freed, 1, memory_order_relaxed);
    return oriel_host()->Group_free(group);
}

/* The group's members as ranks of the window, in memory from malloc with room for count
 * pointers. */
static enum oriel_status group_to_win_ranks(const struct oriel_window *window, MPI_Group group,
                                            int32_t **out, int32_t *count)
{
    const struct oriel_host_calls *host = oriel_host();
    int size = 0;
    if (group == MPI_GROUP_NULL || host->Group_size(group, &size) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_GROUP, "the group is not valid");
    size_t bytes_each = sizeof(void *) > 2 * sizeof(int) ? sizeof(void *) : 2 * sizeof(int);
    int *ranks = malloc(((size_t)(unsigned)size + 1) * bytes_each);
    if (ranks == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a group of %d", size);
    for (int i = 0; i < size; i++)
        ranks[size + i] = i;
    enum oriel_status status = ORIEL_OK;
    if (size > 0 && host->Group_translate_ranks(group, size, ranks + size, window->host->group,
                                                ranks) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_GROUP, "the host cannot translate the group");
    for (int i = 0; i < size && status == ORIEL_OK; i++)
        if (ranks[i] == MPI_UNDEFINED)
            status =
                oriel_fail(ORIEL_E_GROUP, "member %d of the group is not in the window's group", i);
    if (status != ORIEL_OK) {
        free(ranks);
        return status;
    }
    *out = ranks;
    *count = size;
    return ORIEL_OK;
}

typedef enum oriel_status opener(struct oriel_window *window, int32_t *ranks, int32_t count);

static __attribute__((noinline)) enum oriel_status
open_epoch_for_group(struct oriel_window *window, MPI_Group group, opener *open,
                     struct oriel_members *members)
{
    int32_t *ranks = NULL;
    int32_t count = 0;
    const uint64_t freed = atomic_load_explicit(&groups_freed, memory_order_relaxed);
    enum oriel_status status = group_to_win_ranks(window, group, &ranks, &count);
    if (status == ORIEL_OK)
        status = open(window, ranks, count);
    if (status == ORIEL_OK) {
        members->group = group_key(group);
        members->groups_freed = freed;
    }
    return status;
}

/* members: the window's record of the last group of this kind of epoch. */
static inline int open_epoch(struct oriel_window *window, const char *call, MPI_Group group,
                             int assert, int taken, opener *open, struct oriel_members *members)
{
    enum oriel_status status = oriel_check_assert(assert, taken);
    if (status == ORIEL_OK)
        status = check_active_target(window);
    if (oriel_unlikely(status != ORIEL_OK))
        return oriel_error_raise(window, call, status);
    const bool same =
        members->group == group_key(group) && group_key(group) != 0 &&
        members->groups_freed == atomic_load_explicit(&groups_freed, memory_order_relaxed);
    status = oriel_likely(same) ? open(window, NULL, 0)
                                : open_epoch_for_group(window, group, open, members);
    return oriel_error_raise(window, call, status);
}

int oriel_entry_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_post(group, assert, win)
                                              : oriel_error_not_a_window("MPI_Win_post");
    return open_epoch(window, "MPI_Win_post", group, assert,
                      MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, oriel_post,
                      &window->posted);
}

int oriel_entry_Win_start(MPI_Group group, int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_start(group, assert, win)
                                              : oriel_error_not_a_window("MPI_Win_start");
    return open_epoch(window, "MPI_Win_start", group, assert, MPI_MODE_NOCHECK, oriel_start,
                      &window->started);
}

int oriel_entry_Win_complete(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_complete(win)
                                              : oriel_error_not_a_window("MPI_Win_complete");
    const enum oriel_status done = oriel_deferred_complete(window, -1);
    const enum oriel_status status = oriel_complete(window);
    return oriel_error_raise(window, "MPI_Win_complete", status == ORIEL_OK ? done : status);
}

int oriel_entry_Win_wait(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_wait(win)
                                              : oriel_error_not_a_window("MPI_Win_wait");
    return oriel_error_raise(window, "MPI_Win_wait", oriel_wait_exposure(window));
}

int oriel_entry_Win_test(MPI_Win win, int *flag)
{
    struct oriel_window *window = oriel_handle_find(win);
    bool done;
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_test(win, flag)
                                              : oriel_error_not_a_window("MPI_Win_test");
    enum oriel_status status = oriel_test_exposure(window, &done);
    if (status == ORIEL_OK)
        *flag = done;
    return oriel_error_raise(window, "MPI_Win_test", status);
}
