/* Finds the rendezvous of a communicator through an attribute that is cached on it. It is created
 * with the first window over the communicator and exists as long as the communicator. A
 * communicator made by MPI_Comm_dup has none until its own first window. Thread-safe. */
#ifndef ORIEL_CREATE_COMM_CACHE_H
#define ORIEL_CREATE_COMM_CACHE_H

#include "create/shm_rendezvous.h"

#include <mpi.h>

/* NULL when the communicator has none, or this process knows that a rank has left it. */
struct oriel_shm_rendezvous *oriel_comm_cache_find(MPI_Comm comm);

/* Around the host's freeing of comm, which deletes its attributes and calls the program's delete
 * callbacks. The rendezvous of comm is removed first. Meanwhile this thread creates windows over
 * comm without attributes. Calls nest. An error handler may leave the call before its end.
 * begin_free returns ORIEL_E_NO_MEM on failure, and then there is nothing to end. */
enum oriel_status oriel_comm_cache_begin_free(MPI_Comm comm);
void oriel_comm_cache_end_free(MPI_Comm comm);
bool oriel_comm_cache_is_freeing(MPI_Comm comm);

/* Attaches a rendezvous with these words to comm. If this process has allocated the words at
 * own_offset (else -1), it frees them in the end. The rendezvous may be dropped until
 * oriel_comm_cache_confirm. Returns ORIEL_E_NO_MEM with *out NULL on failure. */
enum oriel_status oriel_comm_cache_attach(MPI_Comm comm, struct oriel_group *group, int32_t rank,
                                          uint64_t words_offset, int64_t own_offset,
                                          struct oriel_shm_rendezvous **out);

/* All ranks have the rendezvous: it stays. */
void oriel_comm_cache_confirm(struct oriel_shm_rendezvous *rendezvous);

/* A rank does not have the rendezvous, and no rank has used it. */
void oriel_comm_cache_drop(MPI_Comm comm);

/* Frees the words of rendezvous that all ranks have left. */
void oriel_comm_cache_reclaim(void);

/* Allows and forbids new attributes; existing ones stay. */
void oriel_comm_cache_start(void);
void oriel_comm_cache_stop(void);

#endif
