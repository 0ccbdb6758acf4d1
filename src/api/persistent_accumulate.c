/* MPIX_Accumulate_init, its form that notifies, MPIX_Get_accumulate_init and
 * MPIX_Fetch_and_op_init. A start of one element that the CPU updates only checks the epoch and
 * announces itself (sync/atomic_mode.h). */
#include "api/api.h"
#include "api/atomic_fast.h"
#include "api/notified_operation.h"
#include "api/persistent_operation.h"
#include "api/requests.h"

#include <stdlib.h>

struct persistent_accumulate {
    struct oriel_persistent_operation operation; /* first; its target is that of the operands */
    struct oriel_accumulate_operands operands;
    char *there; /* of one element that the kernel updates; else NULL */
    oriel_element *kernel;
};

/* --- start --- */

static enum oriel_status accumulate_issue(struct oriel_persistent_operation *operation,
                                          struct oriel_window *window)
{
    const struct oriel_accumulate_operands *operands =
        &((struct persistent_accumulate *)operation)->operands;
    oriel_atomic_mode_claim();
    return oriel_accumulate(window, &operation->target, operands->elements, operands->op,
                            &operands->origin, operation->returns_data ? &operands->result : NULL);
}

static inline __attribute__((always_inline)) enum oriel_status
element_start(struct oriel_persistent *request, struct oriel_window *window, bool notifies)
{
    struct persistent_accumulate *accumulate = (struct persistent_accumulate *)request;
    struct oriel_atomic_mode *slot = oriel_tls_cache.single;
    if (oriel_unlikely(accumulate->there == NULL) ||
        oriel_unlikely(!oriel_fast_allowed(window, (uint32_t)request->target_rank)) ||
        oriel_unlikely(slot == NULL) || oriel_unlikely(!oriel_atomic_mode_announce(window, slot)))
        return oriel_persistent_operation_start(&accumulate->operation, window);
    accumulate->kernel(accumulate->there, accumulate->operands.origin.here,
                       accumulate->operands.result.here, &slot->inside);
    return notifies ? oriel_notified_end(window, &accumulate->operation.target, true) : ORIEL_OK;
}

static enum oriel_status accumulate_start(struct oriel_persistent *request,
                                          struct oriel_window *window)
{
    return element_start(request, window, false);
}

static enum oriel_status accumulate_notify_start(struct oriel_persistent *request,
                                                 struct oriel_window *window)
{
    return element_start(request, window, true);
}

/* --- creation --- */

/* One of the four functions. */
struct accumulate_form {
    const char *call;
    struct oriel_persistent_kind kind;
    enum oriel_persistent_counted counted;
    bool notifies;
};

