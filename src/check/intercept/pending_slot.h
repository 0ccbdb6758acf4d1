/* Fast path for a small operation when this process has no other outstanding access to the window,
 * and no buffer in use that it could overlap. The facts about its call site, its window and its
 * target (callsite_cache.c) are valid until a call changes something (oriel_check_changes). What
 * remains is specific to this operation: its bytes, its buffers, its cell and its word.
 *
 * The operation then occupies the pending slot. It has an entry in its cell like all others. What
 * its completion needs is stored with its call site, instead of in the lists (pending_list.c,
 * short_buffers.c, the window's marks). Most operations are flushed by the very next call, which
 * then has almost nothing to do. Any other call first moves the operation to the lists. Used only
 * if all calls are made by one thread. */
#ifndef ORIEL_CHECK_INTERCEPT_PENDING_SLOT_H
#define ORIEL_CHECK_INTERCEPT_PENDING_SLOT_H

#include "check/intercept/callsite_cache.h"
#include "check/order/word_clocks.h"

/* The operation in the slot; valid while oriel_check_pending is set. */
extern const struct oriel_callsite *oriel_pending_slot
    __attribute__((visibility("hidden"))); /* pending_slot.c's own */

/* Moves it to the lists. */
void oriel_pending_slot_release(void);

/* Adds an entry to the cell, in a page that exists. Returns NULL without side effects; the caller
 * then uses the lists. */
struct oriel_cell_entry *oriel_pending_slot_enter(const struct oriel_callsite *again,
                                                  const struct oriel_history_spot *spot,
                                                  uint64_t at, oriel_tick issued);

/* Whether the program's call is checked. The slot stays occupied; oriel_check_leave must follow. */
ORIEL_CHECK_INLINE bool oriel_pending_slot_look(const void *address)
{
    if (!oriel_check_is_programs(address))
        return false;
    oriel_check_enter_from(NULL, address);
    return true;
}

static inline void oriel_pending_slot_let_go(void)
{
    if (oriel_check_pending != NULL)
        oriel_pending_slot_release();
}

/* Whether the bytes end within the memory, at a displacement above easy_disps. */
static inline bool oriel_pending_slot_is_within(const struct oriel_window_target *path,
                                                MPI_Aint disp, uint64_t len_bytes)
{
    uint64_t at;
    return !__builtin_mul_overflow((uint64_t)disp, (uint64_t)path->disp_unit, &at) &&
           path->disp_unit != 0 && at < path->size_bytes && path->size_bytes - at >= len_bytes;
}

/* Requires that the cached facts about site and target are valid, and the slot is empty. writes: to
 * words. Returns false without side effects; the caller then uses the lists. */
