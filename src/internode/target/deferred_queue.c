/* A list of copied messages, oldest first (deferred_queue.h). */
#include "internode/target/deferred_queue.h"

#include <stdlib.h>
#include <string.h>

/* the origin's limit does not count flushes */
enum { MOST_BYTES = 2 * ORIEL_LAZY_LOCK_BYTES };

struct oriel_internode_message {
    struct oriel_internode_message *next;
    struct oriel_net_requester asker;
    struct oriel_internode_head head;
    oriel_internode_serve_fn *again;
    bool is_asked;
    size_t len_bytes;
    _Alignas(uint64_t) char data[];
};

enum oriel_status oriel_internode_deferred_add(struct oriel_internode_deferred *kept,
                                               const struct oriel_net_requester *asker,
                                               const struct oriel_internode_head *head,
                                               const struct oriel_net_received *message,
                                               bool is_asked, oriel_internode_serve_fn *again)
{
    if (head->kind == ORIEL_INTERNODE_UNLOCK && !kept->has_unlock) {
        kept->has_unlock = true;
        kept->unlock = *asker;
        return ORIEL_OK;
    }
    if (kept->has_unlock)
        return oriel_fail(ORIEL_E_SYNC, "rank %d sent a message after its unlock", (int)head->from);
    size_t counted_bytes = sizeof *head + message->len_bytes;
    struct oriel_internode_message *copy = counted_bytes > MOST_BYTES - kept->len_bytes
                                               ? NULL
                                               : malloc(sizeof *copy + message->len_bytes);
    if (copy == NULL)
        return oriel_fail(ORIEL_E_NO_MEM,
                          "no memory to defer operations of rank %d until its lock is acquired",
                          (int)head->from);
    *copy = (struct oriel_internode_message){.asker = *asker,
                                             .head = *head,
                                             .again = again,
                                             .is_asked = is_asked,
                                             .len_bytes = message->len_bytes};
    if (message->len_bytes != 0)
        memcpy(copy->data, message->data, message->len_bytes);
    if (kept->last == NULL)
        kept->first = copy;
    else
        kept->last->next = copy;
    kept->last = copy;
    kept->len_bytes += counted_bytes;
    return ORIEL_OK;
}

static struct oriel_internode_message *take_first(struct oriel_internode_deferred *kept)
{
    struct oriel_internode_message *first = kept->first;
    if (first == NULL)
        return NULL;
    kept->first = first->next;
    if (kept->first == NULL)
        kept->last = NULL;
    return first;
}

void oriel_internode_deferred_serve(struct oriel_window *window,
                                    struct oriel_internode_deferred *kept)
{
    struct oriel_internode_message *message;
    while ((message = take_first(kept)) != NULL) {
        const struct oriel_net_received arrived = {&message->head, sizeof message->head,
                                                   message->data, message->len_bytes};
        message->again(window, &message->asker, &message->head, &arrived);
        free(message);
    }
}

void oriel_internode_deferred_refuse(struct oriel_internode_deferred *kept,
                                     enum oriel_status status)
{
    struct oriel_internode_message *message;
    while ((message = take_first(kept)) != NULL) {
        if (message->is_asked)
            oriel_internode_reply_refusal(&message->asker, status);
        free(message);
    }
}

void oriel_internode_deferred_drop(struct oriel_internode_deferred *kept)
{
    struct oriel_internode_message *message;
    while ((message = take_first(kept)) != NULL)
        free(message);
}
