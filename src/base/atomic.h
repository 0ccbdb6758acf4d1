/* The memory orders that Oriel's protocols name, over C11 atomics, and hints to the processor.
 * Shared words are accessed only through C11 atomics or these helpers, so a search for a helper's
 * name finds its uses. */
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

/* Whether the word has any of these bits (a constant); a relaxed load. On x86-64 the comparison
 * includes the load, which saves an instruction where each counts. */
static inline __attribute__((always_inline)) int oriel_load_has(const _Atomic uint32_t *word,
                                                                uint32_t bits)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    int has;
    __asm__ volatile("testl %2, %1" : "=@ccnz"(has) : "m"(*word), "ir"(bits));
    return has;
#else
    return (atomic_load_explicit(word, memory_order_relaxed) & bits) != 0;
#endif
}

static inline void oriel_store_release(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline void oriel_store_relaxed(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/* 1 if loads execute in program order and a thread's stores become visible in program order, to all
 * other threads at the same time. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ORIEL_STORES_IN_ORDER 1
#else
#define ORIEL_STORES_IN_ORDER 0
#endif

/* Requests the cache line for writing, so it moves only once from its last writer. gcc's builtin
 * treats the instruction as optional on x86-64; a processor without it executes a no-op. */
static inline void oriel_prefetch_to_write(const volatile void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)at));
#else
    __builtin_prefetch((const void *)at, 1);
#endif
}

/* Orders every earlier store before every later load of this thread, as MPI_Win_flush and
 * MPI_Win_sync require. On x86-64 a locked instruction on the thread's own stack takes two thirds
 * of the time of mfence. It avoids the return address, which the return reads next. The address
 * below it takes three quarters of the time. */
static inline void oriel_fence_full(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ volatile("lock; orl $0, -8(%%rsp)" ::: "memory", "cc");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* The same fence for a thread that has executed a locked instruction (a seq_cst read-modify-write)
 * since those stores. On x86-64 that instruction is already a fence; in C11 it is not. */
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
