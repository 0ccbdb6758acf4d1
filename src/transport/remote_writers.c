/* Both sides of the protocol in remote_writers.h: the writer's entry, in the origin, and the
 * mover's wait, in the target. Neither acquires a lock. */
#include "transport/remote_writers.h"

#include "base/delay.h"
#include "base/log.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS      100000000
#define LAST_LIMIT_NS UINT64_C(1000000000) /* if pages must move */
#define LOOK_NS       UINT64_C(1000000)    /* interval between checks for dead owners */
#define YIELD_NS      UINT64_C(200000)     /* then both sides sleep */

/* Frees a slot whose owner is dead. If another process has claimed the slot meanwhile, it keeps
 * it. */
static void slot_free_if_dead(struct oriel_remote_writers_slot *slot)
{
    uint64_t word = atomic_load_explicit(&slot->owner, memory_order_relaxed);
    if (word != 0 && !oriel_identity_word_alive(word))
        atomic_compare_exchange_strong_explicit(&slot->owner, &word, 0, memory_order_seq_cst,
                                                memory_order_relaxed);
}

/* --- the writer --- */

/* For the case that all slots have been in use for a while. */
static void slots_free_dead(struct oriel_remote_writers *writers)
{
    for (unsigned i = 0; i < ORIEL_REMOTE_WRITERS_SLOTS; i++)
        slot_free_if_dead(&writers->slots[i]);
}

/* E1, starting with the slot that this thread used last. */
static struct oriel_remote_writers_slot *writer_slot_claim(struct oriel_remote_writers *writers,
                                                           uint64_t word)
{
    static _Thread_local unsigned last; /* slot + 1 */
    uint64_t looked_ns = 0;
    if (oriel_unlikely(last == 0))
        last = 1 + (unsigned)gettid() * 13 % ORIEL_REMOTE_WRITERS_SLOTS;
    for (unsigned tried = 1;; tried++) {
        uint64_t none = 0;
        struct oriel_remote_writers_slot *slot = &writers->slots[last - 1];
        if (oriel_likely(atomic_compare_exchange_strong_explicit(
                &slot->owner, &none, word, memory_order_seq_cst, memory_order_relaxed))) /* E1 */
            return slot;
        last = 1 + last % ORIEL_REMOTE_WRITERS_SLOTS;
        if (tried % ORIEL_REMOTE_WRITERS_SLOTS != 0)
            continue;
        uint64_t now_ns = oriel_now_ns();
        if (looked_ns != 0 && now_ns - looked_ns > LOOK_NS)
            slots_free_dead(writers);
        if (looked_ns == 0 || now_ns - looked_ns > LOOK_NS)
            looked_ns = now_ns;
        sched_yield();
    }
}

/* E3: returns true if the writer may try again, false if the target is dead. It does not use
 *     oriel_wait, which makes the host progress: the target's agent must not call the host, and
 *     moving ends without it. */
static bool moving_wait(struct oriel_remote_writers *writers, uint32_t moving)
{
    static const struct timespec limit = {.tv_nsec = LIMIT_NS};
    struct oriel_event *event = &writers->moving;
    bool lives = true;
    for (uint64_t begin_ns = oriel_now_ns(); oriel_now_ns() - begin_ns < YIELD_NS;) {
        if (oriel_load_acquire(&event->value) != moving)
            return true;
        sched_yield();
    }
    atomic_fetch_add_explicit(&event->sleepers, 1, memory_order_seq_cst); /* S1 */
    /* by the clock: a thread that receives many signals never sleeps to the limit */
    uint64_t asked_ns = oriel_now_ns();
    while (lives && oriel_load_acquire(&event->value) == moving) {
        oriel_delay();
        syscall(SYS_futex, &event->value, FUTEX_WAIT, moving, &limit, NULL, 0); /* S2 */
        if (oriel_now_ns() - asked_ns < LIMIT_NS)
            continue;
        lives = oriel_identity_alive(&writers->process);
        asked_ns = oriel_now_ns();
    }
    atomic_fetch_sub_explicit(&event->sleepers, 1, memory_order_seq_cst);
    return lives;
}

struct oriel_remote_writers_slot *oriel_remote_writers_enter(struct oriel_remote_writers *writers)
{
    uint64_t word = oriel_identity_own_word();
    if (word == 0) {
        oriel_fail(ORIEL_E_OTHER, "cannot read this process's start time (/proc/self/stat)");
        return NULL;
    }
    for (bool again = true;;) {
        struct oriel_remote_writers_slot *slot = writer_slot_claim(writers, word);
        oriel_delay();
        uint32_t moving =
            atomic_load_explicit(&writers->moving.value, memory_order_seq_cst); /* E2, P3 */
        if (oriel_likely(moving % 2 == 0) || !again)
            return slot;
        oriel_remote_writers_leave(slot);
        again = moving_wait(writers, moving); /* E3 */
    }
}

