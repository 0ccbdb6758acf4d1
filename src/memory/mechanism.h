/* The mechanisms that reach memory of a node's processes: a mapped memory file, or CMA. The results
 * are the same for all origins of a window. */
#ifndef ORIEL_MEMORY_MECHANISM_H
#define ORIEL_MEMORY_MECHANISM_H

#include "memory/peer.h"

/* Whether [base, base + len_bytes) is inside a memory file that this process has mapped. If so,
 * stores the file's identity and the offset in the file. */
bool oriel_mechanism_find_file(const void *base, uint64_t len_bytes, struct oriel_identity *file,
                               uint64_t *offset);

/* Whether the kernel lets this process copy to and from the peer: one real read, whose success is
 * cached. Returns ORIEL_E_OTHER with the reason if not. */
enum oriel_status oriel_mechanism_probe_cma(struct oriel_peer *peer);

#endif
