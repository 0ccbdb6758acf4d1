/* A rendezvous: shared memory through which the processes of a communicator that already has a
 * window exchange the data for the next ones, without the host. The words are in the memory file of
 * rank 0; each process has its own struct oriel_shm_rendezvous. No mpi.h here. */
#ifndef ORIEL_CREATE_SHM_RENDEZVOUS_H
#define ORIEL_CREATE_SHM_RENDEZVOUS_H

#include "base/wait.h"
#include "window/group.h"

#include <stdalign.h>
#include <stddef.h>

enum { ORIEL_RENDEZVOUS_RECORD_BYTES = 192 };

/* Written as shm_rendezvous.c's argument describes. turn counts the rounds; wraps. Death: waiting
 * ranks check all ranks. A round that a rank has left because of a death never ends, and later
 * rounds fail. */
struct oriel_shm_rendezvous_words {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t arrived; /* at the current round */
    struct oriel_event turn;
    /* 0, or 1 permanently once a rank has left a round because another died */
    _Atomic uint32_t broken;
    _Atomic uint32_t verdict; /* of the last round; written by its last rank */
    /* 0, or 1 permanently once a rank participates in no further round: its communicator is
     * being freed */
    _Atomic uint32_t left;
    _Atomic uint32_t departed; /* ranks that will not touch these words any more */
    /* [2][n] of ORIEL_RENDEZVOUS_RECORD_BYTES, each written by its rank */
    alignas(ORIEL_CACHE_LINE) char records[];
};

struct oriel_shm_rendezvous {
    struct oriel_shm_rendezvous_words *words;
    struct oriel_group *group;
    int32_t rank;
    uint32_t side;         /* of the records: alternates */
    int32_t checked_up_to; /* rank up to which this rank has checked the others */
    /* when this rank arrived at the current round; 0 once it has warned about the wait */
    uint64_t since_ns;
    bool is_over;   /* this rank knows that a rank has left */
    bool cma_known; /* the kernel lets this process copy to and from all others */
};

static inline uint64_t oriel_shm_rendezvous_bytes(int32_t n)
{
    return sizeof(struct oriel_shm_rendezvous_words) +
           2 * (uint64_t)n * ORIEL_RENDEZVOUS_RECORD_BYTES;
}

/* Draws the conclusion from all records. Only the last rank to arrive runs it, for all ranks. */
typedef uint32_t oriel_shm_rendezvous_conclude(struct oriel_shm_rendezvous *rendezvous,
                                               void *context);

/* Sends len_bytes of record to the others and returns the conclusion, once all ranks have arrived.
 * Collective. Returns ORIEL_E_PEER, naming the rank, when one of them has died. Returns
 * ORIEL_E_COMM on all arriving ranks when one has left the rendezvous: they use the host instead.
 */
enum oriel_status oriel_shm_rendezvous_meet(struct oriel_shm_rendezvous *rendezvous,
                                            const void *record, size_t len_bytes,
                                            oriel_shm_rendezvous_conclude *conclude, void *context,
                                            uint32_t *verdict);

/* This rank participates in no further round. */
static inline void oriel_shm_rendezvous_leave(struct oriel_shm_rendezvous *rendezvous)
{
    oriel_store_release(&rendezvous->words->left, 1); /* N6 */
}

/* A rank's record of the last round, or of the current one during its conclusion. Valid until this
 * process arrives at the next round. */
const void *oriel_shm_rendezvous_record(const struct oriel_shm_rendezvous *rendezvous,
                                        int32_t rank);

#endif
