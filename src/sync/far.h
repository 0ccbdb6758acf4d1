/* Synchronisation with ranks on other machines, and what an operation on their memory begins and ends with.  Statuses are those
 * of sync/sync.h; ORIEL_E_PEER also when a machine's link is silent for too long.  ops/, window/ and the rest of sync/ call. */
#ifndef ORIEL_SYNC_FAR_H
#define ORIEL_SYNC_FAR_H

#include "window/far.h"

/* Before an operation on a far target: its process, connected; inside lock_all the target's lock is taken first if it is not. */
enum oriel_status oriel_far_enter(struct oriel_window *window, int32_t target, struct oriel_net_peer **peer);

/* The head's window and from are filled in. */
enum oriel_status oriel_far_tell(struct oriel_window *window, int32_t target, struct oriel_net_peer *peer,
                                 struct oriel_far_head *head, const struct iovec *data, unsigned pieces);

/* The same, asked; the request is the window's from here on, also after an error.  Its take must call oriel_far_took first. */
enum oriel_status oriel_far_ask(struct oriel_window *window, int32_t target, struct oriel_net_peer *peer,
                                struct oriel_far_head *head, const struct iovec *data, unsigned pieces,
                                struct oriel_far_request *request);

/* Keeps what an answer tells of failures; false when there is one, and the answer brings nothing. */
bool oriel_far_took(struct oriel_far_request *request, const struct oriel_net_arrived *answer);

/* All operations of this process on a far target, or on all for -1, are complete there and here.  The failure of any. */
enum oriel_status oriel_far_flush(struct oriel_window *window, int32_t target);

/* --- at the target, in the agent's thread --- */

/* Answers with what has failed so far; data is sent only where nothing has. */
void oriel_far_answer(struct oriel_window *window, const struct oriel_net_asker *asker, int32_t from, const struct iovec *data,
                      unsigned pieces);

/* A message of this origin has failed, with the thread's message: the next answer tells it. */
void oriel_far_failed(struct oriel_window *window, int32_t from, enum oriel_status status);

#endif
