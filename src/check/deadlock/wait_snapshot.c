/* Turns needs into ranks. A rank did everything it has done before its serial got its value. So
 * this look at its effects is complete if the serial is still the same afterwards. Where an entry
 * found no room in the checker's shared memory, needs count as fulfilled. */
#include "check/deadlock/wait_snapshot.h"

#include "check/order/order.h"

#include <stdlib.h>
#include <string.h>

bool oriel_wait_snapshot_open(struct oriel_wait_snapshot *look, int n)
{
    *look = (struct oriel_wait_snapshot){.n = n};
    look->ranks = calloc((size_t)(unsigned)n, sizeof *look->ranks);
    return look->ranks != NULL && oriel_deadlock_set_open(&look->graph, n);
}

void oriel_wait_snapshot_close(struct oriel_wait_snapshot *look)
{
    oriel_wait_snapshot_nodes_close(look);
    free(look->ranks);
    oriel_deadlock_set_close(&look->graph);
    *look = (struct oriel_wait_snapshot){.n = 0};
}

/* --- records --- */

static bool serial_is_waiting(uint64_t serial)
{
    return serial % 2 != 0;
}

/* The process of the rank has died, in no particular call. */
static void rank_mark_dead(struct oriel_wait_snapshot_rank *looked)
{
    looked->state = ORIEL_DEADLOCK_SET_FINISHED;
    looked->noted.site = (struct oriel_site){.call = 0};
}

static void record_look(struct oriel_wait_snapshot_rank *looked, oriel_shm_offset place)
{
    struct oriel_wait_record *record = oriel_shm_at(place);
    looked->record = record;
    looked->state = ORIEL_DEADLOCK_SET_COMPUTES;
    looked->serial = 0;
    if (record == NULL)
        return;
    uint32_t state = atomic_load_explicit(&record->state, memory_order_acquire);
    looked->serial = atomic_load_explicit(&record->serial, memory_order_acquire);
    if (state == ORIEL_STATE_FINISHED) {
        looked->state = ORIEL_DEADLOCK_SET_FINISHED;
        looked->noted.site = record->noted.site;
    } else if (serial_is_waiting(looked->serial) && atomic_load(&record->many) == 0) {
        looked->state = ORIEL_DEADLOCK_SET_WAITS;
    } else if (oriel_wait_record_has_died(record)) {
        rank_mark_dead(looked);
    }
}

static const oriel_shm_offset *records_table(int n)
{
    struct oriel_key key = oriel_wait_table_key();
    return oriel_shm_at(oriel_shm_find(&key, (size_t)(unsigned)n * sizeof(oriel_shm_offset), NULL));
}

void oriel_wait_snapshot_states(struct oriel_wait_snapshot *look)
{
    const oriel_shm_offset *records = records_table(look->n);
    for (int rank = 0; rank < look->n; rank++)
        record_look(&look->ranks[rank],
                    records == NULL ? 0 : __atomic_load_n(&records[rank], __ATOMIC_ACQUIRE));
}

static bool rank_has_proceeded(const struct oriel_wait_snapshot_rank *looked)
{
    return atomic_load_explicit(&looked->record->serial, memory_order_acquire) != looked->serial ||
           atomic_load(&looked->record->many) != 0;
}

void oriel_wait_snapshot_recheck(const struct oriel_wait_snapshot *look, bool *set)
{
    if (look->remote != NULL) {
        oriel_wait_snapshot_nodes_recheck(look, set);
        return;
    }
    atomic_thread_fence(memory_order_seq_cst);
    for (int rank = 0; rank < look->n; rank++)
        set[rank] = set[rank] && !rank_has_proceeded(&look->ranks[rank]);
}

/* --- reports --- */

static bool rank_report_fill(struct oriel_wait_report *out,
                             const struct oriel_wait_snapshot_rank *looked)
{
    if (looked->state == ORIEL_DEADLOCK_SET_COMPUTES ||
        (looked->state == ORIEL_DEADLOCK_SET_WAITS &&
         atomic_load(&looked->record->steady) != looked->serial))
        return false;
    out->state = looked->state;
    out->serial = looked->serial;
    memcpy((void *)&out->record, (const void *)looked->record, sizeof out->record);
    if (looked->state == ORIEL_DEADLOCK_SET_FINISHED)
        out->record.noted.site = looked->noted.site;
    atomic_thread_fence(memory_order_seq_cst);
    return looked->state == ORIEL_DEADLOCK_SET_FINISHED || !rank_has_proceeded(looked);
}

