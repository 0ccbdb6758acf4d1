/* Checks whether the processes that a wait depends on are alive. Each watch checks only those that
 * can block it. The status is ORIEL_E_PEER with a message that names the dead rank. */
#ifndef ORIEL_INTERNODE_ORIGIN_LIVENESS_H
#define ORIEL_INTERNODE_ORIGIN_LIVENESS_H

#include "base/wait.h"
#include "window/window.h"

struct oriel_watched {
    const struct oriel_window *window;
    int32_t win_rank; /* the rank, or the target whose lock the wait is for */
    bool by_agent;    /* the agent's thread, which cannot wait for replies */
    /* Output of oriel_liveness_all: the dead rank. Output of oriel_liveness_rank for an internode
     * rank: that rank, the dead rank because of which it left the window, or -1 if the process that
     * knows its address does not reply. */
    int32_t dead;
    uint32_t patience; /* checks left before oriel_liveness_lock_holders may return ORIEL_E_AGAIN */
};

/* How many of n processes one check covers, every 100 ms, where all wait for all. A check costs a
 * few system calls, so it covers few, but all of them within a second. */
static inline int32_t oriel_liveness_share(int32_t n)
{
    int32_t share = n / 8 + 1;
    return share < 8 ? (n < 8 ? n : 8) : share;
}

/* A waiter for an internode process asks at every fifth check whether it still serves the
 * window. */
enum { ORIEL_WATCH_ASKS = 5 };

/* Checks for struct oriel_watch. The context of all is struct oriel_watched.
 *   - none: no rank, since the caller checks in another way
 *   - rank: win_rank alone
 *   - all: every rank of the window
 *   - any: the same where one rank waits for any: it also contacts internode ranks that it has not
 *     contacted yet
 *   - lock: ranks that hold or wait for the lock of win_rank
 *   - lock_all_holders: ranks that hold or wait for lock_all
 *   - lock_holders: ranks that hold an exclusive lock or wait for any lock; ends patience (G6) */
enum oriel_status oriel_liveness_none(void *context);
enum oriel_status oriel_liveness_rank(void *context);
enum oriel_status oriel_liveness_all(void *context);
enum oriel_status oriel_liveness_any(void *context);
enum oriel_status oriel_liveness_lock(void *context);
enum oriel_status oriel_liveness_lock_all_holders(void *context);
enum oriel_status oriel_liveness_lock_holders(void *context);

/* Whether rank i blocks a wait for a lock, as its words show: it holds the lock, or, if queued is
 * set, waits for one itself. */
bool oriel_liveness_blocks(const struct oriel_watch *watch, int32_t i, bool queued);

/* Checks all members at once. Returns a dead one, as far as this process can know, with a message;
 * or -1. */
int32_t oriel_liveness_members(const struct oriel_window *window);

#endif
