/* Plans: the moves within one period of two layouts whose blocks do not match. The period is
 * decomposed once into rows and lists of steps (transport/shared/copy_words.h) and cached with a
 * layout for later copies. A plan does not change once it is cached, and is freed with the layout,
 * so any number of threads may copy with it. */
#ifndef ORIEL_DATATYPE_COPY_PLAN_H
#define ORIEL_DATATYPE_COPY_PLAN_H

#include "datatype/pair_types.h"

enum {
    ORIEL_PLAN_PIECES = 16384, /* maximum per period */
    /* maximum number of pieces that are moved as rows, many items at a time; more pieces form
     * lists, which are moved item by item */
    ORIEL_PLAN_ROWS = 24,
    ORIEL_PLANS_CACHED = 8, /* maximum per layout */
};

/* Identifies a pair of parts, regardless of their counts, by the numbers of the tree nodes. */
struct oriel_plan_key {
    uint64_t to_number; /* 0 if dense */
    uint64_t from_number;
    int64_t to_stride_bytes; /* 0 for one item, or if dense */
    int64_t from_stride_bytes;
};

struct oriel_plan;

/* Makes a plan for two parts with equal numbers of items, from the pieces of the first item.
 * Returns NULL if memory is exhausted, or if offsets in lists would exceed 2 GiB. */
struct oriel_plan *oriel_plan_make(const struct oriel_part *to, const struct oriel_part *from);

void oriel_plan_run(const struct oriel_plan *plan, char *to, const char *from, uint64_t items);

void oriel_plan_free(struct oriel_plan *plan);

/* The cached plan of the node for the key, and the number of plan items. NULL if there is
 * none. counted is the number of items of the part `to`, or of `from` if `to` is dense. */
const struct oriel_plan *oriel_plan_find(const struct oriel_node *node,
                                         const struct oriel_plan_key *key, uint64_t counted,
                                         uint64_t *items);

/* True if it pays to make a plan that takes longer to make than one copy, and the node's cache has
 * room: from the second call on. The call records that the node was walked. */
bool oriel_plan_pays(const struct oriel_node *node);

/* Transfers the plan to the node's cache. A copy of counted items consists of items plan items.
 * Returns false, and the caller keeps the plan, if the cache is full. Only nodes that
 * datatype constructors made have a cache. */
bool oriel_plan_cache_insert(const struct oriel_node *node, const struct oriel_plan_key *key,
                             uint64_t counted, uint64_t items, struct oriel_plan *plan);

#endif
