/* Two threads of rank 0: one gets into its window's memory, the other loads from there. */
#ifndef ORIEL_TESTS_CHECK_THREADS_H
#define ORIEL_TESTS_CHECK_THREADS_H

#include "offenders.h"

extern volatile int *pair_memory; /* the calling rank's part of the window */
extern MPI_Win pair_win;

void pair_open(void);
void pair_close(void);

/* How the first thread releases the second. */
struct order {
    void (*release)(void);
    void (*acquire)(void);
};

/* Both steps by threads of rank 0, in this order if right. */
void pair_run(const struct order *how, bool right);

/* For release and acquire: is 0 when pair_run begins. */
extern int released;

/* threads_static.cpp */
void static_object_make(void (*make)(void));

/* Polls released with a function that acquires. */
#define POLL(lock, unlock)                                                                         \
    for (int done = 0; !done; sched_yield()) {                                                     \
        if ((lock) != 0)                                                                           \
            continue;                                                                              \
        done = released;                                                                           \
        unlock;                                                                                    \
    }

/* The two steps. Any thread may call them; they are complete when they return. */
static inline void pair_get(void)
{
    delay();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, pair_win);
    MPI_Get((int *)&pair_memory[0], 1, MPI_INT, 1, 1, 1, MPI_INT, pair_win); /* FINDS L1 here */
    MPI_Win_unlock(1, pair_win);
}

static inline void pair_load(void)
{
    delay();
    (void)pair_memory[0]; /* FINDS L1 here */
}

#endif
