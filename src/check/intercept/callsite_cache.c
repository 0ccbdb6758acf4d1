/* One entry for each recent call site of a thread. Datatypes are valid until one is freed
 * (base/tls_cache.h), windows as long as the set of windows is the same. Programs repeat small
 * operations in lock epochs most. For them this file does in one step what windows_operate.c and
 * windows_access.c do for all others, with the same effect: the bytes at the target get an entry in
 * their cell, the buffers enter the short list, and the word gets the clock. */
#include "check/intercept/callsite_cache.h"

#include "check/access/stride_detect.h"
#include "check/intercept/pending_slot.h"

bool oriel_callsite_fill(struct oriel_operation *operation)
{
    const struct oriel_callsite *again = oriel_callsite_place(operation->address, operation->win);
    if (!oriel_callsite_is_alike(again, operation) || again->version != oriel_callsite_version())
        return false;
    operation->site = again->site;
    operation->origin_type = again->origin_type;
    operation->target_type = again->target_type;
    operation->result_type = again->result_type;
    operation->applied = again->applied;
    operation->items = again->items;
    operation->moving_bytes = again->moving_bytes;
    return true;
}

/* --- small operations --- */

/* The bytes of N items; 0: they are not plain, or not few. */
static uint64_t plain_bytes(const struct oriel_type *type, uint64_t count)
{
    bool few = type->plain_bytes != INT64_MAX && count <= ORIEL_CELL_BYTES &&
               type->size_bytes <= ORIEL_CELL_BYTES;
    return few && count * type->size_bytes <= ORIEL_CELL_BYTES ? count * type->size_bytes : 0;
}

/* Windows that need nothing else for an operation: nothing completes late, and no other thread
 * intervenes. */
static bool is_simple(const struct oriel_checked *window)
{
    return window->ordered && window->prompt && window->common != NULL && !window->threaded &&
           window->flavour != ORIEL_CHECK_DYNAMIC;
}

static void keep_small(struct oriel_callsite *again, const struct oriel_operation *operation)
{
    again->target_bytes = plain_bytes(operation->target_type, operation->items);
    again->origin_bytes =
        operation->origin_type == NULL
            ? 0
            : plain_bytes(operation->origin_type, (uint64_t)operation->origin_count);
    again->result_bytes =
        again->fetches ? plain_bytes(operation->result_type, (uint64_t)operation->result_count) : 0;
    if (operation->moving_bytes < again->origin_bytes)
        again->origin_bytes = operation->moving_bytes;
    if (operation->moving_bytes < again->result_bytes)
        again->result_bytes = operation->moving_bytes;
    bool one = again->items * operation->target_type->elements == 1;
    if (operation->request != NULL || !is_simple(operation->window) || again->target_bytes == 0 ||
        operation->moving_bytes < again->target_bytes ||
        (again->origin_bytes == 0) != (operation->origin_type == NULL) ||
        (again->result_bytes == 0) == again->fetches ||
        (again->origin_bytes == 0 && !again->fetches) || (operation->accumulates && !one))
        return;
    again->window = operation->window;
    again->writes_words = oriel_access_writes_words(operation);
    again->access = oriel_access_of(operation);
    again->phases = operation->accumulates ? oriel_element_last_byte(&again->access) : 0;
    again->repeats = oriel_cell_repeats(&again->access);
    again->paths = again->window->paths;
    again->ranks = (uint32_t)again->window->n;
    again->bulk = &again->window->common->bulk;
    again->place.window = again->window;
    again->arrival =
        (struct oriel_callsite_arrival){0, &again->access, oriel_window_conflict, &again->place};
}

/* The call that opened the lock epoch of the target. NULL: the target is in another kind of epoch
 * as well. */
static const struct oriel_site *opening_of(const struct oriel_checked *window, int32_t target)
{
    const struct oriel_epochs *epochs = &window->epochs;
    uint8_t state = epochs->targets[target];
    if (oriel_unlikely((state & ORIEL_TARGET_STARTED) != 0 || epochs->fence.open ||
                       window->untaken[target]))
        return NULL;
    return state & ORIEL_TARGET_LOCKED ? &epochs->sites[target]
           : epochs->lock_all.open     ? &epochs->lock_all.site
                                       : NULL;
}

