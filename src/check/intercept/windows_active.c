/* Fence, post, start, complete, wait and test (MPI-4.1, 13.5.1, 13.5.2): their epochs, and the
 * order that they make. Before a call is passed on, the accesses that it ends are complete in the
 * histories and its clocks are given: a process that the call releases finds both. After the call,
 * this process takes the clocks of those that it has waited for. */
#include "check/intercept/messages_point.h"
#include "check/window/window_steps.h"

#include "base/wait.h"

#include <sched.h>
#include <stdlib.h>

bool oriel_window_judge(struct oriel_checked *window, enum oriel_verdict verdict,
                        struct oriel_finding *finding, const struct oriel_site *site,
                        struct oriel_quiet *quiet)
{
    if (oriel_likely(verdict == ORIEL_VERDICT_RIGHT))
        return true;
    if (verdict == ORIEL_VERDICT_WRONG)
        oriel_window_report(window, finding, site);
    oriel_quiet_begin(quiet, window->win);
    return verdict != ORIEL_VERDICT_ECHO;
}

/* --- fence --- */

/* Ends the epochs that the program should have ended, so that this rank's fence succeeds and the
 * others do not wait for ever. */
static void end_other_epochs(struct oriel_checked *window)
{
    struct oriel_finding unwanted = ORIEL_FINDING_NONE;
    oriel_window_complete(window, -1);
    for (int32_t i = 0; i < window->n; i++)
        if (window->epochs.targets[i] & ORIEL_TARGET_LOCKED) {
            if (window->progress != NULL)
                oriel_collective_progress_hold(window->progress, window->rank, i,
                                               ORIEL_HOLDS_NOTHING);
            oriel_host()->Win_unlock(i, window->win);
            oriel_promises_lock_released(window, i);
            oriel_epochs_unlock(&window->epochs, i, &unwanted);
            window->epochs.targets[i] |= ORIEL_TARGET_REFUSED;
        }
    if (window->epochs.lock_all.open) {
        if (window->progress != NULL)
            oriel_collective_progress_hold(window->progress, window->rank, -1, ORIEL_HOLDS_NOTHING);
        oriel_host()->Win_unlock_all(window->win);
        oriel_promises_lock_released(window, -1);
        window->epochs.lock_all.open = false;
        window->epochs.lock_all.refused = true;
    }
    if (window->epochs.start.open) {
        oriel_host()->Win_complete(window->win);
        oriel_epochs_complete(&window->epochs, &unwanted);
        window->epochs.start.refused = true;
    }
    oriel_window_completed(window, -1);
}

void oriel_window_end_epochs(struct oriel_checked *window)
{
    end_other_epochs(window);
}

bool oriel_window_wait_for_call(const struct oriel_checked *window, bool last,
                                const struct oriel_site *site)
{
    if (window->progress == NULL)
        return false;
    uint64_t number = last ? oriel_collective_progress_arrive_last(window->progress, window->rank)
                           : oriel_collective_progress_arrive(window->progress, window->rank,
                                                              ORIEL_CALL_Win_fence);
    if (!oriel_window_wait_open(window, site, ORIEL_WAIT_FOR_ALL))
        return false;
    oriel_wait_for_call(window->progress, -1, number,
                        last ? ORIEL_CALL_Win_free : ORIEL_CALL_Win_fence, false);
    oriel_wait_begin();
    return true;
}

/* A fence that is wrong after the previous calls returns at once and has met no member. Any other
 * fence has met the members even if it fails, for example with the error of an earlier operation.
 */
static bool fence_met_none(int code)
{
    return oriel_unlikely(code != MPI_SUCCESS) && oriel_class_of(code) == MPI_ERR_RMA_SYNC;
}

/* MPI_MODE_NOPRECEDE lets hosts omit the barrier, on which the order relies. */
static int fence_pass(struct oriel_checked *window, int assert, const struct oriel_site *site)
{
    if (!window->ordered || window->opened.owner_id != 0)
        return oriel_host()->Win_fence(assert, window->win);
    struct oriel_key key = oriel_window_key(window, ORIEL_ORDER_FENCE, window->epochs.fences, 0);
    oriel_window_complete(window, -1);
    if (assert & MPI_MODE_NOSTORE)
        oriel_promises_no_store(window, site);
    oriel_promises_synchronised(window);
    oriel_order_give(&key, window->n);
    bool waits = oriel_window_wait_for_call(window, false, site);
    int code = oriel_host()->Win_fence(assert & ~MPI_MODE_NOPRECEDE, window->win);
    oriel_wait_done(waits);
    if (!fence_met_none(code))
        oriel_order_take(&key);
    else if (window->progress != NULL)
        oriel_collective_progress_return(window->progress, window->rank);
    oriel_window_completed(window, -1);
    return code;
}

