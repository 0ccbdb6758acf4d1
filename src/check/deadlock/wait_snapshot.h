/* A snapshot of the waits of all processes of this node, or of all nodes: records copied from the
 * checker's shared memory, and the graph that they form. For one thread. */
#ifndef ORIEL_CHECK_DEADLOCK_WAIT_SNAPSHOT_H
#define ORIEL_CHECK_DEADLOCK_WAIT_SNAPSHOT_H

#include "base/deadlock_set.h"
#include "check/deadlock/wait_internal.h"

struct oriel_wait_snapshot_rank {
    uint64_t serial;
    enum oriel_deadlock_set_state state;
    /* NULL: not a rank of this node. With all nodes: a copy, NULL for a computing rank */
    struct oriel_wait_record *record;
    /* valid for waiting ranks once copied; for finished ranks only the site */
    struct oriel_wait_noted noted;
};

/* How nodes are asked, this one included (remote_waits.c). Results are from malloc. NULL: no
 * answer, or no such entry. */
struct oriel_wait_snapshot_remote {
    int (*nodes)(void);
    int (*node_of)(int world_rank);
    struct oriel_wait_report *(*reports)(int node, size_t *count);
    struct oriel_collective_progress *(*progress)(int node, uint64_t id, bool is_window);
    bool (*is_given)(int node, const struct oriel_key *key);
};

struct oriel_wait_snapshot_progress_of;

struct oriel_wait_snapshot {
    int n;
    struct oriel_wait_snapshot_rank *ranks;
    struct oriel_deadlock_set_graph graph;
    const struct oriel_wait_snapshot_remote *remote; /* NULL: ranks of this node only */
    struct oriel_wait_report **reports;              /* by node; valid if remote is set */
    /* progress records of all nodes, as of this snapshot */
    struct oriel_wait_snapshot_progress_of *met;
};

bool oriel_wait_snapshot_open(struct oriel_wait_snapshot *look, int n);
void oriel_wait_snapshot_close(struct oriel_wait_snapshot *look);

/* Reads which ranks wait and which have finished. */
void oriel_wait_snapshot_states(struct oriel_wait_snapshot *look);

/* Reads the current needs of the ranks in set, and removes ranks that have proceeded since. */
void oriel_wait_snapshot_waits(struct oriel_wait_snapshot *look, bool *set);

/* Removes from set the ranks that have proceeded since. */
void oriel_wait_snapshot_recheck(const struct oriel_wait_snapshot *look, bool *set);

/* --- wait_snapshot_remote.c --- */

/* Replaces the states of this node by those of all nodes, and sets set to the ranks that wait
 * steadily. Returns false if a node does not answer. */
bool oriel_wait_snapshot_nodes(struct oriel_wait_snapshot *look, bool *set);

/* Like oriel_wait_snapshot_recheck, for all nodes. */
void oriel_wait_snapshot_nodes_recheck(const struct oriel_wait_snapshot *look, bool *set);
void oriel_wait_snapshot_nodes_close(struct oriel_wait_snapshot *look);

/* Returns the progress record merged from the members' nodes; waiter is the rank that needs it.
 * NULL: some node has freed its record. */
const struct oriel_collective_progress *
oriel_wait_snapshot_progress_of(struct oriel_wait_snapshot *look, int waiter, uint64_t id,
                                bool is_window);

/* --- needs --- */

/* Returns the progress record that a need of the rank names. NULL: nothing is known of it. */
const struct oriel_collective_progress *
oriel_wait_snapshot_need_progress(struct oriel_wait_snapshot *look, int rank,
                                  const struct oriel_wait_need *need);

/* Returns the need from which a clause of the rank was made. */
static inline const struct oriel_wait_need *
oriel_wait_snapshot_need(const struct oriel_wait_snapshot *look, int rank,
                         const struct oriel_deadlock_set_clause *clause)
{
    return &look->ranks[rank].noted.needs[clause->need];
}

/* Whether the member called another function in place of the call that others wait in. */
bool oriel_wait_snapshot_mismatch(const struct oriel_collective_progress *progress, int member,
                                  uint64_t number, uint16_t call);

#endif
