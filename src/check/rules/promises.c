/* Promises of programs by info keys and assertions, and violations of them (MPI-4.1, 13.2.1,
 * 13.5.5). Member states (member_state.h) hold the calls of other members, so the later of two
 * calls sees the earlier one.
 *
 * MPI_MODE_NOCHECK of locks: each held lock is an access to a history of the window in which each
 * target is one byte. A shared lock reads it, an exclusive lock writes it, MPI_Win_lock_all reads
 * all. Two locks without the assertion exclude each other, even where their order is not known yet:
 * a host may acquire a lock after its call has returned. A lock with the assertion takes and gives
 * no order, and conflicts with every lock that the program has not ordered otherwise.
 *
 * MPI_MODE_NOSTORE: the window keeps its process's clock from just before the last synchronisation
 * gave it. Stores of this process that are not in that clock came after it. */
#include "check/remote/history_proxy.h"
#include "check/remote/remote.h"
#include "check/window/operation.h"

#include <stdio.h>
#include <string.h>

static bool info_has_value(MPI_Info info, const char *key, const char *value)
{
    char found[MPI_MAX_INFO_VAL + 1] = "";
    int flag = 0;
    return oriel_host()->Info_get(info, key, MPI_MAX_INFO_VAL, found, &flag) == MPI_SUCCESS &&
           flag && strcmp(found, value) == 0;
}

uint64_t oriel_promises_read(MPI_Info info)
{
    uint64_t promises = 0;
    if (info == MPI_INFO_NULL || !info)
        return 0;
    if (info_has_value(info, "no_locks", "true"))
        promises |= ORIEL_PROMISE_NO_LOCKS;
    if (info_has_value(info, "same_size", "true"))
        promises |= ORIEL_PROMISE_SAME_SIZE;
    if (info_has_value(info, "same_disp_unit", "true"))
        promises |= ORIEL_PROMISE_SAME_DISP_UNIT;
    if (info_has_value(info, "accumulate_ops", "same_op"))
        promises |= ORIEL_PROMISE_OPS_SET | ORIEL_PROMISE_SAME_OP;
    if (info_has_value(info, "accumulate_ops", "same_op_no_op"))
        promises |= ORIEL_PROMISE_OPS_SET;
    return promises;
}

static void promise_report(const struct oriel_checked *window, enum oriel_rule rule, int32_t target,
                           const struct oriel_site *site, const struct oriel_site *other,
                           const char *detail)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = rule;
    finding.target = target;
    if (other != NULL)
        finding.other = *other;
    snprintf(finding.detail, sizeof finding.detail, "%s", detail);
    oriel_window_report(window, &finding, site);
}

/* --- creation --- */

void oriel_promises_creation(struct oriel_checked *window, const struct oriel_site *site)
{
    const struct oriel_checked_member *first = &window->members[0];
    const struct oriel_checked_member *own = &window->members[window->rank];
    if (own->flavour != first->flavour) {
        promise_report(window, ORIEL_RULE_COLLECTIVE, 0, site, &first->site,
                       "The ranks create windows of different kinds.");
        return;
    }
    if ((own->promises ^ first->promises) &
        (ORIEL_PROMISE_SAME_SIZE | ORIEL_PROMISE_SAME_DISP_UNIT))
        promise_report(window, ORIEL_RULE_COLLECTIVE, 0, site, &first->site,
                       "The info keys same_size and same_disp_unit must be the same on all ranks.");
    if (window->flavour == ORIEL_CHECK_DYNAMIC)
        return;
    if ((window->promises & ORIEL_PROMISE_SAME_SIZE) && own->size_bytes != first->size_bytes)
        promise_report(window, ORIEL_RULE_SAME_SIZE, 0, site, &first->site,
                       oriel_text_format("This rank's window has %lld bytes, rank 0's has %lld.",
                                         (long long)own->size_bytes, (long long)first->size_bytes));
    if ((window->promises & ORIEL_PROMISE_SAME_DISP_UNIT) && own->disp_unit != first->disp_unit)
        promise_report(window, ORIEL_RULE_SAME_DISP_UNIT, 0, site, &first->site,
                       oriel_text_format("This rank's displacement unit is %lld, rank 0's is %lld.",
                                         (long long)own->disp_unit, (long long)first->disp_unit));
}

