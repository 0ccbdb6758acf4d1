/* System calls that were interrupted by stopping a thread. The kernel restarts most of them
 * (SA_RESTART). Waits with a time limit and some others would return EINTR, which a program that
 * sends no signals need not expect. */
#ifndef ORIEL_MEMORY_PROMOTE_SYSCALL_RESTART_H
#define ORIEL_MEMORY_PROMOTE_SYSCALL_RESTART_H

#include <stdbool.h>
#include <stdint.h>

/* A call in which a thread was blocked. */
struct oriel_syscall {
    int64_t number; /* -1: unknown or none */
    uint64_t arguments[6];
    uint64_t stack; /* the thread's stack pointer */
    uint64_t next;  /* address of the instruction after the call */
};

/* Call this before all other functions below, and before any thread is stopped: it calls the
 * dynamic loader. */
void oriel_syscall_restart_prepare(void);

/* The call in which a thread of this process is blocked now. Async-signal-safe. */
void oriel_syscall_restart_read_call(int32_t tid, struct oriel_syscall *out);

/* Whether the call reads descriptors, or waits for their input. */
bool oriel_syscall_restart_waits_for_input(const struct oriel_syscall *call);

/* For the handler of the signal that stopped the calling thread. context is the handler's third
 * argument; call was read before the signal was sent. If this call ended with EINTR, it continues
 * after the handler. A wait with a time limit ends when the limit expires, or later by the time
 * that had passed before the thread was first stopped. */
void oriel_syscall_restart_resume(const struct oriel_syscall *call, void *context);

#endif
