/* Observing: counting, tracing and telling who waits for whom.  Where ORIEL_STATS, ORIEL_TRACE or ORIEL_WATCH ask for it,
 * MPI_Init replaces the slots of the api table by observing ones (table.c), each of which calls the one before; a run that asks for
 * nothing has none of it on its paths.  api/ calls. */
#ifndef ORIEL_OBSERVE_OBSERVE_H
#define ORIEL_OBSERVE_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

/* Behind the host's MPI_Init: starts what the options ask for. */
void oriel_observe_start(void);

/* First in MPI_Finalize, while MPI still works: gathers and writes the statistics, ends the trace. */
void oriel_observe_stop(void);

/* --- waits (waiting.c): what this thread has waited so far in calls of Oriel, whoever it waited for --- */

/* Set while somebody observes; waits look at it only once they have found that they must wait. */
extern _Atomic bool oriel_wait_timed;

struct oriel_waited {
    uint64_t total_ns; /* ever, of this thread */
    int32_t rank;      /* win_rank that the last wait was for; -1: none in particular */
    uint8_t cause;     /* of the last wait: enum oriel_counted_cause */
};
extern _Thread_local struct oriel_waited oriel_waited;

#endif
