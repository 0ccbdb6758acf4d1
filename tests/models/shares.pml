/* Epochs of lock_all that take the locks of two targets elsewhere in any order, each at its first operation there
 * (src/sync/far.c, far_shares.c), while each target's own rank locks it exclusively.  An answer comes at some time; a target's
 * agent does one thing after the other, and its rank any time between.  Memory orders are left to the models of the queue and the
 * gate (ticket, gate). */
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
#define MOST 3 /* places at a time; numbers of tickets and readers are modulo 8 */
#define at_least(value, wanted) (((value) + 8 - (wanted)) % 8 < 4)

typedef share { byte ticket; byte greatest; byte limit; byte members };
typedef target { byte tickets; byte came; byte serving; byte departed; byte limit; byte first; byte count; bit busy };
target at[TARGETS];
share shares[TARGETS * MOST];
byte overtaken[TARGETS * ORIGINS]; /* each rank, by each origin, since its exclusive lock stands in the queue */
byte next_number[ORIGINS];
byte readers[TARGETS];
byte writers[TARGETS];
byte ended;

#define newest(t) shares[(t) * MOST + (at[t].first + at[t].count - 1) % MOST]
#define nth(t, n) ((t) * MOST + (at[t].first + (n)) % MOST)

/* At the target: the place is in "where".  more: the origin holds the other target's lock. */
inline join(t, more)
{
    atomic { !at[t].busy -> at[t].busy = 1 };
    d_step {
        if
        :: at[t].count > 0 && newest(t).limit == 0 && newest(t).ticket != at[t].tickets ->
            if
            :: newest(t).greatest > at[t].limit -> at[t].limit = newest(t).greatest + 1
            :: else -> at[t].limit = at[t].limit + 1
            fi;
            newest(t).limit = at[t].limit /* J2 */
        :: else
        fi;
        where = 0;
        do
        :: where < at[t].count && shares[nth(t, where)].limit != 0 &&
           !(more && number < shares[nth(t, where)].limit) -> where++ /* J3 */
        :: else -> break
        od;
        stands = where < at[t].count && shares[nth(t, where)].ticket != at[t].tickets
    };
    d_step {
        if
        :: where == at[t].count -> /* R1 */
            assert(at[t].count < MOST);
            at[t].count++;
            where = nth(t, where);
            shares[where].ticket = at[t].tickets;
            at[t].came = (at[t].came + 1) % 8;
            shares[where].greatest = 0
        :: else ->
            where = nth(t, where);
            if
            :: stands -> /* a writer is behind, and was when the agent looked */
                overtaken[t * ORIGINS + origin]++;
                assert(more && overtaken[t * ORIGINS + origin] == 1)
            :: else
            fi
        fi;
        shares[where].members++;
        if
        :: number > shares[where].greatest -> shares[where].greatest = number
        :: else
        fi;
        stands = 0;
        at[t].busy = 0
    }
}

inline take(t, more)
{
    join(t, more);
    atomic {
        at_least(at[t].serving, shares[where].ticket) && !at[t].busy -> /* R2 */
        readers[t]++;
        assert(writers[t] == 0);
        if
        :: at[t].limit > next_number[origin] -> next_number[origin] = at[t].limit /* J4 */
        :: else
        fi
    };
    held[t] = where;
    where = 0
}

inline give_back(t)
{
    atomic {
        !at[t].busy -> readers[t]--;
        shares[held[t]].members--;
        if
        :: shares[held[t]].members == 0 ->
            assert(held[t] == nth(t, 0));
            shares[held[t]].limit = 0;
            shares[held[t]].ticket = 0;
            shares[held[t]].greatest = 0;
            at[t].first = (at[t].first + 1) % MOST;
            at[t].count--;
            at[t].departed = (at[t].departed + 1) % 8 /* R3 */
        :: else
        fi;
        held[t] = 0
    }
}

proctype epochs(byte origin)
{
    byte number, where, first, second, times;
    byte held[TARGETS];
    bit stands;
    do
    :: times < EPOCHS ->
        times++;
        atomic {
            if
            :: first = 0
            :: first = 1
            fi;
            number = next_number[origin] /* J1 */
        };
        take(first, false);
        if
        :: second = 1 - first;
            take(second, true);
            give_back(second)
        :: skip
        fi;
        give_back(first)
    :: else -> break
    od;
    atomic { number = 0; first = 0; second = 0; ended++ }
}

proctype exclusive(byte own)
{
    byte ticket, before, times, other;
    do
    :: times < WRITES ->
        times++;
        d_step {
            ticket = at[own].tickets;
            before = at[own].came;
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
        :: i < TARGETS -> run exclusive(i); i++
        :: else -> break
        od;
        i = 0
    };
    ended == ORIGINS + TARGETS
}
