/* Waiting on memory (src/sync/memory_wait.c): two threads of a process wait for a word each, which
 * two origins change. The first origin completes one target, the second several. */
#define PROCESSES 4
#define STORED 2
#define WORDS 5
#define DATA 0 /* one for each origin */
#define SLEEPS 2
#define WAKES 3
#define SLEEPERS 4

#include "memory.pml"

#define exchange(word, new) atomic { drained; was = memory[word]; memory[word] = new }

active [2] proctype waiter()
{
    byte seen, was, sleeper;
    if
    :: load(DATA + me) == 1
    :: else ->
        fetch_add(SLEEPERS, 1, 8); /* M1 */
        do
        :: seen = load_shared(WAKES); /* M2 */
            exchange(SLEEPS, 1); /* M3 */
            if
            :: load(DATA + me) == 1 -> break /* M4 */
            :: else
            fi;
            futex_wait(WAKES, seen) /* M5 */
        od;
        fetch_add(SLEEPERS, 7, 8)
    fi
}

inline wake()
{
    if
    :: load_shared(SLEEPS) == 1 -> /* W3 */
        exchange(SLEEPS, 0); /* W4 */
        if
        :: was == 1 ->
            fetch_add(WAKES, 1, 8); /* W5 */
            futex_wake_all(WAKES) /* W6 */
        :: else
        fi
    :: else
    fi
}

active [2] proctype origin()
{
    byte was, sleeper;
    store_relaxed(DATA + me - 2, 1);
    fence_full(); /* W2 */
    if
    :: me == 2 -> wake()
    :: me == 3 && load_shared(SLEEPERS) != 0 -> wake() /* W3 */
    :: me == 3 && load_shared(SLEEPERS) == 0
    fi
}
