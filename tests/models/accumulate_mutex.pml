/* The accumulate mutex (src/sync/accumulate_mutex.c): three processes, two of them twice. */
#define PROCESSES 3
#define STORED 1
#define WORDS 2
#define DATA 0 /* the number of writes */
#define WORD 1
#define ASLEEP 8 /* with the holder's rank + 1 */

#include "memory.pml"

byte ended, written, holders;

inline sleep()
{
    futex_wait(WORD, seen)
}

#include "accumulate_mutex_steps.pml"

active [PROCESSES] proctype rank()
{
    byte seen, was, sleeper, times = 1 + (me > 0);
    bool inside;
    do
    :: times > 0 ->
        lock();
        inside = false;
        atomic { holders++; assert(holders == 1 && load(DATA) == written) };
        store_relaxed(DATA, written + 1);
        atomic { written++; holders-- };
        unlock();
        times--
    :: else -> break
    od;
    ended++
}
