/* One random operation: its arguments, the model's verdict on them, the call, and its permitted
 * effects. */
#ifndef ORIEL_TESTS_FUZZ_OPERATE_H
#define ORIEL_TESTS_FUZZ_OPERATE_H

#include "observed_window.h"
#include "random_buffers.h"

struct operation {
    enum fuzz_function function; /* the int form, or its MPI_Count form */
    bool accumulates, fetches, single;
    struct side origin, result, target;
    int rank;
    MPI_Aint disp;
    MPI_Op op;
    bool notifies; /* the target's counter of that number */
    int number;
    bool no_compare;      /* no compare buffer, for compare_and_swap */
    MPI_Aint moved_bytes; /* on success */
    bool nothing;         /* no byte is accessed */
};

void operate_start(void);
void operate_stop(void);

/* Draws one operation, calls it and checks the answer. */
void operate_once(struct observed_window *observed, struct sides *sides, struct random *random);

/* A displacement inside of the rank's memory, just outside, or anywhere. */
MPI_Aint operation_disp_draw(const struct observed_window *observed, int rank,
                             struct random *random);

/* The model, in expected_errors.c, which also sets moved_bytes and nothing. */
struct verdict operation_judge(struct operation *operation, const struct observed_window *observed);
bool operation_puts(const struct operation *operation);
bool operation_gets(const struct operation *operation);
/* compare_and_swap; fetch_and_op, also as a list of one element */
bool operation_swaps(const struct operation *operation);
bool operation_fetches_one(const struct operation *operation);

/* wide_swaps.c: the same for a swap of 16 bytes. */
void swap_call(struct observed_window *observed, struct random *random);

/* --- persistent.c --- */

/* Whether the next call of this function is replaced by the persistent operation; and that. */
bool persistent_is_due(enum fuzz_function function, MPI_Win win);
int persistent_call(const struct operation *op, const void *compare, MPI_Win win);

#endif
