/* Plans: for two layouts whose blocks do not fit each other, what of one period of both moves from where to where, taken apart
 * once into rows and lists of steps (transport/shared/copy_words.h) and kept beside a layout for the copies that follow.
 * A plan does not change once it is kept and goes with the layout, so any number of threads copy by it; copy_layout.c calls. */
#ifndef ORIEL_DATATYPE_COPY_PLAN_H
#define ORIEL_DATATYPE_COPY_PLAN_H

#include "datatype/pair_types.h"

enum {
    ORIEL_PLAN_PIECES = 16384, /* of one period, at most */
    ORIEL_PLAN_ROWS =
        24, /* pieces that are moved as rows, many items at a time; more are lists, item by item */
    ORIEL_PLANS_KEPT = 8, /* by one layout */
};

/* What tells one pair of parts from another, whatever their counts: by the numbers of the nodes. */
struct oriel_plan_key {
    uint64_t to_number; /* 0: dense */
    uint64_t from_number;
    int64_t to_stride_bytes; /* 0: one item, or dense */
    int64_t from_stride_bytes;
};

struct oriel_plan;

/* For as many items of both parts, piece by piece of the first; NULL when memory is exhausted, or lists would have to
 * reach farther than 2 GiB. */
struct oriel_plan *oriel_plan_make(const struct oriel_part *to, const struct oriel_part *from);

void oriel_plan_run(const struct oriel_plan *plan, char *to, const char *from, uint64_t items);

void oriel_plan_free(struct oriel_plan *plan);

/* The plan for the key that is kept beside the node, and how many items of it the parts are; NULL when there is none.  counted:
 * how many items the part of to has, or of from where to is dense. */
const struct oriel_plan *oriel_plan_find(const struct oriel_node *node,
                                         const struct oriel_plan_key *key, uint64_t counted,
                                         uint64_t *items);

/* Whether a plan that takes longer to make than one copy by it is worth it: from the second such copy on. */
bool oriel_plan_pays(const struct oriel_node *node);

/* Takes over the plan, by which so many items are what is counted so; false, and it is still the caller's, where the node keeps
 * as many as it may.  One that no constructor made keeps none. */
bool oriel_plan_keep(const struct oriel_node *node, const struct oriel_plan_key *key,
                     uint64_t counted, uint64_t items, struct oriel_plan *plan);

#endif
