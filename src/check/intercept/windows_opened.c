/* Memory handles (include/oriel/ext.h): the owner's part, and windows that were opened from them.
 *
 * The owner puts what an opener needs into the shared memory of the node, under a key of the
 * handle's bytes, before the program can pass the handle on. An opener on another node asks each
 * node for it. An opened window is an entry of its
 * own, with one target: epochs, buffers and arguments are checked as in other windows. Its accesses
 * are in the history of the owner's memory, and its lock and words have the keys of the owner's
 * window (checked_window.c). So both windows meet there, also if the opener is no member of the
 * owner's window. No member waits for an opener other than by the lock, or by the withdrawal of the
 * handle. */
#include "check/intercept/wrap.h"
#include "check/order/word_clocks.h"
#include "check/remote/history_proxy.h"
#include "check/remote/remote.h"
#include "check/report/finding.h"
#include "check/window/window_steps.h"

#include "base/siphash.h"
#include "oriel/ext.h"

#include <stdlib.h>

/* What an opener needs. */
struct lent_part {
    struct oriel_opened opened;
    struct oriel_checked_member owner; /* of the part alone */
};

union lent_block {
    struct lent_part part;
    char bytes[ORIEL_PART_HANDLE_BYTES];
};
_Static_assert(sizeof(union lent_block) == ORIEL_PART_HANDLE_BYTES, "there is room for a part");

/* Handles of this process's memory that are not withdrawn. */
struct lent_handle {
    struct lent_handle *next;
    struct oriel_key key;
    struct oriel_checked *window;
};

static struct lent_handle *lent;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct oriel_key handle_key(const MPIX_Memory_handle *handle)
{
    static const uint64_t one[2] = {1, 1}, other[2] = {2, 2};
    return (struct oriel_key){.words = {ORIEL_PART_HANDLE,
                                        oriel_siphash(one, handle, sizeof *handle),
                                        oriel_siphash(other, handle, sizeof *handle)}};
}

/* --- the owner --- */

static struct lent_part part_describe(struct oriel_checked *window, MPI_Aint disp, MPI_Aint size)
{
    const struct oriel_checked_member *own = &window->members[window->rank];
    struct lent_part part = {
        .opened = {.owner_id = window->id,
                   .owner_n = window->n,
                   .owner_rank = window->rank,
                   .first_world_rank = window->members[0].world_rank,
                   .owner_size_bytes = own->size_bytes,
                   .from = window->flavour == ORIEL_CHECK_DYNAMIC ? disp : disp * own->disp_unit,
                   .words = oriel_window_words(window, window->rank)},
        .owner = *own};
    part.owner.size_bytes = size;
    part.owner.locks = 0; /* of the owner's ranks */
    part.owner.part = oriel_part_share(oriel_window_history(window, window->rank));
    part.owner.promises &= ORIEL_PROMISE_OPS_SET | ORIEL_PROMISE_SAME_OP;
    return part;
}

/* Openers may be no members, lock all, and update more than one element. */
static void window_lend(struct oriel_checked *window)
{
    oriel_window_count(window, ORIEL_ENDING_LENT, 1);
    window->lends = true;
    if (window->common == NULL)
        return;
    atomic_store_explicit(&window->common->locked_all, 1, memory_order_seq_cst);
    atomic_store_explicit(&window->common->bulk, 1, memory_order_release);
}

static bool block_store(void *at, bool made, void *block)
{
    (void)made;
    *(union lent_block *)at = *(const union lent_block *)block;
    return true;
}

/* Openers on other nodes reach the words by their keys. */
static bool words_lend(const struct oriel_checked *window, oriel_shm_offset words)
{
    return window->common == NULL || oriel_check_remote_node_count() < 2 ||
           (words != 0 && oriel_word_clocks_lend(words, window->id, window->rank));
}

static void part_lend(struct oriel_checked *window, MPI_Aint disp, MPI_Aint size,
                      const MPIX_Memory_handle *handle)
{
    union lent_block block = {.part = part_describe(window, disp, size)};
    const bool is_whole = block.part.owner.part != 0 && words_lend(window, block.part.opened.words);
    struct lent_handle *entry = is_whole ? malloc(sizeof *entry) : NULL;
    if (entry == NULL) /* it is opened unchecked */
        return;
    window_lend(window);
    *entry = (struct lent_handle){.key = handle_key(handle), .window = window};
    oriel_shm_work(&entry->key, sizeof block, block_store, &block);
    pthread_mutex_lock(&mutex);
    entry->next = lent;
    lent = entry;
    pthread_mutex_unlock(&mutex);
}

