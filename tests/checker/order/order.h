/* Shared by the tests of the checker's messages. Each test program links the checker's sources, is
 * checked by them, and queries its own clock.  A mark records that an event was complete; a rank
 * that is ordered after it must know the mark. Steps travel through shared memory instead of MPI,
 * and therefore order nothing. */
#ifndef ORIEL_TESTS_ORDER_H
#define ORIEL_TESTS_ORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { MARKS = 64, RANKS_MOST = 16, ROOM = 8 };

extern int rank, size;

/* Everything that this process did so far is complete. The mark makes that visible to the
 * others. */
void mark(int number);
/* The mark's tick, for use in messages; and this process's knowledge of another process. */
uint64_t tick_now(void);
uint64_t tick_known(int of);

/* Waits until all ranks are here; creates no order. */
void meet(void);

void complain(const char *file, int line, const char *what);

bool knows(int of, int number);
#define EXPECT(condition)         ((condition) ? (void)0 : complain(__FILE__, __LINE__, #condition))
#define EXPECT_KNOWS(of, number)  EXPECT(knows(of, number))
#define EXPECT_MISSES(of, number) EXPECT(!knows(of, number))

/* The number of calls without a model. */
int unknown_calls(void);

/* Whether this process has reported that messages are indistinguishable. */
bool is_in_doubt(void);

struct order_case {
    const char *name;
    void (*run)(void);
    int least_ranks;
};
#define CASE(name, least_ranks)                                                                    \
    {                                                                                              \
#name, name, least_ranks                                                                   \
    }
int order_main(int argc, char **argv, const struct order_case *cases, int count,
               uint64_t board_bytes);

#endif
