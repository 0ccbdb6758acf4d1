/* A board: where the processes of a communicator that have a window already tell each other what the next ones need, in shared
 * memory and without the host.  The words lie in the memory file of rank 0; each process has a struct oriel_shm_rendezvous of its own.
 * create_exchange.c calls, and comm_cache.c, which knows the board of a communicator; no mpi.h here. */
#ifndef ORIEL_CREATE_SHM_RENDEZVOUS_H
#define ORIEL_CREATE_SHM_RENDEZVOUS_H

#include "base/wait.h"
#include "window/group.h"

#include <stdalign.h>
#include <stddef.h>

enum { ORIEL_BOARD_RECORD_BYTES = 192 };

/* Written as shm_rendezvous.c's argument says.  turn: of the meetings so far, wraps.  Death: who waits looks at all ranks; a meeting that
 * somebody has left because of a death never ends, and those to come fail. */
struct oriel_shm_rendezvous_words {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t arrived; /* at the present meeting */
    struct oriel_event turn;
    _Atomic uint32_t
        broken; /* 0, or 1 for ever once a rank has left a meeting because another died */
    _Atomic uint32_t verdict; /* of the last meeting; its last rank writes */
    _Atomic uint32_t
        left; /* 0, or 1 for ever once a rank comes to no meeting any more: its communicator is being freed */
    _Atomic uint32_t departed; /* ranks that will not touch these words any more */
    alignas(ORIEL_CACHE_LINE) char records
        []; /* [2][n] of ORIEL_BOARD_RECORD_BYTES, each written by its rank */
};

struct oriel_shm_rendezvous {
    struct oriel_shm_rendezvous_words *words;
    struct oriel_group *group;
    int32_t rank;
    uint32_t side;     /* of records: alternates */
    int32_t looked_at; /* rank up to which this one has looked who lives */
    uint64_t
        since_ns; /* when this one came to the present meeting; 0 once the user has been told that it waits */
    bool is_over;   /* this one knows that some rank has left */
    bool cma_known; /* the kernel lets this process copy to and from all others */
};

static inline uint64_t oriel_shm_rendezvous_bytes(int32_t n)
{
    return sizeof(struct oriel_shm_rendezvous_words) + 2 * (uint64_t)n * ORIEL_BOARD_RECORD_BYTES;
}

/* What all do from all records, done once: by the last rank to come, for all. */
typedef uint32_t oriel_shm_rendezvous_conclude(struct oriel_shm_rendezvous *board, void *context);

/* Tells the others len_bytes of record; the conclusion, once all have come.  Collective.  ORIEL_E_PEER, naming the rank, when one
 * of them has died.  ORIEL_E_COMM for all who come when one of them has left the board: they find another way. */
enum oriel_status oriel_shm_rendezvous_meet(struct oriel_shm_rendezvous *board, const void *record,
                                            size_t len_bytes,
                                            oriel_shm_rendezvous_conclude *conclude, void *context,
                                            uint32_t *verdict);

/* This rank comes to no meeting any more. */
static inline void oriel_shm_rendezvous_leave(struct oriel_shm_rendezvous *board)
{
    oriel_store_release(&board->words->left, 1); /* N6 */
}

/* A rank's record of the last meeting, or of the present one in a conclusion; valid until this process comes to the next. */
const void *oriel_shm_rendezvous_record(const struct oriel_shm_rendezvous *board, int32_t rank);

#endif
