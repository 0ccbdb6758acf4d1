/* Reports a deadlock. If ranks of it wait for finished ranks, each of these waits is a finding.
 * Otherwise each call of a cycle is one, with the call that it waits for; two calls that wait for
 * each other are one. Findings with equal pairs of calls are one finding with a count. */
#include "check/deadlock/deadlock.h"

#include "check/order/order.h"
#include "check/report/call_sites.h"
#include "check/report/finding.h"
#include "check/report/finding_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_MOST = 16 };

static const char *call_title(uint16_t call)
{
    const char *name = oriel_call_name(call);
    return name[0] == '\0' ? "call" : name;
}

/* Of the need, without its flag. */
static uint32_t need_kind(const struct oriel_wait_need *need)
{
    return need->kind & ~(uint32_t)ORIEL_NEED_MAYBE;
}

/* The function that the need waits for, or NULL. */
static const char *needed_call(const struct oriel_wait_need *need)
{
    const uint64_t key_kind = need->words[0] & ((UINT64_C(1) << ORIEL_ORDER_HOME_SHIFT) - 1);
    if (need_kind(need) == ORIEL_NEED_CALL)
        return call_title((uint16_t)(need->words[2] >> 1));
    if (need_kind(need) != ORIEL_NEED_KEY)
        return NULL;
    return key_kind == ORIEL_ORDER_POST       ? "MPI_Win_post"
           : key_kind == ORIEL_ORDER_COMPLETE ? "MPI_Win_complete"
                                              : NULL;
}

/* Whether the next rank has called another function instead of the collective one. */
static bool calls_another(struct oriel_wait_snapshot *look, int rank,
                          const struct oriel_wait_need *need, int next)
{
    if (need_kind(need) != ORIEL_NEED_CALL)
        return false;
    const struct oriel_collective_progress *progress =
        oriel_wait_snapshot_need_progress(look, rank, need);
    for (int i = 0; progress != NULL && i < progress->n; i++)
        if (progress->slots[i].world_rank - 1 == next &&
            oriel_wait_snapshot_mismatch(progress, i, need->words[1],
                                         (uint16_t)(need->words[2] >> 1)))
            return true;
    return false;
}

/* Describes the action that the waiting rank needs from the next one. */
static void need_describe(struct oriel_text *text, const struct oriel_wait_need *need, int next,
                          bool is_another)
{
    switch (need_kind(need)) {
    case ORIEL_NEED_KEY:
    case ORIEL_NEED_CALL:
        if (is_another)
            oriel_text_add(text, "rank %d, which has called another function instead of %s", next,
                           needed_call(need));
        else
            oriel_text_add(text, "%s by rank %d",
                           needed_call(need) == NULL ? "a message" : needed_call(need), next);
        break;
    case ORIEL_NEED_LOCK:
        if ((int64_t)need->words[1] < 0)
            oriel_text_add(text, "rank %d, which holds a lock", next);
        else
            oriel_text_add(text, "rank %d, which holds the lock of target rank %" PRId64, next,
                           (int64_t)need->words[1]);
        break;
    case ORIEL_NEED_SEND: oriel_text_add(text, "rank %d to receive", next); break;
    case ORIEL_NEED_NOTIFICATION:
        oriel_text_add(text, "a notification of any rank, such as %d", next);
        break;
    case ORIEL_NEED_VALUE:
        oriel_text_add(text, "a value that any rank may write, such as %d", next);
        break;
    case ORIEL_NEED_RECEIVE:
        oriel_text_add(
            text, need->rank < 0 ? "a message from any rank, such as %d" : "a message from rank %d",
            next);
        break;
    default: oriel_text_add(text, "rank %d", next);
    }
}

