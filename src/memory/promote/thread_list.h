/* The other threads of this process, as /proc lists them. Threads may be stopped meanwhile, so this
 * code allocates nothing and acquires no lock. promote.c's mutex protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_THREAD_LIST_H
#define ORIEL_MEMORY_PROMOTE_THREAD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a small file of a thread. Returns false when it is missing or empty. */
bool oriel_thread_list_read(int32_t tid, const char *name, char *text, size_t text_bytes);

/* Reads a thread's blocked signals. Returns false on any error. */
bool oriel_thread_list_read_blocked(int32_t tid, uint64_t *blocked);

/* Whether a thread is gone, or runs no code of the program any more: the initial thread may end
 * before the process. */
bool oriel_thread_list_has_ended(int32_t tid);

/* Whether a thread is running, or runnable without a processor. */
bool oriel_thread_list_is_running(int32_t tid);

/* A thread's processor time; 0 if the kernel does not report it. */
uint64_t oriel_thread_list_cpu_ns(int32_t tid);

/* Calls visit for every other thread that existed at one point in time, until it returns false.
 * Then it returns false with *error 0, or with an errno when the threads cannot be listed (EMFILE:
 * over 16,384; EAGAIN: threads end faster than they are listed). Skips threads that write to memory
 * for others (transport/remote_writers.h); the caller blocks those separately. */
bool oriel_thread_list_visit(bool (*visit)(int32_t tid, void *context), void *context, int *error);

#endif
