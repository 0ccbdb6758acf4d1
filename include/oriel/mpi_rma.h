/* Prototypes of MPI-4's window functions with large counts (MPI-4.1, chapter 13), for programs
 * whose host has an mpi.h of MPI-3.1. With a host of MPI-4 this header declares nothing. Include it
 * after mpi.h, or in its place. Start the program with `oriel run`, or link it as oriel(7)
 * describes: the host alone has no such functions. */
#ifndef ORIEL_MPI_RMA_H
#define ORIEL_MPI_RMA_H

#include <mpi.h>

#if MPI_VERSION < 4

#ifdef __cplusplus
extern "C" {
#endif

/* Declares MPI_<name> and PMPI_<name>. Each behaves like the function without _c, and has the same
 * arguments, units and errors; counts are MPI_Count, and displacement units are MPI_Aint. */
#define ORIEL_LARGE_COUNT(name, parameters)                                                        \
    int MPI_##name parameters;                                                                     \
    int PMPI_##name parameters;

/* Window creation (13.2): sizes and displacement units in bytes. */
ORIEL_LARGE_COUNT(Win_create_c, (void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                 MPI_Comm comm, MPI_Win *win))
ORIEL_LARGE_COUNT(Win_allocate_c, (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                                   void *baseptr, MPI_Win *win))
ORIEL_LARGE_COUNT(Win_allocate_shared_c, (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                          MPI_Comm comm, void *baseptr, MPI_Win *win))
ORIEL_LARGE_COUNT(Win_shared_query_c,
                  (MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr))

/* Operations (13.3.1 to 13.3.4): counts are in items of their datatype, target_disp is in the
 * target's displacement units. */
ORIEL_LARGE_COUNT(Put_c, (const void *origin_addr, MPI_Count origin_count,
                          MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                          MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win))
ORIEL_LARGE_COUNT(Get_c, (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                          int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                          MPI_Datatype target_datatype, MPI_Win win))
ORIEL_LARGE_COUNT(Accumulate_c,
                  (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   MPI_Datatype target_datatype, MPI_Op op, MPI_Win win))
ORIEL_LARGE_COUNT(Get_accumulate_c,
                  (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                   void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   MPI_Datatype target_datatype, MPI_Op op, MPI_Win win))

/* Request-based operations (13.3.6): only in passive-target epochs. */
ORIEL_LARGE_COUNT(Rput_c,
                  (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request))
ORIEL_LARGE_COUNT(Rget_c, (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                           int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                           MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request))
ORIEL_LARGE_COUNT(Raccumulate_c,
                  (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request))
ORIEL_LARGE_COUNT(Rget_accumulate_c,
                  (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                   void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                   int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                   MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request))
#undef ORIEL_LARGE_COUNT

#ifdef __cplusplus
}
#endif

#endif
#endif
