/* The processes of this machine that this one shares windows with, itself included: their memory files, mapped whole and
 * once.  A peer, once opened, stays mapped until finalisation.  Creation opens; sync and ops read. */
#ifndef ORIEL_MEMORY_PEER_H
#define ORIEL_MEMORY_PEER_H

#include "base/identity.h"
#include "base/status.h"
#include "memory/core_dump.h"
#include "memory/file.h"

struct oriel_peer {
    struct oriel_identity identity;
    char *base; /* of its memory file in this process */
    uint64_t reserve_bytes;
    uint64_t owner_address; /* where the peer itself has base mapped */
    struct oriel_core_dump
        dumps; /* of this process: nothing but what is asked for; unused for the own file */
    _Atomic uint32_t cma; /* ORIEL_CMA_GRANTED once a probe has succeeded */
};

enum { ORIEL_CMA_UNKNOWN, ORIEL_CMA_GRANTED };

/* Opens the file of the process that has this identity, or finds it open.  ORIEL_E_OTHER with the reason when it is not a
 * process of this machine or its file cannot be opened: the caller must then not share memory with it. */
enum oriel_status oriel_peer_open(const struct oriel_identity *who, struct oriel_peer **out);

/* The peer whose mapped file holds [address, address + len_bytes), and the offset in it; NULL when none does. */
struct oriel_peer *oriel_peer_find(const void *address, uint64_t len_bytes, uint64_t *offset);

/* Whether core files of this process have this memory of a peer's file; the own file's memory is in them anyway. */
void oriel_peer_dump(const void *address, uint64_t len_bytes, bool included);

/* Calls visit for each peer that has been opened; visit must not open others. */
void oriel_peer_visit(void (*visit)(void *peer, void *context), void *context);

/* Whether the peer can still be waited for: true while its process lives and after it left in good order. */
bool oriel_peer_alive(const struct oriel_peer *peer);

#endif
