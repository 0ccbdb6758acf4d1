/* Synchronisation with internode ranks, and the begin and end of operations on their memory.
 * Statuses are those of sync/sync.h. ORIEL_E_PEER also means that a node's link was silent for too
 * long. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_SYNC_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_SYNC_H

#include "internode/internode.h"

/* The internode state of a window of n ranks, which other processes know by id; NULL without
 * memory. */
struct oriel_internode *oriel_internode_make(uint64_t id, int32_t n);
void oriel_internode_free(struct oriel_internode *internode);

/* The process of an internode rank. */
enum oriel_status oriel_internode_peer(const struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer **peer);

/* Before an operation on an internode target: returns its process. Inside lock_all it acquires the
 * target's lock first, if that is not held. */
enum oriel_status oriel_internode_enter(struct oriel_window *window, int32_t target,
                                        struct oriel_net_peer **peer);

/* Sends a one-way message. Sets the head's window and from. */
enum oriel_status oriel_internode_send(struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer *peer,
                                       struct oriel_internode_head *head, const struct iovec *data,
                                       unsigned pieces);

/* Sends a request. The window owns the request from here on, also after an error. Its take must
 * call oriel_internode_reply_check first. */
enum oriel_status oriel_internode_send_request(struct oriel_window *window, int32_t target,
                                               struct oriel_net_peer *peer,
                                               struct oriel_internode_head *head,
                                               const struct iovec *data, unsigned pieces,
                                               struct oriel_internode_request *request);

/* The RDMA key of an internode target's memory; NULL if its operations are messages. */
struct oriel_net_key *oriel_internode_key(struct oriel_window *window, int32_t target,
                                          struct oriel_net_peer *peer);

/* Whether oriel_internode_key has returned one. Asks no rank. */
bool oriel_internode_has_key(struct oriel_window *window, int32_t target);

/* RDMA with that key, of at most ORIEL_NET_DATA_BYTES. A put's data is copied before it returns. A
 * get's request is as for oriel_internode_send_request. */
enum oriel_status oriel_internode_rdma_put(struct oriel_window *window, int32_t target,
                                           struct oriel_net_key *key, uint64_t offset_bytes,
                                           const void *from, size_t len_bytes);
enum oriel_status oriel_internode_rdma_get(struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *peer, struct oriel_net_key *key,
                                           uint64_t offset_bytes, size_t len_bytes,
                                           struct oriel_internode_request *request);

/* Records the failure that a reply reports. Returns false if it reports one; the reply has no data
 * then. */
bool oriel_internode_reply_check(struct oriel_internode_request *request,
                                 const struct oriel_net_received *answer);

/* Completes all operations of this process on an internode target, or on all for -1, at origin and
 * target. Returns the failure of any. */
enum oriel_status oriel_internode_flush(struct oriel_window *window, int32_t target);

/* Completes operations that need no message: RDMA, and operations that return data to this process.
 * Failures that replies reported are left to the next flush. */
enum oriel_status oriel_internode_flush_rdma(struct oriel_window *window, int32_t target);

/* Waits until operations that return data to this process are complete here, or have failed. */
enum oriel_status oriel_internode_flush_local(struct oriel_window *window, int32_t target);

/* The same for requests up to a number; and the number of the last request to any target. */
enum oriel_status oriel_internode_flush_until(struct oriel_window *window, int32_t target,
                                              uint64_t until);
uint64_t oriel_internode_last_request(struct oriel_window *window);

/* Returns and clears the failures that replies reported; so does each flush. */
enum oriel_status oriel_internode_take_failure(struct oriel_internode *internode);

/* Locks an internode target. unlock, and unlock_all for the targets that an operation locked, flush
 * as well. */
enum oriel_status oriel_internode_lock(struct oriel_window *window, int32_t target, bool exclusive);

/* The same, but lazy: the lock leaves with the messages of its epoch (lazy_lock.c). The calls that
 * complete operations there report its failure. Call it after oriel_lazy_lock_await, and only if
 * no other thread of the program may be in a call. */
enum oriel_status oriel_internode_lock_lazy(struct oriel_window *window, int32_t target,
                                            bool exclusive);

/* Begins an epoch on the memory handle of an owner on another node: SHARED, EXCLUSIVE or NOTHING.
 * oriel_internode_unlock ends it. */
enum oriel_status oriel_internode_begin(struct oriel_window *window,
                                        enum oriel_internode_wanted wanted);

/* Whether this process has a lazy lock that is not acquired yet. oriel_lazy_lock_await waits for
 * it. Call it before any other lock is requested or acquired. */
extern uint32_t oriel_lazy_lock_outstanding __attribute__((visibility("hidden")));
void oriel_lazy_lock_await(void);

/* Frees the lazy lock of a window that ends inside the epoch. An outstanding request is left to the
 * net. Not for windows of memory handles: they have no lazy lock, and the agent's thread may end
 * them while another thread begins one. */
void oriel_lazy_lock_free(const struct oriel_internode *internode);

/* At the beginning of lock_all, after its gate: acquires the locks of targets at which the previous
 * epoch kept an exclusive lock waiting. A failure is left to the first operation there. */
void oriel_internode_lock_followed(struct oriel_window *window);

