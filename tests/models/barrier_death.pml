/* The barrier (src/sync/barrier.c) on one node when one of three ranks is killed at any step, and
 * the others still call the next one. Each call of a living rank returns, with the error only if a
 * rank is dead, and from then on always. A barrier that opens publishes all that each rank, even
 * the dead one, wrote before it. */
#define PROCESSES 3
#define STORED 3
#define WORDS 6
#define DATA 0 /* of each rank: the number of barriers that it has reached */
#define ARRIVALS 3
#define SLEEPERS 4
#define BROKEN 5
#define FIRST 6 /* earlier arrivals */
#ifndef TIMES
#define TIMES 3
#endif

#define FAILED failed
#define lost (is_gone || memory[BROKEN] != 0)
#define limit_comes (lost && !looked)

#include "memory.pml"
#include "wait_death.pml"

byte ready, ended;

inline barrier()
{
    if
    :: load_shared(BROKEN) != 0 -> failed = true
    :: else ->
        arrivals = (arrivals + PROCESSES) % 8;
        fetch_add(ARRIVALS, 1, 8); /* B1 */
        if
        :: (was + 1) % 8 == arrivals -> wake(ARRIVALS, SLEEPERS)
        :: else -> await(ARRIVALS, SLEEPERS, at_least(seen, arrivals)) /* B2 */
        fi;
        forget();
        if
        :: failed -> atomic { drained; memory[BROKEN] = 1 /* before it returns */ }
        :: else
        fi
    fi
}

inline calls()
{
    do
    :: times < TIMES ->
        times++;
        store_relaxed(DATA + me, times);
        barrier();
        if
        :: failed -> assert(dead); failed_before = true; failed = false
        :: else -> assert(!failed_before && load(DATA) >= times && load(DATA + 1) >= times && load(DATA + 2) >= times)
        fi
    :: else -> break
    od
}

active proctype victim()
{
    byte seen, was, sleeper, times, arrivals = FIRST;
    bool failed, failed_before, looked;
    ready;
    { calls() } unless { dead };
    ended++
}

active [2] proctype rank()
{
    byte seen, was, sleeper, times, arrivals = FIRST;
    bool failed, failed_before, looked;
    ready;
    calls();
    ended++
}

active proctype death()
{
    d_step { memory[ARRIVALS] = FIRST; ready = 1 };
    if
    :: dead = true
    :: true
    fi;
    ended == PROCESSES
}
