/* Memory handles: each rank lends a part of its memory to the next one, which reads it and writes
 * other bytes there, between two steps. */
#include "soak.h"

#include "../../include/oriel/ext.h"

#include <stdlib.h>
#include <string.h>

enum { LENT_MOST = 3000, TAG = 4711 };

/* A part of a rank's memory, and what is written there. */
struct loan {
    struct region *region; /* NULL: the rank lends nothing */
    size_t offset, len_bytes;
    unsigned char before[LENT_MOST], after[LENT_MOST];
};

static void loan_draw(const struct soak_window *window, int rank, struct loan *loan,
                      struct random *random)
{
    struct region *region =
        (struct region *)&window->regions[rank][below(random, window->segments)];
    loan->region = NULL;
    if (region->model == NULL || region->size == 0)
        return;
    loan->region = region;
    loan->offset = random_below(random, region->size / (size_t)region->unit + 1);
    loan->offset *= (size_t)region->unit;
    const size_t room = region->size - loan->offset;
    loan->len_bytes = random_below(random, (room < LENT_MOST ? room : LENT_MOST) + 1);
    memcpy(loan->before, region->model + loan->offset, loan->len_bytes);
    bytes_draw(loan->after, loan->len_bytes, random);
    memcpy(region->model + loan->offset, loan->after, loan->len_bytes);
}

static void borrow(const struct loan *loan, const MPIX_Memory_handle *handle, bool exclusive)
{
    unsigned char seen[LENT_MOST];
    const int len_bytes = (int)loan->len_bytes;
    MPI_Win win;
    MPIX_Win_memory_open(handle, MPI_INFO_NULL, &win);
    if (exclusive)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    else
        MPI_Win_lock_all(0, win);
    MPI_Get(seen, len_bytes, MPI_BYTE, 0, 0, len_bytes, MPI_BYTE, win);
    MPI_Win_flush(0, win);
    if (memcmp(seen, loan->before, loan->len_bytes) != 0)
        fail("the %d bytes of a memory handle are not those of its owner", len_bytes);
    MPI_Put(loan->after, len_bytes, MPI_BYTE, 0, 0, len_bytes, MPI_BYTE, win);
    if (exclusive)
        MPI_Win_unlock(0, win);
    else
        MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    count_one(COUNT_HANDLE);
}

void window_lend_random(struct soak_window *window)
{
    struct random random = stream(11, (uint64_t)window->number << 32 | (uint64_t)soak.step);
    const struct group *group = window->group;
    const int next = (group->me + 1) % group->n, before = (group->me + group->n - 1) % group->n;
    MPIX_Memory_handle own, of_before;
    MPI_Request requests[2];
    if (!window->extended || !window->locks || !group->on_one_node)
        return;
    doing("lends memory of window %d", window->number);
    struct loan *loans = calloc((size_t)group->n, sizeof *loans);
    if (loans == NULL)
        fail("no memory");
    for (int i = 0; i < group->n; i++)
        loan_draw(window, i, &loans[i], &random);
    const struct loan *mine = &loans[group->me];
    if (mine->region != NULL)
        MPIX_Win_memory_handle_create(
            window->win, mine->region->first + (MPI_Aint)mine->offset / mine->region->unit,
            (MPI_Aint)mine->len_bytes, &own);
    else
        memset(&own, 0, sizeof own);
    MPI_Irecv(&of_before, sizeof of_before, MPI_BYTE, before, TAG, group->comm, &requests[0]);
    MPI_Isend(&own, sizeof own, MPI_BYTE, next, TAG, group->comm, &requests[1]);
    request_await(&requests[0]);
    request_await(&requests[1]);
    if (loans[before].region != NULL)
        borrow(&loans[before], &of_before, one_in(&random, 2));
    barrier(group->comm);
    if (mine->region != NULL)
        MPIX_Win_memory_handle_free(&own);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, group->me, 0, window->win);
    MPI_Win_unlock(group->me, window->win);
    free(loans);
}
