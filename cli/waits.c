/* Waits between ranks of a job. A process names the ranks that its wait depends on. In a collective
 * call these are all other ranks of the window. Those that do not report the same call are late.
 *
 * A ring is a deadlock: each rank in it needs an action of the next one, which is in a call that
 * does not return before its own wait ends. The state of a process may be older than the wait that
 * it belongs to: a process writes it after a millisecond of waiting and again every 100 ms, and may
 * have proceeded to another wait since its last check. So an arrow counts only if the other rank's
 * wait began at least a second before the check that found that rank blocking. Scheduling delays
 * are shorter. */
#include "cli/waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadlock_set.h"
#include "cli/cli.h"
#include "cli/helper.h"
#include "cli/trace_text.h"

enum { PLACES_CACHED = 64 };

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

static bool is_collective_wait(enum oriel_waiting what)
{
    return what == ORIEL_WAITING_FENCE || what == ORIEL_WAITING_FREE ||
           what == ORIEL_WAITING_CREATE || what == ORIEL_WAITING_AGREE;
}

static bool is_in_same_call(const struct oriel_wait_seen *wait,
                            const struct oriel_wait_seen *collective)
{
    return is_collective_wait(wait->what) && wait->window_id == collective->window_id &&
           wait->turn == collective->turn;
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
            (is_collective_wait(wait->what) && other >= 0 &&
             is_in_same_call(&waits->processes[other].wait, wait)))
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

/* --- texts --- */

const char *oriel_waits_call(const struct oriel_process *process)
{
    static const char *const calls[ORIEL_WAITING_COUNT] = {
        [ORIEL_WAITING_NOTHING] = "",
        [ORIEL_WAITING_FENCE] = "MPI_Win_fence",
        [ORIEL_WAITING_FREE] = "MPI_Win_free",
        [ORIEL_WAITING_CREATE] = "the creation of a window",
        [ORIEL_WAITING_AGREE] = "the creation of a window",
        [ORIEL_WAITING_POST] = "MPI_Win_start",
        [ORIEL_WAITING_COMPLETE] = "MPI_Win_wait",
        [ORIEL_WAITING_NOTIFICATION] = "MPIX_Win_notify_wait",
        [ORIEL_WAITING_LOCK] = "MPI_Win_lock",
        [ORIEL_WAITING_LOCK_ALL] = "MPI_Win_lock_all",
        [ORIEL_WAITING_UPDATE] = "an accumulate",
        [ORIEL_WAITING_NODE] = "a call that needs another node",
        [ORIEL_WAITING_AGENT] = "an operation by the target's agent",
        [ORIEL_WAITING_MEMORY] = "MPIX_Win_wait_until",
    };
    return calls[process->wait.what];
}

const char *oriel_waits_state_name(const struct oriel_process *process)
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

struct oriel_code_address oriel_waits_place(const struct oriel_process *process)
{
    static struct {
        struct oriel_code_address asked, known;
    } cache[PLACES_CACHED];
    static size_t count;
    for (size_t i = 0; i < count && i < PLACES_CACHED; i++)
        if (memcmp(&cache[i].asked, &process->wait.place, sizeof cache[i].asked) == 0)
            return cache[i].known;
    struct oriel_code_address place = process->wait.place;
    if (process->user == geteuid())
        oriel_dwarf_lookup(&place, 1);
    oriel_trace_text_clean(place.module, sizeof place.module);
    oriel_trace_text_clean(place.function, sizeof place.function);
    oriel_trace_text_clean(place.file, sizeof place.file);
    cache[count % PLACES_CACHED].asked = process->wait.place;
    cache[count++ % PLACES_CACHED].known = place;
    return place;
}

void oriel_ranks_print(const int32_t *ranks, size_t count, FILE *out)
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

static void ranks_print_titled(const int32_t *ranks, size_t count, FILE *out)
{
    fputs(count == 1 ? "rank " : "ranks ", out);
    oriel_ranks_print(ranks, count, out);
}

