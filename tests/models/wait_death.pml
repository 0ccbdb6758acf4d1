/* Waits (src/base/wait.h) when one process, the victim, may be killed at any step; replaces
 * wait.pml. A sleep has a limit, but only after the death and once per wait. So a wake that a
 * living process has lost is still an end state, and so is a wait for the dead. A wait that ends by
 * the limit checks the word again, then whether the dead process blocks it; if so the wait has
 * failed. Once is enough: the victim's words no longer change. Processes declare failed and looked,
 * and a model declares in_the_way, the contents of the victim's words, in addition to wait.pml's.
 * If living processes give up too, the model itself defines when a wait is lost (lost), and from
 * when on a sleep has its limit. */
#define VICTIM 0
#define is_gone (dead && stored[VICTIM].queued == 0) /* all its stores are in memory */
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

/* A courtesy: no wait for it lasts longer than the limit. */
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
