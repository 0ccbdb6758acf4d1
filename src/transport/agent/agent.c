/* The origin's side of the agent: transfers and updates become requests in the slots of the
 * target's area. A call returns after the agent has executed all of it, so it fulfils the contract
 * of every transport. agent.h contains the argument. */
#include "transport/agent/agent.h"

#include "base/delay.h"
#include <errno.h>
#include <sched.h>
#include <string.h>

/* All data of one call: in and out have the same offsets and lengths, and one of them may be
 * missing. */
struct agent_job {
    const struct oriel_remote *target;
    enum oriel_agent_operation operation;
    enum oriel_kind kind; /* of an update, like operator */
    enum oriel_operator operator;
    const struct oriel_piece *in;  /* copied into the slots */
    const struct oriel_piece *out; /* copied out of the slots */
    unsigned count;
};

/* Progress of a job. */
struct job_position {
    unsigned at;
    uint64_t done_bytes; /* of piece `at` */
};

/* An outstanding request: its slot, and the position in the transfer at which it starts. */
struct agent_request {
    struct oriel_agent_slot *slot;
    struct job_position from;
};

/* Checked while waiting for an answer. */
static enum oriel_status agent_check(void *context)
{
    const struct oriel_agent *agent = *(struct oriel_agent *const *)context;
    if (oriel_load_acquire(&agent->state) == ORIEL_AGENT_RUNNING &&
        oriel_identity_alive(&agent->process))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_PEER, "process %d has died, or has finalised MPI",
                      (int)agent->process.pid);
}

static void doorbell_ring(struct oriel_agent *agent, const struct oriel_agent_slot *slot)
{
    uint32_t bit = UINT32_C(1) << (slot - agent->slots);
    atomic_fetch_or_explicit(&agent->asked, bit, memory_order_seq_cst); /* Q4 */
    oriel_wake(&agent->asked, &agent->sleepers);
}

static enum oriel_status agent_answer_wait(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    struct oriel_watch watch = {agent_check, &agent, ORIEL_WAITING_AGENT};
    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_EQUAL,
                      ORIEL_AGENT_DONE, &watch); /* Q5, P2 */
}

static void agent_slot_release(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    atomic_store_explicit(&slot->owner, 0, memory_order_release); /* Q6, P3 */
    oriel_delay();
    oriel_event_signal(&agent->freed);
}

/* Claims a slot whose owner was from. Returns NULL if another process was faster. */
static struct oriel_agent_slot *agent_slot_claim_from(struct oriel_agent_slot *slot, uint64_t from)
{
    return atomic_compare_exchange_strong_explicit(&slot->owner, &from, oriel_identity_own_word(),
                                                   memory_order_acquire,
                                                   memory_order_relaxed) /* Q1 */
               ? slot
               : NULL;
}

/* Processes start at different slots to reduce contention. */
static struct oriel_agent_slot *agent_slot_claim_free(struct oriel_agent *agent)
{
    unsigned first = (unsigned)(oriel_identity_own_word() % ORIEL_AGENT_SLOTS);
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++) {
        struct oriel_agent_slot *slot = &agent->slots[(first + i) % ORIEL_AGENT_SLOTS];
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) == 0 &&
            agent_slot_claim_from(slot, 0) != NULL)
            return slot;
    }
    return NULL;
}

/* Claims a slot of a dead process, see "Death". */
static struct oriel_agent_slot *agent_slot_take_over(struct oriel_agent *agent)
{
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++) {
        struct oriel_agent_slot *slot = &agent->slots[i];
        uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
        if (owner != 0 && owner != oriel_identity_own_word() && !oriel_identity_word_alive(owner) &&
            agent_slot_claim_from(slot, owner) != NULL)
            return slot;
    }
    return NULL;
}

/* Checked while waiting for a slot: ends the wait with an error, or with a slot. */
struct slot_wait {
    struct oriel_agent *agent; /* first */
    struct oriel_agent_slot *slot;
};

static enum oriel_status slot_wait_check(void *context)
{
    struct slot_wait *wait = context;
    enum oriel_status status = agent_check(wait);
    if (status == ORIEL_OK)
        wait->slot = agent_slot_take_over(wait->agent);
    return wait->slot != NULL ? ORIEL_E_OTHER : status;
}

static enum oriel_status agent_slot_wait(struct oriel_agent *agent, struct oriel_agent_slot **out)
{
    struct slot_wait wait = {agent, NULL};
    struct oriel_watch watch = {slot_wait_check, &wait, ORIEL_WAITING_AGENT};
    for (;;) {
        /* before the search: a slot freed after it ends the wait */
        uint32_t freed = oriel_load_acquire(&agent->freed.value);
        *out = agent_slot_claim_free(agent);
        if (*out != NULL)
            return ORIEL_OK;
        enum oriel_status status = oriel_wait(&agent->freed.value, &agent->freed.sleepers,
                                              ORIEL_WAIT_NOT_EQUAL, freed, &watch);
        *out = wait.slot;
        if (wait.slot != NULL)
            return ORIEL_OK;
        if (status != ORIEL_OK)
            return status;
    }
}

