/* Turns: the ranks open an epoch together, or none. One rank then makes random valid and invalid
 * calls alone, until it closes the epochs that it opened.  The others wait outside the window's
 * calls, and every changed byte is the caller's. */
#include "operate.h"

#include <string.h>

enum { CALLS_PER_TURN = 120, TURNS_PER_WINDOW = 6 };

enum prelude { PRELUDE_NONE, PRELUDE_FENCE, PRELUDE_POST, PRELUDES };

static struct sides pool; /* large, and used by one case at a time */

/* All ranks post to the caller, which starts to some of them: the same subset on all ranks. */
static void open_post(struct observed_window *observed, int caller, unsigned long chosen)
{
    MPI_Group all, group;
    int targets[FUZZ_RANKS], count = 0;
    for (int i = 0; i < observed->n; i++)
        if (chosen & (1ul << i))
            targets[count++] = i;
    MPI_Comm_group(observed->comm, &all);
    if (chosen & (1ul << observed->me)) {
        MPI_Group_incl(all, 1, &caller, &group);
        CHECK_OK(FUZZ(Win_post, group, 0, observed->win));
        MPI_Group_free(&group);
        observed->epochs.exposed = true;
        observed->epochs.exposed_to_self = observed->me == caller;
        observed->epochs.self_completed = false;
    }
    if (observed->me == caller) {
        MPI_Group_incl(all, count, targets, &group);
        CHECK_OK(FUZZ(Win_start, group, 0, observed->win));
        MPI_Group_free(&group);
        observed->epochs.started = true;
        for (int i = 0; i < observed->n; i++)
            observed->epochs.start_to[i] = (chosen & (1ul << i)) != 0;
    }
    MPI_Group_free(&all);
}

static void fence(struct observed_window *observed, int assert)
{
    CHECK_OK(FUZZ(Win_fence, assert, observed->win));
    observed->epochs.fence = (assert &MPI_MODE_NOSUCCEED) == 0;
    observed->epochs.used = false;
}

static void turn(struct observed_window *observed, struct random *shared, struct random *own,
                 bool operates)
{
    int caller = below(shared, observed->n);
    enum prelude prelude = (enum prelude)random_below(shared, PRELUDES);
    unsigned long chosen = (unsigned long)random_next(shared);
    if (prelude == PRELUDE_FENCE)
        fence(observed, MPI_MODE_NOPRECEDE);
    if (prelude == PRELUDE_POST)
        open_post(observed, caller, chosen);
    if (observed->attached != NULL) {
        for (int i = below(own, 12); i > 0; i--)
            observed_attach_once(observed, own);
        observed_share_attached(observed);
    }
    barrier(observed->comm);
    if (observed->me == caller) {
        observed_expect_current(observed);
        for (int i = 0; i < CALLS_PER_TURN && !harness_failed(); i++) {
            if (observed->attached != NULL && one_in(own, 8))
                observed_attach_once(observed, own);
            else if (one_in(own, 20))
                wait_call(observed, own, false);
            else if (operates && one_in(own, 30))
                swap_call(observed, own);
            else if (operates && !one_in(own, 6))
                operate_once(observed, &pool, own);
            else if (operates && one_in(own, 4))
                notify_call(observed, own, false);
            else if (operates && one_in(own, 2))
                epochs_open(&observed->epochs, observed->win, own);
            else
                epochs_call(&observed->epochs, observed->win, own, false);
            observed_check(observed);
        }
        epochs_close(&observed->epochs, observed->win);
        observed_check(observed);
    } else {
        for (int i = 0; i < CALLS_PER_TURN / 4; i++) {
            if (one_in(own, 20))
                wait_call(observed, own, true);
            else if (operates && one_in(own, 4))
                notify_call(observed, own, true);
            else
                epochs_call(&observed->epochs, observed->win, own, true);
        }
    }
    barrier(observed->comm);
    if (observed->epochs.exposed) {
        CHECK_OK(FUZZ(Win_wait, observed->win));
        observed->epochs.exposed = false;
    }
    if (prelude == PRELUDE_FENCE)
        fence(observed, MPI_MODE_NOSUCCEED);
    notify_exchange(observed);
}

/* All ranks agree on whether one has failed: a turn may end early, but not a collective call. */
static bool all_well(MPI_Comm comm)
{
    int failed = harness_failed(), any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm);
    return any == 0;
}

static void windows(enum window_kind kind, MPI_Comm comm, uint64_t stream, bool operates,
                    bool dynamic)
{
    struct random shared = random_start(stream + (uint64_t)kind),
                  own = fuzz_own(stream + (uint64_t)kind);
    int turns = fuzz_calls() / CALLS_PER_TURN;
    if (comm == MPI_COMM_SELF)
        shared = own;
    if (operates) {
        sides_open(&pool, &own);
        sides_fill(&pool, &own);
        operate_start();
    }
    for (int done = 0; done < turns && all_well(comm);) {
        struct observed_window observed;
        observed_open(&observed, kind, comm, &shared);
        if (dynamic)
            observed_make_dynamic(&observed);
        for (int i = 0; i < TURNS_PER_WINDOW && done < turns; i++, done++)
            turn(&observed, &shared, &own, operates);
        if (dynamic)
            observed_end_dynamic(&observed);
        observed_close(&observed);
    }
    if (operates) {
        operate_stop();
        sides_close(&pool);
    }
}

void operations_with_random_arguments(enum window_kind kind)
{
    windows(kind, MPI_COMM_WORLD, 10, true, false);
}

void operations_in_windows_of_one_rank(enum window_kind kind)
{
    windows(kind, MPI_COMM_SELF, 30, true, false);
}

void synchronisation_with_random_misuse(enum window_kind kind)
{
    windows(kind, MPI_COMM_WORLD, 50, false, false);
    windows(kind, MPI_COMM_SELF, 70, false, false);
}

void dynamic_windows_with_random_regions(enum window_kind kind)
{
    windows(kind, MPI_COMM_WORLD, 90, true, true);
}
