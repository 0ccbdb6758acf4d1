/* The list in no order; a loop over one buffer, or over places one behind the other, is one of it.  local.c calls. */
#include "check/brief.h"

#include "check/runs.h"

enum { MOST = 24 };

static struct {
    unsigned count;
    struct brief {
        struct oriel_access access;
        struct oriel_extent run;
    } list[MOST];
} own;

static bool same_call(const struct oriel_access *a, const struct oriel_access *b)
{
    return a->site.address == b->site.address && a->site.call == b->site.call;
}

/* Whether one before it, of the same call, has been told. */
static bool was_told(unsigned before, const struct oriel_extent *run)
{
    int64_t offset;
    uint64_t len_bytes;
    for (unsigned i = 0; i < before; i++)
        if (same_call(&own.list[i].access, &own.list[before].access) &&
            oriel_byte_runs_meet(&own.list[i].run, run, &offset, &len_bytes))
            return true;
    return false;
}

void oriel_brief_meet(const struct oriel_access *access, const struct oriel_extent *extents, size_t count,
                      oriel_conflict_fn *tell, void *closure)
{
    if (own.count == 0)
        return;
    for (size_t e = 0; e < count; e++) {
        struct oriel_conflict conflict = {.later = *access};
        struct oriel_extent run;
        if (!oriel_byte_runs_tidy(&extents[e], &run))
            continue;
        for (unsigned i = 0; i < own.count; i++) {
            if (!oriel_access_conflicts(&own.list[i].access, access) ||
                !oriel_byte_runs_meet(&own.list[i].run, &run, &conflict.offset, &conflict.len_bytes) || was_told(i, &run))
                continue;
            conflict.earlier = own.list[i].access;
            tell(&conflict, closure);
        }
    }
}

static bool continues(const struct brief *brief, const struct oriel_access *access, const struct oriel_extent *run,
                      struct oriel_extent *out)
{
    return brief->access.group == access->group && brief->access.kind == access->kind && brief->access.flags == access->flags &&
           brief->access.site.epoch == access->site.epoch && same_call(&brief->access, access) &&
           oriel_byte_runs_join(&brief->run, run, out);
}

bool oriel_brief_add(const struct oriel_access *access, const struct oriel_extent *run)
{
    for (unsigned i = own.count; i-- > 0;)
        if (continues(&own.list[i], access, run, &own.list[i].run))
            return true;
    if (own.count == MOST)
        return false;
    own.list[own.count++] = (struct brief){*access, *run};
    return true;
}

void oriel_brief_end(uint64_t group)
{
    for (unsigned i = 0; i < own.count;)
        if (own.list[i].access.group == group)
            own.list[i] = own.list[--own.count];
        else
            i++;
}

void oriel_brief_clear(void)
{
    own.count = 0;
}
