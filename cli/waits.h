/* Waits between ranks of a job, from the states of its processes on this node. */
#ifndef ORIEL_CLI_WAITS_H
#define ORIEL_CLI_WAITS_H

#include <stdio.h>

#include "cli/jobs.h"

struct oriel_waits {
    const struct oriel_process *processes; /* the processes of one job */
    size_t count;
    uint64_t now_ns;
    int32_t by_rank[ORIEL_STATE_RANKS]; /* index of each rank's process; -1: not on this node */
};

/* Opens the waits of processes that were just read. */
void oriel_waits_open(struct oriel_waits *waits, const struct oriel_process *processes,
                      size_t count);

/* Lists the ranks that process i waits for, ascending, into room for ORIEL_STATE_RANKS. Returns
 * their number. */
size_t oriel_waits_for(const struct oriel_waits *waits, size_t i, int32_t *ranks);

/* Duration of the wait of process i. */
uint64_t oriel_waits_ns(const struct oriel_waits *waits, size_t i);

/* The call in which the process waits, such as "MPI_Win_fence". */
const char *oriel_waits_call(const struct oriel_process *process);

/* The program's call in which the process waits, with its line if it is known. Only modules of this
 * user's processes are opened: the others' choose which files these are. */
struct oriel_code_address oriel_waits_place(const struct oriel_process *process);

/* Prints the wait of a waiting process: 'MPI_Win_fence of "halo" (main at halo.c:42) for
 * ranks 3, 5, 12 s so far'. If short, without the target of a lock, and with the place at the end,
 * where the reader can do without it. */
void oriel_waits_print_wait(const struct oriel_waits *waits, size_t i, bool is_short, FILE *out);

/* Prints "waits in " and the wait, or the other state of the process. */
void oriel_waits_print(const struct oriel_waits *waits, size_t i, FILE *out);

/* One word for its state: waits, computes, sleeps, stopped, finalised, ended. */
const char *oriel_waits_state_name(const struct oriel_process *process);

/* Prints ranks: "3, 5-9". */
void oriel_ranks_print(const int32_t *ranks, size_t count, FILE *out);

/* Visits each ring of ranks that have waited for each other for a second. Each rank waits for the
 * next one, the last for the first. No two rings share a rank. */
void oriel_waits_rings(const struct oriel_waits *waits,
                       void (*visit)(const int32_t *ranks, size_t count, void *context),
                       void *context);

#endif