/* The clock that it has given stays under the key of the fence that replaces it. */
static void fence_failed(struct oriel_checked *window, const struct oriel_epochs *before)
{
    oriel_promises_fence_failed(window);
    oriel_window_enter(window);
    oriel_epochs_fence_failed(&window->epochs, before);
    oriel_window_leave(window);
}

static int window_fence(struct oriel_checked *window, int assert, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    int taken = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    bool valid = oriel_argument_assert(window, assert, taken, site);
    oriel_window_enter(window);
    const struct oriel_epochs before = window->epochs;
    enum oriel_verdict verdict =
        oriel_epochs_fence(&window->epochs, (assert &MPI_MODE_NOPRECEDE) != 0,
                           (assert &MPI_MODE_NOSUCCEED) != 0, site, &finding);
    oriel_window_leave(window);
    if (!valid)
        oriel_quiet_begin(&quiet, window->win);
    else
        oriel_window_judge(window, verdict, &finding, site, &quiet);
    if (verdict == ORIEL_VERDICT_WRONG)
        end_other_epochs(window);
    oriel_promises_fence(window, assert, site);
    int code = fence_pass(window, valid ? assert : assert &taken, site);
    if (fence_met_none(code))
        fence_failed(window, &before);
    return oriel_quiet_end(&quiet, code);
}