/* trusted: MPI_MODE_NOCHECK, so no lock was acquired and only the flush remains. *is_given_back:
 * false if memory was short for the request (ORIEL_E_NO_MEM); then the lock is still held. */
enum oriel_status oriel_internode_unlock(struct oriel_window *window, int32_t target, bool trusted,
                                         bool *is_given_back);
enum oriel_status oriel_internode_unlock_all(struct oriel_window *window, bool trusted,
                                             bool *is_given_back);

/* Post to, or complete towards, an internode rank. A process counts its own posts and completes in
 * its own entry as well (pscw.c). */
enum oriel_status oriel_internode_post(struct oriel_window *window, int32_t target);
enum oriel_status oriel_internode_complete(struct oriel_window *window, int32_t target);

/* The counter of an internode rank's posts and completes in this process; NULL without memory. */
struct oriel_pscw_counter *oriel_internode_partner(struct oriel_window *window, int32_t rank);

/* Preallocates the entry of the next partner, so it can be counted when memory is short; false
 * without memory. With internode->mutex held, or before another thread has the window. */
bool oriel_internode_has_spare_partner(struct oriel_internode *internode);

/* All ranks of this node are at barrier number. Returns when the ranks of all other nodes are, or
 * when *lost_rank is lost. */
enum oriel_status oriel_internode_barrier(struct oriel_window *window, uint32_t number,
                                          int32_t *lost_rank);

/* Notifies all reachable nodes that a rank is lost. */
void oriel_internode_notify_lost(struct oriel_window *window, int32_t rank);

/* Marks the window broken, once, and notifies all nodes: waits in barriers end, and no barrier
 * opens any more. */
void oriel_internode_window_break(struct oriel_window *window, int32_t rank);

/* --- at the target, in the agent's thread --- */

/* Sends a reply with the failure so far, or with data if there is none. */
void oriel_internode_reply(struct oriel_window *window, const struct oriel_net_requester *asker,
                           int32_t from, const struct iovec *data, unsigned pieces);

/* Sends a reply to a request that is neither operation nor flush. Failures are left to the next
 * reply. */
void oriel_internode_reply_ok(const struct oriel_net_requester *asker, const struct iovec *data,
                              unsigned pieces);

/* Sends a reply that refuses the request, with the thread's message. */
void oriel_internode_reply_refusal(const struct oriel_net_requester *asker,
                                   enum oriel_status status);
void oriel_internode_replies_close(struct oriel_internode *internode);

/* Records that a message of this origin failed, with the thread's message, for the next reply to
 * it. */
void oriel_internode_record_failure(struct oriel_window *window, int32_t from,
                                    enum oriel_status status);

/* Whether such a failure has not been reported to this origin yet. */
bool oriel_internode_has_failed(const struct oriel_window *window, int32_t from);

/* Whether a message of an epoch must not be served now: its lock is not acquired yet, and again
 * runs when it is, or the lock was refused. */
typedef void oriel_internode_serve_fn(struct oriel_window *window,
                                      const struct oriel_net_requester *asker,
                                      const struct oriel_internode_head *head,
                                      const struct oriel_net_received *message);
bool oriel_internode_defers(struct oriel_window *window, const struct oriel_net_requester *asker,
                            const struct oriel_internode_head *head,
                            const struct oriel_net_received *message, bool is_asked,
                            oriel_internode_serve_fn *again);

/* Serves any message but an operation's. */
void oriel_internode_serve(struct oriel_window *window, const struct oriel_net_requester *asker,
                           const struct oriel_internode_head *head);

/* Whether any window has a waiting lock; and advances the waiting locks of one window. */
bool oriel_internode_has_waiting_locks(void);
void oriel_internode_advance_locks(struct oriel_window *window);

/* An internode rank is lost. */
void oriel_internode_rank_lost(struct oriel_window *window, int32_t rank);

/* Serves ORIEL_INTERNODE_KEY. withdraw ends RDMA to the window's memory, after all ranks have left
 * it. */
void oriel_internode_reply_key(struct oriel_window *window,
                               const struct oriel_net_requester *asker);
void oriel_internode_rdma_withdraw(struct oriel_internode *internode);
void oriel_internode_keys_close(struct oriel_internode *internode);

/* When the window is no longer served. */
void oriel_internode_close(struct oriel_window *window);

/* oriel_wait (ORIEL_WAIT_SIGNALLED) for a word that ranks of any node of the window change. */
static inline enum oriel_status oriel_internode_wait(const struct oriel_window *window,
                                                     _Atomic uint32_t *word,
                                                     _Atomic uint32_t *sleepers, uint32_t at_least,
                                                     const struct oriel_watch *watch)
{
    return oriel_unlikely(window->internode != NULL)
               ? oriel_net_await_word(word, sleepers, at_least, watch)
               : oriel_wait(word, sleepers, ORIEL_WAIT_SIGNALLED, at_least, watch);
}

/* The same for an event. */
static inline enum oriel_status oriel_internode_event_wait(const struct oriel_window *window,
                                                           struct oriel_event *event,
                                                           uint32_t at_least,
                                                           const struct oriel_watch *watch)
{
    return oriel_internode_wait(window, &event->value, &event->sleepers, at_least, watch);
}

#endif
