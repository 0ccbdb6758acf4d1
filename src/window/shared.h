/* What a window keeps in shared memory: one struct oriel_common per window and machine, in the memory file of the machine's
 * lowest rank (its leader), and one struct oriel_control per window and rank, in that rank's own file, which is of one size
 * for any number of ranks.  Every word that two processes write stands alone on its cache line or beside words of the same
 * writers.  sync/ and rma/ touch them; creation fills, free clears them.
 *
 * Death: a process that is killed leaves its words as they are.  Whoever waits for more than 100 ms looks whether the
 * processes that can block it still live (internode/origin/liveness.h) and returns an error that names the dead one; a word in the way of
 * the dead stays in its way, so that every later waiter gets the same error. */
#ifndef ORIEL_WINDOW_SHARED_H
#define ORIEL_WINDOW_SHARED_H

#include "base/atomic.h"
#include "base/identity.h"
#include "base/wait.h"

#include <stdalign.h>
#include <stddef.h>

/* How the bytes of a target's window are reached, the same for all origins. */
enum oriel_mechanism {
    ORIEL_BY_ARENA, /* load and store, in a memory file at offset */
    ORIEL_BY_COPY, /* copied at address, by CMA or by the target's agent as the window's by_agent says */
    ORIEL_BY_PARTS, /* in the middle like the first, at both ends like the second: promoted pages */
    ORIEL_BY_NETWORK, /* on another machine: messages to its agent (internode/internode.h) */
    ORIEL_BY_ADDRESS, /* the one or the other, as the target's table of regions says: dynamic windows, memory of several sorts */
};

/* One target's window.  Written by the machine's leader before creation ends, read-only after. */
struct oriel_target {
    uint64_t
        offset; /* ORIEL_BY_ARENA, ORIEL_BY_PARTS: of the first byte, in the memory file that holds it */
    uint64_t
        direct_bytes; /* that every origin loads and stores: all, none, or those from direct_low on */
    int64_t disp_unit;   /* above 0 */
    uint64_t size_bytes; /* 0 or more */
    uint64_t address; /* of the first byte in the target's address space; 0 for a dynamic window */
    uint64_t control_offset; /* of its struct oriel_control, in its own memory file */
    uint64_t mechanism;      /* enum oriel_mechanism */
    uint64_t direct_low;     /* byte of the window; above 0 for ORIEL_BY_PARTS only */
};
_Static_assert(sizeof(struct oriel_target) == ORIEL_CACHE_LINE, "shared by all ranks of a machine");

/* The gate between lock_all and exclusive locks (sync/lock_all_gate.c has the argument).
 * word: readers (lock_all epochs held) in the upper half, writers (exclusive locks wanted or held) in the lower. */
struct oriel_gate {
    union {
        _Atomic uint64_t word;
        struct {
            _Atomic uint32_t writers;
            _Atomic uint32_t readers;
        } half;
    };
    _Atomic uint32_t writer_sleepers; /* wait for readers to become 0 */
    _Atomic uint32_t reader_sleepers; /* wait for writers to become 0 */
    _Atomic uint32_t readers_waiting; /* lock_all calls that wait */
    struct oriel_event admissions;    /* lock_all calls that waited and came in */
    _Atomic uint32_t joins;           /* of them, those beside writers that wait for readers (G6) */
};

struct oriel_common {
    alignas(ORIEL_CACHE_LINE) uint32_t version;
    int32_t n;    /* ranks of the window */
    int32_t here; /* and those of this machine, who share these words */
    _Atomic uint32_t
        broken; /* 0, or the dead one's win_rank + 1 for ever once a rank has left a barrier because of it */
    uint64_t
        machines_offset; /* from these words to struct oriel_machines; 0 where there is but one */
    struct oriel_event departed; /* ranks that will not touch this struct any more */
    alignas(ORIEL_CACHE_LINE) struct oriel_event
        arrivals; /* at all barriers so far; wraps (sync/barrier.c) */
    alignas(ORIEL_CACHE_LINE) struct oriel_gate gate;
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t
        bulk_targets; /* whose bulk is 1, or is about to become it (sync/atomic_mode.h) */
    alignas(ORIEL_CACHE_LINE) struct oriel_target targets[]; /* by win_rank */
};

