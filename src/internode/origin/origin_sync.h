/* Synchronisation with ranks on other machines, and what an operation on their memory begins and ends with.  Statuses are those
 * of sync/sync.h; ORIEL_E_PEER also when a machine's link is silent for too long.  rma/, window/ and the rest of sync/ call. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_SYNC_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_SYNC_H

#include "internode/internode.h"

/* The far half of a window of n ranks, which the others know by the id; NULL without memory. */
struct oriel_internode *oriel_internode_make(uint64_t id, int32_t n);
void oriel_internode_free(struct oriel_internode *far);

/* A far rank's process. */
enum oriel_status oriel_internode_peer(const struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer **peer);

/* Before an operation on a far target: its process; inside lock_all the target's lock is taken first if it is not. */
enum oriel_status oriel_internode_enter(struct oriel_window *window, int32_t target,
                                        struct oriel_net_peer **peer);

/* The head's window and from are filled in. */
enum oriel_status oriel_internode_tell(struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer *peer,
                                       struct oriel_internode_head *head, const struct iovec *data,
                                       unsigned pieces);

/* The same, asked; the request is the window's from here on, also after an error.  Its take must call oriel_internode_took first. */
enum oriel_status oriel_internode_ask(struct oriel_window *window, int32_t target,
                                      struct oriel_net_peer *peer,
                                      struct oriel_internode_head *head, const struct iovec *data,
                                      unsigned pieces, struct oriel_internode_request *request);

/* The way of devices to a far target's memory; NULL where its operations are messages. */
struct oriel_net_key *oriel_internode_key(struct oriel_window *window, int32_t target,
                                          struct oriel_net_peer *peer);

/* By that way, of at most ORIEL_NET_DATA_BYTES: put, which has been copied; and get, for which the request is as for
 * oriel_internode_ask. */
enum oriel_status oriel_internode_place(struct oriel_window *window, int32_t target,
                                        struct oriel_net_key *key, uint64_t offset_bytes,
                                        const void *from, size_t len_bytes);
enum oriel_status oriel_internode_fetch(struct oriel_window *window, int32_t target,
                                        struct oriel_net_peer *peer, struct oriel_net_key *key,
                                        uint64_t offset_bytes, size_t len_bytes,
                                        struct oriel_internode_request *request);

/* Keeps what an answer tells of failures; false when there is one, and the answer brings nothing. */
bool oriel_internode_took(struct oriel_internode_request *request,
                          const struct oriel_net_arrived *answer);

/* All operations of this process on a far target, or on all for -1, are complete there and here.  The failure of any. */
enum oriel_status oriel_internode_flush(struct oriel_window *window, int32_t target);

/* The same of what needs no message for it: those by devices, and those that bring something here; what answers have told of
 * failures is left. */
enum oriel_status oriel_internode_flush_placed(struct oriel_window *window, int32_t target);

/* Those that bring something here are complete here, or have failed. */
enum oriel_status oriel_internode_flush_local(struct oriel_window *window, int32_t target);

/* What answers have told of failures since this was asked last; each flush tells it, too. */
enum oriel_status oriel_internode_take_failure(struct oriel_internode *far);

/* The lock of a far target; unlock, and unlock_all for the targets that an operation has locked, flush as well. */
enum oriel_status oriel_internode_lock(struct oriel_window *window, int32_t target, bool exclusive);

/* The same, not awaited: it goes with what follows in its epoch (lazy_lock.c).  What fails is told by what completes operations
 * there.  After oriel_internode_settle, and not where several threads of the program may be in calls at once. */
enum oriel_status oriel_internode_lock_later(struct oriel_window *window, int32_t target,
                                             bool exclusive);

/* Whether there is such a lock, of this process; and waits for it.  Before any other lock is asked for or taken. */
extern uint32_t oriel_internode_rides __attribute__((visibility("hidden")));
void oriel_internode_settle(void);

/* The end of its window, whose epoch was not ended: what is still asked is left to the net. */
void oriel_internode_ride_leave(const struct oriel_internode *far);

/* At the beginning of lock_all, behind its gate: the locks of targets at which the epoch before kept an exclusive lock waiting.
 * One that fails is left to the first operation there. */
void oriel_internode_take_turns(struct oriel_window *window);

