/* Whether something outside of this process's threads may write into pages of it that it has pinned: a device, or the kernel
 * itself after the call that asked for it.  Pages that move leave such a writer behind with the old ones (promote.h).  What can
 * pin has a descriptor; an allow list says which descriptors cannot.  promote.c calls, under its mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_PINNED_PAGES_H
#define ORIEL_MEMORY_PROMOTE_PINNED_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* False when no descriptor of this process can pin its pages.  Else what can, for a sentence: "descriptor 7
 * (anon_inode:[io_uring]) may have pinned pages". */
bool oriel_pins_possible(char *reason, size_t reason_bytes);

#endif
