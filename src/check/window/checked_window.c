/* The table of windows by handle: those that the program has made and not freed. Findings about a
 * window, calls that go on after a finding, and the keys and histories of a window. */
#include "check/window/checked_window.h"

#include "base/hash_table.h"
#include "check/access/history.h"
#include "check/order/rank_clocks.h"
#include "check/order/word_clocks.h"
#include "check/remote/remote.h"
#include "check/window/window_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
_Atomic uint64_t oriel_checked_version = 1;
_Thread_local struct oriel_checked_last oriel_checked_last;

static uint64_t window_table_key(MPI_Win win)
{
    return (uint64_t)(uintptr_t)win;
}

void oriel_checked_look(MPI_Win win, uint64_t version)
{
    oriel_checked_last.window = oriel_hash_table_find(&table, window_table_key(win));
    oriel_checked_last.win = win;
    oriel_checked_last.version = version;
}

bool oriel_checked_add(struct oriel_checked *window)
{
    bool added = oriel_hash_table_set(&table, window_table_key(window->win), window);
    atomic_fetch_add(&oriel_checked_version, 1);
    return added;
}

void oriel_checked_remove(struct oriel_checked *window)
{
    oriel_hash_table_remove(&table, window_table_key(window->win), window);
    atomic_fetch_add(&oriel_checked_version, 1);
}

void oriel_checked_visit(void (*visit)(void *window, void *context), void *context)
{
    oriel_hash_table_visit(&table, visit, context);
}

struct oriel_site oriel_site_make(const void *address, enum oriel_call call)
{
    return oriel_site_here(address, (uint16_t)call, (uint32_t)oriel_order_rank(), 0);
}

struct oriel_site oriel_site_opening(const void *address, enum oriel_call call)
{
    struct oriel_site site = oriel_site_make(address, call);
    site.epoch = oriel_site_number(&site);
    return site;
}

static const char *flavour_name(enum oriel_check_flavour flavour)
{
    static const char *const names[] = {"create", "allocate", "shared", "dynamic"};
    return names[flavour];
}

static void window_name(const struct oriel_checked *window, char name[MPI_MAX_OBJECT_NAME])
{
    int used = 0;
    name[0] = '\0';
    if (oriel_host()->Win_get_name(window->win, name, &used) != MPI_SUCCESS)
        name[0] = '\0';
}

bool oriel_window_wait_open(const struct oriel_checked *window, const struct oriel_site *site,
                            enum oriel_wait_mode mode)
{
    char name[MPI_MAX_OBJECT_NAME];
    window_name(window, name);
    return oriel_wait_open(site, name, mode);
}

bool oriel_window_wait(const struct oriel_checked *window, const struct oriel_wait_need *need,
                       const void *address, enum oriel_call call)
{
    const struct oriel_site site = oriel_site_make(address, call);
    if (!oriel_window_wait_open(window, &site, ORIEL_WAIT_FOR_ALL))
        return false;
    oriel_wait_add(need);
    oriel_wait_begin();
    return true;
}

void oriel_window_report(const struct oriel_checked *window, struct oriel_finding *finding,
                         const struct oriel_site *here)
{
    char name[MPI_MAX_OBJECT_NAME];
    if (oriel_check_left)
        return;
    window_name(window, name);
    finding->window = name;
    finding->flavour = flavour_name(window->flavour);
    finding->made = window->members[window->rank].site;
    if (here != NULL)
        finding->here = *here;
    oriel_finding_report(finding);
    finding->window = NULL;
}

void oriel_window_place(const struct oriel_checked *window, struct oriel_finding *finding,
                        int32_t target, int64_t offset, uint64_t len_bytes)
{
    int64_t unit = window->members[target].disp_unit;
    finding->target = target;
    finding->offset = offset;
    finding->len_bytes = len_bytes;
    if (window->common != NULL)
        finding->device = window->common->shares[target].device;
    if (unit <= 0 || offset < 0 || len_bytes == 0 || window->flavour == ORIEL_CHECK_DYNAMIC)
        return;
    finding->element = offset / unit;
    finding->elements = (uint64_t)((offset + (int64_t)len_bytes - 1) / unit - finding->element + 1);
}

/* --- going on after a finding --- */

void oriel_quiet_begin(struct oriel_quiet *quiet, MPI_Win win)
{
    MPI_Errhandler handler;
    quiet->quiet = false;
    if (oriel_host()->Win_get_errhandler(win, &handler) != MPI_SUCCESS)
        return;
    bool fatal = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
    fatal = fatal || handler == MPI_ERRORS_ABORT;
#endif
    if (fatal && oriel_host()->Win_set_errhandler(win, MPI_ERRORS_RETURN) == MPI_SUCCESS) {
        *quiet = (struct oriel_quiet){.win = win, .saved = handler, .quiet = true};
        return;
    }
    oriel_host()->Errhandler_free(&handler);
}