size_t oriel_wait_reports(struct oriel_wait_report *out, size_t room)
{
    size_t count = 0;
    int n = oriel_shm_world_size();
    const oriel_shm_offset *records = records_table(n);
    for (int rank = 0; rank < n && records != NULL && count < room; rank++) {
        struct oriel_wait_snapshot_rank looked = {.serial = 0};
        record_look(&looked, __atomic_load_n(&records[rank], __ATOMIC_ACQUIRE));
        if (looked.state == ORIEL_DEADLOCK_SET_WAITS && oriel_wait_record_has_died(looked.record))
            rank_mark_dead(&looked); /* no process of another node could ask this kernel */
        out[count].rank = rank;
        count += rank_report_fill(&out[count], &looked);
    }
    return count;
}

/* --- needs --- */

static bool key_exists(void *at, bool made, void *closure)
{
    (void)at;
    (void)made;
    (void)closure;
    return true;
}

bool oriel_wait_is_given(const struct oriel_key *key)
{
    return oriel_shm_refused() > 0 ||
           (key->words[0] == ORIEL_ORDER_MESSAGE && oriel_order_is_doubtful()) ||
           oriel_shm_work(key, 0, key_exists, NULL);
}

static bool key_is_given(const struct oriel_wait_snapshot *look, int waiter,
                         const uint64_t words[4])
{
    struct oriel_key asked, key;
    memcpy(asked.words, words, sizeof asked.words);
    int node = oriel_order_key_home(&asked, &key);
    return look->remote == NULL
               ? oriel_wait_is_given(&key)
               : look->remote->is_given(node < 0 ? look->remote->node_of(waiter) : node, &key);
}

const struct oriel_collective_progress *
oriel_wait_snapshot_need_progress(struct oriel_wait_snapshot *look, int rank,
                                  const struct oriel_wait_need *need)
{
    uint32_t kind = need->kind & ~(uint32_t)ORIEL_NEED_MAYBE;
    if (look->remote == NULL)
        return oriel_shm_at(need->words[kind == ORIEL_NEED_RECEIVE ? 2 : 0]);
    if (kind == ORIEL_NEED_RECEIVE)
        return oriel_wait_snapshot_progress_of(look, rank, need->words[0], false);
    return oriel_wait_snapshot_progress_of(look, rank, need->words[3],
                                           kind == ORIEL_NEED_LOCK ||
                                               (need->words[2] & ORIEL_NEED_OF_WINDOW) != 0);
}

static int32_t member_world_rank(const struct oriel_collective_progress *progress, int member)
{
    return atomic_load_explicit(&progress->slots[member].world_rank, memory_order_relaxed) - 1;
}

bool oriel_wait_snapshot_mismatch(const struct oriel_collective_progress *progress, int member,
                                  uint64_t number, uint16_t call)
{
    const struct oriel_collective_progress_slot *slot = &progress->slots[member];
    if (number == (uint64_t)ORIEL_COLLECTIVE_PROGRESS_LAST)
        return false;
    uint64_t before = atomic_load_explicit(&slot->number, memory_order_acquire);
    uint16_t called = atomic_load_explicit(&slot->calls[number % ORIEL_COLLECTIVE_PROGRESS_CALLS],
                                           memory_order_acquire);
    uint64_t behind = atomic_load_explicit(&slot->number, memory_order_relaxed);
    return before >= number && behind + 1 < number + ORIEL_COLLECTIVE_PROGRESS_CALLS &&
           called != call;
}

static bool member_has_called(const struct oriel_collective_progress *progress, int member,
                              uint64_t number, uint16_t call)
{
    if (number == (uint64_t)ORIEL_COLLECTIVE_PROGRESS_LAST)
        return atomic_load_explicit(&progress->slots[member].last, memory_order_acquire) != 0;
    return atomic_load_explicit(&progress->slots[member].number, memory_order_acquire) >= number &&
           !oriel_wait_snapshot_mismatch(progress, member, number, call);
}

