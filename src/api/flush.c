/* Flushes, order and sync (MPI-4.1, 13.5.4; the extensions of oriel/ext.h). On one node operations
 * are complete when they return, except short ones that are deferred (rma/deferred.c). A flush
 * executes those. Otherwise a flush is the memory barrier that its callers rely on (a later get
 * must not pass an earlier put: base/tls_cache.h), and a local flush has no effect. In a window
 * that spans nodes, a flush waits for replies, and a local flush waits for operations that return
 * data. Programs poll with flush and sync, so these calls let the host make progress from time to
 * time.
 *
 * After its fence a flush loads the target's life word: it wakes the target's sleeping threads
 * (sync/memory_wait.c, W3), and reports a target that has died, though its memory is still there.
 * flush_all looks at a few targets in each call.
 *
 * Order. MPIX_Win_order needs what a flush of a target on this node does. Deferred operations are
 * executed first: those before and after the call must not become one copy, whose bytes the kernel
 * writes in any order, or one update. All others have taken effect when they return, but a store
 * may still be in this processor's buffer when a later get loads: the fence is for that.
 * Between nodes, internode/origin/flush_several.c has the argument. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/put_get_fast.h"
#include "api/requests.h"
#include "internode/origin/flush_several.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "rma/deferred.h"
#include "sync/memory_wait.h"
#include "window/handle.h"

enum {
    /* most targets at which one flush of all looks */
    TARGETS_ATTENDED = 8,
    /* most windows in one round trip, each with its mutex; ThreadSanitizer ends a program in which
     * a thread holds 64 mutexes */
    WINDOWS_AT_ONCE = 32
};

/* --- attention to targets, after the fence --- */

/* target: on this node. */
static inline __attribute__((always_inline)) bool
target_needs_attention(const struct oriel_window *window, int32_t target)
{
    return oriel_load_has(&oriel_file_life(window->control_bases[target])->word,
                          ORIEL_LIFE_SLEEPS | ORIEL_LIFE_DIED);
}

static __attribute__((cold, noinline)) enum oriel_status
target_attend(const struct oriel_window *window, int32_t target)
{
    char *base = window->control_bases[target];
    struct oriel_watched watched = {.window = window, .win_rank = target};
    oriel_memory_wake(base);
    return oriel_load_has(&oriel_file_life(base)->word, ORIEL_LIFE_DIED)
               ? oriel_liveness_rank(&watched)
               : ORIEL_OK;
}

/* For -1, all targets on this node; the next few of them. */
static enum oriel_status targets_attend(const struct oriel_window *window, int32_t target)
{
    static _Thread_local uint32_t looked;
    enum oriel_status status = ORIEL_OK;
    if (target < 0)
        oriel_memory_changed(window);
    const int32_t count = target >= 0                     ? 1
                          : window->n <= TARGETS_ATTENDED ? window->n
                                                          : TARGETS_ATTENDED;
    for (int32_t i = 0; i < count && status == ORIEL_OK; i++) {
        const int32_t rank = target >= 0 ? target : (int32_t)(looked++ % (uint32_t)window->n);
        if (window->control_bases[rank] != NULL &&
            oriel_unlikely(target_needs_attention(window, rank)))
            status = target_attend(window, rank);
    }
    return status;
}

/* --- flush --- */

/* The same for a window that spans nodes; done: the status of this node's operations. */
static enum oriel_status flush_internode(struct oriel_window *window, int32_t target, bool remote,
                                         enum oriel_status done)
{
    oriel_tls_cache_flush();
    if (remote && done == ORIEL_OK)
        done = targets_attend(window, target);
    if (target >= 0 && !oriel_is_internode(window, target))
        return done;
    const enum oriel_status flushed = remote ? oriel_internode_flush(window, target)
                                             : oriel_internode_flush_local(window, target);
    return flushed == ORIEL_OK ? done : flushed;
}

/* Any of the four flushes; target is -1 for all. On one node local completion needs no step. */
static inline enum oriel_status flush_target(struct oriel_window *window, int32_t target,
                                             bool remote)
{
    if (oriel_unlikely(!oriel_passive_epoch(window, target)))
        return oriel_fail(ORIEL_E_SYNC, "no passive-target epoch is open");
    enum oriel_status done = ORIEL_OK;
    if (oriel_unlikely(window->deferred != NULL) && remote)
        done = oriel_deferred_complete_all(window, target);
    const enum oriel_status ended = oriel_deferred_copies_end(window);
    done = done == ORIEL_OK ? ended : done;
    if (oriel_unlikely(window->internode != NULL))
        return flush_internode(window, target, remote, done);
    if (!remote) {
        oriel_tls_cache_count_turn();
        return done;
    }
    oriel_tls_cache_flush();
    const enum oriel_status lives = targets_attend(window, target);
    return done != ORIEL_OK ? done : lives;
}

static inline enum oriel_status flush_rank(struct oriel_window *window, int rank, bool remote)
{
    if (oriel_unlikely(rank == MPI_PROC_NULL))
        return ORIEL_OK;
    enum oriel_status status = oriel_check_rank(window, rank);
    return oriel_likely(status == ORIEL_OK) ? flush_target(window, rank, remote) : status;
}

