/* The extensions that order and complete operations, and that wait for memory (oriel/ext.h).
 *
 * An order point completes the accesses at the target, as for a flush: later operations of this
 * process cannot conflict with them, and a process that finds an update behind the point may go on
 * with what is before it. The buffers stay in use. A process that relies on the point alone, and
 * has learnt of it by other means, is not found.
 *
 * A flush with a request completes at the request's end what has been issued until then: an
 * operation between the call and the end may be missed, too. */
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"
#include "check/window/window_steps.h"

#include <stdlib.h>

static bool is_rank_of(const struct oriel_checked *window, int rank)
{
    return (uint32_t)rank < (uint32_t)window->n;
}

ORIEL_CHECK_WRAP_X(Win_order, (int rank, MPI_Win win))
{
    if (!oriel_window_look())
        return NEXT_X(Win_order)(rank, win);
    const int code = NEXT_X(Win_order)(rank, win);
    struct oriel_checked *window = code == MPI_SUCCESS ? oriel_checked_find(win) : NULL;
    if (window != NULL && window->ordered && is_rank_of(window, rank))
        oriel_window_complete_for_target(window, rank);
    return oriel_check_back(code);
}

/* --- several --- */

/* Reports the first rank without an epoch. */
static void list_begin(struct oriel_checked *window, int n, const int ranks[],
                       const struct oriel_site *site, struct oriel_quiet *quiet)
{
    for (int i = 0; i < n; i++)
        if (is_rank_of(window, ranks[i]) &&
            (quiet->quiet || oriel_window_flush_allowed(window, ranks[i], site, quiet)))
            oriel_window_complete(window, ranks[i]);
}

ORIEL_CHECK_WRAP_X(Win_flush_list, (int n, const int ranks[], MPI_Win win))
{
    if (!oriel_window_look())
        return NEXT_X(Win_flush_list)(n, ranks, win);
    struct oriel_checked *window = n > 0 && ranks != NULL ? oriel_checked_find(win) : NULL;
    struct oriel_quiet quiet = {.quiet = false};
    if (window == NULL)
        return oriel_check_back(NEXT_X(Win_flush_list)(n, ranks, win));
    struct oriel_site site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Win_flush_list);
    list_begin(window, n, ranks, &site, &quiet);
    const int code = NEXT_X(Win_flush_list)(n, ranks, win);
    for (int i = 0; i < n; i++)
        if (is_rank_of(window, ranks[i]))
            oriel_window_completed(window, ranks[i]);
    return oriel_check_back(oriel_quiet_end(&quiet, code));
}

ORIEL_CHECK_WRAP_X(Win_flush_windows, (int n, const MPI_Win wins[]))
{
    if (!oriel_window_look())
        return NEXT_X(Win_flush_windows)(n, wins);
    for (int i = 0; i < n && wins != NULL; i++) {
        struct oriel_checked *window = oriel_checked_find(wins[i]);
        if (window != NULL)
            oriel_window_complete(window, -1);
    }
    const int code = NEXT_X(Win_flush_windows)(n, wins);
    for (int i = 0; i < n && wins != NULL; i++) {
        struct oriel_checked *window = oriel_checked_find(wins[i]);
        if (window != NULL)
            oriel_window_completed(window, -1);
    }
    return oriel_check_back(code);
}

/* --- with a request --- */

struct flush_request {
    struct oriel_checked *window;
    MPI_Win win;
    int32_t target; /* -1: all */
};

static void flush_request_done(void *closure, const MPI_Status *status)
{
    struct flush_request *asked = closure;
    (void)status;
    if (oriel_checked_find(asked->win) == asked->window) {
        oriel_window_complete(asked->window, asked->target);
        oriel_window_completed(asked->window, asked->target);
    }
    free(asked);
}

static const struct oriel_request_kind kind = {flush_request_done, NULL};

static int flush_requested(struct oriel_checked *window, int32_t target, MPI_Request *request,
                           int code)
{
    struct flush_request *asked =
        code == MPI_SUCCESS && window != NULL ? malloc(sizeof *asked) : NULL;
    if (asked == NULL) /* its end would not be seen: a later flush completes the operations */
        return oriel_check_back(code);
    *asked = (struct flush_request){window, window->win, target};
    oriel_checked_request_add_own(request, &kind, asked);
    return oriel_check_back(code);
}

ORIEL_CHECK_WRAP_X(Win_iflush, (int rank, MPI_Win win, MPI_Request *request))
{
    if (!oriel_window_look())
        return NEXT_X(Win_iflush)(rank, win, request);
    const int code = NEXT_X(Win_iflush)(rank, win, request);
    struct oriel_checked *window = rank == MPI_PROC_NULL ? NULL : oriel_checked_find(win);
    return flush_requested(window, rank, request, code);
}

ORIEL_CHECK_WRAP_X(Win_iflush_all, (MPI_Win win, MPI_Request *request))
{
    if (!oriel_window_look())
        return NEXT_X(Win_iflush_all)(win, request);
    const int code = NEXT_X(Win_iflush_all)(win, request);
    return flush_requested(oriel_checked_find(win), -1, request, code);
}

/* --- waits for memory --- */

/* The element is read as a whole, so the operation that wrote what was found has taken effect, also
 * before its origin completes it. Which one it was is not known: what follows is not compared with
 * any access to the element so far. */
static void element_release(struct oriel_checked *window, MPI_Aint disp, MPI_Datatype datatype)
{
    int size_bytes = 0;
    const oriel_shm_offset history = oriel_window_history(window, window->rank);
    const int64_t unit =
        window->flavour == ORIEL_CHECK_DYNAMIC ? 1 : window->members[window->rank].disp_unit;
    if (history != 0 && oriel_host()->Type_size(datatype, &size_bytes) == MPI_SUCCESS)
        oriel_history_forget(history, disp * unit, (uint64_t)size_bytes);
}

static int value_found(MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int code, int flag)
{
    struct oriel_checked *window = code == MPI_SUCCESS && flag ? oriel_checked_find(win) : NULL;
    if (window != NULL && window->ordered) {
        oriel_window_take_all(window);
        element_release(window, disp, datatype);
    }
    return oriel_check_back(code);
}

ORIEL_CHECK_WRAP_X(Win_wait_until, (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype,
                                    int comparison, const void *value))
{
    if (!oriel_window_look())
        return NEXT_X(Win_wait_until)(win, disp, datatype, comparison, value);
    static const struct oriel_wait_need need = {.kind = ORIEL_NEED_VALUE};
    const struct oriel_checked *window = oriel_checked_find(win);
    /* an opener may be a process of another MPI_COMM_WORLD */
    const bool waits = window != NULL && !window->lends &&
                       oriel_window_wait(window, &need, ORIEL_CALLER, ORIEL_CALL_Win_wait_until);
    const int code = NEXT_X(Win_wait_until)(win, disp, datatype, comparison, value);
    oriel_wait_done(waits);
    return value_found(win, disp, datatype, code, 1);
}

ORIEL_CHECK_WRAP_X(Win_test_until, (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype,
                                    int comparison, const void *value, int *flag))
{
    if (!oriel_window_look())
        return NEXT_X(Win_test_until)(win, disp, datatype, comparison, value, flag);
    const int code = NEXT_X(Win_test_until)(win, disp, datatype, comparison, value, flag);
    return value_found(win, disp, datatype, code, code == MPI_SUCCESS && *flag);
}
