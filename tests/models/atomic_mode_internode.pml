/* Accumulates of internode origins (src/internode/target/target_rma.c) and of the target's own
 * node: two origins on other nodes, whose messages the target's agent serves in each origin's order
 * (net.pml), and two ranks on this node. All take the same steps (atomic_mode.pml). An update of
 * one element is an instruction, announced in the thread's slot; the agent has a slot, too. Many
 * elements are updated under the accumulate lock by plain loops. Elements without an instruction
 * are always updated under the lock, which is one step here (accumulate_mutex.pml). Each update
 * adds one: an answer to an origin is a value never returned before, and includes that origin's
 * earlier updates. */
#define PROCESSES 3 /* the agent, the target's own rank, and another one of its node */
#define STORED 6
#define WORDS 8
#define SLOT 0 /* of each thread */
#define BULK 3
#define ELEMENT 4
#define WIDE 5 /* without an instruction */
#define BULK_TARGETS 6
#define LOCK 7
#define AGENT 0
#define ORIGINS 2
#define UPDATES 6
#define UPDATES_PADDED 3

#include "memory.pml"

mtype = { SINGLE, MANY, PADDED, FLUSH };

chan messages[ORIGINS] = [3] of { mtype, bool };
chan answers[ORIGINS] = [2] of { byte };
byte found[2]; /* for each type of elements: the returned values, one bit each */
byte ended;
bool bulk_now; /* B3 */

inline lock()
{
    atomic { drained && memory[LOCK] == 0 -> memory[LOCK] = me + 1 }
}

inline unlock()
{
    atomic { drained -> memory[LOCK] = 0 }
}

/* By an instruction; was: the previous value. */
inline update_single()
{
    atomic {
        assert(!bulk_now);
        fetch_add_relaxed(ELEMENT, 1, 16) /* S3 */
    }
}

inline update_one()
{
    store_seq_cst(SLOT + me, 1); /* S1 */
    if
    :: load_shared(BULK_TARGETS) == 0 -> /* S2 */
        update_single();
        store_release(SLOT + me, 0) /* S4 */
    :: else ->
        store_release(SLOT + me, 0);
        store_seq_cst(SLOT + me, 1); /* S1 */
        if
        :: load(BULK) == 0 -> /* S2 */
            update_single();
            store_release(SLOT + me, 0) /* S4 */
        :: else ->
            store_release(SLOT + me, 0);
            lock();
            update_single(); /* C1 */
            if
            :: load(BULK) != 0 ->
                store_release(BULK, 0); /* C2 */
                atomic { drained; memory[BULK_TARGETS] = memory[BULK_TARGETS] - 1 }
            :: else
            fi;
            unlock()
        fi
    fi
}

inline update_many()
{
    lock();
    if
    :: load(BULK) != 0
    :: else ->
        atomic { drained; memory[BULK_TARGETS] = memory[BULK_TARGETS] + 1 }; /* B1 */
        store_seq_cst(BULK, 1);
        load(SLOT + AGENT) == 0; /* B2 */
        load(SLOT + 1) == 0;
        load(SLOT + 2) == 0
    fi;
    bulk_now = true;
    was = load(ELEMENT); /* B3 */
    store_relaxed(ELEMENT, was + 1);
    bulk_now = false;
    unlock()
}

inline update_padded()
{
    lock();
    was = load(WIDE);
    store_relaxed(WIDE, was + 1);
    unlock()
}

inline update(what)
{
    if
    :: what == SINGLE -> update_one()
    :: what == MANY -> update_many()
    :: what == PADDED -> update_padded()
    fi
}

active proctype agent()
{
    mtype what;
    bool is_asked;
    byte was, sleeper, from;
    do
    :: atomic {
        if
        :: messages[0] ? what, is_asked -> from = 0
        :: messages[1] ? what, is_asked -> from = 1
        :: ended == ORIGINS + 2 && empty(messages[0]) && empty(messages[1]) -> break
        fi
       };
        if
        :: what != FLUSH -> update(what)
        :: else
        fi;
        atomic {
            if
            :: is_asked -> answers[from] ! was
            :: else
            fi;
            what = 0;
            is_asked = false;
            was = 0;
            from = 0
        }
    od
}

active [2] proctype rank()
{
    byte was, sleeper;
    if
    :: me == 1 -> update_one(); update_padded()
    :: else -> update_many(); update_one()
    fi;
    was = 0;
    ended++
}

#define note(which, earlier) \
    assert(old >= (earlier) && old < (which == 0 -> UPDATES : UPDATES_PADDED)); \
    assert(!(found[which] & (1 << old))); \
    found[which] = found[which] | (1 << old)

proctype origin(byte number)
{
    byte old;
    if
    :: number == 0 ->
        messages[0] ! SINGLE, false;
        messages[0] ! MANY, true;
        atomic { answers[0] ? old; note(0, 1); old = 0 }
    :: else ->
        messages[1] ! PADDED, false;
        messages[1] ! SINGLE, true;
        atomic { answers[1] ? old; note(0, 0); old = 0 };
        messages[1] ! PADDED, true;
        atomic { answers[1] ? old; note(1, 1); old = 0 };
        messages[1] ! FLUSH, true;
        answers[1] ? _;
        assert(memory[WIDE] >= 2)
    fi;
    ended++
}

active proctype ending()
{
    atomic { run origin(0); run origin(1) };
    ended == ORIGINS + 2 && empty(messages[0]) && empty(messages[1]) && memory[LOCK] == 0 &&
    stored[0].queued == 0 && stored[1].queued == 0 && stored[2].queued == 0;
    assert(memory[ELEMENT] == UPDATES && memory[WIDE] == UPDATES_PADDED);
    assert(memory[BULK_TARGETS] == memory[BULK])
}
