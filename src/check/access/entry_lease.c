/* Entries that are lent.  The argument, beside cell_store.c's:
 * L1 An entry is lent under its cell's lock, and only while nothing that may come without the lock concerns it:
 *    whatever else stands there and has bytes of it never conflicts with it, or is complete, known to its origin, and
 *    not lent itself.  What is known stays known, and what is not lent changes under the lock, or from pending to
 *    complete.  And no record of the tree lies around (wide is 0).
 * L2 Whoever comes to a cell under its lock and would conflict with what is lent there, now or when its origin comes
 *    again, recalls it: takes the line's key away, and reads the ticks behind a full fence.  The origin stores that it
 *    is pending, and looks for the key behind a full fence.  So one of both finds the other's store: who recalls finds
 *    it pending, and compares with that; or the origin finds no key, stores what was there before, and goes the way of
 *    all, under the cell's lock. What goes into the tree comes to the cells of its bytes after it has raised wide (S2).
 *    Where wide is raised for those of another history (aliased_windows.c), all that is lent is recalled.
 * L3 What is recalled and complete is at home: its ticks stand in the cell again.  What is pending stays in the line
 *    until its origin completes it (S3), and who looks at it in the cell is led there.
 * L4 The key is set by the origin and taken away by anyone, always under the lock of the line's cell.  Before the
 *    origin sets it anew, be it for another cell, it brings home under that lock all that leads to the line.  So a key
 *    that the origin finds is that of its entries, and what leads to a line is of its cell.  Before a history goes,
 *    each process brings home what it has of it; lines stay as long as the board, though their process ends.
 * It costs those who recall, and the origin afterwards, more than it gave if they do so each time.  So an entry is
 * lent when the cell has been come to several times, and to more each time that something was recalled or could not
 * be lent. */
#include "check/access/entry_lease.h"

#include "base/delay.h"
#include "check/access/access_kinds.h"

#include <string.h>

enum {
    LINES = 1 << 13, /* a power of 2 */
    PARTS_MOST = 4,  /* of a cell in which something is lent */
    WAIT_LEAST =
        ORIEL_DELAYS ? 0 : 3, /* comings; in tests that lose time, which want something lent soon */
    WAIT_MOST = ORIEL_DELAYS ? 1 : 60,
    CHALLENGES_MOST = 16, /* by cells without a line, until one of them has it */
};

/* What the origin alone knows of a line. */
struct side {
    uint64_t key; /* 0: free */
    uint8_t came; /* since it was lent or recalled */
    uint8_t wait; /* as often something may come before it is lent */
    uint8_t challenged;
};

static _Alignas(2 * ORIEL_CACHE_LINE) struct oriel_entry_lease_line no_lines[2];
static struct side sides[LINES];
struct oriel_entry_lease oriel_entry_lease = {.lines = no_lines};

static bool start(void)
{
    if (oriel_entry_lease.lines != no_lines)
        return true;
    const uintptr_t pair_bytes = 2 * sizeof(struct oriel_entry_lease_line);
    oriel_shm_offset place =
        oriel_shm_allocate(LINES * sizeof(struct oriel_entry_lease_line) + pair_bytes);
    if (place == 0)
        return false;
    uintptr_t at = (uintptr_t)oriel_shm_at(place);
    memset(sides, 0, sizeof sides);
    oriel_entry_lease.lines =
        (struct oriel_entry_lease_line *)((at + pair_bytes - 1) / pair_bytes * pair_bytes);
    oriel_entry_lease.last = LINES - 1;
    return true;
}

void oriel_entry_lease_stop(void)
{
    oriel_entry_lease.lines = no_lines;
    oriel_entry_lease.last = 0;
}

static struct side *side_of(const struct oriel_entry_lease_line *line)
{
    return &sides[line - oriel_entry_lease.lines];
}

static struct oriel_cell_entry *follow(const struct oriel_cell_entry *entry)
{
    return oriel_shm_at(oriel_cell_link(entry) >> 16);
}

