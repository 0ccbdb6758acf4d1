/* A window's state in shared memory. One struct oriel_common per window and node is in the memory
 * file of the node's lowest rank (its leader). One struct oriel_control per window and rank is in
 * that rank's own file; its size does not depend on the number of ranks. A word that two processes
 * write is alone on its cache line, or next to words of the same writers.
 *
 * Death: a killed process leaves its words unchanged. A thread that waits for more than 100 ms
 * checks that the processes that can block it are alive (internode/origin/liveness.h). If one is
 * dead, it returns an error that names it. A word that blocks because of a dead process stays as it
 * is, and every later waiter gets the same error. */
#ifndef ORIEL_WINDOW_SHARED_H
#define ORIEL_WINDOW_SHARED_H

#include "base/atomic.h"
#include "base/identity.h"
#include "base/wait.h"

#include <stdalign.h>
#include <stddef.h>

/* Where a target's memory is, which decides how origins reach it; the same for all origins. */
enum oriel_placement {
    ORIEL_PLACEMENT_DIRECT, /* load and store, in a memory file at offset */
    /* copied at address, by CMA or by the target's agent, depending on the window's by_agent */
    ORIEL_PLACEMENT_COPY,
    ORIEL_PLACEMENT_MIXED,   /* promoted pages: load and store in the middle, copies at both ends */
    ORIEL_PLACEMENT_NETWORK, /* on another node: messages to its agent (internode/internode.h) */
    /* per address, from the target's table of regions: dynamic windows, memory of several kinds */
    ORIEL_PLACEMENT_REGIONS,
    ORIEL_PLACEMENT_DEVICE, /* memory of a GPU at address, copied by its driver */
};

/* One target's window. The node leader writes it before creation ends; read-only afterwards. */
struct oriel_target {
    /* ORIEL_PLACEMENT_DIRECT, ORIEL_PLACEMENT_MIXED: of the first byte, in the memory file that
     * contains it. ORIEL_PLACEMENT_DEVICE: of struct oriel_gpu_shared, in the target's own */
    uint64_t offset;
    /* bytes that every origin loads and stores: all, none, or those from direct_low on */
    uint64_t direct_bytes;
    int64_t disp_unit;   /* above 0 */
    uint64_t size_bytes; /* 0 or more */
    uint64_t address; /* of the first byte in the target's address space; 0 for a dynamic window */
    uint64_t control_offset; /* of its struct oriel_control, in its own memory file */
    uint64_t placement;      /* enum oriel_placement */
    uint64_t direct_low;     /* byte of the window; above 0 only for ORIEL_PLACEMENT_MIXED */
};
_Static_assert(sizeof(struct oriel_target) == ORIEL_CACHE_LINE, "shared by all ranks of a node");

/* The gate between lock_all and exclusive locks (sync/lock_all_gate.c has the argument). word:
 * readers (open lock_all epochs) in the upper half, writers (exclusive locks requested or owned) in
 * the lower half. */
struct oriel_lock_all_gate {
    union {
        _Atomic uint64_t word;
        struct {
            _Atomic uint32_t writers;
            _Atomic uint32_t readers;
        } half;
    };
    _Atomic uint32_t writer_sleepers; /* sleeping until readers is 0 */
    _Atomic uint32_t reader_sleepers; /* sleeping until writers is 0 */
    _Atomic uint32_t readers_waiting; /* waiting lock_all calls */
    struct oriel_event admissions;    /* lock_all calls that waited and were admitted */
    /* of these, the calls admitted while writers wait for readers (G6) */
    _Atomic uint32_t joins;
};

struct oriel_common {
    alignas(ORIEL_CACHE_LINE) uint32_t version;
    int32_t n;    /* ranks of the window */
    int32_t here; /* ranks on this node, which share these words */
    /* 0, or the dead rank's win_rank + 1, permanently, once a rank has left a barrier because of
     * it */
    _Atomic uint32_t broken;
    /* from the start of this struct to struct oriel_nodes; 0 on a single node */
    uint64_t nodes_offset;
    struct oriel_event departed; /* ranks that will not touch this struct any more */
    /* threads of this node that sleep until memory of the window changes (sync/memory_wait.c) */
    _Atomic uint32_t memory_sleepers;
    /* at all barriers so far; wraps (sync/barrier.c) */
    alignas(ORIEL_CACHE_LINE) struct oriel_event arrivals;
    alignas(ORIEL_CACHE_LINE) struct oriel_lock_all_gate gate;
    /* targets whose bulk is 1, or about to become 1 (sync/atomic_mode.h) */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t bulk_targets;
    alignas(ORIEL_CACHE_LINE) struct oriel_target targets[]; /* by win_rank */
};

