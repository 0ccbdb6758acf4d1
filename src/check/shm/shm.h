/* Memory that all checked processes of one machine share.  The machine's first process makes it as a memory file of a large,
 * sparse size; the others map it by /proc/<pid>/fd/<n>, each at an address of its own, so that everything in it refers to
 * everything else by place.  Grows by itself; goes with the last process.  A process that dies while it holds a lock leaves what
 * it guards usable: its lock is taken over, and changes are made in an order that a reader survives.
 * No mpi.h here: start.c exchanges what is needed.  order, history, waits and finding use it. */
#ifndef ORIEL_CHECK_SHM_SHM_H
#define ORIEL_CHECK_SHM_SHM_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORIEL_SHM_MOST_BYTES (UINT64_C(1) << 38)

typedef uint64_t oriel_shm_offset; /* offset into the board; 0: nowhere */

/* Makes the machine's board for so many ranks of MPI_COMM_WORLD; path (PATH bytes at least 64) is for the others. */
enum oriel_status oriel_shm_make(int world_size, char *path, size_t path_bytes);

/* The same of so many bytes at most, for tests of a small one. */
enum oriel_status oriel_shm_make_sized(int world_size, uint64_t size_bytes, char *path,
                                       size_t path_bytes);

/* Maps the board that another process of the machine has made. */
enum oriel_status oriel_shm_join(const char *path);

/* Unmaps it. */
void oriel_shm_leave(void);

int oriel_shm_world_size(void);

/* Whether this process has a board of its own to work on: not before it has made or joined one, nor in a child that it has
 * forked, which may still look at places but allocates nothing. */
bool oriel_shm_is_open(void);

/* Another number each time that this process has mapped a board: places that it remembers are good as long as it stays. */
uint64_t oriel_shm_turn(void);

/* How often a board that was full has answered 0, in all processes. */
uint64_t oriel_shm_refused(void);

/* The address of a place, NULL of 0.  Stays as long as the board is mapped. */
extern char *oriel_shm_base __attribute__((visibility("hidden")));
static inline void *oriel_shm_at(oriel_shm_offset place)
{
    return place == 0 ? NULL : oriel_shm_base + place;
}
oriel_shm_offset oriel_shm_place(const void *at);

/* Zeroed, aligned to 16, and to a line where the size is a multiple of one; 0 when the board is full, which is told once and
 * counted: the checker then misses, and says so. */
oriel_shm_offset oriel_shm_allocate(size_t len_bytes);
void oriel_shm_free(oriel_shm_offset place, size_t len_bytes);

/* A lock in the board: any thread of any process.  Zeroed memory is a free one after oriel_shm_lock_init.  Not to be taken
 * twice by one thread; the next one takes it over from a dead holder. */
struct oriel_shm_lock {
    uint64_t words[8];
};
void oriel_shm_lock_init(struct oriel_shm_lock *lock);
void oriel_shm_lock(struct oriel_shm_lock *lock);
void oriel_shm_unlock(struct oriel_shm_lock *lock);

/* A lock in one word, 0 when free, for what is done within some tens of nanoseconds: who waits looks again and again, and takes
 * it over from a process that has died.  Threads of one process exclude each other, too. */
void oriel_shm_word_wait(_Atomic uint64_t *word, uint64_t own);
extern uint64_t oriel_shm_own_word __attribute__((visibility("hidden")));

static inline void oriel_shm_word_lock(_Atomic uint64_t *word)
{
    uint64_t found = 0;
    uint64_t own = oriel_shm_own_word;
    if (!atomic_compare_exchange_strong_explicit(word, &found, own, memory_order_acquire,
                                                 memory_order_relaxed))
        oriel_shm_word_wait(word, own);
}

static inline void oriel_shm_word_unlock(_Atomic uint64_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

/* Places that all processes find by a key, made when first asked for: len_bytes zeroed, then init(at) under the table's lock
 * (may be NULL).  0 when the board is full.  Keys: the words say what, see order.h and windows.c. */
struct oriel_key {
    uint64_t words[4];
};
oriel_shm_offset oriel_shm_find(const struct oriel_key *key, size_t len_bytes,
                                void (*init)(void *at));

/* Works on what stands under the key with its lock held, so that nobody drops it meanwhile: made when it is not there, unless
 * len_bytes is 0.  work answers whether it stays; it may allocate and free, and asks for no other key.  False when nothing was
 * there, or the board is full. */
typedef bool oriel_shm_work_fn(void *at, bool made, void *closure);
bool oriel_shm_work(const struct oriel_key *key, size_t len_bytes, oriel_shm_work_fn *work,
                    void *closure);

/* Frees what stands under the key, which nobody uses any more. */
void oriel_shm_drop(const struct oriel_key *key);

#endif
