/* Who waits for whom.  A process names the ranks that its wait depends on; where all ranks of a window meet these are all the
 * others, and late are those that do not say that they are at the same meeting.
 *
 * A ring is a deadlock: each rank in it needs the next one to do something, and that one is in a call that does not return
 * before.  What a process says may be older than what it waits for: it writes when it has waited for a millisecond, and again
 * each 100 ms, and between its last look and its waking up the other may have gone on to wait elsewhere.  So an arrow counts
 * where the other one's wait is a second older than the look that found it in the way, which no scheduler explains.
 * waits.h says who calls. */
#include "cli/waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadlock_set.h"
#include "cli/cli.h"

static const uint64_t second_ns = UINT64_C(1000000000);

void oriel_waits_open(struct oriel_waits *waits, const struct oriel_process *processes,
                      size_t count)
{
    waits->processes = processes;
    waits->count = count;
    waits->now_ns = oriel_now_ns();
    memset(waits->by_rank, -1, sizeof waits->by_rank);
    for (size_t i = 0; i < count; i++) {
        int32_t rank = processes[i].world_rank;
        if (rank >= 0 && rank < ORIEL_STATE_RANKS && !processes[i].has_ended)
            waits->by_rank[rank] = (int32_t)i;
    }
}

static bool is_meeting(enum oriel_waiting what)
{
    return what == ORIEL_WAITING_FENCE || what == ORIEL_WAITING_FREE ||
           what == ORIEL_WAITING_CREATE || what == ORIEL_WAITING_AGREE;
}

static bool is_at(const struct oriel_wait_seen *wait, const struct oriel_wait_seen *meeting)
{
    return is_meeting(wait->what) && wait->window_id == meeting->window_id &&
           wait->turn == meeting->turn;
}

size_t oriel_waits_for(const struct oriel_waits *waits, size_t i, int32_t *ranks)
{
    const struct oriel_wait_seen *wait = &waits->processes[i].wait;
    size_t count = 0;
    if (wait->what == ORIEL_WAITING_NOTHING)
        return 0;
    for (int32_t rank = 0; rank < ORIEL_STATE_RANKS; rank++) {
        if (rank % 64 == 0 && wait->ranks[rank / 64] == 0) {
            rank += 63;
            continue;
        }
        int32_t other = waits->by_rank[rank];
        if ((wait->ranks[rank / 64] >> (rank % 64) & 1) == 0 ||
            (is_meeting(wait->what) && other >= 0 && is_at(&waits->processes[other].wait, wait)))
            continue;
        ranks[count++] = rank;
    }
    return count;
}

uint64_t oriel_waits_ns(const struct oriel_waits *waits, size_t i)
{
    uint64_t since_ns = waits->processes[i].wait.since_ns;
    return waits->now_ns > since_ns ? waits->now_ns - since_ns : 0;
}

/* --- words --- */

const char *oriel_waits_call(const struct oriel_process *process)
{
    static const char *const calls[ORIEL_WAITINGS] = {
        [ORIEL_WAITING_NOTHING] = "",
        [ORIEL_WAITING_FENCE] = "MPI_Win_fence",
        [ORIEL_WAITING_FREE] = "MPI_Win_free",
        [ORIEL_WAITING_CREATE] = "the making of a window",
        [ORIEL_WAITING_AGREE] = "the making of a window",
        [ORIEL_WAITING_POST] = "MPI_Win_start",
        [ORIEL_WAITING_COMPLETE] = "MPI_Win_wait",
        [ORIEL_WAITING_LOCK] = "MPI_Win_lock",
        [ORIEL_WAITING_LOCK_ALL] = "MPI_Win_lock_all",
        [ORIEL_WAITING_UPDATE] = "an accumulate",
        [ORIEL_WAITING_MACHINE] = "a call that needs another machine",
        [ORIEL_WAITING_AGENT] = "an operation by the target's agent",
    };
    return calls[process->wait.what];
}

const char *oriel_waits_word(const struct oriel_process *process)
{
    if (process->has_ended)
        return "ended";
    if (process->run == 'T' || process->run == 't')
        return "stopped";
    if (process->wait.what != ORIEL_WAITING_NOTHING)
        return "waits";
    if (process->has_left)
        return "finalised";
    return process->run == 'R' ? "computes" : "sleeps";
}

void oriel_ranks_say(const int32_t *ranks, size_t count, FILE *out)
{
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end + 1 < count && ranks[end + 1] == ranks[end] + 1)
            end++;
        fprintf(out, "%s%d", i > 0 ? ", " : "", (int)ranks[i]);
        if (end > i)
            fprintf(out, "%s%d", end > i + 1 ? "-" : ", ", (int)ranks[end]);
        i = end + 1;
    }
}

static void say_ranks(const int32_t *ranks, size_t count, FILE *out)
{
    fputs(count == 1 ? "rank " : "ranks ", out);
    oriel_ranks_say(ranks, count, out);
}

