/* The checks of every operation before anything moves: counts, datatypes, rank, epoch, range.  They are always on; the first
 * thing found wrong is reported.  The entry points of put, get and the accumulates call. */
#ifndef ORIEL_API_ARGUMENT_CHECKS_H
#define ORIEL_API_ARGUMENT_CHECKS_H

#include "datatype/datatype.h"
#include "rma/rma.h"
#include "sync/sync.h"

/* The arguments that all operations share, counts widened. */
struct oriel_sides {
    MPI_Count origin_count;
    MPI_Datatype origin_datatype;
    int target_rank;
    MPI_Aint target_disp;
    MPI_Count target_count;
    MPI_Datatype target_datatype;
};

/* Put (to_target) and get: all checks.  The spans are what oriel_put and oriel_get take. */
enum oriel_status oriel_check_transfer(struct oriel_window *window, const struct oriel_sides *sides,
                                       bool to_target, struct oriel_span *target,
                                       struct oriel_side *origin);

/* The accumulates: one predefined type on both sides.  MPI_NO_OP ignores the origin.  Where a side has no elements, nothing moves
 * and the types may differ.  MPI_REPLACE and MPI_NO_OP, which compute nothing, move unlike types as bytes if no side has
 * padding. */
enum oriel_status oriel_check_accumulate(struct oriel_window *window,
                                         const struct oriel_sides *sides, MPI_Op op,
                                         struct oriel_span *target, struct oriel_side *origin,
                                         struct oriel_elements *elements);

/* The result side of get_accumulate: room for all of the target, if anything moves, and a type of its kind or none with
 * padding. */
enum oriel_status oriel_check_result(const struct oriel_side *target,
                                     struct oriel_elements elements, MPI_Count count,
                                     MPI_Datatype datatype, struct oriel_side *result);

/* ORIEL_E_BUFFER for a buffer of more than the address space, and for NULL where items are to be read or written; MPI_BOTTOM,
 * which is NULL too, goes with a datatype whose displacements are addresses. */
enum oriel_status oriel_check_buffer(const char *which, const void *address,
                                     const struct oriel_side *side);

/* Rank, epoch and range of the target's side; fills in rank and offset.  ORIEL_E_DISP for a negative displacement where the
 * window is not dynamic. */
enum oriel_status oriel_check_target(struct oriel_window *window, int target_rank,
                                     MPI_Aint target_disp, struct oriel_span *target);

/* The operator on the kind (ORIEL_KIND_NONE: nothing is accessed); ORIEL_E_OP when it is the user's or not allowed there. */
enum oriel_status oriel_check_operator(MPI_Op op, enum oriel_kind kind, enum oriel_operator *out);

/* All checks of an operation have passed, and it begins: its epoch is used, and it may store. */
static inline void oriel_check_passed(struct oriel_window *window)
{
    oriel_access_use(window);
    oriel_tls_cache_mark();
}

/* ORIEL_E_ASSERT when assert has bits that are none of those that the call takes (MPI-4.1, 13.5.5). */
enum oriel_status oriel_check_assert(int assert, int taken);

#endif
