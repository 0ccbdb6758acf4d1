/* Sums a run's events for each window. Pairs of ranks are in a hash table that grows, because most
 * pairs do not occur. */
#include "cli/report/report.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static void sum_add_event(struct oriel_report_sum *sum, const struct oriel_trace_record *record)
{
    const struct oriel_trace_event *event = record->event;
    sum->count += record->weight;
    sum->bytes += event->bytes * record->weight;
    sum->time_ns += record->time_ns;
    sum->waiting_ns += event->waiting_ns * record->weight;
    if (event->waiting_ns > sum->longest_ns)
        sum->longest_ns = event->waiting_ns;
}

/* --- pairs --- */

static size_t pair_slot_find(const struct oriel_pairs *pairs, int32_t from, int32_t to,
                             uint8_t cause)
{
    uint64_t key =
        ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) * UINT64_C(0x9e3779b97f4a7c15) + cause;
    size_t slot = (size_t)(key ^ key >> 29) & (pairs->slots_count - 1);
    for (;; slot = (slot + 1) & (pairs->slots_count - 1)) {
        if (pairs->slots[slot] == 0)
            return slot;
        const struct oriel_report_pair *pair = &pairs->pairs[pairs->slots[slot] - 1];
        if (pair->from == from && pair->to == to && pair->cause == cause)
            return slot;
    }
}

static void pairs_grow(struct oriel_pairs *pairs)
{
    if (pairs->count < pairs->room)
        return;
    pairs->room = pairs->room == 0 ? 64 : 2 * pairs->room;
    pairs->pairs =
        oriel_alloc_checked(reallocarray(pairs->pairs, pairs->room, sizeof *pairs->pairs));
    free(pairs->slots);
    pairs->slots_count = 2 * pairs->room;
    pairs->slots = oriel_alloc(pairs->slots_count * sizeof *pairs->slots);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct oriel_report_pair *pair = &pairs->pairs[i];
        pairs->slots[pair_slot_find(pairs, pair->from, pair->to, pair->cause)] = (uint32_t)i + 1;
    }
}

static struct oriel_report_sum *pair_sum_get(struct oriel_pairs *pairs, int32_t from, int32_t to,
                                             uint8_t cause)
{
    pairs_grow(pairs);
    size_t slot = pair_slot_find(pairs, from, to, cause);
    if (pairs->slots[slot] == 0) {
        pairs->pairs[pairs->count++] =
            (struct oriel_report_pair){.from = from, .to = to, .cause = cause};
        pairs->slots[slot] = (uint32_t)pairs->count;
    }
    return &pairs->pairs[pairs->slots[slot] - 1].sum;
}

static int more_bytes_first(const void *a, const void *b)
{
    const struct oriel_report_sum *one = &((const struct oriel_report_pair *)a)->sum;
    const struct oriel_report_sum *other = &((const struct oriel_report_pair *)b)->sum;
    if (one->bytes != other->bytes)
        return one->bytes < other->bytes ? 1 : -1;
    return (one->count < other->count) - (one->count > other->count);
}

static int longer_wait_first(const void *a, const void *b)
{
    const struct oriel_report_sum *one = &((const struct oriel_report_pair *)a)->sum;
    const struct oriel_report_sum *other = &((const struct oriel_report_pair *)b)->sum;
    return (one->waiting_ns < other->waiting_ns) - (one->waiting_ns > other->waiting_ns);
}

/* --- ranks --- */

int32_t oriel_world_rank(const struct oriel_traces *traces, uint32_t window, int32_t win_rank)
{
    const struct oriel_traced_window *of = &traces->windows[window];
    return win_rank >= 0 && win_rank < of->n ? of->world_ranks[win_rank] : -1;
}

int32_t oriel_win_rank(const struct oriel_traces *traces, uint32_t window, uint32_t rank)
{
    const struct oriel_traced_window *of = &traces->windows[window];
    int32_t world_rank = traces->ranks[rank].world_rank;
    if (world_rank < of->n && of->world_ranks[world_rank] == world_rank)
        return world_rank; /* the window has all of MPI_COMM_WORLD, or its first ranks */
    for (int32_t i = 0; i < of->n; i++)
        if (of->world_ranks[i] == world_rank)
            return i;
    return -1;
}

/* --- all events --- */

struct adding {
    const struct oriel_traces *traces;
    struct oriel_window_sums *sums;
    uint32_t rank, window; /* for which own is valid */
    int32_t own;           /* the rank's win_rank in the window */
};

static bool add_event(const struct oriel_trace_record *traced, void *context)
{
    struct adding *adding = context;
    const struct oriel_trace_event *event = traced->event;
    struct oriel_window_sums *sums = &adding->sums[traced->window];
    if (traced->rank != adding->rank || traced->window != adding->window) {
        adding->rank = traced->rank;
        adding->window = traced->window;
        adding->own = oriel_win_rank(adding->traces, traced->window, traced->rank);
    }
    if (event->kind < ORIEL_TRACE_CALL) {
        sum_add_event(&sums->operations[event->kind], traced);
        sum_add_event(&sums->paths[event->path], traced);
        sum_add_event(pair_sum_get(&sums->busy, adding->own, event->target, 0), traced);
    } else {
        sum_add_event(&sums->calls[event->kind - ORIEL_TRACE_CALL], traced);
    }
    if (event->waiting_ns != 0) {
        sum_add_event(&sums->causes[event->cause], traced);
        sum_add_event(pair_sum_get(&sums->waits, adding->own, event->cause_rank, event->cause),
                      traced);
    }
    return true;
}

struct oriel_window_sums *oriel_sums_compute(const struct oriel_traces *traces)
{
    struct adding adding = {.traces = traces, .rank = UINT32_MAX, .window = UINT32_MAX};
    adding.sums = oriel_alloc((traces->windows_count + 1) * sizeof *adding.sums);
    oriel_traces_each(traces, add_event, &adding);
    for (size_t i = 0; i < traces->windows_count; i++) {
        struct oriel_window_sums *sums = &adding.sums[i];
        if (sums->busy.count > 0)
            qsort(sums->busy.pairs, sums->busy.count, sizeof *sums->busy.pairs, more_bytes_first);
        if (sums->waits.count > 0)
            qsort(sums->waits.pairs, sums->waits.count, sizeof *sums->waits.pairs,
                  longer_wait_first);
    }
    return adding.sums;
}

void oriel_sums_free(struct oriel_window_sums *sums, const struct oriel_traces *traces)
{
    for (size_t i = 0; i < traces->windows_count; i++) {
        free(sums[i].busy.pairs);
        free(sums[i].busy.slots);
        free(sums[i].waits.pairs);
        free(sums[i].waits.slots);
    }
    free(sums);
}