/* For whom, as the call has it. */
static void say_for(const struct oriel_wait_seen *wait, const int32_t *ranks, size_t count,
                    FILE *out)
{
    static const char *const before[ORIEL_WAITINGS] = {[ORIEL_WAITING_POST] = "the post of ",
                                                       [ORIEL_WAITING_UPDATE] = "that of ",
                                                       [ORIEL_WAITING_MACHINE] = "an answer of ",
                                                       [ORIEL_WAITING_AGENT] = "that of "};
    if (wait->what == ORIEL_WAITING_LOCK)
        fprintf(out, " for the lock of rank %d",
                (int)(wait->world_rank >= 0 ? wait->world_rank : wait->rank));
    if (count == 0 && wait->others == 0)
        return;
    fputs(wait->what == ORIEL_WAITING_LOCK ? ", held by " : " for ", out);
    fputs(before[wait->what] != NULL ? before[wait->what] : "", out);
    if (count > 0)
        say_ranks(ranks, count, out);
    if (wait->others > 0) /* which may have come to a meeting: only their machine knows */
        fprintf(out, "%s%s", count > 0 ? ", perhaps " : "", "ranks of other machines");
    if (wait->what == ORIEL_WAITING_LOCK_ALL)
        fputs(" to leave an exclusive lock", out);
    if (wait->what == ORIEL_WAITING_COMPLETE)
        fputs(" to complete", out);
}

static void say_duration(uint64_t ns, FILE *out)
{
    uint64_t s = ns / second_ns;
    if (s < 10)
        fprintf(out, "%.1f s", (double)ns / 1e9);
    else if (s < 120)
        fprintf(out, "%" PRIu64 " s", s);
    else if (s < 7200)
        fprintf(out, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else
        fprintf(out, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
}

void oriel_waits_say_wait(const struct oriel_waits *waits, size_t i, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    const struct oriel_wait_seen *wait = &process->wait;
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    size_t count = oriel_waits_for(waits, i, ranks);
    fputs(oriel_waits_call(process), out);
    if (wait->window_name[0] != '\0')
        fprintf(out, " of \"%s\"", wait->window_name);
    say_for(wait, ranks, count, out);
    fputs(count > 0 || wait->others > 0 ? ", since " : " since ", out);
    say_duration(oriel_waits_ns(waits, i), out);
    free(ranks);
}

void oriel_waits_say(const struct oriel_waits *waits, size_t i, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    const char *word = oriel_waits_word(process);
    bool stopped = strcmp(word, "stopped") == 0;
    if (process->wait.what != ORIEL_WAITING_NOTHING && !process->has_ended) {
        fputs("waits in ", out);
        oriel_waits_say_wait(waits, i, out);
        fputs(stopped ? "; stopped by a signal or a debugger" : "", out);
    } else {
        fprintf(out, "%s%s", word,
                stopped                       ? " by a signal or a debugger"
                : strcmp(word, "sleeps") == 0 ? " outside Oriel"
                                              : "");
    }
}

/* --- rings --- */

static bool is_arrow(const struct oriel_wait_seen *from, const struct oriel_wait_seen *to)
{
    return to->what != ORIEL_WAITING_NOTHING && to->since_ns + second_ns < from->looked_ns;
}

/* One clause: the processes that process i waits for.  A process that waits for itself waits for another of its threads, or in
 * vain: no other rank is part of that. */
static void add_arrows(struct oriel_deadlock_set_graph *graph, const struct oriel_waits *waits,
                       size_t i, int32_t *ranks)
{
    size_t count = oriel_waits_for(waits, i, ranks);
    oriel_deadlock_set_wait(graph, (int)i, false);
    oriel_deadlock_set_clause(graph, (int)i, 0, false, false);
    for (size_t k = 0; k < count; k++) {
        int32_t other = waits->by_rank[ranks[k]];
        if (other >= 0 && other != (int32_t)i &&
            is_arrow(&waits->processes[i].wait, &waits->processes[other].wait))
            oriel_deadlock_set_member(graph, other);
    }
}

/* Shows the ring that begins at this process and removes its processes from the set. */
static void remove_ring(const struct oriel_deadlock_set_graph *graph,
                        const struct oriel_waits *waits, bool *set, int32_t first, int32_t *ranks,
                        void (*tell)(const int32_t *ranks, size_t count, void *context),
                        void *context)
{
    const struct oriel_deadlock_set_clause *clause;
    size_t count = 0;
    int32_t i = first;
    do {
        ranks[count++] = waits->processes[i].world_rank;
        i = oriel_deadlock_set_next(graph, set, i, ORIEL_DEADLOCK_SET_WAITS, &clause);
    } while (i != first);
    for (size_t k = 0; k < count; k++)
        set[waits->by_rank[ranks[k]]] = false;
    tell(ranks, count, context);
}

void oriel_waits_rings(const struct oriel_waits *waits,
                       void (*tell)(const int32_t *ranks, size_t count, void *context),
                       void *context)
{
    struct oriel_deadlock_set_graph graph;
    bool *set = oriel_alloc(waits->count + 1);
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    oriel_needed(oriel_deadlock_set_open(&graph, (int)waits->count + 1) ? &graph : NULL);
    for (int32_t rank = 0; rank < ORIEL_STATE_RANKS; rank++) {
        int32_t i = waits->by_rank[rank];
        if (i >= 0 && waits->processes[i].wait.what != ORIEL_WAITING_NOTHING) {
            add_arrows(&graph, waits, (size_t)i, ranks);
            set[i] = true;
        }
    }
    oriel_needed(graph.failed ? NULL : &graph);
    while (oriel_deadlock_set_find(&graph, set) > 0)
        remove_ring(&graph, waits, set, oriel_deadlock_set_cycle(&graph, set), ranks, tell,
                    context);
    oriel_deadlock_set_close(&graph);
    free(ranks);
    free(set);
}
