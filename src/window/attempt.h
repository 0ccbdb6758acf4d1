/* A creation on its way, between the files that make windows: create.c has the protocol, prepare.c its first step,
 * contribute.c its third.  Nobody else includes this. */
#ifndef ORIEL_WINDOW_ATTEMPT_H
#define ORIEL_WINDOW_ATTEMPT_H

#include "window/create.h"
#include "window/objects.h"

enum { RECORD_VERSION = 3 };

/* Of a rank's agent. */
enum readiness {
    AGENT_READY,   /* it runs, or nobody will need it */
    AGENT_TO_OPEN,
    AGENT_REFUSED, /* ORIEL_AGENT=never */
};

/* What each rank tells the others. */
struct record {
    struct oriel_identity process;
    struct oriel_identity memory; /* of the file that holds the window's memory, ORIEL_BY_ARENA only */
    uint32_t version;
    uint32_t status;              /* enum oriel_status of the preparation */
    uint32_t wants_host;
    uint32_t noncontig;           /* MPI_Win_allocate_shared: every rank its own memory */
    uint32_t agent;               /* enum readiness */
    int32_t node;                 /* of the memory that is near the rank; -1: unknown */
    uint64_t alignment;
    uint64_t common_offset;       /* rank 0's */
    struct oriel_target target;
};

/* Bits of the agreement. */
enum {
    AGREE_REACHED = 1, /* all files are open */
    AGREE_CMA = 2,     /* all targets that need CMA grant it */
    AGREE_MEMORY = 4,  /* memory and handles suffice */
    AGREE_ALL = 7,
};

enum { FEW = 32 };

struct attempt {
    const struct oriel_creation *creation;
    struct oriel_window *window;
    struct record own;
    struct record *records;
    bool has_carrier;
    /* a rank without memory must still tell the others */
    struct oriel_window spare;
    struct oriel_window_host spare_host;
    struct record few[FEW];
};

/* Step 1: the own record and what it promises.  Its status is for the record. */
enum oriel_status oriel_attempt_prepare(struct attempt *attempt);

/* Step 3: the bits that this rank can give. */
uint32_t oriel_attempt_contribute(struct attempt *attempt);

/* MPI_Win_allocate_shared: whether all memory lies in one block of rank 0's.  Every rank must have asked for memory of its own;
 * a hint that only some gave is none. */
bool oriel_attempt_is_contiguous(const struct attempt *attempt);

/* Allocates in the memory file what a window keeps in *kept until oriel_attempt_give_back. */
enum oriel_status oriel_attempt_alloc(uint64_t len_bytes, uint64_t align_bytes, int64_t *kept, uint64_t *offset);

/* Nothing for -1. */
void oriel_attempt_give_back(int64_t offset);

#endif
