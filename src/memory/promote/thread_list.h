/* The other threads of this process, as /proc shows them.  Raw system calls and the own stack only: threads may be stopped
 * meanwhile.  stop_threads.c, futex_waiters.c and syscall_restart.c call, under promote.c's mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_THREAD_LIST_H
#define ORIEL_MEMORY_PROMOTE_THREAD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A small file of a thread; false when there is none or it is empty. */
bool oriel_threads_read(int32_t tid, const char *name, char *text, size_t text_bytes);

/* A thread's blocked signals; false when they cannot be read, for whatever reason. */
bool oriel_threads_read_blocked(int32_t tid, uint64_t *blocked);

/* Whether a thread is no more, or runs nothing of the program any more: an initial thread may have ended before the process. */
bool oriel_threads_has_ended(int32_t tid);

/* Whether a thread computes, or would if it got a processor. */
bool oriel_threads_is_running(int32_t tid);

/* For how long a thread has had processors; 0 where the kernel does not say. */
uint64_t oriel_threads_ran_ns(int32_t tid);

/* Calls visit for every other thread that there was at one moment, until it returns false: false then with *error 0, or with an
 * errno when they cannot be listed (EMFILE: over 16,384; EAGAIN: they end faster than they are listed).  Left out are threads
 * that write into memory for others (transport/remote_writers.h), which whoever moves pages keeps out. */
bool oriel_threads_visit(bool (*visit)(int32_t tid, void *context), void *context, int *error);

#endif