/* The previous owner may have left its request in the slot, see "Death". */
static enum oriel_status agent_slot_clear(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    if (oriel_likely(oriel_load_acquire(&slot->answer.value) == ORIEL_AGENT_DONE))
        return ORIEL_OK;
    doorbell_ring(agent, slot);
    enum oriel_status status = agent_answer_wait(agent, slot);
    if (status != ORIEL_OK)
        agent_slot_release(agent, slot);
    return status;
}

/* Claims a slot and clears it. A process that already holds a slot does not wait for another: *out
 * is NULL if none is free. */
static enum oriel_status agent_slot_claim(struct oriel_agent *agent, bool may_wait,
                                          struct oriel_agent_slot **out)
{
    enum oriel_status status = ORIEL_OK;
    *out = NULL;
    if (oriel_unlikely(agent == NULL))
        return ORIEL_E_OTHER;
    if (oriel_identity_own_word() == 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot read this process's start time: %s",
                          strerror(errno));
    *out = agent_slot_claim_free(agent);
    if (*out == NULL && may_wait)
        status = agent_slot_wait(agent, out);
    if (*out != NULL)
        status = agent_slot_clear(agent, *out);
    if (status != ORIEL_OK)
        *out = NULL;
    return status;
}

/* The padding of pairs is not copied on this side either. */
static void agent_copy(const struct agent_job *job, char *to, const char *from, uint64_t len_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[job->kind];
    if (oriel_unlikely(job->operation == ORIEL_AGENT_UPDATE && kind->padded))
        kind->plain[ORIEL_OPERATOR_REPLACE](to, from, NULL, len_bytes / kind->extent_bytes);
    else
        memcpy(to, from, len_bytes);
}

enum slot_direction { FILL, EMPTY };

/* Handles the next bytes of the walk, as many as fit a slot, and only whole elements for an update.
 * FILL describes them in the slot and copies the input there; EMPTY copies the output from the
 * slot. */
static void slot_transfer(const struct agent_job *job, struct oriel_agent_slot *slot,
                          struct job_position *walk, enum slot_direction direction)
{
    const struct oriel_piece *pieces = job->in != NULL ? job->in : job->out;
    const uint64_t whole_bytes =
        job->operation == ORIEL_AGENT_UPDATE ? oriel_kinds[job->kind].extent_bytes : 1;
    uint64_t used_bytes = 0;
    unsigned runs = 0;
    while (walk->at < job->count && runs < ORIEL_AGENT_RUNS &&
           ORIEL_AGENT_DATA_BYTES - used_bytes >= whole_bytes) {
        const struct oriel_piece *piece = &pieces[walk->at];
        uint64_t left_bytes = piece->len_bytes - walk->done_bytes;
        uint64_t room_bytes = (ORIEL_AGENT_DATA_BYTES - used_bytes) / whole_bytes * whole_bytes;
        uint64_t now = left_bytes < room_bytes ? left_bytes : room_bytes;
        char *data = slot->data + used_bytes;
        int64_t done_bytes = (int64_t)walk->done_bytes;
        if (direction == FILL)
            slot->runs[runs] = (struct oriel_agent_run){
                job->target->address + (uint64_t)piece->offset_bytes + walk->done_bytes, now};
        if (direction == FILL && job->in != NULL)
            agent_copy(job, data, oriel_at(job->in[walk->at].here, done_bytes), now);
        if (direction == EMPTY && job->out != NULL)
            agent_copy(job, oriel_at(job->out[walk->at].here, done_bytes), data, now);
        runs++;
        used_bytes += now;
        walk->done_bytes += now;
        if (now == left_bytes)
            *walk = (struct job_position){walk->at + 1, 0};
    }
    if (direction == FILL) {
        slot->run_count = runs;
        slot->data_bytes = used_bytes;
    }
}

static void request_submit(struct oriel_agent *agent, struct oriel_agent_slot *slot)
{
    slot->cpu = sched_getcpu();
    oriel_delay();
    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED); /* Q3, P1 */
    oriel_delay();
    doorbell_ring(agent, slot);
    if (oriel_load_acquire(&slot->answer.value) != ORIEL_AGENT_DONE &&
        atomic_load_explicit(&agent->cpu, memory_order_relaxed) == slot->cpu)
        sched_yield();
}

static void request_start(const struct agent_job *job, struct agent_request *request,
                          struct job_position *walk)
{
    struct oriel_agent_slot *slot = request->slot;
    request->from = *walk;
    slot->operation = job->operation;
    slot->kind = job->kind;
    slot->operator= job->operator;
    slot->returns = job->out != NULL;
    slot_transfer(job, slot, walk, FILL); /* Q2 */
    request_submit(job->target->agent, slot);
}

