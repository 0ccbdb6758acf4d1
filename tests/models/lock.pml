/* The locks of one target (src/sync/lock.h, lock.c): two exclusive locks, a shared one, and
 * lock_all. */
#define PROCESSES 4
#define STORED 2
#define WORDS 13
#define DATA 0 /* the number of writes */
#define SERVING 1
#define QUEUE 2
#define DEPARTED 3
#define SERVING_SLEEPERS 4
#define DEPARTED_SLEEPERS 5
#define GATE_WRITERS 6 /* the halves of the gate's word */
#define GATE_READERS 7
#define READERS_WAITING 8
#define READER_SLEEPERS 9
#define WRITER_SLEEPERS 10
#define ADMISSIONS 11
#define ADMISSIONS_SLEEPERS 12

#include "memory.pml"
#include "wait.pml"
#include "ticket_steps.pml"
#define LONE_READER
#include "lock_all_gate_steps.pml"

byte ready, ended, written, writers, readers;

active [2] proctype exclusive()
{
    byte seen, was, sleeper, position, admitted;
    ready;
    enter_writer(false); /* L1 is before */
    lock_writer();
    atomic { writers++; assert(writers == 1 && readers == 0 && load(DATA) == written) };
    store_relaxed(DATA, written + 1);
    atomic { written++; writers-- };
    ticket_leave();
    pull_writer();
    wake(SERVING, SERVING_SLEEPERS);
    wake(GATE_WRITERS, READER_SLEEPERS);
    ended++
}

inline read()
{
    atomic { readers++; assert(writers == 0 && load(DATA) == written) };
    readers--
}

active proctype shared()
{
    byte seen, was, sleeper, position;
    ready;
    lock_reader();
    read();
    unlock_reader();
    ended++
}

active proctype lock_all()
{
    byte seen, was, sleeper;
    bool inside;
    ready;
    enter_reader();
    read();
    leave_reader();
    ended++
}

active proctype begin_and_end()
{
    d_step {
        memory[QUEUE] = 7 * 8 + 7; /* the reader count wraps around */
        memory[SERVING] = 7;
        memory[DEPARTED] = 7;
        ready = 1
    };
    ended == PROCESSES;
    assert(memory[SERVING_SLEEPERS] == 0 && memory[DEPARTED_SLEEPERS] == 0);
    assert(memory[READER_SLEEPERS] == 0 && memory[WRITER_SLEEPERS] == 0 && memory[READERS_WAITING] == 0)
}
