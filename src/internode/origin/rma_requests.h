/* Request-based operations on internode targets that return data. Keeps each operation's count of
 * outstanding replies, the list of ended operations of the process, and the check that the targets
 * of the others live. An operation ends when all its replies have arrived or its target is lost.
 * Only then is it taken from the list, once. */
#ifndef ORIEL_INTERNODE_ORIGIN_RMA_REQUESTS_H
#define ORIEL_INTERNODE_ORIGIN_RMA_REQUESTS_H

#include "internode/internode.h"

/* One operation, embedded in api/'s record of it.
 *
 * E1: a thread that finds it ended (take_ended) sees the data of its replies and its failure. The
 *     thread that removes the last share from open releases (and acquires the others' shares), then
 *     pushes the operation; taking acquires.
 * E2: open holds a share for the sending thread, so a reply between two messages does not end the
 *     operation. */
struct oriel_rma_request {
    _Atomic uint32_t open; /* outstanding replies, plus one share of the sender */
    int32_t target;
    uint64_t number; /* never used again */
    /* the first failure; written with the net's lock held until it has ended */
    enum oriel_status status;
    char text[200];                        /* its message, except for a lost target */
    _Atomic(struct oriel_net_peer *) peer; /* NULL before the first message */
    struct oriel_rma_request *next_ended;
    struct oriel_rma_request *next, *before; /* list of watched operations */
};

/* An operation without requests of its own, from add to end (api/requests.c: flushes). */
void oriel_rma_request_add(struct oriel_rma_request *pending, int32_t target);

/* Releases a share of open. */
void oriel_rma_request_end(struct oriel_rma_request *pending);

/* From begin to sent, this thread's requests to internode targets belong to the operation. */
void oriel_rma_request_begin(struct oriel_rma_request *pending, int32_t target);
void oriel_rma_request_sent(struct oriel_rma_request *pending);

/* Returns operations that have ended since the last call, linked by next_ended; NULL if there are
 * none. */
struct oriel_rma_request *oriel_rma_request_take_ended(void);

/* Processes replies if any operation is outstanding, and checks from time to time whether the
 * targets live. */
void oriel_rma_request_progress(void);

/* Sets the thread's message to the operation's failure. The window's next flush then does not
 * report it again; window may be NULL. */
enum oriel_status oriel_rma_request_tell(const struct oriel_rma_request *pending,
                                         struct oriel_window *window);

/* --- the requests of an operation --- */

/* Before this thread sends a request: counts it for the operation that the thread has begun, if
 * any. */
void oriel_rma_request_attach(struct oriel_internode_request *request, struct oriel_net_peer *peer);

/* The request could not be sent. */
void oriel_rma_request_detach(struct oriel_internode_request *request);

/* The thread that awaited the request no longer needs it. */
void oriel_rma_request_release(struct oriel_internode_request *request);

#endif
