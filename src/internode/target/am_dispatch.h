/* The service of a process for messages from the net: finds the window that a message is about. */
#ifndef ORIEL_INTERNODE_TARGET_AM_DISPATCH_H
#define ORIEL_INTERNODE_TARGET_AM_DISPATCH_H

#include "internode/internode.h"

/* At the owner of memory handles: the windows for holders on other nodes (create/memory_serve.c).
 * Both are called in the agent's thread.
 *   - open: makes the window for ORIEL_INTERNODE_OPEN
 *   - close: the process has left, or is lost; the window is found no more */
struct oriel_am_holders {
    enum oriel_status (*open)(const struct oriel_identity *from,
                              const struct oriel_internode_head *head,
                              const struct oriel_net_received *message, struct oriel_window **out);
    void (*close)(struct oriel_window *window);
};

/* Before the first handle is made; always the same. */
void oriel_am_dispatch_serve_holders(const struct oriel_am_holders *holders);

extern const struct oriel_net_service oriel_am_dispatch_service;

/* From here on messages with the window's id are served; false without memory. */
bool oriel_am_dispatch_add(struct oriel_window *window);

/* Rank dead has died, and this process leaves the window. Call before the window is removed. */
void oriel_am_dispatch_record_death(struct oriel_window *window, int32_t dead);

/* When it returns, no message for the window is being served. */
void oriel_am_dispatch_remove(struct oriel_window *window);

#endif
