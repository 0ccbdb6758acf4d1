/* A process waits for a value in its own memory, which any rank may change by an operation or by a
 * store. It spins, yields, then sleeps. Stores wake no process, so it sleeps at most a millisecond
 * at a time. Operations wake it when their origin completes them.
 *
 * The waiter:
 *
 * M1: memory_sleepers of the window += 1 (seq_cst)
 * M2: loads wakes (acquire)
 * M3: sets SLEEPS in its process's life word (seq_cst)
 * M4: compares the memory once more (acquire)
 * M5: futex_wait(wakes, value of M2); then from M2 on
 *
 * An origin:
 *
 * W1: changes the memory
 * W2: a full fence: that of its flush, or a locked instruction of its unlock or of the operation
 *     (base/tls_cache.h, F1)
 * W3: loads the target's life word; a call for several targets first loads memory_sleepers
 * W4: if the word has SLEEPS, clears it (seq_cst); if another process has, it is done
 * W5: wakes += 1 (seq_cst)
 * W6: futex_wake(wakes, all)
 *
 * P1: A waiter does not sleep past a change. In the single order of fences and seq_cst operations,
 *     W3 (the load of memory_sleepers, too) precedes M1 or M3, and then M4 sees W1. Or it follows
 *     them. If it finds SLEEPS set, W4 clears it, or another process's W4 has just done so. If it
 *     finds it cleared, another process's W4 has done so after M3. So a W5 follows M3 in each case,
 *     and with it M2: M5 does not sleep, or the W6 that follows wakes it.
 * P2: The waiter then begins again, and so do its W3 and M3: either the new M4 sees W1, or there is
 *     another W5. M2 precedes M3 for this: between M3 and M2 a W4 and its W5 could be lost.
 * P3: Several threads of a process share the bit and are woken together. Each announces itself
 *     before each sleep.
 * P4: What a rank did before its change is visible after the wait: by M4, or by the fence W2 where
 *     an operation makes the change.
 *
 * A put from another node is served by this process, in the agent's thread or a waiting one, which
 * then takes W2 to W6 (internode/target/am_dispatch.c). RDMA wakes no process.
 *
 * Death. A killed waiter leaves memory_sleepers too high: calls for several targets then look at
 * each. A killed origin may have cleared SLEEPS without W5: the waiter looks again within a
 * millisecond. A waiter checks every 100 ms whether the ranks of the window live. */
#include "sync/memory_wait.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "transport/ucx/net.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- the value --- */

static uint64_t sign_extend(uint64_t bits, unsigned size_bytes)
{
    const unsigned unused = 64 - 8 * size_bytes;
    return (uint64_t)((int64_t)(bits << unused) >> unused);
}

uint64_t oriel_awaited_value_read(const void *at, unsigned size_bytes, bool is_signed)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size_bytes); /* little-endian, as window/shared.h asserts */
    return is_signed ? sign_extend(bits, size_bytes) : bits;
}

static uint64_t memory_load(const struct oriel_awaited_value *awaited)
{
    switch (awaited->size_bytes) {
    case 1: return atomic_load_explicit((const _Atomic uint8_t *)awaited->at, memory_order_acquire);
    case 2:
        return atomic_load_explicit((const _Atomic uint16_t *)awaited->at, memory_order_acquire);
    case 4:
        return atomic_load_explicit((const _Atomic uint32_t *)awaited->at, memory_order_acquire);
    default:
        return atomic_load_explicit((const _Atomic uint64_t *)awaited->at, memory_order_acquire);
    }
}

bool oriel_awaited_value_holds(const void *awaited_value)
{
    const struct oriel_awaited_value *awaited = awaited_value;
    uint64_t left = memory_load(awaited);
    uint64_t right = awaited->value;
    if (awaited->is_signed) { /* the order of unsigned numbers, moved */
        left = sign_extend(left, awaited->size_bytes) ^ UINT64_C(1) << 63;
        right ^= UINT64_C(1) << 63;
    }
    switch (awaited->comparison) {
    case ORIEL_COMPARE_EQ: return left == right;
    case ORIEL_COMPARE_NE: return left != right;
    case ORIEL_COMPARE_LT: return left < right;
    case ORIEL_COMPARE_LE: return left <= right;
    case ORIEL_COMPARE_GT: return left > right;
    case ORIEL_COMPARE_GE: break;
    }
    return left >= right;
}

/* --- waiting --- */

static enum oriel_status wait_asleep(struct oriel_window *window,
                                     const struct oriel_awaited_value *awaited,
                                     const struct oriel_watch *watch)
{
    static const struct timespec limit = {.tv_nsec = ORIEL_SLEEP_NS};
    struct oriel_life *life = oriel_file_life(window->control_bases[window->rank]);
    enum oriel_status status = ORIEL_OK;
    struct oriel_sleep sleep;
    oriel_sleep_begin(&sleep, watch);
    atomic_fetch_add_explicit(&window->common->memory_sleepers, 1, memory_order_seq_cst); /* M1 */
    while (status == ORIEL_OK) {
        const uint32_t wakes = oriel_load_acquire(&life->wakes); /* M2 */
        oriel_delay();
        atomic_fetch_or_explicit(&life->word, ORIEL_LIFE_SLEEPS, memory_order_seq_cst); /* M3 */
        oriel_fence_after_locked();
        oriel_delay();
        if (oriel_awaited_value_holds(awaited)) /* M4 */
            break;
        oriel_delay();
        syscall(SYS_futex, &life->wakes, FUTEX_WAIT, wakes, &limit, NULL, 0); /* M5 */
        status = oriel_sleep_step(&sleep);
    }
    if (status != ORIEL_OK && oriel_awaited_value_holds(awaited))
        status = ORIEL_OK;
    atomic_fetch_sub_explicit(&window->common->memory_sleepers, 1, memory_order_seq_cst);
    oriel_sleep_end(&sleep);
    return status;
}

enum oriel_status oriel_memory_wait(struct oriel_window *window,
                                    const struct oriel_awaited_value *awaited)
{
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    const struct oriel_watch watch = {oriel_liveness_any, &watched, ORIEL_WAITING_MEMORY};
    if (oriel_awaited_value_holds(awaited))
        return ORIEL_OK;
    const uint64_t begin_ns = oriel_wait_time_begin(&watch);
    enum oriel_status status = ORIEL_OK;
    if (window->internode != NULL)
        oriel_net_serve_until(oriel_awaited_value_holds, awaited);
    if (!oriel_wait_spinning(oriel_awaited_value_holds, awaited))
        status = wait_asleep(window, awaited, &watch);
    oriel_wait_time_end(&watch, begin_ns);
    return status;
}

/* --- waking --- */

void oriel_memory_wake(char *base)
{
    struct oriel_life *life = oriel_file_life(base);
    if (oriel_likely(!oriel_load_has(&life->word, ORIEL_LIFE_SLEEPS))) /* W3 */
        return;
    if (!(atomic_fetch_and_explicit(&life->word, ~ORIEL_LIFE_SLEEPS, memory_order_seq_cst) &
          ORIEL_LIFE_SLEEPS)) /* W4 */
        return;
    oriel_delay();
    atomic_fetch_add_explicit(&life->wakes, 1, memory_order_seq_cst);     /* W5 */
    syscall(SYS_futex, &life->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); /* W6 */
}

void oriel_memory_wake_all(const struct oriel_window *window)
{
    for (int32_t i = 0; i < window->n; i++)
        if (window->control_bases[i] != NULL)
            oriel_memory_wake(window->control_bases[i]);
}
