/* The origin's side of operations on internode targets (origin_rma.h has the messages). Sent data
 * is copied before an operation returns. Each request has the addresses for its reply, since the
 * program may free datatypes earlier. */
#include "internode/origin/origin_rma.h"

#include "internode/origin/origin_sync.h"
#include "reduce/cpu_swap.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW_BATCHES = 16, /* fit on the stack */
    /* limit in one message, and about the same for the destinations of its reply */
    MOST_BATCHES = 1024,
};
_Static_assert(MOST_BATCHES * sizeof(struct oriel_internode_batch) <= ORIEL_NET_DATA_BYTES,
               "a message has room for them");

/* A cursor over one side of the operation, if it has that side. */
struct walker {
    struct oriel_cursor cursor;
    struct oriel_node run; /* a dense side as one run */
    char *here;            /* NULL at the target */
    uint64_t run_bytes;    /* on average, at least 1 */
    bool open;
    bool plain; /* one run without padding */
};

static bool walker_open(struct walker *walker, const struct oriel_side *side, const void *here)
{
    const struct oriel_node *layout = side->type->layout;
    uint64_t count = side->count;
    walker->here = (char *)(uintptr_t)here;
    walker->run_bytes = UINT64_MAX;
    walker->plain = false;
    if (side->type->dense && layout->form == ORIEL_NODE_RUN) {
        walker->run = *layout;
        walker->run.count *= count;
        layout = &walker->run;
        count = count > 0 ? 1 : 0;
        walker->plain = !walker->run.padded;
    } else if (layout->runs > 0) {
        walker->run_bytes = layout->size_bytes / layout->runs + (layout->size_bytes < layout->runs);
    }
    walker->open = oriel_cursor_open(&walker->cursor, layout, count, side->type->extent_bytes);
    return walker->open;
}

/* A run of bytes. */
static void walker_set(struct walker *walker, char *here, uint64_t len_bytes)
{
    walker->here = here;
    walker->run_bytes = UINT64_MAX;
    walker->plain = true;
    walker->run = (struct oriel_node){.form = ORIEL_NODE_RUN,
                                      .kind = ORIEL_KIND_CHAR,
                                      .count = len_bytes,
                                      .elements = len_bytes,
                                      .depth = 1};
    walker->open = oriel_cursor_open(&walker->cursor, &walker->run, 1, (int64_t)len_bytes);
}

static void walker_close(struct walker *walker)
{
    if (walker->open)
        oriel_cursor_close(&walker->cursor);
}

/* A request and the destinations of its reply. */
struct expected_reply {
    struct oriel_internode_request request;
    uint64_t len_bytes;
    uint64_t count;
    uint64_t room;
    struct oriel_internode_batch batches[]; /* at_bytes has addresses */
};

/* Runs in any thread. It ignores a reply of unexpected length, which Oriel never sends. */
static void expected_reply_take(struct oriel_net_request *request,
                                const struct oriel_net_received *answer)
{
    struct expected_reply *wanted = (struct expected_reply *)request;
    const char *next = answer->data;
    if (!oriel_internode_reply_check(&wanted->request, answer) ||
        answer->len_bytes != wanted->len_bytes)
        return;
    for (uint64_t i = 0; i < wanted->count; i++)
        next += oriel_internode_unpack(next, &wanted->batches[i], NULL);
}

static struct expected_reply *expected_reply_alloc(struct expected_reply *old, uint64_t room)
{
    struct expected_reply *wanted = realloc(old, sizeof *wanted + room * sizeof wanted->batches[0]);
    if (wanted == NULL) {
        free(old);
        return NULL;
    }
    if (old == NULL)
        *wanted = (struct expected_reply){.request.net.take = expected_reply_take};
    wanted->room = room;
    return wanted;
}

static enum oriel_status no_memory_for(int32_t rank)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for a reply of rank %d", (int)rank);
}