ORIEL_EXPORT int PMPI_Win_fence(int assert, MPI_Win win)
{
    if (!oriel_window_look())
        return oriel_host()->Win_fence(assert, win);
    struct oriel_checked *window = oriel_checked_find(win);
    int code;
    if (window == NULL) {
        code = oriel_host()->Win_fence(assert, win);
    } else {
        struct oriel_site site = oriel_site_opening(ORIEL_CALLER, ORIEL_CALL_Win_fence);
        code = window_fence(window, assert, &site);
    }
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_fence(int assert, MPI_Win win)
    __attribute__((weak, alias("PMPI_Win_fence")));

/* --- post, start, complete, wait --- */

static uint64_t member_pair_word(int32_t from, int32_t to)
{
    return (uint64_t)(uint32_t)from << 32 | (uint32_t)to;
}

static struct oriel_key post_key(const struct oriel_checked *window, int32_t target)
{
    return oriel_window_key(window, ORIEL_ORDER_POST, member_pair_word(target, window->rank),
                            window->started[target]);
}

static void post_take_pending(const struct oriel_checked *window, int32_t target)
{
    struct oriel_key key = post_key(window, target);
    oriel_wait_for_key((int)window->members[target].world_rank, &key);
}

/* For the unknown posts, or (fresh) for those of all of these targets. */
static bool wait_for_posts(const struct oriel_checked *window, const int32_t *targets,
                           int32_t count, bool fresh, const struct oriel_site *site)
{
    if (!window->ordered || !oriel_window_wait_open(window, site, ORIEL_WAIT_FOR_ALL))
        return false;
    for (int32_t i = 0; i < count; i++)
        if (fresh || window->untaken[targets[i]])
            post_take_pending(window, targets[i]);
    oriel_wait_begin();
    return true;
}

/* For the origins of this process's post. */
static bool wait_for_completes(const struct oriel_checked *window, const struct oriel_site *site)
{
    if (!window->ordered || !oriel_window_wait_open(window, site, ORIEL_WAIT_FOR_ALL))
        return false;
    for (int32_t i = 0; i < window->epochs.posted_count; i++) {
        int32_t origin = window->epochs.posted[i];
        struct oriel_key key =
            oriel_window_key(window, ORIEL_ORDER_COMPLETE, member_pair_word(origin, window->rank),
                             window->posted[origin]);
        oriel_wait_for_key((int)window->members[origin].world_rank, &key);
    }
    oriel_wait_begin();
    return true;
}

static bool target_take_post(struct oriel_checked *window, int32_t target)
{
    struct oriel_key key = post_key(window, target);
    bool taken = oriel_order_take(&key);
    window->untaken[target] = !taken;
    return taken;
}

/* Hosts may return from MPI_Win_start before the post, and the operation then waits for it. So does
 * this function. Oriel does not; there, a post that has given no clock was reported as wrong. */
void oriel_window_take_post(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site)
{
    const uint64_t patience_ns = 2000000000;
    if (!target_take_post(window, target) && !window->prompt && !oriel_window_has_left(window)) {
        bool waits = wait_for_posts(window, &target, 1, true, site);
        uint64_t begin_ns = oriel_now_ns();
        while (!target_take_post(window, target) && oriel_now_ns() - begin_ns < patience_ns) {
            oriel_wait_progress();
            sched_yield();
        }
        oriel_wait_done(waits);
    }
    window->untaken[target] = 0;
}

void oriel_window_take_posts(struct oriel_checked *window)
{
    for (int32_t i = 0; i < window->epochs.started_count; i++)
        if (window->untaken[window->epochs.started[i]])
            target_take_post(window, window->epochs.started[i]);
}

/* A call that fails has begun no epoch: a program that handles errors may try again. Clocks given
 * to origins are taken back. */
static void start_failed(struct oriel_checked *window, const int32_t *ranks, int32_t count,
                         bool fenced)
{
    oriel_window_enter(window);
    oriel_epochs_start_failed(&window->epochs, fenced);
    oriel_window_leave(window);
    for (int32_t i = 0; i < count; i++) {
        oriel_paired_call_failed(window, ranks[i], true);
        window->started[ranks[i]]--;
    }
}

static struct oriel_key own_post_key(const struct oriel_checked *window, int32_t origin)
{
    return oriel_window_key(window, ORIEL_ORDER_POST, member_pair_word(window->rank, origin),
                            window->posted[origin]);
}

static void post_failed(struct oriel_checked *window, const int32_t *ranks, int32_t count)
{
    oriel_window_enter(window);
    oriel_epochs_waited(&window->epochs);
    oriel_window_leave(window);
    for (int32_t i = 0; i < count; i++) {
        struct oriel_key key = own_post_key(window, ranks[i]);
        if (window->ordered)
            oriel_order_forget(&key);
        oriel_paired_call_failed(window, ranks[i], false);
        window->posted[ranks[i]]--;
    }
}

static int window_start(struct oriel_checked *window, MPI_Group group, int assert,
                        const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    int32_t count;
    int32_t *ranks = oriel_group_ranks(window, group, &count);
    if (ranks == NULL || !oriel_argument_assert(window, assert, MPI_MODE_NOCHECK, site)) {
        oriel_group_free(window, ranks);
        return oriel_host()->Win_start(group, assert, window->win);
    }
    oriel_window_enter(window);
    bool fenced = window->epochs.fence.open;
    enum oriel_verdict verdict = oriel_epochs_start(&window->epochs, ranks, count, site, &finding);
    oriel_window_leave(window);
    bool right = oriel_window_judge(window, verdict, &finding, site, &quiet) &&
                 verdict == ORIEL_VERDICT_RIGHT;
    for (int32_t i = 0; i < count && right; i++) {
        window->started[ranks[i]]++;
        oriel_paired_start(window, ranks[i], assert, site);
    }
    bool waits = right && wait_for_posts(window, ranks, count, true, site);
    int code = oriel_host()->Win_start(group, assert, window->win);
    oriel_wait_done(waits);
    if (right && code != MPI_SUCCESS)
        start_failed(window, ranks, count, fenced);
    for (int32_t i = 0; i < count && right && code == MPI_SUCCESS && window->ordered; i++)
        target_take_post(window, ranks[i]);
    oriel_group_free(window, ranks);
    return oriel_quiet_end(&quiet, code);
}

static int window_post(struct oriel_checked *window, MPI_Group group, int assert,
                       const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    int32_t count;
    int32_t *ranks = oriel_group_ranks(window, group, &count);
    if (ranks == NULL ||
        !oriel_argument_assert(window, assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
                               site)) {
        oriel_group_free(window, ranks);
        return oriel_host()->Win_post(group, assert, window->win);
    }
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_post(&window->epochs, ranks, count, site, &finding);
    oriel_window_leave(window);
    bool right = oriel_window_judge(window, verdict, &finding, site, &quiet) &&
                 (verdict == ORIEL_VERDICT_RIGHT || finding.rule == ORIEL_RULE_MIXED_EPOCHS);
    if (right && (assert &MPI_MODE_NOSTORE))
        oriel_promises_no_store(window, site);
    for (int32_t i = 0; i < count && right; i++) {
        window->posted[ranks[i]]++;
        oriel_paired_post(window, ranks[i], assert, site);
        struct oriel_key key = own_post_key(window, ranks[i]);
        if (window->ordered)
            oriel_order_give(&key, 1);
    }
    int code = oriel_host()->Win_post(group, assert, window->win);
    if (right && code != MPI_SUCCESS)
        post_failed(window, ranks, count);
    oriel_group_free(window, ranks);
    return oriel_quiet_end(&quiet, code);
}

static int epoch_complete(struct oriel_checked *window, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_complete(&window->epochs, &finding);
    oriel_window_leave(window);
    if (!oriel_window_judge(window, verdict, &finding, site, &quiet))
        return oriel_quiet_end(&quiet, MPI_SUCCESS);
    bool ordered = window->ordered && verdict == ORIEL_VERDICT_RIGHT;
    if (ordered)
        oriel_window_complete(window, -1);
    for (int32_t i = 0; i < window->epochs.started_count && ordered; i++) {
        int32_t target = window->epochs.started[i];
        struct oriel_key key =
            oriel_window_key(window, ORIEL_ORDER_COMPLETE, member_pair_word(window->rank, target),
                             window->started[target]);
        oriel_order_give(&key, 1);
    }
    bool waits = ordered && wait_for_posts(window, window->epochs.started,
                                           window->epochs.started_count, false, site);
    int code = oriel_host()->Win_complete(window->win);
    oriel_wait_done(waits);
    if (ordered) {
        oriel_window_take_posts(window);
        oriel_window_completed(window, -1);
    }
    return oriel_quiet_end(&quiet, code);
}

static void origins_take_completes(struct oriel_checked *window)
{
    oriel_window_enter(window);
    oriel_epochs_waited(&window->epochs);
    oriel_window_leave(window);
    for (int32_t i = 0; i < window->epochs.posted_count && window->ordered; i++) {
        int32_t origin = window->epochs.posted[i];
        struct oriel_key key =
            oriel_window_key(window, ORIEL_ORDER_COMPLETE, member_pair_word(origin, window->rank),
                             window->posted[origin]);
        oriel_order_take(&key);
    }
    if (window->ordered) {
        struct oriel_key all = oriel_window_key(window, ORIEL_ORDER_SYNC, 0, 0);
        oriel_promises_synchronised(window);
        oriel_order_give(&all, 0); /* for no taker: later stores have another number */
    }
}

/* flag NULL: MPI_Win_wait. */
static int window_wait_or_test(struct oriel_checked *window, int *flag,
                               const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_wait(&window->epochs, &finding);
    oriel_window_leave(window);
    bool next = oriel_window_judge(window, verdict, &finding, site, &quiet);
    if (flag != NULL && verdict != ORIEL_VERDICT_RIGHT)
        *flag = 1; /* there is nothing to wait for */
    if (!next)
        return oriel_quiet_end(&quiet, MPI_SUCCESS);
    bool waits = flag == NULL && verdict == ORIEL_VERDICT_RIGHT && wait_for_completes(window, site);
    int code = flag == NULL ? oriel_host()->Win_wait(window->win)
                            : oriel_host()->Win_test(window->win, flag);
    oriel_wait_done(waits);
    if (verdict == ORIEL_VERDICT_RIGHT && code == MPI_SUCCESS && (flag == NULL || *flag))
        origins_take_completes(window);
    return oriel_quiet_end(&quiet, code);
}

SYNCHRONISE(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), false,
            window_start(window, group, assert, &site), oriel_site_opening)