/* --- fences --- */

void oriel_promises_fence(struct oriel_checked *window, int assert, const struct oriel_site *site)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_FENCE,
                                         .member = window->rank,
                                         .number = window->epochs.fences,
                                         .assert = assert,
                                         .site = *site};
    if (!oriel_window_ask(window, 0, &ask, &answer))
        return;
    if (answer.found)
        promise_report(
            window, ORIEL_RULE_COLLECTIVE, -1, site, &answer.site,
            "MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED must be given by all ranks or by none.");
    if (answer.gone_rank >= 0)
        promise_report(window, ORIEL_RULE_FENCE_COUNTS, answer.gone_rank, site, &answer.gone_site,
                       oriel_text_format("Rank %d frees the window without calling this fence.",
                                         answer.gone_rank));
}

void oriel_promises_fence_failed(struct oriel_checked *window)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {
        .kind = ORIEL_MEMBER_NO_FENCE, .member = window->rank, .number = window->epochs.fences};
    oriel_window_ask(window, 0, &ask, &answer);
}

/* Whether the operation's epoch has the promise. A no is cached: the fence has returned on all
 * members, or the post exists. */
static bool no_put_was_promised(const struct oriel_operation *operation, uint64_t epoch, bool fence,
                                struct oriel_member_state_answer *answer)
{
    struct oriel_checked *window = operation->window;
    int32_t target = operation->target_rank;
    struct oriel_member_state_ask ask = {.kind = fence ? ORIEL_MEMBER_NO_PUT : ORIEL_MEMBER_POSTED,
                                         .member = window->rank,
                                         .other = target,
                                         .number = epoch};
    if (!oriel_window_ask(window, 0, &ask, answer) || (!fence && answer->posts < epoch))
        return false;
    bool promised = answer->found && (fence || (answer->assert &MPI_MODE_NOPUT));
    if (!promised)
        window->unpromised[target] = epoch << 1 | fence;
    return promised;
}

void oriel_promises_no_put(const struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    int32_t target = operation->target_rank;
    struct oriel_member_state_answer answer;
    bool fence = !(window->epochs.targets[target] & ORIEL_TARGET_STARTED);
    uint64_t epoch = fence ? window->epochs.fences : window->started[target];
    if (operation->applied == ORIEL_OPERATOR_NO_OP || epoch == 0 ||
        (fence && !window->epochs.fence.open) ||
        window->unpromised[target] == (epoch << 1 | fence) ||
        !no_put_was_promised(operation, epoch, fence, &answer))
        return;
    promise_report(window, ORIEL_RULE_NOPUT, target, &operation->site, &answer.site,
                   "The target has promised that its window is not changed.");
}

/* --- stores --- */

struct stored {
    bool found;
    struct oriel_site site;
};

static void store_record(const struct oriel_conflict *conflict, void *closure)
{
    struct stored *stored = closure;
    if (conflict->earlier.kind != ORIEL_ACCESS_STORE ||
        conflict->earlier.origin != oriel_order_rank())
        return;
    *stored = (struct stored){.found = true, .site = conflict->earlier.site};
}

/* Looks as a process that has learnt nothing from this one since then. */
static void stores_find(struct oriel_checked *window, int64_t offset, uint64_t len_bytes,
                        struct stored *stored)
{
    oriel_shm_offset history = len_bytes == 0 ? 0 : oriel_window_history(window, window->rank);
    struct oriel_access access = {
        .kind = ORIEL_ACCESS_GET, .origin = INT32_MAX, .snapshot = window->since};
    struct oriel_access_extent extent = {.offset = offset, .len_bytes = len_bytes, .count = 1};
    if (history != 0)
        oriel_history_look(history, &access, &extent, 1, store_record, stored);
}

