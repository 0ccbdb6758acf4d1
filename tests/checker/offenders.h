/* Programs with one thing wrong, and their twins with nothing wrong: a case is both, and differs where it asks whether it is
 * to be right. All ranks call it, and it leaves nothing behind: it frees its windows.  The lines that a finding must name
 * carry a comment, "FINDS C1 here", which run.py reads.  The files of cases include this. */
#ifndef ORIEL_TESTS_CHECK_OFFENDERS_H
#define ORIEL_TESTS_CHECK_OFFENDERS_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct offender_case {
    const char *name;
    const char *rule; /* what the offender breaks */
    const char *file;
    int line;
    int ranks;  /* needed at least */
    bool alone; /* not in one job with others: it says something about the job's end */
    bool apart; /* nor is its twin: it ends the job, or changes what is looked at in it */
    void (*run)(bool right);
    struct offender_case *next;
};

/* A case that needs at least so many ranks: CASE(C1, puts_in_one_epoch, 2) { ... right ? ... : ... }; its twin is called
 * puts_in_one_epoch_innocent. */
#define CASE(rule, name, ranks)       CASE_ENTER(rule, name, ranks, false, false)
#define CASE_ALONE(rule, name, ranks) CASE_ENTER(rule, name, ranks, true, false)
#define CASE_APART(rule, name, ranks) CASE_ENTER(rule, name, ranks, true, true)

#define CASE_ENTER(rule_, name_, ranks_, alone_, apart_)                                                               \
    static void name_(bool right);                                                                                     \
    static struct offender_case case_of_##name_ = {.name = #name_,                                                     \
                                                   .rule = #rule_,                                                     \
                                                   .file = __FILE__,                                                   \
                                                   .line = __LINE__,                                                   \
                                                   .ranks = (ranks_),                                                  \
                                                   .alone = (alone_),                                                  \
                                                   .apart = (apart_),                                                  \
                                                   .run = (name_)};                                                    \
    __attribute__((constructor)) static void enter_##name_(void)                                                       \
    {                                                                                                                  \
        offender_enter(&case_of_##name_);                                                                              \
    }                                                                                                                  \
    static void name_(bool right)

void offender_enter(struct offender_case *entry);

/* Of MPI_COMM_WORLD. */
extern int rank, size;

/* Loses some time, or none. */
void delay(void);

/* A window of MPI_COMM_WORLD with so many ints from each rank, in zeroed memory of MPI_Win_allocate, displacements in ints. */
MPI_Win ints_window(int count);

/* The same with an info key; value NULL for none. */
MPI_Win hinted_window(int count, const char *key, const char *value);

/* A communicator like the one, with an error handler of its own. */
MPI_Comm comm_handled(MPI_Comm from, MPI_Comm_errhandler_function *function);

/* The window gets an error handler of its own. */
void win_handled(MPI_Win win, MPI_Win_errhandler_function *function);

/* Whether a callback may call MPI: where threads may call, MPICH 4.0 calls back with its lock, which another call there meets. */
bool calls_back(void);

/* A window that a case has made itself gets the case's name. */
MPI_Win named(MPI_Win win);

/* A group of one rank of MPI_COMM_WORLD, or of the first so many; freed at the end of the job. */
MPI_Group group_of(int member);
MPI_Group group_of_first(int count);

/* A fence of the window, its last one: then it is freed. */
void fence_and_free(MPI_Win win);

/* A flag in memory, by loads of the case's own file: where these are watched, they carry order. */
static inline void await(const volatile int *flag, int value)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}

/* A message without content: what comes before it on one side is before what comes after it on the other. */
void tell(int whom);
void hear(int whom);

#endif
