/* Detects loops: accesses at one distance from each other. Such accesses are merged in the tree,
 * where cells would store each. A thread remembers the last offset and distance of each kind of
 * access that it made recently. */
#ifndef ORIEL_CHECK_ACCESS_STRIDE_DETECT_H
#define ORIEL_CHECK_ACCESS_STRIDE_DETECT_H

#include "check/access/history.h"

enum {
    ORIEL_LOOPS = 64, /* a power of 2 */
    /* repetitions of a distance from which on an access belongs to a loop */
    ORIEL_LOOP_TURNS = 2,
    ORIEL_LOOP_SPARSEST = 4096, /* as in insert.c */
};

struct oriel_loop {
    uint64_t which;
    int64_t offset;
    int64_t distance;
    uint32_t turns;
};

extern _Thread_local struct oriel_loop oriel_loops[ORIEL_LOOPS]
    __attribute__((visibility("hidden"))); /* defined in cell_store.c */

/* The loop of this thread's accesses with one trait in a history. A new one starts at the
 * offset. */
static inline struct oriel_loop *oriel_loop_of(oriel_shm_offset history, oriel_shm_offset trait,
                                               int64_t offset)
{
    uint64_t which = (history ^ trait << 20) * UINT64_C(0x9e3779b97f4a7c15);
    struct oriel_loop *loop = &oriel_loops[which >> 58];
    if (__builtin_expect(loop->which != which, 0))
        *loop = (struct oriel_loop){.which = which, .offset = offset};
    return loop;
}

/* Whether an access at the offset may continue the loop. */
static inline bool oriel_loop_expects(const struct oriel_loop *loop, int64_t offset)
{
    int64_t distance = offset - loop->offset;
    return __builtin_expect(distance == loop->distance && distance != 0, 0);
}

/* Updates the loop with an access that continues nothing. Returns false without side effects if it
 * may continue the loop. */
static inline bool oriel_loop_leave(struct oriel_loop *loop, int64_t offset)
{
    if (oriel_loop_expects(loop, offset))
        return false;
    loop->turns = 0;
    loop->distance = offset - loop->offset;
    loop->offset = offset;
    return true;
}

/* Updates the loop with an access. Returns whether it continues the last two. */
static inline bool oriel_loop_continues(struct oriel_loop *loop,
                                        const struct oriel_access_extent *runs)
{
    int64_t distance = runs->offset - loop->offset;
    bool further =
        distance != 0 && distance == loop->distance &&
        (uint64_t)(distance < 0 ? -distance : distance) <= ORIEL_LOOP_SPARSEST * runs->len_bytes;
    loop->turns = further ? loop->turns + 1 : 0;
    loop->distance = distance;
    loop->offset = runs->offset;
    return loop->turns >= ORIEL_LOOP_TURNS;
}

#endif
