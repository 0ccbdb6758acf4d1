/* The target's side of operations of internode origins (origin_rma.h has the messages). All of a
 * message is validated before any of it is executed. It is executed by the functions that serve
 * this process's own accesses to its window, so the same atomicity holds. The agent's thread
 * serves one message after the other. Executing a message needs no memory from malloc: the origin
 * has moved on and could not repeat an operation that is refused here. */
#include "internode/target/target_parse.h"

#include "internode/origin/origin_sync.h"
#include "memory/mechanism.h"
#include "reduce/cpu_swap.h"
#include "rma/path_select.h"
#include "rma/rma.h"
#include "sync/holder_epochs.h"
#include "sync/notify.h"

#include <string.h>

/* One message's reply, and its padded elements in memory layout. The payload of an element is more
 * than half of its size, so twice the buffer suffices. */
static _Alignas(16) char answer[ORIEL_NET_DATA_BYTES];
static _Alignas(16) char padded_operands[2 * ORIEL_NET_DATA_BYTES];
static _Alignas(16) char padded_results[2 * ORIEL_NET_DATA_BYTES];
_Static_assert(sizeof(struct {
                   long double value;
                   int index;
               }) <= 2 * (sizeof(long double) + sizeof(int)),
               "no padded element exceeds twice its payload");

static struct oriel_span span_of(const struct oriel_internode_order *order,
                                 const struct oriel_internode_part *part)
{
    return (struct oriel_span){.rank = order->window->rank,
                               .offset_bytes = (uint64_t)part->at_bytes,
                               .side = {&part->type, 1}};
}

/* Puts or gets part by part. packed: the message's operands, or a buffer for the data read. */
static enum oriel_status transfer_parts(const struct oriel_internode_order *order, char *packed)
{
    struct oriel_internode_part part;
    struct oriel_internode_part chars;
    enum oriel_status status = ORIEL_OK;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        oriel_internode_part_make(order, i, &part);
        oriel_internode_part_run(&chars, 0, ORIEL_KIND_CHAR, part.node.size_bytes);
        const struct oriel_span target = span_of(order, &part);
        const struct oriel_side here = {&chars.type, 1};
        status = order->head->kind == ORIEL_INTERNODE_PUT
                     ? oriel_put(order->window, &target, packed, &here)
                     : oriel_get(order->window, &target, packed, &here);
        packed += part.node.size_bytes;
    }
    return status;
}

/* Accumulates part by part, with elements in memory layout. */
static enum oriel_status accumulate_parts(const struct oriel_internode_order *order,
                                          const char *operands, char *results)
{
    struct oriel_internode_part part;
    struct oriel_internode_part elements;
    enum oriel_status status = ORIEL_OK;
    uint64_t at = 0;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        oriel_internode_part_make(order, i, &part);
        oriel_internode_part_run(&elements, 0, order->kind, part.node.elements);
        const struct oriel_span target = span_of(order, &part);
        const struct oriel_operand from = {(char *)(uintptr_t)operands + at, {&elements.type, 1}};
        const struct oriel_operand to = {results != NULL ? results + at : NULL,
                                         {&elements.type, 1}};
        status = oriel_accumulate(order->window, &target,
                                  (struct oriel_elements){order->kind, part.node.elements},
                                  order->op, &from, results != NULL ? &to : NULL);
        at += oriel_run_bytes(&elements.node);
    }
    return status;
}

/* Converts packed elements to memory layout and back. */
static enum oriel_status accumulate_padded_parts(const struct oriel_internode_order *order,
                                                 char *packed)
{
    const struct oriel_internode_batch elements = {
        .run_bytes = (uint32_t)(order->head->b * oriel_kinds[order->kind].extent_bytes),
        .runs = 1,
        .kind = order->kind};
    memset(padded_operands, 0, elements.run_bytes);
    if (order->operand_bytes > 0)
        oriel_internode_unpack(order->operands, &elements, padded_operands);
    if (packed != NULL)
        memset(padded_results, 0, elements.run_bytes);
    enum oriel_status status =
        accumulate_parts(order, padded_operands, packed != NULL ? padded_results : NULL);
    if (status == ORIEL_OK && packed != NULL)
        oriel_internode_pack(packed, &elements, padded_results);
    return status;
}

/* packed: buffer for the reply, or NULL. */
static enum oriel_status operation_execute(const struct oriel_internode_order *order, char *packed)
{
    if (order->head->kind == ORIEL_INTERNODE_PUT)
        return transfer_parts(order, (char *)(uintptr_t)order->operands);
    if (order->head->kind == ORIEL_INTERNODE_GET)
        return transfer_parts(order, packed);
    return oriel_kinds[order->kind].padded ? accumulate_padded_parts(order, packed)
                                           : accumulate_parts(order, order->operands, packed);
}

static enum oriel_status serve_swap(struct oriel_window *window,
                                    const struct oriel_internode_head *head,
                                    const struct oriel_net_received *message, char *found,
                                    uint64_t *found_bytes)
{
    struct oriel_internode_order order = {.window = window, .head = head};
    struct oriel_internode_part part;
    const uint32_t kind = head->d >> 8 & 255;
    if (kind >= ORIEL_KIND_COUNT || oriel_kinds[kind].padded ||
        oriel_kinds[kind].extent_bytes > ORIEL_SWAP_BYTES)
        return oriel_internode_malformed(&order, "datatype");
    const uint64_t len_bytes = oriel_kinds[kind].extent_bytes;
    if (message->len_bytes != 2 * len_bytes)
        return oriel_internode_malformed(&order, "length");
    oriel_internode_part_run(&part, head->a, (enum oriel_kind)kind, 1);
    enum oriel_status status = oriel_internode_part_check(&order, &part);
    const struct oriel_span target = span_of(&order, &part);
    *found_bytes = len_bytes;
    return status != ORIEL_OK ? status
                              : oriel_compare_and_swap(window, &target, message->data,
                                                       message->data + len_bytes, found);
}

