/* Chooses the fix for a conflict. Each epoch has its own way to order: fences and post-start on all
 * ranks, locks by their type, MPI_Win_lock_all by a flush. Accumulates need no order. */
#include "check/report/conflict_help.h"

#include "check/report/call_sites.h"

#include <stdarg.h>
#include <stdio.h>

enum epoch_kind { UNKNOWN_EPOCH, FENCE, START, SHARED, EXCLUSIVE, LOCK_ALL };

static enum epoch_kind epoch_kind(const struct oriel_site *opening)
{
    switch (opening->call) {
    case ORIEL_CALL_Win_fence: return FENCE;
    case ORIEL_CALL_Win_start: return START;
    case ORIEL_CALL_lock_shared: return SHARED;
    case ORIEL_CALL_lock_exclusive: return EXCLUSIVE;
    case ORIEL_CALL_Win_lock_all: return LOCK_ALL;
    default: return UNKNOWN_EPOCH;
    }
}

static void help_write(char out[ORIEL_RECORD_LONG], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void help_write(char out[ORIEL_RECORD_LONG], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, ORIEL_RECORD_LONG, format, arguments);
    va_end(arguments);
}

/* The operations that need no order, instead of these two: ", or ..."; "" if there are none. */
static const char *atomic_instead(const struct oriel_conflict *conflict)
{
    const struct oriel_access *a = &conflict->earlier;
    const struct oriel_access *b = &conflict->later;
    bool first = a->kind == ORIEL_ACCESS_ACCUMULATE;
    bool second = b->kind == ORIEL_ACCESS_ACCUMULATE;
    bool gets = a->kind == ORIEL_ACCESS_GET || b->kind == ORIEL_ACCESS_GET;
    if (conflict->alias) /* accumulates through two windows are not atomic */
        return "";
    if (first && second && a->op == b->op && a->element == b->element) /* overlap by a part */
        return ", or let them differ by whole elements in their displacements";
    if (first && second)
        return ", or the same operator and datatype in both";
    if (first || second)
        return gets ? ", or MPI_Get_accumulate with MPI_NO_OP instead of the get"
                    : ", or MPI_Accumulate with MPI_REPLACE instead of the put";
    return gets ? ", or MPI_Get_accumulate with MPI_NO_OP and MPI_Accumulate with MPI_REPLACE"
                : ", or MPI_Accumulate with MPI_REPLACE in both";
}

/* The earlier access was known, and not complete: its origin has to complete it first. */
static void help_complete_first(const struct oriel_access *earlier, enum epoch_kind kind,
                                int32_t target, char out[ORIEL_RECORD_LONG])
{
    switch (kind) {
    case FENCE:
        help_write(out,
                   "@other is complete after the next MPI_Win_fence only: call that between @other "
                   "and @here, on all ranks of the window");
        break;
    case START:
        help_write(out,
                   "call MPI_Win_complete(win) on rank %d after @other, and MPI_Win_wait(win) on "
                   "the target, before the two are ordered",
                   earlier->origin);
        break;
    default:
        help_write(out,
                   "call MPI_Win_flush(%d, win) on rank %d after @other, before the message or "
                   "barrier that lets @here run",
                   target, earlier->origin);
    }
}

/* Two operations of one rank. */
static void help_same_origin(enum epoch_kind kind, int32_t target, char out[ORIEL_RECORD_LONG])
{
    if (kind == FENCE)
        help_write(out, "call MPI_Win_fence(0, win) between @other and @here, on all ranks of the "
                        "window");
    else if (kind == START)
        help_write(out,
                   "call MPI_Win_complete(win) and MPI_Win_start between @other and @here, with "
                   "MPI_Win_wait and MPI_Win_post on rank %d of the window",
                   target);
    else
        help_write(out, "call MPI_Win_flush(%d, win) between @other and @here", target);
}

/* An operation, and an access of the target's own processor. */
static void help_local(const struct oriel_conflict *conflict, const struct oriel_finding *finding,
                       char out[ORIEL_RECORD_LONG])
{
    bool is_later_local = oriel_access_is_local(&conflict->later);
    const struct oriel_access *local = is_later_local ? &conflict->later : &conflict->earlier;
    const char *at_local = is_later_local ? "@here" : "@other";
    int32_t target = finding->target;
    if (conflict->earlier.origin == conflict->later.origin &&
        conflict->earlier.site.address == conflict->later.site.address) {
        help_write(out,
                   "the call's own buffer is at its target, in the window's memory on rank %d: use "
                   "a buffer outside the window",
                   local->origin);
        return;
    }
    switch (epoch_kind(is_later_local ? &finding->other_opening : &finding->opening)) {
    case FENCE:
        help_write(out, "call MPI_Win_fence(0, win) on all ranks of the window between @other and "
                        "@here");
        break;
    case START:
        if (is_later_local)
            help_write(out, "call MPI_Win_wait(win) on rank %d before %s", local->origin, at_local);
        else
            help_write(out, "call MPI_Win_post on rank %d only after %s", local->origin, at_local);
        break;
    case SHARED:
    case EXCLUSIVE:
        help_write(out,
                   "on rank %d, enclose %s in MPI_Win_lock(MPI_LOCK_EXCLUSIVE, %d, 0, win) and "
                   "MPI_Win_unlock(%d, win)",
                   local->origin, at_local, target, target);
        break;
    default:
        if (is_later_local)
            help_write(out,
                       "call MPI_Win_flush(%d, win) on rank %d after @other, then a barrier or a "
                       "message, then MPI_Win_sync(win) on rank %d before @here",
                       target, conflict->earlier.origin, local->origin);
        else
            help_write(out,
                       "call MPI_Win_sync(win) on rank %d after @other, then a barrier or a "
                       "message before @here",
                       local->origin);
    }
}

