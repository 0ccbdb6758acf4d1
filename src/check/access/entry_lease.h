/* Entries of cells that are lent: the ticks of such an entry stand in a line of its origin's own, which comes again
 * without the cell's lock, and without its lines, as long as nobody has come there whom that concerns.  A process
 * has some thousand lines, one for each cell that it comes to again and again.  Small accesses that a call makes
 * again, one at a time, alone have them (pending_slot.h), where one thread makes all calls; the argument is in entry_lease.c.
 * pending_slot.h, history.c and start.c call; the files of cells know entries that are lent by cell_internal.h. */
#ifndef ORIEL_CHECK_ACCESS_ENTRY_LEASE_H
#define ORIEL_CHECK_ACCESS_ENTRY_LEASE_H

#include "check/access/cell_repeat.h"

enum { ORIEL_ENTRY_LEASE_ENTRIES = 3 };

/* In the board.  Its origin alone uses all of it; others set key to 0, and read the ticks to which a cell's entry
 * leads. */
struct oriel_entry_lease_line {
    _Alignas(ORIEL_CACHE_LINE) _Atomic uint64_t
        key; /* L4: of the cell, as oriel_entry_lease_key says; 0: recalled, or nothing is lent */
    oriel_shm_offset cell;                                      /* 0: of none */
    struct oriel_cell_entry entries[ORIEL_ENTRY_LEASE_ENTRIES]; /* what 0: free */
};
_Static_assert(sizeof(struct oriel_entry_lease_line) == ORIEL_CACHE_LINE,
               "all of a cell's are one line");

extern struct oriel_entry_lease {
    struct oriel_entry_lease_line *lines; /* those of nobody before the first is lent */
    uint64_t last;                        /* line: a power of 2, less 1 */
} oriel_entry_lease __attribute__((visibility("hidden"))); /* entry_lease.c's own */

enum { ORIEL_ENTRY_LEASE_NUMBER_BITS = 30 };

/* Whether the cells of a memory of so many bytes have keys: 64 GiB. */
static inline bool oriel_entry_lease_has_keys(uint64_t size_bytes)
{
    return (size_bytes >> ORIEL_ENTRY_LEASE_NUMBER_BITS >> ORIEL_CELL_SHIFT) == 0;
}

/* Of the cell of a byte; places of the board are aligned to 16, and below 2^38. */
static inline uint64_t oriel_entry_lease_key(oriel_shm_offset history, uint64_t at)
{
    return history << (ORIEL_ENTRY_LEASE_NUMBER_BITS - 4) | at >> ORIEL_CELL_SHIFT;
}

/* The line of a cell; if others have it, the one beside it may be.  Cells that are neighbours have lines that are. */
static inline struct oriel_entry_lease_line *oriel_entry_lease_first(uint64_t key)
{
    uint64_t salt = (key >> ORIEL_ENTRY_LEASE_NUMBER_BITS) * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    return &oriel_entry_lease.lines[(key + salt) & oriel_entry_lease.last];
}

static inline struct oriel_entry_lease_line *
oriel_entry_lease_second(const struct oriel_entry_lease_line *first)
{
    return (struct oriel_entry_lease_line *)((uintptr_t)first ^ sizeof *first);
}

/* Where in its line an entry is looked for first. */
static inline unsigned oriel_entry_lease_place(uint64_t mine)
{
    return (unsigned)oriel_entry_first(mine) / sizeof(uint64_t) % ORIEL_ENTRY_LEASE_ENTRIES;
}

static inline struct oriel_entry_lease_line *
oriel_entry_lease_line_of(const struct oriel_cell_entry *lent)
{
    return (struct oriel_entry_lease_line *)((uintptr_t)lent & ~(uintptr_t)(ORIEL_CACHE_LINE - 1));
}

/* In entry_lease.c: as below, in all places of a line. */
struct oriel_cell_entry *oriel_entry_lease_elsewhere(struct oriel_entry_lease_line *line,
                                                     uint64_t mine);

/* This process's entry at that cell, lent, that is as mine; NULL: it has none. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *oriel_entry_lease_find(uint64_t key, uint64_t mine)
{
    struct oriel_entry_lease_line *line = oriel_entry_lease_first(key);
    if (oriel_unlikely(atomic_load_explicit(&line->key, memory_order_relaxed) != key)) {
        line = oriel_entry_lease_second(line);
        if (atomic_load_explicit(&line->key, memory_order_relaxed) != key)
            return NULL;
    }
    struct oriel_cell_entry *entry = &line->entries[oriel_entry_lease_place(mine)];
    return oriel_likely(entry->what == mine) ? entry : oriel_entry_lease_elsewhere(line, mine);
}

/* L2: it is pending from now on, if behind a full fence it stands so; it does while the line is still the cell's.
 * Answers what it was before, for oriel_entry_lease_stands. */
ORIEL_SMALL_INLINE uint64_t oriel_entry_lease_pend(struct oriel_cell_entry *lent, oriel_tick issued)
{
    uint64_t before = atomic_load_explicit(&lent->ticks, memory_order_relaxed);
    oriel_delay();
    atomic_store_explicit(&lent->ticks, oriel_entry_ticks(issued, ORIEL_TICK_PENDING),
                          memory_order_relaxed);
    oriel_delay();
    return before;
}

/* False: nothing has happened. */
ORIEL_SMALL_INLINE bool oriel_entry_lease_stands(struct oriel_cell_entry *lent, uint64_t key,
                                                 uint64_t before)
{
    oriel_delay();
    if (oriel_likely(atomic_load_explicit(&oriel_entry_lease_line_of(lent)->key,
                                          memory_order_relaxed) == key))
        return true;
    atomic_store_explicit(&lent->ticks, before, memory_order_relaxed);
    return false;
}

/* What has just come to its cell, and is pending in the entry there, may be lent from now on.  Answers where it stands
 * then. */
struct oriel_cell_entry *oriel_entry_lease_begin(const struct oriel_callsite_arrival *again,
                                                 struct oriel_history_spot spot, uint64_t mine,
                                                 uint64_t at, struct oriel_cell_entry *entry);

/* As oriel_history_hold, of one that is not lent, and may be from now on. */
ORIEL_SMALL_INLINE struct oriel_cell_entry *
oriel_entry_lease_hold(const struct oriel_callsite_arrival *again, struct oriel_history_spot spot,
                       uint64_t mine, uint64_t screen, bool repeats, oriel_tick issued, uint64_t at)
{
    struct oriel_cell_entry *entry =
        oriel_history_hold(again, spot, mine, screen, repeats, issued, at);
    return oriel_likely(entry != NULL && repeats)
               ? oriel_entry_lease_begin(again, spot, mine, at, entry)
               : entry;
}

/* The entry in its cell, where it is from now on, with all of its line; one that is not lent stays.  NULL: its bytes
 * are forgotten. */
struct oriel_cell_entry *oriel_entry_lease_end(struct oriel_cell_entry *entry);

/* This process uses the history no more. */
void oriel_entry_lease_leave(oriel_shm_offset history);

/* Nor the board. */
void oriel_entry_lease_stop(void);

#endif
