/* Keeps every thread of this process from changing a range of pages for as long as it is copied: its mapping is replaced
 * meanwhile, and whoever waited goes on with the new one.  Two means: PROTECT lets each writer of the range wait at its write,
 * the kernel included (userfaultfd); QUIESCE stops all other threads in a signal handler.
 *
 * Between begin and end the calling thread takes no signal, and may change nothing but its own stack and the range's new
 * mapping: no allocation, no stdio, no hook of anybody (libc's mmap has some), since a stopped thread may hold their locks and
 * the heap may be what is protected.  One freeze at a time in the process: promote.c calls, under its mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_WRITE_BARRIER_H
#define ORIEL_MEMORY_PROMOTE_WRITE_BARRIER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum oriel_means { ORIEL_MEANS_AUTO, ORIEL_MEANS_PROTECT, ORIEL_MEANS_QUIESCE };

struct oriel_write_barrier {
    enum oriel_means means;
    int fd;        /* PROTECT: the userfaultfd */
    int signal;    /* QUIESCE: what threads are stopped with */
    uint64_t mask; /* the calling thread's blocked signals before begin */
    uintptr_t
        moved_start; /* PROTECT: around all that has been replaced; nothing when they are equal */
    uintptr_t moved_end;
    char reason[200]; /* why the last begin failed */
};

/* AUTO takes PROTECT where the kernel grants it in full, else QUIESCE.  ORIEL_E_OTHER with the reason. */
enum oriel_status oriel_write_barrier_open(enum oriel_means means, struct oriel_write_barrier *out);
void oriel_write_barrier_close(struct oriel_write_barrier *freeze);

struct oriel_call;

/* Lets threads that are blocked in certain calls begin them anew; best effort.  For futex_waiters.c alone, between two freezes. */
void oriel_write_barrier_nudge(bool (*is_wanted)(const struct oriel_call *call,
                                                 const void *context),
                               const void *context);

/* private_pages: pages that parked_mapping.h takes away, so that nobody reads the range either; else the memory file's, which nobody may
 * write meanwhile.  False with freeze->reason; nothing is frozen then. */
bool oriel_write_barrier_begin(struct oriel_write_barrier *freeze, uintptr_t start,
                               uint64_t len_bytes, bool private_pages);

/* replaced: the range has its new mapping; else the old one becomes writable again. */
void oriel_write_barrier_end(struct oriel_write_barrier *freeze, uintptr_t start,
                             uint64_t len_bytes, bool replaced);

/* Copies pages into a private range that is frozen and empty (parked_mapping.h). */
void oriel_write_barrier_fill(struct oriel_write_barrier *freeze, uintptr_t start, uintptr_t from,
                              uint64_t len_bytes);

/* Whether another userfaultfd watches the range; false also where this process can have none. */
bool oriel_write_barrier_is_watched(uintptr_t start, uint64_t len_bytes);

/* Whether [start, end) holds variables that change during a freeze. */
bool oriel_write_barrier_uses(uintptr_t start, uintptr_t end);

/* --- the means, for write_barrier.c alone --- */
bool oriel_protect_open(struct oriel_write_barrier *freeze);
bool oriel_protect_begin(struct oriel_write_barrier *freeze, uintptr_t start, uint64_t len_bytes,
                         bool private_pages);
void oriel_protect_end(struct oriel_write_barrier *freeze, uintptr_t start, uint64_t len_bytes,
                       bool replaced);
void oriel_protect_fill(struct oriel_write_barrier *freeze, uintptr_t start, uintptr_t from,
                        uint64_t len_bytes);
bool oriel_protect_is_watched(uintptr_t start, uint64_t len_bytes);
bool oriel_quiesce_begin(struct oriel_write_barrier *freeze, uintptr_t start, uint64_t len_bytes);
void oriel_quiesce_end(struct oriel_write_barrier *freeze);
void oriel_quiesce_nudge(struct oriel_write_barrier *freeze,
                         bool (*is_wanted)(const struct oriel_call *call, const void *context),
                         const void *context);
bool oriel_quiesce_uses(uintptr_t start, uintptr_t end);

#endif
