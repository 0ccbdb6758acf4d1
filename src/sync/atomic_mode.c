/* The slots of threads, and the wait for all of them (atomic_mode.h has the argument). A thread has
 * a slot from its first single update on. The process's bitmap of free slots is not part of the
 * protocol. */
#include "sync/atomic_mode.h"

#include "base/wait.h"
#include "sync/accumulate_mutex.h"

#include <pthread.h>
#include <sched.h>

enum { SPINS = 200, ASK_NS = 1000000 };

static struct {
    pthread_once_t once;
    pthread_key_t key; /* frees a thread's slot when the thread ends */
    bool has_key;
    _Atomic uint64_t taken; /* bit i: slot i */
} slots = {.once = PTHREAD_ONCE_INIT};
_Static_assert(ORIEL_ATOMIC_MODE_SLOTS == 64, "taken has one bit for each slot");

static void slot_free(void *slot)
{
    struct oriel_atomic_mode *first = oriel_file_atomic_modes(oriel_file_base());
    oriel_tls_cache.single = NULL;
    oriel_tls_cache.operator_key = ORIEL_TLS_CACHE_NO_KEY;
    atomic_fetch_and_explicit(&slots.taken,
                              ~(UINT64_C(1) << ((struct oriel_atomic_mode *)slot - first)),
                              memory_order_release);
}

static void slot_key_create(void)
{
    slots.has_key = pthread_key_create(&slots.key, slot_free) == 0;
}

/* Returns ORIEL_ATOMIC_MODE_SLOTS if no slot is free. */
static uint32_t slot_claim(void)
{
    uint64_t taken = atomic_load_explicit(&slots.taken, memory_order_relaxed);
    while (~taken != 0) {
        uint32_t free_one = (uint32_t)__builtin_ctzll(~taken);
        if (atomic_compare_exchange_weak_explicit(&slots.taken, &taken,
                                                  taken | UINT64_C(1) << free_one,
                                                  memory_order_acquire, memory_order_relaxed))
            return free_one;
    }
    return ORIEL_ATOMIC_MODE_SLOTS;
}

void oriel_atomic_mode_claim_slow(void)
{
    struct oriel_file_header *header = (struct oriel_file_header *)oriel_file_base();
    pthread_once(&slots.once, slot_key_create);
    uint32_t number = slots.has_key ? slot_claim() : ORIEL_ATOMIC_MODE_SLOTS;
    if (number == ORIEL_ATOMIC_MODE_SLOTS)
        return;
    struct oriel_atomic_mode *slot = oriel_file_atomic_modes(oriel_file_base()) + number;
    if (pthread_setspecific(slots.key, slot) != 0) {
        slot_free(slot);
        return;
    }
    /* Before the slot's first S1, in the one order of seq_cst operations, whichever thread's claim
     * has counted the slot. */
    uint32_t known = atomic_load_explicit(&header->singles, memory_order_seq_cst);
    while (known <= number &&
           !atomic_compare_exchange_weak_explicit(&header->singles, &known, number + 1,
                                                  memory_order_seq_cst, memory_order_seq_cst))
        continue;
    oriel_tls_cache.single = slot;
}

_Atomic uint32_t *oriel_atomic_mode_enter(const struct oriel_window *window, int32_t target)
{
    oriel_atomic_mode_claim();
    struct oriel_atomic_mode *slot = oriel_tls_cache.single;
    if (slot == NULL)
        return NULL;
    if (oriel_atomic_mode_announce(window, slot))
        return &slot->inside;
    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */
    oriel_delay();
    if (atomic_load_explicit(&oriel_window_control(window, target)->bulk, memory_order_seq_cst) ==
        0) /* S2 */
        return &slot->inside;
    oriel_store_release(&slot->inside, 0);
    return NULL;
}

void oriel_atomic_mode_count(const struct oriel_window *window, int32_t target)
{
    struct oriel_control *control = oriel_window_control(window, target);
    if (oriel_load_relaxed(&control->bulk) != 0 &&
        ++control->single_updates_in_a_row >= control->single_updates_to_leave_bulk) {
        oriel_store_release(&control->bulk, 0); /* C2 */
        oriel_delay();
        atomic_fetch_sub_explicit(&window->common->bulk_targets, 1, memory_order_release);
    }
}

/* Waits until the thread is outside, or its process dead. */
static void await_slot(const struct oriel_atomic_mode *slot, const struct oriel_peer *peer)
{
    uint64_t asked_ns = 0;
    for (int i = 0; atomic_load_explicit(&slot->inside, memory_order_seq_cst) != 0; i++) { /* B2 */
        if (i < SPINS) {
            oriel_cpu_relax();
            continue;
        }
        sched_yield();
        uint64_t now_ns = oriel_now_ns();
        if (asked_ns == 0)
            asked_ns = now_ns;
        if (now_ns - asked_ns < ASK_NS)
            continue;
        if (!oriel_peer_alive(peer))
            return;
        asked_ns = now_ns;
    }
}

void oriel_bulk_begin(const struct oriel_window *window, int32_t target)
{
    struct oriel_control *control = oriel_window_control(window, target);
    control->single_updates_in_a_row = 0;
    if (oriel_load_relaxed(&control->bulk) != 0)
        return;
    if (control->single_updates_to_leave_bulk == 0)
        control->single_updates_to_leave_bulk = ORIEL_SINGLES_IN_A_ROW;
    else if (control->single_updates_to_leave_bulk < ORIEL_SINGLES_MOST)
        control->single_updates_to_leave_bulk *= 2;
    atomic_fetch_add_explicit(&window->common->bulk_targets, 1, memory_order_seq_cst); /* B1 */
    oriel_delay();
    atomic_store_explicit(&control->bulk, 1, memory_order_seq_cst);
    oriel_delay();
    for (int32_t rank = 0; rank < window->n; rank++) {
        const struct oriel_peer *peer = window->group->peers[rank];
        if (peer == NULL)
            /* A rank on another node has no slots here: the target's agent, a thread of a process
             * of this node, executes its updates. */
            continue;
        const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
        /* a thread that claims a slot later finds bulk at 1 */
        uint32_t count = atomic_load_explicit(&header->singles, memory_order_seq_cst);
        for (uint32_t i = 0; i < count; i++)
            await_slot(&oriel_file_atomic_modes(peer->base)[i], peer);
    }
}

enum oriel_status oriel_atomic_mode_widen(struct oriel_window *window, int32_t target)
{
    if (oriel_likely(oriel_atomic_mode_is_wide(window, target)))
        return ORIEL_OK;
    enum oriel_status status = oriel_accumulate_mutex_lock(window, target);
    if (status != ORIEL_OK)
        return status;
    oriel_delay();
    oriel_store_release(&oriel_window_control(window, target)->wide, 1); /* W1 */
    oriel_accumulate_mutex_unlock(window, target);
    return ORIEL_OK;
}
