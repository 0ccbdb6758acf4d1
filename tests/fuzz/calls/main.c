/* Random arguments for every function of the table. Each call must return an error class that its
 * arguments deserve, or have its specified effect. Nothing else may change, and nothing may crash.
 * FUZZ_SEED repeats a run (the program prints the number), FUZZ_CALLS sets the number of calls per
 * case, FUZZ_TRACE=1 prints each call before it is made. */
#include "fuzz.h"

#include <stdlib.h>

/* For operations, the model compares the targets' memory after each call. */
static const struct test_case cases[] = {
    CASE(handles_that_are_no_window, KIND_ANY, 1),
    CASE(creation_with_random_arguments, KIND_ANY, 1),
    CASE(objects_and_memory_with_random_arguments, KINDS_ALL | KIND_ONE_NODE, 1),
    CASE(synchronisation_with_random_misuse, KINDS_BOTH, 1),
    CASE(operations_with_random_arguments, KINDS_ALL | KIND_ONE_NODE, 1),
    CASE(operations_in_windows_of_one_rank, KINDS_ALL, 1),
    CASE(dynamic_windows_with_random_regions, KIND_ARENA | KIND_HEAP | KIND_ONE_NODE, 1),
    CASE(memory_handles_with_random_arguments, KINDS_ALL | KIND_ONE_NODE, 1),
    CASE(every_function_of_the_table_was_called, KIND_ONE_NODE, 1),
};

int main(int argc, char **argv)
{
    const char *seed = getenv("FUZZ_SEED");
    if (seed)
        setenv("TEST_SEED", seed, 1);
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