/* trusted: by MPI_MODE_NOCHECK, so that no lock was taken, and there is but the flush.  *is_given_back: not where memory lacked to
 * ask for it (ORIEL_E_NO_MEM): then it is held as before. */
enum oriel_status oriel_internode_unlock(struct oriel_window *window, int32_t target, bool trusted,
                                         bool *is_given_back);
enum oriel_status oriel_internode_unlock_all(struct oriel_window *window, bool trusted,
                                             bool *is_given_back);

/* Post to, or complete towards, a far rank, which a process counts in its own entry as well (pscw.c). */
enum oriel_status oriel_internode_post(struct oriel_window *window, int32_t target);
enum oriel_status oriel_internode_complete(struct oriel_window *window, int32_t target);

/* Where a far rank's posts and completes are counted in this process; NULL without memory. */
struct oriel_pscw_counter *oriel_internode_partner(struct oriel_window *window, int32_t rank);

/* Makes the entry of the next partner where there is none, so that it can be counted where there is no memory; false without.
 * With far->mutex held, or before anybody else has it. */
bool oriel_internode_has_spare_partner(struct oriel_internode *far);

/* All ranks of this machine are at the barrier of this number: returns when those of all others are, or *lost is. */
enum oriel_status oriel_internode_barrier(struct oriel_window *window, uint32_t number,
                                          int32_t *lost_rank);

/* Tells all machines that a rank is lost, as far as they can be told. */
void oriel_internode_tell_lost(struct oriel_window *window, int32_t rank);

/* The same to all who wait in barriers here and there, once: they will not open any more. */
void oriel_internode_break(struct oriel_window *window, int32_t rank);

/* --- at the target, in the agent's thread --- */

/* Answers with what has failed so far; data is sent only where nothing has. */
void oriel_internode_answer(struct oriel_window *window, const struct oriel_net_asker *asker,
                            int32_t from, const struct iovec *data, unsigned pieces);

/* The same to what is no operation and no flush: failures are left to the next answer. */
void oriel_internode_answer_well(const struct oriel_net_asker *asker, const struct iovec *data,
                                 unsigned pieces);

/* Answers that it was not done, with the thread's message. */
void oriel_internode_refuse(const struct oriel_net_asker *asker, enum oriel_status status);
void oriel_internode_answers_close(struct oriel_internode *far);

/* A message of this origin has failed, with the thread's message: the next answer tells it. */
void oriel_internode_failed(struct oriel_window *window, int32_t from, enum oriel_status status);

/* Whether a message of an epoch is not to be served now: its lock is not held yet, and again will be called when it is, or was
 * refused. */
typedef void oriel_internode_again(struct oriel_window *window, const struct oriel_net_asker *asker,
                                   const struct oriel_internode_head *head,
                                   const struct oriel_net_arrived *message);
bool oriel_internode_keeps(struct oriel_window *window, const struct oriel_net_asker *asker,
                           const struct oriel_internode_head *head,
                           const struct oriel_net_arrived *message, bool is_asked,
                           oriel_internode_again *again);

/* Any message but an operation's. */
void oriel_internode_serve(struct oriel_window *window, const struct oriel_net_asker *asker,
                           const struct oriel_internode_head *head);

/* Whether a lock of any window is waited for, and goes on with those of one. */
bool oriel_internode_waits(void);
void oriel_internode_look(struct oriel_window *window);

/* A rank elsewhere is lost. */
void oriel_internode_forget(struct oriel_window *window, int32_t rank);

/* ORIEL_INTERNODE_KEY; and the end of what it has told, of a window that all have left. */
void oriel_internode_tell_key(struct oriel_window *window, const struct oriel_net_asker *asker);
void oriel_internode_withdraw(struct oriel_internode *far);
void oriel_internode_keys_close(struct oriel_internode *far);

/* When nobody serves the window any more. */
void oriel_internode_close(struct oriel_window *window);

/* Waits for what ranks of any machine of the window signal. */
static inline enum oriel_status oriel_internode_event_wait(const struct oriel_window *window,
                                                           struct oriel_event *event,
                                                           uint32_t at_least,
                                                           const struct oriel_watch *watch)
{
    return oriel_unlikely(window->far != NULL) ? oriel_net_await_event(event, at_least, watch)
                                               : oriel_event_wait(event, at_least, watch);
}

#endif