/* Replies with the data that a get or an accumulate has read. */
static enum oriel_status operation_reply(const struct oriel_internode_order *order,
                                         const struct oriel_net_requester *asker)
{
    struct oriel_window *window = order->window;
    const struct oriel_internode_head *head = order->head;
    struct iovec data = {answer, order->moved_bytes};
    enum oriel_status status = operation_execute(order, answer);
    if (status != ORIEL_OK)
        oriel_internode_record_failure(window, head->from, status);
    oriel_internode_reply(window, asker, head->from, &data, status == ORIEL_OK ? 1 : 0);
    return status;
}

/* Sends a run of memory that loads can read directly from its place. Loads a word in one piece, for
 * origins that poll it. Returns false for other memory. */
static bool reply_with_run(const struct oriel_internode_order *order,
                           const struct oriel_net_requester *asker)
{
    const struct oriel_internode_head *head = order->head;
    const struct oriel_path path =
        oriel_path_find(order->window, order->window->rank, head->a, 0, (int64_t)head->b);
    uint64_t word;
    struct iovec data = {path.remote.direct, head->b};
    if (path.transport != &oriel_transport_shared)
        return false;
    if (head->b <= sizeof word) {
        path.transport->read(&path.remote, &word, head->b);
        data.iov_base = &word;
    }
    oriel_internode_reply(order->window, asker, head->from, &data, 1);
    return true;
}

/* Whether the window has the counter that an operation notifies. */
static enum oriel_status notification_check(const struct oriel_window *window,
                                            const struct oriel_internode_head *head)
{
    if (oriel_likely(head->notifies == 0))
        return ORIEL_OK;
    return oriel_notify_check(window, window->rank, (int)(head->notifies - 1));
}

/* After the operation. If it, or an earlier one of this origin, has failed, the notification would
 * be wrong. */
static void notification_serve(struct oriel_window *window, const struct oriel_internode_head *head)
{
    if (oriel_unlikely(head->notifies != 0) && !oriel_internode_has_failed(window, head->from))
        oriel_notify_signal(oriel_notify_area(window, window->rank), head->notifies - 1);
}

/* Whether the sender is in an epoch, if it is a holder of a memory handle. */
static enum oriel_status epoch_check(const struct oriel_window *window)
{
    return !oriel_window_is_opened(window) || oriel_holder_has_epoch(window->holding)
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_SYNC, "no epoch is open on the memory handle");
}

static void operation_serve(struct oriel_window *window, const struct oriel_net_requester *asker,
                            const struct oriel_internode_head *head,
                            const struct oriel_net_received *message)
{
    struct oriel_internode_order order = {.window = window, .head = head};
    char found[ORIEL_SWAP_BYTES];
    struct iovec data = {found, 0};
    bool asked =
        head->kind == ORIEL_INTERNODE_GET || head->kind == ORIEL_INTERNODE_SWAP ||
        (head->kind == ORIEL_INTERNODE_ACCUMULATE && (head->d >> 16 & ORIEL_INTERNODE_RETURNS));
    bool is_alone = head->notifies != 0 && head->kind == ORIEL_INTERNODE_PUT && head->b == 0 &&
                    message->len_bytes == 0;
    enum oriel_status status = epoch_check(window);
    if (status == ORIEL_OK)
        status = notification_check(window, head);
    if (status == ORIEL_OK && head->kind == ORIEL_INTERNODE_SWAP)
        status = serve_swap(window, head, message, found, &data.iov_len);
    else if (status == ORIEL_OK && !is_alone)
        status = oriel_internode_order_read(&order, message);
    if (status == ORIEL_OK && head->kind == ORIEL_INTERNODE_SWAP) {
        oriel_internode_reply(window, asker, head->from, &data, 1);
    } else if (status == ORIEL_OK && asked) {
        if (head->kind != ORIEL_INTERNODE_GET || head->c != 0 || !reply_with_run(&order, asker))
            status = operation_reply(&order, asker);
    } else {
        if (status == ORIEL_OK && !is_alone)
            status = operation_execute(&order, NULL);
        if (status != ORIEL_OK)
            oriel_internode_record_failure(window, head->from, status);
        if (asked)
            oriel_internode_reply(window, asker, head->from, NULL, 0);
    }
    if (status == ORIEL_OK)
        notification_serve(window, head);
}

void oriel_internode_serve_operation(struct oriel_window *window,
                                     const struct oriel_net_requester *asker,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_received *message)
{
    struct oriel_remote_writers *writers = oriel_file_remote_writers(oriel_file_base());
    oriel_path_serves_internode = true;
    oriel_path_serves_by_kernel =
        oriel_mechanism_probe_cma(window->group->peers[window->rank]) == ORIEL_OK;
    /* While pages move, this thread waits: in the kernel's copies, which announce themselves, or
     * here. */
    struct oriel_remote_writers_slot *slot =
        oriel_path_serves_by_kernel ? NULL : oriel_remote_writers_enter(writers);
    operation_serve(window, asker, head, message);
    if (slot != NULL)
        oriel_remote_writers_leave(slot);
    oriel_path_serves_internode = false;
    oriel_path_serves_by_kernel = false;
}
