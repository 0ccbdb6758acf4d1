/* The access words of this process, one per target, in its memory file. They exist from its first
 * lock or start of the window on: L1 and every other writer must create them first. Until then the
 * window reads words that are all ABSENT and that all windows of its group share. */
#ifndef ORIEL_SYNC_ACCESS_WORDS_H
#define ORIEL_SYNC_ACCESS_WORDS_H

#include "window/window.h"

/* Creates them, unless another thread has. ORIEL_E_NO_MEM: nothing has changed. */
enum oriel_status oriel_access_words_create(struct oriel_window *window) __attribute__((cold));

/* Creates them if there are none. */
static inline enum oriel_status oriel_access_words_require(struct oriel_window *window)
{
    return oriel_likely(oriel_window_access(window) != window->group->absent)
               ? ORIEL_OK
               : oriel_access_words_create(window);
}

/* Frees them, when no peer reads them any more. */
void oriel_access_words_close(struct oriel_window *window);

#endif
