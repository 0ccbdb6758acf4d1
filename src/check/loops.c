/* The last place and distance of each kind that a thread has used lately.  small.c calls. */
#include "check/loops.h"

enum {
    LOOPS = 64,      /* a power of 2 */
    TURNS = 2,       /* as often at the same distance: what comes belongs to a loop */
    SPARSEST = 4096, /* as in arrival.c */
};

struct loop {
    uint64_t which;
    int64_t offset;
    int64_t distance;
    uint32_t turns;
};

bool oriel_loop_continues(uint64_t kind, const struct oriel_extent *runs)
{
    static _Thread_local struct loop loops[LOOPS];
    uint64_t which = kind * UINT64_C(0x9e3779b97f4a7c15);
    struct loop *loop = &loops[which >> 58];
    if (loop->which != which)
        *loop = (struct loop){.which = which, .offset = runs->offset};
    int64_t distance = runs->offset - loop->offset;
    bool further = distance != 0 && distance == loop->distance &&
                   (uint64_t)(distance < 0 ? -distance : distance) <= SPARSEST * runs->len_bytes;
    loop->turns = further ? loop->turns + 1 : 0;
    loop->distance = distance;
    loop->offset = runs->offset;
    return loop->turns >= TURNS;
}
