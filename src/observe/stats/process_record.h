/* What a process counts for no single window: its pauses (MPI_Pcontrol) and its regions
 * (oriel_region_begin). It is in the memory file, so rank 0 can read that of a process that does
 * not reach MPI_Finalize. This header does not need mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_PROCESS_RECORD_H
#define ORIEL_OBSERVE_STATS_PROCESS_RECORD_H

#include <stdint.h>

enum { ORIEL_REGIONS_MOST = 256, ORIEL_REGION_NAME = 64 };

/* Regions of one name, by all threads. The sums of a region include those of regions in it. */
struct oriel_counted_region {
    char name[ORIEL_REGION_NAME]; /* constant; "": those for whose names there is no row */
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;    /* without pauses */
    _Atomic uint64_t calls_ns;   /* of that, in the thread's calls on windows */
    _Atomic uint64_t waiting_ns; /* of that, waiting */
    _Atomic uint64_t operations; /* of the thread */
    _Atomic uint64_t bytes;      /* that they moved */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct oriel_counted_region) == 128, "the format of records has it");

struct oriel_process_record {
    _Atomic uint64_t paused_ns;       /* of pauses that have ended */
    _Atomic uint64_t paused_since_ns; /* of the current pause; 0: none */
    /* Rows in use, 0 or more. A row is complete before the number includes it. */
    _Atomic uint32_t regions;
    uint32_t reserved[11];
    struct oriel_counted_region region[ORIEL_REGIONS_MOST]; /* 0: the others */
};

/* The offset of this process's record in its memory file. The first call creates it. 0: there is
 * no memory. */
uint64_t oriel_process_record_offset(void);

/* The same as an address; NULL: there is no memory. */
struct oriel_process_record *oriel_process_record(void);

#endif