/* L2, L3 */
uint64_t oriel_entry_lease_recall(struct oriel_cell_entry *entry)
{
    struct oriel_cell_entry *lent = follow(entry);
    atomic_store_explicit(&oriel_entry_lease_line_of(lent)->key, 0, memory_order_relaxed);
    oriel_delay();
    oriel_fence_full();
    oriel_delay();
    uint64_t ticks = atomic_load_explicit(&lent->ticks, memory_order_acquire);
    if (!oriel_entry_pending(ticks))
        atomic_store_explicit(&entry->ticks, ticks, memory_order_relaxed);
    return ticks;
}

/* L4: all of a line, by its origin, under the cell's lock.  Answers where in the cell the one is that was in that place
 * of it. */
static struct oriel_cell_entry *bring_home(struct oriel_entry_lease_line *line,
                                           const struct oriel_cell_entry *which)
{
    struct oriel_cell_entry *found = NULL;
    atomic_store_explicit(&line->key, 0, memory_order_relaxed);
    for (struct oriel_cell *cell = oriel_shm_at(line->cell); cell != NULL;
         cell = oriel_shm_at(cell->next))
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            struct oriel_cell_entry *entry = &cell->entries[i];
            const struct oriel_cell_entry *lent = oriel_cell_is_lent(entry) ? follow(entry) : NULL;
            if (lent == NULL || oriel_entry_lease_line_of(lent) != line)
                continue;
            found = lent == which ? entry : found;
            atomic_store_explicit(&entry->ticks,
                                  atomic_load_explicit(&lent->ticks, memory_order_relaxed),
                                  memory_order_relaxed);
        }
    for (int i = 0; i < ORIEL_ENTRY_LEASE_ENTRIES; i++)
        line->entries[i].what = 0;
    return found;
}

static void wait_longer(struct side *side)
{
    side->came = 0;
    side->wait = 2 * side->wait >= WAIT_MOST ? WAIT_MOST : (uint8_t)(2 * side->wait + 1);
}

static struct oriel_cell_entry *give_up(struct oriel_entry_lease_line *line,
                                        const struct oriel_cell_entry *which)
{
    struct oriel_cell *cell = oriel_shm_at(line->cell);
    oriel_shm_word_lock(&cell->owner);
    struct oriel_cell_entry *home = bring_home(line, which);
    oriel_shm_word_unlock(&cell->owner);
    return home;
}

struct oriel_cell_entry *oriel_entry_lease_end(struct oriel_cell_entry *entry)
{
    struct oriel_entry_lease_line *line = oriel_entry_lease_line_of(entry);
    if (line < oriel_entry_lease.lines || line > oriel_entry_lease.lines + oriel_entry_lease.last)
        return entry;
    wait_longer(side_of(line));
    return give_up(line, entry);
}

void oriel_entry_lease_leave(oriel_shm_offset history)
{
    for (struct oriel_entry_lease_line *line = oriel_entry_lease.lines;
         oriel_entry_lease.last != 0 && line < oriel_entry_lease.lines + LINES; line++) {
        struct side *side = side_of(line);
        if (side->key >> ORIEL_ENTRY_LEASE_NUMBER_BITS != history >> 4 || side->key == 0)
            continue;
        give_up(line, NULL);
        line->cell = 0;
        *side = (struct side){0};
    }
}

/* The line of the cell, or one that becomes its; NULL: others have them. */
static struct oriel_entry_lease_line *line_for(uint64_t key, struct oriel_cell *cell)
{
    struct oriel_entry_lease_line *line = oriel_entry_lease_first(key);
    struct oriel_entry_lease_line *second = oriel_entry_lease_second(line);
    if (side_of(line)->key == key)
        return line;
    if (side_of(second)->key == key)
        return second;
    if (side_of(line)->key != 0 &&
        (side_of(second)->key == 0 || side_of(second)->challenged > side_of(line)->challenged))
        line = second;
    struct side *side = side_of(line);
    if (side->key != 0) {
        if (++side->challenged < CHALLENGES_MOST)
            return NULL;
        give_up(line, NULL);
    }
    line->cell = oriel_shm_place(cell);
    *side = (struct side){.key = key, .wait = WAIT_LEAST};
    return line;
}

