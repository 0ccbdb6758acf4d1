/* System calls that stopping a thread has cut short.  The kernel restarts most by itself (SA_RESTART); waits with a time limit
 * and some others would return EINTR, which a program that sends no signals need not expect.  stop_threads.c and write_barrier.c call. */
#ifndef ORIEL_MEMORY_PROMOTE_SYSCALL_RESTART_H
#define ORIEL_MEMORY_PROMOTE_SYSCALL_RESTART_H

#include <stdbool.h>
#include <stdint.h>

/* A call in which a thread was blocked. */
struct oriel_call {
    int64_t number; /* -1: none that is known */
    uint64_t arguments[6];
    uint64_t stack; /* the thread's stack pointer */
    uint64_t next;  /* the instruction behind the call */
};

/* Before anything below is called, and before any thread is stopped: it asks the loader. */
void oriel_interrupted_prepare(void);

/* The call in which a thread of this process is blocked, now.  Async-signal-safe. */
void oriel_interrupted_read(int32_t tid, struct oriel_call *out);

/* Whether it reads descriptors, or waits for what they bring. */
bool oriel_interrupted_is_reading(const struct oriel_call *call);

/* In the handler of the signal that stopped the calling thread; context is the handler's third argument, call what was read
 * before the signal was sent.  If it is this call that ended with EINTR, it goes on after the handler: a wait with a time limit
 * ends when the limit is over, or later by what had passed before the thread was first stopped. */
void oriel_interrupted_resume(const struct oriel_call *call, void *context);

#endif
