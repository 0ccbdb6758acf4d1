/* The components of a plan: passes over the items of a chunk, each one loop of transport/shared/.
 * The offsets of lists are stored after the passes. Private to copies by plans. */
#ifndef ORIEL_DATATYPE_COPY_PLAN_PASS_H
#define ORIEL_DATATYPE_COPY_PLAN_PASS_H

#include "datatype/copy_plan.h"
#include "transport/shared/copy_words.h"

/* The operation on all items of a chunk. */
enum form { FORM_ROW, FORM_RUNS, FORM_LIST, FORM_EVEN, FORM_PIECES };

struct pass {
    enum form form;
    uint64_t count; /* number of list entries; for runs: their bytes */
    int64_t to_bytes;
    int64_t from_bytes;
    union {
        oriel_row_loop *row;
        oriel_list_loop *list;
        oriel_even_loop *even;
    } loop;
    union {
        struct oriel_step_at at[ORIEL_ROW_STEPS]; /* of a row */
        struct {
            int64_t stride_bytes, second_bytes;
        } even; /* of a list with constant strides on one side */
    };
    const int32_t *offsets; /* of a list; for pieces: both offsets and the length */
};

struct oriel_plan {
    struct oriel_memo memo; /* first: the node's list points to this member */
    struct oriel_plan_key key;
    uint64_t counted, items; /* at creation; other counts have the same ratio */
    int64_t to_step, from_step;
    uint64_t chunk;
    unsigned count;
    struct pass passes[]; /* followed by the offsets */
};

#endif
