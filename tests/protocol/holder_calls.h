/* Epochs of a holder of a memory handle, of each kind. */
#ifndef ORIEL_TESTS_PROTOCOL_HOLDER_CALLS_H
#define ORIEL_TESTS_PROTOCOL_HOLDER_CALLS_H

#include "team.h"

enum { HOLDER_KINDS = 4 }; /* exclusive, shared, without a lock, lock_all */

/* Returns false if the handle is withdrawn. */
static inline bool begin_epoch(struct oriel_window *opened, uint64_t kind)
{
    enum oriel_status status = kind == 0   ? oriel_lock(opened, 0, true)
                               : kind == 1 ? oriel_lock(opened, 0, false)
                               : kind == 2 ? oriel_lock_trusted(opened, 0)
                                           : oriel_lock_all(opened);
    team_expect(status == ORIEL_OK || status == ORIEL_E_ATTACH);
    return status == ORIEL_OK;
}

static inline void end_epoch(struct oriel_window *opened, uint64_t kind)
{
    team_expect((kind == 3 ? oriel_unlock_all(opened) : oriel_unlock(opened, 0)) == ORIEL_OK);
}

#endif
