/* PSCW epochs (src/sync/pscw.c) when one of a ring of three is killed at any step. Each call of a
 * living rank returns, with the error only if a rank is dead. An epoch that ends has all that its
 * peer, even the dead one, wrote in it. A rank that gets the error leaves the window and publishes
 * that (src/create/free.c), so a rank that waits for it does not wait forever. */
#define PROCESSES 3
#define STORED 9
#define WORDS 21
#define DATA 0    /* of each process, written by its predecessor */
#define EXPOSED 3 /* of each process, which it writes itself before it posts */
#define ABANDONED 6
#define POSTS 9   /* of each process, for its predecessor */
#define POSTS_SLEEPERS 12
#define COMPLETES 15 /* of each process, for its successor */
#define COMPLETES_SLEEPERS 18
#ifndef EPOCHS
#define EPOCHS 2
#endif

#define FAILED failed
#define lost_peer(peer) ((peer == VICTIM && is_gone) || load(ABANDONED + peer) != 0)
#define lost lost_peer(watched)
#define limit_comes (lost && !looked)

#include "memory.pml"
#include "wait_death.pml"

#define reached_of_4(wanted) ((seen + 4 - (wanted)) % 4 < 2)

byte ready, ended;

inline start_and_complete()
{
    watched = target;
    wanted = (load_shared(COMPLETES + me) + 1) % 4;
    await(POSTS + target, POSTS_SLEEPERS + target, reached_of_4(wanted)); /* C2 */
    if
    :: failed
    :: else ->
        assert(load(EXPOSED + target) == epoch);
        store_relaxed(DATA + target, epoch);
        fetch_add(COMPLETES + me, 1, 4); /* C3 */
        wake(COMPLETES + me, COMPLETES_SLEEPERS + me)
    fi
}

inline wait_exposure()
{
    watched = origin;
    wanted = load_shared(POSTS + me);
    await(COMPLETES + origin, COMPLETES_SLEEPERS + origin, reached_of_4(wanted)); /* C4 */
    if
    :: failed
    :: else -> assert(load(DATA + me) == epoch)
    fi
}

inline epochs()
{
    do
    :: epoch < EPOCHS && !failed ->
        epoch++;
        store_relaxed(EXPOSED + me, epoch);
        fetch_add(POSTS + me, 1, 4); /* C1 */
        wake(POSTS + me, POSTS_SLEEPERS + me);
        start_and_complete();
        wait_exposure();
        wanted = 0;
        watched = 0
    :: else -> break
    od;
    if
    :: failed -> store_release(ABANDONED + me, 1)
    :: else
    fi;
    assert(dead || !failed)
}

active proctype victim()
{
    byte seen, was, sleeper, wanted, epoch, watched, target = 1, origin = 2;
    bool failed, looked;
    ready;
    { epochs() } unless { dead };
    ended++
}

active [2] proctype rank()
{
    byte seen, was, sleeper, wanted, epoch, watched, target = (me + 1) % PROCESSES, origin = (me + PROCESSES - 1) % PROCESSES;
    bool failed, looked;
    ready;
    epochs();
    ended++
}

active proctype death()
{
    byte i;
    d_step {
        do
        :: i < PROCESSES ->
            memory[POSTS + i] = 3; /* wraps around */
            memory[COMPLETES + i] = 3;
            i++
        :: else -> break
        od;
        ready = 1
    };
    if
    :: dead = true
    :: true
    fi;
    ended == PROCESSES
}
