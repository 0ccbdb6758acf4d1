/* PSCW epochs (src/sync/pscw.c): a ring of three, in which each rank posts to its predecessor and
 * starts towards its successor, and begins the next epochs at once. The entries have been found
 * (pscw_counters.pml). Counters are modulo 4 and wrap around. */
#define PROCESSES 3
#define STORED 6
#define WORDS 18
#define DATA 0    /* of each process, written by its predecessor */
#define EXPOSED 3 /* of each process, which it writes itself before it posts */
#define POSTS 6   /* of each process, for its predecessor */
#define POSTS_SLEEPERS 9
#define COMPLETES 12 /* of each process, for its successor */
#define COMPLETES_SLEEPERS 15
#ifndef EPOCHS
#define EPOCHS 4
#endif

#include "memory.pml"
#include "wait.pml"

#define reached_of_4(wanted) ((seen + 4 - (wanted)) % 4 < 2)

byte ready, ended;

active [PROCESSES] proctype rank()
{
    byte seen, was, sleeper, wanted, epoch, target = (me + 1) % PROCESSES, origin = (me + PROCESSES - 1) % PROCESSES;
    ready;
    do
    :: epoch < EPOCHS ->
        epoch++;
        store_relaxed(EXPOSED + me, epoch);
        fetch_add(POSTS + me, 1, 4); /* C1 */
        wake(POSTS + me, POSTS_SLEEPERS + me);
        wanted = (load_shared(COMPLETES + me) + 1) % 4;
        await(POSTS + target, POSTS_SLEEPERS + target, reached_of_4(wanted)); /* C2 */
        assert(load(EXPOSED + target) == epoch);
        store_relaxed(DATA + target, epoch);
        fetch_add(COMPLETES + me, 1, 4); /* C3 */
        wake(COMPLETES + me, COMPLETES_SLEEPERS + me);
        wanted = load_shared(POSTS + me);
        await(COMPLETES + origin, COMPLETES_SLEEPERS + origin, reached_of_4(wanted)); /* C4 */
        wanted = 0;
        assert(load(DATA + me) == epoch)
    :: else -> break
    od;
    ended++
}

active proctype begin_and_end()
{
    byte i;
    d_step {
        do
        :: i < PROCESSES ->
            memory[POSTS + i] = 3;
            memory[COMPLETES + i] = 3;
            i++
        :: else -> break
        od;
        ready = 1
    };
    ended == PROCESSES;
    do
    :: i > 0 ->
        i--;
        assert(memory[POSTS_SLEEPERS + i] == 0 && memory[COMPLETES_SLEEPERS + i] == 0)
    :: else -> break
    od
}
