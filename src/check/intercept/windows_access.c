/* What a correct operation does to order and histories: its bytes at the target and its buffers are
 * accesses, and accumulates carry order from word to word.
 *
 * Words. A process whose fetching accumulate reads what another process's accumulate has written
 * may rely on what that process did before: programs build locks and flags this way. Every writing
 * accumulate gives its clock to the word before it is passed on, after its own access is recorded,
 * so that access is part of the clock. Every fetching accumulate takes the word's clock before and
 * after the call, and again after the flush, where the host may have delayed the fetch. The value
 * does not show which process wrote it, so a fetch takes the clocks of all earlier writers. This
 * may hide a conflict, and blames no rank falsely.
 *
 * An accumulate of more than one element gives to one common word of the target, and every fetch
 * takes that word too. A fetch of several elements takes their words. A fetch of more than
 * WORDS_TAKEN elements takes all that any rank has done.
 *
 * Words are in word_clocks.c. Words of another node, and those without room, are under keys. A
 * large memory has at most WORD_KINDS keys, which its words share. The words of memory that is
 * opened from a handle of another node may be in word_clocks.c there: its server finds them by the
 * keys. The program's own atomic instructions are accumulates of one element to the same words,
 * where they are watched. */
#include "check/window/operation.h"

#include "check/access/datatype_runs.h"
#include "check/intercept/request_table.h"
#include "check/order/rank_clocks.h"
#include "check/order/thread_order.h"
#include "check/order/word_clocks.h"
#include "check/remote/history_proxy.h"
#include "check/window/notified.h"
#include "check/window/thread_debts.h"

#include <stdlib.h>

enum { WORDS_TAKEN = 256, WORD_KINDS = 1 << 16, BULK = -1 };
_Static_assert((uint64_t)BULK == ORIEL_WORD_BULK, "as an offset");

static struct oriel_key word_key(const struct oriel_checked *window, int32_t target, int64_t offset)
{
    uint64_t word = offset == BULK ? UINT64_MAX : (uint64_t)offset;
    const int64_t size_bytes = window->opened.owner_id != 0 ? window->opened.owner_size_bytes
                                                            : window->members[target].size_bytes;
    if (offset != BULK && !window->opened.has_remote_words &&
        (uint64_t)size_bytes - 1 >= 8 * WORD_KINDS)
        word = (word * UINT64_C(0x9e3779b97f4a7c15)) >> 48; /* dynamic windows, of size 0, too */
    return oriel_window_key(window, ORIEL_ORDER_WORD, (uint64_t)target, word);
}

/* A word that has no room in shared memory, or is another node's, is under a key. */
void oriel_window_give_word(const struct oriel_checked *window, int32_t target, int64_t offset,
                            bool fetches)
{
    oriel_shm_offset words = oriel_window_words(window, target);
    if (words != 0 && oriel_word_give(words, (uint64_t)offset, fetches))
        return;
    if (window->common != NULL || words != 0)
        oriel_given_set_lost();
    struct oriel_key key = word_key(window, target, offset);
    oriel_order_give(&key, 0);
}

void oriel_window_take_word(const struct oriel_checked *window, int32_t target, int64_t offset)
{
    oriel_shm_offset words = oriel_window_words(window, target);
    if (words != 0 && oriel_word_take(words, (uint64_t)offset))
        return;
    struct oriel_key key = word_key(window, target, offset);
    oriel_order_take(&key);
}

void oriel_window_take_element(const struct oriel_checked *window, int32_t target, int64_t offset)
{
    oriel_window_take_word(window, target, offset);
    if (oriel_window_has_bulk(window))
        oriel_window_take_word(window, target, BULK);
}

void oriel_window_order_atomic(void *closure, int64_t offset, bool gives)
{
    const struct oriel_conflict_place *place = closure;
    if (gives)
        oriel_window_give_word(place->window, place->target, offset, false);
    else
        oriel_window_take_element(place->window, place->target, offset);
}

