/* What is held, and its way to the lists of many.  callsite_cache.c has seen that these hold nothing of the same window, and no
 * buffers.  pending_slot.h says who calls.
 *
 * From then on no call site may go the shortest way as before, so oriel_check_changes must count before one asks again.  Whoever
 * calls here sees to it: a call that is looked at counts, so does an operation that does not go the short way at all; one that
 * does finds a buffer needed, is not alone, and counts where it joins the lists (callsite_cache.c).  One that was refused is complete when
 * its call returns, and leaves nothing. */
#include "check/access/pending_slot.h"

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
    oriel_check_held = NULL;
    struct oriel_history_spot spot =
        oriel_history_expect(&window->ways[again->target].ground, (uint64_t)again->offset);
    oriel_history_held_release(again->arrival.history,
                               oriel_callsite_cell(spot.page, (uint64_t)again->offset),
                               again->entry, &again->access);
    oriel_local_runs(runs, count, window->buffers[again->target], &again->access.site);
    oriel_window_touch(window, again->target, 0);
}
