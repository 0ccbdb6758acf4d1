/* Epochs of lock_all that acquire the locks of two targets on other nodes in any order
 * (src/internode/origin/origin_sync.c, lock_all_queue.c). Each lock is acquired at the first
 * operation on its target, or within lock_all if a writer waited for the epoch before. Each
 * target's own rank locks it exclusively. An answer arrives at some time; a target's agent executes
 * one step after the other, with its rank's steps at any time between. With WINDOWS each target
 * belongs to its own window, and lock_all of the second waits for its turn inside the first's
 * epoch. The models of the queue and the gate (ticket, lock_all_gate) cover memory orders. */
#define TARGETS 2
#ifndef ORIGINS
#define ORIGINS 2
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef WRITES
#define WRITES 1
#endif
#ifndef MOST
#define MOST 3 /* positions at a time; numbers of tickets and readers are modulo 8 */
#endif
#define at_least(value, wanted) (((value) + 8 - (wanted)) % 8 < 4)

typedef position { byte ticket; byte members };
typedef target {
    byte tickets; byte entered; byte serving; byte departed; byte first; byte count; bit busy
};
target at[TARGETS];
position positions[TARGETS * MOST];
/* each rank, by each origin, since its exclusive lock is in the queue */
byte overtaken[TARGETS * ORIGINS];
#ifdef WINDOWS
byte moved[TARGETS * MOST]; /* members of a position that have moved to the first one (J5) */
#endif
byte readers[TARGETS];
byte writers[TARGETS];
byte ended;

#define nth(t, n) ((t) * MOST + (at[t].first + (n)) % MOST)
#define is_followed(t, which) (positions[which].ticket != at[t].tickets)

/* At the target: the index of the position is in "where". */
inline join(t, in_turn)
{
    atomic { !at[t].busy -> at[t].busy = 1 };
    d_step {
        where = 0;
        do
        :: where < at[t].count && in_turn && is_followed(t, nth(t, where)) -> where++ /* J4 */
        :: else -> break /* J1 */
        od;
        passes = where < at[t].count && is_followed(t, nth(t, where))
    };
    d_step {
        if
        :: where == at[t].count -> /* R1 */
            assert(at[t].count < MOST);
            at[t].count++;
            where = nth(t, where);
            positions[where].ticket = at[t].tickets;
            at[t].entered = (at[t].entered + 1) % 8
        :: else ->
            where = nth(t, where);
            if
            :: passes -> /* a writer is queued after, and was when the agent checked */
                overtaken[t * ORIGINS + origin]++;
                assert(overtaken[t * ORIGINS + origin] == 1)
            :: else
            fi
        fi;
        positions[where].members++;
        passes = 0;
        at[t].busy = 0
    }
}

#define is_in(t, which) at_least(at[t].serving, positions[which].ticket) /* R2 */

inline enter(t)
{
    readers[t]++;
    assert(writers[t] == 0);
    followed[t] = is_followed(t, where) /* J2 */
}

inline acquire(t, in_turn)
{
    join(t, in_turn);
    if
    :: atomic { is_in(t, where) && !at[t].busy -> enter(t) }
#ifdef WINDOWS /* patience may end at any time */
    :: atomic {
        in_turn && where != nth(t, 0) && is_in(t, nth(t, 0)) && !at[t].busy -> /* J5 */
        moved[where]++;
        where = nth(t, 0);
        positions[where].members++;
        enter(t)
    }
#endif
    fi;
    held[t] = where + 1;
    where = 0
}

/* Removes one member of a shared position, the first. */
inline leave(t, which)
{
    positions[which].members--;
    if
    :: positions[which].members == 0 ->
        assert(which == nth(t, 0));
        positions[which].ticket = 0;
        at[t].first = (at[t].first + 1) % MOST;
        at[t].count--;
        at[t].departed = (at[t].departed + 1) % 8 /* R3 */
    :: else
    fi
}

inline release(t)
{
    atomic {
        !at[t].busy -> readers[t]--;
        leave(t, held[t] - 1);
        held[t] = 0
    }
}

#ifdef WINDOWS
/* The target's agent, for members that have left a position by J5. */
proctype leave_moved(byte t)
{
end:
    do
    :: atomic {
        at[t].count > 0 && moved[nth(t, 0)] > 0 && is_in(t, nth(t, 0)) && !at[t].busy ->
        moved[nth(t, 0)]--;
        leave(t, nth(t, 0))
    }
    od
}
#endif

proctype epochs(byte origin)
{
    byte where, first, second, times;
    byte held[TARGETS];
    bit followed[TARGETS];
    bit passes;
    do
    :: times < EPOCHS ->
        times++;
#ifdef WINDOWS
        if
        :: first = 0
        :: first = 1
        fi;
        second = 1 - first;
        acquire(first, followed[first]);
        acquire(second, followed[second]);
#else
        if
        :: followed[0] -> acquire(0, true) /* J3 */
        :: else
        fi;
        if
        :: followed[1] -> acquire(1, true) /* J3 */
        :: else
        fi;
        if
        :: first = 0
        :: first = 1
        fi;
        second = 1 - first;
        if
        :: held[first] == 0 -> acquire(first, false)
        :: else
        fi;
        if
        :: held[second] == 0 -> acquire(second, false)
        :: skip
        fi;
#endif
        if
        :: held[second] != 0 -> release(second)
        :: else
        fi;
        release(first)
    :: else -> break
    od;
    atomic { first = 0; second = 0; followed[0] = 0; followed[1] = 0; ended++ }
}

proctype exclusive(byte own)
{
    byte ticket, before, times, other;
    do
    :: times < WRITES ->
        times++;
        d_step {
            ticket = at[own].tickets;
            before = at[own].entered;
            at[own].tickets = (ticket + 1) % 8 /* T1 */
        };
        at[own].serving == ticket; /* X1 */
        atomic {
            at[own].departed == before -> /* X2 */
            writers[own]++;
            assert(writers[own] == 1 && readers[own] == 0);
            do
            :: other < ORIGINS -> overtaken[own * ORIGINS + other] = 0; other++
            :: else -> break
            od;
            other = 0
        };
        atomic { writers[own]--; at[own].serving = (ticket + 1) % 8 } /* X3 */
    :: else -> break
    od;
    atomic { ticket = 0; before = 0; ended++ }
}

init {
    atomic {
        byte i;
        do
        :: i < ORIGINS -> run epochs(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < TARGETS ->
            run exclusive(i);
#ifdef WINDOWS
            run leave_moved(i);
#endif
            i++
        :: else -> break
        od;
        i = 0
    };
    ended == ORIGINS + TARGETS
}
