/* Executes a phase: each thread of this rank makes its actor's calls in the plans' order, with
 * those of two windows in any interleaving. Outstanding operations go to settle.c. */
#include "step.h"

#include "../mpi/operation_forms.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MOST = 4 };

struct worker {
    struct execution *execution;
    int thread;
    struct random random;
    struct pending pendings[TRACKS_MOST];
    int locks[TRACKS_MOST]; /* number of locks held */
    pid_t children[CHILDREN_MOST];
    int child_count;
    pthread_t id;
};

struct execution {
    int plan_count, phase, threads;
    struct plan *plans[TRACKS_MOST];
    struct worker workers[THREADS_MOST];
};

static MPI_Aint disp_of(const struct plan *plan, const struct op *op)
{
    return op->target == MPI_PROC_NULL ? op->disp : op_region(plan, op)->first + op->disp;
}

static MPI_Op operator_of(const struct op *op)
{
    return op->operator== NULL ? MPI_NO_OP : op->operator->op;
}

static void wide_count(const struct op *op)
{
    size_t len_bytes = (size_t)op->to.count * (size_t)op->to.type->size_bytes;
    if (len_bytes < 1 << 16)
        return;
    count_one(COUNT_WIDE);
    if (len_bytes >= 1 << 20)
        count_one(COUNT_WIDEST);
    if (op->origin.type->derived || op->to.type->derived)
        count_one(COUNT_WIDE_DERIVED);
    if (op->operator!= NULL && op->operator->op != MPI_REPLACE)
        count_one(COUNT_WIDE_COMPUTED);
}

static void op_count(const struct op *op)
{
    static const enum count kinds[] = {
        [OP_PUT] = COUNT_PUT,
        [OP_GET] = COUNT_GET,
        [OP_ACCUMULATE] = COUNT_ACCUMULATE,
        [OP_GET_ACCUMULATE] = COUNT_GET_ACCUMULATE,
        [OP_FETCH] = COUNT_FETCH_AND_OP,
        [OP_SWAP] = COUNT_COMPARE_AND_SWAP,
        [OP_CAS_ADD] = COUNT_AREA_CAS_ADD,
        [OP_GUARDED] = COUNT_AREA_GUARDED,
        [OP_SIGNAL] = COUNT_AREA_SIGNAL,
        [OP_AWAIT] = COUNT_AREA_AWAIT,
        [OP_STORE] = COUNT_STORE,
        [OP_FLUSH] = COUNT_FLUSH,
        [OP_FLUSH_ALL] = COUNT_FLUSH_ALL,
        [OP_FLUSH_LOCAL] = COUNT_FLUSH_LOCAL,
        [OP_FLUSH_LOCAL_ALL] = COUNT_FLUSH_LOCAL_ALL,
        [OP_SYNC] = COUNT_SYNC,
        [OP_PAUSE] = COUNT_PAUSE,
        [OP_COMPUTE] = COUNT_COMPUTE,
        [OP_FORK] = COUNT_FORK,
        [OP_ATTACH] = COUNT_ATTACH_MEANWHILE,
        [OP_SEND] = COUNT_MESSAGE,
        [OP_RECEIVE] = COUNT_MESSAGE,
    };
    if (op->kind == OP_LOCK)
        count_one(op->lock == MPI_LOCK_EXCLUSIVE ? COUNT_LOCK_EXCLUSIVE : COUNT_LOCK_SHARED);
    else if (op->kind != OP_UNLOCK)
        count_one(kinds[op->kind]);
    if (op->kind == OP_LOCK && op->assert)
        count_one(COUNT_LOCK_NOCHECK);
    if (op->kind > OP_SWAP)
        return;
    if (op->kind >= OP_ACCUMULATE && op->kind != OP_SWAP)
        count_one(operator_count(op->operator));
    if (op->form & FORM_REQUEST)
        count_one(COUNT_REQUEST);
    if (op->target == MPI_PROC_NULL)
        count_one(COUNT_PROC_NULL);
    if (op->to.count == 0)
        count_one(COUNT_ZERO);
    if (op->origin.type->derived || op->to.type->derived)
        count_one(COUNT_DERIVED);
    if (op->origin.type != op->to.type)
        count_one(COUNT_UNEQUAL);
    wide_count(op);
    if (op->from.inside)
        count_one(COUNT_INSIDE);
    if (op->from.len_bytes < 8000 && !random_type_is_disjoint(op->origin.type, op->origin.count))
        count_one(COUNT_OVERLAPPING);
}

