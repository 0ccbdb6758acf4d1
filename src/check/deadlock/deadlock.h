/* The deadlock finder without its thread. It takes consecutive snapshots and reports a set of ranks
 * that has not moved long enough. */
#ifndef ORIEL_CHECK_DEADLOCK_DEADLOCK_H
#define ORIEL_CHECK_DEADLOCK_DEADLOCK_H

#include "check/deadlock/wait_snapshot.h"

/* State of a rank that persists between snapshots. */
struct oriel_deadlock_seen {
    uint64_t serial;
    uint64_t since_ns;
    uint32_t looks;         /* with this serial */
    uint64_t ran_ns, turns; /* of the waiting thread, when this wait was first seen */
};

struct oriel_deadlock {
    struct oriel_wait_snapshot look;
    struct oriel_deadlock_seen *seen;
    bool *set;
    uint64_t patience_ns; /* minimum duration of a wait */
    int found;            /* deadlocked ranks in the last snapshot */
    uint32_t alike;       /* consecutive snapshots that found this number */
    bool marks;           /* only mark steady ranks: another node looks at all ranks */
};

bool oriel_deadlock_open(struct oriel_deadlock *finder, int world_size, uint64_t patience_ns);
void oriel_deadlock_close(struct oriel_deadlock *finder);

/* Takes a snapshot. Returns the number of deadlocked ranks; set and look describe them. */
int oriel_deadlock_find(struct oriel_deadlock *finder, uint64_t now_ns);

/* Reports the set that was found. */
void oriel_deadlock_report(struct oriel_deadlock *finder);

#endif