/* A request whose reply fills one run; NULL without memory. */
static struct expected_reply *expected_reply_for_run(void *here, uint64_t len_bytes)
{
    struct expected_reply *wanted = expected_reply_alloc(NULL, 1);
    if (wanted == NULL)
        return NULL;
    wanted->count = 1;
    wanted->len_bytes = len_bytes;
    wanted->batches[0] = (struct oriel_internode_batch){.at_bytes = (int64_t)(uintptr_t)here,
                                                        .run_bytes = (uint32_t)len_bytes,
                                                        .runs = 1,
                                                        .kind = ORIEL_KIND_CHAR};
    return wanted;
}

/* A request whose reply fills the next len_bytes of a side; NULL without memory. */
static struct expected_reply *expected_reply_for_side(struct walker *side, uint64_t len_bytes)
{
    struct expected_reply *wanted = expected_reply_alloc(NULL, 1);
    if (wanted == NULL)
        return NULL;
    while (wanted->len_bytes < len_bytes && oriel_cursor_fill(&side->cursor)) {
        if (wanted->count == wanted->room &&
            (wanted = expected_reply_alloc(wanted, 4 * wanted->room)) == NULL)
            return NULL;
        struct oriel_internode_batch *batch = &wanted->batches[wanted->count++];
        wanted->len_bytes +=
            oriel_internode_describe(&side->cursor.batch, len_bytes - wanted->len_bytes, batch);
        batch->at_bytes = (int64_t)(uintptr_t)oriel_at(side->here, batch->at_bytes);
    }
    return wanted;
}

/* One operation in progress. */
struct sender {
    struct oriel_window *window;
    int32_t rank;
    struct oriel_net_peer *peer;
    struct oriel_internode_head head; /* of all messages: kind and d */
    uint32_t notifies;                /* of the last message */
    uint64_t offset_bytes;
    uint64_t unit_bytes;  /* is not split */
    uint64_t limit_bytes; /* payload limit of one message */
    struct walker target;
    struct walker origin; /* if operands are sent */
    struct walker result; /* if the reply has data */
    /* the next parts of origin or result, or NULL */
    struct oriel_internode_staging *staging;
    uint64_t part_bytes;  /* the rest of the part */
    char *stage;          /* buffer for a message's packed operands, or NULL */
    uint64_t moved_bytes; /* by the current message */
    uint32_t count;       /* its batches */
    uint32_t room;
    struct oriel_internode_batch *batches;
    int64_t *blocks; /* the batches as blocks: offsets, then lengths */
    struct oriel_internode_batch few[FEW_BATCHES];
    int64_t few_blocks[2 * FEW_BATCHES];
};

/* Limit of the next batch in bytes. A first run that fills the message needs no description. */
static uint64_t batch_limit_bytes(const struct sender *sender, const struct oriel_batch *next,
                                  uint64_t left_bytes)
{
    uint64_t most = sender->limit_bytes - sender->moved_bytes;
    most = left_bytes - sender->moved_bytes < most ? left_bytes - sender->moved_bytes : most;
    const bool fills =
        sender->count == 0 && next->left_bytes >= most && !oriel_kinds[next->kind].padded;
    if (sender->origin.open && !fills) {
        uint64_t taken = sender->moved_bytes + (sender->count + 1) * sizeof *sender->batches;
        uint64_t room = taken < ORIEL_NET_DATA_BYTES ? ORIEL_NET_DATA_BYTES - taken : 0;
        most = room < most ? room : most;
    }
    return most - most % sender->unit_bytes;
}

/* Describes as much of the target as fits in one message. */
static void plan_message(struct sender *sender, uint64_t left_bytes)
{
    struct oriel_cursor *cursor = &sender->target.cursor;
    sender->count = 0;
    sender->moved_bytes = 0;
    while (sender->count < sender->room && oriel_cursor_fill(cursor)) {
        uint64_t most = batch_limit_bytes(sender, &cursor->batch, left_bytes);
        if (most == 0)
            return;
        sender->moved_bytes +=
            oriel_internode_describe(&cursor->batch, most, &sender->batches[sender->count++]);
    }
}

