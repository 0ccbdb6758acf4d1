/* Fills and invalidates the threads' one-entry caches. If an entry is of an old generation, the
 * window and the type are both dropped, so one comparison covers both. */
#include "base/tls_cache.h"

#include "base/wait.h"

_Thread_local struct oriel_tls_cache oriel_tls_cache = {.turns = ORIEL_TLS_CACHE_TURNS,
                                                        .operator_key = ORIEL_TLS_CACHE_NO_KEY};
_Atomic uint64_t oriel_tls_cache_generation = 1;

static void generation_enter(uint64_t generation)
{
    if (oriel_tls_cache.generation == generation)
        return;
    oriel_tls_cache.generation = generation;
    oriel_tls_cache.window_key = ORIEL_TLS_CACHE_NO_KEY;
    oriel_tls_cache.type_key = ORIEL_TLS_CACHE_NO_KEY;
}

void oriel_tls_cache_set_window(uint64_t generation, uint64_t key, void *window, uint32_t ranks)
{
    generation_enter(generation);
    oriel_tls_cache.window = window;
    oriel_tls_cache.ranks = ranks;
    oriel_tls_cache.window_key = key;
}

void oriel_tls_cache_set_type(uint64_t generation, uint64_t key, const void *type,
                              int64_t plain_bytes)
{
    generation_enter(generation);
    oriel_tls_cache.type = type;
    oriel_tls_cache.plain_bytes = plain_bytes;
    oriel_tls_cache.type_key = key;
}

void oriel_tls_cache_invalidate(void)
{
    atomic_fetch_add_explicit(&oriel_tls_cache_generation, 1, memory_order_seq_cst);
}

void oriel_tls_cache_host_turn(void)
{
    bool marked = (int32_t)oriel_tls_cache.turns < 0;
    /* clears both upper bits too, for a count that wrapped below 0 */
    oriel_tls_cache.turns = (marked ? ORIEL_TLS_CACHE_MARK : 0) | ORIEL_TLS_CACHE_TURNS;
    oriel_wait_is_polling = true;
    oriel_wait_progress();
    oriel_wait_is_polling = false;
}
