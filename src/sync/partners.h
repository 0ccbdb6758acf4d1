/* What a process counts for each peer that it has had an epoch with: entries in tables of its own memory file, as many as it has
 * partners, that the peers find and wait at (partners.c has the argument).  An entry never moves and lives as long as the window.
 * pscw.c calls; free and creation close. */
#ifndef ORIEL_SYNC_PARTNERS_H
#define ORIEL_SYNC_PARTNERS_H

#include "base/wait.h"
#include "window/window.h"

/* Makes this process's entries for these ranks where there are none.  ORIEL_E_NO_MEM: some may be missing, what counts is as it
 * was.  Thread-safe. */
enum oriel_status oriel_partners_make(struct oriel_window *window, const int32_t *ranks, int32_t count);

/* This process's entry for a rank, which has been made. */
struct oriel_partner *oriel_partners_own(const struct oriel_window *window, int32_t win_rank);

/* The rank's entry for this process, whose own is given; NULL while there is none. */
struct oriel_partner *oriel_partners_theirs(const struct oriel_window *window, int32_t win_rank, struct oriel_partner *own);

/* The same; waits for it. */
enum oriel_status oriel_partners_await(const struct oriel_window *window, int32_t win_rank, struct oriel_partner *own,
                                       const struct oriel_watch *watch, struct oriel_partner **theirs);

/* Gives back all tables, when no peer looks at them any more. */
void oriel_partners_close(struct oriel_window *window);

#endif