/* Whether all batches are single runs without padding: as blocks they need half the room. */
static bool are_blocks(const struct sender *sender)
{
    for (uint32_t i = 0; i < sender->count; i++)
        if (sender->batches[i].runs != 1 || oriel_kinds[sender->batches[i].kind].padded)
            return false;
    return true;
}

/* Encodes the target's offsets: in the head alone, as batches or as blocks. */
static struct iovec describe_target(struct sender *sender, struct oriel_internode_head *head)
{
    const uint32_t count = sender->count;
    const struct oriel_internode_batch *first = sender->batches;
    const bool elements = head->kind == ORIEL_INTERNODE_ACCUMULATE;
    head->a = sender->offset_bytes;
    head->b = sender->moved_bytes / sender->unit_bytes;
    head->c = count;
    if (count == 1 && first->runs == 1 && (elements || !oriel_kinds[first->kind].padded)) {
        head->a += (uint64_t)first->at_bytes;
        head->c = 0;
        return (struct iovec){NULL, 0};
    }
    if (!are_blocks(sender))
        return (struct iovec){sender->batches, count * sizeof *sender->batches};
    for (uint32_t i = 0; i < count; i++) {
        sender->blocks[i] = sender->batches[i].at_bytes;
        sender->blocks[count + i] = sender->batches[i].run_bytes;
    }
    head->d |= ORIEL_INTERNODE_BLOCKS << 16;
    return (struct iovec){sender->blocks, 2 * count * sizeof *sender->blocks};
}

/* The next operands: in place if they are one run, else packed. */
static struct iovec pack_operands(struct sender *sender)
{
    struct oriel_cursor *cursor = &sender->origin.cursor;
    uint64_t left_bytes = sender->moved_bytes;
    char *next = sender->stage;
    while (left_bytes > 0 && oriel_cursor_fill(cursor)) {
        struct oriel_internode_batch batch;
        uint64_t now = oriel_internode_describe(&cursor->batch, left_bytes, &batch);
        if (now == sender->moved_bytes && batch.runs == 1 && !oriel_kinds[batch.kind].padded)
            return (struct iovec){oriel_at(sender->origin.here, batch.at_bytes), now};
        oriel_internode_pack(next, &batch, sender->origin.here);
        next += now;
        left_bytes -= now;
    }
    return (struct iovec){sender->stage, sender->moved_bytes};
}

static enum oriel_status next_part(struct sender *sender)
{
    char *here;
    enum oriel_status status = sender->staging->next(sender->staging, &here, &sender->part_bytes);
    if (status == ORIEL_OK)
        walker_set(sender->origin.open ? &sender->origin : &sender->result, here,
                   sender->part_bytes);
    return status;
}

