/* MPI_Fetch_and_op and MPI_Compare_and_swap (MPI-4.1, 13.3.4, 13.3.5), their forms with a request,
 * and compare_and_swap of 16 bytes (include/oriel/ext.h). */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/atomic_fast.h"
#include "api/requests.h"
#include "reduce/cpu_swap.h"
#include "window/handle.h"

static const char fetch_call[] = "MPI_Fetch_and_op";
static const char swap_call[] = "MPI_Compare_and_swap";

static int fetch_and_op_checked(struct oriel_window *window, const char *call,
                                const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                                int target_rank, MPI_Aint target_disp, MPI_Op op)
{
    struct oriel_span target = {.side.count = 1};
    enum oriel_operator oriel_op;
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_element_type(datatype, &target.side.type);
    if (status == ORIEL_OK)
        status = oriel_check_target(window, target_rank, target_disp, ORIEL_ISSUE_NOW, &target);
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

static enum oriel_status swap_checked(struct oriel_window *window,
                                      const struct oriel_swap_arguments *given,
                                      const struct oriel_type *type)
{
    struct oriel_span target;
    const enum oriel_status status =
        oriel_check_swap(window, given, type, ORIEL_ISSUE_NOW, &target);
    if (status != ORIEL_OK)
        return status;
    oriel_check_passed(window);
    return oriel_compare_and_swap(window, &target, given->origin, given->compare, given->result);
}

static int compare_and_swap_checked(struct oriel_window *window, const char *call,
                                    const struct oriel_swap_arguments *given, MPI_Datatype datatype)
{
    const struct oriel_type *type;
    if (given->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_swap_type(datatype, &type);
    if (status == ORIEL_OK)
        status = swap_checked(window, given, type);
    return oriel_error_raise(window, call, status);
}

static __attribute__((noinline)) int
compare_and_swap_general(const void *origin_addr, const void *compare_addr, void *result_addr,
                         MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)
{
    const struct oriel_swap_arguments given = {origin_addr, compare_addr, result_addr, target_rank,
                                               target_disp};
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Compare_and_swap(origin_addr, compare_addr, result_addr,
                                                    datatype, target_rank, target_disp, win)
                   : oriel_error_not_a_window(swap_call);
    return compare_and_swap_checked(window, swap_call, &given, datatype);
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
        oriel_likely(type->predefined) && oriel_likely(oriel_kind_is_swapped(type->kind)) &&
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

/* --- with a request --- */

/* NULL: the call is over, with *code. */
static struct oriel_window *begin_with_request(const char *call, int target_rank, MPI_Win win,
                                               const MPI_Request *request,
                                               struct oriel_request_state **asked, int *code)
{
    struct oriel_window *window = oriel_request_window(call, win, request, code);
    if (window == NULL)
        return NULL;
    *code = oriel_request_begin(window, call, target_rank, true, asked);
    return *code == MPI_SUCCESS ? window : NULL;
}

int oriel_entry_Rfetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                              int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win,
                              MPI_Request *request)
{
    static const char call[] = "MPIX_Rfetch_and_op";
    int code;
    struct oriel_request_state *asked;
    struct oriel_window *window =
        begin_with_request(call, target_rank, win, request, &asked, &code);
    if (window == NULL)
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
    const struct oriel_swap_arguments given = {origin_addr, compare_addr, result_addr, target_rank,
                                               target_disp};
    int code;
    struct oriel_request_state *asked;
    struct oriel_window *window =
        begin_with_request(call, target_rank, win, request, &asked, &code);
    if (window == NULL)
        return code;
    code = compare_and_swap_checked(window, call, &given, datatype);
    return oriel_request_give(window, call, asked, code, request);
}

/* --- 16 bytes --- */

/* They have no datatype. */
static const struct oriel_type *wide_type(void)
{
    static struct oriel_node run = {.form = ORIEL_NODE_RUN,
                                    .kind = ORIEL_KIND_OPAQUE128,
                                    .count = 1,
                                    .elements = 1,
                                    .size_bytes = ORIEL_SWAP_BYTES,
                                    .high_bytes = ORIEL_SWAP_BYTES,
                                    .runs = 1,
                                    .depth = 1,
                                    .references = 1};
    static const struct oriel_type type = {.kind = ORIEL_KIND_OPAQUE128,
                                           .dense = true,
                                           .predefined = true,
                                           .elements = 1,
                                           .size_bytes = ORIEL_SWAP_BYTES,
                                           .extent_bytes = ORIEL_SWAP_BYTES,
                                           .plain_bytes = ORIEL_SWAP_BYTES,
                                           .layout = &run};
    return &type;
}

int oriel_entry_Compare_and_swap_128(const void *origin_addr, const void *compare_addr,
                                     void *result_addr, int target_rank, MPI_Aint target_disp,
                                     MPI_Win win)
{
    static const char call[] = "MPIX_Compare_and_swap_128";
    const struct oriel_swap_arguments given = {origin_addr, compare_addr, result_addr, target_rank,
                                               target_disp};
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension(call, win);
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return oriel_error_raise(window, call, swap_checked(window, &given, wide_type()));
}
