/* What a process counts for each peer that it has had an epoch with: entries in tables of its own memory file, as many as it has
 * partners, that the peers find and wait at (partners.c has the argument).  An entry never moves and lives as long as the window.
 * pscw.c calls; free and creation close. */
#ifndef ORIEL_SYNC_PARTNERS_H
#define ORIEL_SYNC_PARTNERS_H

#include "base/wait.h"
#include "window/window.h"

/* This process's entry for a rank; NULL while there is none. */
struct oriel_partner *oriel_partners_own(const struct oriel_window *window, int32_t win_rank);

/* The same; makes it.  ORIEL_E_NO_MEM: nothing has changed.  Thread-safe. */
enum oriel_status oriel_partners_make(struct oriel_window *window, int32_t win_rank, struct oriel_partner **own);

/* In the place of each of these ranks its entry, made where there was none: the memory has room for as many pointers.
 * ORIEL_E_NO_MEM: some may be missing, what counts is as it was; the ranks are lost. */
enum oriel_status oriel_partners_replace(struct oriel_window *window, int32_t *ranks, int32_t count,
                                         struct oriel_partner ***entries);

static inline int32_t oriel_partner_rank(const struct oriel_partner *own)
{
    return (int32_t)oriel_load_relaxed(&own->peer) - 1;
}

/* The peer's entry for this process, in the place of whose own for the peer; NULL while there is none. */
struct oriel_partner *oriel_partners_theirs(const struct oriel_window *window, struct oriel_partner *own);

/* The same; waits for it. */
enum oriel_status oriel_partners_await(const struct oriel_window *window, struct oriel_partner *own,
                                       const struct oriel_watch *watch, struct oriel_partner **theirs);

/* Gives back all tables, when no peer looks at them any more. */
void oriel_partners_close(struct oriel_window *window);

#endif