/* Returns false if a part is outside the target's memory. */
static bool find_bytes(const struct oriel_callsite *again, int32_t target, MPI_Aint disp,
                       int64_t *offset)
{
    const struct oriel_checked_member *member = &again->window->members[target];
    uint64_t size_bytes = (uint64_t)member->size_bytes;
    uint64_t at;
    if (__builtin_mul_overflow((uint64_t)disp, (uint64_t)member->disp_unit, &at))
        return false;
    if (size_bytes < again->target_bytes || at > size_bytes - again->target_bytes)
        return false;
    *offset = (int64_t)at;
    return true;
}

unsigned oriel_callsite_runs(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result,
                             struct oriel_short_buffer_run runs[ORIEL_SHORT_BUFFER_RUNS])
{
    unsigned count = 0;
    if (again->origin_bytes != 0)
        runs[count++] = oriel_short_buffer_run_of(origin, again->origin_bytes,
                                                  again->access.kind == ORIEL_ACCESS_GET);
    if (compare != NULL)
        runs[count++] = oriel_short_buffer_run_of(compare, again->target_bytes, false);
    if (again->fetches)
        runs[count++] = oriel_short_buffer_run_of(result, again->result_bytes, true);
    return count;
}

/* Returns false without side effects if the buffers do not fit the short list. */
static __attribute__((noinline)) bool use_buffers(const struct oriel_callsite *again,
                                                  int32_t target, const void *origin,
                                                  const void *compare, const void *result)
{
    struct oriel_short_buffer_run runs[ORIEL_SHORT_BUFFER_RUNS];
    unsigned count = oriel_callsite_runs(again, origin, compare, result, runs);
    return oriel_local_runs(runs, count, again->window->buffers[target], &again->access.site);
}

bool oriel_callsite_is_apart(const struct oriel_callsite *again, const void *origin,
                             const void *compare, const void *result)
{
    struct oriel_short_buffer_run written = {0};
    struct oriel_short_buffer_run run;
    if (again->fetches) {
        written = oriel_short_buffer_run_of(result, again->result_bytes, true);
        if (oriel_unlikely(!oriel_regions_are_elsewhere(written.low, written.high)))
            return false;
    }
    if (compare != NULL) {
        run = oriel_short_buffer_run_of(compare, again->target_bytes, false);
        if (oriel_unlikely(!oriel_regions_are_elsewhere(run.low, run.high) ||
                           oriel_short_buffer_runs_meet(run, written)))
            return false;
    }
    if (again->origin_bytes != 0) {
        run = oriel_short_buffer_run_of(origin, again->origin_bytes, false);
        if (oriel_unlikely(!oriel_regions_are_elsewhere(run.low, run.high) ||
                           oriel_short_buffer_runs_meet(run, written)))
            return false;
    }
    return true;
}

/* Whether the window has no other outstanding access of this process, no buffer in use could
 * overlap, and the list has room. The slot refers to this thread's table, and only one thread makes
 * calls. */
static bool is_alone(const struct oriel_checked *window)
{
    return window->touched_histories == 0 && window->asked == NULL && oriel_check_one_thread &&
           oriel_short_buffers_are_quiet() && oriel_pending_list_room(1);
}

/* Caches the target's facts until oriel_check_changes changes. */
static void make_ready(struct oriel_callsite *again, int32_t target, oriel_shm_offset history)
{
    const struct oriel_checked *window = again->window;
    struct oriel_window_target *path = &window->paths[target];
    uint64_t size_bytes = (uint64_t)window->members[target].size_bytes;
    uint64_t disp_unit = (uint64_t)window->members[target].disp_unit;
    again->ready = path->ready = atomic_load_explicit(&oriel_check_changes, memory_order_relaxed);
    again->origin = &again->origin; /* no buffer has this address */
    again->what = oriel_entry_with(again->trait << ORIEL_ENTRY_TRAIT | again->access.flags, 0,
                                   again->target_bytes - 1);
    again->screen = oriel_entry_screen(again->what);
    path->epoch = again->access.site.epoch;
    path->size_bytes = size_bytes;
    path->disp_unit = disp_unit > UINT32_MAX ? 0 : (uint32_t)disp_unit;
    path->easy_disps = size_bytes < ORIEL_CELL_BYTES || path->disp_unit == 0
                           ? 0
                           : (size_bytes - ORIEL_CELL_BYTES) / disp_unit + 1;
    path->history = history;
    path->ground = oriel_history_ground(history);
    path->words = oriel_shm_at(oriel_window_made(&window->common->shares[target].words));
}

