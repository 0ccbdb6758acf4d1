/* What the tests of the checker's messages share: a program that the checker's sources are linked into, so that it is checked by
 * them and can ask for its own clock.  A mark says that something was complete; who must come after it must know the mark.
 * Steps are told through the board, beside MPI, so that they order nothing. */
#ifndef ORIEL_TESTS_ORDER_H
#define ORIEL_TESTS_ORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { MARKS = 64, RANKS_MOST = 16, ROOM = 8 };

extern int rank, size;

/* What this process does before is complete now: under the mark's number, for the others to see. */
void mark(int number);
/* The mark's tick itself, to be carried in messages; and what this process knows of another. */
uint64_t tick_now(void);
uint64_t tick_known(int of);

/* All have come here; no order. */
void meet(void);

void complain(const char *file, int line, const char *what);

bool knows(int of, int number);
#define EXPECT(condition)         ((condition) ? (void)0 : complain(__FILE__, __LINE__, #condition))
#define EXPECT_KNOWS(of, number)  EXPECT(knows(of, number))
#define EXPECT_MISSES(of, number) EXPECT(!knows(of, number))

/* How many calls were not modelled. */
int unknown_calls(void);

/* Whether this process has said that messages cannot be told apart. */
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