static void area_count(const struct plan *plan, const struct op *op)
{
    static const enum count modes[AREA_MODES] = {
        COUNT_AREA_SHARED, COUNT_AREA_CHAIN, COUNT_AREA_TICKET, COUNT_AREA_SWAP, COUNT_AREA_ELECT};
    if (op->area >= 0 && plan->areas[op->area].mode <= AREA_ELECT)
        count_one(modes[plan->areas[op->area].mode]);
    if (op->kind == OP_STORE && op->target != plan->window->group->me)
        count_one(COUNT_STORE_PEER);
}

/* A datatype of this operation alone, freed before the operation completes. */
static MPI_Datatype lease(const struct op *op, const struct side *side, MPI_Datatype *leased,
                          int *count)
{
    if (!op->free_types || side->type == NULL)
        return side->type == NULL ? MPI_DATATYPE_NULL : side->type->type;
    MPI_Type_dup(side->type->type, &leased[*count]);
    return leased[(*count)++];
}

static void move(struct pending *pending, struct op *op)
{
    MPI_Win win = pending->plan->window->win;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype leased[3];
    int leased_count = 0, form = op->form & (forms_available() - 1);
    struct arguments arguments = {
        op->from.bytes + op->from.at,
        op->origin.count,
        lease(op, &op->origin, leased, &leased_count),
        op->into.bytes == NULL ? NULL : op->into.bytes + op->into.at,
        op->result.count,
        lease(op, &op->result, leased, &leased_count),
        op->target,
        disp_of(pending->plan, op),
        op->to.count,
        lease(op, &op->to, leased, &leased_count),
        operator_of(op),
    };
    if (op->persists)
        persistent_call(op, &arguments, NULL, win, &pending->random);
    else if (op_notifies(op))
        notified_call(op, &arguments, win);
    else
        form_call((enum operation)op->kind, form, &arguments, win, &request);
    for (int i = 0; i < leased_count; i++)
        MPI_Type_free(&leased[i]);
    if (leased_count > 0)
        count_one(COUNT_TYPE_FREED);
    if ((form & FORM_LARGE) && !op_notifies(op) && !op->persists)
        count_one(COUNT_LARGE);
    pending_add(pending, op, request);
}

static void fetch(struct pending *pending, struct op *op)
{
    MPI_Win win = pending->plan->window->win;
    MPI_Request request = MPI_REQUEST_NULL;
    const void *compare = op->compare.bytes == NULL ? NULL : op->compare.bytes + op->compare.at;
    const struct arguments a = {
        .origin = op->from.bytes + op->from.at,
        .result = op->into.bytes + op->into.at,
        .target = op->target,
        .disp = disp_of(pending->plan, op),
        .target_type = op->to.type->type,
        .op = operator_of(op),
    };
    if (op->persists)
        persistent_call(op, &a, compare, win, &pending->random);
    else if (op->form & FORM_REQUEST)
        request = fetch_requested(op, &a, compare, win);
    else if (op->kind == OP_FETCH)
        MPI_Fetch_and_op(a.origin, a.result, a.target_type, a.target, a.disp, a.op, win);
    else
        MPI_Compare_and_swap(a.origin, compare, a.result, a.target_type, a.target, a.disp, win);
    pending_add(pending, op, request);
}

static void cas_add(struct pending *pending, const struct op *op)
{
    const struct plan *plan = pending->plan;
    const struct area *area = &plan->areas[op->area];
    MPI_Win win = plan->window->win;
    uint64_t guess = area->start, next, got = ~guess;
    for (bool first = true; first || got != guess; first = false) {
        if (!first)
            guess = got;
        next = guess + op->value;
        got = 0;
        MPI_Compare_and_swap(&next, &guess, &got, op->to.type->type, op->target, disp_of(plan, op),
                             win);
        MPI_Win_flush(op->target, win);
    }
    pending_flushed(pending, op->target);
}

