/* Clocks of the words of a window's memory: a writing accumulate gives its clock to the word, a
 * fetching one takes the word's clock (windows_access.c explains why). The words are in the
 * checker's shared memory, for all processes; each is made by the first give. */
#ifndef ORIEL_CHECK_ORDER_WORD_CLOCKS_H
#define ORIEL_CHECK_ORDER_WORD_CLOCKS_H

#include "base/atomic.h"
#include "base/delay.h"
#include "check/order/order.h"
#include "check/order/own_clock.h"
#include "check/shm/shm.h"

#define ORIEL_WORD_BULK UINT64_MAX /* the word that represents accumulates of many elements */

/* Makes the words of a memory of about size_bytes (0: unknown). Returns 0 when the shared memory is
 * full. */
oriel_shm_offset oriel_word_clocks_make(uint64_t size_bytes);
void oriel_word_clocks_free(oriel_shm_offset words);

/* From now on processes of other nodes reach the words of that target by their keys, until
 * oriel_word_clocks_withdraw. Returns false when the shared memory is full. */
bool oriel_word_clocks_lend(oriel_shm_offset words, uint64_t window, int32_t target);
void oriel_word_clocks_withdraw(uint64_t window, int32_t target);

/* For a process of another node: does what oriel_given_join and oriel_given_take do, with the word
 * of a key of kind ORIEL_ORDER_WORD. Returns false without effect if it leads to no words, or
 * the word has no room or no clock. */
bool oriel_word_join_by_key(const struct oriel_key *key, const oriel_tick *clock);
bool oriel_word_take_by_key(const struct oriel_key *key, oriel_tick *out);

typedef uint32_t oriel_word_link; /* index of a word's first line; 0: none */

/* One cache line with at most four ranks. */
struct oriel_word_clock {
    _Atomic uint64_t owner; /* word lock (shm.h) of news and clock */
    uint64_t offset;
    _Atomic uint64_t news;
    _Atomic uint32_t giver;
    _Atomic oriel_word_link next;
    oriel_tick clock[];
};
_Static_assert(sizeof(struct oriel_word_clock) + 4 * sizeof(oriel_tick) == ORIEL_CACHE_LINE,
               "one line");
_Static_assert(ORIEL_SHM_MOST_BYTES / ORIEL_CACHE_LINE - 1 <= UINT32_MAX,
               "a link reaches all of the shared memory");

enum { ORIEL_WORD_SHIFT = 3 };
struct oriel_text_format {
    uint64_t chains; /* a power of 2 */
    _Atomic uint64_t count;
    _Atomic oriel_word_link first[];
};

static inline struct oriel_word_clock *oriel_word_linked(oriel_word_link link)
{
    return (struct oriel_word_clock *)(void *)(oriel_shm_base +
                                               (oriel_shm_offset)link * ORIEL_CACHE_LINE);
}

/* Gives the own clock to the word at the offset, then raises the own number; with fetches it also
 * takes the word's clock. Returns false without effect when the shared memory is full. */
bool oriel_word_give(oriel_shm_offset words, uint64_t offset, bool fetches);

/* Takes the word's clock. Returns false if no process has given, or if a give may be missing
 * because the shared memory was full. */
bool oriel_word_take(oriel_shm_offset words, uint64_t offset);

/* --- in steps, for a word to which this process gave last --- */

/* Returns the word at the offset, and makes it if needed. NULL: the shared memory is full. */
struct oriel_word_clock *oriel_word_find_or_make(struct oriel_text_format *words, uint64_t offset);

void oriel_word_give_to(struct oriel_word_clock *word, bool fetches);

void oriel_word_merge(struct oriel_word_clock *word);

/* Finds a word in two steps. Most words are the first of their chains, and the first step
 * prefetches that line. */
static inline oriel_word_link oriel_word_first(const struct oriel_text_format *words,
                                               uint64_t offset)
{
    oriel_word_link first = atomic_load_explicit(
        &words->first[(offset >> ORIEL_WORD_SHIFT) & (words->chains - 1)], memory_order_acquire);
    oriel_prefetch_to_write(oriel_word_linked(first));
    return first;
}

static inline struct oriel_word_clock *oriel_word_after(struct oriel_text_format *words,
                                                        oriel_word_link first, uint64_t offset)
{
    struct oriel_word_clock *word = oriel_word_linked(first);
    return oriel_likely(first != 0 && word->offset == offset)
               ? word
               : oriel_word_find_or_make(words, offset);
}

static inline struct oriel_word_clock *oriel_word_at(oriel_shm_offset words, uint64_t offset)
{
    struct oriel_text_format *all = oriel_shm_at(words);
    return oriel_word_after(all, oriel_word_first(all, offset), offset);
}

static inline bool oriel_word_is_giver(const struct oriel_word_clock *word, uint32_t rank)
{
    return atomic_load_explicit(&word->giver, memory_order_acquire) == rank;
}

/* Whether this process has learnt nothing since it gave its whole clock. */
static inline bool oriel_word_is_up_to_date(const struct oriel_word_clock *word)
{
    uint64_t given = atomic_load_explicit(&word->news, memory_order_acquire);
    return given == atomic_load_explicit(&oriel_order_mine()->news, memory_order_relaxed);
}

/* Gives in two steps; between them this thread executes a locked instruction (base/atomic.h), and
 * neither gives nor takes. rank, now: the own ones. Not
 * where the order of threads is tracked, or where several threads may be active. */
static inline bool oriel_word_offer(struct oriel_word_clock *word, uint32_t rank, oriel_tick now)
{
    if (oriel_unlikely(!oriel_word_is_giver(word, rank) || !oriel_word_is_up_to_date(word)))
        return false;
    oriel_delay();
    atomic_store_explicit((_Atomic oriel_tick *)&word->clock[rank], now, memory_order_relaxed);
    return true;
}

static inline void oriel_word_give_offered(struct oriel_word_clock *word, uint32_t rank,
                                           bool offered, bool fetches)
{
    oriel_delay();
    oriel_fence_after_locked();
    if (oriel_likely(offered && oriel_word_is_giver(word, rank))) /* W3 */
        oriel_order_own_raise();
    else
        oriel_word_give_to(word, fetches);
}

/* Takes from a word that this process has just given to and fetched from. Returns false as
 * oriel_word_take does. */
static inline bool oriel_word_take_again(struct oriel_word_clock *word, uint32_t rank)
{
    if (oriel_unlikely(!oriel_word_is_giver(word, rank))) /* W2 */
        oriel_word_merge(word);
    return !oriel_given_was_lost();
}

#endif
