/* The service of a process for messages from the net: finds the window that a message is about. */
#ifndef ORIEL_INTERNODE_TARGET_AM_DISPATCH_H
#define ORIEL_INTERNODE_TARGET_AM_DISPATCH_H

#include "internode/internode.h"

extern const struct oriel_net_service oriel_am_dispatch_service;

/* From here on messages with the window's id are served; false without memory. */
bool oriel_am_dispatch_add(struct oriel_window *window);

/* Rank dead has died, and this process leaves the window. Call before the window is removed. */
void oriel_am_dispatch_record_death(struct oriel_window *window, int32_t dead);

/* When it returns, no message for the window is being served. */
void oriel_am_dispatch_remove(struct oriel_window *window);

#endif
