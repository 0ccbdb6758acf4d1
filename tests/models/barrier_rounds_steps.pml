/* The rounds of a barrier over several nodes (oriel_internode_barrier in
 * src/internode/origin/origin_sync.c). A message is under way for any time, and messages overtake
 * each other; the agent's count and wake are one step. */
byte sent[2 * NODES]; /* messages under way to each node, of each round */

inline send_round(node, round)
{
    atomic { drained -> sent[2 * (node) + round]++ }
}

inline meet_round(round, step)
{
    send_round((own + step) % NODES, round);
    do
    :: seen = load_shared(ARRIVED + 2 * own + round);
        if
        :: at_least(seen, times) -> break
        :: else
        fi;
        futex_wait(ARRIVED + 2 * own + round, seen)
    od
}

#define DELIVER(to) \
    :: d_step { \
           sent[to] > 0; \
           sent[to]--; \
           memory[ARRIVED + to] = (memory[ARRIVED + to] + 1) % 8; \
           futex_wake_all(ARRIVED + to) \
       }

proctype agents()
{
    byte sleeper;
end:
    do
    DELIVER(0)
    DELIVER(1)
    DELIVER(2)
    DELIVER(3)
#if NODES > 2
    DELIVER(4)
    DELIVER(5)
#endif
#if NODES > 3
    DELIVER(6)
    DELIVER(7)
#endif
    od
}
