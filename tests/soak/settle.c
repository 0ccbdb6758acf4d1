/* Outstanding operations: compares and overwrites their buffers as soon as MPI reports completion.
 * A flush, the end of the epoch, or a function that completes requests reports it. Each thread has
 * its own list for each plan. */
#include "step.h"

#include <stdlib.h>
#include <string.h>

static bool is_fetch(const struct op *op)
{
    return op->kind == OP_GET_ACCUMULATE || op->kind == OP_FETCH || op->kind == OP_SWAP;
}

/* No flush completes a message. */
static bool is_message(const struct op *op)
{
    return op->kind == OP_SEND || op->kind == OP_RECEIVE;
}

/* For a result that only the memory determines, the received bytes count as expected. The rest of
 * the buffer is compared. */
static void result_check(const struct plan *plan, struct op *op)
{
    unsigned char packed[MAP_MOST_BYTES];
    const struct side *side = &op->result;
    int len_bytes = side->count * side->type->size_bytes;
    random_type_gather(side->type, len_bytes, op->into.bytes + op->into.at, packed);
    buffer_want(&op->into, side, packed);
    if (plan->areas[op->area].mode >= AREA_TICKET)
        op->fetched = area_load(&plan->areas[op->area], packed);
}

static void settle(const struct plan *plan, struct op *op)
{
    if (op->settled)
        return;
    op->settled = true;
    if (op->result_open)
        result_check(plan, op);
    if (is_fetch(op))
        buffer_check(plan, op, &op->into, "the result");
    if (op->kind == OP_SWAP)
        buffer_check(plan, op, &op->compare, "the compare buffer");
    buffer_check(plan, op, &op->from,
                 op->kind == OP_GET ? "the returned data"
                 : is_message(op)   ? "the message"
                                    : "the origin buffer");
    memset(op->from.bytes, 0xEE, op->from.len_bytes); /* too late for the library to read it */
}

void pending_add(struct pending *pending, struct op *op, MPI_Request request)
{
    if (pending->count == pending->room) {
        pending->room = pending->room ? 2 * pending->room : 32;
        pending->ops = realloc(pending->ops, sizeof *pending->ops * (size_t)pending->room);
        pending->requests =
            realloc(pending->requests, sizeof *pending->requests * (size_t)pending->room);
        if (pending->ops == NULL || pending->requests == NULL)
            fail("no memory");
    }
    pending->ops[pending->count] = op;
    pending->requests[pending->count++] = request;
}

static void pending_shrink(struct pending *pending)
{
    int left = 0;
    for (int i = 0; i < pending->count; i++) {
        if (pending->ops[i]->settled && pending->requests[i] == MPI_REQUEST_NULL)
            continue;
        pending->ops[left] = pending->ops[i];
        pending->requests[left++] = pending->requests[i];
    }
    pending->count = left;
}

void pending_flushed(struct pending *pending, int target)
{
    for (int i = 0; i < pending->count; i++)
        if ((target == PENDING_ALL || pending->ops[i]->target == target) &&
            !is_message(pending->ops[i]))
            settle(pending->plan, pending->ops[i]);
    pending_shrink(pending);
}

/* One call for some of the requests, with empty entries among them. */
static void call_some(struct pending *pending, int first, int count)
{
    static const enum count kinds[] = {COUNT_WAIT,     COUNT_TEST,    COUNT_WAITALL,
                                       COUNT_TESTALL,  COUNT_WAITANY, COUNT_TESTANY,
                                       COUNT_WAITSOME, COUNT_TESTSOME};
    MPI_Request *requests = pending->requests + first;
    enum { MOST = 64 };
    MPI_Status status, statuses[MOST],
        *written = one_in(&pending->random, 2) ? statuses : MPI_STATUSES_IGNORE;
    int indices[MOST], done = 0, index = 0, choice = below(&pending->random, (int)COUNT_OF(kinds));
    count = count < MOST ? count : MOST;
    switch (choice) {
    case 0: MPI_Wait(requests, &status); break;
    case 1: MPI_Test(requests, &done, &status); break;
    case 2: MPI_Waitall(count, requests, written); break;
    case 3: MPI_Testall(count, requests, &done, written); break;
    case 4: MPI_Waitany(count, requests, &index, &status); break;
    case 5: MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE); break;
    case 6: MPI_Waitsome(count, requests, &index, indices, written); break;
    default: MPI_Testsome(count, requests, &index, indices, written);
    }
    count_one(kinds[choice]);
}

static void settle_completed(struct pending *pending, const MPI_Request *before)
{
    for (int i = 0; i < pending->count; i++)
        if (before[i] != MPI_REQUEST_NULL && pending->requests[i] == MPI_REQUEST_NULL)
            settle(pending->plan, pending->ops[i]);
    pending_shrink(pending);
}

static bool any_active(const struct pending *pending)
{
    for (int i = 0; i < pending->count; i++)
        if (pending->requests[i] != MPI_REQUEST_NULL)
            return true;
    return false;
}

void pending_complete_some(struct pending *pending)
{
    if (!any_active(pending))
        return;
    MPI_Request *before = malloc(sizeof *before * (size_t)pending->count);
    if (before == NULL)
        fail("no memory");
    memcpy(before, pending->requests, sizeof *before * (size_t)pending->count);
    int first = below(&pending->random, pending->count);
    call_some(pending, first, between(&pending->random, 1, pending->count - first));
    settle_completed(pending, before);
    free(before);
}

void pending_complete(struct pending *pending)
{
    while (any_active(pending))
        pending_complete_some(pending);
}

void pending_free(struct pending *pending)
{
    if (pending->count > 0)
        fail("%d operations are still outstanding: %s", pending->count,
             op_text(pending->plan, pending->ops[0]));
    free(pending->ops);
    free(pending->requests);
}