static enum oriel_status agent_error(const struct oriel_remote *target,
                                     const struct oriel_agent_slot *slot)
{
    const int error = slot->error;
    if (error == ORIEL_AGENT_HAS_REASON)
        return oriel_fail(ORIEL_E_OTHER, "the agent of process %d cannot copy: %.400s",
                          (int)target->pid, slot->data);
    if (error == EFAULT)
        return oriel_fail(ORIEL_E_RANGE, "memory near address %#lx of process %d is not mapped",
                          (unsigned long)target->address, (int)target->pid);
    return oriel_fail(ORIEL_E_OTHER, "the agent of process %d cannot copy: %s", (int)target->pid,
                      strerror(error));
}

/* If the answer does not come, the slot stays ASKED; the next process that claims it clears it. */
static enum oriel_status request_wait(const struct oriel_remote *target,
                                      struct oriel_agent_slot *slot)
{
    enum oriel_status status = agent_answer_wait(target->agent, slot);
    return status == ORIEL_OK && slot->error != 0 ? agent_error(target, slot) : status;
}

/* Waits for the answer and releases the slot. */
static enum oriel_status request_finish(const struct agent_job *job, struct agent_request *request)
{
    enum oriel_status status = request_wait(job->target, request->slot);
    if (status == ORIEL_OK && job->out != NULL)
        slot_transfer(job, request->slot, &request->from, EMPTY);
    agent_slot_release(job->target->agent, request->slot);
    request->slot = NULL;
    return status;
}

/* While the agent executes one request, the origin fills the next. Only for a single piece, because
 * pieces move in order. */
static enum oriel_status job_execute(const struct agent_job *job)
{
    struct oriel_agent *agent = job->target->agent;
    struct job_position walk = {0, 0};
    struct agent_request asked = {.slot = NULL};
    enum oriel_status status = ORIEL_OK;
    while (status == ORIEL_OK && (walk.at < job->count || asked.slot != NULL)) {
        struct agent_request next = {.slot = NULL};
        if (walk.at < job->count && (asked.slot == NULL || job->count == 1))
            status = agent_slot_claim(agent, asked.slot == NULL, &next.slot);
        if (next.slot != NULL)
            request_start(job, &next, &walk);
        enum oriel_status answered = asked.slot != NULL ? request_finish(job, &asked) : ORIEL_OK;
        status = status == ORIEL_OK ? answered : status;
        asked = next;
    }
    if (asked.slot != NULL)
        request_finish(job, &asked);
    return status;
}

static enum oriel_status write_pieces_agent(const struct oriel_remote *to,
                                            const struct oriel_piece *pieces, unsigned count)
{
    return job_execute(&(struct agent_job){
        .target = to, .operation = ORIEL_AGENT_WRITE, .in = pieces, .count = count});
}

static enum oriel_status read_pieces_agent(const struct oriel_remote *from,
                                           const struct oriel_piece *pieces, unsigned count)
{
    return job_execute(&(struct agent_job){
        .target = from, .operation = ORIEL_AGENT_READ, .out = pieces, .count = count});
}

static enum oriel_status write_agent(const struct oriel_remote *to, const void *from,
                                     uint64_t len_bytes)
{
    struct oriel_piece piece = {0, (void *)(uintptr_t)from, len_bytes};
    return write_pieces_agent(to, &piece, len_bytes > 0);
}

static enum oriel_status read_agent(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    struct oriel_piece piece = {0, to, len_bytes};
    return read_pieces_agent(from, &piece, len_bytes > 0);
}

enum oriel_status oriel_agent_update(const struct oriel_remote *target, enum oriel_kind kind,
                                     enum oriel_operator operator, const struct oriel_piece * in,
                                     const struct oriel_piece *out, unsigned count)
{
    return job_execute(&(struct agent_job){target, ORIEL_AGENT_UPDATE, kind, operator, in, out,
                                           in != NULL || out != NULL ? count : 0});
}

enum oriel_status oriel_agent_swap(const struct oriel_remote *target, const void *desired,
                                   const void *compared, void *found, uint64_t len_bytes)
{
    struct oriel_agent_slot *slot;
    enum oriel_status status = agent_slot_claim(target->agent, true, &slot);
    if (status != ORIEL_OK)
        return status;
    slot->operation = ORIEL_AGENT_SWAP;
    slot->run_count = 1;
    slot->runs[0] = (struct oriel_agent_run){target->address, len_bytes};
    slot->data_bytes = len_bytes;
    memcpy(slot->data, compared, len_bytes);
    memcpy(slot->data + len_bytes, desired, len_bytes); /* Q2 */
    request_submit(target->agent, slot);
    status = request_wait(target, slot);
    if (status == ORIEL_OK)
        memcpy(found, slot->data, len_bytes);
    agent_slot_release(target->agent, slot);
    return status;
}

const struct oriel_transport oriel_transport_agent = {
    .name = "agent",
    .write = write_agent,
    .read = read_agent,
    .write_pieces = write_pieces_agent,
    .read_pieces = read_pieces_agent,
};
