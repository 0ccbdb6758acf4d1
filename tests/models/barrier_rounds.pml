/* The rounds between the leaders of four nodes (oriel_internode_barrier in
 * src/internode/origin/origin_sync.c), twice. A message of the second barrier may arrive before one
 * of the first is checked, which requires four nodes. */
#define PROCESSES 4
#define STORED 4
#define WORDS 12
#define DATA 0    /* of each node: the number of barriers that it has reached */
#define ARRIVED 4 /* of each node and round; a leader waits alone */
#define NODES 4
#define TIMES 2

#include "memory.pml"
#include "wait.pml"

byte ended;

#include "barrier_rounds_steps.pml"

active [PROCESSES] proctype leader()
{
    byte seen, times, own = me;
    do
    :: times < TIMES ->
        times++;
        store_relaxed(DATA + me, times);
        meet_round(0, 1);
        meet_round(1, 2);
        seen = 0;
        assert(load(DATA) >= times && load(DATA + 1) >= times && load(DATA + 2) >= times &&
               load(DATA + 3) >= times)
    :: else -> break
    od;
    ended++
}

active proctype ending()
{
    run agents();
    ended == PROCESSES
}
