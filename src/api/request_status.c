/* The functions of MPI-4.1 that look at several requests without completing them, of hosts that
 * have them. They process messages from other nodes like MPI_Request_get_status (completion.c). */
#include <mpi.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#include "api/api.h"
#include "api/requests.h"

/* The function that completes a request reports its failure. The C names are our own: MPICH 4.2
 * declares the array of requests without const. */
#define LOOK(name, shown, parameters, arguments)                                                   \
    ORIEL_EXPORT int look_##name parameters __asm__("PMPI_" #name);                                \
    int look_##name parameters                                                                     \
    {                                                                                              \
        static _Atomic(void *) next;                                                               \
        const bool are_special = oriel_requests_are_special();                                     \
        if (are_special) {                                                                         \
            oriel_persistent_show(shown, array_of_requests);                                       \
            oriel_requests_progress();                                                             \
        }                                                                                          \
        int code =                                                                                 \
            ((__typeof__(&look_##name))oriel_host_symbol_kept(&next, "PMPI_" #name))arguments;     \
        if (are_special)                                                                           \
            oriel_requests_ignore_failed();                                                        \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int weak_##name parameters __asm__("MPI_" #name)                                  \
        __attribute__((weak, alias("PMPI_" #name)));

LOOK(Request_get_status_all, count,
     (int count, const MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]),
     (count, array_of_requests, flag, array_of_statuses))
LOOK(Request_get_status_any, count,
     (int count, const MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status),
     (count, array_of_requests, index, flag, status))
LOOK(Request_get_status_some, incount,
     (int incount, const MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
      MPI_Status array_of_statuses[]),
     (incount, array_of_requests, outcount, array_of_indices, array_of_statuses))
#endif
