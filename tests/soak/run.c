/* Begins and ends a plan's epochs, makes the owners' stores before them, and compares memory
 * afterwards. Owners access their memory only where MPI permits it: between fences, outside
 * exposures, or under a lock of their own. */
#include "step.h"

#include <string.h>

static int own_rank(const struct plan *plan)
{
    return plan->window->group->me;
}

void plan_prepare(struct plan *plan)
{
    bool passive = epoch_is_passive(plan->epoch);
    if (passive)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, own_rank(plan), 0, plan->window->win);
    for (int i = 0; i < plan->store_count; i++) {
        const struct store *store = &plan->stores[i];
        memcpy(store->region->at + store->offset, store->bytes, store->len_bytes);
    }
    if (passive) {
        MPI_Win_unlock(own_rank(plan), plan->window->win);
        barrier(plan->window->comm);
    }
}

static void fence(struct plan *plan, int phase)
{
    int assert = plan->assert[phase][own_rank(plan)];
    if (assert & MPI_MODE_NOPRECEDE)
        count_one(COUNT_FENCE_NOPRECEDE);
    if (assert & MPI_MODE_NOSUCCEED)
        count_one(COUNT_FENCE_NOSUCCEED);
    if (assert & MPI_MODE_NOPUT)
        count_one(COUNT_FENCE_NOPUT);
    if (assert & MPI_MODE_NOSTORE)
        count_one(COUNT_FENCE_NOSTORE);
    count_one(COUNT_FENCE);
    MPI_Win_fence(assert, plan->window->win);
}

static void lock_all(struct plan *plan)
{
    bool checks = one_in(&plan->random, 2);
    count_one(COUNT_LOCK_ALL);
    if (!checks)
        count_one(COUNT_LOCK_ALL_NOCHECK);
    MPI_Win_lock_all(checks ? 0 : MPI_MODE_NOCHECK, plan->window->win);
}

void plan_open(struct plan *plan, int phase)
{
    if (plan->epoch == EPOCH_FENCE && phase == 0)
        fence(plan, 0);
    else if (plan->epoch == EPOCH_PSCW)
        pscw_open(plan, phase);
    else if (plan->epoch == EPOCH_LOCK_ALL && phase == 0)
        lock_all(plan);
}

/* The next phase reads what one phase wrote: in the same epoch, or in a new one. */
static void lock_all_close(struct plan *plan, bool last)
{
    MPI_Win win = plan->window->win;
    if (last || one_in(&plan->random, 3)) {
        MPI_Win_unlock_all(win);
        barrier(plan->window->comm);
        if (!last)
            lock_all(plan);
        return;
    }
    MPI_Win_flush_all(win);
    MPI_Win_sync(win);
    barrier(plan->window->comm);
    MPI_Win_sync(win);
    count_one(COUNT_LOCK_ALL_PHASE);
}

void plan_close(struct plan *plan, int phase)
{
    bool last = phase == plan->phases - 1;
    notifications_take(plan, phase);
    if (plan->epoch == EPOCH_FENCE)
        fence(plan, phase + 1);
    else if (plan->epoch == EPOCH_PSCW)
        pscw_close(plan, phase);
    else if (plan->epoch == EPOCH_LOCK_ALL)
        lock_all_close(plan, last);
    else
        barrier(plan->window->comm);
}

void plan_compare(struct plan *plan)
{
    const struct soak_window *window = plan->window;
    bool passive = epoch_is_passive(plan->epoch), peers = window->flavour == FLAVOUR_SHARED;
    if (peers)
        barrier(window->comm);
    if (passive)
        MPI_Win_lock(MPI_LOCK_SHARED, own_rank(plan), 0, window->win);
    contests_settle(plan);
    for (int i = 0; i < window->group->n; i++)
        for (int k = 0; k < window->segments; k++)
            if (i == own_rank(plan) || peers)
                region_check(plan, i, k);
    if (passive)
        MPI_Win_unlock(own_rank(plan), window->win);
    if (peers)
        barrier(window->comm);
}