SYNCHRONISE(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), false,
            window_post(window, group, assert, &site), oriel_site_opening)
SYNCHRONISE(Win_complete, (MPI_Win win), (win), false, epoch_complete(window, &site),
            oriel_site_make)
SYNCHRONISE(Win_wait, (MPI_Win win), (win), false, window_wait_or_test(window, NULL, &site),
            oriel_site_make)
SYNCHRONISE(Win_test, (MPI_Win win, int *flag), (win, flag), false,
            window_wait_or_test(window, flag, &site), oriel_site_make)

/* --- calls made for this process in MPI_Win_free --- */

/* A group of one member; MPI_GROUP_NULL when the host cannot make it. */
static MPI_Group group_of_member(const struct oriel_checked *window, int32_t rank)
{
    MPI_Group group = MPI_GROUP_NULL;
    int member = rank;
    return oriel_host()->Group_incl(window->group, 1, &member, &group) == MPI_SUCCESS
               ? group
               : MPI_GROUP_NULL;
}

void oriel_window_fence_for(struct oriel_checked *window, const struct oriel_site *site)
{
    struct oriel_quiet quiet;
    oriel_quiet_begin(&quiet, window->win);
    window->epochs.fences++;
    fence_pass(window, 0, site);
    oriel_quiet_end(&quiet, MPI_SUCCESS);
}

void oriel_window_post_for(struct oriel_checked *window, int32_t origin,
                           const struct oriel_site *site)
{
    MPI_Group group = group_of_member(window, origin);
    int flag = 0;
    if (group == MPI_GROUP_NULL || window_post(window, group, 0, site) != MPI_SUCCESS)
        return;
    while (!flag && window_wait_or_test(window, &flag, site) == MPI_SUCCESS)
        sched_yield();
    oriel_host()->Group_free(&group);
}

void oriel_window_start_for(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site)
{
    MPI_Group group = group_of_member(window, target);
    if (group == MPI_GROUP_NULL)
        return;
    window_start(window, group, 0, site);
    epoch_complete(window, site);
    oriel_host()->Group_free(&group);
}