/* Adds the access to the lists of outstanding accesses. */
static void add(struct oriel_callsite *again, int32_t target, oriel_shm_offset history,
                const struct oriel_access_extent *run)
{
    struct oriel_checked *window = again->window;
    struct oriel_history_ground ground = oriel_history_ground(history);
    struct oriel_history_spot spot = oriel_history_expect(&ground, (uint64_t)run->offset);
    bool cells = oriel_history_add_again(history, spot, &again->access, &again->trait, run,
                                         oriel_window_conflict, &window->places[target]);
    oriel_window_touch(window, target, cells ? 0 : ORIEL_TOUCHED_TREE);
}

bool oriel_callsite_go(struct oriel_callsite *again, bool tried, int32_t target, MPI_Aint disp,
                       const void *origin, const void *compare, const void *result)
{
    struct oriel_checked *window = again->window;
    oriel_pending_slot_let_go();
    if (oriel_unlikely(window == NULL || again->version != oriel_callsite_version() ||
                       (uint32_t)target >= (uint32_t)window->n))
        return false;
    const struct oriel_site *opening = opening_of(window, target);
    struct oriel_access_extent run = {.len_bytes = again->target_bytes, .count = 1};
    if (oriel_unlikely(opening == NULL || !find_bytes(again, target, disp, &run.offset)))
        return false;
    if (oriel_unlikely(again->access.site.epoch != opening->epoch)) {
        again->access.site.epoch = opening->epoch;
        again->trait = 0;
    }
    oriel_shm_offset history = oriel_window_history(window, target);
    if (oriel_unlikely(history == 0))
        return false;
    if (!tried && again->trait != 0 && is_alone(window) &&
        !oriel_loop_expects(oriel_loop_of(history, again->trait, run.offset), run.offset)) {
        make_ready(again, target, history);
        if (oriel_likely(oriel_pending_slot_go(again, true, again->writes_words, target, disp,
                                               origin, compare, result)))
            return true;
    }
    if (!use_buffers(again, target, origin, compare, result))
        return false;
    oriel_shm_offset words = again->writes_words ? oriel_window_words(window, target) : 0;
    uint32_t rank = (uint32_t)again->access.origin;
    oriel_tick now = oriel_order_now();
    struct oriel_word_clock *word = words == 0 ? NULL : oriel_word_at(words, (uint64_t)run.offset);
    bool offered = word != NULL && oriel_word_offer(word, rank, now);
    again->access.issued = now + (again->writes_words ? 1 : 0);
    add(again, target, history, &run);
    oriel_check_change();
    if (word != NULL)
        oriel_word_give_offered(word, rank, offered,
                                again->fetches); /* after a cell's lock, or the tree's */
    else if (again->writes_words)
        oriel_window_give_word(window, target, run.offset, again->fetches);
    again->target = target;
    again->offset = run.offset;
    again->word = word;
    return true;
}

void oriel_callsite_take(const struct oriel_callsite *again)
{
    oriel_window_take_element(again->window, again->target, again->offset);
}

void oriel_callsite_refuse(const struct oriel_callsite *again)
{
    oriel_pending_slot_let_go();
    if (again->window != NULL) /* else calls of an error handler have replaced this entry */
        oriel_window_refused(again->window, again->target);
}

/* A call through a binding has another site each time. */
void oriel_callsite_keep(const struct oriel_operation *operation)
{
    struct oriel_callsite *again = oriel_callsite_place(operation->address, operation->win);
    if (oriel_site_is_bound(operation->address))
        return;
    *again = (struct oriel_callsite){.address = operation->address,
                                     .win = operation->win,
                                     .version = oriel_callsite_version(),
                                     .generation = oriel_tls_cache_begin(),
                                     .origin_datatype = operation->origin_datatype,
                                     .target_datatype = operation->target_datatype,
                                     .result_datatype = operation->result_datatype,
                                     .op = operation->op,
                                     .origin_count = operation->origin_count,
                                     .target_count = operation->target_count,
                                     .result_count = operation->result_count,
                                     .fetches = operation->result_addr != NULL,
                                     .origin_type = operation->origin_type,
                                     .target_type = operation->target_type,
                                     .result_type = operation->result_type,
                                     .applied = operation->applied,
                                     .items = operation->items,
                                     .moving_bytes = operation->moving_bytes,
                                     .site = operation->site};
    keep_small(again, operation);
}
