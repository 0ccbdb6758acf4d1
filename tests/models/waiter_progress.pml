/* The threads that serve messages (src/transport/ucx/waiter_progress.c): the agent's thread, which
 * may step aside at any time and sleeps without a time limit; a thread that helps now and then; and
 * a sender. An end state with an unserved message is a lost wake-up. */
#define PROCESSES 3
#define STORED 2
#define WORDS 2
#define HELPING 0
#define ASIDE 1
#define MESSAGES 3
#define TIMES 2

#include "memory.pml"

/* The kernel's state: arrived messages, whether the gate reports them, and the eventfd of the
 * agent's thread. */
byte pending, served;
bool is_open, is_woken, has_left;

#define is_over (served == MESSAGES && has_left)

inline serve()
{
    atomic {
        if
        :: pending > 0 -> pending--; served++
        :: else
        fi
    }
}

/* Arms the worker, which fails if a message has arrived, then opens. */
inline open_gate(opened)
{
    opened = (pending == 0);
    if
    :: opened -> is_open = true
    :: else
    fi
}

inline step_aside()
{
    is_open = false; /* A0 */
    store_seq_cst(ASIDE, 1); /* A1 */
    sleeps = true;
    if
    :: load(HELPING) == 0 -> open_gate(sleeps) /* A2 */
    :: else
    fi;
    if
    :: sleeps ->
        atomic {
            (is_open && pending > 0) || is_woken || is_over;
            is_woken = false
        }
    :: else
    fi;
    store_relaxed(ASIDE, 0)
}

active proctype agent()
{
    bool sleeps;
    do
    :: is_over -> break
    :: serve()
    :: step_aside()
    :: atomic { pending > 0 || is_woken || is_over; is_woken = false } /* asleep as usual */
    od
}

active proctype helper()
{
    byte times;
    bool opened;
    do
    :: times < TIMES ->
        store_relaxed(HELPING, 1); /* B1 */
        if
        :: load(ASIDE) == 1 -> is_open = false /* B2 */
        :: else
        fi;
        do
        :: serve()
        :: break
        od;
        store_seq_cst(HELPING, 0); /* H1 */
        opened = true;
        if
        :: load(ASIDE) == 1 -> open_gate(opened) /* H2 */
        :: else
        fi;
        if
        :: !opened -> is_woken = true
        :: else
        fi;
        times++
    :: else -> break
    od;
    has_left = true
}

active proctype sender()
{
    byte sent;
    do
    :: sent < MESSAGES -> atomic { pending++; sent++ }
    :: else -> break
    od
}