/* FIFO reader-writer lock (sync/ticket.c has the argument).  All count modulo 2^32.
 * queue: tickets given to writers in the upper half, readers that came in the lower.  Free: serving and departed say the same. */
struct oriel_ticket {
    _Atomic uint64_t queue;
    _Atomic uint32_t serving;  /* the ticket whose turn it is, or is next; changed by its writer */
    _Atomic uint32_t departed; /* readers that left */
    _Atomic uint32_t serving_sleepers;
    _Atomic uint32_t departed_sleepers;
};

/* Mutual exclusion of accumulates that the CPU cannot do in one instruction (sync/accumulate_mutex.c): 0 free, else the holder's
 * win_rank + 1, with the top bit when somebody sleeps. */
struct oriel_accumulate_mutex {
    _Atomic uint32_t word;
};

/* What the owner of a table counts for one peer (sync/pscw.c; how entries come and are found: sync/pscw_counters.c).  Written by the
 * owner but for the sleepers, who are the peer's. */
struct oriel_pscw_counter {
    _Atomic uint32_t peer; /* win_rank + 1; 0: a free entry, all of it 0.  Once set it stays */
    _Atomic uint32_t seen; /* the peer's, for its cache's sake: pscw.c */
    _Atomic uint64_t
        theirs; /* for the owner: of the peer's entry for it, in the peer's memory file; 0: not found yet */
    struct oriel_event posts;     /* exposure epochs that the owner opened to the peer; wraps */
    struct oriel_event completes; /* access epochs to the peer that the owner completed; wraps */
};
_Static_assert(sizeof(struct oriel_pscw_counter) == 32, "two on a cache line, none on two");

/* In the owner's memory file, each leading to the one before.  older and capacity are set before it is published. */
struct oriel_pscw_counter_table {
    uint64_t older;    /* offset of the table before, in the same file; 0: none */
    uint64_t capacity; /* a power of two */
    uint64_t count;    /* entries that are taken, at most half; only the owner reads it */
    uint64_t reserved;
    struct oriel_pscw_counter entries[];
};

struct oriel_pscw_counters {
    _Atomic uint64_t newest; /* offset of a table; 0: none yet */
    struct oriel_event made; /* entries so far */
};

/* The owner's own access to target i: written by the owner, read by those who wait for a lock on i. */
enum oriel_access {
    ORIEL_ACCESS_NONE,
    ORIEL_ACCESS_WAITING, /* for a lock */
    ORIEL_ACCESS_ABSENT, /* none, and no words yet to say anything else (sync/access_words.c): never in shared memory */
    ORIEL_ACCESS_SHARED, /* from here on operations are allowed */
    ORIEL_ACCESS_EXCLUSIVE,
    ORIEL_ACCESS_TRUSTED, /* as one of a lock with MPI_MODE_NOCHECK, which is in nobody's way */
    ORIEL_ACCESS_STARTED,
};

/* Whether it is what MPI_Win_lock gives. */
static inline bool oriel_access_is_locks(uint8_t access)
{
    return access >= ORIEL_ACCESS_SHARED && access < ORIEL_ACCESS_STARTED;
}

/* Bytes [start, end) in the owner's address space that are reached alike.  What is attached in one call may be several regions,
 * each but the first marked as one that CONTINUES. */
struct oriel_region {
    _Atomic uint64_t start;
    _Atomic uint64_t end;
    _Atomic uint64_t
        place; /* 0: reached by copies; else of start in the owner's memory file.  Marks in the upper bits. */
};
#define ORIEL_REGION_CONTINUES     (UINT64_C(1) << 63)
#define ORIEL_REGION_OFFSET(place) ((place) & ~ORIEL_REGION_CONTINUES)

