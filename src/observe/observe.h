/* Observing: counting, tracing and telling who waits for whom.  Where ORIEL_STATS, ORIEL_TRACE or ORIEL_WATCH ask for it,
 * MPI_Init replaces the slots of the api table by observing ones, each of which calls the one before; a run that asks for nothing
 * has none of it on its paths.  api/ calls. */
#ifndef ORIEL_OBSERVE_OBSERVE_H
#define ORIEL_OBSERVE_OBSERVE_H

#include "host/function_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Behind the host's MPI_Init: starts what the options ask for, by slots of the table.  It ends in MPI_Finalize, while MPI still
 * works, by a delete callback of MPI_COMM_SELF that comes before the one that ends Oriel: the statistics are gathered and
 * written there, and the trace is ended. */
void oriel_observe_start(struct oriel_api *table);

/* Whether others have spawned this process: it has a world of its own, whose ranks must not write the files of the first. */
bool oriel_observe_is_spawned(void);

/* Before a window is made: the state page (state.h), for whoever looks, also where nothing is observed. */
void oriel_state_open(void);

/* Where the newest record lies in the memory file. */
void oriel_state_set_records(uint64_t offset);

/* --- waits (wait_observer.c): what this thread has waited so far in calls of Oriel, whoever it waited for --- */

struct oriel_waited {
    uint64_t total_ns; /* ever, of this thread */
    /* of one wait of the call, where it is traced; rank and cause are that wait's */
    uint64_t longest_ns;
    int32_t rank;  /* win_rank that it was for; -1: none in particular */
    uint8_t cause; /* enum oriel_counted_cause */
};
extern _Thread_local struct oriel_waited oriel_waited __attribute__((visibility("hidden")));

#endif
