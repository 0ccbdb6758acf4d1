/* Each of many error handlers receives its call, even with more active functions than the checker
 * can distinguish. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { HANDLERS = 66 };

static int called[HANDLERS];

#define HANDLER(at)                                                                                \
    static void handler_##at(MPI_Comm *comm, int *code, ...)                                       \
    {                                                                                              \
        MPI_Barrier(*comm);                                                                        \
        called[at] += *code == MPI_ERR_TOPOLOGY;                                                   \
    }
#define NAME(at) handler_##at,
#define TEN(EACH, tens)                                                                            \
    EACH(tens##0)                                                                                  \
    EACH(tens##1) EACH(tens##2) EACH(tens##3) EACH(tens##4) EACH(tens##5) EACH(tens##6)            \
        EACH(tens##7) EACH(tens##8) EACH(tens##9)
#define ALL(EACH)                                                                                  \
    EACH(0)                                                                                        \
    EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) TEN(EACH, 1)           \
        TEN(EACH, 2) TEN(EACH, 3) TEN(EACH, 4) TEN(EACH, 5) EACH(60) EACH(61) EACH(62) EACH(63)    \
            EACH(64) EACH(65)
ALL(HANDLER)

int main(int argc, char **argv)
{
    static MPI_Comm_errhandler_function *const functions[HANDLERS] = {ALL(NAME)};
    int wrong = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < HANDLERS; i++) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(functions[i], &handler);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        MPI_Errhandler_free(&handler);
        MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TOPOLOGY);
    }
    for (int i = 0; i < HANDLERS; i++)
        wrong += called[i] != 1;
    if (wrong > 0)
        fprintf(stderr, "%d of %d handlers were not called as they should\n", wrong, HANDLERS);
    MPI_Finalize();
    return wrong > 0;
}
