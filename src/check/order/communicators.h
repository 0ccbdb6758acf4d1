/* The program's communicators: an id that their members agree on without a message, who they are in MPI_COMM_WORLD, and the
 * numbers of their messages and collectives.  One that has no entry is not modelled: intercommunicators, those of sessions and
 * of processes of another MPI_COMM_WORLD, and those that were made unseen.
 * messages*.c call; what was found stays as long as the communicator or a reference. */
#ifndef ORIEL_CHECK_ORDER_COMMUNICATORS_H
#define ORIEL_CHECK_ORDER_COMMUNICATORS_H

#include "check/deadlock/wait_records.h"
#include "check/order/message_matching.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oriel_comm {
    uint64_t id;
    int size, rank;
    int *world_ranks;            /* NULL: as they are */
    bool is_here;                /* all members are on this machine */
    bool is_reached;             /* order is known of all members */
    _Atomic uint32_t references; /* of the handle, and of what is under way */
    _Atomic uint64_t collectives;
    struct oriel_collective_progress
        *gathering; /* NULL: waits on it are not noted, or for ranks only */
    struct oriel_matching matching;
};

/* NULL when it is not modelled. */
struct oriel_comm *oriel_comm_find(MPI_Comm comm);

/* A communicator of a group's processes that no handle stands for, with a reference and without an id; NULL when one of them is
 * not in MPI_COMM_WORLD.  The caller is a member. */
struct oriel_comm *oriel_comm_of_group(MPI_Group group);

void oriel_comm_hold(struct oriel_comm *comm);
void oriel_comm_release(struct oriel_comm *comm);

static inline bool oriel_comm_has(const struct oriel_comm *comm, int rank)
{
    return rank >= 0 && rank < comm->size;
}

static inline int oriel_comm_world_rank(const struct oriel_comm *comm, int rank)
{
    return comm->world_ranks == NULL ? rank : comm->world_ranks[rank];
}

/* What a call makes communicators of.  parent: NULL when it is not modelled; tag: what else tells calls apart. */
struct oriel_comm_making {
    uint64_t parent_id;
    uint64_t tag;
};
struct oriel_comm_making oriel_comm_making(const struct oriel_comm *parent, const char *call,
                                           int tag);

/* Behind it: the intracommunicator is found from now on, if all its processes are of MPI_COMM_WORLD.  Members that
 * make communicators of one group from one parent make them in one order: the nth such one has the same id for all. */
void oriel_comm_made(const struct oriel_comm_making *making, MPI_Comm comm);

/* The same in two steps, for one that is complete later: its id is drawn now, for the group of like. */
uint64_t oriel_comm_draw(const struct oriel_comm_making *making, const struct oriel_comm *like);
void oriel_comm_add(MPI_Comm comm, uint64_t id);

/* Behind the call that has freed it: what was found under its handle before. */
void oriel_comm_freed(MPI_Comm was, struct oriel_comm *entry);

/* The end of the program's communication: forgets all. */
void oriel_comm_stop(void);

#endif
