/* The time for which a sampled call counts, in statistics and in traces.
 *
 * A call that counts for itself alone counts with its whole time. Such are the calls of a complete
 * trace, and the first ORIEL_CALL_SAMPLE ones of a call site in statistics. A call that counts for
 * k calls has been drawn from them: k is ORIEL_CALL_SAMPLE in statistics, N in a trace of samples.
 * Its working time, without waiting, counts k times, but at most with ORIEL_CALL_AT_ONCE_NS and a
 * nanosecond for each byte.
 *
 * 1. A longer call was most likely interrupted: its processor did other work for milliseconds. That
 *    time is not the call's, and k times that time would hide all others.
 * 2. The sum of min(time, limit) over all calls does not depend on the sample. Each call is drawn
 *    with the chance 1/k and counts k times, so each sample estimates that same sum. Statistics and
 *    traces of any N therefore agree.
 * 3. A drawn call changes the estimate by at most k times the limit, so interruptions add noise of
 *    microseconds.
 * 4. Calls of a site that all work longer than the limit count with the limit.
 *
 * This header does not need mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_SAMPLED_TIME_H
#define ORIEL_OBSERVE_STATS_SAMPLED_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_CALL_SAMPLE = 64, ORIEL_CALL_AT_ONCE_NS = 10000 };

/* Whether the time of a call also counts for others, in statistics. number: at its site, from 0.
 * One of each ORIEL_CALL_SAMPLE consecutive calls is drawn, by the fractional part of a multiple of
 * the golden ratio. So all calls of a loop have nearly the same chance, whatever its period. */
static inline bool oriel_call_is_drawn(uint64_t number)
{
    uint64_t block = number / ORIEL_CALL_SAMPLE;
    return number % ORIEL_CALL_SAMPLE == block * UINT64_C(0x9e3779b97f4a7c15) >> 58;
}

/* The working time of `calls` calls, of which one was timed. */
static inline uint64_t oriel_sampled_ns(uint64_t working_ns, uint64_t bytes, uint64_t calls)
{
    uint64_t limit_ns = ORIEL_CALL_AT_ONCE_NS + bytes;
    return calls * (calls > 1 && working_ns > limit_ns ? limit_ns : working_ns);
}

#endif
