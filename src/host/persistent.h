/* Persistent requests that Oriel gives to the program: for MPI_Start, MPI_Wait and all other
 * functions of requests, in any mixture with the host's requests. Each is a persistent receive of
 * the host, of no bytes, on the communicator of this process alone.
 *
 * - A prompt request is complete when MPI_Start returns. The host does not learn that it was
 *   started: an inactive request is complete for MPI_Wait, MPI_Test and the functions of all
 *   requests. Functions that pick some of their requests ignore inactive ones. For these the
 *   receive is started and its message sent, so the host finds it complete. (MPICH ignores started
 *   receives from MPI_PROC_NULL, too.)
 * - Another request is a receive with a tag of its own, which is started. The functions that
 *   complete requests poll its condition, and when the condition holds, its message is sent.
 *
 * So statuses and handles are the host's. The owner embeds struct oriel_persistent first in its own
 * record. All calls are thread-safe for different requests, and polling for any. */
#ifndef ORIEL_HOST_PERSISTENT_H
#define ORIEL_HOST_PERSISTENT_H

#include "host/host.h"

struct oriel_persistent;
struct oriel_window;

enum oriel_persistent_state {
    ORIEL_PERSISTENT_ACTIVE,
    ORIEL_PERSISTENT_DONE,
    ORIEL_PERSISTENT_FAILED, /* complete, and the function that completes it reports the failure */
};

/* What the owner does. */
struct oriel_persistent_kind {
    /* MPI_Start, on the request's window. After an error, with the thread's message, the request is
     * inactive. */
    enum oriel_status (*start)(struct oriel_persistent *persistent, struct oriel_window *window);

    /* --- the next three only if it is not prompt; poll and cancel run with a lock held --- */

    /* Neither waits nor starts, frees or completes requests. It is not called again after another
     * state than ACTIVE, until the next start. */
    enum oriel_persistent_state (*poll)(struct oriel_persistent *persistent);
    /* The failure, with the thread's message: after FAILED, unless the request is started or freed
     * first. window: NULL if it was freed. */
    enum oriel_status (*failure)(struct oriel_persistent *persistent, struct oriel_window *window);
    /* MPI_Cancel, or MPI_Request_free of an active request: poll is not called again until the next
     * start. NULL: MPI_Cancel has no effect. */
    void (*cancel)(struct oriel_persistent *persistent);

    /* MPI_Request_free: frees the record. What was started continues without it. */
    void (*release)(struct oriel_persistent *persistent);
};

/* What statistics count: a wait for a notification, or, when it is started, an operation. */
enum oriel_persistent_counted {
    ORIEL_PERSISTENT_NOTHING,
    ORIEL_PERSISTENT_NOTIFICATION,
    ORIEL_PERSISTENT_PUT,
    ORIEL_PERSISTENT_GET,
    ORIEL_PERSISTENT_ACCUMULATE,
    ORIEL_PERSISTENT_GET_ACCUMULATE,
    ORIEL_PERSISTENT_FETCH_AND_OP,
    ORIEL_PERSISTENT_COMPARE_AND_SWAP,
};

enum oriel_persistent_activity {
    ORIEL_PERSISTENT_INACTIVE,
    ORIEL_PERSISTENT_STARTED, /* active, and the host does not know it: a prompt request */
    ORIEL_PERSISTENT_SHOWN,   /* active in the host, too */
};

struct oriel_persistent {
    /* of the owner, before oriel_persistent_create */
    const struct oriel_persistent_kind *kind;
    MPI_Win win;
    uint64_t window_serial;
    enum oriel_persistent_counted counted;
    int target_rank; /* this and the next two: of an operation */
    MPI_Aint target_disp;
    uint64_t len_bytes; /* of the target's items */
    /* of persistent.c */
    MPI_Request handle;
    bool is_prompt;
    _Atomic uint8_t activity; /* enum oriel_persistent_activity */
    int tag;
    _Atomic bool failed;                   /* complete, and the failure is not reported yet */
    struct oriel_persistent *next, **link; /* list of those that are polled; NULL: not in it */
};