/* The element and its kernel, if the operation is one element that the CPU updates. */
static void accumulate_prepare(struct persistent_accumulate *accumulate,
                               const struct oriel_window *window)
{
    const struct oriel_accumulate_operands *operands = &accumulate->operands;
    const struct oriel_type *type = operands->target.side.type;
    const bool reads_origin = operands->op != ORIEL_OPERATOR_NO_OP;
    if (operands->elements.count != 1 || operands->target.side.count != 1 || !type->predefined ||
        (reads_origin && operands->origin.side.type != type) ||
        (accumulate->operation.returns_data && operands->result.side.type != type) ||
        window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return;
    oriel_element *kernel = oriel_kinds[type->kind].native[operands->op];
    char *there = oriel_persistent_direct(window, &operands->target, 0, type->extent_bytes);
    if (kernel == NULL || there == NULL || (uintptr_t)there % (uintptr_t)type->extent_bytes != 0)
        return;
    accumulate->kernel = kernel;
    accumulate->there = there;
}

/* As in MPI_Fetch_and_op: a struct datatype that counts as a pair is one element under each
 * operator. */
static enum oriel_status check_element(const struct oriel_accumulate_arguments *given)
{
    const struct oriel_type *type;
    enum oriel_operator op;
    const enum oriel_status status = oriel_check_element_type(given->sides.target_datatype, &type);
    return status == ORIEL_OK ? oriel_check_operator(given->op, type->kind, &op) : status;
}

static enum oriel_status accumulate_plan(struct persistent_accumulate *accumulate,
                                         struct oriel_window *window,
                                         const struct oriel_accumulate_arguments *given)
{
    struct oriel_persistent_operation *operation = &accumulate->operation;
    struct oriel_accumulate_operands *operands = &accumulate->operands;
    const struct oriel_side *target = &operands->target.side;
    enum oriel_status status = operation->request.counted == ORIEL_PERSISTENT_FETCH_AND_OP
                                   ? check_element(given)
                                   : ORIEL_OK;
    if (status == ORIEL_OK)
        status = oriel_check_accumulate(window, given, operation->returns_data, ORIEL_ISSUE_LATER,
                                        operands);
    if (status != ORIEL_OK)
        return status;
    operation->target = operands->target;
    operation->types[0] = target->type;
    if (given->op != MPI_NO_OP)
        operation->types[1] = operands->origin.side.type;
    if (operation->returns_data)
        operation->types[2] = operands->result.side.type;
    operation->request.len_bytes = target->count * target->type->size_bytes;
    operation->moves = operands->elements.count > 0;
    accumulate_prepare(accumulate, window);
    return ORIEL_OK;
}

/* number: of a notification. */
static int accumulate_init(const struct accumulate_form *form,
                           const struct oriel_accumulate_arguments *given, int number, MPI_Win win,
                           MPI_Request *request)
{
    int code;
    struct oriel_window *window = oriel_request_window(form->call, win, request, &code);
    if (window == NULL)
        return code;
    struct persistent_accumulate *accumulate = calloc(1, sizeof *accumulate);
    if (accumulate == NULL)
        return oriel_error_raise(window, form->call,
                                 oriel_fail(ORIEL_E_NO_MEM, "no memory for a request"));
    struct oriel_persistent_operation *operation = &accumulate->operation;
    operation->request.kind = &form->kind;
    operation->request.counted = form->counted;
    operation->issue = accumulate_issue;
    operation->returns_data = form->counted != ORIEL_PERSISTENT_ACCUMULATE;
    operation->notifies = form->notifies;
    operation->number = number;
    enum oriel_status status = given->sides.target_rank == MPI_PROC_NULL
                                   ? ORIEL_OK
                                   : accumulate_plan(accumulate, window, given);
    status = oriel_persistent_operation_create(operation, window, given->sides.target_rank,
                                               given->sides.target_disp, status, request);
    return oriel_error_raise(window, form->call, status);
}

int oriel_entry_Accumulate_init(const void *origin_addr, MPI_Count origin_count,
                                MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                                MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                                MPI_Win win, MPI_Request *request)
{
    static const struct accumulate_form form = {"MPIX_Accumulate_init",
                                                ORIEL_PERSISTENT_OPERATION_KIND(accumulate_start),
                                                ORIEL_PERSISTENT_ACCUMULATE, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_init(&form, &given, 0, win, request);
}

int oriel_entry_Accumulate_notify_init(const void *origin_addr, MPI_Count origin_count,
                                       MPI_Datatype origin_datatype, int target_rank,
                                       MPI_Aint target_disp, MPI_Count target_count,
                                       MPI_Datatype target_datatype, MPI_Op op, int number,
                                       MPI_Win win, MPI_Request *request)
{
    static const struct accumulate_form form = {
        "MPIX_Accumulate_notify_init", ORIEL_PERSISTENT_OPERATION_KIND(accumulate_notify_start),
        ORIEL_PERSISTENT_ACCUMULATE, true};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_init(&form, &given, number, win, request);
}

int oriel_entry_Get_accumulate_init(const void *origin_addr, MPI_Count origin_count,
                                    MPI_Datatype origin_datatype, void *result_addr,
                                    MPI_Count result_count, MPI_Datatype result_datatype,
                                    int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                                    MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                                    MPI_Request *request)
{
    static const struct accumulate_form form = {"MPIX_Get_accumulate_init",
                                                ORIEL_PERSISTENT_OPERATION_KIND(accumulate_start),
                                                ORIEL_PERSISTENT_GET_ACCUMULATE, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = result_count,
        .result_datatype = result_datatype,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_init(&form, &given, 0, win, request);
}

int oriel_entry_Fetch_and_op_init(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                                  int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win,
                                  MPI_Request *request)
{
    static const struct accumulate_form form = {"MPIX_Fetch_and_op_init",
                                                ORIEL_PERSISTENT_OPERATION_KIND(accumulate_start),
                                                ORIEL_PERSISTENT_FETCH_AND_OP, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = 1,
        .result_datatype = datatype,
        .sides = {1, datatype, target_rank, target_disp, 1, datatype},
        .op = op,
    };
    return accumulate_init(&form, &given, 0, win, request);
}
