/* A room in a rank's window memory that detects who is inside: plain words that only a correct lock
 * keeps consistent. Processes enter after they acquire the lock and leave before they release it.
 */
#ifndef ORIEL_TESTS_PROTOCOL_ROOM_H
#define ORIEL_TESTS_PROTOCOL_ROOM_H

#include "make_window.h"

struct room {
    _Atomic uint32_t readers;
    _Atomic uint32_t writers;
    uint64_t plain[2]; /* equal except while a writer is inside */
};

static inline struct room *room_at(const struct oriel_window *window, int32_t win_rank, int which)
{
    return (struct room *)fabricate_memory(window, win_rank) + which;
}

/* One visit. Ends the process if a rank is inside that must not be, or has left the words
 * unequal. */
void room_read(struct room *room);
void room_write(struct room *room);

/* The same if writers may meet writers, as at the gate: only the two kinds exclude each other. */
void room_write_together(struct room *room);

#endif
