/* Records transfers of derived datatypes, and prepares a copy plan for those that repeat. */
#include "rma/transfer_cache.h"

_Thread_local struct oriel_transfer_cache_entry
    oriel_transfer_cache[1 << ORIEL_TRANSFER_CACHE_BITS];

bool oriel_transfer_prepare(const struct oriel_items *origin, const struct oriel_items *target,
                            bool to_target, int64_t *low_bytes, int64_t *span_bytes,
                            struct oriel_copy_prepared *copy)
{
    int64_t high_bytes;
    const struct oriel_items *source = to_target ? origin : target;
    const struct oriel_items *sink = to_target ? target : origin;
    const uint64_t len_bytes = source->count * source->layout->size_bytes;
    struct oriel_items used = *sink;
    oriel_items_trim(&used, len_bytes);
    if (len_bytes == 0 || !oriel_copy_is_supported(&used, source) ||
        !oriel_layout_bounds(target->layout, target->count, target->extent_bytes, low_bytes,
                             &high_bytes))
        return false;
    *low_bytes = *low_bytes < 0 ? *low_bytes : 0;
    if (__builtin_sub_overflow(high_bytes, *low_bytes, span_bytes))
        return false;
    oriel_copy_prepare(copy, &used, source);
    return true;
}

void oriel_transfer_cache_store(uint64_t generation, uint64_t origin_key,
                                const struct oriel_items *origin, uint64_t target_key,
                                const struct oriel_items *target, bool to_target)
{
    struct oriel_transfer_cache_entry *repeated =
        oriel_transfer_cache_slot(origin_key, target_key, to_target);
    const int64_t at_origin = (int64_t)origin->count, at_target = (int64_t)target->count;
    if (!oriel_transfer_cache_matches(repeated, generation, origin_key, at_origin, target_key,
                                      at_target, to_target)) {
        repeated->generation = generation; /* the old plan stays: fewer stores */
        repeated->origin_key = origin_key;
        repeated->target_key = target_key;
        repeated->origin_count = at_origin;
        repeated->target_count = at_target;
        repeated->to_target = to_target;
        repeated->ready = false;
    } else if (!repeated->ready) {
        repeated->ready = oriel_transfer_prepare(origin, target, to_target, &repeated->low_bytes,
                                                 &repeated->span_bytes, &repeated->copy);
    }
}
