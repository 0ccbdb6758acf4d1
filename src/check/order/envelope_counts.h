/* How many messages of each envelope a communicator has had.  message_matching.c calls, under its lock. */
#ifndef ORIEL_CHECK_ORDER_ENVELOPE_COUNTS_H
#define ORIEL_CHECK_ORDER_ENVELOPE_COUNTS_H

#include "check/order/message_matching.h"

/* How many messages of an envelope were sent, or received by numbered receives. */
struct oriel_envelope_count {
    struct oriel_envelope_count *next;
    struct oriel_envelope envelope;
    uint32_t sent;
    uint32_t received;
};

static inline bool oriel_envelope_same(struct oriel_envelope a, struct oriel_envelope b)
{
    return a.peer == b.peer && a.tag == b.tag;
}

/* The envelope's, made when it is first asked for; NULL when memory is exhausted. */
struct oriel_envelope_count *oriel_envelope_count_of(struct oriel_matching *matching,
                                                     struct oriel_envelope envelope);

void oriel_tallies_free(struct oriel_matching *matching);

#endif
