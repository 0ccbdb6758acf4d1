/* Request-based operations on far targets that bring something back: the count of answers that each still waits for, those of the
 * process whose last answer has come, and the watch over the others.  An operation has ended when all its answers have come or
 * its target is lost; only then is it taken, once.  internode/origin/origin_sync.c counts, api/ begins and takes. */
#ifndef ORIEL_INTERNODE_ORIGIN_RMA_REQUESTS_H
#define ORIEL_INTERNODE_ORIGIN_RMA_REQUESTS_H

#include "internode/internode.h"

/* One operation: part of what api/ keeps of it.
 *
 * E1: a thread that finds it ended (take_ended) sees what its answers brought and its failure: the last to take its share off
 *     open releases (and acquires the others' shares), then pushes it; taking acquires.
 * E2: open holds a share for the thread that sends, so that an answer that comes between two messages ends nothing. */
struct oriel_rma_request {
    _Atomic uint32_t open; /* messages whose answers have not come, and one share of the sender's */
    int32_t target;
    uint64_t number; /* never used again */
    /* the first failure; written with the net's lock held until it has ended */
    enum oriel_status status;
    char text[200];                        /* its message, but for a target that is lost */
    _Atomic(struct oriel_net_peer *) peer; /* NULL before the first message */
    struct oriel_rma_request *next_ended;
    struct oriel_rma_request *next, *before; /* of those that are watched */
};

/* From here to oriel_rma_request_sent what this thread asks of far targets belongs to the operation. */
void oriel_rma_request_begin(struct oriel_rma_request *pending, int32_t target);
void oriel_rma_request_sent(struct oriel_rma_request *pending);

/* Those that have ended since the last call, linked by next_ended; NULL when there is none. */
struct oriel_rma_request *oriel_rma_request_take_ended(void);

/* Takes messages' answers, if any operation waits for one, and looks now and then whether the targets live. */
void oriel_rma_request_progress(void);

/* The message of its failure becomes the thread's, and the window's next flush does not tell it again; window may be NULL. */
enum oriel_status oriel_rma_request_tell(const struct oriel_rma_request *pending,
                                         struct oriel_window *window);

/* --- for internode/origin/origin_sync.c --- */

/* A message of this thread is about to be asked: it counts for the operation that the thread has begun, or for none. */
void oriel_rma_request_attach(struct oriel_internode_request *request, struct oriel_net_peer *peer);

/* It could not be asked. */
void oriel_rma_request_detach(struct oriel_internode_request *request);

/* Who has awaited the request is done with it. */
void oriel_rma_request_release(struct oriel_internode_request *request);

#endif
