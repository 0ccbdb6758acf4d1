/* Fence, post, start, complete, wait, test (MPI-4.1, 13.5.1, 13.5.2).  Arguments are checked here, the rest is sync/'s.
 * Programs call, through entries.c. */
#include "api/api.h"
#include "api/check.h"
#include "sync/sync.h"
#include "window/handle.h"
#include "window/objects.h"

#include <stdlib.h>

int oriel_entry_Win_fence(int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_fence(assert, win)
                                              : oriel_error_not_a_window("MPI_Win_fence");
    int taken = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    enum oriel_status status = oriel_check_assert(assert, taken);
    if (status == ORIEL_OK)
        status = oriel_fence(window, (assert & MPI_MODE_NOSUCCEED) != 0);
    return oriel_error_raise(window, "MPI_Win_fence", status);
}

/* The group's members as ranks of the window, in memory of malloc with room for as many pointers. */
static enum oriel_status translate(const struct oriel_window *window, MPI_Group group, int32_t **out, int32_t *count)
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
    if (size > 0 &&
        host->Group_translate_ranks(group, size, ranks + size, window->host->group, ranks) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_GROUP, "the host cannot translate the group");
    for (int i = 0; i < size && status == ORIEL_OK; i++)
        if (ranks[i] == MPI_UNDEFINED)
            status = oriel_fail(ORIEL_E_GROUP, "member %d of the group is not in the window's group", i);
    if (status != ORIEL_OK) {
        free(ranks);
        return status;
    }
    *out = ranks;
    *count = size;
    return ORIEL_OK;
}

typedef enum oriel_status opener(struct oriel_window *window, int32_t *ranks, int32_t count);

static int open_epoch(struct oriel_window *window, const char *call, MPI_Group group, int assert, int taken, opener *open)
{
    int32_t *ranks = NULL;
    int32_t count = 0;
    enum oriel_status status = oriel_check_assert(assert, taken);
    if (status == ORIEL_OK)
        status = translate(window, group, &ranks, &count);
    if (status == ORIEL_OK)
        status = open(window, ranks, count);
    return oriel_error_raise(window, call, status);
}

int oriel_entry_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_post(group, assert, win)
                                              : oriel_error_not_a_window("MPI_Win_post");
    return open_epoch(window, "MPI_Win_post", group, assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
                      oriel_post);
}

int oriel_entry_Win_start(MPI_Group group, int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_start(group, assert, win)
                                              : oriel_error_not_a_window("MPI_Win_start");
    return open_epoch(window, "MPI_Win_start", group, assert, MPI_MODE_NOCHECK, oriel_start);
}

int oriel_entry_Win_complete(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_complete(win)
                                              : oriel_error_not_a_window("MPI_Win_complete");
    return oriel_error_raise(window, "MPI_Win_complete", oriel_complete(window));
}

int oriel_entry_Win_wait(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_wait(win) : oriel_error_not_a_window("MPI_Win_wait");
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