static bool operation_is_bulk(const struct oriel_operation *operation)
{
    return operation->items * operation->target_type->elements != 1;
}

bool oriel_access_writes_words(const struct oriel_operation *operation)
{
    return operation->accumulates && operation->applied != ORIEL_OPERATOR_NO_OP;
}

bool oriel_access_fetches(const struct oriel_operation *operation)
{
    return operation->accumulates && operation->result_addr != NULL;
}

static void operation_give_word(const struct oriel_operation *operation)
{
    bool bulk = operation_is_bulk(operation);
    if (bulk && operation->window->common != NULL)
        atomic_store_explicit(&operation->window->common->bulk, 1, memory_order_release);
    oriel_window_give_word(operation->window, operation->target_rank,
                           bulk ? BULK : operation->offset, oriel_access_fetches(operation));
}

/* More may be read later than there is room for. Under the window's lock. */
static void late_words_overflow(struct oriel_checked *window, int32_t target)
{
    window->late_more_target =
        window->late_more && window->late_more_target != target ? -1 : target;
    window->late_more = true;
}

static void operation_take_word(struct oriel_operation *operation, int64_t offset)
{
    struct oriel_checked *window = operation->window;
    oriel_window_take_word(window, operation->target_rank, offset);
    if (oriel_likely(window->prompt))
        return;
    oriel_window_enter(window);
    if (window->late_count < ORIEL_LATE_WORDS)
        window->late[window->late_count++] =
            (struct oriel_late_word){operation->target_rank, offset};
    else
        late_words_overflow(window, operation->target_rank);
    oriel_window_leave(window);
}

/* Now, and again later where the host may delay the fetch. */
static void operation_take_all_ranks(struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    oriel_window_take_ranks(window);
    if (window->prompt)
        return;
    oriel_window_enter(window);
    late_words_overflow(window, operation->target_rank);
    oriel_window_leave(window);
}

static void operation_take_words(struct oriel_operation *operation)
{
    struct oriel_extents extents;
    if (oriel_window_has_bulk(operation->window))
        operation_take_word(operation, BULK);
    if (!operation_is_bulk(operation)) {
        operation_take_word(operation, operation->offset);
        return;
    }
    if (operation->items * operation->target_type->elements > WORDS_TAKEN) {
        operation_take_all_ranks(operation);
        return;
    }
    uint64_t element_bytes = operation->target_type->size_bytes / operation->target_type->elements;
    if (oriel_extents_open(&extents, operation->target_type, operation->items, operation->offset,
                           operation->moving_bytes) == ORIEL_OK)
        for (size_t i = 0; i < extents.count; i++)
            for (uint64_t j = 0; j < extents.list[i].count; j++)
                for (uint64_t at = 0; at < extents.list[i].len_bytes; at += element_bytes)
                    operation_take_word(operation, extents.list[i].offset +
                                                       (int64_t)j * extents.list[i].stride_bytes +
                                                       (int64_t)at);
    oriel_extents_close(&extents);
}

static uint8_t access_flags(const struct oriel_operation *operation)
{
    uint64_t promises = operation->window->promises;
    uint8_t flags = promises & ORIEL_PROMISE_SAME_OP ? ORIEL_ACCESS_SAME_OP : 0;
    if (operation->swaps && !(promises & ORIEL_PROMISE_OPS_SET))
        flags |= ORIEL_ACCESS_ANY_OP;
    return operation->request != NULL ? flags | ORIEL_ACCESS_ALONE : flags;
}

struct oriel_access oriel_access_of(const struct oriel_operation *operation)
{
    struct oriel_access access = {
        .kind = (uint8_t)operation->kind,
        .op = (uint8_t)operation->applied,
        .element = (uint8_t)(operation->is_wide ? ORIEL_KIND_NONE : operation->target_type->kind),
        .flags = access_flags(operation),
        .origin = oriel_order_rank(),
        .snapshot = ORIEL_SNAPSHOT_LIVE,
        .issued =
            oriel_order_now() + (oriel_access_writes_words(operation) ? oriel_clock_step() : 0),
        .site = operation->site};
    if (operation->request == NULL &&
        (operation->kind == ORIEL_ACCESS_GET || oriel_access_fetches(operation)))
        access.group = oriel_window_local_ticket();
    if (operation->group != 0) {
        access.group = operation->group;
        access.flags |= ORIEL_ACCESS_ALONE;
    }
    return access;
}

