/* The third page of a process's memory file: its identity in its job, the ranks it waits for, and
 * the offset of its records. It exists once there is a window, also in runs without statistics, so
 * `oriel top` can inspect any job. The library writes it with relaxed atomics, and only if a wait
 * has lasted about a millisecond. cli/ reads other processes' pages. This header does not need
 * mpi.h. */
#ifndef ORIEL_OBSERVE_STATE_STATE_H
#define ORIEL_OBSERVE_STATE_STATE_H

#include "base/code_address.h"
#include "base/host_version.h"
#include "base/wait.h"

#include <stdint.h>

enum {
    ORIEL_STATE_VERSION = 3,
    ORIEL_STATE_PROGRAM = 64,
    ORIEL_STATE_NAME = 64,
    ORIEL_STATE_RANKS = 8192
};
#define ORIEL_STATE_MAGIC UINT64_C(0x0a544154534c524f)

struct oriel_state {
    _Atomic uint64_t magic; /* written last */
    uint32_t version;
    int32_t world_rank; /* -1 if unknown */
    int32_t world_size;
    uint32_t reserved;
    /* the same for all processes of a job on this node (job.c) */
    uint64_t job;
    char program[ORIEL_STATE_PROGRAM];
    char host[16];                         /* "mpich", "openmpi" */
    char host_version[ORIEL_HOST_VERSION]; /* "MPICH 5.0.2" */
    /* during a wait; changed is odd while these fields are written */
    _Atomic uint32_t changed;
    _Atomic uint32_t waiting; /* enum oriel_waiting */
    _Atomic int32_t rank;     /* win_rank, of the target for LOCK and UPDATE; -1: no single one */
    _Atomic int32_t world_rank_waited; /* the same in MPI_COMM_WORLD; -1 if unknown */
    _Atomic uint64_t window_id; /* the same on the ranks that wait for each other, as in records */
    /* FENCE, FREE, CREATE: identifies the window's barrier or the rendezvous's round; ranks that
     * have not arrived there are late */
    _Atomic uint64_t turn;
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC */
    /* when the writer last confirmed that it waits for the ranks below: every 100 ms */
    _Atomic uint64_t looked_ns;
    /* more ranks that it waits for and that ranks cannot show: on other nodes, or above the
     * limit */
    _Atomic uint32_t others;
    uint32_t reserved_too;
    /* bits, by rank in MPI_COMM_WORLD: it waits for all of these; at a barrier or rendezvous, for
     * those that have not arrived */
    _Atomic uint64_t ranks[ORIEL_STATE_RANKS / 64];
    _Atomic char window_name[ORIEL_STATE_NAME];
    /* offset of the newest struct oriel_window_record; 0: none, or no statistics */
    _Atomic uint64_t records;
    /* during a wait: a struct oriel_code_address, the program's call that waits */
    _Atomic uint64_t place[sizeof(struct oriel_code_address) / sizeof(uint64_t)];
};

#endif
