/* PSCW epochs between nodes (src/sync/pscw.c, origin_epochs.c, target_sync.c) when one rank of a
 * ring of three is killed at any step, together with its agent. Each rank is on its own node. A
 * first part of the victim's sent messages still arrives. Each call of a living rank returns, with
 * the error only if a rank is dead. An epoch that ends has all that its peer, even the dead one,
 * put in it. A rank that gets the error leaves the window: later messages for it are dropped, and a
 * rank that waits for it and asks gets that answer (src/internode/target/am_dispatch.c). Sleeps and
 * memory are those of pscw_internode.pml; net_death.pml models how the net detects deaths. */
#define PROCESSES 3
#define VICTIM 0
#ifndef EPOCHS
#define EPOCHS 3
#endif

#define reached_of_4(seen, wanted) ((seen + 4 - (wanted)) % 4 < 2)
#define lost(peer) ((peer == VICTIM && dead) || has_left[peer])

mtype = { POST, PUT, COMPLETE };

chan to_origin[PROCESSES] = [4] of { mtype, byte }; /* of each rank: to its predecessor */
chan to_target[PROCESSES] = [4] of { mtype, byte }; /* to its successor */
byte device_put[PROCESSES];                             /* by each rank, under way by a device */
byte exposed[PROCESSES], data[PROCESSES], posts_here[PROCESSES], completes_here[PROCESSES];
bool has_left[PROCESSES]; /* the window */
bool dead, is_cut;
byte ended;

#define target_of(rank) ((rank + 1) % PROCESSES)
#define origin_of(rank) ((rank + 2) % PROCESSES)

/* Nothing can be sent to a rank that is known to be lost. */
inline send_message(channel, what, value)
{
    if
    :: channel ! what, value
    :: dead && watched == VICTIM -> failed = true
    fi
}

inline await(reached)
{
    if
    :: reached
    :: lost(watched) -> failed = true
    fi
}

inline epochs(number)
{
    do
    :: epoch < EPOCHS && !failed ->
        epoch++;
        watched = origin_of(number);
        exposed[number] = epoch;
        posts = (posts + 1) % 4; /* C1 */
        send_message(to_origin[number], POST, 0);
        watched = target_of(number);
        if
        :: failed
        :: else -> await(reached_of_4(posts_here[number], (completes + 1) % 4)) /* C2 */
        fi;
        if
        :: failed
        :: else ->
            if
            :: send_message(to_target[number], PUT, epoch)
            :: device_put[number] = epoch
            fi;
            if
            :: device_put[number] == 0 /* D1 */
            :: dead && watched == VICTIM -> failed = true
            fi
        fi;
        if
        :: failed
        :: else ->
            send_message(to_target[number], COMPLETE, 0);
            completes = (completes + 1) % 4 /* C3 */
        fi;
        watched = origin_of(number);
        if
        :: failed
        :: else ->
            await(reached_of_4(completes_here[number], posts)); /* C4 */
            assert(failed || data[number] == epoch)
        fi
    :: else -> break
    od;
    if
    :: failed -> has_left[number] = true
    :: else
    fi;
    assert(dead || !failed)
}

proctype victim()
{
    byte epoch, posts = 3, completes = 3, watched;
    bool failed;
    { epochs(VICTIM) } unless { dead };
    ended++
}

proctype rank(byte number)
{
    byte epoch, posts = 3, completes = 3, watched;
    bool failed;
    epochs(number);
    ended++
}

#define is_served(by) (!(by == VICTIM && dead))
#define arrives(from) (!(from == VICTIM && is_cut))

proctype agent(byte number)
{
    byte value;
end:
    do
    :: atomic {
        is_served(number) && arrives(target_of(number)) && nempty(to_origin[target_of(number)]) ->
        to_origin[target_of(number)] ? POST, 0;
        if
        :: !has_left[number] -> posts_here[number] = (posts_here[number] + 1) % 4
        :: else
        fi
       }
    :: atomic {
        is_served(number) && arrives(origin_of(number)) && nempty(to_target[origin_of(number)]) ->
        if
        :: to_target[origin_of(number)] ? PUT, value ->
            assert(exposed[number] == value || has_left[number]);
            if
            :: !has_left[number] -> data[number] = value
            :: else
            fi
        :: to_target[origin_of(number)] ? COMPLETE, value ->
            if
            :: !has_left[number] -> completes_here[number] = (completes_here[number] + 1) % 4
            :: else
            fi
        fi;
        value = 0
       }
    :: atomic { /* the device's */
        device_put[origin_of(number)] != 0 && is_served(number) && arrives(origin_of(number)) ->
        assert(exposed[number] == device_put[origin_of(number)] || has_left[number]);
        data[number] = device_put[origin_of(number)];
        device_put[origin_of(number)] = 0
       }
    od
}

init
{
    byte i;
    atomic {
        for (i : 0 .. PROCESSES - 1) {
            posts_here[i] = 3;
            completes_here[i] = 3;
            run agent(i)
        }
        run victim();
        run rank(1);
        run rank(2)
    };
    if
    :: dead = true;
        is_cut = true
    :: true
    fi;
    ended == PROCESSES
}
