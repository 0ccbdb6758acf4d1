/* Programs with one error, and their twins without it. A case is both: `right` selects the twin.
 * All ranks call a case, and it leaves nothing behind: it frees its windows.  The lines that a
 * finding must name carry a comment, "FINDS C1 here", which run.py reads. */
#ifndef ORIEL_TESTS_CHECK_OFFENDERS_H
#define ORIEL_TESTS_CHECK_OFFENDERS_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct offender_case {
    const char *name;
    const char *rule; /* the rule that the offender breaks */
    const char *file;
    int line;
    int ranks;  /* minimum number */
    bool alone; /* not in one job with others: the case is about the end of the job */
    /* neither offender nor twin shares a job: it ends the job, or changes process-wide state */
    bool apart;
    bool without_threads; /* the checker misses the offender with MPI_THREAD_MULTIPLE */
    void (*run)(bool right);
    struct offender_case *next;
};

/* A case that needs at least the given number of ranks. Its twin is called
 * puts_in_one_epoch_innocent.
 *
 *     CASE(C1, puts_in_one_epoch, 2) { ... right ? ... : ... } */
#define CASE(rule, name, ranks)                 CASE_ENTER(rule, name, ranks, false, false, false)
#define CASE_ALONE(rule, name, ranks)           CASE_ENTER(rule, name, ranks, true, false, false)
#define CASE_APART(rule, name, ranks)           CASE_ENTER(rule, name, ranks, true, true, false)
#define CASE_WITHOUT_THREADS(rule, name, ranks) CASE_ENTER(rule, name, ranks, false, false, true)

#define CASE_ENTER(rule_, name_, ranks_, alone_, apart_, without_threads_)                         \
    static void name_(bool right);                                                                 \
    static struct offender_case case_of_##name_ = {.name = #name_,                                 \
                                                   .rule = #rule_,                                 \
                                                   .file = __FILE__,                               \
                                                   .line = __LINE__,                               \
                                                   .ranks = (ranks_),                              \
                                                   .alone = (alone_),                              \
                                                   .apart = (apart_),                              \
                                                   .without_threads = (without_threads_),          \
                                                   .run = (name_)};                                \
    __attribute__((constructor)) static void enter_##name_(void)                                   \
    {                                                                                              \
        offender_enter(&case_of_##name_);                                                          \
    }                                                                                              \
    static void name_(bool right)

void offender_enter(struct offender_case *entry);

/* Defined by programs whose cases have threads. */
extern const bool offenders_have_threads __attribute__((weak));

/* In MPI_COMM_WORLD. */
extern int rank, size;

/* Delays for a random time, possibly zero. */
void delay(void);

/* A window of MPI_COMM_WORLD with count ints per rank, in zeroed memory of MPI_Win_allocate,
 * displacements in ints. */
MPI_Win ints_window(int count);

/* The same with an info key; value NULL for none. */
MPI_Win hinted_window(int count, const char *key, const char *value);

/* A duplicate of the communicator with its own error handler. */
MPI_Comm comm_handled(MPI_Comm from, MPI_Comm_errhandler_function *function);

/* Sets the window's own error handler. */
void win_handled(MPI_Win win, MPI_Win_errhandler_function *function);

/* Whether a callback may call MPI. With MPI_THREAD_MULTIPLE, MPICH 4.0 runs callbacks under its
 * lock, and a call from the callback deadlocks on it. */
bool calls_back(void);

/* Gives a window that the case created itself the case's name. */
MPI_Win named(MPI_Win win);

/* A group of one rank of MPI_COMM_WORLD, or of its first ranks; freed at the end of the job. */
MPI_Group group_of(int member);
MPI_Group group_of_first(int count);

/* Calls the window's last fence and frees the window. */
void fence_and_free(MPI_Win win);

/* Waits for a flag in memory by loads in the case's own file. Instrumented loads carry order. */
static inline void await(const volatile int *flag, int value)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}

/* Sends an empty message: everything before the send happens before everything after the
 * receive. */
void notify(int whom);
void await_notice(int whom);

#endif
