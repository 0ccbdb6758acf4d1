/* The list in no order; a loop over one buffer, or over places one behind the other, is one of it.  local.c calls. */
#include "check/brief.h"

#include "base/atomic.h"
#include "check/order.h"
#include "check/runs.h"

enum { MOST = 24 };

static struct {
    unsigned count;
    struct oriel_brief list[MOST];
} own;

static bool overlap(const struct oriel_brief *a, const struct oriel_brief *b)
{
    return a->low < b->high && b->low < a->high;
}

static bool same_call(const struct oriel_brief *a, const struct oriel_brief *b)
{
    return a->site.address == b->site.address && a->site.call == b->site.call;
}

static struct oriel_access access_of(const struct oriel_brief *use)
{
    return (struct oriel_access){.kind = use->writes ? ORIEL_ACCESS_STORE : ORIEL_ACCESS_LOAD,
                                 .flags = use->flags,
                                 .origin = oriel_order_rank(),
                                 .moment = ORIEL_MOMENT_NOW,
                                 .complete = use->group != 0 ? ORIEL_TICK_PENDING : oriel_order_now(),
                                 .site = use->site,
                                 .group = use->group};
}

static struct oriel_extent run_of(const struct oriel_brief *use)
{
    return (struct oriel_extent){(int64_t)use->low, use->high - use->low, 1, 0};
}

/* Once for each call that needs the bytes. */
static __attribute__((noinline, cold)) void tell_one(unsigned which, const struct oriel_access *access,
                                                     const struct oriel_extent *run, oriel_conflict_fn *tell, void *closure)
{
    struct oriel_conflict conflict = {.earlier = access_of(&own.list[which]), .later = *access};
    struct oriel_extent needed = run_of(&own.list[which]);
    conflict.earlier.moment = 0;
    if (!oriel_access_conflicts(&conflict.earlier, access) ||
        !oriel_byte_runs_meet(&needed, run, &conflict.offset, &conflict.len_bytes))
        return;
    for (unsigned i = 0; i < which; i++) {
        int64_t offset;
        uint64_t len_bytes;
        struct oriel_extent before = run_of(&own.list[i]);
        if (same_call(&own.list[i], &own.list[which]) && oriel_byte_runs_meet(&before, run, &offset, &len_bytes))
            return;
    }
    tell(&conflict, closure);
}

/* Another use touches it: the conflict is told; the answer is whether both are one. */
static __attribute__((noinline)) bool meet_one(unsigned which, const struct oriel_brief *use, oriel_conflict_fn *tell,
                                               void *closure)
{
    const struct oriel_brief *other = &own.list[which];
    if (oriel_unlikely((use->writes || other->writes) && overlap(use, other))) {
        struct oriel_access access = access_of(use);
        struct oriel_extent run = run_of(use);
        tell_one(which, &access, &run, tell, closure);
    }
    return other->group == use->group && other->writes == use->writes && other->flags == use->flags &&
           other->site.epoch == use->site.epoch && same_call(other, use);
}

/* What is needed at first and behind it is not looked at. */
static inline void use_one(const struct oriel_brief *use, unsigned first, oriel_conflict_fn *tell, void *closure)
{
    struct oriel_brief *joined = NULL;
    for (unsigned i = 0; i < first; i++) {
        struct oriel_brief *other = &own.list[i];
        if (oriel_unlikely(other->low <= use->high && use->low <= other->high) && meet_one(i, use, tell, closure))
            joined = other;
    }
    if (use->group == 0 || use->low == use->high)
        return;
    if (joined == NULL) {
        own.list[own.count++] = *use;
        return;
    }
    joined->low = joined->low < use->low ? joined->low : use->low;
    joined->high = joined->high > use->high ? joined->high : use->high;
}

bool oriel_brief_use(const struct oriel_brief *use, oriel_conflict_fn *tell, void *closure)
{
    if (use->group != 0 && own.count == MOST)
        return false;
    use_one(use, own.count, tell, closure);
    return true;
}

static bool is_apart(const struct oriel_brief_run *run, unsigned first)
{
    for (unsigned i = 0; i < first; i++)
        if (own.list[i].low <= run->high && run->low <= own.list[i].high)
            return false;
    return true;
}

bool oriel_brief_use_all(const struct oriel_brief_run *runs, unsigned count, uint64_t group, const struct oriel_site *site,
                         oriel_conflict_fn *tell, void *closure)
{
    unsigned first = own.count;
    if (first + count > MOST)
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct oriel_brief *use = &own.list[own.count];
        struct oriel_brief other = {runs[i].low, runs[i].high, group, *site, runs[i].writes, 0};
        if (oriel_unlikely(!is_apart(&runs[i], first))) {
            use_one(&other, first, tell, closure);
            continue;
        }
        own.count++;
        *use = other;
    }
    return true;
}

void oriel_brief_meet(const struct oriel_access *access, const struct oriel_extent *extents, size_t count,
                      oriel_conflict_fn *tell, void *closure)
{
    struct oriel_extent run;
    for (size_t e = 0; e < count && own.count > 0; e++)
        for (unsigned i = 0; i < own.count && oriel_byte_runs_tidy(&extents[e], &run); i++)
            tell_one(i, access, &run, tell, closure);
}

void oriel_brief_end(uint64_t group)
{
    for (unsigned i = own.count; i-- > 0;)
        if (own.list[i].group == group && i != --own.count)
            own.list[i] = own.list[own.count];
}

void oriel_brief_clear(void)
{
    own.count = 0;
}
