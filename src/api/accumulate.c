/* MPI_Accumulate, MPI_Get_accumulate, their request-based and large-count forms, MPI_Fetch_and_op and
 * MPI_Compare_and_swap (MPI-4.1, 13.3.3 to 13.3.6).  Programs call, through entries.c. */
#include "api/api.h"
#include "api/check.h"
#include "api/elsewhere.h"
#include "api/fast.h"
#include "ops/swap.h"
#include "sync/singles.h"
#include "window/handle.h"

/* The result side of get_accumulate as the program gives it. */
struct result {
    void *addr;
    MPI_Count count;
    MPI_Datatype datatype;
};

/* For the fast path: one element of target's datatype has been updated so. */
static void keep_kernel(const struct oriel_type *type, MPI_Datatype datatype, MPI_Op op, enum oriel_operator operator)
{
    oriel_element *kernel = type->predefined ? oriel_kinds[type->kind].native[operator] : NULL;
    oriel_single_claim();
    if (kernel == NULL || oriel_recent.single == NULL)
        return;
    oriel_recent.operator_key = (uint64_t)(uintptr_t)op;
    oriel_recent.element_key = oriel_type_key(datatype);
    oriel_recent.kernel = (void (*)(void))kernel;
    oriel_recent.element_mask = (uint64_t)type->extent_bytes - 1;
}

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
        keep_kernel(target.side.type, sides->target_datatype, op, operator);
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

/* --- the fast path: one element, by an instruction of the CPU --- */

/* Where the CPU updates an element of mask + 1 bytes, a power of two; NULL for the general way.  All checks are made. */
static inline __attribute__((always_inline)) char *fast_element(const struct oriel_window *window, int target_rank,
                                                                int64_t target_disp, uint64_t mask)
{
    uint32_t rank = (uint32_t)target_rank;
    int64_t offset_bytes;
    uint64_t last_byte;
    if (oriel_unlikely(rank >= (uint32_t)window->n))
        return NULL;
    if (oriel_unlikely(!(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_ALL_TARGETS)) &&
        atomic_load_explicit(&window->access[rank], memory_order_relaxed) < ORIEL_ACCESS_SHARED)
        return NULL; /* the first operation of a fence epoch, which must mark it as used, or none */
    const struct oriel_target *target = &window->targets[rank];
    if (oriel_unlikely(__builtin_mul_overflow(target_disp, target->disp_unit, &offset_bytes)) ||
        oriel_unlikely(__builtin_add_overflow((uint64_t)offset_bytes - target->direct_low, mask, &last_byte)) ||
        oriel_unlikely(last_byte >= target->direct_bytes))
        return NULL;
    char *there = window->memory_bases[rank] + target->offset + offset_bytes;
    if (oriel_unlikely(((uintptr_t)there & mask) != 0))
        return NULL;
    if (there == NULL)
        __builtin_unreachable(); /* saves the callers' comparison */
    return there;
}

/* Whether these are the window, the operator and the datatype of one element that the thread used last, so that they need not be
 * kept. */
static inline __attribute__((always_inline)) bool fast_known(MPI_Win win, MPI_Op op, MPI_Datatype datatype)
{
    return oriel_likely(oriel_recent_is_valid()) && oriel_likely(oriel_recent.window_key == oriel_handle_key(win)) &&
           oriel_likely(oriel_recent.operator_key == (uint64_t)(uintptr_t)op) &&
           oriel_likely(oriel_recent.element_key == oriel_type_key(datatype));
}

/* Where the last kernel may update an element now, and must; else NULL. */
static inline __attribute__((always_inline)) char *fast_enter(const void *origin_addr, int target_rank, MPI_Aint target_disp)
{
    const struct oriel_window *window = oriel_recent.window;
    if (oriel_unlikely(origin_addr == NULL))
        return NULL;
    char *there = fast_element(window, target_rank, target_disp, oriel_recent.element_mask);
    if (oriel_unlikely(there == NULL) || oriel_unlikely(!oriel_single_announce(window, oriel_recent.single)))
        return NULL;
    return there;
}

