/* The mutual exclusion of accumulates on one target. Thread-safe. */
#ifndef ORIEL_SYNC_ACCUMULATE_MUTEX_H
#define ORIEL_SYNC_ACCUMULATE_MUTEX_H

#include "window/window.h"

/* Acquires the accumulate lock of target. ORIEL_E_PEER, naming the rank, if its holder has died. */
enum oriel_status oriel_accumulate_mutex_lock(struct oriel_window *window, int32_t target);
void oriel_accumulate_mutex_unlock(struct oriel_window *window, int32_t target);

#endif
