/* Shared parts of the tests of persistent operations. */
#ifndef ORIEL_TESTS_EXT_PERSISTENT_H
#define ORIEL_TESTS_EXT_PERSISTENT_H

#include "outstanding.h"

#include <oriel/ext.h>

enum { COMPLETIONS = 9 }; /* functions that complete a request, or ask for its status */

/* Without Oriel there are no such functions. */
static inline int persistent_main(int argc, char **argv, const struct test_case *cases,
                                  size_t case_count)
{
    if (!MPIX_Query_oriel())
        return 77;
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, case_count);
}

#endif
