/* Waits (src/base/wait.h) where one process, the victim, may be killed at any step, in the place of wait.pml.  A sleep has a
 * limit, but only from the death on and once in a wait, so that a wake that somebody alive has lost is an end state here as well,
 * and so is a wait for the dead.  Who comes back by the limit looks again at the word, then whether the dead one is in the way;
 * if so the wait has failed.  Once is enough: what the victim's words say changes no more.
 * Processes declare failed and looked, a model in_the_way, which is what the victim's words say; besides what wait.pml asks.
 * A model in which the living give up too says itself when a wait is in vain (lost), and from when on a sleep has its limit. */
#define VICTIM 0
#define is_gone (dead && stored[VICTIM].held == 0) /* as the kernel tells it: all that it had stored is in memory */
#ifndef lost
#define lost (is_gone && in_the_way)
#define limit_comes (is_gone && !looked)
#endif
bool dead;

inline forget()
{
    d_step { seen = 0; was = 0; looked = false }
}

inline sleep_with_limit(word)
{
    atomic {
        if
        :: memory[word] == seen -> asleep[me] = word + 1
        :: else
        fi
    };
    if
    :: asleep[me] == 0
    :: limit_comes -> asleep[me] = 0; looked = true /* the limit */
    fi
}

inline await(word, sleepers, reached)
{
    if
    :: failed
    :: else ->
        seen = load(word);
        if
        :: reached
        :: else ->
            fetch_add(sleepers, 1, 8); /* S1 */
            do
            :: seen = load(word);
                if
                :: reached -> break
                :: else
                fi;
                if
                :: lost -> failed = true; break
                :: else
                fi;
                sleep_with_limit(word) /* S2 */
            od;
            fetch_add(sleepers, 7, 8)
        fi
    fi;
    forget()
}

inline wake(word, sleepers)
{
    if
    :: load_shared(sleepers) != 0 -> futex_wake_all(word) /* W2 */
    :: else
    fi
}

#define at_least(value, wanted) (((value) + 8 - (wanted)) % 8 < 4)

/* A courtesy: nobody waits for it longer than the limit. */
inline await_event(event, sleepers, wanted)
{
    seen = load(event);
    if
    :: at_least(seen, wanted)
    :: else ->
        fetch_add(sleepers, 1, 8);
        seen = load(event);
        if
        :: at_least(seen, wanted)
        :: else -> sleep_with_limit(event)
        fi;
        fetch_add(sleepers, 7, 8)
    fi;
    forget()
}

inline signal(event, sleepers)
{
    fetch_add(event, 1, 8); /* W1 */
    wake(event, sleepers)
}
