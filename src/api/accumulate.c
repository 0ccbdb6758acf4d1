/* MPI_Accumulate, MPI_Get_accumulate, their request-based and large-count forms, MPI_Fetch_and_op and
 * MPI_Compare_and_swap (MPI-4.1, 13.3.3 to 13.3.6).  Programs call, through entries.c. */
#include "api/api.h"
#include "api/check.h"
#include "api/elsewhere.h"
#include "api/fast.h"
#include "ops/swap.h"
#include "window/handle.h"

/* The result side of get_accumulate as the program gives it. */
struct result {
    void *addr;
    MPI_Count count;
    MPI_Datatype datatype;
};

/* result is NULL for accumulate. */
static enum oriel_status update(struct oriel_window *window, const void *origin_addr, const struct result *result,
                                const struct oriel_sides *sides, MPI_Op op)
{
    uint64_t count;
    enum oriel_operator operator;
    struct oriel_span target;
    struct oriel_buffer from = {.here = (char *)(uintptr_t)origin_addr};
    struct oriel_buffer to = {.here = result != NULL ? result->addr : NULL};
    enum oriel_status status = oriel_check_accumulate(window, sides, op != MPI_NO_OP, &target, &from.side, &count);
    if (status == ORIEL_OK)
        status = oriel_check_operator(op, target.side.type->kind, &operator);
    if (status == ORIEL_OK && result != NULL)
        status = oriel_check_result(&target.side, result->count, result->datatype, &to.side);
    if (status == ORIEL_OK && op != MPI_NO_OP)
        status = oriel_check_buffer("origin", origin_addr, &from.side);
    if (status == ORIEL_OK && result != NULL && count > 0)
        status = oriel_check_buffer("result", result->addr, &to.side);
    if (status == ORIEL_OK)
        status = oriel_accumulate(window, &target, count, operator, &from, result != NULL ? &to : NULL);
    return status;
}

static int accumulate(struct oriel_window *window, const char *call, const void *origin_addr,
                      const struct oriel_sides *sides, MPI_Op op)
{
    if (sides->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = op == MPI_NO_OP
                                   ? oriel_fail(ORIEL_E_OP, "MPI_NO_OP is for get_accumulate and fetch_and_op only")
                                   : update(window, origin_addr, NULL, sides, op);
    return oriel_error_raise(window, call, status);
}

static int get_accumulate(struct oriel_window *window, const char *call, const void *origin_addr,
                          const struct result *result, const struct oriel_sides *sides, MPI_Op op)
{
    if (sides->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return oriel_error_raise(window, call, update(window, origin_addr, result, sides, op));
}

int oriel_entry_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win)
                   : oriel_error_not_a_window("MPI_Accumulate");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return accumulate(window, "MPI_Accumulate", origin_addr, &sides, op);
}

int oriel_entry_Accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Accumulate_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Accumulate_c != NULL))
        return oriel_host()->Accumulate_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Accumulate(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, op, win)
                   : oriel_error_large_count("MPI_Accumulate_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return accumulate(window, "MPI_Accumulate_c", origin_addr, &sides, op);
}

int oriel_entry_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Raccumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request)
                   : oriel_error_not_a_window("MPI_Raccumulate");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Raccumulate");
    return oriel_complete_request(window, "MPI_Raccumulate", accumulate(window, "MPI_Raccumulate", origin_addr, &sides, op), request);
}

int oriel_entry_Raccumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Raccumulate_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Raccumulate_c != NULL))
        return oriel_host()->Raccumulate_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Raccumulate(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, op, win, request)
                   : oriel_error_large_count("MPI_Raccumulate_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Raccumulate_c");
    return oriel_complete_request(window, "MPI_Raccumulate_c", accumulate(window, "MPI_Raccumulate_c", origin_addr, &sides, op), request);
}

int oriel_entry_Get_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Get_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win)
                   : oriel_error_not_a_window("MPI_Get_accumulate");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    struct result result = {result_addr, result_count, result_datatype};
    return get_accumulate(window, "MPI_Get_accumulate", origin_addr, &result, &sides, op);
}

int oriel_entry_Get_accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Get_accumulate_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Get_accumulate_c != NULL))
        return oriel_host()->Get_accumulate_c(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, result_count)
                   ? oriel_host()->Get_accumulate(origin_addr, (int)origin_count, origin_datatype, result_addr, (int)result_count, result_datatype, target_rank, target_disp, (int)target_count, target_datatype, op, win)
                   : oriel_error_large_count("MPI_Get_accumulate_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    struct result result = {result_addr, result_count, result_datatype};
    return get_accumulate(window, "MPI_Get_accumulate_c", origin_addr, &result, &sides, op);
}

int oriel_entry_Rget_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request)
                   : oriel_error_not_a_window("MPI_Rget_accumulate");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    struct result result = {result_addr, result_count, result_datatype};
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rget_accumulate");
    return oriel_complete_request(window, "MPI_Rget_accumulate", get_accumulate(window, "MPI_Rget_accumulate", origin_addr, &result, &sides, op), request);
}

