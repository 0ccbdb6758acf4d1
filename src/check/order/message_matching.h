/* Finds the send that a receive has matched. Both sides number the messages of one communicator,
 * source, destination and tag in posting order. The nth receive takes the clock that the nth send
 * gave. Sends are numbered at the sender. Receives are numbered at the receiver, once no earlier
 * receive can still get their message. Where two orders are possible, the receive takes all
 * candidates. This file uses no MPI; ranks are those of MPI_COMM_WORLD. All functions are
 * thread-safe. */
#ifndef ORIEL_CHECK_ORDER_MESSAGE_MATCHING_H
#define ORIEL_CHECK_ORDER_MESSAGE_MATCHING_H

#include "base/hash_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_ANY = -1 }; /* source or tag of a receive */

/* The peer, destination of a send or source of a receive, and the tag. */
struct oriel_envelope {
    int32_t peer;
    int32_t tag;
};

/* This process's messages of one communicator. */
struct oriel_matching {
    pthread_mutex_t mutex;
    uint64_t id;                        /* the communicator's */
    int32_t rank;                       /* of this process */
    struct oriel_hash_table counts;     /* by envelope: struct envelope_count */
    struct oriel_sending *sending;      /* sends that threads are posting */
    struct oriel_receiving *numbered;   /* outstanding */
    struct oriel_receiving *open_first; /* receives without a number, in the order of posting */
    struct oriel_receiving *open_last;
    uint32_t posting; /* receives whose calls have not returned */
};

/* A send from before its call until it is posted. A send whose call is left by a jump, or with its
 * thread, stays here for ever, and so do its communicator's data: nothing more is known of it. */
struct oriel_sending {
    struct oriel_sending *next;
    struct oriel_envelope envelope;
    uint32_t number;
};

enum oriel_receive_state {
    ORIEL_RECEIVE_NUMBERED,
    ORIEL_RECEIVE_OPEN,
    ORIEL_RECEIVE_GOT, /* open, but its message is known */
};

/* A receive from before its call until its completion. */
struct oriel_receiving {
    struct oriel_receiving *next, *before; /* in one of the two lists */
    struct oriel_envelope wanted;          /* may be ORIEL_ANY */
    struct oriel_envelope got;
    enum oriel_receive_state state;
    uint32_t number;
    bool posting; /* its call has not returned */
    /* another thread has posted a receive at the same time that may get the same message */
    bool uncertain;
};

void oriel_matching_open(struct oriel_matching *matching, uint64_t id, int32_t rank);
void oriel_matching_close(struct oriel_matching *matching);

/* oriel_send_begin numbers a send before it is posted, and gives the clock that the receive takes.
 * It returns NULL when memory is exhausted; all order is then in doubt. Call oriel_send_end after
 * the send's call; failed: nothing was sent. */
struct oriel_sending *oriel_send_begin(struct oriel_matching *matching, struct oriel_envelope to);
void oriel_send_end(struct oriel_matching *matching, struct oriel_sending *sending, bool failed);

/* oriel_receive_post records a receive before it is posted, and returns NULL when memory is
 * exhausted. Call oriel_receive_posted after the call that posts it, unless that call also
 * completes it. Call oriel_receive_got after its completion, with the envelope of the message, or
 * oriel_receive_cancelled if it got none. */
struct oriel_receiving *oriel_receive_post(struct oriel_matching *matching,
                                           struct oriel_envelope from);
void oriel_receive_posted(struct oriel_matching *matching, struct oriel_receiving *receiving);
void oriel_receive_got(struct oriel_matching *matching, struct oriel_receiving *receiving,
                       struct oriel_envelope from);
void oriel_receive_cancelled(struct oriel_matching *matching, struct oriel_receiving *receiving);

/* Whether an incomplete receive is numbered by now, and its number: any thread may number it at any
 * time. */
bool oriel_receive_is_numbered(struct oriel_matching *matching,
                               const struct oriel_receiving *receiving, uint32_t *number);

/* The program frees an active receive: it may still get a message, unseen. */
void oriel_receive_abandoned(struct oriel_matching *matching, struct oriel_receiving *receiving);

/* A probe has seen a message, which remains. (A matching probe is a receive.) */
void oriel_message_seen(struct oriel_matching *matching, struct oriel_envelope from);

#endif
