/* The greatest set of ranks of which none can go on: each waits, and what it waits for can only come from ranks of the set, or
 * from those that have finished.  Knows numbers only: who fills in a graph says who waits for whom.  wait_snapshot.c fills in,
 * deadlock.c asks. */
#ifndef ORIEL_CHECK_DEADLOCK_DEADLOCK_SET_H
#define ORIEL_CHECK_DEADLOCK_DEADLOCK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oriel_deadlock_set_state {
    ORIEL_DEADLOCK_SET_COMPUTES, /* or nothing is known of it: it may do anything */
    ORIEL_DEADLOCK_SET_WAITS,
    ORIEL_DEADLOCK_SET_FINISHED, /* will never do anything */
};

/* One need: the ranks that must act before it is fulfilled. */
struct oriel_deadlock_set_clause {
    uint32_t first, count; /* in members; 0: it is being fulfilled */
    uint32_t need;         /* its number in the record */
    bool any;              /* one of them is enough */
    bool maybe;            /* it may be fulfilled already */
};

struct oriel_deadlock_set_rank {
    enum oriel_deadlock_set_state state;
    bool any;              /* one clause is enough */
    uint32_t first, count; /* clauses */
};

struct oriel_deadlock_set_graph {
    int n;
    struct oriel_deadlock_set_rank *ranks;
    struct oriel_deadlock_set_clause *clauses;
    uint32_t clauses_count, clauses_room;
    int32_t *members;
    uint32_t members_count, members_room;
    bool failed; /* memory is exhausted: nobody is stuck */
};

/* n ranks that compute; false without memory. */
bool oriel_deadlock_set_open(struct oriel_deadlock_set_graph *graph, int n);
void oriel_deadlock_set_close(struct oriel_deadlock_set_graph *graph);

/* The same as just opened, in the same memory. */
void oriel_deadlock_set_clear(struct oriel_deadlock_set_graph *graph);

/* A rank waits; clauses, and members of the last clause, are added to the rank that was named last. */
void oriel_deadlock_set_wait(struct oriel_deadlock_set_graph *graph, int rank, bool any);
void oriel_deadlock_set_clause(struct oriel_deadlock_set_graph *graph, int rank, uint32_t need,
                               bool any, bool maybe);
void oriel_deadlock_set_member(struct oriel_deadlock_set_graph *graph, int32_t member);

/* Whether the clause cannot be fulfilled while those of the set do nothing. */
bool oriel_deadlock_set_by(const struct oriel_deadlock_set_graph *graph,
                           const struct oriel_deadlock_set_clause *clause, const bool *set);

/* set: those that may be in it; what stays is the greatest set.  Returns how many. */
int oriel_deadlock_set_find(const struct oriel_deadlock_set_graph *graph, bool *set);

#endif
