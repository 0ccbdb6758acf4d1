/* What a process counts for one window, in its memory file, so that `oriel run --watch` and `oriel top` read it while the program
 * runs.  The entries of observe/ write, with relaxed atomics; merge_records.c and the command line read.  No mpi.h here.
 *
 * Where threads may call at the same time, all but the first that calls for a window count in records of their own: of the same
 * window_id, n, rank, toward and ranks, and with thread above 0; all else in these is empty.
 *
 * A record is never moved or given back: a freed window's stays for the table at the end, marked as freed.  After
 * ORIEL_RECORDS_MOST windows all later ones share one record, which says so. */
#ifndef ORIEL_OBSERVE_STATS_RECORD_H
#define ORIEL_OBSERVE_STATS_RECORD_H

#include <stdint.h>

enum {
    ORIEL_RECORDS_MOST = 1000,
    ORIEL_RECORD_NAME = 64,
    ORIEL_RECORD_SITE = 128,
    ORIEL_RECORD_REASON = 160
};

enum oriel_counted_operation {
#define OPERATION(field, name, meaning) ORIEL_COUNTS_##field,
#include "observe/stats/counters.def"
    ORIEL_COUNTED_OPERATIONS
};
enum oriel_counted_path {
#define PATH(field, name, meaning) ORIEL_PATH_##field,
#include "observe/stats/counters.def"
    ORIEL_COUNTED_PATHS
};
enum oriel_counted_call {
#define CALL(field, name, meaning) ORIEL_CALL_OF_##field,
#include "observe/stats/counters.def"
    ORIEL_COUNTED_CALLS
};
enum oriel_counted_cause {
#define CAUSE(field, name, meaning) ORIEL_CAUSE_##field,
#include "observe/stats/counters.def"
    ORIEL_COUNTED_CAUSES
};

struct oriel_counted {
    _Atomic uint64_t count;
    _Atomic uint64_t bytes;
};

struct oriel_timed {
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;    /* in the call */
    _Atomic uint64_t waiting_ns; /* of that: for other ranks, awake or asleep */
    _Atomic uint64_t waited;     /* calls that waited at all */
    _Atomic uint64_t longest_ns; /* of one call's waiting */
};

/* Of one target, or (caused) of one rank that this one waited for. */
struct oriel_toward {
    _Atomic uint64_t operations;
    _Atomic uint64_t bytes;
    _Atomic uint64_t caused_ns[ORIEL_COUNTED_CAUSES];
};

struct oriel_window_record {
    uint64_t next; /* offset of the next older record in the same file; 0: none */
    /* the same on all ranks of the window, and no other window's of the job (observe.h) */
    uint64_t window_id;
    int32_t n;              /* ranks of the window */
    int32_t rank;           /* this one's */
    uint32_t flavour;       /* enum oriel_flavour; meaningless where path is the host's */
    _Atomic uint32_t state; /* 0: being made, 1: alive, 2: freed */
    uint64_t size_bytes;    /* of this rank's memory; 0 for dynamic */
    int64_t disp_unit;
    /* above 0: what another thread counted, beside the record that describes the window */
    uint32_t thread;
    uint32_t traced;    /* its number in the trace */
    uint64_t shared_by; /* 0, or how many windows share this record because there were too many */
    uint64_t toward;    /* offset of struct oriel_toward [n] in the same file */
    uint64_t ranks; /* offset of int32_t [n]: their ranks in MPI_COMM_WORLD, -1 where not in it */
    /* When this rank came to the window's barriers (fence, free), by the parity of their number, of the monotonic clock: who
     * waited looks for the latest.  A rank comes to a barrier's second next only when all have come to the next, so that an
     * entry stays for as long as anybody who was at its barrier can still look. */
    _Atomic uint64_t arrived_ns[2];
    uint8_t own_path;    /* enum oriel_counted_path on which others reach this rank's memory */
    uint8_t is_gathered; /* 1: its process will tell its figures in MPI_Finalize */
    /* 1: site is by file and line, as far as debug information tells; one rank asks for it */
    uint8_t has_line;
    uint8_t reserved[5];
    char name[ORIEL_RECORD_NAME];     /* "" where the program gave none */
    char site[ORIEL_RECORD_SITE];     /* "main at halo.c:42" or "app+0x1234": where it was made */
    char reason[ORIEL_RECORD_REASON]; /* why own_path is no better; "" */
    struct oriel_counted operations[ORIEL_COUNTED_OPERATIONS];
    struct oriel_counted paths[ORIEL_COUNTED_PATHS];
    struct oriel_timed calls[ORIEL_COUNTED_CALLS];
};

#endif
