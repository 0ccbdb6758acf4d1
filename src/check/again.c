/* One entry for each of the last call sites of a thread.  Datatypes count as long as none has been freed (base/recent.h), windows
 * as long as there are the same.  A small operation in a lock's epoch, which is what programs repeat most, does here in one go
 * what windows_operate.c and windows_access.c do for all others, with the same effect: its bytes at the target stand in their
 * cell, its buffers in the short list, and its word has the clock.  windows_operate.c calls. */
#include "check/again.h"

#include "base/recent.h"
#include "check/brief.h"
#include "check/pages.h"
#include "check/words_carried.h"

enum { SITES = 64, BUFFERS = 3 }; /* SITES: a power of 2 */

struct oriel_again {
    const void *address;
    MPI_Win win;
    uint64_t version;    /* of the windows */
    uint64_t generation; /* of the datatypes */
    MPI_Datatype origin_datatype;
    MPI_Datatype target_datatype;
    MPI_Datatype result_datatype;
    MPI_Op op;
    MPI_Count origin_count;
    MPI_Count target_count;
    MPI_Count result_count;
    bool fetches;
    const struct oriel_type *origin_type;
    const struct oriel_type *target_type;
    const struct oriel_type *result_type;
    enum oriel_operator applied;
    uint64_t items;
    struct oriel_site site;

    /* of a small one; window NULL: it is not small, or the window wants more */
    struct oriel_checked *window;
    uint64_t target_bytes;
    uint64_t origin_bytes;      /* 0: there is no origin */
    uint64_t result_bytes;
    bool writes_words;
    oriel_place trait;          /* 0: not known yet; of access */
    struct oriel_access access; /* as the last one was */
};

static struct oriel_again *place_of(const struct oriel_operation *operation)
{
    static _Thread_local struct oriel_again kept[SITES];
    uint64_t key = (uint64_t)(uintptr_t)operation->address + (uint64_t)(uintptr_t)operation->win;
    return &kept[(key ^ key >> 6) % SITES];
}

static uint64_t version_now(void)
{
    return atomic_load_explicit(&oriel_checked_version, memory_order_acquire);
}

/* NULL: nothing is kept of it. */
static inline struct oriel_again *find(const struct oriel_operation *operation)
{
    struct oriel_again *again = place_of(operation);
    if (oriel_likely(
            again->address == operation->address && again->win == operation->win && again->version == version_now() &&
            again->generation == oriel_recent_begin() && again->target_datatype == operation->target_datatype &&
            again->target_count == operation->target_count && again->origin_datatype == operation->origin_datatype &&
            again->origin_count == operation->origin_count && again->result_datatype == operation->result_datatype &&
            again->result_count == operation->result_count && again->op == operation->op &&
            again->site.call == operation->call && again->fetches == (operation->result_addr != NULL)))
        return again;
    return NULL;
}

bool oriel_again_fill(struct oriel_operation *operation)
{
    const struct oriel_again *again = find(operation);
    if (again == NULL)
        return false;
    operation->site = again->site;
    operation->origin_type = again->origin_type;
    operation->target_type = again->target_type;
    operation->result_type = again->result_type;
    operation->applied = again->applied;
    operation->items = again->items;
    return true;
}

/* --- small ones --- */

/* The bytes of so many items; 0: they are not plain, or not few. */
static uint64_t plain_bytes(const struct oriel_type *type, uint64_t count)
{
    bool few = type->plain_bytes != INT64_MAX && count <= ORIEL_CELL_BYTES && type->size_bytes <= ORIEL_CELL_BYTES;
    return few && count * type->size_bytes <= ORIEL_CELL_BYTES ? count * type->size_bytes : 0;
}

/* All that an operation can want of it is done at once here: nothing comes late, and no other thread is in between. */
static bool is_simple(const struct oriel_checked *window)
{
    return window->ordered && window->prompt && window->common != NULL && !window->threaded &&
           window->flavour != ORIEL_CHECK_DYNAMIC;
}

static void keep_small(struct oriel_again *again, const struct oriel_operation *operation)
{
    again->target_bytes = plain_bytes(operation->target_type, operation->items);
    again->origin_bytes =
        operation->origin_type == NULL ? 0 : plain_bytes(operation->origin_type, (uint64_t)operation->origin_count);
    again->result_bytes =
        again->fetches ? plain_bytes(operation->result_type, (uint64_t)operation->result_count) : 0;
    bool one = again->items * operation->target_type->elements == 1;
    if (operation->request != NULL || !is_simple(operation->window) || again->target_bytes == 0 ||
        (again->origin_bytes == 0) != (operation->origin_type == NULL) || (again->result_bytes == 0) == again->fetches ||
        (again->origin_bytes == 0 && !again->fetches) || (operation->accumulates && !one))
        return;
    again->window = operation->window;
    again->writes_words = oriel_access_writes_words(operation);
    again->access = oriel_access_of(operation);
}

