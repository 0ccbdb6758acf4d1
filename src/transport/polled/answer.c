/* The target's side of requests (polled.h has the argument).  Any thread of the program executes them while it waits; threads of
 * the library do not, since pages move without stopping these.  Others write the slots: whatever decides what memory is
 * touched is read once, and checked. */
#include "transport/polled/polled.h"

#include "base/delay.h"
#include "base/fork.h"
#include "base/wait.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

_Atomic(struct oriel_polled *) oriel_polled_own;

/* --- faults --- */

enum { FAULTS = 2 };
static const int faults[FAULTS] = {SIGSEGV, SIGBUS};
static struct sigaction before[FAULTS];
static _Thread_local sigjmp_buf *rescue; /* where a fault of this thread leads while it executes a request */

static void put_back(void)
{
    atomic_store_explicit(&oriel_polled_own, NULL, memory_order_release);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &before[i], NULL);
}

/* A fault that is not ours occurs again when this returns, and finds the program's handler; a signal that was sent is sent again. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (rescue != NULL && info->si_code > 0)
        siglongjmp(*rescue, 1);
    put_back();
    if (info->si_code <= 0)
        (void)raise(number);
}

static bool catch_faults(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_sigaction = on_fault;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < FAULTS; i++)
        if (sigaction(faults[i], &ours, &before[i]) != 0)
            return false;
    return true;
}

/* --- execution --- */

static char *bytes_at(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

/* A word is read and written whole. */
static void copy(char *to, const char *from, uint32_t len_bytes)
{
    if (len_bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, len_bytes);
}

static int update(struct oriel_polled_slot *slot, uint64_t address, uint32_t len_bytes)
{
    const uint8_t number = *(const volatile uint8_t *)&slot->kind;
    const uint8_t operator = *(const volatile uint8_t *)&slot->operator;
    if (number >= ORIEL_KIND_COUNT || operator >= ORIEL_OPERATOR_COUNT || oriel_kinds[number].plain[operator] == NULL ||
        oriel_kinds[number].padded || len_bytes % oriel_kinds[number].extent_bytes != 0)
        return EINVAL;
    oriel_kinds[number].plain[operator](bytes_at(address), slot->data, slot->returns != 0 ? slot->data : NULL,
                                        len_bytes / oriel_kinds[number].extent_bytes);
    return 0;
}

static int swap(struct oriel_polled_slot *slot, char *there, uint32_t len_bytes)
{
    char found[ORIEL_POLLED_BYTES / 2];
    if (len_bytes > sizeof found)
        return EINVAL;
    copy(found, there, len_bytes);
    if (memcmp(found, slot->data, len_bytes) == 0)
        copy(there, slot->data + len_bytes, len_bytes);
    copy(slot->data, found, len_bytes);
    return 0;
}

static int execute(struct oriel_polled_slot *slot)
{
    const uint32_t len_bytes = *(const volatile uint32_t *)&slot->len_bytes;
    const uint64_t address = *(const volatile uint64_t *)&slot->address;
    if (len_bytes > ORIEL_POLLED_BYTES)
        return EINVAL;
    switch (*(const volatile uint8_t *)&slot->operation) {
    case ORIEL_POLLED_WRITE:
        copy(bytes_at(address), slot->data, len_bytes);
        return 0;
    case ORIEL_POLLED_READ:
        copy(slot->data, bytes_at(address), len_bytes);
        return 0;
    case ORIEL_POLLED_UPDATE:
        return update(slot, address, len_bytes);
    case ORIEL_POLLED_SWAP:
        return swap(slot, bytes_at(address), len_bytes);
    default:
        return EINVAL;
    }
}

static int execute_guarded(struct oriel_polled_slot *slot)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        sigset_t caught;
        rescue = NULL;
        sigemptyset(&caught);
        for (int i = 0; i < FAULTS; i++)
            sigaddset(&caught, faults[i]);
        pthread_sigmask(SIG_UNBLOCK, &caught, NULL);
        return EFAULT;
    }
    rescue = &here;
    atomic_signal_fence(memory_order_seq_cst);
    int error = execute(slot);
    atomic_signal_fence(memory_order_seq_cst);
    rescue = NULL;
    return error;
}

int oriel_polled_answer(struct oriel_polled *area)
{
    int answered = 0;
    if (oriel_wait_untold)
        return 0;
    uint32_t used = oriel_load_relaxed(&area->used);
    for (uint32_t i = 0; i < used && i < ORIEL_POLLED_SLOTS; i++) {
        struct oriel_polled_slot *slot = &area->slots[i];
        uint32_t asked = ORIEL_POLLED_ASKED;
        if (oriel_load_relaxed(&slot->state) != asked)
            continue;
        oriel_delay();
        if (!atomic_compare_exchange_strong_explicit(&slot->state, &asked, ORIEL_POLLED_TAKEN, memory_order_acquire,
                                                     memory_order_relaxed)) /* T1, P1, P2 */
            continue;
        oriel_delay();
        slot->error = execute_guarded(slot); /* T2 */
        oriel_delay();
        oriel_store_release(&slot->state, ORIEL_POLLED_DONE); /* T3 */
        answered++;
    }
    return answered;
}

/* --- beginning and end --- */

static void in_child(void)
{
    atomic_store_explicit(&oriel_polled_own, NULL, memory_order_relaxed);
}

static void turn(void)
{
    (void)oriel_polled_turn();
}

bool oriel_polled_begin(struct oriel_polled *area)
{
    static _Atomic bool watches_forks;
    if (oriel_fork_watch(&watches_forks, NULL, NULL, in_child) != ORIEL_OK || !catch_faults())
        return false;
    atomic_store_explicit(&oriel_polled_own, area, memory_order_release);
    oriel_wait_set_server(turn);
    return true;
}

/* A handler that the program has set since then stays. */
void oriel_polled_end(void)
{
    atomic_store_explicit(&oriel_polled_own, NULL, memory_order_release);
    oriel_wait_set_server(NULL);
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction now;
        if (sigaction(faults[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault)
            sigaction(faults[i], &before[i], NULL);
    }
}
