/* Updates of elements with holes between them, in memory that this process loads and stores.
 * Elements are gathered contiguously, a plain kernel computes on many at once, and the results are
 * scattered.
 *
 * While a step runs, the caller excludes all other updates of the target. */
#ifndef ORIEL_RMA_SCATTERED_H
#define ORIEL_RMA_SCATTERED_H

#include "datatype/pair_types.h"

enum { ORIEL_SCATTERED_BYTES = 4096 }; /* of a step, at most: the buffers fit the L1 cache */

/* One side: a dense one has an address, any other a cursor. */
struct oriel_scattered_side {
    bool present;
    bool dense;
    char *at; /* of the part; dense: of the next element */
    struct oriel_cursor cursor;
};

struct oriel_scattered {
    const struct oriel_kind_properties *kind;
    oriel_kernel *kernel;
    bool stores;   /* the operator changes the target */
    bool in_place; /* the kernel works on the target's memory, block by block */
    struct oriel_scattered_side origin, result;
    struct oriel_scattered_side target;
    struct oriel_scattered_side again; /* the target once more, for the scatter */
};

/* Whether the blocks of a part are so short that oriel_scattered_update is faster. */
bool oriel_scattered_pays(const struct oriel_part *part);

/* All parts have the same number of elements of the kind. origin and result may be NULL. False
 * without memory. */
bool oriel_scattered_open(struct oriel_scattered *out, enum oriel_kind kind, enum oriel_operator op,
                          const struct oriel_part *target, const struct oriel_part *origin,
                          const struct oriel_part *result);

/* Updates the next count elements, which have at most ORIEL_SCATTERED_BYTES in all. */
void oriel_scattered_update(struct oriel_scattered *scattered, uint64_t count);

void oriel_scattered_close(struct oriel_scattered *scattered);

#endif