/* The lock makes the update atomic: the caller holds it, exclusively if there is something to
 * add. */
static void guarded_add(struct worker *worker, struct pending *pending, const struct op *op)
{
    const struct plan *plan = pending->plan;
    MPI_Win win = plan->window->win;
    MPI_Datatype type = op->to.type->type;
    unsigned char two[2 * sizeof(uint64_t)];
    size_t bytes = plan->areas[op->area].leaf->model->value_bytes;
    MPI_Get(two, 2, type, op->target, disp_of(plan, op), 2, type, win);
    MPI_Win_flush(op->target, win);
    pending_flushed(pending, op->target);
    if (memcmp(two, two + bytes, bytes) != 0)
        fail("the lock did not exclude others: %#llx and %#llx should be equal; %s",
             (unsigned long long)area_load(&plan->areas[op->area], two),
             (unsigned long long)area_load(&plan->areas[op->area], two + bytes), op_text(plan, op));
    if (one_in(&worker->random, 2))
        sleep_us(100);
    if (op->value == 0)
        return;
    uint64_t sum = area_load(&plan->areas[op->area], two) + op->value;
    memcpy(two, &sum, bytes);
    memcpy(two + bytes, &sum, bytes);
    MPI_Put(two, 2, type, op->target, disp_of(plan, op), 2, type, win);
    MPI_Win_flush(op->target, win); /* the buffer's lifetime ends here */
}

/* The elements after the flag. */
static MPI_Datatype after_flag(const struct op *op)
{
    MPI_Datatype type;
    int count = op->to.count - 1;
    MPI_Aint displ = op->to.type->extent;
    MPI_Type_create_hindexed(1, &count, &displ, op->to.type->type, &type);
    MPI_Type_commit(&type);
    return type;
}

static void signal_or_await(struct pending *pending, struct op *op)
{
    const struct plan *plan = pending->plan;
    MPI_Win win = plan->window->win;
    MPI_Datatype data = after_flag(op);
    MPI_Aint disp = disp_of(plan, op);
    unsigned char *at = op->from.bytes + op->from.at;
    uint64_t got = op->value, nothing = 0;
    bool is_there = op->kind == OP_SIGNAL || flag_await(plan, op, disp, &pending->random);
    if (op->kind == OP_SIGNAL) {
        MPI_Put(at, 1, data, op->target, disp, 1, data, win);
        MPI_Win_flush(op->target, win);
        MPI_Accumulate(at, 1, op->to.type->type, op->target, disp, 1, op->to.type->type,
                       MPI_REPLACE, win);
        MPI_Win_flush(op->target, win);
    }
    for (int turn = 0; !is_there; turn++) {
        if (turn > 20)
            sleep_us(50);
        else if (turn > 0)
            sched_yield();
        MPI_Fetch_and_op(&nothing, &got, op->to.type->type, op->target, disp, MPI_NO_OP, win);
        MPI_Win_flush(op->target, win);
        is_there = got == op->value;
    }
    if (op->kind == OP_AWAIT) {
        memcpy(at, &got, sizeof got);
        MPI_Get(at, 1, data, op->target, disp, 1, data, win);
        MPI_Win_flush(op->target, win);
    }
    MPI_Type_free(&data);
    pending_flushed(pending, op->target);
    buffer_check(plan, op, &op->from,
                 op->kind == OP_SIGNAL ? "the origin buffer" : "the data published by the flag");
}

static void store(const struct plan *plan, struct op *op)
{
    unsigned char *at = op_region(plan, op)->at + op->disp;
    MPI_Win_sync(plan->window->win);
    struct buffer seen = {.bytes = at, .wanted = op->from.wanted, .len_bytes = op->len_bytes};
    buffer_check(plan, op, &seen, "the data before the store");
    memcpy(at, op->from.bytes, op->len_bytes);
    MPI_Win_sync(plan->window->win);
}

static void compute(struct random *random)
{
    double end = seconds_now() + 1e-3 * (double)between(random, 1, 20);
    while (seconds_now() < end)
        ;
}