/* How to go on: what the next rank must do before the call in which it is. */
static void remedy_describe(struct oriel_finding *finding, const struct oriel_wait_need *need,
                            int next, char *help, size_t room)
{
    static const char *const actions[] = {[ORIEL_NEED_KEY] = "send",
                                          [ORIEL_NEED_SEND] = "receive",
                                          [ORIEL_NEED_RECEIVE] = "send",
                                          [ORIEL_NEED_NOTIFICATION] = "notify",
                                          [ORIEL_NEED_VALUE] = "write the value"};
    const char *call = needed_call(need);
    const uint32_t kind = need_kind(need);
    const char *action = kind < sizeof actions / sizeof actions[0] ? actions[kind] : NULL;
    if (call == NULL && action == NULL)
        return;
    snprintf(help, room, "let rank %d %s%s before %s", next, call == NULL ? "" : "call ",
             call == NULL ? action : call,
             finding->other.call == ORIEL_CALL_NONE ? "it ends" : "@other");
    finding->help = help;
}

/* For a wait for a lock: the call by which the holder locked, and how to go on. */
static void lock_describe(struct oriel_finding *finding, struct oriel_wait_snapshot *look, int rank,
                          const struct oriel_wait_need *need, int holder, char *help, size_t room)
{
    const struct oriel_collective_progress *progress =
        oriel_wait_snapshot_need_progress(look, rank, need);
    for (int i = 0; progress != NULL && i < progress->n; i++)
        if (progress->slots[i].world_rank - 1 == holder && progress->slots[i].lock_site != 0)
            finding->opening = oriel_site_numbered(progress->slots[i].lock_site, (uint32_t)holder);
    if (finding->opening.call == ORIEL_CALL_NONE)
        return;
    snprintf(help, room, "rank %d locked at @opening: let it call %s before %s", holder,
             finding->opening.call == ORIEL_CALL_Win_lock_all ? "MPI_Win_unlock_all"
                                                              : "MPI_Win_unlock",
             finding->other.call == ORIEL_CALL_NONE ? "it ends" : "@other");
    finding->help = help;
}

static void waiting_rank_report(struct oriel_deadlock *finder, int rank, int next,
                                const struct oriel_deadlock_set_clause *by, const char *rest)
{
    const struct oriel_wait_snapshot_rank *waiting = &finder->look.ranks[rank];
    const struct oriel_wait_snapshot_rank *awaited = &finder->look.ranks[next];
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_text text = {.bytes = finding.detail, .room = sizeof finding.detail};
    char help[ORIEL_RECORD_LONG];
    const struct oriel_wait_need *need = oriel_wait_snapshot_need(&finder->look, rank, by);
    finding.rule = ORIEL_RULE_DEADLOCK;
    finding.here = waiting->noted.site;
    finding.here.epoch = 0;
    finding.other = awaited->noted.site;
    finding.other.epoch = 0;
    finding.window = waiting->noted.name[0] == '\0' ? NULL : waiting->noted.name;
    oriel_text_add(&text, "Rank %d waits for ", rank);
    const bool is_another = calls_another(&finder->look, rank, need, next);
    need_describe(&text, need, next, is_another);
    if (need_kind(need) == ORIEL_NEED_LOCK)
        lock_describe(&finding, &finder->look, rank, need, next, help, sizeof help);
    else if (!is_another)
        remedy_describe(&finding, need, next, help, sizeof help);
    if (awaited->state == ORIEL_DEADLOCK_SET_FINISHED)
        oriel_text_add(&text, ", which has %s",
                       awaited->noted.site.call == 0 ? "ended" : "finished");
    oriel_text_add(&text, "%s.", rest);
    oriel_finding_report(&finding);
}

static int next_in_cycle(const struct oriel_deadlock *finder, int rank,
                         const struct oriel_deadlock_set_clause **by)
{
    return oriel_deadlock_set_next(&finder->look.graph, finder->set, rank, ORIEL_DEADLOCK_SET_WAITS,
                                   by);
}