/* S4 (sync/singles.h) is the kernel's. */
static inline __attribute__((always_inline)) int fast_update(char *there, const void *origin_addr, void *result_addr)
{
    struct oriel_single *slot = oriel_recent.single;
    return ((oriel_element *)oriel_recent.kernel)(there, origin_addr, result_addr, &slot->inside);
}

static __attribute__((noinline)) int accumulate_general(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win)
                   : oriel_error_not_a_window("MPI_Accumulate");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return accumulate(window, "MPI_Accumulate", origin_addr, &sides, op);
}

/* With the recent window, operator and datatype. */
static __attribute__((noinline)) int accumulate_unusual(const void *origin_addr, int target_rank, MPI_Aint target_disp)
{
    MPI_Datatype datatype = (MPI_Datatype)(uintptr_t)oriel_recent.element_key;
    struct oriel_sides sides = {1, datatype, target_rank, target_disp, 1, datatype};
    return accumulate(oriel_recent.window, "MPI_Accumulate", origin_addr, &sides, (MPI_Op)(uintptr_t)oriel_recent.operator_key);
}

int oriel_entry_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    if (oriel_unlikely(!fast_known(win, op, target_datatype)) || oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != 1) || oriel_unlikely(target_count != 1))
        return accumulate_general(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                                  target_datatype, op, win);
    char *there = fast_enter(origin_addr, target_rank, target_disp);
    return oriel_likely(there != NULL) ? fast_update(there, origin_addr, NULL)
                                       : accumulate_unusual(origin_addr, target_rank, target_disp);
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

static int fetch_and_op(struct oriel_window *window, const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                        int target_rank, MPI_Aint target_disp, MPI_Op op)
{
    struct oriel_span target;
    enum oriel_operator operator;
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
        keep_kernel(target.side.type, datatype, op, operator);
    if (status == ORIEL_OK)
        status = oriel_accumulate(window, &target, 1, operator, &from, &to);
    return oriel_error_raise(window, "MPI_Fetch_and_op", status);
}

static __attribute__((noinline)) int fetch_and_op_general(const void *origin_addr, void *result_addr,
                                                          MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                                                          MPI_Op op, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win)
                   : oriel_error_not_a_window("MPI_Fetch_and_op");
    return fetch_and_op(window, origin_addr, result_addr, datatype, target_rank, target_disp, op);
}

/* With the recent window, operator and datatype. */
static __attribute__((noinline)) int fetch_and_op_unusual(const void *origin_addr, void *result_addr, int target_rank,
                                                          MPI_Aint target_disp)
{
    return fetch_and_op(oriel_recent.window, origin_addr, result_addr, (MPI_Datatype)(uintptr_t)oriel_recent.element_key,
                        target_rank, target_disp, (MPI_Op)(uintptr_t)oriel_recent.operator_key);
}

int oriel_entry_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
                             MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    if (oriel_unlikely(!fast_known(win, op, datatype)))
        return fetch_and_op_general(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
    char *there = oriel_likely(result_addr != NULL) ? fast_enter(origin_addr, target_rank, target_disp) : NULL;
    return oriel_likely(there != NULL) ? fast_update(there, origin_addr, result_addr)
                                       : fetch_and_op_unusual(origin_addr, result_addr, target_rank, target_disp);
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
    struct oriel_window *window;
    const struct oriel_type *type;
    char *there = NULL;
    bool missing = origin_addr == NULL || compare_addr == NULL || result_addr == NULL;
    if (oriel_likely(!missing) && oriel_likely(oriel_fast_find(win, datatype, &window, &type)) &&
        oriel_likely(type->predefined) && oriel_likely(may_swap(type->kind)) &&
        oriel_likely(type->extent_bytes <= ORIEL_SWAP_NATIVE_BYTES))
        there = fast_element(window, target_rank, target_disp, (uint64_t)type->extent_bytes - 1);
    struct oriel_single *slot = oriel_recent.single;
    if (oriel_unlikely(there == NULL) || oriel_unlikely(slot == NULL) || oriel_unlikely(!oriel_single_announce(window, slot)))
        return compare_and_swap_general(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
    oriel_swap_native(there, origin_addr, compare_addr, result_addr, (uint64_t)type->extent_bytes);
    oriel_store_release(&slot->inside, 0);
    return MPI_SUCCESS;
}