/* FIFO reader-writer lock (sync/ticket.c has the argument). All counters are modulo 2^32. queue:
 * tickets issued to writers in the upper half, readers that entered in the lower half. The lock is
 * free when serving and departed equal these halves. */
struct oriel_ticket {
    _Atomic uint64_t queue;
    /* the ticket that owns the lock, or is next; changed by its writer */
    _Atomic uint32_t serving;
    _Atomic uint32_t departed; /* readers that have left */
    _Atomic uint32_t serving_sleepers;
    _Atomic uint32_t departed_sleepers;
};

/* Mutual exclusion for accumulates that the CPU cannot perform in one instruction
 * (sync/accumulate_mutex.c): 0 free, otherwise the owner's win_rank + 1, with the top bit set when
 * a thread sleeps. */
struct oriel_accumulate_mutex {
    _Atomic uint32_t word;
};

/* The owner's counters for one peer (sync/pscw.c; sync/pscw_counters.c creates and finds entries).
 * Only the owner writes them, except the sleepers, which the peer writes. */
struct oriel_pscw_counter {
    _Atomic uint32_t peer; /* win_rank + 1; 0: a free entry, all zero. Constant once set */
    _Atomic uint32_t seen; /* written by the peer, to save cache misses: pscw.c */
    /* for the owner: offset of the peer's entry for the owner, in the peer's memory file; 0: not
     * found yet */
    _Atomic uint64_t theirs;
    struct oriel_event posts;     /* exposure epochs that the owner opened to the peer; wraps */
    struct oriel_event completes; /* access epochs to the peer that the owner completed; wraps */
};
_Static_assert(sizeof(struct oriel_pscw_counter) == 32, "two on a cache line, none on two");

/* In the owner's memory file; each table refers to the previous one. older and capacity are set
 * before it is published. */
struct oriel_pscw_counter_table {
    uint64_t older;    /* offset of the previous table in the same file; 0: none */
    uint64_t capacity; /* a power of two */
    uint64_t count;    /* used entries, at most half; only the owner reads it */
    uint64_t reserved;
    struct oriel_pscw_counter entries[];
};

struct oriel_pscw_counters {
    _Atomic uint64_t newest; /* offset of a table; 0: none yet */
    struct oriel_event made; /* number of entries so far */
};

/* A counter of notifications, alone on its cache line (sync/notify.c has the argument). */
struct oriel_notify_counter {
    alignas(ORIEL_CACHE_LINE) union {
        _Atomic uint64_t arrived;     /* so far */
        _Atomic uint32_t arrived_low; /* what waits look at */
    };
    _Atomic uint32_t sleepers;
};

/* A rank's counters, in its memory file. */
struct oriel_notify_area {
    struct oriel_event any; /* changes at notifications that find sleepers */
    struct oriel_notify_counter counters[];
};
_Static_assert(sizeof(struct oriel_notify_counter) == ORIEL_CACHE_LINE, "origins differ");

/* The owner's current access to target i: written by the owner, read by threads that wait for a
 * lock on i. */
enum oriel_access_state {
    ORIEL_ACCESS_STATE_NONE,
    ORIEL_ACCESS_STATE_WAITING, /* for a lock */
    /* none, in a window without access words (sync/access_words.c); never in shared memory */
    ORIEL_ACCESS_STATE_ABSENT,
    ORIEL_ACCESS_STATE_SHARED, /* operations are allowed from this value on */
    ORIEL_ACCESS_STATE_EXCLUSIVE,
    ORIEL_ACCESS_STATE_NOCHECK, /* locked with MPI_MODE_NOCHECK, which blocks no other lock */
    ORIEL_ACCESS_STATE_STARTED,
    /* of a memory handle's holder on another node, which is lost with a lock (window/holders.h) */
    ORIEL_ACCESS_STATE_LOST,
};

/* Whether the access is one that MPI_Win_lock grants. */
static inline bool oriel_access_is_lock(uint8_t access)
{
    return access >= ORIEL_ACCESS_STATE_SHARED && access < ORIEL_ACCESS_STATE_STARTED;
}

/* Bytes [start, end) in the owner's address space that are reached the same way. One attach call
 * may add several regions; all but the first are marked as CONTINUES. */
struct oriel_region {
    _Atomic uint64_t start;
    _Atomic uint64_t end;
    /* 0: reached by copies; otherwise the offset of start in the owner's memory file, or of the
     * struct oriel_gpu_shared of device memory. The upper bits contain marks. */
    _Atomic uint64_t place;
};
#define ORIEL_REGION_CONTINUES     (UINT64_C(1) << 63)
#define ORIEL_REGION_DEVICE        (UINT64_C(1) << 62)
#define ORIEL_REGION_OFFSET(place) ((place) & ~(ORIEL_REGION_CONTINUES | ORIEL_REGION_DEVICE))

