/* MPI_Start, MPI_Startall, MPI_Cancel and MPI_Request_free (MPI-4.1, 3.7.3, 3.8.4, 3.9), for the
 * persistent requests of extensions. While this process has none, they call the host directly. */
#include "api/start.h"

#include "api/api.h"
#include "api/requests.h"
#include "window/handle.h"

/* NULL if it was freed. */
static inline struct oriel_window *window_of_persistent(const struct oriel_persistent *persistent)
{
    struct oriel_window *window = oriel_handle_find(persistent->win);
    return oriel_likely(window != NULL) && oriel_likely(window->serial == persistent->window_serial)
               ? window
               : NULL;
}

static __attribute__((noinline)) int raise_window_freed(const char *call)
{
    return oriel_error_raise_nowhere(
        call, oriel_fail(ORIEL_E_WIN, "the window of the persistent request was freed"));
}

static inline __attribute__((always_inline)) int start_own(const char *call,
                                                           struct oriel_persistent *persistent)
{
    struct oriel_window *window = window_of_persistent(persistent);
    if (oriel_unlikely(window == NULL))
        return raise_window_freed(call);
    return oriel_error_raise(window, call, oriel_persistent_start(persistent, window));
}

int oriel_entry_Start(MPI_Request *request)
{
    struct oriel_persistent *persistent = request == NULL ? NULL : oriel_persistent_find(*request);
    return persistent == NULL ? oriel_host()->Start(request) : start_own("MPI_Start", persistent);
}

static bool has_own_request(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count && requests != NULL; i++)
        if (oriel_persistent_find(requests[i]) != NULL)
            return true;
    return false;
}

/* All are started, also after an error; returns the first. */
int oriel_entry_Startall(int count, MPI_Request array_of_requests[])
{
    int first = MPI_SUCCESS;
    if (!oriel_persistent_exist() || !has_own_request(count, array_of_requests))
        return oriel_host()->Startall(count, array_of_requests);
    for (int i = 0; i < count; i++) {
        struct oriel_persistent *persistent = oriel_persistent_find(array_of_requests[i]);
        const int code = persistent == NULL ? oriel_host()->Start(&array_of_requests[i])
                                            : start_own("MPI_Startall", persistent);
        if (first == MPI_SUCCESS)
            first = code;
    }
    return first;
}

int oriel_entry_Cancel(MPI_Request *request)
{
    struct oriel_persistent *persistent = request == NULL ? NULL : oriel_persistent_find(*request);
    return persistent == NULL ? oriel_host()->Cancel(request) : oriel_persistent_cancel(persistent);
}

int oriel_entry_Request_free(MPI_Request *request)
{
    struct oriel_persistent *persistent = request == NULL ? NULL : oriel_persistent_find(*request);
    return persistent == NULL ? oriel_host()->Request_free(request)
                              : oriel_persistent_free(persistent, request);
}

bool oriel_persistent_complete(const char *call, MPI_Request request, int *error_class)
{
    struct oriel_persistent *persistent = oriel_persistent_find(request);
    if (oriel_likely(persistent == NULL) || !oriel_persistent_end(persistent))
        return false;
    struct oriel_window *window = window_of_persistent(persistent);
    const enum oriel_status status = persistent->kind->failure(persistent, window);
    *error_class = window != NULL ? oriel_error_raise(window, call, status)
                                  : oriel_error_raise_nowhere(call, status);
    return true;
}
