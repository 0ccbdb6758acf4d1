/* A window without MPI: the team's shared words replace the host's collectives of window creation.
 * All memory is direct, and all displacement units are 1. */
#ifndef ORIEL_TESTS_PROTOCOL_MAKE_WINDOW_H
#define ORIEL_TESTS_PROTOCOL_MAKE_WINDOW_H

#include "team.h"

/* Collective over the team: the window of TEAM_MEMORY_BYTES zeroes on each rank. */
struct oriel_window *window_open(void);

/* Leaves cleanly without waiting, so it may run while other ranks still use the window. */
void window_close(struct oriel_window *window);

/* The window's memory at a rank, as 64-bit words. */
static inline uint64_t *window_memory(const struct oriel_window *window, int32_t win_rank)
{
    return (uint64_t *)oriel_window_direct(window, win_rank, 0);
}

/* A list of ranks, of which sync/ takes ownership. */
int32_t *window_ranks(const int32_t *ranks, int32_t count);

#endif
