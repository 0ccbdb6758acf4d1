/* The access words of this process, one for each target, which lie in its own memory file from its first lock or start of the
 * window on: L1 and whatever else writes them must have made them.  Until then the window reads words that say ABSENT and
 * belong to all windows of its group.  lock.c and pscw.c make, creation and free close. */
#ifndef ORIEL_SYNC_ACCESS_WORDS_H
#define ORIEL_SYNC_ACCESS_WORDS_H

#include "window/window.h"

/* Makes them, unless another thread has.  ORIEL_E_NO_MEM: nothing has changed. */
enum oriel_status oriel_access_make(struct oriel_window *window) __attribute__((cold));

/* Makes them where there are none. */
static inline enum oriel_status oriel_access_need(struct oriel_window *window)
{
    return oriel_likely(oriel_window_access(window) != window->group->absent)
               ? ORIEL_OK
               : oriel_access_make(window);
}

/* Gives them back, when no peer looks at them any more. */
void oriel_access_close(struct oriel_window *window);

#endif
