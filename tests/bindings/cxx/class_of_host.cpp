// The MPI::Win in a host's own mpi.h: <oriel/mpi_win.hpp> must not replace it, and Oriel serves its
// windows, too. Skipped where the host has no such class.
#include "mpi2_cases.hpp"

#include <cstdio>

#if ORIEL_MPI_WIN
int main()
{
    std::printf("skipped: this host's mpi.h has no classes\n");
    return 77;
}
#else
static const struct test_case cases[] = { MPI2_CASES };

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
#endif
