/* Single and bulk accumulates (src/sync/atomic_mode.h, atomic_mode.c): two threads with singles, at
 * two targets and at one, and two processes with a bulk update each, of one target each. The
 * accumulate mutex is one step (accumulate_mutex.pml); the target returns to free singles after one
 * under it. */
#define PROCESSES 4
#define STORED 6
#define WORDS 9
#define SLOT 0    /* of each thread */
#define BULK 2    /* of each target, and so the next */
#define ELEMENT 4
#define BULK_TARGETS 6
#define LOCK 7

#include "memory.pml"

byte ended, bulks[2]; /* under way at each target */

inline lock(target)
{
    atomic { drained && memory[LOCK + target] == 0 -> memory[LOCK + target] = 1 }
}

inline unlock(target)
{
    atomic { drained -> memory[LOCK + target] = 0 }
}

inline update_single(target)
{
    atomic {
        assert(bulks[target] == 0);
        fetch_add_relaxed(ELEMENT + target, 1, 8); /* S3 */
        was = 0
    }
}

inline count_single(target)
{
    if
    :: load(BULK + target) != 0 ->
        store_release(BULK + target, 0); /* C2 */
        fetch_add(BULK_TARGETS, 7, 8);
        was = 0
    :: else
    fi
}

inline single(target)
{
    store_seq_cst(SLOT + me, 1); /* S1 */
    if
    :: load_shared(BULK_TARGETS) == 0 -> /* S2 */
        update_single(target);
        store_release(SLOT + me, 0) /* S4 */
    :: else ->
        store_release(SLOT + me, 0);
        store_seq_cst(SLOT + me, 1); /* S1 */
        if
        :: load(BULK + target) == 0 -> /* S2 */
            update_single(target);
            store_release(SLOT + me, 0) /* S4 */
        :: else ->
            store_release(SLOT + me, 0);
            lock(target);
            update_single(target); /* C1 */
            count_single(target);
            unlock(target)
        fi
    fi
}

inline bulk(target)
{
    lock(target);
    if
    :: load(BULK + target) != 0
    :: else ->
        fetch_add(BULK_TARGETS, 1, 8); /* B1 */
        store_seq_cst(BULK + target, 1);
        load(SLOT) == 0; /* B2 */
        load(SLOT + 1) == 0
    fi;
    bulks[target]++;
    was = load(ELEMENT + target); /* B3 */
    store_relaxed(ELEMENT + target, was + 1);
    bulks[target]--;
    was = 0;
    unlock(target)
}

active [2] proctype single_thread()
{
    byte was, sleeper;
    single(0);
    if
    :: me == 0 -> single(1)
    :: else
    fi;
    ended++
}

active [2] proctype bulk_process()
{
    byte was, sleeper, times = 2;
    do
    :: times > 0 ->
        bulk(me - 2);
        times--
    :: else -> break
    od;
    ended++
}

active proctype ending()
{
    ended == PROCESSES && stored[2].queued == 0 && stored[3].queued == 0;
    assert(memory[ELEMENT] == 4 && memory[ELEMENT + 1] == 3);
    assert(memory[BULK_TARGETS] == memory[BULK] + memory[BULK + 1])
}
