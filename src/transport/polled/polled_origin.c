/* The origin's side of requests (polled.h contains the argument). A target that does not serve
 * costs PATIENCE_NS. Then one operation skips the request, then three, and so on up to
 * SKIPS_MAX. Thread-safe. */
#include "transport/polled/polled.h"

#include "base/delay.h"
#include "base/wait.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_NS = ORIEL_DELAYS ? 200000 : 2000, /* random delays on both sides make answers late */
    LOOKS = 32,                                 /* loads between two reads of the clock */
    SPIN_NS = 100000,   /* while a thread executes the request; then the origin yields */
    ASK_NS = 100000000, /* interval between checks that the target lives */
    SKIPS_MAX = ORIEL_DELAYS ? 3 : 255,
    HISTORIES = 32,
};

_Atomic uint32_t oriel_polled_waits;
_Atomic bool oriel_polled_has_requested;
_Thread_local bool oriel_polled_served;

/* This thread's experience with the targets whose PIDs have one remainder: usually a single one. */
static _Thread_local struct target_history {
    uint16_t skips;      /* remaining operations without a request */
    uint16_t skips_last; /* initial value of skips after the last request; 0 if it was served */
    uint8_t slot;        /* of the last request, + 1 */
} histories[HISTORIES];

static void history_record(struct target_history *history, bool is_done)
{
    const int more = 2 * history->skips_last + 1;
    history->skips_last = (uint16_t)(is_done ? 0 : more < SKIPS_MAX ? more : SKIPS_MAX);
    history->skips = history->skips_last;
}

/* --- slots --- */

static bool polled_slot_claim_from(struct oriel_polled *area, uint32_t number, uint64_t from)
{
    return atomic_load_explicit(&area->owners[number].word, memory_order_relaxed) == from &&
           atomic_compare_exchange_strong_explicit(&area->owners[number].word, &from,
                                                   oriel_identity_own_word(), memory_order_acquire,
                                                   memory_order_relaxed); /* R1 */
}

static void polled_slot_release(struct oriel_polled *area, uint32_t number)
{
    atomic_store_explicit(&area->owners[number].word, 0, memory_order_release); /* R5, P3 */
}

