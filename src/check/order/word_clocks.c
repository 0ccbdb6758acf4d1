/* Words in chains by their offsets. A word is filled before it is linked at the end of its chain,
 * and stays as long as the table: chains are read without a lock. A memory has at most MOST words,
 * plus the first words of chains. Other offsets share these first words, always the same one.
 *
 * W0: The first link at the end of an offset's chain decides once whether the offset has a word of
 *     its own: a word, or SHARED, after which none is linked. A process that has seen MOST words
 *     closes the chain before it shares. A process that looked before, and tries to link a word
 *     now, finds the chain closed and shares too. So no process takes from another word than was
 *     given to. count is only a hint: several simultaneous looks may exceed MOST by a few words.
 *
 * Repeated gives of one process to its words cost two stores. giver names the process whose clock
 * contains everything that the word's clock contains:
 *
 * W1: A giver that fetches takes the word's clock under the word's lock. Then its own clock
 *     contains the word's clock: giver becomes its rank, and news its count of merges by then.
 *     While the word has its rank, a further give changes only its own number, unless the giver has
 *     learnt something since.
 * W2: A fetching process checks after the call whether the word still has its rank. If so, no other
 *     process has given since, and there is nothing to take. Another giver stores its rank there
 *     before its accumulate is done.
 * W3: A giver gives again without the lock by an offer: it stores its number, and checks for its
 *     rank after a full fence. A process that takes the word over stores another giver, and reads
 *     or writes the clock after a full fence. So one of the two sees the other's store. Either the
 *     number is part of the clock that is taken over, and stays. Or the giver sees that it is no
 *     longer the giver, and gives again under the lock, after the other has left. It has read news
 *     before that: if news was already the other's, giver is no longer its own rank either.
 * W4: A process that takes the word over stores giver before it has the lock, whose instruction is
 *     the fence. Until it has the lock it relies on nothing in the word, and others only see that
 *     the word is not theirs. Of several simultaneous ones, each stores giver again under the lock
 *     if another's is there, so giver is the last owner of the lock. */
#include "check/order/word_clocks.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "check/order/order.h"
#include "check/order/rank_clocks.h"

enum { LEAST = 64, MOST = 1 << 16, WORD_SHIFT = ORIEL_WORD_SHIFT };

/* In place of a next word (W0); this offset is the head of the shared memory. */
#define SHARED ((oriel_word_link)1)
/* The clock is of several processes, or its giver has not taken it. */
#define MIXED UINT32_MAX

static size_t words_bytes(uint64_t chains)
{
    return sizeof(struct oriel_text_format) + chains * sizeof(oriel_word_link);
}

static size_t word_bytes(void)
{
    size_t len_bytes =
        sizeof(struct oriel_word_clock) + (size_t)oriel_order_width() * sizeof(oriel_tick);
    return (len_bytes + ORIEL_CACHE_LINE - 1) &
           ~(size_t)(ORIEL_CACHE_LINE - 1); /* on cache lines of its own */
}

oriel_shm_offset oriel_word_clocks_make(uint64_t size_bytes)
{
    uint64_t chains = size_bytes == 0 ? MOST : LEAST;
    while (chains < MOST && chains << WORD_SHIFT < size_bytes)
        chains *= 2;
    oriel_shm_offset place = oriel_shm_allocate(words_bytes(chains));
    if (place != 0)
        ((struct oriel_text_format *)oriel_shm_at(place))->chains = chains;
    return place;
}

void oriel_word_clocks_free(oriel_shm_offset place)
{
    struct oriel_text_format *words = oriel_shm_at(place);
    if (words == NULL)
        return;
    for (uint64_t i = 0; i < words->chains; i++)
        for (oriel_word_link link = words->first[i]; link != 0 && link != SHARED;) {
            struct oriel_word_clock *word = oriel_word_linked(link);
            link = word->next;
            oriel_shm_free(oriel_shm_place(word), word_bytes());
        }
    oriel_shm_free(place, words_bytes(words->chains));
}

/* Returns the offset's word, or the word that it shares. NULL: no process has given, and *link is
 * the end of its chain. */
static struct oriel_word_clock *word_find(struct oriel_text_format *words, uint64_t offset,
                                          _Atomic oriel_word_link **link)
{
    struct oriel_word_clock *first = NULL;
    *link = &words->first[(offset >> WORD_SHIFT) & (words->chains - 1)];
    for (;;) {
        oriel_word_link found = atomic_load_explicit(*link, memory_order_acquire);
        if (found == SHARED || found == 0)
            return found == SHARED ? first : NULL;
        struct oriel_word_clock *word = oriel_word_linked(found);
        if (word->offset == offset)
            return word;
        first = first == NULL ? word : first;
        *link = &word->next;
    }
}

/* The first link of a chain always gets a word. */
static bool is_first_link(const struct oriel_text_format *words,
                          const _Atomic oriel_word_link *link)
{
    return link >= words->first && link < words->first + words->chains;
}

/* W0 */
struct oriel_word_clock *oriel_word_find_or_make(struct oriel_text_format *words, uint64_t offset)
{
    _Atomic oriel_word_link *link;
    oriel_shm_offset place = 0;
    bool linked = false;
    struct oriel_word_clock *word;
    while ((word = word_find(words, offset, &link)) == NULL) {
        oriel_word_link end = 0;
        if (!is_first_link(words, link) &&
            atomic_load_explicit(&words->count, memory_order_relaxed) >= MOST) {
            oriel_delay();
            atomic_compare_exchange_strong(link, &end, SHARED);
            continue;
        }
        place = place == 0 ? oriel_shm_allocate(word_bytes()) : place;
        struct oriel_word_clock *made = oriel_shm_at(place);
        if (made == NULL)
            return NULL;
        made->offset = offset;
        made->giver = MIXED;
        oriel_delay();
        linked =
            atomic_compare_exchange_strong(link, &end, (oriel_word_link)(place / ORIEL_CACHE_LINE));
    }
    if (linked)
        atomic_fetch_add_explicit(&words->count, 1, memory_order_relaxed);
    else if (place != 0)
        oriel_shm_free(place, word_bytes());
    return word;
}

