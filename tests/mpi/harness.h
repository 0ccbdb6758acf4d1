/* The harness of the MPI tests: a program is a table of cases, each a behaviour that all ranks
 * check together in one launch. Every rank runs every case in the table's order, and a case ends
 * with one verdict that all ranks share. Called by the test programs in this folder only; CHECK may
 * be used from any thread, the rest from the main thread. */
#ifndef ORIEL_TESTS_HARNESS_H
#define ORIEL_TESTS_HARNESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a window's memory comes from. A case that takes kinds runs once for each of them. */
enum window_kind {
    KIND_ANY = 0,          /* the case makes its own windows */
    KIND_ALLOCATE = 1,     /* MPI_Win_allocate */
    KIND_SHARED = 2,       /* MPI_Win_allocate_shared; skipped where not all ranks share memory */
    KIND_ARENA = 4,        /* MPI_Win_create over memory from MPI_Alloc_mem */
    KIND_HEAP = 8,         /* MPI_Win_create over memory from malloc */
    KIND_ONE_MACHINE = 16, /* no kind: with it a case is skipped where not all ranks share memory */
    KINDS_BOTH = KIND_ALLOCATE | KIND_HEAP,
    KINDS_ALL = KIND_ALLOCATE | KIND_SHARED | KIND_ARENA | KIND_HEAP
};

struct test_case {
    const char *name;
    void (*run)(enum window_kind kind);
    int kinds;     /* bits of enum window_kind, or KIND_ANY */
    int min_ranks; /* with fewer the case is skipped */
};
#define CASE(function, kinds, min_ranks)                                                           \
    {                                                                                              \
#function, function, kinds, min_ranks                                                      \
    }
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A window with the memory that belongs to it. Its error handler turns an unexpected error into a
 * failure of the case. */
struct window {
    MPI_Win win;
    char *base;
    enum window_kind kind;
};

extern int world_rank;
extern int world_size;

/* Initialises MPI with the thread level wanted, runs the table; returns the exit status: 0, 1, or
 * 77 when all was skipped. Arguments: --list, --only NAME (with or without the kind). */
int harness_main(int argc, char **argv, int thread_level, const struct test_case *cases,
                 size_t case_count);

/* Notes a failure of the running case unless the condition holds; returns the condition. */
bool harness_check(bool condition, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool harness_check_class(int code, int wanted_class, const char *file, int line, const char *call);
#define CHECK(condition, ...) harness_check((condition), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_CLASS(wanted_class, call)                                                            \
    harness_check_class((call), (wanted_class), __FILE__, __LINE__, #call)
#define CHECK_OK(call) CHECK_CLASS(MPI_SUCCESS, call)
#define CHECK_EQUAL(got, wanted)                                                                   \
    harness_check((long long)(got) == (long long)(wanted), __FILE__, __LINE__,                     \
                  "%s is %lld, not %lld", #got, (long long)(got), (long long)(wanted))

/* Marks the running case as skipped; every rank must call it for the same reason. */
void harness_skip(const char *reason);
/* True once the running case has failed on this rank: loops may leave early where no other rank
 * waits for them. */
bool harness_failed(void);

/* What Oriel says of the last call that failed here; nothing where the program runs on the host
 * alone. */
const char *said_by_oriel(void);
/* Whether the program does not run on the host alone. */
bool through_oriel(void);
/* Whether all ranks are on one machine, as far as Oriel may believe it: with ORIEL_NODE_SIZE they
 * are on several. */
bool ranks_share_memory(void);
/* The ranks that are on this one's machine, in their order; the caller frees it. Collective. */
MPI_Comm machine_comm(void);
/* The level of thread support that the host gave. */
int harness_thread_level(void);

/* Windows over any communicator; bytes and unit may differ by rank. */
struct window window_make(enum window_kind kind, MPI_Aint size_bytes, int disp_unit, MPI_Comm comm);
void window_free(struct window *window);
/* Gives a window of the case's own the same error handler. */
void window_watch(MPI_Win win);

/* A barrier that sleeps while it waits: hosts poll without yielding, and ranks outnumber cores. */
void barrier(MPI_Comm comm);
/* The same for any request. */
void request_await(MPI_Request *request);
/* The number of rounds for this many ranks: full up to two ranks, fewer above, and a tenth of that
 * between machines. */
int scaled_rounds(int full);

/* Pseudo-random numbers. The seed is the same on all ranks, printed at the start, and set by the
 * variable TEST_SEED. */
struct random {
    uint64_t state;
};
struct random random_start(uint64_t stream);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit);
/* Nothing, a short spin, a yield or a sleep of at most the given microseconds. */
void random_pause(struct random *random, unsigned max_us);
void sleep_us(unsigned us);
double seconds_now(void);

/* Reads and writes of memory that other processes change meanwhile. */
static inline int64_t load_word(const int64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static inline void store_word(int64_t *word, int64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif
