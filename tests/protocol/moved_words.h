/* Shared by remote_writers.c and remote_writers_deaths.c: words of rank 0 that a plain copy moves from one
 * location to another, as promotion moves pages. Writers read the location first and write some
 * time later, as the kernel does. */
#ifndef ORIEL_TESTS_PROTOCOL_WRITING_H
#define ORIEL_TESTS_PROTOCOL_WRITING_H

#include "make_window.h"

#include "transport/remote_writers.h"

/* In rank 0's memory; only the protocol protects it. */
struct room {
    uint64_t where; /* which of the two locations has the words */
    uint64_t words[2][TEAM_MOST];
};

static inline struct room *room_of(const struct oriel_window *window)
{
    return (struct room *)fabricate_memory(window, 0);
}

static inline struct oriel_remote_writers *writers_of(const struct oriel_window *window)
{
    return oriel_file_remote_writers(window->group->peers[0]->base);
}

/* The unused location is filled with garbage. */
static inline void move_words(struct room *room)
{
    uint64_t to = 1 - room->where;
    for (int i = 0; i < TEAM_MOST; i++) {
        room->words[to][i] = room->words[room->where][i];
        oriel_delay();
        room->words[room->where][i] = UINT64_MAX;
    }
    room->where = to;
}

/* As the kernel does: reads the location, and writes there some time later. The last write must be
 * there. */
static inline void write_word(struct oriel_window *window, uint64_t value)
{
    struct room *room = room_of(window);
    struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(writers_of(window));
    team_expect(slot != NULL);
    uint64_t where = room->where;
    oriel_delay();
    team_expect(room->words[where][team_rank] == value - 1);
    room->words[where][team_rank] = value;
    oriel_delay();
    oriel_remote_writers_leave(slot);
}

/* M1 and M2, repeated until they succeed: on a busy node a writer may be without a processor for
 * longer than the limit. */
static inline void halt_at_last(struct oriel_remote_writers *writers)
{
    while (oriel_remote_writers_halt(writers, oriel_file_identity(), false) != ORIEL_OK)
        usleep(1000);
}

#endif
