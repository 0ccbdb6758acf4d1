/* Shared by the tests of ARMCI and Global Arrays: a table of cases that all ranks run in order, and
 * the check that fails a case. The program starts MPI and its library, and ends them; in between it
 * calls cases_run once. */
#ifndef ORIEL_TESTS_ARRAYS_CASES_H
#define ORIEL_TESTS_ARRAYS_CASES_H

#include <stdbool.h>
#include <stddef.h>

struct array_case {
    const char *name;
    void (*run)(void);
};
#define CASE(function)                                                                             \
    {                                                                                              \
#function, function                                                                        \
    }

extern int rank, ranks; /* in MPI_COMM_WORLD, set by cases_run */

/* Runs the table, or the case that the first argument names. The exit status is the same on every
 * rank: 0, or 1 if any case failed on any rank. */
int cases_run(int argc, char **argv, const struct array_case *cases, size_t count);

/* Records a failure of the running case unless the condition holds. */
void cases_check(bool condition, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define CHECK(condition, ...) cases_check((condition), __LINE__, __VA_ARGS__)

#endif
