/* What a process keeps of a window whose ranks are on several machines, and what the processes of two machines tell each other
 * about it.  A target on another machine has mechanism ORIEL_BY_NETWORK in this machine's table of targets: offset is the id of
 * the window there, control_offset the number of its machine.  Creation makes it; sync/ and rma/ work on it.
 *
 * The messages of a window go to the agent of the process at whose rank they are aimed (transport/ucx/net.h), which does there
 * what the origin would do by itself on one machine: so each target has one atomicity domain and one lock. */
#ifndef ORIEL_INTERNODE_INTERNODE_H
#define ORIEL_INTERNODE_INTERNODE_H

#include "base/hash_table.h"
#include "transport/ucx/net.h"
#include "window/window.h"

#include <pthread.h>
#include <stddef.h>

enum oriel_internode_kind {
    ORIEL_INTERNODE_FLUSH, /* asked: all before has been done */
    ORIEL_INTERNODE_PUT,
    ORIEL_INTERNODE_GET,        /* asked */
    ORIEL_INTERNODE_ACCUMULATE, /* asked where it returns the old contents */
    ORIEL_INTERNODE_SWAP,       /* asked */
    ORIEL_INTERNODE_LOCK, /* asked: answered when it is held; a: enum oriel_internode_wanted; b: 1 where its epoch does not wait for it */
    ORIEL_INTERNODE_UNLOCK, /* asked, and a flush as well */
    ORIEL_INTERNODE_POST,
    ORIEL_INTERNODE_COMPLETE,
    ORIEL_INTERNODE_ARRIVED, /* at a barrier, round a: for the machine of the receiver */
    ORIEL_INTERNODE_LOST,    /* rank a of the window, as the sender's machine has found: likewise */
    ORIEL_INTERNODE_ADDRESS, /* asked: identity and address of rank a, of the receiver's machine */
    ORIEL_INTERNODE_KEY, /* asked: how devices reach the receiver's memory; nothing: they do not */
};

enum oriel_internode_wanted {
    ORIEL_INTERNODE_WANTS_SHARED,
    ORIEL_INTERNODE_WANTS_EXCLUSIVE,
    ORIEL_INTERNODE_WANTS_ALL, /* for lock_all, by an operation (internode/target/lock_all_queue.c) */
    ORIEL_INTERNODE_WANTS_ALL_IN_TURN, /* by lock_all itself */
};

/* At most, of heads and data that follow a lock which is not awaited (internode/origin/lazy_lock.c). */
enum { ORIEL_INTERNODE_RIDE_BYTES = 8 << 10 };

/* The head of every message.  The receiver believes nothing of it: window, numbers and ranges are checked there. */
struct oriel_internode_head {
    uint64_t window; /* the receiver's id of it */
    uint32_t kind;   /* enum oriel_internode_kind */
    int32_t from;    /* the sender's rank in the window */
    /* as the kind says: internode/origin/origin_sync.h, internode/origin/origin_rma.h */
    uint64_t a;
    uint64_t b;
    uint32_t c;
    uint32_t d;
};

/* The head of every answer, which ends before the text where nothing failed. */
struct oriel_internode_answer {
    /* enum oriel_status: of the first message of this window and origin that failed since the last answer */
    uint32_t status;
    char text[124]; /* its message */
};
#define ORIEL_INTERNODE_WELL_BYTES offsetof(struct oriel_internode_answer, text)
_Static_assert(sizeof(struct oriel_internode_answer) <= ORIEL_NET_HEAD_BYTES,
               "it is an answer's head");

/* Something asked of a target, with what is to be done with the answer; from malloc, freed by a flush, or by the end of its
 * answer where that comes later (internode/origin/rma_requests.h). */
struct oriel_internode_request {
    struct oriel_net_request net;
    struct oriel_internode_request *next;
    struct oriel_window *window;
    struct oriel_rma_request *pending; /* the request-based operation that it belongs to, or NULL */
    _Atomic uint32_t owners;           /* where there is one */
    int32_t target;
    bool by_device; /* there is no answer, but what was got */
};

/* Of a target, for this process. */
enum oriel_internode_mark {
    ORIEL_INTERNODE_TOLD = 1,     /* something, since the last flush */
    ORIEL_INTERNODE_HELD = 2,     /* its lock, since this lock_all epoch */
    ORIEL_INTERNODE_FOLLOWED = 4, /* the last lock_all epoch kept an exclusive lock waiting there */
    /* something by a device, since it was last asked whether all has arrived */
    ORIEL_INTERNODE_PLACED = 8,
    /* its lock, which was not awaited, and which was not given back yet (internode/origin/lazy_lock.c, K3) */
    ORIEL_INTERNODE_REFUSED = 16,
};

