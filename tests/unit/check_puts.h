/* Processes of a team (check_team.h) that put to histories of the board, with random delays in the histories' code. */
#ifndef ORIEL_TESTS_UNIT_CHECK_PUTS_H
#define ORIEL_TESTS_UNIT_CHECK_PUTS_H

#include "base/atomic.h"
#include "check/small_again.h"
#include "check/order.h"

#include "check_team.h"

/* Loses time now and then, so that orders that are merely likely do not stay so. */
void oriel_delay(void);
void oriel_delay(void)
{
    static uint32_t chance = 1;
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
                                 .moment = ORIEL_MOMENT_NOW,
                                 .issued = oriel_order_now(),
                                 .site = {1 + (uint64_t)kind, (uint32_t)rank, 1, 0}};
}

/* A test's processes put as a call does that comes again, and hold what can be held (again.c), or all in the general way. */
static bool comes_again;
static oriel_place kept; /* the trait */
static struct oriel_cell_entry *held;

static uint64_t put(oriel_place history, int rank, int64_t offset, uint64_t len_bytes)
{
    uint64_t told = 0;
    struct oriel_access access = access_by(rank, ORIEL_ACCESS_PUT);
    struct oriel_extent run = {offset, len_bytes, 1, 0};
    if (!comes_again) {
        oriel_history_add(history, &access, &run, 1, count_it, &told);
        return told;
    }
    struct oriel_history_spot spot = oriel_history_expect(history, offset);
    held = oriel_history_hold(history, spot, &access, kept, &run, count_it, &told);
    if (held == NULL)
        oriel_history_add_again(history, spot, &access, &kept, &run, count_it, &told);
    return told;
}

static void complete(oriel_place history, int rank)
{
    if (held != NULL)
        oriel_history_held_complete(held, oriel_order_now());
    else
        oriel_history_complete(history, rank, 0, oriel_order_now());
    held = NULL;
}

static oriel_place shared(int rank, oriel_place (*make)(uint64_t size_bytes))
{
    if (rank == 0)
        atomic_store(&team->words[7], make(1 << 20));
    team_meet();
    oriel_place place = (oriel_place)atomic_load(&team->words[7]);
    team_meet();
    return place;
}

#endif
