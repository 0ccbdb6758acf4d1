/* The number of operations of each batch, and the best time. At least two batches count, so that
 * the result is not only a pattern's first use. */
#define _POSIX_C_SOURCE 200809L
#include "schedule.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES_LEAST = 2, GROWING_BUDGETS = 4 };

double schedule_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void schedule_start(struct schedule *plan, const struct schedule_limits *limits, uint64_t least)
{
    *plan = (struct schedule){.limits = *limits, .count = least, .start_s = schedule_clock_s()};
}

/* A batch that took a hundredth of the required time may grow a hundredfold, less a margin.
 * Doubling each time would spend more on preparation and checks than on timed operations. */
static uint64_t grown(uint64_t count, double elapsed_s, double batch_s)
{
    double factor = elapsed_s > 0 ? 0.7 * batch_s / elapsed_s : 64;
    return count * (uint64_t)(factor < 2 ? 2 : factor > 64 ? 64 : factor);
}

/* A slow host gets no longer batches once its time is spent. Others do, so that the after-effects
 * of a wait in the host's collectives do not fill the batch. When the second batch is much shorter
 * than the first, another process had the processor during the first, and its length is
 * meaningless. */
static bool may_grow(const struct schedule *plan, double elapsed_s, double spent_s)
{
    const struct schedule_limits *limits = &plan->limits;
    const bool was_stopped = plan->batches == 1 && elapsed_s < limits->batch_s / 2;
    return (plan->batches == 0 || was_stopped) && elapsed_s < limits->batch_s &&
           plan->timed_s < limits->budget_s / 2 && spent_s < GROWING_BUDGETS * limits->budget_s;
}

void schedule_advance(struct schedule *plan, double elapsed_s)
{
    const double each_s = elapsed_s / (double)plan->count;
    const double spent_s = schedule_clock_s() - plan->start_s;

    plan->timed_s += elapsed_s;
    if (may_grow(plan, elapsed_s, spent_s)) {
        plan->batches = 0;
        plan->count = grown(plan->count, elapsed_s, plan->limits.batch_s);
        return;
    }
    if (plan->batches == 0)
        plan->start_s = schedule_clock_s(); /* excludes the time of growing */
    if (plan->batches == 0 || each_s < plan->best_s)
        plan->best_s = each_s;
    plan->batches++;
    if (plan->batches >= plan->limits.batches ||
        (plan->batches >= BATCHES_LEAST && spent_s > plan->limits.budget_s))
        plan->count = 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

double schedule_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}
