/* Which send a receive has got: messages of one communicator, source, destination and tag are numbered by both sides, in the
 * order in which they are posted, and a receive that has got the nth takes what the nth send gave.  Sends are numbered at the
 * sender, receives at the receiver, when it is known that no receive posted earlier can still get their message.  Where two
 * orders are possible, all that can be meant is taken.  No MPI here; ranks are those of MPI_COMM_WORLD.
 * messages*.c call, any thread. */
#ifndef ORIEL_CHECK_ORDER_MESSAGE_MATCHING_H
#define ORIEL_CHECK_ORDER_MESSAGE_MATCHING_H

#include "base/hash_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_ANY = -1 }; /* source or tag of a receive */

/* From whom to whom: of a send its destination, of a receive its source. */
struct oriel_envelope {
    int32_t peer;
    int32_t tag;
};

/* One communicator's messages of this process. */
struct oriel_matching {
    pthread_mutex_t mutex;
    uint64_t id;                      /* the communicator's */
    int32_t rank;                     /* this process */
    struct oriel_hash_table counts;   /* of envelopes: struct envelope_count */
    struct oriel_sending *sending;    /* sends that threads are posting */
    struct oriel_receiving *numbered; /* outstanding */
    struct oriel_receiving
        *open_first; /* receives whose number is not known, in the order of posting */
    struct oriel_receiving *open_last;
    uint32_t posting; /* receives whose calls have not returned */
};

/* A send from before its call until it is posted.  One whose call is left by a jump, or with its thread, is being posted for ever,
 * and so is what it belongs to: more is not known of it. */
struct oriel_sending {
    struct oriel_sending *next;
    struct oriel_envelope envelope;
    uint32_t number;
};

enum oriel_receive_state {
    ORIEL_RECEIVE_NUMBERED,
    ORIEL_RECEIVE_OPEN,
    ORIEL_RECEIVE_GOT, /* open, but what it got is known */
};

/* A receive from before its call until its completion; the caller's memory. */
struct oriel_receiving {
    struct oriel_receiving *next, *before; /* in one of the two lists */
    struct oriel_envelope wanted;          /* may be ORIEL_ANY */
    struct oriel_envelope got;
    enum oriel_receive_state state;
    uint32_t number;
    bool posting;   /* its call has not returned */
    bool uncertain; /* another thread posted one that could get the same, meanwhile */
};

void oriel_matching_open(struct oriel_matching *matching, uint64_t id, int32_t rank);
void oriel_matching_close(struct oriel_matching *matching);

/* Before a send is posted: numbers it and gives what the receive will take; NULL when memory is exhausted, then all order is in
 * doubt.  Behind its call: failed when nothing was sent. */
struct oriel_sending *oriel_send_begin(struct oriel_matching *matching, struct oriel_envelope to);
void oriel_send_end(struct oriel_matching *matching, struct oriel_sending *sending, bool failed);

/* Before a receive is posted; NULL when memory is exhausted.  Behind the call that posts it, unless that has received at once:
 * posted. Behind its completion: got, with what; cancelled, when it got nothing. */
struct oriel_receiving *oriel_receive_post(struct oriel_matching *matching,
                                           struct oriel_envelope from);
void oriel_receive_posted(struct oriel_matching *matching, struct oriel_receiving *receiving);
void oriel_receive_got(struct oriel_matching *matching, struct oriel_receiving *receiving,
                       struct oriel_envelope from);
void oriel_receive_cancelled(struct oriel_matching *matching, struct oriel_receiving *receiving);

/* Whether the number of one that is not over yet is known by now, and which: any thread may settle it meanwhile. */
bool oriel_receive_is_numbered(struct oriel_matching *matching,
                               const struct oriel_receiving *receiving, uint32_t *number);

/* For a program that frees an active receive: it may get a message still, unseen. */
void oriel_receive_abandoned(struct oriel_matching *matching, struct oriel_receiving *receiving);

/* A message that a probe has seen, which stays where it is.  (A matching probe is a receive.) */
void oriel_message_seen(struct oriel_matching *matching, struct oriel_envelope from);

#endif
