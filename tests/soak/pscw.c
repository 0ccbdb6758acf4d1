/* Post, start, complete and wait: the order in which each rank calls them, and the calls.
 * Invariant: no cycle of waiting ranks, even if MPI_Win_start waits for all its posts, and
 * MPI_Win_complete too.
 *
 * Argument.  P, S, C and W are post, start, complete and wait of a rank in a phase.  P waits for no
 * rank, S and C for P of the targets, W for C of the origins, each in the same phase. Each also
 * waits for the earlier calls of its rank.  The usual order is P S, then the operations, then C W.
 * Other orders:
 * O1. S before P, if each target is another rank that has P first, or that precedes this rank in an
 *     order of the ranks.  Every P is reached: the first rank with S first waits only for ranks
 *     with P first, and so on.
 * O2. W (or repeated tests) before C, if each origin is another rank that has C first, or that
 *     precedes this rank in an order of the ranks.  The argument is that of O1, for C.
 * O3. P of the next phase between W and C.  It waits for no rank. C is reached as before, and ranks
 *     that need this P have it earlier.  The next phase's operations do not conflict with this
 *     phase's: W is over, and no origin buffer of the rank is in the memory.
 * O4. W only after S of the next phase, which precedes P there (O1).  No other rank waits for this
 *     rank's W. The call after it is that P, which O1 permits to be late.  W waits for C of this
 *     phase, which no S of the next one delays.
 *
 * No step of a phase waits for a step of a later phase. With two windows, no step waits for the
 * window that opens or closes later. With MPI_MODE_NOCHECK, all ranks have P first, and a barrier
 * follows. */
#include "step.h"

#include <sched.h>

enum { START_FIRST = 1, WAIT_FIRST = 2, POST_EARLY = 4, WAIT_LATE = 8 };

static int own_rank(const struct plan *plan)
{
    return plan->window->group->me;
}

/* Whether, in the phase, rank exposes its memory to other, or accesses other's memory. */
static bool is_partner(const struct plan *plan, int phase, int rank, int other, bool exposes)
{
    return exposes ? plan->access[phase][other][rank] : plan->access[phase][rank][other];
}

static bool has_partners(const struct plan *plan, int phase, bool exposes)
{
    bool has = false;
    for (int i = 0; i < plan->window->group->n; i++)
        has = has || is_partner(plan, phase, own_rank(plan), i, exposes);
    return has;
}

/* O1 and O2: picks the ranks that may wait first, by an order of the ranks. */
static void firsts_draw(struct plan *plan, int phase, int first, bool exposes)
{
    int n = plan->window->group->n, ranks[RANKS_MOST];
    bool earlier[RANKS_MOST] = {false};
    for (int i = 0; i < n; i++) {
        int other = below(&plan->random, i + 1);
        ranks[i] = ranks[other];
        ranks[other] = i;
        plan->order[phase][i] |= one_in(&plan->random, 4) ? 0 : first;
    }
    for (int i = 0; i < n; i++) {
        int rank = ranks[i];
        for (int k = 0; k < n; k++)
            if (is_partner(plan, phase, rank, k, exposes) &&
                (k == rank || ((plan->order[phase][k] & first) && !earlier[k])))
                plan->order[phase][rank] &= ~first;
        earlier[rank] = true;
    }
}

void orders_draw(struct plan *plan)
{
    for (int phase = 0; phase < plan->phases; phase++) {
        if (!(plan->start_assert[phase] & MPI_MODE_NOCHECK))
            firsts_draw(plan, phase, START_FIRST, false);
        firsts_draw(plan, phase, WAIT_FIRST, true);
    }
    for (int phase = 0; phase + 1 < plan->phases; phase++) {
        for (int i = 0; i < plan->window->group->n; i++) {
            bool waits_first = plan->order[phase][i] & WAIT_FIRST,
                 starts_first = plan->order[phase + 1][i] & START_FIRST;
            if (waits_first && !starts_first && !plan->inside[phase][i] &&
                !one_in(&plan->random, 4))
                plan->order[phase][i] |= POST_EARLY;
            else if (!waits_first && starts_first && !one_in(&plan->random, 4))
                plan->order[phase][i] |= WAIT_LATE;
        }
    }
}

