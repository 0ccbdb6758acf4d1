/* Parameters and arguments of operations, and the fields of struct oriel_operation that they fill,
 * for the wrappers of operations. */
#ifndef ORIEL_CHECK_INTERCEPT_OPERATION_FIELDS_H
#define ORIEL_CHECK_INTERCEPT_OPERATION_FIELDS_H

#include "check/window/operation.h"

#define ORIGIN(qualifier, Count)                                                                   \
    qualifier void *origin_addr, Count origin_count, MPI_Datatype origin_datatype
#define RESULT(Count) void *result_addr, Count result_count, MPI_Datatype result_datatype
#define TARGET(Count)                                                                              \
    int target_rank, MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype
#define ORIGIN_ARGUMENTS origin_addr, origin_count, origin_datatype
#define RESULT_ARGUMENTS result_addr, result_count, result_datatype
#define TARGET_ARGUMENTS target_rank, target_disp, target_count, target_datatype

#define ORIGIN_FIELDS                                                                              \
    .origin_addr = origin_addr, .origin_count = origin_count, .origin_datatype = origin_datatype
#define RESULT_FIELDS                                                                              \
    .result_addr = result_addr, .result_count = result_count, .result_datatype = result_datatype
#define TARGET_FIELDS                                                                              \
    .target_rank = target_rank, .target_disp = target_disp, .target_count = target_count,          \
    .target_datatype = target_datatype

/* One element at the origin, in the result and at the target. */
#define ELEMENT_FIELDS                                                                             \
    .origin_addr = origin_addr, .origin_count = 1, .origin_datatype = datatype,                    \
    .result_addr = result_addr, .result_count = 1, .result_datatype = datatype,                    \
    .target_rank = target_rank, .target_disp = target_disp, .target_count = 1,                     \
    .target_datatype = datatype

#define UPDATE_FIELDS .op = op, .accumulates = true
#define SWAP_FIELDS   .compare_addr = compare_addr, .accumulates = true, .swaps = true

/* A struct oriel_operation, in an exported function. */
#define GIVEN(name, access_kind, ...)                                                              \
    {                                                                                              \
        .kind = access_kind, .call = ORIEL_CALL_##name, .address = ORIEL_CALLER, .win = win,       \
        __VA_ARGS__                                                                                \
    }

#endif
