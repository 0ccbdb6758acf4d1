/* Runs the cases of a table on all ranks and prints each one's verdict, which all ranks share. */
#include "cases.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 20 };

int rank, ranks;
static int wrong;

void cases_check(bool condition, int line, const char *format, ...)
{
    if (condition || ++wrong > SHOWN)
        return;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("# rank %d, line %d: %s\n", rank, line, text);
}

int cases_run(int argc, char **argv, const struct array_case *cases, size_t count)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int failed = 0, run = 0;
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        int by_all = 0;
        wrong = 0;
        run++;
        cases[i].run();
        MPI_Allreduce(&wrong, &by_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        failed += by_all > 0;
        if (rank == 0)
            printf("%s %s\n", by_all > 0 ? "not ok" : "ok", cases[i].name);
        fflush(stdout);
    }
    return failed > 0 || run == 0;
}
