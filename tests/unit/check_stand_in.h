/* Stand-ins for the board, clocks and findings of the checker, in one process: memory from malloc, and as many made-up ranks as a
 * test wants, whose clocks the test moves by hand.  A test links them in place of shm.c, order.c and finding.c. */
#ifndef ORIEL_TESTS_UNIT_CHECK_STAND_IN_H
#define ORIEL_TESTS_UNIT_CHECK_STAND_IN_H

#include "check/shm/shm.h"
#include "check/common/clock.h"

enum { RANKS = 5 };

extern oriel_tick clocks[RANKS][RANKS];
extern int rank_now;        /* whose calls are to come */
extern uint64_t counted;    /* calls of oriel_finding_count */
extern uint64_t board_left; /* bytes until the board is full */

void clocks_start(void);

/* What comes at to is behind what came at from. */
void message(int from, int to);

/* A moment of the rank; good until the next call for it. */
oriel_shm_offset moment_of(int rank);

#endif