/* Operations of two ranks. */
static void help_two_origins(const struct oriel_conflict *conflict,
                             const struct oriel_finding *finding, char out[ORIEL_RECORD_LONG])
{
    enum epoch_kind here = epoch_kind(&finding->opening);
    enum epoch_kind other = epoch_kind(&finding->other_opening);
    const char *instead = atomic_instead(conflict);
    int32_t target = finding->target;
    if (here == SHARED && other == SHARED)
        help_write(out, "both ranks hold a shared lock: use MPI_LOCK_EXCLUSIVE at %s%s",
                   finding->opening.address == finding->other_opening.address
                       ? "@opening"
                       : "@opening and @other_opening",
                   instead);
    else if ((here == LOCK_ALL || here == SHARED || here == EXCLUSIVE) &&
             (other == LOCK_ALL || other == SHARED || other == EXCLUSIVE))
        help_write(out,
                   "MPI_Win_lock_all and MPI_LOCK_SHARED exclude no one: use "
                   "MPI_Win_lock(MPI_LOCK_EXCLUSIVE, %d, 0, win) for both%s",
                   target, instead);
    else if (here == FENCE && other == FENCE)
        help_write(out,
                   "both are in one epoch: call MPI_Win_fence(0, win) between them on all ranks of "
                   "the window%s",
                   instead);
    else if (here == START && other == START)
        help_write(out,
                   "rank %d exposes the window to both at once: let it call MPI_Win_wait and "
                   "MPI_Win_post between them%s",
                   target, instead);
    else
        help_write(out,
                   "complete @other with MPI_Win_flush(%d, win) or the end of its epoch, and send "
                   "rank %d a message before @here%s",
                   target, conflict->later.origin, instead);
}

static bool is_notified(const struct oriel_access *access)
{
    return access->site.call == ORIEL_CALL_Put_notify ||
           access->site.call == ORIEL_CALL_Get_notify ||
           access->site.call == ORIEL_CALL_Accumulate_notify;
}

/* A notified operation, and an access that did not come after its notification was taken. */
static void help_notified(const struct oriel_conflict *conflict, int32_t target,
                          char out[ORIEL_RECORD_LONG])
{
    const bool is_earlier = is_notified(&conflict->earlier);
    const struct oriel_access *access = is_earlier ? &conflict->later : &conflict->earlier;
    const char *at_access = is_earlier ? "@here" : "@other";
    const char *at_notified = is_earlier ? "@other" : "@here";
    if (oriel_access_is_local(access))
        help_write(out,
                   "take the notification of %s with MPIX_Win_notify_wait on rank %d before %s",
                   at_notified, access->origin, at_access);
    else
        help_write(out,
                   "take the notification of %s with MPIX_Win_notify_wait on rank %d, and let %s "
                   "come after that call",
                   at_notified, target, at_access);
}

void oriel_conflict_help(const struct oriel_conflict *conflict, const struct oriel_finding *finding,
                         bool is_early, char out[ORIEL_RECORD_LONG])
{
    const struct oriel_access *earlier = &conflict->earlier;
    const struct oriel_access *later = &conflict->later;
    bool is_local = oriel_access_is_local(earlier) != oriel_access_is_local(later);
    if (earlier->origin == later->origin && !is_local)
        help_same_origin(epoch_kind(&finding->opening), finding->target, out);
    else if (is_notified(earlier) != is_notified(later) && earlier->origin != later->origin)
        help_notified(conflict, finding->target, out);
    else if (is_early)
        help_complete_first(earlier, epoch_kind(&finding->other_opening), finding->target, out);
    else if (is_local)
        help_local(conflict, finding, out);
    else
        help_two_origins(conflict, finding, out);
}

void oriel_buffer_help(const struct oriel_access *earlier, const struct oriel_finding *finding,
                       char out[ORIEL_RECORD_LONG])
{
    if (finding->here.call == ORIEL_CALL_frame_end) {
        help_write(out, "complete the operation of @other before its function returns");
        return;
    }
    if (earlier->flags & ORIEL_ACCESS_MESSAGE) {
        help_write(out, "call MPI_Wait for the request of @other before @here");
        return;
    }
    switch (earlier->site.call) {
    case ORIEL_CALL_Rput:
    case ORIEL_CALL_Rget:
    case ORIEL_CALL_Raccumulate:
    case ORIEL_CALL_Rget_accumulate:
        help_write(out, "call MPI_Wait for the request of @other, or MPI_Win_flush_local, before "
                        "@here");
        return;
    default: break;
    }
    switch (epoch_kind(&finding->other_opening)) {
    case FENCE:
        help_write(out, "call MPI_Win_fence between @other and @here: it ends the operation");
        break;
    case START: help_write(out, "call MPI_Win_complete(win) between @other and @here"); break;
    default:
        help_write(out, "call MPI_Win_flush_local, or unlock the window, between @other and @here");
    }
}
