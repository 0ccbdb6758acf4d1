/* Closes an unused fence epoch when another kind of epoch begins. */
#ifndef ORIEL_SYNC_EPOCH_H
#define ORIEL_SYNC_EPOCH_H

#include "window/window.h"

/* ORIEL_E_SYNC if operations followed the last fence (MPI-4.1, 13.5.1: a fence without operations
 * begins no epoch). */
enum oriel_status oriel_epoch_leave_fence(struct oriel_window *window);

#endif
