/* Shared by the fuzzing tests: calls counted by function, and verdicts on their answers. A model
 * computes a verdict from the arguments alone, before the call. The test then compares the call's
 * answer with the verdict. */
#ifndef ORIEL_TESTS_FUZZ_H
#define ORIEL_TESTS_FUZZ_H

#include "../../mpi/harness.h"

#include "../../../include/oriel/ext.h"
#include "../../../include/oriel/mpi_rma.h"

/* One per row of functions.def and extensions.def. */
enum fuzz_function {
#define FUNCTION(name, parameters, arguments) FUZZ_##name,
#define FORWARD                               FUNCTION
#define LARGE                                 FUNCTION
#include "../../../src/host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#define EXTENSION(name, parameters, arguments) FUZZ_##name,
#include "../../../src/host/extensions.def"
#undef EXTENSION
    FUZZ_FUNCTIONS
};

void fuzz_count(enum fuzz_function function);
const char *fuzz_name(enum fuzz_function function);

/* Every call of a function under test uses one of these macros. */
#define FUZZ(name, ...)  (fuzz_count(FUZZ_##name), MPI_##name(__VA_ARGS__))
#define FUZZX(name, ...) (fuzz_count(FUZZ_##name), MPIX_##name(__VA_ARGS__))

/* Completes an active request by one of the functions in rotation; false when that fails. */
bool fuzz_complete(MPI_Request request);

/* The case that requires a call of every function. */
void every_function_of_the_table_was_called(enum window_kind kind);

/* Error classes as bits. */
enum fuzz_fault {
#define FAULT(name, class) FAULT_POSITION_##name,
#include "error_classes.def"
#undef FAULT
    FUZZ_FAULTS
};
enum {
#define FAULT(name, class) FAULT_##name = 1 << FAULT_POSITION_##name,
#include "error_classes.def"
#undef FAULT
    FAULT_ANY = (1 << FUZZ_FAULTS) - 1
};

/* With a bit in must, the call has to fail with a class of must or may. With bits only in may, it
 * is allowed to. */
struct verdict {
    unsigned must;
    unsigned may;
};

/* Describes the next call, for messages. FUZZ_TRACE=1 prints each call before it is made, which
 * identifies a crash. */
void fuzz_describe(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *fuzz_description(void);

/* Compares the answer with the verdict; true for success. */
bool fuzz_judge(struct verdict verdict, int code);

/* The bit of an answer's class, 0 for success. */
unsigned fuzz_fault_of(int code);

/* The number of calls per case: FUZZ_CALLS. */
int fuzz_calls(void);

/* This rank's own random numbers; random_start gives the numbers common to all ranks.  Every case
 * begins with it. */
struct random fuzz_own(uint64_t stream);

static inline bool one_in(struct random *random, uint64_t chances)
{
    return random_below(random, chances) == 0;
}
static inline int below(struct random *random, int limit)
{
    return (int)random_below(random, (uint64_t)limit);
}

/* Values that typically break code. */
int fuzz_bad_int(struct random *random);
MPI_Aint fuzz_bad_aint(struct random *random);

/* A rank that is neither in 0 to n - 1 nor MPI_PROC_NULL. */
int fuzz_bad_rank(struct random *random, int n);
/* Assertions: a subset of the bits that the call accepts, or bits of other calls or of none. */
int fuzz_assert(struct random *random, int taken, bool *known);

void operations_with_random_arguments(enum window_kind kind);
void operations_in_windows_of_one_rank(enum window_kind kind);
void synchronisation_with_random_misuse(enum window_kind kind);
void creation_with_random_arguments(enum window_kind kind);
void dynamic_windows_with_random_regions(enum window_kind kind);
void objects_and_memory_with_random_arguments(enum window_kind kind);
void memory_handles_with_random_arguments(enum window_kind kind);
void handles_that_are_no_window(enum window_kind kind);

#endif
