/* Buffers that unfinished calls still need, while loads and stores are not watched. Then only other
 * calls of this process can conflict with them. They are few and over soon. The list is short, and
 * contains plain runs. A buffer that does not fit, or is no plain run, is stored in the history of
 * local_accesses.c. Protected by the lock of local_accesses.c; where one thread makes all calls,
 * callsite_cache.c uses it without the lock. */
#ifndef ORIEL_CHECK_LOCAL_SHORT_BUFFERS_H
#define ORIEL_CHECK_LOCAL_SHORT_BUFFERS_H

#include "check/common/access_types.h"
#include "check/common/reentrancy.h"
#include "check/local/buffer_uses.h"
#include "check/local/window_memory.h"

struct oriel_short_buffer {
    uint64_t low;
    uint64_t high;
    uint64_t group; /* 0: already over, only compared */
    struct oriel_site site;
    bool writes;
    uint8_t flags;
};

enum { ORIEL_SHORT_BUFFERS_MOST = 24 };

/* The list. Changed by short_buffers.c and the functions below only. */
extern struct oriel_short_buffers {
    unsigned count;
    bool open; /* local_accesses.c has started, and loads and stores are not watched */
    struct oriel_short_buffer list[ORIEL_SHORT_BUFFERS_MOST];
} oriel_short_buffers __attribute__((visibility("hidden")));

/* Compares the run with the buffers in the list, reports conflicts, and inserts it until
 * oriel_short_buffer_end of its group. Returns false without side effects if there is no room. */
bool oriel_short_buffer_use(const struct oriel_short_buffer *use, oriel_conflict_fn *tell,
                            void *closure);

/* The same, but compares with the `first` entries at the start of the list only. There must be
 * room. */
void oriel_short_buffer_use_also(const struct oriel_short_buffer *use, unsigned first,
                                 oriel_conflict_fn *tell, void *closure);

/* A buffer of an operation, not empty; an operation has one to three. */
struct oriel_short_buffer_run {
    uint64_t low;
    uint64_t high;
    bool writes;
};
enum { ORIEL_SHORT_BUFFER_RUNS = 3 };

static inline struct oriel_short_buffer_run
oriel_short_buffer_run_of(const void *buffer, uint64_t len_bytes, bool writes)
{
    uint64_t low = (uint64_t)(uintptr_t)buffer;
    return (struct oriel_short_buffer_run){low, low + len_bytes, writes};
}

static inline bool oriel_short_buffer_runs_meet(struct oriel_short_buffer_run a,
                                                struct oriel_short_buffer_run b)
{
    return a.low < b.high && b.low < a.high;
}

static inline void oriel_short_buffer_put(unsigned at, const struct oriel_short_buffer_run *run,
                                          uint64_t group, const struct oriel_site *site)
{
    struct oriel_short_buffer *use = &oriel_short_buffers.list[at];
    use->low = run->low; /* field by field: the parts are stored before the whole is read */
    use->high = run->high;
    use->group = group;
    use->site = *site;
    use->writes = run->writes;
    use->flags = 0;
}

/* As oriel_short_buffer_use_also; most runs meet no other. */
static inline void oriel_short_buffer_add(const struct oriel_short_buffer_run *run, uint64_t group,
                                          const struct oriel_site *site, unsigned first,
                                          oriel_conflict_fn *tell, void *closure)
{
    for (unsigned i = 0; i < first; i++)
        if (__builtin_expect(oriel_short_buffers.list[i].low <= run->high &&
                                 run->low <= oriel_short_buffers.list[i].high,
                             0)) {
            struct oriel_short_buffer met = {run->low, run->high, group, *site, run->writes, 0};
            oriel_short_buffer_use_also(&met, first, tell, closure);
            return;
        }
    oriel_short_buffer_put(oriel_short_buffers.count++, run, group, site);
}

/* Whether no buffer is needed now, and only calls of this thread can conflict with the next ones.
 * Then runs outside window memory that do not overlap each other may be put into the list from its
 * start, without local_accesses.c. */
static inline bool oriel_short_buffers_are_quiet(void)
{
    return oriel_short_buffers.count == 0 && oriel_short_buffers.open && !oriel_uses_are_open() &&
           !oriel_check_many_threads;
}

/* Compares an access that goes to the history. */
void oriel_short_buffer_meet(const struct oriel_access *access,
                             const struct oriel_access_extent *extents, size_t count,
                             oriel_conflict_fn *tell, void *closure);

static inline void oriel_short_buffer_end(uint64_t group)
{
    unsigned count = oriel_short_buffers.count;
    while (count > 0 && oriel_short_buffers.list[count - 1].group == group)
        count--;
    for (unsigned i = count; i-- > 0;)
        if (oriel_short_buffers.list[i].group == group)
            oriel_short_buffers.list[i] = oriel_short_buffers.list[--count];
    oriel_short_buffers.count = count;
}

/* Whether any buffer has bytes from low to high. */
static inline bool oriel_short_buffer_overlaps(uint64_t low, uint64_t high)
{
    for (unsigned i = 0; i < oriel_short_buffers.count; i++)
        if (oriel_short_buffers.list[i].low < high && oriel_short_buffers.list[i].high > low)
            return true;
    return false;
}

/* Removes the buffers that have bytes from low to high. */
void oriel_short_buffer_forget(uint64_t low, uint64_t high);

void oriel_short_buffer_clear(void);

#endif
