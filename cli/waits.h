/* Who waits for whom in a job, from what its processes on this machine say.  top*.c and watch.c call. */
#ifndef ORIEL_CLI_WAITS_H
#define ORIEL_CLI_WAITS_H

#include <stdio.h>

#include "cli/jobs.h"

struct oriel_waits {
    const struct oriel_process *processes; /* one job's */
    size_t count;
    uint64_t now_ns;
    int32_t by_rank[ORIEL_STATE_RANKS]; /* index of each rank's process; -1: none here */
};

/* Of processes that have been read just now. */
void oriel_waits_open(struct oriel_waits *waits, const struct oriel_process *processes,
                      size_t count);

/* The ranks that process i waits for, ascending, into room for ORIEL_STATE_RANKS of them: how many. */
size_t oriel_waits_for(const struct oriel_waits *waits, size_t i, int32_t *ranks);

/* For how long. */
uint64_t oriel_waits_ns(const struct oriel_waits *waits, size_t i);

/* The call that it waits in, e.g. "MPI_Win_fence". */
const char *oriel_waits_call(const struct oriel_process *process);

/* 'MPI_Win_fence of "halo" for ranks 3, 5, since 12 s', of one that waits. */
void oriel_waits_say_wait(const struct oriel_waits *waits, size_t i, FILE *out);

/* "waits in " and that, or what else it does. */
void oriel_waits_say(const struct oriel_waits *waits, size_t i, FILE *out);

/* One word for it: waits, computes, sleeps, stopped, finalised, ended. */
const char *oriel_waits_word(const struct oriel_process *process);

/* "3, 5-9" */
void oriel_ranks_say(const int32_t *ranks, size_t count, FILE *out);

/* Each ring of ranks that wait for each other and have done so for a second: 0 for the next one, the last for the first. */
void oriel_waits_rings(const struct oriel_waits *waits,
                       void (*tell)(const int32_t *ranks, size_t count, void *context),
                       void *context);

#endif
