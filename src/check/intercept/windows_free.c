/* MPI_Win_free, and windows that MPI_Finalize finds. All members of a window with known order meet
 * before the call is passed on. Members with open epochs end them then, so that the call succeeds
 * on all members or is made by none: a rank that failed alone would leave the others waiting for
 * ever. A member that has not made a call that others wait for makes it while it waits for them. */
#include "check/order/word_clocks.h"
#include "check/remote/history_proxy.h"
#include "check/remote/remote_waits.h"
#include "check/window/notified.h"
#include "check/window/window_steps.h"

#include "base/wait.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t patience_ns = 2000000000;

/* Makes calls that others wait for and that this process will not make any more. */
static void others_help(struct oriel_checked *window, const struct oriel_site *site)
{
    int32_t rank = -1;
    switch (oriel_paired_wanted(window, site, &rank)) {
    case ORIEL_WANTED_FENCE: oriel_window_fence_for(window, site); break;
    case ORIEL_WANTED_POST:
        if (!window->epochs.post.open)
            oriel_window_post_for(window, rank, site);
        break;
    case ORIEL_WANTED_START: oriel_window_start_for(window, rank, site); break;
    case ORIEL_WANTED_NOTHING: break;
    }
}

/* A killed process keeps its process id until its parent has reaped it, and may be dead before
 * that. */
static bool process_is_gone(const struct oriel_checked *window, int32_t rank, int32_t pid)
{
    return (kill(pid, 0) != 0 && errno == ESRCH) ||
           oriel_wait_rank_has_died((int)window->members[rank].world_rank);
}

/* Whether a member that has not arrived has died. */
static bool member_has_died(const struct oriel_checked *window, enum oriel_ending_count which)
{
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_share *share = &window->common->shares[i];
        bool has_come = atomic_load_explicit(&share->met, memory_order_acquire) > (uint32_t)which;
        if (!has_come && share->pid != 0 && process_is_gone(window, i, share->pid))
            return true;
    }
    return false;
}

static bool is_window_member(const struct oriel_checked *window, int world_rank)
{
    for (int32_t i = 0; i < window->n; i++)
        if (window->members[i].world_rank == (uint32_t)world_rank)
            return true;
    return false;
}

/* The same for a window over several nodes, whose servers know which ranks have ended. A server
 * that does not answer has ended itself. */
static bool member_has_ended(const struct oriel_checked *window)
{
    const struct oriel_wait_snapshot_remote *remote = oriel_check_remote_waits();
    bool ended = false;
    for (int node = 0; node < oriel_check_remote_node_count() && !ended; node++) {
        size_t count = 0;
        struct oriel_wait_report *reports = remote->reports(node, &count);
        ended = reports == NULL;
        for (size_t i = 0; i < count && !ended; i++)
            ended = reports[i].state == ORIEL_DEADLOCK_SET_FINISHED &&
                    is_window_member(window, reports[i].rank);
        free(reports);
    }
    return ended;
}

static struct oriel_key ending_count_key(const struct oriel_checked *window,
                                         enum oriel_ending_count which)
{
    return oriel_window_key(window, ORIEL_ORDER_COUNT, (uint64_t)which, 0);
}

uint32_t oriel_window_count(const struct oriel_checked *window, enum oriel_ending_count which,
                            uint32_t more)
{
    if (window->common != NULL)
        return atomic_fetch_add(&window->common->counts[which], more) + more;
    struct oriel_key key = ending_count_key(window, which);
    return oriel_order_count(&key, more);
}

/* site NULL: no calls are made for others. False: a member is dead, does not answer, or is no
 * longer checked; the host's call deals with it. */
static bool members_meet(struct oriel_checked *window, enum oriel_ending_count which,
                         const struct oriel_site *site)
{
    enum { TRIES_HELP = 32, TRIES_LOCAL = 4096, TRIES_REMOTE = 2048 };
    static const struct timespec between = {.tv_nsec = 200000};
    uint32_t met = oriel_window_count(window, which, 1);
    /* after the count: a member that dies in between is not waited for */
    if (window->common != NULL)
        atomic_store_explicit(&window->common->shares[window->rank].met, (uint32_t)which + 1,
                              memory_order_release);
    for (unsigned tries = 1; met < (uint32_t)window->n; tries++) {
        oriel_wait_progress();
        if (window->common == NULL)
            nanosleep(&between, NULL);
        else
            sched_yield();
        if (site != NULL && tries % TRIES_HELP == 0)
            others_help(window, site);
        if (window->common != NULL ? tries % TRIES_LOCAL == 0 && member_has_died(window, which)
                                   : !oriel_check_remote_counts_all() ||
                                         (tries % TRIES_REMOTE == 0 && member_has_ended(window)))
            return false;
        met = oriel_window_count(window, which, 0);
        if (met < (uint32_t)window->n && oriel_window_has_left(window))
            return false;
    }
    return true;
}

/* A post whose origins have completed ends; a post without starts does not. */
static bool end_post(struct oriel_checked *window)
{
    uint64_t begin_ns = oriel_now_ns();
    int flag = 0;
    while (!flag && oriel_now_ns() - begin_ns < patience_ns) {
        if (oriel_host()->Win_test(window->win, &flag) != MPI_SUCCESS)
            return false;
        sched_yield();
    }
    return flag != 0;
}

/* All members have arrived, with their locks and starts ended. False: the window cannot be
 * freed. */
static bool epochs_settle(struct oriel_checked *window)
{
    if (oriel_window_count(window, ORIEL_ENDING_NEEDS_FENCE, 0) == 0)
        return true;
    if (window->epochs.post.open && !end_post(window))
        oriel_window_count(window, ORIEL_ENDING_STUCK, 1);
    members_meet(window, ORIEL_ENDING_SETTLED, NULL);
    bool settled = oriel_window_count(window, ORIEL_ENDING_STUCK, 0) == 0;
    if (settled)
        oriel_host()->Win_fence(MPI_MODE_NOSUCCEED, window->win);
    return settled;
}