static void children_await(struct worker *worker)
{
    int status = 0;
    while (worker->child_count > 0) {
        pid_t child = worker->children[--worker->child_count];
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail("a child ended with status %#x", (unsigned)status);
    }
}

/* An idle child process; operations and flushes of its parent continue meanwhile. */
static void fork_child(struct worker *worker)
{
    unsigned lives_us = one_in(&worker->random, 2) ? 0 : (unsigned)below(&worker->random, 5000);
    if (worker->child_count == CHILDREN_MOST)
        children_await(worker);
    pid_t child = fork();
    if (child == 0) {
        sleep_us(lives_us);
        _exit(0);
    }
    if (child < 0)
        fail("no child: %s", strerror(errno));
    worker->children[worker->child_count++] = child;
    if (one_in(&worker->random, 2))
        children_await(worker);
}

/* Attaches and detaches memory that no operation accesses, during accesses to other memory. */
static void attach(const struct plan *plan, struct random *random)
{
    int len_bytes = between(random, 1, one_in(random, 4) ? 20000 : 500);
    void *memory = malloc((size_t)len_bytes);
    if (memory == NULL)
        fail("no memory");
    MPI_Win_attach(plan->window->win, memory, len_bytes);
    random_pause(random, 200);
    MPI_Win_detach(plan->window->win, memory);
    free(memory);
}

static void message(struct pending *pending, struct op *op)
{
    const struct soak_window *window = pending->plan->window;
    MPI_Request request;
    int tag = window->number * PHASES_MOST + op->phase;
    if (op->kind == OP_SEND)
        MPI_Isend(op->from.bytes, (int)op->len_bytes, MPI_BYTE, op->target, tag, window->comm,
                  &request);
    else
        MPI_Irecv(op->from.bytes, (int)op->len_bytes, MPI_BYTE, op->target, tag, window->comm,
                  &request);
    pending_add(pending, op, request);
}

static void op_do(struct worker *worker, struct pending *pending, struct op *op)
{
    MPI_Win win = pending->plan->window->win;
    op_count(op);
    area_count(pending->plan, op);
    switch (op->kind) {
    case OP_PUT:
    case OP_GET:
    case OP_ACCUMULATE:
    case OP_GET_ACCUMULATE: move(pending, op); break;
    case OP_FETCH:
    case OP_SWAP: fetch(pending, op); break;
    case OP_CAS_ADD: cas_add(pending, op); break;
    case OP_GUARDED: guarded_add(worker, pending, op); break;
    case OP_SIGNAL:
    case OP_AWAIT: signal_or_await(pending, op); break;
    case OP_STORE: store(pending->plan, op); break;
    case OP_LOCK: MPI_Win_lock(op->lock, op->target, op->assert, win); break;
    case OP_UNLOCK: MPI_Win_unlock(op->target, win); break;
    case OP_FLUSH: MPI_Win_flush(op->target, win); break;
    case OP_FLUSH_ALL: MPI_Win_flush_all(win); break;
    case OP_FLUSH_LOCAL: MPI_Win_flush_local(op->target, win); break;
    case OP_FLUSH_LOCAL_ALL: MPI_Win_flush_local_all(win); break;
    case OP_SYNC: MPI_Win_sync(win); break;
    case OP_PAUSE: random_pause(&worker->random, 2000); break;
    case OP_COMPUTE: compute(&worker->random); break;
    case OP_FORK: fork_child(worker); break;
    case OP_ATTACH: attach(pending->plan, &worker->random); break;
    case OP_SEND:
    case OP_RECEIVE: message(pending, op); break;
    }
    if (op->kind == OP_UNLOCK || op->kind == OP_FLUSH || op->kind == OP_FLUSH_LOCAL)
        pending_flushed(pending, op->target);
    if (op->kind == OP_FLUSH_ALL || op->kind == OP_FLUSH_LOCAL_ALL)
        pending_flushed(pending, PENDING_ALL);
}

/* The actor's next operation from an index on, or the end. */
static int next_of(const struct execution *execution, int plan, int thread, int from)
{
    const struct plan *in = execution->plans[plan];
    while (from < in->op_count && (in->ops[from].phase != execution->phase ||
                                   in->ops[from].actor != world_rank * THREADS_MOST + thread))
        from++;
    return from;
}

