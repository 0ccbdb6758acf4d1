/* The clocks that words of a memory carry: accumulates that write give theirs to the word, and those that fetch take the word's
 * (windows_access.c says why).  A memory's words stand in the board, for all processes; each is made when first given to.
 * windows_access.c, windows.c and callsite_cache.c call. */
#ifndef ORIEL_CHECK_ORDER_WORD_CLOCKS_H
#define ORIEL_CHECK_ORDER_WORD_CLOCKS_H

#include "base/atomic.h"
#include "base/delay.h"
#include "check/order/order.h"
#include "check/order/own_clock.h"
#include "check/shm/shm.h"

#define ORIEL_WORD_BULK UINT64_MAX /* the one that stands for accumulates of many elements */

/* Of a memory of about so many bytes (0: nobody knows).  0 when the board is full. */
oriel_shm_offset oriel_words_make(uint64_t size_bytes);
void oriel_words_free(oriel_shm_offset words);

typedef uint32_t oriel_word_link; /* a word's place in lines; 0: none */

/* One line where there are four ranks or fewer. */
struct oriel_word_clock {
    _Atomic uint64_t owner; /* a board word lock: of news and clock */
    uint64_t offset;
    _Atomic uint64_t news;
    _Atomic uint32_t giver;
    _Atomic oriel_word_link next;
    oriel_tick clock[];
};
_Static_assert(sizeof(struct oriel_word_clock) + 4 * sizeof(oriel_tick) == ORIEL_CACHE_LINE,
               "one line");
_Static_assert(ORIEL_SHM_MOST_BYTES / ORIEL_CACHE_LINE - 1 <= UINT32_MAX,
               "a link reaches all of the board");

enum { ORIEL_WORD_SHIFT = 3 };
struct oriel_words {
    uint64_t chains; /* a power of 2 */
    _Atomic uint64_t count;
    _Atomic oriel_word_link first[];
};

static inline struct oriel_word_clock *oriel_word_linked(oriel_word_link link)
{
    return (struct oriel_word_clock *)(void *)(oriel_shm_base +
                                               (oriel_shm_offset)link * ORIEL_CACHE_LINE);
}

/* The own clock goes to the word at the offset; then the own number is raised.  fetches: and the word's is taken.  False, and
 * nothing has happened: the board is full. */
bool oriel_word_give(oriel_shm_offset words, uint64_t offset, bool fetches);

/* Takes the word's clock.  False: nobody has given, or not all have given here, for the board was full at times. */
bool oriel_word_take(oriel_shm_offset words, uint64_t offset);

/* --- the same in steps, where most often this process has given to the word last --- */

/* The word at the offset, made when it is not there; NULL: the board is full. */
struct oriel_word_clock *oriel_word_find_or_make(struct oriel_words *words, uint64_t offset);

void oriel_word_give_to(struct oriel_word_clock *word, bool fetches);

void oriel_word_learn(struct oriel_word_clock *word);

/* The same in two steps; most words are the first of their chains, and that line is on its way from the first step on. */
static inline oriel_word_link oriel_word_first(const struct oriel_words *words, uint64_t offset)
{
    oriel_word_link first = atomic_load_explicit(
        &words->first[(offset >> ORIEL_WORD_SHIFT) & (words->chains - 1)], memory_order_acquire);
    oriel_prefetch_to_write(oriel_word_linked(first));
    return first;
}

static inline struct oriel_word_clock *oriel_word_behind(struct oriel_words *words,
                                                         oriel_word_link first, uint64_t offset)
{
    struct oriel_word_clock *word = oriel_word_linked(first);
    return oriel_likely(first != 0 && word->offset == offset)
               ? word
               : oriel_word_find_or_make(words, offset);
}

static inline struct oriel_word_clock *oriel_word_at(oriel_shm_offset words, uint64_t offset)
{
    struct oriel_words *all = oriel_shm_at(words);
    return oriel_word_behind(all, oriel_word_first(all, offset), offset);
}

static inline bool oriel_word_is_giver(const struct oriel_word_clock *word, uint32_t rank)
{
    return atomic_load_explicit(&word->giver, memory_order_acquire) == rank;
}

/* Whether this process has learnt nothing since it gave all that it knew. */
static inline bool oriel_word_is_up_to_date(const struct oriel_word_clock *word)
{
    uint64_t given = atomic_load_explicit(&word->news, memory_order_acquire);
    return given == atomic_load_explicit(&oriel_order_own.news, memory_order_relaxed);
}

/* To give in two steps, between which this thread does a locked instruction (base/atomic.h), and gives and takes nothing.  rank,
 * now: the own ones.  Not where several threads may be at work. */
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

/* Takes from a word that this process has given to, and fetched from, just now.  False: as oriel_word_take. */
static inline bool oriel_word_take_again(struct oriel_word_clock *word, uint32_t rank)
{
    if (oriel_unlikely(!oriel_word_is_giver(word, rank))) /* W2 */
        oriel_word_learn(word);
    return !oriel_given_was_lost();
}

#endif
