/* PSCW epochs between nodes (src/sync/pscw.c, origin_epochs.c, target_sync.c). Two ranks, each on
 * its own node, post to each other and start towards each other, and begin the next epochs at once.
 * Posts and completes are messages sent after those of the operations; the peer's agent serves them
 * in order (net.pml). Puts by a device arrive at any time, and the complete waits for that.
 * Counters are modulo 4 and wrap around. The rank and the agent of a node share memory. */
#define PROCESSES 4 /* ranks, then agents */
#define STORED 4
#define WORDS 12
#define DATA 0    /* of each node, put by the other's rank */
#define EXPOSED 2 /* of each node; its rank writes it before it posts */
#define POSTS 4   /* the other's posts, as counted on this node */
#define POSTS_SLEEPERS 6
#define COMPLETES 8 /* likewise */
#define COMPLETES_SLEEPERS 10
#ifndef EPOCHS
#define EPOCHS 5
#endif

#include "memory.pml"
#include "wait.pml"

#define reached_of_4(wanted) ((seen + 4 - (wanted)) % 4 < 2)

mtype = { POST, PUT, COMPLETE };

chan messages[2] = [4] of { mtype, byte }; /* to each node */
byte device_put[2];                            /* under way to that node by a device */
byte ready, ended;

/* After earlier stores: its sender unlocks a mutex. */
inline send_message(what, value)
{
    atomic { drained; messages[1 - me] ! what, value }
}

inline put()
{
    if
    :: send_message(PUT, epoch)
    :: atomic { drained; device_put[1 - me] = epoch }
    fi
}

active [2] proctype rank()
{
    byte seen, was, sleeper, epoch, posts = 3, completes = 3;
    ready;
    do
    :: epoch < EPOCHS ->
        epoch++;
        store_relaxed(EXPOSED + me, epoch);
        posts = (posts + 1) % 4; /* C1 */
        send_message(POST, 0);
        await(POSTS + me, POSTS_SLEEPERS + me, reached_of_4((completes + 1) % 4)); /* C2 */
        put();
        device_put[1 - me] == 0; /* D1 */
        send_message(COMPLETE, 0);
        completes = (completes + 1) % 4; /* C3 */
        await(COMPLETES + me, COMPLETES_SLEEPERS + me, reached_of_4(posts)); /* C4 */
        assert(load(DATA + me) == epoch)
    :: else -> break
    od;
    ended++
}

#define here (me - 2)

active [2] proctype agent()
{
    byte seen, was, sleeper, value;
    mtype what;
end:
    do
    :: messages[here] ? what, value ->
        if
        :: what == POST ->
            fetch_add(POSTS + here, 1, 4);
            wake(POSTS + here, POSTS_SLEEPERS + here)
        :: what == PUT ->
            assert(load(EXPOSED + here) == value);
            store_relaxed(DATA + here, value)
        :: what == COMPLETE ->
            fetch_add(COMPLETES + here, 1, 4);
            wake(COMPLETES + here, COMPLETES_SLEEPERS + here)
        fi;
        atomic { what = 0; value = 0; was = 0 }
    od
}

active proctype device()
{
end:
    do
    :: atomic {
        device_put[0] != 0 -> assert(memory[EXPOSED] == device_put[0]);
        memory[DATA] = device_put[0];
        device_put[0] = 0
       }
    :: atomic {
        device_put[1] != 0 -> assert(memory[EXPOSED + 1] == device_put[1]);
        memory[DATA + 1] = device_put[1];
        device_put[1] = 0
       }
    od
}

active proctype begin_and_end()
{
    d_step {
        memory[POSTS] = 3;
        memory[POSTS + 1] = 3;
        memory[COMPLETES] = 3;
        memory[COMPLETES + 1] = 3;
        ready = 1
    };
    ended == 2;
    assert(memory[POSTS_SLEEPERS] == 0 && memory[POSTS_SLEEPERS + 1] == 0);
    assert(memory[COMPLETES_SLEEPERS] == 0 && memory[COMPLETES_SLEEPERS + 1] == 0)
}
