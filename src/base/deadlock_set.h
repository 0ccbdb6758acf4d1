/* Finds deadlocks in a graph of waiting ranks: the greatest set in which each rank waits for ranks
 * of the set, or for ranks that have finished, and a cycle in it. The graph has numbers only,
 * without MPI. */
#ifndef ORIEL_BASE_DEADLOCK_SET_H
#define ORIEL_BASE_DEADLOCK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oriel_deadlock_set_state {
    ORIEL_DEADLOCK_SET_COMPUTES, /* or unknown: it may do anything */
    ORIEL_DEADLOCK_SET_WAITS,
    ORIEL_DEADLOCK_SET_FINISHED, /* never acts again */
};

/* A need: the ranks that must act before the need is fulfilled. */
struct oriel_deadlock_set_clause {
    uint32_t first, count; /* in members; count 0: the need is being fulfilled */
    uint32_t need;         /* index of the need in the caller's record */
    bool any;              /* one member is enough */
    bool maybe;            /* the need may already be fulfilled */
};

struct oriel_deadlock_set_rank {
    enum oriel_deadlock_set_state state;
    bool any;              /* one clause is enough */
    uint32_t first, count; /* range of clauses */
};

struct oriel_deadlock_set_graph {
    int n;
    struct oriel_deadlock_set_rank *ranks;
    struct oriel_deadlock_set_clause *clauses;
    uint32_t clauses_count, clauses_room;
    int32_t *members;
    uint32_t members_count, members_room;
    bool failed; /* out of memory: no rank counts as deadlocked */
};

/* Opens a graph of n computing ranks. Returns false when memory is exhausted. */
bool oriel_deadlock_set_open(struct oriel_deadlock_set_graph *graph, int n);
void oriel_deadlock_set_close(struct oriel_deadlock_set_graph *graph);

/* Resets the graph to its state after opening and keeps its memory. */
void oriel_deadlock_set_clear(struct oriel_deadlock_set_graph *graph);

/* Marks a rank as waiting. Clauses are added to the rank that was marked last, members to the
 * clause that was added last. */
void oriel_deadlock_set_wait(struct oriel_deadlock_set_graph *graph, int rank, bool any);
void oriel_deadlock_set_clause(struct oriel_deadlock_set_graph *graph, int rank, uint32_t need,
                               bool any, bool maybe);
void oriel_deadlock_set_member(struct oriel_deadlock_set_graph *graph, int32_t member);

/* Whether the clause stays unfulfilled while the ranks of the set do not act. */
bool oriel_deadlock_set_by(const struct oriel_deadlock_set_graph *graph,
                           const struct oriel_deadlock_set_clause *clause, const bool *set);

/* Reduces set, on entry the candidates, to the greatest deadlocked set. Returns its size. */
int oriel_deadlock_set_find(const struct oriel_deadlock_set_graph *graph, bool *set);

/* Returns the first rank in the given state that a rank of the set waits for, and the clause that
 * names it. State WAITS considers ranks of the set only. Returns -1 if there is none. */
int32_t oriel_deadlock_set_next(const struct oriel_deadlock_set_graph *graph, const bool *set,
                                int32_t rank, enum oriel_deadlock_set_state state,
                                const struct oriel_deadlock_set_clause **out);

/* Returns the lowest rank of a cycle in a deadlocked set. No rank of the set may wait for finished
 * ranks only. oriel_deadlock_set_next from each rank of the cycle returns the next rank. */
int32_t oriel_deadlock_set_cycle(const struct oriel_deadlock_set_graph *graph, const bool *set);

#endif
