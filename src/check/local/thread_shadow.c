/* A small table for each thread: a word has one place there, and is known as long as nothing else came to it.  thread_shadow.h says who
 * calls. */
#include "check/local/thread_shadow.h"

#include "check/order/order.h"

#include <stdatomic.h>

enum { SHADOW_WORDS = 1024, WORD_BYTES = 8 };

/* What this thread has loaded and stored of a word since the process's number was what it is. */
struct shadow {
    uint64_t word;
    oriel_tick tick;
    uint32_t generation;
    uint8_t loads; /* bits of bytes */
    uint8_t stores;
};

static _Thread_local struct shadow shadows[SHADOW_WORDS];
static _Atomic uint32_t generation_now = 1; /* raised when a shadow is no record any more */

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
    bool same = (bits & ~(shadow->stores | *seen)) == 0; /* a store says all that a load would */
    *seen |= bits;
    return same;
}
