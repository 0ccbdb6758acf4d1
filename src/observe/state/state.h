/* The third page of a process's memory file: who it is in its job, whom it waits for, and where its records are.  Always there
 * once there is a window, also where nothing is counted, so that `oriel top` can look at any job.  The library writes, with
 * relaxed atomics and only where a wait has lasted about a millisecond; cli/ reads other processes' pages.  No mpi.h here. */
#ifndef ORIEL_OBSERVE_STATE_STATE_H
#define ORIEL_OBSERVE_STATE_STATE_H

#include "base/wait.h"

#include <stdint.h>

enum {
    ORIEL_STATE_VERSION = 1,
    ORIEL_STATE_PROGRAM = 64,
    ORIEL_STATE_NAME = 64,
    ORIEL_STATE_RANKS = 8192
};
#define ORIEL_STATE_MAGIC UINT64_C(0x0a544154534c524f)

struct oriel_state {
    _Atomic uint64_t magic; /* written last */
    uint32_t version;
    int32_t world_rank; /* -1 where not known */
    int32_t world_size;
    uint32_t reserved;
    /* the same for all processes of a job on this machine (job.c says how it is found) */
    uint64_t job;
    char program[ORIEL_STATE_PROGRAM];
    char host[16]; /* "mpich", "openmpi" */
    /* while it waits; changed is odd while these are being written */
    _Atomic uint32_t changed;
    _Atomic uint32_t waiting; /* enum oriel_waiting */
    _Atomic int32_t rank; /* win_rank, of the target for LOCK and UPDATE; -1: none in particular */
    _Atomic int32_t world_rank_waited; /* the same in MPI_COMM_WORLD; -1 where not known */
    _Atomic uint64_t window_id; /* the same for the ranks that wait for each other, as in records */
    /* FENCE, FREE, CREATE: which meeting of that window's ranks; those that are not in it are late */
    _Atomic uint64_t turn;
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC */
    /* when it last saw that it waits for the ranks below: each 100 ms */
    _Atomic uint64_t looked_ns;
    /* ranks that it waits for, too, and ranks does not show: of other machines, or too high */
    _Atomic uint32_t others;
    uint32_t reserved_too;
    /* bits, by rank in MPI_COMM_WORLD: it waits for all of these, at a meeting for those of them that are not at it */
    _Atomic uint64_t ranks[ORIEL_STATE_RANKS / 64];
    _Atomic char window_name[ORIEL_STATE_NAME];
    /* offset of the newest struct oriel_window_record; 0: none, or nothing is counted */
    _Atomic uint64_t records;
};

#endif
