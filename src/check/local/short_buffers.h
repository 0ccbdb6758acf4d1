/* Buffers that calls under way still need, where nobody watches loads and stores: most are few and over soon, and only other
 * calls of this process can meet them.  A short list of plain runs; what it has no room for, or is no plain run, stands in
 * local_accesses.c's history.  local_accesses.c calls, under its lock, and callsite_cache.c. */
#ifndef ORIEL_CHECK_LOCAL_SHORT_BUFFERS_H
#define ORIEL_CHECK_LOCAL_SHORT_BUFFERS_H

#include "check/common/access_types.h"
#include "check/common/reentrancy.h"
#include "check/local/buffer_uses.h"
#include "check/local/window_memory.h"

struct oriel_short_buffer {
    uint64_t low;
    uint64_t high;
    uint64_t group; /* 0: it is over already, and only compared */
    struct oriel_site site;
    bool writes;
    uint8_t flags;
};

enum { ORIEL_SHORT_BUFFERS_MOST = 24 };

extern struct oriel_short_buffers {
    unsigned count;
    bool open; /* local_accesses.c has started, and nobody watches loads and stores */
    struct oriel_short_buffer list[ORIEL_SHORT_BUFFERS_MOST];
} oriel_short_buffers __attribute__((visibility("hidden"))); /* short_buffers.c's own */

/* Compares the run with those that are needed, tells conflicts, and needs it until oriel_short_buffer_end of its group.  False, and
 * nothing has happened: there is no room. */
bool oriel_short_buffer_use(const struct oriel_short_buffer *use, oriel_conflict_fn *tell,
                            void *closure);

/* The same beside those that are needed behind the first ones, which it does not meet.  There is room. */
void oriel_short_buffer_use_beside(const struct oriel_short_buffer *use, unsigned first,
                                   oriel_conflict_fn *tell, void *closure);

/* A run of an operation's buffers that is not empty: it has one to three. */
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
    use->low = run->low; /* one by one: a whole would be read before its parts are written */
    use->high = run->high;
    use->group = group;
    use->site = *site;
    use->writes = run->writes;
    use->flags = 0;
}

/* As oriel_short_buffer_use_beside; most meet nothing. */
static inline void oriel_short_buffer_add(const struct oriel_short_buffer_run *run, uint64_t group,
                                          const struct oriel_site *site, unsigned first,
                                          oriel_conflict_fn *tell, void *closure)
{
    for (unsigned i = 0; i < first; i++)
        if (__builtin_expect(oriel_short_buffers.list[i].low <= run->high &&
                                 run->low <= oriel_short_buffers.list[i].high,
                             0)) {
            struct oriel_short_buffer met = {run->low, run->high, group, *site, run->writes, 0};
            oriel_short_buffer_use_beside(&met, first, tell, closure);
            return;
        }
    oriel_short_buffer_put(oriel_short_buffers.count++, run, group, site);
}

/* Whether no buffer is needed now, and nobody but this thread's calls can meet what will be: then runs outside the memory of
 * windows that do not meet each other may be put, from the first place on, without local_accesses.c. */
static inline bool oriel_short_buffers_are_quiet(void)
{
    return oriel_short_buffers.count == 0 && oriel_short_buffers.open && !oriel_uses_are_open() &&
           !oriel_check_many_threads;
}

/* Compares an access that is for the history. */
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

void oriel_short_buffer_clear(void);

#endif
