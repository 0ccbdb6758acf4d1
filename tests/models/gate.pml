/* The gate between lock_all and exclusive locks: a writer that comes once more while it is in, one that does not, two readers.
 * Courtesy has no end after 100 ms here: nobody waits by other means, and no writer is to need the end. */
#define PROCESSES 4
#define STORED 2
#define WORDS 9
#define DATA 0 /* how often each writer was in */
#define GATE_WRITERS 2 /* the halves of the gate's word */
#define GATE_READERS 3
#define READERS_WAITING 4
#define READER_SLEEPERS 5
#define WRITER_SLEEPERS 6
#define ADMISSIONS 7
#define ADMISSIONS_SLEEPERS 8

#include "memory.pml"
#include "wait.pml"
#include "gate_steps.pml"

byte ended, writers, readers, written[2];

inline write()
{
    atomic { writers++; assert(readers == 0) };
    store_relaxed(DATA + me, written[me] + 1);
    written[me]++;
    writers--
}

active proctype nesting_writer()
{
    byte seen, was, sleeper, admitted, held;
    do
    :: held < 2 ->
        enter_writer(held > 0);
        held++;
        write()
    :: else -> break
    od;
    do
    :: held > 0 ->
        leave_writer();
        held--
    :: else -> break
    od;
    ended++
}

active proctype writer()
{
    byte seen, was, sleeper, admitted;
    enter_writer(false);
    write();
    leave_writer();
    ended++
}

active [2] proctype reader()
{
    byte seen, was, sleeper;
    bool inside;
    enter_reader();
    readers++;
    assert(writers == 0 && load(DATA) == written[0] && load(DATA + 1) == written[1]);
    readers--;
    leave_reader();
    ended++
}

active proctype ending()
{
    ended == PROCESSES;
    assert(memory[READER_SLEEPERS] == 0 && memory[WRITER_SLEEPERS] == 0 && memory[READERS_WAITING] == 0)
}
