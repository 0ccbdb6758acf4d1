/* What is held, and its way to the lists of many.  again.c has seen that these hold nothing of the same window, and no
 * buffers.  held.h says who calls. */
#include "check/held.h"

const struct oriel_again *oriel_held;

void oriel_held_release(void)
{
    const struct oriel_again *again = oriel_held;
    struct oriel_checked *window = again->window;
    struct oriel_brief_run runs[ORIEL_BRIEF_RUNS];
    unsigned count = oriel_again_runs(again, again->origin, again->compare, again->result, runs);
    oriel_check_held = NULL;
    struct oriel_history_spot spot = oriel_history_expect(&window->ways[again->target].ground, (uint64_t)again->offset);
    oriel_history_held_release(again->arrival.history, oriel_again_cell(spot.page, (uint64_t)again->offset), again->entry,
                               &again->access);
    oriel_local_runs(runs, count, window->buffers[again->target], &again->access.site);
    oriel_window_touch(window, again->target, 0);
    oriel_check_change();
}
