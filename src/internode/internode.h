/* The state that a process has for a window that spans nodes, and the messages about it. A target
 * on another node has placement ORIEL_PLACEMENT_NETWORK in the window's table of targets: offset is
 * the window's id there, control_offset the number of its node.
 *
 * A message goes to the agent of the target rank's process (transport/ucx/net.h). The agent does
 * there what the origin would do itself on one node. So each target has one atomicity domain and
 * one lock. */
#ifndef ORIEL_INTERNODE_INTERNODE_H
#define ORIEL_INTERNODE_INTERNODE_H

#include "base/hash_table.h"
#include "transport/ucx/net.h"
#include "window/window.h"

#include <pthread.h>
#include <stddef.h>

enum oriel_internode_kind {
    ORIEL_INTERNODE_FLUSH, /* request; the reply follows all earlier work */
    ORIEL_INTERNODE_PUT,
    ORIEL_INTERNODE_GET,        /* request */
    ORIEL_INTERNODE_ACCUMULATE, /* request if it returns the old contents */
    ORIEL_INTERNODE_SWAP,       /* request */
    /* request, replied to when the lock is acquired; a: enum oriel_internode_wanted; b: 1 if the
     * epoch does not wait for it */
    ORIEL_INTERNODE_LOCK,
    ORIEL_INTERNODE_UNLOCK, /* request; also a flush */
    ORIEL_INTERNODE_POST,
    ORIEL_INTERNODE_COMPLETE,
    ORIEL_INTERNODE_ARRIVED, /* at a barrier, round a; for the receiver's node */
    /* rank a of the window is lost, as the sender's node found; for the receiver's node */
    ORIEL_INTERNODE_LOST,
    ORIEL_INTERNODE_ADDRESS, /* request: identity and address of rank a, on the receiver's node */
    /* request: the key for RDMA to the receiver's memory; an empty reply: no RDMA */
    ORIEL_INTERNODE_KEY,
    /* request: opens a memory handle (create/memory_serve.c); a, b: its area and key; data: the
     * sender's net address; the reply is struct oriel_internode_opened */
    ORIEL_INTERNODE_OPEN,
    ORIEL_INTERNODE_CLOSE, /* request: the sender has freed its window */
};

/* What the owner of a memory handle replies. */
struct oriel_internode_opened {
    uint64_t id; /* of the window for the sender's messages */
    uint64_t size_bytes;
    int64_t disp_unit;
    uint64_t window_number;
};

enum oriel_internode_wanted {
    ORIEL_INTERNODE_WANTS_SHARED,
    ORIEL_INTERNODE_WANTS_EXCLUSIVE,
    /* for lock_all, by an operation (internode/target/lock_all_queue.c) */
    ORIEL_INTERNODE_WANTS_ALL,
    ORIEL_INTERNODE_WANTS_ALL_IN_TURN, /* by lock_all itself */
    /* an epoch on a memory handle without a lock: only its withdrawal waits for it */
    ORIEL_INTERNODE_WANTS_NOTHING,
};

/* Limit on the heads and data that may follow a lock that its epoch does not wait for
 * (internode/origin/lazy_lock.c). */
enum { ORIEL_LAZY_LOCK_BYTES = 8 << 10 };

/* The head of every message. The receiver trusts none of it: it validates window, numbers and
 * ranges. */
struct oriel_internode_head {
    uint64_t window; /* the receiver's id of the window */
    uint32_t kind;   /* enum oriel_internode_kind */
    int32_t from;    /* the sender's rank in the window */
    /* a to d depend on kind: internode/origin/origin_sync.h, internode/origin/origin_rma.h */
    uint64_t a;
    uint64_t b;
    uint32_t c;
    uint32_t d;
    /* of an operation: 0, or the number + 1 of the notification that follows it (sync/notify.h) */
    uint32_t notifies;
    uint32_t reserved;
};

/* The head of every reply. Without a failure it ends before the text. */
struct oriel_internode_reply {
    /* enum oriel_status: the first failure among this origin's messages for this window since the
     * last reply */
    uint32_t status;
    char text[124]; /* its message */
};
#define ORIEL_INTERNODE_REPLY_OK_BYTES offsetof(struct oriel_internode_reply, text)
_Static_assert(sizeof(struct oriel_internode_reply) <= ORIEL_NET_HEAD_BYTES,
               "it is an answer's head");

/* A request to a target, with the handling of its reply. From malloc. A flush frees it, or the end
 * of its reply if that comes later (internode/origin/rma_requests.h). */
struct oriel_internode_request {
    struct oriel_net_request net;
    struct oriel_internode_request *next;
    struct oriel_window *window;
    struct oriel_rma_request *pending; /* the request-based operation it belongs to, or NULL */
    _Atomic uint32_t owners;           /* if pending is not NULL */
    uint64_t number;                   /* of the window's open requests, from 1 */
    int32_t target;
    bool is_rdma; /* an RDMA get: the reply is the data alone */
};

/* Flags of a target, for this process. */
enum oriel_internode_target_flag {
    ORIEL_INTERNODE_SENT = 1,   /* messages were sent since the last flush */
    ORIEL_INTERNODE_LOCKED = 2, /* this lock_all epoch has acquired its lock */
    /* the last lock_all epoch kept an exclusive lock waiting there */
    ORIEL_INTERNODE_WRITER_WAITS = 4,
    /* RDMA puts were issued since the last check that all have arrived */
    ORIEL_INTERNODE_RDMA_SENT = 8,
    /* the target refused its lock, which this process did not wait for and has not released yet
     * (internode/origin/lazy_lock.c, K3) */
    ORIEL_INTERNODE_LOCK_REFUSED = 16,
};

