/* Waiting for a shared 32-bit word: spin, yield, then sleep in a futex. Every 100 ms a sleeping
 * waiter asks its watch whether the awaited processes are still alive.
 *
 * Sleeping and waking, the argument for all words. The waiter:
 *
 * S1: sleepers += 1 (seq_cst)
 * S2: futex_wait(word, value); the kernel loads word after S1
 *
 * The process that changes the word:
 *
 * W1: change word (a seq_cst read-modify-write)
 * W2: load sleepers (seq_cst); if not 0, futex_wake(word)
 *
 * Either W2 sees S1's increment and wakes the waiter, or W2 precedes S1 in the single order of
 * seq_cst operations. Then W1 also precedes S1, so S2 sees the new value and does not sleep. A
 * waiter that is killed leaves sleepers too high: every later change makes a needless wake, with no
 * other effect. */
#ifndef ORIEL_BASE_WAIT_H
#define ORIEL_BASE_WAIT_H

#include "base/atomic.h"
#include "base/status.h"

#include <stdbool.h>

/* SIGNALLED is AT_LEAST for events: there is no competition for a turn, so the wait may sleep
 * early. Waits for locks do not: the releasing process would lose the processor to the sleeper that
 * it wakes, and would return to the queue only after several turns of others. */
enum oriel_wait_for {
    ORIEL_WAIT_EQUAL,
    ORIEL_WAIT_NOT_EQUAL,
    ORIEL_WAIT_AT_LEAST,
    ORIEL_WAIT_SIGNALLED
};

/* The reason of a long wait; observe/state/state.h shows it to other processes. Each comment names
 * the type of the watch's context. Without one it is struct oriel_watched
 * (internode/origin/liveness.h). */
enum oriel_waiting {
    ORIEL_WAITING_NOTHING, /* not shown to others */
    ORIEL_WAITING_FENCE,   /* for all ranks of the window */
    ORIEL_WAITING_FREE,    /* the same, while the window is freed */
    /* struct oriel_shm_rendezvous (create/shm_rendezvous.h); for all ranks of the window under
     * construction */
    ORIEL_WAITING_CREATE,
    /* begins with struct oriel_create_progress (create/create.h); the same, in the host's
     * collectives */
    ORIEL_WAITING_AGREE,
    ORIEL_WAITING_POST,         /* for a rank to post */
    ORIEL_WAITING_COMPLETE,     /* for a rank to complete */
    ORIEL_WAITING_NOTIFICATION, /* for a notification, of any rank */
    ORIEL_WAITING_LOCK,         /* for the lock of a target */
    ORIEL_WAITING_LOCK_ALL,     /* for the exclusive holders to release */
    ORIEL_WAITING_UPDATE,       /* for a rank's update of the same target */
    ORIEL_WAITING_NODE,         /* for an answer from another node, for a rank there */
    /* begins with a pointer to struct oriel_agent (transport/agent/agent.h); for its answer, or for
     * a slot */
    ORIEL_WAITING_AGENT,
    ORIEL_WAITING_MEMORY, /* for a value in its own memory, from any rank of the window */
    ORIEL_WAITING_COUNT
};

/* Called every 100 ms of waiting. Any result but ORIEL_OK ends the wait with that status. */
struct oriel_watch {
    enum oriel_status (*check)(void *context);
    void *context;
    enum oriel_waiting what;
};

/* A word with its sleepers, such as a counter that only grows. Comparison is modulo 2^32, so it may
 * wrap. */
struct oriel_event {
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
};
_Static_assert(sizeof(struct oriel_event) == 8, "events are in shared memory");

static inline bool oriel_wait_reached(uint32_t value, enum oriel_wait_for condition,
                                      uint32_t wanted)
{
    return condition == ORIEL_WAIT_EQUAL       ? value == wanted
           : condition == ORIEL_WAIT_NOT_EQUAL ? value != wanted
                                               : (int32_t)(value - wanted) >= 0;
}

enum oriel_status oriel_wait_slow(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                  enum oriel_wait_for condition, uint32_t wanted,
                                  const struct oriel_watch *watch);

/* Returns when word is equal to, not equal to, or at least (modulo 2^32) wanted. Acquire order. */
static inline enum oriel_status oriel_wait(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                           enum oriel_wait_for condition, uint32_t wanted,
                                           const struct oriel_watch *watch)
{
    return oriel_likely(oriel_wait_reached(oriel_load_acquire(word), condition, wanted))
               ? ORIEL_OK
               : oriel_wait_slow(word, sleepers, condition, wanted, watch);
}

