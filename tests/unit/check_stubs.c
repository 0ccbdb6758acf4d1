/* Replacements declared in check_stubs.h. Offsets are distances in one large mapping, allocated
 * from the bottom. Freed memory is filled with ones and never reused. Not thread-safe. */
#include "check_stubs.h"

#include "check/report/finding.h"
#include "check/order/order.h"
#include "check/order/thread_order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SHM_BYTES = 1 << 30 };

oriel_tick clocks[RANKS][RANKS];
int rank_now;
uint64_t counted;
uint64_t shm_left = SHM_BYTES;

char *oriel_shm_base;
static oriel_shm_offset used = 64;
static oriel_shm_offset snapshots[RANKS];

void clocks_start(void)
{
    memset(clocks, 0, sizeof clocks);
    for (int rank = 0; rank < RANKS; rank++) {
        clocks[rank][rank] = 1;
        snapshots[rank] = oriel_shm_allocate(sizeof clocks[rank]);
    }
    rank_now = 0;
}

void message(int from, int to)
{
    for (int i = 0; i < RANKS; i++)
        if (clocks[to][i] < clocks[from][i])
            clocks[to][i] = clocks[from][i];
    clocks[from][from]++;
}

oriel_shm_offset snapshot_of(int rank)
{
    memcpy(oriel_shm_at(snapshots[rank]), clocks[rank], sizeof clocks[rank]);
    return snapshots[rank];
}

int oriel_shm_world_size(void)
{
    return RANKS;
}

oriel_shm_offset oriel_shm_place(const void *at)
{
    return at == NULL ? 0 : (oriel_shm_offset)((const char *)at - oriel_shm_base);
}

/* Of one key. */
oriel_shm_offset oriel_shm_find(const struct oriel_key *key, size_t len_bytes,
                                void (*init)(void *at))
{
    static oriel_shm_offset offset;
    (void)key;
    if (offset == 0) {
        offset = oriel_shm_allocate(len_bytes);
        init(oriel_shm_at(offset));
    }
    return offset;
}

oriel_shm_offset oriel_shm_allocate(size_t len_bytes)
{
    if (oriel_shm_base == NULL) {
        oriel_shm_base = mmap(NULL, SHM_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (oriel_shm_base == MAP_FAILED)
            abort();
    }
    len_bytes = (len_bytes + 15) / 16 * 16;
    if (len_bytes > shm_left || used + len_bytes > SHM_BYTES)
        return 0;
    oriel_shm_offset offset = used;
    used += len_bytes;
    shm_left -= len_bytes;
    return offset;
}

void oriel_shm_free(oriel_shm_offset offset, size_t len_bytes)
{
    memset(oriel_shm_at(offset), 0xff, len_bytes);
}

void oriel_shm_lock_init(struct oriel_shm_lock *lock)
{
    lock->words[0] = 0;
}

void oriel_shm_lock(struct oriel_shm_lock *lock)
{
    if (lock->words[0]++ != 0)
        abort();
}

void oriel_shm_unlock(struct oriel_shm_lock *lock)
{
    if (--lock->words[0] != 0)
        abort();
}

uint64_t oriel_shm_own_word = 1;
_Thread_local unsigned oriel_shm_locks;

void oriel_shm_word_wait(_Atomic uint64_t *word, uint64_t own)
{
    (void)word;
    (void)own;
    abort();
}

uint64_t oriel_shm_turn(void)
{
    return 1;
}

/* A list: nothing is dropped. */
bool oriel_shm_work(const struct oriel_key *key, size_t len_bytes, oriel_shm_work_fn *work,
                    void *closure)
{
    static oriel_shm_offset first;
    struct entry {
        oriel_shm_offset next;
        struct oriel_key key;
    } *entry = oriel_shm_at(first);
    while (entry != NULL && memcmp(&entry->key, key, sizeof *key) != 0)
        entry = oriel_shm_at(entry->next);
    bool made = entry == NULL;
    if (made) {
        oriel_shm_offset offset = oriel_shm_allocate(sizeof *entry + len_bytes);
        if (offset == 0)
            return false;
        entry = oriel_shm_at(offset);
        *entry = (struct entry){first, *key};
        first = offset;
    }
    work(entry + 1, made, closure);
    return true;
}

int oriel_order_rank(void)
{
    return rank_now;
}

oriel_shm_offset oriel_order_snapshot(void)
{
    return snapshot_of(rank_now);
}

void oriel_order_snapshot_release(oriel_shm_offset snapshot)
{
    (void)snapshot;
}

const oriel_tick *oriel_order_snapshot_clock(oriel_shm_offset snapshot)
{
    return snapshot == ORIEL_SNAPSHOT_LIVE ? clocks[rank_now] : oriel_shm_at(snapshot);
}

oriel_tick oriel_order_now(void)
{
    return clocks[rank_now][rank_now];
}

void oriel_order_unknown_begin(const char *call)
{
    (void)call;
    clocks[rank_now][rank_now]++;
}

void oriel_order_unknown_end(void)
{
    for (int rank = 0; rank < RANKS; rank++)
        message(rank, rank_now);
}

void oriel_order_floor(oriel_tick *out)
{
    memcpy(out, clocks[0], sizeof clocks[0]);
    for (int rank = 1; rank < RANKS; rank++)
        for (int i = 0; i < RANKS; i++)
            if (clocks[rank][i] < out[i])
                out[i] = clocks[rank][i];
}

const struct oriel_thread_hooks oriel_thread_hooks;

void oriel_threads_enter_slowly(void)
{
}

void oriel_finding_local_watched(void)
{
}

void oriel_finding_count(const char *what)
{
    (void)what;
    counted++;
}
