/* Records that are lent.  The argument, beside history.c's and cell_store.c's:
 * R1 A record is lent under its history's lock, and only while nothing that may come without that lock concerns it: whatever
 *    else stands in the tree or in cells and has bytes of it never conflicts with it, or is complete, known to its origin, and
 *    not lent itself.  What is known stays known; what else is there changes under the lock, or from pending to complete.  No
 *    history is beside it, into which who comes would have to look (aliased_windows.c).
 * R2 Whoever comes to a lent record under the lock and would conflict with it, now or when its origin comes again, recalls it:
 *    takes the line's key away, and reads the pending part behind a full fence.  The origin stores the part that is pending, and
 *    looks for the key behind a full fence.  So one of both finds the other's store: who recalls finds the part, and compares
 *    with it; or the origin finds no key, takes the part back, and goes the way of all, under the lock.  (Who finds a part that
 *    is then taken back tells a conflict of two that were under way at once.)  Small accesses come too: the record stands in the
 *    tree, so that wide is raised (S2), and none is lent beside it.  Where a history comes beside, all that is lent is recalled.
 * R3 The part is one word: nobody sees the first byte of one access with the length of another.  All of the record that came
 *    again is complete with its new number before the part goes, which is read first: who sees no part sees that number.
 * R4 A part is complete with the number of its record, or else it becomes a record of its own, under the lock.  So the record has
 *    one number, as history.c's 2 wants it.  (A part comes only when that is the process's own one, since it would be the latter.)
 * R5 What is recalled and has no part is at home: its numbers stand in the record again, and it may change.  With a part it
 *    stays as it is until its origin has completed that, and whoever comes looks into the line.
 * R6 The key is set by the origin alone, under the lock, when a record begins to lead to the line; before the line is used for
 *    another record, or the history goes, the origin brings home under that history's lock what led there.  Lines stay as long
 *    as the board, though their process ends.  Who empties a history (5) takes all keys away.
 * R7 What completes is the process's own: who serves other machines completes for them, and in such a process nothing is lent
 *    (oriel_check_several).
 * It costs those who recall, and the origin afterwards, more than it gave if they do so each time.  So a record is lent when its
 * call has come there several times, and more often each time that it was recalled before it was used. */
#include "check/access/record_lease.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/access/cell_store.h"
#include "check/intercept/reentrancy.h"

#include <string.h>

enum {
    LINES = 256,
    PENDING_MOST = 16,
    HINTS = 1024,     /* a power of 2: where lines were found */
    HABITS = 64,      /* a power of 2 */
    CHUNK_SHIFT = 16, /* of bytes that have a hint in common */
    WAIT_LEAST =
        ORIEL_DELAYS ? 0 : 3, /* comings; in tests that lose time, which want something lent soon */
    WAIT_MOST = ORIEL_DELAYS ? 1 : 250,
    WORTHWHILE = 16, /* comings to what is lent */
    TRIES = 4,       /* lines that are looked at for a free one */
    CROWDED = 128,   /* records around one that is not lent then */
};
#define LEN_MOST                                                                                   \
    (UINT64_C(1) << 26) /* bytes of a record: all around them is looked at when it is lent */

/* In the board.  Its origin alone writes it, but for key. */
struct line {
    _Alignas(ORIEL_CACHE_LINE) _Atomic uint64_t key; /* 0: recalled, or nothing is lent */
    _Atomic uint64_t
        part; /* pending: first byte, from the record's first, << 32 | bytes; 0: nothing is */
    _Atomic uint64_t issued; /* of the part */
    _Atomic uint64_t begun;  /* of the record, and when it was complete */
    _Atomic uint64_t complete;
};
_Static_assert(sizeof(struct line) == ORIEL_CACHE_LINE, "others' lines are none of its business");

/* What the origin alone knows of a line. */
struct side {
    oriel_shm_offset history; /* 0: free */
    oriel_record_number number;
    bool pending;
    uint32_t used;
    struct oriel_access_extent runs;
    oriel_tick complete;
    uint64_t group;             /* of the part */
    struct oriel_access access; /* as that of the record, of no group */
};

/* Accesses of a call in a history that have gone the way of all. */
struct habit {
    oriel_shm_offset history;
    uint64_t address;
    uint8_t came; /* since the last was lent */
    uint8_t wait;
};