/* Sends one message. left_bytes: the part of the operation that is not sent yet. */
static enum oriel_status send_next_message(struct sender *sender, uint64_t left_bytes)
{
    struct oriel_internode_head head = sender->head;
    struct iovec data[2];
    unsigned pieces = 0;
    if (sender->part_bytes == 0) {
        enum oriel_status status = next_part(sender);
        if (status != ORIEL_OK)
            return status;
    }
    plan_message(sender, sender->part_bytes);
    sender->part_bytes -= sender->moved_bytes;
    if (sender->moved_bytes == 0)
        return oriel_fail(ORIEL_E_OTHER, "a datatype ends before its size");
    if (sender->moved_bytes == left_bytes)
        head.notifies = sender->notifies;
    data[pieces] = describe_target(sender, &head);
    pieces += data[pieces].iov_len > 0;
    if (sender->origin.open)
        data[pieces++] = pack_operands(sender);
    if (!sender->result.open)
        return oriel_internode_send(sender->window, sender->rank, sender->peer, &head, data,
                                    pieces);
    struct expected_reply *wanted = expected_reply_for_side(&sender->result, sender->moved_bytes);
    if (wanted == NULL)
        return no_memory_for(sender->rank);
    return oriel_internode_send_request(sender->window, sender->rank, sender->peer, &head, data,
                                        pieces, &wanted->request);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Payload limit of one message: at most about MOST_BATCHES batches at each side. */
static uint64_t message_limit_bytes(const struct sender *sender)
{
    const uint64_t most = ORIEL_NET_DATA_BYTES;
    if (!sender->result.open || sender->result.run_bytes > most / MOST_BATCHES)
        return most;
    return smaller(most, MOST_BATCHES * sender->result.run_bytes);
}

/* Allocates the batches of one message, and the buffer for operands to pack. */
static bool sender_alloc(struct sender *sender, uint64_t total_bytes)
{
    const bool packs = sender->origin.open && !sender->origin.plain;
    uint64_t most = smaller(total_bytes / sender->target.run_bytes + 2, MOST_BATCHES);
    sender->room = FEW_BATCHES;
    sender->batches = sender->few;
    sender->blocks = sender->few_blocks;
    sender->limit_bytes = message_limit_bytes(sender);
    if (most > FEW_BATCHES) {
        sender->room = (uint32_t)most;
        sender->batches = malloc(most * (sizeof *sender->batches + 2 * sizeof *sender->blocks));
        sender->blocks = (int64_t *)(void *)(sender->batches + most);
    }
    if (packs)
        sender->stage = malloc(smaller(total_bytes, sender->limit_bytes));
    return sender->batches != NULL && (!packs || sender->stage != NULL);
}

static void sender_free(struct sender *sender)
{
    if (sender->batches != sender->few)
        free(sender->batches);
    free(sender->stage);
}

/* Operations of devices are not in the order of messages. */
static enum oriel_status await_rdma(struct oriel_window *window, int32_t target)
{
    if (oriel_likely(!oriel_net_has_devices()))
        return ORIEL_OK;
    enum oriel_status status = oriel_internode_flush_rdma(window, target);
    return status == ORIEL_OK ? oriel_internode_flush_local(window, target) : status;
}

/* Sends all messages of an operation that moves total_bytes. operand: the data to send; result: the
 * destination of the reply; either may be NULL, and both are if the operation is staged. */
static enum oriel_status send_all_messages(struct sender *sender, const struct oriel_span *target,
                                           uint64_t total_bytes,
                                           const struct oriel_operand *operand,
                                           const struct oriel_operand *result)
{
    sender->origin.open = sender->result.open = false;
    sender->part_bytes = total_bytes;
    if (sender->staging != NULL) {
        walker_set(sender->head.kind == ORIEL_INTERNODE_PUT ? &sender->origin : &sender->result,
                   NULL, 0);
        sender->part_bytes = 0;
    }
    sender->stage = NULL;
    sender->batches = sender->few;
    sender->rank = target->rank;
    sender->offset_bytes = target->offset_bytes;
    sender->notifies = target->notifies;
    enum oriel_status status = oriel_internode_enter(sender->window, target->rank, &sender->peer);
    if (status == ORIEL_OK && target->notifies != 0)
        status = await_rdma(sender->window, target->rank);
    if (status != ORIEL_OK)
        return status;
    bool opened =
        walker_open(&sender->target, &target->side, NULL) &&
        (operand == NULL || walker_open(&sender->origin, &operand->side, operand->here)) &&
        (result == NULL || walker_open(&sender->result, &result->side, result->here));
    if (!opened || !sender_alloc(sender, total_bytes))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    for (uint64_t done = 0; done < total_bytes && status == ORIEL_OK; done += sender->moved_bytes)
        status = send_next_message(sender, total_bytes - done);
    sender_free(sender);
    walker_close(&sender->result);
    walker_close(&sender->origin);
    walker_close(&sender->target);
    return status;
}

/* An RDMA put or get: one run at both sides. */
struct rdma_path {
    struct oriel_net_peer *peer;
    struct oriel_net_key *key; /* NULL: no RDMA */
};

static enum oriel_status rdma_path_find(struct oriel_window *window,
                                        const struct oriel_span *target, bool origin_is_plain,
                                        struct rdma_path *out)
{
    out->key = NULL;
    if (oriel_likely(!oriel_net_has_devices()) || target->notifies != 0 ||
        !oriel_side_is_plain(&target->side) || !origin_is_plain)
        return ORIEL_OK;
    enum oriel_status status = oriel_internode_enter(window, target->rank, &out->peer);
    if (status == ORIEL_OK)
        out->key = oriel_internode_key(window, target->rank, out->peer);
    return status;
}

static enum oriel_status rdma_put(struct oriel_window *window, const struct oriel_span *target,
                                  const struct rdma_path *rdma, const char *here,
                                  uint64_t len_bytes)
{
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0, now = 0; done < len_bytes && status == ORIEL_OK; done += now) {
        now = smaller(len_bytes - done, ORIEL_NET_DATA_BYTES);
        status = oriel_internode_rdma_put(window, target->rank, rdma->key,
                                          target->offset_bytes + done, here + done, now);
    }
    return status;
}

