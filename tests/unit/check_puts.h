/* Processes of a team (check_team.h) that put to histories in the checker's shared memory, with
 * random delays in the histories' code. */
#ifndef ORIEL_TESTS_UNIT_CHECK_PUTS_H
#define ORIEL_TESTS_UNIT_CHECK_PUTS_H

#include "base/atomic.h"
#include "check/order/order.h"
#include "check/access/cell_repeat.h"

#include "check_team.h"

/* Replaces the random delay if set: a test may hold a process back at one step. */
static void (*team_at_delay)(void);

/* Delays now and then, so merely likely orders are broken. */
void oriel_delay(void);
void oriel_delay(void)
{
    static uint32_t chance = 1;
    if (team_at_delay != NULL) {
        team_at_delay();
        return;
    }
    chance = chance * 1664525u + 1013904223u + (uint32_t)getpid();
    if (chance >> 30 == 0)
        for (volatile int i = (int)(chance >> 20 & 0x3ff); i > 0; i--)
            ;
    else if (chance >> 26 == 16)
        sched_yield();
}

void oriel_finding_count(const char *what)
{
    (void)what;
}

static void count_it(const struct oriel_conflict *conflict, void *closure)
{
    (void)conflict;
    ++*(uint64_t *)closure;
}

static struct oriel_access access_by(int rank, enum oriel_access_kind kind)
{
    return (struct oriel_access){.kind = (uint8_t)kind,
                                 .op = ORIEL_OPERATOR_SUM,
                                 .origin = rank,
                                 .snapshot = ORIEL_SNAPSHOT_LIVE,
                                 .issued = oriel_order_now(),
                                 .site = {1 + (uint64_t)kind, (uint32_t)rank, 1, 0}};
}

/* A test's processes put like a repeated call and cache what is possible (callsite_cache.c), or
 * always take the general path. */
static bool repeats_access;
static oriel_shm_offset repeated[ORIEL_ACCESS_ACCUMULATE + 1]; /* the access kinds */
static struct oriel_cell_entry *pending;
static oriel_tick delayed_since;

static uint64_t arrive(oriel_shm_offset history, int rank, enum oriel_access_kind kind,
                       int64_t offset, uint64_t len_bytes)
{
    uint64_t conflicts = 0;
    struct oriel_access access = access_by(rank, kind);
    struct oriel_access_extent run = {offset, len_bytes, 1, 0};
    if (!repeats_access) {
        oriel_history_add(history, &access, &run, 1, count_it, &conflicts);
        return conflicts;
    }
    struct oriel_history_ground ground = oriel_history_ground(history);
    struct oriel_history_spot spot = oriel_history_expect(&ground, (uint64_t)offset);
    struct oriel_callsite_arrival again = {history, &access, count_it, &conflicts};
    delayed_since = access.issued;
    pending = NULL;
    if (spot.page != NULL && repeated[kind] != 0 &&
        (uint64_t)offset % ORIEL_CELL_BYTES + len_bytes <= ORIEL_CELL_BYTES &&
        oriel_pending_list_room(1)) {
        uint64_t first = (uint64_t)offset % ORIEL_CELL_BYTES;
        uint64_t mine = oriel_entry_with(repeated[kind] << ORIEL_ENTRY_TRAIT | access.flags, first,
                                         first + len_bytes - 1);
        pending = oriel_history_hold(&again, &spot, mine, oriel_entry_screen(mine),
                                     oriel_cell_repeats(&access), access.issued, (uint64_t)offset);
    }
    if (pending == NULL)
        oriel_history_add_again(history, spot, &access, &repeated[kind], &run, count_it,
                                &conflicts);
    return conflicts;
}

static uint64_t put(oriel_shm_offset history, int rank, int64_t offset, uint64_t len_bytes)
{
    return arrive(history, rank, ORIEL_ACCESS_PUT, offset, len_bytes);
}

static void complete(oriel_shm_offset history, int rank)
{
    if (pending != NULL)
        oriel_history_held_complete(pending, delayed_since, oriel_order_now());
    else
        oriel_history_complete(history, rank, 0, oriel_order_now());
    pending = NULL;
}

static oriel_shm_offset shared(int rank, oriel_shm_offset (*make)(uint64_t size_bytes))
{
    if (rank == 0)
        atomic_store(&team->words[7], make(1 << 20));
    team_barrier();
    oriel_shm_offset offset = (oriel_shm_offset)atomic_load(&team->words[7]);
    team_barrier();
    return offset;
}

/* This process learns all earlier accesses of the others. */
static inline void know_all(int rank)
{
    for (int other = 0; other < team->n; other++)
        if (other != rank)
            EXPECT(oriel_order_take_rank(other));
}

/* All leave the history, which is freed, and attach to another. */
static inline oriel_shm_offset history_anew(int rank, oriel_shm_offset history)
{
    oriel_history_leave(history);
    team_barrier();
    if (rank == 0)
        oriel_history_free(history);
    return shared(rank, oriel_history_make);
}

#endif
