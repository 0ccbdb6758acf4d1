/* Faults of accumulates: operators, old values, and updates that are not atomic. An update in two
 * steps reads, yields to other ranks, and writes, as in a careless implementation. breaker.c
 * chooses the fault. */
#include "breaker.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int no_op_replaces_Get_accumulate(ORIGIN(const, int), RESULT(int), TARGET(int), MPI_Op op,
                                         MPI_Win win)
{
    static char zeros[4096];
    if (op != MPI_NO_OP || !target_count)
        return next.Get_accumulate(ORIGIN_ARGUMENTS, RESULT_ARGUMENTS, TARGET_ARGUMENTS, op, win);
    return next.Get_accumulate(zeros, result_count, result_datatype, RESULT_ARGUMENTS,
                               TARGET_ARGUMENTS, MPI_REPLACE, win);
}

static int no_op_replaces_Fetch_and_op(const void *origin_addr, void *result_addr,
                                       MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                                       MPI_Op op, MPI_Win win)
{
    static char zeros[64];
    return next.Fetch_and_op(op == MPI_NO_OP ? zeros : origin_addr, result_addr, datatype,
                             target_rank, target_disp, op == MPI_NO_OP ? MPI_REPLACE : op, win);
}

static int no_op_needs_an_origin_Get_accumulate(ORIGIN(const, int), RESULT(int), TARGET(int),
                                                MPI_Op op, MPI_Win win)
{
    if (op == MPI_NO_OP && (!origin_addr || origin_count != result_count))
        return MPI_ERR_BUFFER;
    return next.Get_accumulate(ORIGIN_ARGUMENTS, RESULT_ARGUMENTS, TARGET_ARGUMENTS, op, win);
}

static int no_op_needs_an_origin_Fetch_and_op(const void *origin_addr, void *result_addr,
                                              MPI_Datatype datatype, int target_rank,
                                              MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    if (op == MPI_NO_OP && !origin_addr)
        return MPI_ERR_BUFFER;
    return next.Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
}

/* The operator that the argument names does nothing. */
static bool is_named(MPI_Op op)
{
    const struct {
        const char *name;
        MPI_Op op;
    } ops[] = {
        {"MPI_SUM", MPI_SUM},         {"MPI_PROD", MPI_PROD},     {"MPI_MIN", MPI_MIN},
        {"MPI_MAX", MPI_MAX},         {"MPI_BAND", MPI_BAND},     {"MPI_BOR", MPI_BOR},
        {"MPI_BXOR", MPI_BXOR},       {"MPI_LAND", MPI_LAND},     {"MPI_LOR", MPI_LOR},
        {"MPI_LXOR", MPI_LXOR},       {"MPI_MINLOC", MPI_MINLOC}, {"MPI_MAXLOC", MPI_MAXLOC},
        {"MPI_REPLACE", MPI_REPLACE},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, breaker_argument) == 0)
            return ops[i].op == op;
    abort();
}

static int operator_does_nothing_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op, MPI_Win win)
{
    return is_named(op) ? MPI_SUCCESS
                        : next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
}

/* If values are equal, the origin's index wins. */
static int ties_choose_the_origin_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op,
                                             MPI_Win win)
{
    bool located = op == MPI_MINLOC || op == MPI_MAXLOC;
    return next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, located ? MPI_REPLACE : op, win);
}

static int swap_always_Compare_and_swap(const void *origin_addr, const void *compare_addr,
                                        void *result_addr, MPI_Datatype datatype, int target_rank,
                                        MPI_Aint target_disp, MPI_Win win)
{
    (void)compare_addr;
    return next.Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp,
                             MPI_REPLACE, win);
}

/* Compares only the low byte. */
static int swap_compares_one_byte_Compare_and_swap(const void *origin_addr,
                                                   const void *compare_addr, void *result_addr,
                                                   MPI_Datatype datatype, int target_rank,
                                                   MPI_Aint target_disp, MPI_Win win)
{
    char now[32];
    if (target_rank != MPI_PROC_NULL &&
        next.Fetch_and_op(NULL, now, datatype, target_rank, target_disp, MPI_NO_OP, win) ==
            MPI_SUCCESS &&
        now[0] == *(const char *)compare_addr)
        compare_addr = now;
    return next.Compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank,
                                 target_disp, win);
}

static bool is_integer(MPI_Datatype type)
{
    return type == MPI_INT64_T || type == MPI_UINT64_T || type == MPI_LONG || type == MPI_INT32_T ||
           type == MPI_INT;
}

