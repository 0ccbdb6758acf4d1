/* The origin's side of the agent: transfers become requests in the slots of the target's area.  A call returns when
 * the agent has executed all of it, so it keeps the contract of every transport; agent.h has the argument.  ops/ calls. */
#include "transport/agent/agent.h"

#include "base/delay.h"
#include "transport/transport.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum { PID_BITS = 22 };
_Static_assert((1 << PID_BITS) >= 4194304, "the kernel's largest number of a process");

/* What is left of a transfer. */
struct walk {
    const struct oriel_piece *pieces;
    unsigned count;
    unsigned at;
    uint64_t done_bytes; /* of pieces[at] */
};

/* A request on its way: the slot, and where in the transfer it began. */
struct request {
    struct oriel_agent_slot *slot;
    struct walk from;
};

static uint64_t owner_word(const struct oriel_identity *who)
{
    return who->start_time << PID_BITS | (uint64_t)who->pid;
}

static bool owner_lives(uint64_t word)
{
    struct oriel_identity who = {.start_time = word >> PID_BITS,
                                 .pid = (int32_t)(word & ((UINT64_C(1) << PID_BITS) - 1))};
    return oriel_identity_alive(&who);
}

/* Made once; threads that race for it make the same.  0 when the system does not tell. */
static uint64_t own_word(void)
{
    static _Atomic uint64_t own;
    uint64_t word = atomic_load_explicit(&own, memory_order_relaxed);
    struct oriel_identity self;
    if (oriel_unlikely(word == 0) && oriel_identity_make(&self)) {
        word = owner_word(&self);
        atomic_store_explicit(&own, word, memory_order_relaxed);
    }
    return word;
}

/* Asked by waits for an answer. */
static enum oriel_status watch_agent(void *context)
{
    const struct oriel_agent *agent = context;
    if (oriel_load_acquire(&agent->state) == ORIEL_AGENT_RUNNING && oriel_identity_alive(&agent->process))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_PEER, "process %d has died, or has finalised MPI", (int)agent->process.pid);
}

static void ring(struct oriel_agent *agent, const struct oriel_agent_slot *slot)
{
    uint32_t bit = UINT32_C(1) << (slot - agent->slots);
    atomic_fetch_or_explicit(&agent->asked, bit, memory_order_seq_cst); /* Q4 */
    oriel_wake(&agent->asked, &agent->sleepers);
}

static enum oriel_status await_answer(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    struct oriel_watch watch = {watch_agent, agent};
    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_EQUAL, ORIEL_AGENT_DONE,
                      &watch); /* Q5, P2 */
}

static void release(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    atomic_store_explicit(&slot->owner, 0, memory_order_release); /* Q6, P3 */
    oriel_delay();
    oriel_event_signal(&agent->freed);
}

/* A slot whose owner was from, now this process's; NULL when another was faster. */
static struct oriel_agent_slot *take(struct oriel_agent_slot *slot, uint64_t from)
{
    return atomic_compare_exchange_strong_explicit(&slot->owner, &from, own_word(), memory_order_acquire,
                                                   memory_order_relaxed) /* Q1 */
               ? slot
               : NULL;
}

/* Processes begin at different slots, so that they seldom meet. */
static struct oriel_agent_slot *take_free(struct oriel_agent *agent)
{
    unsigned first = (unsigned)(own_word() % ORIEL_AGENT_SLOTS);
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++) {
        struct oriel_agent_slot *slot = &agent->slots[(first + i) % ORIEL_AGENT_SLOTS];
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) == 0 && take(slot, 0) != NULL)
            return slot;
    }
    return NULL;
}

/* A slot of a dead process, see "Death". */
static struct oriel_agent_slot *take_over(struct oriel_agent *agent)
{
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++) {
        struct oriel_agent_slot *slot = &agent->slots[i];
        uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
        if (owner != 0 && owner != own_word() && !owner_lives(owner) && take(slot, owner) != NULL)
            return slot;
    }
    return NULL;
}

