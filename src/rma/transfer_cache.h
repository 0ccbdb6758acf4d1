/* This thread's earlier puts and gets of derived datatypes, since most programs repeat a transfer
 * with the same datatypes and counts. An entry records what does not depend on window, target and
 * addresses: counts and datatypes are valid, which bytes are accessed, and how they are copied. It
 * is valid only while its generation is the process's (base/tls_cache.h), since layouts end with
 * their datatypes. */
#ifndef ORIEL_RMA_TRANSFER_CACHE_H
#define ORIEL_RMA_TRANSFER_CACHE_H

#include "base/tls_cache.h"
#include "datatype/copy_layout.h"

struct oriel_transfer_cache_entry {
    uint64_t generation;
    uint64_t origin_key, target_key; /* the host's handles of the datatypes */
    int64_t origin_count, target_count;
    bool to_target;
    bool ready; /* the fields below are valid: from the second such transfer on */
    /* of the target's side, relative to its offset; never above 0, so an offset before the window
     * fails */
    int64_t low_bytes;
    int64_t span_bytes; /* from low_bytes to the end of its last byte */
    struct oriel_copy_prepared copy;
};
_Static_assert(sizeof(struct oriel_transfer_cache_entry) == 128, "a shift finds its position");

/* Base-2 logarithm of the number of entries. Datatypes created one after the other mostly use
 * different entries. */
enum { ORIEL_TRANSFER_CACHE_BITS = 3 };

extern _Thread_local struct oriel_transfer_cache_entry
    oriel_transfer_cache[1 << ORIEL_TRANSFER_CACHE_BITS] __attribute__((visibility("hidden")));

/* The entry for such a transfer, valid or not. */
static inline struct oriel_transfer_cache_entry *
oriel_transfer_cache_slot(uint64_t origin_key, uint64_t target_key, bool to_target)
{
    const uint64_t mixed =
        (origin_key + 3 * target_key + 2 * to_target) * UINT64_C(0x9e3779b97f4a7c15);
    return &oriel_transfer_cache[mixed >> (64 - ORIEL_TRANSFER_CACHE_BITS)];
}

static inline bool oriel_transfer_cache_matches(const struct oriel_transfer_cache_entry *repeated,
                                                uint64_t generation, uint64_t origin_key,
                                                int64_t origin_count, uint64_t target_key,
                                                int64_t target_count, bool to_target)
{
    return repeated->generation == generation && repeated->origin_key == origin_key &&
           repeated->target_key == target_key && repeated->origin_count == origin_count &&
           repeated->target_count == target_count && repeated->to_target == to_target;
}

/* Prepares the copy of such a transfer. low_bytes and span_bytes are as above. Returns false if
 * oriel_put or oriel_get must do it, or nothing moves. */
bool oriel_transfer_prepare(const struct oriel_items *origin, const struct oriel_items *target,
                            bool to_target, int64_t *low_bytes, int64_t *span_bytes,
                            struct oriel_copy_prepared *copy);

/* After such a transfer, whose checks passed: records it the first time, prepares it the next.
 * generation: read before the lookup of the datatypes. The items are all that the program passed.
 */
void oriel_transfer_cache_store(uint64_t generation, uint64_t origin_key,
                                const struct oriel_items *origin, uint64_t target_key,
                                const struct oriel_items *target, bool to_target);

#endif
