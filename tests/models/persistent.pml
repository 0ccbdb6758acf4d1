/* Persistent requests (src/host/persistent.c): a thread of the program starts one again and again,
 * and waits for it, cancels it or frees it. Two others complete what is ready, as any function that
 * completes requests does. The receive and its message are the host's: a message to oneself may
 * wait until its receive is posted, so it must be. */
#define STARTS 3

bool locked, is_polled, is_posted, is_complete, has_ended;
byte ready; /* how many starts may complete */

#define lock() atomic { !locked -> locked = true }
#define unlock() locked = false

inline message_send()
{
    atomic { assert(is_posted); is_posted = false; is_complete = true }
}

/* No message was sent, so the host cancels the receive. */
inline host_cancel()
{
    atomic { assert(is_posted); is_posted = false; is_complete = true }
}

inline complete()
{
    is_polled = false;
    message_send() /* P2 */
}

/* The thread that has the mutex does it. */
inline progress()
{
    if
    :: lock() ->
        if
        :: is_polled && ready > 0 ->
            ready--;
            complete()
        :: else
        fi;
        unlock()
    :: locked
    fi
}

inline start()
{
    is_complete = false;
    is_posted = true; /* P1 */
    lock();
    is_polled = true;
    unlock()
}

inline withdraw()
{
    lock(); /* P3 */
    was_polled = is_polled;
    is_polled = false;
    unlock();
    if
    :: was_polled -> host_cancel()
    :: else
    fi
}

inline wait()
{
    do
    :: is_complete -> break
    :: is_polled && ready > 0 -> progress()
    od
}

active proctype program()
{
    byte starts = STARTS;
    bool was_polled;
    do
    :: starts > 0 ->
        starts--;
        start();
        if
        :: wait()
        :: withdraw(); /* MPI_Cancel, or MPI_Request_free */
            assert(is_complete)
        fi;
        assert(!is_posted && !is_polled)
    :: else -> break
    od;
    has_ended = true
}

active [2] proctype completer()
{
    do
    :: is_polled && ready > 0 -> progress()
    :: has_ended -> break
    od
}

active proctype condition()
{
    byte left = STARTS;
    do
    :: left > 0 -> ready++; left--
    :: else -> break
    od
}
