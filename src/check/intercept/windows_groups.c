/* The groups of MPI_Win_post and MPI_Win_start as ranks of their window. If memory is exhausted,
 * the window's spare room serves one call at a time: an epoch that was not recorded would make
 * other ranks look wrong. */
#include "check/window/window_steps.h"

#include <stdlib.h>

static int32_t *ranks_room_find(struct oriel_checked *window, int size)
{
    int32_t *ranks = calloc(2 * (size_t)(unsigned)size + 1, sizeof *ranks);
    if (ranks == NULL &&
        !atomic_exchange_explicit(&window->spare_taken, true, memory_order_acquire))
        ranks = window->spare;
    return ranks;
}

void oriel_group_free(struct oriel_checked *window, int32_t *ranks)
{
    if (ranks == window->spare)
        atomic_store_explicit(&window->spare_taken, false, memory_order_release);
    else
        free(ranks);
}

int32_t *oriel_group_ranks(struct oriel_checked *window, MPI_Group group, int32_t *count)
{
    const struct oriel_host_calls *host = oriel_host();
    int size = 0;
    *count = 0;
    if (group == MPI_GROUP_NULL || host->Group_size(group, &size) != MPI_SUCCESS ||
        size > window->n)
        return NULL;
    int32_t *ranks = ranks_room_find(window, size);
    for (int i = 0; i < size && ranks != NULL; i++)
        ranks[size + i] = i;
    bool right = ranks != NULL &&
                 (size == 0 || host->Group_translate_ranks(group, size, ranks + size, window->group,
                                                           ranks) == MPI_SUCCESS);
    for (int i = 0; i < size && right; i++)
        right = ranks[i] != MPI_UNDEFINED;
    if (!right) {
        oriel_group_free(window, ranks);
        return NULL;
    }
    *count = size;
    return ranks;
}
