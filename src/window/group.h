/* The processes of a window in the order of its ranks, as peers.  Windows over the same processes share one group, so a
 * process keeps one array per set of processes and none per window.  Creation acquires, free releases. */
#ifndef ORIEL_WINDOW_GROUP_H
#define ORIEL_WINDOW_GROUP_H

#include "memory/peer.h"

struct oriel_group {
    struct oriel_group *next;
    uint64_t hash;
    uint32_t references;
    int32_t n;
    struct oriel_peer **peers; /* by win_rank */
    char **bases;              /* peers[i]->base */
    _Atomic uint8_t *absent;   /* n times ORIEL_ACCESS_ABSENT, for windows without access words of their own; never written */
};

/* The group of these n identities; opens the peers that are not open.  stride_bytes leads from one identity to the next.
 * ORIEL_E_OTHER with the reason when one of them cannot be reached. */
enum oriel_status oriel_group_acquire(const struct oriel_identity *first, size_t stride_bytes, int32_t n,
                                      struct oriel_group **out);

/* One more that refers to it. */
void oriel_group_share(struct oriel_group *group);

void oriel_group_release(struct oriel_group *group);

#endif
