/* The locks of one target (src/sync/lock.c) when a process is killed at any step while it requests,
 * holds or releases any of them. The exclusive lock, shared lock and lock_all of living processes
 * all return, with the lock or with the error that names the dead one, and never together with a
 * conflicting lock. The victim's access word records what it may block: L1 before, L3 after. */
#define PROCESSES 4
#define STORED 3
#define WORDS 14
#define DATA 0 /* the number of writes */
#define SERVING 1
#define ACCESS 2 /* the victim's */
#define QUEUE 3
#define DEPARTED 4
#define SERVING_SLEEPERS 5
#define DEPARTED_SLEEPERS 6
#define GATE_WRITERS 7
#define GATE_READERS 8
#define READERS_WAITING 9
#define READER_SLEEPERS 10
#define WRITER_SLEEPERS 11
#define ADMISSIONS 12
#define ADMISSIONS_SLEEPERS 13

#define FAILED failed
#define in_the_way (memory[ACCESS] & watched)

/* Values of the access word, which a wait checks. */
#define EXCLUSIVE 1
#define SHARED 2
#define ALL 4
#define ANY_LOCK 3

#include "memory.pml"
#include "wait_death.pml"
#include "ticket_steps.pml"
#include "lock_all_gate_steps.pml"

byte ready, ended, written, writers, readers;

inline take_exclusive()
{
    watched = ALL;
    enter_writer(false);
    watched = ANY_LOCK;
    if
    :: failed
    :: else -> lock_writer()
    fi;
    if
    :: failed -> leave_writer()
    :: else
    fi
}

inline write()
{
    atomic { writers++; assert(writers == 1 && readers == 0 && load(DATA) == written) };
    store_relaxed(DATA, written + 1);
    atomic { written++; writers-- }
}

inline read()
{
    atomic { readers++; assert(writers == 0 && load(DATA) == written) };
    readers--
}

inline wake_after_exclusive()
{
    wake(SERVING, SERVING_SLEEPERS);
    wake(GATE_WRITERS, READER_SLEEPERS)
}

/* No other process dies, so its own waits do not fail. */
active proctype victim()
{
    byte seen, was, sleeper, position, admitted, watched;
    bool inside, failed, looked;
    ready;
    {
        if
        :: store_seq_cst(ACCESS, EXCLUSIVE); /* L1 */
            take_exclusive();
            write();
            ticket_leave();
            pull_writer();
            store_release(ACCESS, 0); /* L3, of an exclusive lock */
            wake_after_exclusive()
        :: store_seq_cst(ACCESS, SHARED);
            lock_reader();
            read();
            unlock_reader();
            store_release(ACCESS, 0)
        :: store_seq_cst(ACCESS, ALL);
            enter_reader();
            read();
            leave_reader();
            store_release(ACCESS, 0)
        fi
    } unless { dead };
    ended++
}

active proctype exclusive()
{
    byte seen, was, sleeper, position, admitted, watched;
    bool failed, looked;
    ready;
    take_exclusive();
    if
    :: failed
    :: else ->
        write();
        ticket_leave();
        pull_writer();
        wake_after_exclusive()
    fi;
    ended++
}

active proctype shared()
{
    byte seen, was, sleeper, position, watched = ANY_LOCK;
    bool failed, looked;
    ready;
    lock_reader();
    if
    :: failed
    :: else ->
        read();
        unlock_reader()
    fi;
    ended++
}

active proctype lock_all()
{
    byte seen, was, sleeper, watched = ANY_LOCK;
    bool inside, failed, looked;
    ready;
    enter_reader();
    if
    :: failed
    :: else ->
        read();
        leave_reader()
    fi;
    ended++
}

active proctype death()
{
    d_step {
        memory[QUEUE] = 7 * 8 + 6; /* all counters wrap around */
        memory[SERVING] = 7;
        memory[DEPARTED] = 6;
        ready = 1
    };
    if
    :: dead = true
    :: true
    fi;
    ended == PROCESSES
}
