/* Notified access (include/oriel/ext.h): operations that notify their target, and the calls that
 * take notifications. sync/notify.c has the argument. A put of bytes to memory that the CPU reaches
 * has the fast path of MPI_Put. On a target of the same node the operation and what is queued
 * before it are executed first; to another node the notification goes with the operation's last
 * message. */
#include "api/api.h"
#include "api/notified_operation.h"
#include "api/put_get_fast.h"
#include "internode/origin/origin_rma.h"
#include "rma/deferred.h"
#include "sync/notify.h"
#include "transport/shared/copy.h"
#include "window/handle.h"

/* The arguments of one of the three operations. */
struct notified {
    const char *call;
    void *origin_addr;
    struct oriel_sides sides;
    int number;
    MPI_Op op; /* of an accumulate */
};

enum oriel_status oriel_notified_begin(const struct oriel_window *window, int number,
                                       struct oriel_span *target)
{
    enum oriel_status status = ORIEL_OK;
    if (!oriel_is_internode(window, target->rank))
        status = oriel_notify_check(window, target->rank, number);
    else if (number < 0 || number >= MPIX_NOTIFICATIONS_MOST)
        status = oriel_fail(ORIEL_E_ARG, "notification number %d: numbers are from 0 to %d", number,
                            MPIX_NOTIFICATIONS_MOST - 1);
    if (status == ORIEL_OK)
        target->notifies = (uint32_t)number + 1;
    return status;
}

enum oriel_status oriel_notified_end(struct oriel_window *window, const struct oriel_span *target,
                                     bool moves)
{
    const uint32_t number = target->notifies - 1;
    if (oriel_is_internode(window, target->rank))
        return moves ? ORIEL_OK : oriel_internode_notify(window, target->rank, number);
    enum oriel_status status = oriel_deferred_complete(window, target->rank);
    if (status != ORIEL_OK)
        return status;
    if (oriel_notify_is_own(window, target->rank))
        oriel_notify_own(window->notifications, number);
    else
        oriel_notify_signal(oriel_notify_area(window, target->rank), number);
    return ORIEL_OK;
}

/* After the checks of the operation. */
static enum oriel_status begin_notified(struct oriel_window *window, const struct notified *given,
                                        struct oriel_span *target)
{
    const enum oriel_status status = oriel_notified_begin(window, given->number, target);
    if (status == ORIEL_OK)
        oriel_check_passed(window);
    return status;
}

static inline __attribute__((always_inline)) enum oriel_status
transfer_notified(struct oriel_window *window, const struct notified *given, bool to_target)
{
    struct oriel_span target;
    struct oriel_side here;
    enum oriel_status status =
        oriel_check_transfer(window, &given->sides, to_target, ORIEL_ISSUE_NOW, &target, &here);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", given->origin_addr, &here);
    if (status == ORIEL_OK)
        status = begin_notified(window, given, &target);
    if (status == ORIEL_OK)
        status = to_target ? oriel_put(window, &target, given->origin_addr, &here)
                           : oriel_get(window, &target, given->origin_addr, &here);
    const struct oriel_side *source = to_target ? &here : &target.side;
    return status != ORIEL_OK
               ? status
               : oriel_notified_end(window, &target, source->count * source->type->size_bytes > 0);
}

static enum oriel_status accumulate_notified(struct oriel_window *window,
                                             const struct notified *given)
{
    struct oriel_accumulate_operands operands;
    const struct oriel_accumulate_arguments arguments = {
        .origin = given->origin_addr, .sides = given->sides, .op = given->op};
    enum oriel_status status =
        oriel_check_accumulate(window, &arguments, false, ORIEL_ISSUE_NOW, &operands);
    if (status == ORIEL_OK)
        status = begin_notified(window, given, &operands.target);
    if (status == ORIEL_OK)
        status = oriel_accumulate(window, &operands.target, operands.elements, operands.op,
                                  &operands.origin, NULL);
    return status != ORIEL_OK
               ? status
               : oriel_notified_end(window, &operands.target, operands.elements.count > 0);
}

static enum oriel_status put_issue_notified(struct oriel_window *window,
                                            const struct notified *given)
{
    return transfer_notified(window, given, true);
}

