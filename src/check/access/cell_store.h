/* Small accesses: of at most four cells, alone in their call. They are stored in cells
 * (history_pages.h) instead of the tree, so most operations read a line or two and wait for no
 * process that works elsewhere. Accesses of a loop belong in the tree, where they are one record.
 * No function requires a lock unless its comment states it; the argument is in cell_store.c. */
#ifndef ORIEL_CHECK_ACCESS_CELL_STORE_H
#define ORIEL_CHECK_ACCESS_CELL_STORE_H

#include "check/access/insert.h"
#include "check/common/reentrancy.h"

/* A pending access of this process in a cell. Only this process completes it (pending_list.c). */
struct oriel_pending_access {
    oriel_shm_offset history;
    struct oriel_cell *cell; /* has the lock */
    struct oriel_cell_entry *entry;
    uint64_t group;
    int32_t origin;
};
enum { ORIEL_UNDERWAY_MOST = 32 };

extern struct oriel_pending_list {
    unsigned count;
    struct oriel_pending_access list[ORIEL_UNDERWAY_MOST];
} oriel_pending_list __attribute__((visibility("hidden"))); /* pending_list.c's own */

/* --- in cell_store.c --- */

enum oriel_small { ORIEL_SMALL_NOT, ORIEL_SMALL_STANDS, ORIEL_SMALL_AND_WIDE };

/* Adds the access if it is small: compares it with the entries of its cells and removes what it
 * supersedes. AND_WIDE: records of the tree may be around it, and it must be compared with them
 * too. NOT: it belongs in the tree; no side effects. *trait: its trait, or 0, which is then looked
 * up. */
enum oriel_small oriel_small_add(struct oriel_insertion *arrival, oriel_shm_offset history,
                                 oriel_shm_offset *trait, const struct oriel_access_extent *runs);

/* The same for a pending access of plain bytes that may be merged; spot: of its first byte. */
enum oriel_small oriel_small_add_at(struct oriel_insertion *arrival, oriel_shm_offset history,
                                    struct oriel_history_spot spot, oriel_shm_offset *trait,
                                    const struct oriel_access_extent *run);

/* --- in cell_scan.c --- */

/* Compares an access that is not small with the entries in the cells of its bytes. Under the
 * history's lock. */
void oriel_small_meet(struct oriel_insertion *arrival, const struct oriel_access_extent *runs);

/* Removes the bytes from low to high from all cells. */
void oriel_small_forget(struct oriel_history *history, int64_t low, int64_t high);

/* --- in pending_list.c: of pending accesses of this process in a history's cells --- */

static inline bool oriel_pending_list_room(unsigned more)
{
    return !oriel_check_many_threads && oriel_pending_list.count + more <= ORIEL_UNDERWAY_MOST;
}

static inline void oriel_pending_list_add(oriel_shm_offset history, struct oriel_cell *cell,
                                          struct oriel_cell_entry *entry, uint64_t group,
                                          int32_t origin)
{
    oriel_pending_list.list[oriel_pending_list.count++] =
        (struct oriel_pending_access){history, cell, entry, group, origin};
}

/* The element of the list for the entry; NULL: the entry is not of this process. */
const struct oriel_pending_access *oriel_pending_list_find(const struct oriel_cell_entry *entry);

/* Completes with now those of the origin without a group, and those of the group. */
void oriel_pending_list_complete(oriel_shm_offset history, int32_t origin, uint64_t group,
                                 oriel_tick now);

/* Removes those of the group. */
void oriel_pending_list_end(oriel_shm_offset history, uint64_t group);
void oriel_pending_list_flag(oriel_shm_offset history, int32_t origin, uint8_t flags);

/* This process no longer uses the history. */
void oriel_pending_list_leave(oriel_shm_offset history);

/* --- the two words of an entry ---
 * ticks: issued << 16 | ticks from issue to completion
 * what:  trait << 22 | first << 15 | (63 - last) << 8 | flags
 * The bit above each offset is free. A screen holds the other's bytes in the opposite order. It is
 * added to an entry's word, and a sum of 64 or more shows in these bits. */

