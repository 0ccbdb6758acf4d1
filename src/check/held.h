/* The one small operation whose call this process has made last, as long as no other call of it has been looked at: it stands in
 * its cell like all others, but what it needs when it is complete stands here, instead of in the lists of many (underway.c,
 * brief.c, the window's marks).  Most are flushed by the very next call, which then has next to nothing to do; any other call
 * first moves it to the lists.  Only where one thread makes all calls.  again.c and windows_passive.c call. */
#ifndef ORIEL_CHECK_HELD_H
#define ORIEL_CHECK_HELD_H

#include "check/again.h"
#include "check/small_again.h"

struct oriel_held {
    const struct oriel_again *again; /* its call's: window, target, access, bytes */
    struct oriel_cell_entry *entry;
    struct oriel_history_spot spot;
    const void *origin;
    const void *compare;
    const void *result;
};
extern struct oriel_held oriel_held __attribute__((visibility("hidden"))); /* held.c's own */

/* To the lists. */
void oriel_held_release(void);

/* The program's call is to be looked at, and what is held stays: oriel_check_leave must follow. */
static inline bool oriel_held_look(void)
{
    if (!oriel_check_is_programs())
        return false;
    oriel_check_enter();
    return true;
}

static inline void oriel_held_let_go(void)
{
    if (oriel_check_held != NULL)
        oriel_held_release();
}

/* What is held is on this target: it is complete, and its buffers are free when the call that flushes it returns.  False: it is
 * not, or nothing is held. */
static inline bool oriel_held_flush(MPI_Win win, int target)
{
    if (oriel_unlikely(oriel_check_held == NULL || oriel_held.again->win != win || oriel_held.again->target != target))
        return false;
    oriel_history_held_complete(oriel_held.entry, oriel_order_now());
    oriel_check_held = NULL;
    return true;
}

#endif