/* Locks the word for a giver. mine: giver is this process, and the word had its rank. Returns
 * whether it still has it. */
static bool word_take_over(struct oriel_word_clock *word, uint32_t giver, bool mine)
{
    if (!mine)
        atomic_store_explicit(&word->giver, giver, memory_order_relaxed);
    oriel_delay();
    oriel_shm_word_lock(&word->owner);
    oriel_fence_after_locked(); /* W3 */
    if (oriel_likely(atomic_load_explicit(&word->giver, memory_order_acquire) ==
                     (mine ? oriel_order_index() : giver)))
        return mine;
    atomic_store_explicit(&word->giver, giver, memory_order_relaxed); /* W4 */
    oriel_delay();
    oriel_fence_full(); /* W3 */
    return false;
}

void oriel_word_give_to(struct oriel_word_clock *word, bool fetches)
{
    uint32_t own = oriel_order_index();
    bool mine = word_take_over(word, fetches ? own : MIXED, oriel_word_is_giver(word, own));
    if (mine && oriel_word_is_up_to_date(word)) { /* W1 */
        word->clock[own] = oriel_order_now();
    } else {
        if (fetches && !mine)
            oriel_order_merge(word->clock);
        atomic_store_explicit(&word->news, oriel_order_merge_count(), memory_order_release);
        oriel_clock_take(word->clock, oriel_order_snapshot_clock(ORIEL_SNAPSHOT_LIVE),
                         oriel_order_width());
    }
    oriel_delay();
    oriel_shm_word_unlock(&word->owner);
    oriel_order_raise();
}

bool oriel_word_give(oriel_shm_offset place, uint64_t offset, bool fetches)
{
    struct oriel_word_clock *word =
        oriel_order_now() == ORIEL_TICK_PENDING ? NULL : oriel_word_at(place, offset);
    if (word != NULL)
        oriel_word_give_to(word, fetches);
    return word != NULL;
}

void oriel_word_merge(struct oriel_word_clock *word)
{
    oriel_shm_word_lock(&word->owner);
    oriel_order_merge(word->clock);
    oriel_shm_word_unlock(&word->owner);
}

bool oriel_word_take(oriel_shm_offset place, uint64_t offset)
{
    _Atomic oriel_word_link *link;
    struct oriel_word_clock *word = word_find(oriel_shm_at(place), offset, &link);
    return word != NULL && oriel_word_take_again(word, oriel_order_index());
}

/* --- for processes of other nodes --- */

enum { KEY_WORDS = 102 }; /* words[0] of the key of lent words; above order.h's */

/* The lock of the key of the lent words keeps them while a clock is given or taken. */
struct by_key {
    uint64_t offset;
    const oriel_tick *given;
    oriel_tick *out; /* where none is given */
    bool done;
};

static struct oriel_key lent_key(uint64_t window, uint64_t target)
{
    return (struct oriel_key){.words = {KEY_WORDS, window, target}};
}

static bool words_store(void *at, bool made, void *words)
{
    (void)made;
    *(oriel_shm_offset *)at = *(const oriel_shm_offset *)words;
    return true;
}

bool oriel_word_clocks_lend(oriel_shm_offset words, uint64_t window, int32_t target)
{
    const struct oriel_key key = lent_key(window, (uint64_t)target);
    return oriel_shm_work(&key, sizeof words, words_store, &words);
}

void oriel_word_clocks_withdraw(uint64_t window, int32_t target)
{
    const struct oriel_key key = lent_key(window, (uint64_t)target);
    oriel_shm_drop(&key);
}

static bool word_join_in_work(void *at, bool made, void *closure)
{
    struct by_key *by = closure;
    struct oriel_word_clock *word = oriel_word_at(*(const oriel_shm_offset *)at, by->offset);
    (void)made;
    by->done = word != NULL;
    if (word == NULL)
        return true;
    word_take_over(word, MIXED, false);
    oriel_clock_take(word->clock, by->given, oriel_order_width());
    oriel_shm_word_unlock(&word->owner);
    return true;
}

static bool word_copy_in_work(void *at, bool made, void *closure)
{
    struct by_key *by = closure;
    _Atomic oriel_word_link *link;
    struct oriel_word_clock *word =
        word_find(oriel_shm_at(*(const oriel_shm_offset *)at), by->offset, &link);
    (void)made;
    by->done = word != NULL && !oriel_given_was_lost();
    if (!by->done)
        return true;
    oriel_shm_word_lock(&word->owner);
    oriel_clock_take(by->out, word->clock, oriel_order_width());
    oriel_shm_word_unlock(&word->owner);
    return true;
}

static bool by_key_do(const struct oriel_key *key, struct by_key *by, oriel_shm_work_fn *work)
{
    const struct oriel_key lent = lent_key(key->words[1], key->words[2]);
    return key->words[0] == ORIEL_ORDER_WORD && oriel_shm_work(&lent, 0, work, by) && by->done;
}

bool oriel_word_join_by_key(const struct oriel_key *key, const oriel_tick *clock)
{
    struct by_key by = {.offset = key->words[3], .given = clock};
    return by_key_do(key, &by, word_join_in_work);
}

bool oriel_word_take_by_key(const struct oriel_key *key, oriel_tick *out)
{
    struct by_key by = {.offset = key->words[3], .out = out};
    return by_key_do(key, &by, word_copy_in_work);
}
