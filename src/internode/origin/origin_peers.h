/* Finding the processes of far ranks, and asking them what must be known at once.  sync/ alone uses it. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_PEERS_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_PEERS_H

#include "internode/origin/origin_sync.h"

/* Whose answer is waited for; from malloc, since a wait that is given up leaves it to the net. */
struct oriel_internode_question;

const struct oriel_machines *oriel_internode_machines(const struct oriel_window *window);

/* Fills in what all messages to a rank begin with. */
void oriel_internode_address(const struct oriel_window *window, int32_t target,
                             struct oriel_internode_head *head);

/* The net's status, with the rank in front of its reason.  All but ORIEL_E_PEER leaves the rank as it is. */
enum oriel_status oriel_internode_missed(enum oriel_status status, int32_t target);

/* Asks and waits; *out is the caller's to free, NULL after an error. */
enum oriel_status oriel_internode_question(const struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *peer,
                                           struct oriel_internode_head *head,
                                           struct oriel_internode_question **out);

/* The same in two: the question leaves with what is told or asked next, as oriel_net_ask_later; and its answer, by which
 * *question becomes NULL after an error. */
enum oriel_status oriel_internode_question_later(const struct oriel_window *window, int32_t target,
                                                 struct oriel_net_peer *peer,
                                                 struct oriel_internode_head *head,
                                                 struct oriel_internode_question **out);
enum oriel_status oriel_internode_question_end(const struct oriel_window *window, int32_t target,
                                               struct oriel_internode_question **question);

/* Nobody awaits its answer any more: what has none yet is left to the net.  May be NULL. */
void oriel_internode_question_leave(struct oriel_internode_question *question);

/* The number that its answer has brought; 0 for none. */
uint64_t oriel_internode_answered(const struct oriel_internode_question *question);

/* The bytes that it has brought, as many as there is room for. */
const void *oriel_internode_answered_bytes(const struct oriel_internode_question *question,
                                           size_t *len_bytes);

/* Whether the rank's process still serves the window: ORIEL_E_PEER where it has left it after a death, or is lost: *dead is who
 * has died. */
enum oriel_status oriel_internode_serves(const struct oriel_window *window, int32_t target,
                                         struct oriel_net_peer *peer, int32_t *dead);

/* For the agent's thread, which cannot wait: the rank's process, or as long as it is not known the leader of its machine, which
 * is asked for it; NULL without memory. */
struct oriel_net_peer *oriel_internode_peer_known(struct oriel_window *window, int32_t target);
void oriel_internode_peers_close(struct oriel_window *window);

/* Of a window's operations: for what completes them next, if it is the first, or the cause of what has failed; number: of a
 * request-based one, or 0. */
void oriel_internode_note_failure(struct oriel_internode *far, enum oriel_status status,
                                  uint64_t number, const char *text, bool is_cause);

/* lazy_lock.c: a lock that is not awaited, whose question this is; and before what must not go with it: any message, or this one
 * where it is too long. */
void oriel_internode_ride_begin(struct oriel_window *window, int32_t target,
                                struct oriel_internode_question *question);
void oriel_internode_settle_at(const struct oriel_window *window, int32_t target);
void oriel_internode_ride(const struct oriel_window *window, int32_t target,
                          const struct iovec *data, unsigned pieces);

#endif
