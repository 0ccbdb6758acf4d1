/* Promotion in place: private memory of this process becomes part of its memory file, at the same
 * addresses, while its threads continue to read and write it. Later it becomes private again. A
 * page is promoted once, however many references it has. It stays at its offset in the file until
 * the last reference is released. Thread-safe.
 *
 * In a forked child nothing is promoted and all writes are private; promote_fork.h defines what it
 * reads. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTE_H
#define ORIEL_MEMORY_PROMOTE_PROMOTE_H

#include "base/status.h"
#include "memory/probe.h"
#include "memory/promote/promote_fork.h"
#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

/* The maximum number of separate promoted ranges. Each costs up to three of the process's 65,530
 * mappings. The boundaries that ended ranges leave have a limit of their own (split_mappings.h). */
#define ORIEL_PROMOTED_RANGES_MAX 4096

struct oriel_promote_options {
    enum oriel_barrier_method method; /* ORIEL_BARRIER_AUTO except in tests */
    bool huge_allowed;                /* transparent huge pages may become ordinary ones */
    /* false except in tests: promotes despite open descriptors that may pin pages
     * (pinned_pages.h); such writes are lost */
    bool pins_allowed;
    uint32_t ranges_max; /* 0: ORIEL_PROMOTED_RANGES_MAX */
    uint32_t splits_max; /* 0: ORIEL_SPLIT_MAPPINGS_MAX */
};

/* One reference on promoted pages [start, end); empty when start equals end. */
struct oriel_promoted {
    uintptr_t start;
    uintptr_t end;
    struct oriel_byte_range bytes; /* as requested */
    /* method and pins_allowed as requested: the release uses the same */
    enum oriel_barrier_method method;
    bool pins_allowed;
};

/* Promotes the pages that contain [base, base + len_bytes) and adds a reference to them. Where each
 * write is caught (userfaultfd), the range is extended to whole pages. Where threads are stopped,
 * it is reduced to whole pages. options may be NULL. Returns ORIEL_E_OTHER or ORIEL_E_NO_MEM
 * with the reason on failure; then nothing is changed. */
enum oriel_status oriel_promote(uintptr_t base, uint64_t len_bytes,
                                const struct oriel_promote_options *options,
                                struct oriel_promoted *out);

/* Releases a reference, which is empty afterwards. Pages without another reference become private
 * with their contents; no peer may access them any more. Other memory that the program has mapped
 * in their place is left alone; its length in bytes is returned. Pages stay shared if threads
 * cannot be stopped or the pages may have been pinned since. That is reported, and the next release
 * there tries again. */
uint64_t oriel_promote_release(struct oriel_promoted *promoted);

/* Whether the byte at address is promoted. If so, stores its offset in the memory file.
 * *extent_bytes is then the number of bytes from address on (at most len_bytes) that are promoted
 * at consecutive offsets. If not, *extent_bytes is the number of bytes that are not promoted. */
bool oriel_promote_find(uintptr_t address, uint64_t len_bytes, uint64_t *offset,
                        uint64_t *extent_bytes);

/* Promotes a page of its own, checks it in the file, and releases it. */
void oriel_probe_promotion(struct oriel_probe *out);

#endif