int oriel_quiet_end(struct oriel_quiet *quiet, int code)
{
    if (!quiet->quiet)
        return code;
    quiet->quiet = false;
    oriel_host()->Win_set_errhandler(quiet->win, quiet->saved);
    oriel_host()->Errhandler_free(&quiet->saved);
    return MPI_SUCCESS;
}

/* --- order and histories --- */

/* first: 0, or 1 for the lock of all targets. */
static struct oriel_key owner_key(const struct oriel_checked *window, enum oriel_order_kind kind,
                                  uint64_t first, uint64_t second)
{
    const struct oriel_opened *opened = &window->opened;
    const uint32_t home = first == 0 ? window->members[0].world_rank : opened->first_world_rank;
    const int32_t target = first == 0 ? opened->owner_rank : opened->owner_n;
    return (struct oriel_key){
        .words = {kind | oriel_order_home((int)home), opened->owner_id, (uint64_t)target, second}};
}

struct oriel_key oriel_window_key(const struct oriel_checked *window, enum oriel_order_kind kind,
                                  uint64_t first, uint64_t second)
{
    int32_t member = 0;
    if (window->opened.owner_id != 0 && (kind == ORIEL_ORDER_LOCK || kind == ORIEL_ORDER_WORD))
        return owner_key(window, kind, first, second);
    if (kind == ORIEL_ORDER_LOCK || kind == ORIEL_ORDER_WORD)
        member = first < (uint64_t)window->n ? (int32_t)first : 0;
    else if (kind == ORIEL_ORDER_POST || kind == ORIEL_ORDER_COMPLETE)
        member = (int32_t)(uint32_t)first;
    uint64_t home = oriel_order_home((int)window->members[member].world_rank);
    return (struct oriel_key){.words = {kind | home, window->id, first, second}};
}

/* Returns the one that is created first. */
static oriel_shm_offset window_part_make(const struct oriel_checked *window, int32_t target,
                                         oriel_shm_offset *at,
                                         oriel_shm_offset (*make)(uint64_t size_bytes),
                                         void (*drop)(oriel_shm_offset))
{
    _Atomic oriel_shm_offset *place = (_Atomic oriel_shm_offset *)at;
    oriel_shm_offset found = 0;
    int64_t size_bytes = window->members[target].size_bytes;
    oriel_shm_offset made = make(size_bytes > 0 ? (uint64_t)size_bytes : 0);
    if (made == 0 || atomic_compare_exchange_strong(place, &found, made))
        return made;
    drop(made);
    return found;
}

oriel_shm_offset oriel_window_make_history(const struct oriel_checked *window, int32_t target)
{
    return window_part_make(window, target, &window->common->shares[target].history,
                            oriel_history_make, oriel_history_free);
}

oriel_shm_offset oriel_window_make_words(const struct oriel_checked *window, int32_t target)
{
    return window_part_make(window, target, &window->common->shares[target].words,
                            oriel_word_clocks_make, oriel_word_clocks_free);
}

bool oriel_rank_is_on_this_node(int32_t rank)
{
    return rank >= 0 && oriel_check_remote_node_of(rank) == oriel_check_remote_own_node();
}

bool oriel_window_has_left(const struct oriel_checked *window)
{
    bool has_left = oriel_given_has_left() && window->common == NULL;
    for (int32_t i = 0; i < window->n && !has_left && oriel_given_has_left(); i++) {
        const struct oriel_rank *rank = oriel_rank_at((int)window->members[i].world_rank);
        has_left = rank != NULL &&
                   atomic_load_explicit(&rank->state, memory_order_acquire) == ORIEL_RANK_STOPPED;
    }
    return has_left;
}

bool oriel_window_ask(const struct oriel_checked *window, int32_t member,
                      const struct oriel_member_state_ask *ask,
                      struct oriel_member_state_answer *answer)
{
    int node = oriel_check_remote_node_of((int)window->members[member].world_rank);
    if (window->notes == NULL || oriel_unlikely(oriel_window_has_left(window)))
        return false;
    if (node != oriel_check_remote_own_node())
        return oriel_check_remote_member_state(node, window->id, ask, answer) &&
               answer->rank < window->n && answer->gone_rank < window->n;
    oriel_member_state_work(window->notes, ask, answer);
    return true;
}