static enum oriel_status rdma_get(struct oriel_window *window, const struct oriel_span *target,
                                  const struct rdma_path *rdma, char *here, uint64_t len_bytes)
{
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0, now = 0; done < len_bytes && status == ORIEL_OK; done += now) {
        now = smaller(len_bytes - done, ORIEL_NET_DATA_BYTES);
        struct expected_reply *wanted = expected_reply_for_run(here + done, now);
        if (wanted == NULL)
            return no_memory_for(target->rank);
        status = oriel_internode_rdma_get(window, target->rank, rdma->peer, rdma->key,
                                          target->offset_bytes + done, now, &wanted->request);
    }
    return status;
}

static enum oriel_status rdma_staged(struct oriel_window *window, const struct oriel_span *target,
                                     const struct rdma_path *rdma, uint64_t total_bytes,
                                     struct oriel_internode_staging *staging, bool to_target)
{
    char *here;
    struct oriel_span part = *target;
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0, now = 0; done < total_bytes && status == ORIEL_OK; done += now) {
        part.offset_bytes = target->offset_bytes + done;
        status = staging->next(staging, &here, &now);
        if (status == ORIEL_OK)
            status = to_target ? rdma_put(window, &part, rdma, here, now)
                               : rdma_get(window, &part, rdma, here, now);
    }
    return status;
}

/* A put or get by messages; the parameters are those of send_all_messages. */
static enum oriel_status send_transfer(struct oriel_window *window, enum oriel_internode_kind kind,
                                       const struct oriel_span *target, uint64_t total_bytes,
                                       const struct oriel_operand *operand,
                                       const struct oriel_operand *result,
                                       struct oriel_internode_staging *staging)
{
    struct sender sender;
    sender.window = window;
    sender.head = (struct oriel_internode_head){.kind = kind};
    sender.unit_bytes = 1;
    sender.staging = staging;
    return send_all_messages(&sender, target, total_bytes, operand, result);
}

enum oriel_status oriel_internode_put(struct oriel_window *window, const struct oriel_span *target,
                                      const void *here, const struct oriel_side *origin)
{
    const uint64_t total_bytes = origin->count * origin->type->size_bytes;
    const struct oriel_operand operand = {(char *)(uintptr_t)here, *origin};
    struct rdma_path rdma;
    enum oriel_status status = rdma_path_find(window, target, oriel_side_is_plain(origin), &rdma);
    if (status != ORIEL_OK)
        return status;
    return rdma.key != NULL ? rdma_put(window, target, &rdma, here, total_bytes)
                            : send_transfer(window, ORIEL_INTERNODE_PUT, target, total_bytes,
                                            &operand, NULL, NULL);
}

