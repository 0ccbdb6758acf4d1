/* Lazy locks of internode targets, for which epochs do not wait (src/internode/origin/lazy_lock.c).
 * Origins lock two targets, one inside the other's epoch and always in one order, write twice to
 * each, and unlock. The first target's own rank locks it, too. Messages of one origin to one target
 * are served in order, at some time; a target may refuse one lock. */
#ifndef ORIGINS
#define ORIGINS 2
#endif
#define TARGETS 2
#define NO_RANK 9
#define OWN ORIGINS /* the target's own rank, in its queue */

mtype = { LOCK, WRITE, FLUSH, UNLOCK };

#define at(t, o) ((t) * ORIGINS + (o))

chan messages[TARGETS * ORIGINS] = [5] of { mtype };
chan queue[TARGETS] = [ORIGINS + 1] of { byte };
/* An epoch has four messages besides its lock. */
chan deferred[TARGETS * ORIGINS] = [4] of { mtype };
byte holder[TARGETS] = NO_RANK;
bool waits[TARGETS * ORIGINS];
bool is_shut[TARGETS * ORIGINS];
bool lock_answered[TARGETS * ORIGINS], lock_refused[TARGETS * ORIGINS];
byte answered[TARGETS * ORIGINS]; /* to flushes and unlocks */
byte writes[TARGETS];             /* of the present epoch */
byte refusals;
byte ended;

#define is_first(t, rank) (holder[t] == NO_RANK && queue[t] ? [eval(rank)])

/* At the target, for an origin that has its lock. */
inline serve(t, o, what)
{
    if
    :: what == WRITE -> assert(holder[t] == o && !lock_refused[at(t, o)]); writes[t]++
    :: what == FLUSH -> assert(writes[t] == 2); answered[at(t, o)]++
    :: what == UNLOCK ->
        assert(holder[t] == o && writes[t] == 2);
        writes[t] = 0;
        holder[t] = NO_RANK;
        answered[at(t, o)]++
    fi
}

/* Nothing is executed, and requests are answered with the error, up to the unlock. */
inline refuse(t, o, what)
{
    if
    :: what == WRITE
    :: what == FLUSH -> answered[at(t, o)]++
    :: what == UNLOCK -> is_shut[at(t, o)] = false; answered[at(t, o)]++
    fi
}

/* One step after the other, for this origin. */
proctype agent(byte t; byte o)
{
    mtype what;
end:
    do
    :: atomic {
        waits[at(t, o)] && is_first(t, o) -> /* its turn: T1 and G3 are done */
        queue[t] ? _;
        holder[t] = o;
        waits[at(t, o)] = false;
        lock_answered[at(t, o)] = true;
        do
        :: deferred[at(t, o)] ? what -> serve(t, o, what) /* K2 */
        :: empty(deferred[at(t, o)]) -> break
        od
       }
    :: atomic {
        messages[at(t, o)] ? what ->
        if
        :: what == LOCK && refusals == 0 ->
            refusals++;
            is_shut[at(t, o)] = true; /* K3 */
            lock_refused[at(t, o)] = true;
            lock_answered[at(t, o)] = true
        :: what == LOCK -> queue[t] ! o; waits[at(t, o)] = true
        :: what != LOCK && is_shut[at(t, o)] -> refuse(t, o, what) /* K3 */
        :: what != LOCK && !is_shut[at(t, o)] && waits[at(t, o)] -> deferred[at(t, o)] ! what /* K2 */
        :: what != LOCK && !is_shut[at(t, o)] && !waits[at(t, o)] -> serve(t, o, what)
        fi
       }
    od
}

/* K1: before all else of its epoch. */
inline lock(t)
{
    lock_answered[at(t, me)] = false;
    lock_refused[at(t, me)] = false;
    messages[at(t, me)] ! LOCK;
    messages[at(t, me)] ! WRITE;
    messages[at(t, me)] ! WRITE
}

inline settle(t)
{
    lock_answered[at(t, me)]
}

inline flush(t)
{
    asked = answered[at(t, me)] + 1;
    messages[at(t, me)] ! FLUSH;
    answered[at(t, me)] == asked
}

inline unlock(t)
{
    asked = answered[at(t, me)] + 1;
    messages[at(t, me)] ! UNLOCK;
    answered[at(t, me)] == asked && lock_answered[at(t, me)]
}

proctype origin(byte me)
{
    byte asked;
    lock(0);
    if
    :: flush(0) /* K5: or anything else that waits */
    :: true
    fi;
    settle(0); /* K4 */
    lock(1);
    flush(0);
    unlock(1);
    unlock(0);
    if
    :: me == 0 -> /* an epoch after one that may have been refused */
        lock(0);
        unlock(0)
    :: else
    fi;
    ended++
}

/* Its lock waits in the queue like those of the origins. */
proctype own_rank()
{
    queue[0] ! OWN;
    atomic { is_first(0, OWN) -> queue[0] ? _; holder[0] = OWN };
    assert(writes[0] == 0);
    holder[0] = NO_RANK;
    ended++
}

init
{
    byte i;
    atomic {
        for (i : 0 .. TARGETS * ORIGINS - 1) {
            run agent(i / ORIGINS, i % ORIGINS)
        }
        for (i : 0 .. ORIGINS - 1) {
            run origin(i)
        }
        run own_rank()
    };
    ended == ORIGINS + 1;
    assert(holder[0] == NO_RANK && holder[1] == NO_RANK);
    for (i : 0 .. TARGETS * ORIGINS - 1) {
        assert(empty(deferred[i]))
    }
}
