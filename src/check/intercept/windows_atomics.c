/* Extensions of the atomic operations (include/oriel/ext.h): accesses like those of MPI. A list is
 * as many operations as it has elements, up to the first that is wrong. */
#include "check/intercept/operation_fields.h"
#include "check/intercept/wrap.h"

#include "oriel/ext.h"

#include <stdlib.h>

/* As OPERATION in windows_operate.c, without a fast path. */
#define ATOMIC(name, parameters, arguments, ...)                                                   \
    ORIEL_CHECK_WRAP_X(name, parameters)                                                           \
    {                                                                                              \
        if (!oriel_window_look())                                                                  \
            return NEXT_X(name) arguments;                                                         \
        struct oriel_operation operation = GIVEN(name, ORIEL_ACCESS_ACCUMULATE, __VA_ARGS__);      \
        target_rank = oriel_operation_check(&operation);                                           \
        const int code = oriel_operation_finish(&operation, NEXT_X(name) arguments);               \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }

ATOMIC(Rfetch_and_op,
       (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
        MPI_Aint target_disp, MPI_Op op, MPI_Win win, MPI_Request *request),
       (origin_addr, result_addr, datatype, target_rank, target_disp, op, win, request),
       ELEMENT_FIELDS, UPDATE_FIELDS, .request = request)
ATOMIC(Rcompare_and_swap,
       (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
        int target_rank, MPI_Aint target_disp, MPI_Win win, MPI_Request *request),
       (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win, request),
       ELEMENT_FIELDS, SWAP_FIELDS, .request = request)

/* 16 bytes on all sides. */
#define WIDE_FIELDS                                                                                \
    .origin_addr = origin_addr, .origin_count = 16, .origin_datatype = MPI_BYTE,                   \
    .result_addr = result_addr, .result_count = 16, .result_datatype = MPI_BYTE,                   \
    .target_rank = target_rank, .target_disp = target_disp, .target_count = 16,                    \
    .target_datatype = MPI_BYTE, .is_wide = true
ATOMIC(Compare_and_swap_128,
       (const void *origin_addr, const void *compare_addr, void *result_addr, int target_rank,
        MPI_Aint target_disp, MPI_Win win),
       (origin_addr, compare_addr, result_addr, target_rank, target_disp, win), WIDE_FIELDS,
       SWAP_FIELDS)

/* The element of an array, or NULL. */
static const void *element_at(const void *array, MPI_Count which, MPI_Aint extent_bytes)
{
    return array == NULL ? NULL : (const char *)array + which * extent_bytes;
}

/* Checks the operations of a list one by one. Returns how many, and the target to pass on. */
static MPI_Count list_check(struct oriel_operation *operations, const struct oriel_operation *asked,
                            MPI_Count count, const MPI_Aint *disps, int *target_rank)
{
    MPI_Aint low, extent_bytes = 0;
    MPI_Count checked = 0;
    if (asked->target_datatype != MPI_DATATYPE_NULL)
        oriel_host()->Type_get_extent(asked->target_datatype, &low, &extent_bytes);
    for (bool allowed = true; allowed && checked < count; checked++) {
        struct oriel_operation *operation = &operations[checked];
        *operation = *asked;
        operation->origin_addr = element_at(asked->origin_addr, checked, extent_bytes);
        operation->result_addr = element_at(asked->result_addr, checked, extent_bytes);
        operation->target_disp = disps[checked];
        *target_rank = oriel_operation_check(operation);
        allowed = operation->window == NULL || operation->allowed;
    }
    return checked;
}

ORIEL_CHECK_WRAP_X(Fetch_and_op_list, (const void *origin_addr, void *result_addr, MPI_Count count,
                                       MPI_Datatype datatype, int target_rank,
                                       const MPI_Aint target_disps[], MPI_Op op, MPI_Win win))
{
    if (!oriel_window_look())
        return NEXT_X(Fetch_and_op_list)(origin_addr, result_addr, count, datatype, target_rank,
                                         target_disps, op, win);
    const MPI_Aint target_disp = 0;
    const struct oriel_operation asked =
        GIVEN(Fetch_and_op_list, ORIEL_ACCESS_ACCUMULATE, ELEMENT_FIELDS, UPDATE_FIELDS);
    struct oriel_operation *operations =
        count > 0 && target_disps != NULL ? malloc((size_t)count * sizeof *operations) : NULL;
    MPI_Count checked =
        operations != NULL ? list_check(operations, &asked, count, target_disps, &target_rank) : 0;
    int code = NEXT_X(Fetch_and_op_list)(origin_addr, result_addr, count, datatype, target_rank,
                                         target_disps, op, win);
    while (checked > 0)
        code = oriel_operation_finish(&operations[--checked], code);
    free(operations);
    oriel_check_leave();
    return code;
}
