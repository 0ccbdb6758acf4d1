/* The lock of accumulates (src/sync/mutex.c): three, two of them twice.  Spins are looks that change nothing. */
#define PROCESSES 3
#define STORED 1
#define WORDS 2
#define DATA 0 /* how often it was written */
#define WORD 1
#define ASLEEP 8 /* with the holder's rank + 1 */

#include "memory.pml"

byte ended, written, holders;

inline try_lock(as)
{
    atomic {
        if
        :: memory[WORD] == 0 -> memory[WORD] = as; inside = true /* M1 */
        :: else
        fi
    }
}

inline lock()
{
    try_lock(me + 1);
    do
    :: inside -> break
    :: else ->
        try_lock(ASLEEP + me + 1);
        if
        :: inside
        :: else ->
            seen = load_shared(WORD);
            atomic { /* M2 */
                if
                :: seen == 0 || seen >= ASLEEP
                :: else ->
                    if
                    :: memory[WORD] == seen -> seen = seen + ASLEEP; memory[WORD] = seen
                    :: else -> seen = 0
                    fi
                fi
            };
            if
            :: seen != 0 -> futex_wait(WORD, seen)
            :: else
            fi;
            seen = 0
        fi
    od;
    inside = false
}

inline unlock()
{
    atomic { drained; was = memory[WORD]; memory[WORD] = 0 }; /* M3 */
    if
    :: was >= ASLEEP -> futex_wake_one(WORD)
    :: else
    fi;
    was = 0
}

active [PROCESSES] proctype rank()
{
    byte seen, was, sleeper, times = 1 + (me > 0);
    bool inside;
    do
    :: times > 0 ->
        lock();
        atomic { holders++; assert(holders == 1 && load(DATA) == written) };
        store_relaxed(DATA, written + 1);
        atomic { written++; holders-- };
        unlock();
        times--
    :: else -> break
    od;
    ended++
}
