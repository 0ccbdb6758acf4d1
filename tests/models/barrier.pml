/* The barrier (src/sync/barrier.c) on one node: three ranks, three barriers, on a counter modulo 8
 * that wraps around. */
#define PROCESSES 3
#define STORED 3
#define WORDS 5
#define DATA 0 /* of each rank: the number of barriers that it has reached */
#define ARRIVALS 3
#define SLEEPERS 4
#define FIRST 6 /* earlier arrivals */
#ifndef TIMES
#define TIMES 3
#endif

#include "memory.pml"
#include "wait.pml"

byte ready, ended;

active [PROCESSES] proctype rank()
{
    byte seen, was, sleeper, times, arrivals = FIRST;
    ready;
    do
    :: times < TIMES ->
        times++;
        store_relaxed(DATA + me, times);
        arrivals = (arrivals + PROCESSES) % 8;
        fetch_add(ARRIVALS, 1, 8); /* B1 */
        if
        :: (was + 1) % 8 == arrivals -> wake(ARRIVALS, SLEEPERS)
        :: else -> await_event(ARRIVALS, SLEEPERS, arrivals) /* B2 */
        fi;
        forget();
        assert(load(DATA) >= times && load(DATA + 1) >= times && load(DATA + 2) >= times)
    :: else -> break
    od;
    ended++
}

active proctype begin_and_end()
{
    d_step { memory[ARRIVALS] = FIRST; ready = 1 };
    ended == PROCESSES;
    assert(memory[SLEEPERS] == 0)
}
