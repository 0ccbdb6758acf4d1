/* The FIFO reader-writer lock of one target.  Thread-safe; lock.c calls. */
#ifndef ORIEL_SYNC_TICKET_H
#define ORIEL_SYNC_TICKET_H

#include "window/shared.h"

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive, const struct oriel_watch *watch);
void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive);

#endif
