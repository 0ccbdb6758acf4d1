/* Observation: statistics, traces, and reports of which rank waits for which. If ORIEL_STATS,
 * ORIEL_TRACE or ORIEL_WATCH request it, MPI_Init replaces entries of the api table by observing
 * ones. Each of these calls the previous entry. A handle of a performance variable does the same
 * later. Other runs have no observation on their paths.
 *
 * An entry may be replaced while other threads call it. A slot is one word: a call uses the
 * previous entry or the observing one. The latter needs only data that is complete before the first
 * window call of any thread: oriel_observe_prepare runs in MPI_Init and MPI_Session_init. */
#ifndef ORIEL_OBSERVE_OBSERVE_H
#define ORIEL_OBSERVE_OBSERVE_H

#include "host/function_table.h"

#include <stdbool.h>
#include <stdint.h>

/* After the host's MPI_Init: replaces table entries as the options request. Observation ends in
 * MPI_Finalize, while MPI still works, in a delete callback of MPI_COMM_SELF that runs before the
 * one that ends Oriel. There the statistics are gathered and written, and the trace ends. */
void oriel_observe_start(struct oriel_api *table);

/* Copies the table, which no observer has changed yet. Further calls have no effect. */
void oriel_observe_prepare(const struct oriel_api *table);

/* Counts from now on, at any time, without output at the end. A window that exists already is
 * counted from its next call on. Further calls have no effect. */
void oriel_observe_count(struct oriel_api *table);

/* The id of a counted window's record and the number of its ranks. 0: there is no such window, it
 * is not counted for want of memory, or it shares its record with others. Counting must be on. */
uint64_t oriel_observe_window_id(MPI_Win win, uint32_t *n);

/* Whether other processes spawned this one: it has its own MPI_COMM_WORLD, whose ranks must not
 * write the first world's files. */
bool oriel_observe_is_spawned(void);

/* Before a window is created: creates the state page (state.h) for readers, also in runs without
 * observation. */
void oriel_state_open(void);

/* Publishes the offset of the newest record in the memory file. */
void oriel_state_set_records(uint64_t offset);

/* --- waits (wait_observer.c): this thread's waiting time in calls of Oriel, for any rank --- */

struct oriel_thread_waits {
    uint64_t total_ns; /* total of this thread */
    /* of one wait of the call, if it is traced; rank and cause belong to that wait */
    uint64_t longest_ns;
    int32_t rank;  /* win_rank it waited for; -1: no single one */
    uint8_t cause; /* enum oriel_counted_cause */
};
extern _Thread_local struct oriel_thread_waits oriel_thread_waits
    __attribute__((visibility("hidden")));

#endif