static void access_add(struct oriel_operation *operation, oriel_shm_offset history)
{
    struct oriel_extents extents;
    struct oriel_checked *window = operation->window;
    struct oriel_access access = oriel_access_of(operation);
    if (oriel_extents_open(&extents, operation->target_type, operation->items, operation->offset,
                           operation->moving_bytes) == ORIEL_OK &&
        extents.count > 0)
        operation->ticket =
            oriel_part_add(history, &access, extents.list, extents.count, oriel_window_conflict,
                           &window->places[operation->target_rank]);
    oriel_extents_close(&extents);
}

static void operation_use_buffers(struct oriel_operation *operation)
{
    oriel_local_group group = operation->buffers;
    bool is_get = operation->kind == ORIEL_ACCESS_GET;
    if (is_get || operation->origin_type != NULL)
        oriel_local_items(operation->origin_addr, (uint64_t)operation->origin_count,
                          operation->origin_type, is_get, group, operation->moving_bytes,
                          &operation->site);
    if (operation->compare_addr != NULL)
        oriel_local_items(operation->compare_addr, (uint64_t)operation->target_count,
                          operation->target_type, false, group, UINT64_MAX, &operation->site);
    if (oriel_access_fetches(operation))
        oriel_local_items(operation->result_addr, (uint64_t)operation->result_count,
                          operation->result_type, true, group, operation->moving_bytes,
                          &operation->site);
}

static void operation_take_lazy_lock(const struct oriel_operation *operation)
{
    const struct oriel_type *type = operation->target_type;
    bool dynamic = operation->window->flavour == ORIEL_CHECK_DYNAMIC;
    int64_t low_bytes = 0;
    int64_t high_bytes;
    if (dynamic && !oriel_layout_bounds(type->layout, operation->items, type->extent_bytes,
                                        &low_bytes, &high_bytes))
        return;
    oriel_window_take_lazy_lock(operation->window, operation->target_rank,
                                dynamic ? operation->offset + low_bytes : 0);
}

void oriel_access_begin(struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    int32_t target = operation->target_rank;
    if (!window->ordered)
        return;
    oriel_threads_enter();
    if (oriel_unlikely(window->untaken[target]))
        oriel_window_take_post(window, target, &operation->site);
    if (oriel_unlikely(window->lazy[target]) && operation->items > 0)
        operation_take_lazy_lock(operation);
    operation->accessed = true;
    operation->buffers =
        operation->request != NULL ? oriel_local_group_new() : window->buffers[target];
    if (operation->notifies) {
        oriel_window_complete_for_target(window, target);
        operation->group = oriel_notified_group(operation);
    }
    oriel_debts_issue_begin(window->debts, target);
    operation_use_buffers(operation);
    bool something = operation->items > 0 && operation->moving_bytes > 0;
    oriel_shm_offset history = something ? oriel_window_history(window, target) : 0;
    if (history != 0)
        access_add(operation, history);
    if (oriel_access_writes_words(operation) && something)
        operation_give_word(operation);
    oriel_window_touch(window, target, ORIEL_TOUCHED_TREE);
    oriel_debts_issue_end(window->debts);
    if (operation->notifies && operation->group == 0)
        oriel_window_complete_for_target(window, target);
}

void oriel_access_end(struct oriel_operation *operation, int code)
{
    if (code == MPI_SUCCESS && oriel_access_fetches(operation) && operation->items > 0)
        operation_take_words(operation);
    if (operation->request != NULL)
        oriel_window_requested(operation, code);
}
