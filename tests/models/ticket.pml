/* A target's lock: two writers and two readers, starting from a free lock whose counters are about
 * to wrap around. */
#define PROCESSES 4
#define STORED 4
#define WORDS 8
#define DATA 0 /* the number of writes */
#define SERVING 1
#define PUT 0 /* + 2 and 3, the readers: each one's stores to its own word */
#define QUEUE 4
#define DEPARTED 5
#define SERVING_SLEEPERS 6
#define DEPARTED_SLEEPERS 7
#ifndef WRITES
#define WRITES 1
#endif

#include "memory.pml"
#include "wait.pml"
#include "ticket_steps.pml"

byte ready, ended, written, writers, readers;
byte put[PROCESSES];

active [2] proctype writer()
{
    byte seen, was, position, sleeper, times = WRITES;
    ready;
    do
    :: times > 0 ->
        lock_writer();
        writers++;
        assert(writers == 1 && readers == 0 && load(DATA) == written);
        assert(load(PUT + 2) == put[2] && load(PUT + 3) == put[3]);
        store_relaxed(DATA, written + 1);
        written++;
        writers--;
        pass_on();
        times--
    :: else -> break
    od;
    ended++
}

active [2] proctype reader()
{
    byte seen, was, position, sleeper;
    ready;
    lock_reader();
    readers++;
    assert(writers == 0 && load(DATA) == written);
    store_relaxed(PUT + me, 1);
    put[me] = 1;
    readers--;
    unlock_reader();
    ended++
}

active proctype begin_and_end()
{
    d_step {
        memory[QUEUE] = 7 * 8 + 6;
        memory[SERVING] = 7;
        memory[DEPARTED] = 6;
        ready = 1
    };
    ended == PROCESSES;
    assert(memory[SERVING_SLEEPERS] == 0 && memory[DEPARTED_SLEEPERS] == 0)
}