/* Prints the ranks that it waits for, phrased for the call. */
static void waited_ranks_print(const struct oriel_wait_seen *wait, const int32_t *ranks,
                               size_t count, bool is_short, FILE *out)
{
    static const char *const before[ORIEL_WAITING_COUNT] = {
        [ORIEL_WAITING_POST] = "the post of ",
        [ORIEL_WAITING_UPDATE] = "the update of ",
        [ORIEL_WAITING_NODE] = "an answer from ",
        [ORIEL_WAITING_AGENT] = "the agent of "};
    bool has_others = count > 0 || wait->others > 0;
    if (wait->what == ORIEL_WAITING_LOCK && !(is_short && has_others))
        fprintf(out, " for the lock on rank %d",
                (int)(wait->world_rank >= 0 ? wait->world_rank : wait->rank));
    if (!has_others)
        return;
    fputs(wait->what == ORIEL_WAITING_LOCK && !is_short ? ", held by " : " for ", out);
    fputs(before[wait->what] != NULL ? before[wait->what] : "", out);
    if (count > 0)
        ranks_print_titled(ranks, count, out);
    if (wait->others > 0) /* they may have joined the call: only their node knows */
        fprintf(out, "%s%s", count > 0 ? ", perhaps " : "", "ranks of other nodes");
    if (wait->what == ORIEL_WAITING_LOCK_ALL)
        fputs(" to release an exclusive lock", out);
    if (wait->what == ORIEL_WAITING_COMPLETE)
        fputs(" to complete", out);
}

static void duration_print(uint64_t ns, FILE *out)
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

void oriel_waits_print_wait(const struct oriel_waits *waits, size_t i, bool is_short, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    const struct oriel_wait_seen *wait = &process->wait;
    const struct oriel_code_address place = oriel_waits_place(process);
    char where[ORIEL_CODE_ADDRESS_TEXT];
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    size_t count = oriel_waits_for(waits, i, ranks);
    oriel_code_address_text(&place, where);
    fputs(oriel_waits_call(process), out);
    if (wait->window_name[0] != '\0')
        fprintf(out, " of \"%s\"", wait->window_name);
    if (where[0] != '\0' && !is_short)
        fprintf(out, " (%s)", where);
    waited_ranks_print(wait, ranks, count, is_short, out);
    fputs(", ", out);
    duration_print(oriel_waits_ns(waits, i), out);
    if (!is_short)
        fputs(" so far", out);
    else if (where[0] != '\0')
        fprintf(out, ", %s", where);
    free(ranks);
}

void oriel_waits_print(const struct oriel_waits *waits, size_t i, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    const char *word = oriel_waits_state_name(process);
    bool stopped = strcmp(word, "stopped") == 0;
    if (process->wait.what != ORIEL_WAITING_NOTHING && !process->has_ended) {
        fputs("waits in ", out);
        oriel_waits_print_wait(waits, i, false, out);
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

/* Adds one clause: the processes that process i waits for. A process that waits for itself waits
 * for another of its threads, or in vain: no other rank is part of that. */
static void wait_arrows_add(struct oriel_deadlock_set_graph *graph, const struct oriel_waits *waits,
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

/* Passes the ring that begins at process first to visit, and removes its processes from the set. */
static void ring_visit(const struct oriel_deadlock_set_graph *graph,
                       const struct oriel_waits *waits, bool *set, int32_t first, int32_t *ranks,
                       void (*visit)(const int32_t *ranks, size_t count, void *context),
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
    visit(ranks, count, context);
}

void oriel_waits_rings(const struct oriel_waits *waits,
                       void (*visit)(const int32_t *ranks, size_t count, void *context),
                       void *context)
{
    struct oriel_deadlock_set_graph graph;
    bool *set = oriel_alloc(waits->count + 1);
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    oriel_alloc_checked(oriel_deadlock_set_open(&graph, (int)waits->count + 1) ? &graph : NULL);
    for (int32_t rank = 0; rank < ORIEL_STATE_RANKS; rank++) {
        int32_t i = waits->by_rank[rank];
        if (i >= 0 && waits->processes[i].wait.what != ORIEL_WAITING_NOTHING) {
            wait_arrows_add(&graph, waits, (size_t)i, ranks);
            set[i] = true;
        }
    }
    oriel_alloc_checked(graph.failed ? NULL : &graph);
    while (oriel_deadlock_set_find(&graph, set) > 0)
        ring_visit(&graph, waits, set, oriel_deadlock_set_cycle(&graph, set), ranks, visit,
                   context);
    oriel_deadlock_set_close(&graph);
    free(ranks);
    free(set);
}