static int next_finished(const struct oriel_deadlock *finder, int rank,
                         const struct oriel_deadlock_set_clause **by)
{
    return oriel_deadlock_set_next(&finder->look.graph, finder->set, rank,
                                   ORIEL_DEADLOCK_SET_FINISHED, by);
}

static void finished_waits_report(struct oriel_deadlock *finder, int reported)
{
    const struct oriel_deadlock_set_clause *by;
    int count = 0;
    int others = -reported;
    char rest[64] = "";
    for (int rank = 0; rank < finder->look.n; rank++)
        others += finder->set[rank];
    if (others > 0)
        snprintf(rest, sizeof rest, "; %d other rank%s as a consequence", others,
                 others == 1 ? " waits" : "s wait");
    for (int rank = 0; rank < finder->look.n && count < REPORTS_MOST; rank++)
        if (finder->set[rank]) {
            int next = next_finished(finder, rank, &by);
            if (next >= 0) {
                waiting_rank_report(finder, rank, next, by, rest);
                count++;
            }
        }
}

/* Counts the ranks of the set that wait for a finished rank. */
static int finished_waits_count(const struct oriel_deadlock *finder)
{
    const struct oriel_deadlock_set_clause *by;
    int count = 0;
    for (int rank = 0; rank < finder->look.n; rank++)
        count += finder->set[rank] && next_finished(finder, rank, &by) >= 0;
    return count;
}

/* Formats the cycle: "0 for 1, 1 for 2, 2 for 0". */
static void cycle_describe(const struct oriel_deadlock *finder, int first, char *out, size_t room)
{
    struct oriel_text text = {.bytes = out, .room = room};
    const struct oriel_deadlock_set_clause *by;
    int rank = first;
    out[0] = '\0';
    oriel_text_add(&text, ". The cycle: ");
    do {
        int next = next_in_cycle(finder, rank, &by);
        oriel_text_add(&text, "%s%d %s%d", rank == first ? "" : ", ", rank,
                       rank == first ? "waits for " : "for ", next);
        rank = next;
    } while (rank != first && text.used + 32 < room);
    if (rank != first)
        oriel_text_add(&text, ", and so on");
}

/* A rank of the cycle whose report names what was forgotten: it waits for a lock, a notification or
 * a value; else one that waits in a window; else any. */
static int cycle_begin(struct oriel_deadlock *finder)
{
    const struct oriel_deadlock_set_clause *by;
    int first = oriel_deadlock_set_cycle(&finder->look.graph, finder->set);
    int rank = first;
    int best = first;
    do {
        int next = next_in_cycle(finder, rank, &by);
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as in cycle_report */
        const struct oriel_wait_need *need = oriel_wait_snapshot_need(&finder->look, rank, by);
        if (need_kind(need) == ORIEL_NEED_LOCK || need_kind(need) == ORIEL_NEED_NOTIFICATION ||
            need_kind(need) == ORIEL_NEED_VALUE)
            return rank;
        if (finder->look.ranks[best].noted.name[0] == '\0')
            best = rank;
        rank = next;
    } while (rank != first);
    return best;
}

static void cycle_report(struct oriel_deadlock *finder)
{
    const struct oriel_deadlock_set_clause *by;
    char rest[160];
    int first = cycle_begin(finder);
    int rank = first;
    cycle_describe(finder, first, rest, sizeof rest);
    for (int i = 0; i < REPORTS_MOST && (i == 0 || rank != first); i++) {
        int next = next_in_cycle(finder, rank, &by);
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): every rank of the cycle waits by a
         * clause */
        waiting_rank_report(finder, rank, next, by, rest);
        if (next_in_cycle(finder, next, &by) == first && rank == first)
            return; /* two ranks: the report has both calls */
        rank = next;
    }
}

void oriel_deadlock_report(struct oriel_deadlock *finder)
{
    int finished = finished_waits_count(finder);
    if (finished > 0)
        finished_waits_report(finder, finished);
    else
        cycle_report(finder);
}