static struct line *lines; /* NULL: none yet */
static struct side sides[LINES];
static unsigned pending_count;
static uint8_t pending[PENDING_MOST];
static uint8_t hints[HINTS];
static struct habit habits[HABITS];
static unsigned next_line;
static struct side *ousted; /* it has a line that another history wants */

/* The last that has come in vain. */
static struct {
    oriel_shm_offset history; /* 0: none */
    struct oriel_access_extent run;
    struct oriel_access access;
} wanted;

static bool start(void)
{
    if (lines != NULL)
        return true;
    oriel_shm_offset place = oriel_shm_allocate((LINES + 1) * sizeof(struct line));
    if (place == 0)
        return false;
    uintptr_t at = (uintptr_t)oriel_shm_at(place);
    lines =
        (struct line *)((at + sizeof(struct line) - 1) / sizeof(struct line) * sizeof(struct line));
    return true;
}

void oriel_record_lease_stop(void)
{
    lines = NULL;
    pending_count = 0;
    ousted = NULL;
    wanted.history = 0;
    memset(sides, 0, sizeof sides);
    memset(habits, 0, sizeof habits);
}

static struct line *line_of(const struct side *side)
{
    return &lines[side - sides];
}

static uint64_t mix(oriel_shm_offset history, uint64_t address, uint64_t chunk)
{
    return (history ^ address << 20 ^ chunk << 40 ^ chunk >> 24) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct habit *habit_of(oriel_shm_offset history, uint64_t address)
{
    struct habit *habit = &habits[mix(history, address, 0) >> 58];
    _Static_assert(HABITS == 1 << 6, "as many as six bits tell apart");
    if (habit->history != history || habit->address != address)
        *habit = (struct habit){history, address, 0, WAIT_LEAST};
    return habit;
}

static void wait_longer(struct habit *habit)
{
    habit->wait = 2 * habit->wait >= WAIT_MOST ? WAIT_MOST : (uint8_t)(2 * habit->wait + 1);
}

static uint8_t *hint_of(oriel_shm_offset history, uint64_t address, uint64_t chunk)
{
    _Static_assert(HINTS == 1 << 10 && LINES <= 1 << 8,
                   "as many as ten bits tell apart, and a byte holds");
    return &hints[mix(history, address, chunk) >> 54];
}

static bool is_whole(const struct side *side, const struct oriel_access_extent *run)
{
    return side->runs.offset == run->offset && side->runs.len_bytes == run->len_bytes;
}

/* --- home --- */

/* R5 */
static void settle(struct oriel_record *record, const struct line *line)
{
    record->access.complete = atomic_load_explicit(&line->complete, memory_order_relaxed);
    record->access.issued = atomic_load_explicit(&line->begun, memory_order_relaxed);
    record->loan = 0;
}

/* R4: a record of its own; without room it is lost, and the board counts that. */
static void list_part(struct oriel_history *history, const struct oriel_record *record,
                      const struct side *side, uint64_t part)
{
    oriel_record_number number = oriel_record_make(&history->records);
    if (number == 0)
        return;
    struct oriel_record *more = oriel_record_at(&history->records, number);
    more->runs = (struct oriel_access_extent){record->runs.offset + (int64_t)(part >> 32),
                                              part & UINT32_MAX, 1, 0};
    more->access = record->access;
    more->access.complete = ORIEL_TICK_PENDING;
    more->access.issued = atomic_load_explicit(&line_of(side)->issued, memory_order_relaxed);
    more->access.group = side->group;
    oriel_record_insert(&history->records, number, false);
    oriel_history_chain(history, number);
}

/* By the origin, under the lock: the line is free. */
static void bring_home(struct oriel_history *history, struct side *side)
{
    struct line *line = line_of(side);
    struct habit *habit = habit_of(side->history, side->access.site.address);
    if (side->used >= WORTHWHILE)
        habit->wait = WAIT_LEAST;
    else
        wait_longer(habit);
    habit->came = 0;
    atomic_store_explicit(&line->key, 0, memory_order_relaxed);
    struct oriel_record *record = side->number <= history->records.made
                                      ? oriel_record_at(&history->records, side->number)
                                      : NULL;
    uint64_t part = side->pending ? atomic_load_explicit(&line->part, memory_order_relaxed) : 0;
    if (record != NULL && record->loan == oriel_shm_place(line)) {
        settle(record, line);
        if (part != 0)
            list_part(history, record, side, part);
    }
    atomic_store_explicit(&line->part, 0, memory_order_relaxed);
    for (unsigned i = 0; i < pending_count; i++)
        if (&sides[pending[i]] == side)
            pending[i] = pending[--pending_count];
    side->history = 0;
    side->pending = false;
    if (ousted == side)
        ousted = NULL;
}

static void give_up(struct side *side)
{
    struct oriel_history *history = oriel_history_enter(side->history);
    bring_home(history, side);
    oriel_history_exit(history);
}

void oriel_record_lease_leave(oriel_shm_offset history)
{
    for (struct side *side = sides; lines != NULL && side < sides + LINES; side++)
        if (side->history == history && history != 0)
            give_up(side);
    if (wanted.history == history)
        wanted.history = 0;
}

/* --- the origin comes --- */

static bool is_of(const struct side *side, oriel_shm_offset history,
                  const struct oriel_access *access, const struct oriel_access_extent *run)
{
    return side->history == history && oriel_access_alike(&side->access, access) &&
           oriel_byte_runs_contain(&side->runs, run);
}

static struct side *find(oriel_shm_offset history, const struct oriel_access *access,
                         const struct oriel_access_extent *run)
{
    uint8_t *hint =
        hint_of(history, access->site.address, ((uint64_t)run->offset >> CHUNK_SHIFT) + 1);
    if (oriel_likely(is_of(&sides[*hint], history, access, run)))
        return &sides[*hint];
    uint8_t last = *hint_of(history, access->site.address, 0);
    if (!is_of(&sides[last], history, access, run))
        return NULL;
    *hint = last;
    return &sides[last];
}

/* R2 */
static bool stands(struct side *side, uint64_t part, oriel_tick issued)
{
    struct line *line = line_of(side);
    atomic_store_explicit(&line->issued, issued, memory_order_relaxed);
    oriel_delay();
    atomic_store_explicit(&line->part, part, memory_order_release);
    oriel_delay();
    oriel_fence_full();
    oriel_delay();
    if (oriel_likely(atomic_load_explicit(&line->key, memory_order_relaxed) != 0))
        return true;
    atomic_store_explicit(&line->part, 0, memory_order_relaxed);
    return false;
}

static bool come_in_vain(oriel_shm_offset history, const struct oriel_access *access,
                         const struct oriel_access_extent *run)
{
    struct habit *habit = habit_of(history, access->site.address);
    habit->came += habit->came < UINT8_MAX;
    wanted.history = history;
    wanted.run = *run;
    wanted.access = *access;
    if (oriel_unlikely(ousted != NULL)) {
        next_line = (unsigned)(ousted - sides); /* the first that is looked at */
        give_up(ousted);
    }
    return false;
}

bool oriel_record_lease_come(oriel_shm_offset history, const struct oriel_access *access,
                             const struct oriel_access_extent *run)
{
    struct oriel_access alone = *access;
    alone.group = 0;
    if (oriel_unlikely(oriel_check_several || run->count != 1 || run->len_bytes == 0 ||
                       run->len_bytes > LEN_MOST))
        return false;
    struct side *side = find(history, &alone, run);
    if (side == NULL)
        return come_in_vain(history, &alone, run);
    bool fits = is_whole(side, run) || side->complete == oriel_order_now(); /* R4 */
    if (oriel_unlikely(side->pending || pending_count == PENDING_MOST))
        return come_in_vain(history, &alone, run);
    uint64_t part = (uint64_t)(run->offset - side->runs.offset) << 32 | run->len_bytes;
    if (oriel_unlikely(!fits || !stands(side, part, access->issued))) {
        give_up(side);
        return come_in_vain(history, &alone, run);
    }
    side->used++;
    side->pending = true;
    side->group = access->group;
    pending[pending_count++] = (uint8_t)(side - sides);
    return true;
}

/* R3, R4.  False: it needs a record of its own. */
static bool complete_part(struct side *side, oriel_tick now)
{
    struct line *line = line_of(side);
    uint64_t part = atomic_load_explicit(&line->part, memory_order_relaxed);
    if (part == side->runs.len_bytes) { /* from the first byte on */
        atomic_store_explicit(&line->begun,
                              atomic_load_explicit(&line->issued, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&line->complete, now, memory_order_relaxed);
        side->complete = now;
        oriel_delay();
    } else if (side->complete != now) {
        return false;
    }
    atomic_store_explicit(&line->part, 0, memory_order_release);
    side->pending = false;
    return true;
}

void oriel_record_lease_complete(oriel_shm_offset history, uint64_t group, oriel_tick now,
                                 bool alone)
{
    for (unsigned i = pending_count; i-- > 0;) {
        struct side *side = &sides[pending[i]];
        if (side->history != history || (side->group != group && (side->group != 0 || alone)))
            continue;
        if (oriel_likely(complete_part(side, now)))
            pending[i] = pending[--pending_count];
        else
            give_up(side);
    }
}

void oriel_record_lease_list(oriel_shm_offset history)
{
    for (unsigned i = pending_count; i-- > 0;)
        if (sides[pending[i]].history == history && sides[pending[i]].group == 0)
            give_up(&sides[pending[i]]);
}

/* --- a record is lent --- */

/* R1 */
static bool is_quiet(struct oriel_history *history, oriel_record_number number,
                     const oriel_tick *clock)
{
    struct oriel_records *records = &history->records;
    const struct oriel_record *mine = oriel_record_at(records, number);
    int64_t high = oriel_byte_runs_end(&mine->runs);
    struct oriel_record_hits hits;
    struct oriel_access_extent after;
    oriel_record_number last = 0;
    size_t around = 0;
    do {
        oriel_records_find(records, mine->runs.offset, high, last == 0 ? NULL : &after, last,
                           &hits);
        for (size_t i = 0; i < hits.count; i++) {
            const struct oriel_record *other = oriel_record_at(records, hits.numbers[i]);
            int64_t offset;
            uint64_t len_bytes;
            if (other == mine || !oriel_access_conflicts(&other->access, &mine->access) ||
                !oriel_byte_runs_meet(&other->runs, &mine->runs, &offset, &len_bytes))
                continue;
            if (other->loan != 0 || oriel_access_pending(&other->access) ||
                (other->access.origin != mine->access.origin &&
                 other->access.complete > clock[other->access.origin]))
                return false;
        }
        around += hits.count;
        if (hits.count == 0 || around > CROWDED)
            break;
        last = hits.numbers[hits.count - 1];
        after = oriel_record_at(records, last)->runs;
    } while (hits.count == ORIEL_RECORD_HITS);
    return around <= CROWDED &&
           oriel_small_is_quiet(history, &mine->access, mine->runs.offset, high, clock);
}

/* One of nobody, or of the same history; NULL: none is near. */
static struct side *free_side(oriel_shm_offset place, struct oriel_history *history)
{
    for (int i = 0; i < TRIES; i++) {
        struct side *side = &sides[next_line++ % LINES];
        if (side->history == place && !side->pending)
            bring_home(history, side);
        if (side->history == 0)
            return side;
        if (!side->pending)
            ousted = side;
    }
    return NULL;
}

static bool may_be_lent(struct oriel_history *history, oriel_record_number number)
{
    const struct oriel_record *record = oriel_record_at(&history->records, number);
    const oriel_tick *clock = oriel_order_moment_clock(ORIEL_MOMENT_NOW);
    return record->loan == 0 && record->runs.count == 1 && record->runs.offset >= 0 &&
           record->runs.len_bytes <= LEN_MOST &&
           oriel_access_supersedes(&wanted.access, &record->access) &&
           atomic_load(&history->beside) == 0 && clock != NULL && is_quiet(history, number, clock);
}

void oriel_record_lease_offer(oriel_shm_offset place, struct oriel_history *history,
                              oriel_record_number number)
{
    if (oriel_likely(wanted.history != place) || number == 0)
        return;
    struct oriel_record *record = oriel_record_at(&history->records, number);
    if (!oriel_access_alike(&record->access, &wanted.access) ||
        !oriel_byte_runs_contain(&record->runs, &wanted.run))
        return;
    struct habit *habit = habit_of(place, wanted.access.site.address);
    wanted.history = 0;
    if (habit->came <= habit->wait || !start())
        return;
    habit->came = 0;
    struct side *side = may_be_lent(history, number) ? free_side(place, history) : NULL;
    if (side == NULL) {
        wait_longer(habit);
        return;
    }
    struct line *line = line_of(side);
    *side = (struct side){.history = place,
                          .number = number,
                          .runs = record->runs,
                          .complete = record->access.complete,
                          .access = record->access};
    atomic_store_explicit(&line->begun, record->access.issued, memory_order_relaxed);
    atomic_store_explicit(&line->complete, record->access.complete, memory_order_relaxed);
    record->loan = oriel_shm_place(line);
    atomic_store_explicit(&line->key, 1, memory_order_relaxed);
    uint8_t which = (uint8_t)(side - sides);
    *hint_of(place, record->access.site.address, ((uint64_t)wanted.run.offset >> CHUNK_SHIFT) + 1) =
        which;
    *hint_of(place, record->access.site.address, 0) = which;
}

/* --- others come --- */

/* R2.  The part that is pending. */
static uint64_t recall(struct oriel_record *record)
{
    struct line *line = oriel_shm_at(record->loan);
    atomic_store_explicit(&line->key, 0, memory_order_relaxed);
    oriel_delay();
    oriel_fence_full();
    oriel_delay();
    uint64_t part = atomic_load_explicit(&line->part, memory_order_acquire); /* R3 */
    oriel_delay();
    if (part == 0)
        settle(record, line);
    return part;
}

bool oriel_record_lease_recall(struct oriel_record *record)
{
    return record->loan == 0 || recall(record) == 0;
}

void oriel_record_lease_recall_around(struct oriel_history *history, int64_t low, int64_t high)
{
    for (oriel_record_number number = 1; number <= history->records.made; number++) {
        struct oriel_record *record = oriel_record_at(&history->records, number);
        if (record->loan != 0 && record->runs.offset < high &&
            oriel_byte_runs_end(&record->runs) > low)
            recall(record);
    }
}

void oriel_record_lease_recall_all(struct oriel_history *history)
{
    for (oriel_record_number number = 1; number <= history->records.made; number++) {
        const struct oriel_record *record = oriel_record_at(&history->records, number);
        if (record->loan != 0)
            atomic_store(&((struct line *)oriel_shm_at(record->loan))->key, 0);
    }
}

/* What it is as long as a part is pending. */
static void tell(struct oriel_insertion *arrival, const struct oriel_record *record, uint64_t part,
                 const struct oriel_access_extent *runs)
{
    const struct line *line = oriel_shm_at(record->loan);
    struct oriel_access earlier = record->access;
    struct oriel_access_extent bytes = {record->runs.offset + (int64_t)(part >> 32),
                                        part & UINT32_MAX, 1, 0};
    int64_t offset;
    uint64_t len_bytes;
    earlier.complete = ORIEL_TICK_PENDING;
    earlier.issued = atomic_load_explicit(&line->issued, memory_order_relaxed);
    if (oriel_byte_runs_meet(&bytes, runs, &offset, &len_bytes))
        oriel_insertion_tell(arrival, &earlier, offset, len_bytes);
    earlier.complete = atomic_load_explicit(&line->complete, memory_order_relaxed);
    earlier.issued = atomic_load_explicit(&line->begun, memory_order_relaxed);
    if (!oriel_insertion_knows(arrival, earlier.origin, earlier.complete) &&
        oriel_byte_runs_meet(&record->runs, runs, &offset, &len_bytes))
        oriel_insertion_tell(arrival, &earlier, offset, len_bytes);
}

bool oriel_record_lease_meet(struct oriel_insertion *arrival, struct oriel_record *record,
                             const struct oriel_access_extent *runs)
{
    int64_t offset;
    uint64_t len_bytes;
    const struct oriel_access *access = arrival->access;
    bool conflicts = oriel_access_conflicts(&record->access, access) &&
                     oriel_byte_runs_meet(&record->runs, runs, &offset, &len_bytes);
    bool same = access->origin == record->access.origin && access->kind == record->access.kind &&
                access->site.address == record->access.site.address; /* they may become one */
    if (!conflicts && !same)
        return false;
    uint64_t part = recall(record);
    if (part == 0)
        return true;
    if (conflicts)
        tell(arrival, record, part, runs);
    return false;
}