/* --- the mover --- */

static void mover_pause(uint64_t waited_ns)
{
    static const struct timespec nap = {.tv_nsec = 50000};
    if (waited_ns < YIELD_NS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

/* Returns true if the slot was seen free before the deadline. */
static bool slot_wait_free(struct oriel_remote_writers_slot *slot, uint64_t begin_ns,
                           uint64_t limit_ns)
{
    uint64_t looked_ns = begin_ns;
    while (atomic_load_explicit(&slot->owner, memory_order_seq_cst) != 0) { /* M2, P2 */
        uint64_t now_ns = oriel_now_ns();
        if (now_ns - looked_ns > LOOK_NS) {
            slot_free_if_dead(slot);
            looked_ns = now_ns;
        } else if (now_ns - begin_ns > limit_ns) {
            return false;
        } else {
            mover_pause(now_ns - begin_ns);
        }
    }
    return true;
}

enum oriel_status oriel_remote_writers_halt(struct oriel_remote_writers *writers,
                                            const struct oriel_identity *self, bool in_any_case)
{
    if (!oriel_identity_equal(&writers->process, self))
        writers->process = *self;
    atomic_fetch_add_explicit(&writers->moving.value, 1, memory_order_seq_cst); /* M1 */
    uint64_t begin_ns = oriel_now_ns();
    for (unsigned i = 0; i < ORIEL_REMOTE_WRITERS_SLOTS; i++) {
        struct oriel_remote_writers_slot *slot = &writers->slots[i];
        oriel_delay();
        if (slot_wait_free(slot, begin_ns, in_any_case ? LAST_LIMIT_NS : LIMIT_NS))
            continue;
        int pid = oriel_identity_word_pid(atomic_load_explicit(&slot->owner, memory_order_seq_cst));
        if (pid == 0)
            continue; /* freed just now */
        if (in_any_case) {
            oriel_warn("process %d has been copying into window memory for a second; pages become "
                       "private anyway [O17]",
                       pid);
            continue;
        }
        oriel_remote_writers_resume(writers);
        return oriel_fail(ORIEL_E_OTHER, "copies by another process do not end (process %d)", pid);
    }
    return ORIEL_OK;
}

void oriel_remote_writers_resume(struct oriel_remote_writers *writers)
{
    atomic_fetch_add_explicit(&writers->moving.value, 1, memory_order_seq_cst); /* M4, P3 */
    oriel_wake(&writers->moving.value, &writers->moving.sleepers);
}

/* --- the target's own threads --- */

enum { HELPERS = 8 };

static _Atomic uintptr_t helper_tids[HELPERS];      /* 0: free */
static _Atomic uintptr_t helper_addresses[HELPERS]; /* 0: free */

static void word_replace(_Atomic uintptr_t *words, uintptr_t from, uintptr_t to)
{
    bool changed = false;
    for (int i = 0; i < HELPERS && !changed; i++) {
        uintptr_t expected = from;
        changed = atomic_compare_exchange_strong_explicit(
            &words[i], &expected, to, memory_order_acq_rel, memory_order_relaxed);
    }
}

static bool has_word_between(_Atomic uintptr_t *words, uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < HELPERS; i++) {
        uintptr_t word = atomic_load_explicit(&words[i], memory_order_acquire);
        if (word != 0 && word >= start && word < end)
            return true;
    }
    return false;
}

void oriel_remote_writers_add_helper(int32_t tid)
{
    word_replace(helper_tids, 0, (uintptr_t)tid);
}

void oriel_remote_writers_remove_helper(int32_t tid)
{
    word_replace(helper_tids, (uintptr_t)tid, 0);
}

bool oriel_remote_writers_is_helper(int32_t tid)
{
    return has_word_between(helper_tids, (uintptr_t)tid, (uintptr_t)tid + 1);
}

void oriel_remote_writers_add_address(const void *addr)
{
    word_replace(helper_addresses, 0, (uintptr_t)addr);
}

void oriel_remote_writers_remove_address(const void *addr)
{
    word_replace(helper_addresses, (uintptr_t)addr, 0);
}

bool oriel_remote_writers_has_address(uintptr_t start, uintptr_t end)
{
    return has_word_between(helper_addresses, start, end);
}