/* Locks of two windows: the holder of a lock in the second window acquires none in the first. The
 * holder of a target's lock acquires none of a lower target in the same window.  Each lock request
 * therefore waits only for holders of later locks, in one order of all (window, target) that is the
 * same for all ranks. The holder of the last lock waits for no other.  Some operation is always
 * eligible, since operations of the second window end with all its locks released.  Nothing else in
 * a phase waits for others. */
static bool may_be_next(const struct worker *worker, int plan, const struct op *op)
{
    for (int later = plan + 1; later < worker->execution->plan_count && op->kind == OP_LOCK;
         later++)
        if (worker->locks[later] > 0)
            return false;
    return true;
}

static void locks_note(struct worker *worker, int plan, const struct op *op)
{
    worker->locks[plan] += op->kind == OP_LOCK ? 1 : op->kind == OP_UNLOCK ? -1 : 0;
    for (int other = 0; other < worker->execution->plan_count && op->kind == OP_LOCK; other++)
        if (other != plan && worker->locks[other] > 0)
            count_one(COUNT_LOCK_TWO_WINDOWS);
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct execution *execution = worker->execution;
    int next[TRACKS_MOST] = {0}, left[TRACKS_MOST];
    for (;;) {
        int count = 0;
        for (int i = 0; i < execution->plan_count; i++) {
            next[i] = next_of(execution, i, worker->thread, next[i]);
            if (next[i] < execution->plans[i]->op_count &&
                may_be_next(worker, i, &execution->plans[i]->ops[next[i]]))
                left[count++] = i;
        }
        if (count == 0)
            break;
        int chosen = left[below(&worker->random, count)];
        struct pending *pending = &worker->pendings[chosen];
        struct op *op = &execution->plans[chosen]->ops[next[chosen]++];
        op_do(worker, pending, op);
        locks_note(worker, chosen, op);
        if (op->kind != OP_RECEIVE && one_in(&worker->random, 3))
            pending_complete_some(pending);
        random_pause(&worker->random, 20);
    }
    for (int i = 0; i < execution->plan_count; i++)
        if (one_in(&worker->random, 2))
            pending_complete(&worker->pendings[i]);
    children_await(worker);
    return NULL;
}

struct execution *execution_run(struct plan **plans, int plan_count, int phase)
{
    struct execution *execution = calloc(1, sizeof *execution);
    if (execution == NULL)
        fail("no memory");
    execution->plan_count = plan_count;
    execution->phase = phase;
    execution->threads = plans[0]->threads;
    for (int i = 0; i < plan_count; i++)
        execution->plans[i] = plans[i];
    for (int t = 0; t < execution->threads; t++) {
        struct worker *worker = &execution->workers[t];
        worker->execution = execution;
        worker->thread = plans[0]->thread + t;
        worker->random =
            stream(11, (uint64_t)((soak.step * PHASES_MOST + phase) * RANKS_MOST + world_rank) *
                               THREADS_MOST +
                           (uint64_t)worker->thread);
        for (int i = 0; i < plan_count; i++)
            worker->pendings[i] =
                (struct pending){.plan = plans[i], .random = {random_next(&worker->random)}};
        if (t > 0 && pthread_create(&worker->id, NULL, worker_run, worker) != 0)
            fail("no thread");
        if (t > 0)
            count_one(COUNT_THREADS);
    }
    worker_run(&execution->workers[0]);
    for (int t = 1; t < execution->threads; t++)
        pthread_join(execution->workers[t].id, NULL);
    return execution;
}

void execution_end(struct execution *execution)
{
    for (int t = 0; t < execution->threads; t++) {
        for (int i = 0; i < execution->plan_count; i++) {
            struct pending *pending = &execution->workers[t].pendings[i];
            pending_flushed(pending, PENDING_ALL);
            if (pending->count > 0)
                count_one(COUNT_LATE_REQUEST);
            pending_complete(pending);
            pending_free(pending);
        }
    }
    free(execution);
}
