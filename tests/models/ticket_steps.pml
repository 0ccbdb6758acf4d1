/* The steps of a target's lock (src/sync/ticket.c, ticket.h), with halves of three bits. Processes
 * declare position. */
#define TICKET_QUEUED 64
#define ticket_of(position) ((position) >> 3)
#define readers_of(position) ((position) & 7)

inline ticket_leave()
{
    was = load(SERVING);
    store_release(SERVING, (was + 1) % 8); /* X3 */
    was = 0
}

inline pass_on()
{
    ticket_leave();
    fence_full();
    wake(SERVING, SERVING_SLEEPERS)
}

inline lock_writer()
{
    fetch_add_relaxed(QUEUE, 8, TICKET_QUEUED); /* T1 */
    position = was;
    await(SERVING, SERVING_SLEEPERS, seen == ticket_of(position)); /* X1 */
    await(DEPARTED, DEPARTED_SLEEPERS, seen == readers_of(position)); /* X2 */
    position = 0
}

inline lock_reader()
{
    fetch_add_relaxed(QUEUE, 1, TICKET_QUEUED); /* R1 */
    position = was;
    await(SERVING, SERVING_SLEEPERS, at_least(seen, ticket_of(position))); /* R2 */
    if
    :: readers_of(position) == 7 && !FAILED -> pass_on() /* R4 */
    :: else
    fi;
    position = 0
}

inline unlock_reader()
{
    fetch_add(DEPARTED, 1, 8); /* R3 */
    was = 0;
    wake(DEPARTED, DEPARTED_SLEEPERS)
}
