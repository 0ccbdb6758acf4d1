/* What programs promise by info keys and assertions, and whether they keep it (MPI-4.1, 13.2.1, 13.5.5).  What needs to be known
 * of other members stands in the board's part of the window, so that whoever comes second sees it.
 *
 * MPI_MODE_NOCHECK of locks.  Each lock held is an access to a history of the window in which a target is a byte: a shared lock
 * reads it, an exclusive one writes it, MPI_Win_lock_all reads all.  Locks without the assertion are ordered by each other, so
 * that two of them never conflict; one with it takes and gives no order, and conflicts with whatever the program has not ordered
 * otherwise.
 *
 * MPI_MODE_NOSTORE.  The window remembers its process's clock from just before the last synchronisation gave it: what of this
 * process's stores somebody with that clock does not know came after it.  windows*.c call. */
#include "check/windows_operate.h"

#include <stdio.h>
#include <string.h>

static bool is_value(MPI_Info info, const char *key, const char *value)
{
    char found[MPI_MAX_INFO_VAL + 1] = "";
    int flag = 0;
    return oriel_host()->Info_get(info, key, MPI_MAX_INFO_VAL, found, &flag) == MPI_SUCCESS && flag && strcmp(found, value) == 0;
}

uint64_t oriel_hint_promises(MPI_Info info)
{
    uint64_t promises = 0;
    if (info == MPI_INFO_NULL)
        return 0;
    if (is_value(info, "no_locks", "true"))
        promises |= ORIEL_PROMISE_NO_LOCKS;
    if (is_value(info, "same_size", "true"))
        promises |= ORIEL_PROMISE_SAME_SIZE;
    if (is_value(info, "same_disp_unit", "true"))
        promises |= ORIEL_PROMISE_SAME_DISP_UNIT;
    if (is_value(info, "accumulate_ops", "same_op"))
        promises |= ORIEL_PROMISE_OPS_SET | ORIEL_PROMISE_SAME_OP;
    if (is_value(info, "accumulate_ops", "same_op_no_op"))
        promises |= ORIEL_PROMISE_OPS_SET;
    return promises;
}

static void tell(const struct oriel_checked *window, enum oriel_rule rule, int32_t target, const struct oriel_site *site,
                 const struct oriel_site *other, const char *detail)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = rule;
    finding.target = target;
    if (other != NULL)
        finding.other = *other;
    snprintf(finding.detail, sizeof finding.detail, "%s", detail);
    oriel_window_tell(window, &finding, site);
}

/* --- creation --- */

void oriel_hint_creation(struct oriel_checked *window, const struct oriel_site *site)
{
    const struct oriel_member *first = &window->members[0];
    const struct oriel_member *own = &window->members[window->rank];
    if (own->flavour != first->flavour) {
        tell(window, ORIEL_RULE_COLLECTIVE, 0, site, &first->site, "The ranks make windows of different kinds.");
        return;
    }
    if ((own->promises ^ first->promises) & (ORIEL_PROMISE_SAME_SIZE | ORIEL_PROMISE_SAME_DISP_UNIT))
        tell(window, ORIEL_RULE_COLLECTIVE, 0, site, &first->site,
             "The info keys same_size and same_disp_unit must be the same on all ranks.");
    if (window->flavour == ORIEL_CHECK_DYNAMIC)
        return;
    if ((window->promises & ORIEL_PROMISE_SAME_SIZE) && own->size_bytes != first->size_bytes)
        tell(window, ORIEL_RULE_SAME_SIZE, 0, site, &first->site,
             oriel_words("This rank's window has %lld bytes, rank 0's has %lld.", (long long)own->size_bytes,
                         (long long)first->size_bytes));
    if ((window->promises & ORIEL_PROMISE_SAME_DISP_UNIT) && own->disp_unit != first->disp_unit)
        tell(window, ORIEL_RULE_SAME_DISP_UNIT, 0, site, &first->site,
             oriel_words("This rank's displacement unit is %lld, rank 0's is %lld.", (long long)own->disp_unit,
                         (long long)first->disp_unit));
}

/* --- fences --- */

static const int alike = MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