/* L1 */
static bool may_be_lent(const struct oriel_callsite_arrival *again, struct oriel_cell *whole,
                        const struct oriel_cell_entry *mine)
{
    const oriel_tick *clock = oriel_order_moment_clock(ORIEL_MOMENT_NOW);
    uint64_t screen = oriel_entry_screen(mine->what);
    int parts = 0;
    for (struct oriel_cell *cell = whole; cell != NULL; cell = oriel_shm_at(cell->next)) {
        if (++parts > PARTS_MOST)
            return false;
        for (int i = 0; i < ORIEL_CELL_ENTRIES; i++) {
            const struct oriel_cell_entry *entry = &cell->entries[i];
            if (entry == mine || entry->what == 0 || oriel_entry_is_apart(entry->what, screen))
                continue;
            const struct oriel_access *trait = oriel_cell_trait(entry->what);
            uint64_t ticks = oriel_cell_link(entry);
            if (!oriel_access_conflicts(trait, again->access))
                continue;
            if (oriel_cell_is_lent(entry) || oriel_entry_pending(ticks) ||
                oriel_entry_complete(ticks) > clock[trait->origin])
                return false;
        }
    }
    return true;
}

struct oriel_cell_entry *oriel_entry_lease_elsewhere(struct oriel_entry_lease_line *line,
                                                     uint64_t mine)
{
    for (int i = 0; i < ORIEL_ENTRY_LEASE_ENTRIES; i++)
        if (line->entries[i].what == mine)
            return &line->entries[i];
    return NULL;
}

/* Where it may stand in a line. */
static struct oriel_cell_entry *free_entry(struct oriel_entry_lease_line *line, uint64_t mine)
{
    struct oriel_cell_entry *first = &line->entries[oriel_entry_lease_place(mine)];
    return first->what == 0 ? first : oriel_entry_lease_elsewhere(line, 0);
}

static bool is_empty(const struct oriel_entry_lease_line *line)
{
    return line->entries[0].what == 0 && line->entries[1].what == 0 && line->entries[2].what == 0;
}

/* Under the cell's lock: the entry, if it can be lent.  Answers where it is then. */
static struct oriel_cell_entry *lend(const struct oriel_callsite_arrival *again,
                                     struct oriel_cell *cell, struct oriel_entry_lease_line *line,
                                     uint64_t key, struct oriel_cell_entry *entry)
{
    struct oriel_cell_entry *lent = free_entry(line, entry->what);
    if (lent == NULL) {
        bring_home(line, NULL); /* they may be of epochs that are over */
        return entry;
    }
    if (!may_be_lent(again, cell, entry))
        return entry;
    lent->what = entry->what;
    atomic_store_explicit(&lent->ticks, oriel_cell_link(entry), memory_order_relaxed);
    atomic_store_explicit(&entry->ticks, oriel_shm_place(lent) << 16 | ORIEL_ENTRY_LENT,
                          memory_order_release);
    atomic_store_explicit(&line->key, key, memory_order_relaxed);
    return lent;
}

struct oriel_cell_entry *oriel_entry_lease_begin(const struct oriel_callsite_arrival *again,
                                                 struct oriel_history_spot spot, uint64_t mine,
                                                 uint64_t at, struct oriel_cell_entry *entry)
{
    struct oriel_cell *cell = oriel_callsite_cell(spot.page, at);
    struct oriel_cell_entry *lent = entry;
    uint64_t key = oriel_entry_lease_key(again->history, at);
    struct oriel_entry_lease_line *line = start() ? line_for(key, cell) : NULL;
    if (line == NULL || ++side_of(line)->came <= side_of(line)->wait)
        return entry;
    oriel_shm_word_lock(&cell->owner);
    if (atomic_load_explicit(&line->key, memory_order_relaxed) == 0 && !is_empty(line))
        bring_home(line, NULL); /* it was recalled */
    else if (entry->what == mine && atomic_load(&spot.bucket->wide) == 0)
        lent = lend(again, cell, line, key, entry);
    oriel_shm_word_unlock(&cell->owner);
    if (lent == entry)
        wait_longer(side_of(line));
    else
        side_of(line)->came = side_of(line)->wait; /* what else comes to the cell need not wait */
    return lent;
}
