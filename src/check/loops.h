/* Whether accesses come in a loop, over places at one distance: such ones become one in the tree, where cells would keep each.  A
 * thread remembers the last place and distance of each kind that it has used lately.  small.c calls. */
#ifndef ORIEL_CHECK_LOOPS_H
#define ORIEL_CHECK_LOOPS_H

#include "check/history.h"

enum {
    ORIEL_LOOPS = 64,           /* a power of 2 */
    ORIEL_LOOP_TURNS = 2,       /* as often at the same distance: what comes belongs to a loop */
    ORIEL_LOOP_SPARSEST = 4096, /* as in arrival.c */
};

struct oriel_loop {
    uint64_t which;
    int64_t offset;
    int64_t distance;
    uint32_t turns;
};

/* Of this thread's accesses of one kind (a history and a trait, mixed): whether this one continues the last two. */
static inline bool oriel_loop_continues(struct oriel_loop loops[ORIEL_LOOPS], uint64_t kind, const struct oriel_extent *runs)
{
    uint64_t which = kind * UINT64_C(0x9e3779b97f4a7c15);
    struct oriel_loop *loop = &loops[which >> 58];
    if (loop->which != which)
        *loop = (struct oriel_loop){.which = which, .offset = runs->offset};
    int64_t distance = runs->offset - loop->offset;
    bool further = distance != 0 && distance == loop->distance &&
                   (uint64_t)(distance < 0 ? -distance : distance) <= ORIEL_LOOP_SPARSEST * runs->len_bytes;
    loop->turns = further ? loop->turns + 1 : 0;
    loop->distance = distance;
    loop->offset = runs->offset;
    return loop->turns >= ORIEL_LOOP_TURNS;
}

#endif
