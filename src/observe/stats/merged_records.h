/* The message from rank 0 to the `oriel` command (base/helper_process.h) when the program ends. The
 * command adds the records up and writes the table or the JSON. It is the head, then the part of
 * each rank that sent its records, in any order. A part is a struct oriel_merged_records, then the
 * places of its call sites, struct oriel_code_address [places], then its struct
 * oriel_counted_region [regions]. For each of the rank's windows, oldest first, these follow: its
 * struct oriel_window_record (whose sites is now the number of its call sites, and whose other
 * offsets are invalid), its struct oriel_toward [n], its int32_t ranks [n], padded to a multiple of
 * 8 bytes, and its struct oriel_counted_site [sites]. This header does not need mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_MERGED_RECORDS_H
#define ORIEL_OBSERVE_STATS_MERGED_RECORDS_H

#include "base/host_version.h"
#include "observe/stats/process_record.h"
#include "observe/stats/record.h"
#include "observe/stats/site_places.h"
#include "observe/stats/site_table.h"

#include <stddef.h>

#define ORIEL_MERGED_MAGIC UINT64_C(0x0531544154534c52) /* changes with the format of records */

struct oriel_statistics_head {
    uint64_t magic;
    char file[4096]; /* for the JSON; "": the reply is a table */
    char program[4096];
    char version[32];
    char host[16];
    char host_version[ORIEL_HOST_VERSION]; /* "MPICH 5.0.2" */
    int32_t ranks;                         /* of MPI_COMM_WORLD */
    uint32_t parts;                        /* that follow */
    uint64_t ran_ns;                       /* from rank 0's MPI_Init to its MPI_Finalize */
    int32_t width;                         /* columns of the table's sentences */
    int32_t reserved;
};

struct oriel_merged_records {
    uint64_t magic;
    uint64_t len_bytes; /* of all that follows */
    int32_t world_rank;
    uint32_t windows;
    /* 1: the rank was not in MPI_Finalize, or did not answer; read from its memory file */
    uint32_t is_early;
    uint32_t places;
    uint64_t paused_ns; /* by MPI_Pcontrol */
    uint32_t regions;
    uint32_t reserved;
};

static inline size_t oriel_merged_window_bytes(int32_t n, uint64_t sites)
{
    size_t ranks_bytes = ((size_t)n * sizeof(int32_t) + 7) & ~(size_t)7;
    return sizeof(struct oriel_window_record) + (size_t)n * sizeof(struct oriel_toward) +
           ranks_bytes + sites * sizeof(struct oriel_counted_site);
}

#endif
