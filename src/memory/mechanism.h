/* Which mechanism reaches a range of this process's memory, and whether a peer's can be reached.  Creation asks once per
 * window; the answer is the same for all origins. */
#ifndef ORIEL_MEMORY_MECHANISM_H
#define ORIEL_MEMORY_MECHANISM_H

#include "memory/peer.h"

/* Whether [base, base + len_bytes) lies in a memory file that this process has mapped: the file's identity and the offset
 * in it then. */
bool oriel_reach_file(const void *base, uint64_t len_bytes, struct oriel_identity *file,
                      uint64_t *offset);

/* Whether the kernel lets this process copy to and from the peer: one real read, remembered.  ORIEL_E_OTHER with the
 * reason when not. */
enum oriel_status oriel_reach_cma(struct oriel_peer *peer);

#endif
