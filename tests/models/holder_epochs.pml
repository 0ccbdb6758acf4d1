/* Epochs on a memory handle and its withdrawal (src/sync/holder_epochs.c): two holders with two epochs
 * each, and the owner, which withdraws the handle and then ends the window. The holders' lock is
 * shared, so H3 is no step here, but the window's words that it touches are. */
#define PROCESSES 3
#define STORED 5
#define WORDS 7
#define STATE 0 /* of each holder: NONE, WAITING or SHARED */
#define WITHDRAWN 2
#define DATA 3 /* of each holder's epoch */
#define LEFT 5
#define SLEEPERS 6
#define NONE 0
#define WAITING 1
#define SHARED 2
#define OWNER 2

#include "memory.pml"
#include "wait.pml"

byte ended, epochs, touching, written[2];
bool refused[2], is_withdrawn, is_over;

inline leave()
{
    store_seq_cst(STATE + me, NONE); /* H6 */
    if
    :: load_shared(WITHDRAWN) != 0 -> signal(LEFT, SLEEPERS)
    :: else
    fi
}

inline epoch()
{
    atomic { epochs++; assert(!is_withdrawn) };
    store_relaxed(DATA + me, times);
    atomic { written[me] = times; epochs-- }
}

inline lock()
{
    store_seq_cst(STATE + me, WAITING); /* H1 */
    if
    :: load_shared(WITHDRAWN) != 0 -> refused[me] = true /* H2 */
    :: else ->
        atomic { touching++; assert(!is_over) }; /* H3 */
        touching--;
        store_seq_cst(STATE + me, SHARED); /* H4 */
        if
        :: load_shared(WITHDRAWN) != 0 -> /* H5 */
            atomic { touching++; assert(!is_over) };
            touching--;
            refused[me] = true
        :: else
        fi
    fi
}

active [2] proctype holder()
{
    byte seen, was, sleeper, times = 2;
    do
    :: times > 0 && !refused[me] ->
        lock();
        if
        :: !refused[me] -> epoch()
        :: else
        fi;
        leave();
        times--
    :: else -> break
    od;
    ended++
}

/* limit: the highest state that is not waited for. */
inline search(limit)
{
    do
    :: left = load_shared(LEFT); /* W2 */
        if
        :: load(STATE) > limit || load(STATE + 1) > limit -> await(LEFT, SLEEPERS, seen != left)
        :: else -> break
        fi
    od;
    left = 0
}

active proctype owner()
{
    byte seen, was, sleeper, left;
    store_seq_cst(WITHDRAWN, 1); /* W1 */
    search(WAITING);
    atomic {
        is_withdrawn = true;
        assert(epochs == 0);
        assert(load(DATA) == written[0] && load(DATA + 1) == written[1])
    };
    search(NONE);
    atomic { is_over = true; assert(touching == 0) };
    ended++
}

active proctype ending()
{
    ended == PROCESSES;
    assert(memory[SLEEPERS] == 0)
}
