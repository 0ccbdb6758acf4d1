/* Sleeping and waking (src/base/wait.h), for all models. The checks before S1 are one here: none of
 * them changes anything. reached: an expression of seen. All processes declare seen, was, sleeper;
 * variables no longer needed are reset, so they add no states. */
inline forget()
{
    d_step { seen = 0; was = 0 }
}

inline await(word, sleepers, reached)
{
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
            futex_wait(word, seen) /* S2 */
        od;
        fetch_add(sleepers, 7, 8)
    fi;
    forget()
}

/* The word has been changed before: W1. */
inline wake(word, sleepers)
{
    if
    :: load_shared(sleepers) != 0 -> futex_wake_all(word) /* W2 */
    :: else
    fi
}

/* A counter that only grows, modulo 8. */
#define at_least(value, wanted) (((value) + 8 - (wanted)) % 8 < 4)
#define await_event(event, sleepers, wanted) await(event, sleepers, at_least(seen, wanted))

inline signal(event, sleepers)
{
    fetch_add(event, 1, 8); /* W1 */
    wake(event, sleepers)
}
