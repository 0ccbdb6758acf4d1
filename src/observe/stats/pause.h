/* Pauses of this process's observation, by MPI_Pcontrol. A call that begins in a pause is neither
 * counted nor traced, and one that began before it is, as a whole. Windows are described in a pause
 * as well, and ranks that wait for this one learn of its arrivals. Private to observe/. */
#ifndef ORIEL_OBSERVE_STATS_PAUSE_H
#define ORIEL_OBSERVE_STATS_PAUSE_H

#include "host/function_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the lookup of a window by a thread that has not found it in its cache (records.c). */
bool oriel_observation_is_paused(void);

/* How long observation has been paused until now, all pauses together. */
uint64_t oriel_observation_paused_ns(uint64_t now_ns);

/* At the end of observation: ends the current pause. Later levels of MPI_Pcontrol only reach the
 * host. */
void oriel_observation_stop(void);

/* Puts MPI_Pcontrol into the table. */
void oriel_observe_levels(struct oriel_api *table);

#endif
