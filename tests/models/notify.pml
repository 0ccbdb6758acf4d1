/* Notifications (src/sync/notify.c): one rank's threads take from its counters A and B, one of them
 * from A and one from any of both. One origin notifies A twice, another one B. */
#define PROCESSES 4
#define STORED 2
#define WORDS 10
#define DATA 0 /* one for each origin */
#define A 2    /* arrived, sleepers, taken; so for B */
#define B 5
#define SLEEPERS(counter) ((counter) + 1)
#define TAKEN(counter) ((counter) + 2)
#define ANY 8
#define ANY_SLEEPERS 9

#include "memory.pml"
#include "wait.pml"

byte ended;

inline notify(counter)
{
    fetch_add(counter, 1, 8); /* N2 */
    if
    :: load_shared(SLEEPERS(counter)) != 0 -> /* N3 */
        signal(ANY, ANY_SLEEPERS);
        futex_wake_all(counter)
    :: else
    fi
}

/* One notification. */
inline take(counter)
{
    before = load_shared(TAKEN(counter));
    if
    :: load(counter) != before -> /* T1 */
        atomic {
            drained;
            if
            :: memory[TAKEN(counter)] == before -> /* T2 */
                memory[TAKEN(counter)]++;
                taken = counter
            :: else
            fi
        }
    :: else
    fi
}

active proctype origin_of_a() /* N1 */
{
    byte seen, was, sleeper;
    store_relaxed(DATA, 1);
    notify(A);
    notify(A);
    ended++
}

active proctype origin_of_b()
{
    byte seen, was, sleeper;
    store_relaxed(DATA + 1, 1);
    notify(B);
    ended++
}

inline check_taken() /* P1, P2 */
{
    seen = (taken == A -> DATA : DATA + 1);
    assert(load(seen) == 1);
    seen = 0;
    assert(memory[TAKEN(taken)] <= memory[taken]);
    ended++
}

active proctype taker_of_a()
{
    byte seen, was, sleeper, before, taken;
    do
    :: take(A);
        if
        :: taken != 0 -> break
        :: else -> await(A, SLEEPERS(A), at_least(seen, before + 1)) /* S, P3 */
        fi
    od;
    check_taken()
}

active proctype taker_of_any()
{
    byte seen, was, sleeper, before, taken, looked;
    fetch_add(SLEEPERS(A), 1, 8); /* A1 */
    fetch_add(SLEEPERS(B), 1, 8);
    do
    :: looked = load_shared(ANY); /* A2 */
        take(A); /* A3 */
        if
        :: taken == 0 -> take(B)
        :: else
        fi;
        if
        :: taken != 0 -> break
        :: else -> await(ANY, ANY_SLEEPERS, at_least(seen, looked + 1)) /* A4, P4 */
        fi
    od;
    fetch_add(SLEEPERS(A), 7, 8);
    fetch_add(SLEEPERS(B), 7, 8);
    check_taken()
}

active proctype ending()
{
    ended == PROCESSES;
    assert(memory[SLEEPERS(A)] == 0 && memory[SLEEPERS(B)] == 0 && memory[ANY_SLEEPERS] == 0)
}
