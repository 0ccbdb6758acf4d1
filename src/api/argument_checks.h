/* The checks of every operation before any data moves: counts, datatypes, rank, epoch, range. They
 * are always on; the first error is reported. */
#ifndef ORIEL_API_ARGUMENT_CHECKS_H
#define ORIEL_API_ARGUMENT_CHECKS_H

#include "datatype/datatype.h"
#include "rma/rma.h"
#include "sync/sync.h"

/* The arguments common to all operations, with wide counts. */
struct oriel_sides {
    MPI_Count origin_count;
    MPI_Datatype origin_datatype;
    int target_rank;
    MPI_Aint target_disp;
    MPI_Count target_count;
    MPI_Datatype target_datatype;
};

/* Whether an operation is issued now, or planned for later: then its epoch is not checked, nor the
 * range in a dynamic window. */
enum oriel_issue { ORIEL_ISSUE_NOW, ORIEL_ISSUE_LATER };

/* Put (to_target) and get: all checks. The outputs are the arguments of oriel_put and oriel_get. */
enum oriel_status oriel_check_transfer(struct oriel_window *window, const struct oriel_sides *sides,
                                       bool to_target, enum oriel_issue issue,
                                       struct oriel_span *target, struct oriel_side *origin);

/* The arguments of an accumulate. */
struct oriel_accumulate_arguments {
    const void *origin;
    void *result; /* this and the next two: get_accumulate only */
    MPI_Count result_count;
    MPI_Datatype result_datatype;
    struct oriel_sides sides;
    MPI_Op op;
};

/* The arguments of oriel_accumulate. */
struct oriel_accumulate_operands {
    struct oriel_span target;
    struct oriel_elements elements;
    enum oriel_operator op;
    struct oriel_operand origin, result;
};

/* Accumulates: all checks. One predefined type on all sides. With an operator on pairs, or one that
 * only moves elements, struct datatypes that are pairs count as such (datatype/struct_types.h).
 * MPI_NO_OP ignores the origin. If a side has no elements, nothing moves and the types may differ.
 * MPI_REPLACE and MPI_NO_OP compute nothing, so they move different types as bytes if no side has
 * padding. The result has room for all of the target, if anything moves. */
enum oriel_status oriel_check_accumulate(struct oriel_window *window,
                                         const struct oriel_accumulate_arguments *given,
                                         bool has_result, enum oriel_issue issue,
                                         struct oriel_accumulate_operands *out);

/* ORIEL_E_BUFFER for a buffer larger than the address space, and for NULL if items are read or
 * written. MPI_BOTTOM, which is NULL too, is valid with a datatype whose displacements are
 * addresses. */
enum oriel_status oriel_check_buffer(const char *which, const void *address,
                                     const struct oriel_side *side);

/* The datatype of one element: predefined, or a struct datatype that is a pair, which counts as
 * such. */
enum oriel_status oriel_check_element_type(MPI_Datatype datatype, const struct oriel_type **type);

/* MPI-4.1, 13.3.5: C and Fortran integers, logicals, bytes and multi-language types. */
static inline bool oriel_kind_is_swapped(enum oriel_kind kind)
{
    return oriel_kinds[kind].plain[ORIEL_OPERATOR_BAND] != NULL ||
           oriel_kinds[kind].plain[ORIEL_OPERATOR_LAND] != NULL;
}

/* The same for compare_and_swap. */
enum oriel_status oriel_check_swap_type(MPI_Datatype datatype, const struct oriel_type **type);

/* The arguments of a compare_and_swap, without the type. */
struct oriel_swap_arguments {
    const void *origin;
    const void *compare;
    void *result;
    int target_rank;
    MPI_Aint target_disp;
};

/* compare_and_swap of one element of a type that it is defined on: all other checks. */
enum oriel_status oriel_check_swap(struct oriel_window *window,
                                   const struct oriel_swap_arguments *given,
                                   const struct oriel_type *type, enum oriel_issue issue,
                                   struct oriel_span *target);

/* Rank, epoch and range of the target's side; sets rank and offset. ORIEL_E_DISP for a negative
 * displacement if the window is not dynamic. */
enum oriel_status oriel_check_target(struct oriel_window *window, int target_rank,
                                     MPI_Aint target_disp, enum oriel_issue issue,
                                     struct oriel_span *target);

/* The range of the target's side at any rank, in no epoch; sets rank and offset as above. */
enum oriel_status oriel_check_range(struct oriel_window *window, int target_rank,
                                    MPI_Aint target_disp, enum oriel_issue issue,
                                    struct oriel_span *target);

/* ORIEL_E_RANK for a rank outside the window. */
enum oriel_status oriel_check_rank(const struct oriel_window *window, int rank);

/* The operator on the kind (ORIEL_KIND_NONE: nothing is accessed). ORIEL_E_OP if it is user-defined
 * or not allowed there. */
enum oriel_status oriel_check_operator(MPI_Op op, enum oriel_kind kind, enum oriel_operator *out);

/* All checks have passed and the operation begins: it uses its epoch, and may store. */
static inline void oriel_check_passed(struct oriel_window *window)
{
    oriel_access_use(window);
    oriel_tls_cache_mark();
}

/* ORIEL_E_ASSERT if assert has bits that the call does not accept (MPI-4.1, 13.5.5). */
enum oriel_status oriel_check_assert(int assert, int taken);

#endif
