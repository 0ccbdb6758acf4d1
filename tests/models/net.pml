/* Messages from one process to another (src/transport/ucx/net.h). Two threads send, send coalesced,
 * and ask, through the origin's worker. UCX may leave messages unsent until a thread progresses the
 * worker: a thread that waits for an answer, or the agent's thread, which sleeps without a time
 * limit. Sent messages arrive in any order, and one of them twice; so do answers. Of two halves on
 * their way the first has been served. An end state with an unserved message is a lost wake-up
 * (deaths: net_death.pml). */
#define THREADS 2
#ifndef TIMES
#define TIMES 2
#endif
#define MOST 12
#define SYNC THREADS /* instead of a thread */

mtype = { TOLD, TOLD_LATER, ASKED, ASKED_LATER };

#define is_later(how) (how == TOLD_LATER || how == ASKED_LATER)
#define asks(how) (how == ASKED || how == ASKED_LATER)

#define bit(number) (1 << (number))

/* at: one of the set bits. */
inline any_of(mask)
{
    at = 0;
    do
    :: (mask) & bit(at) -> break
    :: (mask) >> (at + 1) -> at++
    od
}

/* Messages handed to UCX, in that order. */
byte sequence_of[MOST], whose[MOST], index_of[MOST];
bool is_asked[MOST];
byte sent, half, half_most;
short gathered, pending, flying;
bool came_twice;

/* Of the origin's worker. */
bool is_held, is_minded, is_woken, is_turned;
byte asked_at[THREADS + 1]; /* index of the newest request */
bool is_done[THREADS + 1];

/* At the receiver. */
byte expected, served;
byte early[MOST]; /* index + 1, by sequence */
chan ready = [MOST] of { byte };
byte next_index[THREADS];
short answers; /* by index */

byte ended;

inline enter()
{
    atomic { !is_held -> is_held = true }
}

inline leave()
{
    atomic {
        if
        :: pending != 0 && !is_minded -> is_minded = true; is_woken = true /* N3 */
        :: else
        fi;
        is_held = false
    }
}

inline send_gathered()
{
    if
    :: flying = flying | gathered
    :: gathered != 0 -> pending = pending | gathered
    fi;
    gathered = 0
}

inline send_to(peer, how)
{
    atomic {
        assert(sent - served < 2 * half_most);
        whose[sent] = peer;
        sequence_of[sent] = sent; /* N1 */
        is_asked[sent] = asks(how);
        if
        :: peer != SYNC -> index_of[sent] = times
        :: else
        fi;
        if
        :: asks(how) -> asked_at[peer] = sent; is_done[peer] = false
        :: else
        fi;
        gathered = gathered | bit(sent);
        sent++;
        half++;
        if
        :: !is_later(how) -> send_gathered()
        :: else
        fi
    }
}

/* An arrived message, or an unsent one. */
inline progress()
{
    if
    :: pending != 0 ->
        any_of(pending);
        pending = pending & ~bit(at);
        flying = flying | bit(at)
    :: answers != 0 ->
        any_of(answers);
        answers = answers & ~bit(at);
        assert(served > at && at == asked_at[whose[at]]); /* N2 */
        is_done[whose[at]] = true
    :: else
    fi;
    at = 0
}

inline await(peer)
{
    do
    :: is_done[peer] -> break
    :: atomic { !is_done[peer] && (gathered | pending | answers) != 0 && !is_held -> is_held = true };
        atomic {
            is_turned = true;
            send_gathered();
            progress()
        };
        leave()
    od
}

inline keep_to_halves()
{
    do
    :: half < half_most -> break
    :: half >= half_most && is_done[SYNC] -> half = 0; send_to(SYNC, ASKED); break
    :: half >= half_most && !is_done[SYNC] ->
        assert(pending == 0 || is_minded);
        is_held = false;
        await(SYNC);
        enter()
    od
}

inline send_message()
{
    enter();
    keep_to_halves();
    send_to(_pid, how);
    leave()
}

active [THREADS] proctype thread()
{
    byte times, at;
    mtype how;
    half_most != 0;
    do
    :: times < TIMES ->
        if
        :: times < TIMES - 1 -> how = TOLD_LATER
        :: times == TIMES - 1 && _pid == 0 -> how = ASKED
        :: times == TIMES - 1 && _pid == 0 -> how = ASKED_LATER
        :: times == TIMES - 1 && _pid == 1 -> how = TOLD /* and does not return */
        fi;
        send_message();
        times++
    :: else -> break
    od;
    if
    :: _pid == 0 -> await(_pid)
    :: else
    fi;
    ended++
}

active proctype agent()
{
    bool is_minding;
    byte at;
    do
    :: is_minding = is_minded;
        if
        :: atomic { is_minding && !is_held -> is_held = true };
            atomic {
                if
                :: !is_turned -> progress() /* N3 */
                :: else -> is_turned = false
                fi;
                if
                :: pending == 0 -> is_minded = false; is_minding = false
                :: else
                fi;
                is_held = false
            }
        :: else
        fi;
        if
        :: is_minding /* the limit */
        :: else ->
end:        atomic { is_woken -> is_woken = false }
        fi
    od
}

/* Messages in turn, and those that become ready then. */
inline put_in_order()
{
    if
    :: sequence_of[at] == expected ->
        ready ! at;
        expected++;
        do
        :: expected < MOST && early[expected] != 0 -> /* N1 */
            ready ! early[expected] - 1;
            early[expected] = 0;
            expected++
        :: else -> break
        od
    :: sequence_of[at] > expected -> early[sequence_of[at]] = at + 1
    :: else /* arrived already */
    fi
}

inline serve_one()
{
    if
    :: whose[at] != SYNC ->
        assert(index_of[at] == next_index[whose[at]]); /* N1 */
        next_index[whose[at]]++
    :: else
    fi;
    served++;
    if
    :: is_asked[at] -> gathered_answers = gathered_answers | bit(at)
    :: else
    fi
}

active proctype receiver()
{
    byte at;
    short gathered_answers;
end:
    do
    :: atomic {
        flying != 0 ->
        any_of(flying);
        if
        :: flying = flying & ~bit(at)
        :: !came_twice -> came_twice = true
        fi;
        put_in_order();
        at = 0
    }
    :: atomic {
        nempty(ready) ->
        do
        :: ready ? at -> serve_one()
        :: empty(ready) -> break
        od;
        answers = answers | gathered_answers; /* N2 */
        gathered_answers = 0;
        at = 0
    }
    od
}

init
{
    atomic {
        if
        :: half_most = 2
        :: half_most = MOST /* no syncs */
        fi;
        is_done[SYNC] = true
    };
    ended == THREADS && next_index[0] == TIMES && next_index[1] == TIMES && !is_minded
}
