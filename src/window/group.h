/* The processes of a window in the order of its ranks; those on this node are peers. Windows over
 * the same processes share one group, so a process has one array per set of processes and none per
 * window. */
#ifndef ORIEL_WINDOW_GROUP_H
#define ORIEL_WINDOW_GROUP_H

#include "memory/peer.h"

struct oriel_net_peer; /* transport/ucx/net.h */

struct oriel_group {
    struct oriel_group *next;
    uint64_t hash;
    uint32_t references;
    int32_t n;
    struct oriel_peer **peers; /* by win_rank; NULL for a process on another node */
    char **bases;              /* peers[i]->base, or NULL */
    /* n times ORIEL_ACCESS_STATE_ABSENT, for windows without access words of their own; never
     * written */
    _Atomic uint8_t *absent;
    /* NULL where all processes are on this node */
    struct oriel_group_id *ids; /* by win_rank */
    /* by win_rank; NULL for processes on this node, and before the first use */
    _Atomic(struct oriel_net_peer *) *net_peers;
};

struct oriel_group_id {
    uint64_t id[2]; /* of a struct oriel_identity */
};

/* A process and its node. Any number serves as the node's id if it is unique to the node. */
struct oriel_member {
    struct oriel_identity process;
    uint64_t node;
};

/* Finds or creates the group of these n processes; rank is the caller's index among them. Opens the
 * peers on its node that are not open. stride_bytes is the distance between members. Returns
 * ORIEL_E_OTHER with the reason when one of them cannot be reached. */
enum oriel_status oriel_group_acquire(const struct oriel_member *first, size_t stride_bytes,
                                      int32_t n, int32_t rank, struct oriel_group **out);

/* Adds a reference. */
void oriel_group_add_reference(struct oriel_group *group);

void oriel_group_release(struct oriel_group *group);

#endif