static enum oriel_status get_issue_notified(struct oriel_window *window,
                                            const struct notified *given)
{
    return transfer_notified(window, given, false);
}

typedef enum oriel_status notified_issue(struct oriel_window *window, const struct notified *given);

static inline int operate_notified(struct oriel_window *window, const struct notified *given,
                                   notified_issue *issue)
{
    if (given->sides.target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return oriel_error_raise(window, given->call, issue(window, given));
}

static inline int find_and_operate(MPI_Win win, const struct notified *given, notified_issue *issue)
{
    struct oriel_window *window = oriel_handle_find(win);
    return window == NULL ? oriel_error_no_extension(given->call, win)
                          : operate_notified(window, given, issue);
}

/* The paths that are not the fast one. As in MPI_Put, it ends in a jump to them. */
static __attribute__((noinline)) int put_notified(const void *origin_addr, MPI_Count origin_count,
                                                  MPI_Datatype origin_datatype, int target_rank,
                                                  MPI_Aint target_disp, MPI_Count target_count,
                                                  MPI_Datatype target_datatype, int number,
                                                  MPI_Win win)
{
    const struct notified given = {
        "MPIX_Put_notify",
        (void *)(uintptr_t)origin_addr,
        {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype},
        number,
        MPI_OP_NULL};
    return find_and_operate(win, &given, put_issue_notified);
}

static __attribute__((noinline)) int put_notified_unusual(const void *origin_addr, MPI_Count count,
                                                          int target_rank, MPI_Aint target_disp,
                                                          int number)
{
    const MPI_Datatype datatype = oriel_fast_datatype();
    const struct notified given = {"MPIX_Put_notify",
                                   (void *)(uintptr_t)origin_addr,
                                   {count, datatype, target_rank, target_disp, count, datatype},
                                   number,
                                   MPI_OP_NULL};
    return operate_notified(oriel_tls_cache.window, &given, put_issue_notified);
}

static __attribute__((noinline)) int notify_sleepers(struct oriel_notify_area *area,
                                                     struct oriel_notify_counter *counter)
{
    oriel_notify_wake(area, counter);
    return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int copy_and_notify(const void *origin_addr,
                                                                 char *there, uint64_t len_bytes,
                                                                 struct oriel_notify_area *area,
                                                                 uint32_t number)
{
    struct oriel_notify_counter *counter = &area->counters[number];
    oriel_prefetch_to_write(counter); /* arrives during the copy */
    oriel_copy(there, origin_addr, len_bytes);
    return oriel_likely(!oriel_notify_raise(counter)) ? MPI_SUCCESS
                                                      : notify_sleepers(area, counter);
}

static __attribute__((noinline)) int copy_long_and_notify(const void *origin_addr, char *there,
                                                          uint64_t len_bytes,
                                                          struct oriel_notify_area *area,
                                                          uint32_t number)
{
    oriel_copy_premap(there, len_bytes);
    return copy_and_notify(origin_addr, there, len_bytes, area, number);
}

static __attribute__((noinline)) int copy_own(const void *origin_addr, char *there,
                                              uint64_t len_bytes,
                                              struct oriel_notifications *notifications,
                                              uint32_t number)
{
    oriel_copy_premap(there, len_bytes);
    oriel_copy(there, origin_addr, len_bytes);
    oriel_notify_own(notifications, number);
    return MPI_SUCCESS;
}

/* As in oriel_entry_Put. A notification is a fence, but for one's own. */
int oriel_entry_Put_notify(const void *origin_addr, MPI_Count origin_count,
                           MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                           MPI_Count target_count, MPI_Datatype target_datatype, int number,
                           MPI_Win win)
{
    char *there;
    uint64_t len_bytes;
    if (oriel_unlikely(!oriel_fast_known(win, origin_datatype)) ||
        oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != target_count))
        return put_notified(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                            target_count, target_datatype, number, win);
    const struct oriel_window *window = oriel_tls_cache.window;
    if (oriel_unlikely(origin_addr == NULL) ||
        oriel_unlikely(
            !oriel_fast_place(target_count, target_rank, target_disp, &there, &len_bytes)) ||
        oriel_unlikely(len_bytes == 0) ||
        oriel_unlikely((uint32_t)number >= oriel_window_control(window, target_rank)->notify_count))
        return put_notified_unusual(origin_addr, target_count, target_rank, target_disp, number);
    if (oriel_unlikely(oriel_notify_is_own(window, target_rank))) {
        oriel_tls_cache_mark();
        return copy_own(origin_addr, there, len_bytes, window->notifications, (uint32_t)number);
    }
    struct oriel_notify_area *area = oriel_notify_area(window, target_rank);
    if (oriel_unlikely(len_bytes != sizeof(uint64_t)))
        return copy_long_and_notify(origin_addr, there, len_bytes, area, (uint32_t)number);
    return copy_and_notify(origin_addr, there, sizeof(uint64_t), area, (uint32_t)number);
}

int oriel_entry_Get_notify(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                           int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                           MPI_Datatype target_datatype, int number, MPI_Win win)
{
    const struct notified given = {
        "MPIX_Get_notify",
        origin_addr,
        {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype},
        number,
        MPI_OP_NULL};
    return find_and_operate(win, &given, get_issue_notified);
}

int oriel_entry_Accumulate_notify(const void *origin_addr, MPI_Count origin_count,
                                  MPI_Datatype origin_datatype, int target_rank,
                                  MPI_Aint target_disp, MPI_Count target_count,
                                  MPI_Datatype target_datatype, MPI_Op op, int number, MPI_Win win)
{
    const struct notified given = {
        "MPIX_Accumulate_notify",
        (void *)(uintptr_t)origin_addr,
        {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype},
        number,
        op};
    return find_and_operate(win, &given, accumulate_notified);
}

/* --- taking --- */

static enum oriel_status check_own(const struct oriel_window *window, int number)
{
    if (oriel_unlikely(window->holding != NULL))
        return oriel_fail(ORIEL_E_ARG, "the window was opened from a memory handle: the memory's "
                                       "owner takes its notifications");
    return oriel_notify_check(window, window->rank, number);
}

enum oriel_status oriel_notified_check_taking(const struct oriel_window *window, int number,
                                              MPI_Count count)
{
    enum oriel_status status = check_own(window, number);
    if (status == ORIEL_OK && (count < 1 || count > INT_MAX))
        status = oriel_fail(ORIEL_E_COUNT, "count %lld: a call takes 1 to %d notifications",
                            (long long)count, INT_MAX);
    return status;
}

int oriel_entry_Win_notify_wait(MPI_Win win, int number, MPI_Count count)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_error_no_extension("MPIX_Win_notify_wait", win);
    enum oriel_status status = oriel_notified_check_taking(window, number, count);
    if (oriel_likely(status == ORIEL_OK))
        status = oriel_notify_wait(window, (uint32_t)number, (uint32_t)count);
    return oriel_error_raise(window, "MPIX_Win_notify_wait", status);
}

