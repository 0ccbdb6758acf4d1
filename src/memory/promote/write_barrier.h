/* A write barrier keeps every thread of this process from changing a range of pages while it is
 * copied and its mapping is replaced. Waiting threads continue with the new mapping. Two methods:
 *   - uffd.c makes each writer of the range wait at its write, including the kernel (userfaultfd)
 *   - stop_threads.c stops all other threads in a signal handler
 *
 * Between begin and end the calling thread receives no signal. It may change only its own stack and
 * the range's new mapping: no allocation, no stdio, no hooks (libc's mmap has some). A stopped
 * thread may own their locks, and the heap may be what is protected. There is one write barrier at
 * a time per process, under promote.c's mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_WRITE_BARRIER_H
#define ORIEL_MEMORY_PROMOTE_WRITE_BARRIER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum oriel_barrier_method { ORIEL_BARRIER_AUTO, ORIEL_BARRIER_UFFD, ORIEL_BARRIER_STOP_THREADS };

struct oriel_write_barrier {
    enum oriel_barrier_method method;
    int fd;                /* uffd: the userfaultfd */
    int signal;            /* stop_threads: the signal in use */
    uint64_t mask;         /* the calling thread's blocked signals before begin */
    uintptr_t moved_start; /* uffd: bounds of all replaced ranges; empty when equal */
    uintptr_t moved_end;
    char reason[200]; /* why the last begin failed */
};

/* AUTO uses userfaultfd where the kernel grants the full mode, otherwise it stops threads. Returns
 * ORIEL_E_OTHER with the reason. */
enum oriel_status oriel_write_barrier_open(enum oriel_barrier_method method,
                                           struct oriel_write_barrier *out);
void oriel_write_barrier_close(struct oriel_write_barrier *barrier);

struct oriel_syscall;

/* Makes threads that are blocked in certain calls restart them; best effort. Use between two write
 * barriers only. */
void oriel_write_barrier_restart_calls(bool (*is_wanted)(const struct oriel_syscall *call,
                                                         const void *context),
                                       const void *context);

/* private_pages: pages that parked_mapping.h moves away: then no thread reads the range either.
 * Otherwise the pages are the memory file's, and only writes are blocked. Returns false with
 * barrier->reason; then no barrier is active. */
bool oriel_write_barrier_begin(struct oriel_write_barrier *barrier, uintptr_t start,
                               uint64_t len_bytes, bool private_pages);

/* replaced: the range has its new mapping. Otherwise the old one becomes writable again. */
void oriel_write_barrier_end(struct oriel_write_barrier *barrier, uintptr_t start,
                             uint64_t len_bytes, bool replaced);

/* Copies pages to a private range that is protected by the barrier and empty (parked_mapping.h). */
void oriel_write_barrier_fill(struct oriel_write_barrier *barrier, uintptr_t start, uintptr_t from,
                              uint64_t len_bytes);

/* Whether another userfaultfd watches the range. Also false where this process cannot create
 * one. */
bool oriel_write_barrier_is_watched(uintptr_t start, uint64_t len_bytes);

/* Whether [start, end) contains variables that change while a barrier is active. */
bool oriel_write_barrier_owns(uintptr_t start, uintptr_t end);

/* --- the two methods, only for write_barrier.c --- */
bool oriel_uffd_open(struct oriel_write_barrier *barrier);
bool oriel_uffd_begin(struct oriel_write_barrier *barrier, uintptr_t start, uint64_t len_bytes,
                      bool private_pages);
void oriel_uffd_end(struct oriel_write_barrier *barrier, uintptr_t start, uint64_t len_bytes,
                    bool replaced);
void oriel_uffd_fill(struct oriel_write_barrier *barrier, uintptr_t start, uintptr_t from,
                     uint64_t len_bytes);
bool oriel_uffd_is_watched(uintptr_t start, uint64_t len_bytes);
bool oriel_stop_threads_begin(struct oriel_write_barrier *barrier, uintptr_t start,
                              uint64_t len_bytes);
void oriel_stop_threads_end(struct oriel_write_barrier *barrier);
void oriel_stop_threads_interrupt(struct oriel_write_barrier *barrier,
                                  bool (*is_wanted)(const struct oriel_syscall *call,
                                                    const void *context),
                                  const void *context);
bool oriel_stop_threads_owns(uintptr_t start, uintptr_t end);

#endif
