/* Translates Oriel's statuses to MPI's error classes and handlers. The message is printed to
 * standard error if the handler ends the job, else only with ORIEL_VERBOSE. oriel_last_error
 * returns it to the program in any case. */
#include "api/api.h"
#include "base/log.h"
#include "oriel/oriel.h"
#include "window/handle.h"
#include "window/label.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[640];

ORIEL_EXPORT const char *oriel_last_error(void)
{
    return last_error;
}

static int status_error_class(enum oriel_status status)
{
    switch (status) {
#define STATUS(name, mpi_class)                                                                    \
    case ORIEL_E_##name:                                                                           \
        return mpi_class;
#include "base/status.def"
#undef STATUS
    case ORIEL_OK:
    case ORIEL_STATUS_COUNT: break;
    }
    return MPI_SUCCESS;
}

/* The message with the window's label in the place of "the window", or else after the call. */
static void window_message_format(const char *label, char *out, size_t room)
{
    static const char words[] = "the window";
    const char *message = oriel_fail_message();
    const char *at = strstr(message, words);
    if (at != NULL && !islower((unsigned char)at[sizeof words - 1]))
        snprintf(out, room, ": %.*s%s%s", (int)(at - message), message, label,
                 at + sizeof words - 1);
    else
        snprintf(out, room, " on %s: %s", label, message);
}

/* rest: what follows the call. */
static void error_report(enum oriel_log_kind kind, const char *call, const char *rest)
{
    snprintf(last_error, sizeof last_error, "%s%s", call, rest);
    oriel_log_call(kind, call, rest);
}

/* Whether this handler ends the job; frees the handler. */
static enum oriel_log_kind handler_kind(MPI_Errhandler handler)
{
    bool fatal = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
    fatal = fatal || handler == MPI_ERRORS_ABORT;
#endif
    oriel_host()->Errhandler_free(&handler);
    return fatal ? ORIEL_LOG_FATAL : ORIEL_LOG_NOTE;
}

int oriel_error_raise_failed(struct oriel_window *window, const char *call,
                             enum oriel_status status)
{
    char label[ORIEL_WINDOW_LABEL_BYTES];
    char rest[sizeof last_error];
    MPI_Win win = window->host->handle;
    MPI_Errhandler handler;
    enum oriel_log_kind kind = oriel_host()->Win_get_errhandler(win, &handler) == MPI_SUCCESS
                                   ? handler_kind(handler)
                                   : ORIEL_LOG_NOTE;
    oriel_window_label(window, label);
    window_message_format(label, rest, sizeof rest);
    error_report(kind, call, rest);
    oriel_host()->Win_call_errhandler(win, status_error_class(status));
    return status_error_class(status);
}

static int raise_on_comm(MPI_Comm comm, const char *call, const char *where,
                         enum oriel_status status)
{
    char rest[sizeof last_error];
    MPI_Errhandler handler;
    if (status == ORIEL_OK)
        return MPI_SUCCESS;
    snprintf(rest, sizeof rest, "%s: %s", where, oriel_fail_message());
    error_report(oriel_host()->Comm_get_errhandler(comm, &handler) == MPI_SUCCESS
                     ? handler_kind(handler)
                     : ORIEL_LOG_NOTE,
                 call, rest);
    oriel_host()->Comm_call_errhandler(comm, status_error_class(status));
    return status_error_class(status);
}

int oriel_error_raise_comm(MPI_Comm comm, const char *call, enum oriel_status status)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    char where[MPI_MAX_OBJECT_NAME + 20] = "";
    int name_bytes = 0;
    if (status != ORIEL_OK && oriel_host()->Comm_get_name(comm, name, &name_bytes) == MPI_SUCCESS &&
        name[0] != '\0')
        snprintf(where, sizeof where, " on communicator %s", name);
    return raise_on_comm(comm, call, where, status);
}

/* MPI-4.1, 9.3: errors without an object are raised on MPI_COMM_SELF; MPI-3.1 had
 * MPI_COMM_WORLD. */
int oriel_error_raise_nowhere(const char *call, enum oriel_status status)
{
    return raise_on_comm(MPI_VERSION >= 4 ? MPI_COMM_SELF : MPI_COMM_WORLD, call, "", status);
}

int oriel_error_not_a_window(const char *call)
{
    if (!oriel_handle_in_child())
        return oriel_error_raise_nowhere(
            call, oriel_fail(ORIEL_E_WIN, "the handle is not a window, or was freed"));
    /* a child must not use the host's connections, which are its parent's: no handler is called */
    error_report(ORIEL_LOG_WARNING, call, ": window functions cannot be called in a forked child");
    return MPI_ERR_OTHER;
}

int oriel_error_no_request(struct oriel_window *window, const char *call)
{
    return oriel_error_raise(window, call, oriel_fail(ORIEL_E_ARG, "the request argument is NULL"));
}

int oriel_error_large_count(const char *call)
{
    return oriel_error_raise_nowhere(
        call,
        oriel_fail(ORIEL_E_UNSUPPORTED,
                   "the host serves this window and has no functions for counts above INT_MAX"));
}

int oriel_error_no_extension(const char *call, MPI_Win win)
{
    if (!oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window(call);
    return oriel_error_raise_nowhere(
        call, oriel_fail(ORIEL_E_UNSUPPORTED,
                         "the host serves this window, and has no such function"));
}