ORIEL_CALLSITE_INLINE bool oriel_pending_slot_go(struct oriel_callsite *again, bool accumulates,
                                                 bool writes, int32_t target, MPI_Aint disp,
                                                 const void *origin, const void *compare,
                                                 const void *result)
{
    const struct oriel_window_target *path = &again->paths[target];
    struct oriel_word_clock *word = NULL;
    uint64_t at = (uint64_t)disp * path->disp_unit;
    if (oriel_unlikely((uint64_t)disp >= path->easy_disps) &&
        !oriel_pending_slot_is_within(path, disp, again->target_bytes))
        return false;
    uint64_t first = at & (ORIEL_CELL_BYTES - 1);
    if (oriel_unlikely(first + again->target_bytes > ORIEL_CELL_BYTES ||
                       (accumulates && (at & again->phases) != 0)))
        return false;
    if (writes && oriel_unlikely(path->words == NULL))
        return false;
    oriel_word_link link = writes ? oriel_word_first(path->words, at) : 0;
    if (writes && oriel_likely(path->memory != NULL))
        oriel_prefetch_to_write(path->memory + at); /* in parallel with the word's line */
    struct oriel_history_spot spot = oriel_history_expect(&path->ground, at);
    if (oriel_unlikely(spot.page == NULL))
        return false;
    if (writes && oriel_unlikely((word = oriel_word_after(path->words, link, at)) == NULL))
        return false;
    if (oriel_unlikely(again->origin != origin ||
                       (accumulates && (again->compare != compare || again->result != result)))) {
        if (!oriel_callsite_is_apart(again, origin, compare, result))
            return false;
        again->origin = origin;
        again->compare = compare;
        again->result = result;
    }
    uint32_t rank = (uint32_t)again->access.origin;
    oriel_tick now = oriel_order_own_now();
    oriel_tick issued = now + writes;
    bool offered = writes && oriel_word_offer(word, rank, now);
    again->access.issued = issued;
    again->place.target = target;
    again->arrival.history = path->history;
    struct oriel_cell_entry *entry = oriel_pending_slot_enter(again, &spot, at, issued);
    if (oriel_unlikely(entry == NULL))
        return false;
    again->target = target;
    again->offset = (int64_t)at;
    again->word = word;
    again->entry = entry;
    oriel_pending_slot = again;
    oriel_check_pending = oriel_pending_slot_release;
    if (writes)
        oriel_word_give_offered(word, rank, offered, again->fetches); /* after a cell's lock */
    return true;
}

/* Before the call of an operation. NULL, without side effects: the caller takes the slow path. */
ORIEL_CALLSITE_INLINE struct oriel_callsite *
oriel_pending_slot_begin(const struct oriel_operation *operation)
{
    struct oriel_callsite *again = oriel_callsite_place(operation->address, operation->win);
    int32_t target = operation->target_rank;
    __asm__("" : "+r"(again)); /* otherwise gcc computes the slot's address for each comparison */
    if (oriel_unlikely(!oriel_callsite_is_alike(again, operation)))
        return NULL;
    uint64_t changes = atomic_load_explicit(&oriel_check_changes, memory_order_relaxed);
    bool ready =
        oriel_likely(again->ready == changes && oriel_check_pending == NULL &&
                     (uint32_t)target < again->ranks && again->paths[target].ready == changes &&
                     again->paths[target].epoch == again->access.site.epoch);
    if (ready && oriel_likely(oriel_pending_slot_go(
                     again, operation->accumulates,
                     operation->swaps || (operation->accumulates && again->writes_words), target,
                     operation->target_disp, operation->origin_addr, operation->compare_addr,
                     operation->result_addr)))
        return again;
    bool gone =
        oriel_callsite_go(again, ready, target, operation->target_disp, operation->origin_addr,
                          operation->compare_addr, operation->result_addr);
    return gone ? again : NULL;
}

/* After the call, with its code. */
ORIEL_CALLSITE_INLINE void oriel_pending_slot_end(const struct oriel_callsite *again,
                                                  const struct oriel_operation *operation, int code)
{
    if (oriel_unlikely(code != MPI_SUCCESS))
        oriel_callsite_refuse(again);
    else if (operation->accumulates && again->fetches &&
             oriel_unlikely(again->word == NULL ||
                            atomic_load_explicit(again->bulk, memory_order_acquire) != 0 ||
                            !oriel_word_take_again(again->word, (uint32_t)again->access.origin)))
        oriel_callsite_take(again);
}

/* If the operation in the slot has this target, it is complete, and its buffers are free when the
 * flush returns. Returns false if it has another target, the slot is empty, or the own number must
 * be raised first. */
static inline bool oriel_pending_slot_flush(MPI_Win win, int target)
{
    const struct oriel_callsite *again = oriel_pending_slot;
    if (oriel_unlikely(oriel_check_pending == NULL || again->win != win ||
                       again->target != target || !oriel_order_has_no_request()))
        return false;
    oriel_history_held_complete(again->entry, again->access.issued, oriel_order_own_number());
    oriel_check_pending = NULL;
    return true;
}

#endif
