/* The steps of a window's gate (src/sync/lock_all_gate.c, lock_all_gate.h). Each change of the
 * halves of its one word is one step. */
inline enter_writer(nested)
{
    if
    :: nested
    :: else ->
        admitted = load_shared(ADMISSIONS);
        if
        :: load_shared(READERS_WAITING) > 0 -> await_event(ADMISSIONS, ADMISSIONS_SLEEPERS, admitted + 1)
        :: else
        fi;
        admitted = 0
    fi;
    fetch_add(GATE_WRITERS, 1, 8); /* G3 */
    was = 0;
    await(GATE_READERS, WRITER_SLEEPERS, seen == 0) /* G4 */
}

inline pull_writer()
{
    fetch_add(GATE_WRITERS, 7, 8); /* G5 */
    was = 0
}

inline leave_writer()
{
    pull_writer();
    wake(GATE_WRITERS, READER_SLEEPERS)
}

inline try_enter_reader()
{
    atomic {
        if
        :: drained && memory[GATE_WRITERS] == 0 -> /* G1 */
            memory[GATE_READERS] = memory[GATE_READERS] + 1;
            inside = true
        :: memory[GATE_WRITERS] != 0
        fi
    }
}

inline try_join_readers()
{
    atomic {
        if
        :: drained && memory[GATE_READERS] > 0 -> /* G6 */
            memory[GATE_READERS] = memory[GATE_READERS] + 1;
            inside = true
        :: memory[GATE_READERS] == 0
        fi
    }
}

/* Patience may end at any time; a lone reader finds no reader to join. */
inline enter_reader()
{
    try_enter_reader();
    if
    :: inside
    :: else ->
        fetch_add(READERS_WAITING, 1, 8);
        do
        :: inside || FAILED -> break
#ifndef LONE_READER
        :: !inside && !FAILED && memory[GATE_READERS] > 0 -> try_join_readers()
#endif
        :: !inside && !FAILED ->
            await(GATE_WRITERS, READER_SLEEPERS, seen == 0);
            if
            :: FAILED
            :: else -> try_enter_reader()
            fi
        od;
        fetch_add(READERS_WAITING, 7, 8);
        signal(ADMISSIONS, ADMISSIONS_SLEEPERS);
        was = 0
    fi;
    inside = false
}

inline leave_reader()
{
    fetch_add(GATE_READERS, 7, 8); /* G2 */
    was = 0;
    wake(GATE_READERS, WRITER_SLEEPERS)
}
