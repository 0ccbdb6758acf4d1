/* Comparisons, and the message when one fails: the operation with its datatypes and offsets, and
 * the first byte that differs. It also contains the number of such bytes, and their last writer as
 * far as the model knows. */
#include "step.h"

#include "../mpi/operation_forms.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1100 };

static const char *const names[] = {
    [OP_PUT] = "put",
    [OP_GET] = "get",
    [OP_ACCUMULATE] = "accumulate",
    [OP_GET_ACCUMULATE] = "get_accumulate",
    [OP_FETCH] = "fetch_and_op",
    [OP_SWAP] = "compare_and_swap",
    [OP_CAS_ADD] = "loop of compare_and_swap",
    [OP_GUARDED] = "get and put under a lock",
    [OP_SIGNAL] = "data and a flag",
    [OP_AWAIT] = "wait for the flag",
    [OP_STORE] = "store",
    [OP_SEND] = "send",
    [OP_RECEIVE] = "receive",
};
static const char *const epochs[] = {"fence", "post-start-complete-wait", "lock", "lock_all"};

static int side_text(char *text, size_t room, const char *what, const struct side *side)
{
    return side->type == NULL
               ? 0
               : snprintf(text, room, ", %s %d of %.160s", what, side->count, side->type->text);
}

const char *op_text(const struct plan *plan, const struct op *op)
{
    static _Thread_local char texts[2][TEXT_BYTES];
    static _Thread_local int turn;
    char *text = texts[turn++ % 2];
    const struct region *region = op->target == MPI_PROC_NULL ? NULL : op_region(plan, op);
    int used = snprintf(
        text, TEXT_BYTES,
        "operation %d: %s%s%s by rank %d of the world, thread %d, in %s of window %d, phase %d",
        (int)(op - plan->ops) + 1, op->form & FORM_REQUEST ? "r" : "", names[op->kind],
        op->form & FORM_LARGE ? "_c" : "", op->actor / THREADS_MOST, op->actor % THREADS_MOST,
        epochs[plan->epoch], plan->window->number, op->phase);
    if (region == NULL)
        return text;
    used += snprintf(text + used, TEXT_BYTES - (size_t)used,
                     ", to rank %d, segment %d, displacement %ld (byte %ld of %zu)", op->target,
                     op->segment, (long)op->disp,
                     (long)(op->disp * (op->kind == OP_STORE ? 1 : region->unit)), region->size);
    if (op->kind >= OP_ACCUMULATE && op->kind <= OP_FETCH)
        used += snprintf(text + used, TEXT_BYTES - (size_t)used, ", %s",
                         op->operator== NULL ? "MPI_NO_OP" : op->operator->name);
    used += side_text(text + used, TEXT_BYTES - (size_t)used, "origin", &op->origin);
    side_text(text + used, TEXT_BYTES - (size_t)used, "target", &op->to);
    return text;
}

static void bytes_text(char *text, size_t room, const unsigned char *bytes, size_t count)
{
    int used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && i < 8; i++)
        used += snprintf(text + used, room - (size_t)used, "%s%02x", i ? " " : "", bytes[i]);
}

/* The first difference, or the length. */
static size_t first_difference(const unsigned char *got, const unsigned char *wanted,
                               size_t len_bytes, size_t *count)
{
    size_t first = len_bytes;
    *count = 0;
    for (size_t i = 0; i < len_bytes; i++) {
        if (got[i] == wanted[i])
            continue;
        first = first == len_bytes ? i : first;
        ++*count;
    }
    return first;
}

void buffer_check(const struct plan *plan, const struct op *op, const struct buffer *buffer,
                  const char *what)
{
    size_t count, at;
    char got[32], wanted[32];
    if (buffer->len_bytes == 0 || memcmp(buffer->bytes, buffer->wanted, buffer->len_bytes) == 0)
        return;
    at = first_difference(buffer->bytes, buffer->wanted, buffer->len_bytes, &count);
    bytes_text(got, sizeof got, buffer->bytes + at, buffer->len_bytes - at);
    bytes_text(wanted, sizeof wanted, buffer->wanted + at, buffer->len_bytes - at);
    fail("%s differs in %zu of %zu bytes, the first at %ld from displacement 0: it is %s, not %s; "
         "%s",
         what, count, buffer->len_bytes, (long)at - (long)buffer->at, got, wanted,
         op_text(plan, op));
}

void region_check(const struct plan *plan, int rank, int segment)
{
    const struct region *region = &plan->window->regions[rank][segment];
    size_t count, at;
    char got[32], wanted[32];
    if (region->model == NULL || region->size == 0 ||
        memcmp(region->at, region->model, region->size) == 0)
        return;
    at = first_difference(region->at, region->model, region->size, &count);
    bytes_text(got, sizeof got, region->at + at, region->size - at);
    bytes_text(wanted, sizeof wanted, region->model + at, region->size - at);
    int writer = region->writers[at];
    fail("window %d of flavour %d, %s: memory of rank %d, segment %d, differs in %zu of %zu bytes, "
         "the first at %zu: it is %s, "
         "not %s; last written by %s",
         plan->window->number, plan->window->flavour, epochs[plan->epoch], rank, segment, count,
         region->size, at, got, wanted,
         writer == 0 ? "its owner before the epoch" : op_text(plan, &plan->ops[writer - 1]));
}