/* For waits that do not use oriel_wait: spins and yields as it does, as long as it does before it
 * sleeps. Returns true once the condition holds. */
bool oriel_wait_spinning(bool (*holds)(const void *context), const void *context);

/* A sleep in steps of at most a millisecond. */
struct oriel_sleep {
    const struct oriel_watch *watch; /* or NULL */
    uint64_t since_ns, asked_ns;
    bool is_published;
};
#define ORIEL_SLEEP_NS 1000000
void oriel_sleep_begin(struct oriel_sleep *sleep, const struct oriel_watch *watch);
/* After each step: lets the host progress, serves others, publishes the wait, and asks the watch
 * when it is time. Any result but ORIEL_OK ends the wait, unless its condition now holds. */
enum oriel_status oriel_sleep_step(struct oriel_sleep *sleep);
void oriel_sleep_end(const struct oriel_sleep *sleep);

/* For a program that polls instead of waiting. Initially 0. */
struct oriel_polling {
    uint32_t misses;
    uint64_t asked_ns; /* of the coarse clock, which costs little */
};
/* After a poll that has found nothing: lets the host progress, and yields the processor after every
 * 64th. Returns true when it is time to check whether the awaited processes live: every 100 ms. */
bool oriel_polling_missed(struct oriel_polling *polling);

/* Whether spinning may help: no other thread has lately needed this processor. */
bool oriel_wait_may_spin(void);

/* W2: wakes the sleepers of word. Called after a seq_cst read-modify-write has changed it. */
void oriel_wake_sleepers(_Atomic uint32_t *word);

static inline void oriel_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    if (oriel_unlikely(atomic_load_explicit(sleepers, memory_order_seq_cst) != 0))
        oriel_wake_sleepers(word);
}

/* Adds 1 (W1, seq_cst) and wakes the sleepers. */
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

/* The hook that a wait calls regularly for MPI's progress rule: outstanding communication of the
 * host continues while a call of Oriel blocks (MPI-4.1, 2.9). It is set while there are windows and
 * NULL otherwise. It runs in the waiting thread. */
void oriel_wait_set_progress(void (*progress)(void));
void oriel_wait_progress(void);

/* True while this thread calls that hook outside a wait. */
extern _Thread_local bool oriel_wait_is_polling;

/* A wait calls this hook at its beginning and repeatedly, in a thread of the program: the process
 * serves others while it waits. The hook returns true if it served a request; the wait then does
 * not sleep for a while. */
void oriel_wait_set_server(bool (*serve)(bool begins));

/* Publishes what this process waits for. lasts: called when a wait has lasted about a millisecond,
 * and every 100 ms after that. It returns true if the wait is published; was is its previous
 * result. over: a published wait has ended. Both run in the waiting thread. Set once, before the
 * first window. */
struct oriel_wait_publisher {
    bool (*lasts)(const struct oriel_watch *watch, uint64_t since_ns, bool was);
    void (*over)(void);
};
void oriel_wait_set_publisher(const struct oriel_wait_publisher *wanted);

/* True in the library's own threads: their waits are not the program's, and they do not call the
 * host. */
extern _Thread_local bool oriel_wait_is_internal;

/* Called repeatedly by a wait that has lasted since since_ns; is_published is initially false. */
void oriel_wait_publish(const struct oriel_watch *watch, uint64_t since_ns, bool *is_published);
void oriel_wait_unpublish(bool is_published);

/* Monotonic time. */
uint64_t oriel_now_ns(void);

/* Notified of each wait whose condition does not hold at once, in the waiting thread: of its
 * beginning, and of its duration. watch is the waiter's own (NULL if there is none): its check and
 * its context identify what it waits for. Never called in a run without an observer. */
struct oriel_wait_observer {
    void (*begin)(const struct oriel_watch *watch);
    void (*end)(const struct oriel_watch *watch, uint64_t waited_ns);
};
void oriel_wait_set_observer(const struct oriel_wait_observer *observer);

/* For waits that do not use oriel_wait. begin returns the start time for end; 0 without an
 * observer. */
uint64_t oriel_wait_time_begin(const struct oriel_watch *watch);
void oriel_wait_time_end(const struct oriel_watch *watch, uint64_t begin_ns);

#endif