int oriel_entry_Rget_accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Rget_accumulate_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Rget_accumulate_c != NULL))
        return oriel_host()->Rget_accumulate_c(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, result_count)
                   ? oriel_host()->Rget_accumulate(origin_addr, (int)origin_count, origin_datatype, result_addr, (int)result_count, result_datatype, target_rank, target_disp, (int)target_count, target_datatype, op, win, request)
                   : oriel_error_large_count("MPI_Rget_accumulate_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    struct result result = {result_addr, result_count, result_datatype};
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rget_accumulate_c");
    return oriel_complete_request(window, "MPI_Rget_accumulate_c", get_accumulate(window, "MPI_Rget_accumulate_c", origin_addr, &result, &sides, op), request);
}

/* One element of one predefined datatype. */
static enum oriel_status check_single(struct oriel_window *window, MPI_Datatype datatype, int target_rank,
                                      MPI_Aint target_disp, struct oriel_span *target)
{
    target->side.count = 1;
    enum oriel_status status = oriel_type_find(datatype, &target->side.type);
    if (status != ORIEL_OK)
        return status;
    if (!target->side.type->predefined)
        return oriel_fail(ORIEL_E_TYPE, "the datatype must be a predefined one");
    return oriel_check_target(window, target_rank, target_disp, target);
}

/* Where one element can be updated by a CPU instruction, and its kind; NULL for the general way. */
static inline __attribute__((always_inline)) char *fast_element(MPI_Win win, MPI_Datatype datatype, int target_rank,
                                                                MPI_Aint target_disp, const struct oriel_type **type)
{
    uint64_t len_bytes = 1;
    struct oriel_window *window;
    if (oriel_unlikely(!oriel_fast_find(win, datatype, &window, type)) || oriel_unlikely(!(*type)->predefined))
        return NULL;
    char *there = oriel_fast_address(window, *type, 1, target_rank, target_disp, &len_bytes);
    return oriel_likely(((uintptr_t)there & (len_bytes - 1)) == 0) ? there : NULL;
}

static __attribute__((noinline)) int fetch_and_op_general(const void *origin_addr, void *result_addr,
                                                          MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                                                          MPI_Op op, MPI_Win win)
{
    struct oriel_span target;
    enum oriel_operator operator;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win)
                   : oriel_error_not_a_window("MPI_Fetch_and_op");
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_single(window, datatype, target_rank, target_disp, &target);
    struct oriel_buffer from = {(char *)(uintptr_t)origin_addr, target.side};
    struct oriel_buffer to = {result_addr, target.side};
    if (status == ORIEL_OK)
        status = oriel_check_operator(op, target.side.type->kind, &operator);
    if (status == ORIEL_OK && operator != ORIEL_OPERATOR_NO_OP)
        status = oriel_check_buffer("origin", origin_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", result_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_accumulate(window, &target, 1, operator, &from, &to);
    return oriel_error_raise(window, "MPI_Fetch_and_op", status);
}

int oriel_entry_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
                             MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    const struct oriel_type *type;
    char *there = fast_element(win, datatype, target_rank, target_disp, &type);
    enum oriel_operator operator = oriel_operator_find(op);
    bool missing = result_addr == NULL || (origin_addr == NULL && operator != ORIEL_OPERATOR_NO_OP);
    if (oriel_unlikely(there == NULL || missing) || oriel_unlikely(operator == ORIEL_OPERATOR_NONE) ||
        oriel_unlikely(oriel_kinds[type->kind].native[operator] == NULL))
        return fetch_and_op_general(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
    oriel_kinds[type->kind].native[operator](there, origin_addr, result_addr, 1);
    return MPI_SUCCESS;
}

/* MPI-4.1, 13.3.5: C and Fortran integers, logicals, bytes and multi-language types. */
static inline bool may_swap(enum oriel_kind kind)
{
    return oriel_kinds[kind].plain[ORIEL_OPERATOR_BAND] != NULL || oriel_kinds[kind].plain[ORIEL_OPERATOR_LAND] != NULL;
}

static __attribute__((noinline)) int compare_and_swap_general(const void *origin_addr, const void *compare_addr,
                                                              void *result_addr, MPI_Datatype datatype, int target_rank,
                                                              MPI_Aint target_disp, MPI_Win win)
{
    struct oriel_span target;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Compare_and_swap(origin_addr, compare_addr, result_addr,
                                                                               datatype, target_rank, target_disp, win)
                                              : oriel_error_not_a_window("MPI_Compare_and_swap");
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_single(window, datatype, target_rank, target_disp, &target);
    if (status == ORIEL_OK && !may_swap(target.side.type->kind))
        status = oriel_fail(ORIEL_E_TYPE, "compare_and_swap is not defined on this datatype");
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", origin_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("compare", compare_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", result_addr, &target.side);
    if (status == ORIEL_OK)
        status = oriel_compare_and_swap(window, &target, origin_addr, compare_addr, result_addr);
    return oriel_error_raise(window, "MPI_Compare_and_swap", status);
}

int oriel_entry_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                                 MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)
{
    const struct oriel_type *type;
    char *there = fast_element(win, datatype, target_rank, target_disp, &type);
    bool missing = origin_addr == NULL || compare_addr == NULL || result_addr == NULL;
    if (oriel_unlikely(there == NULL || missing) || oriel_unlikely(!may_swap(type->kind)) ||
        oriel_unlikely(type->extent_bytes > ORIEL_SWAP_NATIVE_BYTES))
        return compare_and_swap_general(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
    oriel_swap_native(there, origin_addr, compare_addr, result_addr, (uint64_t)type->extent_bytes);
    return MPI_SUCCESS;
}
