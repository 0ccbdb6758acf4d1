/* A process's counters for one window, in its memory file, so `oriel run --watch` and `oriel top`
 * can read them while the program runs. The entries of observe/ write with relaxed atomics. This
 * header does not need mpi.h.
 *
 * If threads use MPI concurrently, all but the first that uses a window have records of their own.
 * These have the same window_id, n, rank, toward, ranks and places, and thread above 0; their other
 * descriptive fields are empty.
 *
 * A record is never moved or freed: that of a freed window stays for the table at the end, marked
 * as freed. After ORIEL_RECORDS_MOST windows all later ones share one record (shared_by). */
#ifndef ORIEL_OBSERVE_STATS_RECORD_H
#define ORIEL_OBSERVE_STATS_RECORD_H

#include <stdint.h>

enum { ORIEL_RECORDS_MOST = 1000, ORIEL_RECORD_NAME = 64, ORIEL_RECORD_REASON = 160 };

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

/* Of one target; caused_ns: of one rank that this one waited for. */
struct oriel_toward {
    _Atomic uint64_t operations;
    _Atomic uint64_t bytes;
    _Atomic uint64_t caused_ns[ORIEL_COUNTED_CAUSES];
};

struct oriel_window_record {
    uint64_t next; /* offset of the next older record in the same file; 0: none */
    /* the same on all ranks of the window, unique in the job (create/create.c; for windows of the
     * host, describe.c) */
    uint64_t window_id;
    int32_t n;              /* ranks of the window */
    int32_t rank;           /* of this process */
    uint32_t flavour;       /* enum oriel_flavour; meaningless if own_path is the host's */
    _Atomic uint32_t state; /* 0: being created, 1: alive, 2: freed */
    uint64_t size_bytes;    /* of this rank's memory; 0 for dynamic */
    int64_t disp_unit;
    /* above 0: counters of another thread; a different record describes the window */
    uint32_t thread;
    uint32_t traced;    /* its number in the trace */
    uint64_t shared_by; /* 0, or how many windows share this record because there were too many */
    uint64_t toward;    /* offset of struct oriel_toward [n] in the same file */
    uint64_t ranks;     /* offset of int32_t [n]: their ranks in MPI_COMM_WORLD, -1 if outside it */
    uint64_t sites;     /* offset of struct oriel_site_table (site_table.h): all calls */
    uint64_t places;    /* offset of struct oriel_site_places (site_places.h); 0: none */
    uint64_t process;   /* offset of struct oriel_process_record (process_record.h); 0: none */
    /* When this rank arrived at the window's barriers (fence, free), by the parity of their number,
     * on the monotonic clock. A rank that waited looks for the latest. A rank arrives two barriers
     * later only when all have arrived at the next one. So an entry stays valid while any rank at
     * its barrier may still read it. */
    _Atomic uint64_t arrived_ns[2];
    uint8_t own_path;    /* enum oriel_counted_path of other ranks' access to this rank's memory */
    uint8_t is_gathered; /* 1: its process will send its records in MPI_Finalize */
    uint16_t place;      /* of its creating call; 0: unknown */
    uint8_t reserved[4];
    char name[ORIEL_RECORD_NAME];                    /* "" if the program set none */
    char reason[ORIEL_RECORD_REASON];                /* why own_path is no better; "" */
    struct oriel_counted paths[ORIEL_COUNTED_PATHS]; /* of operations */
};

#endif