/* Asked by waits for a slot: the end of the wait, with an error, or with a slot. */
struct heir {
    struct oriel_agent *agent;
    struct oriel_agent_slot *slot;
};

static enum oriel_status watch_slots(void *context)
{
    struct heir *heir = context;
    enum oriel_status status = watch_agent(heir->agent);
    if (status == ORIEL_OK)
        heir->slot = take_over(heir->agent);
    return heir->slot != NULL ? ORIEL_E_OTHER : status;
}

static enum oriel_status wait_for_slot(struct oriel_agent *agent, struct oriel_agent_slot **out)
{
    struct heir heir = {agent, NULL};
    struct oriel_watch watch = {watch_slots, &heir};
    for (;;) {
        uint32_t freed = oriel_load_acquire(&agent->freed.value); /* before the look: what is freed after it ends the wait */
        *out = take_free(agent);
        if (*out != NULL)
            return ORIEL_OK;
        enum oriel_status status =
            oriel_wait(&agent->freed.value, &agent->freed.sleepers, ORIEL_WAIT_NOT_EQUAL, freed, &watch);
        *out = heir.slot;
        if (heir.slot != NULL)
            return ORIEL_OK;
        if (status != ORIEL_OK)
            return status;
    }
}

/* Whoever had the slot before may have left its request, see "Death". */
static enum oriel_status clear(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    if (oriel_likely(oriel_load_acquire(&slot->answer.value) == ORIEL_AGENT_DONE))
        return ORIEL_OK;
    ring(agent, slot);
    enum oriel_status status = await_answer(agent, slot);
    if (status != ORIEL_OK)
        release(agent, slot);
    return status;
}

/* A slot that is clear.  Who holds one already does not wait for another: *out is NULL when none is free. */
static enum oriel_status claim(struct oriel_agent *agent, bool may_wait, struct oriel_agent_slot **out)
{
    enum oriel_status status = ORIEL_OK;
    *out = NULL;
    if (own_word() == 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot read this process's start time: %s", strerror(errno));
    *out = take_free(agent);
    if (*out == NULL && may_wait)
        status = wait_for_slot(agent, out);
    if (*out != NULL)
        status = clear(agent, *out);
    if (status != ORIEL_OK)
        *out = NULL;
    return status;
}

enum stroke { DESCRIBE, DESCRIBE_AND_FILL, EMPTY };

/* The next bytes of the walk, as many as a slot holds: described there, filled in, or after a read taken out. */
static void carry(struct oriel_agent_slot *slot, struct walk *walk, uint64_t address, enum stroke stroke)
{
    uint64_t used_bytes = 0;
    unsigned runs = 0;
    while (walk->at < walk->count && runs < ORIEL_AGENT_RUNS && used_bytes < ORIEL_AGENT_DATA_BYTES) {
        const struct oriel_piece *piece = &walk->pieces[walk->at];
        uint64_t left_bytes = piece->len_bytes - walk->done_bytes;
        uint64_t room_bytes = ORIEL_AGENT_DATA_BYTES - used_bytes;
        uint64_t now = left_bytes < room_bytes ? left_bytes : room_bytes;
        char *here = oriel_at(piece->here, (int64_t)walk->done_bytes);
        if (stroke == EMPTY)
            memcpy(here, slot->data + used_bytes, now);
        else
            slot->runs[runs] = (struct oriel_agent_run){address + (uint64_t)piece->offset_bytes + walk->done_bytes, now};
        if (stroke == DESCRIBE_AND_FILL)
            memcpy(slot->data + used_bytes, here, now);
        runs++;
        used_bytes += now;
        walk->done_bytes += now;
        if (now == left_bytes) {
            walk->at++;
            walk->done_bytes = 0;
        }
    }
    if (stroke == EMPTY)
        return;
    slot->run_count = runs;
    slot->data_bytes = used_bytes;
}

static void ask(const struct oriel_remote *there, struct request *request, struct walk *walk,
                enum oriel_agent_operation operation)
{
    struct oriel_agent_slot *slot = request->slot;
    request->from = *walk;
    slot->operation = operation;
    slot->cpu = sched_getcpu();
    carry(slot, walk, there->address, operation == ORIEL_AGENT_WRITE ? DESCRIBE_AND_FILL : DESCRIBE); /* Q2 */
    oriel_delay();
    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED); /* Q3, P1 */
    oriel_delay();
    ring(there->agent, slot);
    if (oriel_load_acquire(&slot->answer.value) != ORIEL_AGENT_DONE &&
        atomic_load_explicit(&there->agent->cpu, memory_order_relaxed) == slot->cpu)
        sched_yield();
}

