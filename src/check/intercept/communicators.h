/* The program's communicators: an id on which the members agree without a message, their ranks in
 * MPI_COMM_WORLD, and the numbers of their messages and collectives. A communicator without an
 * entry is not modelled: intercommunicators, those of sessions, those with processes of another
 * MPI_COMM_WORLD, and those whose creation was not seen. An entry stays valid as long as the
 * communicator or a reference. */
#ifndef ORIEL_CHECK_INTERCEPT_COMMUNICATORS_H
#define ORIEL_CHECK_INTERCEPT_COMMUNICATORS_H

#include "check/deadlock/wait_records.h"
#include "check/order/message_matching.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oriel_comm {
    uint64_t id;
    int size, rank;
    int *world_ranks;            /* NULL: identical */
    bool is_here;                /* all members are on this node */
    bool is_reached;             /* order is known of all members */
    _Atomic uint32_t references; /* of the handle and of outstanding operations */
    _Atomic uint64_t collectives;
    /* NULL: waits on it are not recorded, or for ranks only */
    struct oriel_collective_progress *progress;
    struct oriel_matching matching;
};

/* Returns NULL when it is not modelled. */
struct oriel_comm *oriel_comm_find(MPI_Comm comm);

/* Makes a communicator of a group's processes without a handle or an id, and returns a reference.
 * Returns NULL when a process is not in MPI_COMM_WORLD. The caller is a member. */
struct oriel_comm *oriel_comm_of_group(MPI_Group group);

void oriel_comm_retain(struct oriel_comm *comm);
void oriel_comm_release(struct oriel_comm *comm);

static inline bool oriel_comm_has(const struct oriel_comm *comm, int rank)
{
    return rank >= 0 && rank < comm->size;
}

static inline int oriel_comm_world_rank(const struct oriel_comm *comm, int rank)
{
    return comm->world_ranks == NULL ? rank : comm->world_ranks[rank];
}

/* What a call makes communicators from. parent: NULL when it is not modelled; tag: distinguishes
 * calls. */
struct oriel_comm_origin {
    uint64_t parent_id;
    uint64_t tag;
};
struct oriel_comm_origin oriel_comm_origin(const struct oriel_comm *parent, const char *call,
                                           int tag);

/* Call after the communicator was made: from now on it is found, if it is an intracommunicator with
 * all processes in MPI_COMM_WORLD. Members that make several communicators of one group from one
 * parent make them in the same order: the nth one has the same id on all members. */
void oriel_comm_add_made(const struct oriel_comm_origin *making, MPI_Comm comm);

/* Does the same in two steps for a communicator that is complete later: oriel_comm_id_assign
 * assigns its id now, for the group of like. */
uint64_t oriel_comm_id_assign(const struct oriel_comm_origin *making,
                              const struct oriel_comm *like);
void oriel_comm_add(MPI_Comm comm, uint64_t id);

/* Call after the call that freed it: removes the entry that was found under its handle before. */
void oriel_comm_freed(MPI_Comm was, struct oriel_comm *entry);

/* Ends all entries at the end of the program's communication. */
void oriel_comm_stop(void);

#endif