/* The last member frees the shared data. */
static void common_leave(struct oriel_checked *window)
{
    struct oriel_window_shared *common = window->common;
    if (window->notes != NULL)
        oriel_member_states_leave(window->id);
    for (int32_t i = 0; common != NULL && i < window->n; i++)
        oriel_history_leave(common->shares[i].history);
    if (common == NULL || oriel_window_count(window, ORIEL_ENDING_LEFT, 1) != (uint32_t)window->n)
        return;
    const bool is_lent = oriel_window_count(window, ORIEL_ENDING_LENT, 0) > 0;
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_share *share = &common->shares[i];
        if (is_lent)
            oriel_word_clocks_withdraw(window->id, i);
        if (share->history != 0)
            oriel_part_close(share->history);
        oriel_word_clocks_free(share->words);
    }
    if (common->locks != 0)
        oriel_history_free(common->locks);
    oriel_common_drop(window->id);
}

/* A window over several nodes: all members have met, so this member's part is no longer used. */
static void nodes_leave(struct oriel_checked *window)
{
    if (!window->ordered || window->common != NULL)
        return;
    if (window->members[window->rank].part != 0)
        oriel_part_close(window->members[window->rank].part);
    if (window->rank == 0 && window->members[0].locks != 0)
        oriel_part_close(window->members[0].locks);
    if (oriel_window_count(window, ORIEL_ENDING_LEFT, 1) != (uint32_t)window->n)
        return;
    for (int which = 0; which < ORIEL_ENDING_COUNTS; which++) {
        struct oriel_key key = ending_count_key(window, which);
        oriel_order_forget(&key);
    }
}

/* Reports and ends epochs that are open. */
static enum oriel_verdict open_epochs_end(struct oriel_checked *window,
                                          const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_end(&window->epochs, false, &finding);
    oriel_window_leave(window);
    if (verdict == ORIEL_VERDICT_WRONG) {
        oriel_window_report(window, &finding, site);
        oriel_window_end_epochs(window);
    }
    return verdict;
}

/* False: the call is not passed on. */
static bool free_arrive(struct oriel_checked *window, const struct oriel_site *site)
{
    enum oriel_verdict verdict = open_epochs_end(window, site);
    struct oriel_key key = oriel_window_key(window, ORIEL_ORDER_FENCE, UINT64_MAX, 0);
    oriel_paired_window_end(window, site);
    if (window->ordered) {
        oriel_window_complete(window, -1);
        oriel_order_give(&key, window->n);
    }
    if (window->common == NULL && !window->ordered)
        return true;
    if (verdict == ORIEL_VERDICT_WRONG)
        oriel_window_count(window, ORIEL_ENDING_NEEDS_FENCE, 1);
    bool settled = true;
    bool waits = oriel_window_wait_for_call(window, true, site);
    bool met = members_meet(window, ORIEL_ENDING_ARRIVED, site);
    oriel_wait_done(waits);
    if (met) {
        oriel_paired_window_ended(window, site);
        settled = epochs_settle(window);
    }
    if (window->ordered) {
        oriel_order_take(&key);
        oriel_window_completed(window, -1);
    }
    return settled;
}

/* A local call. After a withdrawal the histories may be gone: they are used in an epoch only, for
 * which the owner waits. */
static int free_opened(struct oriel_checked *window, MPI_Win *win, const struct oriel_site *site)
{
    open_epochs_end(window, site);
    oriel_window_unmap_all(window);
    oriel_checked_remove(window);
    int code = oriel_host()->Win_free(win);
    oriel_checked_free(window);
    return code;
}

static int free_window(struct oriel_checked *window, MPI_Win *win, const struct oriel_site *site)
{
    if (!free_arrive(window, site)) {
        oriel_checked_remove(window); /* the host's window stays: no member can use it any more */
        oriel_window_unmap_all(window);
        *win = MPI_WIN_NULL;
        return MPI_SUCCESS;
    }
    oriel_window_unmap_all(window);
    oriel_checked_remove(window);
    int code = oriel_host()->Win_free(win);
    if (window->lends)
        oriel_window_withdraw_handles(window);
    common_leave(window);
    nodes_leave(window);
    oriel_notified_close(window);
    oriel_checked_free(window);
    return code;
}

ORIEL_EXPORT int PMPI_Win_free(MPI_Win *win)
{
    if (!oriel_window_look())
        return oriel_host()->Win_free(win);
    struct oriel_checked *window = win == NULL ? NULL : oriel_checked_find(*win);
    int code;
    if (window == NULL) {
        code = oriel_host()->Win_free(win);
    } else {
        struct oriel_site site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Win_free);
        code = window->opened.owner_id != 0 ? free_opened(window, win, &site)
                                            : free_window(window, win, &site);
    }
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_free(MPI_Win *win) __attribute__((weak, alias("PMPI_Win_free")));

/* --- at the end --- */

static void unfreed_window_report(void *closure, void *context)
{
    struct oriel_checked *window = closure;
    const struct oriel_site *site = context;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    if (oriel_epochs_end(&window->epochs, true, &finding) == ORIEL_VERDICT_RIGHT) {
        finding.rule = ORIEL_RULE_NOT_FREED;
        finding.help = "call MPI_Win_free(&win) before @here";
    }
    finding.other = window->members[window->rank].site;
    oriel_window_report(window, &finding, site);
}

void oriel_windows_finalise(const struct oriel_site *site)
{
    oriel_checked_visit(unfreed_window_report, (void *)(uintptr_t)site);
}
