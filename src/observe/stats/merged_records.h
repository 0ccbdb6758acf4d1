/* What rank 0 has gathered when the program ends, as it goes to the `oriel` command (base/helper_process.h), which adds it up and writes
 * the table or the JSON: the head, then the part of each rank that gave its figures, in any order.  A part is a struct
 * oriel_gathered and, for each of the rank's windows, oldest first, its struct oriel_window_record (whose offsets mean nothing
 * any more), its struct oriel_toward [n] and its int32_t ranks [n], up to a multiple of 8 bytes.  No mpi.h here. */
#ifndef ORIEL_OBSERVE_STATS_MERGED_RECORDS_H
#define ORIEL_OBSERVE_STATS_MERGED_RECORDS_H

#include "observe/stats/record.h"

#include <stddef.h>

#define ORIEL_GATHERED_MAGIC                                                                       \
    UINT64_C(0x0131544154534c52) /* changes when the form of records does */

struct oriel_statistics_head {
    uint64_t magic;
    char file[4096]; /* of JSON; "": the answer shall be a table */
    char program[4096];
    char version[32];
    char host[16];
    int32_t ranks;  /* of MPI_COMM_WORLD */
    uint32_t parts; /* that follow */
};

struct oriel_gathered {
    uint64_t magic;
    uint64_t len_bytes; /* of the windows that follow */
    int32_t world_rank;
    uint32_t windows;
    /* 1: the rank was not in MPI_Finalize, or did not answer; read in its memory file */
    uint32_t is_early;
    uint32_t reserved;
};

static inline size_t oriel_gathered_window_bytes(int32_t n)
{
    size_t ranks_bytes = ((size_t)n * sizeof(int32_t) + 7) & ~(size_t)7;
    return sizeof(struct oriel_window_record) + (size_t)n * sizeof(struct oriel_toward) +
           ranks_bytes;
}

#endif
