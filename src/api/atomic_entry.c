/* MPI_Fetch_and_op and MPI_Compare_and_swap (MPI-4.1, 13.3.4, 13.3.5), and their forms with a
 * request. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/atomic_fast.h"
#include "api/requests.h"
#include "reduce/cpu_swap.h"
#include "window/handle.h"

static const char fetch_call[] = "MPI_Fetch_and_op";
static const char swap_call[] = "MPI_Compare_and_swap";

/* One element of one predefined datatype, or a struct datatype that is a pair. */
static enum oriel_status check_single(struct oriel_window *window, MPI_Datatype datatype,
                                      int target_rank, MPI_Aint target_disp,
                                      struct oriel_span *target)
{
    target->side.count = 1;
    enum oriel_status status = oriel_type_find(datatype, &target->side.type);
    if (status != ORIEL_OK)
        return status;
    if (target->side.type->as_pair != NULL)
        target->side.type = target->side.type->as_pair;
    else if (!target->side.type->predefined)
        return oriel_fail(ORIEL_E_TYPE, "the datatype must be predefined");
    return oriel_check_target(window, target_rank, target_disp, ORIEL_ISSUE_NOW, target);
}

static int fetch_and_op_checked(struct oriel_window *window, const char *call,
                                const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                                int target_rank, MPI_Aint target_disp, MPI_Op op)
{
    struct oriel_span target;
    enum oriel_operator oriel_op;
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_single(window, datatype, target_rank, target_disp, &target);
    struct oriel_operand from = {(char *)(uintptr_t)origin_addr, target.side};
    struct oriel_operand to = {result_addr, target.side};
    if (status == ORIEL_OK)
        status = oriel_check_operator(op, target.side.type->kind, &oriel_op);
    if (status == ORIEL_OK && oriel_op != ORIEL_OPERATOR_NO_OP)
        status = oriel_check_buffer("origin", origin_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", result_addr, &target.side);
    if (status == ORIEL_OK) {
        oriel_check_passed(window);
        oriel_element_remember(target.side.type, datatype, op, oriel_op);
        status =
            oriel_accumulate(window, &target, (struct oriel_elements){target.side.type->kind, 1},
                             oriel_op, &from, &to);
    }
    return oriel_error_raise(window, call, status);
}

static __attribute__((noinline)) int fetch_and_op_general(const void *origin_addr,
                                                          void *result_addr, MPI_Datatype datatype,
                                                          int target_rank, MPI_Aint target_disp,
                                                          MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Fetch_and_op(origin_addr, result_addr, datatype, target_rank,
                                                target_disp, op, win)
                   : oriel_error_not_a_window(fetch_call);
    return fetch_and_op_checked(window, fetch_call, origin_addr, result_addr, datatype, target_rank,
                                target_disp, op);
}

/* With the most recent window, operator and datatype, if another argument is unusual. */
static __attribute__((noinline)) int fetch_and_op_unusual(const void *origin_addr,
                                                          void *result_addr, int target_rank,
                                                          MPI_Aint target_disp)
{
    return fetch_and_op_checked(oriel_tls_cache.window, fetch_call, origin_addr, result_addr,
                                oriel_element_datatype(), target_rank, target_disp,
                                oriel_element_operator());
}

int oriel_entry_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                             int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    if (oriel_unlikely(!oriel_element_known(win, op, datatype)))
        return fetch_and_op_general(origin_addr, result_addr, datatype, target_rank, target_disp,
                                    op, win);
    char *there = oriel_likely(result_addr != NULL)
                      ? oriel_element_enter(origin_addr, target_rank, target_disp)
                      : NULL;
    return oriel_likely(there != NULL)
               ? oriel_element_update(there, origin_addr, result_addr)
               : fetch_and_op_unusual(origin_addr, result_addr, target_rank, target_disp);
}

/* MPI-4.1, 13.3.5: C and Fortran integers, logicals, bytes and multi-language types. */
static inline bool is_swap_kind(enum oriel_kind kind)
{
    return oriel_kinds[kind].plain[ORIEL_OPERATOR_BAND] != NULL ||
           oriel_kinds[kind].plain[ORIEL_OPERATOR_LAND] != NULL;
}

