/* What is held, and its way to the lists of many.  again.c has seen that these hold nothing of the same window, and no
 * buffers.  held.h says who calls. */
#include "check/held.h"

#include "check/brief.h"

struct oriel_held oriel_held;

void oriel_held_release(void)
{
    const struct oriel_again *again = oriel_held.again;
    struct oriel_checked *window = again->window;
    struct oriel_brief_run runs[ORIEL_BRIEF_RUNS];
    unsigned count = oriel_again_runs(again, oriel_held.origin, oriel_held.compare, oriel_held.result, runs);
    oriel_check_held = NULL;
    oriel_history_held_release(oriel_window_history(window, again->target), oriel_held.spot, oriel_held.entry,
                               &again->access, again->offset);
    oriel_local_runs(runs, count, window->buffers[again->target], &again->access.site);
    oriel_window_touch(window, again->target, 0);
}
