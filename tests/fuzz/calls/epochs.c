/* The rules of MPI-4.1, 13.5 on the sequence of epochs, as a model of this rank's calls.  Where the
 * standard leaves the result open, or forbids a call without requiring an error, the model accepts
 * both results and follows the actual one. */
#include "epochs.h"

static int locks_held(const struct epochs *epochs)
{
    int count = 0;
    for (int i = 0; i < epochs->n; i++)
        count += epochs->locked[i] != 0;
    return count;
}

struct verdict epochs_allow(const struct epochs *epochs, int rank)
{
    bool open = epochs->fence || epochs->lock_all || epochs->locked[rank] ||
                (epochs->started && epochs->start_to[rank]);
    return (struct verdict){open ? 0 : FAULT_SYNC, 0};
}

void epochs_note_operation(struct epochs *epochs, int rank)
{
    if (epochs->fence && !epochs->lock_all && !epochs->locked[rank] && !epochs->started)
        epochs->used = true;
}

/* A fence epoch with accesses does not end by opening another kind of epoch. */
static struct verdict leave_fence(const struct epochs *epochs)
{
    return (struct verdict){epochs->used ? FAULT_SYNC : 0, 0};
}

static void add(struct verdict *verdict, unsigned must, unsigned may)
{
    verdict->must |= must;
    verdict->may |= may;
}

struct verdict epochs_all_closed(const struct epochs *epochs)
{
    struct verdict verdict = leave_fence(epochs);
    add(&verdict,
        epochs->lock_all || locks_held(epochs) || epochs->started || epochs->exposed ? FAULT_SYNC
                                                                                     : 0,
        0);
    return verdict;
}

static void call_lock(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    static const int types[] = {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE};
    bool known, good_type = !one_in(random, 8), good_rank = !one_in(random, 8);
    int type = types[random_below(random, 2)];
    int rank = good_rank           ? below(random, epochs->n)
               : one_in(random, 2) ? MPI_PROC_NULL
                                   : fuzz_bad_rank(random, epochs->n);
    int assert = fuzz_assert(random, MPI_MODE_NOCHECK, &known);
    if (!good_type)
        do
            type = fuzz_bad_int(random);
        while (type == MPI_LOCK_SHARED || type == MPI_LOCK_EXCLUSIVE);
    struct verdict verdict = leave_fence(epochs);
    add(&verdict, (good_type ? 0 : FAULT_LOCKTYPE) | (known ? 0 : FAULT_ASSERT), 0);
    add(&verdict, epochs->lock_all || epochs->started ? FAULT_SYNC : 0,
        epochs->exposed ? FAULT_SYNC : 0);
    if (rank == MPI_PROC_NULL)
        verdict = (struct verdict){0, verdict.must & (FAULT_LOCKTYPE | FAULT_ASSERT)};
    else if (!good_rank)
        add(&verdict, FAULT_RANK, 0);
    else
        add(&verdict, epochs->locked[rank] ? FAULT_SYNC : 0, 0);
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_lock(type %d, rank %d, assert %d)", type, rank, assert);
    if (!fuzz_judge(verdict, FUZZ(Win_lock, type, rank, assert, win)) || rank == MPI_PROC_NULL ||
        !good_rank)
        return;
    epochs->locked[rank] = type == MPI_LOCK_SHARED ? 1 : 2;
    epochs->fence = false;
    epochs->used = false;
}

static void call_unlock(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    int rank = one_in(random, 10)   ? fuzz_bad_rank(random, epochs->n)
               : one_in(random, 10) ? MPI_PROC_NULL
                                    : below(random, epochs->n);
    struct verdict verdict = {0, 0};
    if (rank != MPI_PROC_NULL)
        verdict.must = rank < 0 || rank >= epochs->n ? FAULT_RANK
                       : epochs->locked[rank]        ? 0
                                                     : FAULT_SYNC;
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_unlock(rank %d)", rank);
    if (fuzz_judge(verdict, FUZZ(Win_unlock, rank, win)) && rank >= 0 && rank < epochs->n)
        epochs->locked[rank] = 0;
}

static void call_lock_all(struct epochs *epochs, MPI_Win win, struct random *random,
                          bool errors_only)
{
    bool known;
    int assert = fuzz_assert(random, MPI_MODE_NOCHECK, &known);
    struct verdict verdict = leave_fence(epochs);
    add(&verdict, known ? 0 : FAULT_ASSERT, 0);
    add(&verdict, epochs->lock_all || epochs->started || locks_held(epochs) ? FAULT_SYNC : 0,
        epochs->exposed ? FAULT_SYNC : 0);
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_lock_all(assert %d)", assert);
    if (!fuzz_judge(verdict, FUZZ(Win_lock_all, assert, win)))
        return;
    epochs->lock_all = true;
    epochs->fence = false;
    epochs->used = false;
}

static void call_unlock_all(struct epochs *epochs, MPI_Win win, bool errors_only)
{
    struct verdict verdict = {epochs->lock_all ? 0 : FAULT_SYNC, 0};
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_unlock_all");
    if (fuzz_judge(verdict, FUZZ(Win_unlock_all, win)))
        epochs->lock_all = false;
}