/* The call that opened the epoch of a lock of the target, if there is nothing else about it; NULL: there is. */
static const struct oriel_site *opening_of(const struct oriel_checked *window, int32_t target)
{
    const struct oriel_epochs *epochs = &window->epochs;
    uint8_t state = epochs->targets[target];
    if (oriel_unlikely((state & ORIEL_TARGET_STARTED) != 0 || epochs->fence.open || window->untaken[target]))
        return NULL;
    return state & ORIEL_TARGET_LOCKED ? &epochs->sites[target] : epochs->lock_all.open ? &epochs->lock_all.site : NULL;
}

/* False: not all of it is in the memory of the target. */
static bool find_bytes(const struct oriel_again *again, const struct oriel_operation *operation, int64_t *offset)
{
    const struct oriel_member *member = &again->window->members[operation->target_rank];
    uint64_t size_bytes = (uint64_t)member->size_bytes;
    uint64_t at;
    if (__builtin_mul_overflow((uint64_t)operation->target_disp, (uint64_t)member->disp_unit, &at) ||
        size_bytes < again->target_bytes || at > size_bytes - again->target_bytes)
        return false;
    *offset = (int64_t)at;
    return true;
}

static struct oriel_brief_run run_of(const void *buffer, uint64_t len_bytes, bool writes)
{
    uint64_t low = (uint64_t)(uintptr_t)buffer;
    return (struct oriel_brief_run){low, low + len_bytes, writes};
}

static bool use_buffers(const struct oriel_again *again, const struct oriel_operation *operation)
{
    struct oriel_brief_run runs[BUFFERS];
    unsigned count = 0;
    if (again->origin_bytes != 0)
        runs[count++] = run_of(operation->origin_addr, again->origin_bytes, operation->kind == ORIEL_ACCESS_GET);
    if (operation->compare_addr != NULL)
        runs[count++] = run_of(operation->compare_addr, again->target_bytes, false);
    if (again->fetches)
        runs[count++] = run_of(operation->result_addr, again->result_bytes, true);
    return oriel_local_runs(runs, count, again->window->buffers[operation->target_rank], &again->access.site);
}

bool oriel_again_begin(struct oriel_operation *operation)
{
    struct oriel_again *again = find(operation);
    struct oriel_checked *window = again == NULL ? NULL : again->window;
    int32_t target = operation->target_rank;
    if (oriel_unlikely(window == NULL || (uint32_t)target >= (uint32_t)window->n))
        return false;
    const struct oriel_site *opening = opening_of(window, target);
    struct oriel_extent run = {.len_bytes = again->target_bytes, .count = 1};
    if (oriel_unlikely(opening == NULL || !find_bytes(again, operation, &run.offset)))
        return false;
    if (oriel_unlikely(again->access.site.epoch != opening->epoch)) {
        again->access.site.epoch = opening->epoch;
        again->trait = 0;
    }
    oriel_place history = oriel_window_history(window, target);
    if (oriel_unlikely(history == 0))
        return false;
    oriel_history_expect(history, run.offset);
    if (oriel_unlikely(!use_buffers(again, operation)))
        return false;
    oriel_place words = again->writes_words ? oriel_window_words(window, target) : 0;
    bool offered = false;
    operation->word = words == 0 ? NULL : oriel_word_offer(words, (uint64_t)run.offset, &offered);
    again->access.issued = oriel_order_now() + (again->writes_words ? 1 : 0);
    bool cells = oriel_history_add_again(history, &again->access, &again->trait, &run, oriel_window_conflict,
                                         &window->places[target]);
    if (oriel_likely(operation->word != NULL))
        oriel_word_give_offered(operation->word, offered, again->fetches); /* a cell's lock was taken in between, or the tree's */
    else if (again->writes_words)
        oriel_window_give_word(window, target, run.offset, again->fetches);
    oriel_window_touch(window, target, cells ? 0 : ORIEL_TOUCHED_TREE);
    operation->window = window;
    operation->offset = run.offset;
    operation->takes = again->fetches;
    operation->again = true;
    return true;
}

void oriel_again_end(const struct oriel_operation *operation)
{
    if (oriel_unlikely(operation->word == NULL || oriel_window_has_bulk(operation->window) ||
                       !oriel_word_take_again(operation->word)))
        oriel_window_take_element(operation->window, operation->target_rank, operation->offset);
}

/* The site of a call that comes through a binding is another one each time. */
void oriel_again_keep(const struct oriel_operation *operation)
{
    struct oriel_again *again = place_of(operation);
    if (oriel_site_is_bound(operation->address))
        return;
    *again = (struct oriel_again){.address = operation->address,
                                  .win = operation->win,
                                  .version = version_now(),
                                  .generation = oriel_recent_begin(),
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
                                  .site = operation->site};
    keep_small(again, operation);
}