static void call_need_add(struct oriel_wait_snapshot *look,
                          const struct oriel_collective_progress *progress,
                          const struct oriel_wait_need *need)
{
    uint16_t call = (uint16_t)(need->words[2] >> 1);
    bool below = need->words[2] & 1;
    if (need->rank >= progress->n ||
        (!progress->is_window && oriel_order_is_doubtful())) /* their numbers may differ */
        return;
    int first = below || need->rank < 0 ? 0 : need->rank;
    int end = need->rank < 0 ? progress->n : below ? need->rank : need->rank + 1;
    for (int member = first; member < end; member++)
        if (!member_has_called(progress, member, need->words[1], call))
            oriel_deadlock_set_member(&look->graph, member_world_rank(progress, member));
}

static void lock_need_add(struct oriel_wait_snapshot *look,
                          const struct oriel_collective_progress *progress,
                          const struct oriel_wait_need *need, int waiter)
{
    int target = (int)(int64_t)need->words[1];
    uint8_t allowed = need->words[2] ? ORIEL_HOLDS_NOTHING : ORIEL_HOLDS_SHARED;
    if (progress->has_locks == 0 || target >= progress->n)
        return;
    for (int member = 0; member < progress->n; member++) {
        uint8_t all = atomic_load_explicit(oriel_collective_progress_holds(progress, member, -1),
                                           memory_order_acquire);
        bool holds = all > allowed;
        for (int of = target < 0 ? 0 : target;
             of < (target < 0 ? progress->n : target + 1) && !holds; of++)
            holds = atomic_load_explicit(oriel_collective_progress_holds(progress, member, of),
                                         memory_order_acquire) > allowed;
        if (holds && member_world_rank(progress, member) != waiter)
            oriel_deadlock_set_member(&look->graph, member_world_rank(progress, member));
    }
}

/* Whether the other rank's current call matches a message of that kind: same communicator and a
 * matching tag. */
static bool message_matches(const struct oriel_wait_snapshot *look, int rank, enum oriel_need kind,
                            int other, const struct oriel_wait_need *need)
{
    const struct oriel_wait_snapshot_rank *looked = &look->ranks[rank];
    if (looked->state != ORIEL_DEADLOCK_SET_WAITS)
        return false;
    for (uint32_t i = 0; i < looked->noted.count; i++) {
        const struct oriel_wait_need *theirs = &looked->noted.needs[i];
        uint32_t theirs_kind = theirs->kind & ~(uint32_t)ORIEL_NEED_MAYBE;
        int64_t tag = (int64_t)need->words[1], theirs_tag = (int64_t)theirs->words[1];
        if (kind == ORIEL_NEED_RECEIVE && theirs_kind == ORIEL_NEED_KEY && theirs->rank == other &&
            theirs->words[0] == ORIEL_ORDER_MESSAGE && theirs->words[1] == need->words[0] &&
            (int64_t)(theirs->words[3] >> 32) == tag)
            return true;
        if (theirs_kind == kind && (theirs->rank == other || theirs->rank < 0) &&
            theirs->words[0] == need->words[0] && (tag == theirs_tag || tag < 0 || theirs_tag < 0))
            return true;
    }
    return false;
}

static bool counter_is_positive(const _Atomic int32_t *counter)
{
    return atomic_load_explicit(counter, memory_order_acquire) > 0;
}

static bool receive_is_possible(const struct oriel_wait_snapshot *look, int waiter,
                                const struct oriel_wait_need *need)
{
    const struct oriel_wait_record *to = look->ranks[need->rank].record;
    return to == NULL || counter_is_positive(&to->receiving_any) ||
           counter_is_positive(&to->receiving[waiter % ORIEL_WAIT_BUCKETS]) ||
           message_matches(look, need->rank, ORIEL_NEED_RECEIVE, waiter, need);
}

static bool send_is_possible(const struct oriel_wait_snapshot *look, int from, int waiter,
                             const struct oriel_wait_need *need)
{
    const struct oriel_wait_record *record = look->ranks[from].record;
    return record == NULL || counter_is_positive(&record->sending[waiter % ORIEL_WAIT_BUCKETS]) ||
           message_matches(look, from, ORIEL_NEED_SEND, waiter, need);
}

static void receive_need_add(struct oriel_wait_snapshot *look, int waiter,
                             const struct oriel_wait_need *need)
{
    if (need->rank >= 0 && need->rank < look->n &&
        !send_is_possible(look, need->rank, waiter, need))
        oriel_deadlock_set_member(&look->graph, need->rank);
}

