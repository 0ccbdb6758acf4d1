/* What a process does for others by way of the net: finds the window that a message is about.  Creation adds and removes windows,
 * start-up hands the service to the net. */
#ifndef ORIEL_INTERNODE_TARGET_AM_DISPATCH_H
#define ORIEL_INTERNODE_TARGET_AM_DISPATCH_H

#include "internode/internode.h"

extern const struct oriel_net_service oriel_service;

/* From here on messages for the window are served, by its id; false without memory. */
bool oriel_serve_add(struct oriel_window *window);

/* Rank dead has died, and this process leaves the window: before it is removed. */
void oriel_serve_give_up(struct oriel_window *window, int32_t dead);

/* None is being served any more when it returns. */
void oriel_serve_remove(struct oriel_window *window);

#endif
