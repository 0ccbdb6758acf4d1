/* Determines the number of operations of the next batch, and keeps the best time of one operation.
 * The count is multiplied until a batch is long enough. Then a number of such batches is measured,
 * fewer when time runs out. The process that measures the time uses this file. It does not use MPI.
 */
#ifndef ORIEL_BENCH_SCHEDULE_H
#define ORIEL_BENCH_SCHEDULE_H

#include <stdint.h>

struct schedule_limits {
    double batch_s;  /* minimum duration of a batch */
    double budget_s; /* for all batches of a pattern, including preparation and checks */
    int batches;     /* number of batches that count */
    uint64_t least;  /* minimum number of operations of a batch */
};

struct schedule {
    struct schedule_limits limits;
    uint64_t count; /* of the next batch; 0: no more batches */
    double best_s;  /* of one operation */
    double start_s;
    double timed_s; /* time spent in batches so far */
    int batches;    /* number of batches that counted */
};

double schedule_clock_s(void);

/* Returns the median of count values, at least one, and sorts them. Of two middle values it returns
 * the larger. */
double schedule_median(double *values, int count);

/* The first batch has the least count; each later one has a multiple of it. */
void schedule_start(struct schedule *plan, const struct schedule_limits *limits, uint64_t least);

/* Records the batch's duration and sets plan->count for the next batch. */
void schedule_advance(struct schedule *plan, double elapsed_s);

#endif
