/* A lock of a far target that its epoch does not wait for: lock, put and unlock leave together, and are one way there and back.
 *
 *   K1  The lock is asked for before all else of its epoch, so the target is asked first (net.h, N1).
 *   K2  The target does operations, flushes and the unlock of an origin whose lock is not held yet behind it, in their order
 *       (target_sync.c, deferred_queue.c): when the lock is held, before anything else of this origin.
 *   K3  A lock that the target refuses shuts its epoch out there: nothing of it is done, up to the unlock, whose answer, like those
 *       to all that is asked, tells that it was not.  The origin keeps what the lock's answer says for whatever completes
 *       operations next, and asks no device for anything: those know of no lock.
 *   K4  The origin asks for no other lock, and takes none, also of windows that are the host's, before it has the answer: locks
 *       are taken in the order of the calls, as if each were awaited.
 *
 * So there is one such lock in a process at most, and none where several threads may be in calls at once, which would wait for
 * each other's.  What the target keeps is bounded by ORIEL_INTERNODE_RIDE_BYTES, as the origin counts (K5): what goes beyond waits for the
 * lock first.  Devices put and get at once, so they wait for it, too.  lock.c, origin_sync.c and api/ call. */
#include "internode/origin/origin_sync.h"

#include "internode/origin/origin_peers.h"
#include "internode/origin/target_flags.h"

#include <stdlib.h>

uint32_t oriel_internode_rides;

static struct {
    struct oriel_window *window;
    struct oriel_internode_question *question;
    size_t left_bytes;
    int32_t target;
} ride;

void oriel_internode_ride_begin(struct oriel_window *window, int32_t target,
                                struct oriel_internode_question *question)
{
    ride.window = window;
    ride.question = question;
    ride.left_bytes = ORIEL_INTERNODE_RIDE_BYTES;
    ride.target = target;
    oriel_internode_rides = 1;
}

void oriel_internode_settle(void)
{
    if (!oriel_internode_rides)
        return;
    oriel_internode_rides = 0;
    enum oriel_status status =
        oriel_internode_question_end(ride.window, ride.target, &ride.question);
    if (status != ORIEL_OK)
        oriel_internode_note_failure(ride.window->far, status, 0, oriel_fail_message(),
                                     true); /* K3 */
    if (status != ORIEL_OK)
        oriel_internode_set_mark(ride.window->far, ride.target,
                                 ORIEL_INTERNODE_REFUSED); /* so are devices */
    free(ride.question);
}

void oriel_internode_ride_leave(const struct oriel_internode *far)
{
    if (oriel_internode_rides && ride.window->far == far) {
        oriel_internode_question_leave(ride.question);
        oriel_internode_rides = 0;
    }
}

static bool is_at(const struct oriel_window *window, int32_t target)
{
    return oriel_unlikely(oriel_internode_rides) && ride.window == window &&
           (target < 0 || target == ride.target);
}

void oriel_internode_settle_at(const struct oriel_window *window, int32_t target)
{
    if (is_at(window, target))
        oriel_internode_settle();
}

void oriel_internode_ride(const struct oriel_window *window, int32_t target,
                          const struct iovec *data, unsigned pieces)
{
    size_t len_bytes = sizeof(struct oriel_internode_head);
    if (!is_at(window, target))
        return;
    for (unsigned i = 0; i < pieces; i++)
        len_bytes += data[i].iov_len;
    if (len_bytes > ride.left_bytes)
        oriel_internode_settle(); /* K5 */
    else
        ride.left_bytes -= len_bytes;
}
