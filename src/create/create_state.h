/* A creation on its way, between the files that make windows: create.c has the protocol, create_local.c its first step,
 * create_finish.c its third.  Nobody else includes this. */
#ifndef ORIEL_CREATE_CREATE_STATE_H
#define ORIEL_CREATE_CREATE_STATE_H

#include "create/comm_cache.h"
#include "create/create.h"
#include "create/node_map.h"
#include "internode/origin/liveness.h"
#include "window/host_objects.h"

enum { RECORD_VERSION = 5 };

/* Of a rank's agent. */
enum readiness {
    AGENT_READY, /* it runs, or nobody will need it */
    AGENT_TO_OPEN,
    AGENT_REFUSED, /* ORIEL_AGENT=never */
};

/* What each rank tells the others. */
struct record {
    struct oriel_member member;
    struct oriel_identity
        memory; /* of the file that holds the window's memory, ORIEL_BY_ARENA only */
    uint16_t version;
    uint16_t status; /* enum oriel_status of the preparation */
    uint8_t wants_host;
    uint8_t noncontig; /* MPI_Win_allocate_shared: every rank its own memory */
    uint8_t agent;     /* enum readiness */
    uint8_t cma_known; /* the rank may copy to and from all others; said at boards only */
    int32_t node;      /* of the memory that is near the rank; -1: unknown */
    uint32_t
        is_freeing; /* the rank is in MPI_Comm_free of the communicator, which gets no board now */
    uint64_t
        far_id; /* of the window, for messages from other machines; no two of a process are the same */
    uint64_t alignment;
    uint64_t common_offset; /* rank 0's */
    uint64_t
        board_offset; /* rank 0's words for the communicator's next windows; 0: there are none */
    struct oriel_target target;
};
_Static_assert(sizeof(struct record) <= ORIEL_BOARD_RECORD_BYTES, "boards have room for it");

/* Bits of the agreement. */
enum {
    AGREE_REACHED = 1, /* all files are open */
    AGREE_CMA = 2,     /* all targets that need CMA grant it */
    AGREE_MEMORY = 4,  /* memory and handles suffice */
    AGREE_ALL = 7,
    AGREE_BOARD = 8, /* the communicator has its board; the window does without */
};

enum { FEW = 32 };

struct attempt {
    const struct oriel_creation *creation;
    struct oriel_window *window;
    struct record own;
    struct record *records;
    struct oriel_shm_rendezvous *
        board; /* of the communicator, before this creation; NULL: the host's collectives are used */
    struct oriel_shm_rendezvous *new_board; /* attached by this creation, not confirmed */
    int64_t board_offset; /* rank 0's words for it; -1: none, or they are the new board's */
    struct oriel_meeting *machines; /* NULL: all ranks are of one (create/node_map.h) */
    bool is_contiguous; /* MPI_Win_allocate_shared, in one block of rank 0's; from step 3 on */
    bool has_carrier;
    int32_t dead; /* after ORIEL_E_PEER of an agreement */
    /* a rank without memory must still tell the others */
    struct oriel_window spare;
    struct oriel_window_host spare_host;
    struct record few[FEW];
};

/* What waits in the host's collectives look at: who has died, as far as this process or another that tells it can know. */
struct attempt_watch {
    struct oriel_making making; /* first: told by it */
    struct oriel_watch watch;
    struct oriel_watched watched;
    bool is_board; /* all are here, and known by one */
    uint64_t since_ns;
    enum oriel_status status;
};
void oriel_create_state_watch_open(struct attempt_watch *known, const struct attempt *attempt);
void oriel_create_state_watch_close(struct attempt_watch *known);

/* Step 1: the own record and what it promises.  Its status is for the record. */
enum oriel_status oriel_create_state_prepare(struct attempt *attempt);

/* What a board lets a rank do before the others have come: whose window it is, and its handle.  Its status is for the
 * record. */
enum oriel_status oriel_create_state_join(struct attempt *attempt);

/* Step 2.  *done: all records were such that nothing is left to do, and the window is everybody's; else the attempt has the
 * records of all, or at a board records may be NULL for lack of memory: those at the board can be read until step 4. */
enum oriel_status oriel_create_state_exchange(struct attempt *attempt, bool *done);

/* Step 4: the bits that all ranks have set. */
enum oriel_status oriel_create_state_agree(struct attempt *attempt, uint32_t own, uint32_t *agreed);

/* The table of targets and the rest of the common words, from the records: the leader in step 3, or the last rank at a board. */
void oriel_create_state_fill_common(struct oriel_common *common, int32_t n,
                                    const struct record *(*record_at)(void *context, int32_t rank),
                                    void *context);

/* For that, where the host has gathered them. */
const struct record *oriel_create_state_gathered(void *records, int32_t rank);

/* Step 3: the bits that this rank can give. */
uint32_t oriel_create_state_contribute(struct attempt *attempt);

/* Allocates in the memory file what a window keeps in *kept until oriel_create_state_give_back. */
enum oriel_status oriel_create_state_alloc(uint64_t len_bytes, uint64_t align_bytes, int64_t *kept,
                                           uint64_t *offset);

/* Nothing for -1. */
void oriel_create_state_give_back(int64_t offset);

#endif
