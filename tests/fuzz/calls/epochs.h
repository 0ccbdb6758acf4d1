/* A model of one window's epochs from this rank's side, and random synchronisation calls checked
 * against it. In a turn, no other rank is inside a call. Every call that can succeed returns at
 * once; calls that would wait are not made. */
#ifndef ORIEL_TESTS_FUZZ_EPOCHS_H
#define ORIEL_TESTS_FUZZ_EPOCHS_H

#include "fuzz.h"

enum { FUZZ_RANKS = 16 };

struct epochs {
    int n, me;
    MPI_Comm comm; /* the window's communicator */
    bool fence;    /* the last fence opened an epoch */
    bool used;     /* by an accepted operation */
    bool lock_all;
    unsigned char locked[FUZZ_RANKS];
    bool started;
    bool start_to[FUZZ_RANKS];
    bool exposed, exposed_to_self, self_completed;
    int self_posts; /* not yet matched by a start */
};

/* The required answer of an operation on this target; and the notice afterwards that an operation
 * was accepted. */
struct verdict epochs_allow(const struct epochs *epochs, int rank);
void epochs_note_operation(struct epochs *epochs, int rank);

/* One random call. With errors_only, the call cannot succeed. */
void epochs_call(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only);

/* flushes.c: the same for order, flushes of several, and flushes with requests. */
void flushes_call(const struct epochs *epochs, MPI_Win win, struct random *random,
                  bool errors_only);

/* If no epoch is open, sometimes opens one to all targets. */
void epochs_open(struct epochs *epochs, MPI_Win win, struct random *random);

/* Closes every epoch that this rank can close alone. */
void epochs_close(struct epochs *epochs, MPI_Win win);

/* Whether MPI_Win_free and similar calls must fail. */
struct verdict epochs_all_closed(const struct epochs *epochs);

#endif
