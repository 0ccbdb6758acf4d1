/* The accumulate mutex (src/sync/accumulate_mutex.c) when one of three ranks is killed at any step.
 * The others get the mutex or detect that its holder is dead; a rank that has detected it once
 * always does. Unlike in the other models sleepers have a limit, but only after the death and once
 * for each lock. So a wake that a living process has lost is still an end state, and so is a wait
 * for the dead. Once is enough, because from then on the kernel wakes only living processes. */
#define PROCESSES 3
#define STORED 1
#define WORDS 2
#define DATA 0 /* the number of writes */
#define WORD 1
#define ASLEEP 8 /* with the holder's rank + 1 */
#define DEAD_ONE 0
#define FAILED failed

#include "memory.pml"

byte ended, written, holders;
bool dead;

#define names_dead(word) ((word) % ASLEEP == DEAD_ONE + 1)

inline sleep()
{
    atomic {
        if
        :: memory[WORD] == seen -> asleep[me] = WORD + 1
        :: else
        fi
    };
    if
    :: asleep[me] == 0
    :: dead && !looked -> looked = true; asleep[me] = 0; /* the limit */
        seen = load_shared(WORD);
        if
        :: names_dead(seen) -> failed = true
        :: else
        fi
    fi
}

#include "accumulate_mutex_steps.pml"

inline update()
{
    atomic { holders++; assert(holders == 1 && load(DATA) == written) };
    store_relaxed(DATA, written + 1);
    atomic { written++; holders-- }
}

active [PROCESSES] proctype rank()
{
    byte seen, was, times = 2;
    bool inside, failed, failed_before, looked;
    {
        do
        :: times > 0 ->
            lock();
            if
            :: inside ->
                assert(!failed_before);
                inside = false;
                update();
                unlock()
            :: else ->
                assert(dead && names_dead(memory[WORD]));
                failed_before = true;
                failed = false
            fi;
            looked = false;
            times--
        :: else -> break
        od
    } unless { dead && me == DEAD_ONE };
    ended++
}

active proctype death()
{
    if
    :: atomic { dead = true; asleep[DEAD_ONE] = 0 }
    :: true
    fi
}
