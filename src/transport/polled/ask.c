/* The origin's side of requests (polled.h has the argument).  A target that does not poll costs PATIENCE_NS once, then every
 * second operation, every fourth, and so on up to every MOST_SKIPPED-th.  Any thread may ask. */
#include "transport/polled/polled.h"

#include "base/delay.h"
#include "base/wait.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum {
    PATIENCE_NS = ORIEL_DELAYS ? 200000 : 2000, /* an answer takes longer where both sides lose time at random */
    LOOKS = 32,            /* from one look at the clock to the next */
    SPIN_NS = 100000,      /* while a thread executes; then the origin yields */
    ASK_NS = 100000000,    /* from one look whether the target lives to the next */
    MOST_SKIPPED = ORIEL_DELAYS ? 4 : 256,
    REMEMBERED = 8,
};

/* How this thread fared with a target. */
static _Thread_local struct habit {
    const struct oriel_polled *area;
    uint32_t skips;      /* operations that do not ask */
    uint32_t skips_next; /* after the next request that is withdrawn */
    uint32_t last;       /* the slot that it had */
} habits[REMEMBERED];

static struct habit *find_habit(const struct oriel_polled *area, int32_t pid)
{
    struct habit *habit = &habits[(uint32_t)pid % REMEMBERED];
    if (oriel_unlikely(habit->area != area))
        *habit = (struct habit){.area = area, .skips_next = 1};
    return habit;
}

/* --- slots --- */

static bool take(struct oriel_polled *area, uint32_t number, uint64_t from)
{
    return atomic_load_explicit(&area->owners[number].word, memory_order_relaxed) == from &&
           atomic_compare_exchange_strong_explicit(&area->owners[number].word, &from, oriel_identity_own_word(),
                                                   memory_order_acquire, memory_order_relaxed); /* R1 */
}

static void release(struct oriel_polled *area, uint32_t number)
{
    atomic_store_explicit(&area->owners[number].word, 0, memory_order_release); /* R5, P3 */
}