static __attribute__((noinline)) int flush_general(int rank, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush(rank, win)
                                              : oriel_error_not_a_window("MPI_Win_flush");
    return oriel_error_raise(window, "MPI_Win_flush", flush_rank(window, rank, true));
}

/* A flush of the recent window, after its fence: it is the host's turn, or the target needs
 * attention. */
static __attribute__((cold, noinline)) int flush_finish(int rank)
{
    struct oriel_window *window = oriel_tls_cache.window;
    if (oriel_tls_cache.turns > ORIEL_TLS_CACHE_TURNS)
        oriel_tls_cache_host_turn();
    return oriel_error_raise(window, "MPI_Win_flush", target_attend(window, rank));
}

int oriel_entry_Win_flush(int rank, MPI_Win win)
{
    if (oriel_unlikely(!oriel_fast_window(win)) ||
        oriel_unlikely((uint32_t)rank >= oriel_tls_cache.ranks))
        return flush_general(rank, win);
    const struct oriel_window *window = oriel_tls_cache.window;
    if (oriel_unlikely(!oriel_passive_epoch_to(window, rank)))
        return flush_general(rank, win);
    if (oriel_tls_cache_flush_fence() || oriel_unlikely(target_needs_attention(window, rank)))
        return flush_finish(rank);
    return MPI_SUCCESS;
}

int oriel_entry_Win_flush_local(int rank, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_local(rank, win)
                                              : oriel_error_not_a_window("MPI_Win_flush_local");
    return oriel_error_raise(window, "MPI_Win_flush_local", flush_rank(window, rank, false));
}

int oriel_entry_Win_flush_all(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_all(win)
                                              : oriel_error_not_a_window("MPI_Win_flush_all");
    return oriel_error_raise(window, "MPI_Win_flush_all", flush_target(window, -1, true));
}

int oriel_entry_Win_flush_local_all(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_local_all(win)
                                              : oriel_error_not_a_window("MPI_Win_flush_local_all");
    return oriel_error_raise(window, "MPI_Win_flush_local_all", flush_target(window, -1, false));
}

/* Accepted outside of epochs, since programs do that. */
int oriel_entry_Win_sync(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_sync(win)
                                              : oriel_error_not_a_window("MPI_Win_sync");
    oriel_fence_full();
    oriel_tls_cache_fenced();
    return MPI_SUCCESS;
}

/* --- extensions --- */

/* Whether the window is not Oriel's; then *code is the result. */
static bool is_elsewhere(const struct oriel_window *window, const char *call, MPI_Win win,
                         int *code)
{
    if (oriel_likely(window != NULL))
        return false;
    *code = oriel_error_no_extension(call, win);
    return true;
}

int oriel_entry_Win_order(int rank, MPI_Win win)
{
    int code;
    struct oriel_window *window = oriel_handle_find(win);
    if (is_elsewhere(window, "MPIX_Win_order", win, &code))
        return code;
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_rank(window, rank);
    if (status == ORIEL_OK && !oriel_access_allowed(window, rank))
        status = oriel_fail(ORIEL_E_SYNC, "no access epoch to rank %d is open", rank);
    if (status == ORIEL_OK) {
        oriel_deferred_do(window, rank);
        status = oriel_deferred_copies_end(window);
        oriel_tls_cache_flush();
        if (status == ORIEL_OK && window->internode != NULL && oriel_is_internode(window, rank))
            status = oriel_internode_order(window, rank);
    }
    return oriel_error_raise(window, "MPIX_Win_order", status);
}

/* The part of a flush that asks no other node and fences nothing; target -1: all. */
static enum oriel_status flush_prepare(struct oriel_window *window, int32_t target)
{
    if (!oriel_passive_epoch(window, target))
        return oriel_fail(ORIEL_E_SYNC, "no passive-target epoch is open");
    return oriel_deferred_complete(window, target);
}

static enum oriel_status check_list(int n, const void *list)
{
    if (n < 0)
        return oriel_fail(ORIEL_E_ARG, "a list of %d", n);
    return n == 0 || list != NULL ? ORIEL_OK : oriel_fail(ORIEL_E_ARG, "the list is NULL");
}

static enum oriel_status flush_ranks(struct oriel_window *window, int n, const int ranks[])
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    for (int i = 0; i < n; i++) {
        enum oriel_status status =
            ranks[i] == MPI_PROC_NULL ? ORIEL_OK : oriel_check_rank(window, ranks[i]);
        if (status == ORIEL_OK && ranks[i] != MPI_PROC_NULL)
            status = flush_prepare(window, ranks[i]);
        oriel_first_failure_record(&first, status);
    }
    oriel_tls_cache_flush();
    for (int i = 0; i < n; i++)
        if ((uint32_t)ranks[i] < (uint32_t)window->n)
            oriel_first_failure_record(&first, targets_attend(window, ranks[i]));
    if (window->internode != NULL)
        oriel_first_failure_record(&first, oriel_internode_flush_list(window, n, ranks));
    return oriel_first_failure_raise(&first);
}

