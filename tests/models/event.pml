/* Events (src/base/wait.h): two processes wait, one for one signal and one for both, and two
 * signal. */
#define PROCESSES 4
#define STORED 2
#define WORDS 4
#define DATA 0 /* one for each signalling process */
#define VALUE 2
#define SLEEPERS 3

#include "memory.pml"
#include "wait.pml"

byte ended;

active proctype waiter_for_one()
{
    byte seen, was, sleeper;
    await_event(VALUE, SLEEPERS, 1);
    assert(load(DATA) == 1 || load(DATA + 1) == 1);
    ended++
}

active proctype waiter_for_two()
{
    byte seen, was, sleeper;
    await_event(VALUE, SLEEPERS, 2);
    assert(load(DATA) == 1 && load(DATA + 1) == 1);
    ended++
}

active [2] proctype signaller()
{
    byte seen, was, sleeper;
    store_relaxed(DATA + me - 2, 1);
    signal(VALUE, SLEEPERS);
}

active proctype ending()
{
    ended == 2;
    assert(memory[SLEEPERS] == 0)
}
