/* Locks that ranks of other machines want or hold of this process, and the messages of an epoch that does not wait for its lock,
 * as long as that is not held (lazy_lock.c, K2).  The agent's thread alone; target_sync.c calls. */
#ifndef ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H
#define ORIEL_INTERNODE_TARGET_DEFERRED_QUEUE_H

#include "internode/origin/origin_sync.h"

struct oriel_far_kept {
    struct oriel_far_message *first;
    struct oriel_far_message *last;
    size_t len_bytes;
    bool has_unlock; /* the last of all */
    struct oriel_net_asker unlock;
};

enum oriel_far_stage {
    STAGE_COURTESY, /* readers of lock_all that wait go first */
    STAGE_GATE,     /* G3 done: until the readers inside have left */
    STAGE_QUEUE,    /* T1 or R1 done */
    STAGE_HELD,
};

struct oriel_far_lock {
    struct oriel_far_lock *next;
    struct oriel_net_asker asker;
    int32_t from; /* or NOBODY: keeps a place until its turn, for one that has left it (J5) */
    bool exclusive;
    enum oriel_far_stage stage;
    uint32_t admissions; /* of the gate, when it came */
    uint64_t place;
    struct oriel_far_share *share; /* of a lock_all epoch, in the place of a place of its own */
    uint32_t joins; /* by J5, when it came */
    uint64_t since_ns;
    uint64_t looked_ns;
    bool rides; /* its epoch does not wait for it */
    struct oriel_far_kept kept;
};

/* Copies it behind the others; ORIEL_E_NO_MEM.  An unlock needs no memory. */
enum oriel_status oriel_far_keep(struct oriel_far_kept *kept, const struct oriel_net_asker *asker,
                                 const struct oriel_far_head *head, const struct oriel_net_arrived *message, bool is_asked,
                                 oriel_far_again *again);

/* Serves all but the unlock, in their order. */
void oriel_far_kept_serve(struct oriel_window *window, struct oriel_far_kept *kept);

/* The same without doing anything: what was asked is refused, with the thread's message. */
void oriel_far_kept_refuse(struct oriel_far_kept *kept, enum oriel_status status);

/* Who asked is lost. */
void oriel_far_kept_drop(struct oriel_far_kept *kept);

#endif
