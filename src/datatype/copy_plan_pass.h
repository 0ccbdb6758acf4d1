/* What a plan is made of: passes over the items of a chunk, each one loop of transport/shared/.
 * The offsets of lists lie behind the passes.  copy_plan_make.c makes them, copy_plan.c runs them; nobody else includes this. */
#ifndef ORIEL_DATATYPE_COPY_PLAN_PASS_H
#define ORIEL_DATATYPE_COPY_PLAN_PASS_H

#include "datatype/copy_plan.h"
#include "transport/shared/copy_words.h"

/* What is done for all items of a chunk. */
enum form { FORM_ROW, FORM_RUNS, FORM_LIST, FORM_EVEN, FORM_PIECES };

struct pass {
    enum form form;
    uint64_t count; /* of what is listed; of runs: their bytes */
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
        } even; /* of a list whose one side lies at equal distances */
    };
    const int32_t *offsets; /* of a list; of pieces: of both sides, and the length */
};

struct oriel_plan {
    struct oriel_memo memo; /* first: the node's list knows it by this */
    struct oriel_plan_key key;
    uint64_t counted, items; /* when it was made; others are in the same proportion */
    int64_t to_step, from_step;
    uint64_t chunk;
    unsigned count;
    struct pass passes[]; /* the offsets lie behind them */
};

#endif
