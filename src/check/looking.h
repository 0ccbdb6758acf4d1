/* One look at what all processes of the machine wait for: records copied from the board, and the graph that they make.
 * deadlock.c calls, in one thread. */
#ifndef ORIEL_CHECK_LOOKING_H
#define ORIEL_CHECK_LOOKING_H

#include "check/stuck.h"
#include "check/waits_parts.h"

struct oriel_looked {
    uint64_t serial;
    enum oriel_stuck_state state;
    const struct oriel_wait_record *record; /* NULL: none of this machine */
    struct oriel_wait_noted noted;          /* of those that wait, once filled in; of those that have finished the site */
};

struct oriel_look {
    int n;
    struct oriel_looked *ranks;
    struct oriel_stuck_graph graph;
};

bool oriel_look_open(struct oriel_look *look, int n);
void oriel_look_close(struct oriel_look *look);

/* Who waits, and who has finished. */
void oriel_look_states(struct oriel_look *look);

/* What those of the set wait for, as it is now; who has gone on since is taken out. */
void oriel_look_waits(struct oriel_look *look, bool *set);

/* Takes out of the set who has gone on since. */
void oriel_look_again(const struct oriel_look *look, bool *set);

/* The need that a clause of the rank is made of. */
static inline const struct oriel_wait_need *oriel_look_need(const struct oriel_look *look, int rank,
                                                            const struct oriel_stuck_clause *clause)
{
    return &look->ranks[rank].noted.needs[clause->need];
}

/* Whether the member has called something else in the place of the call that others wait in. */
bool oriel_look_mismatch(const struct oriel_gathering *gathering, int member, uint64_t number, uint16_t call);

#endif
