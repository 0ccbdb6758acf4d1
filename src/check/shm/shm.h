/* Memory that all checked processes of one node share. The node's first process creates it as a
 * sparse memory file of a large size. The other processes map it through /proc/<pid>/fd/<n>. Each
 * process has it at another address, so everything in it refers to everything else by offset.
 * Memory is used page by page as it is touched. The file disappears with the last process.
 *
 * A process that dies while it has a lock leaves the protected data usable. Another process takes
 * over the lock, and all changes are made in an order that readers survive.
 *
 * This header does not use mpi.h: checker_start.c exchanges the path. */
#ifndef ORIEL_CHECK_SHM_SHM_H
#define ORIEL_CHECK_SHM_SHM_H

#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIEL_SHM_MOST_BYTES (UINT64_C(1) << 38)

typedef uint64_t oriel_shm_offset; /* offset into the shared memory; 0: none */

/* Creates the shared memory of a node, for a MPI_COMM_WORLD of world_size ranks. Writes the path
 * for the other processes to `path`, which has room for path_bytes, at least 64. */
enum oriel_status oriel_shm_make(int world_size, char *path, size_t path_bytes);

/* The same with at most size_bytes, for tests of a small one. */
enum oriel_status oriel_shm_make_sized(int world_size, uint64_t size_bytes, char *path,
                                       size_t path_bytes);

/* Maps the shared memory that another process of the node has created. */
enum oriel_status oriel_shm_join(const char *path);

/* Unmaps it. */
void oriel_shm_leave(void);

int oriel_shm_world_size(void);

/* Whether this process may use the shared memory: it has created or joined it. False in a forked
 * child, which may still read at offsets, but allocates nothing. */
bool oriel_shm_is_open(void);

/* A number that changes each time this process maps a shared memory. Cached offsets are valid as
 * long as it stays the same. */
uint64_t oriel_shm_turn(void);

/* How many allocations failed because the shared memory was full, in all processes. */
uint64_t oriel_shm_refused(void);

/* The address of an offset; NULL for 0. Valid as long as the memory is mapped. */
extern char *oriel_shm_base __attribute__((visibility("hidden")));
static inline void *oriel_shm_at(oriel_shm_offset place)
{
    return place == 0 ? NULL : oriel_shm_base + place;
}
oriel_shm_offset oriel_shm_place(const void *at);

/* Returns zeroed memory, aligned to 16 bytes, and to a cache line if the size is a multiple of one.
 * 0: the shared memory is full. The first such failure is reported, and all are counted: the
 * checker then misses accesses. */
oriel_shm_offset oriel_shm_allocate(size_t len_bytes);
void oriel_shm_free(oriel_shm_offset place, size_t len_bytes);

/* How many of the locks below this thread has or waits for. If it is not 0 when a signal handler
 * begins, the handler has interrupted a step under a lock, or right beside one. */
extern _Thread_local unsigned oriel_shm_locks __attribute__((visibility("hidden")));
static inline void oriel_shm_lock_begin(void)
{
    oriel_shm_locks++;
    atomic_signal_fence(memory_order_seq_cst);
}
static inline void oriel_shm_lock_end(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    oriel_shm_locks--;
}

/* A lock for the threads of this process. */
static inline void oriel_shm_mutex_lock(pthread_mutex_t *mutex)
{
    oriel_shm_lock_begin();
    pthread_mutex_lock(mutex);
}
static inline void oriel_shm_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    oriel_shm_lock_end();
}

/* A lock in the shared memory, for any thread of any process. oriel_shm_lock_init makes zeroed
 * memory a free lock. Not recursive. The next thread takes it over from a dead holder. */
struct oriel_shm_lock {
    uint64_t words[8];
};
void oriel_shm_lock_init(struct oriel_shm_lock *lock);
void oriel_shm_lock(struct oriel_shm_lock *lock);
void oriel_shm_unlock(struct oriel_shm_lock *lock);

/* A lock in one word, 0 when free, for critical sections of some tens of nanoseconds. A waiting
 * thread polls, and takes the lock over from a process that has died. Threads of one process
 * exclude each other, too. */
void oriel_shm_word_wait(_Atomic uint64_t *word, uint64_t own);
extern uint64_t oriel_shm_own_word __attribute__((visibility("hidden")));

static inline void oriel_shm_word_lock(_Atomic uint64_t *word)
{
    uint64_t found = 0;
    uint64_t own = oriel_shm_own_word;
    oriel_shm_lock_begin();
    if (!atomic_compare_exchange_strong_explicit(word, &found, own, memory_order_acquire,
                                                 memory_order_relaxed))
        oriel_shm_word_wait(word, own);
}

static inline void oriel_shm_word_unlock(_Atomic uint64_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
    oriel_shm_lock_end();
}

/* Finds the block of a key, the same for all processes. The first call creates it: len_bytes
 * zeroed, then init(at) under the table's lock (init may be NULL). 0: the shared memory is full.
 * For the words of keys see order.h and checked_window.c. */
struct oriel_key {
    uint64_t words[4];
};
oriel_shm_offset oriel_shm_find(const struct oriel_key *key, size_t len_bytes,
                                void (*init)(void *at));

/* Calls work on the block of a key with the key's lock held, so no process frees it meanwhile. A
 * missing block is created, unless len_bytes is 0. work returns whether the block stays. It may
 * allocate and free, but may not use another key. False: there was no block, or the shared memory
 * is full. */
typedef bool oriel_shm_work_fn(void *at, bool made, void *closure);
bool oriel_shm_work(const struct oriel_key *key, size_t len_bytes, oriel_shm_work_fn *work,
                    void *closure);

/* Frees the block of a key, which no process uses any more. */
void oriel_shm_drop(const struct oriel_key *key);

#endif
