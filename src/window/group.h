/* The processes of a window in the order of its ranks, those of this machine as peers.  Windows over the same processes share
 * one group, so a process keeps one array per set of processes and none per window.  Creation acquires, free releases. */
#ifndef ORIEL_WINDOW_GROUP_H
#define ORIEL_WINDOW_GROUP_H

#include "memory/peer.h"

struct oriel_net_peer; /* transport/ucx/net.h */

struct oriel_group {
    struct oriel_group *next;
    uint64_t hash;
    uint32_t references;
    int32_t n;
    struct oriel_peer **peers; /* by win_rank; NULL for a process of another machine */
    char **bases;              /* peers[i]->base, or NULL */
    _Atomic uint8_t *
        absent; /* n times ORIEL_ACCESS_ABSENT, for windows without access words of their own; never written */
    /* NULL where all are of this machine */
    struct oriel_group_id *ids; /* by win_rank */
    _Atomic(struct oriel_net_peer *)
        *net_peers; /* by win_rank; NULL for those of this machine, and before it is needed */
};

struct oriel_group_id {
    uint64_t id[2]; /* of a struct oriel_identity */
};

/* A process, and its machine by any number that is that machine's. */
struct oriel_member {
    struct oriel_identity process;
    uint64_t machine;
};

/* The group of these n processes, one of which is the caller, of rank; opens the peers of its machine that are not open.
 * stride_bytes leads from one to the next.  ORIEL_E_OTHER with the reason when one of them cannot be reached. */
enum oriel_status oriel_group_acquire(const struct oriel_member *first, size_t stride_bytes,
                                      int32_t n, int32_t rank, struct oriel_group **out);

/* One more that refers to it. */
void oriel_group_share(struct oriel_group *group);

void oriel_group_release(struct oriel_group *group);

#endif
