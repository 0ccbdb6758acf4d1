/* Words in a rank's window memory that detect missing exclusion: only a correct lock keeps them
 * consistent. Processes enter after they acquire the lock and leave before they release it. */
#ifndef ORIEL_TESTS_PROTOCOL_EXCLUSION_CHECK_H
#define ORIEL_TESTS_PROTOCOL_EXCLUSION_CHECK_H

#include "make_window.h"

struct exclusion {
    _Atomic uint32_t readers;
    _Atomic uint32_t writers;
    uint64_t plain[2]; /* equal except while a writer is inside */
};

static inline struct exclusion *exclusion_at(const struct oriel_window *window, int32_t win_rank,
                                             int which)
{
    return (struct exclusion *)window_memory(window, win_rank) + which;
}

/* One visit. Ends the process if a rank is inside that must not be, or has left the words
 * unequal. */
void exclusion_check_reader(struct exclusion *exclusion);
void exclusion_check_writer(struct exclusion *exclusion);

/* The same if writers may meet writers, as at the gate: only the two kinds exclude each other. */
void exclusion_check_gate_writer(struct exclusion *exclusion);

#endif
