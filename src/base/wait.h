/* Waiting for a shared 32-bit word: spin, yield, then sleep in a futex.  A waiter never waits longer than 100 ms
 * without asking its watch whether the processes it waits for are still alive.  Any layer may use it.
 *
 * Sleeping and waking, argued once for all words.  The waiter does
 *     S1: sleepers += 1 (seq_cst)      S2: futex_wait(word, value) - the kernel loads word after S1
 * and whoever changes the word does
 *     W1: change word (a seq_cst read-modify-write)   W2: load sleepers (seq_cst); if not 0, futex_wake(word)
 * Either W2 sees S1's increment and wakes, or W2 came before S1 in the one order of seq_cst operations, then W1 did
 * too and S2 sees the new value and does not sleep.  A waiter that is killed leaves sleepers too high: every later
 * change pays a needless wake, nothing else.
 */
#ifndef ORIEL_BASE_WAIT_H
#define ORIEL_BASE_WAIT_H

#include "base/atomic.h"
#include "base/status.h"

#include <stdbool.h>

/* SIGNALLED is AT_LEAST for events: nobody competes for a turn, so that a wait may sleep before long.  Waits for locks do not:
 * who wakes a sleeper loses the processor to it, and comes back to the queue when others have had several turns. */
enum oriel_wait_for {
    ORIEL_WAIT_EQUAL,
    ORIEL_WAIT_NOT_EQUAL,
    ORIEL_WAIT_AT_LEAST,
    ORIEL_WAIT_SIGNALLED
};

/* What a process waits for, where that lasts; observe/state/state.h shows it to others.  Behind each: what the watch's context is. */
enum oriel_waiting {
    ORIEL_WAITING_NOTHING, /* others are not told */
    ORIEL_WAITING_FENCE, /* struct oriel_watched (internode/origin/liveness.h), as all without a remark; all ranks of the window */
    ORIEL_WAITING_FREE,  /* the same, of a window that is ending */
    ORIEL_WAITING_CREATE, /* struct oriel_shm_rendezvous (create/shm_rendezvous.h); all ranks of the window that is being made */
    ORIEL_WAITING_AGREE, /* begins with struct oriel_making (create/create.h); the same, by the host's collectives */
    ORIEL_WAITING_POST,     /* for a rank to post */
    ORIEL_WAITING_COMPLETE, /* for a rank to complete */
    ORIEL_WAITING_LOCK,     /* for the lock of a target */
    ORIEL_WAITING_LOCK_ALL, /* for exclusive holders to leave */
    ORIEL_WAITING_UPDATE,   /* for a rank's update of the same target */
    ORIEL_WAITING_MACHINE,  /* for an answer of another machine, which is a rank's */
    ORIEL_WAITING_AGENT, /* begins with a pointer to struct oriel_agent (transport/agent/agent.h); its answer, or a slot */
    ORIEL_WAITINGS
};

/* Asked at least every 100 ms of waiting; anything but ORIEL_OK ends the wait with that status. */
struct oriel_watch {
    enum oriel_status (*check)(void *context);
    void *context;
    enum oriel_waiting what;
};

/* A word with its sleepers, e.g. a counter that only grows (compared modulo 2^32, so that it may wrap). */
struct oriel_event {
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
};
_Static_assert(sizeof(struct oriel_event) == 8, "events lie in shared memory");

static inline bool oriel_wait_reached(uint32_t value, enum oriel_wait_for what, uint32_t wanted)
{
    return what == ORIEL_WAIT_EQUAL       ? value == wanted
           : what == ORIEL_WAIT_NOT_EQUAL ? value != wanted
                                          : (int32_t)(value - wanted) >= 0;
}

enum oriel_status oriel_wait_slow(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                  enum oriel_wait_for what, uint32_t wanted,
                                  const struct oriel_watch *watch);

/* Returns when word is equal to, not equal to, or (modulo 2^32) at least wanted; acquire order. */
static inline enum oriel_status oriel_wait(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                           enum oriel_wait_for what, uint32_t wanted,
                                           const struct oriel_watch *watch)
{
    return oriel_likely(oriel_wait_reached(oriel_load_acquire(word), what, wanted))
               ? ORIEL_OK
               : oriel_wait_slow(word, sleepers, what, wanted, watch);
}

/* W2: wakes whoever sleeps on word; to be called after a seq_cst read-modify-write changed it. */
void oriel_wake_sleepers(_Atomic uint32_t *word);

static inline void oriel_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    if (oriel_unlikely(atomic_load_explicit(sleepers, memory_order_seq_cst) != 0))
        oriel_wake_sleepers(word);
}

/* Adds one with release order and wakes. */
static inline void oriel_event_signal(struct oriel_event *event)
{
    atomic_fetch_add_explicit(&event->value, 1, memory_order_seq_cst);
    oriel_wake(&event->value, &event->sleepers);
}

static inline enum oriel_status oriel_event_wait(struct oriel_event *event, uint32_t at_least,
                                                 const struct oriel_watch *watch)
{
    return oriel_wait(&event->value, &event->sleepers, ORIEL_WAIT_SIGNALLED, at_least, watch);
}

/* What a wait calls now and then so that MPI's progress rule holds: pending communication of the host goes on while a call of
 * Oriel blocks (MPI-4.1, 2.9).  Set when there are windows, NULL else; called in the thread that waits. */
void oriel_wait_set_progress(void (*progress)(void));
void oriel_wait_progress(void);

/* Set while this thread calls that hook and does not wait. */
extern _Thread_local bool oriel_wait_passes;

/* A wait calls this at its beginning and again and again, in a thread of the program: the process
 * serves others while it waits.  It returns whether there was something to serve: the wait then does not
 * sleep for a while. */
void oriel_wait_set_server(bool (*serve)(bool begins));

/* Tells others what this process waits for.  lasts: a wait has lasted about a millisecond, and again every 100 ms; whether it is
 * told, and was is what it answered before.  over: one that is told has ended.  Both are called in the thread that waits.  Set
 * once, before the first window. */
struct oriel_wait_teller {
    bool (*lasts)(const struct oriel_watch *watch, uint64_t since_ns, bool was);
    void (*over)(void);
};
void oriel_wait_set_teller(const struct oriel_wait_teller *wanted);

/* A thread of the library's own, whose waits are not the program's and which does not call the host. */
extern _Thread_local bool oriel_wait_untold;

/* What a wait calls when it has lasted; told is false at first. */
void oriel_wait_lasts(const struct oriel_watch *watch, uint64_t since_ns, bool *told);
void oriel_wait_over(bool told);

/* Monotonic time. */
uint64_t oriel_now_ns(void);

/* Told of each wait that does not find at once what it waits for, in the thread that waits: when it begins, and how long it was.
 * watch as the waiter gave it, which says for whom (its check, and that's context); NULL where there is none.  Never called in
 * a run that nobody observes. */
struct oriel_wait_observer {
    void (*begin)(const struct oriel_watch *watch);
    void (*end)(const struct oriel_watch *watch, uint64_t waited_ns);
};
void oriel_wait_set_observer(const struct oriel_wait_observer *observer);

/* Around waits that are no oriel_wait: the time of the beginning, for the end; 0 where nobody observes. */
uint64_t oriel_wait_time_begin(const struct oriel_watch *watch);
void oriel_wait_time_end(const struct oriel_watch *watch, uint64_t begin_ns);

#endif
