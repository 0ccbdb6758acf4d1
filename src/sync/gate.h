/* The gate that keeps lock_all epochs and exclusive locks of one window apart.  Thread-safe; lock.c calls. */
#ifndef ORIEL_SYNC_GATE_H
#define ORIEL_SYNC_GATE_H

#include "window/shared.h"

/* For lock_all. */
enum oriel_status oriel_gate_enter_reader(struct oriel_gate *gate, const struct oriel_watch *watch);
void oriel_gate_leave_reader(struct oriel_gate *gate);

/* For an exclusive lock; nested: the caller holds another lock of this window, so that waiting readers may be
 * waiting for it.  After an error the caller has not entered. */
enum oriel_status oriel_gate_enter_writer(struct oriel_gate *gate, bool nested, const struct oriel_watch *watch);
void oriel_gate_leave_writer(struct oriel_gate *gate);

#endif
