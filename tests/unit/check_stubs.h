/* Replacements for the checker's shared memory, clocks and findings, in one process: memory from
 * malloc, and any number of simulated ranks, whose clocks the test advances. A test links them
 * instead of shm.c, order.c and finding.c. */
#ifndef ORIEL_TESTS_UNIT_CHECK_STUBS_H
#define ORIEL_TESTS_UNIT_CHECK_STUBS_H

#include "check/shm/shm.h"
#include "check/common/clock.h"

enum { RANKS = 5 };

extern oriel_tick clocks[RANKS][RANKS];
extern int rank_now;      /* the rank of the next calls */
extern uint64_t counted;  /* calls of oriel_finding_count */
extern uint64_t shm_left; /* bytes until the shared memory is full */

void clocks_start(void);

/* Later calls of rank to are ordered after earlier ones of from. */
void message(int from, int to);

/* A clock snapshot of the rank; valid until the next call for it. */
oriel_shm_offset snapshot_of(int rank);

#endif
