/* The state of a creation in progress, private to the files of the protocol. create.c describes the
 * protocol. create_local.c has step 1, create_exchange.c steps 2 and 4, create_finish.c step 3,
 * node_map.c the steps between nodes. */
#ifndef ORIEL_CREATE_CREATE_STATE_H
#define ORIEL_CREATE_CREATE_STATE_H

#include "create/comm_cache.h"
#include "create/create.h"
#include "create/node_map.h"
#include "internode/origin/liveness.h"
#include "window/host_objects.h"

enum { RECORD_VERSION = 8 };

/* The state of a rank's agent. */
enum readiness {
    AGENT_READY, /* it is running, or not needed */
    AGENT_TO_OPEN,
    AGENT_REFUSED, /* ORIEL_AGENT=never */
};

/* The record that each rank sends to the others. */
struct create_record {
    struct oriel_member member;
    /* of the file that contains the window's memory; only for ORIEL_PLACEMENT_DIRECT */
    struct oriel_identity memory;
    uint16_t version;
    uint16_t status; /* enum oriel_status of the preparation */
    uint8_t wants_host;
    uint8_t noncontig; /* MPI_Win_allocate_shared: separate memory per rank */
    uint8_t agent;     /* enum readiness */
    uint8_t cma_known; /* the rank may copy to and from all others; only set at a rendezvous */
    int32_t node;      /* NUMA node near the rank; -1: unknown */
    struct oriel_pages_placement placement; /* of its memory, if the kernel can do it */
    /* the rank is in MPI_Comm_free of the communicator, which gets no rendezvous now */
    uint8_t is_freeing;
    uint8_t paths;     /* ORIEL_PATH_* of its memory */
    uint8_t is_device; /* its memory is a GPU's, which the host cannot access */
    /* the window's id in messages from other nodes; unique within the process */
    uint64_t internode_id;
    uint64_t alignment;
    uint64_t common_offset;     /* of rank 0 */
    uint64_t rendezvous_offset; /* of rank 0's words for the communicator's next windows; 0: none */
    struct oriel_target target;
};
_Static_assert(sizeof(struct create_record) <= ORIEL_RENDEZVOUS_RECORD_BYTES,
               "a rendezvous has room for it");

/* Bits of the agreement. */
enum {
    AGREE_REACHED = 1, /* all files are open */
    AGREE_CMA = 2,     /* all targets that need CMA grant it */
    AGREE_MEMORY = 4,  /* memory and handles suffice */
    AGREE_ALL = 7,
    /* the communicator has its rendezvous; the window does not depend on it */
    AGREE_RENDEZVOUS = 8,
};

enum { INLINE_RECORDS = 32 };

struct create_state {
    const struct oriel_creation *creation;
    struct oriel_window *window;
    struct create_record own;
    struct create_record *records;
    /* of the communicator, from before this creation; NULL: the host's collectives are used */
    struct oriel_shm_rendezvous *rendezvous;
    struct oriel_shm_rendezvous *new_rendezvous; /* attached by this creation, not confirmed */
    /* of rank 0's words for it; -1: none, or the new rendezvous owns them */
    int64_t rendezvous_offset;
    struct oriel_node_map *node_map; /* NULL: all ranks are on one node (create/node_map.h) */
    bool is_contiguous; /* MPI_Win_allocate_shared in one block of rank 0; set in step 3 */
    bool has_carrier;
    int32_t dead; /* after ORIEL_E_PEER of an agreement */
    /* a rank without memory must still report to the others */
    struct oriel_window spare;
    struct oriel_window_host spare_host;
    struct create_record inline_records[INLINE_RECORDS];
};

/* Context for waits in the host's collectives. It finds ranks that have died, as far as this
 * process or one that reports to it can know. */
struct create_watch {
    struct oriel_create_progress making; /* first member: state reports use it */
    struct oriel_watch watch;
    struct oriel_watched watched;
    bool is_rendezvous; /* all ranks are on this node, known from one rendezvous */
    uint64_t since_ns;
    enum oriel_status status;
};
void oriel_create_state_watch_open(struct create_watch *known, const struct create_state *state);
void oriel_create_state_watch_close(struct create_watch *known);

/* Notes that the host creates the window because of this rank's last failure. */
void oriel_create_state_note_host(const struct create_state *state);

/* Step 1: fills this rank's record and allocates what it describes. The status goes into the
 * record. */
enum oriel_status oriel_create_state_prepare(struct create_state *state);

/* The part that a rendezvous lets a rank do before the others arrive: the window's group and its
 * handle. The status goes into the record. */
enum oriel_status oriel_create_state_join_rendezvous(struct create_state *state);

/* Step 2. *done: the records leave nothing to do, and the window exists on all ranks. Otherwise
 * state has the records of all ranks. At a rendezvous, records may be NULL for lack of memory; the
 * records at the rendezvous are readable until step 4. */
enum oriel_status oriel_create_state_exchange(struct create_state *state, bool *done);

/* Step 4: the bits that all ranks have set. */
enum oriel_status oriel_create_state_agree(struct create_state *state, uint32_t own,
                                           uint32_t *agreed);

/* Fills the table of targets and the other common words from the records: on the leader in step 3,
 * or on the last rank at a rendezvous. */
void oriel_create_state_fill_common(struct oriel_common *common, int32_t n,
                                    const struct create_record *(*record_at)(void *context,
                                                                             int32_t rank),
                                    void *context);

/* The record_at function for records that the host has gathered. */
const struct create_record *oriel_create_state_gathered_record(void *records, int32_t rank);

/* Step 3: the bits that this rank contributes. */
uint32_t oriel_create_state_contribute(struct create_state *state);

/* Allocates a block in the memory file. *stored_offset stores its offset until
 * oriel_create_state_free_block. */
enum oriel_status oriel_create_state_alloc_block(uint64_t len_bytes, uint64_t align_bytes,
                                                 int64_t *stored_offset, uint64_t *offset);

/* No effect for -1. */
void oriel_create_state_free_block(int64_t offset);

#endif
