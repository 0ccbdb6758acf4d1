/* The processes of this node that share windows with this process, including itself: their memory
 * files, each mapped once and whole. An opened peer stays mapped until the process ends. */
#ifndef ORIEL_MEMORY_PEER_H
#define ORIEL_MEMORY_PEER_H

#include "base/identity.h"
#include "base/status.h"
#include "memory/core_dump.h"
#include "memory/file.h"

struct oriel_peer {
    struct oriel_identity identity;
    char *base; /* this process's mapping of the peer's memory file */
    uint64_t reserve_bytes;
    uint64_t owner_address; /* the peer's own address of base */
    /* which pieces go into core files of this process; unused for the own file */
    struct oriel_core_dump dumps;
    _Atomic uint32_t cma; /* ORIEL_CMA_GRANTED after a probe has succeeded */
};

enum { ORIEL_CMA_UNKNOWN, ORIEL_CMA_GRANTED };

/* Opens the file of the process with this identity, or finds it open. Returns ORIEL_E_OTHER with
 * the reason when the process is not on this node or its file cannot be opened. The caller must
 * then not share memory with it. */
enum oriel_status oriel_peer_open(const struct oriel_identity *identity, struct oriel_peer **out);

/* The peer whose mapped file contains [address, address + len_bytes), and the offset in that file;
 * NULL if there is none. */
struct oriel_peer *oriel_peer_find(const void *address, uint64_t len_bytes, uint64_t *offset);

/* Includes or excludes this memory of a peer's file in core files of this process. Memory of the
 * own file is always included. */
void oriel_peer_set_core_dump(const void *address, uint64_t len_bytes, bool included);

/* Calls visit for each opened peer. visit must not open peers. */
void oriel_peer_visit(void (*visit)(void *peer, void *context), void *context);

/* Whether waiting for the peer can succeed: true while its process is alive, and after it has
 * finalised normally. */
bool oriel_peer_alive(const struct oriel_peer *peer);

#endif
