/* From two accesses to a finding: which rule, which bytes, which call is missing. If the earlier
 * access was pending although its origin had done something that looks like completion, the finding
 * names that mistake. Histories call these functions under their lock. */
#include "check/local/device_memory.h"
#include "check/order/thread_order.h"
#include "check/remote/remote.h"
#include "check/report/conflict_help.h"
#include "check/window/window_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum oriel_rule rule_for_kinds(const struct oriel_checked *window,
                                      const struct oriel_access *a, const struct oriel_access *b)
{
    if (oriel_call_ends_memory(b->site.call))
        return ORIEL_RULE_BUFFER_ENDS;
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

static enum oriel_effect effect_of(const struct oriel_access *access)
{
    if (access->site.call == ORIEL_CALL_frame_end)
        return ORIEL_EFFECT_RETURNS;
    if (oriel_call_ends_memory(access->site.call))
        return ORIEL_EFFECT_FREES;
    switch (access->kind) {
    case ORIEL_ACCESS_LOAD:
    case ORIEL_ACCESS_GET: return ORIEL_EFFECT_READS;
    case ORIEL_ACCESS_ACCUMULATE:
        return access->op == ORIEL_OPERATOR_NO_OP ? ORIEL_EFFECT_READS : ORIEL_EFFECT_UPDATES;
    default: return ORIEL_EFFECT_WRITES;
    }
}

/* Whether two threads of this rank use a buffer, and the later one did not know of the earlier
 * use. */
static bool are_unordered_threads(const struct oriel_access *earlier,
                                  const struct oriel_access *later)
{
    const oriel_tick *clock = later->snapshot == 0 || earlier->issued == 0
                                  ? NULL
                                  : oriel_order_snapshot_clock(later->snapshot);
    return clock != NULL && oriel_threads_are_tracked() &&
           oriel_clock_index(0, earlier->issued) != oriel_clock_index(0, later->issued) &&
           clock[oriel_clock_index(earlier->origin, earlier->issued)] < earlier->issued;
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
    const struct oriel_site *here = &conflict->later.site;
    const struct oriel_site *other = &conflict->earlier.site;
    finding->here = oriel_site_coded(here);
    finding->other = *other;
    finding->is_none = conflict->may_be_hosts ? oriel_host_is_on_stack : NULL;
    finding->here_effect = effect_of(&conflict->later);
    finding->other_effect = effect_of(&conflict->earlier);
    if (here->epoch != 0)
        finding->opening = oriel_site_numbered(here->epoch, here->world_rank);
    if (other->epoch != 0)
        finding->other_opening = oriel_site_numbered(other->epoch, other->world_rank);
    finding->init = oriel_site_numbered(finding->opening.epoch, here->world_rank);
    finding->other_init = oriel_site_numbered(finding->other_opening.epoch, other->world_rank);
}

/* The memory ends while it is the window's. */
static void memory_end_report(const struct oriel_conflict_place *place,
                              const struct oriel_conflict *conflict)
{
    const struct oriel_checked *window = place->window;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = ORIEL_RULE_WINDOW_MEMORY_ENDS;
    finding.help = window->flavour == ORIEL_CHECK_DYNAMIC
                       ? "call MPI_Win_detach(win, base) or MPI_Win_free(&win) before @here"
                       : "call MPI_Win_free(&win) before @here";
    oriel_window_place(window, &finding, place->target, conflict->offset - window->opened.from,
                       conflict->len_bytes);
    finding.here = oriel_site_coded(&conflict->later.site);
    finding.other = window->members[window->rank].site;
    oriel_window_report(window, &finding, NULL);
}

void oriel_window_conflict(const struct oriel_conflict *conflict, void *closure)
{
    const struct oriel_conflict_place *place = closure;
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    char help[ORIEL_RECORD_LONG];
    const struct oriel_access *earlier = &conflict->earlier;
    if (oriel_check_remote_is_lost())
        return;
    if (oriel_call_ends_memory(conflict->later.site.call)) {
        memory_end_report(place, conflict);
        return;
    }
    bool is_early = is_ordered_too_early(conflict);
    enum oriel_rule mistake = is_early ? rule_for_mistake(earlier) : ORIEL_RULE_COUNT;
    finding.rule = mistake != ORIEL_RULE_COUNT
                       ? mistake
                       : rule_for_kinds(place->window, earlier, &conflict->later);
    if (conflict->alias)
        snprintf(finding.detail, sizeof finding.detail,
                 "The other call used another window over the same memory.");
    oriel_window_place(place->window, &finding, place->target,
                       conflict->offset - place->window->opened.from, conflict->len_bytes);
    finding_describe(&finding, conflict);
    oriel_conflict_help(conflict, &finding, is_early, help);
    finding.help = help;
    if (are_of_two_threads(earlier, &conflict->later)) {
        finding.help =
            "order the threads: by a mutex, a barrier or a join between @other and @here";
        snprintf(finding.detail, sizeof finding.detail,
                 "The calls were made by two threads of the rank.");
    }
    oriel_window_report(place->window, &finding, NULL);
}

void oriel_buffer_conflict(const struct oriel_conflict *conflict, void *closure)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    char help[ORIEL_RECORD_LONG];
    (void)closure;
    if (oriel_check_left)
        return;
    finding.rule = rule_for_kinds(NULL, &conflict->earlier, &conflict->later);
    finding.window = "";
    finding.flavour = "";
    finding_describe(&finding, conflict);
    if (oriel_finding_repeats(&finding))
        return;
    snprintf(finding.detail, sizeof finding.detail,
             "%" PRIu64 " bytes of the buffer at %#" PRIx64 ".", conflict->len_bytes,
             (uint64_t)conflict->offset);
    finding.device = oriel_local_device((const void *)(uintptr_t)conflict->offset);
    oriel_buffer_help(&conflict->earlier, &finding, help);
    finding.help = help;
    if (are_unordered_threads(&conflict->earlier, &conflict->later)) {
        size_t len = strlen(finding.detail);
        snprintf(finding.detail + len, sizeof finding.detail - len,
                 " Two threads of the rank use it without order.");
        finding.help = "give each thread its own buffer, or complete the operation and order the "
                       "threads between @other and @here";
    }
    oriel_finding_report(&finding);
}
