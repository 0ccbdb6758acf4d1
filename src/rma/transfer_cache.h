/* Puts and gets of derived datatypes that this thread has done before with the same datatypes and counts: most programs do one
 * such transfer over and over.  Kept is what does not depend on window, target and places: that the counts and datatypes are
 * right, which bytes are touched, and how they are copied.  An entry counts only while its generation is the process's
 * (base/tls_cache.h), since the layouts go with the datatypes.  put_get.c keeps, api/ looks. */
#ifndef ORIEL_RMA_TRANSFER_CACHE_H
#define ORIEL_RMA_TRANSFER_CACHE_H

#include "base/tls_cache.h"
#include "datatype/copy_layout.h"

struct oriel_repeated {
    uint64_t generation;
    uint64_t origin_key, target_key; /* the host's handles of the datatypes */
    int64_t origin_count, target_count;
    bool to_target;
    bool ready; /* what follows is valid: from the second such transfer on */
    /* of the target's side, relative to its place; never above 0, so that no place before it passes */
    int64_t low_bytes;
    int64_t span_bytes; /* from there to behind its last byte */
    struct oriel_copy_prepared copy;
};
_Static_assert(sizeof(struct oriel_repeated) == 128, "its place is found by a shift");

enum {
    ORIEL_REPEATED_BITS = 3
}; /* so many places; types made one after the other mostly have their own */

extern _Thread_local struct oriel_repeated oriel_repeated[1 << ORIEL_REPEATED_BITS]
    __attribute__((visibility("hidden")));

/* Where such a transfer is kept, if it is. */
static inline struct oriel_repeated *oriel_repeated_place(uint64_t origin_key, uint64_t target_key,
                                                          bool to_target)
{
    const uint64_t mixed =
        (origin_key + 3 * target_key + 2 * to_target) * UINT64_C(0x9e3779b97f4a7c15);
    return &oriel_repeated[mixed >> (64 - ORIEL_REPEATED_BITS)];
}

static inline bool oriel_repeated_is(const struct oriel_repeated *repeated, uint64_t generation,
                                     uint64_t origin_key, int64_t origin_count, uint64_t target_key,
                                     int64_t target_count, bool to_target)
{
    return repeated->generation == generation && repeated->origin_key == origin_key &&
           repeated->target_key == target_key && repeated->origin_count == origin_count &&
           repeated->target_count == target_count && repeated->to_target == to_target;
}

/* After such a transfer, whose checks passed: notes it the first time, prepares it the next.  generation: read before the
 * datatypes were looked up; the items are all that the program named. */
void oriel_repeated_keep(uint64_t generation, uint64_t origin_key, const struct oriel_items *origin,
                         uint64_t target_key, const struct oriel_items *target, bool to_target);

#endif