/* P1 */
static bool request_withdraw(struct oriel_polled_slot *slot)
{
    uint32_t asked = ORIEL_POLLED_ASKED;
    return atomic_compare_exchange_strong_explicit(&slot->state, &asked, ORIEL_POLLED_IDLE,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* Returns true if the previous owner's request is finished or withdrawn; that owner may have
 * died. */
static bool polled_slot_clear(struct oriel_polled_slot *slot)
{
    uint32_t state = oriel_load_acquire(&slot->state);
    return state == ORIEL_POLLED_IDLE || state == ORIEL_POLLED_DONE ||
           (state == ORIEL_POLLED_ASKED && request_withdraw(slot));
}

/* Claims a slot of a dead process. Returns ORIEL_POLLED_SLOTS if there is none. */
static uint32_t polled_slot_take_over(struct oriel_polled *area)
{
    for (uint32_t i = 0; i < ORIEL_POLLED_SLOTS; i++) {
        uint64_t owner = atomic_load_explicit(&area->owners[i].word, memory_order_relaxed);
        if (owner != 0 && owner != oriel_identity_own_word() && !oriel_identity_word_alive(owner) &&
            polled_slot_claim_from(area, i, owner))
            return i;
    }
    return ORIEL_POLLED_SLOTS;
}

/* Each origin first tries its own slot, because pages are cached per slot. */
static uint32_t polled_slot_claim_free(struct oriel_polled *area,
                                       const struct target_history *history)
{
    const uint32_t last =
        history->slot != 0 ? history->slot - 1u : (uint32_t)getpid() % ORIEL_POLLED_SLOTS;
    if (oriel_likely(polled_slot_claim_from(area, last, 0)))
        return last;
    for (uint32_t i = 0; i < ORIEL_POLLED_SLOTS; i++)
        if (polled_slot_claim_from(area, i, 0))
            return i;
    return ORIEL_POLLED_SLOTS;
}

/* Returns ORIEL_POLLED_SLOTS if no slot is free. */
static uint32_t polled_slot_claim(struct oriel_polled *area, struct target_history *history)
{
    if (oriel_unlikely(oriel_identity_own_word() == 0))
        return ORIEL_POLLED_SLOTS;
    uint32_t number = polled_slot_claim_free(area, history);
    if (oriel_unlikely(number == ORIEL_POLLED_SLOTS))
        number = polled_slot_take_over(area);
    if (oriel_unlikely(number == ORIEL_POLLED_SLOTS))
        return number;
    if (oriel_unlikely(!polled_slot_clear(&area->slots[number]))) {
        polled_slot_release(area, number);
        return ORIEL_POLLED_SLOTS;
    }
    history->slot = (uint8_t)(number + 1);
    uint32_t used = oriel_load_relaxed(&area->used);
    while (used <= number &&
           !atomic_compare_exchange_weak_explicit(&area->used, &used, number + 1,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    return number;
}

/* --- one request --- */

static void polled_copy(void *to, const void *from, uint64_t len_bytes)
{
    if (oriel_likely(len_bytes == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, len_bytes);
}

static void request_fill(struct oriel_polled_slot *slot, uint64_t address,
                         const struct oriel_polled_request *request)
{
    slot->operation = (uint8_t)request->operation;
    slot->kind = (uint8_t)request->kind;
    slot->operator=(uint8_t) request->operator;
    slot->returns = request->out != NULL;
    slot->len_bytes = (uint32_t)request->len_bytes;
    slot->address = address;
    slot->waits = atomic_load_explicit(&oriel_polled_waits, memory_order_relaxed);
    slot->origin = (uint32_t)oriel_identity_own_word();
    if (request->in != NULL)
        polled_copy(slot->data, request->in, request->len_bytes);
    if (request->operation == ORIEL_POLLED_SWAP)
        polled_copy(slot->data + request->len_bytes, request->desired, request->len_bytes); /* R2 */
}

enum answer { ANSWERED, WITHDRAWN, DIED };

/* R4. The origin serves other requests meanwhile: otherwise two processes that send requests to
 *     each other would both wait in vain. */
static enum answer polled_answer_wait(const struct oriel_polled *area,
                                      struct oriel_polled_slot *slot)
{
    uint64_t begin_ns = 0, asked_ns = 0;
    struct oriel_polled *own = atomic_load_explicit(&oriel_polled_own, memory_order_acquire);
    for (uint32_t looks = 1;; looks++) {
        uint32_t state = oriel_load_acquire(&slot->state);
        if (state == ORIEL_POLLED_DONE)
            return ANSWERED;
        if (looks % LOOKS != 0)
            continue;
        if (own != NULL)
            (void)oriel_polled_serve(own);
        uint64_t now_ns = oriel_now_ns();
        if (begin_ns == 0)
            begin_ns = asked_ns = now_ns;
        if (state == ORIEL_POLLED_ASKED && now_ns - begin_ns >= PATIENCE_NS &&
            request_withdraw(slot))
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

static bool fits_slot(const struct oriel_polled_request *request)
{
    uint64_t most_bytes =
        request->operation == ORIEL_POLLED_SWAP ? ORIEL_POLLED_BYTES / 2 : ORIEL_POLLED_BYTES;
    return request->len_bytes <= most_bytes &&
           !(request->operation == ORIEL_POLLED_UPDATE && oriel_kinds[request->kind].padded);
}

bool oriel_polled_submit(const struct oriel_remote *target,
                         const struct oriel_polled_request *request, enum oriel_status *status)
{
    struct oriel_polled *area = target->polled;
    if (area == NULL || !fits_slot(request))
        return false;
    struct target_history *history = &histories[(uint32_t)target->pid % HISTORIES];
    if (history->skips > 0) {
        history->skips--;
        return false;
    }
    if (oriel_unlikely(!atomic_load_explicit(&oriel_polled_has_requested, memory_order_relaxed)))
        atomic_store_explicit(&oriel_polled_has_requested, true, memory_order_relaxed);
    uint32_t number = polled_slot_claim(area, history);
    if (oriel_unlikely(number == ORIEL_POLLED_SLOTS)) {
        history_record(history, false);
        return false;
    }
    struct oriel_polled_slot *slot = &area->slots[number];
    request_fill(slot, target->address, request);
    oriel_delay();
    oriel_store_release(&slot->state, ORIEL_POLLED_ASKED); /* R3, P2 */
    enum answer answer = polled_answer_wait(area, slot);
    bool is_done = answer == ANSWERED && slot->error == 0;
    if (oriel_likely(is_done) && request->out != NULL)
        polled_copy(request->out, slot->data, request->len_bytes);
    oriel_delay();
    polled_slot_release(area, number);
    if (oriel_unlikely(answer == DIED)) {
        *status = oriel_fail(ORIEL_E_PEER, "process %d has died", (int)target->pid);
        return true;
    }
    history_record(history, is_done);
    oriel_polled_served |= is_done;
    *status = ORIEL_OK;
    return is_done;
}
