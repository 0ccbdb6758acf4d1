/* Fills and invalidates the threads' one-entry caches.  A kept entry of another generation is dropped with its neighbour, so
 * that one comparison covers both.  window/ and rma/ call. */
#include "base/tls_cache.h"

#include "base/wait.h"

_Thread_local struct oriel_recent oriel_recent = {.turns = ORIEL_RECENT_TURNS, .operator_key = ORIEL_RECENT_NO_KEY};
_Atomic uint64_t oriel_recent_generation = 1;

static void enter(uint64_t generation)
{
    if (oriel_recent.generation == generation)
        return;
    oriel_recent.generation = generation;
    oriel_recent.window_key = ORIEL_RECENT_NO_KEY;
    oriel_recent.type_key = ORIEL_RECENT_NO_KEY;
}

void oriel_recent_keep_window(uint64_t generation, uint64_t key, void *window, uint32_t ranks)
{
    enter(generation);
    oriel_recent.window = window;
    oriel_recent.ranks = ranks;
    oriel_recent.window_key = key;
}

void oriel_recent_keep_type(uint64_t generation, uint64_t key, const void *type, int64_t plain_bytes)
{
    enter(generation);
    oriel_recent.type = type;
    oriel_recent.plain_bytes = plain_bytes;
    oriel_recent.type_key = key;
}

void oriel_recent_invalidate(void)
{
    atomic_fetch_add_explicit(&oriel_recent_generation, 1, memory_order_seq_cst);
}

void oriel_recent_give_turn(void)
{
    bool marked = (int32_t)oriel_recent.turns < 0;
    oriel_recent.turns = (marked ? ORIEL_RECENT_MARK : 0) | ORIEL_RECENT_TURNS; /* both bits, for a count that went below 0 */
    oriel_wait_passes = true;
    oriel_wait_progress();
    oriel_wait_passes = false;
}
