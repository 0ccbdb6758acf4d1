/* The finder without its thread, for deadlock.c and tests of it: looks follow each other, and a set of ranks that has not moved
 * long enough comes out. */
#ifndef ORIEL_CHECK_DEADLOCK_DEADLOCK_H
#define ORIEL_CHECK_DEADLOCK_DEADLOCK_H

#include "check/deadlock/wait_snapshot.h"

/* A rank from look to look. */
struct oriel_deadlock_seen {
    uint64_t serial;
    uint64_t since_ns;
    uint32_t looks;         /* with this serial */
    uint64_t ran_ns, turns; /* of the thread that waits, when it was first seen so */
};

struct oriel_deadlock {
    struct oriel_wait_snapshot look;
    struct oriel_deadlock_seen *seen;
    bool *set;
    uint64_t patience_ns; /* a rank has waited so long */
    int found;            /* how many ranks the last look found stuck */
    uint32_t alike;       /* how many looks in a row have found so many */
    bool marks;           /* nothing is found here: another machine looks at all ranks */
};

bool oriel_deadlock_open(struct oriel_deadlock *finder, int world_size, uint64_t patience_ns);
void oriel_deadlock_close(struct oriel_deadlock *finder);

/* Looks.  How many ranks are stuck for good: set and look say which, and how. */
int oriel_deadlock_look(struct oriel_deadlock *finder, uint64_t now_ns);

/* Tells a set that was found. */
void oriel_deadlock_tell(struct oriel_deadlock *finder);

#endif
