/* Completion of the operations that this process has issued on a window: their accesses in the
 * targets' histories, their buffers, and the words that fetching accumulates may have read late. */
#include "check/remote/history_proxy.h"
#include "check/window/notified.h"
#include "check/window/thread_debts.h"
#include "check/window/window_steps.h"

static uint64_t local_ticket(int32_t rank)
{
    return ORIEL_ACCESS_GROUP | ((uint64_t)(uint32_t)rank << 1 | 1);
}

uint64_t oriel_window_local_ticket(void)
{
    return local_ticket(oriel_order_rank());
}

/* Marks are cleared only with a single thread. With several, a thread that finds a mark cleared
 * would go on while another one still completes the accesses. */
static void touched_clear(struct oriel_checked *window, int32_t target, unsigned bits)
{
    if (!window->threaded)
        window->touched[target] &= (uint8_t)~bits;
}

static __attribute__((noinline)) void complete_everywhere(struct oriel_checked *window,
                                                          int32_t target)
{
    oriel_shm_offset history = oriel_window_history(window, target);
    window->touched_histories -= !window->threaded;
    touched_clear(window, target, ORIEL_TOUCHED_HISTORY | ORIEL_TOUCHED_TREE);
    window->touched[target] &= (uint8_t)~ORIEL_TOUCHED_FLAGGED;
    if (history != 0)
        oriel_part_complete(history, oriel_order_rank(), oriel_window_local_ticket(),
                            oriel_order_now());
    if (window->notified != NULL)
        oriel_notified_complete(window, target);
}

static void complete_touched(struct oriel_checked *window, int32_t target)
{
    unsigned had = window->touched[target];
    if (had & ORIEL_TOUCHED_BUFFERS)
        oriel_local_complete_shared(window->buffers[target]);
    if (!(had & ORIEL_TOUCHED_HISTORY))
        return;
    if (oriel_likely((had & ORIEL_TOUCHED_TREE) ==
                     0)) { /* only from callsite_cache.c, which several threads do not use */
        window->touched_histories--;
        window->touched[target] = (uint8_t)(had & ORIEL_TOUCHED_BUFFERS);
        int32_t rank = (int32_t)window->members[window->rank].world_rank;
        oriel_history_complete_cells(window->common->shares[target].history, rank,
                                     local_ticket(rank), oriel_order_now());
        return;
    }
    complete_everywhere(window, target);
}

void oriel_window_complete_target(struct oriel_checked *window, int32_t target)
{
    oriel_debts_complete_begin(window->debts);
    complete_touched(window, target);
    oriel_debts_complete_end(window->debts, target, true);
}

void oriel_window_complete_for_target(struct oriel_checked *window, int32_t target)
{
    const oriel_shm_offset history =
        window->touched[target] & ORIEL_TOUCHED_HISTORY ? oriel_window_history(window, target) : 0;
    if (history == 0)
        return;
    oriel_debts_complete_begin(window->debts);
    oriel_part_complete(history, oriel_order_rank(), oriel_window_local_ticket(),
                        oriel_order_now());
    oriel_debts_complete_end(window->debts, target, false);
}

void oriel_window_complete(struct oriel_checked *window, int32_t target)
{
    if (!window->ordered)
        return;
    if (target >= 0) {
        oriel_window_complete_target(window, target);
        return;
    }
    for (int32_t i = 0; i < window->n && window->touched_any; i++)
        oriel_window_complete_target(window, i);
}

void oriel_window_take_late(struct oriel_checked *window, int32_t target, bool ends)
{
    struct oriel_late_word late[ORIEL_LATE_WORDS];
    uint32_t count = 0;
    uint32_t kept = 0;
    oriel_window_enter(window);
    bool more = window->late_more &&
                (target < 0 || window->late_more_target < 0 || window->late_more_target == target);
    for (uint32_t i = 0; i < window->late_count; i++) {
        struct oriel_late_word word = window->late[i];
        bool taken = target < 0 || word.target == target;
        if (taken)
            late[count++] = word;
        if (!taken || !ends)
            window->late[kept++] = word;
    }
    window->late_count = kept;
    if (more && ends && (target < 0 || window->late_more_target == target))
        window->late_more = false;
    oriel_window_leave(window);
    for (uint32_t i = 0; i < count; i++)
        oriel_window_take_word(window, late[i].target, late[i].offset);
    if (more)
        oriel_window_take_ranks(window);
}

static void late_words_complete(struct oriel_checked *window, int32_t target)
{
    if (oriel_unlikely(window->late_count != 0 || window->late_more))
        oriel_window_take_late(window, target, true);
    if (oriel_unlikely(window->asked != NULL))
        oriel_window_requests_flushed(window, target);
}

static void buffers_complete(struct oriel_checked *window, int32_t target)
{
    if (!(window->touched[target] & ORIEL_TOUCHED_BUFFERS))
        return;
    touched_clear(window, target, ORIEL_TOUCHED_BUFFERS);
    /* another thread may have issued operations since the other steps of this completion */
    oriel_debts_complete_begin(window->debts);
    oriel_local_complete(window->buffers[target]);
    oriel_debts_complete_end(window->debts, target, false);
}

void oriel_window_completed_target(struct oriel_checked *window, int32_t target)
{
    late_words_complete(window, target);
    buffers_complete(window, target);
}

void oriel_window_completed(struct oriel_checked *window, int32_t target)
{
    if (!window->ordered)
        return;
    if (target >= 0) {
        oriel_window_completed_target(window, target);
        return;
    }
    late_words_complete(window, target);
    bool any = window->touched_any;
    if (!window->threaded)
        window->touched_any = false;
    for (int32_t i = 0; i < window->n && any; i++) {
        buffers_complete(window, i);
        if (window->touched[i] != 0)
            window->touched_any = true;
    }
}

void oriel_window_refused(struct oriel_checked *window, int32_t target)
{
    oriel_window_complete(window, target);
    oriel_window_completed(window, target);
}

void oriel_window_flag(struct oriel_checked *window, int32_t target, uint8_t flags)
{
    oriel_shm_offset history =
        window->touched[target] & ORIEL_TOUCHED_HISTORY ? oriel_window_history(window, target) : 0;
    if (history != 0)
        oriel_part_flag(history, oriel_order_rank(), flags);
}

void oriel_window_complete_gets(struct oriel_checked *window, int32_t target)
{
    oriel_shm_offset history =
        window->touched[target] & ORIEL_TOUCHED_HISTORY ? oriel_window_history(window, target) : 0;
    if (history == 0)
        return;
    oriel_debts_complete_begin(window->debts);
    oriel_part_complete_one(history, oriel_window_local_ticket(), oriel_order_now());
    oriel_debts_complete_end(window->debts, target, false);
}
