/* A small direct-mapped table for each thread. A word is known until another word replaces it in
 * its slot. */
#include "check/local/thread_shadow.h"

#include "check/order/order.h"

#include <stdatomic.h>

enum { SHADOW_WORDS = 1024, WORD_BYTES = 8 };

/* The bytes of a word that this thread has loaded and stored since the process's clock last
 * changed. */
struct shadow {
    uint64_t word;
    oriel_tick tick;
    uint32_t generation;
    uint8_t loads; /* bits, one for each byte */
    uint8_t stores;
};

static _Thread_local struct shadow shadows[SHADOW_WORDS];
static _Atomic uint32_t generation_now = 1; /* incremented when all shadows become invalid */

void oriel_shadows_empty(void)
{
    atomic_fetch_add_explicit(&generation_now, 1, memory_order_relaxed);
}

bool oriel_shadow_knows(uint64_t address, uint64_t len_bytes, bool writes)
{
    uint64_t word = address / WORD_BYTES;
    uint64_t first = address % WORD_BYTES;
    if (first + len_bytes > WORD_BYTES)
        return false;
    struct shadow *shadow = &shadows[word % SHADOW_WORDS];
    oriel_tick tick = oriel_order_now();
    uint32_t generation = atomic_load_explicit(&generation_now, memory_order_relaxed);
    if (shadow->word != word || shadow->tick != tick || shadow->generation != generation)
        *shadow = (struct shadow){.word = word, .tick = tick, .generation = generation};
    uint8_t bits = (uint8_t)(((1u << len_bytes) - 1) << first);
    uint8_t *seen = writes ? &shadow->stores : &shadow->loads;
    bool same = (bits & ~(shadow->stores | *seen)) == 0; /* a store covers a load */
    *seen |= bits;
    return same;
}
