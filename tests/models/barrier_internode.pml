/* The barrier of a window over three nodes (src/sync/barrier.c), the first with two ranks. */
#define PROCESSES 4
#define STORED 4
#define WORDS 16
#define DATA 0     /* of each rank: the number of barriers that it has reached */
#define ARRIVALS 4 /* of each node, as the next ones */
#define SLEEPERS 7
#define ARRIVED 10 /* of each node and round; a leader waits alone */
#define NODES 3
#define TIMES 2

#include "memory.pml"
#include "wait.pml"

byte ended;

#define node_of(rank) ((rank) < 2 -> 0 : (rank) - 1)

#include "barrier_rounds_steps.pml"

active [PROCESSES] proctype rank()
{
    byte seen, was, sleeper, times, arrivals, own = node_of(me), here = 1 + (me < 2);
    do
    :: times < TIMES ->
        times++;
        store_relaxed(DATA + me, times);
        arrivals = (arrivals + here + 1) % 8;
        fetch_add(ARRIVALS + own, 1, 8); /* B1 */
        if
        :: (was + 2) % 8 == arrivals -> /* M1 */
            meet_round(0, 1);
            meet_round(1, 2);
            signal(ARRIVALS + own, SLEEPERS + own)
        :: else -> await_event(ARRIVALS + own, SLEEPERS + own, arrivals) /* B2 */
        fi;
        forget();
        assert(load(DATA) >= times && load(DATA + 1) >= times && load(DATA + 2) >= times &&
               load(DATA + 3) >= times)
    :: else -> break
    od;
    ended++
}

active proctype ending()
{
    run agents();
    ended == PROCESSES;
    assert(memory[SLEEPERS] == 0 && memory[SLEEPERS + 1] == 0 && memory[SLEEPERS + 2] == 0)
}
