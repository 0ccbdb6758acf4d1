/* The third page of a process's memory file: who it is in its job, whom it waits for, and where its records are.  Always there
 * once there is a window, also where nothing is counted, so that `oriel top` can look at any job.  The library writes, with relaxed
 * atomics and only where a wait has lasted about a millisecond; cli/ reads other processes' pages.  No mpi.h here. */
#ifndef ORIEL_OBSERVE_STATE_H
#define ORIEL_OBSERVE_STATE_H

#include <stdint.h>

enum { ORIEL_STATE_VERSION = 1, ORIEL_STATE_PROGRAM = 64, ORIEL_STATE_NAME = 64 };
#define ORIEL_STATE_MAGIC UINT64_C(0x0a544154534c524f)

/* What a process waits for.  NOTHING: it computes, or is in a call of the host. */
enum oriel_waiting {
    ORIEL_WAITING_NOTHING,
    ORIEL_WAITING_ALL,      /* for all ranks of the window: fence, free, creation */
    ORIEL_WAITING_POST,     /* for rank to post */
    ORIEL_WAITING_COMPLETE, /* for rank to complete */
    ORIEL_WAITING_LOCK,     /* for the lock of target rank */
    ORIEL_WAITING_LOCK_ALL, /* for exclusive holders to leave */
    ORIEL_WAITING_ANSWER,   /* for rank's agent or machine */
};

struct oriel_state {
    uint64_t magic;
    uint32_t version;
    int32_t world_rank; /* -1 where not known */
    int32_t world_size;
    uint32_t counting;  /* 1: records are kept */
    uint64_t job;       /* the same for all processes of a job on this machine (state.c says how it is found) */
    char program[ORIEL_STATE_PROGRAM];
    char host[16]; /* "mpich", "openmpi" */
    /* while it waits; changed is odd while these are being written */
    _Atomic uint32_t changed;
    _Atomic uint32_t waiting; /* enum oriel_waiting */
    _Atomic int32_t rank;     /* win_rank, -1: none in particular */
    _Atomic int32_t world_rank_waited; /* the same in MPI_COMM_WORLD; -1 where not known */
    _Atomic uint64_t window_id;
    _Atomic uint64_t turn;     /* ALL: which barrier of that window, counted from 1; ranks that are not in it are waited for */
    _Atomic uint64_t since_ns; /* CLOCK_MONOTONIC */
    char window_name[ORIEL_STATE_NAME];
    /* where counting */
    _Atomic uint32_t call;       /* enum oriel_counted_call + 1 that it is in; 0: none */
    _Atomic uint64_t records;    /* offset of the newest struct oriel_window_record; 0: none */
    _Atomic uint64_t operations; /* all so far, and their bytes */
    _Atomic uint64_t bytes;
    _Atomic uint64_t waiting_ns;
};

#endif
