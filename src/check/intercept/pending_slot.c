/* The pending slot, and the move from it to the lists. callsite_cache.c has checked that the lists
 * contain nothing of the same window, and no buffers.
 *
 * After the move no call site may use the slot without a new check. So oriel_check_changes must be
 * incremented before the next operation tests it. Each caller ensures this. A checked call
 * increments it, and so does an operation that takes the slow path. An operation on the path of
 * callsite_cache.c finds a buffer in use, so it does not enter the slot, and increments the counter
 * where it joins the lists. A refused operation is complete when its call returns, and leaves
 * nothing. */
#include "check/intercept/pending_slot.h"

const struct oriel_callsite *oriel_pending_slot;

struct oriel_cell_entry *oriel_pending_slot_enter(const struct oriel_callsite *again,
                                                  const struct oriel_history_spot *spot,
                                                  uint64_t at, oriel_tick issued)
{
    uint64_t move = oriel_entry_move(at & (ORIEL_CELL_BYTES - 1));
    return oriel_history_hold(&again->arrival, spot, again->what + move, again->screen - move,
                              again->repeats, issued, at);
}

void oriel_pending_slot_release(void)
{
    const struct oriel_callsite *again = oriel_pending_slot;
    struct oriel_checked *window = again->window;
    struct oriel_short_buffer_run runs[ORIEL_SHORT_BUFFER_RUNS];
    unsigned count = oriel_callsite_runs(again, again->origin, again->compare, again->result, runs);
    oriel_check_pending = NULL;
    struct oriel_history_spot spot =
        oriel_history_expect(&window->paths[again->target].ground, (uint64_t)again->offset);
    oriel_history_held_release(again->arrival.history,
                               oriel_callsite_cell(spot.page, (uint64_t)again->offset),
                               again->entry, &again->access);
    oriel_local_runs(runs, count, window->buffers[again->target], &again->access.site);
    oriel_window_touch(window, again->target, 0);
}
