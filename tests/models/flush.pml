/* Completion of operations on another node (src/internode/origin/origin_sync.c). Two threads of an
 * origin each send messages to the target or put by a device, and flush; then the first unlocks.
 * Messages are served in order; puts by a device arrive at any time, in any order. */
#define THREADS 2
#ifndef TIMES
#define TIMES 2
#endif
#define OPERATIONS (THREADS * TIMES)
#define FLUSH 8 /* above all operations */
#define UNLOCK 9

#define bit(number) (1 << (number))

chan messages = [OPERATIONS + 2 * THREADS + 2] of { byte };
byte served;         /* messages of operations, one bit each */
byte put, arrived;   /* the same of devices */
byte answers;        /* to flushes and the unlock */
byte asked;          /* the number of requests sent */
bool message_flag, put_flag; /* of the target */
bool is_flushing;    /* a mutex */
byte ended;          /* threads that have finished */
bool is_over;

#define is_done(number) ((served | arrived) & bit(number))

/* By a device, or by a message. */
inline operate(number)
{
    if
    :: put = put | bit(number);
        put_flag = true /* F1 */
    :: messages ! number;
        message_flag = true /* F1 */
    fi
}

/* Asks whether the puts have arrived; known: the puts that the answer will cover. */
inline ask_arrivals()
{
    known = 0;
    if
    :: atomic { put_flag -> put_flag = false }; /* F2 */
        known = put /* F3 */
    :: else
    fi
}

inline await_arrivals()
{
    (arrived & known) == known
}

inline ask(message)
{
    atomic { messages ! message; asked++; wanted = asked } /* F3 */
}

inline flush()
{
    atomic { !is_flushing; is_flushing = true };
    ask_arrivals();
    wanted = 0;
    if
    :: atomic { message_flag -> message_flag = false }; /* F2 */
        ask(FLUSH)
    :: else
    fi;
    await_arrivals();
    answers >= wanted;
    is_flushing = false
}

inline unlock()
{
    atomic { !is_flushing; is_flushing = true };
    ask_arrivals();
    await_arrivals(); /* D1 */
    message_flag = false; /* F2 */
    ask(UNLOCK);
    answers >= wanted;
    is_flushing = false
}

active [THREADS] proctype thread()
{
    byte times, known, wanted;
    do
    :: times < TIMES ->
        operate(_pid * TIMES + times);
        times++;
        if
        :: flush();
            assert(is_done(_pid * TIMES) && (times < 2 || is_done(_pid * TIMES + 1)))
        :: _pid == 0 || times < TIMES /* the first thread's last operations are for the unlock */
        fi
    :: else -> break
    od;
    ended++;
    if
    :: _pid == 0 ->
        ended == THREADS;
        unlock();
        is_over = true
    :: else
    fi
}

/* The origin's messages, as its agent serves them. The owner of the lock after the unlock sees all
 * puts. */
active proctype target()
{
    byte message;
    do
    :: messages ? message ->
        if
        :: message == FLUSH -> answers++
        :: message == UNLOCK ->
            assert((served | arrived) == bit(OPERATIONS) - 1);
            answers++
        :: else -> served = served | bit(message)
        fi
    :: is_over && empty(messages) -> break
    od
}

active proctype device()
{
    byte number;
    do
    :: put != arrived ->
        select (number : 0 .. OPERATIONS - 1);
        if
        :: put & ~arrived & bit(number) -> arrived = arrived | bit(number)
        :: else
        fi
    :: is_over && put == arrived -> break
    od
}
