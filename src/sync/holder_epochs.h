/* Epochs of windows that were opened from a memory handle, and the handle's withdrawal
 * (holder_epochs.c has the argument). */
#ifndef ORIEL_SYNC_HOLDER_EPOCHS_H
#define ORIEL_SYNC_HOLDER_EPOCHS_H

#include "window/holders.h"

/* --- the holder: the functions of sync/sync.h for windows that oriel_window_is_opened --- */

/* state: SHARED, EXCLUSIVE or NOCHECK. ORIEL_E_ATTACH if the handle is withdrawn. */
enum oriel_status oriel_holder_lock(struct oriel_window *window, enum oriel_access_state state)
    __attribute__((cold));
enum oriel_status oriel_holder_unlock(struct oriel_window *window) __attribute__((cold));
enum oriel_status oriel_holder_lock_all(struct oriel_window *window, bool trusted)
    __attribute__((cold));
enum oriel_status oriel_holder_unlock_all(struct oriel_window *window) __attribute__((cold));

/* Steps of an epoch (holder_epochs.c), for holders on this node and, at the owner, for those on
 * other nodes.
 *   - ask: H1 and H2
 *   - open: H4 and H5, once it has the lock; after an error the caller gives the lock back
 *   - end: H6; also after an error of open
 *   - lose: instead of it, for a process that is lost with the lock */
enum oriel_status oriel_holder_epoch_ask(const struct oriel_holding *holding);
enum oriel_status oriel_holder_epoch_open(const struct oriel_holding *holding,
                                          enum oriel_access_state state);
void oriel_holder_epoch_end(const struct oriel_holding *holding);
void oriel_holder_epoch_lose(const struct oriel_holding *holding);

/* At the owner: whether the process on another node has an epoch open. */
static inline bool oriel_holder_has_epoch(const struct oriel_holding *holding)
{
    const uint32_t state = oriel_load_relaxed(&holding->entry->state);
    return state >= ORIEL_ACCESS_STATE_SHARED && state != ORIEL_ACCESS_STATE_LOST;
}

/* A check for struct oriel_watch whose context is struct oriel_watched: whether any process is lost
 * that may keep a holder from its lock. */
enum oriel_status oriel_holder_watch(void *context);

/* Takes a free entry of the area for this process. *holder is NULL if all are in use. Before its
 * first epoch the caller must find its key in the area, else leave. */
enum oriel_status oriel_holder_enter(struct oriel_handle_area *area, struct oriel_holder **holder);
void oriel_holder_leave(struct oriel_holder *holder);

/* Whether the area still has the handle with this key. */
static inline bool oriel_handle_is_valid(struct oriel_handle_area *area, uint64_t key)
{
    return atomic_load_explicit(&area->key, memory_order_seq_cst) == key &&
           atomic_load_explicit(&area->withdrawn, memory_order_seq_cst) == 0;
}

/* --- the owner --- */

/* W1 and W2: refuses further epochs, and waits for open ones. waiting_too: also for lock calls that
 * wait for their turn, since the lock is about to end. */
void oriel_handle_withdraw(struct oriel_handle_area *area, bool waiting_too);

/* Whether this process has itself an epoch open on the handle. */
bool oriel_handle_has_own_epoch(struct oriel_handle_area *area);

/* R: whether no living process has an entry, and no dead one has kept a lock. Then the area may be
 * used for another handle. */
bool oriel_handle_is_unused(struct oriel_handle_area *area);

/* --- both --- */

/* ORIEL_E_PEER if the owner of target's accumulate lock has died; name is that in its word. */
enum oriel_status oriel_holder_check_update(struct oriel_window *window, int32_t target,
                                            uint32_t name);

#endif
