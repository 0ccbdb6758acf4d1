/* One random operation: its arguments, the verdict that a model gives on them, the call, and what may have changed after it.
 * Called by the cases of turns.c. */
#ifndef ORIEL_TESTS_FUZZ_OPERATE_H
#define ORIEL_TESTS_FUZZ_OPERATE_H

#include "field.h"
#include "sides.h"

struct operation {
    enum fuzz_function function; /* the narrow form, or the wide one of it */
    bool accumulates, fetches, single;
    struct side origin, result, target;
    int rank;
    MPI_Aint disp;
    MPI_Op op;
    bool no_compare;      /* buffer, for compare_and_swap */
    MPI_Aint moved_bytes; /* when it succeeds */
    bool nothing;         /* is accessed */
};

void operate_start(void);
void operate_stop(void);

/* Draws one, calls it, judges it. */
void operate_once(struct field *field, struct sides *sides, struct random *random);

/* The model, in verdicts.c: moved_bytes and nothing are filled in. */
struct verdict operation_judge(struct operation *operation, const struct field *field);
bool operation_is(const struct operation *operation, enum fuzz_function narrow,
                  enum fuzz_function wide);

#endif