int oriel_entry_Win_notify_test(MPI_Win win, int number, MPI_Count count, int *flag)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_error_no_extension("MPIX_Win_notify_test", win);
    enum oriel_status status = oriel_notified_check_taking(window, number, count);
    if (status == ORIEL_OK && flag == NULL)
        status = oriel_fail(ORIEL_E_ARG, "the flag argument is NULL");
    if (oriel_unlikely(status != ORIEL_OK))
        return oriel_error_raise(window, "MPIX_Win_notify_test", status);
    *flag = oriel_notify_take(window->notifications, (uint32_t)number, (uint32_t)count);
    return *flag ? MPI_SUCCESS
                 : oriel_error_raise(window, "MPIX_Win_notify_test", oriel_notify_missed(window));
}

int oriel_entry_Win_notify_wait_any(MPI_Win win, int n, const int numbers[], int *index)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_error_no_extension("MPIX_Win_notify_wait_any", win);
    enum oriel_status status = ORIEL_OK;
    if (n < 1 || numbers == NULL || index == NULL)
        status = oriel_fail(ORIEL_E_ARG, "%d numbers to wait for, or a NULL argument", n);
    for (int i = 0; i < n && status == ORIEL_OK; i++)
        status = check_own(window, numbers[i]);
    if (status == ORIEL_OK)
        status = oriel_notify_wait_any(window, n, numbers, index);
    return oriel_error_raise(window, "MPIX_Win_notify_wait_any", status);
}
