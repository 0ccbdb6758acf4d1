/* Detection of lost processes (src/transport/ucx/net.h, N4). Two processes, each with its agent,
 * ask each other, send to each other, wait for a message, and say goodbye. Each direction has its
 * own connection. The first process may be killed at any step, or be stopped until the other has
 * given it up; or either one has no memory for arriving messages, and closes that connection. The
 * ends of a broken connection are notified, or never: then only the silence remains, which ends
 * when the living process has nothing else to do. Each wait ends: with the awaited message, or
 * because the other process is lost, which requires one of these causes. Order is net.pml's. */
#define other (1 - number)

mtype = { ASK, EVENT, BYE };

/* Of each process. */
bool dead[2], stopped[2], is_over[2]; /* its net has stopped */
bool is_lost[2];                      /* the other, for its origin's worker */
bool has_request[2], has_ended[2];    /* its request; its sender, which is the other */
/* its sender: its first message has arrived; it can be sent nothing more */
bool is_known[2], is_broken[2];
bool must_shun[2], was_lost[2];       /* reported to its service */
bool is_failed[2], has_event[2], is_leaving[2];
byte ended;

/* The connection from its origin's worker to the other's agent. */
chan messages[2] = [4] of { mtype };
chan answers[2] = [3] of { bool };
bool is_closed[2];                /* by one of the ends, or by a death */
bool is_lossy[2];                 /* messages under way may not arrive */
bool tells_origin[2], tells_agent[2];
chan ready[2] = [4] of { mtype }; /* of each agent */

#define runs(p) (!dead[p] && !stopped[p])
#define is_too_expensive (!dead[0] && !was_stopped && !gave_up)
bool was_stopped, gave_up;
bool is_away; /* the second waits for the first by other means, without progress */

#define has_come_to_end(p) (is_over[p] || is_failed[p] || is_leaving[p])

/* Whether it answers requests if it lives. */
#define hears(p) (runs(1 - (p)) && !is_over[1 - (p)] && !has_ended[1 - (p)] && !is_closed[p])

inline close(which, loses)
{
    if
    :: !is_closed[which] ->
        is_closed[which] = true;
        is_lossy[which] = loses;
        if
        :: tells_origin[which] = true
        :: true
        fi;
        if
        :: tells_agent[which] = true
        :: true
        fi
    :: else
    fi
}

inline lose()
{
    is_lost[number] = true;
    tells_origin[number] = false;
    if
    :: has_request[number] -> has_request[number] = false; is_failed[number] = true /* N4 */
    :: else
    fi;
    must_shun[number] = true
}

#define ASKS (step < 2)
#define TELLS (step == 2)
#define AWAITS (step == 3)
#define LEAVES (step == 4)
#define must_wait (has_request[number] || (AWAITS && !has_event[number]))

/* A process that has said goodbye gets that reported, and is not asked. */
inline call()
{
    if
    :: is_lost[number] && !AWAITS && !LEAVES -> is_failed[number] = true /* N4 */
    :: !is_lost[number] && ASKS -> messages[number] ! ASK; has_request[number] = true
    :: !is_lost[number] && TELLS -> messages[number] ! EVENT
    :: !is_lost[number] && LEAVES && !has_ended[number] -> messages[number] ! BYE; has_request[number] = true
    :: !is_lost[number] && LEAVES && has_ended[number] -> messages[number] ! BYE
    :: AWAITS
    :: is_lost[number] && LEAVES
    fi
}

/* A rank in a call progresses: an answer, or the end of the connection; or it has waited for too
 * long. */
