/* Notified access (include/oriel/ext.h): its operations are accesses like those of MPI that give
 * order to their target, and the calls that take notifications take it (notified.c). A rank that
 * waits for notifications needs any other rank of the window. */
#include "check/intercept/operation_fields.h"
#include "check/intercept/wrap.h"
#include "check/window/notified.h"

#include "oriel/ext.h"

/* Between the check of the operation and its call. */
static void operation_notify(const struct oriel_operation *operation)
{
    if (operation->window != NULL && operation->allowed)
        oriel_notified_give(operation->window, operation->target_rank, operation->number);
}

static int operation_notified(struct oriel_operation *operation, int code)
{
    if (operation->window != NULL && operation->allowed && code != MPI_SUCCESS)
        oriel_notified_take_back(operation->window, operation->target_rank, operation->number);
    return oriel_operation_finish(operation, code);
}

/* As OPERATION in windows_operate.c, without a fast path. */
#define NOTIFIED(name, access_kind, parameters, arguments, ...)                                    \
    ORIEL_CHECK_WRAP_X(name, parameters)                                                           \
    {                                                                                              \
        if (!oriel_window_look())                                                                  \
            return NEXT_X(name) arguments;                                                         \
        struct oriel_operation operation =                                                         \
            GIVEN(name, access_kind, .notifies = true, .number = number, __VA_ARGS__);             \
        target_rank = oriel_operation_check(&operation);                                           \
        operation_notify(&operation);                                                              \
        const int code = operation_notified(&operation, NEXT_X(name) arguments);                   \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }

NOTIFIED(Put_notify, ORIEL_ACCESS_PUT,
         (ORIGIN(const, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win), ORIGIN_FIELDS, TARGET_FIELDS)
NOTIFIED(Get_notify, ORIEL_ACCESS_GET,
         (ORIGIN(, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win), ORIGIN_FIELDS, TARGET_FIELDS)
NOTIFIED(Accumulate_notify, ORIEL_ACCESS_ACCUMULATE,
         (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Op op, int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, number, win), ORIGIN_FIELDS, TARGET_FIELDS,
         UPDATE_FIELDS)

/* --- taking --- */

/* A single process can only wait for another of its threads. */
static bool wait_for_notification(const struct oriel_checked *window, const void *address,
                                  enum oriel_call call)
{
    if (window == NULL || !window->ordered || window->n == 1)
        return false;
    const struct oriel_site site = oriel_site_make(address, call);
    if (!oriel_window_wait_open(window, &site, ORIEL_WAIT_FOR_ANY))
        return false;
    for (int32_t i = 0; i < window->n; i++)
        if (i != window->rank)
            oriel_wait_for_rank((int)window->members[i].world_rank);
    oriel_wait_begin();
    return true;
}

ORIEL_CHECK_WRAP_X(Win_notify_wait, (MPI_Win win, int number, MPI_Count count))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_wait)(win, number, count);
    struct oriel_checked *window = oriel_checked_find(win);
    const bool waits = wait_for_notification(window, ORIEL_CALLER, ORIEL_CALL_Win_notify_wait);
    const int code = NEXT_X(Win_notify_wait)(win, number, count);
    oriel_wait_done(waits);
    if (window != NULL && code == MPI_SUCCESS)
        oriel_notified_take(window, number, (uint64_t)count);
    oriel_check_leave();
    return code;
}

ORIEL_CHECK_WRAP_X(Win_notify_test, (MPI_Win win, int number, MPI_Count count, int *flag))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_test)(win, number, count, flag);
    struct oriel_checked *window = oriel_checked_find(win);
    const int code = NEXT_X(Win_notify_test)(win, number, count, flag);
    if (window != NULL && code == MPI_SUCCESS && *flag)
        oriel_notified_take(window, number, (uint64_t)count);
    oriel_check_leave();
    return code;
}

ORIEL_CHECK_WRAP_X(Win_notify_wait_any, (MPI_Win win, int n, const int numbers[], int *index))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_wait_any)(win, n, numbers, index);
    struct oriel_checked *window = oriel_checked_find(win);
    const bool waits = wait_for_notification(window, ORIEL_CALLER, ORIEL_CALL_Win_notify_wait_any);
    const int code = NEXT_X(Win_notify_wait_any)(win, n, numbers, index);
    oriel_wait_done(waits);
    if (window != NULL && code == MPI_SUCCESS)
        oriel_notified_take(window, numbers[*index], 1);
    oriel_check_leave();
    return code;
}
