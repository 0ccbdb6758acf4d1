/* The set is found by removal: a rank that can proceed leaves the set, until none can. The
 * remainder is the union of all deadlocked sets, because a rank that leaves never makes another
 * rank stay. */
#include "base/deadlock_set.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

bool oriel_deadlock_set_open(struct oriel_deadlock_set_graph *graph, int n)
{
    *graph = (struct oriel_deadlock_set_graph){.n = n};
    graph->ranks = calloc((size_t)(unsigned)n, sizeof *graph->ranks);
    return graph->ranks != NULL;
}

void oriel_deadlock_set_close(struct oriel_deadlock_set_graph *graph)
{
    free(graph->ranks);
    free(graph->clauses);
    free(graph->members);
    *graph = (struct oriel_deadlock_set_graph){.n = 0};
}

void oriel_deadlock_set_clear(struct oriel_deadlock_set_graph *graph)
{
    memset(graph->ranks, 0, (size_t)(unsigned)graph->n * sizeof *graph->ranks);
    graph->clauses_count = 0;
    graph->members_count = 0;
    graph->failed = false;
}

/* Grows the array if it has no room for one more item of len_bytes. Returns false when memory is
 * exhausted. */
static bool make_room(void **items, uint32_t count, uint32_t *room, size_t len_bytes)
{
    if (count < *room)
        return true;
    uint32_t wanted = *room == 0 ? FIRST_ROOM : *room * 2;
    void *larger = realloc(*items, wanted * len_bytes);
    if (larger == NULL)
        return false;
    *items = larger;
    *room = wanted;
    return true;
}

void oriel_deadlock_set_wait(struct oriel_deadlock_set_graph *graph, int rank, bool any)
{
    graph->ranks[rank] = (struct oriel_deadlock_set_rank){
        .state = ORIEL_DEADLOCK_SET_WAITS, .any = any, .first = graph->clauses_count};
}

void oriel_deadlock_set_clause(struct oriel_deadlock_set_graph *graph, int rank, uint32_t need,
                               bool any, bool maybe)
{
    void *clauses = graph->clauses;
    if (!make_room(&clauses, graph->clauses_count, &graph->clauses_room, sizeof *graph->clauses)) {
        graph->failed = true;
        return;
    }
    graph->clauses = clauses;
    graph->clauses[graph->clauses_count++] = (struct oriel_deadlock_set_clause){
        .first = graph->members_count, .need = need, .any = any, .maybe = maybe};
    graph->ranks[rank].count++;
}

void oriel_deadlock_set_member(struct oriel_deadlock_set_graph *graph, int32_t member)
{
    void *members = graph->members;
    if (graph->failed ||
        !make_room(&members, graph->members_count, &graph->members_room, sizeof *graph->members)) {
        graph->failed = true;
        return;
    }
    graph->members = members;
    graph->members[graph->members_count++] = member;
    graph->clauses[graph->clauses_count - 1].count++;
}

static bool does_nothing(const struct oriel_deadlock_set_graph *graph, int32_t rank,
                         const bool *set)
{
    return rank >= 0 && rank < graph->n &&
           (set[rank] || graph->ranks[rank].state == ORIEL_DEADLOCK_SET_FINISHED);
}

bool oriel_deadlock_set_by(const struct oriel_deadlock_set_graph *graph,
                           const struct oriel_deadlock_set_clause *clause, const bool *set)
{
    for (uint32_t i = 0; i < clause->count; i++) {
        bool nothing = does_nothing(graph, graph->members[clause->first + i], set);
        if (nothing != clause->any)
            return nothing;
    }
    return clause->any && clause->count > 0;
}

/* A rank that waits for all its needs is stuck if one need that is not `maybe` stays unfulfilled.
 * Any rank is stuck if all its needs stay unfulfilled: at least one is unfulfilled now, or the call
 * would have returned. */
static bool is_stuck(const struct oriel_deadlock_set_graph *graph,
                     const struct oriel_deadlock_set_rank *rank, const bool *set)
{
    bool every = rank->count > 0;
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct oriel_deadlock_set_clause *clause = &graph->clauses[rank->first + i];
        bool stuck = oriel_deadlock_set_by(graph, clause, set);
        if (stuck && !rank->any && !clause->maybe)
            return true;
        every = every && stuck;
    }
    return every;
}

int oriel_deadlock_set_find(const struct oriel_deadlock_set_graph *graph, bool *set)
{
    int count = 0;
    for (bool changed = true; changed;) {
        changed = false;
        count = 0;
        for (int rank = 0; rank < graph->n; rank++) {
            if (!set[rank])
                continue;
            const struct oriel_deadlock_set_rank *of = &graph->ranks[rank];
            set[rank] =
                !graph->failed && of->state == ORIEL_DEADLOCK_SET_WAITS && is_stuck(graph, of, set);
            changed = changed || !set[rank];
            count += set[rank];
        }
    }
    return count;
}

int32_t oriel_deadlock_set_next(const struct oriel_deadlock_set_graph *graph, const bool *set,
                                int32_t rank, enum oriel_deadlock_set_state state,
                                const struct oriel_deadlock_set_clause **out)
{
    const struct oriel_deadlock_set_rank *waiting = &graph->ranks[rank];
    for (uint32_t i = 0; i < waiting->count; i++) {
        const struct oriel_deadlock_set_clause *clause = &graph->clauses[waiting->first + i];
        if (!oriel_deadlock_set_by(graph, clause, set))
            continue;
        for (uint32_t k = 0; k < clause->count; k++) {
            int32_t member = graph->members[clause->first + k];
            if (does_nothing(graph, member, set) && graph->ranks[member].state == state) {
                *out = clause;
                return member;
            }
        }
    }
    return -1;
}

int32_t oriel_deadlock_set_cycle(const struct oriel_deadlock_set_graph *graph, const bool *set)
{
    const struct oriel_deadlock_set_clause *clause;
    int32_t rank = 0;
    while (!set[rank])
        rank++;
    for (int i = 0; i < graph->n; i++) /* The walk enters a cycle after at most n steps. */
        rank = oriel_deadlock_set_next(graph, set, rank, ORIEL_DEADLOCK_SET_WAITS, &clause);
    int32_t lowest = rank, next = rank;
    do {
        next = oriel_deadlock_set_next(graph, set, next, ORIEL_DEADLOCK_SET_WAITS, &clause);
        lowest = next < lowest ? next : lowest;
    } while (next != rank);
    return lowest;
}