/* A sum in two steps. Sizes are 4 and 8 bytes, little-endian. */
static int add_in_two_steps(const void *origin, void *old, MPI_Datatype type, int target,
                            MPI_Aint disp, MPI_Win win)
{
    int64_t value = 0, operand = 0;
    int size = 0, code = next.Fetch_and_op(NULL, old, type, target, disp, MPI_NO_OP, win);
    if (code != MPI_SUCCESS)
        return code;
    PMPI_Type_size(type, &size);
    memcpy(&value, old, (size_t)size);
    memcpy(&operand, origin, (size_t)size);
    value += operand;
    sched_yield();
    return next.Accumulate(&value, 1, type, target, disp, 1, type, MPI_REPLACE, win);
}

static int sums_are_not_atomic_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op, MPI_Win win)
{
    int64_t old;
    if (op == MPI_SUM && origin_count == 1 && target_count == 1 && is_integer(origin_datatype) &&
        target_rank != MPI_PROC_NULL)
        return add_in_two_steps(origin_addr, &old, origin_datatype, target_rank, target_disp, win);
    return next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
}

static int sums_are_not_atomic_Fetch_and_op(const void *origin_addr, void *result_addr,
                                            MPI_Datatype datatype, int target_rank,
                                            MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    if (op != MPI_SUM || !is_integer(datatype) || target_rank == MPI_PROC_NULL)
        return next.Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op,
                                 win);
    return add_in_two_steps(origin_addr, result_addr, datatype, target_rank, target_disp, win);
}

/* Replaces an element in two halves, each by a put of bytes. */
static int replace_tears_elements_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op,
                                             MPI_Win win)
{
    int size = 0;
    PMPI_Type_size(origin_datatype, &size);
    if (op != MPI_REPLACE || origin_count != 1 || target_count != 1 || size < 2 ||
        origin_datatype != target_datatype)
        return next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
    MPI_Datatype half;
    int code = MPI_SUCCESS;
    for (int part = 0; part < 2 && code == MPI_SUCCESS; part++) {
        MPI_Aint offset = part ? size / 2 : 0;
        int length = part ? size - size / 2 : size / 2;
        PMPI_Type_create_hindexed(1, &length, &offset, MPI_BYTE, &half);
        PMPI_Type_commit(&half);
        code = next.Put(origin_addr, 1, half, target_rank, target_disp, 1, half, win);
        PMPI_Type_free(&half);
        sched_yield();
    }
    return code;
}

/* Every second accumulate of an origin overtakes the one before it. */
static int accumulates_overtake_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op, MPI_Win win)
{
    static char buffer[4096];
    static struct {
        int count, target_rank;
        MPI_Datatype type;
        MPI_Aint disp;
        MPI_Op op;
        bool is_deferred;
    } first;
    int size = 0, code;
    PMPI_Type_size(origin_datatype, &size);
    if (first.is_deferred) {
        first.is_deferred = false;
        code = next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
        next.Accumulate(buffer, first.count, first.type, first.target_rank, first.disp, first.count,
                        first.type, first.op, win);
        return code;
    }
    if ((size_t)size * (size_t)origin_count > sizeof buffer || origin_datatype != target_datatype)
        return next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
    memcpy(buffer, origin_addr, (size_t)size * (size_t)origin_count);
    first.count = origin_count;
    first.target_rank = target_rank;
    first.type = origin_datatype;
    first.disp = target_disp;
    first.op = op;
    first.is_deferred = true;
    return MPI_SUCCESS;
}

/* Derived datatypes are ignored without an error. */
static int derived_types_do_nothing_Accumulate(ORIGIN(const, int), TARGET(int), MPI_Op op,
                                               MPI_Win win)
{
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(target_datatype, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || target_count < 1)
        return next.Accumulate(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win);
    return MPI_SUCCESS;
}

const struct fault atomicity_faults[] = {
    FAULT(no_op_replaces, Get_accumulate),        FAULT(no_op_replaces, Fetch_and_op),
    FAULT(no_op_needs_an_origin, Get_accumulate), FAULT(no_op_needs_an_origin, Fetch_and_op),
    FAULT(operator_does_nothing, Accumulate),     FAULT(ties_choose_the_origin, Accumulate),
    FAULT(swap_always, Compare_and_swap),         FAULT(swap_compares_one_byte, Compare_and_swap),
    FAULT(sums_are_not_atomic, Accumulate),       FAULT(sums_are_not_atomic, Fetch_and_op),
    FAULT(replace_tears_elements, Accumulate),    FAULT(accumulates_overtake, Accumulate),
    FAULT(derived_types_do_nothing, Accumulate),  {0},
};