/* In refused: its lock was refused, and its epoch goes on, of which nothing is done (internode/target/target_sync.c, K3). */
enum { ORIEL_INTERNODE_SHUT = 0x80 };

struct oriel_internode {
    uint64_t id; /* of the window, for the others */
    /* its words here are there: messages may be served (internode/target/am_dispatch.c) */
    _Atomic bool is_finished;
    _Atomic bool is_settled; /* it is complete everywhere: messages may be sent */
    uint32_t barriers;       /* so far, by this process; wraps */
    /* by win_rank: struct oriel_pscw_counter in the place of the entry that a rank on this machine would have for this process; its
     * messages count there */
    struct oriel_hash_table partners;
    /* for the next, with room for it in the table; mutex */
    struct oriel_pscw_counter *spare_partner;
    /* win_rank + 1 of the last whose post or complete came where memory lacked to count it; or 0 */
    _Atomic uint32_t uncounted;
    /* that ranks elsewhere want or hold of this process; the agent's thread alone */
    struct oriel_internode_lock *locks;
    /* for one that comes where there is no memory; likewise */
    struct oriel_internode_lock *spare_lock;
    uint32_t rides; /* those of them whose epochs do not wait, and that are not held; likewise */
    /* places of lock_all epochs in its queue, oldest first (internode/target/lock_all_queue.c); likewise */
    struct oriel_internode_share *shares;
    /* by win_rank, enum oriel_status: what a rank's messages failed with and is not told yet; with ORIEL_INTERNODE_SHUT; likewise */
    uint8_t *refused;
    /* the messages that belong to these, but where there was no memory; likewise */
    struct oriel_internode_refusal *refusals;
    /* when it was last seen whether the holders of locks live; these three likewise */
    uint64_t looked_ns;
    /* the own memory, once somebody has asked for a key (internode/target/rkey_target.c); likewise */
    struct oriel_net_exposed *exposed;
    bool is_refused; /* or it cannot be; likewise */
    /* by win_rank + 1: what devices reach its memory with, or that they do not; set with entering */
    struct oriel_hash_table keys;
    /* for asked_rank's process, of a leader (internode/origin/origin_peers.c) */
    struct oriel_internode_question *asked;
    int32_t asked_rank;
    _Atomic uint8_t *marks; /* by win_rank, enum oriel_internode_mark */
    pthread_mutex_t mutex;  /* of all below */
    int32_t *marked;        /* ranks with a mark, each once; room for n */
    int32_t marked_count;
    struct oriel_internode_request *open; /* not awaited yet, newest first */
    unsigned open_count;
    struct oriel_internode_request *put_by; /* one for each lock that is held: for its unlock */
    /* the first that an answer told since the last flush, with its message */
    enum oriel_status failure;
    uint64_t failure_number; /* of the request-based operation whose answer that was, or 0 */
    char failure_text[200];
    pthread_mutex_t entering; /* held while a target's lock is taken inside lock_all */
    /* held by a flush: others wait until it is done; taken before mutex */
    pthread_mutex_t flushing;
};

static inline bool oriel_is_far(const struct oriel_window *window, int32_t win_rank)
{
    return window->targets[win_rank].mechanism == ORIEL_BY_NETWORK;
}

/* --- at the target: the agent's thread alone --- */

/* Messages of an epoch that does not wait for its lock, as long as that is not held (lazy_lock.c, K2). */
struct oriel_internode_kept {
    struct oriel_internode_message *first;
    struct oriel_internode_message *last;
    size_t len_bytes;
    bool has_unlock; /* the last of all */
    struct oriel_net_asker unlock;
};

enum oriel_internode_stage {
    STAGE_COURTESY, /* readers of lock_all that wait go first */
    STAGE_GATE,     /* G3 done: until the readers inside have left */
    STAGE_QUEUE,    /* T1 or R1 done */
    STAGE_HELD,
};

/* A lock that a rank of another machine wants or holds of this process. */
struct oriel_internode_lock {
    struct oriel_internode_lock *next;
    struct oriel_net_asker asker;
    int32_t from; /* or NOBODY: keeps a place until its turn, for one that has left it (J5) */
    bool exclusive;
    enum oriel_internode_stage stage;
    uint32_t admissions; /* of the gate, when it came */
    uint64_t place;
    /* of a lock_all epoch, in the place of a place of its own */
    struct oriel_internode_share *share;
    uint32_t joins; /* by J5, when it came */
    uint64_t since_ns;
    uint64_t looked_ns;
    bool rides; /* its epoch does not wait for it */
    struct oriel_internode_kept kept;
};

#endif