static int compare_and_swap_checked(struct oriel_window *window, const char *call,
                                    const void *origin_addr, const void *compare_addr,
                                    void *result_addr, MPI_Datatype datatype, int target_rank,
                                    MPI_Aint target_disp)
{
    struct oriel_span target;
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_single(window, datatype, target_rank, target_disp, &target);
    if (status == ORIEL_OK && !is_swap_kind(target.side.type->kind))
        status = oriel_fail(ORIEL_E_TYPE, "compare_and_swap is not defined on this datatype");
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", origin_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("compare", compare_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", result_addr, &target.side);
    if (status == ORIEL_OK) {
        oriel_check_passed(window);
        status = oriel_compare_and_swap(window, &target, origin_addr, compare_addr, result_addr);
    }
    return oriel_error_raise(window, call, status);
}

static __attribute__((noinline)) int
compare_and_swap_general(const void *origin_addr, const void *compare_addr, void *result_addr,
                         MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Compare_and_swap(origin_addr, compare_addr, result_addr,
                                                    datatype, target_rank, target_disp, win)
                   : oriel_error_not_a_window(swap_call);
    return compare_and_swap_checked(window, swap_call, origin_addr, compare_addr, result_addr,
                                    datatype, target_rank, target_disp);
}

int oriel_entry_Compare_and_swap(const void *origin_addr, const void *compare_addr,
                                 void *result_addr, MPI_Datatype datatype, int target_rank,
                                 MPI_Aint target_disp, MPI_Win win)
{
    struct oriel_window *window;
    const struct oriel_type *type;
    char *there = NULL;
    bool missing = origin_addr == NULL || compare_addr == NULL || result_addr == NULL;
    if (oriel_likely(!missing) && oriel_likely(oriel_fast_find(win, datatype, &window, &type)) &&
        oriel_likely(type->predefined) && oriel_likely(is_swap_kind(type->kind)) &&
        oriel_likely(type->extent_bytes <= ORIEL_SWAP_NATIVE_BYTES))
        there =
            oriel_element_place(window, target_rank, target_disp, (uint64_t)type->extent_bytes - 1);
    struct oriel_atomic_mode *slot = oriel_tls_cache.single;
    if (oriel_unlikely(there == NULL) || oriel_unlikely(slot == NULL) ||
        oriel_unlikely(!oriel_atomic_mode_announce(window, slot)))
        return compare_and_swap_general(origin_addr, compare_addr, result_addr, datatype,
                                        target_rank, target_disp, win);
    oriel_swap_native(there, origin_addr, compare_addr, result_addr, (uint64_t)type->extent_bytes);
    oriel_store_release(&slot->inside, 0);
    return MPI_SUCCESS;
}

int oriel_entry_Rfetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                              int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win,
                              MPI_Request *request)
{
    static const char call[] = "MPIX_Rfetch_and_op";
    struct oriel_request_state *asked;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension(call, win);
    if (request == NULL)
        return oriel_error_no_request(window, call);
    int code = oriel_request_begin(window, call, target_rank, true, &asked);
    if (code != MPI_SUCCESS)
        return code;
    code = fetch_and_op_checked(window, call, origin_addr, result_addr, datatype, target_rank,
                                target_disp, op);
    return oriel_request_give(window, call, asked, code, request);
}

int oriel_entry_Rcompare_and_swap(const void *origin_addr, const void *compare_addr,
                                  void *result_addr, MPI_Datatype datatype, int target_rank,
                                  MPI_Aint target_disp, MPI_Win win, MPI_Request *request)
{
    static const char call[] = "MPIX_Rcompare_and_swap";
    struct oriel_request_state *asked;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension(call, win);
    if (request == NULL)
        return oriel_error_no_request(window, call);
    int code = oriel_request_begin(window, call, target_rank, true, &asked);
    if (code != MPI_SUCCESS)
        return code;
    code = compare_and_swap_checked(window, call, origin_addr, compare_addr, result_addr, datatype,
                                    target_rank, target_disp);
    return oriel_request_give(window, call, asked, code, request);
}
