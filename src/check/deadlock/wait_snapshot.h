/* One look at what all processes of the machine, or of all machines, wait for: records copied from the board, and the graph that
 * they make.  deadlock.c calls, in one thread. */
#ifndef ORIEL_CHECK_DEADLOCK_WAIT_SNAPSHOT_H
#define ORIEL_CHECK_DEADLOCK_WAIT_SNAPSHOT_H

#include "check/deadlock/deadlock_set.h"
#include "check/deadlock/wait_internal.h"

struct oriel_wait_snapshot_rank {
    uint64_t serial;
    enum oriel_deadlock_set_state state;
    struct oriel_wait_record
        *record; /* NULL: none of this machine; of all machines a copy, NULL of who computes */
    struct oriel_wait_noted
        noted; /* of those that wait, once filled in; of those that have finished the site */
};

/* How machines are asked (remote_waits.c), this one too.  What is returned is from malloc; NULL: no answer, or there is none. */
struct oriel_wait_snapshot_remote {
    int (*machines)(void);
    int (*machine_of)(int world_rank);
    struct oriel_wait_report *(*reports)(int machine, size_t *count);
    struct oriel_collective_progress *(*gathering)(int machine, uint64_t id, bool is_window);
    bool (*is_given)(int machine, const struct oriel_key *key);
};

struct oriel_wait_snapshot_met;

struct oriel_wait_snapshot {
    int n;
    struct oriel_wait_snapshot_rank *ranks;
    struct oriel_deadlock_set_graph graph;
    const struct oriel_wait_snapshot_remote *far; /* NULL: this machine's ranks only */
    struct oriel_wait_report **reports;           /* by machine; then */
    struct oriel_wait_snapshot_met *met; /* gatherings, as all machines had them in this look */
};

bool oriel_wait_snapshot_open(struct oriel_wait_snapshot *look, int n);
void oriel_wait_snapshot_close(struct oriel_wait_snapshot *look);

/* Who waits, and who has finished. */
void oriel_wait_snapshot_states(struct oriel_wait_snapshot *look);

/* What those of the set wait for, as it is now; who has gone on since is taken out. */
void oriel_wait_snapshot_waits(struct oriel_wait_snapshot *look, bool *set);

/* Takes out of the set who has gone on since. */
void oriel_wait_snapshot_again(const struct oriel_wait_snapshot *look, bool *set);

/* --- wait_snapshot_remote.c --- */

/* In the place of this machine's states those of all machines; set: who waits steadily.  False: a machine does not answer. */
bool oriel_wait_snapshot_nodes(struct oriel_wait_snapshot *look, bool *set);

/* As oriel_wait_snapshot_again, of all machines. */
void oriel_wait_snapshot_nodes_again(const struct oriel_wait_snapshot *look, bool *set);
void oriel_wait_snapshot_nodes_close(struct oriel_wait_snapshot *look);

/* As its members on all machines have come to it; NULL: not all of them know it any more.  waiter: whose need it is. */
const struct oriel_collective_progress *
oriel_wait_snapshot_met(struct oriel_wait_snapshot *look, int waiter, uint64_t id, bool is_window);

/* --- needs --- */

/* The gathering of a need of the rank's; NULL: nothing is known of it. */
const struct oriel_collective_progress *
oriel_wait_snapshot_gathering(struct oriel_wait_snapshot *look, int rank,
                              const struct oriel_wait_need *need);

/* The need that a clause of the rank is made of. */
static inline const struct oriel_wait_need *
oriel_wait_snapshot_need(const struct oriel_wait_snapshot *look, int rank,
                         const struct oriel_deadlock_set_clause *clause)
{
    return &look->ranks[rank].noted.needs[clause->need];
}

/* Whether the member has called something else in the place of the call that others wait in. */
bool oriel_wait_snapshot_mismatch(const struct oriel_collective_progress *gathering, int member,
                                  uint64_t number, uint16_t call);

#endif