enum oriel_status oriel_internode_get(struct oriel_window *window, const struct oriel_span *target,
                                      void *here, const struct oriel_side *origin)
{
    const uint64_t total_bytes = target->side.count * target->side.type->size_bytes;
    const struct oriel_operand result = {here, *origin};
    struct rdma_path rdma;
    enum oriel_status status = rdma_path_find(window, target, oriel_side_is_plain(origin), &rdma);
    if (status != ORIEL_OK)
        return status;
    return rdma.key != NULL ? rdma_get(window, target, &rdma, here, total_bytes)
                            : send_transfer(window, ORIEL_INTERNODE_GET, target, total_bytes, NULL,
                                            &result, NULL);
}

enum oriel_status oriel_internode_transfer_staged(struct oriel_window *window,
                                                  const struct oriel_span *target,
                                                  uint64_t total_bytes,
                                                  struct oriel_internode_staging *staging,
                                                  bool to_target)
{
    struct rdma_path rdma;
    enum oriel_status status = rdma_path_find(window, target, true, &rdma);
    if (status != ORIEL_OK)
        return status;
    return rdma.key != NULL
               ? rdma_staged(window, target, &rdma, total_bytes, staging, to_target)
               : send_transfer(window, to_target ? ORIEL_INTERNODE_PUT : ORIEL_INTERNODE_GET,
                               target, total_bytes, NULL, NULL, staging);
}

enum oriel_status oriel_internode_accumulate(struct oriel_window *window,
                                             const struct oriel_span *target,
                                             struct oriel_elements elements, enum oriel_operator op,
                                             const struct oriel_operand *origin,
                                             const struct oriel_operand *result)
{
    struct sender sender;
    sender.window = window;
    sender.head = (struct oriel_internode_head){
        .kind = ORIEL_INTERNODE_ACCUMULATE,
        .d = oriel_internode_word(op, elements.kind, result != NULL ? ORIEL_INTERNODE_RETURNS : 0)};
    sender.unit_bytes = oriel_kind_moving_bytes(elements.kind);
    sender.staging = NULL;
    return send_all_messages(&sender, target, elements.count * sender.unit_bytes,
                             op != ORIEL_OPERATOR_NO_OP ? origin : NULL, result);
}

enum oriel_status oriel_internode_notify(struct oriel_window *window, int32_t target,
                                         uint32_t number)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_PUT, .notifies = number + 1};
    enum oriel_status status = oriel_internode_enter(window, target, &peer);
    if (status == ORIEL_OK)
        status = await_rdma(window, target);
    return status == ORIEL_OK ? oriel_internode_send(window, target, peer, &head, NULL, 0) : status;
}

enum oriel_status oriel_internode_compare_and_swap(struct oriel_window *window,
                                                   const struct oriel_span *target,
                                                   const void *origin, const void *compare,
                                                   void *result)
{
    const enum oriel_kind kind = target->side.type->kind;
    const uint64_t len_bytes = oriel_kinds[kind].extent_bytes;
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_SWAP,
                                        .a = target->offset_bytes,
                                        .b = 1,
                                        .d = oriel_internode_word(0, kind, 0)};
    struct iovec data[2] = {{(void *)(uintptr_t)origin, len_bytes},
                            {(void *)(uintptr_t)compare, len_bytes}};
    enum oriel_status status = oriel_internode_enter(window, target->rank, &peer);
    if (status != ORIEL_OK)
        return status;
    struct expected_reply *wanted = expected_reply_for_run(result, len_bytes);
    if (wanted == NULL)
        return no_memory_for(target->rank);
    return oriel_internode_send_request(window, target->rank, peer, &head, data, 2,
                                        &wanted->request);
}