#define ORIEL_ENTRY_PENDING UINT64_C(0xffff)
#define ORIEL_ENTRY_TRAIT   22 /* bits below it */
#define ORIEL_ENTRY_FIRST   15
#define ORIEL_ENTRY_LAST    8
#define ORIEL_ENTRY_OFFSETS UINT64_C(0x3f)
#define ORIEL_ENTRY_BYTES                                                                          \
    (ORIEL_ENTRY_OFFSETS << ORIEL_ENTRY_FIRST | ORIEL_ENTRY_OFFSETS << ORIEL_ENTRY_LAST)
#define ORIEL_ENTRY_GUARDS                                                                         \
    (UINT64_C(1) << (ORIEL_ENTRY_FIRST + 6) | UINT64_C(1) << (ORIEL_ENTRY_LAST + 6))

static inline uint64_t oriel_entry_first(uint64_t what)
{
    return what >> ORIEL_ENTRY_FIRST & ORIEL_ENTRY_OFFSETS;
}

static inline uint64_t oriel_entry_last(uint64_t what)
{
    return ORIEL_ENTRY_OFFSETS - (what >> ORIEL_ENTRY_LAST & ORIEL_ENTRY_OFFSETS);
}

static inline uint64_t oriel_entry_with(uint64_t what, uint64_t first, uint64_t last)
{
    return (what & ~ORIEL_ENTRY_BYTES) | first << ORIEL_ENTRY_FIRST |
           (ORIEL_ENTRY_OFFSETS - last) << ORIEL_ENTRY_LAST;
}

/* The screen for an entry with this word. */
static inline uint64_t oriel_entry_screen(uint64_t what)
{
    return (ORIEL_ENTRY_OFFSETS - oriel_entry_last(what)) << ORIEL_ENTRY_FIRST |
           oriel_entry_first(what) << ORIEL_ENTRY_LAST;
}

/* Whether an entry has none of the screen's bytes. One without bytes seems to have all. */
static inline bool oriel_entry_is_apart(uint64_t what, uint64_t screen)
{
    return ((what + screen) & ORIEL_ENTRY_GUARDS) != 0;
}

/* Moves bytes from the start of a cell by N bytes within it: added to the word, and subtracted from
 * its screen. */
static inline uint64_t oriel_entry_move(uint64_t by)
{
    return by * ((UINT64_C(1) << ORIEL_ENTRY_FIRST) - (UINT64_C(1) << ORIEL_ENTRY_LAST));
}

/* Whether both have one trait and the same flags, and bytes without a hole between them; and the
 * merged word. */
static inline bool oriel_entry_joins(uint64_t a, uint64_t b)
{
    return ((a ^ b) & ~ORIEL_ENTRY_BYTES) == 0 && oriel_entry_first(a) <= oriel_entry_last(b) + 1 &&
           oriel_entry_first(b) <= oriel_entry_last(a) + 1;
}

static inline uint64_t oriel_entry_join(uint64_t a, uint64_t b)
{
    uint64_t first =
        oriel_entry_first(a) < oriel_entry_first(b) ? oriel_entry_first(a) : oriel_entry_first(b);
    uint64_t last =
        oriel_entry_last(a) > oriel_entry_last(b) ? oriel_entry_last(a) : oriel_entry_last(b);
    return oriel_entry_with(a, first, last);
}

static inline bool oriel_entry_pending(uint64_t ticks)
{
    return (ticks & ORIEL_ENTRY_PENDING) == ORIEL_ENTRY_PENDING;
}

static inline oriel_tick oriel_entry_complete(uint64_t ticks)
{
    return (ticks >> 16) + (ticks & 0xffff);
}

/* An access issued too long ago to be represented counts as issued later. */
static inline uint64_t oriel_entry_ticks(oriel_tick issued, oriel_tick complete)
{
    if (complete == ORIEL_TICK_PENDING)
        return issued << 16 | ORIEL_ENTRY_PENDING;
    if (issued > complete || complete - issued >= ORIEL_ENTRY_PENDING)
        issued = complete;
    return issued << 16 | (complete - issued);
}

/* The word of a pending access that is now complete. */
static inline uint64_t oriel_entry_completed(oriel_tick issued, oriel_tick now)
{
    uint64_t later = now - issued;
    return __builtin_expect(later < ORIEL_ENTRY_PENDING, 1) ? issued << 16 | later
                                                            : oriel_entry_ticks(issued, now);
}

#endif
