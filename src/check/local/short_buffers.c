/* The list in no order; a loop over one buffer, or over places one behind the other, is one of it.  local_accesses.c calls. */
#include "check/local/short_buffers.h"

#include "base/atomic.h"
#include "check/access/strided_sets.h"
#include "check/order/order.h"

struct oriel_short_buffers oriel_short_buffers;

static bool overlap(const struct oriel_short_buffer *a, const struct oriel_short_buffer *b)
{
    return a->low < b->high && b->low < a->high;
}

static bool same_call(const struct oriel_short_buffer *a, const struct oriel_short_buffer *b)
{
    return a->site.address == b->site.address && a->site.call == b->site.call;
}

static struct oriel_access access_of(const struct oriel_short_buffer *use)
{
    return (struct oriel_access){.kind = use->writes ? ORIEL_ACCESS_STORE : ORIEL_ACCESS_LOAD,
                                 .flags = use->flags,
                                 .origin = oriel_order_rank(),
                                 .moment = ORIEL_SNAPSHOT_LIVE,
                                 .complete =
                                     use->group != 0 ? ORIEL_TICK_PENDING : oriel_order_now(),
                                 .site = use->site,
                                 .group = use->group};
}

static struct oriel_access_extent run_of(const struct oriel_short_buffer *use)
{
    return (struct oriel_access_extent){(int64_t)use->low, use->high - use->low, 1, 0};
}

/* Once for each call that needs the bytes; what it only reads does not stand for what it writes. */
static __attribute__((noinline, cold)) void tell_one(unsigned which,
                                                     const struct oriel_access *access,
                                                     const struct oriel_access_extent *run,
                                                     oriel_conflict_fn *tell, void *closure)
{
    struct oriel_conflict conflict = {.earlier = access_of(&oriel_short_buffers.list[which]),
                                      .later = *access};
    struct oriel_access_extent needed = run_of(&oriel_short_buffers.list[which]);
    conflict.earlier.moment = 0;
    if (!oriel_access_conflicts(&conflict.earlier, access) ||
        !oriel_byte_runs_meet(&needed, run, &conflict.offset, &conflict.len_bytes))
        return;
    for (unsigned i = 0; i < which; i++) {
        int64_t offset;
        uint64_t len_bytes;
        struct oriel_access_extent before = run_of(&oriel_short_buffers.list[i]);
        bool conflicts = oriel_short_buffers.list[i].writes || access->kind == ORIEL_ACCESS_STORE;
        if (conflicts &&
            same_call(&oriel_short_buffers.list[i], &oriel_short_buffers.list[which]) &&
            oriel_byte_runs_meet(&before, run, &offset, &len_bytes))
            return;
    }
    tell(&conflict, closure);
}

/* Another use touches it: the conflict is told; the answer is whether both are one. */
static __attribute__((noinline)) bool meet_one(unsigned which, const struct oriel_short_buffer *use,
                                               oriel_conflict_fn *tell, void *closure)
{
    const struct oriel_short_buffer *other = &oriel_short_buffers.list[which];
    if (oriel_unlikely((use->writes || other->writes) && overlap(use, other))) {
        struct oriel_access access = access_of(use);
        struct oriel_access_extent run = run_of(use);
        tell_one(which, &access, &run, tell, closure);
    }
    return other->group == use->group && other->writes == use->writes &&
           other->flags == use->flags && other->site.epoch == use->site.epoch &&
           same_call(other, use);
}

void oriel_short_buffer_use_beside(const struct oriel_short_buffer *use, unsigned first,
                                   oriel_conflict_fn *tell, void *closure)
{
    struct oriel_short_buffer *joined = NULL;
    for (unsigned i = 0; i < first; i++) {
        struct oriel_short_buffer *other = &oriel_short_buffers.list[i];
        if (oriel_unlikely(other->low <= use->high && use->low <= other->high) &&
            meet_one(i, use, tell, closure))
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
    oriel_short_buffer_use_beside(use, oriel_short_buffers.count, tell, closure);
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
            tell_one(i, access, &run, tell, closure);
}

void oriel_short_buffer_clear(void)
{
    oriel_short_buffers.count = 0;
}