/* The first member that begins a fence notes its assertion, the others compare. */
static bool fence_differs(struct oriel_common *common, uint64_t number, int assert, const struct oriel_site *site,
                          struct oriel_site *other)
{
    struct oriel_fence_note *note = &common->fences[number % 4];
    if (note->number != number) {
        *note = (struct oriel_fence_note){.number = number, .assert = assert, .site = *site};
        return false;
    }
    *other = note->site;
    return ((note->assert ^ assert) & alike) != 0;
}

/* A member that is in MPI_Win_free with fewer fences will not come; -1: none. */
static int32_t gone_before(const struct oriel_checked *window, uint64_t number)
{
    if (!window->common->ending)
        return -1;
    for (int32_t i = 0; i < window->n; i++)
        if (window->common->shares[i].freeing && window->common->shares[i].fences < number)
            return i;
    return -1;
}

void oriel_hint_fence(struct oriel_checked *window, int assert, const struct oriel_site *site)
{
    struct oriel_site other = {0};
    uint64_t number = window->epochs.fences;
    if (window->common == NULL)
        return;
    struct oriel_share *own = &window->common->shares[window->rank];
    oriel_board_lock(&window->common->lock);
    own->fences = number;
    own->fence_site = *site;
    if (assert & MPI_MODE_NOPUT) {
        own->no_put[number % 2] = number;
        own->no_put_site[number % 2] = *site;
    }
    bool differs = fence_differs(window->common, number, assert, site, &other);
    int32_t gone = gone_before(window, number);
    struct oriel_site free_site = gone < 0 ? (struct oriel_site){0} : window->common->shares[gone].free_site;
    oriel_board_unlock(&window->common->lock);
    if (differs)
        tell(window, ORIEL_RULE_COLLECTIVE, -1, site, &other,
             "MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED must be given by all ranks or by none.");
    if (gone >= 0)
        tell(window, ORIEL_RULE_FENCE_COUNTS, gone, site, &free_site,
             oriel_words("Rank %d frees the window and does not call this fence.", gone));
}

/* --- stores --- */

struct stored {
    bool found;
    struct oriel_site site;
};

static void note_store(const struct oriel_conflict *conflict, void *closure)
{
    struct stored *stored = closure;
    if (conflict->earlier.kind != ORIEL_ACCESS_STORE || conflict->earlier.origin != oriel_order_rank())
        return;
    *stored = (struct stored){.found = true, .site = conflict->earlier.site};
}

/* Looks with the eyes of somebody who knows nothing of this process since then. */
static void look_for_stores(struct oriel_checked *window, int64_t offset, uint64_t len_bytes, struct stored *stored)
{
    oriel_place history = len_bytes == 0 ? 0 : oriel_window_history(window, window->rank);
    struct oriel_access access = {.kind = ORIEL_ACCESS_GET, .origin = INT32_MAX, .moment = window->since};
    struct oriel_extent extent = {.offset = offset, .len_bytes = len_bytes, .count = 1};
    if (history != 0)
        oriel_history_look(history, &access, &extent, 1, note_store, stored);
}

void oriel_hint_no_store(struct oriel_checked *window, const struct oriel_site *site)
{
    struct stored stored = {.found = false};
    if (window->since == 0)
        return;
    look_for_stores(window, 0, (uint64_t)window->members[window->rank].size_bytes, &stored);
    if (stored.found)
        tell(window, ORIEL_RULE_NOSTORE, window->rank, site, &stored.site,
             "This rank has stored into its window before this call.");
}

void oriel_hint_synchronised(struct oriel_checked *window)
{
    if (window->since != 0)
        oriel_order_moment_release(window->since);
    window->since = oriel_order_moment();
}

/* --- locks --- */

void oriel_hint_lock(struct oriel_checked *window, int32_t target, const struct oriel_site *site)
{
    if (oriel_likely(!(window->promises & ORIEL_PROMISE_NO_LOCKS)))
        return;
    for (int32_t i = 0; i < window->n; i++)
        if (window->members[i].promises & ORIEL_PROMISE_NO_LOCKS) {
            tell(window, ORIEL_RULE_NO_LOCKS, target, site, &window->members[i].site, "The window was made with no_locks=true.");
            return;
        }
}

static void nocheck_conflict(const struct oriel_conflict *conflict, void *closure)
{
    const struct oriel_checked *window = closure;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = ORIEL_RULE_NOCHECK_LOCK;
    finding.target = (int32_t)conflict->offset;
    finding.here = conflict->later.site;
    finding.other = conflict->earlier.site;
    finding.missing = "a synchronisation between the first unlock and the second lock";
    oriel_window_tell(window, &finding, NULL);
}

