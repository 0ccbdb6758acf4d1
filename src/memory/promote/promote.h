/* Promotion in place: private memory of this process becomes part of its memory file, at the same addresses, while its threads go
 * on reading and writing it; and becomes private again.  A page is promoted once, however many hold it, and stays where it is in
 * the file until the last has released it.  Window creation, attachment and their ends call, from any thread.
 *
 * In a forked child nothing is promoted and all writes are its own; what it reads is told in promote_fork.h. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTE_H
#define ORIEL_MEMORY_PROMOTE_PROMOTE_H

#include "base/status.h"
#include "memory/probe.h"
#include "memory/promote/promote_fork.h"
#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

/* Page ranges that lie apart from each other in the file at one time: each costs the process up to three mappings, of which it
 * may have 65,530.  What they leave behind when they end has a limit of its own (split_mappings.h). */
#define ORIEL_PROMOTED_RUNS_MAX 4096

struct oriel_promote_how {
    enum oriel_means means; /* ORIEL_MEANS_AUTO but in tests */
    bool huge_allowed;      /* transparent huge pages may become ordinary ones */
    bool
        pins_allowed; /* false but in tests: descriptors may be open that pin pages (pinned_pages.h), whose writes are lost */
    uint32_t runs_max;  /* 0: ORIEL_PROMOTED_RUNS_MAX */
    uint32_t scars_max; /* 0: ORIEL_SCARS_MAX */
};

/* One hold on promoted pages [start, end); nothing when they are equal. */
struct oriel_promoted {
    uintptr_t start;
    uintptr_t end;
    struct oriel_pending_slot bytes; /* as they were asked for */
    enum oriel_means means;          /* both as they were asked for: the hold ends by the same */
    bool pins_allowed;
};

/* Promotes the pages that hold [base, base + len_bytes) and takes a hold on them: outward to whole pages where each write is
 * caught (userfaultfd), the whole pages inside where threads are stopped.  how may be NULL.  ORIEL_E_OTHER or ORIEL_E_NO_MEM
 * with the reason when it cannot be done; nothing is changed then. */
enum oriel_status oriel_promote(uintptr_t base, uint64_t len_bytes,
                                const struct oriel_promote_how *how, struct oriel_promoted *out);

/* Ends a hold, which is nothing afterwards.  Pages that nobody else holds become private with their contents: no peer may
 * access them any more.  Where the program has put other memory in their place, that is left alone, and so many bytes are
 * returned; where threads cannot be stopped, or pages may have been pinned since, they stay shared until the next hold there
 * ends, which is reported. */
uint64_t oriel_promote_release(struct oriel_promoted *promoted);

/* Whether the byte at address is promoted; its offset in the memory file, and how many bytes from it on (at most len_bytes) are
 * promoted with offsets that go on from there.  When it is not, *held_bytes tells how many are not. */
bool oriel_promote_find(uintptr_t address, uint64_t len_bytes, uint64_t *offset,
                        uint64_t *held_bytes);

/* Promotes a page of its own, looks at it in the file and releases it. */
void oriel_probe_promotion(struct oriel_probe *out);

#endif