int oriel_entry_Win_flush_list(int n, const int ranks[], MPI_Win win)
{
    int code;
    struct oriel_window *window = oriel_handle_find(win);
    if (is_elsewhere(window, "MPIX_Win_flush_list", win, &code))
        return code;
    enum oriel_status status = check_list(n, ranks);
    return oriel_error_raise(window, "MPIX_Win_flush_list",
                             status == ORIEL_OK ? flush_ranks(window, n, ranks) : status);
}

/* Windows that span nodes and are flushed together, in the order of their serial numbers, each
 * once; and the first failure of all windows so far. */
struct flushed_windows {
    struct oriel_window *windows[WINDOWS_AT_ONCE];
    int count;
    struct oriel_first_failure first;
    struct oriel_window *failed; /* its window */
};

static void windows_record(struct flushed_windows *flushed, struct oriel_window *window,
                           enum oriel_status status)
{
    if (status == ORIEL_OK || flushed->first.status != ORIEL_OK)
        return;
    oriel_first_failure_record(&flushed->first, status);
    flushed->failed = window;
}

static void windows_flush(struct flushed_windows *flushed)
{
    struct oriel_window *failed;
    enum oriel_status status =
        oriel_internode_flush_windows(flushed->windows, flushed->count, &failed);
    windows_record(flushed, failed, status);
    flushed->count = 0;
}

static void windows_add(struct flushed_windows *flushed, struct oriel_window *window)
{
    if (flushed->count == WINDOWS_AT_ONCE)
        windows_flush(flushed);
    int at = flushed->count;
    while (at > 0 && flushed->windows[at - 1]->serial > window->serial)
        at--;
    if (at > 0 && flushed->windows[at - 1] == window)
        return;
    for (int i = flushed->count++; i > at; i--)
        flushed->windows[i] = flushed->windows[i - 1];
    flushed->windows[at] = window;
}

/* The windows of Oriel that are in the list. */
static void flush_windows(int n, const MPI_Win wins[], struct flushed_windows *flushed)
{
    for (int i = 0; i < n; i++) {
        struct oriel_window *window = oriel_handle_find(wins[i]);
        if (window != NULL)
            windows_record(flushed, window, flush_prepare(window, -1));
    }
    oriel_tls_cache_flush();
    for (int i = 0; i < n; i++) {
        struct oriel_window *window = oriel_handle_find(wins[i]);
        if (window == NULL)
            continue;
        windows_record(flushed, window, targets_attend(window, -1));
        if (window->internode != NULL)
            windows_add(flushed, window);
    }
    windows_flush(flushed);
}

int oriel_entry_Win_flush_windows(int n, const MPI_Win wins[])
{
    static const char call[] = "MPIX_Win_flush_windows";
    struct flushed_windows flushed = {.count = 0, .first = {.status = ORIEL_OK}};
    const enum oriel_status status = check_list(n, wins);
    if (status != ORIEL_OK)
        return oriel_error_raise_nowhere(call, status);
    flush_windows(n, wins, &flushed);
    if (flushed.failed != NULL)
        return oriel_error_raise(flushed.failed, call, oriel_first_failure_raise(&flushed.first));
    for (int i = 0; i < n; i++)
        if (oriel_handle_find(wins[i]) == NULL)
            return oriel_error_no_extension(call, wins[i]);
    return MPI_SUCCESS;
}

/* After the checks of the arguments; target -1: all. */
static enum oriel_status flush_without_waiting(struct oriel_window *window, int32_t target)
{
    enum oriel_status status = flush_prepare(window, target);
    if (status != ORIEL_OK)
        return status;
    oriel_tls_cache_flush();
    return targets_attend(window, target);
}

static int flush_begin(struct oriel_window *window, const char *call, int32_t target,
                       MPI_Request *request)
{
    enum oriel_status status = flush_without_waiting(window, target);
    if (status == ORIEL_OK && window->internode != NULL &&
        (target < 0 || oriel_is_internode(window, target)))
        return oriel_request_flush(window, call, target, request);
    if (status == ORIEL_OK)
        status = oriel_host_completed_request(request);
    return oriel_error_raise(window, call, status);
}

int oriel_entry_Win_iflush(int rank, MPI_Win win, MPI_Request *request)
{
    int code;
    static const char call[] = "MPIX_Win_iflush";
    struct oriel_window *window = oriel_request_window(call, win, request, &code);
    if (window == NULL)
        return code;
    enum oriel_status status = rank == MPI_PROC_NULL ? oriel_host_completed_request(request)
                                                     : oriel_check_rank(window, rank);
    return status != ORIEL_OK || rank == MPI_PROC_NULL ? oriel_error_raise(window, call, status)
                                                       : flush_begin(window, call, rank, request);
}

int oriel_entry_Win_iflush_all(MPI_Win win, MPI_Request *request)
{
    int code;
    static const char call[] = "MPIX_Win_iflush_all";
    struct oriel_window *window = oriel_request_window(call, win, request, &code);
    return window == NULL ? code : flush_begin(window, call, -1, request);
}
