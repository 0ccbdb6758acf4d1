/* An unordered list. A loop over one buffer, or over adjacent ones, uses one entry. */
#include "check/local/short_buffers.h"

#include "base/atomic.h"
#include "check/access/strided_sets.h"
#include "check/order/order.h"

struct oriel_short_buffers oriel_short_buffers;

static bool uses_overlap(const struct oriel_short_buffer *a, const struct oriel_short_buffer *b)
{
    return a->low < b->high && b->low < a->high;
}

static bool uses_same_call(const struct oriel_short_buffer *a, const struct oriel_short_buffer *b)
{
    return a->site.address == b->site.address && a->site.call == b->site.call;
}

static struct oriel_access use_access(const struct oriel_short_buffer *use)
{
    return (struct oriel_access){.kind = use->writes ? ORIEL_ACCESS_STORE : ORIEL_ACCESS_LOAD,
                                 .flags = use->flags,
                                 .origin = oriel_order_rank(),
                                 .snapshot = ORIEL_SNAPSHOT_LIVE,
                                 .complete =
                                     use->group != 0 ? ORIEL_TICK_PENDING : oriel_order_now(),
                                 .site = use->site,
                                 .group = use->group};
}

static struct oriel_access_extent use_run(const struct oriel_short_buffer *use)
{
    return (struct oriel_access_extent){(int64_t)use->low, use->high - use->low, 1, 0};
}

/* Reports a conflict once for each call that needs the bytes. An entry that is only read does not
 * replace one that is written. */
static __attribute__((noinline, cold)) void
entry_conflict_report(unsigned which, const struct oriel_access *access,
                      const struct oriel_access_extent *run, oriel_conflict_fn *tell, void *closure)
{
    struct oriel_conflict conflict = {.earlier = use_access(&oriel_short_buffers.list[which]),
                                      .later = *access};
    struct oriel_access_extent needed = use_run(&oriel_short_buffers.list[which]);
    conflict.earlier.snapshot = 0;
    if (!oriel_access_conflicts(&conflict.earlier, access) ||
        !oriel_byte_runs_meet(&needed, run, &conflict.offset, &conflict.len_bytes))
        return;
    for (unsigned i = 0; i < which; i++) {
        int64_t offset;
        uint64_t len_bytes;
        struct oriel_access_extent before = use_run(&oriel_short_buffers.list[i]);
        bool conflicts = oriel_short_buffers.list[i].writes || access->kind == ORIEL_ACCESS_STORE;
        if (conflicts &&
            uses_same_call(&oriel_short_buffers.list[i], &oriel_short_buffers.list[which]) &&
            oriel_byte_runs_meet(&before, run, &offset, &len_bytes))
            return;
    }
    tell(&conflict, closure);
}

/* Compares a use with an entry that it touches, and reports a conflict. Returns whether both can be
 * one entry. */
static __attribute__((noinline)) bool entry_compare(unsigned which,
                                                    const struct oriel_short_buffer *use,
                                                    oriel_conflict_fn *tell, void *closure)
{
    const struct oriel_short_buffer *other = &oriel_short_buffers.list[which];
    if (oriel_unlikely((use->writes || other->writes) && uses_overlap(use, other))) {
        struct oriel_access access = use_access(use);
        struct oriel_access_extent run = use_run(use);
        entry_conflict_report(which, &access, &run, tell, closure);
    }
    return other->group == use->group && other->writes == use->writes &&
           other->flags == use->flags && other->site.epoch == use->site.epoch &&
           uses_same_call(other, use);
}

void oriel_short_buffer_use_also(const struct oriel_short_buffer *use, unsigned first,
                                 oriel_conflict_fn *tell, void *closure)
{
    struct oriel_short_buffer *joined = NULL;
    for (unsigned i = 0; i < first; i++) {
        struct oriel_short_buffer *other = &oriel_short_buffers.list[i];
        if (oriel_unlikely(other->low <= use->high && use->low <= other->high) &&
            entry_compare(i, use, tell, closure))
            joined = other;
    }
    if (use->group == 0 || use->low == use->high)
        return;
    if (joined == NULL) {
        oriel_short_buffers.list[oriel_short_buffers.count++] = *use;
        return;
    }
    joined->low = joined->low < use->low ? joined->low : use->low;
    joined->high = joined->high > use->high ? joined->high : use->high;
}

bool oriel_short_buffer_use(const struct oriel_short_buffer *use, oriel_conflict_fn *tell,
                            void *closure)
{
    if (use->group != 0 && oriel_short_buffers.count == ORIEL_SHORT_BUFFERS_MOST)
        return false;
    oriel_short_buffer_use_also(use, oriel_short_buffers.count, tell, closure);
    return true;
}

void oriel_short_buffer_meet(const struct oriel_access *access,
                             const struct oriel_access_extent *extents, size_t count,
                             oriel_conflict_fn *tell, void *closure)
{
    struct oriel_access_extent run;
    for (size_t e = 0; e < count && oriel_short_buffers.count > 0; e++)
        for (unsigned i = 0;
             i < oriel_short_buffers.count && oriel_byte_runs_tidy(&extents[e], &run); i++)
            entry_conflict_report(i, access, &run, tell, closure);
}

void oriel_short_buffer_forget(uint64_t low, uint64_t high)
{
    for (unsigned i = oriel_short_buffers.count; i-- > 0;)
        if (oriel_short_buffers.list[i].low < high && oriel_short_buffers.list[i].high > low)
            oriel_short_buffers.list[i] = oriel_short_buffers.list[--oriel_short_buffers.count];
}

void oriel_short_buffer_clear(void)
{
    oriel_short_buffers.count = 0;
}