/* The ranks to which this rank exposes its memory, or whose memory it accesses, in any order. */
static MPI_Group partners(struct plan *plan, int phase, bool exposes)
{
    const struct soak_window *window = plan->window;
    int ranks[RANKS_MOST], count = 0;
    MPI_Group all, some;
    for (int i = 0; i < window->group->n; i++)
        if (is_partner(plan, phase, own_rank(plan), i, exposes))
            ranks[count++] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = below(&plan->random, i + 1), rank = ranks[i];
        ranks[i] = ranks[other];
        ranks[other] = rank;
    }
    MPI_Win_get_group(window->win, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

static void group_free(MPI_Group *group)
{
    if (*group != MPI_GROUP_EMPTY)
        MPI_Group_free(group);
}

static void post(struct plan *plan, int phase)
{
    int assert = plan->assert[phase][own_rank(plan)];
    MPI_Group origins = partners(plan, phase, true);
    if (assert & MPI_MODE_NOCHECK)
        count_one(COUNT_PSCW_NOCHECK);
    if (assert & MPI_MODE_NOPUT)
        count_one(COUNT_PSCW_NOPUT);
    if (assert & MPI_MODE_NOSTORE)
        count_one(COUNT_PSCW_NOSTORE);
    MPI_Win_post(origins, assert, plan->window->win);
    group_free(&origins);
}

static void start(struct plan *plan, int phase)
{
    MPI_Group targets = partners(plan, phase, false);
    MPI_Win_start(targets, plan->start_assert[phase], plan->window->win);
    group_free(&targets);
    count_one(COUNT_PSCW);
}

static void wait_or_test(struct plan *plan)
{
    int done = 0;
    if (one_in(&plan->random, 2)) {
        MPI_Win_wait(plan->window->win);
        return;
    }
    count_one(COUNT_PSCW_TEST);
    for (int turn = 0; !done; turn++) {
        MPI_Win_test(plan->window->win, &done);
        if (!done && turn > 20)
            sleep_us(20);
        else if (!done)
            sched_yield();
    }
}

/* A rank that is its own origin has not completed yet. */
static bool tested_done(struct plan *plan, int phase)
{
    int done = 0, me = own_rank(plan);
    MPI_Win_test(plan->window->win, &done);
    if (done && plan->access[phase][me][me])
        fail("MPI_Win_test ended an exposure to the rank itself, which has not completed its "
             "access");
    if (!done)
        count_one(COUNT_PSCW_TEST_NO);
    return done;
}

void pscw_open(struct plan *plan, int phase)
{
    int order = plan->order[phase][own_rank(plan)],
        before = phase > 0 ? plan->order[phase - 1][own_rank(plan)] : 0;
    bool both = has_partners(plan, phase, true) && has_partners(plan, phase, false);
    if (!(order & START_FIRST) && !(before & POST_EARLY))
        post(plan, phase);
    if (plan->start_assert[phase] & MPI_MODE_NOCHECK)
        barrier(plan->window->comm);
    start(plan, phase);
    if (before & WAIT_LATE) {
        wait_or_test(plan);
        count_one(COUNT_PSCW_WAIT_LATE);
    }
    if (order & START_FIRST)
        post(plan, phase);
    if ((order & START_FIRST) && both)
        count_one(COUNT_PSCW_START_FIRST);
}

static void wait_and_complete(struct plan *plan, int phase)
{
    bool both = has_partners(plan, phase, true) && has_partners(plan, phase, false);
    wait_or_test(plan);
    if (plan->order[phase][own_rank(plan)] & POST_EARLY) {
        post(plan, phase + 1);
        if (has_partners(plan, phase, false) && has_partners(plan, phase + 1, true))
            count_one(COUNT_PSCW_POST_EARLY);
    }
    MPI_Win_complete(plan->window->win);
    if (both)
        count_one(COUNT_PSCW_WAIT_FIRST);
}

void pscw_close(struct plan *plan, int phase)
{
    int order = plan->order[phase][own_rank(plan)];
    if (order & WAIT_FIRST) {
        wait_and_complete(plan, phase);
        return;
    }
    bool done = !(order & WAIT_LATE) && one_in(&plan->random, 3) && tested_done(plan, phase);
    MPI_Win_complete(plan->window->win);
    if (!done && !(order & WAIT_LATE))
        wait_or_test(plan);
}