/* Creates the request. A window must exist. Returns ORIEL_E_NO_MEM if the host has no request, or
 * no tag is left. */
enum oriel_status oriel_persistent_create(struct oriel_persistent *persistent, bool is_prompt,
                                          MPI_Request *out);

/* Number of existing requests. */
extern _Atomic uint32_t oriel_persistent_count __attribute__((visibility("hidden")));

/* A thread that has a request has seen it counted. */
static inline bool oriel_persistent_exist(void)
{
    return atomic_load_explicit(&oriel_persistent_count, memory_order_relaxed) != 0;
}

/* This thread's last requests, by handle. An entry is valid only while its generation equals the
 * process's, which every free increments. */
struct oriel_persistent_recent {
    uint64_t generation;
    uint64_t key;
    struct oriel_persistent *persistent;
};
enum { ORIEL_PERSISTENT_RECENT = 8 };
extern _Thread_local struct oriel_persistent_recent oriel_persistent_recent[ORIEL_PERSISTENT_RECENT]
    __attribute__((visibility("hidden")));
extern _Atomic uint64_t oriel_persistent_generation __attribute__((visibility("hidden")));

struct oriel_persistent *oriel_persistent_find_slow(struct oriel_persistent_recent *recent,
                                                    uint64_t key);

/* NULL: it is not one of these. */
static inline struct oriel_persistent *oriel_persistent_find(MPI_Request request)
{
    const uint64_t key = (uint64_t)(uintptr_t)request;
    struct oriel_persistent_recent *recent =
        &oriel_persistent_recent[(key ^ key >> 6) % ORIEL_PERSISTENT_RECENT];
    if (!oriel_persistent_exist())
        return NULL;
    if (oriel_likely(recent->key == key) &&
        oriel_likely(recent->generation ==
                     atomic_load_explicit(&oriel_persistent_generation, memory_order_relaxed)))
        return recent->persistent;
    return oriel_persistent_find_slow(recent, key);
}

enum oriel_status oriel_persistent_start_later(struct oriel_persistent *persistent,
                                               struct oriel_window *window);

static inline bool oriel_persistent_is_active(const struct oriel_persistent *persistent)
{
    return atomic_load_explicit(&persistent->activity, memory_order_relaxed) !=
           ORIEL_PERSISTENT_INACTIVE;
}

/* MPI_Start. ORIEL_E_REQUEST if it is active. */
static inline enum oriel_status oriel_persistent_start(struct oriel_persistent *persistent,
                                                       struct oriel_window *window)
{
    if (oriel_unlikely(oriel_persistent_is_active(persistent)))
        return oriel_fail(ORIEL_E_REQUEST, "the request is active");
    if (oriel_unlikely(!persistent->is_prompt))
        return oriel_persistent_start_later(persistent, window);
    const enum oriel_status status = persistent->kind->start(persistent, window);
    if (oriel_likely(status == ORIEL_OK))
        atomic_store_explicit(&persistent->activity, ORIEL_PERSISTENT_STARTED,
                              memory_order_relaxed);
    return status;
}

/* Completes a request that the host need not complete. Returns whether it did. */
static inline bool oriel_persistent_finish(struct oriel_persistent *persistent)
{
    if (atomic_load_explicit(&persistent->activity, memory_order_relaxed) !=
        ORIEL_PERSISTENT_STARTED)
        return false;
    atomic_store_explicit(&persistent->activity, ORIEL_PERSISTENT_INACTIVE, memory_order_relaxed);
    return true;
}

/* Before a function of the host that picks some of the requests: lets it see all that are
 * active. */
void oriel_persistent_show(int count, const MPI_Request requests[]);

/* After a function of the host has completed it, or all of several. Returns whether it has a
 * failure, which was not returned before. */
bool oriel_persistent_end(struct oriel_persistent *persistent);

/* MPI_Cancel and MPI_Request_free; the host's codes. */
int oriel_persistent_cancel(struct oriel_persistent *persistent);
int oriel_persistent_free(struct oriel_persistent *persistent, MPI_Request *request);

/* Completes those whose condition holds. */
void oriel_persistent_progress(void);

#endif
