/* The epochs of one window as a model sees them from this rank's side, and random synchronisation calls held against it.
 * In a turn nobody else is inside a call, so every call that can succeed returns at once; what would wait is not called.
 * Called by the cases of this folder. */
#ifndef ORIEL_TESTS_FUZZ_EPOCHS_H
#define ORIEL_TESTS_FUZZ_EPOCHS_H

#include "fuzz.h"

enum { FUZZ_RANKS = 16 };

struct epochs {
    int n, me;
    MPI_Comm comm; /* the window's */
    bool fence;    /* the last fence opened an epoch */
    bool used;     /* by an operation that was not refused */
    bool lock_all;
    unsigned char locked[FUZZ_RANKS];
    bool started;
    bool start_to[FUZZ_RANKS];
    bool exposed, exposed_to_self, self_completed;
    int self_posts; /* not yet taken by a start */
};

/* What an operation to this target must get, and afterwards: that it was made, and not refused. */
struct verdict epochs_allow(const struct epochs *epochs, int rank);
void epochs_note_operation(struct epochs *epochs, int rank);

/* One random call; with errors_only none that can succeed. */
void epochs_call(struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only);

/* Where no epoch is open, one to all targets now and then. */
void epochs_open(struct epochs *epochs, MPI_Win win, struct random *random);

/* Ends all that this rank can end by itself. */
void epochs_close(struct epochs *epochs, MPI_Win win);

/* Whether MPI_Win_free and its like must fail. */
struct verdict epochs_all_closed(const struct epochs *epochs);

#endif