/* An array of struct oriel_region, sorted by start, in the owner's memory file. */
struct oriel_region_table {
    _Atomic uint64_t offset;
    _Atomic uint64_t count;
};

/* The memory of an ORIEL_BY_ADDRESS target (create/regions.c has the argument).  Written by the owner alone.
 * version: 2 for each change so far, so that tables[version / 2 % 2] is the present table; odd while the other one is being
 * made the next.  It only grows; 64 bits do not wrap.  Death leaves the present table as it is. */
struct oriel_regions {
    _Atomic uint64_t version;
    struct oriel_region_table tables[2];
};

#define ORIEL_INTERNODE_EXCLUSIVE                                                                  \
    UINT32_C(                                                                                      \
        0x80000000) /* in far_lost and far_holder: it is exclusive; one of those that are lost was */

struct oriel_control {
    alignas(ORIEL_CACHE_LINE) struct oriel_ticket lock;
    alignas(ORIEL_CACHE_LINE) struct oriel_accumulate_mutex accumulate;
    uint32_t
        singles_in_a_row; /* since the last bulk update; this and the next: the holder of accumulate's */
    uint32_t
        singles_wanted; /* so many in a row until they are free again; 0 before the first bulk update */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t
        bulk; /* 1: single elements are updated under accumulate, too (sync/atomic_mode.h) */
    alignas(
        ORIEL_CACHE_LINE) _Atomic uint32_t lock_all; /* 1 while the owner wants or holds lock_all */
    _Atomic uint32_t
        far_lost; /* win_rank + 1 of one on another machine that is lost and had a place in this lock's queue */
    _Atomic uint32_t
        far_holder; /* win_rank + 1 of one on another machine that holds this target's lock; 0: none */
    _Atomic uint32_t
        promoted; /* 1 once memory of the owner's program that the window has became shared in place */
    _Atomic uint32_t
        abandoned; /* win_rank + 1 of the dead one because of whom the owner has left the window: it touches nobody's
                                 * memory any more, and nobody need wait for it; or 0 */
    _Atomic uint64_t
        record_offset; /* of struct oriel_window_record (observe/stats/record.h), in the owner's file; 0: it keeps none */
    _Atomic uint64_t
        common_offset; /* of struct oriel_common, where the owner leads a machine of several; set once */
    alignas(ORIEL_CACHE_LINE) struct oriel_regions regions;
    struct oriel_pscw_counters partners;
    _Atomic uint64_t
        access_offset; /* of _Atomic uint8_t [n], enum oriel_access, in the owner's file; 0: all NONE.  Set once */
};
_Static_assert(sizeof(struct oriel_control) == 5 * ORIEL_CACHE_LINE,
               "what changes seldom is on one line");

static inline uint64_t oriel_common_bytes(int32_t n)
{
    return sizeof(struct oriel_common) + (uint64_t)n * sizeof(struct oriel_target);
}

/* Where to ask for the processes of a machine: its leader's process.  Written like the table of targets. */
struct oriel_machine {
    struct oriel_identity process;
    int32_t leader;         /* win_rank */
    uint32_t address_bytes; /* of its net address */
    uint64_t address;       /* from the machines' struct on */
};

enum { ORIEL_BARRIER_ROUNDS = 31 };

/* The machines of a window.  arrived[k] counts the messages of round k of all barriers so far (sync/barrier.c); the leader's
 * agent writes. */
struct oriel_machines {
    int32_t count;
    int32_t own;
    struct oriel_event arrived[ORIEL_BARRIER_ROUNDS];
    struct oriel_machine machine[];
};

_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint8_t) == 1,
               "atomics have no hidden lock");
_Static_assert(offsetof(struct oriel_gate, half.readers) == 4,
               "readers are the upper half on a little-endian machine");

/* Whether somebody holds lock_all. */
static inline bool oriel_gate_has_readers(struct oriel_gate *gate)
{
    return oriel_load_acquire(&gate->half.readers) != 0;
}

#endif