/* An array of struct oriel_region, sorted by start, in the owner's memory file. */
struct oriel_region_table {
    _Atomic uint64_t offset;
    _Atomic uint64_t count;
};

/* The memory of an ORIEL_PLACEMENT_REGIONS target (create/regions.c has the argument). Only the
 * owner writes it. version increases by 2 per change, so tables[version / 2 % 2] is the current
 * table; it is odd while the other table is being updated. It never wraps in 64 bits. After the
 * owner's death, the current table stays valid. */
struct oriel_regions {
    _Atomic uint64_t version;
    struct oriel_region_table tables[2];
};

/* a mark in remote_owner: the lock is exclusive; in remote_lost: the lock of a lost rank was
 * exclusive */
#define ORIEL_INTERNODE_EXCLUSIVE UINT32_C(0x80000000)

struct oriel_control {
    alignas(ORIEL_CACHE_LINE) struct oriel_ticket lock;
    alignas(ORIEL_CACHE_LINE) struct oriel_accumulate_mutex accumulate;
    /* since the last bulk update; this word and the next are protected by accumulate */
    uint32_t single_updates_in_a_row;
    /* number in a row that ends bulk mode; 0 before the first bulk update */
    uint32_t single_updates_to_leave_bulk;
    /* 1: single elements, too, are updated under accumulate (sync/atomic_mode.h) */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t bulk;
    /* 1 from the first swap of 16 bytes on (sync/atomic_mode.h) */
    _Atomic uint32_t wide;
    /* 1 while the owner requests or owns lock_all */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t lock_all;
    /* win_rank + 1 of a lost remote rank that was in this lock's queue */
    _Atomic uint32_t remote_lost;
    /* win_rank + 1 of a remote rank that owns this target's lock; 0: none */
    _Atomic uint32_t remote_owner;
    _Atomic uint32_t promoted; /* 1 once user memory of the window has been promoted */
    /* 1 once memory of a GPU has been attached; written before the memory is in the table */
    _Atomic uint32_t has_device;
    /* 0, or win_rank + 1 of the dead rank because of which the owner has left the window. The
     * owner then accesses no other rank's memory, and no rank need wait for it. */
    _Atomic uint32_t abandoned;
    /* of struct oriel_window_record (observe/stats/record.h), in the owner's file; 0: none */
    _Atomic uint64_t record_offset;
    /* of struct oriel_common, if the owner leads one of several nodes; set once */
    _Atomic uint64_t common_offset;
    /* of struct oriel_notify_area, in the owner's file, and the number of counters; set before the
     * window exists */
    uint64_t notify_offset;
    uint32_t notify_count;
    /* of struct oriel_handle_list (window/holders.h), in the owner's file; 0: no handle so far */
    _Atomic uint64_t handles_offset;
    alignas(ORIEL_CACHE_LINE) struct oriel_regions regions;
    struct oriel_pscw_counters partners;
    /* of _Atomic uint8_t [n], enum oriel_access_state, in the owner's file; 0: all NONE. Set
     * once */
    _Atomic uint64_t access_offset;
};
_Static_assert(sizeof(struct oriel_control) == 5 * ORIEL_CACHE_LINE,
               "fields that change seldom are on one cache line");

static inline uint64_t oriel_common_bytes(int32_t n)
{
    return sizeof(struct oriel_common) + (uint64_t)n * sizeof(struct oriel_target);
}

/* The process that answers for a node: its leader. Written together with the table of targets. */
struct oriel_node_entry {
    struct oriel_identity process;
    int32_t leader;         /* win_rank */
    uint32_t address_bytes; /* length of its net address */
    uint64_t address;       /* relative to struct oriel_nodes */
};

enum { ORIEL_BARRIER_ROUNDS = 31 };

/* The nodes of a window. arrived[k] counts the messages of round k of all barriers so far
 * (sync/barrier.c); the leader's agent writes it. */
struct oriel_nodes {
    int32_t count;
    int32_t own;
    struct oriel_event arrived[ORIEL_BARRIER_ROUNDS];
    struct oriel_node_entry node[];
};

_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint8_t) == 1,
               "atomics have no hidden lock");
_Static_assert(offsetof(struct oriel_lock_all_gate, half.readers) == 4,
               "readers are the upper half on a little-endian machine");

/* Whether a rank owns lock_all. */
static inline bool oriel_lock_all_gate_has_readers(struct oriel_lock_all_gate *gate)
{
    return oriel_load_acquire(&gate->half.readers) != 0;
}

#endif