proctype rank(byte number)
{
    byte step;
    {
        do
        :: atomic { number == 1 && AWAITS && !is_away && !is_failed[1] -> is_away = true };
            atomic { has_come_to_end(0) || dead[0]; is_away = false }
        :: atomic {
            runs(number) && !must_wait && !is_failed[number] && step < 5 ->
            is_leaving[number] = LEAVES;
            call();
            step++
           }
        :: atomic { runs(number) && nempty(answers[number]) -> answers[number] ? _; has_request[number] = false }
        :: atomic { runs(number) && tells_origin[number] && !is_lost[number] -> lose() }
        :: atomic { timeout && runs(number) && must_wait && !is_lost[number] && !hears(number) ->
            assert(!is_too_expensive);
            lose();
            close(number, true)
           }
        :: atomic { runs(number) && AWAITS && !has_event[number] && is_lost[number] -> is_failed[number] = true }
        :: atomic { runs(number) && (is_failed[number] || (step == 5 && !must_wait)) -> break }
        od;
        assert(!is_failed[number] || !is_too_expensive || is_leaving[number]);
        if
        :: atomic {
            /* its agent's thread has ended before */
            is_leaving[number] && runs(number) && empty(ready[number]) ->
            is_over[number] = true;
            close(number, false);
            close(other, false)
           }
        :: !is_leaving[number] /* its agent still serves */
        fi
    } unless { dead[number] };
    ended++
}

inline serve_one()
{
    if
    :: what == ASK -> answers[other] ! true
    :: what == EVENT -> has_event[number] = true
    :: what == BYE ->
        has_ended[number] = true;
        answers[other] ! true;
        has_request[number] = false /* the leaving process owes no answer */
    fi
}

#define serves(p) (runs(p) && !is_over[p])

proctype agent(byte number)
{
    mtype what;
end:
    do
    :: atomic {
        serves(number) && must_shun[number] ->
        must_shun[number] = false;
        if
        :: is_known[number] -> is_broken[number] = true
        :: else -> has_ended[number] = true /* before it began */
        fi
       }
    :: atomic {
        serves(number) && nempty(messages[other]) ->
        messages[other] ? what;
        if
        :: !has_ended[number] -> is_known[number] = true; ready[number] ! what
        :: else
        fi;
        what = 0
       }
    :: atomic { serves(number) && tells_agent[other] -> tells_agent[other] = false; is_broken[number] = true }
    :: atomic { serves(number) && nempty(ready[number]) -> ready[number] ? what; serve_one(); what = 0 }
    :: atomic {
        serves(number) && is_broken[number] && empty(ready[number]) ->
        is_broken[number] = false;
        if
        :: !has_ended[number] ->
            was_lost[number] = true;
            assert((!is_too_expensive || is_leaving[number]) && empty(ready[number]));
            if
            :: !is_lost[number] -> lose(); close(number, true) /* and no message from it arrives */
            :: else
            fi
        :: else
        fi;
        has_ended[number] = true;
        close(other, true)
       }
    od
}

/* Messages that do not arrive. */
active proctype network()
{
end:
    do
    :: atomic { is_lossy[0] && nempty(messages[0]) -> do :: messages[0] ? _ :: empty(messages[0]) -> break od }
    :: atomic { is_lossy[1] && nempty(messages[1]) -> do :: messages[1] ? _ :: empty(messages[1]) -> break od }
    :: atomic { is_lossy[0] && nempty(answers[0]) -> do :: answers[0] ? _ :: empty(answers[0]) -> break od }
    :: atomic { is_lossy[1] && nempty(answers[1]) -> do :: answers[1] ? _ :: empty(answers[1]) -> break od }
    od
}

init
{
    atomic { run rank(0); run rank(1); run agent(0); run agent(1) };
    if
    :: atomic { dead[0] = true; close(0, true); close(1, true) }
    :: atomic { stopped[0] = true; was_stopped = true };
        atomic { is_lost[1] || is_away || has_come_to_end(1); stopped[0] = false }
    :: atomic { gave_up = true; is_broken[0] = true } /* no memory for arriving messages */
    :: atomic { gave_up = true; is_broken[1] = true }
    :: true
    fi;
    ended == 2
}
