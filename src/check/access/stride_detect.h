/* Whether accesses come in a loop, over places at one distance: such ones become one in the tree, where cells would keep each.  A
 * thread remembers the last place and distance of each kind that it has used lately.  cell_store.c calls. */
#ifndef ORIEL_CHECK_ACCESS_STRIDE_DETECT_H
#define ORIEL_CHECK_ACCESS_STRIDE_DETECT_H

#include "check/access/history.h"

enum {
    ORIEL_LOOPS = 64,           /* a power of 2 */
    ORIEL_LOOP_TURNS = 2,       /* as often at the same distance: what comes belongs to a loop */
    ORIEL_LOOP_SPARSEST = 4096, /* as in insert.c */
};

struct oriel_loop {
    uint64_t which;
    int64_t offset;
    int64_t distance;
    uint32_t turns;
};

extern _Thread_local struct oriel_loop oriel_loops[ORIEL_LOOPS]
    __attribute__((visibility("hidden"))); /* cell_store.c's own */

/* Of this thread's accesses of one kind, that of a trait in a history; a new one begins at the offset. */
static inline struct oriel_loop *oriel_loop_of(oriel_shm_offset history, oriel_shm_offset trait,
                                               int64_t offset)
{
    uint64_t which = (history ^ trait << 20) * UINT64_C(0x9e3779b97f4a7c15);
    struct oriel_loop *loop = &oriel_loops[which >> 58];
    if (__builtin_expect(loop->which != which, 0))
        *loop = (struct oriel_loop){.which = which, .offset = offset};
    return loop;
}

/* Whether one there would continue the last. */
static inline bool oriel_loop_expects(const struct oriel_loop *loop, int64_t offset)
{
    int64_t distance = offset - loop->offset;
    return __builtin_expect(distance == loop->distance && distance != 0, 0);
}

/* Takes one that continues nothing.  False, and nothing has happened: it may. */
static inline bool oriel_loop_leave(struct oriel_loop *loop, int64_t offset)
{
    if (oriel_loop_expects(loop, offset))
        return false;
    loop->turns = 0;
    loop->distance = offset - loop->offset;
    loop->offset = offset;
    return true;
}

/* Whether this one continues the last two. */
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
