/* From two accesses to a finding: which rule, which bytes, which call is missing. If the earlier
 * access was pending although its origin had done something that looks like completion, the finding
 * names that mistake. Histories call these functions under their lock. */
#include "check/order/thread_order.h"
#include "check/remote/remote.h"
#include "check/window/window_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum oriel_rule rule_for_kinds(const struct oriel_checked *window,
                                      const struct oriel_access *a, const struct oriel_access *b)
{
    if ((a->flags | b->flags) & ORIEL_ACCESS_SANITIZER)
        return ORIEL_RULE_LOCAL_ACCESS;
    if (oriel_access_is_local(a) && oriel_access_is_local(b))
        return ORIEL_RULE_BUFFER;
    bool first = a->kind == ORIEL_ACCESS_ACCUMULATE;
    bool second = b->kind == ORIEL_ACCESS_ACCUMULATE;
    if (!first && !second)
        return ORIEL_RULE_CONFLICT;
    if (first != second)
        return oriel_access_is_local(a) || oriel_access_is_local(b) ? ORIEL_RULE_CONFLICT
                                                                    : ORIEL_RULE_BESIDE_ACCUMULATE;
    return window != NULL && window->promises & ORIEL_PROMISE_OPS_SET && a->element == b->element
               ? ORIEL_RULE_ACCUMULATE_OPS
               : ORIEL_RULE_ACCUMULATE_MIX;
}

/* Whether the later access's process knew that the earlier one was issued: order exists, but came
 * before the completion. */
static bool is_ordered_too_early(const struct oriel_conflict *conflict)
{
    const struct oriel_access *earlier = &conflict->earlier;
    const oriel_tick *clock =
        conflict->later.snapshot == 0 ? NULL : oriel_order_snapshot_clock(conflict->later.snapshot);
    return clock != NULL &&
           clock[oriel_clock_index(earlier->origin, earlier->issued)] >= earlier->issued &&
           !oriel_access_is_local(earlier);
}

/* The mistake that an access shows which was ordered before it was complete; ORIEL_RULE_COUNT:
 * none. */
static enum oriel_rule rule_for_mistake(const struct oriel_access *access)
{
    if (access->flags & ORIEL_ACCESS_REQUEST_DONE)
        return ORIEL_RULE_REQUEST_NOT_REMOTE;
    if (access->flags & ORIEL_ACCESS_FLUSHED_LOCAL)
        return ORIEL_RULE_LOCAL_FLUSH_NOT_REMOTE;
    return access->flags & ORIEL_ACCESS_FLUSHED_OTHER ? ORIEL_RULE_FLUSHED_OTHER : ORIEL_RULE_COUNT;
}

/* Whether the earlier access is complete, and order between threads is missing. */
static bool are_of_two_threads(const struct oriel_access *earlier, const struct oriel_access *later)
{
    return oriel_threads_are_tracked() && earlier->origin == later->origin &&
           earlier->complete != ORIEL_TICK_PENDING &&
           oriel_clock_index(0, earlier->complete) != oriel_clock_index(0, later->issued);
}

static void finding_describe(struct oriel_finding *finding, const struct oriel_conflict *conflict)
{
    finding->here = conflict->later.site;
    finding->other = conflict->earlier.site;
    if (conflict->later.site.epoch != 0)
        finding->opening =
            oriel_site_numbered(conflict->later.site.epoch, conflict->later.site.world_rank);
}

void oriel_window_conflict(const struct oriel_conflict *conflict, void *closure)
{
    const struct oriel_conflict_place *place = closure;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    const struct oriel_access *earlier = &conflict->earlier;
    if (oriel_check_remote_is_lost())
        return;
    bool is_early = is_ordered_too_early(conflict);
    enum oriel_rule mistake = is_early ? rule_for_mistake(earlier) : ORIEL_RULE_COUNT;
    finding.rule = mistake != ORIEL_RULE_COUNT
                       ? mistake
                       : rule_for_kinds(place->window, earlier, &conflict->later);
    finding.missing =
        is_early
            ? oriel_text_format("MPI_Win_flush(%d, win), or the end of the epoch, after the first "
                                "call and before the two are ordered",
                                place->target)
            : "a synchronisation between the two calls";
    if (are_of_two_threads(earlier, &conflict->later))
        snprintf(finding.detail, sizeof finding.detail,
                 "The calls were made by two threads of the rank.");
    if (conflict->alias)
        snprintf(finding.detail, sizeof finding.detail,
                 "The other call used another window over the same memory.");
    oriel_window_place(place->window, &finding, place->target, conflict->offset,
                       conflict->len_bytes);
    finding_describe(&finding, conflict);
    oriel_window_report(place->window, &finding, NULL);
}

/* The call that completes the earlier of two uses of a buffer. */
static const char *missing_completion(const struct oriel_access *access)
{
    if (access->flags & ORIEL_ACCESS_MESSAGE)
        return "MPI_Wait, for the request of the first call, between the two calls";
    switch (access->site.call) {
    case ORIEL_CALL_Rput:
    case ORIEL_CALL_Rget:
    case ORIEL_CALL_Raccumulate:
    case ORIEL_CALL_Rget_accumulate:
        return "MPI_Wait, for the request of the first call, or MPI_Win_flush_local, between the "
               "two calls";
    default: return "MPI_Win_flush_local, or the end of the epoch, between the two calls";
    }
}

void oriel_buffer_conflict(const struct oriel_conflict *conflict, void *closure)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    (void)closure;
    if (oriel_check_left)
        return;
    finding.rule = rule_for_kinds(NULL, &conflict->earlier, &conflict->later);
    finding.missing = missing_completion(&conflict->earlier);
    snprintf(finding.detail, sizeof finding.detail,
             "%" PRIu64 " bytes of the buffer at %#" PRIx64 ".", conflict->len_bytes,
             (uint64_t)conflict->offset);
    finding_describe(&finding, conflict);
    finding.window = "";
    finding.flavour = "";
    oriel_finding_report(&finding);
}