/* All members but the waiting one: each may fulfil the need. */
static void others_add(struct oriel_wait_snapshot *look,
                       const struct oriel_collective_progress *progress, int waiter)
{
    const int n = progress == NULL ? look->n : progress->n;
    for (int i = 0; i < n; i++) {
        const int32_t rank = progress == NULL ? i : member_world_rank(progress, i);
        if (rank != waiter)
            oriel_deadlock_set_member(&look->graph, rank);
    }
}

/* A receive from any member. */
static void receive_any_need_add(struct oriel_wait_snapshot *look,
                                 const struct oriel_collective_progress *progress, int waiter,
                                 const struct oriel_wait_need *need)
{
    for (int member = 0; member < progress->n; member++) {
        int32_t from = member_world_rank(progress, member);
        if (from < 0 || from >= look->n || send_is_possible(look, from, waiter, need))
            return;
    }
    others_add(look, progress, waiter);
}

static void progress_need_add(struct oriel_wait_snapshot *look, int waiter, uint32_t kind,
                              const struct oriel_wait_need *need)
{
    const struct oriel_collective_progress *progress =
        oriel_wait_snapshot_need_progress(look, waiter, need);
    if (progress == NULL || progress->n > look->n)
        return;
    if (kind == ORIEL_NEED_CALL)
        call_need_add(look, progress, need);
    else if (kind == ORIEL_NEED_LOCK)
        lock_need_add(look, progress, need, waiter);
    else if (kind == ORIEL_NEED_NOTIFICATION)
        others_add(look, progress, waiter);
    else
        receive_any_need_add(look, progress, waiter, need);
}

static void need_add(struct oriel_wait_snapshot *look, int waiter, uint32_t number)
{
    const struct oriel_wait_need *need = &look->ranks[waiter].noted.needs[number];
    uint32_t kind = need->kind & ~(uint32_t)ORIEL_NEED_MAYBE;
    bool is_rank = need->rank >= 0 && need->rank < look->n;
    bool from_any = (kind == ORIEL_NEED_RECEIVE && need->rank < 0) ||
                    kind == ORIEL_NEED_NOTIFICATION || kind == ORIEL_NEED_VALUE;
    oriel_deadlock_set_clause(&look->graph, waiter, number, from_any,
                              (need->kind & ORIEL_NEED_MAYBE) != 0);
    if (kind == ORIEL_NEED_VALUE)
        others_add(look, NULL, waiter);
    else if (kind == ORIEL_NEED_CALL || kind == ORIEL_NEED_LOCK || from_any)
        progress_need_add(look, waiter, kind, need);
    else if (kind == ORIEL_NEED_RECEIVE)
        receive_need_add(look, waiter, need);
    else if ((kind == ORIEL_NEED_KEY && is_rank && !key_is_given(look, waiter, need->words)) ||
             (kind == ORIEL_NEED_SEND && is_rank && !receive_is_possible(look, waiter, need)))
        oriel_deadlock_set_member(&look->graph, need->rank);
}

/* Reports of all nodes are unchanged from before they were copied, so only a local snapshot is
 * checked again. */
static void node_ranks_look_again(const struct oriel_wait_snapshot *look, bool *set)
{
    if (look->remote == NULL)
        oriel_wait_snapshot_recheck(look, set);
}

void oriel_wait_snapshot_waits(struct oriel_wait_snapshot *look, bool *set)
{
    oriel_deadlock_set_clear(&look->graph);
    for (int rank = 0; rank < look->n; rank++) {
        struct oriel_wait_snapshot_rank *looked = &look->ranks[rank];
        look->graph.ranks[rank].state = set[rank] || looked->state != ORIEL_DEADLOCK_SET_WAITS
                                            ? looked->state
                                            : ORIEL_DEADLOCK_SET_COMPUTES;
        if (set[rank])
            looked->noted = looked->record->noted;
        else
            looked->noted.count = 0;
    }
    node_ranks_look_again(look, set);
    for (int rank = 0; rank < look->n; rank++) {
        if (!set[rank])
            continue;
        const struct oriel_wait_noted *noted = &look->ranks[rank].noted;
        oriel_deadlock_set_wait(&look->graph, rank, noted->mode == ORIEL_WAIT_FOR_ANY);
        for (uint32_t i = 0; i < noted->count && i < ORIEL_WAIT_NEEDS; i++)
            need_add(look, rank, i);
    }
    node_ranks_look_again(look, set);
}
