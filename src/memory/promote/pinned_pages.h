/* Whether a writer outside this process's threads may write to pinned pages of this process: a
 * device, or the kernel after the requesting call has returned. When pages move, such a writer
 * continues to write to the old pages (promote.h). Everything that can pin has a descriptor; an
 * allow list names the descriptors that cannot. promote.c's mutex protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_PINNED_PAGES_H
#define ORIEL_MEMORY_PROMOTE_PINNED_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false when no descriptor of this process can pin its pages. Otherwise stores the cause as
 * a clause: "descriptor 7 (anon_inode:[io_uring]) may have pinned pages". */
bool oriel_pinned_pages_possible(char *reason, size_t reason_bytes);

#endif