static oriel_place lock_history(struct oriel_checked *window)
{
    if (window->common == NULL)
        return 0;
    oriel_board_lock(&window->common->lock);
    if (window->common->locks == 0)
        window->common->locks = oriel_history_make((uint64_t)window->n);
    oriel_place history = window->common->locks;
    oriel_board_unlock(&window->common->lock);
    return history;
}

void oriel_hint_hold(struct oriel_checked *window, int32_t target, bool exclusive, const struct oriel_site *site)
{
    oriel_place history = lock_history(window);
    if (history == 0)
        return;
    struct oriel_access access = {.kind = exclusive ? ORIEL_ACCESS_PUT : ORIEL_ACCESS_GET,
                                  .flags = ORIEL_ACCESS_ALONE,
                                  .origin = oriel_order_rank(),
                                  .moment = oriel_order_moment(),
                                  .site = *site};
    struct oriel_extent extent = {
        .offset = target < 0 ? 0 : target, .len_bytes = target < 0 ? (uint64_t)window->n : 1, .count = 1};
    window->holds[target < 0 ? window->n : target] = oriel_history_add(history, &access, &extent, 1, nocheck_conflict, window);
    oriel_order_moment_release(access.moment);
}

void oriel_hint_unhold(struct oriel_checked *window, int32_t target)
{
    uint64_t *ticket = &window->holds[target < 0 ? window->n : target];
    if (*ticket != 0)
        oriel_history_complete_one(window->common->locks, *ticket, oriel_order_now());
    *ticket = 0;
}

/* --- post and start --- */

void oriel_hint_start(struct oriel_checked *window, int32_t target, uint32_t number, const struct oriel_site *site)
{
    struct oriel_site other = {0};
    if (!window->here)
        return;
    oriel_place moment = oriel_order_moment();
    oriel_tick known = moment == 0 ? UINT64_MAX : oriel_order_moment_clock(moment)[window->members[target].world_rank];
    oriel_board_lock(&window->common->lock);
    struct oriel_pair *pair = oriel_window_pair(window, target, window->rank);
    bool posted = pair == NULL || pair->posts >= number;
    bool before = posted && (pair == NULL || pair->post_tick <= known);
    if (posted && pair != NULL)
        other = pair->post_site;
    oriel_board_unlock(&window->common->lock);
    oriel_order_moment_release(moment);
    if (!before)
        tell(window, ORIEL_RULE_NOCHECK_START, target, site, &other,
             "Nothing says that the target's MPI_Win_post has returned before this call.");
}

void oriel_hint_no_put(const struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    int32_t target = operation->target_rank;
    struct oriel_site other = {0};
    bool broken = false;
    if (window->common == NULL || operation->applied == ORIEL_OPERATOR_NO_OP)
        return;
    struct oriel_share *share = &window->common->shares[target];
    if (window->epochs.targets[target] & ORIEL_TARGET_STARTED) {
        oriel_board_lock(&window->common->lock);
        struct oriel_pair *pair = oriel_window_pair(window, target, window->rank);
        broken = pair != NULL && pair->posts >= window->started[target] && (pair->post_assert & MPI_MODE_NOPUT);
        if (broken)
            other = pair->post_site;
        oriel_board_unlock(&window->common->lock);
    } else if (window->epochs.fence.open) {
        uint64_t number = window->epochs.fences;
        broken = number > 0 && share->no_put[number % 2] == number;
        if (broken)
            other = share->no_put_site[number % 2];
    }
    if (broken)
        tell(window, ORIEL_RULE_NOPUT, target, &operation->site, &other, "The target has promised that nothing is put there.");
}

/* --- what does not match in the end --- */

/* Under the common lock: the target is being freed and this process starts once more than it posted. */
static bool is_unmatched(struct oriel_checked *window, int32_t target, struct oriel_pair **pair)
{
    *pair = oriel_window_pair(window, target, window->rank);
    return *pair != NULL && window->common->shares[target].freeing && (*pair)->starts > (*pair)->posts;
}

