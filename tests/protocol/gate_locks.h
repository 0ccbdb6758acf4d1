/* Locks that must succeed, of one target exclusively and of all, for the tests of the gate. */
#ifndef ORIEL_TESTS_PROTOCOL_GATE_LOCKS_H
#define ORIEL_TESTS_PROTOCOL_GATE_LOCKS_H

#include "make_window.h"
#include "sync/lock_all_gate.h"

static inline void lock_one(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_lock(window, target, true) == ORIEL_OK);
}

static inline void unlock_one(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_unlock(window, target) == ORIEL_OK);
}

static inline void lock_all(struct oriel_window *window)
{
    team_expect(oriel_lock_all(window) == ORIEL_OK);
}

static inline void unlock_all(struct oriel_window *window)
{
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
}

#endif
