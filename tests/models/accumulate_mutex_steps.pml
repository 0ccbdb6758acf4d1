/* The steps of the accumulate mutex (src/sync/accumulate_mutex.c). Spins are checks that change
 * nothing. Models define sleep; processes declare seen, was and inside. */
inline try_lock(as)
{
    atomic {
        if
        :: memory[WORD] == 0 -> memory[WORD] = as; inside = true /* M1 */
        :: else
        fi
    }
}

inline lock()
{
    try_lock(me + 1);
    do
    :: inside || FAILED -> break
    :: else ->
        try_lock(ASLEEP + me + 1);
        if
        :: inside
        :: else ->
            seen = load_shared(WORD);
            atomic { /* M2 */
                if
                :: seen == 0 || seen >= ASLEEP
                :: else ->
                    if
                    :: memory[WORD] == seen -> seen = seen + ASLEEP; memory[WORD] = seen
                    :: else -> seen = 0
                    fi
                fi
            };
            if
            :: seen != 0 -> sleep()
            :: else
            fi;
            seen = 0
        fi
    od
}

inline unlock()
{
    atomic { drained; was = memory[WORD]; memory[WORD] = 0 }; /* M3 */
    if
    :: was >= ASLEEP -> futex_wake_one(WORD)
    :: else
    fi;
    was = 0
}
