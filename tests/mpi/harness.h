/* The harness of the MPI tests: a program is a table of cases, each a behaviour that all ranks
 * check together in one launch. Every rank runs every case in the table's order, and a case ends
 * with one verdict that all ranks share. Any thread may use CHECK; the rest belongs to the main
 * thread. */
#ifndef ORIEL_TESTS_HARNESS_H
#define ORIEL_TESTS_HARNESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPI's standard ABI has integers in place of Fortran handles (MPI-5.0, 20.3.4). */
#if defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION) && !defined(OMPI_MAJOR_VERSION)
typedef int MPI_Fint;
#define MPI_Win_c2f MPI_Win_toint
#define MPI_Win_f2c MPI_Win_fromint
#endif

/* The source of a window's memory. A case that takes kinds runs once for each of them. */
enum window_kind {
    KIND_ANY = 0,       /* the case makes its own windows */
    KIND_ALLOCATE = 1,  /* MPI_Win_allocate */
    KIND_SHARED = 2,    /* MPI_Win_allocate_shared; skipped where not all ranks share memory */
    KIND_ARENA = 4,     /* MPI_Win_create over memory from MPI_Alloc_mem */
    KIND_HEAP = 8,      /* MPI_Win_create over memory from malloc */
    KIND_ONE_NODE = 16, /* no kind: skips the case where not all ranks share memory */
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

/* A window and its memory. Its error handler turns an unexpected error into a failure of the
 * case. */
struct window {
    MPI_Win win;
    char *base;
    enum window_kind kind;
};

extern int world_rank;
extern int world_size;

/* Initialises MPI with the given thread level and runs the table. Returns the exit status: 0, 1, or
 * 77 when all cases were skipped. Arguments: --list, --only NAME (with or without the kind). */
int harness_main(int argc, char **argv, int thread_level, const struct test_case *cases,
                 size_t case_count);

/* Records a failure of the running case unless the condition is true; returns the condition. */
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
/* True once the running case has failed on this rank: loops may end early where no other rank waits
 * for them. */
bool harness_failed(void);

/* Oriel's message about the last call that failed here; empty where the program runs on the bare
 * host. */
const char *oriel_error_text(void);
/* False where the program runs on the bare host. */
bool through_oriel(void);
/* True if all ranks are on one node by Oriel's division: with ORIEL_NODE_SIZE they are on
 * several. */
bool ranks_share_memory(void);
/* The ranks on this rank's node, in their order; the caller frees it. Collective. */
MPI_Comm node_comm(void);
/* The host's level of thread support. */
int harness_thread_level(void);

/* Windows over any communicator; bytes and unit may differ by rank. */
struct window window_make(enum window_kind kind, MPI_Aint size_bytes, int disp_unit, MPI_Comm comm);
struct window window_make_with(MPI_Info info, enum window_kind kind, MPI_Aint size_bytes,
                               int disp_unit, MPI_Comm comm);
void window_free(struct window *window);
/* Sets the same error handler on a window that the case made. */
void window_watch(MPI_Win win);

/* A barrier that sleeps while it waits: hosts poll without yielding, and ranks outnumber cores. */
void barrier(MPI_Comm comm);
/* Waits for any request in the same manner. */
void request_await(MPI_Request *request);
/* The number of rounds for this number of ranks: full for up to two ranks, fewer above, and a tenth
 * of that between nodes. */
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

/* Reads and writes of memory that other processes change concurrently. */
static inline int64_t load_word(const int64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static inline void store_word(int64_t *word, int64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif
