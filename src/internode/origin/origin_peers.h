/* Finds the processes of internode ranks, and sends them requests whose replies are needed at
 * once. */
#ifndef ORIEL_INTERNODE_ORIGIN_ORIGIN_PEERS_H
#define ORIEL_INTERNODE_ORIGIN_ORIGIN_PEERS_H

#include "internode/origin/origin_sync.h"

/* A request that a thread waits for. From malloc, since an abandoned wait leaves it to the net. */
struct oriel_internode_question;

const struct oriel_nodes *oriel_internode_nodes(const struct oriel_window *window);

/* Sets the fields that all messages to a rank start with. */
void oriel_internode_address(const struct oriel_window *window, int32_t target,
                             struct oriel_internode_head *head);

/* Returns the net's status, with the rank in front of its reason. The rank stays usable after any
 * status but ORIEL_E_PEER. */
enum oriel_status oriel_internode_send_status(enum oriel_status status, int32_t target);

/* Sends a request and waits for its reply. The caller frees *out; NULL after an error. */
enum oriel_status oriel_internode_question(const struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *peer,
                                           struct oriel_internode_head *head,
                                           struct oriel_internode_question **out);

/* The same, with data (or NULL). */
enum oriel_status oriel_internode_question_with(const struct oriel_window *window, int32_t target,
                                                struct oriel_net_peer *peer,
                                                struct oriel_internode_head *head,
                                                const struct iovec *data,
                                                struct oriel_internode_question **out);

/* The same in two steps. The first queues the request: it leaves with the next message or request,
 * as oriel_net_ask_later does. The second waits for the reply; after an error *question is NULL. */
enum oriel_status oriel_internode_question_queue(const struct oriel_window *window, int32_t target,
                                                 struct oriel_net_peer *peer,
                                                 struct oriel_internode_head *head,
                                                 struct oriel_internode_question **out);
enum oriel_status oriel_internode_question_await(const struct oriel_window *window, int32_t target,
                                                 struct oriel_internode_question **question);

/* Abandons the reply. A request without a reply yet is left to the net. May be NULL. */
void oriel_internode_question_abandon(struct oriel_internode_question *question);

/* The number in its reply; 0 for none. */
uint64_t oriel_internode_question_number(const struct oriel_internode_question *question);

/* The data of its reply, truncated to the room in the question. */
const void *oriel_internode_question_data(const struct oriel_internode_question *question,
                                          size_t *len_bytes);

/* Whether the rank's process still serves the window. ORIEL_E_PEER if it left the window after a
 * death, or is lost; *dead is the rank that died. */
enum oriel_status oriel_internode_check_serving(const struct oriel_window *window, int32_t target,
                                                struct oriel_net_peer *peer, int32_t *dead);

/* For the agent's thread, which cannot wait: returns the rank's process if it is known. Else it
 * asks the leader of the rank's node for it and returns the leader. NULL without memory. */
struct oriel_net_peer *oriel_internode_peer_known(struct oriel_window *window, int32_t target);
void oriel_internode_peers_close(struct oriel_window *window);

/* Records a failed operation for the call that completes operations next, if it is the first or the
 * cause of others. number: of a request-based operation, or 0. */
void oriel_internode_operation_failed(struct oriel_internode *internode, enum oriel_status status,
                                      uint64_t number, const char *text, bool is_cause);

/* Implemented in lazy_lock.c.
 *   - begin: question is the request for a lock that is not awaited.
 *   - await_at: waits for a lazy lock of target. Call it before a step that must not precede the
 *     lock.
 *   - before_message: waits for the lock if the message is too long to be deferred. */
void oriel_lazy_lock_begin(struct oriel_window *window, int32_t target,
                           struct oriel_internode_question *question);
void oriel_lazy_lock_await_at(const struct oriel_window *window, int32_t target);
void oriel_lazy_lock_before_message(const struct oriel_window *window, int32_t target,
                                    const struct iovec *data, unsigned pieces);

#endif
