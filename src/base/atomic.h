/* The memory orders that Oriel's protocols name, over C11 atomics.  Shared words are touched only through C11 atomics or
 * these helpers, so that every barrier can be found by its name.  Any layer may use it. */
#ifndef ORIEL_BASE_ATOMIC_H
#define ORIEL_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

#define ORIEL_CACHE_LINE 64

static inline uint32_t oriel_load_acquire(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline uint32_t oriel_load_relaxed(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void oriel_store_release(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline void oriel_store_relaxed(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/* Whether loads happen in the program's order, and a thread's stores become visible in theirs, to all others at once. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ORIEL_STORES_IN_ORDER 1
#else
#define ORIEL_STORES_IN_ORDER 0
#endif

/* Asks for the line in order to write it, so that it comes once from who wrote it last.  gcc's own takes the instruction for one
 * that not every x86-64 has; where one has it not, it does nothing. */
static inline void oriel_prefetch_to_write(const volatile void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)at));
#else
    __builtin_prefetch((const void *)at, 1);
#endif
}

/* Orders every earlier store before every later load of this thread, as MPI_Win_flush and MPI_Win_sync must.  On
 * x86-64 a locked instruction on the own stack does it in two thirds of mfence's time, and beside the return address, which is
 * read next, in three quarters of the time that it takes on it. */
static inline void oriel_fence_full(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ volatile("lock; orl $0, -8(%%rsp)" ::: "memory", "cc");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* The same for a thread that has done a locked instruction, a seq_cst read-modify-write, since those stores: x86-64's is a fence
 * already, C11's is none. */
static inline void oriel_fence_after_locked(void)
{
#if ORIEL_STORES_IN_ORDER
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void oriel_cpu_relax(void)
{
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define oriel_likely(x)   __builtin_expect(!!(x), 1)
#define oriel_unlikely(x) __builtin_expect(!!(x), 0)

#endif