static bool handle_is(const struct lent_handle *handle, const struct oriel_checked *window,
                      const struct oriel_key *key)
{
    if (window != NULL)
        return handle->window == window;
    return handle->key.words[1] == key->words[1] && handle->key.words[2] == key->words[2];
}

/* Removes one handle of the list: of the window, or with the key. */
static struct lent_handle *handle_unlink(const struct oriel_checked *window,
                                         const struct oriel_key *key)
{
    pthread_mutex_lock(&mutex);
    struct lent_handle **link = &lent;
    while (*link != NULL && !handle_is(*link, window, key))
        link = &(*link)->next;
    struct lent_handle *found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void handle_drop(struct lent_handle *handle)
{
    oriel_shm_drop(&handle->key);
    free(handle);
}

void oriel_window_withdraw_handles(struct oriel_checked *window)
{
    struct lent_handle *handle;
    oriel_window_take_holders(window);
    while ((handle = handle_unlink(window, NULL)) != NULL)
        handle_drop(handle);
}

ORIEL_CHECK_WRAP_X(Win_memory_handle_create,
                   (MPI_Win win, MPI_Aint disp, MPI_Aint size, MPIX_Memory_handle *handle))
{
    if (!oriel_window_look())
        return NEXT_X(Win_memory_handle_create)(win, disp, size, handle);
    const int code = NEXT_X(Win_memory_handle_create)(win, disp, size, handle);
    struct oriel_checked *window = code == MPI_SUCCESS ? oriel_checked_find(win) : NULL;
    if (window != NULL && window->ordered)
        part_lend(window, disp, size, handle);
    return oriel_check_back(code);
}

/* The call has waited for all epochs on the handle. */
ORIEL_CHECK_WRAP_X(Win_memory_handle_free, (MPIX_Memory_handle * handle))
{
    if (!oriel_window_look())
        return NEXT_X(Win_memory_handle_free)(handle);
    struct oriel_key key = {0};
    if (handle != NULL)
        key = handle_key(handle);
    const int code = NEXT_X(Win_memory_handle_free)(handle);
    struct lent_handle *found = code == MPI_SUCCESS ? handle_unlink(NULL, &key) : NULL;
    if (found != NULL) {
        oriel_window_take_holders(found->window);
        handle_drop(found);
    }
    return oriel_check_back(code);
}

/* --- the opener --- */

/* What this process uses of it. A part of another node has only sensible ranks and sizes. */
static bool part_adopt(struct lent_part *part)
{
    struct oriel_opened *opened = &part->opened;
    const int world_size = oriel_shm_world_size();
    part->owner.part = oriel_part_of(part->owner.part);
    if (!oriel_part_is_remote(part->owner.part))
        return true;
    opened->has_remote_words = opened->words != 0;
    opened->words = 0;
    return part->owner.world_rank < (uint32_t)world_size &&
           opened->first_world_rank < (uint32_t)world_size && opened->owner_rank >= 0 &&
           opened->owner_rank < opened->owner_n && part->owner.size_bytes >= 0 &&
           part->owner.disp_unit > 0 && opened->from >= 0;
}

/* False: it stays unchecked. */
static bool window_enter(const struct lent_part *part, MPI_Win win, const struct oriel_site *site)
{
    struct oriel_checked_member *members = calloc(2, sizeof *members);
    if (members == NULL)
        return false;
    members[0] = part->owner;
    members[0].id = oriel_window_next_id();
    members[1] =
        (struct oriel_checked_member){.world_rank = (uint32_t)oriel_order_rank(), .site = *site};
    struct oriel_checked *window =
        oriel_checked_alloc(win, members, 1, 1, NULL, ORIEL_CHECK_CREATE);
    if (window == NULL)
        return false;
    window->opened = part->opened;
    window->ordered = true;
    window->prompt = !oriel_part_is_remote(window->members[0].part);
    if (oriel_checked_add(window))
        return true;
    oriel_checked_free(window);
    return false;
}

ORIEL_CHECK_WRAP_X(Win_memory_open, (const MPIX_Memory_handle *handle, MPI_Info info, MPI_Win *win))
{
    if (!oriel_window_look())
        return NEXT_X(Win_memory_open)(handle, info, win);
    union lent_block block;
    const int code = NEXT_X(Win_memory_open)(handle, info, win);
    if (code == MPI_SUCCESS) {
        const struct oriel_site site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Win_memory_open);
        const struct oriel_key key = handle_key(handle);
        if (!oriel_part_load_handle(&key, &block) || !part_adopt(&block.part) ||
            !window_enter(&block.part, *win, &site))
            oriel_finding_count("windows opened from memory handles: not checked");
    }
    return oriel_check_back(code);
}
