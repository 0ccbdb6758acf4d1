/* Decides how many operations the next batch has, and keeps the best time of one operation.
 * The count is multiplied until a batch is long enough; then a number of such batches is taken, fewer when time runs out.
 * Used by the benchmark's programs, by the process that owns the clock; knows no MPI. */
#ifndef ORIEL_BENCH_SCHEDULE_H
#define ORIEL_BENCH_SCHEDULE_H

#include <stdint.h>

struct schedule_limits {
    double batch_s;  /* how long a batch takes at least */
    double budget_s; /* of one pattern's batches, with preparing and checking */
    int batches;     /* that count */
    uint64_t least;  /* operations of a batch */
};

struct schedule {
    struct schedule_limits limits;
    uint64_t count; /* of the next batch; 0: no more */
    double best_s;  /* of one operation */
    double start_s;
    double timed_s; /* spent in batches until now */
    int batches;    /* that counted */
};

double schedule_clock_s(void);

/* Of count values, at least one, which it sorts; the upper one where two are in the middle. */
double schedule_median(double *values, int count);

/* The first batch has the least count, and each other a multiple of it. */
void schedule_start(struct schedule *plan, const struct schedule_limits *limits, uint64_t least);

/* Tells how long the batch took; plan->count is the next one's. */
void schedule_advance(struct schedule *plan, double elapsed_s);

#endif