void oriel_promises_no_store(struct oriel_checked *window, const struct oriel_site *site)
{
    struct stored stored = {.found = false};
    if (window->since == 0)
        return;
    stores_find(window, 0, (uint64_t)window->members[window->rank].size_bytes, &stored);
    if (stored.found)
        promise_report(window, ORIEL_RULE_NOSTORE, window->rank, site, &stored.site,
                       "This rank has stored into its window before this call.");
}

void oriel_promises_synchronised(struct oriel_checked *window)
{
    if (window->since != 0)
        oriel_order_snapshot_release(window->since);
    window->since = oriel_order_snapshot();
}

/* --- locks --- */

void oriel_promises_no_locks(struct oriel_checked *window, int32_t target,
                             const struct oriel_site *site)
{
    if (oriel_likely(!(window->promises & ORIEL_PROMISE_NO_LOCKS)))
        return;
    for (int32_t i = 0; i < window->n; i++)
        if (window->members[i].promises & ORIEL_PROMISE_NO_LOCKS) {
            promise_report(window, ORIEL_RULE_NO_LOCKS, target, site, &window->members[i].site,
                           "The window was created with no_locks=true.");
            return;
        }
}

enum { CHECKED, UNCHECKED }; /* in place of a lock's operator */

/* Two threads of one rank need no order here. */
static void nocheck_conflict_report(const struct oriel_conflict *conflict, void *closure)
{
    const struct oriel_checked *window = closure;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    if (oriel_check_remote_is_lost() || conflict->earlier.origin == conflict->later.origin ||
        (conflict->later.op != UNCHECKED && conflict->earlier.op != UNCHECKED))
        return;
    finding.rule = ORIEL_RULE_NOCHECK_LOCK;
    finding.target = (int32_t)conflict->offset;
    finding.here = conflict->later.site;
    finding.other = conflict->earlier.site;
    finding.help =
        "omit MPI_MODE_NOCHECK at @here and @other, or send a message after the unlock to "
        "the rank that locks next";
    oriel_window_report(window, &finding, NULL);
}

static oriel_shm_offset lock_history(struct oriel_checked *window)
{
    if (window->common == NULL)
        return window->members[0].locks;
    _Atomic oriel_shm_offset *place = (_Atomic oriel_shm_offset *)&window->common->locks;
    oriel_shm_offset found = atomic_load_explicit(place, memory_order_acquire);
    oriel_shm_offset made = found != 0 ? 0 : oriel_history_make((uint64_t)window->n);
    if (made == 0 || atomic_compare_exchange_strong(place, &found, made))
        return found | made;
    oriel_history_free(made);
    return found;
}

void oriel_promises_lock_held(struct oriel_checked *window, int32_t target, bool exclusive,
                              bool no_check, const struct oriel_site *site)
{
    oriel_shm_offset history = lock_history(window);
    if (history == 0)
        return;
    struct oriel_access access = {.kind = exclusive ? ORIEL_ACCESS_PUT : ORIEL_ACCESS_GET,
                                  .op = no_check ? UNCHECKED : CHECKED,
                                  .flags = ORIEL_ACCESS_ALONE,
                                  .origin = oriel_order_rank(),
                                  .snapshot = oriel_order_snapshot(),
                                  .site = *site};
    struct oriel_access_extent extent = {.offset = target < 0 ? 0 : target,
                                         .len_bytes = target < 0 ? (uint64_t)window->n : 1,
                                         .count = 1};
    window->holds[target < 0 ? window->n : target] =
        oriel_part_add(history, &access, &extent, 1, nocheck_conflict_report, window);
    oriel_order_snapshot_release(access.snapshot);
}

void oriel_promises_lock_released(struct oriel_checked *window, int32_t target)
{
    uint64_t *ticket = &window->holds[target < 0 ? window->n : target];
    if (*ticket != 0)
        oriel_part_complete_one(lock_history(window), *ticket, oriel_order_now());
    *ticket = 0;
}
