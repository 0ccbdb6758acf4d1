/* The gate between lock_all and exclusive locks: a writer that enters a second time while it is
 * inside, one that does not, and two readers. Courtesy does not end after 100 ms here: no wait
 * depends on other synchronisation, and no writer should need the end. */
#define PROCESSES 4
#define STORED 4
#define WORDS 11
#define DATA 0 /* of each: the number of a writer's visits, and a reader's stores to its own word */
#define GATE_WRITERS 4 /* the halves of the gate's word */
#define GATE_READERS 5
#define READERS_WAITING 6
#define READER_SLEEPERS 7
#define WRITER_SLEEPERS 8
#define ADMISSIONS 9
#define ADMISSIONS_SLEEPERS 10

#include "memory.pml"
#include "wait.pml"
#include "lock_all_gate_steps.pml"

byte ended, writers, readers, written[PROCESSES];

inline write()
{
    atomic { writers++; assert(readers == 0 && load(DATA + 2) == written[2] && load(DATA + 3) == written[3]) };
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
    store_relaxed(DATA + me, 1);
    written[me] = 1;
    readers--;
    leave_reader();
    ended++
}

active proctype ending()
{
    ended == PROCESSES;
    assert(memory[READER_SLEEPERS] == 0 && memory[WRITER_SLEEPERS] == 0 && memory[READERS_WAITING] == 0)
}
