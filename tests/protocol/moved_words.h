/* Shared by remote_writers.c and remote_writers_deaths.c: words of rank 0 that a plain copy moves
 * from one location to another, as promotion moves pages. Writers read the location first and write
 * some time later, as the kernel does. */
#ifndef ORIEL_TESTS_PROTOCOL_MOVED_WORDS_H
#define ORIEL_TESTS_PROTOCOL_MOVED_WORDS_H

#include "make_window.h"

#include "transport/remote_writers.h"

/* In rank 0's memory; only the protocol protects it. */
struct moved_words {
    uint64_t where; /* which of the two locations has the words */
    uint64_t words[2][TEAM_MOST];
};

static inline struct moved_words *moved_words_of(const struct oriel_window *window)
{
    return (struct moved_words *)window_memory(window, 0);
}

static inline struct oriel_remote_writers *writers_of(const struct oriel_window *window)
{
    return oriel_file_remote_writers(window->group->peers[0]->base);
}

/* The unused location is filled with garbage. */
static inline void move_words(struct moved_words *moved)
{
    uint64_t to = 1 - moved->where;
    for (int i = 0; i < TEAM_MOST; i++) {
        moved->words[to][i] = moved->words[moved->where][i];
        oriel_delay();
        moved->words[moved->where][i] = UINT64_MAX;
    }
    moved->where = to;
}

/* As the kernel does: reads the location, and writes there some time later. The last write must be
 * there. */
static inline void write_word(struct oriel_window *window, uint64_t value)
{
    struct moved_words *moved = moved_words_of(window);
    struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(writers_of(window));
    team_expect(slot != NULL);
    uint64_t where = moved->where;
    oriel_delay();
    team_expect(moved->words[where][team_rank] == value - 1);
    moved->words[where][team_rank] = value;
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
