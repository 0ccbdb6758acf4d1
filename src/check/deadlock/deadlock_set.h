/* The greatest set of ranks of which none can go on: each waits, and what it waits for can only come from ranks of the set, or
 * from those that have finished.  Knows numbers only: who fills in a graph says who waits for whom.  wait_snapshot.c fills in,
 * deadlock.c asks. */
#ifndef ORIEL_CHECK_DEADLOCK_DEADLOCK_SET_H
#define ORIEL_CHECK_DEADLOCK_DEADLOCK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oriel_stuck_state {
    ORIEL_STUCK_COMPUTES, /* or nothing is known of it: it may do anything */
    ORIEL_STUCK_WAITS,
    ORIEL_STUCK_FINISHED, /* will never do anything */
};

/* One need: the ranks that must act before it is fulfilled. */
struct oriel_stuck_clause {
    uint32_t first, count; /* in members; 0: it is being fulfilled */
    uint32_t need;         /* its number in the record */
    bool any;              /* one of them is enough */
    bool maybe;            /* it may be fulfilled already */
};

struct oriel_stuck_rank {
    enum oriel_stuck_state state;
    bool any; /* one clause is enough */
    uint32_t first, count; /* clauses */
};

struct oriel_stuck_graph {
    int n;
    struct oriel_stuck_rank *ranks;
    struct oriel_stuck_clause *clauses;
    uint32_t clauses_count, clauses_room;
    int32_t *members;
    uint32_t members_count, members_room;
    bool failed; /* memory is exhausted: nobody is stuck */
};

/* n ranks that compute; false without memory. */
bool oriel_stuck_open(struct oriel_stuck_graph *graph, int n);
void oriel_stuck_close(struct oriel_stuck_graph *graph);

/* The same as just opened, in the same memory. */
void oriel_stuck_clear(struct oriel_stuck_graph *graph);

/* A rank waits; clauses, and members of the last clause, are added to the rank that was named last. */
void oriel_stuck_wait(struct oriel_stuck_graph *graph, int rank, bool any);
void oriel_stuck_clause(struct oriel_stuck_graph *graph, int rank, uint32_t need, bool any, bool maybe);
void oriel_stuck_member(struct oriel_stuck_graph *graph, int32_t member);

/* Whether the clause cannot be fulfilled while those of the set do nothing. */
bool oriel_stuck_by(const struct oriel_stuck_graph *graph, const struct oriel_stuck_clause *clause, const bool *set);

/* set: those that may be in it; what stays is the greatest set.  Returns how many. */
int oriel_stuck_find(const struct oriel_stuck_graph *graph, bool *set);

#endif
