/* Swaps of 16 bytes among updates of elements without an instruction (src/sync/atomic_mode.h,
 * atomic_mode.c): two threads with swaps, which contain the element, and a process that updates it
 * by plain loops under the accumulate lock. The lock is one step (accumulate_mutex.pml); the target
 * returns to free singles after one under it. */
#define PROCESSES 3
#define STORED 5
#define WORDS 7
#define SLOT 0 /* of each thread */
#define BULK 2
#define WIDE 3
#define ELEMENT 4
#define BULK_TARGETS 5
#define LOCK 6

#include "memory.pml"

byte ended;
bool plain_now; /* between a plain loop's load and its store */

inline lock()
{
    atomic { drained && memory[LOCK] == 0 -> memory[LOCK] = 1 }
}

inline unlock()
{
    atomic { drained -> memory[LOCK] = 0 }
}

inline update_by_swap()
{
    atomic {
        assert(!plain_now);
        fetch_add_relaxed(ELEMENT, 1, 16); /* S3 */
        was = 0
    }
}

inline widen()
{
    if
    :: load(WIDE) == 1
    :: else ->
        lock();
        store_release(WIDE, 1); /* W1 */
        unlock()
    fi
}

inline swap()
{
    store_seq_cst(SLOT + me, 1); /* S1 */
    if
    :: load_shared(BULK_TARGETS) == 0 -> /* S2 */
        update_by_swap();
        store_release(SLOT + me, 0) /* S4 */
    :: else ->
        store_release(SLOT + me, 0);
        store_seq_cst(SLOT + me, 1); /* S1 */
        if
        :: load(BULK) == 0 -> /* S2 */
            update_by_swap();
            store_release(SLOT + me, 0) /* S4 */
        :: else ->
            store_release(SLOT + me, 0);
            lock();
            update_by_swap(); /* C1 */
            if
            :: load(BULK) != 0 ->
                store_release(BULK, 0); /* C2 */
                fetch_add(BULK_TARGETS, 7, 8);
                was = 0
            :: else
            fi;
            unlock()
        fi
    fi
}

inline update_plain()
{
    lock();
    if
    :: load(WIDE) == 1 && load(BULK) == 0 -> /* W2 */
        fetch_add(BULK_TARGETS, 1, 8); /* B1 */
        store_seq_cst(BULK, 1);
        load(SLOT) == 0; /* B2 */
        load(SLOT + 1) == 0
    :: else
    fi;
    plain_now = true;
    was = load(ELEMENT); /* B3 */
    store_relaxed(ELEMENT, was + 1);
    plain_now = false;
    was = 0;
    unlock()
}

active [2] proctype swapping_thread()
{
    byte was, sleeper;
    widen();
    swap();
    if
    :: me == 0 -> swap()
    :: else
    fi;
    ended++
}

active proctype plain_process()
{
    byte was, sleeper, times = 3;
    do
    :: times > 0 ->
        update_plain();
        times--
    :: else -> break
    od;
    ended++
}

active proctype ending()
{
    ended == PROCESSES && stored[0].queued == 0 && stored[1].queued == 0 && stored[2].queued == 0;
    assert(memory[ELEMENT] == 6);
    assert(memory[BULK_TARGETS] == memory[BULK])
}
