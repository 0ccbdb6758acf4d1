/* The board of a communicator, found by an attribute that is cached with it.  It comes with the first window over the
 * communicator and goes with the communicator; one made by MPI_Comm_dup has none until its own first window.  Creation calls,
 * from any thread. */
#ifndef ORIEL_CREATE_COMM_CACHE_H
#define ORIEL_CREATE_COMM_CACHE_H

#include "create/shm_rendezvous.h"

#include <mpi.h>

/* NULL when the communicator has none, or this process knows that some rank has left it. */
struct oriel_shm_rendezvous *oriel_comm_cache_find(MPI_Comm comm);

/* One call of MPI_Comm_free or MPI_Comm_disconnect, on its stack. */
struct oriel_freeing {
    MPI_Comm comm;
    struct oriel_freeing *outer; /* in whose delete callback this one is called; NULL: in none */
};

/* Around the host's freeing of comm, which deletes its attributes and calls the program's delete callbacks: the board of comm
 * goes before, and this thread makes windows over comm without its attributes meanwhile.  Calls nest. */
void oriel_comm_cache_begin_free(struct oriel_freeing *freeing, MPI_Comm comm);
void oriel_comm_cache_end_free(const struct oriel_freeing *freeing);
bool oriel_comm_cache_is_freeing(MPI_Comm comm);

/* Gives comm a board with these words, which this process gives back in the end if it has allocated them at own_offset (else -1).
 * Until oriel_comm_cache_confirm it may be dropped.  ORIEL_E_NO_MEM, *out is NULL then. */
enum oriel_status oriel_comm_cache_attach(MPI_Comm comm, struct oriel_group *group, int32_t rank,
                                          uint64_t words_offset, int64_t own_offset,
                                          struct oriel_shm_rendezvous **out);

/* All ranks have it: it stays. */
void oriel_comm_cache_confirm(struct oriel_shm_rendezvous *board);

/* Some rank does not have it, and nobody has used it. */
void oriel_comm_cache_drop(MPI_Comm comm);

/* Gives back the words of boards that all have left. */
void oriel_comm_cache_reclaim(void);

/* Attributes of windows' communicators can be made from here on, and not any more; those that are there stay. */
void oriel_comm_cache_start(void);
void oriel_comm_cache_stop(void);

#endif