/* In refused: the origin's lock was refused and its epoch continues, but the target executes
 * nothing of it (internode/target/target_sync.c, K3). */
enum { ORIEL_INTERNODE_EPOCH_REFUSED = 0x80 };

struct oriel_internode {
    uint64_t id; /* the window's id for other processes */
    /* this process's shared words of the window are ready: messages may be served
     * (internode/target/am_dispatch.c) */
    _Atomic bool is_finished;
    _Atomic bool is_settled; /* the window is complete on all ranks: messages may be sent */
    uint32_t barriers;       /* so far, by this process; wraps */
    /* by win_rank: struct oriel_pscw_counter for each internode partner. On one node the partner
     * would have such an entry for this process. The partner's messages are counted here. */
    struct oriel_hash_table partners;
    /* for the next partner, with room reserved in the table; mutex */
    struct oriel_pscw_counter *spare_partner;
    /* win_rank + 1 of the last rank whose post or complete could not be counted for lack of memory;
     * or 0 */
    _Atomic uint32_t uncounted;
    /* locks of this process that internode ranks wait for or hold; agent's thread only */
    struct oriel_internode_lock *locks;
    /* for a lock that arrives without memory; agent's thread only */
    struct oriel_internode_lock *spare_lock;
    /* the locks above that their epochs do not wait for and that are not held yet; agent's thread
     * only */
    uint32_t lazy_locks;
    /* positions of lock_all epochs in its queue, oldest first (internode/target/lock_all_queue.c);
     * agent's thread only */
    struct oriel_internode_share *shares;
    /* by win_rank, enum oriel_status: the unreported failure of a rank's messages; may hold
     * ORIEL_INTERNODE_EPOCH_REFUSED; agent's thread only */
    uint8_t *refused;
    /* the error messages for refused, except where memory was short; agent's thread only */
    struct oriel_internode_refusal *refusals;
    /* when the liveness of lock holders was last checked; agent's thread only */
    uint64_t looked_ns;
    /* this process's exposed memory, after the first request for a key
     * (internode/target/rkey_target.c); agent's thread only */
    struct oriel_net_exposed *exposed;
    bool is_refused; /* its memory is not exposed, or cannot be; agent's thread only */
    /* by win_rank + 1: the RDMA key of the rank's memory, or a mark that it has none; set with
     * entering held */
    struct oriel_hash_table keys;
    /* request to a leader for asked_rank's process (internode/origin/origin_peers.c) */
    struct oriel_internode_question *asked;
    int32_t asked_rank;
    _Atomic uint8_t *target_flags; /* by win_rank, enum oriel_internode_target_flag */
    pthread_mutex_t mutex;         /* protects all below */
    int32_t *flagged;              /* ranks with a flag, each once; room for n */
    int32_t flagged_count;
    struct oriel_internode_request *open; /* requests not awaited yet, newest first */
    unsigned open_count;
    uint64_t opened; /* number of open requests so far */
    /* preallocated requests, one for the unlock of each held lock */
    struct oriel_internode_request *unlock_requests;
    /* the first failure that a reply reported since the last flush, with its message */
    enum oriel_status failure;
    uint64_t failure_number; /* the request-based operation of that reply, or 0 */
    char failure_text[200];
    pthread_mutex_t entering; /* held while lock_all acquires a target's lock */
    /* held by a flush, so other flushes wait until it is done; acquired before mutex */
    pthread_mutex_t flushing;
};

static inline bool oriel_is_internode(const struct oriel_window *window, int32_t win_rank)
{
    return window->targets[win_rank].placement == ORIEL_PLACEMENT_NETWORK;
}

/* --- at the target: agent's thread only --- */

/* Messages deferred until their epoch's lock is acquired (lazy_lock.c, K2). */
struct oriel_internode_deferred {
    struct oriel_internode_message *first;
    struct oriel_internode_message *last;
    size_t len_bytes;
    bool has_unlock; /* after all other messages */
    struct oriel_net_requester unlock;
};

enum oriel_internode_stage {
    STAGE_COURTESY, /* lets waiting lock_all readers enter first */
    STAGE_GATE,     /* G3 done: waits until the readers inside have left */
    STAGE_QUEUE,    /* T1 or R1 done */
    STAGE_HELD,
};

/* A lock of this process that an internode rank waits for or holds. */
struct oriel_internode_lock {
    struct oriel_internode_lock *next;
    struct oriel_net_requester asker;
    /* or NO_RANK: holds a position until its turn, for an origin that moved to another (J5) */
    int32_t from;
    bool exclusive;
    enum oriel_internode_stage stage;
    uint32_t admissions; /* the gate's admissions when the request arrived */
    uint64_t place;
    /* the shared position of a lock_all epoch; place is unused then */
    struct oriel_internode_share *share;
    uint32_t joins; /* the first position's joins by J5 when the request arrived */
    uint64_t since_ns;
    uint64_t looked_ns;
    bool is_lazy; /* its epoch does not wait for it */
    bool is_bare; /* ORIEL_INTERNODE_WANTS_NOTHING: it has no position in the queue */
    struct oriel_internode_deferred deferred;
};

#endif