static enum oriel_status failed(const struct oriel_remote *there, int error)
{
    if (error == EFAULT)
        return oriel_fail(ORIEL_E_RANGE, "memory near address %#lx of process %d is not mapped",
                          (unsigned long)there->address, (int)there->pid);
    return oriel_fail(ORIEL_E_OTHER, "the agent of process %d cannot copy: %s", (int)there->pid, strerror(error));
}

/* Awaits the answer and gives the slot back.  A slot whose answer will not come is left ASKED: who claims it clears it. */
static enum oriel_status finish(const struct oriel_remote *there, struct request *request, enum oriel_agent_operation operation)
{
    struct oriel_agent_slot *slot = request->slot;
    enum oriel_status status = await_answer(there->agent, slot);
    if (status == ORIEL_OK && slot->error != 0)
        status = failed(there, slot->error);
    else if (status == ORIEL_OK && operation == ORIEL_AGENT_READ)
        carry(slot, &request->from, 0, EMPTY);
    release(there->agent, slot);
    request->slot = NULL;
    return status;
}

/* While the agent copies one request the origin fills the next; only for a single piece, since pieces move in their order. */
static enum oriel_status move(const struct oriel_remote *there, const struct oriel_piece *pieces, unsigned count,
                              enum oriel_agent_operation operation)
{
    struct walk walk = {pieces, count, 0, 0};
    struct request asked = {.slot = NULL};
    enum oriel_status status = ORIEL_OK;
    while (status == ORIEL_OK && (walk.at < count || asked.slot != NULL)) {
        struct request next = {.slot = NULL};
        if (walk.at < count && (asked.slot == NULL || count == 1))
            status = claim(there->agent, asked.slot == NULL, &next.slot);
        if (next.slot != NULL)
            ask(there, &next, &walk, operation);
        enum oriel_status answered = asked.slot != NULL ? finish(there, &asked, operation) : ORIEL_OK;
        status = status == ORIEL_OK ? answered : status;
        asked = next;
    }
    if (asked.slot != NULL)
        finish(there, &asked, operation);
    return status;
}

static enum oriel_status write_agent(const struct oriel_remote *to, const void *from, uint64_t len_bytes)
{
    struct oriel_piece piece = {0, (void *)(uintptr_t)from, len_bytes};
    return len_bytes > 0 ? move(to, &piece, 1, ORIEL_AGENT_WRITE) : ORIEL_OK;
}

static enum oriel_status read_agent(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    struct oriel_piece piece = {0, to, len_bytes};
    return len_bytes > 0 ? move(from, &piece, 1, ORIEL_AGENT_READ) : ORIEL_OK;
}

static enum oriel_status write_pieces_agent(const struct oriel_remote *to, const struct oriel_piece *pieces, unsigned count)
{
    return move(to, pieces, count, ORIEL_AGENT_WRITE);
}

static enum oriel_status read_pieces_agent(const struct oriel_remote *from, const struct oriel_piece *pieces, unsigned count)
{
    return move(from, pieces, count, ORIEL_AGENT_READ);
}

const struct oriel_transport oriel_transport_agent = {
    .name = "agent",
    .write = write_agent,
    .read = read_agent,
    .write_pieces = write_pieces_agent,
    .read_pieces = read_pieces_agent,
};