/* P1 */
static bool withdraw(struct oriel_polled_slot *slot)
{
    uint32_t asked = ORIEL_POLLED_ASKED;
    return atomic_compare_exchange_strong_explicit(&slot->state, &asked, ORIEL_POLLED_IDLE, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Whether what the slot's owner before this one left is over; it may have died. */
static bool clear(struct oriel_polled_slot *slot)
{
    uint32_t state = oriel_load_acquire(&slot->state);
    return state == ORIEL_POLLED_IDLE || state == ORIEL_POLLED_DONE || (state == ORIEL_POLLED_ASKED && withdraw(slot));
}

/* A slot of a dead process; ORIEL_POLLED_SLOTS: there is none. */
static uint32_t take_over(struct oriel_polled *area)
{
    for (uint32_t i = 0; i < ORIEL_POLLED_SLOTS; i++) {
        uint64_t owner = atomic_load_explicit(&area->owners[i].word, memory_order_relaxed);
        if (owner != 0 && owner != oriel_identity_own_word() && !oriel_identity_word_lives(owner) && take(area, i, owner))
            return i;
    }
    return ORIEL_POLLED_SLOTS;
}

static uint32_t take_free(struct oriel_polled *area, uint32_t last)
{
    if (oriel_likely(take(area, last, 0)))
        return last;
    for (uint32_t i = 0; i < ORIEL_POLLED_SLOTS; i++)
        if (take(area, i, 0))
            return i;
    return ORIEL_POLLED_SLOTS;
}

/* ORIEL_POLLED_SLOTS: none is free. */
static uint32_t claim(struct oriel_polled *area, struct habit *habit)
{
    if (oriel_unlikely(oriel_identity_own_word() == 0))
        return ORIEL_POLLED_SLOTS;
    uint32_t number = take_free(area, habit->last);
    if (oriel_unlikely(number == ORIEL_POLLED_SLOTS))
        number = take_over(area);
    if (oriel_unlikely(number == ORIEL_POLLED_SLOTS))
        return number;
    if (oriel_unlikely(!clear(&area->slots[number]))) {
        release(area, number);
        return ORIEL_POLLED_SLOTS;
    }
    habit->last = number;
    uint32_t used = oriel_load_relaxed(&area->used);
    while (used <= number && !atomic_compare_exchange_weak_explicit(&area->used, &used, number + 1, memory_order_release,
                                                                    memory_order_relaxed))
        continue;
    return number;
}

/* --- one request --- */

static void copy(void *to, const void *from, uint64_t len_bytes)
{
    if (oriel_likely(len_bytes == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, len_bytes);
}

static void fill(struct oriel_polled_slot *slot, uint64_t address, const struct oriel_polled_wanted *wanted)
{
    slot->operation = (uint8_t)wanted->operation;
    slot->kind = (uint8_t)wanted->kind;
    slot->operator = (uint8_t)wanted->operator;
    slot->returns = wanted->out != NULL;
    slot->len_bytes = (uint32_t)wanted->len_bytes;
    slot->address = address;
    if (wanted->in != NULL)
        copy(slot->data, wanted->in, wanted->len_bytes);
    if (wanted->operation == ORIEL_POLLED_SWAP)
        copy(slot->data + wanted->len_bytes, wanted->desired, wanted->len_bytes); /* R2 */
}

enum answer { ANSWERED, WITHDRAWN, DIED };

/* R4.  The origin serves others meanwhile: two that ask each other would else both wait in vain. */
static enum answer await_answer(const struct oriel_polled *area, struct oriel_polled_slot *slot)
{
    uint64_t begin_ns = 0, asked_ns = 0;
    for (uint32_t looks = 1;; looks++) {
        uint32_t state = oriel_load_acquire(&slot->state);
        if (state == ORIEL_POLLED_DONE)
            return ANSWERED;
        if (looks % LOOKS != 0)
            continue;
        (void)oriel_polled_turn();
        uint64_t now_ns = oriel_now_ns();
        if (begin_ns == 0)
            begin_ns = asked_ns = now_ns;
        if (state == ORIEL_POLLED_ASKED && now_ns - begin_ns >= PATIENCE_NS && withdraw(slot))
            return WITHDRAWN;
        if (now_ns - begin_ns >= SPIN_NS)
            sched_yield();
        if (now_ns - asked_ns < ASK_NS)
            continue;
        if (!oriel_identity_alive(&area->process))
            return DIED;
        asked_ns = oriel_now_ns();
    }
}

static enum oriel_status failed(const struct oriel_remote *there, int error)
{
    if (error == EFAULT)
        return oriel_fail(ORIEL_E_RANGE, "memory near address %#lx of process %d is not mapped",
                          (unsigned long)there->address, (int)there->pid);
    return oriel_fail(ORIEL_E_OTHER, "process %d refuses a request: %s", (int)there->pid, strerror(error));
}

static enum oriel_status take_answer(const struct oriel_remote *there, struct oriel_polled_slot *slot,
                                     const struct oriel_polled_wanted *wanted)
{
    if (oriel_unlikely(slot->error != 0))
        return failed(there, slot->error);
    if (wanted->out != NULL)
        copy(wanted->out, slot->data, wanted->len_bytes);
    return ORIEL_OK;
}

static bool fits(const struct oriel_polled_wanted *wanted)
{
    uint64_t most_bytes = wanted->operation == ORIEL_POLLED_SWAP ? ORIEL_POLLED_BYTES / 2 : ORIEL_POLLED_BYTES;
    return wanted->len_bytes <= most_bytes && !(wanted->operation == ORIEL_POLLED_UPDATE && oriel_kinds[wanted->kind].padded);
}

bool oriel_polled_ask(const struct oriel_remote *there, const struct oriel_polled_wanted *wanted, enum oriel_status *status)
{
    struct oriel_polled *area = there->polled;
    if (area == NULL || !fits(wanted))
        return false;
    struct habit *habit = find_habit(area, there->pid);
    if (habit->skips > 0) {
        habit->skips--;
        return false;
    }
    uint32_t number = claim(area, habit);
    if (number == ORIEL_POLLED_SLOTS)
        return false;
    struct oriel_polled_slot *slot = &area->slots[number];
    fill(slot, there->address, wanted);
    oriel_delay();
    oriel_store_release(&slot->state, ORIEL_POLLED_ASKED); /* R3, P2 */
    enum answer answer = await_answer(area, slot);
    if (answer == ANSWERED)
        *status = take_answer(there, slot, wanted);
    else if (answer == DIED)
        *status = oriel_fail(ORIEL_E_PEER, "process %d has died", (int)there->pid);
    oriel_delay();
    release(area, number);
    habit->skips = answer == WITHDRAWN ? habit->skips_next : 0;
    habit->skips_next = answer != WITHDRAWN ? 1 : habit->skips_next < MOST_SKIPPED ? 2 * habit->skips_next : MOST_SKIPPED;
    return answer != WITHDRAWN;
}