static void call_flush(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    bool passive = epochs->lock_all || locks_held(epochs) > 0;
    int which = below(random, 5);
    int rank = one_in(random, 6)    ? fuzz_bad_rank(random, epochs->n)
               : one_in(random, 10) ? MPI_PROC_NULL
                                    : below(random, epochs->n);
    struct verdict verdict = {passive ? 0 : FAULT_SYNC, 0};
    if (which < 2 && rank == MPI_PROC_NULL)
        verdict = (struct verdict){0, passive ? 0 : FAULT_SYNC};
    else if (which < 2)
        verdict.must = rank < 0 || rank >= epochs->n              ? FAULT_RANK | verdict.must
                       : epochs->lock_all || epochs->locked[rank] ? 0
                                                                  : FAULT_SYNC;
    else if (which == 4)
        verdict = (struct verdict){0, 0}; /* sync is valid anywhere */
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("flush of kind %d to rank %d", which, rank);
    switch (which) {
    case 0: fuzz_judge(verdict, FUZZ(Win_flush, rank, win)); return;
    case 1: fuzz_judge(verdict, FUZZ(Win_flush_local, rank, win)); return;
    case 2: fuzz_judge(verdict, FUZZ(Win_flush_all, win)); return;
    case 3: fuzz_judge(verdict, FUZZ(Win_flush_local_all, win)); return;
    default: fuzz_judge(verdict, FUZZ(Win_sync, win)); return;
    }
}

/* Makes a group: empty, of this rank, invalid, or with a process outside the window. Returns the
 * fault. */
static unsigned make_group(const struct epochs *epochs, struct random *random, MPI_Group *group,
                           bool *self)
{
    MPI_Group world, all;
    unsigned fault = 0;
    *self = false;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(epochs->comm, &all);
    int choice = below(random, 6);
    int stranger = world_rank == 0 ? 1 : 0;
    if (choice == 0) {
        *group = MPI_GROUP_NULL;
        fault = FAULT_GROUP;
    } else if (choice == 1 && epochs->n < world_size && epochs->n == 1) {
        MPI_Group_incl(world, 1, &stranger, group);
        fault = FAULT_GROUP;
    } else if (choice < 4) {
        *group = MPI_GROUP_EMPTY;
    } else {
        MPI_Group_incl(all, 1, &epochs->me, group);
        *self = true;
    }
    MPI_Group_free(&world);
    MPI_Group_free(&all);
    return fault;
}

static void free_group(MPI_Group group)
{
    if (group != MPI_GROUP_NULL && group != MPI_GROUP_EMPTY)
        MPI_Group_free(&group);
}

static void call_post(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    bool known, self;
    MPI_Group group;
    int assert = fuzz_assert(random, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, &known);
    struct verdict verdict = {make_group(epochs, random, &group, &self), 0};
    add(&verdict, (known ? 0 : FAULT_ASSERT) | (epochs->exposed ? FAULT_SYNC : 0), 0);
    add(&verdict, 0, epochs->used || locks_held(epochs) || epochs->lock_all ? FAULT_SYNC : 0);
    /* after an operation, neither a start nor a fence could follow */
    bool stuck = self && epochs->fence;
    if (verdict.must != 0 || (!errors_only && !stuck)) {
        fuzz_describe("Win_post(%s, assert %d)",
                      group == MPI_GROUP_NULL ? "null"
                      : self                  ? "self"
                                              : "others",
                      assert);
        if (fuzz_judge(verdict, FUZZ(Win_post, group, assert, win))) {
            epochs->exposed = true;
            epochs->exposed_to_self = self;
            epochs->self_completed = false;
            epochs->self_posts += self;
        }
    }
    free_group(group);
}

static void call_start(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    bool known, self;
    MPI_Group group;
    int assert = fuzz_assert(random, MPI_MODE_NOCHECK, &known);
    struct verdict verdict = leave_fence(epochs);
    add(&verdict, make_group(epochs, random, &group, &self) | (known ? 0 : FAULT_ASSERT), 0);
    add(&verdict, epochs->started || epochs->lock_all || locks_held(epochs) ? FAULT_SYNC : 0, 0);
    bool waits = self && epochs->self_posts == 0;
    if (verdict.must != 0 || (!errors_only && !waits)) {
        fuzz_describe("Win_start(%s, assert %d)",
                      group == MPI_GROUP_NULL ? "null"
                      : self                  ? "self"
                                              : "others",
                      assert);
        if (fuzz_judge(verdict, FUZZ(Win_start, group, assert, win))) {
            for (int i = 0; i < epochs->n; i++)
                epochs->start_to[i] = self && i == epochs->me;
            epochs->started = true;
            epochs->self_posts -= self;
            epochs->fence = false;
            epochs->used = false;
        }
    }
    free_group(group);
}

static void call_complete(struct epochs *epochs, MPI_Win win, bool errors_only)
{
    struct verdict verdict = {epochs->started ? 0 : FAULT_SYNC, 0};
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_complete");
    if (!fuzz_judge(verdict, FUZZ(Win_complete, win)))
        return;
    epochs->started = false;
    epochs->self_completed = epochs->self_completed || epochs->start_to[epochs->me];
}