void oriel_hint_unmatched(struct oriel_checked *window, int32_t target, const struct oriel_site *site)
{
    struct oriel_pair *pair;
    oriel_board_lock(&window->common->lock);
    bool unmatched = is_unmatched(window, target, &pair);
    struct oriel_site free_site = window->common->shares[target].free_site;
    oriel_board_unlock(&window->common->lock);
    if (unmatched)
        tell(window, ORIEL_RULE_UNMATCHED_GROUPS, target, site, &free_site,
             oriel_words("Rank %d frees the window without an MPI_Win_post for this rank.", target));
}

/* This member's pairs with more starts, or more posts, than the other side; told without the lock. */
static void tell_pairs(struct oriel_checked *window, bool starts, const struct oriel_site *site)
{
    for (oriel_place place = window->common->shares[window->rank].pairs; place != 0;) {
        oriel_board_lock(&window->common->lock);
        struct oriel_pair pair = *(struct oriel_pair *)oriel_board_at(place);
        oriel_board_unlock(&window->common->lock);
        if (starts ? pair.starts > pair.posts : pair.posts > pair.starts)
            tell(window, ORIEL_RULE_UNMATCHED_GROUPS, starts ? window->rank : pair.origin,
                 starts ? &pair.start_site : &pair.post_site, site,
                 starts ? oriel_words("Rank %d has not called MPI_Win_post for rank %d.", window->rank, pair.origin)
                        : oriel_words("Rank %d has not called MPI_Win_start for rank %d.", pair.origin, window->rank));
        place = pair.next;
    }
}

void oriel_hint_end(struct oriel_checked *window, const struct oriel_site *site)
{
    struct oriel_share *own = &window->common->shares[window->rank];
    struct oriel_site other = {0};
    int32_t ahead = -1;
    oriel_board_lock(&window->common->lock);
    own->freeing = 1;
    own->free_site = *site;
    window->common->ending = true;
    for (int32_t i = 0; i < window->n && ahead < 0; i++)
        if (window->common->shares[i].fences > own->fences) {
            ahead = i;
            other = window->common->shares[i].fence_site;
        }
    oriel_board_unlock(&window->common->lock);
    if (ahead >= 0)
        tell(window, ORIEL_RULE_FENCE_COUNTS, window->rank, &other, site,
             oriel_words("Rank %d frees the window and does not call this fence.", window->rank));
    tell_pairs(window, true, site);
}

void oriel_hint_ended(struct oriel_checked *window, const struct oriel_site *site)
{
    tell_pairs(window, false, site);
}

/* Under the common lock: a member that waits for a start of this process; -1: none. */
static int32_t find_posted(struct oriel_checked *window, struct oriel_site *post_site)
{
    for (int32_t i = 0; i < window->n; i++)
        for (oriel_place place = window->common->shares[i].freeing ? 0 : window->common->shares[i].pairs; place != 0;) {
            const struct oriel_pair *pair = oriel_board_at(place);
            if (pair->origin == window->rank && pair->posts > pair->starts) {
                *post_site = pair->post_site;
                return i;
            }
            place = pair->next;
        }
    return -1;
}

enum oriel_wanted oriel_hint_wanted(struct oriel_checked *window, const struct oriel_site *site, int32_t *rank)
{
    enum oriel_wanted wanted = ORIEL_WANTED_NOTHING;
    struct oriel_share *own = &window->common->shares[window->rank];
    struct oriel_site post_site = {0};
    oriel_board_lock(&window->common->lock);
    for (int32_t i = 0; i < window->n && wanted == ORIEL_WANTED_NOTHING; i++)
        if (window->common->shares[i].fences > own->fences) {
            own->fences++;
            wanted = ORIEL_WANTED_FENCE;
        }
    for (oriel_place place = own->pairs; place != 0 && wanted == ORIEL_WANTED_NOTHING;) {
        const struct oriel_pair *pair = oriel_board_at(place);
        if (pair->starts > pair->posts) {
            *rank = pair->origin;
            wanted = ORIEL_WANTED_POST;
        }
        place = pair->next;
    }
    if (wanted == ORIEL_WANTED_NOTHING && (*rank = find_posted(window, &post_site)) >= 0)
        wanted = ORIEL_WANTED_START;
    oriel_board_unlock(&window->common->lock);
    if (wanted == ORIEL_WANTED_START)
        tell(window, ORIEL_RULE_UNMATCHED_GROUPS, window->rank, &post_site, site,
             oriel_words("Rank %d frees the window without an MPI_Win_start for rank %d.", window->rank, *rank));
    return wanted;
}
