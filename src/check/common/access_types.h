/* Types that all folders of the checker share: a call site, an access, its extents, a conflict of
 * two accesses. */
#ifndef ORIEL_CHECK_COMMON_ACCESS_TYPES_H
#define ORIEL_CHECK_COMMON_ACCESS_TYPES_H

#include "check/common/clock.h"
#include "check/shm/shm.h"
#include "reduce/kind.h"

#include <stdbool.h>
#include <stddef.h>

enum oriel_access_kind {
    /* by a processor: the program's loads; buffers that operations or messages read */
    ORIEL_ACCESS_LOAD,
    ORIEL_ACCESS_STORE, /* likewise */
    ORIEL_ACCESS_GET,
    ORIEL_ACCESS_PUT,
    ORIEL_ACCESS_ACCUMULATE, /* all of the family: op and element say which may be concurrent */
};

/* The history of an access; for the text of findings and for what was missing. */
enum oriel_access_flag {
    /* its request was completed, which is not completion at the target */
    ORIEL_ACCESS_REQUEST_DONE = 1,
    ORIEL_ACCESS_FLUSHED_LOCAL = 2,
    ORIEL_ACCESS_FLUSHED_OTHER = 4, /* another target was flushed since */
    ORIEL_ACCESS_SANITIZER = 8,     /* a load or store of the program's own code */
    ORIEL_ACCESS_SAME_OP = 16,      /* accumulate_ops=same_op holds */
    /* operators may differ: a compare_and_swap where no hint forbids it */
    ORIEL_ACCESS_ANY_OP = 32,
    ORIEL_ACCESS_MESSAGE = 64, /* a buffer of a message or collective */
    /* not merged while it is outstanding: it has its own ticket (requests) */
    ORIEL_ACCESS_ALONE = 128,
};

/* A call site: an address in the program, and the function it calls. */
struct oriel_site {
    uint64_t address; /* of the call, in the process that made it */
    uint32_t world_rank;
    uint16_t call;  /* enum oriel_call: which function (calls.def) */
    uint16_t epoch; /* number of the site that opened the epoch (call_sites.h), 0: unknown */
};

struct oriel_access {
    uint8_t kind;    /* enum oriel_access_kind */
    uint8_t op;      /* enum oriel_operator; of accumulates */
    uint8_t element; /* enum oriel_kind; of accumulates */
    uint8_t flags;   /* enum oriel_access_flag */
    int32_t origin;  /* world rank */
    /* clock snapshot of the issue (order.h); the caller's reference is enough. Of stored accesses:
     * 0 */
    oriel_shm_offset snapshot;
    /* the origin's number when it was completed; ORIEL_TICK_PENDING */
    oriel_tick complete;
    /* the origin's number when it was issued; of merged accesses, the first's: for texts */
    oriel_tick issued;
    struct oriel_site site;
    /* of accumulates: bytes of an element before the first that starts in the history's grid of
     * elements (history.c sets it); ORIEL_PHASE_MIXED: its elements do not agree */
    uint8_t phase;
    /* 0: oriel_history_complete of its origin completes it. Otherwise a number of the caller's,
     * from ORIEL_ACCESS_GROUP on: it is the ticket, and completes all that have it */
    uint64_t group;
};
#define ORIEL_ACCESS_GROUP (UINT64_C(1) << 63)
/* Bit of a group that may be completed twice, by its origin and by its target. The smaller number
 * counts from then on. */
#define ORIEL_ACCESS_GROUP_TWICE (UINT64_C(1) << 62)
enum { ORIEL_PHASE_MIXED = UINT8_MAX };

/* count runs of len_bytes, stride_bytes from start to start; the first at offset. With count 1,
 * stride_bytes is unused. */
struct oriel_access_extent {
    int64_t offset;
    uint64_t len_bytes;
    uint64_t count;
    int64_t stride_bytes;
};

/* A conflict: the stored access, the new one, and bytes of both. Called under the history's lock:
 * it copies. */
struct oriel_conflict {
    struct oriel_access earlier;
    struct oriel_access later;
    int64_t offset;     /* of the first byte of both */
    uint64_t len_bytes; /* from there on, without a hole */
    /* the earlier one is in the history of another window over the same memory
     * (aliased_windows.h) */
    bool alias;
    /* not 0: the later access may be the host's own, in a function of MPI that the checker does not
     * know. Then this is no conflict. No bool: other nodes send it */
    uint8_t may_be_hosts;
};
typedef void oriel_conflict_fn(const struct oriel_conflict *conflict, void *closure);

/* By a processor, not by an operation. */
static inline bool oriel_access_is_local(const struct oriel_access *access)
{
    return access->kind == ORIEL_ACCESS_LOAD || access->kind == ORIEL_ACCESS_STORE;
}

#endif