static void call_wait(struct epochs *epochs, MPI_Win win, bool test, bool errors_only)
{
    struct verdict verdict = {epochs->exposed ? 0 : FAULT_SYNC, 0};
    bool ready = epochs->exposed && (!epochs->exposed_to_self || epochs->self_completed);
    int flag = -5;
    if ((errors_only && verdict.must == 0) || (!test && epochs->exposed && !ready))
        return;
    fuzz_describe(test ? "Win_test" : "Win_wait");
    if (!fuzz_judge(verdict, test ? FUZZ(Win_test, win, &flag) : FUZZ(Win_wait, win)))
        return;
    if (test)
        CHECK(flag == (ready ? 1 : 0), "Win_test sets %d where the epoch is %s", flag,
              ready ? "over" : "open");
    if (ready)
        epochs->exposed = false;
}

static void call_fence(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    bool known;
    int assert = fuzz_assert(
        random, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
        &known);
    bool inside = epochs->lock_all || epochs->started || locks_held(epochs) || epochs->exposed;
    struct verdict verdict = {(known ? 0 : FAULT_ASSERT) | (inside ? FAULT_SYNC : 0), 0};
    if (verdict.must == 0 && (errors_only || epochs->n > 1))
        return; /* the call is collective */
    fuzz_describe("Win_fence(assert %d)", assert);
    if (!fuzz_judge(verdict, FUZZ(Win_fence, assert, win)))
        return;
    epochs->fence = (assert &MPI_MODE_NOSUCCEED) == 0;
    epochs->used = false;
}

static void call_free(const struct epochs *epochs, MPI_Win win)
{
    struct verdict verdict = epochs_all_closed(epochs);
    MPI_Win copy = win;
    if (verdict.must == 0)
        return;
    fuzz_describe("Win_free");
    fuzz_judge(verdict, FUZZ(Win_free, &copy));
    CHECK(copy == win, "Win_free failed and changed the handle");
}

void epochs_call(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    switch (random_below(random, 20)) {
    case 0:
    case 1:
    case 2: call_lock(epochs, win, random, errors_only); return;
    case 3:
    case 4: call_unlock(epochs, win, random, errors_only); return;
    case 5: call_lock_all(epochs, win, random, errors_only); return;
    case 6: call_unlock_all(epochs, win, errors_only); return;
    case 7:
    case 8: call_flush(epochs, win, random, errors_only); return;
    case 9: call_post(epochs, win, random, errors_only); return;
    case 10: call_start(epochs, win, random, errors_only); return;
    case 11: call_complete(epochs, win, errors_only); return;
    case 12: call_wait(epochs, win, false, errors_only); return;
    case 13: call_wait(epochs, win, true, errors_only); return;
    case 14: call_fence(epochs, win, random, errors_only); return;
    case 15: call_free(epochs, win); return;
    default: flushes_call(epochs, win, random, errors_only); return;
    }
}

void epochs_open(struct epochs *epochs, MPI_Win win, struct random *random)
{
    struct verdict closed = epochs_all_closed(epochs);
    if (closed.must != 0 || closed.may != 0 || epochs->fence || one_in(random, 4))
        return;
    if (one_in(random, 2)) {
        CHECK_OK(FUZZ(Win_lock_all, 0, win));
        epochs->lock_all = true;
    } else {
        int rank = below(random, epochs->n);
        CHECK_OK(FUZZ(Win_lock, MPI_LOCK_SHARED, rank, 0, win));
        epochs->locked[rank] = 1;
    }
}

void epochs_close(struct epochs *epochs, MPI_Win win)
{
    MPI_Group all, self;
    if (epochs->lock_all)
        call_unlock_all(epochs, win, false);
    for (int i = 0; i < epochs->n; i++)
        if (epochs->locked[i]) {
            CHECK_OK(FUZZ(Win_unlock, i, win));
            epochs->locked[i] = 0;
        }
    if (epochs->started)
        call_complete(epochs, win, false);
    MPI_Comm_group(epochs->comm, &all);
    MPI_Group_incl(all, 1, &epochs->me, &self);
    if (epochs->n == 1 && epochs->fence && epochs->exposed && !epochs->exposed_to_self)
        call_wait(epochs, win, false, false);
    if (epochs->n == 1 && epochs->fence)
        CHECK_OK(FUZZ(Win_fence, MPI_MODE_NOSUCCEED, win));
    if (epochs->n == 1)
        epochs->used = false;
    for (; epochs->self_posts > 0 && !epochs->used; epochs->self_posts--) {
        CHECK_OK(FUZZ(Win_start, self, 0, win));
        CHECK_OK(FUZZ(Win_complete, win));
        epochs->self_completed = true;
        epochs->fence = false;
    }
    if (epochs->n == 1)
        epochs->fence = false;
    MPI_Group_free(&all);
    MPI_Group_free(&self);
    if (epochs->exposed && (!epochs->exposed_to_self || epochs->self_completed))
        call_wait(epochs, win, false, false);
}
